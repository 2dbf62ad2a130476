//! Dump, wipe, restore, verify.

use nimbus_control_audit::{Actor, AuditRecord, SigningKey};
use nimbus_control_store::{
    BackupScope, Holder, Isolation, ListPage, NewApiKey, NewUser, RestoreKeys, RoleHolding, Store,
    StoreError, UserChange,
};
use nimbus_control_testing::TestDatabase;
use nimbus_control_vault::{DataKey, KeyEncryptionKey, KeyRing};
use nimbus_core::TenantId;
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::catalog::{drop_checks, fill};
use crate::support::{administrator, execute, tenant, tenant_below, texts};

struct TestKeys {
    vault: KeyRing,
    audit: SigningKey,
}

impl TestKeys {
    fn new() -> Self {
        Self {
            vault: KeyRing::new(KeyEncryptionKey::generate(), Vec::new()),
            audit: SigningKey::generate(),
        }
    }

    fn borrowed(&self) -> RestoreKeys<'_> {
        RestoreKeys {
            vault: &self.vault,
            audit: &self.audit,
        }
    }
}

/// Every row of every table, as text, apart from the ledgers' times.
async fn everything(config: &nimbus_control_store::StoreConfig) -> Vec<String> {
    let mut administrator = administrator(config).await;
    let tables = texts(
        &mut administrator,
        // What is told live is not kept: a log begins anew where it is restored. The registry of resolvers is the
        // program's, and there from the beginning.
        "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p') AND n.nspname LIKE 'nimbus\\_%' AND c.relname NOT LIKE '%migrations'
           AND c.relname NOT LIKE 'live\\_%' AND c.relname <> 'resolvers' ORDER BY 1",
    )
    .await;
    let mut rows = Vec::new();
    for table in tables {
        rows.extend(
            texts(
                &mut administrator,
                format!("SELECT '{table} ' || t::text FROM {table} t ORDER BY 1"),
            )
            .await,
        );
    }
    rows
}

crate::for_both_isolations!(a_wiped_installation_is_restored_to_the_last_row, drill);
async fn drill(database: TestDatabase) {
    let a = tenant(&database, "alpha").await;
    let team = tenant_below(&database.store, a, a, "team").await;
    let gone = tenant(&database, "gone").await;
    let mut admin = administrator(&database.config).await;
    let strange = "tab\t newline\n backslash \\. quote ' ünï \u{1F600}";
    database
        .store
        .tenant_tx(team, async |tx| tx.compartment_create(strange, None).await)
        .await
        .unwrap();
    for tenant in [database.root, a, team, gone] {
        fill(&mut admin, tenant).await;
        deploy(&mut admin, tenant).await;
    }
    let grace = std::time::Duration::from_secs(3600);
    database
        .store
        .registry_tx(database.root, async |tx| {
            tx.tenant_delete(gone, grace).await
        })
        .await
        .unwrap();
    let before = everything(&database.config).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar.gz");
    let manifest = database
        .store
        .backup(BackupScope::Everything, &file)
        .await
        .unwrap();
    assert_eq!(manifest.rows(), before.len() as u64);
    assert!(matches!(
        database.store.restore(&file).await,
        Err(StoreError::RestoreTarget)
    ));

    let mut empty = database.config.clone();
    empty.address.database.push_str("_restored");
    let (restored, _) = Store::open(empty.clone()).await.unwrap();
    let mut target = administrator(&empty).await;
    drop_checks(&mut target).await;
    drop_references(&mut target).await;
    restored.restore(&file).await.unwrap();
    assert_eq!(everything(&empty).await, before);
    // It goes on from there: the next tenant gets a schema of its own.
    let new = tenant_below(&restored, database.root, database.root, "next").await;
    restored
        .tenant_tx(new, async |tx| tx.compartment_create("first", None).await)
        .await
        .unwrap();
    Store::open(empty).await.unwrap();
}

