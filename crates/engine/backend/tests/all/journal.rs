//! Journals: durable when acknowledged, understood after any crash. Real deaths of processes are in `crashes`.

use std::path::Path;
use std::sync::Arc;

use nimbus_core::ErrorCode;
use nimbus_engine_backend::{
    Backend, EnvironmentVariables, ImportOptions, JournalOutcome, KeyServices, Keyring, Stack,
    UpdateKind, UpdateResult,
};
use nimbus_engine_model::{JournalEntry, PropertyValue, Snapshot};

use crate::support::*;

const FILE: &str = ".nimbus/journal/shop/dev.jsonl";

pub(crate) async fn state(stack: &Stack) -> Snapshot {
    stack.load(&keyring()).await.unwrap().snapshot.unwrap()
}

/// Leaves a journal behind: `a` was made, `b` was begun.
pub(crate) async fn interrupted(backend: &Backend) -> Stack {
    let stack = created(backend).await;
    deploy(&stack, &["base"]).await;
    let session = begin(&stack).await;
    let journal = session.journal();
    for entry in [begins(1, "a"), succeeds(1, "a"), begins(2, "b")] {
        journal.append(entry).await.unwrap();
    }
    let unknown = JournalEntry::Unknown {
        act: nimbus_engine_model::ActId(2),
        message: "the provider died".into(),
    };
    journal.append(unknown).await.unwrap();
    session.end().await.unwrap();
    stack
}

#[tokio::test]
async fn a_step_costs_as_much_to_record_whatever_the_size_of_the_state() {
    let mut grown = Vec::new();
    for size in [1, 3_000] {
        let folder = tempfile::tempdir().unwrap();
        let stack = created(&local(folder.path()).await).await;
        let names: Vec<String> = (0..size).map(|number| format!("r{number}")).collect();
        deploy(
            &stack,
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        )
        .await;
        let session = begin(&stack).await;
        let length = || std::fs::metadata(folder.path().join(FILE)).unwrap().len();
        // The first step brings the file, with a line about the operation.
        session.journal().append(begins(1, "a")).await.unwrap();
        let before = length();
        session.journal().append(succeeds(1, "a")).await.unwrap();
        session.journal().append(begins(2, "b")).await.unwrap();
        grown.push(length() - before);
        session.end().await.unwrap();
    }
    assert!(grown[0] > 0 && grown[0] == grown[1], "{grown:?}");
}

#[tokio::test]
async fn the_next_session_knows_what_is_known_and_what_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (in_bucket, _) = bucket(&ManualClock::new()).await;
    for backend in [local(folder.path()).await, in_bucket] {
        let stack = interrupted(&backend).await;
        let looked = stack.interrupted().await.unwrap().unwrap();
        assert_eq!(looked.journal, JournalOutcome::Waiting);
        assert_eq!(
            state(&stack).await.resources.len(),
            1,
            "looking changes nothing"
        );

        let session = begin(&stack).await;
        let [report] = session.recovered() else {
            panic!("one journal was left")
        };
        assert_eq!(report.operation, UpdateKind::Update);
        assert_eq!(report.owner.command, "a test");
        assert_eq!(report.known.len(), 1);
        assert_eq!(report.known[0].urn, Some(urn("a")));
        assert_eq!(report.unknown.len(), 1);
        assert_eq!(report.unknown[0].urn, urn("b"));
        assert_eq!(
            report.unknown[0].message.as_deref(),
            Some("the provider died")
        );
        assert_eq!(
            (report.known.len(), report.unknown.len()),
            (looked.known.len(), looked.unknown.len())
        );
        assert!(
            matches!(report.journal, JournalOutcome::Compacted { version, .. } if version == session.version())
        );
        let snapshot = session.snapshot().unwrap();
        assert_eq!(names(snapshot), ["a", "base"]);
        assert_eq!(pending(snapshot), ["b"]);
        session.end().await.unwrap();
        assert!(stack.interrupted().await.unwrap().is_none());
        let history = stack.history().await.unwrap();
        assert_eq!(history.last().unwrap().update.result, UpdateResult::Failed);
        begin(&stack).await.end().await.unwrap();
    }
}

