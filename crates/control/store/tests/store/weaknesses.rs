//! A database that would let one tenant see another's rows is refused, with the reason.

use nimbus_control_store::{Isolation, Store, StoreError, Weakness};
use nimbus_control_testing::{SPARE_ROLE, TestDatabase};
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{administrator, execute, tenant};

async fn weaknesses_after(database: &TestDatabase, change: &str) -> Vec<Weakness> {
    let mut administrator = administrator(&database.config).await;
    execute(&mut administrator, change).await.unwrap();
    match Store::open(database.config.clone()).await {
        Err(StoreError::Weak(found)) => found,
        Err(error) => panic!("{change}: {error:?}"),
        Ok(_) => Vec::new(),
    }
}

#[tokio::test]
async fn every_hole_in_a_table_is_found() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let app = "nimbus_app";
    let cases = [
        "ALTER TABLE nimbus_core.cloud_accounts DISABLE ROW LEVEL SECURITY".to_owned(),
        "ALTER TABLE nimbus_tenant_002.compartments NO FORCE ROW LEVEL SECURITY".to_owned(),
        "DROP POLICY tenant_isolation ON nimbus_core.cloud_accounts".to_owned(),
        "ALTER POLICY tenant_isolation ON nimbus_core.cloud_accounts WITH CHECK (true)".to_owned(),
        "CREATE POLICY helpful ON nimbus_core.cloud_accounts USING (true)".to_owned(),
        "CREATE POLICY all_of_them ON nimbus_core.tenants USING (true)".to_owned(),
        "CREATE TABLE nimbus_core.forgotten (tenant_id uuid)".to_owned(),
        "CREATE UNIQUE INDEX telling ON nimbus_core.cloud_accounts (name)".to_owned(),
        "CREATE UNIQUE INDEX lone ON nimbus_core.cloud_accounts (id);
         CREATE TABLE nimbus_core.child (tenant_id uuid, account uuid REFERENCES nimbus_core.cloud_accounts (id));
         SELECT nimbus_core.protect_tenant_table('nimbus_core.child')"
            .to_owned(),
        "CREATE VIEW nimbus_core.everything AS SELECT * FROM nimbus_core.cloud_accounts".to_owned(),
        "CREATE MATERIALIZED VIEW nimbus_core.everything AS SELECT * FROM nimbus_core.cloud_accounts".to_owned(),
        "CREATE FUNCTION nimbus_core.open() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'".to_owned(),
        format!("ALTER TABLE nimbus_core.cloud_accounts OWNER TO {app}"),
        format!("GRANT CREATE ON SCHEMA nimbus_core TO {app}"),
        format!("ALTER SCHEMA nimbus_tenant_002 OWNER TO {app}"),
    ];
    for change in cases {
        let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
        tenant(&database, "alpha").await;
        let found = weaknesses_after(&database, &change).await;
        assert!(!found.is_empty(), "not found: {change}");
        let told = nimbus_core::Error::from(StoreError::Weak(found));
        assert!(
            told.help().is_some_and(|help| help.contains("nimbus_")),
            "{:?}",
            told.help()
        );
    }
}

#[tokio::test]
async fn a_role_with_too_many_rights_is_found() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let mut database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let mut administrator = administrator(&database.config).await;
    let database_name = database.config.address.database.clone();
    execute(
        &mut administrator,
        format!(
            "CREATE ROLE {SPARE_ROLE} LOGIN; GRANT CONNECT ON DATABASE {database_name} TO {SPARE_ROLE};
             GRANT USAGE ON SCHEMA nimbus_core TO {SPARE_ROLE}"
        ),
    )
    .await
    .unwrap();
    database.config.roles.app = SPARE_ROLE.to_owned();
    assert_eq!(weaknesses_after(&database, "SELECT 1").await, []);
    let changes = [
        ("ALTER ROLE spare SUPERUSER", "ALTER ROLE spare NOSUPERUSER"),
        ("ALTER ROLE spare BYPASSRLS", "ALTER ROLE spare NOBYPASSRLS"),
        (
            "GRANT nimbus_owner TO spare",
            "REVOKE nimbus_owner FROM spare",
        ),
        (
            "CREATE ROLE strong BYPASSRLS; GRANT strong TO spare",
            "DROP ROLE strong",
        ),
    ];
    for (weaken, mend) in changes {
        let found = weaknesses_after(&database, weaken).await;
        assert!(!found.is_empty(), "not found: {weaken}");
        execute(&mut administrator, mend).await.unwrap();
    }
}

#[tokio::test]
async fn what_the_migrations_make_is_sound() {
    let binaries = tool_or_skip!(Tool::Postgres);
    for isolation in [Isolation::SchemaWithRls, Isolation::Shared] {
        let database = TestDatabase::new(&binaries, isolation).await;
        tenant(&database, "alpha").await;
        let found = database.store.weaknesses().await.unwrap();
        assert!(
            found.iter().all(|weakness| !weakness.is_fatal()),
            "{found:?}"
        );
    }
}