/// Rows of a deployment that fit together, instead of those that were made up: a schema that is restored
/// has its rules from the beginning.
async fn deploy(administrator: &mut sqlx::PgConnection, tenant: TenantId) {
    let schema = format!("SELECT schema_name FROM nimbus_core.tenants WHERE id = '{tenant}'");
    let schema = texts(administrator, schema).await.concat();
    let digest = "decode(repeat('ab', 32), 'hex')";
    let user = "gen_random_uuid()";
    for statement in [
        format!(
            "DO $$ DECLARE t text; BEGIN
                 FOREACH t IN ARRAY ARRAY['ci_words', 'ci_history', 'ci_relationships', 'configuration_items', 'ci_classes', 'ci_syncs', 'ci_imports',
                     'delivery_attempts', 'deliveries', 'webhooks', 'notification_preferences', 'notification_digests', 'digest_items',
                     'approval_decisions', 'approval_requests', 'approval_policies', 'approval_delegations', 'notifications',
                     'rollout_instances', 'rollouts', 'drafts', 'review_marks', 'deployed_components', 'run_events', 'sealed_plans', 'runs', 'unit_memories', 'environment_versions',
                     'gate_signatures', 'deployments', 'workspace_files', 'blobs', 'state_objects', 'request_answers']
                 LOOP EXECUTE format('DELETE FROM {schema}.%I WHERE tenant_id = %L', t, '{tenant}'); END LOOP;
             END $$"
        ),
        format!("INSERT INTO {schema}.blobs (tenant_id, digest, content) VALUES ('{tenant}', {digest}, 'x')"),
        format!("INSERT INTO {schema}.workspace_files (tenant_id, path, digest) VALUES ('{tenant}', 'a', {digest})"),
        format!(
            "INSERT INTO {schema}.deployments (tenant_id, id, organization, project, template, manifest, created_by)
             VALUES ('{tenant}', 'D1', 'o', 'p', 't', 'm', {user})"
        ),
        format!(
            "INSERT INTO {schema}.runs (tenant_id, deployment, number, id, action, environment, rehearsal, request,
                 requested_by)
             VALUES ('{tenant}', 'D1', 1, {user}, 'deploy', 'dev', true, '{{}}', {user})"
        ),
        format!(
            "INSERT INTO {schema}.run_events (tenant_id, deployment, run, seq, event)
             VALUES ('{tenant}', 'D1', 1, 1, '{{}}')"
        ),
        format!(
            "INSERT INTO {schema}.sealed_plans (tenant_id, deployment, run, plan)
             VALUES ('{tenant}', 'D1', 1, '{{}}')"
        ),
        format!(
            "INSERT INTO {schema}.drafts (tenant_id, person, id, kind, sealed)
             VALUES ('{tenant}', {user}, 'd', 'deployment', 'x')"
        ),
        format!(
            "INSERT INTO {schema}.review_marks (tenant_id, deployment, environment, rehearsal, item, person, digest)
             VALUES ('{tenant}', 'D1', 'dev', true, 'i', {user}, 'x')"
        ),
        format!(
            "INSERT INTO {schema}.approval_policies (tenant_id, environment, chain, set_by)
             VALUES ('{tenant}', 'prod', '{{}}', {user})"
        ),
        format!(
            "WITH made AS (INSERT INTO {schema}.approval_requests (tenant_id, id, run, run_number, deployment, environment,
                 rehearsal, action, plan_digest, manifest_digest, planned_at, chain, state, status, requested_by)
             VALUES ('{tenant}', {user}, {user}, 1, 'D1', 'dev', true, 'deploy', repeat('a', 64), repeat('b', 64), now(),
                 '{{}}', '{{}}', 'pending', {user}) RETURNING tenant_id, id)
             INSERT INTO {schema}.approval_decisions (tenant_id, request, step, person, verdict, decided_at, covers)
             SELECT tenant_id, id, 0, {user}, 'approve', now(), '{{0}}' FROM made"
        ),
        format!(
            "INSERT INTO {schema}.approval_delegations (tenant_id, person, delegate, until)
             VALUES ('{tenant}', {user}, {user}, now())"
        ),
        format!(
            "INSERT INTO {schema}.notifications (tenant_id, id, person, kind, title)
             VALUES ('{tenant}', {user}, {user}, 'run_failed', 't')"
        ),
        format!("INSERT INTO {schema}.state_objects (tenant_id, key, sealed, size) VALUES ('{tenant}', 'k', 'x', 1)"),
        format!(
            "WITH class AS (INSERT INTO {schema}.ci_classes (tenant_id, name) VALUES ('{tenant}', 'c') RETURNING id),
             one AS (INSERT INTO {schema}.configuration_items (tenant_id, id, ci_class_id, name, source, import_key, digest)
                 SELECT '{tenant}', {user}, id, 'a', 'import', 'a', {digest} FROM class RETURNING id),
             other AS (INSERT INTO {schema}.configuration_items (tenant_id, id, ci_class_id, name, source, import_key, digest)
                 SELECT '{tenant}', {user}, id, 'b', 'import', 'b', {digest} FROM class RETURNING id),
             word AS (INSERT INTO {schema}.ci_words (tenant_id, word, ci_id) SELECT '{tenant}', 'a', id FROM one),
             past AS (INSERT INTO {schema}.ci_history (tenant_id, ci_id, revision, change)
                 SELECT '{tenant}', id, 1, 'created' FROM one)
             INSERT INTO {schema}.ci_relationships (tenant_id, source_ci, target_ci, relationship, source)
             SELECT '{tenant}', one.id, other.id, 'needs', 'person' FROM one, other"
        ),
        format!(
            "INSERT INTO {schema}.ci_syncs (tenant_id, deployment, environment, rehearsal, unit, run)
             VALUES ('{tenant}', 'D1', 'dev', true, 'u', {user})"
        ),
        format!(
            "INSERT INTO {schema}.ci_imports (tenant_id, id, format, status, requested_by)
             VALUES ('{tenant}', {user}, 'csv', 'succeeded', {user})"
        ),
        format!(
            "WITH hook AS (INSERT INTO {schema}.webhooks (tenant_id, id, name, url, secret, created_by)
                 VALUES ('{tenant}', {user}, 'w', 'u', 'x', {user}) RETURNING id),
             sent AS (INSERT INTO {schema}.deliveries (tenant_id, id, channel, webhook, kind, payload)
                 SELECT '{tenant}', {user}, 'webhook', id, 'run_failed', 'x' FROM hook RETURNING id)
             INSERT INTO {schema}.delivery_attempts (tenant_id, delivery, number) SELECT '{tenant}', id, 1 FROM sent"
        ),
        format!(
            "INSERT INTO {schema}.notification_preferences (tenant_id, person, kind, channel, mode)
             VALUES ('{tenant}', {user}, '*', 'email', 'digest')"
        ),
        format!("INSERT INTO {schema}.notification_digests (tenant_id, person) VALUES ('{tenant}', {user})"),
        format!(
            "INSERT INTO {schema}.digest_items (tenant_id, id, person, kind, title)
             VALUES ('{tenant}', {user}, {user}, 'run_failed', 't')"
        ),
    ] {
        execute(administrator, &statement).await.unwrap();
    }
}

