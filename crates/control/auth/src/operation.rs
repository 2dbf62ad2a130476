//! Every operation of the API, and what it needs.
//!
//! The API makes its routes from this list and cannot make one without it; the matrix of operations,
//! roles and tenants is tested from it. So an operation without a decision about access cannot exist.

use serde::Serialize;

/// Who may call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Anybody; the operation proves its caller itself.
    Nothing,
    /// Somebody who is signed in, about themselves.
    SignIn,
    /// This permission, in the tenant that the path names, or the query where the path names none.
    Permission(&'static str),
}

/// One operation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Operation {
    /// As the audit trail names it.
    pub id: &'static str,
    pub method: &'static str,
    pub path: &'static str,
    pub need: Need,
}

/// Resources whose tenant the query names.
const CHOOSING: &[&str] = &[
    "approval-delegations",
    "approval-policies",
    "approvals",
    "cmdb",
    "components",
    "deployments",
    "drafts",
    "environments",
    "runs",
    "semantic",
    "stacks",
    "system",
    "workers",
    "workflows",
    "schedules",
    "templates",
    "workspace",
    "zones",
];

impl Operation {
    /// Whether the query names the tenant, as for the resources of document 004; without a name it is the
    /// caller's own.
    pub fn chooses_tenant(&self) -> bool {
        CHOOSING
            .iter()
            .any(|resource| self.path.split('/').nth(3) == Some(resource))
    }

    /// Whether it changes nothing.
    pub fn is_read(&self) -> bool {
        self.method == "GET"
    }
}

macro_rules! operations {
    ($($name:ident = $id:literal $method:ident $path:literal $need:expr;)*) => {
        $(pub const $name: Operation = Operation {
            id: $id,
            method: stringify!($method),
            path: $path,
            need: $need,
        };)*

        /// The registry.
        pub const OPERATIONS: &[Operation] = &[$($name,)*];
    };
}

use Need::{Nothing, Permission, SignIn};

