//! The audit trail after its older part has moved to object storage.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use nimbus_control_app::{AppSettings, ArchiveAddress};
use nimbus_test_tools::{AwsServer, Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::support::{Installation, text};

fn into_folder(settings: &mut AppSettings, folder: &Path) {
    settings.audit_retention = SignedDuration::ZERO;
    settings.archive = Some(ArchiveAddress {
        url: format!("file://{}/archive", folder.display()),
        s3_endpoint: None,
        s3_access_key: None,
        s3_secret_key: None,
    });
}

/// The first entries of a tenant are in the archive, in two parts, and the last ones in the database.
async fn archived(nimbus: &Installation) -> (String, String) {
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    for round in 0..3 {
        for number in 0..4 {
            let email = format!("user{round}-{number}@acme.example");
            nimbus.user(&owner, &acme, &email, None).await;
        }
        if round < 2 {
            // Everything so far is older than now, in whatever order the two clocks are read.
            let later = Timestamp::now() + SignedDuration::from_secs(60);
            assert!(nimbus.app.archive_audit(later).await.unwrap() >= 4);
        }
    }
    nimbus.app.checkpoint_audit(Timestamp::now()).await;
    (owner, acme)
}

fn parts(nimbus: &Installation, tenant: &str) -> Vec<PathBuf> {
    let folder = nimbus.folder.path().join("archive").join(tenant);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

async fn verdict(nimbus: &Installation, owner: &str, tenant: &str) -> Value {
    let path = format!("/api/v1/tenants/{tenant}/audit/verify");
    nimbus.get(&path, owner).await.ok()
}

#[tokio::test]
async fn an_archived_trail_is_verified_from_its_first_entry_and_exported_whole() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let nimbus = Installation::with(&postgres, into_folder).await;
    let (owner, acme) = archived(&nimbus).await;
    assert_eq!(parts(&nimbus, &acme).len(), 2);
    let judged = verdict(&nimbus, &owner, &acme).await;
    assert_eq!(judged["intact"], true, "{judged}");
    // Twelve users and a record of each archiving; the second took the first one's record along.
    assert_eq!(judged["entries"], 14);
    assert_eq!(judged["archived"], 9);
    assert!(judged["checkpoints"].as_u64().unwrap() >= 3, "{judged}");

    let base = format!("/api/v1/tenants/{acme}/audit");
    let listed = nimbus.get(&base, &owner).await.ok();
    assert_eq!(
        listed["items"][0]["sequence"], 10,
        "the table begins after the archive"
    );
    let export = nimbus
        .get(&format!("{base}/export?action=users.create"), &owner)
        .await;
    let sequences: Vec<u64> = export
        .text
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["sequence"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(sequences.len(), 12, "archived ones too: {}", export.text);
    assert!(sequences.is_sorted());
    let csv = nimbus
        .get(
            &format!("{base}/export?format=csv&action=users.create"),
            &owner,
        )
        .await;
    assert_eq!(csv.text.lines().count(), 13);
}

#[tokio::test]
async fn whatever_is_done_to_the_archive_is_named() {
    type Damage = fn(&[PathBuf]);
    let damages: [(&str, Damage, u64); 6] = [
        (
            "an edit",
            |parts| {
                edit(&parts[0], |lines| {
                    lines[2] = lines[2].replace("user0-2", "user9-9");
                });
            },
            3,
        ),
        (
            "a line that is no entry",
            |parts| edit(&parts[1], |lines| lines[0] = "{}".to_owned()),
            5,
        ),
        (
            "a deletion",
            |parts| edit(&parts[0], |lines| drop(lines.remove(1))),
            2,
        ),
        (
            "a change of order",
            |parts| edit(&parts[0], |lines| lines.swap(1, 2)),
            2,
        ),
        (
            "a part that is cut off",
            |parts| edit(&parts[1], |lines| lines.truncate(2)),
            7,
        ),
        (
            "a part that is gone",
            |parts| std::fs::remove_file(&parts[0]).unwrap(),
            1,
        ),
    ];
    let postgres = tool_or_skip!(Tool::Postgres);
    let nimbus = Installation::with(&postgres, into_folder).await;
    let (owner, acme) = archived(&nimbus).await;
    let parts = parts(&nimbus, &acme);
    let whole: Vec<_> = parts
        .iter()
        .map(|part| std::fs::read(part).unwrap())
        .collect();
    for (what, damage, entry) in damages {
        damage(&parts);
        let judged = verdict(&nimbus, &owner, &acme).await;
        assert_eq!(judged["intact"], false, "{what}");
        assert_eq!(judged["fault_sequence"], entry, "{what}: {judged}");
        for (part, bytes) in parts.iter().zip(&whole) {
            std::fs::write(part, bytes).unwrap();
        }
        assert_eq!(verdict(&nimbus, &owner, &acme).await["intact"], true);
    }
}

fn edit(part: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let mut lines: Vec<String> = std::fs::read_to_string(part)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    change(&mut lines);
    std::fs::write(part, lines.join("\n") + "\n").unwrap();
}

#[tokio::test]
async fn nothing_leaves_the_database_before_its_time_or_without_a_place_to_go() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let nimbus = Installation::with(&postgres, |settings, folder| {
        into_folder(settings, folder);
        settings.audit_retention = SignedDuration::from_hours(24 * 365);
    })
    .await;
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    nimbus.user(&owner, &acme, "jane@acme.example", None).await;
    assert_eq!(nimbus.app.archive_audit(Timestamp::now()).await.unwrap(), 0);
    let next_month = Timestamp::now() + SignedDuration::from_hours(24 * 31);
    assert_eq!(nimbus.app.archive_audit(next_month).await.unwrap(), 0);
    // A tenant may keep less.
    let path = format!("/api/v1/tenants/{acme}");
    let settings = json!({"settings": {"audit_retention_days": 30}});
    nimbus
        .call("PATCH", &path, Some(&owner), Some(settings))
        .await
        .ok();
    assert_eq!(nimbus.app.archive_audit(next_month).await.unwrap(), 2);
    // Records of archiving alone are not archived, or it would never end.
    let later = next_month + SignedDuration::from_hours(24 * 31);
    assert_eq!(nimbus.app.archive_audit(later).await.unwrap(), 0);
    assert_eq!(verdict(&nimbus, &owner, &acme).await["intact"], true);
}

#[tokio::test]
async fn a_trail_that_was_changed_is_not_archived() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let nimbus = Installation::with(&postgres, into_folder).await;
    let owner = nimbus.set_up().await;
    let acme = nimbus.tenant(&owner, "acme").await;
    for number in 0..3 {
        let email = format!("user{number}@acme.example");
        nimbus.user(&owner, &acme, &email, None).await;
    }
    nimbus.database.run_as_administrator(&format!(
        "UPDATE nimbus_core.audit_logs SET user_id = 'x' WHERE sequence = 2 AND tenant_id = '{acme}'"
    )).await;
    let later = Timestamp::now() + SignedDuration::from_secs(60);
    nimbus.app.archive_audit(later).await.unwrap();
    assert!(!nimbus.folder.path().join("archive").join(&acme).exists());
    let judged = verdict(&nimbus, &owner, &acme).await;
    assert_eq!(
        judged["fault_sequence"], 2,
        "the evidence is still there: {judged}"
    );
}