/// Rows that are made up by type refer to nothing.
async fn drop_references(administrator: &mut sqlx::PgConnection) {
    execute(
        administrator,
        "DO $$ DECLARE c record; BEGIN
             FOR c IN SELECT conrelid::regclass AS place, conname FROM pg_constraint k
                      JOIN pg_class t ON t.oid = k.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace
                      WHERE k.contype = 'f' AND n.nspname = 'nimbus_core' AND t.relname <> 'tenants'
             LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.place, c.conname); END LOOP;
         END $$",
    )
    .await
    .unwrap();
}

crate::for_both_isolations!(one_tenant_goes_back_while_others_go_on, one_tenant);
async fn one_tenant(database: TestDatabase) {
    let keys = TestKeys::new();
    let store = &database.store;
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    let add = async |tenant, name: &str| {
        store
            .tenant_tx(tenant, async |tx| tx.compartment_create(name, None).await)
            .await
            .unwrap()
    };
    let names = async |tenant| {
        let list = store
            .tenant_tx(tenant, async |tx| tx.compartment_list().await)
            .await
            .unwrap();
        list.into_iter()
            .map(|compartment| compartment.name)
            .collect::<Vec<_>>()
    };
    add(a, "kept").await;
    add(b, "other").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("alpha.tar.gz");
    store.backup(BackupScope::Tenant(a), &file).await.unwrap();
    add(a, "mistake").await;
    add(b, "later").await;
    store.restore_tenant(&file, &keys.borrowed()).await.unwrap();
    assert_eq!(
        (names(a).await, names(b).await),
        (
            vec!["kept".to_owned()],
            vec!["later".to_owned(), "other".to_owned()]
        )
    );
    // Even if it was deleted for good.
    store
        .registry_tx(database.root, async |tx| {
            tx.tenant_delete(a, std::time::Duration::ZERO).await
        })
        .await
        .unwrap();
    store.tenant_purge(a).await.unwrap();
    store.restore_tenant(&file, &keys.borrowed()).await.unwrap();
    assert_eq!(names(a).await, ["kept"]);
    assert_eq!(names(b).await, ["later", "other"]);
}

