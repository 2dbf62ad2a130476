//! P8: the ways round row-level security that are no statement on a table: views, triggers, functions,
//! channels, texts of errors, and what PostgreSQL writes into its own log.

use nimbus_control_store::StoreError;
use nimbus_control_testing::TestDatabase;
use sqlx::{AssertSqlSafe, Connection as _};
use uuid::Uuid;

use crate::catalog::{fill, tenant_tables};
use crate::support::{administrator, connect_as, execute, tenant, texts};

// Row-level security does not hold in a materialised view, and in a view only with its caller's rights.
crate::for_both_isolations!(views_are_read_with_the_callers_rights, views);
async fn views(database: TestDatabase) {
    let mut administrator = administrator(&database.config).await;
    let wide = texts(
        &mut administrator,
        "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname LIKE 'nimbus\\_%' AND (c.relkind IN ('m', 'f') OR (c.relkind = 'v'
             AND NOT COALESCE(c.reloptions, '{}') && ARRAY['security_invoker=true', 'security_invoker=on']))",
    )
    .await;
    assert!(wide.is_empty(), "{wide:?}");
}

// A trigger sees the row, and what it does is done in its function's name: none has the owner's rights but
// those that were looked at, and none of these writes where another tenant reads.
crate::for_both_isolations!(triggers_act_with_the_callers_rights, triggers);
async fn triggers(database: TestDatabase) {
    let mut administrator = administrator(&database.config).await;
    let mighty = texts(
        &mut administrator,
        "SELECT DISTINCT format('%s by %s', t.tgrelid::regclass, p.oid::regprocedure) FROM pg_trigger t
         JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname LIKE 'nimbus\\_%' AND NOT t.tgisinternal AND p.prosecdef",
    )
    .await;
    assert!(mighty.is_empty(), "look at {mighty:?}");
}

// Whatever A does wrong with B's rows, the text of the error has nothing of them: neither what PostgreSQL says
// nor what the store makes of it.
crate::for_both_isolations!(errors_tell_nothing_of_anothers_rows, errors);
async fn errors(database: TestDatabase) {
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    let mut admin = administrator(&database.config).await;
    fill(&mut admin, b).await;
    let canary = "canary-of-beta";
    for table in tenant_tables(&mut admin).await {
        let columns = format!(
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = '{}'::regclass AND attnum > 0
                 AND NOT attisdropped AND atttypid = 'text'::regtype AND attname NOT IN ('kek_id', 'schema_name')",
            table.name
        );
        for column in texts(&mut admin, columns).await {
            let mark = format!(
                "SET session_replication_role = replica;
                 UPDATE {} SET {column} = '{canary}' WHERE tenant_id = '{b}';
                 RESET session_replication_role",
                table.name
            );
            // A column that takes only certain words has no canary.
            let _ = execute(&mut admin, mark).await;
            let _ = execute(&mut admin, "RESET session_replication_role").await;
        }
    }
    let marked = database.dump().await.matches(canary).count();
    assert!(marked > 10, "{marked}");
    let mut app = connect_as(&database.config, &database.config.roles.app).await;
    let mut told = String::new();
    for table in tenant_tables(&mut admin).await {
        let name = &table.name;
        let row = format!("SELECT to_jsonb(t)::text FROM {name} t WHERE tenant_id = '{b}' LIMIT 1");
        let row = texts(&mut admin, row).await.concat().replace('\'', "''");
        for statement in [
            // The very row, claimed for B and for A, and wrong casts that quote what they find.
            format!(
                "INSERT INTO {name} SELECT * FROM jsonb_populate_record(NULL::{name}, '{row}')"
            ),
            format!(
                "INSERT INTO {name} SELECT * FROM jsonb_populate_record(NULL::{name},
                     ('{row}'::jsonb || '{{\"tenant_id\": \"{a}\"}}'))"
            ),
            format!("SELECT (t::text)::int FROM {name} t"),
            format!("UPDATE {name} SET tenant_id = (SELECT (t::text)::uuid FROM {name} t LIMIT 1)"),
            format!(
                "SELECT 1 / (CASE WHEN t::text LIKE '%canary%' THEN 0 ELSE 1 END) FROM {name} t"
            ),
            format!("DELETE FROM {name} WHERE (tenant_id::text || t::text)::int > 0")
                .replace(" WHERE", " t WHERE"),
        ] {
            let mut tx = app.begin().await.unwrap();
            sqlx::query("SELECT nimbus_core.enter_tenant($1)")
                .bind(Uuid::from(a))
                .execute(&mut *tx)
                .await
                .unwrap();
            let given = statement.contains(canary);
            let outcome = sqlx::raw_sql(AssertSqlSafe(statement))
                .execute(&mut *tx)
                .await;
            tx.rollback().await.unwrap();
            let Err(error) = outcome else { continue };
            assert!(
                !error.to_string().contains("division by zero"),
                "{name}: a condition on another's row was evaluated"
            );
            // What A wrote itself may be in the error; what it did not write may not.
            if !given {
                told.push_str(&format!("{error} {error:?}\n"));
            }
            told.push_str(&nimbus_core::Error::from(StoreError::from(error)).to_string());
        }
    }
    assert!(!told.contains(canary), "{told}");
    assert!(!told.contains(&b.to_string()), "{told}");
}

// The private PostgreSQL writes neither statements nor values into its log, whatever fails or is slow: its log
// is the server's, and the server's is read by people of no tenant.
crate::for_both_isolations!(the_databases_own_log_has_no_values, own_log);
async fn own_log(database: TestDatabase) {
    let mut administrator = administrator(&database.config).await;
    for (setting, expected) in [
        ("log_min_duration_statement", "-1"),
        ("log_min_duration_sample", "-1"),
        ("log_statement", "none"),
        ("log_min_error_statement", "panic"),
        ("log_error_verbosity", "terse"),
        ("log_parameter_max_length", "0"),
        ("log_parameter_max_length_on_error", "0"),
    ] {
        let value = texts(
            &mut administrator,
            format!("SELECT current_setting('{setting}')"),
        );
        assert_eq!(value.await.concat(), expected, "{setting}");
    }
}
