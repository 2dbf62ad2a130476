//! A stack moves between the engines, with the real command line.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_core::StackOperation;
use nimbus_engine_backend::{EnvironmentVariables, KeyServices, Keyring};
use nimbus_engine_model::{PropertyValue, StepOp};
use nimbus_engine_operations::{
    EmbeddedEngine, Engine, GivenConfig, OfficialEngine, OperationReport, Processes,
};
use nimbus_engine_ports::EngineEvent;
use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::json;

use crate::support::{OfficialSite, run};

/// A resource with a provider of its own, configuration, secrets and a component.
const PROGRAM: &str = r#"
const pulumi = require("@pulumi/pulumi");
const config = new pulumi.Config("own");
const provider = {
    async create(inputs) { return { id: "made", outs: inputs }; },
    async update(id, olds, news) { return { outs: news }; },
    async diff(id, olds, news) { return { changes: olds.size !== news.size }; },
    async delete() {},
};
class Thing extends pulumi.dynamic.Resource {
    constructor(name, args, options) { super(provider, name, args, options); }
}
class Group extends pulumi.ComponentResource {
    constructor(name) { super("own:index:Group", name, {}, {}); this.registerOutputs({}); }
}
const group = new Group("group");
const thing = new Thing("thing", {
    size: config.get("size") || "small",
    password: config.getSecret("password") || pulumi.secret("made-up-word"),
}, { parent: group });
exports.size = thing.size;
exports.password = thing.password;
exports.zones = config.getObject("zones") || [];
exports.project = pulumi.getProject();
"#;

struct Engines {
    environment: EnvironmentVariables,
    given: Option<GivenConfig>,
}

impl Engines {
    fn official(&self) -> OfficialEngine {
        let engine =
            OfficialEngine::with_keys(Keyring::new(self.environment.clone(), KeyServices::Any));
        match &self.given {
            Some(given) => engine.given(given.clone()),
            None => engine,
        }
    }

    fn embedded(&self) -> EmbeddedEngine {
        let processes = Arc::new(Processes::new());
        let engine = EmbeddedEngine::with_keys(
            Keyring::new(self.environment.clone(), KeyServices::Any),
            processes,
        );
        match &self.given {
            Some(given) => engine.given(given.clone()),
            None => engine,
        }
    }
}

fn place(pulumi: &Path, sdk: &Path) -> (OfficialSite, Engines) {
    let place = OfficialSite::new(PROGRAM);
    let modules = sdk.join("node_modules");
    symlink(modules, place.path("program/node_modules")).expect("a link");
    place.write(
        "program/package.json",
        r#"{"name": "own", "main": "index.js"}"#,
    );
    let programs = pulumi.parent().map(PathBuf::from).unwrap_or_default();
    let environment = place.environment(&programs);
    let engines = Engines {
        environment,
        given: None,
    };
    (place, engines)
}

async fn apply(
    engine: &dyn Engine,
    place: &OfficialSite,
    stack: &str,
    operation: StackOperation,
) -> (OperationReport, Vec<EngineEvent>) {
    let request = place.request(stack, operation);
    let (report, events) = run(engine, &request).await;
    let report = report.expect("it was started");
    let said: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            EngineEvent::Diagnostic(diagnostic) => Some(diagnostic.message.clone()),
            _ => None,
        })
        .collect();
    assert!(report.result.is_ok(), "{:?}: {said:?}", report.result);
    (report, events)
}

/// How many steps of each kind there were, without those that change nothing.
fn changes(report: &OperationReport) -> Vec<(StepOp, usize)> {
    let all = report.changes.iter().map(|(op, count)| (*op, *count));
    all.filter(|(op, count)| *op != StepOp::Same && *count > 0)
        .collect()
}

