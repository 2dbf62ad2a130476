//! The rehearsal behaves as a cloud does where programs notice.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nimbus_document::Document;
use nimbus_engine_model::{PackageDescriptor, PropertyMap, PropertyValue, StepOp, Urn};
use nimbus_engine_ports::{
    CreateRequest, DeleteRequest, DiffRequest, EngineEvent, EventSink, FailureCause, InvokeRequest,
    Provider, ProviderError, ProviderHost, ReadRequest, StepEvent, Summary, UpdateRequest,
};
use nimbus_rehearsal::{Answers, Declarations, FaultOrders, Observer, Rehearsal, SimulatedWorld};

const VPC: &str = "aws:ec2/vpc:Vpc";
const BUCKET: &str = "aws:s3/bucket:Bucket";

async fn cloud(orders: &str) -> (Rehearsal, Arc<dyn Provider>) {
    let orders =
        FaultOrders::from_document(&Document::parse("orders.yaml", orders).unwrap()).unwrap();
    let answers = Answers::load(Path::new("rehearsal/invokes.yaml")).unwrap();
    let cloud = Rehearsal::new(
        SimulatedWorld::in_memory(),
        Declarations::default(),
        orders,
        answers,
    )
    .unwrap();
    let provider = cloud.load(&PackageDescriptor::default()).await.unwrap();
    (cloud, provider)
}

fn properties(list: &[(&str, &str)]) -> PropertyMap {
    list.iter()
        .map(|(key, value)| ((*key).to_owned(), PropertyValue::from(*value)))
        .collect()
}

fn create(type_: &str, name: &str, inputs: &[(&str, &str)]) -> CreateRequest {
    CreateRequest {
        urn: Some(Urn::new("dev", "p", None, type_, name)),
        name: name.to_owned(),
        type_: type_.to_owned(),
        properties: properties(inputs),
        ..CreateRequest::default()
    }
}

fn read(type_: &str, id: &str) -> ReadRequest {
    ReadRequest {
        type_: type_.to_owned(),
        id: id.to_owned(),
        ..ReadRequest::default()
    }
}

#[tokio::test]
async fn an_object_lives_from_create_to_delete() {
    let (cloud, provider) = cloud("{}").await;
    let made = provider
        .create(create(VPC, "main", &[("cidrBlock", "10.0.0.0/16")]))
        .await
        .unwrap();
    assert!(made.id.starts_with("vpc-0"), "{}", made.id);
    let seen = provider.read(read(VPC, &made.id)).await.unwrap();
    assert_eq!(seen.id.as_deref(), Some(made.id.as_str()));
    assert_eq!(seen.outputs, made.properties);

    let update = UpdateRequest {
        type_: VPC.to_owned(),
        id: made.id.clone(),
        new_inputs: properties(&[("cidrBlock", "10.0.0.0/16"), ("tag", "x")]),
        ..UpdateRequest::default()
    };
    provider.update(update.clone()).await.unwrap();
    let seen = provider.read(read(VPC, &made.id)).await.unwrap();
    assert_eq!(seen.inputs, Some(update.new_inputs.clone()));

    let delete = DeleteRequest {
        type_: VPC.to_owned(),
        id: made.id.clone(),
        ..DeleteRequest::default()
    };
    provider.delete(delete).await.unwrap();
    assert!(cloud.objects().is_empty());
    assert_eq!(provider.read(read(VPC, &made.id)).await.unwrap().id, None);
    assert!(matches!(
        provider.update(update).await,
        Err(ProviderError::Failed { .. })
    ));
}

#[tokio::test]
async fn what_is_protected_is_deleted_only_after_its_protection_is_off() {
    const DATABASE: &str = "aws:rds/instance:Instance";
    let (cloud, provider) = cloud("{}").await;
    let protected = |on: bool| {
        let mut inputs = properties(&[("identifier", "db")]);
        inputs.insert("deletionProtection".to_owned(), PropertyValue::Bool(on));
        inputs
    };
    let made = provider
        .create(CreateRequest {
            properties: protected(true),
            ..create(DATABASE, "db", &[])
        })
        .await
        .unwrap();
    let delete = || DeleteRequest {
        type_: DATABASE.to_owned(),
        id: made.id.clone(),
        ..DeleteRequest::default()
    };
    let error = provider.delete(delete()).await.unwrap_err().to_string();
    assert!(error.contains("turn its deletionProtection off"), "{error}");
    assert_eq!(cloud.objects().len(), 1);

    let update = UpdateRequest {
        type_: DATABASE.to_owned(),
        id: made.id.clone(),
        new_inputs: protected(false),
        ..UpdateRequest::default()
    };
    provider.update(update).await.unwrap();
    provider.delete(delete()).await.unwrap();
    assert!(cloud.objects().is_empty());
}

