//! Every field of the GraphQL schema, every role, the own tenant and a foreign one.

use std::collections::BTreeMap;

use async_graphql::parser::parse_schema;
use async_graphql::parser::types::{
    BaseType, FieldDefinition, Type, TypeKind, TypeSystemDefinition,
};
use nimbus_control_auth::operation::Need;
use nimbus_control_auth::role::{BUILT_IN, built_in};
use nimbus_control_graphql::{GraphqlField, field_operations, sdl};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Installation, PASSWORD, installation};

/// The schema by type and field.
pub(crate) struct KnownSchema(BTreeMap<String, Vec<FieldDefinition>>);

impl KnownSchema {
    pub(crate) fn read() -> Self {
        let mut types = BTreeMap::new();
        for definition in parse_schema(sdl()).unwrap().definitions {
            if let TypeSystemDefinition::Type(definition) = definition
                && let TypeKind::Object(object) = definition.node.kind
            {
                let fields = object.fields.into_iter().map(|field| field.node);
                types.insert(definition.node.name.node.to_string(), fields.collect());
            }
        }
        Self(types)
    }

    pub(crate) fn field(&self, of: &str, name: &str) -> &FieldDefinition {
        let found = self.0[of].iter().find(|field| field.name.node == name);
        found.unwrap_or_else(|| panic!("{of}.{name}"))
    }

    /// Everything that can be asked of a type without doing more: all values, and of things in it as well.
    pub(crate) fn selection(&self, kind: &Type, depth: usize) -> String {
        let BaseType::Named(name) = inner(kind) else {
            return String::new();
        };
        let Some(fields) = self.0.get(name.as_str()) else {
            return String::new();
        };
        let does = |field: &FieldDefinition| {
            let known = field_operations().iter();
            let mut known = known.filter(|one| one.of == name.as_str());
            known.any(|one| field.name.node == one.name)
        };
        let asked: Vec<_> = fields
            .iter()
            .filter(|field| !does(field))
            .filter_map(|field| {
                let inside = self.selection(&field.ty.node, depth + 1);
                let object = self.is_object(&field.ty.node);
                match (object, depth < 4) {
                    (true, false) => None,
                    _ => Some(format!("{}{inside}", field.name.node)),
                }
            })
            .collect();
        format!(" {{ {} }}", asked.join(" "))
    }

    fn is_object(&self, kind: &Type) -> bool {
        matches!(inner(kind), BaseType::Named(name) if self.0.contains_key(name.as_str()))
    }
}

fn inner(kind: &Type) -> &BaseType {
    match &kind.base {
        BaseType::List(kind) => inner(kind),
        named @ BaseType::Named(_) => named,
    }
}

