//! Greeting, CheckConfig, DiffConfig and Configure, and what a provider does without.

use std::sync::{Arc, Mutex};

use nimbus_engine_model::{PackageDescriptor, Parameterization, PropertyMap, PropertyValue};
use nimbus_engine_plugin::PluginHost;
use nimbus_engine_ports::{
    CallRequest, CheckRequest, CreateRequest, DiffRequest, Diffs, InvokeRequest, LoadError,
    ProviderError, ProviderHost, ReadRequest, Severity, UpdateRequest,
};
use nimbus_engine_proto as proto;
use proto::configure_error_missing_keys::MissingKey;
use proto::{ConfigureErrorMissingKeys, status_with_detail};
use tonic::{Code, Status};

use crate::support::*;

fn check(news: PropertyMap) -> CheckRequest {
    CheckRequest {
        type_: "pulumi:providers:fake".into(),
        name: "p".into(),
        news,
        allow_unknowns: true,
        ..CheckRequest::default()
    }
}

#[tokio::test]
async fn the_greeting_says_what_this_engine_offers() {
    let seen = Arc::new(Mutex::new(None));
    let record = seen.clone();
    let fake = Fake {
        handshake: answer(move |request| {
            *record.lock().unwrap() = Some(request);
            Ok(proto::ProviderHandshakeResponse::default())
        }),
        ..Fake::default()
    };
    let _rig = Rig::loaded(fake).await;
    let expected = proto::ProviderHandshakeRequest {
        engine_address: "127.0.0.1:1".into(),
        configure_with_urn: true,
        supports_refresh_before_update: true,
        invoke_with_preview: true,
        accepts_byte_string: true,
        ..Default::default()
    };
    assert_eq!(seen.lock().unwrap().take(), Some(expected));
}

#[tokio::test]
async fn a_package_made_by_parameters_is_asked_for_before_anything_else() {
    let running = Running::start(Fake {
        parameterize: answer(
            |request: proto::ParameterizeRequest| match request.parameters {
                Some(proto::parameterize_request::Parameters::Value(value)) => {
                    assert_eq!(value.value, b"blob");
                    Ok(proto::ParameterizeResponse {
                        name: value.name,
                        version: value.version,
                    })
                }
                other => Err(Status::invalid_argument(format!("{other:?}"))),
            },
        ),
        get_schema: answer(|request: proto::GetSchemaRequest| {
            Ok(proto::GetSchemaResponse {
                schema: format!("{{\"name\":\"{}\"}}", request.subpackage_name),
            })
        }),
        ..Fake::default()
    })
    .await;
    let audience = Arc::new(Audience::default());
    let mut options = options(&audience, std::path::Path::new("."));
    options.search.running = [("fake".to_owned(), running.port)].into();
    let host = PluginHost::new(options);
    let parameterization = Parameterization {
        name: "sub".into(),
        version: semver::Version::new(1, 2, 3),
        value: b"blob".to_vec(),
    };
    let package = PackageDescriptor {
        parameterization: Some(parameterization),
        ..package("fake")
    };
    assert_eq!(host.schema(&package).await.unwrap(), "{\"name\":\"sub\"}");
    host.load(&package).await.unwrap();
}

#[tokio::test]
async fn a_provider_that_serves_another_package_than_asked_is_refused() {
    let running = Running::start(Fake {
        parameterize: answer(|_| {
            Ok(proto::ParameterizeResponse {
                name: "other".into(),
                version: "1.0.0".into(),
            })
        }),
        ..Fake::default()
    })
    .await;
    let audience = Arc::new(Audience::default());
    let mut options = options(&audience, std::path::Path::new("."));
    options.search.running = [("fake".to_owned(), running.port)].into();
    let parameterization = Parameterization {
        name: "sub".into(),
        version: semver::Version::new(1, 0, 0),
        value: Vec::new(),
    };
    let package = PackageDescriptor {
        parameterization: Some(parameterization),
        ..package("fake")
    };
    let Err(LoadError::NotStarted { reason, .. }) = PluginHost::new(options).load(&package).await
    else {
        panic!("it must not load")
    };
    assert_eq!(reason, "asked to serve the package sub, it serves other");
}

