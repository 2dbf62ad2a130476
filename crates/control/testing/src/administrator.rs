//! What a database's administrator can do behind the product's back, whom no row-level security stops.

use nimbus_control_store::{DatabaseAddress, Host, StoreConfig};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::TestDatabase;

impl TestDatabase {
    /// Runs statements on a database that is open nowhere.
    ///
    /// # Panics
    /// If one of them fails.
    pub async fn run_on(config: &StoreConfig, statements: &str) {
        let mut connection = connect(config).await;
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
            .execute(&mut connection)
            .await
            .expect("the administrator may do anything");
    }

    /// Runs statements.
    ///
    /// # Panics
    /// If one of them fails.
    pub async fn run_as_administrator(&self, statements: &str) {
        Self::run_on(&self.config, statements).await;
    }

    /// The rows of a query that has one column of text.
    ///
    /// # Panics
    /// If it fails.
    pub async fn texts(&self, query: &str) -> Vec<String> {
        texts(&mut connect(&self.config).await, query).await
    }

    /// Every row of every table, as text.
    ///
    /// # Panics
    /// If a table cannot be read.
    pub async fn dump(&self) -> String {
        let mut connection = connect(&self.config).await;
        let tables = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
                      WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1";
        let mut dump = String::new();
        for table in texts(&mut connection, tables).await {
            let rows = texts(&mut connection, &format!("SELECT t::text FROM {table} t")).await;
            dump.push_str(&format!("{table}\n{}\n", rows.join("\n")));
        }
        dump
    }
}

pub(crate) async fn connect(config: &StoreConfig) -> PgConnection {
    let DatabaseAddress {
        host,
        port,
        database,
        ..
    } = &config.address;
    let options = PgConnectOptions::new_without_pgpass()
        .port(*port)
        .database(database)
        .username(&config.administrator.user);
    let options = match host {
        Host::Socket(folder) => options.socket(folder),
        Host::Tcp(host) => options.host(host),
    };
    PgConnection::connect_with(&options)
        .await
        .expect("the administrator may connect")
}

async fn texts(connection: &mut PgConnection, query: &str) -> Vec<String> {
    sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
        .fetch_all(connection)
        .await
        .expect("the query is sound")
}