/// An input that a field understands, on things that do not exist. A field that takes one and has no row here fails.
fn input(field: &str, tenant: &str) -> String {
    let nobody = Uuid::new_v4();
    let unique = format!("n{}", &Uuid::new_v4().simple().to_string()[..12]);
    match field {
        "login" => "{email: \"nobody@b.example\", password: \"x\"}".to_owned(),
        "createTenant" => format!("{{parentId: \"{tenant}\", slug: \"{unique}\", name: \"x\"}}"),
        "updateTenant" => "{settings: {}}".to_owned(),
        "createUser" => format!("{{email: \"{unique}@b.example\", password: \"{PASSWORD}\"}}"),
        "updateUser" => "{displayName: \"x\"}".to_owned(),
        "createGroup" | "updateGroup" => format!("{{name: \"{unique}\"}}"),
        "createApiKey" => {
            format!("{{serviceAccountId: \"{nobody}\", name: \"x\", scopes: [\"users:read\"]}}")
        }
        "createRole" => {
            format!("{{name: \"{unique}\", grants: [{{permissions: [\"users:read\"]}}]}}")
        }
        "updateRole" => {
            "{name: \"no-such-role\", grants: [{permissions: [\"users:read\"]}]}".to_owned()
        }
        "assignRole" => format!("{{role: \"viewer\", userId: \"{nobody}\"}}"),
        "putCloudAccount" => {
            "{provider: \"aws\", credentials: {AWS_ACCESS_KEY_ID: \"x\"}}".to_owned()
        }
        "createDeployment" => {
            "{organization: \"o\", project: \"p\", template: \"minimal\", domain: \"o.example\"}"
                .to_owned()
        }
        "deploy" | "destroy" | "preview" | "rollback" | "refresh" => {
            "{environment: \"dev\", rehearsal: true}".to_owned()
        }
        "deployStack" => {
            "{deployment: \"D0NONE\", environment: \"dev\", rehearsal: true}".to_owned()
        }
        "registerStack" => format!("{{name: \"{unique}\", template: \"name: {unique}\\n\"}}"),
        "updateStack" => {
            "{name: \"no-such-stack\", template: \"name: no-such-stack\\n\"}".to_owned()
        }
        "createComponent" => component_input(&unique),
        "updateComponent" => component_input("no-such-component"),
        "publishComponent" => "{changelog: \"x\"}".to_owned(),
        "upgradeComponent" | "previewComponent" | "startRollout" => "{message: \"x\"}".to_owned(),
        "previewComponentVersion" => "{version: 1}".to_owned(),
        "setGovernanceRule" => "{allowed: true}".to_owned(),
        "putSemanticType" => "{category: \"x\"}".to_owned(),
        "putSemanticMapping" => "{note: \"x\"}".to_owned(),
        "importResources" => "{format: \"jsonl\", content: \"x\"}".to_owned(),
        "relateResources" => format!(
            "{{sourceId: \"{nobody}\", targetId: \"{}\", relationship: \"uses\"}}",
            Uuid::new_v4()
        ),
        "putItemClass" => "{description: \"x\"}".to_owned(),
        "createCompartment" => format!("{{name: \"{unique}\"}}"),
        "createZone" => format!("{{name: \"{unique}\", provider: \"aws\"}}"),
        "updateZone" => "{name: \"no-such-zone\", provider: \"aws\"}".to_owned(),
        "putZoneTemplate" => "{mandatoryComponents: []}".to_owned(),
        "createZoneEnvironment" => "{rehearsal: true}".to_owned(),
        "configureResolver" => "{config: {}}".to_owned(),
        "createAddressPool" => format!("{{name: \"{unique}\", cidr: \"10.0.0.0/16\"}}"),
        "putImage" => {
            "{cloud: \"aws\", osFamily: \"x\", osVersion: \"1\", imageId: \"ami-1\"}".to_owned()
        }
        "createWebhook" | "updateWebhook" => {
            format!("{{name: \"{unique}\", url: \"https://hooks.example/x\"}}")
        }
        "setNotificationPreferences" => "{set: []}".to_owned(),
        "putDraft" => "{kind: \"deployment\", content: {}}".to_owned(),
        other => panic!("{other} takes an input and has no row in the matrix"),
    }
}

/// A component that is understood; its file has a name that a literal can have.
fn component_input(name: &str) -> String {
    format!(
        "{{name: \"{name}\", provider: \"aws\", semanticType: \"VirtualNetwork\", language: \"typescript\", \
         contract: {{}}, files: {{index: \"x\"}}}}"
    )
}