operations! {
    DESCRIBE_API = "api.describe" GET "/api/v1/openapi.json" Nothing;
    SETUP_STATUS = "setup.status" GET "/api/v1/setup/status" Nothing;
    SETUP_COMPLETE = "setup.complete" POST "/api/v1/setup/complete" Nothing;
    LOGIN = "auth.login" POST "/api/v1/auth/login" Nothing;
    REFRESH = "auth.refresh" POST "/api/v1/auth/refresh" Nothing;
    REFRESH_TOKEN = "auth.refresh_token" POST "/api/v1/auth/refresh-token" Nothing;
    LOGOUT = "auth.logout" POST "/api/v1/auth/logout" SignIn;
    ME = "auth.me" GET "/api/v1/auth/me" SignIn;
    OWN_SESSIONS = "auth.sessions.list" GET "/api/v1/auth/sessions" SignIn;
    REVOKE_OTHER_SESSIONS = "auth.sessions.revoke_others" DELETE "/api/v1/auth/sessions" SignIn;
    REVOKE_OWN_SESSION = "auth.sessions.revoke" DELETE "/api/v1/auth/sessions/{session}" SignIn;
    CHANGE_PASSWORD = "auth.password.change" POST "/api/v1/auth/password" SignIn;
    LIST_PERMISSIONS = "permissions.list" GET "/api/v1/permissions" SignIn;

    GRAPHQL = "graphql.execute" POST "/graphql" SignIn;
    GRAPHQL_LIVE = "graphql.watch" GET "/graphql" SignIn;

    LIST_TENANTS = "tenants.list" GET "/api/v1/tenants" SignIn;
    GET_TENANT = "tenants.get" GET "/api/v1/tenants/{tenant}" Permission("tenant:definition:read");
    CREATE_TENANT = "tenants.create" POST "/api/v1/tenants/{tenant}/tenants" Permission("tenant:definition:create");
    UPDATE_TENANT = "tenants.update" PATCH "/api/v1/tenants/{tenant}" Permission("tenant:definition:update");
    MOVE_TENANT = "tenants.move" POST "/api/v1/tenants/{tenant}/move" Permission("tenant:definition:move");
    DELETE_TENANT = "tenants.delete" DELETE "/api/v1/tenants/{tenant}" Permission("tenant:definition:delete");
    SET_QUOTAS = "tenants.quotas.set" PUT "/api/v1/tenants/{tenant}/quotas" Permission("tenant:quota:manage");
    TENANT_EFFECTIVE = "tenants.effective" GET "/api/v1/tenants/{tenant}/effective" Permission("tenant:definition:read");
    LIST_DELETED_TENANTS = "tenants.deleted.list" GET "/api/v1/tenants/{tenant}/deleted" Permission("tenant:definition:delete");
    RESTORE_TENANT = "tenants.restore" POST "/api/v1/tenants/{tenant}/deleted/{deleted}/restore" Permission("tenant:definition:delete");

    LIST_USERS = "users.list" GET "/api/v1/tenants/{tenant}/users" Permission("users:read");
    GET_USER = "users.get" GET "/api/v1/tenants/{tenant}/users/{user}" Permission("users:read");
    CREATE_USER = "users.create" POST "/api/v1/tenants/{tenant}/users" Permission("users:account:create");
    UPDATE_USER = "users.update" PATCH "/api/v1/tenants/{tenant}/users/{user}" Permission("users:account:update");
    DELETE_USER = "users.delete" DELETE "/api/v1/tenants/{tenant}/users/{user}" Permission("users:account:delete");
    LIST_SESSIONS = "users.sessions.list" GET "/api/v1/tenants/{tenant}/users/{user}/sessions" Permission("users:session:read");
    REVOKE_SESSIONS = "users.sessions.revoke" DELETE "/api/v1/tenants/{tenant}/users/{user}/sessions" Permission("users:session:revoke");
    REVOKE_SESSION = "users.session.revoke" DELETE "/api/v1/tenants/{tenant}/users/{user}/sessions/{session}" Permission("users:session:revoke");

    LIST_GROUPS = "groups.list" GET "/api/v1/tenants/{tenant}/groups" Permission("users:read");
    CREATE_GROUP = "groups.create" POST "/api/v1/tenants/{tenant}/groups" Permission("users:group:manage");
    UPDATE_GROUP = "groups.update" PATCH "/api/v1/tenants/{tenant}/groups/{group}" Permission("users:group:manage");
    LIST_MEMBERS = "groups.members.list" GET "/api/v1/tenants/{tenant}/groups/{group}/members" Permission("users:read");
    DELETE_GROUP = "groups.delete" DELETE "/api/v1/tenants/{tenant}/groups/{group}" Permission("users:group:manage");
    ADD_MEMBER = "groups.members.add" PUT "/api/v1/tenants/{tenant}/groups/{group}/members/{user}" Permission("users:group:manage");
    REMOVE_MEMBER = "groups.members.remove" DELETE "/api/v1/tenants/{tenant}/groups/{group}/members/{user}" Permission("users:group:manage");

    LIST_KEYS = "keys.list" GET "/api/v1/tenants/{tenant}/keys" Permission("users:key:read");
    CREATE_KEY = "keys.create" POST "/api/v1/tenants/{tenant}/keys" Permission("users:key:manage");
    REVOKE_KEY = "keys.revoke" DELETE "/api/v1/tenants/{tenant}/keys/{key}" Permission("users:key:manage");

    LIST_ROLES = "roles.list" GET "/api/v1/tenants/{tenant}/roles" Permission("rbac:role:read");
    CREATE_ROLE = "roles.create" POST "/api/v1/tenants/{tenant}/roles" Permission("rbac:role:manage");
    UPDATE_ROLE = "roles.update" PUT "/api/v1/tenants/{tenant}/roles/{role}" Permission("rbac:role:manage");
    DELETE_ROLE = "roles.delete" DELETE "/api/v1/tenants/{tenant}/roles/{role}" Permission("rbac:role:manage");
    LIST_ASSIGNMENTS = "roles.assignments.list" GET "/api/v1/tenants/{tenant}/role-assignments" Permission("rbac:role:read");
    ASSIGN_ROLE = "roles.assign" POST "/api/v1/tenants/{tenant}/role-assignments" Permission("rbac:assignment:manage");
    UNASSIGN_ROLE = "roles.unassign" DELETE "/api/v1/tenants/{tenant}/role-assignments/{assignment}" Permission("rbac:assignment:manage");
    EXPLAIN = "roles.explain" POST "/api/v1/tenants/{tenant}/explain" Permission("rbac:decision:explain");

    LIST_CLOUD_ACCOUNTS = "cloud_accounts.list" GET "/api/v1/tenants/{tenant}/cloud-accounts" Permission("cloud:account:read");
    PUT_CLOUD_ACCOUNT = "cloud_accounts.put" PUT "/api/v1/tenants/{tenant}/cloud-accounts/{account}" Permission("cloud:account:manage");
    DELETE_CLOUD_ACCOUNT = "cloud_accounts.delete" DELETE "/api/v1/tenants/{tenant}/cloud-accounts/{account}" Permission("cloud:account:manage");

    LIST_RESOLVERS = "resolvers.list" GET "/api/v1/tenants/{tenant}/resolvers" Permission("resolver:config:read");
    LIST_RESOLVER_CONFIGURATIONS = "resolvers.configurations" GET "/api/v1/tenants/{tenant}/resolver-configurations" Permission("resolver:config:read");
    CONFIGURE_RESOLVER = "resolvers.configure" PUT "/api/v1/tenants/{tenant}/resolvers/{resolver}/configuration" Permission("resolver:config:manage");
    LIST_POOLS = "pools.list" GET "/api/v1/tenants/{tenant}/address-pools" Permission("resolver:config:read");
    CREATE_POOL = "pools.create" POST "/api/v1/tenants/{tenant}/address-pools" Permission("resolver:config:manage");
    GET_POOL = "pools.get" GET "/api/v1/tenants/{tenant}/address-pools/{pool}" Permission("resolver:config:read");
    DELETE_POOL = "pools.delete" DELETE "/api/v1/tenants/{tenant}/address-pools/{pool}" Permission("resolver:config:manage");
    RESERVE_BLOCK = "pools.reserve" POST "/api/v1/tenants/{tenant}/address-pools/{pool}/reserve" Permission("resolver:config:manage");
    UNRESERVE_BLOCK = "pools.unreserve" POST "/api/v1/tenants/{tenant}/address-pools/{pool}/unreserve" Permission("resolver:config:manage");
    LIST_LEASES = "leases.list" GET "/api/v1/tenants/{tenant}/resolver-leases" Permission("resolver:config:read");
    RELEASE_LEASE = "leases.release" DELETE "/api/v1/tenants/{tenant}/resolver-leases/{lease}" Permission("resolver:config:manage");
    LIST_IMAGES = "images.list" GET "/api/v1/tenants/{tenant}/images" Permission("resolver:config:read");
    PUT_IMAGE = "images.put" PUT "/api/v1/tenants/{tenant}/images" Permission("resolver:config:manage");
    DELETE_IMAGE = "images.delete" DELETE "/api/v1/tenants/{tenant}/images/{image}" Permission("resolver:config:manage");

    LIST_DEPLOYMENTS = "deployments.list" GET "/api/v1/deployments" Permission("deployment:definition:read");
    CREATE_DEPLOYMENT = "deployments.create" POST "/api/v1/deployments" Permission("deployment:definition:create");
    GET_DEPLOYMENT = "deployments.get" GET "/api/v1/deployments/{deployment}" Permission("deployment:definition:read");
    UPDATE_DEPLOYMENT = "deployments.update" PUT "/api/v1/deployments/{deployment}" Permission("deployment:definition:update");
    DELETE_DEPLOYMENT = "deployments.delete" DELETE "/api/v1/deployments/{deployment}" Permission("deployment:definition:delete");
    GET_MANIFEST = "deployments.manifest" GET "/api/v1/deployments/{deployment}/manifest" Permission("deployment:definition:read");
    DEPLOYMENT_STATUS = "deployments.status" GET "/api/v1/deployments/{deployment}/status" Permission("deployment:definition:read");
    DEPLOY = "deployments.deploy" POST "/api/v1/deployments/{deployment}/deploy" Permission("stack:instance:deploy");
    DESTROY = "deployments.destroy" POST "/api/v1/deployments/{deployment}/destroy" Permission("stack:instance:destroy");
    PREVIEW = "deployments.preview" POST "/api/v1/deployments/{deployment}/preview" Permission("component:preview");
    ROLL_BACK = "deployments.rollback" POST "/api/v1/deployments/{deployment}/rollback" Permission("stack:instance:deploy");
    REFRESH_DEPLOYMENT = "deployments.refresh" POST "/api/v1/deployments/{deployment}/refresh" Permission("stack:instance:deploy");
    DEPLOYMENT_STATE = "deployments.state" GET "/api/v1/deployments/{deployment}/state" Permission("deployment:state:read");
    EXPORT_STATE = "deployments.state.export" POST "/api/v1/deployments/{deployment}/state/export" Permission("deployment:state:export");
    DEPLOYMENT_OUTPUTS = "deployments.outputs" GET "/api/v1/deployments/{deployment}/outputs" Permission("deployment:state:read");
    UNIT_HISTORY = "deployments.unit.history" GET "/api/v1/deployments/{deployment}/units/{unit}/history" Permission("deployment:state:read");
    UNIT_DIFFERENCE = "deployments.unit.difference" GET "/api/v1/deployments/{deployment}/units/{unit}/difference" Permission("deployment:state:read");
    UNIT_HEALTH = "deployments.unit.health" GET "/api/v1/deployments/{deployment}/units/{unit}/health" Permission("deployment:state:read");
    REPAIR_UNIT = "deployments.unit.repair" POST "/api/v1/deployments/{deployment}/units/{unit}/repair" Permission("deployment:state:repair");
    DEPLOYMENT_PROGRESS = "deployments.progress" GET "/api/v1/deployments/{deployment}/progress" Permission("deployment:log:read");
    LIST_ENVIRONMENTS = "environments.list" GET "/api/v1/deployments/{deployment}/environments" Permission("deployment:definition:read");
    LIST_VERSIONS = "environments.versions" GET "/api/v1/deployments/{deployment}/environments/{environment}/versions" Permission("deployment:definition:read");
    ENABLE_ENVIRONMENT = "environments.enable" POST "/api/v1/deployments/{deployment}/environments/{environment}/enable" Permission("deployment:environment:manage");
    DISABLE_ENVIRONMENT = "environments.disable" POST "/api/v1/deployments/{deployment}/environments/{environment}/disable" Permission("deployment:environment:manage");
    LIST_GATES = "gates.list" GET "/api/v1/deployments/{deployment}/gates" Permission("deployment:definition:read");
    SIGN_GATE = "gates.sign" PUT "/api/v1/deployments/{deployment}/environments/{environment}/gate/{item}" Permission("deployment:environment:manage");

    LIST_RUNS = "runs.list" GET "/api/v1/runs" Permission("deployment:definition:read");
    GET_RUN = "runs.get" GET "/api/v1/runs/{run}" Permission("deployment:definition:read");
    RUN_EVENTS = "runs.events" GET "/api/v1/runs/{run}/events" Permission("deployment:log:read");
    RUN_DETAIL = "runs.detail" GET "/api/v1/runs/{run}/detail" Permission("deployment:log:read");
    RUN_UNIT = "runs.unit" GET "/api/v1/runs/{run}/units/{unit}" Permission("deployment:log:read");
    RUN_LOG = "runs.log" GET "/api/v1/runs/{run}/log" Permission("deployment:log:read");
    RUN_PROGRESS = "runs.progress" GET "/api/v1/runs/{run}/progress" Permission("deployment:log:read");
    RUN_REVIEW = "runs.review" GET "/api/v1/runs/{run}/review" Permission("deployment:log:read");
    LIST_MARKS = "runs.marks.list" GET "/api/v1/runs/{run}/marks" Permission("deployment:log:read");
    SET_MARK = "runs.marks.set" PUT "/api/v1/runs/{run}/marks/{item}" Permission("deployment:log:read");
    REMOVE_MARK = "runs.marks.remove" DELETE "/api/v1/runs/{run}/marks/{item}" Permission("deployment:log:read");
    CANCEL_RUN = "runs.cancel" POST "/api/v1/runs/{run}/cancel" Permission("workflow:run:signal");
    PAUSE_RUN = "runs.pause" POST "/api/v1/runs/{run}/pause" Permission("workflow:run:signal");
    RESUME_RUN = "runs.resume" POST "/api/v1/runs/{run}/resume" Permission("workflow:run:signal");

    LIST_APPROVALS = "approvals.list" GET "/api/v1/approvals" Permission("approval:request:read");
    GET_APPROVAL = "approvals.get" GET "/api/v1/approvals/{approval}" Permission("approval:request:read");
    GRANT_APPROVAL = "approvals.grant" POST "/api/v1/approvals/{approval}/grant" Permission("approval:request:decide");
    DENY_APPROVAL = "approvals.deny" POST "/api/v1/approvals/{approval}/deny" Permission("approval:request:decide");
    LIST_APPROVAL_POLICIES = "approvals.policies.list" GET "/api/v1/approval-policies" Permission("approval:request:read");
    PUT_APPROVAL_POLICY = "approvals.policies.put" PUT "/api/v1/approval-policies/{environment}" Permission("approval:policy:manage");
    DELETE_APPROVAL_POLICY = "approvals.policies.delete" DELETE "/api/v1/approval-policies/{environment}" Permission("approval:policy:manage");
    LIST_DELEGATIONS = "approvals.delegations.list" GET "/api/v1/approval-delegations" Permission("approval:request:decide");
    PUT_DELEGATION = "approvals.delegations.put" PUT "/api/v1/approval-delegations/{user}" Permission("approval:request:decide");
    DELETE_DELEGATION = "approvals.delegations.delete" DELETE "/api/v1/approval-delegations/{user}" Permission("approval:request:decide");

    LIST_NOTIFICATIONS = "notifications.list" GET "/api/v1/notifications" SignIn;
    READ_NOTIFICATION = "notifications.read" POST "/api/v1/notifications/{notification}/read" SignIn;
    READ_NOTIFICATIONS = "notifications.read_all" POST "/api/v1/notifications/read-all" SignIn;

    GET_PREFERENCES = "notifications.preferences.get" GET "/api/v1/notifications/preferences" SignIn;
    SET_PREFERENCES = "notifications.preferences.set" PATCH "/api/v1/notifications/preferences" SignIn;

    LIST_WEBHOOKS = "webhooks.list" GET "/api/v1/tenants/{tenant}/webhooks" Permission("notification:channel:manage");
    CREATE_WEBHOOK = "webhooks.create" POST "/api/v1/tenants/{tenant}/webhooks" Permission("notification:channel:manage");
    UPDATE_WEBHOOK = "webhooks.update" PUT "/api/v1/tenants/{tenant}/webhooks/{webhook}" Permission("notification:channel:manage");
    DELETE_WEBHOOK = "webhooks.delete" DELETE "/api/v1/tenants/{tenant}/webhooks/{webhook}" Permission("notification:channel:manage");
    ROTATE_WEBHOOK = "webhooks.rotate" POST "/api/v1/tenants/{tenant}/webhooks/{webhook}/rotate" Permission("notification:channel:manage");
    TEST_WEBHOOK = "webhooks.test" POST "/api/v1/tenants/{tenant}/webhooks/{webhook}/test" Permission("notification:channel:manage");
    RESEND_WEBHOOK = "webhooks.resend" POST "/api/v1/tenants/{tenant}/webhooks/{webhook}/resend" Permission("notification:channel:manage");
    LIST_DELIVERIES = "deliveries.list" GET "/api/v1/tenants/{tenant}/deliveries" Permission("notification:channel:manage");
    GET_DELIVERY = "deliveries.get" GET "/api/v1/tenants/{tenant}/deliveries/{delivery}" Permission("notification:channel:manage");
    RESEND_DELIVERY = "deliveries.resend" POST "/api/v1/tenants/{tenant}/deliveries/{delivery}/resend" Permission("notification:channel:manage");

    LIST_STACKS = "stacks.list" GET "/api/v1/stacks" Permission("component:definition:read");
    REGISTER_STACK = "stacks.register" POST "/api/v1/stacks" Permission("registry:stack:manage");
    GET_STACK = "stacks.get" GET "/api/v1/stacks/{stack}" Permission("component:definition:read");
    UPDATE_STACK = "stacks.update" PUT "/api/v1/stacks/{stack}" Permission("registry:stack:manage");
    UNREGISTER_STACK = "stacks.unregister" DELETE "/api/v1/stacks/{stack}" Permission("registry:stack:manage");
    DEPLOY_STACK = "stacks.deploy" POST "/api/v1/stacks/{stack}/deploy" Permission("component:deploy");

    LIST_TEMPLATES = "templates.list" GET "/api/v1/templates" Permission("template:definition:read");
    CREATE_TEMPLATE = "templates.create" POST "/api/v1/templates" Permission("template:definition:manage");
    GET_TEMPLATE = "templates.get" GET "/api/v1/templates/{template}" Permission("template:definition:read");
    DELETE_TEMPLATE = "templates.delete" DELETE "/api/v1/templates/{template}" Permission("template:definition:manage");

    LIST_WORKSPACE = "workspace.list" GET "/api/v1/workspace" Permission("component:definition:read");
    CHANGE_WORKSPACE = "workspace.change" PUT "/api/v1/workspace" Permission("registry:stack:manage");
    READ_CONTENTS = "workspace.contents.read" GET "/api/v1/workspace/contents" Permission("component:definition:read");
    STORE_CONTENTS = "workspace.contents.store" POST "/api/v1/workspace/contents" Permission("registry:stack:manage");

    LIST_DRAFTS = "drafts.list" GET "/api/v1/drafts" Permission("deployment:definition:create");
    PUT_DRAFT = "drafts.put" PUT "/api/v1/drafts/{draft}" Permission("deployment:definition:create");
    DELETE_DRAFT = "drafts.delete" DELETE "/api/v1/drafts/{draft}" Permission("deployment:definition:create");

    SHOW_SYSTEM = "system.show" GET "/api/v1/system" Permission("system:setting:read");
    LIST_WORKFLOWS = "workflows.list" GET "/api/v1/workflows" Permission("system:setting:read");
    GET_WORKFLOW = "workflows.get" GET "/api/v1/workflows/{workflow}" Permission("system:setting:read");
    LIST_SCHEDULES = "schedules.list" GET "/api/v1/schedules" Permission("system:setting:read");
    PAUSE_SCHEDULE = "schedules.pause" POST "/api/v1/schedules/{schedule}/pause" Permission("system:setting:manage");
    RESUME_SCHEDULE = "schedules.resume" POST "/api/v1/schedules/{schedule}/resume" Permission("system:setting:manage");
    LIST_WORKERS = "workers.list" GET "/api/v1/workers" Permission("system:setting:read");
    JOIN_WORKER = "workers.join" POST "/api/v1/workers" Permission("system:worker:join");
    DRAIN_WORKER = "workers.drain" POST "/api/v1/workers/{worker}/drain" Permission("system:setting:manage");
    RESUME_WORKER = "workers.resume" POST "/api/v1/workers/{worker}/resume" Permission("system:setting:manage");
    LEAVE_WORKER = "workers.leave" DELETE "/api/v1/workers/{worker}" Permission("system:worker:join");
    BEAT_WORKER = "workers.beat" POST "/api/v1/workers/{worker}/beat" Permission("system:worker:join");
    TAKE_RUN = "workers.take" POST "/api/v1/workers/{worker}/take" Permission("system:worker:join");
    CALL_RUN = "workers.call" POST "/api/v1/workers/{worker}/runs/{run}" Permission("system:worker:join");
    LIST_COMPONENTS = "components.list" GET "/api/v1/components" Permission("component:definition:read");
    CREATE_COMPONENT = "components.create" POST "/api/v1/components" Permission("component:definition:create");
    GET_COMPONENT = "components.get" GET "/api/v1/components/{component}" Permission("component:definition:read");
    UPDATE_COMPONENT = "components.update" PUT "/api/v1/components/{component}" Permission("component:definition:update");
    DELETE_COMPONENT = "components.delete" DELETE "/api/v1/components/{component}" Permission("component:definition:delete");
    PUBLISH_COMPONENT = "components.publish" POST "/api/v1/components/{component}/publish" Permission("component:version:publish");
    LIST_COMPONENT_VERSIONS = "components.versions.list" GET "/api/v1/components/{component}/versions" Permission("component:definition:read");
    GET_COMPONENT_VERSION = "components.versions.get" GET "/api/v1/components/{component}/versions/{version}" Permission("component:definition:read");
    COMPARE_COMPONENT_VERSIONS = "components.versions.changes" GET "/api/v1/components/{component}/versions/{version}/changes" Permission("component:definition:read");
    DEPRECATE_COMPONENT = "components.versions.deprecate" POST "/api/v1/components/{component}/versions/{version}/deprecate" Permission("component:version:publish");
    LIST_COMPONENT_INSTANCES = "components.instances" GET "/api/v1/components/{component}/instances" Permission("component:instance:read");

    LIST_GOVERNANCE = "governance.list" GET "/api/v1/tenants/{tenant}/governance" Permission("component:governance:read");
    PUT_GOVERNANCE = "governance.put" PUT "/api/v1/tenants/{tenant}/governance/{component}" Permission("component:governance:manage");
    DELETE_GOVERNANCE = "governance.delete" DELETE "/api/v1/tenants/{tenant}/governance/{component}" Permission("component:governance:manage");

    LIST_SEMANTIC_CLOUDS = "semantic.clouds.list" GET "/api/v1/semantic/clouds" Permission("semantic:definition:read");
    PUT_SEMANTIC_CLOUD = "semantic.clouds.put" PUT "/api/v1/semantic/clouds/{cloud}" Permission("semantic:definition:manage");
    LIST_SEMANTIC_TYPES = "semantic.types.list" GET "/api/v1/semantic/types" Permission("semantic:definition:read");
    PUT_SEMANTIC_TYPE = "semantic.types.put" PUT "/api/v1/semantic/types/{type}" Permission("semantic:definition:manage");
    DELETE_SEMANTIC_TYPE = "semantic.types.delete" DELETE "/api/v1/semantic/types/{type}" Permission("semantic:definition:manage");
    LIST_SEMANTIC_MAPPINGS = "semantic.mappings.list" GET "/api/v1/semantic/mappings" Permission("semantic:definition:read");
    PUT_SEMANTIC_MAPPING = "semantic.mappings.put" PUT "/api/v1/semantic/types/{type}/clouds/{cloud}" Permission("semantic:definition:manage");
    CLASSIFY_RESOURCE = "semantic.resources.get" GET "/api/v1/semantic/resources/{resource}" Permission("semantic:definition:read");

    LIST_ITEMS = "cmdb.items.list" GET "/api/v1/cmdb/items" Permission("cmdb:read");
    GET_ITEM = "cmdb.items.get" GET "/api/v1/cmdb/items/{ci}" Permission("cmdb:read");
    MOVE_ITEM = "cmdb.items.update" PATCH "/api/v1/cmdb/items/{ci}" Permission("cmdb:write");
    ITEM_HISTORY = "cmdb.items.history" GET "/api/v1/cmdb/items/{ci}/history" Permission("cmdb:read");
    ITEM_GRAPH = "cmdb.items.graph" GET "/api/v1/cmdb/items/{ci}/graph" Permission("cmdb:read");
    LIST_RELATIONSHIPS = "cmdb.relationships.list" GET "/api/v1/cmdb/items/{ci}/relationships" Permission("cmdb:read");
    RELATE_ITEMS = "cmdb.relationships.create" POST "/api/v1/cmdb/relationships" Permission("cmdb:write");
    UNRELATE_ITEMS = "cmdb.relationships.delete" DELETE "/api/v1/cmdb/relationships/{relationship}" Permission("cmdb:write");
    SEARCH_CMDB = "cmdb.search" GET "/api/v1/cmdb/search" Permission("cmdb:read");
    LIST_CLASSES = "cmdb.classes.list" GET "/api/v1/cmdb/classes" Permission("cmdb:read");
    PUT_CLASS = "cmdb.classes.put" PUT "/api/v1/cmdb/classes/{class}" Permission("cmdb:write");
    LIST_COMPARTMENTS = "cmdb.compartments.list" GET "/api/v1/cmdb/compartments" Permission("cmdb:read");
    GET_COMPARTMENT = "cmdb.compartments.get" GET "/api/v1/cmdb/compartments/{compartment}" Permission("cmdb:read");
    CREATE_COMPARTMENT = "cmdb.compartments.create" POST "/api/v1/cmdb/compartments" Permission("cmdb:write");
    IMPORT_ITEMS = "cmdb.imports.create" POST "/api/v1/cmdb/imports" Permission("cmdb:item:import");
    LIST_IMPORTS = "cmdb.imports.list" GET "/api/v1/cmdb/imports" Permission("cmdb:read");
    LIST_SYNCS = "cmdb.syncs.list" GET "/api/v1/cmdb/syncs" Permission("cmdb:read");

    LIST_ZONES = "zones.list" GET "/api/v1/zones" Permission("landingzone:definition:read");
    CREATE_ZONE = "zones.create" POST "/api/v1/zones" Permission("landingzone:definition:create");
    GET_ZONE = "zones.get" GET "/api/v1/zones/{zone}" Permission("landingzone:definition:read");
    UPDATE_ZONE = "zones.update" PUT "/api/v1/zones/{zone}" Permission("landingzone:definition:update");
    DELETE_ZONE = "zones.delete" DELETE "/api/v1/zones/{zone}" Permission("landingzone:definition:delete");
    PUBLISH_ZONE = "zones.publish" POST "/api/v1/zones/{zone}/publish" Permission("landingzone:bootstrap:manage");
    RETIRE_ZONE = "zones.retire" POST "/api/v1/zones/{zone}/retire" Permission("landingzone:bootstrap:manage");
    PUT_ENVIRONMENT_TEMPLATE = "zones.templates.put" PUT "/api/v1/zones/{zone}/templates/{template}" Permission("landingzone:definition:update");
    DELETE_ENVIRONMENT_TEMPLATE = "zones.templates.delete" DELETE "/api/v1/zones/{zone}/templates/{template}" Permission("landingzone:definition:update");
    LIST_ZONE_ENVIRONMENTS = "zones.environments.list" GET "/api/v1/environments" Permission("environment:definition:read");
    GET_ZONE_ENVIRONMENT = "zones.environments.get" GET "/api/v1/zones/{zone}/environments/{environment}" Permission("environment:definition:read");
    CREATE_ZONE_ENVIRONMENT = "zones.environments.create" POST "/api/v1/zones/{zone}/environments/{environment}" Permission("environment:definition:create");
    DELETE_ZONE_ENVIRONMENT = "zones.environments.delete" DELETE "/api/v1/zones/{zone}/environments/{environment}" Permission("environment:definition:delete");

    LIST_AUDIT = "audit.list" GET "/api/v1/tenants/{tenant}/audit" Permission("audit:log:read");
    EXPORT_AUDIT = "audit.export" GET "/api/v1/tenants/{tenant}/audit/export" Permission("audit:log:export");
    VERIFY_AUDIT = "audit.verify" GET "/api/v1/tenants/{tenant}/audit/verify" Permission("audit:log:verify");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::permission;

    #[test]
    fn operations_are_unique_by_name_and_by_route() {
        let names: BTreeSet<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
        let routes: BTreeSet<_> = OPERATIONS
            .iter()
            .map(|operation| (operation.method, operation.path))
            .collect();
        assert_eq!(
            (names.len(), routes.len()),
            (OPERATIONS.len(), OPERATIONS.len())
        );
    }

    #[test]
    fn every_need_is_a_permission_that_exists() {
        for operation in OPERATIONS {
            if let Permission(key) = operation.need {
                assert!(permission::find(key).is_some(), "{}", operation.id);
                let named = operation.path.contains("{tenant}");
                assert!(named != operation.chooses_tenant(), "{}", operation.id);
            }
        }
    }

    #[test]
    fn only_signing_in_and_setting_up_need_nothing() {
        for operation in OPERATIONS
            .iter()
            .filter(|operation| operation.need == Nothing)
        {
            let open = operation.id.starts_with("setup.")
                || operation.id == "api.describe"
                || ["auth.login", "auth.refresh", "auth.refresh_token"].contains(&operation.id);
            assert!(open, "{}", operation.id);
        }
    }
}
