//! Functions of providers.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::PropertyMap;
use nimbus_engine_monitor::{
    InvokeCall, InvokeError, InvokeOptions, InvokeTransform, Invoked, MonitorError, ReadCall,
    ResourceOptions,
};
use nimbus_engine_ports::{InvokeResponse, ProviderError};
use nimbus_engine_testing::AnsweringProvider;

use crate::support::{
    Rig, component, custom, props, provider_ref, registrar, rig_with, settings, under, urn, with,
};

fn echoing() -> Arc<AnsweringProvider> {
    Arc::new(AnsweringProvider::default().on_invoke(|request| {
        Ok(InvokeResponse {
            properties: request.args,
            failures: Vec::new(),
        })
    }))
}

fn setup() -> (Rig, Arc<AnsweringProvider>) {
    let provider = echoing();
    let registrar = registrar().with_provider("aws", provider.clone());
    (rig_with(registrar, settings()), provider)
}

fn call() -> InvokeCall {
    InvokeCall {
        token: "aws:ec2:getAmi".to_owned(),
        args: props(&[("name", "n".into())]),
        ..InvokeCall::default()
    }
}

fn answered(properties: PropertyMap) -> Invoked {
    Invoked::Answered {
        properties,
        failures: Vec::new(),
    }
}

#[tokio::test]
async fn an_invoke_uses_the_default_provider() {
    let (rig, provider) = setup();
    let answer = rig.monitor.invoke(call()).await;
    assert_eq!(answer, Ok(answered(props(&[("name", "n".into())]))));
    assert!(!provider.invokes()[0].preview);
    assert_eq!(rig.goal("default").type_, "pulumi:providers:aws");
}

#[tokio::test]
async fn an_invoke_uses_the_providers_of_its_parent() {
    let (rig, provider) = setup();
    let options = ResourceOptions {
        providers: [("aws".to_owned(), provider_ref("aws", "mine"))].into(),
        ..ResourceOptions::default()
    };
    let parent = rig.register(with(options, component("c"))).await;
    let call = InvokeCall {
        parent: Some(parent.urn),
        ..call()
    };
    rig.monitor.invoke(call).await.expect("an answer");
    assert_eq!(provider.invokes().len(), 1);
    assert!(rig.registrar.goal("default").is_none());
}

#[tokio::test]
async fn transforms_change_arguments_and_options() {
    struct Renaming;

    #[async_trait]
    impl InvokeTransform for Renaming {
        async fn transform(
            &self,
            token: &str,
            mut args: PropertyMap,
            options: InvokeOptions,
        ) -> Result<(PropertyMap, InvokeOptions), MonitorError> {
            args.insert("token".to_owned(), token.into());
            let version = "9.0.0".to_owned();
            Ok((args, InvokeOptions { version, ..options }))
        }
    }

    let (rig, provider) = setup();
    let added = rig.monitor.add_invoke_transform(Arc::new(Renaming));
    added.expect("few");
    rig.monitor.invoke(call()).await.expect("an answer");
    assert_eq!(provider.invokes()[0].args["token"], "aws:ec2:getAmi".into());
    assert_eq!(
        rig.goal("default_9_0_0").properties["version"],
        "9.0.0".into()
    );
}

#[tokio::test]
async fn an_invoke_that_depends_on_a_planned_resource_is_unknown() {
    let provider = echoing();
    let registrar = registrar().dry_run().with_provider("aws", provider.clone());
    let mut settings = settings();
    settings.context.dry_run = true;
    let rig = rig_with(registrar, settings);
    let parent = rig.register(component("c")).await;
    rig.register(under(&parent, custom("planned"))).await;

    let depending = |on| InvokeCall {
        depends_on: vec![on],
        ..call()
    };
    assert_eq!(
        rig.monitor.invoke(depending(parent.urn)).await,
        Ok(Invoked::Unknown)
    );
    assert!(provider.invokes().is_empty());
    rig.monitor
        .invoke(depending(urn("of another run")))
        .await
        .expect("an answer");
    assert!(provider.invokes()[0].preview);
}

#[tokio::test]
async fn a_failed_invoke_is_the_programs_to_handle() {
    let provider = AnsweringProvider::default()
        .on_invoke(|_| Err(ProviderError::failed("not found".to_owned())));
    let registrar = registrar().with_provider("aws", Arc::new(provider));
    let rig = rig_with(registrar, settings());
    let Err(InvokeError::Failed(error)) = rig.monitor.invoke(call()).await else {
        panic!("it fails");
    };
    assert_eq!(error.to_string(), "aws:ec2:getAmi: not found");
    assert!(rig.errors().is_empty());
    rig.register(custom("after")).await;
}

#[tokio::test]
async fn a_read_names_its_object_and_its_provider() {
    let (rig, _provider) = setup();
    let read = ReadCall {
        type_: "aws:s3:Bucket".to_owned(),
        name: "shared".to_owned(),
        id: "bucket-1".to_owned(),
        properties: props(&[("p", 1.0.into())]),
        dependencies: vec![urn("d")],
        additional_secret_outputs: vec!["s".to_owned()],
        ..ReadCall::default()
    };
    let done = rig.monitor.read(read).await.expect("not ending");
    assert_eq!(done.urn, urn("shared"));
    assert_eq!(done.outputs, props(&[("p", 1.0.into())]));
    let goal = &rig.registrar.reads()[0];
    assert_eq!(goal.id, "bucket-1");
    assert_eq!(goal.dependencies, [urn("d")]);
    assert_eq!(goal.additional_secret_outputs, ["s"]);
    assert!(goal.provider.contains("pulumi:providers:aws::default"));
}