/// The value of an argument.
fn argument(field: &str, name: &str, tenant: &str) -> Option<String> {
    let of_tenant = [
        "tenant",
        "effectiveTenant",
        "updateTenant",
        "moveTenant",
        "deleteTenant",
        "setTenantQuotas",
    ];
    let named = [
        "deployment",
        "deploymentManifest",
        "deploymentStatus",
        "deploymentState",
        "deploymentOutputs",
        "environmentVersions",
        "updateDeployment",
        "deleteDeployment",
        "deploy",
        "destroy",
        "preview",
        "rollback",
        "refresh",
        "enableEnvironment",
        "disableEnvironment",
    ];
    let text = |value: &str| Some(format!("\"{value}\""));
    match name {
        "tenantId" => text(tenant),
        "parentId" if field == "moveTenant" => text(&Uuid::new_v4().to_string()),
        "parentId" => text(tenant),
        "id" if of_tenant.contains(&field) => text(tenant),
        "id" if named.contains(&field) => text("D0NONE"),
        "id" | "userId" | "groupId" | "runId" => text(&Uuid::new_v4().to_string()),
        "deploymentId" => text("D0NONE"),
        "environment" => text("dev"),
        "name" if field == "putCloud" => text("nosuchcloud"),
        "name" if field == "putSemanticType" => text("NoSuchType"),
        "name" => text("no-such-thing"),
        "component" => text("no-such-component"),
        "version" => Some("1".to_owned()),
        "zone" => text("no-such-zone"),
        "template" => text("no-such-template"),
        "cloud" => text("nosuchcloud"),
        "semanticType" => text("NoSuchType"),
        "resource" => text("no:such:Resource"),
        "displayName" => text("x"),
        "unit" => text("no-such-unit"),
        "resolver" => text("no-such-resolver"),
        "pool" => text("no-such-pool"),
        "cidr" => text("10.0.0.0/24"),
        "item" => text("unit:none"),
        "digest" => text("x"),
        "filter" if matches!(field, "tenants" | "runLog") => None,
        "filter" => Some(format!("{{tenantId: \"{tenant}\"}}")),
        "query" => text("x"),
        "question" => Some(format!(
            "{{userId: \"{}\", permission: \"users:read\"}}",
            Uuid::new_v4()
        )),
        "input" => Some(input(field, tenant)),
        "quotas" => Some("{}".to_owned()),
        "manifest" => text("x: 1"),
        "content" => Some(format!(
            "\"name: n{}\\ndescription: x\\n\"",
            &Uuid::new_v4().simple().to_string()[..12]
        )),
        "refreshToken" | "currentPassword" | "newPassword" => text("x"),
        "reason" if field == "rejectRequest" => text("x"),
        "pagination" | "first" | "after" | "since" | "slug" | "rehearsal" | "revision"
        | "provider" | "reason" | "idempotencyKey" | "forgetCreates" | "types" | "resourceId"
        | "stackInstance" | "force" | "comment" | "unread" | "text" | "depth" | "items"
        | "compartmentId" | "message" => None,
        other => panic!("{field} takes {other}, which has no row in the matrix"),
    }
}

/// A document with one field at its root, asking for everything that the answer has.
pub(crate) fn document(schema: &KnownSchema, field: GraphqlField, tenant: &str) -> String {
    let found = schema.field(field.of, field.name);
    let arguments: Vec<_> = found
        .arguments
        .iter()
        .filter_map(|one| {
            let name = one.node.name.node.as_str();
            Some(format!("{name}: {}", argument(field.name, name, tenant)?))
        })
        .collect();
    let arguments = match arguments.is_empty() {
        true => String::new(),
        false => format!("({})", arguments.join(", ")),
    };
    let selection = schema.selection(&found.ty.node, 0);
    format!(
        "{} {{ {}{arguments}{selection} }}",
        field.of.to_lowercase(),
        field.name
    )
}

/// Fields at the roots that a request can carry out; what deletes the tenant itself comes last.
fn roots() -> Vec<GraphqlField> {
    let roots = field_operations().iter().copied();
    let mut roots: Vec<_> = roots
        .filter(|field| matches!(field.of, "Query" | "Mutation"))
        .collect();
    roots.sort_by_key(|field| field.name == "deleteTenant");
    roots
}

/// What the first error of an answer says, without what differs each time.
fn problem(answer: &Value) -> Value {
    let mut problem = answer["errors"][0].clone();
    for name in ["trace_id", "timestamp"] {
        problem["extensions"][name] = Value::Null;
    }
    problem
}

