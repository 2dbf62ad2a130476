//! Remote components and methods.

use std::sync::Arc;

use nimbus_engine_model::{
    OutputValue, PropertyMap, PropertyValue, ProviderRef, ResourceReference, Urn,
};
use nimbus_engine_monitor::{Completion, Ending, MethodCall, Registration, ResourceOptions};
use nimbus_engine_ports::{CallResponse, ConstructResponse, ProviderError};
use nimbus_engine_testing::AnsweringProvider;

use crate::support::{
    Rig, TransformLog, custom, props, provider_ref, registrar, remote, rig_with, settings, under,
    urn, with,
};

fn output(value: Option<PropertyValue>, secret: bool, dependencies: &[Urn]) -> PropertyValue {
    PropertyValue::Output(Box::new(OutputValue {
        value,
        secret,
        dependencies: dependencies.to_vec(),
    }))
}

fn remote_urn(name: &str) -> Urn {
    Urn::new("dev", "shop", None, "comp:index:Remote", name)
}

fn constructing(outputs: PropertyMap) -> (Rig, Arc<AnsweringProvider>) {
    let provider = AnsweringProvider::default().on_construct(move |request| {
        Ok(ConstructResponse {
            urn: Urn::new("dev", "shop", None, &request.type_, &request.name),
            outputs: outputs.clone(),
            output_dependencies: [("told".to_owned(), vec![urn("t")])].into(),
        })
    });
    let provider = Arc::new(provider);
    let registrar = registrar().with_provider("comp", provider.clone());
    (rig_with(registrar, settings()), provider)
}

#[tokio::test]
async fn a_remote_component_is_constructed_by_its_provider() {
    let outputs = props(&[
        ("url", output(Some("u".into()), true, &[urn("maker")])),
        ("told", "t".into()),
    ]);
    let (rig, provider) = constructing(outputs);
    let options = ResourceOptions {
        protect: Some(true),
        depends_on: vec![urn("d")],
        providers: [("aws".to_owned(), provider_ref("aws", "mine"))].into(),
        ..ResourceOptions::default()
    };
    let request = Registration {
        properties: props(&[
            ("secret", PropertyValue::secret("s".into())),
            ("unknown", PropertyValue::Computed),
        ]),
        property_dependencies: Some([("secret".to_owned(), vec![urn("d")])].into()),
        ..with(options, remote("site"))
    };
    let registered = rig.register(request).await;

    assert!(
        rig.registrar.goal("site").is_none(),
        "its provider registers it"
    );
    let asked = &provider.constructs()[0];
    assert_eq!(asked.name, "site");
    assert_eq!(asked.inputs["secret"], output(Some("s".into()), true, &[]));
    assert_eq!(asked.inputs["unknown"], output(None, false, &[]));
    assert_eq!(asked.input_dependencies["secret"], [urn("d")]);
    assert_eq!(asked.options.protect, Some(true));
    assert_eq!(asked.options.dependencies, [urn("d")]);
    assert_eq!(asked.options.providers["aws"], provider_ref("aws", "mine"));
    assert_eq!(asked.context.project, "shop");

    assert_eq!(registered.urn, remote_urn("site"));
    assert_eq!(registered.outputs["url"], PropertyValue::secret("u".into()));
    assert_eq!(registered.dependencies["url"], [urn("maker")]);
    assert_eq!(registered.dependencies["told"], [urn("t")]);
}

#[tokio::test]
async fn providers_of_a_remote_component_serve_its_children() {
    let (rig, _provider) = constructing(PropertyMap::new());
    let mine = provider_ref("aws", "mine");
    let options = ResourceOptions {
        providers: [("aws".to_owned(), mine.clone())].into(),
        ..ResourceOptions::default()
    };
    let site = rig.register(with(options, remote("site"))).await;
    rig.register(under(&site, custom("child"))).await;
    assert_eq!(rig.goal("child").provider, mine);
}

