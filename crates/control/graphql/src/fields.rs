//! Which operation each field is. An operation says what its caller needs and how the audit trail names it; a field
//! without one cannot be served.

use nimbus_control_auth::operation::{self as op, Operation};

/// A field that does something: one of the roots, or one that loads more.
#[derive(Clone, Copy, Debug)]
pub struct GraphqlField {
    /// The type that it is of.
    pub of: &'static str,
    pub name: &'static str,
    pub operation: Operation,
}

macro_rules! fields {
    ($($of:ident { $($name:ident $operation:ident;)* })*) => {
        const FIELDS: &[GraphqlField] = &[$($(GraphqlField {
            of: stringify!($of),
            name: stringify!($name),
            operation: op::$operation,
        },)*)*];
    };
}

fields! {
    Query {
        me ME;
        viewer ME;
        permissions LIST_PERMISSIONS;
        mySessions OWN_SESSIONS;
        notifications LIST_NOTIFICATIONS;
        notificationPreferences GET_PREFERENCES;
        webhooks LIST_WEBHOOKS;
        deliveries LIST_DELIVERIES;
        delivery GET_DELIVERY;
        tenants LIST_TENANTS;
        tenant GET_TENANT;
        effectiveTenant TENANT_EFFECTIVE;
        deletedTenants LIST_DELETED_TENANTS;
        users LIST_USERS;
        user GET_USER;
        userSessions LIST_SESSIONS;
        groups LIST_GROUPS;
        groupMembers LIST_MEMBERS;
        apiKeys LIST_KEYS;
        roles LIST_ROLES;
        roleAssignments LIST_ASSIGNMENTS;
        explainPermission EXPLAIN;
        cloudAccounts LIST_CLOUD_ACCOUNTS;
        deployments LIST_DEPLOYMENTS;
        deployment GET_DEPLOYMENT;
        deploymentManifest GET_MANIFEST;
        deploymentStatus DEPLOYMENT_STATUS;
        deploymentState DEPLOYMENT_STATE;
        deploymentOutputs DEPLOYMENT_OUTPUTS;
        environmentVersions LIST_VERSIONS;
        runs LIST_RUNS;
        run GET_RUN;
        runDetail RUN_DETAIL;
        runUnit RUN_UNIT;
        runEvents RUN_EVENTS;
        runLog RUN_LOG;
        approvals LIST_APPROVALS;
        approval GET_APPROVAL;
        approvalPolicies LIST_APPROVAL_POLICIES;
        stacks LIST_STACKS;
        stack GET_STACK;
        templates LIST_TEMPLATES;
        template GET_TEMPLATE;
        components LIST_COMPONENTS;
        component GET_COMPONENT;
        componentVersions LIST_COMPONENT_VERSIONS;
        componentVersion GET_COMPONENT_VERSION;
        componentVersionChanges COMPARE_COMPONENT_VERSIONS;
        componentInstances LIST_COMPONENT_INSTANCES;
        deployedComponents LIST_INSTANCES;
        deployedComponent GET_INSTANCE;
        componentImpact COMPONENT_IMPACT;
        rollouts LIST_ROLLOUTS;
        rollout GET_ROLLOUT;
        governanceRules LIST_GOVERNANCE;
        clouds LIST_SEMANTIC_CLOUDS;
        semanticTypes LIST_SEMANTIC_TYPES;
        semanticMappings LIST_SEMANTIC_MAPPINGS;
        resourceMeaning CLASSIFY_RESOURCE;
        resources LIST_ITEMS;
        resource GET_ITEM;
        resourceHistory ITEM_HISTORY;
        resourceGraph ITEM_GRAPH;
        resourceRelationships LIST_RELATIONSHIPS;
        search SEARCH_CMDB;
        itemClasses LIST_CLASSES;
        compartment GET_COMPARTMENT;
        compartments LIST_COMPARTMENTS;
        importJobs LIST_IMPORTS;
        unitSyncs LIST_SYNCS;
        zones LIST_ZONES;
        zone GET_ZONE;
        zoneEnvironments LIST_ZONE_ENVIRONMENTS;
        zoneEnvironment GET_ZONE_ENVIRONMENT;
        resolvers LIST_RESOLVERS;
        resolverConfigurations LIST_RESOLVER_CONFIGURATIONS;
        addressPools LIST_POOLS;
        addressPool GET_POOL;
        resolverLeases LIST_LEASES;
        images LIST_IMAGES;
        planReview RUN_REVIEW;
        reviewMarks LIST_MARKS;
        drafts LIST_DRAFTS;
        system SHOW_SYSTEM;
        auditLogs LIST_AUDIT;
        auditVerification VERIFY_AUDIT;
    }
    Mutation {
        login LOGIN;
        refreshToken REFRESH_TOKEN;
        logout LOGOUT;
        changePassword CHANGE_PASSWORD;
        revokeMySession REVOKE_OWN_SESSION;
        revokeMyOtherSessions REVOKE_OTHER_SESSIONS;
        createTenant CREATE_TENANT;
        updateTenant UPDATE_TENANT;
        moveTenant MOVE_TENANT;
        deleteTenant DELETE_TENANT;
        restoreTenant RESTORE_TENANT;
        setTenantQuotas SET_QUOTAS;
        createUser CREATE_USER;
        updateUser UPDATE_USER;
        deleteUser DELETE_USER;
        revokeUserSession REVOKE_SESSION;
        revokeUserSessions REVOKE_SESSIONS;
        createGroup CREATE_GROUP;
        updateGroup UPDATE_GROUP;
        deleteGroup DELETE_GROUP;
        addGroupMember ADD_MEMBER;
        removeGroupMember REMOVE_MEMBER;
        createApiKey CREATE_KEY;
        revokeApiKey REVOKE_KEY;
        createRole CREATE_ROLE;
        updateRole UPDATE_ROLE;
        deleteRole DELETE_ROLE;
        assignRole ASSIGN_ROLE;
        unassignRole UNASSIGN_ROLE;
        putCloudAccount PUT_CLOUD_ACCOUNT;
        deleteCloudAccount DELETE_CLOUD_ACCOUNT;
        createDeployment CREATE_DEPLOYMENT;
        updateDeployment UPDATE_DEPLOYMENT;
        deleteDeployment DELETE_DEPLOYMENT;
        deploy DEPLOY;
        destroy DESTROY;
        preview PREVIEW;
        rollback ROLL_BACK;
        refresh REFRESH_DEPLOYMENT;
        enableEnvironment ENABLE_ENVIRONMENT;
        disableEnvironment DISABLE_ENVIRONMENT;
        cancelRun CANCEL_RUN;
        pauseRun PAUSE_RUN;
        resumeRun RESUME_RUN;
        approveRequest GRANT_APPROVAL;
        rejectRequest DENY_APPROVAL;
        markNotificationRead READ_NOTIFICATION;
        setNotificationPreferences SET_PREFERENCES;
        createWebhook CREATE_WEBHOOK;
        updateWebhook UPDATE_WEBHOOK;
        deleteWebhook DELETE_WEBHOOK;
        rotateWebhookSecret ROTATE_WEBHOOK;
        testWebhook TEST_WEBHOOK;
        resendWebhook RESEND_WEBHOOK;
        resendDelivery RESEND_DELIVERY;
        markNotificationsRead READ_NOTIFICATIONS;
        registerStack REGISTER_STACK;
        updateStack UPDATE_STACK;
        unregisterStack UNREGISTER_STACK;
        deployStack DEPLOY_STACK;
        createTemplate CREATE_TEMPLATE;
        deleteTemplate DELETE_TEMPLATE;
        createComponent CREATE_COMPONENT;
        updateComponent UPDATE_COMPONENT;
        deleteComponent DELETE_COMPONENT;
        publishComponent PUBLISH_COMPONENT;
        deprecateComponentVersion DEPRECATE_COMPONENT;
        deployComponent DEPLOY_INSTANCE;
        destroyComponent DESTROY_INSTANCE;
        previewComponent PREVIEW_INSTANCE;
        upgradeComponent UPGRADE_INSTANCE;
        previewComponentVersion PREVIEW_COMPONENT;
        startRollout START_ROLLOUT;
        pauseRollout PAUSE_ROLLOUT;
        resumeRollout RESUME_ROLLOUT;
        stopRollout STOP_ROLLOUT;
        setGovernanceRule PUT_GOVERNANCE;
        deleteGovernanceRule DELETE_GOVERNANCE;
        putCloud PUT_SEMANTIC_CLOUD;
        putSemanticType PUT_SEMANTIC_TYPE;
        deleteSemanticType DELETE_SEMANTIC_TYPE;
        putSemanticMapping PUT_SEMANTIC_MAPPING;
        importResources IMPORT_ITEMS;
        moveResource MOVE_ITEM;
        relateResources RELATE_ITEMS;
        unrelateResources UNRELATE_ITEMS;
        putItemClass PUT_CLASS;
        createCompartment CREATE_COMPARTMENT;
        createZone CREATE_ZONE;
        updateZone UPDATE_ZONE;
        deleteZone DELETE_ZONE;
        publishZone PUBLISH_ZONE;
        retireZone RETIRE_ZONE;
        putZoneTemplate PUT_ENVIRONMENT_TEMPLATE;
        deleteZoneTemplate DELETE_ENVIRONMENT_TEMPLATE;
        createZoneEnvironment CREATE_ZONE_ENVIRONMENT;
        deleteZoneEnvironment DELETE_ZONE_ENVIRONMENT;
        configureResolver CONFIGURE_RESOLVER;
        createAddressPool CREATE_POOL;
        deleteAddressPool DELETE_POOL;
        reserveBlock RESERVE_BLOCK;
        unreserveBlock UNRESERVE_BLOCK;
        releaseLease RELEASE_LEASE;
        putImage PUT_IMAGE;
        deleteImage DELETE_IMAGE;
        setReviewMark SET_MARK;
        removeReviewMark REMOVE_MARK;
        putDraft PUT_DRAFT;
        deleteDraft DELETE_DRAFT;
    }
    Subscription {
        runProgress RUN_PROGRESS;
        deploymentStatus DEPLOYMENT_PROGRESS;
        auditEvent LIST_AUDIT;
        resourceChanged GRAPHQL_LIVE;
        stackStateChanged GRAPHQL_LIVE;
        driftDetected GRAPHQL_LIVE;
        eventReceived GRAPHQL_LIVE;
        approvalRequired GRAPHQL_LIVE;
        notificationReceived GRAPHQL_LIVE;
    }
    Tenant {
        parent LIST_TENANTS;
        children LIST_TENANTS;
    }
    Group {
        members LIST_MEMBERS;
    }
    ApiKey {
        serviceAccount LIST_USERS;
    }
    RoleAssignment {
        user LIST_USERS;
        group LIST_GROUPS;
    }
    Deployment {
        createdBy LIST_USERS;
        runs LIST_RUNS;
        environments LIST_ENVIRONMENTS;
    }
    Run {
        requestedBy LIST_USERS;
        deployment LIST_DEPLOYMENTS;
    }
    AuditLogEntry {
        user LIST_USERS;
    }
}

