//! The built-in package.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{PropertyMap, PropertyValue, Urn};
use nimbus_engine_monitor::{
    BuiltinProvider, InvokeCall, InvokeError, Invoked, RunningResources, StackReadError,
    StackReader,
};
use nimbus_engine_ports::{
    CheckRequest, CreateRequest, DiffRequest, Diffs, InvokeRequest, Provider, ReadRequest,
    UpdateRequest,
};
use nimbus_engine_testing::{FakeRegistrar, MonitorRig};

use crate::support::{component, props, settings};

struct OtherStacks;

#[async_trait]
impl StackReader for OtherStacks {
    async fn outputs(&self, name: &str) -> Result<PropertyMap, StackReadError> {
        match name {
            "organization/net/dev" => Ok(props(&[
                ("vpc", "vpc-1".into()),
                ("key", PropertyValue::secret("k".into())),
                (
                    "deep",
                    props(&[("inner", PropertyValue::secret(1.0.into()))]).into(),
                ),
            ])),
            other => Err(StackReadError::NotFound {
                name: other.to_owned(),
            }),
        }
    }

    async fn resource_outputs(&self, _: &str) -> Result<PropertyMap, StackReadError> {
        Ok(props(&[("urn", props(&[]).into())]))
    }
}

fn provider() -> BuiltinProvider {
    BuiltinProvider::new(Arc::new(OtherStacks), Arc::new(RunningResources::default()))
}

fn urn(type_: &str) -> Option<Urn> {
    Some(Urn::new("dev", "shop", None, type_, "x"))
}

const REFERENCE: &str = "pulumi:pulumi:StackReference";
const STASH: &str = "pulumi:index:Stash";

#[tokio::test]
async fn a_stack_reference_reads_outputs_and_names_the_secret_ones() {
    let name = props(&[("name", "organization/net/dev".into())]);
    let request = ReadRequest {
        urn: urn(REFERENCE),
        id: "net".to_owned(),
        inputs: name.clone(),
        state: name.clone(),
        ..ReadRequest::default()
    };
    let read = provider().read(request).await.expect("a known stack");
    assert_eq!(read.id.as_deref(), Some("net"));
    assert_eq!(
        read.outputs["secretOutputNames"],
        PropertyValue::Array(vec!["deep".into(), "key".into()])
    );
    let invoke = InvokeRequest {
        token: "pulumi:pulumi:readStackOutputs".to_owned(),
        args: name,
        preview: false,
    };
    let invoked = provider().invoke(invoke).await.expect("a known stack");
    assert_eq!(invoked.properties, read.outputs);
}

#[tokio::test]
async fn an_unknown_stack_is_named() {
    let request = ReadRequest {
        urn: urn(REFERENCE),
        inputs: props(&[("name", "nowhere".into())]),
        state: props(&[("name", "nowhere".into())]),
        ..ReadRequest::default()
    };
    let error = provider().read(request).await.expect_err("no such stack");
    assert_eq!(error.to_string(), "there is no stack nowhere");
}

#[tokio::test]
async fn a_stash_keeps_the_output_of_its_first_input() {
    let provider = provider();
    let create = CreateRequest {
        urn: urn(STASH),
        properties: props(&[("input", 1.0.into())]),
        ..CreateRequest::default()
    };
    let created = provider.create(create).await.expect("a stash");
    assert!(!created.id.is_empty());
    assert_eq!(
        created.properties,
        props(&[("input", 1.0.into()), ("output", 1.0.into())])
    );
    let update = UpdateRequest {
        urn: urn(STASH),
        old_outputs: created.properties,
        new_inputs: props(&[("input", 2.0.into())]),
        ..UpdateRequest::default()
    };
    let updated = provider.update(update).await.expect("a stash");
    assert_eq!(
        updated.properties,
        props(&[("input", 2.0.into()), ("output", 1.0.into())])
    );
}

#[tokio::test]
async fn wrong_inputs_are_check_failures() {
    let check = |type_, news| {
        let request = CheckRequest {
            urn: urn(type_),
            news,
            ..CheckRequest::default()
        };
        async move { provider().check(request).await.expect("an answer").failures }
    };
    assert!(
        check(REFERENCE, props(&[("name", "n".into())]))
            .await
            .is_empty()
    );
    assert!(
        check(STASH, props(&[("input", PropertyValue::Computed)]))
            .await
            .is_empty()
    );
    for (type_, news) in [
        (REFERENCE, props(&[])),
        (REFERENCE, props(&[("name", 1.0.into())])),
        (
            REFERENCE,
            props(&[("name", "n".into()), ("more", "m".into())]),
        ),
        (STASH, props(&[])),
    ] {
        assert_eq!(check(type_, news).await.len(), 1, "{type_}");
    }
}

#[tokio::test]
async fn another_name_is_another_reference_and_another_input_is_an_update() {
    let diff = |type_, key: &'static str| {
        let request = DiffRequest {
            urn: urn(type_),
            old_inputs: props(&[(key, "a".into())]),
            new_inputs: props(&[(key, "b".into())]),
            ..DiffRequest::default()
        };
        async move { provider().diff(request).await.expect("an answer") }
    };
    let reference = diff(REFERENCE, "name").await;
    assert!(reference.replaces());
    let stash = diff(STASH, "input").await;
    assert_eq!(stash.changes, Diffs::Some);
    assert!(!stash.replaces());
}

#[tokio::test]
async fn a_resource_of_this_run_is_found_by_its_urn() {
    let resources = Arc::new(RunningResources::default());
    let builtin = BuiltinProvider::new(Arc::new(OtherStacks), Arc::clone(&resources));
    let registrar = FakeRegistrar::new("shop", "dev").with_provider("pulumi", Arc::new(builtin));
    let mut stage = MonitorRig::new(registrar);
    stage.ports.resources = resources;
    let monitor = stage.monitor(settings());
    let made = monitor.register(component("c")).await.expect("not ending");
    let get = |urn: &str| InvokeCall {
        token: "pulumi:pulumi:getResource".to_owned(),
        args: props(&[("urn", urn.into())]),
        ..InvokeCall::default()
    };
    let Ok(Invoked::Answered { properties, .. }) = monitor.invoke(get(made.urn.as_str())).await
    else {
        panic!("the resource is there");
    };
    assert_eq!(properties["urn"], made.urn.as_str().into());
    assert_eq!(
        properties["state"],
        PropertyValue::Object(PropertyMap::new())
    );
    let absent = monitor
        .invoke(get("urn:pulumi:dev::shop::a:b:C::absent"))
        .await;
    assert!(matches!(absent, Err(InvokeError::Failed(_))));
}