#[tokio::test]
async fn transforms_of_a_remote_component_apply_where_it_is_made() {
    let (rig, _provider) = constructing(PropertyMap::new());
    let log = TransformLog::default();
    let wanted = Registration {
        transforms: vec![log.idle("own")],
        ..remote("site")
    };
    rig.register(wanted).await;
    // The constructing code registers the same component, without transforms.
    let made = Registration {
        remote: false,
        ..remote("site")
    };
    let site = rig.register(made).await;
    rig.register(under(&site, custom("child"))).await;
    assert_eq!(
        log.entries(),
        ["own on site", "own on site", "own on child"]
    );
}

#[tokio::test]
async fn a_construction_that_fails_ends_the_deployment() {
    let provider = AnsweringProvider::default()
        .on_construct(|_| Err(ProviderError::failed("cannot build".to_owned())));
    let registrar = registrar().with_provider("comp", Arc::new(provider));
    let rig = rig_with(registrar, settings());
    assert_eq!(rig.monitor.register(remote("site")).await, Err(Ending));
    assert_eq!(rig.errors(), ["comp:index:Remote: cannot build"]);
    assert_eq!(rig.monitor.completion(), Completion::Failed);
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_named() {
    let rig = rig_with(registrar(), settings());
    assert_eq!(rig.monitor.register(remote("site")).await, Err(Ending));
    assert!(
        rig.errors()[0].contains("pulumi:providers:comp::default"),
        "{:?}",
        rig.errors()
    );
}

fn answering() -> (Rig, Arc<AnsweringProvider>) {
    let provider = AnsweringProvider::default().on_call(|_| {
        Ok(CallResponse {
            properties: props(&[("r", output(Some("v".into()), true, &[urn("x")]))]),
            ..CallResponse::default()
        })
    });
    let provider = Arc::new(provider);
    let registrar = registrar().with_provider("aws", provider.clone());
    (rig_with(registrar, settings()), provider)
}

fn this(urn: &Urn, id: Option<&str>) -> PropertyValue {
    PropertyValue::ResourceReference(ResourceReference {
        urn: urn.clone(),
        id: id.map(|id| Box::new(id.into())),
        package_version: String::new(),
    })
}

#[tokio::test]
async fn a_method_is_served_by_the_provider_of_its_resource() {
    let (rig, provider) = answering();
    let mine = provider_ref("aws", "mine");
    let options = ResourceOptions {
        provider: mine,
        ..ResourceOptions::default()
    };
    let bucket = rig.register(with(options, custom("bucket"))).await;
    let call = MethodCall {
        token: "aws:s3:Bucket/method".to_owned(),
        args: props(&[
            ("__self__", this(&bucket.urn, Some("bucket-id"))),
            ("a", PropertyValue::secret("s".into())),
        ]),
        ..MethodCall::default()
    };
    let answer = rig.monitor.call(call).await.expect("not ending");
    assert_eq!(answer.properties["r"], PropertyValue::secret("v".into()));
    assert_eq!(answer.dependencies["r"], [urn("x")]);
    assert_eq!(
        provider.calls()[0].args["a"],
        output(Some("s".into()), true, &[])
    );
    assert_eq!(
        rig.registrar.goals().len(),
        1,
        "no default provider was needed"
    );
}

#[tokio::test]
async fn a_method_of_a_provider_is_served_by_that_very_provider() {
    let (rig, provider) = answering();
    let mine = ProviderRef::parse(&provider_ref("aws", "mine")).expect("a reference");
    let call = MethodCall {
        token: "pulumi:providers:aws/identity".to_owned(),
        args: props(&[("__self__", this(&mine.urn, Some(&mine.id)))]),
        ..MethodCall::default()
    };
    rig.monitor.call(call).await.expect("not ending");
    assert_eq!(provider.calls().len(), 1);
    assert!(rig.registrar.goals().is_empty());
}

#[tokio::test]
async fn a_method_without_its_resource_is_refused() {
    let (rig, _provider) = answering();
    let call = MethodCall {
        token: "aws:s3:Bucket/method".to_owned(),
        args: props(&[("__self__", this(&urn("never"), None))]),
        ..MethodCall::default()
    };
    assert_eq!(rig.monitor.call(call).await, Err(Ending));
    assert!(
        rig.errors()[0].contains("there is no resource"),
        "{:?}",
        rig.errors()
    );
}
