//! One tenant's rows are out of another's reach: in every table and view, by every statement.

use futures::StreamExt as _;
use nimbus_control_store::StoreError;
use nimbus_control_testing::TestDatabase;
use nimbus_core::TenantId;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use uuid::Uuid;

use crate::catalog::{Table, fill, tenant_tables};
use crate::support::{administrator, connect_as, execute, number, tenant, texts};

/// Two tenants with a row in every table.
struct Scene {
    app: PgConnection,
    administrator: PgConnection,
    tables: Vec<Table>,
    a: TenantId,
    b: TenantId,
}

async fn scene(database: TestDatabase) -> Scene {
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    let mut administrator = administrator(&database.config).await;
    for tenant in [a, b] {
        fill(&mut administrator, tenant).await;
    }
    let tables = tenant_tables(&mut administrator).await;
    assert!(tables.len() >= 3, "{tables:?}");
    let app = connect_as(&database.config, &database.config.roles.app).await;
    Scene {
        app,
        administrator,
        tables,
        a,
        b,
    }
}

impl Scene {
    /// Runs a statement as the app for tenant A and undoes it.
    async fn as_a(&mut self, statement: String) -> Result<u64, sqlx::Error> {
        let mut tx = self.app.begin().await.unwrap();
        sqlx::query("SELECT nimbus_core.enter_tenant($1)")
            .bind(Uuid::from(self.a))
            .execute(&mut *tx)
            .await
            .unwrap();
        let outcome = sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut *tx)
            .await;
        tx.rollback().await.unwrap();
        outcome.map(|done| done.rows_affected())
    }

    /// How many bytes of B's rows a copy gives to tenant A.
    async fn copied_by_a(&mut self, table: &str) -> usize {
        let mut tx = self.app.begin().await.unwrap();
        sqlx::query("SELECT nimbus_core.enter_tenant($1)")
            .bind(Uuid::from(self.a))
            .execute(&mut *tx)
            .await
            .unwrap();
        let copy = format!(
            "COPY (SELECT * FROM {table} WHERE tenant_id = '{}') TO STDOUT",
            self.b
        );
        let mut bytes = 0;
        // Refused is as good as empty.
        if let Ok(mut stream) = tx.copy_out_raw(&copy).await {
            while let Some(Ok(chunk)) = stream.next().await {
                bytes += chunk.len();
            }
        }
        tx.rollback().await.unwrap();
        bytes
    }

    /// Nothing happened: no row was touched, or the database refused.
    async fn assert_nothing(&mut self, statement: String) {
        match self.as_a(statement.clone()).await {
            Ok(rows) => assert_eq!(rows, 0, "{statement}"),
            Err(error) => {
                let b = self.b.to_string();
                let text = error.to_string();
                assert!(
                    text.contains("permission denied") || text.contains("row-level security"),
                    "{statement}: {text}"
                );
                assert!(
                    !text.contains(&b),
                    "the error tells of the other tenant: {text}"
                );
            }
        }
    }
}

