//! What the tests share.

use nimbus_control_store::{DatabaseAddress, Host, NewTenant, Store, StoreConfig, StoreError};
use nimbus_control_testing::TestDatabase;
use nimbus_core::TenantId;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// A connection as any role, behind the store's back.
pub(crate) async fn connect_as(config: &StoreConfig, role: &str) -> PgConnection {
    let DatabaseAddress {
        host,
        port,
        database,
        ..
    } = &config.address;
    let Host::Socket(folder) = host else {
        panic!("test clusters have a socket");
    };
    let options = PgConnectOptions::new_without_pgpass()
        .socket(folder)
        .port(*port)
        .database(database)
        .username(role);
    PgConnection::connect_with(&options).await.unwrap()
}

pub(crate) async fn administrator(config: &StoreConfig) -> PgConnection {
    connect_as(config, &config.administrator.user).await
}

pub(crate) async fn execute(
    connection: &mut PgConnection,
    sql: impl Into<String>,
) -> Result<u64, sqlx::Error> {
    Ok(sqlx::raw_sql(AssertSqlSafe(sql.into()))
        .execute(connection)
        .await?
        .rows_affected())
}

pub(crate) async fn texts(connection: &mut PgConnection, sql: impl Into<String>) -> Vec<String> {
    sqlx::query_scalar(AssertSqlSafe(sql.into()))
        .fetch_all(connection)
        .await
        .unwrap()
}

pub(crate) async fn number(connection: &mut PgConnection, sql: impl Into<String>) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.into()))
        .fetch_one(connection)
        .await
        .unwrap()
}

/// A child of the operator.
pub(crate) async fn tenant(database: &TestDatabase, slug: &str) -> TenantId {
    tenant_below(&database.store, database.root, database.root, slug).await
}

pub(crate) async fn tenant_below(
    store: &Store,
    acting: TenantId,
    parent: TenantId,
    slug: &str,
) -> TenantId {
    let new = NewTenant::new(parent, slug, slug.to_uppercase());
    let created: Result<_, StoreError> = store
        .registry_tx(acting, async |tx| tx.tenant_create(&new).await)
        .await;
    created.unwrap().id
}

/// Runs a test for both ways of keeping tenants apart.
#[macro_export]
macro_rules! for_both_isolations {
    ($name:ident, $body:ident) => {
        mod $name {
            use nimbus_control_store::Isolation;
            use nimbus_control_testing::TestDatabase;
            use nimbus_test_tools::{Tool, tool_or_skip};

            #[tokio::test]
            async fn with_a_schema_per_tenant() {
                let binaries = tool_or_skip!(Tool::Postgres);
                super::$body(TestDatabase::new(&binaries, Isolation::SchemaWithRls).await).await;
            }

            #[tokio::test]
            async fn with_one_shared_schema() {
                let binaries = tool_or_skip!(Tool::Postgres);
                super::$body(TestDatabase::new(&binaries, Isolation::Shared).await).await;
            }
        }
    };
}
