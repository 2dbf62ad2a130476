//! The generated code speaks the protocol: known bytes, service names, and both ends of a call.

use nimbus_engine_proto as proto;
use proto::resource_provider_client::ResourceProviderClient;
use proto::resource_provider_server::{ResourceProvider, ResourceProviderServer};
use proto::{Kind, Message, Struct, Value};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Code, Request, Response, Status};

fn text(value: &str) -> Value {
    Value {
        kind: Some(Kind::StringValue(value.to_owned())),
    }
}

#[test]
fn create_request_has_the_bytes_that_the_protocol_prescribes() {
    let request = proto::CreateRequest {
        urn: "u".into(),
        properties: Some(Struct {
            fields: [("k".to_owned(), text("v"))].into(),
        }),
        timeout: 1.5,
        preview: true,
        name: "n".into(),
        r#type: "t".into(),
        ..Default::default()
    };
    #[rustfmt::skip]
    let expected: Vec<u8> = [
        &b"\x0a\x01u"[..],                            // 1: urn
        b"\x12\x0a", b"\x0a\x08\x0a\x01k\x12\x03\x1a\x01v", // 2: {k: "v"}
        b"\x19", &1.5_f64.to_le_bytes(),              // 3: timeout
        b"\x20\x01",                                  // 4: preview
        b"\x2a\x01n", b"\x32\x01t",                   // 5, 6: name, type
    ].concat();
    assert_eq!(request.encode_to_vec(), expected);
    assert_eq!(
        proto::CreateRequest::decode(expected.as_slice()).expect("own bytes"),
        request
    );
}

#[test]
fn high_and_optional_field_numbers_are_on_the_wire_as_prescribed() {
    let request = proto::RegisterResourceRequest {
        protect: Some(false),
        replacement_trigger: Some(text("x")),
        accepts_byte_string: true,
        ..Default::default()
    };
    // 6: present though false; 39: a value; 42: a flag.
    assert_eq!(
        request.encode_to_vec(),
        b"\x30\x00\xba\x02\x03\x1a\x01x\xd0\x02\x01"
    );
}

#[test]
fn unknown_fields_of_a_newer_peer_are_skipped() {
    let decoded =
        proto::PluginInfo::decode(&b"\x0a\x011\xfa\x7f\x02zz"[..]).expect("skips field 2047");
    assert_eq!(decoded.version, "1");
}

#[test]
fn services_have_the_names_of_the_wire() {
    use proto::{
        analyzer_server, callbacks_server, engine_server, resource_monitor_server,
        resource_status_server,
    };
    assert_eq!(
        resource_monitor_server::SERVICE_NAME,
        "pulumirpc.ResourceMonitor"
    );
    assert_eq!(engine_server::SERVICE_NAME, "pulumirpc.Engine");
    assert_eq!(callbacks_server::SERVICE_NAME, "pulumirpc.Callbacks");
    assert_eq!(analyzer_server::SERVICE_NAME, "pulumirpc.Analyzer");
    assert_eq!(
        resource_status_server::SERVICE_NAME,
        "pulumirpc.ResourceStatus"
    );
    assert_eq!(
        proto::resource_provider_server::SERVICE_NAME,
        "pulumirpc.ResourceProvider"
    );
}

struct OnlyVersion;

#[tonic::async_trait]
impl ResourceProvider for OnlyVersion {
    async fn get_plugin_info(&self, _: Request<()>) -> Result<Response<proto::PluginInfo>, Status> {
        Ok(Response::new(proto::PluginInfo {
            version: "1.2.3".into(),
        }))
    }
}

#[tokio::test]
async fn a_server_answers_what_it_has_and_says_unimplemented_to_the_rest() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("bound"));
    let server = tonic::transport::Server::builder()
        .add_service(ResourceProviderServer::new(OnlyVersion))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(server);

    let mut client = ResourceProviderClient::connect(address)
        .await
        .expect("the server listens");
    let info = client.get_plugin_info(()).await.expect("implemented");
    assert_eq!(info.into_inner().version, "1.2.3");
    let refused = client
        .check(proto::CheckRequest::default())
        .await
        .expect_err("not implemented");
    assert_eq!(refused.code(), Code::Unimplemented);
}