crate::for_both_isolations!(another_tenants_rows_are_out_of_reach, rows_out_of_reach);
async fn rows_out_of_reach(database: TestDatabase) {
    let mut scene = scene(database).await;
    let b = scene.b;
    for Table { name } in scene.tables.clone() {
        let there = number(
            &mut scene.administrator,
            format!("SELECT count(*) FROM {name} WHERE tenant_id = '{b}'"),
        )
        .await;
        let own_schema = there > 0 || name.starts_with("nimbus_core");
        scene
            .assert_nothing(format!("SELECT * FROM {name} WHERE tenant_id = '{b}'"))
            .await;
        scene
            .assert_nothing(format!(
                "SELECT * FROM {name} WHERE tenant_id <> nimbus_core.current_tenant()"
            ))
            .await;
        assert_eq!(scene.copied_by_a(&name).await, 0, "{name}");
        scene
            .assert_nothing(format!(
                "UPDATE {name} SET tenant_id = tenant_id WHERE tenant_id = '{b}'"
            ))
            .await;
        scene.assert_nothing(format!("UPDATE {name} SET tenant_id = tenant_id WHERE tenant_id = '{b}' RETURNING tenant_id")).await;
        scene
            .assert_nothing(format!("DELETE FROM {name} WHERE tenant_id = '{b}'"))
            .await;
        scene.assert_nothing(format!("UPDATE {name} SET tenant_id = '{b}' WHERE tenant_id = nimbus_core.current_tenant() AND false")).await;
        if own_schema {
            let row = texts(
                &mut scene.administrator,
                format!("SELECT to_jsonb(t)::text FROM {name} t WHERE tenant_id = '{b}' LIMIT 1"),
            )
            .await
            .concat();
            let insert = format!(
                "INSERT INTO {name} SELECT * FROM jsonb_populate_record(NULL::{name}, '{row}')"
            );
            for ending in ["", " ON CONFLICT DO NOTHING", " RETURNING tenant_id"] {
                scene.assert_nothing(format!("{insert}{ending}")).await;
            }
        }
    }
    // The same statements do find what is A's own.
    let own = scene
        .as_a("SELECT * FROM compartments".to_owned())
        .await
        .unwrap();
    assert_eq!(own, 1);
    let moved = format!("UPDATE compartments SET tenant_id = '{b}'");
    assert!(scene.as_a(moved).await.is_err());
}

crate::for_both_isolations!(nobody_sees_nothing, nothing_for_nobody);
async fn nothing_for_nobody(database: TestDatabase) {
    let mut scene = scene(database).await;
    for Table { name } in scene.tables.clone() {
        let select = format!("SELECT count(*) FROM {name}");
        for set in [
            "",
            "SET LOCAL nimbus.tenant_id = '';",
            "SET LOCAL nimbus.tenant_id = 'drop table';",
        ] {
            let mut tx = scene.app.begin().await.unwrap();
            if !set.is_empty() {
                sqlx::raw_sql(AssertSqlSafe(set.to_owned()))
                    .execute(&mut *tx)
                    .await
                    .unwrap();
            }
            let seen: Result<i64, _> = sqlx::query_scalar(AssertSqlSafe(select.clone()))
                .fetch_one(&mut *tx)
                .await;
            tx.rollback().await.unwrap();
            match seen {
                Ok(count) => assert_eq!(count, 0, "{name} after `{set}`"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        text.contains("uuid") || text.contains("permission denied"),
                        "{text}"
                    );
                }
            }
        }
    }
}

crate::for_both_isolations!(a_deleted_tenant_has_no_door, deleted_has_no_door);
async fn deleted_has_no_door(database: TestDatabase) {
    let gone = tenant(&database, "gone").await;
    let grace = std::time::Duration::from_secs(3600);
    database
        .store
        .registry_tx(database.root, async |tx| {
            tx.tenant_delete(gone, grace).await
        })
        .await
        .unwrap();
    for unknown in [gone, TenantId::random()] {
        let entered = database
            .store
            .tenant_tx(unknown, async |tx| tx.compartment_list().await)
            .await;
        assert!(
            matches!(entered, Err(StoreError::TenantUnknown)),
            "{entered:?}"
        );
    }
    let seen = database
        .store
        .tenant_tx(database.root, async |tx| tx.tenant_get(gone).await)
        .await;
    assert!(matches!(seen, Err(StoreError::TenantUnknown)), "{seen:?}");
}

