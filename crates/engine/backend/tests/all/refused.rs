//! States that must not be worked on: refused with the cause, and what was there stays.

use nimbus_core::ErrorCode;
use nimbus_engine_backend::{ImportOptions, UpdateResult};
use serde_json::{Value, json};

use crate::support::*;

fn export(resources: Value) -> Value {
    let version = "v3.0.0";
    json!({
        "version": 3,
        "deployment": {
            "manifest": {
                "time": "2099-01-01T00:00:00Z",
                "magic": nimbus_engine_model::SnapshotManifest::magic_of(version),
                "version": version,
            },
            "resources": resources,
        }
    })
}

fn thing(name: &str) -> Value {
    json!({"urn": urn(name).as_str(), "custom": false, "type": "test:index:Thing"})
}

fn with(mut resource: Value, field: &str, value: Value) -> Value {
    resource[field] = value;
    resource
}

/// What is wrong, and what is said about it.
fn corrupt() -> Vec<(&'static str, Vec<u8>, ErrorCode)> {
    let good = export(json!([thing("a")])).to_string();
    let bytes = |value: Value| value.to_string().into_bytes();
    let unreadable = ErrorCode::STATE_UNREADABLE;
    let broken = ErrorCode::STATE_BROKEN;
    let missing_provider = format!("{}::id", urn("nobody"));
    let mut unknown_version = export(json!([]));
    unknown_version["version"] = json!(99);
    let mut unknown_feature = export(json!([]));
    unknown_feature["version"] = json!(4);
    unknown_feature["features"] = json!(["telepathy"]);
    let mut nul = good.clone().into_bytes();
    nul[40] = 0;
    let custom = with(thing("a"), "custom", json!(true));
    let foreign =
        json!({"urn": "urn:pulumi:prod::shop::t:i:T::x", "custom": false, "type": "t:i:T"});
    vec![
        ("empty", Vec::new(), unreadable),
        (
            "truncated",
            good.as_bytes()[..good.len() - 20].to_vec(),
            unreadable,
        ),
        ("not JSON", b"resources: []".to_vec(), unreadable),
        ("NUL", nul, unreadable),
        ("another thing", b"{\"hello\":1}".to_vec(), unreadable),
        ("unknown version", bytes(unknown_version), unreadable),
        ("unknown feature", bytes(unknown_feature), unreadable),
        (
            "duplicate URN",
            bytes(export(json!([thing("a"), thing("a")]))),
            broken,
        ),
        (
            "dependency after dependant",
            bytes(export(json!([
                with(thing("a"), "dependencies", json!([urn("b").as_str()])),
                thing("b"),
            ]))),
            broken,
        ),
        (
            "missing parent",
            bytes(export(json!([with(
                thing("a"),
                "parent",
                json!(urn("b").as_str())
            )]))),
            broken,
        ),
        (
            "missing provider",
            bytes(export(json!([with(
                custom,
                "provider",
                json!(missing_provider)
            )]))),
            broken,
        ),
        (
            "another stack",
            bytes(export(json!([foreign]))),
            ErrorCode::STATE_OTHER_STACK,
        ),
    ]
}

