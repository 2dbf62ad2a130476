//! Stacks in the official layout: what is where, and what the official command line would see.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::support::*;
use nimbus_core::ErrorCode;
use nimbus_engine_backend::{
    Backend, BackendError, ImportOptions, Stack, StackRef, UpdateKind, UpdateResult,
};
use nimbus_engine_model::PropertyValue;
use serde_json::Value;

/// Every file below a folder, without times and ids in their names.
fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            found.push(masked(&name));
        }
    }
    found.sort();
    found
}

fn masked(name: &str) -> String {
    let long = |part: &str| part.len() > 15 && part.bytes().all(|b| b.is_ascii_digit());
    let uuid = |part: &str| part.len() == 36 && part.matches('-').count() == 4;
    let mut parts = Vec::new();
    for folder in name.split('/') {
        let dots: Vec<String> = folder
            .split('.')
            .map(|part| match part.rsplit_once('-') {
                _ if uuid(part) => "ID".to_owned(),
                _ if long(part) => "TIME".to_owned(),
                Some((stem, time)) if long(time) => format!("{stem}-TIME"),
                _ => part.to_owned(),
            })
            .collect();
        parts.push(dots.join("."));
    }
    parts.join("/")
}

#[tokio::test]
async fn an_update_leaves_the_official_files() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let session = begin(&stack).await;
    let during = files(folder.path());
    assert!(
        during.contains(&".pulumi/locks/organization/shop/dev/ID.json".to_owned()),
        "the official command line must be kept out: {during:?}"
    );
    let finished = session
        .finish(snapshot(&["a"]), &update(UpdateResult::Succeeded))
        .await
        .unwrap();
    assert_eq!(finished.findings, []);
    insta::assert_snapshot!(files(folder.path()).join("\n"), @r"
    .nimbus/leases/shop/dev.json
    .nimbus/leases/shop/dev.lock
    .nimbus/versions/shop/dev.json
    .pulumi/backups/shop/dev/dev.TIME.json
    .pulumi/history/shop/dev/dev-TIME.checkpoint.json
    .pulumi/history/shop/dev/dev-TIME.history.json
    .pulumi/meta.yaml
    .pulumi/stacks/shop/dev.json
    .pulumi/stacks/shop/dev.json.bak
    ");
    let meta = std::fs::read_to_string(folder.path().join(".pulumi/meta.yaml")).unwrap();
    assert_eq!(meta, "version: 1\n");
    let checkpoint: Value = serde_json::from_slice(
        &std::fs::read(folder.path().join(".pulumi/stacks/shop/dev.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(checkpoint["version"], 3);
    assert_eq!(checkpoint["checkpoint"]["stack"], "organization/shop/dev");
    assert_eq!(
        checkpoint["checkpoint"]["latest"]["resources"][0]["urn"],
        urn("a").as_str()
    );
}

#[tokio::test]
async fn history_is_written_as_the_official_one() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    deploy(&stack, &["a"]).await;
    let history = folder.path().join(".pulumi/history/shop/dev");
    let file = std::fs::read_dir(history)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with(".history.json"))
        .unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(
        text,
        r#"{"kind":"update","startTime":1,"message":"a test","environment":null,"config":{"shop:size":"small"},"version":0,"result":"succeeded","endTime":2,"resourceChanges":{"create":1}}"#
    );
}

/// Runs a scenario in a folder and in a bucket.
async fn everywhere(scenario: impl AsyncFn(Backend)) {
    let folder = tempfile::tempdir().unwrap();
    scenario(local(folder.path()).await).await;
    let (backend, _) = bucket(&ManualClock::new()).await;
    scenario(backend).await;
}

async fn current(stack: &Stack) -> Vec<String> {
    let loaded = stack.load(&keyring()).await.unwrap();
    loaded
        .snapshot
        .map(|snapshot| names(&snapshot))
        .unwrap_or_default()
}

#[tokio::test]
async fn stacks_are_created_listed_and_removed() {
    everywhere(async |backend| {
        assert_eq!(backend.stacks().await.unwrap(), []);
        let stack = created(&backend).await;
        let again = stack.create(owner()).await;
        assert!(matches!(again, Err(BackendError::Exists { .. })));
        let other = backend.stack(StackRef::new("net", "prod").unwrap());
        other.create(owner()).await.unwrap();
        let listed: Vec<_> = backend.stacks().await.unwrap();
        let listed: Vec<_> = listed.iter().map(ToString::to_string).collect();
        assert_eq!(listed, ["organization/net/prod", "organization/shop/dev"]);

        deploy(&stack, &["a"]).await;
        let refused = stack.remove(false, owner(), &keyring()).await;
        assert!(matches!(
            refused,
            Err(BackendError::NotEmpty { resources: 1, .. })
        ));
        assert_eq!(current(&stack).await, ["a"]);
        stack.remove(true, owner(), &keyring()).await.unwrap();
        assert!(!stack.exists().await.unwrap());
        assert_eq!(stack.history().await.unwrap(), []);
        let gone = stack.load(&keyring()).await.unwrap_err();
        assert_eq!(gone.code(), ErrorCode::STACK_NOT_FOUND);
    })
    .await;
}

#[tokio::test]
async fn versions_are_numbered_and_can_be_brought_back() {
    everywhere(async |backend| {
        let stack = created(&backend).await;
        deploy(&stack, &["a"]).await;
        deploy(&stack, &["a", "b"]).await;
        let history = stack.history().await.unwrap();
        let numbers: Vec<_> = history.iter().map(|version| version.number).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(history[0].update, update(UpdateResult::Succeeded));

        let bytes = stack.version_bytes(&history[0]).await.unwrap();
        let old = stack.export_version(&bytes).await.unwrap();
        let keys = keyring();
        let import = |options| stack.import(&old, options, owner(), &keys);
        let refused = import(ImportOptions::default()).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::STATE_OLDER);
        assert_eq!(current(&stack).await, ["a", "b"]);
        let forced = ImportOptions {
            accept_older: true,
            ..ImportOptions::default()
        };
        let imported = import(forced).await.unwrap();
        assert_eq!(imported.resources, 1);
        assert_eq!(current(&stack).await, ["a"]);
        let history = stack.history().await.unwrap();
        assert_eq!(history[2].update.kind, UpdateKind::Import);
    })
    .await;
}

