//! From a registration to a goal, and the answer.

use nimbus_engine_model::{
    Alias, Asset, CustomTimeouts, HookKind, OutputValue, PropertyValue, Urn,
};
use nimbus_engine_monitor::{
    Completion, RawOrigin, RawPosition, Registration, ResourceOptions, Timeouts,
};
use nimbus_engine_ports::RegisterStatus;
use nimbus_engine_testing::RegistrationAnswer;

use crate::support::{component, custom, props, registrar, rig, rig_with, settings, urn, with};

#[tokio::test]
async fn every_option_reaches_the_goal() {
    let rig = rig();
    let options = ResourceOptions {
        depends_on: vec![urn("d")],
        protect: Some(true),
        ignore_changes: vec!["a".to_owned()],
        replace_on_changes: vec!["b".to_owned()],
        aliases: vec![Alias::Urn(urn("old"))],
        timeouts: Timeouts {
            create: "5m".to_owned(),
            delete: "1h".to_owned(),
            ..Timeouts::default()
        },
        retain_on_delete: Some(true),
        deleted_with: Some(urn("w")),
        replace_with: vec![urn("r")],
        replacement_trigger: PropertyValue::secret("t".into()),
        delete_before_replace: Some(false),
        additional_secret_outputs: vec!["s".to_owned()],
        hooks: [(HookKind::BeforeCreate, vec!["h".to_owned()])].into(),
        import_id: "existing".to_owned(),
        hide_diff: vec!["list[0].name".to_owned()],
        ..ResourceOptions::default()
    };
    let request = Registration {
        parent: Some(Urn::root_stack("dev", "shop")),
        origin: RawOrigin {
            position: Some(RawPosition {
                uri: "file:///project/index.ts".to_owned(),
                line: 3,
                column: 0,
            }),
            ..RawOrigin::default()
        },
        ..with(options, custom("bucket"))
    };
    rig.register(request).await;
    let goal = rig.goal("bucket");
    assert_eq!(goal.type_, "aws:s3:Bucket");
    assert_eq!(goal.parent, Some(Urn::root_stack("dev", "shop")));
    assert_eq!(goal.dependencies, [urn("d")]);
    assert_eq!(goal.protect, Some(true));
    assert_eq!(goal.ignore_changes, ["a"]);
    assert_eq!(goal.replace_on_changes, ["b"]);
    assert_eq!(goal.aliases, [Alias::Urn(urn("old"))]);
    assert_eq!(
        goal.custom_timeouts,
        CustomTimeouts {
            create: 300.0,
            delete: 3600.0,
            ..CustomTimeouts::default()
        }
    );
    assert_eq!(goal.retain_on_delete, Some(true));
    assert_eq!(goal.deleted_with, Some(urn("w")));
    assert_eq!(goal.replace_with, [urn("r")]);
    assert_eq!(goal.replacement_trigger, PropertyValue::secret("t".into()));
    assert_eq!(goal.delete_before_replace, Some(false));
    assert_eq!(goal.additional_secret_outputs, ["s"]);
    assert_eq!(goal.hooks[&HookKind::BeforeCreate], ["h"]);
    assert_eq!(goal.import_id.as_deref(), Some("existing"));
    assert_eq!(goal.hide_diff[0].to_string(), "list[0].name");
    assert_eq!(goal.source_position, "project:///index.ts#3");
}

#[tokio::test]
async fn without_told_property_dependencies_each_property_depends_on_everything() {
    let rig = rig();
    let options = ResourceOptions {
        depends_on: vec![urn("x"), urn("y")],
        ..ResourceOptions::default()
    };
    let request = Registration {
        properties: props(&[("a", 1.0.into()), ("b", 2.0.into())]),
        ..with(options, custom("bucket"))
    };
    rig.register(request).await;
    let goal = rig.goal("bucket");
    for key in ["a", "b"] {
        assert_eq!(goal.property_dependencies[key], [urn("x"), urn("y")]);
    }
}

#[tokio::test]
async fn told_property_dependencies_are_extended_by_those_of_outputs() {
    let rig = rig();
    let output = OutputValue {
        value: Some("v".into()),
        secret: true,
        dependencies: vec![urn("inside")],
    };
    let request = Registration {
        properties: props(&[
            ("a", PropertyValue::Output(Box::new(output))),
            ("b", "w".into()),
        ]),
        property_dependencies: Some([("a".to_owned(), vec![urn("told")])].into()),
        ..custom("bucket")
    };
    rig.register(request).await;
    let goal = rig.goal("bucket");
    assert_eq!(goal.properties["a"], PropertyValue::secret("v".into()));
    assert_eq!(
        goal.property_dependencies["a"],
        [urn("told"), urn("inside")]
    );
    assert!(goal.property_dependencies["b"].is_empty());
}

