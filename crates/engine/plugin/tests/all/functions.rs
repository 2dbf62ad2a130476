//! Functions, methods and remote components.

use std::sync::{Arc, Mutex};

use nimbus_engine_model::{
    Alias, AliasParent, AliasSpec, CustomTimeouts, HookKind, OutputValue, PropertyValue,
};
use nimbus_engine_ports::{
    CallRequest, ConstructOptions, ConstructRequest, DeploymentContext, InvokeRequest,
    ProviderError,
};
use nimbus_engine_proto as proto;
use proto::resource_monitor_server::{ResourceMonitor, ResourceMonitorServer};
use tonic::{Request, Response, Status};

use crate::support::*;

fn context(dry_run: bool) -> DeploymentContext {
    DeploymentContext {
        project: "shop".into(),
        stack: "dev".into(),
        organization: "acme".into(),
        config: [("shop:size".to_owned(), "3".to_owned())].into(),
        config_secret_keys: ["shop:token".to_owned()].into(),
        dry_run,
        parallel: 4,
        monitor_endpoint: "127.0.0.1:9".into(),
    }
}

fn output(value: &str) -> PropertyValue {
    PropertyValue::Output(Box::new(OutputValue {
        value: Some(value.into()),
        secret: false,
        dependencies: vec![urn("fake:index:Thing", "dep")],
    }))
}

#[tokio::test]
async fn a_function_called_with_a_secret_returns_only_secrets_if_the_peer_cannot_mark_them() {
    let fake = |base: Fake| Fake {
        invoke: answer(|request: proto::InvokeRequest| {
            assert_eq!(request.tok, "fake:index:find");
            assert!(request.preview);
            let failure = proto::CheckFailure {
                property: "q".into(),
                reason: "odd".into(),
            };
            Ok(proto::InvokeResponse {
                r#return: Some(object([("found", s("x"))])),
                failures: vec![failure],
            })
        }),
        ..base
    };
    let request = |args| InvokeRequest {
        token: "fake:index:find".into(),
        args,
        preview: true,
    };
    let with_secret = || request(map([("q", secret("s"))]));

    let rig = Rig::configured(fake(simple())).await;
    let found = rig.provider.invoke(with_secret()).await.unwrap();
    assert_eq!(found.properties, map([("found", secret("x"))]));
    assert_eq!(found.failures[0].property, "q");
    let found = rig
        .provider
        .invoke(request(map([("q", "open".into())])))
        .await
        .unwrap();
    assert_eq!(found.properties, map([("found", "x".into())]));

    let rig = Rig::configured(fake(modern())).await;
    let found = rig.provider.invoke(with_secret()).await.unwrap();
    assert_eq!(
        found.properties,
        map([("found", "x".into())]),
        "it could have marked it"
    );
}

#[tokio::test]
async fn a_method_gets_outputs_with_their_dependencies_and_returns_them() {
    let dependency = urn("fake:index:Thing", "dep");
    let expected = dependency.to_string();
    let rig = Rig::configured(Fake {
        call: answer(move |request: proto::CallRequest| {
            assert_eq!(request.arg_dependencies["a"].urns, [expected.as_str()]);
            assert_eq!(request.organization, "acme");
            assert_eq!(request.config_secret_keys, ["shop:token"]);
            assert_eq!(request.monitor_endpoint, "127.0.0.1:9");
            assert!(request.accepts_output_values && request.dry_run);
            let urns = vec![expected.clone()];
            Ok(proto::CallResponse {
                r#return: request.args,
                return_dependencies: [(
                    "a".to_owned(),
                    proto::call_response::ReturnDependencies { urns },
                )]
                .into(),
                failures: vec![],
            })
        }),
        ..modern()
    })
    .await;
    let args = map([("a", output("v")), ("u", PropertyValue::Computed)]);
    let request = CallRequest {
        context: context(true),
        token: "fake:index:Thing/do".into(),
        args: args.clone(),
        arg_dependencies: [("a".to_owned(), vec![dependency.clone()])].into(),
        stack_trace_handle: String::new(),
    };
    let response = rig.provider.call(request).await.unwrap();
    assert_eq!(response.properties, args);
    assert_eq!(response.dependencies["a"], [dependency]);
}

