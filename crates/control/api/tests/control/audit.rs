//! The audit trail: what is recorded, and what the owner of the database cannot hide.

use nimbus_control_audit::{Actor, AuditRecord, SigningKey};
use nimbus_control_store::{NewTenant, Store, StoreError};
use serde_json::json;

use crate::support::{Installation, installation, text};

async fn trail(nimbus: &Installation) -> (String, String) {
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    for number in 0..5 {
        nimbus
            .user(&owner, &acme, &format!("user{number}@acme.example"), None)
            .await;
    }
    nimbus.app.checkpoint_audit(jiff::Timestamp::now()).await;
    (owner, acme)
}

async fn verdict(nimbus: &Installation, owner: &str, tenant: &str) -> serde_json::Value {
    nimbus
        .get(&format!("/api/v1/tenants/{tenant}/audit/verify"), owner)
        .await
        .ok()
}

#[tokio::test]
async fn an_untouched_trail_is_intact_and_held_against_its_checkpoints() {
    let nimbus = installation!();
    let (owner, acme) = trail(&nimbus).await;
    let verdict = verdict(&nimbus, &owner, &acme).await;
    assert_eq!(verdict["intact"], true, "{verdict}");
    assert_eq!(verdict["checkpoints"], 1);
    assert_eq!(verdict["entries"], 5);
}

#[tokio::test]
async fn what_the_databases_owner_does_to_the_trail_is_named() {
    for (statement, entry) in [
        (
            "UPDATE nimbus_core.audit_logs SET user_id = 'somebody' WHERE sequence = 3 AND action = 'users.create'",
            3,
        ),
        (
            "DELETE FROM nimbus_core.audit_logs WHERE sequence = 2 AND action = 'users.create'",
            2,
        ),
        (
            "DELETE FROM nimbus_core.audit_logs WHERE sequence >= 4 AND tenant_id = (SELECT id FROM nimbus_core.tenants WHERE slug = 'acme')",
            5,
        ),
    ] {
        let nimbus = installation!();
        let (owner, acme) = trail(&nimbus).await;
        nimbus.database.run_as_administrator(statement).await;
        let verdict = verdict(&nimbus, &owner, &acme).await;
        assert_eq!(verdict["intact"], false, "{statement}");
        assert_eq!(verdict["fault_sequence"], entry, "{statement}: {verdict}");
    }
}

#[tokio::test]
async fn entries_show_before_and_after_and_can_be_filtered_and_exported() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    let user = nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    let base = format!("/api/v1/tenants/{acme}");
    let change = json!({"display_name": "=Jane", "password": "quiet tree stone 4"});
    nimbus
        .call(
            "PATCH",
            &format!("{base}/users/{user}"),
            Some(&owner),
            Some(change),
        )
        .await
        .ok();
    let entries = nimbus
        .get(
            &format!("{base}/audit?action=users.update&resource_id={user}"),
            &owner,
        )
        .await
        .ok();
    let entries = entries["items"].as_array().unwrap().clone();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["old_value"]["display_name"], "Somebody");
    assert_eq!(entries[0]["new_value"]["display_name"], "=Jane");
    assert_eq!(entries[0]["priority"], "high");
    assert_eq!(entries[0]["action"], "users.update");
    assert_eq!(entries[0]["resource_id"], user);
    assert_eq!(entries[0]["actor_kind"], "user");
    let me = nimbus.get("/api/v1/auth/me", &owner).await.ok();
    assert_eq!(entries[0]["user_id"], me["user"]["id"], "{me}");
    let time = text(&entries[0]["timestamp"])
        .parse::<jiff::Timestamp>()
        .unwrap();
    let age = jiff::Timestamp::now().duration_since(time).as_secs();
    assert!((0..300).contains(&age), "{time}");
    assert_eq!(entries[0]["ip_address"], "10.1.2.3");
    assert_eq!(text(&entries[0]["trace_id"]).len(), 32);

    let lines = nimbus
        .get(&format!("{base}/audit/export?format=jsonl"), &owner)
        .await;
    for line in lines.text.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(entry["sequence"].is_u64());
    }
    let csv = nimbus
        .get(
            &format!("{base}/audit/export?format=csv&action=users.update"),
            &owner,
        )
        .await;
    assert_eq!(csv.text.lines().count(), 2, "{}", csv.text);
    assert!(csv.text.starts_with("sequence,timestamp"));
    let proved = nimbus
        .get(&format!("{base}/audit?action=audit.export"), &owner)
        .await
        .ok();
    assert_eq!(proved["items"][0]["priority"], "critical");
    assert_eq!(verdict(&nimbus, &owner, &acme).await["intact"], true);
}

#[tokio::test]
async fn refusals_are_recorded_where_the_caller_belongs() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus
        .user(&owner, &acme, "jane@acme.example", Some("viewer"))
        .await;
    let jane = nimbus.token("acme", "jane@acme.example").await;
    nimbus
        .post(
            &format!("/api/v1/tenants/{acme}/groups"),
            &jane,
            json!({"name": "x"}),
        )
        .await;
    let denied = nimbus
        .get(
            &format!("/api/v1/tenants/{acme}/audit?outcome=denied"),
            &owner,
        )
        .await
        .ok();
    assert_eq!(denied["items"][0]["action"], "groups.create");
}