#[tokio::test]
async fn a_finished_operation_leaves_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let session = begin(&stack).await;
    session.journal().append(begins(1, "a")).await.unwrap();
    session.journal().append(succeeds(1, "a")).await.unwrap();
    assert!(folder.path().join(FILE).exists());
    let update = update(UpdateResult::Succeeded);
    session.finish(snapshot(&["a"]), &update).await.unwrap();
    assert!(!folder.path().join(FILE).exists());

    let (backend, storage) = bucket(&ManualClock::new()).await;
    let stack = created(&backend).await;
    let session = begin(&stack).await;
    session.journal().append(begins(1, "a")).await.unwrap();
    session.finish(snapshot(&["a"]), &update).await.unwrap();
    assert_eq!(storage.list(".nimbus/journal").await.unwrap(), []);
}

#[tokio::test]
async fn entries_handed_in_together_are_one_write() {
    let (backend, storage) = bucket(&ManualClock::new()).await;
    let stack = created(&backend).await;
    let session = begin(&stack).await;
    let entries: Vec<_> = (1..=50)
        .map(|act| begins(act, &format!("r{act}")))
        .collect();
    session.journal().append_all(entries).await.unwrap();
    assert_eq!(storage.list(".nimbus/journal").await.unwrap().len(), 1);
    session.end().await.unwrap();
    assert_eq!(begin(&stack).await.recovered()[0].unknown.len(), 50);
}

#[tokio::test]
async fn an_append_costs_the_same_whatever_the_size_of_the_state() {
    let mut sizes = Vec::new();
    for count in [1, 2000] {
        let folder = tempfile::tempdir().unwrap();
        let stack = created(&local(folder.path()).await).await;
        let all: Vec<String> = (0..count).map(|n| format!("r{n}")).collect();
        deploy(&stack, &all.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let session = begin(&stack).await;
        let length = || std::fs::metadata(folder.path().join(FILE)).unwrap().len();
        session.journal().append(begins(1, "a")).await.unwrap();
        let first = length();
        session.journal().append(succeeds(1, "a")).await.unwrap();
        sizes.push(length() - first);
        session.end().await.unwrap();
    }
    assert_eq!(sizes[0], sizes[1], "bytes written per append");
}

#[tokio::test]
async fn every_prefix_of_a_journal_is_recovered_and_its_torn_end_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    interrupted(&local(folder.path()).await).await;
    let journal = std::fs::read(folder.path().join(FILE)).unwrap();
    let ends: Vec<usize> = (0..journal.len())
        .filter(|at| journal[*at] == b'\n')
        .collect();
    let near_ends = ends
        .iter()
        .flat_map(|end| end.saturating_sub(1)..=(end + 2).min(journal.len()));
    let spread = (0..journal.len()).step_by(97);
    for length in near_ends.chain(spread) {
        let copy = tempfile::tempdir().unwrap();
        copy_tree(folder.path(), copy.path());
        std::fs::write(copy.path().join(FILE), &journal[..length]).unwrap();
        let stack = local(copy.path()).await.stack(shop_dev());
        let session = begin(&stack).await;
        let snapshot = session.snapshot().unwrap();
        let whole = ends.iter().filter(|end| **end < length).count();
        let expected: (&[&str], &[&str]) = match whole {
            0 | 1 => (&["base"], &[]),
            2 => (&["base"], &["a"]),
            3 => (&["a", "base"], &[]),
            _ => (&["a", "base"], &["b"]),
        };
        assert_eq!(names(snapshot), expected.0, "{length} bytes");
        assert_eq!(pending(snapshot), expected.1, "{length} bytes");
        let is_torn = length > 0 && journal[length - 1] != b'\n';
        if whole >= 2 {
            let torn = session.recovered()[0].torn.as_ref();
            assert_eq!(torn.is_some(), is_torn, "{length} bytes");
            if let Some(torn) = torn {
                let evidence = copy.path().join(torn.evidence.as_ref().unwrap());
                let kept = std::fs::read(evidence).unwrap();
                assert!(journal[..length].ends_with(&kept) && kept.len() == torn.bytes);
            }
        }
        session.end().await.unwrap();
        assert!(!copy.path().join(FILE).exists());
    }
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn a_journal_is_not_applied_to_another_state() {
    let folder = tempfile::tempdir().unwrap();
    let stack = interrupted(&local(folder.path()).await).await;
    let file = folder.path().join(".pulumi/stacks/shop/dev.json");
    // The official command line wrote something meanwhile.
    let foreign = std::fs::read_to_string(&file)
        .unwrap()
        .replace("base", "other");
    std::fs::write(&file, &foreign).unwrap();
    let error = stack.begin(request()).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::JOURNAL_BASE);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), foreign);
    assert!(
        folder.path().join(FILE).exists(),
        "the journal stays as evidence"
    );
    assert_eq!(stack.holder().await.unwrap(), None);
    let aside = stack.set_journal_aside(owner()).await.unwrap().unwrap();
    assert!(folder.path().join(aside).exists());
    begin(&stack).await.end().await.unwrap();
}