/// Every field that does something, and which operation it is.
pub fn field_operations() -> &'static [GraphqlField] {
    FIELDS
}

/// The operation of a field of a query or a mutation; no name is in both.
pub(crate) fn operation_of(name: &str) -> Option<Operation> {
    let mut roots = FIELDS
        .iter()
        .filter(|field| matches!(field.of, "Query" | "Mutation"));
    let found = roots.find(|field| field.name == name);
    found.map(|field| field.operation)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use async_graphql::parser::parse_schema;
    use async_graphql::parser::types::{TypeKind, TypeSystemDefinition};
    use nimbus_control_auth::operation::OPERATIONS;

    use super::*;

    /// Operations without a field, and why: a new one has a field or a row here.
    const REST_ONLY: &[(&str, &str)] = &[
        ("api.describe", "it is the description of REST"),
        ("setup.", "before it there is nobody to ask"),
        ("auth.refresh", "`refreshToken` is the same"),
        ("graphql.execute", "it is the way here"),
        ("deployments.state.export", "a file"),
        ("audit.export", "a file"),
        ("workspace.", "files"),
        ("deployments.unit.", "made for the console"),
        ("workflows.", "the operator's, by REST and the command line"),
        ("schedules.", "the operator's, by REST and the command line"),
        ("tenant_schedules.", "nobody asks for them by GraphQL yet"),
        ("gates.", "nobody asks for them by GraphQL yet"),
        (
            "approvals.policies.put",
            "nobody changes them by GraphQL yet",
        ),
        (
            "approvals.policies.delete",
            "nobody changes them by GraphQL yet",
        ),
        (
            "approvals.delegations.",
            "nobody asks for them by GraphQL yet",
        ),
    ];

    #[test]
    fn every_operation_is_a_field_or_has_a_reason_not_to_be_one() {
        for operation in OPERATIONS {
            let is_field = FIELDS
                .iter()
                .any(|field| field.operation.id == operation.id);
            let excused = REST_ONLY.iter().any(|(id, _)| {
                *id == operation.id || (id.ends_with('.') && operation.id.starts_with(id))
            });
            assert!(is_field != excused, "{}", operation.id);
        }
    }

    /// Fields of the schema's own types that take arguments, or are of a root: each of them does something.
    fn doing() -> BTreeSet<(String, String)> {
        let document = parse_schema(crate::sdl()).unwrap();
        let mut found = BTreeSet::new();
        for definition in document.definitions {
            let TypeSystemDefinition::Type(definition) = definition else {
                continue;
            };
            let of = definition.node.name.node.to_string();
            let TypeKind::Object(object) = definition.node.kind else {
                continue;
            };
            let root = matches!(of.as_str(), "Query" | "Mutation" | "Subscription");
            for field in object.fields {
                if root || !field.node.arguments.is_empty() {
                    found.insert((of.clone(), field.node.name.node.to_string()));
                }
            }
        }
        found
    }

    #[test]
    fn every_field_that_does_something_is_an_operation() {
        let listed: BTreeSet<_> = FIELDS
            .iter()
            .map(|field| (field.of.to_owned(), field.name.to_owned()))
            .collect();
        assert_eq!(listed.len(), FIELDS.len());
        let of = |root: &'static str| FIELDS.iter().filter(move |field| field.of == root);
        for field in of("Query") {
            let name = field.name;
            assert!(of("Mutation").all(|other| other.name != name), "{name}");
        }
        let missing: Vec<_> = doing()
            .into_iter()
            .filter(|one| !listed.contains(one))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
        let sdl = crate::sdl();
        for field in FIELDS {
            let of = format!("type {} {{", field.of);
            let body = sdl
                .split(&of)
                .nth(1)
                .and_then(|rest| rest.split("\n}").next());
            let body = body.unwrap_or_else(|| panic!("{} is no type", field.of));
            let has = body.lines().any(|line| {
                let line = line.trim();
                line.starts_with(&format!("{}:", field.name))
                    || line.starts_with(&format!("{}(", field.name))
            });
            assert!(has, "{}.{} is not in the schema", field.of, field.name);
        }
    }
}