#[tokio::test]
async fn a_tenant_that_is_gone_for_good_leaves_nothing_in_the_archive() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let nimbus = Installation::with(&postgres, |settings, folder| {
        into_folder(settings, folder);
        settings.tenant_grace = std::time::Duration::ZERO;
    })
    .await;
    let (owner, acme) = archived(&nimbus).await;
    let checkpoints = nimbus.checkpoints.join(format!("{acme}.jsonl"));
    assert!(checkpoints.exists() && !parts(&nimbus, &acme).is_empty());
    let path = format!("/api/v1/tenants/{acme}");
    nimbus.call("DELETE", &path, Some(&owner), None).await.ok();
    assert_eq!(nimbus.app.purge_tenants().await.unwrap(), 1);
    assert!(!checkpoints.exists() && parts(&nimbus, &acme).is_empty());
    assert!(
        !nimbus
            .database
            .dump()
            .await
            .contains("user0-0@acme.example")
    );
    let judged = verdict(&nimbus, &owner, &nimbus.root.to_string()).await;
    assert_eq!(judged["intact"], true, "{judged}");
}

/// A server for S3, ended with the test.
#[tokio::test]
async fn a_bucket_is_as_good_an_archive_as_a_folder() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let bucket = AwsServer::start(&tool_or_skip!(Tool::S3Server));
    bucket.make_bucket("audit");
    let nimbus = Installation::with(&postgres, |settings, _| {
        settings.audit_retention = SignedDuration::ZERO;
        settings.archive = Some(ArchiveAddress {
            url: "s3://audit/nimbus/trail".to_owned(),
            s3_endpoint: Some(bucket.address()),
            s3_access_key: Some("key".to_owned().into()),
            s3_secret_key: Some("secret".to_owned().into()),
        });
    })
    .await;
    let (owner, acme) = archived(&nimbus).await;
    let judged = verdict(&nimbus, &owner, &acme).await;
    assert_eq!(
        (&judged["intact"], &judged["archived"]),
        (&json!(true), &json!(9)),
        "{judged}"
    );
    // An archive that does not answer is said, and is not taken for a trail that is intact.
    drop(bucket);
    let path = format!("/api/v1/tenants/{acme}/audit/verify");
    let refused = nimbus.get(&path, &owner).await;
    assert_eq!(
        refused.status,
        axum::http::StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        refused.text
    );
    assert_eq!(text(&refused.json()["error"]["reference"]).len(), 8);
}