#[tokio::test]
async fn a_bad_import_is_refused_and_the_state_stays() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    deploy(&stack, &["a"]).await;
    let file = folder.path().join(".pulumi/stacks/shop/dev.json");
    let before = std::fs::read(&file).unwrap();
    for (what, bytes, code) in corrupt() {
        let refused = stack
            .import(&bytes, ImportOptions::default(), owner(), &keyring())
            .await
            .expect_err(what);
        assert_eq!(refused.code(), code, "{what}: {refused}");
        let shown = nimbus_core::Error::from(refused);
        assert!(shown.message().len() > 20, "{what}: {}", shown.message());
        assert_eq!(std::fs::read(&file).unwrap(), before, "{what}");
    }
    assert_eq!(stack.history().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_state_that_the_official_command_line_could_not_read_is_a_defect_and_the_last_one_stays()
{
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    deploy(&stack, &["a"]).await;
    let file = folder.path().join(".pulumi/stacks/shop/dev.json");
    let kept = folder.path().join(".pulumi/stacks/shop/dev.json.bak");
    let both = || [&file, &kept].map(|file| std::fs::read(file).ok());
    let before = both();
    let history = stack.history().await.unwrap();
    let mut broken = snapshot(&["a", "b"]);
    for resource in &mut broken.resources {
        let resource = std::sync::Arc::make_mut(resource);
        resource.extra.insert("snippetID".to_owned(), json!(5));
    }
    let session = begin(&stack).await;
    let refused = session
        .finish(broken, &update(UpdateResult::Succeeded))
        .await
        .expect_err("its fields have the wrong kind");
    assert_eq!(refused.code(), ErrorCode::STATE_DEFECT);
    let shown = nimbus_core::Error::from(refused);
    assert!(
        shown.message().contains("resources[0].snippetID"),
        "{}",
        shown.message()
    );
    assert_eq!(both(), before, "neither the state nor the one before it");
    assert_eq!(stack.history().await.unwrap().len(), history.len());
}

#[tokio::test]
async fn a_state_that_was_damaged_in_place_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let file = folder.path().join(".pulumi/stacks/shop/dev.json");
    for (what, bytes, code) in corrupt() {
        // The same mistakes in the backend's own form.
        let bytes = match serde_json::from_slice::<Value>(&bytes) {
            Ok(mut value) if value.get("deployment").is_some() => {
                let latest = value["deployment"].take();
                let map = value.as_object_mut().unwrap();
                map.remove("deployment");
                let checkpoint = json!({"stack": "organization/shop/dev", "latest": latest});
                map.insert("checkpoint".into(), checkpoint);
                value.to_string().into_bytes()
            }
            _ => bytes,
        };
        std::fs::write(&file, &bytes).unwrap();
        let refused = stack.begin(request()).await.err().expect(what);
        assert_eq!(refused.code(), code, "{what}: {refused}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "{what}");
        assert_eq!(
            stack.holder().await.unwrap(),
            None,
            "{what}: the lease was kept"
        );
        if code == ErrorCode::STATE_BROKEN {
            let unverified = stack.load_unverified().await.unwrap();
            assert!(
                !unverified.findings.is_empty(),
                "a broken state can be looked at"
            );
            assert!(!stack.export().await.unwrap().is_empty(), "and exported");
        }
    }
}

#[tokio::test]
async fn another_stacks_file_in_the_place_of_ours_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let file = folder.path().join(".pulumi/stacks/shop/dev.json");
    let foreign = json!({"version": 3, "checkpoint": {"stack": "organization/shop/prod"}});
    std::fs::write(&file, foreign.to_string()).unwrap();
    let refused = stack.load(&keyring()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::STATE_OTHER_STACK);
}

#[tokio::test]
async fn a_person_can_overrule_each_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    deploy(&stack, &["a"]).await;
    let twice = export(json!([thing("a"), thing("a")])).to_string();
    let options = ImportOptions {
        accept_broken: true,
        ..ImportOptions::default()
    };
    let imported = stack
        .import(twice.as_bytes(), options, owner(), &keyring())
        .await
        .unwrap();
    assert_eq!((imported.resources, imported.findings.len()), (2, 1));
    let refused = stack.load(&keyring()).await.unwrap_err();
    assert_eq!(
        refused.code(),
        ErrorCode::STATE_BROKEN,
        "it is kept, not worked on"
    );
    // A good state is not refused on account of a bad current one.
    let good = export(json!([thing("b")])).to_string();
    let again = ImportOptions::default();
    stack
        .import(good.as_bytes(), again, owner(), &keyring())
        .await
        .unwrap();
    let snapshot = stack.load(&keyring()).await.unwrap().snapshot.unwrap();
    assert_eq!(names(&snapshot), ["b"]);
}

#[tokio::test]
async fn secrets_of_an_import_stay_closed_and_open_ones_are_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let secret = |field: &str, value: &str| {
        let (sign, kind) = (
            "4dabf18193072939515e22adb298388d",
            "1b47061264138c4ac30d75fd1eb44270",
        );
        json!({sign: kind, field: value})
    };
    let mut file = export(json!([with(
        thing("a"),
        "outputs",
        json!({"closed": secret("ciphertext", "ImtlcHQi"), "open": secret("plaintext", "\"hi\"")}),
    )]));
    file["deployment"]["secrets_providers"] = json!({"type": "b64", "state": null});
    let bytes = file.to_string().into_bytes();
    stack
        .import(&bytes, ImportOptions::default(), owner(), &keyring())
        .await
        .unwrap();
    let stored = std::fs::read(folder.path().join(".pulumi/stacks/shop/dev.json")).unwrap();
    let stored: Value = serde_json::from_slice(&stored).unwrap();
    let outputs = &stored["checkpoint"]["latest"]["resources"][0]["outputs"];
    assert_eq!(outputs["closed"]["ciphertext"], "ImtlcHQi");
    assert_eq!(outputs["open"]["ciphertext"], "ImhpIg==");
    assert_eq!(outputs["open"].get("plaintext"), None);
}

#[tokio::test]
async fn a_large_state_is_no_problem() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let all: Vec<String> = (0..30_000).map(|n| format!("resource-{n}")).collect();
    deploy(&stack, &all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let loaded = stack.load(&keyring()).await.unwrap();
    assert_eq!(loaded.snapshot.unwrap().resources.len(), 30_000);
}
