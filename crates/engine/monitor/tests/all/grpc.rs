//! The services over real connections.

use std::sync::Arc;

use nimbus_engine_model::{Alias, AliasParent, PropertyValue};
use nimbus_engine_monitor::{Completion, Listen, MonitorServer};
use nimbus_engine_ports::{InvokeResponse, ProviderError, RegisterError, RegisterStatus, Severity};
use nimbus_engine_proto as proto;
use nimbus_engine_proto::engine_client::EngineClient;
use nimbus_engine_proto::resource_monitor_client::ResourceMonitorClient;
use nimbus_engine_testing::{AnsweringProvider, FakeRegistrar, MonitorRig, RegistrationAnswer};
use nimbus_engine_wire::{Accept, AcceptedValues, Outputs, UnknownEncoding, decode, encode};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use crate::support::{props, registrar, settings, urn};

pub(crate) struct Connected {
    pub(crate) stage: MonitorRig,
    server: MonitorServer,
    channel: Channel,
}

impl Connected {
    pub(crate) fn client(&self) -> ResourceMonitorClient<Channel> {
        ResourceMonitorClient::new(self.channel.clone())
            .max_decoding_message_size(proto::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(proto::MAX_MESSAGE_BYTES)
    }
}

pub(crate) async fn connected(registrar: FakeRegistrar) -> Connected {
    connected_at(registrar, Listen::Loopback).await
}

async fn connected_at(registrar: FakeRegistrar, listen: Listen) -> Connected {
    let stage = MonitorRig::new(registrar);
    let server = MonitorServer::start(&listen, settings(), stage.ports.clone())
        .await
        .expect("a free address");
    let address = match server.address() {
        unix if unix.starts_with("unix:") => unix.to_owned(),
        tcp => format!("http://{tcp}"),
    };
    let endpoint = Endpoint::from_shared(address).expect("an address");
    Connected {
        channel: endpoint.connect().await.expect("a listening server"),
        stage,
        server,
    }
}

pub(crate) fn all() -> Accept {
    Accept {
        unknowns: UnknownEncoding::Keep,
        secrets: true,
        resources: true,
        outputs: true,
        byte_strings: true,
        ..Accept::default()
    }
}

pub(crate) fn wire(entries: &[(&str, PropertyValue)]) -> Option<proto::Struct> {
    Some(encode(&props(entries), all()).expect("sendable"))
}

pub(crate) fn read(properties: Option<proto::Struct>) -> nimbus_engine_model::PropertyMap {
    let expect = AcceptedValues {
        unknowns: UnknownEncoding::Keep,
        outputs: Outputs::Keep,
    };
    decode(properties, expect).expect("readable")
}

fn component(name: &str) -> proto::RegisterResourceRequest {
    proto::RegisterResourceRequest {
        r#type: "my:mod:Component".to_owned(),
        name: name.to_owned(),
        supports_result_reporting: true,
        supports_partial_values: true,
        ..Default::default()
    }
}

pub(crate) fn custom(name: &str) -> proto::RegisterResourceRequest {
    proto::RegisterResourceRequest {
        r#type: "aws:s3:Bucket".to_owned(),
        custom: true,
        ..component(name)
    }
}

#[tokio::test]
async fn secrets_and_unknowns_go_through_and_are_stripped_for_those_who_ask_for_less() {
    let connected = connected(registrar()).await;
    let object = wire(&[
        ("secret", PropertyValue::secret("s".into())),
        ("unknown", PropertyValue::Computed),
    ]);
    let mut request = custom("bucket");
    request.object = object.clone();
    request.accept_secrets = true;
    let answer = connected.client().register_resource(request).await;
    let answer = answer.expect("an answer").into_inner();
    assert_eq!(answer.urn, urn("bucket").as_str());
    assert_eq!(answer.id, "bucket-id");
    assert_eq!(answer.result, i32::from(proto::Result::Success));
    let outputs = read(answer.object);
    assert_eq!(outputs["secret"], PropertyValue::secret("s".into()));
    assert_eq!(outputs["unknown"], PropertyValue::Computed);
    let goal = connected.stage.registrar.goal("bucket").expect("a goal");
    assert_eq!(goal.properties, outputs);

    let mut request = custom("plain");
    request.object = object;
    let answer = connected.client().register_resource(request).await;
    let outputs = read(answer.expect("an answer").into_inner().object);
    assert_eq!(outputs["secret"], "s".into());
}

#[tokio::test]
async fn the_deployment_tells_about_itself_and_claims_only_what_works() {
    let connected = connected(registrar()).await;
    let info = connected.client().get_deployment_info(()).await;
    let info = info.expect("an answer").into_inner();
    assert_eq!(
        (info.project.as_str(), info.stack.as_str()),
        ("shop", "dev")
    );
    let features: Vec<_> = info.supported_features().collect();
    assert!(features.contains(&proto::ResourceMonitorFeature::ErrorHooks));
    assert!(features.contains(&proto::ResourceMonitorFeature::InvokeDependsOn));
    assert!(!features.contains(&proto::ResourceMonitorFeature::StateMigrations));
    assert!(!features.contains(&proto::ResourceMonitorFeature::SendsOptionsToHooks));
    for (id, expected) in [
        ("secrets", true),
        ("transforms", true),
        ("sendsOptionsToHooks", false),
    ] {
        let request = proto::SupportsFeatureRequest { id: id.to_owned() };
        let answer = connected.client().supports_feature(request).await;
        assert_eq!(
            answer.expect("an answer").into_inner().has_support,
            expected,
            "{id}"
        );
    }
}

#[tokio::test]
async fn failures_are_told_to_those_who_take_them() {
    let registrar = registrar().answering(|_| RegistrationAnswer::Status(RegisterStatus::Failed));
    let connected = connected(registrar).await;
    let answer = connected.client().register_resource(component("c")).await;
    assert_eq!(
        answer.expect("an answer").into_inner().result,
        i32::from(proto::Result::Fail)
    );
    let mut old = component("old");
    old.supports_result_reporting = false;
    let status = connected
        .client()
        .register_resource(old)
        .await
        .expect_err("turned away");
    assert_eq!(status.code(), Code::Unavailable);
}

#[tokio::test]
async fn every_failure_is_unavailable_to_this_and_every_pending_request() {
    let registrar = registrar().answering(|goal| match goal.name.as_str() {
        "waits" => RegistrationAnswer::Hang,
        "refused" => RegistrationAnswer::Error(RegisterError::Invalid {
            message: "no".to_owned(),
        }),
        _ => RegistrationAnswer::Usual,
    });
    let connected = connected(registrar).await;
    let waiting = tokio::spawn({
        let mut client = connected.client();
        async move { client.register_resource(component("waits")).await }
    });
    let signalled = tokio::spawn({
        let mut client = connected.client();
        async move { client.signal_and_wait_for_shutdown(()).await }
    });
    connected.stage.registrar.asked_for("waits").await;
    let status = connected
        .client()
        .register_resource(component("refused"))
        .await;
    assert_eq!(status.expect_err("turned away").code(), Code::Unavailable);
    let waited = waiting.await.expect("the task does not panic");
    assert_eq!(waited.expect_err("turned away").code(), Code::Unavailable);
    let signalled = signalled.await.expect("the task does not panic");
    assert_eq!(
        signalled.expect_err("turned away").code(),
        Code::Unavailable
    );
    assert_eq!(connected.stage.events.messages(Severity::Error), ["no"]);
    assert_eq!(connected.server.monitor().completion(), Completion::Failed);
}

#[tokio::test]
async fn requests_that_make_no_sense_are_shown_and_turned_away() {
    let connected = connected(registrar()).await;
    let mut request = component("c");
    request.parent = "somewhere".to_owned();
    let status = connected.client().register_resource(request).await;
    assert_eq!(status.expect_err("turned away").code(), Code::Unavailable);
    assert_eq!(
        connected.stage.events.messages(Severity::Error),
        ["parent: \"somewhere\" is not a URN"]
    );
}

#[tokio::test]
async fn a_failed_invoke_is_an_ordinary_error_with_its_message() {
    let provider = AnsweringProvider::default().on_invoke(|request| {
        if request.args.is_empty() {
            Err(ProviderError::failed("not found".to_owned()))
        } else {
            Ok(InvokeResponse {
                properties: request.args,
                failures: Vec::new(),
            })
        }
    });
    let registrar = registrar().with_provider("aws", Arc::new(provider));
    let connected = connected(registrar).await;
    let mut request = proto::ResourceInvokeRequest {
        tok: "aws:ec2:getAmi".to_owned(),
        ..Default::default()
    };
    let status = connected
        .client()
        .invoke(request.clone())
        .await
        .expect_err("it fails");
    assert_eq!(status.code(), Code::Unknown);
    assert_eq!(status.message(), "aws:ec2:getAmi: not found");
    request.args = wire(&[("a", PropertyValue::secret(1.0.into()))]);
    let answer = connected
        .client()
        .invoke(request)
        .await
        .expect("an answer")
        .into_inner();
    assert_eq!(
        read(answer.r#return)["a"],
        PropertyValue::secret(1.0.into())
    );
}

#[tokio::test]
async fn the_end_is_announced_once_and_answered_when_released() {
    let connected = connected(registrar()).await;
    let waiting = tokio::spawn({
        let mut client = connected.client();
        async move { client.signal_and_wait_for_shutdown(()).await }
    });
    connected.server.monitor().end_announced().await;
    let second = connected.client().signal_and_wait_for_shutdown(()).await;
    assert_eq!(
        second.expect_err("already announced").code(),
        Code::FailedPrecondition
    );
    assert!(!waiting.is_finished());
    connected.server.monitor().release();
    assert!(waiting.await.expect("the task does not panic").is_ok());
}

#[tokio::test]
async fn messages_far_beyond_the_usual_limit_pass() {
    let connected = connected(registrar()).await;
    let long = "x".repeat(6 * 1024 * 1024);
    let mut request = custom("large");
    request.object = wire(&[("text", long.as_str().into())]);
    let answer = connected.client().register_resource(request).await;
    let outputs = read(answer.expect("an answer").into_inner().object);
    assert_eq!(outputs["text"].as_str().map(str::len), Some(long.len()));
}

#[tokio::test]
async fn a_socket_serves_as_well_as_a_port_and_is_removed_afterwards() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("monitor.sock");
    let connected = connected_at(registrar(), Listen::UnixSocket(path.clone())).await;
    assert_eq!(
        connected.server.address(),
        format!("unix:{}", path.display())
    );
    let answer = connected.client().register_resource(component("c")).await;
    assert!(answer.is_ok());
    connected.server.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn aliases_of_old_node_sdks_are_read_as_they_were_meant() {
    let connected = connected(registrar()).await;
    let mut request = component("c");
    request.aliases = vec![proto::Alias {
        alias: Some(proto::alias::Alias::Spec(proto::alias::Spec::default())),
    }];
    let parents = |name: &str| -> Vec<AliasParent> {
        let goal = connected.stage.registrar.goal(name).expect("a goal");
        let aliases = goal.aliases.into_iter();
        aliases
            .map(|alias| match alias {
                Alias::Spec(spec) => spec.parent,
                Alias::Urn(urn) => AliasParent::Urn(urn),
            })
            .collect()
    };
    let mut from_node = Request::new(request.clone());
    let runtime = "nodejs".parse().expect("a header value");
    from_node.metadata_mut().insert("pulumi-runtime", runtime);
    connected
        .client()
        .register_resource(from_node)
        .await
        .expect("an answer");
    assert_eq!(parents("c"), [AliasParent::None]);

    request.name = "proper".to_owned();
    request.alias_specs = true;
    connected
        .client()
        .register_resource(request)
        .await
        .expect("an answer");
    assert_eq!(parents("proper"), [AliasParent::Same]);
}

#[tokio::test]
async fn delete_before_replace_counts_when_it_was_defined_or_is_true() {
    let connected = connected(registrar()).await;
    for (name, value, defined, expected) in [
        ("silent", false, false, None),
        ("no", false, true, Some(false)),
        ("yes", true, true, Some(true)),
        ("undefined yes", true, false, Some(true)),
    ] {
        let mut request = component(name);
        request.delete_before_replace = value;
        request.delete_before_replace_defined = defined;
        connected
            .client()
            .register_resource(request)
            .await
            .expect("an answer");
        let goal = connected.stage.registrar.goal(name).expect("a goal");
        assert_eq!(goal.delete_before_replace, expected, "{name}");
    }
}

#[tokio::test]
async fn packages_are_registered_with_their_parameters() {
    let connected = connected(registrar()).await;
    let request = proto::RegisterPackageRequest {
        name: "terraform-provider".to_owned(),
        version: "1.0.0".to_owned(),
        parameterization: Some(proto::Parameterization {
            name: "netlify".to_owned(),
            version: "0.9.0".to_owned(),
            value: b"n".to_vec(),
        }),
        ..Default::default()
    };
    let first = connected.client().register_package(request.clone()).await;
    let first = first.expect("an answer").into_inner().r#ref;
    let again = connected.client().register_package(request.clone()).await;
    assert_eq!(first, again.expect("an answer").into_inner().r#ref);
    let mut registration = custom("site");
    registration.r#type = "netlify:index:Site".to_owned();
    registration.package_ref = first;
    connected
        .client()
        .register_resource(registration)
        .await
        .expect("an answer");
    assert!(connected.stage.registrar.goal("default_0_9_0").is_some());
    let extension = proto::RegisterPackageRequest {
        extension: request.parameterization.clone(),
        parameterization: None,
        ..request.clone()
    };
    let extension = connected.client().register_package(extension).await;
    let mut registration = custom("page");
    registration.r#type = "netlify:index:Page".to_owned();
    registration.package_ref = extension.expect("an answer").into_inner().r#ref;
    let reference = registration.package_ref.clone();
    connected
        .client()
        .register_resource(registration)
        .await
        .expect("an answer");
    // The provider is the base's, and the resource names what extends it.
    assert!(connected.stage.registrar.goal("default_1_0_0").is_some());
    let page = connected.stage.registrar.goal("page").expect("it came");
    let extension = page.extension.expect("its extension");
    assert_eq!(extension.name, "netlify");
    assert_eq!(extension.reference(), reference);
    let bad = proto::RegisterPackageRequest {
        version: "one".to_owned(),
        ..request
    };
    let status = connected
        .client()
        .register_package(bad)
        .await
        .expect_err("no version");
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn the_engine_passes_messages_on_and_knows_the_root() {
    let connected = connected(registrar()).await;
    let mut engine = EngineClient::new(connected.channel.clone());
    let log = proto::LogRequest {
        severity: proto::LogSeverity::Warning.into(),
        message: "careful".to_owned(),
        urn: urn("bucket").to_string(),
        stream_id: 7,
        ephemeral: true,
    };
    engine.log(log).await.expect("an answer");
    let shown = connected.stage.events.diagnostics();
    assert_eq!(shown[0].severity, Severity::Warning);
    assert_eq!(shown[0].message, "careful");
    assert_eq!(shown[0].urn, Some(urn("bucket")));
    assert_eq!((shown[0].stream_id, shown[0].ephemeral), (7, true));

    let root = urn("root").to_string();
    let request = proto::SetRootResourceRequest { urn: root.clone() };
    engine.set_root_resource(request).await.expect("an answer");
    let answer = engine
        .get_root_resource(proto::GetRootResourceRequest {})
        .await;
    assert_eq!(answer.expect("an answer").into_inner().urn, root);

    for (range, code) in [
        (">=3.100.0 <4.0.0", None),
        ("<3.0.0", Some(Code::FailedPrecondition)),
        ("whatever", Some(Code::InvalidArgument)),
    ] {
        let request = proto::RequirePulumiVersionRequest {
            pulumi_version_range: range.to_owned(),
        };
        let answer = engine.require_pulumi_version(request).await;
        assert_eq!(answer.err().map(|status| status.code()), code, "{range}");
    }
}
