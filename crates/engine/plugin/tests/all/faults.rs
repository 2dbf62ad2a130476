//! Providers that die, hang, or answer nonsense: the outcome is unknown, never absent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use nimbus_engine_model::PropertyMap;
use nimbus_engine_plugin::{PluginHost, PluginTimeouts};
use nimbus_engine_ports::{
    CheckRequest, CreateRequest, DeleteRequest, InvokeRequest, ProviderError, ProviderHost,
    ReadRequest, UpdateRequest,
};
use nimbus_engine_proto as proto;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Code, Status};

use crate::support::*;

#[track_caller]
fn unknown<T: std::fmt::Debug>(result: Result<T, ProviderError>) -> String {
    match result {
        Err(ProviderError::Unknown { message }) => message,
        other => panic!("expected an unknown outcome, found {other:?}"),
    }
}

fn read(id: &str) -> ReadRequest {
    ReadRequest {
        id: id.to_owned(),
        ..ReadRequest::default()
    }
}

#[tokio::test]
async fn a_connection_lost_during_a_call_leaves_every_outcome_unknown() {
    let fake = || Fake {
        create: hang(),
        update: hang(),
        delete: hang(),
        read: hang(),
        ..simple()
    };
    let rig = Arc::new(Rig::configured(fake()).await);
    let calls = async {
        tokio::join!(
            rig.provider.create(CreateRequest::default()),
            rig.provider.update(UpdateRequest::default()),
            rig.provider.delete(DeleteRequest::default()),
            rig.provider.read(read("i")),
        )
    };
    let death = async {
        while rig.running.calls().len() < 5 {
            tokio::task::yield_now().await;
        }
        rig.running.die();
    };
    let ((created, updated, deleted, found), ()) = tokio::join!(calls, death);
    assert!(unknown(created).contains("Create"));
    unknown(updated);
    unknown(deleted);
    unknown(found);

    let again = unknown(rig.provider.read(read("i")).await);
    assert!(again.contains("Read"), "{again}");
}

#[tokio::test]
async fn a_provider_that_hangs_is_given_up_after_the_general_limit() {
    let limits = PluginTimeouts {
        slow: Duration::from_millis(100),
        ..LIMITS
    };
    let rig = Rig::with_limits(
        Fake {
            delete: hang(),
            ..simple()
        },
        limits,
    )
    .await;
    rig.provider.configure(configuration([])).await.unwrap();
    let message = unknown(rig.provider.delete(DeleteRequest::default()).await);
    assert_eq!(
        message,
        "the plugin fake did not answer Delete within 100ms"
    );
}

#[tokio::test]
async fn a_resource_with_its_own_time_limit_is_given_up_soon_after_it() {
    let limits = PluginTimeouts {
        slow: Duration::from_secs(3600),
        ..LIMITS
    };
    let rig = Rig::with_limits(
        Fake {
            create: hang(),
            ..simple()
        },
        limits,
    )
    .await;
    rig.provider.configure(configuration([])).await.unwrap();
    let timeout = Some(Duration::from_millis(50));
    let request = CreateRequest {
        timeout,
        ..CreateRequest::default()
    };
    let message = unknown(rig.provider.create(request).await);
    assert!(message.contains("did not answer Create"), "{message}");
}

