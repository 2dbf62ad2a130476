//! Bringing the core schema and every tenant's schema up to date.
//!
//! Every migration runs in a transaction of its own together with its line in the ledger, so a process
//! that dies leaves whole migrations behind and the next run goes on from there. Tenant schemas are
//! independent: they are migrated side by side, and two processes share the work, because each schema
//! is locked while one of them is at it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use sqlx::{Connection as _, PgConnection, Row as _};
use tracing::info;

use crate::bootstrap::{SETUP_LOCK, lock, quoted};
use crate::config::Isolation;
use crate::migrations::{GLOBAL, Migration, TENANT};
use crate::store::run_script;
use crate::{Store, StoreError};

pub(crate) const CORE: &str = "nimbus_core";
pub(crate) const SHARED: &str = "nimbus_shared";

/// Schemas that are migrated side by side. More would only wait for the same disk.
const SIDE_BY_SIDE: usize = 4;

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct MigrationReport {
    /// Names of the migrations of the core that were applied.
    pub core: Vec<&'static str>,
    /// Schemas that got at least one migration.
    pub schemas: usize,
    /// Migrations that were applied to them.
    pub tenant_migrations: usize,
    pub took: Duration,
}

/// The newest migration of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaVersion {
    pub schema: String,
    pub version: i32,
}

pub(crate) struct Migrator<'a> {
    store: &'a Store,
}