// A key that the other tenant uses is free for this one, so nothing is learned by trying it.
crate::for_both_isolations!(a_taken_key_does_not_tell, keys_do_not_tell);
async fn keys_do_not_tell(database: TestDatabase) {
    let mut scene = scene(database).await;
    let (a, b) = (scene.a, scene.b);
    for Table { name } in scene.tables.clone() {
        let row = format!(
            "SELECT (to_jsonb(t) || '{{\"tenant_id\": \"{a}\"}}')::text FROM {name} t WHERE tenant_id = '{b}' LIMIT 1"
        );
        let row = texts(&mut scene.administrator, row).await.concat();
        if row.is_empty() {
            continue;
        }
        // A key that A uses itself would be taken for another reason.
        let make_room = format!(
            "SET session_replication_role = replica; DELETE FROM {name} WHERE tenant_id = '{a}';
             RESET session_replication_role"
        );
        execute(&mut scene.administrator, make_room).await.unwrap();
        let place = if name.starts_with("nimbus_core") {
            name.clone()
        } else {
            name.split('.').nth(1).unwrap().to_owned()
        };
        let insert = format!(
            "INSERT INTO {place} SELECT * FROM jsonb_populate_record(NULL::{place}, '{row}')"
        );
        match scene.as_a(insert).await {
            Ok(rows) => assert_eq!(rows, 1, "{name}"),
            // A reference to a row of B answers as a reference to no row at all does.
            Err(error) => {
                let text = error.to_string();
                assert!(
                    text.contains("permission denied") || text.contains("foreign key"),
                    "{name}: {text}"
                );
                assert!(!text.contains(&b.to_string()), "{text}");
            }
        }
    }
}