async fn batch(nimbus: &Installation, token: &str, documents: &[String]) -> Vec<Value> {
    let body: Vec<_> = documents.iter().map(|one| json!({"query": one})).collect();
    let answer = nimbus.post("/graphql", token, json!(body)).await;
    let answers = answer.ok();
    answers.as_array().unwrap().clone()
}

#[tokio::test]
async fn each_role_asks_what_its_permissions_say_in_its_tenant_and_sees_no_other() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let schema = KnownSchema::read();
    let foreign = nimbus.tenant(&owner, "foreign").await;
    let missing = Uuid::new_v4().to_string();
    for (role, _) in BUILT_IN {
        let slug = format!("t-{}", role.replace('_', "-"));
        let own = nimbus.tenant(&owner, &slug).await;
        nimbus
            .user(&owner, &own, "somebody@own.example", Some(role))
            .await;
        let token = nimbus.token(&slug, "somebody@own.example").await;
        let role = built_in(role).unwrap();
        let keys = role.keys();
        for field in roots() {
            let Need::Permission(key) = field.operation.need else {
                continue;
            };
            let root = nimbus.root.to_string();
            let places = [&foreign, &missing, &root, &own];
            let documents = places.map(|tenant| document(&schema, field, tenant));
            let answers = batch(&nimbus, &token, &documents).await;
            let place = format!("{} {}: {}", role.name, field.name, documents[3]);
            for hidden in &answers[..3] {
                let found = problem(hidden);
                assert_eq!(
                    found["extensions"]["code"], "NOT_FOUND",
                    "{place}\n{hidden}"
                );
                assert_eq!(
                    found["extensions"],
                    problem(&answers[1])["extensions"],
                    "{place}"
                );
                assert!(
                    hidden["data"].is_null() || hidden["data"][field.name].is_null(),
                    "{place}\n{hidden}"
                );
            }
            let code = &answers[3]["errors"][0]["extensions"]["code"];
            assert_eq!(
                code == "FORBIDDEN",
                !keys.contains(key),
                "{place}\n{}",
                answers[3]
            );
            assert_ne!(code, "INTERNAL", "{place}\n{}", answers[3]);
            let wrong = answers[3]["errors"][0]["path"].is_null() && !code.is_null();
            assert!(!wrong, "the document is not one: {place}\n{}", answers[3]);
        }
    }
}

/// Where things of a type are found.
fn way(of: &str, tenant: &str, inside: &str) -> String {
    let list = |name: &str| {
        format!("{{ {name}(filter: {{tenantId: \"{tenant}\"}}) {{ nodes {{ {inside} }} }} }}")
    };
    match of {
        "Tenant" => format!("{{ tenant(id: \"{tenant}\") {{ {inside} }} }}"),
        "Group" => list("groups"),
        "Deployment" => list("deployments"),
        "Run" => list("runs"),
        "AuditLogEntry" => list("auditLogs"),
        "ApiKey" => format!("{{ apiKeys(tenantId: \"{tenant}\") {{ nodes {{ {inside} }} }} }}"),
        "RoleAssignment" => {
            format!("{{ roleAssignments(tenantId: \"{tenant}\") {{ nodes {{ {inside} }} }} }}")
        }
        other => panic!("{other} has fields that load more and no row in the matrix"),
    }
}

