//! What the role that serves requests may do to what does not belong to a tenant, tried as that role.

use nimbus_control_audit::{Actor, AuditRecord, SigningKey};
use nimbus_control_store::{Isolation, StoreError};
use nimbus_control_testing::TestDatabase;
use nimbus_test_tools::{Tool, tool_or_skip};

use crate::support::{connect_as, execute, tenant};

#[tokio::test]
async fn requests_cannot_reopen_the_first_run_or_turn_a_chain_back() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let database = TestDatabase::new(&binaries, Isolation::SchemaWithRls).await;
    let acme = tenant(&database, "acme").await;
    let (key, now) = (SigningKey::generate(), jiff::Timestamp::now());
    for _ in 0..2 {
        let record = AuditRecord::new(Actor::system(), "a", "b");
        let written: Result<_, StoreError> = database
            .store
            .tenant_tx(acme, async |tx| tx.audit_append(&key, now, record).await)
            .await;
        written.unwrap();
    }
    let mut app = connect_as(&database.config, &database.config.roles.app).await;
    let as_acme = format!("SELECT nimbus_core.enter_tenant('{acme}');");
    for forbidden in [
        "UPDATE nimbus_core.installation SET setup_completed_at = NULL",
        "UPDATE nimbus_core.installation SET setup_token_hash = '\\x00'",
        "SELECT setup_token_hash FROM nimbus_core.installation",
        "DELETE FROM nimbus_core.installation",
        "UPDATE nimbus_core.audit_chains SET sequence = 1",
        "UPDATE nimbus_core.audit_chains SET hash = '\\x00'",
        "UPDATE nimbus_core.audit_chains SET archived_sequence = 2",
        "UPDATE nimbus_core.audit_chains SET archived_hash = hash",
        "DELETE FROM nimbus_core.audit_chains",
        "UPDATE nimbus_core.audit_checkpoints SET line = ''",
        "DELETE FROM nimbus_core.audit_checkpoints",
        "SELECT * FROM nimbus_core.sign_ins",
        "DELETE FROM nimbus_core.sign_ins",
        "SELECT * FROM nimbus_core.purges",
        "INSERT INTO nimbus_core.restores (archive) VALUES ('x')",
        "UPDATE nimbus_core.heartbeat SET at = now()",
        "TRUNCATE nimbus_core.room",
        "SELECT * FROM nimbus_core.live_outbox",
        "DELETE FROM nimbus_core.live_outbox",
        "UPDATE nimbus_core.live_shards SET relay = NULL, expires_at = NULL",
        "INSERT INTO nimbus_core.live_events (seq, event, kind, subjects, data, at)
             VALUES (1, gen_random_uuid(), 'a.b', '{}', '{}', now())",
        "DELETE FROM nimbus_core.live_events",
        "UPDATE nimbus_core.live_heads SET last_seq = 0",
        "UPDATE nimbus_core.component_versions SET code = '{}'",
        "DELETE FROM nimbus_core.component_versions",
        "UPDATE nimbus_core.resolvers SET handler_class = 'mine'",
        "DELETE FROM nimbus_core.resolvers",
        "SELECT nimbus_core.resolver_owners()",
        "SELECT nimbus_core.leases_held(nimbus_core.current_tenant(), '{}')",
        "INSERT INTO nimbus_core.semantic_providers (name, display_name) VALUES ('moon', 'Moon')",
    ] {
        let outcome = execute(&mut app, format!("BEGIN; {as_acme} {forbidden}; COMMIT")).await;
        assert!(outcome.is_err(), "{forbidden}");
        execute(&mut app, "ROLLBACK").await.unwrap();
    }
}
