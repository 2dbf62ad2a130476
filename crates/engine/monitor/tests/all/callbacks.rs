//! Calls back into a program over real connections.

use std::net::Ipv4Addr;
use std::sync::Arc;

use nimbus_engine_model::{HookKind, PropertyValue};
use nimbus_engine_ports::{HookRequest, HookRunner, Severity};
use nimbus_engine_proto as proto;
use nimbus_engine_proto::Message;
use nimbus_engine_proto::callbacks_server::{Callbacks, CallbacksServer};
use nimbus_engine_wire::encode;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};

use crate::grpc::{all, connected, custom, read, wire};
use crate::support::{props, registrar, urn};

/// A program's callback server: answers by token and keeps what it was asked.
#[derive(Clone, Default)]
struct Program {
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Token and request.
type Asked = (String, Vec<u8>);

#[tonic::async_trait]
impl Callbacks for Program {
    async fn invoke(
        &self,
        request: Request<proto::CallbackInvokeRequest>,
    ) -> Result<Response<proto::CallbackInvokeResponse>, Status> {
        let request = request.into_inner();
        let response = match request.token.as_str() {
            "tag" => {
                let asked = proto::TransformRequest::decode(request.request.as_slice())
                    .map_err(|error| Status::internal(error.to_string()))?;
                let mut properties = read(asked.properties);
                properties.insert("tag".to_owned(), asked.name.as_str().into());
                let options = asked
                    .options
                    .map(|options| proto::TransformResourceOptions {
                        protect: Some(true),
                        ..options
                    });
                let properties = encode(&properties, all()).expect("sendable");
                let changed = proto::TransformResponse {
                    properties: Some(properties),
                    options,
                };
                changed.encode_to_vec()
            }
            "nothing" => Vec::new(),
            "retry" => proto::ErrorHookResponse {
                error: String::new(),
                retry: true,
            }
            .encode_to_vec(),
            "refuse" => proto::ResourceHookResponse {
                error: "not now".to_owned(),
            }
            .encode_to_vec(),
            _ => return Err(Status::unknown("thrown in the program")),
        };
        self.asked.lock().push((request.token, request.request));
        Ok(Response::new(proto::CallbackInvokeResponse { response }))
    }
}

async fn program() -> (Program, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let program = Program::default();
    let service = CallbacksServer::new(program.clone());
    let serve = Server::builder().add_service(service);
    tokio::spawn(serve.serve_with_incoming(TcpListenerStream::new(listener)));
    (program, address)
}

fn callback(target: &str, token: &str) -> proto::Callback {
    proto::Callback {
        target: target.to_owned(),
        token: token.to_owned(),
        accepts_byte_string: true,
    }
}

#[tokio::test]
async fn transforms_are_called_in_the_program() {
    let connected = connected(registrar()).await;
    let (program, target) = program().await;
    let stack = callback(&target, "tag");
    connected
        .client()
        .register_stack_transform(stack)
        .await
        .expect("an answer");
    let mut request = custom("bucket");
    request.object = wire(&[("secret", PropertyValue::secret("s".into()))]);
    request.transforms = vec![callback(&target, "nothing")];
    connected
        .client()
        .register_resource(request)
        .await
        .expect("an answer");
    let goal = connected.stage.registrar.goal("bucket").expect("a goal");
    assert_eq!(goal.properties["tag"], "bucket".into());
    assert_eq!(goal.properties["secret"], PropertyValue::secret("s".into()));
    assert_eq!(goal.protect, Some(true));
    let order: Vec<_> = program
        .asked
        .lock()
        .iter()
        .map(|(token, _)| token.clone())
        .collect();
    assert_eq!(order, ["nothing", "tag"]);
}

#[tokio::test]
async fn a_transform_that_throws_ends_the_program_with_its_message() {
    let connected = connected(registrar()).await;
    let (_program, target) = program().await;
    let mut request = custom("bucket");
    request.transforms = vec![callback(&target, "throws")];
    let status = connected.client().register_resource(request).await;
    assert_eq!(status.expect_err("turned away").code(), Code::Unavailable);
    assert_eq!(
        connected.stage.events.messages(Severity::Error),
        ["a transform of bucket failed: thrown in the program"]
    );
}

#[tokio::test]
async fn hooks_are_called_in_the_program() {
    let connected = connected(registrar()).await;
    let (program, target) = program().await;
    for (name, token, dry_run) in [("watch", "nothing", true), ("gate", "refuse", false)] {
        let request = proto::RegisterResourceHookRequest {
            name: name.to_owned(),
            callback: Some(callback(&target, token)),
            on_dry_run: dry_run,
            ignore_errors: false,
        };
        connected
            .client()
            .register_resource_hook(request)
            .await
            .expect("an answer");
    }
    let request = proto::RegisterErrorHookRequest {
        name: "again".to_owned(),
        callback: Some(callback(&target, "retry")),
    };
    connected
        .client()
        .register_error_hook(request)
        .await
        .expect("an answer");

    let hooks = &connected.stage.ports.hooks;
    assert_eq!(hooks.runs_on_dry_run("watch"), Some(true));
    assert_eq!(hooks.runs_on_dry_run("gate"), Some(false));
    let request = |hook: &str| HookRequest {
        hook: hook.to_owned(),
        kind: HookKind::BeforeCreate,
        urn: urn("bucket"),
        id: Some("i".to_owned()),
        name: "bucket".to_owned(),
        type_: "aws:s3:Bucket".to_owned(),
        new_inputs: Some(props(&[("secret", PropertyValue::secret("s".into()))])),
        old_inputs: None,
        new_outputs: None,
        old_outputs: None,
    };
    assert!(hooks.run(request("watch")).await.is_ok());
    let refused = hooks.run(request("gate")).await.expect_err("it refuses");
    assert_eq!(refused.to_string(), "hook gate failed: not now");
    let errors = ["timeout".to_owned()];
    assert!(
        hooks
            .retry(request("again"), &errors)
            .await
            .expect("an answer")
    );

    let asked = program.asked.lock();
    let watched = proto::ResourceHookRequest::decode(asked[0].1.as_slice()).expect("a request");
    assert_eq!(watched.id, "i");
    assert_eq!(
        read(watched.new_inputs)["secret"],
        PropertyValue::secret("s".into())
    );
    assert_eq!(watched.old_inputs, None);
    let failed = proto::ErrorHookRequest::decode(asked[2].1.as_slice()).expect("a request");
    assert_eq!(failed.failed_operation, "create");
    assert_eq!(failed.errors, errors);
}