fn construct(dry_run: bool) -> ConstructRequest {
    let spec = AliasSpec {
        name: Some("old".into()),
        parent: AliasParent::None,
        ..Default::default()
    };
    ConstructRequest {
        context: context(dry_run),
        type_: "fake:index:Group".into(),
        name: "g".into(),
        parent: Some(urn("pulumi:pulumi:Stack", "shop-dev")),
        inputs: map([("size", output("3"))]),
        input_dependencies: [("size".to_owned(), vec![urn("fake:index:Thing", "dep")])].into(),
        options: ConstructOptions {
            aliases: vec![Alias::Urn(urn("fake:index:Group", "o")), Alias::Spec(spec)],
            dependencies: vec![urn("fake:index:Thing", "dep")],
            protect: Some(false),
            custom_timeouts: CustomTimeouts {
                create: 90.5,
                ..CustomTimeouts::default()
            },
            hooks: [(HookKind::OnError, vec!["again".to_owned()])].into(),
            replacement_trigger: "t".into(),
            retain_on_delete: Some(true),
            ..ConstructOptions::default()
        },
        stack_trace_handle: "h".into(),
    }
}

#[tokio::test]
async fn a_component_gets_its_inputs_and_every_option() {
    let seen = Arc::new(Mutex::new(None));
    let record = seen.clone();
    let rig = Rig::configured(Fake {
        construct: answer(move |request: proto::ConstructRequest| {
            *record.lock().unwrap() = Some(request);
            Ok(proto::ConstructResponse {
                urn: urn("fake:index:Group", "g").to_string(),
                state: Some(object([("size", s("3"))])),
                ..Default::default()
            })
        }),
        ..modern()
    })
    .await;
    let response = rig.provider.construct(construct(false)).await.unwrap();
    assert_eq!(response.urn, urn("fake:index:Group", "g"));
    assert_eq!(response.outputs, map([("size", "3".into())]));

    let seen = seen.lock().unwrap().take().unwrap();
    let dependency = urn("fake:index:Thing", "dep").to_string();
    assert_eq!(seen.dependencies, [dependency.as_str()]);
    assert_eq!(seen.input_dependencies["size"].urns, [dependency]);
    assert_eq!(
        (seen.protect, seen.retain_on_delete),
        (Some(false), Some(true))
    );
    assert_eq!(seen.delete_before_replace, None);
    assert_eq!(seen.replacement_trigger, Some(s("t")));
    assert_eq!(seen.stack_trace_handle, "h");
    let timeouts = seen.custom_timeouts.unwrap();
    assert_eq!(
        (timeouts.create.as_str(), timeouts.update.as_str()),
        ("90.5s", "")
    );
    assert_eq!(seen.resource_hooks.unwrap().on_error, ["again"]);
    let aliases: Vec<_> = seen
        .aliases
        .into_iter()
        .filter_map(|alias| alias.alias)
        .collect();
    let spec = proto::alias::Spec {
        name: "old".into(),
        parent: Some(proto::alias::spec::Parent::NoParent(true)),
        ..Default::default()
    };
    let expected = [
        proto::alias::Alias::Urn(urn("fake:index:Group", "o").to_string()),
        proto::alias::Alias::Spec(spec),
    ];
    assert_eq!(aliases, expected);
    let fields = &seen.inputs.unwrap().fields;
    assert!(
        matches!(fields["size"].kind, Some(proto::Kind::StructValue(_))),
        "an output value"
    );
}

#[tokio::test]
async fn components_need_a_provider_that_accepts_secrets() {
    let rig = Rig::configured(simple()).await;
    let refused = rig.provider.construct(construct(false)).await;
    assert!(
        matches!(refused, Err(ProviderError::Failed { .. })),
        "{refused:?}"
    );
    assert_eq!(rig.running.calls(), ["configure"]);
}

struct Monitor;

#[tonic::async_trait]
impl ResourceMonitor for Monitor {
    async fn register_resource(
        &self,
        request: Request<proto::RegisterResourceRequest>,
    ) -> Result<Response<proto::RegisterResourceResponse>, Status> {
        let request = request.into_inner();
        assert!(!request.custom && !request.remote);
        assert_eq!(
            request.parent,
            urn("pulumi:pulumi:Stack", "shop-dev").to_string()
        );
        let urn = urn(&request.r#type, &request.name).to_string();
        Ok(Response::new(proto::RegisterResourceResponse {
            urn,
            ..Default::default()
        }))
    }
}

#[tokio::test]
async fn a_component_of_a_provider_that_cannot_be_configured_yet_is_registered_in_its_place() {
    let (port, runtime) = serve(ResourceMonitorServer::new(Monitor)).await;
    let rig = Rig::loaded(modern()).await;
    rig.provider
        .configure(configuration([("e", PropertyValue::Computed)]))
        .await
        .unwrap();
    let mut request = construct(true);
    request.context.monitor_endpoint = format!("127.0.0.1:{port}");
    let response = rig.provider.construct(request).await.unwrap();
    assert_eq!(response.urn, urn("fake:index:Group", "g"));
    assert!(rig.running.calls().is_empty());
    runtime.shutdown_background();
}
