//! What the official command line would refuse is refused before it is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::path::PropertyPath;
use crate::resource::{CustomTimeouts, HookKind, OperationKind, PendingOperation, ResourceState};
use crate::secrets::{Base64Crypter, CiphertextCache};
use crate::snapshot::{PluginRecord, Snapshot, SnapshotManifest};
use crate::test_support::{any_stored_map, any_stored_value, any_urn};

fn refusal(fields: Value) -> String {
    let file = checkpoint(json!([with("a", fields)]));
    check_checkpoint(&bytes(&file))
        .expect_err("it must be refused")
        .to_string()
}

#[test]
fn a_field_of_another_kind_is_refused_with_its_place() {
    for (fields, refused) in [
        (
            json!({"hideDiff": [["v"]]}),
            "hideDiff[0] is not a property path in its text form",
        ),
        (
            json!({"hideDiff": ["v["]}),
            "hideDiff[0] is not a property path in its text form",
        ),
        (
            json!({"protect": "yes"}),
            "protect is neither true nor false",
        ),
        (json!({"dependencies": "a"}), "dependencies is not a list"),
        (json!({"aliases": [1]}), "aliases[0] is not a text"),
        (
            json!({"propertyDependencies": {"p": [{}]}}),
            "propertyDependencies.p[0] is not a text",
        ),
        (
            json!({"customTimeouts": {"create": "5m"}}),
            "customTimeouts.create is not a number",
        ),
        (json!({"created": "yesterday"}), "created is not a time"),
        (
            json!({"stackTrace": ["f"]}),
            "stackTrace[0] is not an object",
        ),
        (
            json!({"resourceHooks": {"AfterCreate": "h"}}),
            "resourceHooks.AfterCreate is not a list",
        ),
        (json!({"type": ""}), " has no type"),
        (json!({"id": "i"}), " is a component and has an id"),
    ] {
        let error = refusal(fields);
        let place = "checkpoint.latest.resources[0]";
        let dot = if refused.starts_with(' ') { "" } else { "." };
        assert_eq!(error, format!("{place}{dot}{refused}"));
    }
}

#[test]
fn values_with_signatures_must_be_what_they_say() {
    let key = signature::KEY;
    for (value, refused) in [
        (json!({key: "unheard-of"}), "has the signature unheard-of"),
        (json!({key: signature::SECRET}), "is a secret without"),
        (
            json!({key: signature::SECRET, "ciphertext": "c", "plaintext": "p"}),
            "is a secret without",
        ),
        (json!({key: signature::RESOURCE_REFERENCE}), "without a urn"),
        (json!({key: signature::BYTES, "value": "%"}), "not base64"),
        (
            json!({key: signature::FLOAT, "value": "x"}),
            "not hexadecimal",
        ),
        (
            json!({key: signature::ASSET, "path": 1}),
            "a path that is not a text",
        ),
        (
            json!({key: signature::ARCHIVE, "assets": []}),
            "not an object",
        ),
        (
            json!({key: signature::ARCHIVE, "assets": {"a": "text"}}),
            "neither asset nor archive",
        ),
        (
            json!({key: signature::SECRET, "plaintext": "not quoted"}),
            "plaintext is not JSON",
        ),
        (json!({key: 1}), "not a text"),
    ] {
        let error = refusal(json!({"inputs": {"deep": [value]}}));
        assert!(error.contains("inputs.deep[0] "), "{error}");
        assert!(error.contains(refused), "{error}");
    }
}

#[test]
fn versions_features_and_whatever_is_no_checkpoint_are_refused() {
    for (file, refused) in [
        (json!({"version": 5, "checkpoint": {}}), "neither 3 nor 4"),
        (json!({"checkpoint": {}}), "neither 3 nor 4"),
        (
            json!({"version": 4, "features": ["flying"], "checkpoint": {}}),
            "names flying",
        ),
        (json!([]), "is not an object"),
        (
            json!({"version": 3, "checkpoint": {"latest": {"extensions": {"e": {"value": "%"}}}}}),
            "extensions.e.value is not base64",
        ),
        (
            json!({"version": 3, "checkpoint": {"latest": {"snippets": [{"descriptor": {"name": 1}}]}}}),
            "snippets[0].descriptor.name is not a text",
        ),
        (
            json!({"version": 3, "checkpoint": {"latest": {"secrets_providers": {"type": "magic"}}}}),
            "secrets_providers names magic",
        ),
        (
            json!({"version": 3, "checkpoint": {"latest": {"secrets_providers": {"type": "passphrase", "state": {"salt": "v2:AA==:x"}}}}}),
            "has no salt of a passphrase",
        ),
        (
            json!({"version": 3, "checkpoint": {"Latest": {"Resources": {}}}}),
            "checkpoint.Latest.Resources is not a list",
        ),
    ] {
        let error = check_checkpoint(&bytes(&file)).unwrap_err().to_string();
        assert!(error.contains(refused), "{error}");
    }
    assert!(check_checkpoint(b"{").is_err());
}