impl<'a> Migrator<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self { store }
    }

    pub(crate) async fn run(&self) -> Result<MigrationReport, StoreError> {
        let started = Instant::now();
        let mut connection = self.store.owner_connection().await?;
        let core = self.core(&mut connection).await?;
        self.record_installation(&mut connection).await?;
        let behind = self.schemas_behind(&mut connection).await?;
        connection.close().await?;
        let applied = self.tenants(behind).await?;
        let report = MigrationReport {
            core,
            schemas: applied.iter().filter(|&&count| count > 0).count(),
            tenant_migrations: applied.iter().sum(),
            took: started.elapsed(),
        };
        if !report.core.is_empty() || report.schemas > 0 {
            info!(core = ?report.core, schemas = report.schemas, "the database was migrated");
        }
        Ok(report)
    }

    async fn core(&self, connection: &mut PgConnection) -> Result<Vec<&'static str>, StoreError> {
        let mut tx = connection.begin().await?;
        lock(&mut tx, SETUP_LOCK).await?;
        run_script(&mut tx, self.ledger()).await?;
        tx.commit().await?;
        let mut applied = Vec::new();
        for migration in GLOBAL.iter() {
            let mut tx = connection.begin().await?;
            lock(&mut tx, SETUP_LOCK).await?;
            if apply(&mut tx, &self.store.config.roles, CORE, migration).await? {
                applied.push(migration.name);
            }
            tx.commit().await?;
        }
        let known = sqlx::query("SELECT version, name FROM nimbus_core.migrations")
            .fetch_all(&mut *connection)
            .await?;
        for row in known {
            if !GLOBAL
                .iter()
                .any(|migration| migration.version == row.get::<i32, _>(0))
            {
                return Err(StoreError::DatabaseNewer {
                    schema: CORE.to_owned(),
                    name: row.get(1),
                });
            }
        }
        Ok(applied)
    }

    /// The ledgers must be there before the first migration.
    fn ledger(&self) -> String {
        let app = quoted(&self.store.config.roles.app);
        let readonly = quoted(&self.store.config.roles.readonly);
        format!(
            "CREATE SCHEMA IF NOT EXISTS nimbus_core;
             GRANT USAGE ON SCHEMA nimbus_core TO {app}, {readonly};
             CREATE TABLE IF NOT EXISTS nimbus_core.migrations (
                 version integer PRIMARY KEY,
                 name text NOT NULL,
                 checksum bytea NOT NULL,
                 applied_at timestamptz NOT NULL DEFAULT now()
             );
             CREATE TABLE IF NOT EXISTS nimbus_core.tenant_migrations (
                 schema_name text NOT NULL,
                 version integer NOT NULL,
                 name text NOT NULL,
                 checksum bytea NOT NULL,
                 applied_at timestamptz NOT NULL DEFAULT now(),
                 PRIMARY KEY (schema_name, version)
             );"
        )
    }

    /// The first start decides how tenants are kept apart; later ones must agree.
    async fn record_installation(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        let wanted = self.store.config.isolation;
        sqlx::query(
            "INSERT INTO nimbus_core.installation (id, isolation) VALUES (gen_random_uuid(), $1)
             ON CONFLICT DO NOTHING",
        )
        .bind(wanted.as_str())
        .execute(&mut *connection)
        .await?;
        // A statement of its own: only it sees a row that another process wrote meanwhile.
        let recorded: String = sqlx::query_scalar("SELECT isolation FROM nimbus_core.installation")
            .fetch_one(&mut *connection)
            .await?;
        if Isolation::parse(&recorded) != Some(wanted) {
            return Err(StoreError::IsolationChanged {
                recorded,
                wanted: wanted.as_str(),
            });
        }
        Ok(())
    }

    /// Schemas whose ledger lacks a migration. A schema whose newest migration is unknown stops all.
    async fn schemas_behind(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Vec<String>, StoreError> {
        let mut versions: BTreeMap<String, usize> = BTreeMap::new();
        let mut schemas: Vec<String> =
            sqlx::query_scalar("SELECT DISTINCT schema_name FROM nimbus_core.tenants")
                .fetch_all(&mut *connection)
                .await?;
        if self.store.config.isolation == Isolation::Shared
            && !schemas.iter().any(|name| name == SHARED)
        {
            schemas.push(SHARED.to_owned());
        }
        for row in sqlx::query(
            "SELECT schema_name, version, name, checksum FROM nimbus_core.tenant_migrations",
        )
        .fetch_all(&mut *connection)
        .await?
        {
            let (schema, version, name): (String, i32, String) =
                (row.get(0), row.get(1), row.get(2));
            match TENANT.iter().find(|migration| migration.version == version) {
                None => return Err(StoreError::DatabaseNewer { schema, name }),
                Some(known) if known.checksum != row.get::<Vec<u8>, _>(3) => {
                    return Err(StoreError::MigrationChanged { schema, name });
                }
                Some(_) => *versions.entry(schema).or_default() += 1,
            }
        }
        schemas.retain(|schema| versions.get(schema).copied().unwrap_or(0) < TENANT.len());
        schemas.sort();
        Ok(schemas)
    }

    async fn tenants(&self, schemas: Vec<String>) -> Result<Vec<usize>, StoreError> {
        let workers = SIDE_BY_SIDE.min(schemas.len());
        let chunks = schemas.chunks(schemas.len().div_ceil(workers.max(1)).max(1));
        let work = chunks.map(|chunk| async move {
            let mut connection = self.store.owner_connection().await?;
            let mut applied = Vec::with_capacity(chunk.len());
            for schema in chunk {
                applied.push(self.tenant(&mut connection, schema).await?);
            }
            connection.close().await?;
            Ok::<_, StoreError>(applied)
        });
        let work: Vec<_> = work.collect();
        let applied: Vec<Vec<usize>> = stream::iter(work)
            .buffer_unordered(SIDE_BY_SIDE)
            .try_collect()
            .await?;
        Ok(applied.concat())
    }

    async fn tenant(
        &self,
        connection: &mut PgConnection,
        schema: &str,
    ) -> Result<usize, StoreError> {
        let mut count = 0;
        for migration in TENANT.iter() {
            let mut tx = connection.begin().await?;
            lock_schema(&mut tx, schema).await?;
            if migration.version == TENANT[0].version {
                create_schema(&mut tx, self.store, schema).await?;
            }
            count +=
                usize::from(apply(&mut tx, &self.store.config.roles, schema, migration).await?);
            tx.commit().await?;
        }
        Ok(count)
    }
}

