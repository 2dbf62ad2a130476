//! Names cannot lead a query astray.

use nimbus_control_store::{NewTenant, StoreError};
use nimbus_control_testing::TestDatabase;

use crate::support::{administrator, connect_as, execute, tenant, texts};

crate::for_both_isolations!(
    strange_slugs_are_refused_and_strange_names_are_kept,
    strange_names
);
async fn strange_names(database: TestDatabase) {
    let create = async |slug: &str, name: &str| {
        let new = NewTenant::new(database.root, slug, name);
        database
            .store
            .registry_tx(database.root, async |tx| tx.tenant_create(&new).await)
            .await
    };
    let long = "x".repeat(64);
    for slug in [
        "public",
        "pg_x",
        "pg-toast",
        "\"; drop",
        "'; drop table x; --",
        "Acme",
        "ünïcode",
        "",
        &long,
    ] {
        assert!(
            matches!(create(slug, "Name").await, Err(StoreError::Invalid { .. })),
            "{slug}"
        );
    }
    let name = "\"; DROP SCHEMA nimbus_core CASCADE; -- ünïcode";
    let created = create("acme", name).await.unwrap();
    assert_eq!(created.name, name);
    assert!(matches!(
        create("acme", "twin").await,
        Err(StoreError::Exists(_))
    ));
    let mut administrator = administrator(&database.config).await;
    let schemas = texts(&mut administrator, "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'nimbus\\_tenant%' OR nspname = 'nimbus_shared' ORDER BY 1").await;
    assert!(schemas.contains(&created.schema), "{schemas:?}");
}

// A table of the same name elsewhere is never mistaken for the tenant's.
crate::for_both_isolations!(a_twin_in_another_schema_is_not_read, twins_are_not_read);
async fn twins_are_not_read(database: TestDatabase) {
    let a = tenant(&database, "alpha").await;
    let mut administrator = administrator(&database.config).await;
    execute(
        &mut administrator,
        "CREATE TABLE public.compartments (LIKE nimbus_core.cloud_accounts); GRANT ALL ON public.compartments TO PUBLIC;
         CREATE TABLE public.tenants (x int); GRANT ALL ON public.tenants TO PUBLIC;",
    )
    .await
    .unwrap();
    database
        .store
        .tenant_tx(a, async |tx| tx.compartment_create("mine", None).await)
        .await
        .unwrap();
    let seen = database
        .store
        .tenant_tx(a, async |tx| tx.compartment_list().await)
        .await
        .unwrap();
    assert_eq!(seen.len(), 1);
    // The owner may make temporary tables, and they come last as well.
    let mut owner = connect_as(&database.config, &database.config.roles.owner).await;
    execute(&mut owner, "CREATE TEMP TABLE compartments (x int); BEGIN")
        .await
        .unwrap();
    execute(
        &mut owner,
        format!("SELECT nimbus_core.enter_tenant('{a}')"),
    )
    .await
    .unwrap();
    let found = texts(&mut owner, "SELECT name FROM compartments").await;
    assert_eq!(found, ["mine"]);
}
