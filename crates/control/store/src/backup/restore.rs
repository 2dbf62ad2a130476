//! Writing the rows of a backup.
//!
//! Rows go through a temporary table, because PostgreSQL copies into no table that has row-level
//! security: from there they are inserted like any other, and every check applies.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use nimbus_control_audit::{Actor, AuditRecord, Priority};
use nimbus_control_vault::KekId;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};
use uuid::Uuid;

use super::archive::{self, OpenedBackup};
use super::dump::act_as;
use super::{BackupManifest, DumpedTable, RestoreKeys, TablePlace, unusable};
use crate::bootstrap::quoted;
use crate::catalog;
use crate::migrate::{CORE, provision};
use crate::migrations::{GLOBAL, TENANT};
use crate::store::run_script;
use crate::{Store, StoreError};

/// Fills an installation. What cannot be one transaction, because schemas of many tenants are more than one
/// can hold, is one that goes on: which archive and which tenants are done is in the database itself.
pub(super) async fn everything(store: &Store, source: &Path) -> Result<BackupManifest, StoreError> {
    let opened = archive::open(source)?;
    check(&opened.manifest, store)?;
    if opened.manifest.tenant.is_some() {
        return Err(unusable("it is of one tenant, not of an installation"));
    }
    let digest = opened.digest()?;
    let mut connection = store.owner_connection().await?;
    match begun(&mut connection).await? {
        Some(archive) if archive == digest => {}
        Some(_) => return Err(StoreError::RestoreUnfinished),
        None => begin(&mut connection, &opened, &digest).await?,
    }
    let tenants: Vec<(Uuid, String)> = sqlx::query_as(
        "SELECT id, schema_name FROM nimbus_core.tenants
         WHERE id NOT IN (SELECT id FROM nimbus_core.restored_tenants) ORDER BY path",
    )
    .fetch_all(&mut connection)
    .await?;
    for (tenant, schema) in &tenants {
        let mut tx = connection.begin().await?;
        provision(&mut tx, store, schema).await?;
        rows_of(&mut tx, &opened, *tenant, schema).await?;
        sqlx::query("INSERT INTO nimbus_core.restored_tenants (id) VALUES ($1)")
            .bind(tenant)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
    }
    let done = "DELETE FROM nimbus_core.restored_tenants; DELETE FROM nimbus_core.restores";
    let mut tx = connection.begin().await?;
    run_script(&mut tx, done.to_owned()).await?;
    tx.commit().await?;
    connection.close().await?;
    Ok(opened.manifest)
}

/// The archive of a restore that is not finished.
async fn begun(connection: &mut PgConnection) -> Result<Option<String>, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT archive FROM nimbus_core.restores")
            .fetch_optional(connection)
            .await?,
    )
}

pub(super) async fn is_unfinished(store: &Store) -> Result<bool, StoreError> {
    let mut connection = store.owner_connection().await?;
    let unfinished = begun(&mut connection).await?.is_some();
    connection.close().await?;
    Ok(unfinished)
}

async fn begin(
    connection: &mut PgConnection,
    opened: &OpenedBackup,
    digest: &str,
) -> Result<(), StoreError> {
    let mut tx = connection.begin().await?;
    let taken: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM nimbus_core.tenants)")
        .fetch_one(&mut *tx)
        .await?;
    if taken {
        return Err(StoreError::RestoreTarget);
    }
    sqlx::query("INSERT INTO nimbus_core.restores (archive) VALUES ($1)")
        .bind(digest)
        .execute(&mut *tx)
        .await?;
    // The first start wrote these; the backup's take their place.
    // An older backup has none of some, and leaves them as they are.
    for seeded in SEEDED {
        if opened
            .manifest
            .files
            .iter()
            .any(|file| file.table == seeded)
        {
            run_script(&mut tx, format!("DELETE FROM nimbus_core.{seeded}")).await?;
        }
    }
    for table in opened
        .manifest
        .files
        .iter()
        .filter(|file| file.place == TablePlace::Installation)
    {
        load(&mut tx, opened, table, CORE, ExistingRow::Fails).await?;
    }
    numbers_go_on(&mut tx).await?;
    tx.commit().await?;
    Ok(())
}