#[tokio::test]
async fn only_the_providers_own_word_makes_a_failure_of_a_failure() {
    for (code, expected) in [
        (Code::Unknown, "failed"),
        (Code::InvalidArgument, "failed"),
        (Code::NotFound, "failed"),
        (Code::PermissionDenied, "failed"),
        (Code::Unavailable, "failed"),
        (Code::Unimplemented, "unimplemented"),
        (Code::Internal, "unknown"),
        (Code::DataLoss, "unknown"),
        (Code::Cancelled, "unknown"),
        (Code::DeadlineExceeded, "unknown"),
    ] {
        let rig = Rig::configured(Fake {
            create: answer(move |_| Err(Status::new(code, "because"))),
            ..simple()
        })
        .await;
        let found = match rig.provider.create(CreateRequest::default()).await {
            Err(ProviderError::Failed { message, .. }) => {
                assert_eq!(message, "because");
                "failed"
            }
            Err(ProviderError::Unimplemented { method }) => {
                assert_eq!(method, "Create");
                "unimplemented"
            }
            Err(ProviderError::Unknown { message }) => {
                assert_eq!(message, "because");
                "unknown"
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "{code:?}");
    }
}

#[tokio::test]
async fn refused_inputs_are_named_one_by_one() {
    let rig = Rig::configured(Fake {
        create: answer(|_| {
            let error = |path: &str| proto::input_properties_error::PropertyError {
                property_path: path.to_owned(),
                reason: "too long".to_owned(),
            };
            let errors = vec![error("name"), error("tags[0]")];
            let detail = proto::InputPropertiesError { errors };
            Err(proto::status_with_detail(
                Code::InvalidArgument,
                "invalid",
                &detail,
            ))
        }),
        ..simple()
    })
    .await;
    let failed = rig.provider.create(CreateRequest::default()).await;
    let Err(ProviderError::Failed { message, .. }) = failed else {
        panic!("{failed:?}")
    };
    assert_eq!(message, "invalid\nname: too long\ntags[0]: too long");
}

#[tokio::test]
async fn answers_that_make_no_sense_leave_the_outcome_unknown() {
    let rig = Rig::configured(Fake {
        create: answer(|request: proto::CreateRequest| {
            let (id, value) = match request.name.as_str() {
                "no id" => ("", s("v")),
                "unknown value" => ("i", s(UNKNOWN)),
                _ => {
                    let bad = object([("4dabf18193072939515e22adb298388d", s("nonsense"))]);
                    ("i", proto::Kind::StructValue(bad).into())
                }
            };
            let properties = Some(object([("v", value)]));
            Ok(proto::CreateResponse {
                id: id.into(),
                properties,
                ..Default::default()
            })
        }),
        read: answer(|request: proto::ReadRequest| {
            let properties = Some(object([("v", s(UNKNOWN))]));
            Ok(proto::ReadResponse {
                id: request.id,
                properties,
                ..Default::default()
            })
        }),
        ..simple()
    })
    .await;
    let create = |name: &str| CreateRequest {
        name: name.to_owned(),
        ..CreateRequest::default()
    };
    assert!(unknown(rig.provider.create(create("no id")).await).contains("no id"));
    assert!(unknown(rig.provider.create(create("unknown value")).await).contains("not known"));
    assert!(unknown(rig.provider.create(create("signature")).await).contains("signature"));
    unknown(rig.provider.read(read("i")).await);
}

#[tokio::test]
async fn what_cannot_be_sent_fails_before_anything_is_asked() {
    let rig = Rig::configured(Fake {
        create: hang(),
        ..simple()
    })
    .await;
    let bytes = nimbus_engine_model::PropertyValue::Bytes(vec![0xff]);
    let properties: PropertyMap = map([("k", bytes)]);
    let failed = rig
        .provider
        .create(CreateRequest {
            properties,
            ..Default::default()
        })
        .await;
    assert!(
        matches!(failed, Err(ProviderError::Failed { .. })),
        "{failed:?}"
    );
    assert_eq!(rig.running.calls(), ["configure"]);
}

/// A server whose every answer is the given bytes, followed by the given status.
#[derive(Clone)]
struct Raw {
    body: &'static [u8],
    status: Option<&'static str>,
}

impl NamedService for Raw {
    const NAME: &'static str = "pulumirpc.ResourceProvider";
}

struct RawBody(Vec<Frame<Bytes>>);

impl http_body::Body for RawBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.pop().map(Ok))
    }
}

impl tower::Service<http::Request<Body>> for Raw {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let greeting = ["Handshake", "Attach", "GetPluginInfo", "Configure"];
        let method = request.uri().path().rsplit('/').next().unwrap_or_default();
        let (body, status) = if greeting.contains(&method) {
            // An empty message is a valid answer to all of these.
            (&[0, 0, 0, 0, 0][..], Some("0"))
        } else {
            (self.body, self.status)
        };
        let trailers = status.map(|status| {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static(status));
            Frame::trailers(trailers)
        });
        let frames = trailers
            .into_iter()
            .chain([Frame::data(Bytes::from_static(body))])
            .collect();
        let response = http::Response::builder()
            .header("content-type", "application/grpc")
            .body(Body::new(RawBody(frames)))
            .unwrap();
        std::future::ready(Ok(response))
    }
}

#[tokio::test]
async fn bytes_that_are_no_message_leave_the_outcome_unknown_whatever_their_status() {
    for (body, status) in [
        (&b"\x00\x00\x00\x00\x03\xff\xff\xff"[..], Some("0")),
        (b"\x00\x00\x00\x00\x03\xff\xff\xff", Some("2")),
        (b"\x00\x00\x00\x00\xff", Some("0")),
        (b"\x07garbage", Some("0")),
        (b"", Some("0")),
        (b"", None),
        (b"\x00\x00\x00\x00\x00", None),
    ] {
        let (port, runtime) = serve(Raw { body, status }).await;
        let audience = Arc::new(Audience::default());
        let mut options = options(&audience, std::path::Path::new("."));
        options.search.running = [("fake".to_owned(), port)].into();
        let provider = PluginHost::new(options)
            .load(&package("fake"))
            .await
            .unwrap();
        provider.configure(configuration([])).await.unwrap();
        let read = provider.read(read("i")).await;
        // The last two are what a provider sends that ends in the middle of its answer.
        assert!(
            matches!(read, Err(ProviderError::Unknown { .. })),
            "{body:?} {status:?}: {read:?}"
        );
        let check = provider.check(CheckRequest::default()).await;
        assert!(check.is_err(), "{body:?}");
        let invoke = provider.invoke(InvokeRequest::default()).await;
        assert!(invoke.is_err(), "{body:?}");
        runtime.shutdown_background();
    }
}

#[tokio::test]
async fn nobody_on_the_port_is_a_plugin_that_did_not_start() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().try_into().unwrap();
    drop(listener);
    let audience = Arc::new(Audience::default());
    let mut options = options(&audience, std::path::Path::new("."));
    options.limits.start = Duration::from_millis(200);
    options.search.running = [("fake".to_owned(), port)].into();
    let error = PluginHost::new(options)
        .load(&package("fake"))
        .await
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("nobody answers on its port"),
        "{error}"
    );
}
