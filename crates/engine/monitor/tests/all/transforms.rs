//! Transforms: whom they apply to, in which order, and what their changes mean.

use nimbus_engine_model::{OutputValue, PropertyValue};
use nimbus_engine_monitor::{Registration, ResourceOptions};

use crate::support::{TransformLog, component, custom, props, provider_ref, rig, under, urn, with};

#[tokio::test]
async fn own_transforms_run_before_the_parents_and_those_before_the_stacks() {
    let rig = rig();
    let log = TransformLog::default();
    for name in ["stack 1", "stack 2"] {
        let added = rig.monitor.add_stack_transform(log.idle(name));
        added.expect("few");
    }
    let outer = Registration {
        transforms: vec![log.idle("outer")],
        ..component("o")
    };
    let outer = rig.register(outer).await;
    let inner = Registration {
        transforms: vec![log.idle("inner 1"), log.idle("inner 2")],
        ..component("i")
    };
    let inner = rig.register(under(&outer, inner)).await;
    let child = Registration {
        transforms: vec![log.idle("own")],
        ..custom("c")
    };
    rig.register(under(&inner, child)).await;
    assert_eq!(
        log.entries(),
        [
            "outer on o",
            "stack 1 on o",
            "stack 2 on o",
            "inner 1 on i",
            "inner 2 on i",
            "outer on i",
            "stack 1 on i",
            "stack 2 on i",
            "own on c",
            "inner 1 on c",
            "inner 2 on c",
            "outer on c",
            "stack 1 on c",
            "stack 2 on c",
        ]
    );
}

#[tokio::test]
async fn changed_properties_and_options_make_the_goal() {
    let rig = rig();
    let log = TransformLog::default();
    let explicit = provider_ref("aws", "mine");
    let provider = explicit.clone();
    rig.monitor
        .add_stack_transform(log.transform("t", move |_, properties, options| {
            properties.insert("tag".to_owned(), "x".into());
            options.protect = Some(true);
            options.ignore_changes = vec!["size".to_owned()];
            options.provider.clone_from(&provider);
            options.depends_on.push(urn("added"));
        }))
        .expect("few");
    let request = Registration {
        properties: props(&[("size", 3.0.into())]),
        ..custom("bucket")
    };
    rig.register(request).await;
    let goal = rig.goal("bucket");
    assert_eq!(
        goal.properties,
        props(&[("size", 3.0.into()), ("tag", "x".into())])
    );
    assert_eq!(goal.protect, Some(true));
    assert_eq!(goal.ignore_changes, ["size"]);
    assert_eq!(goal.provider, explicit);
    assert_eq!(goal.dependencies, [urn("added")]);
}

#[tokio::test]
async fn transforms_see_outputs_that_know_their_dependencies() {
    let rig = rig();
    let log = TransformLog::default();
    rig.monitor
        .add_stack_transform(log.transform("t", |_, properties, _| {
            assert_eq!(
                properties["password"],
                PropertyValue::Output(Box::new(OutputValue {
                    value: Some("p".into()),
                    secret: true,
                    dependencies: vec![urn("maker")],
                }))
            );
            // Moved to another key, the value takes its dependencies along.
            let moved = properties.remove("password").expect("just seen");
            properties.insert("moved".to_owned(), moved);
        }))
        .expect("few");
    let options = ResourceOptions {
        depends_on: vec![urn("maker")],
        ..ResourceOptions::default()
    };
    let request = Registration {
        properties: props(&[
            ("password", PropertyValue::secret("p".into())),
            ("unknown", PropertyValue::Computed),
        ]),
        property_dependencies: Some([("password".to_owned(), vec![urn("maker")])].into()),
        ..with(options, custom("bucket"))
    };
    rig.register(request).await;
    let goal = rig.goal("bucket");
    assert_eq!(
        goal.properties,
        props(&[
            ("moved", PropertyValue::secret("p".into())),
            ("unknown", PropertyValue::Computed),
        ])
    );
    assert_eq!(goal.property_dependencies["moved"], [urn("maker")]);
    assert!(goal.property_dependencies["unknown"].is_empty());
    assert_eq!(goal.dependencies, [urn("maker")]);
}

#[tokio::test]
async fn a_transform_that_fails_ends_the_deployment_and_says_why() {
    use async_trait::async_trait;
    use nimbus_engine_model::PropertyMap;
    use nimbus_engine_monitor::{MonitorError, ResourceTransform, TransformedResource};

    struct Failing;

    #[async_trait]
    impl ResourceTransform for Failing {
        async fn transform(
            &self,
            _: &TransformedResource,
            _: PropertyMap,
            _: ResourceOptions,
        ) -> Result<(PropertyMap, ResourceOptions), MonitorError> {
            Err(MonitorError::Callback {
                what: "a transform".to_owned(),
                message: "boom".to_owned(),
            })
        }
    }

    let rig = rig();
    rig.monitor
        .add_stack_transform(std::sync::Arc::new(Failing))
        .expect("few");
    assert!(rig.monitor.register(custom("bucket")).await.is_err());
    assert_eq!(rig.errors(), ["a transform failed: boom"]);
    assert!(rig.registrar.goals().is_empty());
}
