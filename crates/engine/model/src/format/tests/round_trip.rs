//! What is read and written again stays the same.

use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::resource::{CustomTimeouts, HookKind, OperationKind, PendingOperation, ResourceState};
use crate::secrets::{Base64Crypter, CiphertextCache};
use crate::snapshot::{Snapshot, SnapshotManifest};
use crate::test_support::{any_stored_map, any_stored_value, any_urn};
use crate::value::PropertyValue;

/// Reads, opens and writes a file in its own form and layout.
fn rewritten(file: &[u8]) -> Vec<u8> {
    let StateFile {
        form,
        layout,
        deployment,
        ..
    } = read_unverified(file).unwrap();
    let mut cache = CiphertextCache::default();
    let snapshot = deployment.map(|deployment| {
        let (snapshot, kept) = deployment.open(&Base64Crypter).unwrap();
        cache = kept;
        snapshot
    });
    let secrets = SecretsMode::Encrypt {
        crypter: &Base64Crypter,
        cache: &mut cache,
    };
    match form {
        FileForm::Checkpoint(head) => write_checkpoint(&head, snapshot.as_ref(), secrets, layout),
        FileForm::Export => write_export(snapshot.as_ref(), secrets, layout),
    }
    .unwrap()
}

#[track_caller]
fn stays(file: &str) {
    assert_eq!(String::from_utf8(rewritten(file.as_bytes())).unwrap(), file);
}

/// Every field that a resource can have, in the official order, with values that are easily got
/// wrong.
const EVERYTHING: &str = concat!(
    r#"{"version":4,"features":["byteString","extensionParameterization","hooks","refreshBeforeUpdate","replaceWith","taint","views"],"#,
    r#""checkpoint":{"stack":"organization/shop/dev","latest":{"#,
    r#""manifest":{"time":"2026-08-21T10:11:12.123456789+02:00","#,
    r#""magic":"8b7dccad0f1a1b2f5f5fcbd5a5b0b0e0","version":"v3.260.0","#,
    r#""plugins":[{"name":"p","path":"/p","type":"resource","version":"1.2.3"}],"later":{"a":1,"b":2}},"#,
    r#""secrets_providers":{"type":"service","state":{"url":"u","owner":"o","project":"p","stack":"s"}},"#,
    r#""resources":[{"urn":"urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev","custom":false,"type":"pulumi:pulumi:Stack"},"#,
    r#"{"urn":"urn:pulumi:dev::shop::a:b:C::x","custom":true,"delete":true,"id":"i-1","type":"a:b:C","#,
    r#""inputs":{"A":-0,"a":{},"arr":[],"big":1e+21,"html":"<&>","nil":null,"num":0.1,"sep":"\u2028","#,
    r#""sm":9e-7,"t":true,"unknown":"04da6b54-80e4-46f7-96ec-b56ff0331ba9","whole":100000000000000000000},"#,
    r#""outputs":{"#,
    r#""archive":{"4dabf18193072939515e22adb298388d":"0def7320c3a5731c473e5ecbe6d01bc7","#,
    r#""assets":{"f":{"4dabf18193072939515e22adb298388d":"c44067f5952c0a294b673a41bacd8c17","hash":"h","path":"p"}},"hash":"g"},"#,
    r#""bytes":{"4dabf18193072939515e22adb298388d":"803fd3297a5875dc03ca845dda5d2a98","value":"/w=="},"#,
    r#""empty":{"4dabf18193072939515e22adb298388d":"c44067f5952c0a294b673a41bacd8c17","hash":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},"#,
    r#""inf":{"4dabf18193072939515e22adb298388d":"8ad145fe-0d11-4827-bfd7-1abcbf086f5c","value":"7ff0000000000000"},"#,
    r#""ref":{"4dabf18193072939515e22adb298388d":"5cf8f73096256a8f31e491e813e4eb8e","id":"","packageVersion":"","urn":"urn:pulumi:dev::shop::a:b:C::y"},"#,
    r#""secret":{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","ciphertext":"IlwiXHUwMDNjIg=="}},"#,
    r#""parent":"urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev","protect":true,"taint":true,"external":true,"#,
    r#""dependencies":["urn:pulumi:dev::shop::a:b:C::y"],"initErrors":["e"],"#,
    r#""provider":"urn:pulumi:dev::shop::pulumi:providers:a::default::id","#,
    r#""propertyDependencies":{"e":[],"n":null,"p":["urn:pulumi:dev::shop::a:b:C::y"]},"pendingReplacement":true,"#,
    r#""additionalSecretOutputs":["s"],"aliases":["urn:pulumi:dev::shop::a:b:C::old"],"#,
    r#""customTimeouts":{"create":60,"update":1.5,"delete":3,"read":4},"importID":"imp","retainOnDelete":true,"#,
    r#""deletedWith":"urn:pulumi:dev::shop::a:b:C::y","replaceWith":["urn:pulumi:dev::shop::a:b:C::z"],"#,
    r#""created":"2026-08-21T10:11:12Z","modified":"2026-08-21T10:11:12.5Z","sourcePosition":"project:///index.ts#1,2","#,
    r#""stackTrace":[{"sourcePosition":"f#1"},{}],"ignoreChanges":["a[*]"],"hideDiff":["a[0].b"],"replaceOnChanges":["*"],"#,
    r#""replacementTrigger":false,"refreshBeforeUpdate":true,"viewOf":"urn:pulumi:dev::shop::a:b:C::y","#,
    r#""resourceHooks":{"AfterCreate":["h"],"BeforeCreate":["g"],"OnError":[]},"extensionRef":"e1","futureField":[1.5,{"a":null,"z":1}]}],"#,
    r#""pending_operations":[{"resource":{"urn":"urn:pulumi:dev::shop::a:b:C::n","custom":true,"type":"a:b:C","inputs":{"k":"v"}},"type":"creating"}],"#,
    r#""metadata":{"integrity_error":{"version":"3","command":"pulumi up","error":"e","env_vars":{"A":"1","B":"2"}}},"extensions":{"e1":{"name":"ext","version":"1.0.0","value":"/w=="}},"futurePart":{"k":[]}},"#,
    r#""other":1}}"#,
);

