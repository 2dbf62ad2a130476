//! Check, diff, create, read, update and delete: what is sent, and what is made of the answer.

use std::time::Duration;

use nimbus_engine_model::{
    Asset, Naming, NamingMode, PropertyMap, PropertyValue, ResourceReference,
};
use nimbus_engine_ports::{
    CheckRequest, CreateRequest, DeleteRequest, DiffKind, DiffRequest, Diffs, PropertyDiff,
    ProviderError, ReadRequest, Severity, UpdateRequest,
};
use nimbus_engine_proto as proto;
use proto::property_diff::Kind as DiffWire;
use proto::{ErrorResourceInitFailed, Kind, status_with_detail};
use tonic::Code;

use crate::support::*;

fn create(properties: PropertyMap) -> CreateRequest {
    CreateRequest {
        urn: Some(urn("fake:index:Thing", "n")),
        name: "n".into(),
        type_: "fake:index:Thing".into(),
        properties,
        ..CreateRequest::default()
    }
}

fn reference() -> PropertyValue {
    PropertyValue::ResourceReference(ResourceReference {
        urn: urn("fake:index:Thing", "other"),
        id: Some(Box::new("other-id".into())),
        package_version: String::new(),
    })
}

#[tokio::test]
async fn a_simple_provider_gets_plain_values_and_its_outputs_are_marked_again() {
    let rig = Rig::configured(Fake {
        check: answer(|request: proto::CheckRequest| {
            assert_eq!(
                request.olds,
                Some(object([])),
                "an absent value breaks old providers"
            );
            assert_eq!(
                request.news,
                Some(object([("password", s("p")), ("ref", s("other-id"))]))
            );
            assert_eq!(request.random_seed, [7; 32]);
            Ok(proto::CheckResponse {
                inputs: request.news,
                failures: vec![],
            })
        }),
        create: answer(|request: proto::CreateRequest| {
            assert_eq!(request.timeout, 90.0);
            assert_eq!(request.name, "n");
            assert_eq!(request.r#type, "fake:index:Thing");
            let mut properties = request.properties.unwrap_or_default();
            properties.fields.insert("made".into(), s("here"));
            let properties = Some(properties);
            Ok(proto::CreateResponse {
                id: "i-1".into(),
                properties,
                refresh_before_update: true,
            })
        }),
        ..simple()
    })
    .await;
    let inputs = map([("password", secret("p")), ("ref", reference())]);
    let check = CheckRequest {
        news: inputs.clone(),
        random_seed: vec![7; 32],
        ..CheckRequest::default()
    };
    let checked = rig.provider.check(check).await.unwrap().properties;
    let expected = map([("password", secret("p")), ("ref", "other-id".into())]);
    assert_eq!(checked, expected);

    let timeout = Some(Duration::from_secs(90));
    let created = rig
        .provider
        .create(CreateRequest {
            timeout,
            ..create(checked)
        })
        .await
        .unwrap();
    assert_eq!(created.id, "i-1");
    assert!(created.refresh_before_update);
    let expected = map([
        ("made", "here".into()),
        ("password", secret("p")),
        ("ref", "other-id".into()),
    ]);
    assert_eq!(created.properties, expected);
}

#[tokio::test]
async fn a_modern_provider_gets_secrets_and_references_and_its_marks_are_believed() {
    let rig = Rig::configured(Fake {
        create: answer(|request: proto::CreateRequest| {
            let sent = request.properties.unwrap_or_default();
            assert_eq!(sent.fields["password"], wire_secret(s("p")));
            assert!(matches!(
                &sent.fields["ref"].kind,
                Some(Kind::StructValue(_))
            ));
            let properties = object([("password", s("p")), ("token", wire_secret(s("t")))]);
            Ok(proto::CreateResponse {
                id: "i".into(),
                properties: Some(properties),
                ..Default::default()
            })
        }),
        ..modern()
    })
    .await;
    let inputs = map([("password", secret("p")), ("ref", reference())]);
    let created = rig.provider.create(create(inputs)).await.unwrap();
    assert_eq!(
        created.properties,
        map([("password", "p".into()), ("token", secret("t"))])
    );
}

#[tokio::test]
async fn previews_go_to_those_who_support_them_and_carry_unknown_values() {
    let fake = |supports_preview| Fake {
        configure: answer(move |_| {
            Ok(proto::ConfigureResponse {
                supports_preview,
                ..Default::default()
            })
        }),
        create: answer(|request: proto::CreateRequest| {
            assert!(request.preview);
            assert_eq!(request.properties, Some(object([("a", s(UNKNOWN))])));
            let properties = Some(object([("b", s(UNKNOWN))]));
            Ok(proto::CreateResponse {
                properties,
                ..Default::default()
            })
        }),
        ..Fake::default()
    };
    let inputs = map([("a", PropertyValue::Computed)]);
    let request = CreateRequest {
        preview: true,
        ..create(inputs.clone())
    };

    let rig = Rig::configured(fake(true)).await;
    let created = rig.provider.create(request.clone()).await.unwrap();
    assert_eq!(created.properties, map([("b", PropertyValue::Computed)]));

    let rig = Rig::configured(fake(false)).await;
    let created = rig.provider.create(request).await.unwrap();
    assert_eq!(
        created.properties, inputs,
        "the inputs stand in for the outputs"
    );
    let update = UpdateRequest {
        new_inputs: inputs.clone(),
        preview: true,
        ..Default::default()
    };
    assert_eq!(
        rig.provider.update(update).await.unwrap().properties,
        inputs
    );
    assert_eq!(rig.running.calls(), ["configure"]);
}

#[tokio::test]
async fn something_made_but_not_ready_is_reported_with_what_is_known_of_it() {
    let rig = Rig::configured(Fake {
        create: answer(|_| {
            let detail = ErrorResourceInitFailed {
                id: "i-1".into(),
                properties: Some(object([("password", s("p")), ("up", s("no"))])),
                reasons: vec!["not ready".into(), "still not".into()],
                inputs: Some(object([("password", s("p"))])),
                refresh_before_update: true,
            };
            Err(status_with_detail(Code::Unknown, "timed out", &detail))
        }),
        ..simple()
    })
    .await;
    let created = rig
        .provider
        .create(create(map([("password", secret("p"))])))
        .await;
    let Err(ProviderError::InitFailed(found)) = created else {
        panic!("{created:?}")
    };
    assert_eq!(found.id, "i-1");
    assert_eq!(
        found.properties,
        map([("password", secret("p")), ("up", "no".into())])
    );
    assert_eq!(found.inputs, Some(map([("password", secret("p"))])));
    assert_eq!(found.reasons, ["not ready", "still not"]);
    assert!(found.refresh_before_update);
}

#[tokio::test]
async fn an_unready_resource_keeps_its_id_on_update_and_must_have_one_on_create() {
    let broken = || {
        let detail = ErrorResourceInitFailed::default();
        status_with_detail(Code::Unknown, "broken", &detail)
    };
    let rig = Rig::configured(Fake {
        create: answer(move |_| Err(broken())),
        update: answer(move |_| Err(broken())),
        read: answer(move |_| Err(broken())),
        ..simple()
    })
    .await;
    let created = rig.provider.create(create(PropertyMap::new())).await;
    assert!(
        matches!(created, Err(ProviderError::Unknown { .. })),
        "{created:?}"
    );
    let update = UpdateRequest {
        id: "i-1".into(),
        ..Default::default()
    };
    let updated = rig.provider.update(update).await;
    let Err(ProviderError::InitFailed(found)) = updated else {
        panic!("{updated:?}")
    };
    assert_eq!(found.id, "i-1");
    assert!(!found.reasons.is_empty());
    let read = ReadRequest {
        id: "i-2".into(),
        ..Default::default()
    };
    let read = rig.provider.read(read).await;
    let Err(ProviderError::InitFailed(found)) = read else {
        panic!("{read:?}")
    };
    assert_eq!(found.id, "i-2");
}

#[tokio::test]
async fn read_tells_absent_from_present_and_gives_assets_their_contents_back() {
    let rig = Rig::configured(Fake {
        read: answer(|request: proto::ReadRequest| {
            if request.id == "gone" {
                assert_eq!(request.inputs, None);
                return Ok(proto::ReadResponse::default());
            }
            let sent = request.inputs.clone().unwrap_or_default();
            let Some(Kind::StructValue(asset)) = &sent.fields["file"].kind else {
                panic!("an asset")
            };
            assert!(
                !asset.fields.contains_key("text"),
                "only hashes of old contents are sent"
            );
            Ok(proto::ReadResponse {
                id: request.id,
                properties: request.properties,
                inputs: request.inputs,
                refresh_before_update: true,
            })
        }),
        ..simple()
    })
    .await;
    let gone = ReadRequest {
        id: "gone".into(),
        ..Default::default()
    };
    assert_eq!(rig.provider.read(gone).await.unwrap().id, None);

    let file = PropertyValue::Asset(Asset::Text {
        hash: "h".into(),
        text: "body".into(),
    });
    let inputs = map([("file", file.clone()), ("password", secret("p"))]);
    let state = map([
        ("file", file),
        ("password", secret("p")),
        ("seen", "yes".into()),
    ]);
    let request = ReadRequest {
        id: "i-1".into(),
        inputs: inputs.clone(),
        state: state.clone(),
        ..Default::default()
    };
    let read = rig.provider.read(request).await.unwrap();
    assert_eq!(read.id.as_deref(), Some("i-1"));
    assert_eq!(read.outputs, state);
    assert_eq!(read.inputs, Some(inputs));
    assert!(read.refresh_before_update);
}

#[tokio::test]
async fn update_and_delete_send_old_inputs_and_outputs_in_their_places() {
    let rig = Rig::configured(Fake {
        update: answer(|request: proto::UpdateRequest| {
            assert_eq!(request.id, "i-1");
            assert_eq!(request.old_inputs, Some(object([("v", s("old in"))])));
            assert_eq!(request.olds, Some(object([("v", s("old out"))])));
            assert_eq!(request.news, Some(object([("v", s("new"))])));
            assert_eq!(request.ignore_changes, ["tags"]);
            assert_eq!(request.timeout, 2.5);
            let properties = request.news;
            Ok(proto::UpdateResponse {
                properties,
                refresh_before_update: true,
            })
        }),
        delete: answer(|request: proto::DeleteRequest| {
            assert_eq!(request.id, "i-1");
            assert_eq!(request.old_inputs, Some(object([("v", s("in"))])));
            assert_eq!(request.properties, Some(object([("v", s("out"))])));
            Ok(())
        }),
        ..simple()
    })
    .await;
    let update = UpdateRequest {
        id: "i-1".into(),
        old_inputs: map([("v", "old in".into())]),
        old_outputs: map([("v", "old out".into())]),
        new_inputs: map([("v", secret("new"))]),
        ignore_changes: vec!["tags".into()],
        timeout: Some(Duration::from_millis(2500)),
        ..UpdateRequest::default()
    };
    let updated = rig.provider.update(update).await.unwrap();
    assert_eq!(updated.properties, map([("v", secret("new"))]));
    assert!(updated.refresh_before_update);
    let delete = DeleteRequest {
        id: "i-1".into(),
        inputs: map([("v", "in".into())]),
        outputs: map([("v", "out".into())]),
        ..DeleteRequest::default()
    };
    rig.provider.delete(delete).await.unwrap();
}

#[tokio::test]
async fn a_diff_comes_back_whole_and_a_new_kind_of_difference_is_an_update() {
    let rig = Rig::configured(Fake {
        diff: answer(|request: proto::DiffRequest| {
            assert_eq!(request.news, Some(object([("v", s(UNKNOWN))])));
            let detail = |kind: i32, input_diff| proto::PropertyDiff { kind, input_diff };
            Ok(proto::DiffResponse {
                replaces: vec!["v".into()],
                stables: vec!["arn".into()],
                delete_before_replace: true,
                changes: i32::from(proto::diff_response::DiffChanges::DiffSome),
                diffs: vec!["v".into(), "w".into()],
                detailed_diff: [
                    (
                        "v".to_owned(),
                        detail(i32::from(DiffWire::UpdateReplace), true),
                    ),
                    ("w[0]".to_owned(), detail(99, false)),
                ]
                .into(),
                has_detailed_diff: true,
            })
        }),
        ..simple()
    })
    .await;
    let request = DiffRequest {
        new_inputs: map([("v", PropertyValue::Computed)]),
        allow_unknowns: true,
        ..DiffRequest::default()
    };
    let diff = rig.provider.diff(request).await.unwrap();
    assert_eq!(diff.changes, Diffs::Some);
    assert!(diff.replaces() && diff.delete_before_replace);
    assert_eq!(diff.changed_keys, ["v", "w"]);
    assert_eq!(diff.stable_keys, ["arn"]);
    let expected = [
        (
            "v".to_owned(),
            PropertyDiff {
                kind: DiffKind::UpdateReplace,
                input_diff: true,
            },
        ),
        (
            "w[0]".to_owned(),
            PropertyDiff {
                kind: DiffKind::Update,
                input_diff: false,
            },
        ),
    ];
    assert_eq!(diff.detailed, Some(expected.into()));
}

#[tokio::test]
async fn large_and_deep_values_pass_in_both_directions() {
    let rig = Rig::configured(Fake {
        create: answer(|request: proto::CreateRequest| {
            let properties = request.properties;
            Ok(proto::CreateResponse {
                id: "i".into(),
                properties,
                ..Default::default()
            })
        }),
        ..simple()
    })
    .await;
    let deep = (0..80).fold(PropertyValue::from("bottom"), |inner, _| {
        map([("k", inner)]).into()
    });
    let large = PropertyValue::from("x".repeat(6 * 1024 * 1024));
    let inputs = map([("deep", deep), ("large", large)]);
    let created = rig.provider.create(create(inputs.clone())).await.unwrap();
    assert!(created.properties == inputs);
}

#[tokio::test]
async fn rules_for_names_reach_plugins_that_know_of_them_and_others_are_told_of() {
    for supported in [true, false] {
        let rig = Rig::configured(Fake {
            configure: answer(move |_| {
                Ok(proto::ConfigureResponse {
                    supports_autonaming_configuration: supported,
                    ..Default::default()
                })
            }),
            check: answer(move |request: proto::CheckRequest| {
                let expected = supported.then(|| proto::check_request::AutonamingOptions {
                    proposed_name: "cart-1".into(),
                    mode: proto::check_request::autonaming_options::Mode::Enforce.into(),
                });
                assert_eq!(request.autonaming, expected);
                Ok(proto::CheckResponse::default())
            }),
            ..Fake::default()
        })
        .await;
        let naming = |deliberate| Naming {
            proposed: "cart-1".into(),
            mode: NamingMode::Enforce,
            deliberate,
        };
        for (deliberate, warnings) in [(false, 0), (true, usize::from(!supported))] {
            let check = CheckRequest {
                type_: "fake:m:Cart".into(),
                naming: Some(naming(deliberate)),
                ..CheckRequest::default()
            };
            rig.provider.check(check).await.unwrap();
            let told = rig.audience.told(Severity::Warning);
            assert_eq!(told.len(), warnings, "{told:?}");
        }
    }
}
