//! Damaged, foreign and contradictory files are refused with their cause.

use proptest::prelude::*;

use super::*;
use crate::integrity::{IntegrityFinding, ResourceLink};

#[track_caller]
fn refused(json: &Value) -> StateError {
    read_checkpoint(&bytes(json)).unwrap_err()
}

#[track_caller]
fn broken(resources: Value) -> IntegrityFinding {
    match refused(&checkpoint(resources)) {
        StateError::Integrity { first, more: 0 } => first,
        other => panic!("{other}"),
    }
}

#[test]
fn a_sound_file_is_accepted() {
    let file = read_checkpoint(&bytes(&checkpoint(json!([component("a")])))).unwrap();
    assert_eq!((file.version, file.layout), (3, Layout::Compact));
    file.check_stack("shop", "dev").unwrap();
}

#[test]
fn text_that_is_no_json_is_refused_with_its_position() {
    assert_eq!(read_checkpoint(b"").unwrap_err(), StateError::Empty);
    assert_eq!(
        read_checkpoint(b"{\"a\":\0}").unwrap_err(),
        StateError::NulByte { offset: 5 }
    );
    let whole = bytes(&checkpoint(json!([component("a")])));
    for length in 1..whole.len() {
        assert!(
            matches!(
                read_checkpoint(&whole[..length]),
                Err(StateError::Truncated { line: 1, .. })
            ),
            "cut at {length}"
        );
    }
    assert!(matches!(
        read_checkpoint(b"{\n  \"version\": oops}"),
        Err(StateError::Syntax {
            line: 2,
            column: 14,
            ..
        })
    ));
    let trailing = [whole.as_slice(), b"}"].concat();
    assert!(matches!(
        read_checkpoint(&trailing),
        Err(StateError::Syntax { .. })
    ));
    let deep = format!("{{\"version\":3,\"x\":{}", "[".repeat(100_000));
    assert!(matches!(
        read_checkpoint(deep.as_bytes()),
        Err(StateError::TooDeep { .. })
    ));
    assert!(matches!(
        read_checkpoint(b"{\"a\":\"\xff\"}"),
        Err(StateError::Syntax { .. })
    ));
}

#[test]
fn json_that_is_no_state_is_refused() {
    for other in [json!({}), json!({"version": 3}), Value::Null] {
        assert!(
            matches!(refused(&other), StateError::NotAState { .. }),
            "{other}"
        );
    }
    for other in [
        json!([]),
        json!("state"),
        json!({"version": 3, "checkpoint": 1}),
    ] {
        assert!(
            matches!(refused(&other), StateError::Shape { .. }),
            "{other}"
        );
    }
    let export = json!({"version": 3, "deployment": {}});
    assert!(matches!(refused(&export), StateError::NotAState { .. }));
    assert!(read_export(&bytes(&export)).is_ok());
    let file = bytes(&checkpoint(json!([])));
    assert!(matches!(
        read_export(&file),
        Err(StateError::NotAState { .. })
    ));
}

#[test]
fn unknown_versions_and_features_are_refused() {
    let mut file = checkpoint(json!([]));
    for (version, shown) in [(json!(5), "5"), (json!(-1), "-1"), (json!("3"), "\"3\"")] {
        file["version"] = version;
        assert_eq!(
            refused(&file),
            StateError::UnknownVersion {
                version: shown.to_owned()
            }
        );
    }
    for unversioned in [json!(0), Value::Null] {
        file["version"] = unversioned;
        assert_eq!(refused(&file), StateError::Unversioned);
    }
    assert_eq!(
        refused(&json!({"stack": "dev", "latest": {}})),
        StateError::Unversioned
    );
    file["version"] = json!(4);
    file["features"] = json!(["views", "from-the-future", "snippets-prototype"]);
    assert_eq!(
        refused(&file),
        StateError::UnsupportedFeatures {
            features: vec![
                "from-the-future".to_owned(),
                "snippets-prototype".to_owned()
            ]
        }
    );
    file["features"] = json!(["views", "hooks"]);
    assert!(read_checkpoint(&bytes(&file)).is_ok());
}

#[test]
fn another_stacks_file_is_refused() {
    let file = read_checkpoint(&bytes(&checkpoint(json!([component("a")])))).unwrap();
    assert_eq!(
        file.check_stack("shop", "prod"),
        Err(StateError::WrongStack {
            expected: "organization/shop/prod".to_owned(),
            found: "organization/shop/dev".to_owned(),
        })
    );
    let mut renamed = checkpoint(json!([component("a")]));
    renamed["checkpoint"]["stack"] = json!("prod");
    let file = read_checkpoint(&bytes(&renamed)).unwrap();
    let error = file.check_stack("shop", "prod").unwrap_err();
    assert!(error.to_string().contains(&urn("a")), "{error}");
    let mut unqualified = checkpoint(json!([component("a")]));
    unqualified["checkpoint"]["stack"] = json!("dev");
    let file = read_checkpoint(&bytes(&unqualified)).unwrap();
    file.check_stack("shop", "dev").unwrap();
    let error = file.check_stack("other", "dev").unwrap_err();
    assert!(error.to_string().contains("project shop"), "{error}");
}