#[test]
fn a_compact_file_with_everything_stays_the_same() {
    stays(EVERYTHING);
}

#[test]
fn an_indented_file_stays_indented() {
    let compact = rewritten(EVERYTHING.as_bytes());
    let value: Value = serde_json::from_slice(&compact).unwrap();
    let mut indented = serde_json::to_string_pretty(&value).unwrap();
    indented.push('\n');
    let once = rewritten(indented.as_bytes());
    assert!(once.starts_with(b"{\n    \"version\": 4,\n    \"features\": ["));
    assert_eq!(rewritten(&once), once);
}

#[test]
fn empty_stacks_stay_empty() {
    stays(r#"{"version":3,"checkpoint":{"stack":"organization/shop/dev"}}"#);
    stays(r#"{"version":3,"deployment":null}"#);
    stays(concat!(
        r#"{"version":3,"deployment":{"manifest":{"time":"0001-01-01T00:00:00Z","magic":"","#,
        r#""version":""},"metadata":{}}}"#
    ));
    stays("{\n    \"version\": 3,\n    \"deployment\": null\n}\n");
    stays(r#"{"version":3,"checkpoint":{"stack":"dev","config":{"k":"v"},"x":{}}}"#);
}

#[test]
fn keys_may_come_in_any_order() {
    let sorted = r#"{"deployment":{"metadata":{},"manifest":{"version":"","time":"0001-01-01T00:00:00Z","magic":""}},"version":3}"#;
    let usual = r#"{"version":3,"deployment":{"manifest":{"time":"0001-01-01T00:00:00Z","magic":"","version":""},"metadata":{}}}"#;
    assert_eq!(
        String::from_utf8(rewritten(sorted.as_bytes())).unwrap(),
        usual
    );
}

#[test]
fn nulls_are_as_good_as_absent() {
    let resource = with(
        "a",
        json!({
            "id": null, "inputs": null, "outputs": {}, "dependencies": null, "protect": null,
            "customTimeouts": {}, "created": null, "propertyDependencies": {}, "provider": "",
            "parent": "", "dependencies": [""], "replacementTrigger": null,
        }),
    );
    let written = rewritten(&bytes(&checkpoint(json!([resource]))));
    let expected = format!(
        r#""resources":[{{"urn":"{}","custom":false,"type":"pkg:mod:Res"}}]"#,
        urn("a")
    );
    assert!(String::from_utf8(written).unwrap().contains(&expected));
}

#[test]
fn hidden_paths_are_text_and_lists_of_earlier_versions_become_text() {
    let hidden = json!([["a", 0, "b c"], "plain", ["x"]]);
    let resource = with("a", json!({ "hideDiff": hidden }));
    let written = rewritten(&bytes(&checkpoint(json!([resource]))));
    let written = String::from_utf8(written).unwrap();
    let text = r#""hideDiff":["a[0][\"b c\"]","plain","x"]"#;
    assert!(written.contains(text), "{written}");
}

#[test]
fn features_and_version_follow_from_the_content() {
    let head = CheckpointHead::default();
    let written = |resource: ResourceState| {
        let snapshot = Snapshot {
            resources: vec![Arc::new(resource)],
            ..Snapshot::default()
        };
        let mut cache = CiphertextCache::default();
        let secrets = SecretsMode::Encrypt {
            crypter: &Base64Crypter,
            cache: &mut cache,
        };
        let file = write_checkpoint(&head, Some(&snapshot), secrets, Layout::Compact).unwrap();
        let file: Value = serde_json::from_slice(&file).unwrap();
        (file["version"].clone(), file["features"].clone())
    };
    let plain = || ResourceState::new(crate::test_support::urn("a"), false);
    assert_eq!(written(plain()), (json!(3), Value::Null));
    let feature = |change: fn(&mut ResourceState)| {
        let mut resource = plain();
        change(&mut resource);
        written(resource)
    };
    let needs = |name: &str| (json!(4), json!([name]));
    assert_eq!(feature(|r| r.taint = true), needs("taint"));
    assert_eq!(
        feature(|r| r.refresh_before_update = true),
        needs("refreshBeforeUpdate")
    );
    assert_eq!(feature(|r| r.view_of = Some(r.urn.clone())), needs("views"));
    assert_eq!(
        feature(|r| r.replace_with = vec![r.urn.clone()]),
        needs("replaceWith")
    );
    assert_eq!(
        feature(|r| drop(r.hooks.insert(HookKind::OnError, vec!["h".to_owned()]))),
        needs("hooks")
    );
    assert_eq!(
        feature(|r| r.extension_ref = Some("e1".to_owned())),
        needs("extensionParameterization")
    );
    let hidden = |r: &mut ResourceState| {
        let bytes = PropertyValue::secret(PropertyValue::Bytes(vec![0xff]));
        r.inputs.insert("s".to_owned(), bytes);
    };
    assert_eq!(feature(hidden), needs("byteString"), "even inside a secret");
    assert_eq!(
        feature(|r| drop(r.extra.insert("snippetID".to_owned(), json!("u")))),
        needs("snippets-prototype")
    );
}

#[test]
fn version_one_and_two_are_upgraded() {
    for version in [1, 2] {
        let mut file = checkpoint(json!([
            component("dep"),
            with(
                "a",
                json!({
                    "inputs": {"x": 1, "y": 2},
                    "dependencies": [urn("dep")],
                    "defaults": {"x": 0},
                })
            ),
        ]));
        file["version"] = json!(version);
        let deployment = read_checkpoint(&bytes(&file)).unwrap().deployment.unwrap();
        let (snapshot, _) = deployment.open(&Base64Crypter).unwrap();
        let upgraded = &snapshot.resources[1];
        let dependency = vec![crate::test_support::urn("dep")];
        assert_eq!(
            upgraded.property_dependencies,
            [
                ("x".to_owned(), dependency.clone()),
                ("y".to_owned(), dependency)
            ]
            .into()
        );
        assert!(upgraded.extra.is_empty());
    }
}

fn any_resource() -> impl Strategy<Value = ResourceState> {
    let identity = (
        any_urn(),
        any::<bool>(),
        any::<bool>(),
        prop::option::of("[a-z0-9]{1,5}"),
    );
    let values = (any_stored_map(), any_stored_map(), any_stored_value());
    let links = (
        prop::option::of(any_urn()),
        prop::collection::vec(any_urn(), 0..3),
        prop::collection::btree_map("[a-c]", prop::collection::vec(any_urn(), 0..2), 0..3),
    );
    let limits = (0.0..100.0_f64, 0.0..100.0_f64);
    let time = prop::option::of(0..4_000_000_000_000_000_000_i128);
    (identity, values, links, limits, time).prop_map(|(identity, values, links, limits, time)| {
        let (urn, custom, delete, id) = identity;
        let mut resource = ResourceState::new(urn, custom);
        resource.delete = delete;
        resource.id = id;
        (
            resource.inputs,
            resource.outputs,
            resource.replacement_trigger,
        ) = values;
        (
            resource.parent,
            resource.dependencies,
            resource.property_dependencies,
        ) = links;
        resource.custom_timeouts = CustomTimeouts {
            create: limits.0,
            read: limits.1,
            ..CustomTimeouts::default()
        };
        resource.created = time.map(|ns| Timestamp::from_nanosecond(ns).unwrap());
        resource
    })
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let kind = prop::sample::select(OperationKind::ALL.to_vec());
    let operation = (kind, any_resource()).prop_map(|(kind, resource)| PendingOperation {
        kind,
        resource: Arc::new(resource),
    });
    let resources = prop::collection::vec(any_resource().prop_map(Arc::new), 0..5);
    (resources, prop::collection::vec(operation, 0..2)).prop_map(
        |(resources, pending_operations)| Snapshot {
            manifest: SnapshotManifest::new("v3.260.0", Timestamp::UNIX_EPOCH),
            secrets_provider: Some(Base64Crypter.provider()),
            resources,
            pending_operations,
            ..Snapshot::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_snapshot_comes_back(snapshot in any_snapshot(), indented in any::<bool>()) {
        let layout = if indented { Layout::Indented } else { Layout::Compact };
        let mut cache = CiphertextCache::default();
        let secrets = SecretsMode::Encrypt { crypter: &Base64Crypter, cache: &mut cache };
        let file = write_export(Some(&snapshot), secrets, layout).unwrap();
        let (read, _) = read_unverified(&file).unwrap().deployment.unwrap().open(&Base64Crypter).unwrap();
        // Values that are not numbers differ from themselves, so texts are compared, secrets shown.
        let shown = |snapshot: &Snapshot| {
            String::from_utf8(write_export(Some(snapshot), SecretsMode::Show, Layout::Compact).unwrap())
        };
        prop_assert_eq!(shown(&read), shown(&snapshot));
        prop_assert_eq!(rewritten(&file), file);
    }

    #[test]
    fn every_value_comes_back(value in any_stored_value()) {
        let text = write_property(&value, &Base64Crypter).unwrap();
        let read = read_property(text.as_bytes(), &Base64Crypter).unwrap();
        prop_assert_eq!(write_property(&read, &Base64Crypter).unwrap(), text);
        prop_assert_eq!(encode::plaintext(&read), encode::plaintext(&value));
    }
}