#[tokio::test]
async fn a_preview_makes_nothing() {
    let (cloud, provider) = cloud("{}").await;
    let request = CreateRequest {
        preview: true,
        ..create(VPC, "main", &[])
    };
    assert_eq!(provider.create(request).await.unwrap().id, "");
    assert!(cloud.objects().is_empty());
}

#[tokio::test]
async fn a_replacement_gets_another_id_and_a_taken_name_is_refused() {
    let (_, provider) = cloud("{}").await;
    let first = provider.create(create(VPC, "main", &[])).await.unwrap();
    let second = provider.create(create(VPC, "main", &[])).await.unwrap();
    assert_ne!(first.id, second.id);
    let bucket = create(BUCKET, "b", &[("bucket", "mine")]);
    assert_eq!(provider.create(bucket.clone()).await.unwrap().id, "mine");
    let error = provider.create(bucket).await.unwrap_err();
    assert!(error.to_string().contains("mine is taken"), "{error}");
}

#[tokio::test]
async fn names_and_networks_cannot_be_changed_in_place() {
    let (_, provider) = cloud("{}").await;
    let diff = |old: &[(&str, &str)], new: &[(&str, &str)]| DiffRequest {
        type_: VPC.to_owned(),
        old_inputs: properties(old),
        new_inputs: properties(new),
        ..DiffRequest::default()
    };
    let same = provider
        .diff(diff(&[("a", "1")], &[("a", "1")]))
        .await
        .unwrap();
    assert!(!same.replaces() && same.changed_keys.is_empty());
    let update = provider
        .diff(diff(&[("a", "1")], &[("a", "2")]))
        .await
        .unwrap();
    assert!(!update.replaces() && update.changed_keys == ["a"]);
    let replace = provider
        .diff(diff(&[("cidrBlock", "1")], &[("cidrBlock", "2")]))
        .await
        .unwrap();
    assert!(replace.replaces());
}

#[tokio::test]
async fn a_name_that_the_user_chose_is_free_again_before_the_replacement_is_made() {
    const ROLE: &str = "aws:iam/role:Role";
    let (_, provider) = cloud("{}").await;
    let diff = |old: &[(&str, &str)], new: &[(&str, &str)]| DiffRequest {
        type_: ROLE.to_owned(),
        old_inputs: properties(old),
        new_inputs: properties(new),
        ..DiffRequest::default()
    };
    for (old, new, before) in [
        (
            [("name", "x"), ("path", "/a/")],
            [("name", "x"), ("path", "/b/")],
            true,
        ),
        (
            [("name", "x"), ("path", "/a/")],
            [("name", "y"), ("path", "/a/")],
            false,
        ),
        (
            [("tag", "x"), ("path", "/a/")],
            [("tag", "x"), ("path", "/b/")],
            false,
        ),
    ] {
        let found = provider.diff(diff(&old, &new)).await.unwrap();
        assert!(found.replaces(), "{new:?}");
        assert_eq!(found.delete_before_replace, before, "{new:?}");
    }
    let same = [("name", "x"), ("description", "a")];
    let other = [("name", "x"), ("description", "b")];
    let found = provider.diff(diff(&same, &other)).await.unwrap();
    assert!(!found.replaces() && !found.delete_before_replace);
}

#[tokio::test]
async fn orders_fail_lose_and_halve() {
    let (cloud, provider) = cloud(
        "orders:\n- {on: create, name: a, do: fail, message: no capacity}\n- {on: create, name: b, do: lose}\n\
         - {on: create, name: c, do: half, message: not ready}\n- {on: read, name: d, do: vanish}\n",
    )
    .await;
    let error = provider.create(create(VPC, "a", &[])).await.unwrap_err();
    assert!(
        matches!(&error, ProviderError::Failed { message, .. } if message.contains("no capacity"))
    );
    assert!(cloud.objects().is_empty());
    assert!(matches!(
        provider.create(create(VPC, "b", &[])).await,
        Err(ProviderError::Unknown { .. })
    ));
    assert_eq!(cloud.objects().len(), 1, "it was made, and nobody was told");
    let Err(ProviderError::InitFailed(half)) = provider.create(create(VPC, "c", &[])).await else {
        panic!("half");
    };
    assert_eq!(half.reasons, ["not ready"]);
    let made = provider.create(create(VPC, "d", &[])).await.unwrap();
    let request = ReadRequest {
        name: "d".to_owned(),
        ..read(VPC, &made.id)
    };
    assert_eq!(provider.read(request).await.unwrap().id, None);
}