#[tokio::test]
async fn a_checkpoint_that_was_changed_is_found() {
    let nimbus = installation!();
    let (owner, acme) = trail(&nimbus).await;
    let file = nimbus.checkpoints.join(format!("{acme}.jsonl"));
    let changed = std::fs::read_to_string(&file)
        .unwrap()
        .replace("\"sequence\":5", "\"sequence\":4");
    std::fs::write(&file, changed).unwrap();
    let verdict = verdict(&nimbus, &owner, &acme).await;
    assert!(text(&verdict["fault"]).contains("not signed"), "{verdict}");
}

#[tokio::test]
async fn a_tail_that_is_cut_before_its_checkpoint_is_missed() {
    let nimbus = installation!();
    let (owner, acme) = trail(&nimbus).await;
    nimbus.user(&owner, &acme, "late@acme.example", None).await;
    // Nothing was signed since; whoever owns the database cuts the entry off and turns the chain back.
    nimbus
        .database
        .run_as_administrator(&format!(
            "ALTER TABLE nimbus_core.audit_chains DISABLE TRIGGER ALL;
             DELETE FROM nimbus_core.audit_logs WHERE tenant_id = '{acme}' AND sequence = 6;
             UPDATE nimbus_core.audit_chains c SET sequence = 5,
                 hash = (SELECT hash FROM nimbus_core.audit_logs WHERE tenant_id = '{acme}' AND sequence = 5)
                 WHERE tenant_id = '{acme}'"
        ))
        .await;
    let found = verdict(&nimbus, &owner, &acme).await;
    assert_eq!(
        (&found["intact"], &found["fault_sequence"]),
        (&json!(false), &json!(6)),
        "{found}"
    );
    // And still after the next checkpoint, which signs what was written and not what is there.
    nimbus.app.checkpoint_audit(jiff::Timestamp::now()).await;
    let found = verdict(&nimbus, &owner, &acme).await;
    assert_eq!(found["intact"], false, "{found}");
}

#[tokio::test]
async fn a_file_of_checkpoints_that_is_gone_or_cut_is_told() {
    let nimbus = installation!();
    let (owner, acme) = trail(&nimbus).await;
    nimbus.user(&owner, &acme, "late@acme.example", None).await;
    nimbus.app.checkpoint_audit(jiff::Timestamp::now()).await;
    let file = nimbus.checkpoints.join(format!("{acme}.jsonl"));
    let whole = std::fs::read_to_string(&file).unwrap();
    let (first, _) = whole.split_once('\n').unwrap();
    for left in [Some(format!("{first}\n")), Some(String::new()), None] {
        match &left {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let found = verdict(&nimbus, &owner, &acme).await;
        assert_eq!(found["intact"], false, "{left:?}: {found}");
        assert!(text(&found["fault"]).contains("checkpoint"), "{found}");
    }
    // Entries that no checkpoint witnesses are believed as long as they are new.
    nimbus
        .database
        .run_as_administrator("DELETE FROM nimbus_core.audit_checkpoints")
        .await;
    let found = verdict(&nimbus, &owner, &acme).await;
    assert_eq!(found["intact"], true, "they are new: {found}");
}

/// Somebody removed every checkpoint, or put a chain of their own in the place of the old one.
#[tokio::test]
async fn old_entries_without_any_checkpoint_are_not_believed() {
    let nimbus = installation!();
    let owner = nimbus.set_up().await;
    let now = jiff::Timestamp::now();
    for (slug, minutes, intact) in [("new", 1, true), ("old", 3, false)] {
        let new = NewTenant::new(nimbus.root, slug, slug);
        let store = &nimbus.database.store;
        let made: Result<_, StoreError> = store
            .registry_tx(nimbus.root, async |tx| tx.tenant_create(&new).await)
            .await;
        let tenant = made.unwrap().id;
        // By another process, which is gone.
        let stranger = Store::connect(nimbus.database.config.clone());
        let at = now - jiff::SignedDuration::from_mins(minutes);
        let record = AuditRecord::new(Actor::system(), "groups.create", "groups");
        let written: Result<_, StoreError> = stranger
            .tenant_tx(tenant, async |tx| {
                tx.audit_append(&SigningKey::generate(), at, record).await
            })
            .await;
        written.unwrap();
        let found = verdict(&nimbus, &owner, &tenant.to_string()).await;
        assert_eq!(found["intact"], intact, "{slug}: {found}");
        if !intact {
            assert!(text(&found["fault"]).contains("checkpoint"), "{found}");
        }
    }
}

#[tokio::test]
async fn a_checkpoint_that_was_written_in_part_is_repaired_and_every_other_server_has_the_whole() {
    let nimbus = installation!();
    let (owner, acme) = trail(&nimbus).await;
    let file = nimbus.checkpoints.join(format!("{acme}.jsonl"));
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{whole}{{\"tenant\":\"torn")).unwrap();
    assert_eq!(verdict(&nimbus, &owner, &acme).await["intact"], true);
    nimbus.user(&owner, &acme, "late@acme.example", None).await;
    nimbus.app.checkpoint_audit(jiff::Timestamp::now()).await;
    let found = verdict(&nimbus, &owner, &acme).await;
    assert_eq!(
        (&found["intact"], &found["checkpoints"]),
        (&json!(true), &json!(2)),
        "{found}"
    );
    assert!(!std::fs::read_to_string(&file).unwrap().contains("torn"));
    // Another server has no file of this tenant, and the same checkpoints.
    let other = nimbus.another_server("elsewhere").await;
    let path = format!("/api/v1/tenants/{acme}/audit/verify");
    let found = other.get(&path, &owner).await.ok();
    assert_eq!(
        (&found["intact"], &found["checkpoints"]),
        (&json!(true), &json!(2)),
        "{found}"
    );
}
