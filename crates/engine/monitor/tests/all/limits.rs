//! A program that is not trusted, and what it tries to make the engine hold.

use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use nimbus_engine_files::ProjectFiles;
use nimbus_engine_model::PropertyValue;
use nimbus_engine_monitor::{
    Confinement, EngineEndpoint, Listen, MonitorServer, MonitorSettings, RequestLimits,
};
use nimbus_engine_ports::Severity;
use nimbus_engine_proto as proto;
use nimbus_engine_proto::engine_client::EngineClient;
use nimbus_engine_proto::resource_monitor_client::ResourceMonitorClient;
use nimbus_engine_testing::MonitorRig;
use tokio::net::UnixStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tower::ServiceExt as _;

use crate::grpc::{custom, wire};
use crate::support::{registrar, settings};

const SMALL: RequestLimits = RequestLimits {
    connections: 4,
    requests: 64,
    streams: 32,
    message_bytes: 32 << 20,
    functions: 3,
    total_bytes: 64 << 20,
};

/// A monitor for a program in a sandbox.
struct Confined {
    folder: tempfile::TempDir,
    stage: MonitorRig,
    server: MonitorServer,
}

impl Confined {
    async fn new(limits: RequestLimits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let stage = MonitorRig::new(registrar());
        let files = ProjectFiles::beneath(folder.path(), &[]).expect("a kernel with openat2");
        let settings = MonitorSettings {
            confinement: Some(Confinement {
                files,
                dial: None,
                requests: limits,
            }),
            program_dir: folder.path().to_owned(),
            ..settings()
        };
        let listen = Listen::UnixSocket(folder.path().join("engine"));
        let server = MonitorServer::start(&listen, settings, stage.ports.clone()).await;
        Self {
            server: server.expect("a free address"),
            folder,
            stage,
        }
    }

    async fn channel(&self) -> Channel {
        channel(self.server.address()).await
    }

    async fn client(&self) -> ResourceMonitorClient<Channel> {
        ResourceMonitorClient::new(self.channel().await)
            .max_decoding_message_size(proto::MAX_MESSAGE_BYTES)
            .max_encoding_message_size(proto::MAX_MESSAGE_BYTES)
    }

    /// What the person who wrote the program reads.
    fn told(&self) -> Vec<String> {
        self.stage.events.messages(Severity::Error)
    }

    fn write(&self, name: &str, content: &[u8]) {
        std::fs::write(self.folder.path().join(name), content).expect("a file");
    }
}

async fn channel(address: &str) -> Channel {
    let endpoint = Endpoint::from_shared(address.to_owned()).expect("an address");
    endpoint.connect().await.expect("a listening server")
}

fn of_size(name: &str, bytes: usize) -> proto::RegisterResourceRequest {
    proto::RegisterResourceRequest {
        object: wire(&[("text", PropertyValue::from("x".repeat(bytes)))]),
        ..custom(name)
    }
}

#[tokio::test]
async fn an_ordinary_program_notices_nothing() {
    let confined = Confined::new(RequestLimits::default()).await;
    let client = confined.client().await;
    let asked = (0..500).map(|number| {
        let mut client = client.clone();
        async move {
            let request = of_size(&format!("r{number}"), 1000);
            client.register_resource(request).await.map(drop)
        }
    });
    for answer in futures::future::join_all(asked).await {
        answer.expect("it is registered");
    }
    assert_eq!(confined.told(), Vec::<String>::new());
}

#[tokio::test]
async fn a_message_that_is_too_large_is_not_read() {
    let confined = Confined::new(SMALL).await;
    let mut client = confined.client().await;
    let refused = client.register_resource(of_size("large", 40 << 20)).await;
    assert!(refused.is_err());
    assert!(confined.stage.registrar.goals().is_empty());
}

/// A message of which a part comes, and the rest never does.
struct HalfMessage(Option<Bytes>);

