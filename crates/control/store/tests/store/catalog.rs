//! What the database has, and rows for every table of it.

use nimbus_core::TenantId;
use sqlx::PgConnection;

use crate::support::{execute, texts};

/// A table with rows of tenants.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
}

/// Every table and view, in any of our schemas, that has rows of tenants.
pub(crate) async fn tenant_tables(connection: &mut PgConnection) -> Vec<Table> {
    relations(connection, "'r', 'p', 'v', 'm'").await
}

async fn relations(connection: &mut PgConnection, kinds: &str) -> Vec<Table> {
    let names = texts(
        connection,
        format!(
            "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c
             JOIN pg_namespace n ON n.oid = c.relnamespace
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
             WHERE n.nspname LIKE 'nimbus\\_%' AND c.relkind IN ({kinds}) ORDER BY 1"
        ),
    )
    .await;
    names.into_iter().map(|name| Table { name }).collect()
}

/// Puts a row of the tenant into every table that is its own or shared, whatever the table is: checks
/// are dropped first, references and triggers are off, and required columns get a value of their type.
pub(crate) async fn fill(administrator: &mut PgConnection, tenant: TenantId) {
    drop_checks(administrator).await;
    let own = texts(
        administrator,
        format!("SELECT schema_name FROM nimbus_core.tenants WHERE id = '{tenant}'"),
    )
    .await
    .concat();
    for table in relations(administrator, "'r', 'p'").await {
        let schema = table.name.split('.').next().unwrap();
        if schema == "nimbus_core" || schema == own {
            insert(administrator, &table, tenant).await;
        }
    }
}

/// Rows that are made up by type do not know what else is asked of them.
pub(crate) async fn drop_checks(administrator: &mut PgConnection) {
    execute(
        administrator,
        "DO $$ DECLARE c record; BEGIN
             FOR c IN SELECT conrelid::regclass AS place, conname FROM pg_constraint k
                      JOIN pg_class t ON t.oid = k.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace
                      WHERE k.contype = 'c' AND n.nspname LIKE 'nimbus\\_%' AND t.relname <> 'tenants'
             LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.place, c.conname); END LOOP;
         END $$",
    )
    .await
    .unwrap();
}

async fn insert(administrator: &mut PgConnection, table: &Table, tenant: TenantId) {
    let columns = texts(
        administrator,
        format!(
            "SELECT quote_ident(attname) || '|' || format_type(atttypid, NULL) FROM pg_attribute
             WHERE attrelid = '{}'::regclass AND attnum > 0 AND NOT attisdropped AND attnotnull AND NOT atthasdef
               AND attidentity = '' AND attname <> 'tenant_id'",
            table.name
        ),
    )
    .await;
    let mut names = vec!["tenant_id".to_owned()];
    let mut values = vec![format!("'{tenant}'")];
    for column in columns {
        let (name, kind) = column.split_once('|').unwrap();
        names.push(name.to_owned());
        values.push(sample(kind));
    }
    let insert = format!(
        "SET session_replication_role = replica; INSERT INTO {} ({}) VALUES ({}); RESET session_replication_role",
        table.name,
        names.join(", "),
        values.join(", ")
    );
    execute(administrator, insert)
        .await
        .unwrap_or_else(|error| panic!("no row for {}: {error}", table.name));
}

/// A value of the type that no other row has, where the type has that many.
fn sample(kind: &str) -> String {
    let text = "substr(md5(random()::text), 1, 12)";
    match kind {
        "uuid" => "gen_random_uuid()".to_owned(),
        "bytea" => format!("decode(md5({text}), 'hex')"),
        "bigint" | "integer" | "smallint" | "numeric" | "double precision" => {
            "(random() * 30000)::int".to_owned()
        }
        "boolean" => "true".to_owned(),
        "jsonb" | "json" => "'{}'".to_owned(),
        "inet" => "'192.0.2.1'".to_owned(),
        "interval" => "interval '1 day'".to_owned(),
        "date" => "current_date".to_owned(),
        kind if kind.starts_with("timestamp") => "now()".to_owned(),
        kind if kind.ends_with("[]") => "'{}'".to_owned(),
        _ => text.to_owned(),
    }
}