fn any_options() -> BoxedStrategy<ResourceState> {
    let path = prop_oneof![
        Just("a".to_owned()),
        Just("a[0].b".to_owned()),
        Just("tags[\"x y\"][*]".to_owned()),
    ];
    // Boxed, because the compiler takes minutes over strategies that are nested this deep.
    let texts = || prop::collection::vec("[a-z*\\[\\]\"]{0,4}", 0..3).boxed();
    let urns = || prop::collection::vec(any_urn(), 0..3).boxed();
    let seconds = prop_oneof![Just(0.0), Just(1.5), any::<f64>()];
    let names = (texts(), texts(), texts(), texts());
    let links = (urns(), urns(), urns(), prop::option::of(any_urn()).boxed());
    let values = (
        any_stored_map().boxed(),
        any_stored_map().boxed(),
        any_stored_value().boxed(),
    );
    let (names, links, values) = (names.boxed(), links.boxed(), values.boxed());
    let flags = prop::array::uniform8(any::<bool>()).boxed();
    let rest = (
        prop::collection::vec(path, 0..3),
        seconds,
        any::<i32>(),
        prop::collection::btree_map("[a-z]{1,2}", urns(), 0..2),
    )
        .boxed();
    (any_urn().boxed(), names, links, values, flags, rest)
        .prop_map(|(urn, names, links, values, flags, rest)| {
            let mut state = ResourceState::new(urn, flags[0]);
            state.id = flags[0].then(|| "id-1".to_owned());
            (state.ignore_changes, state.replace_on_changes) = (names.0, names.1);
            (state.additional_secret_outputs, state.init_errors) = (names.2, names.3);
            (state.dependencies, state.aliases, state.replace_with) = (links.0, links.1, links.2);
            (state.parent, state.view_of) = (links.3.clone(), None);
            state.deleted_with = links.3;
            (state.inputs, state.outputs) = (values.0, values.1);
            state.replacement_trigger = values.2;
            state.delete = flags[1];
            state.protect = flags[2];
            state.taint = flags[3];
            state.external = flags[4];
            state.pending_replacement = flags[5];
            state.retain_on_delete = flags[6];
            state.refresh_before_update = flags[7];
            let parsed = rest.0.iter().map(|path| PropertyPath::parse(path).unwrap());
            state.hide_diff = parsed.collect();
            state.custom_timeouts = CustomTimeouts {
                create: rest.1,
                ..CustomTimeouts::default()
            };
            state.created = Timestamp::from_second(i64::from(rest.2)).ok();
            state.property_dependencies = rest.3;
            if flags[1] {
                let hooks = vec!["h".to_owned()];
                state.hooks = BTreeMap::from([(HookKind::AfterCreate, hooks)]);
                state.stack_trace = vec!["project:///a.ts#1,2".to_owned(), String::new()];
            }
            state
        })
        .boxed()
}

proptest! {
    /// Whatever options a program gives, in a resource or in an act that was cut short.
    #[test]
    fn what_is_written_passes(
        resources in prop::collection::vec(any_options(), 0..4),
        pending in any_options(),
    ) {
        let mut manifest = SnapshotManifest::new("v3.258.0", Timestamp::UNIX_EPOCH);
        manifest.plugins = vec![PluginRecord {
            name: "aws".to_owned(),
            path: String::new(),
            kind: "resource".to_owned(),
            version: "7.1.0-alpha.1+build".to_owned(),
        }];
        let snapshot = Snapshot {
            manifest,
            resources: resources.into_iter().map(Arc::new).collect(),
            pending_operations: vec![PendingOperation {
                kind: OperationKind::Creating,
                resource: Arc::new(pending),
            }],
            ..Snapshot::default()
        };
        let secrets = SecretsMode::Encrypt {
            crypter: &Base64Crypter,
            cache: &mut CiphertextCache::default(),
        };
        let head = CheckpointHead::default();
        let written = write_checkpoint(&head, Some(&snapshot), secrets, Layout::Compact).unwrap();
        if let Err(error) = check_checkpoint(&written) {
            panic!("{error}\n{}", String::from_utf8_lossy(&written));
        }
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in any::<Vec<u8>>()) {
        let _ = check_checkpoint(&bytes);
    }
}