#[tokio::test]
async fn an_older_plugin_than_asked_for_is_used_with_a_warning() {
    let running = Running::start(Fake {
        get_plugin_info: answer(|()| {
            Ok(proto::PluginInfo {
                version: "v1.9.0".into(),
            })
        }),
        ..Fake::default()
    })
    .await;
    let audience = Arc::new(Audience::default());
    let mut options = options(&audience, std::path::Path::new("."));
    options.search.running = [("fake".to_owned(), running.port)].into();
    let host = PluginHost::new(options);
    for (version, warnings) in [("1.9.0", 0), ("1.8.0", 0), ("2.0.0", 1)] {
        let version = Some(version.parse().unwrap());
        host.load(&PackageDescriptor {
            version,
            ..package("fake")
        })
        .await
        .unwrap();
        assert_eq!(audience.told(Severity::Warning).len(), warnings);
    }
}

#[tokio::test]
async fn a_checked_configuration_keeps_its_secrets_though_they_are_sent_plain() {
    let rig = Rig::loaded(Fake {
        check_config: answer(|request: proto::CheckRequest| {
            assert_eq!(
                request.news,
                Some(object([("token", s("t")), ("url", s(UNKNOWN))]))
            );
            assert_eq!(request.olds, None);
            Ok(proto::CheckResponse {
                inputs: request.news,
                failures: vec![proto::CheckFailure {
                    property: "url".into(),
                    reason: "no".into(),
                }],
            })
        }),
        ..modern()
    })
    .await;
    let news = map([("token", secret("t")), ("url", PropertyValue::Computed)]);
    let response = rig
        .provider
        .check_config(check(news.clone()))
        .await
        .unwrap();
    assert_eq!(response.properties, news);
    assert_eq!(response.failures[0].reason, "no");
}

#[tokio::test]
async fn a_provider_without_config_checks_accepts_and_never_asks_to_be_replaced() {
    let rig = Rig::loaded(Fake::default()).await;
    let news = map([("token", secret("t"))]);
    let response = rig
        .provider
        .check_config(check(news.clone()))
        .await
        .unwrap();
    assert_eq!(response.properties, news);
    let diff = rig
        .provider
        .diff_config(DiffRequest::default())
        .await
        .unwrap();
    assert_eq!((diff.changes, diff.replaces()), (Diffs::Unknown, false));
}

#[tokio::test]
async fn old_ways_to_say_unimplemented_are_understood_where_they_were_used() {
    let fake = || Fake {
        check_config: answer(
            |request: proto::CheckRequest| match request.r#type.as_str() {
                "pulumi:providers:kubernetes" => Err(Status::unknown("rpc error: Unimplemented")),
                _ => Err(Status::internal("empty")),
            },
        ),
        diff_config: answer(|_| {
            Err(Status::unknown(
                "cannot unmarshal string into Go value of type struct {}",
            ))
        }),
        ..Fake::default()
    };
    let rig = Rig::loaded(fake()).await;
    let of_type = |type_: &str| CheckRequest {
        type_: type_.into(),
        ..check(PropertyMap::new())
    };
    for type_ in [
        "pulumi:providers:kubernetes",
        "pulumi:providers:pulumi-nodejs",
    ] {
        assert!(
            rig.provider.check_config(of_type(type_)).await.is_ok(),
            "{type_}"
        );
    }
    let other = rig
        .provider
        .check_config(of_type("pulumi:providers:aws"))
        .await;
    assert!(
        matches!(other, Err(ProviderError::Unknown { .. })),
        "{other:?}"
    );

    let diff = |type_: &str| DiffRequest {
        type_: type_.into(),
        ..DiffRequest::default()
    };
    assert!(
        rig.provider
            .diff_config(diff("pulumi:providers:kubernetes"))
            .await
            .is_ok()
    );
    let other = rig.provider.diff_config(diff("pulumi:providers:aws")).await;
    assert!(
        matches!(other, Err(ProviderError::Failed { .. })),
        "{other:?}"
    );
}