#[tokio::test]
async fn custom_resources_are_answered_with_outputs_and_components_with_none() {
    let outputs = props(&[("out", "o".into())]);
    let answer = outputs.clone();
    let rig = rig_with(
        registrar().answering(move |_| RegistrationAnswer::Outputs(answer.clone())),
        settings(),
    );
    let bucket = rig.register(custom("bucket")).await;
    assert_eq!(bucket.outputs, outputs);
    assert_eq!(bucket.id.as_deref(), Some("bucket-id"));
    let component = rig.register(component("component")).await;
    assert!(component.outputs.is_empty());
    assert_eq!(component.id, None);
}

#[tokio::test]
async fn partly_known_outputs_are_kept_from_sdks_that_do_not_take_them() {
    let outputs = props(&[
        ("known", "k".into()),
        (
            "partly",
            PropertyValue::Array(vec![PropertyValue::Computed, 1.0.into()]),
        ),
    ]);
    let rig = rig_with(
        registrar().answering(move |_| RegistrationAnswer::Outputs(outputs.clone())),
        settings(),
    );
    let old = Registration {
        takes_partial_values: false,
        ..custom("old")
    };
    let old = rig.register(old).await;
    assert_eq!(old.outputs.keys().collect::<Vec<_>>(), ["known"]);
    let new = rig.register(custom("new")).await;
    assert_eq!(new.outputs.len(), 2);
}

#[tokio::test]
async fn a_left_out_create_is_answered_as_unknown() {
    let rig = rig_with(
        registrar().answering(|_| RegistrationAnswer::Elided),
        settings(),
    );
    let options = ResourceOptions {
        provider: crate::support::provider_ref("aws", "p"),
        ..ResourceOptions::default()
    };
    let registered = rig.register(with(options, custom("bucket"))).await;
    assert!(registered.unknown);
    assert_eq!(registered.status, RegisterStatus::Succeeded);
}

#[tokio::test]
async fn assets_get_their_hashes_from_the_program_directory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("page.html"), "a test asset").expect("a file");
    let mut settings = settings();
    settings.program_dir = directory.path().to_owned();
    let rig = rig_with(registrar(), settings);
    let asset = PropertyValue::Asset(Asset::Path {
        hash: String::new(),
        path: "page.html".to_owned(),
    });
    let request = Registration {
        properties: props(&[("source", asset)]),
        ..custom("object")
    };
    rig.register(request).await;
    assert_eq!(
        rig.goal("object").properties["source"],
        PropertyValue::Asset(Asset::Path {
            hash: "e34c74529110661faae4e121e57165ff4cb4dbdde1ef9770098aa3695e6b6704".to_owned(),
            path: "page.html".to_owned(),
        })
    );
}

#[tokio::test]
async fn a_missing_asset_ends_the_deployment_with_its_path() {
    let rig = rig();
    let asset = PropertyValue::Asset(Asset::Path {
        hash: String::new(),
        path: "absent.html".to_owned(),
    });
    let request = Registration {
        properties: props(&[("source", asset)]),
        ..custom("object")
    };
    assert!(rig.monitor.register(request).await.is_err());
    assert!(
        rig.errors()[0].starts_with("/project/absent.html: "),
        "{:?}",
        rig.errors()
    );
}

#[tokio::test]
async fn the_program_is_complete_only_with_its_stack() {
    let rig = rig();
    assert_eq!(rig.monitor.completion(), Completion::NoStack);
    let stack = Registration {
        type_: "pulumi:pulumi:Stack".to_owned(),
        ..component("shop-dev")
    };
    let stack = rig.register(stack).await;
    assert_eq!(rig.monitor.completion(), Completion::EndedEarly);
    let outputs = props(&[("url", "u".into())]);
    rig.monitor
        .register_outputs(stack.urn, outputs.clone())
        .await
        .expect("not ending");
    assert_eq!(rig.monitor.completion(), Completion::Complete);
    assert_eq!(rig.registrar.outputs("shop-dev"), Some(outputs));
}