/// Gives a tenant back what a backup has, and takes nothing back that was done since to keep somebody out.
pub(super) async fn one_tenant(
    store: &Store,
    source: &Path,
    keys: &RestoreKeys<'_>,
) -> Result<BackupManifest, StoreError> {
    let opened = archive::open(source)?;
    check(&opened.manifest, store)?;
    let tenant = opened
        .manifest
        .tenant
        .ok_or_else(|| unusable("it is of an installation, not of one tenant"))?;
    let mut connection = store.owner_connection().await?;
    let mut tx = connection.begin().await?;
    let known: Option<String> =
        sqlx::query_scalar("SELECT schema_name FROM nimbus_core.tenants WHERE id = $1 FOR UPDATE")
            .bind(tenant)
            .fetch_optional(&mut *tx)
            .await?;
    let schema = match &known {
        Some(schema) => schema.clone(),
        None => tenant_again(&mut tx, store, &opened, tenant).await?,
    };
    act_as(&mut tx, &tenant.to_string()).await?;
    // Before anything is replaced: secrets that nobody can open are no backup.
    check_keys(&mut tx, &opened, tenant, keys).await?;
    if known.is_some() {
        run_script(&mut tx, REMEMBER.to_owned()).await?;
        delete_rows(&mut tx, tenant, &schema).await?;
    }
    load_tenant(&mut tx, &opened, tenant, &schema, known.is_some()).await?;
    run_script(&mut tx, END_SESSIONS.to_owned()).await?;
    if known.is_some() {
        run_script(&mut tx, KEEP_OUT.to_owned()).await?;
        keep_leases(&mut tx, tenant).await?;
    } else {
        run_script(&mut tx, END_KEYS.to_owned()).await?;
    }
    let record = AuditRecord::new(Actor::system(), "tenants.restore_backup", "tenants")
        .on(tenant)
        .after(serde_json::json!({"backup_of": opened.manifest.created_at}))
        .priority(Priority::Critical);
    crate::audit::append(
        &mut tx,
        tenant.into(),
        keys.audit,
        jiff::Timestamp::now(),
        record,
    )
    .await?;
    act_as(&mut tx, "").await?;
    tx.commit().await?;
    connection.close().await?;
    Ok(opened.manifest)
}

/// What may have been done to keep somebody out since the backup was made.
const REMEMBER: &str = "
    CREATE TEMP TABLE users_now ON COMMIT DROP AS
        SELECT id, password_hash, disabled_at, deleted_at FROM nimbus_core.users;
    CREATE TEMP TABLE keys_now ON COMMIT DROP AS
        SELECT id FROM nimbus_core.api_keys WHERE revoked_at IS NULL;
    CREATE TEMP TABLE roles_now ON COMMIT DROP AS SELECT * FROM nimbus_core.roles;
    CREATE TEMP TABLE assignments_now ON COMMIT DROP AS SELECT * FROM nimbus_core.role_assignments;
    CREATE TEMP TABLE members_now ON COMMIT DROP AS SELECT * FROM nimbus_core.group_members";

const END_SESSIONS: &str =
    "UPDATE nimbus_core.sessions SET revoked_at = now() WHERE revoked_at IS NULL";

const END_KEYS: &str =
    "UPDATE nimbus_core.api_keys SET revoked_at = now() WHERE revoked_at IS NULL";

/// A password that was changed stays changed, one that was taken away stays away, whoever was disabled stays
/// disabled, and a key that was revoked stays revoked. Who may do what is as it is now: a role that was taken away,
/// narrowed or ended by leaving a group does not come back, and whoever administers the tenant still does.
const KEEP_OUT: &str = "
    UPDATE nimbus_core.users u
        SET password_hash = CASE WHEN n.deleted_at IS NULL THEN n.password_hash END,
            disabled_at = COALESCE(n.disabled_at, u.disabled_at)
        FROM pg_temp.users_now n WHERE n.id = u.id AND u.kind = 'user';
    UPDATE nimbus_core.users u SET disabled_at = COALESCE(n.disabled_at, u.disabled_at)
        FROM pg_temp.users_now n WHERE n.id = u.id AND u.kind <> 'user';
    UPDATE nimbus_core.api_keys SET revoked_at = now()
        WHERE revoked_at IS NULL AND id NOT IN (SELECT id FROM pg_temp.keys_now);
    UPDATE nimbus_core.roles r SET grants = n.grants, description = n.description
        FROM pg_temp.roles_now n WHERE n.name = r.name;
    INSERT INTO nimbus_core.roles SELECT n.* FROM pg_temp.roles_now n
        WHERE NOT EXISTS (SELECT FROM nimbus_core.roles r WHERE r.name = n.name OR r.id = n.id);
    DELETE FROM nimbus_core.group_members m WHERE NOT EXISTS (
        SELECT FROM pg_temp.members_now n WHERE n.group_id = m.group_id AND n.user_id = m.user_id);
    INSERT INTO nimbus_core.group_members SELECT n.* FROM pg_temp.members_now n
        WHERE EXISTS (SELECT FROM nimbus_core.users u WHERE u.id = n.user_id AND u.deleted_at IS NULL)
          AND EXISTS (SELECT FROM nimbus_core.groups g WHERE g.id = n.group_id)
        ON CONFLICT DO NOTHING;
    DELETE FROM nimbus_core.role_assignments WHERE id NOT IN (SELECT id FROM pg_temp.assignments_now);
    INSERT INTO nimbus_core.role_assignments SELECT n.* FROM pg_temp.assignments_now n
        WHERE (EXISTS (SELECT FROM nimbus_core.users u WHERE u.id = n.user_id AND u.deleted_at IS NULL)
               OR EXISTS (SELECT FROM nimbus_core.groups g WHERE g.id = n.group_id))
        ON CONFLICT DO NOTHING";

