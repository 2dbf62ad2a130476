use serde_json::json;

use super::*;

fn contract(inputs: Value, outputs: Value) -> ComponentContract {
    let object = |properties: Value| {
        let required: Vec<_> = properties
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, schema)| schema.get("optional").is_none())
            .map(|(name, _)| name.clone())
            .collect();
        json!({"type": "object", "required": required, "properties": properties})
    };
    ComponentContract {
        inputs: object(inputs),
        outputs: object(outputs),
        ..ComponentContract::default()
    }
}

fn base() -> ComponentContract {
    contract(
        json!({
            "size": {"type": "integer", "minimum": 1, "maximum": 8},
            "zone": {"enum": ["a", "b"]},
            "note": {"type": "string", "optional": 1},
        }),
        json!({"id": {"type": "string"}}),
    )
}

fn changed(change: impl FnOnce(&mut ComponentContract)) -> ContractChanges {
    let mut new = base();
    change(&mut new);
    compare(&base(), &new)
}

#[test]
fn what_breaks_users_is_found_and_named() {
    let size = "/properties/size";
    type Change = Box<dyn FnOnce(&mut ComponentContract)>;
    let cases: Vec<(Change, &str)> = vec![
        (
            Box::new(|one| one.inputs["properties"]["new"] = json!({})),
            "",
        ),
        (
            Box::new(|one| {
                one.inputs["properties"]["new"] = json!({});
                one.inputs["required"] = json!(["size", "zone", "new"]);
            }),
            "inputs.new: is new and has to be given",
        ),
        (
            Box::new(|one| one.inputs["required"] = json!(["size", "zone", "note"])),
            "inputs.note: has to be given now",
        ),
        (
            Box::new(|one| {
                *one.inputs.pointer_mut("/properties/zone/enum").unwrap() = json!(["a"]);
            }),
            "inputs.zone: takes less than before: enum",
        ),
        (
            Box::new(move |one| {
                one.inputs.pointer_mut(size).unwrap()["maximum"] = json!(4);
            }),
            "inputs.size: takes less than before: maximum",
        ),
        (
            Box::new(move |one| {
                one.inputs.pointer_mut(size).unwrap()["type"] = json!("string");
            }),
            "inputs.size: takes less than before: type",
        ),
        (
            Box::new(|one| {
                one.outputs["properties"] = json!({});
                one.outputs["required"] = json!([]);
            }),
            "outputs.id: is gone",
        ),
        (
            Box::new(|one| one.outputs["properties"]["id"]["type"] = json!(["string", "null"])),
            "outputs.id: gives what it did not give before: type",
        ),
        (
            Box::new(|one| one.inputs["additionalProperties"] = json!(false)),
            "inputs: takes nothing any more",
        ),
    ];
    for (change, expected) in cases {
        let found = changed(change);
        let texts: Vec<_> = found.breaking().map(ToString::to_string).collect();
        match expected {
            "" => assert!(texts.is_empty(), "{texts:?}"),
            _ => assert!(
                texts.len() == 1 && texts[0].starts_with(expected),
                "{texts:?} is not {expected}"
            ),
        }
    }
}

#[test]
fn a_change_behind_a_reference_is_found_like_one_in_its_place() {
    let behind = |definition: Value| ComponentContract {
        inputs: json!({"type": "object", "properties": {"size": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": definition}}),
        ..ComponentContract::default()
    };
    let integer = behind(json!({"type": "integer"}));
    let found = compare(&integer, &behind(json!({"type": "string"})));
    let texts: Vec<_> = found.breaking().map(ToString::to_string).collect();
    assert_eq!(texts, ["inputs.size: takes less than before: type"]);
    let wider = compare(&integer, &behind(json!({"type": "number"})));
    assert_eq!(VersionStep::of(&wider), VersionStep::Minor, "{wider:?}");
    // The same schema with and without a reference is the same.
    let plain = ComponentContract {
        inputs: json!({"type": "object", "properties": {"size": {"type": "integer"}}}),
        ..ComponentContract::default()
    };
    assert_eq!(compare(&integer, &plain), ContractChanges::default());
}

#[test]
fn no_keyword_of_a_schema_hides_a_change() {
    for key in [
        "if",
        "patternProperties",
        "minProperties",
        "contains",
        "dependentRequired",
    ] {
        let found = changed(|one| {
            one.inputs.pointer_mut("/properties/note").unwrap()[key] = json!({"const": 1});
        });
        assert!(found.is_breaking(), "{key} of a property");
    }
    for key in [
        "allOf",
        "if",
        "patternProperties",
        "dependentRequired",
        "minProperties",
    ] {
        let found = changed(|one| one.inputs[key] = json!([{"required": ["note"]}]));
        assert!(found.is_breaking(), "{key} of all");
    }
    let schema = json!({"type": "string"});
    let found = changed(|one| one.inputs["additionalProperties"] = schema);
    assert!(found.is_breaking(), "{found:?}");
}

#[test]
fn wider_inputs_and_more_outputs_do_not_break() {
    let found = changed(|one| {
        one.inputs.pointer_mut("/properties/size").unwrap()["type"] = json!("number");
        one.inputs.pointer_mut("/properties/size").unwrap()["maximum"] = json!(16);
        one.inputs["required"] = json!(["size"]);
        one.outputs["properties"]["url"] = json!({"type": "string"});
    });
    assert!(!found.is_breaking(), "{found:?}");
    assert_eq!(VersionStep::of(&found), VersionStep::Minor);
    assert_eq!(changed(|_| ()), ContractChanges::default());
}

#[test]
fn an_input_that_a_resolver_answers_need_not_be_given() {
    let found = changed(|one| {
        one.inputs["properties"]["host"] = json!({"type": "string"});
        one.inputs["required"] = json!(["size", "zone", "host"]);
        one.resolvers.insert(
            "host".to_owned(),
            crate::ContractBinding {
                resolver: "naming".to_owned(),
                output: "name".to_owned(),
                inputs: serde_json::Map::new(),
            },
        );
    });
    assert!(!found.is_breaking(), "{found:?}");
}

#[test]
fn versions_follow_what_changed() {
    assert_eq!(next_version(None, VersionStep::Major), "1.0.0");
    for (step, next) in [
        (VersionStep::Patch, "1.4.3"),
        (VersionStep::Minor, "1.5.0"),
        (VersionStep::Major, "2.0.0"),
    ] {
        assert_eq!(next_version(Some("1.4.2"), step), next);
    }
    assert_eq!(next_version(Some("x"), VersionStep::Patch), "1.0.0");
}