#[test]
fn fields_of_the_wrong_kind_are_named_with_their_resource() {
    let place = StatePart::Resource {
        index: 1,
        urn: Some(urn("b")),
    };
    let refuse = |fields| refused(&checkpoint(json!([component("a"), with("b", fields)])));
    assert_eq!(
        refuse(json!({"custom": "yes"})),
        StateError::WrongType {
            place: place.clone(),
            field: "custom".to_owned(),
            expected: "a boolean"
        }
    );
    assert_eq!(
        refuse(json!({"type": null})),
        StateError::MissingField {
            place: place.clone(),
            field: "type"
        }
    );
    assert_eq!(
        refuse(json!({"parent": "x"})),
        StateError::BadUrn {
            place: place.clone(),
            field: "parent".to_owned(),
            text: "x".to_owned()
        }
    );
    assert_eq!(
        refuse(json!({"resourceHooks": {"Sometimes": []}})),
        StateError::UnknownName {
            place,
            field: "resourceHooks",
            text: "Sometimes".to_owned()
        }
    );
    assert_eq!(
        refuse(json!({"urn": null})),
        StateError::MissingField {
            place: StatePart::Resource {
                index: 1,
                urn: None
            },
            field: "urn"
        }
    );
    for fields in [
        json!({"inputs": []}),
        json!({"dependencies": {}}),
        json!({"dependencies": [1]}),
        json!({"created": "yesterday"}),
        json!({"created": 5}),
        json!({"customTimeouts": {"create": "1h"}}),
        json!({"stackTrace": [1]}),
        json!({"provider": 1}),
    ] {
        assert!(
            matches!(refuse(fields.clone()), StateError::WrongType { .. }),
            "{fields}"
        );
    }
    let nul = format!("{}\0", urn("b"));
    assert!(matches!(
        refuse(json!({"urn": nul})),
        StateError::BadUrn { .. }
    ));
}

#[test]
fn pending_operations_are_read_with_the_same_care() {
    let with_operation = |operation: Value| {
        let mut file = checkpoint(json!([]));
        file["checkpoint"]["latest"]["pending_operations"] = json!([operation]);
        file
    };
    assert_eq!(
        refused(&with_operation(
            json!({"resource": component("a"), "type": "pondering"})
        )),
        StateError::UnknownName {
            place: StatePart::PendingOperation {
                index: 0,
                urn: None
            },
            field: "type",
            text: "pondering".to_owned()
        }
    );
    assert!(matches!(
        refused(&with_operation(json!({"resource": {}, "type": "creating"}))),
        StateError::MissingField {
            place: StatePart::PendingOperation { .. },
            field: "urn"
        }
    ));
    let file = with_operation(json!({"resource": component("a"), "type": "importing"}));
    assert!(read_checkpoint(&bytes(&file)).is_ok());
}

#[test]
fn malformed_values_are_named_with_their_path() {
    let refuse = |value: Value| {
        let inputs = json!({"inputs": {"a": {"b": [0, value]}}});
        match refused(&checkpoint(json!([with("r", inputs)]))) {
            StateError::BadProperty { path, problem, .. } => {
                assert_eq!(path.to_string(), "inputs.a.b[1]");
                problem
            }
            other => panic!("{other}"),
        }
    };
    let signed = |signature: &str, mut fields: Value| {
        fields[signature::KEY] = json!(signature);
        fields
    };
    assert_eq!(
        refuse(signed("feed", json!({}))),
        PropertyProblem::UnknownSignature {
            signature: "feed".to_owned()
        }
    );
    assert_eq!(
        refuse(json!({(signature::KEY): 1})),
        PropertyProblem::UnknownSignature {
            signature: "1".to_owned()
        }
    );
    for malformed in [
        signed(signature::SECRET, json!({})),
        signed(
            signature::SECRET,
            json!({"ciphertext": "a", "plaintext": "b"}),
        ),
        signed(signature::SECRET, json!({"ciphertext": 1})),
        signed(signature::SECRET, json!({"plaintext": "{"})),
        signed(signature::ASSET, json!({"text": 1})),
        signed(signature::ARCHIVE, json!({"assets": []})),
        signed(signature::RESOURCE_REFERENCE, json!({})),
        signed(signature::RESOURCE_REFERENCE, json!({"urn": "x"})),
        signed(
            signature::RESOURCE_REFERENCE,
            json!({"urn": urn("a"), "id": 1}),
        ),
        signed(signature::BYTES, json!({"value": "!"})),
        signed(signature::FLOAT, json!({"value": "xyz"})),
        signed(signature::OUTPUT, json!({"dependencies": ["x"]})),
    ] {
        assert!(
            matches!(refuse(malformed.clone()), PropertyProblem::Malformed { .. }),
            "{malformed}"
        );
    }
}

