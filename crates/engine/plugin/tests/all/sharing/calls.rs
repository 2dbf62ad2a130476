//! What happens to the calls of one when another uses the same process.

use std::fs;
use std::sync::Arc;

use nimbus_engine_model::{Asset, PropertyValue};
use nimbus_engine_ports::{CheckRequest, CreateRequest, Provider, ProviderError, Severity};
use nimbus_engine_proto as proto;

use super::*;
use crate::process::eventually;

#[tokio::test]
async fn stopping_one_of_two_leaves_the_other_alone_and_loses_no_outcome() {
    let (fake, entered, gate) = waiting();
    let running = Running::start(fake).await;
    let machine = Machine::with(WARM, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    assert_eq!(machine.counts().0, 1);

    let spawn = |provider: &Arc<dyn Provider>, request| {
        let provider = Arc::clone(provider);
        tokio::spawn(async move { provider.create(request).await })
    };
    let theirs = spawn(&first, one.create("theirs"));
    entered.notified().await;
    let ours = spawn(&second, two.create("ours"));
    entered.notified().await;
    let checking = Arc::clone(&second);
    let check = tokio::spawn(async move { checking.check(CheckRequest::default()).await });
    entered.notified().await;

    second.cancel().await.unwrap();
    let checked = check.await.unwrap();
    assert!(
        matches!(checked, Err(ProviderError::Cancelled)),
        "{checked:?}"
    );
    assert!(!running.calls().contains(&"cancel"));
    gate.add_permits(2);
    assert_eq!(
        ours.await.unwrap().unwrap().id,
        "thing",
        "what acts is seen to its end"
    );
    assert_eq!(theirs.await.unwrap().unwrap().id, "thing");

    first.cancel().await.unwrap();
    assert!(
        running.calls().contains(&"cancel"),
        "nobody is left to disturb"
    );
    first.close().await;
    second.close().await;
    assert_eq!(
        machine.counts(),
        (1, 0),
        "what was told to stop is of no more use"
    );
}

#[tokio::test]
async fn the_plugin_is_told_to_stop_when_only_those_are_left_who_want_to() {
    let (fake, entered, gate) = waiting();
    let running = Running::start(fake).await;
    let machine = Machine::with(WARM, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    let creating = Arc::clone(&second);
    let request = two.create("ours");
    let ours = tokio::spawn(async move { creating.create(request).await });
    entered.notified().await;
    second.cancel().await.unwrap();
    assert!(!running.calls().contains(&"cancel"));
    first.close().await;
    eventually("the request to stop", || {
        running.calls().contains(&"cancel").then_some(())
    })
    .await;
    gate.add_permits(1);
    ours.await.unwrap().unwrap();
}

/// A provider that says at the engine's address what it is doing.
fn talking() -> Fake {
    let address = Arc::new(std::sync::Mutex::new(String::new()));
    let told = Arc::clone(&address);
    Fake {
        handshake: answer(move |request: proto::ProviderHandshakeRequest| {
            *told.lock().unwrap() = request.engine_address;
            Ok(proto::ProviderHandshakeResponse::default())
        }),
        create: Some(Box::new(move |request: proto::CreateRequest| {
            let address = address.lock().unwrap().clone();
            Box::pin(async move {
                say(&address, &request.urn, &format!("making {}", request.name)).await;
                say(&address, "", &format!("busy with {}", request.name)).await;
                let elsewhere = request.urn.replace("::shop-", "::gone-");
                say(&address, &elsewhere, "for nobody here").await;
                Ok(proto::CreateResponse {
                    id: "thing".to_owned(),
                    ..Default::default()
                })
            })
        })),
        ..simple()
    }
}

async fn say(address: &str, urn: &str, message: &str) {
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}"))
        .unwrap()
        .connect()
        .await
        .unwrap();
    let request = proto::LogRequest {
        severity: proto::LogSeverity::Warning.into(),
        message: message.to_owned(),
        urn: urn.to_owned(),
        ..Default::default()
    };
    let mut engine = proto::engine_client::EngineClient::new(channel);
    engine.log(request).await.unwrap();
}

#[tokio::test]
async fn what_a_plugin_says_reaches_the_unit_that_it_is_about() {
    let running = Running::start(talking()).await;
    let machine = Machine::with(WARM, &running);
    let (one, two) = (machine.unit("shop-one"), machine.unit("shop-two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    assert_eq!(machine.counts().0, 1);
    first.create(one.create("a")).await.unwrap();
    assert_eq!(
        one.audience.told(Severity::Warning),
        ["making a", "busy with a"]
    );
    assert_eq!(two.audience.told(Severity::Warning), ["busy with a"]);
    first.close().await;
    second.create(two.create("b")).await.unwrap();
    let told = two.audience.told(Severity::Warning);
    assert_eq!(told, ["busy with a", "making b", "busy with b"]);
    let told = one.audience.told(Severity::Warning);
    assert_eq!(told, ["making a", "busy with a"], "it has left");
}

/// Reads the file that it is given, as a provider of a cloud does.
fn uploading() -> Fake {
    Fake {
        create: answer(|request: proto::CreateRequest| {
            let mut properties = request.properties.unwrap();
            let Some(proto::Kind::StructValue(asset)) = &properties.fields["source"].kind else {
                return Err(tonic::Status::invalid_argument("no asset"));
            };
            let Some(proto::Kind::StringValue(path)) = &asset.fields["path"].kind else {
                return Err(tonic::Status::invalid_argument("no path"));
            };
            let content = fs::read_to_string(path);
            let content = content.map_err(|error| tonic::Status::not_found(error.to_string()))?;
            properties.fields.insert("content".to_owned(), s(&content));
            Ok(proto::CreateResponse {
                id: "object".to_owned(),
                properties: Some(properties),
                ..Default::default()
            })
        }),
        ..modern()
    }
}

#[tokio::test]
async fn files_are_found_in_the_folder_of_each_unit_and_recorded_as_written() {
    let running = Running::start(uploading()).await;
    let machine = Machine::with(WARM, &running);
    for name in ["one", "two"] {
        let unit = machine.unit(name);
        fs::write(
            unit.folder.path().join("page.html"),
            format!("page of {name}"),
        )
        .unwrap();
        let provider = unit.provider("eu").await;
        let source = PropertyValue::Asset(Asset::Path {
            hash: "h".to_owned(),
            path: "page.html".to_owned(),
        });
        let request = CreateRequest {
            properties: map([("source", source.clone())]),
            ..unit.create("page")
        };
        let created = provider.create(request).await.unwrap().properties;
        assert_eq!(
            created["content"],
            format!("page of {name}").as_str().into()
        );
        assert_eq!(created["source"], source);
    }
    assert_eq!(machine.counts().0, 1);
}

#[tokio::test]
async fn a_text_that_may_be_a_path_is_given_to_a_process_in_the_folder() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let unit = machine.unit("one");
    fs::write(unit.folder.path().join("canary.zip"), "").unwrap();
    let provider = unit.provider("eu").await;
    let request = |text: &str| CreateRequest {
        properties: map([("zipFile", text.into())]),
        ..unit.create("canary")
    };
    provider.create(request("a-name")).await.unwrap();
    assert_eq!(machine.counts().0, 1);
    provider.create(request("canary.zip")).await.unwrap();
    provider.create(request("canary.zip")).await.unwrap();
    assert_eq!(machine.counts().0, 2, "one that runs where the file is");

    let other = machine.unit("two");
    fs::write(other.folder.path().join("key.json"), "").unwrap();
    let configured = other.load().await;
    let mut request = other.configuration("eu");
    let key = ("credentials".to_owned(), "./key.json".into());
    request.inputs.extend([key]);
    configured.configure(request).await.unwrap();
    assert_eq!(machine.counts().0, 3, "a configuration may name a file too");
}
