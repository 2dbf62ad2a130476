//! What tables there are, as the database itself says.

use std::collections::BTreeSet;

use sqlx::{PgConnection, Row as _};

use crate::StoreError;
use crate::bootstrap::quoted;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CatalogTable {
    pub(crate) schema: String,
    pub(crate) name: String,
    /// In order, without those that are computed.
    pub(crate) columns: Vec<String>,
}

impl CatalogTable {
    pub(crate) fn qualified(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }
}

/// Tables of a schema that have rows of tenants, each after those it refers to.
pub(crate) async fn tenant_tables(
    connection: &mut PgConnection,
    schema: &str,
) -> Result<Vec<CatalogTable>, StoreError> {
    Ok(tables(connection, schema)
        .await?
        .into_iter()
        .filter(|table| table.columns.iter().any(|column| column == "tenant_id"))
        .collect())
}

/// Tables of a schema, each after those it refers to.
pub(crate) async fn tables(
    connection: &mut PgConnection,
    schema: &str,
) -> Result<Vec<CatalogTable>, StoreError> {
    let rows = sqlx::query(
        "SELECT c.relname::text,
                ARRAY(SELECT a.attname::text FROM pg_attribute a
                      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
                      ORDER BY a.attnum)
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relispartition
         ORDER BY c.relname",
    )
    .bind(schema)
    .fetch_all(&mut *connection)
    .await?;
    let tables = rows.into_iter().map(|row| CatalogTable {
        schema: schema.to_owned(),
        name: row.get(0),
        columns: row.get(1),
    });
    let references: Vec<(String, String)> = sqlx::query_as(
        "SELECT DISTINCT c.relname::text, r.relname::text FROM pg_constraint k
         JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class r ON r.oid = k.confrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = $1 AND k.contype = 'f' AND r.relnamespace = c.relnamespace AND k.conrelid <> k.confrelid",
    )
    .bind(schema)
    .fetch_all(connection)
    .await?;
    Ok(ordered(tables.collect(), &references))
}

/// Puts each table after those it refers to. Tables that refer to each other keep their order.
fn ordered(mut waiting: Vec<CatalogTable>, references: &[(String, String)]) -> Vec<CatalogTable> {
    let mut done = Vec::with_capacity(waiting.len());
    let mut names: BTreeSet<String> = BTreeSet::new();
    while !waiting.is_empty() {
        let ready = |table: &CatalogTable| {
            references
                .iter()
                .filter(|(from, _)| *from == table.name)
                .all(|(_, to)| names.contains(to))
        };
        let next = waiting.iter().position(ready).unwrap_or(0);
        let table = waiting.remove(next);
        names.insert(table.name.clone());
        done.push(table);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_come_after_those_they_refer_to() {
        let table = |name: &str| CatalogTable {
            schema: "s".into(),
            name: name.into(),
            columns: Vec::new(),
        };
        let references = [("a", "c"), ("c", "b"), ("x", "y"), ("y", "x")]
            .map(|(from, to)| (from.into(), to.into()));
        let sorted = ordered(["a", "b", "c", "x", "y"].map(table).into(), &references);
        let names: Vec<_> = sorted.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "a", "x", "y"]);
    }
}