/// Runs that go back count again from where they were, and their numbers would mean others than a lease has. What a run
/// held may be in use, so it stays with its unit until that is destroyed.
async fn keep_leases(connection: &mut PgConnection, tenant: Uuid) -> Result<(), StoreError> {
    act_as(connection, "").await?;
    let path: Vec<Uuid> = sqlx::query_scalar("SELECT path FROM nimbus_core.tenants WHERE id = $1")
        .bind(tenant)
        .fetch_one(&mut *connection)
        .await?;
    for owner in path {
        act_as(connection, &owner.to_string()).await?;
        sqlx::query(
            "UPDATE nimbus_core.resolver_leases
             SET status = 'committed', expires_at = NULL, epoch = 0, earlier_run = NULL, used_run = NULL,
                 from_run = NULL, until_run = NULL
             WHERE held_by = $1 AND (status = 'committed' OR status = 'leased' AND holder IS NOT NULL)",
        )
        .bind(tenant)
        .execute(&mut *connection)
        .await?;
    }
    act_as(connection, &tenant.to_string()).await
}

/// The row of a tenant that is gone, with its schema.
async fn tenant_again(
    connection: &mut PgConnection,
    store: &Store,
    opened: &OpenedBackup,
    tenant: Uuid,
) -> Result<String, StoreError> {
    for table in opened
        .manifest
        .files
        .iter()
        .filter(|file| file.table == "tenants")
    {
        load(connection, opened, table, CORE, ExistingRow::Fails).await?;
    }
    let schema: String =
        sqlx::query_scalar("SELECT schema_name FROM nimbus_core.tenants WHERE id = $1")
            .bind(tenant)
            .fetch_one(&mut *connection)
            .await?;
    provision(connection, store, &schema).await?;
    Ok(schema)
}

async fn check_keys(
    connection: &mut PgConnection,
    opened: &OpenedBackup,
    tenant: Uuid,
    keys: &RestoreKeys<'_>,
) -> Result<(), StoreError> {
    let of_tenant = TablePlace::Core { tenant };
    let Some(table) = opened
        .manifest
        .files
        .iter()
        .find(|file| file.table == "data_keys" && file.place == of_tenant && file.rows > 0)
    else {
        return Ok(());
    };
    copy_in(connection, opened, table, CORE).await?;
    let named: Vec<String> = sqlx::query_scalar("SELECT DISTINCT kek_id FROM pg_temp.restoring")
        .fetch_all(&mut *connection)
        .await?;
    run_script(connection, "DROP TABLE pg_temp.restoring".to_owned()).await?;
    for name in named {
        let id = KekId::parse(&name).map_err(unusable)?;
        keys.vault.check_complete([&id]).map_err(|error| {
            unusable(format!(
                "{error}; copy keys/ from where the backup was made, as a vault.old* file if there is a newer one"
            ))
        })?;
    }
    Ok(())
}

/// The trail of a tenant that is here goes on: what happened since the backup happened.
async fn load_tenant(
    connection: &mut PgConnection,
    opened: &OpenedBackup,
    tenant: Uuid,
    schema: &str,
    known: bool,
) -> Result<(), StoreError> {
    for table in &opened.manifest.files {
        let place = match table.place {
            TablePlace::Core { tenant: of } if of == tenant => CORE,
            TablePlace::Own { tenant: of } if of == tenant => schema,
            _ => continue,
        };
        if place == CORE && known && KEPT.contains(&table.table.as_str()) {
            if table.table == "data_keys" {
                load(connection, opened, table, place, ExistingRow::Stays).await?;
            }
            continue;
        }
        load(connection, opened, table, place, ExistingRow::Fails).await?;
    }
    Ok(())
}

/// Tables of the core whose rows of a tenant outlive a restore: the trail, the keys of what is sealed, and what pools
/// have given to whom. An address that was given since the backup is in use, whatever the backup knew.
const KEPT: [&str; 8] = [
    "address_pools",
    "audit_logs",
    "audit_chains",
    "audit_checkpoints",
    "data_keys",
    "lease_free",
    "lease_spaces",
    "resolver_leases",
];

/// Tables of the installation that are not empty after the migrations, those first that refer to others.
const SEEDED: [&str; 4] = [
    "installation",
    "semantic_provider_resource_types",
    "semantic_resource_types",
    "semantic_providers",
];

/// Tables that older backups have and this version does not.
const GONE: [&str; 1] = ["quota_usage"];

