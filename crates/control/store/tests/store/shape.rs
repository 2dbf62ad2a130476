//! Names and columns that the founding document gives, as the database has them.

use nimbus_control_store::Isolation;
use nimbus_control_testing::TestDatabase;
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{administrator, tenant, texts};

const TABLES: &[(&str, &[&str])] = &[
    (
        "providers",
        &["id", "name", "created_at", "updated_at", "deleted_at"],
    ),
    (
        "tenants",
        &[
            "id",
            "provider_id",
            "parent_id",
            "name",
            "isolation_type",
            "schema_name",
            "settings",
            "created_at",
            "deleted_at",
        ],
    ),
    (
        "users",
        &[
            "id",
            "tenant_id",
            "email",
            "password_hash",
            "mfa_enabled",
            "last_login",
            "created_at",
            "deleted_at",
        ],
    ),
    ("groups", &["id", "tenant_id", "name", "created_at"]),
    (
        "cloud_accounts",
        &[
            "id",
            "tenant_id",
            "provider_type",
            "credentials",
            "created_at",
        ],
    ),
    (
        "sessions",
        &[
            "id",
            "user_id",
            "expires_at",
            "ip_address",
            "user_agent",
            "created_at",
            "revoked_at",
        ],
    ),
    (
        "audit_logs",
        &[
            "tenant_id",
            "user_id",
            "action",
            "resource_type",
            "resource_id",
            "old_value",
            "new_value",
            "trace_id",
            "ip_address",
            "timestamp",
            "priority",
        ],
    ),
    ("semantic_providers", &["name", "display_name"]),
    (
        "semantic_resource_types",
        &["name", "aliases", "category", "description"],
    ),
    (
        "semantic_provider_resource_types",
        &["provider", "resource_type", "names", "resources"],
    ),
    (
        "components",
        &[
            "id",
            "tenant_id",
            "provider",
            "semantic_type",
            "name",
            "display_name",
            "description",
            "language",
            "code",
            "input_schema",
            "output_schema",
            "resolver_bindings",
            "version",
            "is_published",
            "is_system",
            "upgrade_workflow_id",
            "created_by",
            "created_at",
            "updated_at",
            "deleted_at",
        ],
    ),
    (
        "component_versions",
        &[
            "id",
            "component_id",
            "version",
            "code",
            "input_schema",
            "output_schema",
            "resolver_bindings",
            "changelog",
            "published_at",
            "published_by",
        ],
    ),
    (
        "component_governance",
        &[
            "id",
            "component",
            "tenant_id",
            "is_allowed",
            "parameter_constraints",
            "max_instances",
        ],
    ),
    (
        "resolvers",
        &[
            "id",
            "resolver_type",
            "display_name",
            "description",
            "input_schema",
            "output_schema",
            "handler_class",
            "is_system",
        ],
    ),
    (
        "resolver_configurations",
        &[
            "id",
            "resolver_id",
            "landing_zone_id",
            "environment",
            "config",
        ],
    ),
    (
        "landing_zones",
        &["id", "tenant_id", "provider", "system_services_topology_id"],
    ),
    (
        "environment_templates",
        &["id", "zone_id", "mandatory_components"],
    ),
    (
        "tenant_environments",
        &["id", "tenant_id", "zone_id", "status"],
    ),
];

/// Tables of every tenant's own schema.
const OWN_TABLES: &[(&str, &[&str])] = &[
    (
        "compartments",
        &[
            "id",
            "tenant_id",
            "parent_id",
            "name",
            "cloud_id",
            "provider_type",
            "created_at",
        ],
    ),
    (
        "ci_classes",
        &["id", "name", "provider_type", "attributes", "relationships"],
    ),
    (
        "configuration_items",
        &[
            "id",
            "tenant_id",
            "compartment_id",
            "ci_class_id",
            "cloud_resource_id",
            "name",
            "attributes",
            "pulumi_urn",
            "state_version",
            "created_at",
            "updated_at",
            "deleted_at",
        ],
    ),
    (
        "ci_relationships",
        &["id", "source_ci", "target_ci", "relationship", "attributes"],
    ),
    (
        "deployed_components",
        &[
            "id",
            "component",
            "component_version",
            "tenant_id",
            "environment",
            "stack_instance_id",
            "pulumi_stack_name",
            "resolved_parameters",
            "outputs",
            "status",
            "pulumi_state_url",
            "deployed_at",
            "deployed_by",
            "error_message",
            "created_at",
            "updated_at",
            "deleted_at",
        ],
    ),
];

#[tokio::test]
async fn the_tables_of_the_document_have_its_columns() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let mut administrator = administrator(&database.config).await;
    let core = TABLES.iter().map(|one| ("nimbus_core", one));
    let own = OWN_TABLES.iter().map(|one| ("nimbus_tenant_001", one));
    for (schema, (table, columns)) in core.chain(own) {
        let found = texts(
            &mut administrator,
            format!(
                "SELECT column_name::text FROM information_schema.columns
                 WHERE table_schema = '{schema}' AND table_name = '{table}'"
            ),
        )
        .await;
        for column in *columns {
            assert!(found.iter().any(|name| name == column), "{table}.{column}");
        }
    }
}

#[tokio::test]
async fn tenants_have_numbered_schemas_beside_the_one_of_the_system() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    for slug in ["alpha", "beta"] {
        tenant(&database, slug).await;
    }
    let mut administrator = administrator(&database.config).await;
    let schemas = texts(
        &mut administrator,
        "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'nimbus%' ORDER BY 1",
    )
    .await;
    // The operator's own, and one for each.
    assert_eq!(
        schemas,
        [
            "nimbus_core",
            "nimbus_tenant_001",
            "nimbus_tenant_002",
            "nimbus_tenant_003"
        ]
    );
}

#[tokio::test]
async fn rows_of_tenants_name_their_tenant_without_being_told() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    tenant(&database, "alpha").await;
    let mut administrator = administrator(&database.config).await;
    // In a tenant's schema every table has the column, and everywhere it is filled by the transaction.
    let without = texts(
        &mut administrator,
        "SELECT t.schemaname || '.' || t.tablename FROM pg_tables t
         WHERE t.schemaname LIKE 'nimbus\\_tenant\\_%' AND NOT EXISTS (
             SELECT FROM information_schema.columns c WHERE c.table_schema = t.schemaname
                AND c.table_name = t.tablename AND c.column_name = 'tenant_id')",
    )
    .await;
    assert!(without.is_empty(), "{without:?}");
    let told = texts(
        &mut administrator,
        "SELECT table_schema || '.' || table_name FROM information_schema.columns
         WHERE column_name = 'tenant_id' AND table_schema LIKE 'nimbus\\_%'
           AND table_name IN (SELECT tablename FROM pg_tables)
           AND (is_nullable = 'YES' OR column_default NOT LIKE '%current_tenant()%')",
    )
    .await;
    assert!(told.is_empty(), "{told:?}");
}