#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<String>>);

impl EventSink for Heard {
    fn emit(&self, event: EngineEvent) {
        if let EngineEvent::Diagnostic(said) = event {
            self.0.lock().unwrap().push(said.message);
        }
    }
}

fn step(urn: &Urn) -> StepEvent {
    StepEvent {
        op: StepOp::Create,
        urn: urn.clone(),
        type_: VPC.into(),
        provider: String::new(),
        old: None,
        new: None,
        replace_keys: Vec::new(),
        changed_keys: Vec::new(),
        detailed_diff: None,
        logical: true,
    }
}

fn summary(duration: Duration) -> EngineEvent {
    EngineEvent::Summary(Summary {
        is_preview: false,
        duration,
        changes: BTreeMap::new(),
        maybe_corrupt: false,
        succeeded: true,
        policy_packs: BTreeMap::new(),
    })
}

#[tokio::test]
async fn throttled_calls_are_tried_again_which_takes_time_and_is_told() {
    let (cloud, _) = cloud(
        "latency: {scale: 0, create: 5m}\norders: [{name: a, do: throttle, times: 4}, {name: b, do: throttle, times: 26}]",
    )
    .await;
    let observer = Observer::default();
    let cloud = cloud.observed_by(observer.clone());
    let provider = cloud.load(&PackageDescriptor::default()).await.unwrap();
    let heard = Arc::new(Heard::default());
    let sink = observer.listen("unit", Arc::clone(&heard) as _);
    let began = Instant::now();
    let request = create(VPC, "a", &[]);
    sink.emit(EngineEvent::ResourcePre {
        step: step(request.urn.as_ref().unwrap()),
        planning: false,
    });
    provider.create(request).await.unwrap();
    let error = provider.create(create(VPC, "b", &[])).await.unwrap_err();
    assert!(error.to_string().contains("ThrottlingException"), "{error}");
    assert_eq!(cloud.objects().len(), 1);
    let took = began.elapsed();
    sink.emit(summary(took));

    let heard = heard.0.lock().unwrap().join("\n");
    assert!(heard.contains("after 4 more attempts in 15 s"), "{heard}");
    let forecast = observer.forecast("unit", 4).unwrap();
    // Five minutes, and pauses of one, two, four and eight seconds.
    let foretold = Duration::from_secs(315);
    assert!(forecast.took >= foretold && forecast.took <= foretold + took);
    assert_eq!(forecast.path[0].name, "a");
}

#[tokio::test]
async fn quotas_end_and_planted_objects_exist() {
    let (cloud, provider) = cloud(
        "quotas: {aws:ec2/vpc:Vpc: 1}\nobjects: [{type: aws:s3/bucket:Bucket, id: theirs, properties: {a: b}}]\n",
    )
    .await;
    provider.create(create(VPC, "a", &[])).await.unwrap();
    let error = provider.create(create(VPC, "b", &[])).await.unwrap_err();
    assert!(error.to_string().contains("LimitExceeded"), "{error}");
    assert_eq!(error.cause(), FailureCause::ServiceLimit);
    assert_eq!(cloud.objects().len(), 2);
    let theirs = provider.read(read(BUCKET, "theirs")).await.unwrap();
    assert_eq!(theirs.outputs, properties(&[("a", "b")]));
}

#[tokio::test]
async fn an_unknown_function_names_the_file_to_edit() {
    let (_, provider) = cloud("{}").await;
    let invoke = |token: &str| InvokeRequest {
        token: token.to_owned(),
        ..InvokeRequest::default()
    };
    let identity = "aws:index/getCallerIdentity:getCallerIdentity";
    let answer = provider.invoke(invoke(identity)).await.unwrap();
    assert_eq!(
        answer.properties["accountId"],
        PropertyValue::from("123456789012")
    );
    let error = provider.invoke(invoke("x:index/y:y")).await.unwrap_err();
    assert!(
        error.to_string().contains("rehearsal/invokes.yaml"),
        "{error}"
    );
}