// Functions that run with the owner's rights are the one way round row-level security, so each was
// looked at: they answer for the tenant that is set and what is below it. A new one must be added here.
crate::for_both_isolations!(functions_with_the_owners_rights_are_known, known_functions);
async fn known_functions(database: TestDatabase) {
    let mut administrator = administrator(&database.config).await;
    let known = [
        "nimbus_core.effective_quotas(uuid)",
        "nimbus_core.effective_settings(uuid)",
        "nimbus_core.find_tenant(text[])",
        // About what is to be sent: each is for the acting tenant, or names tenants to workers and nothing of theirs.
        "nimbus_core.delivery_turns_due(integer)",
        "nimbus_core.delivery_forget(uuid)",
        "nimbus_core.delivery_next(timestamp with time zone)",
        "nimbus_core.delivery_note(timestamp with time zone)",
        "nimbus_core.delivery_note_all()",
        "nimbus_core.delivery_turn()",
        // About events: each is for the acting tenant, or moves rows of all of them to where only their tenant
        // reads them and gives ids and kinds to the relay.
        "nimbus_core.live_head()",
        "nimbus_core.live_hold(uuid,double precision)",
        "nimbus_core.live_let_go(uuid)",
        "nimbus_core.live_publish(jsonb)",
        "nimbus_core.live_relay(uuid,integer,bigint,integer)",
        "nimbus_core.live_signal(text)",
        "nimbus_core.live_waiting()",
        "nimbus_core.outer_keys()",
        // For a tenant that is the acting one or below it: a limit and a count, when they are in the way.
        "nimbus_core.quota_check(uuid,text,bigint)",
        // About the installation: whether its first run is over.
        "nimbus_core.setup_complete(bytea)",
        // Of the acting tenant and those above it: rules that hold for it, and whether there is room.
        "nimbus_core.governance_rules(uuid)",
        "nimbus_core.instances_check(text,boolean,bigint)",
        // Of the acting tenant and those above it: how resolvers are configured for it, which pools and images it may
        // use, and whose spaces something of its own was taken from.
        "nimbus_core.resolver_images()",
        "nimbus_core.resolver_layers(text)",
        "nimbus_core.resolver_lease_owners(text,text,boolean)",
        "nimbus_core.resolver_pools(text)",
        // Of the operator's own catalog: everybody may see what is published there.
        "nimbus_core.shared_components()",
        "nimbus_core.shared_environment_templates(uuid)",
        "nimbus_core.shared_versions(text)",
        "nimbus_core.shared_zones()",
        // Of what the acting tenant owns: who uses it. Tenants other than the operator see only their own.
        "nimbus_core.component_users(text)",
        "nimbus_core.zone_use(uuid)",
        // Gives ids of tenants to servers, which go round them.
        "nimbus_core.bootstrap_tenants()",
        // What servers tell the workflow runtime, which is the operator's.
        "nimbus_core.schedules_of_all()",
        // Of the acting tenant and those below it: where a component is deployed.
        "nimbus_core.fleet_instances(text,uuid,bigint)",
        // About roll-outs: each is for the acting tenant, or gives ids of tenants to servers, which go round them.
        "nimbus_core.rollout_forget(uuid)",
        "nimbus_core.rollout_none()",
        "nimbus_core.rollout_note()",
        "nimbus_core.rollout_note_all()",
        "nimbus_core.rollout_tenants()",
        "nimbus_core.rollout_turn()",
        "nimbus_core.setup_offer(bytea)",
        // About attempts, which belong to nobody: they take a digest and give times and counts.
        "nimbus_core.sign_in_begin(bytea,text)",
        "nimbus_core.sign_in_clean_up()",
        "nimbus_core.sign_in_not_made(bigint)",
        "nimbus_core.sign_in_succeeded(bigint)",
        // About turns at work: each is for the acting tenant, or gives ids of tenants and nothing of
        // theirs to the workers, which go round them.
        "nimbus_core.work_forget(uuid)",
        // For a tenant that is the acting one or below it: yes or no.
        "nimbus_core.work_is_running(uuid)",
        "nimbus_core.work_none()",
        "nimbus_core.work_note()",
        "nimbus_core.work_note_all()",
        "nimbus_core.work_taken()",
        "nimbus_core.work_turn()",
        "nimbus_core.work_turns_next()",
    ];
    let app = &database.config.roles.app;
    let found = texts(
        &mut administrator,
        format!(
            "SELECT format('%I.%s', n.nspname, split_part(p.oid::regprocedure::text, '.', 2)) FROM pg_proc p
             JOIN pg_namespace n ON n.oid = p.pronamespace
             WHERE n.nspname LIKE 'nimbus\\_%' AND p.prosecdef AND has_function_privilege('{app}', p.oid, 'EXECUTE')
             ORDER BY 1"
        ),
    )
    .await;
    let unknown: Vec<_> = found
        .iter()
        .filter(|name| !known.contains(&name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "look at {unknown:?}");
}

crate::for_both_isolations!(
    inherited_values_are_not_told_to_strangers,
    strangers_get_nothing
);
async fn strangers_get_nothing(database: TestDatabase) {
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    let told = database
        .store
        .tenant_tx(a, async |tx| {
            let settings = tx.settings_effective(b).await?;
            let quotas = tx.quotas_effective(b).await?;
            Ok::<_, StoreError>((settings, quotas))
        })
        .await
        .unwrap();
    assert_eq!(told, (Vec::new(), Vec::new()));
}

crate::for_both_isolations!(the_app_cannot_become_the_owner, no_other_role);
async fn no_other_role(database: TestDatabase) {
    let mut app = connect_as(&database.config, &database.config.roles.app).await;
    for role in [
        &database.config.roles.owner,
        &database.config.administrator.user,
    ] {
        let error = execute(&mut app, format!("SET ROLE {role}"))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("permission denied"), "{error}");
    }
    for statement in [
        "SET row_security = off; SELECT * FROM nimbus_core.tenants",
        "CREATE TEMP TABLE compartments (x int)",
        "CREATE TABLE public.compartments (x int)",
    ] {
        assert!(execute(&mut app, statement).await.is_err(), "{statement}");
    }
}

// A notification reaches every session of a database, whoever the tenant is.
crate::for_both_isolations!(channels_carry_no_rows, no_notifications);
async fn no_notifications(database: TestDatabase) {
    let mut administrator = administrator(&database.config).await;
    // Nothing in the database notifies: the relay does, outside of the transactions of changes.
    let sent = texts(
        &mut administrator,
        "SELECT DISTINCT p.oid::regprocedure::text || ': ' || said[1]
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace,
             regexp_matches(p.prosrc, '[^;]*notify[^;]*', 'gi') AS said
         WHERE n.nspname LIKE 'nimbus\\_%'",
    )
    .await;
    assert_eq!(sent, Vec::<String>::new(), "look at what these send");
}