// P10: while one tenant goes back, others write, and nothing of theirs is another than they left it.
crate::for_both_isolations!(others_write_on_while_a_tenant_goes_back, others_write_on);
async fn others_write_on(database: TestDatabase) {
    let keys = TestKeys::new();
    let store = &database.store;
    let (a, b) = (
        tenant(&database, "alpha").await,
        tenant(&database, "beta").await,
    );
    let mut admin = administrator(&database.config).await;
    fill(&mut admin, b).await;
    deploy(&mut admin, b).await;
    let quiet = tenant(&database, "quiet").await;
    fill(&mut admin, quiet).await;
    let of_quiet = async || {
        let rows = everything(&database.config).await.into_iter();
        let id = quiet.to_string();
        // The tenant's own row is the registry's, and says when something was written to it.
        rows.filter(|row| row.contains(&id) && !row.starts_with("nimbus_core.tenants "))
            .collect::<Vec<_>>()
    };
    let kept: Result<_, StoreError> = store
        .tenant_tx(a, async |tx| tx.compartment_create("kept", None).await)
        .await;
    kept.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("alpha.tar.gz");
    store.backup(BackupScope::Tenant(a), &file).await.unwrap();
    let before = of_quiet().await;
    assert!(before.len() > 10, "{before:?}");
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let writer = store.clone();
    let writing = tokio::spawn(async move {
        let mut written = 0;
        while !*stopped.borrow() || written == 0 {
            let name = format!("while-{written}");
            let made: Result<_, StoreError> = writer
                .tenant_tx(b, async |tx| tx.compartment_create(&name, None).await)
                .await;
            made.unwrap();
            written += 1;
        }
        written
    });
    for _ in 0..nimbus_test_tools::short_or_long(2, 50) {
        store.restore_tenant(&file, &keys.borrowed()).await.unwrap();
    }
    stop.send_replace(true);
    let written = writing.await.unwrap();
    assert_eq!(of_quiet().await, before);
    let rows: Result<_, StoreError> = store
        .tenant_tx(b, async |tx| tx.compartment_list().await)
        .await;
    let rows = rows.unwrap();
    let kept = rows.iter().filter(|row| row.name.starts_with("while-"));
    assert_eq!(kept.count(), written, "what was acknowledged is there");
}

crate::for_both_isolations!(a_damaged_backup_changes_nothing, damaged);
async fn damaged(database: TestDatabase) {
    let keys = TestKeys::new();
    let store = &database.store;
    let a = tenant(&database, "alpha").await;
    store
        .tenant_tx(a, async |tx| tx.compartment_create("kept", None).await)
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("alpha.tar.gz");
    store.backup(BackupScope::Tenant(a), &file).await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    for length in [0, 10, whole.len() / 2, whole.len() - 30] {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert!(
            store.restore_tenant(&file, &keys.borrowed()).await.is_err(),
            "{length} of {}",
            whole.len()
        );
    }
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    std::fs::write(&file, &changed).unwrap();
    assert!(store.restore_tenant(&file, &keys.borrowed()).await.is_err());
    let left = store
        .tenant_tx(a, async |tx| tx.compartment_list().await)
        .await
        .unwrap();
    assert_eq!(left.len(), 1);
}