/// What was told to happen to which resource.
fn told(events: &[EngineEvent]) -> Vec<String> {
    let mut told: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            EngineEvent::ResourceOutputs { step, .. } if step.logical => {
                Some(format!("{} {}", step.op, step.urn))
            }
            _ => None,
        })
        .filter(|line| !line.contains("pulumi:providers:"))
        .collect();
    told.sort();
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_is_continued_by_either_engine() {
    let pulumi = tool_or_skip!(Tool::PulumiCli);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let (place, engines) = place(&pulumi, &sdk);
    let (official, embedded) = (engines.official(), engines.embedded());

    let (made, events) = apply(&official, &place, "dev", StackOperation::Update).await;
    assert_eq!(changes(&made), [(StepOp::Create, 3)]);
    assert_eq!(told(&events).len(), 3, "{:?}", told(&events));
    let secret = PropertyValue::secret("made-up-word".into());
    assert_eq!(
        made.outputs["password"], secret,
        "the state has what events do not"
    );
    assert!(
        !format!("{events:?}").contains("made-up-word"),
        "events have no secrets"
    );

    let (same, _) = apply(&embedded, &place, "dev", StackOperation::Update).await;
    assert_eq!(
        changes(&same),
        [],
        "the embedded engine finds nothing to do"
    );
    assert_eq!(same.outputs, made.outputs);

    place.write(
        "program/Pulumi.dev.yaml",
        &format!(
            "{}config:\n  own:size: large\n",
            place.read("program/Pulumi.dev.yaml")
        ),
    );
    let (updated, _) = apply(&embedded, &place, "dev", StackOperation::Update).await;
    assert_eq!(changes(&updated), [(StepOp::Update, 1)]);

    let (same, _) = apply(&official, &place, "dev", StackOperation::Update).await;
    assert_eq!(changes(&same), [], "the official one finds nothing to do");
    let (gone, _) = apply(&official, &place, "dev", StackOperation::Destroy).await;
    assert_eq!(changes(&gone), [(StepOp::Delete, 3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_keeps_its_name_and_its_configuration_on_either_engine() {
    let pulumi = tool_or_skip!(Tool::PulumiCli);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let (place, mut engines) = place(&pulumi, &sdk);
    let mut given = GivenConfig::default();
    given.set("own:size", json!("medium"), false);
    given.set("own:zones", json!(["a", "b"]), false);
    given.set("own:password", json!("given-in-memory"), true);
    engines.given = Some(given);
    let stack = "organization/business/D1-network-dev";

    let (made, told_first) =
        apply(&engines.embedded(), &place, stack, StackOperation::Update).await;
    let (same, told_then) = apply(&engines.official(), &place, stack, StackOperation::Update).await;
    assert_eq!(changes(&same), [], "{:?}", told(&told_then));
    assert_eq!(same.outputs, made.outputs);
    assert_eq!(same.outputs["project"], PropertyValue::from("business"));
    assert_eq!(told(&told_first).len(), told(&told_then).len());

    let request = place.preview(stack);
    let (preview, _) = run(&engines.official(), &request).await;
    let preview = preview.expect("it was started");
    assert!(preview.result.is_ok() && !preview.has_changes());
    assert_eq!(preview.outputs["size"], PropertyValue::from("medium"));

    let (gone, _) = apply(&engines.embedded(), &place, stack, StackOperation::Destroy).await;
    assert_eq!(changes(&gone), [(StepOp::Delete, 3)]);
    assert!(!place.path("program/Pulumi.D1-network-dev.yaml").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_fails_is_told_alike() {
    let pulumi = tool_or_skip!(Tool::PulumiCli);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let (place, engines) = place(&pulumi, &sdk);
    place.write(
        "program/index.js",
        "throw new Error('this program is broken');",
    );
    let mut codes = Vec::new();
    for engine in [&engines.official() as &dyn Engine, &engines.embedded()] {
        let request = place.preview("dev");
        let (report, events) = run(engine, &request).await;
        let error = report
            .expect("it was started")
            .result
            .expect_err("it is broken");
        codes.push(error.code());
        assert!(format!("{events:?}").contains("this program is broken"));
    }
    assert_eq!(codes[0], codes[1]);
}