impl HalfMessage {
    fn new(bytes: u32) -> Self {
        let mut part = vec![0];
        part.extend((bytes * 2).to_be_bytes());
        part.resize(part.len() + bytes as usize, 0);
        Self(Some(part.into()))
    }
}

impl http_body::Body for HalfMessage {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, tonic::Status>>> {
        match self.0.take() {
            Some(part) => Poll::Ready(Some(Ok(http_body::Frame::data(part)))),
            None => Poll::Pending,
        }
    }
}

/// Each is small enough, and together they are not. None of them ever ends.
#[tokio::test]
async fn messages_at_a_time_are_bounded_together() {
    let confined = Confined::new(SMALL).await;
    let channel = confined.channel().await;
    let asked = (0..16).map(|_| {
        let request =
            http::Request::post("http://engine/pulumirpc.ResourceMonitor/RegisterResource")
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(tonic::body::Body::new(HalfMessage::new(1 << 20)))
                .expect("a request");
        Box::pin(channel.clone().oneshot(request))
    });
    // The first that gets an answer is the one that was too much.
    let (answer, _, _) = futures::future::select_all(asked).await;
    let answer = answer.expect("an answer");
    let status = answer.headers().get("grpc-status").expect("a refusal");
    assert_eq!(
        status,
        i32::from(Code::ResourceExhausted).to_string().as_str()
    );
    let told = confined.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("engine.sandbox_requests_mib"), "{told:?}");
}

/// Requests without any content, over as many connections as there may be.
#[tokio::test]
async fn requests_at_a_time_are_bounded_together() {
    let confined = Confined::new(SMALL).await;
    let mut asked = Vec::new();
    for _ in 0..SMALL.connections {
        let channel = confined.channel().await;
        for _ in 0..SMALL.streams {
            let request =
                http::Request::post("http://engine/pulumirpc.ResourceMonitor/RegisterResource")
                    .header("content-type", "application/grpc")
                    .header("te", "trailers")
                    .body(tonic::body::Body::new(HalfMessage::new(0)))
                    .expect("a request");
            asked.push(Box::pin(channel.clone().oneshot(request)));
        }
    }
    let (answer, _, _) = futures::future::select_all(asked).await;
    let answer = answer.expect("an answer");
    let status = answer.headers().get("grpc-status").expect("a refusal");
    assert_eq!(
        status,
        i32::from(Code::ResourceExhausted).to_string().as_str()
    );
    assert!(confined.told()[0].contains("more than 64 requests"));
}

/// Two bytes on the wire, many in memory.
#[tokio::test]
async fn values_count_as_what_they_become() {
    let confined = Confined::new(SMALL).await;
    let mut client = confined.client().await;
    let nothing = proto::Value { kind: None };
    let list = proto::Kind::ListValue(proto::ListValue {
        values: vec![nothing; 200_000],
    });
    let request = proto::RegisterResourceRequest {
        object: Some(proto::Struct {
            fields: [("list".to_owned(), list.into())].into_iter().collect(),
        }),
        ..custom("list")
    };
    let refused = client.register_resource(request).await.expect_err("much");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(confined.stage.registrar.goals().is_empty());
}