#[tokio::test]
async fn a_crash_after_the_checkpoint_is_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let stack = interrupted(&local(folder.path()).await).await;
    let session = begin(&stack).await;
    let JournalOutcome::Compacted { evidence, version } = session.recovered()[0].journal.clone()
    else {
        panic!("{:?}", session.recovered())
    };
    session.end().await.unwrap();
    // As if the process had died before it put the journal away.
    std::fs::rename(folder.path().join(evidence), folder.path().join(FILE)).unwrap();
    let updates = stack.history().await.unwrap().len();
    let session = begin(&stack).await;
    let report = &session.recovered()[0];
    assert!(
        matches!(report.journal, JournalOutcome::WasCompacted { .. }),
        "{report:?}"
    );
    assert_eq!(session.version(), version, "nothing is applied twice");
    assert_eq!((report.known.len(), report.unknown.len()), (1, 1));
    session.end().await.unwrap();
    assert_eq!(
        stack.history().await.unwrap().len(),
        updates,
        "nor recorded twice"
    );
}

#[tokio::test]
async fn damage_in_the_middle_stops_everything_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stack = interrupted(&local(folder.path()).await).await;
    let journal = folder.path().join(FILE);
    let state = folder.path().join(".pulumi/stacks/shop/dev.json");
    let mut bytes = std::fs::read(&journal).unwrap();
    let second_line = bytes.iter().position(|b| *b == b'\n').unwrap() + 60;
    bytes[second_line] ^= 0x20;
    std::fs::write(&journal, &bytes).unwrap();
    let before = std::fs::read(&state).unwrap();
    let error = stack.begin(request()).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::JOURNAL_DAMAGED);
    assert_eq!(std::fs::read(&journal).unwrap(), bytes);
    assert_eq!(std::fs::read(&state).unwrap(), before);
    stack.set_journal_aside(owner()).await.unwrap().unwrap();
    begin(&stack).await.end().await.unwrap();
}

#[tokio::test]
async fn a_journal_that_no_operation_could_settle_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let stack = interrupted(&local(folder.path()).await).await;
    stack.try_journal(&keyring()).await.unwrap();
    assert!(
        stack.interrupted().await.unwrap().is_some(),
        "it is still there"
    );
    begin(&stack).await.end().await.unwrap();

    // What an older version recorded of a resource without a type.
    let session = begin(&stack).await;
    let mut entry = succeeds(1, "untyped");
    if let JournalEntry::Success { change, .. } = &mut entry {
        let mut state = resource("untyped");
        Arc::make_mut(&mut state).type_ = String::new();
        change.state = Some(state);
    }
    session
        .journal()
        .append(begins(1, "untyped"))
        .await
        .unwrap();
    session.journal().append(entry).await.unwrap();
    session.end().await.unwrap();
    let error = stack.try_journal(&keyring()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::JOURNAL_DAMAGED);
    stack.set_journal_aside(owner()).await.unwrap().unwrap();
    stack.try_journal(&keyring()).await.unwrap();
    begin(&stack).await.end().await.unwrap();
}