#[tokio::test]
async fn a_restore_that_was_ended_halfway_goes_on_and_nothing_else_does() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let mut tenants = Vec::new();
    for slug in ["alpha", "beta", "gamma"] {
        let id = tenant(&database, slug).await;
        database
            .store
            .tenant_tx(id, async |tx| tx.compartment_create("kept", None).await)
            .await
            .unwrap();
        tenants.push(id);
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (
        folder.path().join("one.tar.gz"),
        folder.path().join("two.tar.gz"),
    );
    let store = &database.store;
    store.backup(BackupScope::Everything, &file).await.unwrap();
    store.backup(BackupScope::Everything, &other).await.unwrap();
    let mut empty = database.config.clone();
    empty.address.database.push_str("_halfway");
    let (restored, _) = Store::open(empty.clone()).await.unwrap();
    // Somebody is in the way of the second tenant's schema, as a crash would be.
    let mut admin = administrator(&empty).await;
    execute(
        &mut admin,
        "CREATE SCHEMA nimbus_tenant_003; CREATE TABLE nimbus_tenant_003.compartments (x int)",
    )
    .await
    .unwrap();
    assert!(restored.restore(&file).await.is_err());
    assert!(restored.restore_unfinished().await.unwrap());
    let another = restored.restore(&other).await;
    assert!(
        matches!(another, Err(StoreError::RestoreUnfinished)),
        "{another:?}"
    );
    execute(&mut admin, "DROP SCHEMA nimbus_tenant_003 CASCADE")
        .await
        .unwrap();
    restored.restore(&file).await.unwrap();
    assert!(!restored.restore_unfinished().await.unwrap());
    for id in tenants {
        let kept = restored
            .tenant_tx(id, async |tx| tx.compartment_list().await)
            .await
            .unwrap();
        assert_eq!(kept.len(), 1);
    }
    assert!(matches!(
        restored.restore(&file).await,
        Err(StoreError::RestoreTarget)
    ));
}