#[tokio::test]
async fn a_configuration_is_handed_over_in_both_forms_with_who_it_is_for() {
    let seen = Arc::new(Mutex::new(None));
    let record = seen.clone();
    let rig = Rig::loaded(Fake {
        configure: answer(move |request| {
            *record.lock().unwrap() = Some(request);
            Ok(proto::ConfigureResponse::default())
        }),
        ..Fake::default()
    })
    .await;
    let request = configuration([
        ("region", "eu".into()),
        ("token", secret("t")),
        ("version", "1.0.0".into()),
    ]);
    rig.provider.configure(request).await.unwrap();
    let seen = seen.lock().unwrap().take().unwrap();
    #[allow(deprecated)]
    let variables: Vec<_> = seen
        .variables
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(
        variables,
        [("fake:config:region", "eu"), ("fake:config:token", "t")]
    );
    let args = object([
        ("region", s("eu")),
        ("token", wire_secret(s("t"))),
        ("version", s("1.0.0")),
    ]);
    assert_eq!(seen.args, Some(args));
    assert!(seen.accept_secrets && seen.accept_resources);
    assert!(seen.sends_old_inputs && seen.sends_old_inputs_to_delete);
    assert_eq!(seen.id.as_deref(), Some("provider-id"));
    assert_eq!(
        seen.urn,
        Some(urn("pulumi:providers:fake", "default").to_string())
    );
    assert_eq!(seen.r#type.as_deref(), Some("pulumi:providers:fake"));
}

#[tokio::test]
async fn missing_configuration_is_named_and_the_provider_stays_unusable() {
    let rig = Rig::loaded(Fake {
        configure: answer(|_| {
            let key = MissingKey {
                name: "fake:region".into(),
                description: "where".into(),
            };
            let detail = ConfigureErrorMissingKeys {
                missing_keys: vec![key],
            };
            Err(status_with_detail(
                Code::InvalidArgument,
                "required",
                &detail,
            ))
        }),
        ..Fake::default()
    })
    .await;
    let Err(ProviderError::Failed { message, .. }) =
        rig.provider.configure(configuration([])).await
    else {
        panic!("it must fail")
    };
    assert_eq!(
        message,
        "required\nmissing configuration fake:region: where"
    );
    let check = rig.provider.check(check(PropertyMap::new())).await;
    assert!(matches!(check, Err(ProviderError::Failed { .. })));
    assert_eq!(rig.running.calls(), ["configure"]);
}

#[tokio::test]
async fn a_provider_is_not_asked_before_it_is_configured() {
    let rig = Rig::loaded(modern()).await;
    let created = rig.provider.create(CreateRequest::default()).await;
    assert!(
        matches!(created, Err(ProviderError::Failed { .. })),
        "{created:?}"
    );
    assert!(rig.running.calls().is_empty());
}

#[tokio::test]
async fn with_an_unknown_configuration_nothing_is_called_and_nothing_is_claimed() {
    let rig = Rig::loaded(modern()).await;
    let provider = &rig.provider;
    let unknown = secret(PropertyValue::Computed);
    provider
        .configure(configuration([("endpoint", unknown)]))
        .await
        .unwrap();

    let news = map([("a", "x".into())]);
    let checked = provider.check(check(news.clone())).await.unwrap();
    assert_eq!(checked.properties, news);
    let diff = provider.diff(DiffRequest::default()).await.unwrap();
    assert_eq!(diff.changes, Diffs::Unknown);
    assert_eq!(rig.audience.told(Severity::Warning).len(), 1);
    let create = CreateRequest {
        properties: news.clone(),
        preview: true,
        ..Default::default()
    };
    let created = provider.create(create.clone()).await.unwrap();
    assert_eq!(
        (created.id.as_str(), created.properties),
        ("", PropertyMap::new())
    );
    let update = UpdateRequest {
        new_inputs: news,
        preview: true,
        ..Default::default()
    };
    assert_eq!(
        provider.update(update).await.unwrap().properties,
        PropertyMap::new()
    );
    let read = ReadRequest {
        id: "i".into(),
        ..Default::default()
    };
    assert_eq!(
        provider.read(read).await.unwrap().id.as_deref(),
        Some("i"),
        "not absent"
    );
    let invoked = provider.invoke(InvokeRequest::default()).await.unwrap();
    assert!(invoked.properties.is_empty());
    assert!(
        provider
            .call(CallRequest::default())
            .await
            .unwrap()
            .properties
            .is_empty()
    );

    let real = provider
        .create(CreateRequest {
            preview: false,
            ..create
        })
        .await;
    assert!(
        matches!(real, Err(ProviderError::Failed { .. })),
        "an update needs to know"
    );
    assert!(rig.running.calls().is_empty());
}

#[tokio::test]
async fn a_provider_may_be_configured_again_once_everything_is_known() {
    let rig = Rig::loaded(simple()).await;
    let unknown = configuration([("endpoint", PropertyValue::Computed)]);
    rig.provider.configure(unknown).await.unwrap();
    rig.provider
        .configure(configuration([("endpoint", "e".into())]))
        .await
        .unwrap();
    assert_eq!(rig.running.calls(), ["configure"]);
    assert!(matches!(
        rig.provider.check(check(PropertyMap::new())).await,
        Err(ProviderError::Unimplemented { method: "Check" })
    ));
}
