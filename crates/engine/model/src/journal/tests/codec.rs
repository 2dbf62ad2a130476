use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::format::StateError;
use crate::secrets::{Base64Crypter, CryptError, NoSecrets};
use crate::test_support::{any_stored_map, any_urn, map};

#[track_caller]
fn stays(entry: &JournalEntry) -> String {
    let line = encode(entry, &Base64Crypter).unwrap();
    assert_eq!(decode(line.as_bytes(), &Base64Crypter).unwrap(), *entry);
    line
}

#[test]
fn every_kind_of_entry_comes_back() {
    let a = resource("a", "1");
    let urn = &a.urn;
    let state = format!(r#"{{"urn":"{urn}","custom":true,"id":"1","type":"pkg:mod:Res"}}"#);
    assert_eq!(
        stays(&begin(1, OperationKind::Importing, &a)),
        format!(
            r#"{{"v":1,"kind":"begin","act":1,"operation":{{"resource":{state},"type":"importing"}}}}"#
        )
    );
    let change = JournalChange {
        remove: Some(StateRef::Base(4)),
        mark_delete: Some(new(2)),
        mark_pending_replacement: Some(StateRef::Base(0)),
        state: Some(Arc::clone(&a)),
    };
    assert_eq!(
        stays(&success(7, change)),
        format!(
            concat!(
                r#"{{"v":1,"kind":"success","act":7,"remove":{{"base":4}},"markDelete":{{"new":2}},"#,
                r#""markPendingReplacement":{{"base":0}},"state":{}}}"#
            ),
            state
        )
    );
    stays(&JournalEntry::Failure {
        act: ActId(u64::MAX),
        change: JournalChange::default(),
    });
    stays(&JournalEntry::Unknown {
        act: ActId(1),
        message: "line\nbreak\u{2028}".to_owned(),
    });
    stays(&JournalEntry::Rebase {
        resources: vec![Arc::clone(&a), a],
    });
    stays(&JournalEntry::Rebase {
        resources: Vec::new(),
    });
    assert_eq!(
        stays(&JournalEntry::Extension {
            extension: Arc::new(extension("ext"))
        }),
        r#"{"v":1,"kind":"extension","extension":{"name":"ext","version":"1.0.0","value":"/w=="}}"#
    );
    assert_eq!(
        stays(&JournalEntry::ClearPending),
        r#"{"v":1,"kind":"clearPending"}"#
    );
}

#[test]
fn secrets_are_encrypted() {
    let mut secret = ResourceState::clone(&resource("a", "1"));
    secret.inputs = map(json!({"password": {"$secret": "hunter2"}}));
    let entry = success(1, record(&Arc::new(secret)));
    let line = stays(&entry);
    assert!(!line.contains("hunter2"), "{line}");
    assert!(matches!(
        decode(line.as_bytes(), &NoSecrets),
        Err(StateError::Secret {
            error: CryptError::NoProvider,
            ..
        })
    ));
    assert!(matches!(
        encode(&entry, &NoSecrets),
        Err(StateError::Secret { .. })
    ));
    assert!(
        !format!("{entry:?}").contains("hunter2"),
        "nor is it in a log"
    );
}

#[test]
fn other_lines_are_refused() {
    for line in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"v":2,"kind":"clearPending"}"#,
        r#"{"v":1,"kind":"dance"}"#,
        r#"{"v":1,"kind":"success"}"#,
        r#"{"v":1,"kind":"success","act":-1}"#,
        r#"{"v":1,"kind":"success","act":1,"remove":{}}"#,
        r#"{"v":1,"kind":"success","act":1,"remove":{"base":1,"new":1}}"#,
        r#"{"v":1,"kind":"success","act":1,"state":{"urn":"x"}}"#,
        r#"{"v":1,"kind":"begin","act":1,"operation":{}}"#,
        r#"{"v":1,"kind":"rebase","resources":[1]}"#,
    ] {
        assert!(decode(line.as_bytes(), &Base64Crypter).is_err(), "{line}");
    }
}

fn any_resource() -> impl Strategy<Value = Arc<ResourceState>> {
    (any_urn(), any_stored_map()).prop_map(|(urn, inputs)| {
        let mut resource = ResourceState::new(urn, true);
        resource.inputs = inputs;
        Arc::new(resource)
    })
}

fn any_change() -> impl Strategy<Value = JournalChange> {
    let reference = || {
        prop::option::of(prop_oneof![
            any::<u32>().prop_map(|index| StateRef::Base(index as usize)),
            any::<u64>().prop_map(new)
        ])
    };
    let state = prop::option::of(any_resource());
    (reference(), reference(), state).prop_map(|(remove, mark_delete, state)| JournalChange {
        remove,
        mark_delete,
        state,
        ..JournalChange::default()
    })
}

fn any_entry() -> impl Strategy<Value = JournalEntry> {
    let kind = prop::sample::select(OperationKind::ALL.to_vec());
    let act = any::<u64>;
    prop_oneof![
        (act(), kind, any_resource()).prop_map(|(act, kind, resource)| begin(act, kind, &resource)),
        (act(), any_change()).prop_map(|(act, change)| success(act, change)),
        (act(), any_change()).prop_map(|(act, change)| JournalEntry::Failure {
            act: ActId(act),
            change
        }),
        (act(), any::<String>()).prop_map(|(act, message)| JournalEntry::Unknown {
            act: ActId(act),
            message
        }),
        prop::collection::vec(any_resource(), 0..3)
            .prop_map(|resources| JournalEntry::Rebase { resources }),
    ]
}

proptest! {
    #[test]
    fn every_entry_comes_back_on_one_line(entry in any_entry()) {
        let line = encode(&entry, &Base64Crypter).unwrap();
        prop_assert!(!line.contains(['\n', '\r']));
        let read = decode(line.as_bytes(), &Base64Crypter).unwrap();
        prop_assert_eq!(encode(&read, &Base64Crypter).unwrap(), line);
    }

    #[test]
    fn reading_any_bytes_is_total(bytes in any::<Vec<u8>>()) {
        let _ = decode(&bytes, &Base64Crypter);
    }

    #[test]
    fn reading_a_damaged_line_is_total(
        entry in any_entry(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut line = encode(&entry, &Base64Crypter).unwrap().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;
        if let Ok(entry) = decode(&line, &Base64Crypter) {
            let _ = replay(&base(&[]), &[entry]);
        }
    }
}