/// A passphrase is derived slowly in tests that are not optimised, so one test does it all.
#[tokio::test]
async fn secrets_stay_closed_through_a_crash_and_open_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let environment = EnvironmentVariables::fixed([("PULUMI_CONFIG_PASSPHRASE", "p")]);
    let keyring = Keyring::new(environment, KeyServices::Any);
    let mut with_key = request();
    with_key.keyring = Arc::clone(&keyring);
    let session = stack.begin(with_key.clone()).await.unwrap();
    // The first entry has no secret, so the journal starts without a provider.
    session.journal().append(begins(1, "plain")).await.unwrap();
    let mut secret = (*resource("secret")).clone();
    let value = PropertyValue::secret("hunter2".into());
    secret.outputs.insert("password".into(), value.clone());
    let entry = JournalEntry::Success {
        act: nimbus_engine_model::ActId(2),
        change: nimbus_engine_model::JournalChange {
            state: Some(Arc::new(secret)),
            ..Default::default()
        },
    };
    session.journal().append(entry).await.unwrap();
    let salt = session.secrets().created_salt().unwrap();
    session.end().await.unwrap();
    let journal = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
    assert!(!journal.contains("hunter2"));

    // Whoever recovers has no passphrase and needs none.
    let other = local(folder.path()).await.stack(shop_dev());
    assert_eq!(other.interrupted().await.unwrap().unwrap().unknown.len(), 1);
    let refused = other.begin(request()).await.err().unwrap();
    assert_eq!(
        refused.code(),
        ErrorCode::PASSPHRASE_MISSING,
        "only loading needs it"
    );
    assert!(
        other.interrupted().await.unwrap().is_none(),
        "it was recovered all the same"
    );
    let file = folder.path().join(".pulumi/stacks/shop/dev.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&salt) && !text.contains("hunter2"));

    let session = stack.begin(with_key).await.unwrap();
    let recovered = session.snapshot().unwrap().clone();
    assert_eq!(recovered.resources[0].outputs["password"], value);
    let ciphertext = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        value["checkpoint"]["latest"]["resources"][0]["outputs"]["password"]["ciphertext"].clone()
    };
    let before = ciphertext(&std::fs::read_to_string(&file).unwrap());
    assert!(before.as_str().unwrap().starts_with("v1:"));
    session
        .finish(recovered, &update(UpdateResult::Succeeded))
        .await
        .unwrap();
    let after = ciphertext(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(before, after, "an unchanged secret keeps its ciphertext");
    let shown = stack.export_with_secrets(&keyring).await.unwrap();
    assert!(String::from_utf8(shown).unwrap().contains("hunter2"));
    let hidden = stack.export().await.unwrap();
    assert!(!String::from_utf8(hidden).unwrap().contains("hunter2"));
}

/// Somebody looks at a state, edits a copy and writes it. What an operation that died in between left is in the
/// journal: written over it, the copy would forget what that made.
#[tokio::test]
async fn an_edit_of_what_was_there_before_does_not_undo_what_an_interrupted_operation_did() {
    let folder = tempfile::tempdir().unwrap();
    let stack = interrupted(&local(folder.path()).await).await;
    let looked_at = stack.load_unverified().await.unwrap().version;
    let bytes = stack.export().await.unwrap();
    let edit = ImportOptions {
        accept_older: true,
        made_of: Some(looked_at),
        ..ImportOptions::default()
    };
    let refused = stack.import(&bytes, edit, owner(), &keyring()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::STATE_CHANGED);
    let settled = stack.load_unverified().await.unwrap();
    assert_ne!(settled.version, looked_at, "the journal was settled first");
    let edit = ImportOptions {
        made_of: Some(settled.version),
        ..edit
    };
    let bytes = stack.export().await.unwrap();
    let written = stack.import(&bytes, edit, owner(), &keyring()).await;
    assert_eq!(
        written.unwrap().resources,
        settled.snapshot.unwrap().resources.len()
    );
}