/// What is registered stays, and so does what is logged.
#[tokio::test]
async fn everything_that_was_sent_adds_up() {
    let confined = Confined::new(RequestLimits {
        total_bytes: 4 << 20,
        ..SMALL
    })
    .await;
    let mut engine = EngineClient::new(confined.channel().await);
    let mut sent = 0;
    let refused = loop {
        let message = proto::LogRequest {
            severity: proto::LogSeverity::Info.into(),
            message: "x".to_owned(),
            ..Default::default()
        };
        match engine.log(message).await {
            Ok(_) => sent += 1,
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!((500..1100).contains(&sent), "{sent}");
    let told = confined.told();
    assert!(told[0].contains("engine.sandbox_requests_mib"), "{told:?}");
    // It has ended for everybody, over every connection.
    let again = confined.client().await.register_resource(custom("x")).await;
    assert!(again.is_err());
}

/// A request of a few bytes whose answer is large, many times over and never taken.
#[tokio::test]
async fn answers_count_too() {
    let confined = Confined::new(SMALL).await;
    let mut client = confined.client().await;
    let mut registered = 0;
    // What is registered is answered with, so each of these counts twice.
    while client
        .register_resource(of_size(&format!("r{registered}"), 800 << 10))
        .await
        .is_ok()
    {
        registered += 1;
    }
    assert!(registered < 64, "{registered}");
}

#[tokio::test]
async fn connections_beyond_the_last_wait() {
    let confined = Confined::new(SMALL).await;
    let address = confined.server.address().strip_prefix("unix:");
    let address = Path::new(address.expect("a socket"));
    let mut idle = Vec::new();
    for _ in 0..SMALL.connections {
        idle.push(UnixStream::connect(address).await.expect("a connection"));
    }
    let asks = async {
        let mut client = confined.client().await;
        client.get_deployment_info(()).await
    };
    let waits = tokio::time::timeout(Duration::from_millis(300), asks).await;
    assert!(waits.is_err(), "it was served beside {} others", idle.len());
    drop(idle);
    let mut client = confined.client().await;
    client.get_deployment_info(()).await.expect("an answer");
}

#[tokio::test]
async fn functions_for_everything_and_their_addresses_are_few() {
    let confined = Confined::new(SMALL).await;
    let mut client = confined.client().await;
    let callback = |port: usize| proto::Callback {
        target: format!("127.0.0.1:{port}"),
        token: "t".to_owned(),
        ..Default::default()
    };
    for _ in 0..SMALL.functions {
        let added = client.register_stack_transform(callback(1)).await;
        added.expect("not many yet");
        let added = client.register_stack_invoke_transform(callback(1)).await;
        added.expect("not many yet");
    }
    let refused = client.register_stack_transform(callback(1)).await;
    let refused = refused.expect_err("one too many");
    assert!(refused.message().contains("more than 3"), "{refused:?}");
    let refused = client.register_stack_invoke_transform(callback(1)).await;
    assert!(refused.is_err());
    let hook = |port: usize| proto::RegisterResourceHookRequest {
        name: format!("hook{port}"),
        callback: Some(callback(port)),
        ..Default::default()
    };
    let mut registered = 0;
    while client
        .register_resource_hook(hook(registered + 1))
        .await
        .is_ok()
    {
        registered += 1;
    }
    assert_eq!(registered, SMALL.connections);
}

/// Plugins of a stranger's have an address too.
#[tokio::test]
async fn a_plugin_cannot_log_without_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let stage = MonitorRig::new(registrar());
    let listen = Listen::UnixSocket(folder.path().join("engine"));
    let limits = RequestLimits::of_total(1 << 20);
    let endpoint = EngineEndpoint::start(&listen, stage.ports.events.clone(), Some(limits)).await;
    let endpoint = endpoint.expect("a free address");
    let mut engine = EngineClient::new(channel(endpoint.address()).await);
    let message = |text: String| proto::LogRequest {
        message: text,
        ..Default::default()
    };
    let refused = engine.log(message("x".repeat(1 << 20))).await;
    assert!(refused.is_err());
    let mut sent = 0;
    while engine.log(message("x".to_owned())).await.is_ok() {
        sent += 1;
    }
    assert!(sent <= 256, "{sent}");
}

/// A file without content that says it has much, as often as one likes.
#[tokio::test]
async fn assets_are_not_held_beyond_what_a_resource_may_have() {
    let confined = Confined::new(RequestLimits::default()).await;
    let sparse = std::fs::File::create(confined.folder.path().join("big")).expect("a file");
    sparse.set_len(200 << 20).expect("a sparse file");
    let signature = |kind: &str| {
        (
            "4dabf18193072939515e22adb298388d",
            PropertyValue::from(kind),
        )
    };
    let asset = |number: usize| {
        let uri = format!("file://{}/big?{number}", confined.folder.path().display());
        let fields = [
            signature("c44067f5952c0a294b673a41bacd8c17"),
            ("uri", PropertyValue::from(uri)),
        ];
        PropertyValue::Object(
            fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    };
    let list = PropertyValue::Array((0..8).map(asset).collect());
    let request = proto::RegisterResourceRequest {
        object: wire(&[("list", list)]),
        ..custom("assets")
    };
    let refused = confined.client().await.register_resource(request).await;
    assert!(refused.is_err(), "eight times 200 MiB");
    let told = confined.told();
    assert!(told[0].contains("bytes"), "{told:?}");
}

/// The same archive many times in one table.
#[tokio::test]
async fn an_archive_is_not_unpacked_as_often_as_one_likes() {
    let confined = Confined::new(RequestLimits::default()).await;
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    header.set_size(100 << 20);
    let zeros = std::io::Read::take(std::io::repeat(0), 100 << 20);
    tar.append_data(&mut header, "zeros", zeros)
        .expect("an archive");
    let archive = tar.into_inner().and_then(flate2::write::GzEncoder::finish);
    confined.write("bomb.tgz", &archive.expect("bytes"));
    let of = |fields: Vec<(&str, PropertyValue)>| {
        let fields = fields.into_iter();
        PropertyValue::Object(
            fields
                .chain([(
                    "4dabf18193072939515e22adb298388d",
                    PropertyValue::from("0def7320c3a5731c473e5ecbe6d01bc7"),
                )])
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    };
    let bomb = || of(vec![("path", PropertyValue::from("bomb.tgz"))]);
    let table = (0..8)
        .map(|number| (format!("m{number}"), bomb()))
        .collect();
    let request = proto::RegisterResourceRequest {
        object: wire(&[("table", of(vec![("assets", PropertyValue::Object(table))]))]),
        ..custom("archive")
    };
    let refused = confined.client().await.register_resource(request).await;
    assert!(refused.is_err(), "eight times 100 MiB");
}

#[tokio::test]
async fn lists_of_one_resource_have_an_end() {
    let urns = |count: usize| (0..count).map(|n| format!("urn:pulumi:s::p::a:b:C::{n}"));
    let many = 1_001;
    let texts = || (0..many).map(|n| format!("p{n}")).collect::<Vec<_>>();
    let requests = [
        proto::RegisterResourceRequest {
            alias_ur_ns: urns(many).collect(),
            ..custom("a")
        },
        proto::RegisterResourceRequest {
            ignore_changes: texts(),
            ..custom("a")
        },
        proto::RegisterResourceRequest {
            replace_on_changes: texts(),
            ..custom("a")
        },
        proto::RegisterResourceRequest {
            additional_secret_outputs: texts(),
            ..custom("a")
        },
    ];
    for request in requests {
        let confined = Confined::new(RequestLimits::default()).await;
        let refused = confined.client().await.register_resource(request).await;
        assert!(refused.is_err());
        let told = confined.told().join("\n");
        assert!(told.contains("more than 1000"), "{told}");
    }
    let confined = Confined::new(RequestLimits::default()).await;
    let accepted = proto::RegisterResourceRequest {
        alias_ur_ns: urns(1_000).collect(),
        ..custom("a")
    };
    let mut client = confined.client().await;
    client
        .register_resource(accepted)
        .await
        .expect("not too many");
}

#[tokio::test]
async fn a_resource_without_a_type_or_with_a_nul_in_its_name_is_refused() {
    let component = |type_: &str, name: &str| proto::RegisterResourceRequest {
        r#type: type_.to_owned(),
        custom: false,
        ..custom(name)
    };
    for (request, why) in [
        (component("", "a"), "has no type"),
        (component("a:b:C", "a\0"), "NUL"),
        (component("a:b:\0", "a"), "NUL"),
        (custom("a\0b"), "NUL"),
    ] {
        let confined = Confined::new(RequestLimits::default()).await;
        let refused = confined.client().await.register_resource(request).await;
        assert!(refused.is_err());
        let told = confined.told().join("\n");
        assert!(told.contains(why), "{told}");
    }
}