#[test]
fn secrets_inside_secrets_are_not_a_way_around_the_limit_on_depth() {
    let nest = |inner: Value| (0..100).fold(inner, |inner, _| json!([inner]));
    let secret =
        |inner: Value| json!({(signature::KEY): signature::SECRET, "plaintext": inner.to_string()});
    let read = |value: Value| read_property(&bytes(&value), &crate::secrets::NoSecrets);
    assert!(read(nest(secret(nest(json!(1))))).is_ok());
    assert!(matches!(
        read(nest(secret(nest(secret(nest(json!(1))))))),
        Err(StateError::BadProperty {
            problem: PropertyProblem::TooDeep,
            ..
        })
    ));
}

#[test]
fn contradictions_are_refused_with_the_resources_concerned() {
    let (a, b) = (crate::test_support::urn("a"), crate::test_support::urn("b"));
    assert_eq!(
        broken(json!([component("a"), component("a")])),
        IntegrityFinding::DuplicateUrn {
            urn: a.clone(),
            first: 0,
            second: 1
        }
    );
    assert_eq!(
        broken(json!([
            with("a", json!({"dependencies": [urn("b")]})),
            component("b")
        ])),
        IntegrityFinding::OutOfOrder {
            index: 0,
            urn: a.clone(),
            link: ResourceLink::Dependency,
            target: b.to_string(),
            target_index: 1
        }
    );
    assert_eq!(
        broken(json!([with("a", json!({"parent": urn("b")}))])),
        IntegrityFinding::Missing {
            index: 0,
            urn: a.clone(),
            link: ResourceLink::Parent,
            target: b.to_string()
        }
    );
    let provider = "urn:pulumi:dev::shop::pulumi:providers:pkg::default::id";
    assert_eq!(
        broken(json!([with(
            "a",
            json!({"provider": provider, "custom": true, "id": "x"})
        )])),
        IntegrityFinding::Missing {
            index: 0,
            urn: a,
            link: ResourceLink::Provider,
            target: provider.to_owned()
        }
    );
    let replaced = json!([component("a"), with("a", json!({"delete": true}))]);
    assert!(
        read_checkpoint(&bytes(&checkpoint(replaced))).is_ok(),
        "a delete is pending"
    );
}

#[test]
fn a_broken_file_can_still_be_looked_at() {
    let file = bytes(&checkpoint(json!([component("a"), component("a")])));
    let findings = read_unverified(&file)
        .unwrap()
        .deployment
        .unwrap()
        .findings();
    assert_eq!(findings.len(), 1);
}

#[test]
fn refusals_become_errors_with_a_code_and_help() {
    let error = nimbus_core::Error::from(refused(&checkpoint(json!([
        component("a"),
        component("a")
    ]))));
    assert_eq!(error.code(), nimbus_core::ErrorCode::STATE_BROKEN);
    assert!(error.help().unwrap().contains("repair"));
    assert!(error.message().contains(&urn("a")));
}

proptest! {
    #[test]
    fn reading_any_bytes_is_total(bytes in any::<Vec<u8>>()) {
        let _ = read_unverified(&bytes);
    }

    #[test]
    fn reading_a_damaged_file_is_total(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut file = bytes(&checkpoint(json!([with("a", json!({
            "inputs": {"s": {(signature::KEY): signature::SECRET, "ciphertext": "eA=="}},
            "created": "2026-08-21T10:11:12Z",
            "propertyDependencies": {"s": [urn("a")]},
        }))])));
        let at = at.index(file.len());
        file[at] = byte;
        if let Ok(StateFile { deployment: Some(deployment), .. }) = read_unverified(&file) {
            let _ = deployment.findings();
            let _ = deployment.open(&crate::secrets::Base64Crypter);
        }
    }

    #[test]
    fn reading_any_value_text_is_total(text in r#"[\[\]{}",:0-9a-f]{0,30}"#) {
        let _ = read_property(text.as_bytes(), &crate::secrets::Base64Crypter);
    }
}