/// F22: whichever of the last hundred versions is wanted, it comes back as it was.
#[tokio::test]
async fn any_of_the_last_hundred_versions_comes_back_as_it_was() {
    everywhere(async |backend| {
        let stack = created(&backend).await;
        let of = |number: usize| vec![format!("r{number}"), format!("s{}", number % 7)];
        for number in 1..=100 {
            let of = of(number);
            let of: Vec<&str> = of.iter().map(String::as_str).collect();
            deploy(&stack, &of).await;
        }
        let history = stack.history().await.unwrap();
        assert_eq!(history.len(), 100);
        let every = nimbus_test_tools::short_or_long(9, 1);
        let forced = ImportOptions {
            accept_older: true,
            ..ImportOptions::default()
        };
        for version in history.iter().rev().step_by(every) {
            let bytes = stack.version_bytes(version).await.unwrap();
            let old = stack.export_version(&bytes).await.unwrap();
            let keys = keyring();
            stack.import(&old, forced, owner(), &keys).await.unwrap();
            let number = version.number;
            assert_eq!(current(&stack).await, of(number), "version {number}");
        }
    })
    .await;
}

#[tokio::test]
async fn every_write_is_a_new_version_and_a_plan_for_another_is_refused() {
    everywhere(async |backend| {
        let stack = created(&backend).await;
        let first = stack.load(&keyring()).await.unwrap().version;
        deploy(&stack, &["a"]).await;
        let second = stack.load(&keyring()).await.unwrap().version;
        assert!(second.serial > first.serial && second.sha256 != first.sha256);
        let mut stale = request();
        stale.expected = Some(first);
        let refused = stack.begin(stale).await.err().unwrap();
        assert_eq!(refused.code(), ErrorCode::STATE_CHANGED);
        let mut fresh = request();
        fresh.expected = Some(second);
        stack.begin(fresh).await.unwrap().end().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_renamed_stack_keeps_history_tags_and_references() {
    everywhere(async |backend| {
        let stack = created(&backend).await;
        let mut state = snapshot(&["a", "b"]);
        let b = Arc::make_mut(&mut state.resources[1]);
        b.parent = Some(urn("a"));
        b.dependencies = vec![urn("a")];
        b.inputs.insert(
            "ref".into(),
            PropertyValue::ResourceReference(nimbus_engine_model::ResourceReference {
                urn: urn("a"),
                id: None,
                package_version: String::new(),
            }),
        );
        let session = begin(&stack).await;
        session
            .finish(state, &update(UpdateResult::Succeeded))
            .await
            .unwrap();
        let tags = BTreeMap::from([("team".to_owned(), "core".to_owned())]);
        stack.set_tags(&tags).await.unwrap();

        let new = StackRef::new("shop", "prod").unwrap();
        let renamed = stack.rename(&new, owner(), &keyring()).await.unwrap();
        assert!(!stack.exists().await.unwrap());
        assert_eq!(renamed.tags().await.unwrap(), tags);
        assert_eq!(renamed.history().await.unwrap().len(), 1);
        let snapshot = renamed.load(&keyring()).await.unwrap().snapshot.unwrap();
        let text = format!("{:?}", snapshot.resources);
        assert!(text.contains("urn:pulumi:prod::shop::test:index:Thing::b"));
        assert!(!text.contains("urn:pulumi:dev::"), "{text}");
        assert_eq!(backend.stacks().await.unwrap(), std::slice::from_ref(&new));
        let same = renamed.rename(&new, owner(), &keyring()).await;
        assert!(same.is_err(), "a stack cannot take its own name");
    })
    .await;
}

#[tokio::test]
async fn operations_can_be_spawned() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let task = tokio::spawn(async move {
        deploy(&stack, &["a"]).await;
        let exported = stack.export().await.unwrap();
        let options = ImportOptions::default();
        stack
            .import(&exported, options, owner(), &keyring())
            .await
            .unwrap();
        let new = StackRef::new("shop", "prod").unwrap();
        let stack = stack.rename(&new, owner(), &keyring()).await.unwrap();
        stack.remove(true, owner(), &keyring()).await.unwrap();
    });
    task.await.unwrap();
}

#[tokio::test]
async fn a_removed_stack_leaves_nothing_that_its_successor_stumbles_over() {
    everywhere(async |backend| {
        let stack = created(&backend).await;
        deploy(&stack, &["a"]).await;
        let session = begin(&stack).await;
        session.journal().append(begins(1, "b")).await.unwrap();
        session.end().await.unwrap();
        stack.remove(true, owner(), &keyring()).await.unwrap();
        created(&backend).await;
        let session = begin(&stack).await;
        assert_eq!(session.recovered(), []);
        assert_eq!(session.version().serial.get(), 1);
        session.end().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_backend_that_was_asked_for_goes_before_all_others() {
    use nimbus_engine_backend::{EnvironmentVariables, choose_address, project::Project};
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Pulumi.yaml");
    std::fs::write(&file, "name: shop\nbackend:\n  url: file://./state\n").unwrap();
    let project = Project::read(&file).unwrap();
    let set = EnvironmentVariables::fixed([("PULUMI_BACKEND_URL", "s3://from-environment")]);
    let unset = EnvironmentVariables::fixed([]);
    let chosen = |asked, project, environment| {
        choose_address(asked, project, Path::new("/here"), environment).map(|a| a.to_string())
    };
    assert_eq!(
        chosen(Some("state"), Some(&project), &set).unwrap(),
        "file:///here/state"
    );
    assert_eq!(
        chosen(None, Some(&project), &set).unwrap(),
        "s3://from-environment"
    );
    let beside = format!("file://{}/state", folder.path().display());
    assert_eq!(chosen(None, Some(&project), &unset).unwrap(), beside);
    let nowhere = chosen(None, None, &unset).unwrap_err();
    assert_eq!(nowhere.code(), ErrorCode::BACKEND_ADDRESS);
}

#[tokio::test]
async fn tags_are_a_file_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    assert!(stack.tags().await.unwrap().is_empty());
    let tags = BTreeMap::from([("pulumi:project".to_owned(), "shop".to_owned())]);
    stack.set_tags(&tags).await.unwrap();
    let file = folder.path().join(".pulumi/stacks/shop/dev.pulumi-tags");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, r#"{"version":1,"tags":{"pulumi:project":"shop"}}"#);
    stack.set_tags(&BTreeMap::new()).await.unwrap();
    assert!(!file.exists());
    std::fs::write(&file, r#"{"version":2,"tags":{}}"#).unwrap();
    assert_eq!(
        stack.tags().await.unwrap_err().code(),
        ErrorCode::BACKEND_LAYOUT
    );
}

#[tokio::test]
async fn other_layouts_are_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let stacks = folder.path().join(".pulumi/stacks");
    std::fs::create_dir_all(&stacks).unwrap();
    let open = async || {
        let address = nimbus_engine_backend::store::StorageAddress::Local(folder.path().to_owned());
        let environment = nimbus_engine_backend::EnvironmentVariables::fixed([]);
        Backend::open(&address, &environment, Default::default()).await
    };
    open().await.unwrap();
    std::fs::write(stacks.join("dev.json"), "{}").unwrap();
    let error: nimbus_core::Error = open().await.unwrap_err().into();
    assert_eq!(error.code(), ErrorCode::BACKEND_LAYOUT);
    assert!(error.help().unwrap().contains("pulumi state upgrade"));
    let meta = folder.path().join(".pulumi/meta.yaml");
    std::fs::write(&meta, "version: 1\n").unwrap();
    open().await.unwrap();
    for wrong in ["version: 7\n", "nothing: here\n", "\0", ": : :"] {
        std::fs::write(&meta, wrong).unwrap();
        let error = open().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::BACKEND_LAYOUT, "{wrong:?}");
    }
}

#[tokio::test]
async fn a_packed_state_is_read_and_stays_packed() {
    use std::io::{Read as _, Write as _};
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    deploy(&stack, &["a"]).await;
    let plain = folder.path().join(".pulumi/stacks/shop/dev.json");
    let packed = folder.path().join(".pulumi/stacks/shop/dev.json.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(&std::fs::read(&plain).unwrap()).unwrap();
    std::fs::write(&packed, encoder.finish().unwrap()).unwrap();
    std::fs::remove_file(&plain).unwrap();
    assert_eq!(current(&stack).await, ["a"]);
    deploy(&stack, &["a", "b"]).await;
    assert!(!plain.exists());
    let mut text = String::new();
    let file = std::fs::File::open(&packed).unwrap();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap();
    assert!(text.contains("::b"));
    assert_eq!(current(&stack).await, ["a", "b"]);

    // `{"version":3,"checkpoint":{"stack":"organization/shop/dev"}}` as Zstandard wrote it.
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x3c, 0xe1, 0x01, 0x00];
    let body = br#"{"version":3,"checkpoint":{"stack":"organization/shop/dev"}}"#;
    assert_eq!(body.len(), 0x3c);
    let newer = folder.path().join(".pulumi/stacks/shop/dev.json.zst");
    std::fs::write(&newer, [&zstd[..], body].concat()).unwrap();
    assert_eq!(current(&stack).await, [""; 0], "the newest file counts");
    deploy(&stack, &["c"]).await;
    assert!(plain.exists() && !newer.exists());
    assert_eq!(current(&stack).await, ["c"]);
}

#[tokio::test]
async fn an_old_state_that_somebody_put_back_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    deploy(&stack, &["a"]).await;
    let file = folder.path().join(".pulumi/stacks/shop/dev.json");
    let old = std::fs::read(&file).unwrap();
    deploy(&stack, &["a", "b"]).await;
    assert_eq!(stack.load(&keyring()).await.unwrap().put_back_from, None);
    std::fs::write(&file, old).unwrap();
    let loaded = stack.load(&keyring()).await.unwrap();
    assert_eq!(loaded.put_back_from.map(|serial| serial.get()), Some(2));
    assert_eq!(
        loaded.version.serial.get(),
        4,
        "what is newest has the highest number"
    );
}

#[tokio::test]
async fn a_state_that_changes_under_a_session_is_not_overwritten() {
    let clock = ManualClock::new();
    let (backend, storage) = bucket(&clock).await;
    let stack = created(&backend).await;
    let session = begin(&stack).await;
    let key = ".pulumi/stacks/shop/dev.json";
    let foreign = br#"{"version":3,"checkpoint":{"stack":"organization/shop/dev","extra":1}}"#;
    let put = |bytes: &'static [u8]| {
        storage.put(
            key,
            bytes.into(),
            nimbus_engine_backend::store::WriteCondition::Anything,
        )
    };
    put(foreign).await.unwrap();
    let error = session
        .finish(snapshot(&["a"]), &update(UpdateResult::Succeeded))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::STATE_CHANGED);
    assert_eq!(storage.get(key).await.unwrap().unwrap().bytes, &foreign[..]);
}

#[tokio::test]
async fn a_nearly_full_disk_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    created(&local(folder.path()).await).await;
    let mut options = options(Arc::new(nimbus_engine_backend::SystemLeaseClock::default()));
    options.free_bytes = u64::MAX;
    let address = nimbus_engine_backend::store::StorageAddress::Local(folder.path().to_owned());
    let environment = nimbus_engine_backend::EnvironmentVariables::fixed([]);
    let backend = Backend::open(&address, &environment, options)
        .await
        .unwrap();
    let refused = backend
        .stack(shop_dev())
        .begin(request())
        .await
        .err()
        .unwrap();
    assert_eq!(refused.code(), ErrorCode::BACKEND_FULL);
}