/// Somebody was shut out after the backup was made, and the backup is given back.
#[tokio::test]
async fn a_tenants_restore_lets_nobody_in_again_and_keeps_what_was_recorded_since() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let (store, keys) = (&database.store, TestKeys::new());
    let acme = tenant(&database, "acme").await;
    let hash = |text: &str| Some(text.to_owned());
    let new = |email: &str, service_account: bool| NewUser {
        service_account,
        email: email.to_owned(),
        display_name: String::new(),
        password_hash: if service_account {
            None
        } else {
            hash("old hash")
        },
    };
    let record = |action: &str| AuditRecord::new(Actor::system(), action, "test");
    let now = jiff::Timestamp::now;
    let held = || RoleHolding {
        reach: "own".to_owned(),
        conditions: serde_json::json!({}),
        expires_at: None,
    };
    let narrow = || serde_json::json!([{"permissions": ["users:read"]}]);
    let data_key = DataKey::generate(acme, 1);
    let (changed, disabled, deleted, key, session, robot, group) = store
        .tenant_tx(acme, async |tx| {
            let changed = tx
                .user_create(&new("changed@acme.example", false))
                .await?
                .user_id();
            let disabled = tx
                .user_create(&new("disabled@acme.example", false))
                .await?
                .user_id();
            let deleted = tx
                .user_create(&new("deleted@acme.example", false))
                .await?
                .user_id();
            let robot = tx.user_create(&new("robot", true)).await?.user_id();
            let key = NewApiKey {
                id: uuid::Uuid::new_v4(),
                user: robot,
                name: "ci".to_owned(),
                hash: [7; 32],
                scopes: vec!["users:read".to_owned()],
                expires_at: None,
            };
            let key = tx.key_create(&key).await?.id;
            let session = tx.session_create(changed, 3600, None, None).await?.id;
            tx.data_key_add(&data_key.wrap(&keys.vault)).await?;
            tx.role_assign("tenant_admin", Holder::User(changed), &held())
                .await?;
            tx.role_assign("tenant_admin", Holder::User(robot), &held())
                .await?;
            let group = tx.group_create("on-call", "oncall", "").await?.id;
            tx.group_add(group, robot).await?;
            tx.role_assign("operator", Holder::Group(group), &held())
                .await?;
            let wide = serde_json::json!([{"permissions": ["users:read", "rbac:role:manage"]}]);
            tx.role_create("helpers", "", &wide).await?;
            tx.audit_append(&keys.audit, now(), record("before"))
                .await?;
            Ok::<_, StoreError>((changed, disabled, deleted, key, session, robot, group))
        })
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("acme.tar.gz");
    store
        .backup(BackupScope::Tenant(acme), &file)
        .await
        .unwrap();
    store
        .tenant_tx(acme, async |tx| {
            let new_password = UserChange {
                password_hash: hash("new hash"),
                ..UserChange::default()
            };
            tx.user_update(changed, &new_password).await?;
            let shut_out = UserChange {
                disabled: Some(true),
                ..UserChange::default()
            };
            tx.user_update(disabled, &shut_out).await?;
            tx.user_delete(deleted).await?;
            tx.key_revoke(key).await?;
            // The role of one goes to another, a group loses a member, and a role gets less.
            let of_robot = tx.role_assignments_of(robot).await?;
            let direct = of_robot.iter().find(|one| one.user_id.is_some()).unwrap();
            tx.role_unassign(direct.id).await?;
            tx.role_assign("tenant_admin", Holder::User(disabled), &held())
                .await?;
            tx.group_remove(group, robot).await?;
            tx.role_update("helpers", "", &narrow()).await?;
            tx.audit_append(&keys.audit, now(), record("since")).await?;
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    // Without the key of its secrets nothing happens.
    let strangers = TestKeys::new();
    let refused = store
        .restore_tenant(&file, &strangers.borrowed())
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("copy keys/"), "{refused}");
    store.restore_tenant(&file, &keys.borrowed()).await.unwrap();
    let filter = nimbus_control_store::AuditFilter {
        limit: 100,
        ..Default::default()
    };
    store
        .tenant_tx(acme, async |tx| {
            let credentials = tx.user_credentials("changed@acme.example").await?;
            assert_eq!(credentials, Some((changed, "new hash".to_owned())));
            for gone in ["disabled@acme.example", "deleted@acme.example"] {
                assert_eq!(tx.user_credentials(gone).await?, None, "{gone}");
            }
            let listed = ListPage {
                after: None,
                limit: 100,
            };
            assert!(
                tx.key_list(&listed).await?.is_empty(),
                "the key stays revoked"
            );
            assert_eq!(
                tx.session_user(session).await?,
                None,
                "everybody signs in again"
            );
            assert_eq!(tx.role_assignments_of(changed).await?.len(), 1);
            assert!(
                tx.role_assignments_of(robot).await?.is_empty(),
                "what was taken away stays away, directly and by a group"
            );
            assert_eq!(
                tx.role_assignments_of(disabled).await?.len(),
                1,
                "and what was given since stays given"
            );
            let helpers = tx.role_hold("helpers").await?;
            assert_eq!(helpers.unwrap().grants, narrow());
            let entries = tx.audit_list(&filter).await?;
            let actions: Vec<_> = entries
                .iter()
                .map(|entry| entry.record.action.as_str())
                .collect();
            assert_eq!(actions, ["before", "since", "tenants.restore_backup"]);
            let mut verifier =
                nimbus_control_audit::Verifier::new(keys.audit.verifying_key(), acme, &[]);
            assert!(entries.iter().all(|entry| verifier.next(entry)));
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
}