/// A backup of a newer version may have rows that have no place here.
fn check(manifest: &BackupManifest, store: &Store) -> Result<(), StoreError> {
    let newest = |migrations: &[crate::migrations::Migration]| {
        migrations.last().map_or(0, |last| last.version)
    };
    if manifest.core_version > newest(&GLOBAL) || manifest.tenant_version > newest(&TENANT) {
        return Err(unusable("it was made by a newer version of Nimbus"));
    }
    if manifest.isolation != store.isolation().as_str() {
        return Err(StoreError::IsolationChanged {
            recorded: manifest.isolation.clone(),
            wanted: store.isolation().as_str(),
        });
    }
    Ok(())
}

async fn rows_of(
    connection: &mut PgConnection,
    opened: &OpenedBackup,
    tenant: Uuid,
    schema: &str,
) -> Result<(), StoreError> {
    act_as(connection, &tenant.to_string()).await?;
    for table in &opened.manifest.files {
        match table.place {
            TablePlace::Core { tenant: of } if of == tenant => {
                load(connection, opened, table, CORE, ExistingRow::Fails).await?;
            }
            TablePlace::Own { tenant: of } if of == tenant => {
                load(connection, opened, table, schema, ExistingRow::Fails).await?;
            }
            _ => {}
        }
    }
    act_as(connection, "").await
}

async fn delete_rows(
    connection: &mut PgConnection,
    tenant: Uuid,
    schema: &str,
) -> Result<(), StoreError> {
    let mut tables = catalog::tenant_tables(connection, CORE).await?;
    tables.retain(|table| !KEPT.contains(&table.name.as_str()));
    tables.extend(catalog::tenant_tables(connection, schema).await?);
    for table in tables.iter().rev() {
        let delete = format!("DELETE FROM {} WHERE tenant_id = $1", table.qualified());
        sqlx::query(sqlx::AssertSqlSafe(delete))
            .bind(tenant)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// What becomes of a row that is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExistingRow {
    Stays,
    Fails,
}

/// Puts a file's rows into a temporary table `restoring`.
async fn copy_in(
    connection: &mut PgConnection,
    opened: &OpenedBackup,
    table: &DumpedTable,
    schema: &str,
) -> Result<(), StoreError> {
    let target = format!("{}.{}", quoted(schema), quoted(&table.table));
    let columns: Vec<_> = table.columns.iter().map(|column| quoted(column)).collect();
    let prepare = format!(
        "CREATE TEMP TABLE restoring ON COMMIT DROP AS SELECT {} FROM {target} WITH NO DATA",
        columns.join(", ")
    );
    run_script(connection, prepare).await?;
    let mut file = File::open(opened.file(&table.file)).map_err(unusable)?;
    let mut copy = connection
        .copy_in_raw("COPY pg_temp.restoring FROM STDIN")
        .await?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut buffer).map_err(unusable)?;
        if read == 0 {
            break;
        }
        copy.send(&buffer[..read]).await?;
    }
    copy.finish().await?;
    Ok(())
}

async fn load(
    connection: &mut PgConnection,
    opened: &OpenedBackup,
    table: &DumpedTable,
    schema: &str,
    taken: ExistingRow,
) -> Result<(), StoreError> {
    if table.rows == 0 || GONE.contains(&table.table.as_str()) {
        return Ok(());
    }
    copy_in(connection, opened, table, schema).await?;
    let target = format!("{}.{}", quoted(schema), quoted(&table.table));
    let columns: Vec<_> = table.columns.iter().map(|column| quoted(column)).collect();
    let columns = columns.join(", ");
    let conflict = match taken {
        ExistingRow::Stays => " ON CONFLICT DO NOTHING",
        ExistingRow::Fails => "",
    };
    let insert = format!(
        "INSERT INTO {target} ({columns}) SELECT {columns} FROM pg_temp.restoring{conflict}"
    );
    let inserted = sqlx::query(sqlx::AssertSqlSafe(insert))
        .execute(&mut *connection)
        .await?;
    if taken == ExistingRow::Fails && inserted.rows_affected() != table.rows {
        return Err(unusable(format!(
            "{} has another number of rows than it says",
            table.table
        )));
    }
    run_script(connection, "DROP TABLE pg_temp.restoring".to_owned()).await?;
    Ok(())
}

/// Numbers that were given out are not given out again.
async fn numbers_go_on(connection: &mut PgConnection) -> Result<(), StoreError> {
    let row = sqlx::query(
        "SELECT COALESCE(max(substring(schema_name FROM 'nimbus_tenant_([0-9]+)')::bigint), 0) FROM nimbus_core.tenants",
    )
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query("SELECT setval('nimbus_core.tenant_numbers', greatest($1, 1), $1 > 0)")
        .bind(row.get::<i64, _>(0))
        .execute(connection)
        .await?;
    Ok(())
}