impl Store {
    /// The newest migration of the core and of every tenant's schema.
    pub async fn schema_versions(&self) -> Result<Vec<SchemaVersion>, StoreError> {
        let mut connection = self.owner().acquire().await?;
        let rows = sqlx::query(
            "SELECT 'nimbus_core', max(version) FROM nimbus_core.migrations
             UNION ALL
             SELECT schema_name, max(version) FROM nimbus_core.tenant_migrations GROUP BY 1
             ORDER BY 1",
        )
        .fetch_all(&mut *connection)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| SchemaVersion {
                schema: row.get(0),
                version: row.get(1),
            })
            .collect())
    }
}

/// A new tenant's schema with everything in it, in the transaction that creates the tenant.
pub(crate) async fn provision(
    connection: &mut PgConnection,
    store: &Store,
    schema: &str,
) -> Result<(), StoreError> {
    lock_schema(connection, schema).await?;
    create_schema(connection, store, schema).await?;
    for migration in TENANT.iter() {
        apply(connection, &store.config.roles, schema, migration).await?;
    }
    Ok(())
}

async fn lock_schema(connection: &mut PgConnection, schema: &str) -> Result<(), StoreError> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 7101))")
        .bind(schema)
        .execute(connection)
        .await?;
    Ok(())
}

async fn create_schema(
    connection: &mut PgConnection,
    store: &Store,
    schema: &str,
) -> Result<(), StoreError> {
    let roles = &store.config.roles;
    let create = format!(
        "CREATE SCHEMA IF NOT EXISTS {schema}; GRANT USAGE ON SCHEMA {schema} TO {}, {}",
        quoted(&roles.app),
        quoted(&roles.readonly),
        schema = quoted(schema),
    );
    Ok(run_script(connection, create).await?)
}

/// Applies one migration unless the ledger has it. The caller's transaction makes both one.
async fn apply(
    connection: &mut PgConnection,
    roles: &crate::Roles,
    schema: &str,
    migration: &Migration,
) -> Result<bool, StoreError> {
    let found: Option<Vec<u8>> = if schema == CORE {
        sqlx::query_scalar("SELECT checksum FROM nimbus_core.migrations WHERE version = $1")
            .bind(migration.version)
            .fetch_optional(&mut *connection)
            .await?
    } else {
        sqlx::query_scalar(
            "SELECT checksum FROM nimbus_core.tenant_migrations WHERE version = $1 AND schema_name = $2",
        )
        .bind(migration.version)
        .bind(schema)
        .fetch_optional(&mut *connection)
        .await?
    };
    match found {
        Some(checksum) if checksum == migration.checksum => return Ok(false),
        Some(_) => {
            return Err(StoreError::MigrationChanged {
                schema: schema.to_owned(),
                name: migration.name.to_owned(),
            });
        }
        None => {}
    }
    let before: String = sqlx::query_scalar("SELECT current_setting('search_path')")
        .fetch_one(&mut *connection)
        .await?;
    set_search_path(connection, &format!("{}, pg_temp", quoted(schema))).await?;
    run_script(connection, migration.sql(roles))
        .await
        .map_err(|source| StoreError::Migration {
            schema: schema.to_owned(),
            name: migration.name.to_owned(),
            source,
        })?;
    set_search_path(connection, &before).await?;
    let record = if schema == CORE {
        sqlx::query(
            "INSERT INTO nimbus_core.migrations (version, name, checksum) VALUES ($1, $2, $3)",
        )
    } else {
        sqlx::query(
            "INSERT INTO nimbus_core.tenant_migrations (version, name, checksum, schema_name)
             VALUES ($1, $2, $3, $4)",
        )
    };
    let record = record
        .bind(migration.version)
        .bind(migration.name)
        .bind(&migration.checksum);
    let record = if schema == CORE {
        record
    } else {
        record.bind(schema)
    };
    record.execute(connection).await?;
    Ok(true)
}

async fn set_search_path(connection: &mut PgConnection, path: &str) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT set_config('search_path', $1, true)")
        .bind(path)
        .execute(connection)
        .await?;
    Ok(())
}