#[tokio::test]
async fn what_things_name_needs_its_own_permission() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let schema = KnownSchema::read();
    let nested: Vec<_> = field_operations()
        .iter()
        .filter(|field| !matches!(field.of, "Query" | "Mutation" | "Subscription"))
        .collect();
    let acme = nimbus.tenant(&owner, "acme").await;
    let child = format!("/api/v1/tenants/{acme}/tenants");
    nimbus
        .post(&child, &owner, json!({"slug": "child", "name": "Child"}))
        .await
        .ok();
    let robot = nimbus
        .post(
            &format!("/api/v1/tenants/{acme}/users"),
            &owner,
            json!({"email": "robot", "service_account": true}),
        )
        .await
        .ok();
    nimbus
        .post(
            &format!("/api/v1/tenants/{acme}/keys"),
            &owner,
            json!({"service_account_id": robot["id"], "name": "k", "scopes": ["users:read"]}),
        )
        .await
        .ok();
    let group = nimbus
        .post(
            &format!("/api/v1/tenants/{acme}/groups"),
            &owner,
            json!({"name": "g"}),
        )
        .await
        .ok();
    nimbus
        .post(
            &format!("/api/v1/tenants/{acme}/role-assignments"),
            &owner,
            json!({"role": "viewer", "group_id": group["id"]}),
        )
        .await
        .ok();
    nimbus
        .deployments(&acme, robot["id"].as_str().unwrap(), 2)
        .await;
    let mut reached = 0;
    for (role, _) in BUILT_IN {
        let email = format!("{}@acme.example", role.replace('_', "-"));
        nimbus.user(&owner, &acme, &email, Some(role)).await;
        let token = nimbus.token("acme", &email).await;
        let role = built_in(role).unwrap();
        let keys = role.keys();
        for field in &nested {
            let found = schema.field(field.of, field.name);
            let inside = format!("{}{}", field.name, schema.selection(&found.ty.node, 1));
            let answer = nimbus
                .graphql(&token, &way(field.of, &acme, &inside), json!({}))
                .await
                .ok();
            let place = format!("{} {}.{}: {answer}", role.name, field.of, field.name);
            let errors = answer["errors"].as_array().cloned().unwrap_or_default();
            // Whoever may not see the thing does not get as far.
            if errors
                .iter()
                .any(|error| error["path"].as_array().is_some_and(|path| path.len() == 1))
            {
                continue;
            }
            reached += 1;
            let forbidden = errors
                .iter()
                .any(|error| error["extensions"]["code"] == "FORBIDDEN");
            let expected =
                matches!(field.operation.need, Need::Permission(key) if !keys.contains(key));
            assert_eq!(forbidden, expected, "{place}");
            if field.name == "parent" {
                assert!(answer["data"]["tenant"]["parent"].is_null(), "{place}");
            }
        }
    }
    assert!(reached > nested.len() * 3, "{reached}");
}

#[tokio::test]
async fn nothing_is_answered_without_a_sign_in_and_every_field_is_recorded() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let schema = KnownSchema::read();
    let acme = nimbus.tenant(&owner, "acme").await;
    for field in roots() {
        let asked = document(&schema, field, &acme);
        let open = matches!(field.name, "login" | "refreshToken");
        for token in [None, Some("garbage"), Some("nbk_garbage")] {
            let body = json!({"query": asked});
            let answer = nimbus.call("POST", "/graphql", token, Some(body)).await;
            if open && token.is_none() {
                assert_eq!(
                    answer.json()["errors"][0]["extensions"]["code"],
                    "UNAUTHENTICATED",
                    "{}",
                    answer.text
                );
            } else {
                assert_eq!(
                    answer.status.as_u16(),
                    401,
                    "{}: {}",
                    field.name,
                    answer.text
                );
            }
        }
        if !open {
            let token = nimbus.token("", "owner@operator.example").await;
            nimbus
                .post("/graphql", &token, json!({"query": asked}))
                .await
                .ok();
        }
    }
    nimbus.database.store.audit_flush_all().await;
    let recorded = nimbus
        .database
        .texts("SELECT DISTINCT action FROM nimbus_core.audit_logs")
        .await;
    let forgotten: Vec<_> = roots()
        .iter()
        .filter(|field| field.operation.need != Need::Nothing)
        .map(|field| field.operation.id)
        .filter(|id| !recorded.iter().any(|action| action == id))
        .collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}
