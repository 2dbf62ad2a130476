//! What resolvers lease to units: shown with a plan, sealed with it, and settled with the run, whatever happens.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests"
)]

mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::{ComponentName, ErrorCode};
use nimbus_orchestrator::{OnFailure, RunAction, RunResult, progress_of};
use nimbus_resolvers::{LeaseHolder, LeaseStatus, ParameterContract, ResolverSettings};
use nimbus_runs::{
    EventBus, PreviewReport, PreviewRequest, RunChoices, RunContext, RunRequest, RunSession,
    preview,
};
use nimbus_runs_testing::{Crash, RecordedWorld, UnitFault};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::shared::{DEV, go_on, request, start};

/// `app` needs `network`; both ask resolvers.
fn world() -> RecordedWorld {
    let manifest = "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {deploymentId: D1, organization: o, \
        project: p, template: t}\nspec:\n  environments: {dev: {enabled: true, account: '111111111111', region: \
        eu-west-1}}\n  stacks:\n    network: {enabled: true, config: {dev: {cidr: \
        '{{RUNTIME:ipam:cidr:prefix_length=26}}', gateway: '{{RUNTIME:ipam:gateway:prefix_length=26}}'}}}\n    app: \
        {enabled: true, config: {dev: {net: '{{RUNTIME:network:out}}', name: \
        '{{RUNTIME:naming:name:resource_type=vm}}', password: '{{RUNTIME:secret:value:name=db}}'}}}\n";
    let programs = ["network", "app"].map(|name| (name, "v1"));
    let world = RecordedWorld::with_manifest(manifest, &programs);
    let file = json!({
        "pools": [{"name": "lan", "cidr": "10.0.0.0/24"}],
        "resolvers": {"ipam": {"pool": "lan"}, "naming": {"pattern": "{env}-{type}-{seq:03d}"}},
    });
    let settings = ResolverSettings::read(&file, "dev").unwrap();
    world.change(|contents| contents.resolvers = settings);
    world
}

/// By unit and resolver, what is held.
fn held(world: &RecordedWorld) -> BTreeMap<String, (LeaseStatus, String)> {
    world.read(|contents| {
        let live = contents.leases.live().map(|one| {
            let key = format!("{} {}", one.unit.component, one.resolver);
            let value = one.outputs.values().next().unwrap();
            (
                key,
                (one.status, value.as_str().unwrap_or_default().to_owned()),
            )
        });
        live.collect()
    })
}

fn statuses(world: &RecordedWorld) -> Vec<LeaseStatus> {
    held(world)
        .into_values()
        .map(|(status, _)| status)
        .collect()
}

fn config(world: &RecordedWorld, component: &str) -> String {
    world.read(|contents| {
        let unit = contents
            .units
            .iter()
            .find(|(name, _)| name.to_string().contains(component));
        unit.map(|(_, unit)| unit.resources["first"].clone())
            .unwrap_or_default()
    })
}

fn failing(world: &RecordedWorld, name: &str, fault: UnitFault) {
    world.change(|contents| contents.faults.insert(name.parse().unwrap(), fault));
}

async fn look(world: &RecordedWorld) -> nimbus_core::Result<PreviewReport> {
    let asked = PreviewRequest {
        environment: DEV,
        rehearsal: false,
        components: None,
        parallel: 1,
        engine: nimbus_runs::EngineChoice::Embedded,
    };
    let ports = Arc::new(world.ports(&Crash::never()));
    let bus = Arc::new(EventBus::default());
    preview(ports, &asked, bus, CancellationToken::new(), |_| ()).await
}

const DEPLOY: RunAction = RunAction::Deploy;

async fn deploy(world: &RecordedWorld, on_failure: OnFailure) -> RunResult {
    let asked = request(DEPLOY, on_failure, None);
    start(world, asked, &Crash::never()).await.unwrap().result
}

#[tokio::test]
async fn success_commits_and_the_next_run_has_the_same() {
    let world = world();
    assert_eq!(deploy(&world, OnFailure::Hold).await, RunResult::Succeeded);
    let first = held(&world);
    assert_eq!(statuses(&world), [LeaseStatus::Committed; 3], "{first:?}");
    assert!(
        config(&world, "network").contains("10.0.0.0/26"),
        "{}",
        config(&world, "network")
    );
    assert!(
        config(&world, "network").contains("10.0.0.1"),
        "one lease has both outputs"
    );
    assert!(config(&world, "app").contains("dev-vm-001"));
    world.change(|contents| {
        for code in contents.programs.values_mut() {
            *code = "v2".to_owned();
        }
    });
    assert_eq!(deploy(&world, OnFailure::Hold).await, RunResult::Succeeded);
    assert_eq!(held(&world), first);
}

#[tokio::test]
async fn a_plan_shows_what_the_deploy_gets_and_seals_it() {
    let world = world();
    let report = look(&world).await.unwrap();
    let network = &report.units["network"].leases;
    assert_eq!(network[0].outputs["cidr"], "10.0.0.0/26");
    assert_eq!(statuses(&world), [LeaseStatus::Leased; 3]);
    let sealed = report.sealed.unwrap();
    assert_eq!(sealed.units["network"].leases, *network);
    let written = String::from_utf8(sealed.to_bytes()).unwrap();
    assert!(
        written.contains("nimbus-secret:") && !written.contains("secret 1 of"),
        "{written}"
    );
    // Somebody else takes what comes next; the plan's own is kept for it.
    let asked = RunRequest {
        choices: RunChoices {
            sealed_plan: Some(sealed),
            ..request(DEPLOY, OnFailure::Hold, None).choices
        },
        ..request(DEPLOY, OnFailure::Hold, None)
    };
    let done = start(&world, asked, &Crash::never()).await.unwrap();
    assert_eq!(done.result, RunResult::Succeeded);
    assert!(config(&world, "network").contains("10.0.0.0/26"));
    assert_eq!(statuses(&world), [LeaseStatus::Committed; 3]);
}

#[tokio::test]
async fn a_plan_whose_lease_is_gone_no_longer_fits() {
    let world = world();
    let sealed = look(&world).await.unwrap().sealed.unwrap();
    world.change(|contents| {
        let ids: Vec<_> = contents.leases.live().map(|one| one.id).collect();
        contents.leases.give_back(LeaseHolder::Plan, &ids);
        // Something else has the block that was shown.
        contents.resolvers.pools[0].reserved = vec!["10.0.0.0/26".parse().unwrap()];
    });
    let mut asked = request(DEPLOY, OnFailure::Hold, None);
    asked.choices.sealed_plan = Some(sealed);
    let ports = Arc::new(world.ports(&Crash::never()));
    let session = RunSession::open(ports, asked, "test", None).await.unwrap();
    let Err(error) = session.plan().await else {
        panic!("the plan was taken");
    };
    assert_eq!(error.code(), ErrorCode::PLAN_MOVED);
    assert_eq!(
        held(&world).len(),
        0,
        "what the refused run took is given back"
    );
}

#[tokio::test]
async fn a_run_that_fails_and_undoes_gives_everything_back() {
    let world = world();
    let fault = UnitFault {
        deploy: true,
        ..UnitFault::default()
    };
    failing(&world, "app", fault);
    assert_eq!(
        deploy(&world, OnFailure::Rollback).await,
        RunResult::RolledBack
    );
    assert_eq!(held(&world).len(), 0);
    // What was committed before stays.
    world.change(|contents| contents.faults.clear());
    deploy(&world, OnFailure::Hold).await;
    failing(&world, "app", fault);
    world.change(|contents| {
        contents.manifest = contents
            .manifest
            .replace("prefix_length=26", "prefix_length=27");
        contents
            .programs
            .values_mut()
            .for_each(|code| *code = "v2".to_owned());
    });
    let before = held(&world);
    assert_eq!(
        deploy(&world, OnFailure::Rollback).await,
        RunResult::RolledBack
    );
    assert_eq!(held(&world), before);
}

#[tokio::test]
async fn what_may_be_in_use_stays_held_until_somebody_knows() {
    let world = world();
    let fault = UnitFault {
        deploy: true,
        rollback: true,
        ..UnitFault::default()
    };
    failing(&world, "app", fault);
    assert_eq!(deploy(&world, OnFailure::Hold).await, RunResult::Failed);
    let after = held(&world);
    assert_eq!(after["network ipam"].0, LeaseStatus::Committed);
    assert_eq!(
        after["app naming"].0,
        LeaseStatus::Leased,
        "half of it is there"
    );
    // Gone on with, it has the same.
    world.change(|contents| contents.faults.clear());
    let run = world.read(|contents| *contents.runs.keys().next_back().unwrap());
    go_on(&world, run, &Crash::never()).await.unwrap();
    assert_eq!(
        held(&world)["app naming"],
        (LeaseStatus::Committed, after["app naming"].1.clone())
    );
    // An undo that fails leaves it held, too.
    world.change(|contents| {
        contents
            .programs
            .values_mut()
            .for_each(|code| *code = "v2".to_owned());
    });
    failing(&world, "app", fault);
    assert_eq!(
        deploy(&world, OnFailure::Rollback).await,
        RunResult::NeedsAttention
    );
    assert!(held(&world).contains_key("app naming"));
}

#[tokio::test]
async fn destroy_releases_and_a_failed_destroy_does_not() {
    let world = world();
    deploy(&world, OnFailure::Hold).await;
    let fault = UnitFault {
        destroy: true,
        ..UnitFault::default()
    };
    failing(&world, "network", fault);
    let destroy = || request(RunAction::Destroy, OnFailure::Hold, None);
    let done = start(&world, destroy(), &Crash::never()).await.unwrap();
    assert_eq!(done.result, RunResult::Failed);
    assert_eq!(
        held(&world).into_keys().collect::<Vec<_>>(),
        ["network ipam"]
    );
    world.change(|contents| contents.faults.clear());
    start(&world, destroy(), &Crash::never()).await.unwrap();
    assert_eq!(held(&world).len(), 0);
}

#[tokio::test]
async fn a_rollback_finds_what_the_version_had() {
    let world = world();
    deploy(&world, OnFailure::Hold).await;
    let first = held(&world)["network ipam"].1.clone();
    world.change(|contents| {
        contents.manifest = contents
            .manifest
            .replace("prefix_length=26", "prefix_length=27");
    });
    deploy(&world, OnFailure::Hold).await;
    let live = |world: &RecordedWorld| {
        world.read(|contents| {
            let of = |one: &&nimbus_resolvers::ResolverLease| one.unit.component == "network";
            let all = contents.leases.live().filter(of);
            all.map(|one| {
                (
                    one.outputs["cidr"].as_str().unwrap().to_owned(),
                    one.until_run,
                )
            })
            .collect::<BTreeMap<_, _>>()
        })
    };
    let after = live(&world);
    assert_eq!(
        (after.len(), after[&first]),
        (2, Some(2)),
        "kept for a rollback: {after:?}"
    );
    let back = request(RunAction::Rollback, OnFailure::Hold, Some(1));
    let done = start(&world, back, &Crash::never()).await.unwrap();
    assert_eq!(done.result, RunResult::Succeeded);
    assert_eq!(live(&world)[&first], None, "it is in use again");
}

#[tokio::test]
async fn a_refused_answer_takes_nothing_and_runs_nothing() {
    let world = world();
    world.change(|contents| {
        contents.resolvers.pools[0].reserved = vec!["10.0.0.0/24".parse().unwrap()];
    });
    let report = look(&world).await.unwrap();
    assert_ne!(report.result, RunResult::Succeeded);
    assert_eq!(held(&world).len(), 0);
    assert_eq!(deploy(&world, OnFailure::Hold).await, RunResult::Failed);
    let jobs = world.contents().jobs;
    assert!(
        jobs.iter().all(|job| job.unit.component != "network"),
        "{jobs:?}"
    );
    let left: Vec<_> = held(&world).into_keys().collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn a_refusal_has_the_code_of_the_resolver() {
    let world = world();
    let network: ComponentName = "network".parse().unwrap();
    let refused = async |world: &RecordedWorld| {
        let ports = Arc::new(world.ports(&Crash::never()));
        let context = RunContext::load(ports, DEV).await.unwrap();
        let error = context.prepare(&network).await.unwrap_err();
        (error.code(), error.help().unwrap_or_default().to_owned())
    };
    world.change(|contents| {
        contents.resolvers.pools[0].reserved = vec!["10.0.0.0/24".parse().unwrap()];
    });
    let (code, help) = refused(&world).await;
    assert_eq!(code, ErrorCode::POOL_EXHAUSTED);
    assert!(help.contains("larger one"), "{help}");
    world.change(|contents| contents.resolvers.pools.clear());
    assert_eq!(refused(&world).await.0, ErrorCode::POOL_UNKNOWN);
}

/// `network` has a contract besides: inputs that the manifest does not give, or gives in vain.
fn bound(world: &RecordedWorld, most: u64) {
    let schema = json!({"type": "object", "required": ["name", "size"], "properties": {
        "name": {"type": "string"}, "cidr": {"type": "string"}, "gateway": {"type": "string"},
        "kind": {"type": "string", "default": "lan"}, "size": {"type": "integer", "default": 3, "maximum": most}}});
    let bindings = json!({
        "name": {"resolver": "naming", "output": "name", "inputs": {"resource_type": {"param": "kind"}}}});
    let contract = ParameterContract::read(&schema, bindings.as_object().unwrap()).unwrap();
    world.change(|contents| {
        contents
            .contracts
            .insert("network".parse().unwrap(), contract)
    });
}

#[tokio::test]
async fn a_contract_is_defaults_then_the_manifest_then_resolvers() {
    let world = world();
    bound(&world, 8);
    world.change(|contents| {
        contents.manifest = contents
            .manifest
            .replace("{dev: {cidr: ", "{dev: {name: mine, cidr: ");
    });
    assert_eq!(deploy(&world, OnFailure::Hold).await, RunResult::Succeeded);
    let made = config(&world, "network");
    assert!(
        made.contains("dev-lan-001") && !made.contains("mine") && made.contains("10.0.0.0/26"),
        "{made}"
    );
    let jobs = world.contents().jobs;
    let job = jobs
        .iter()
        .find(|job| job.unit.component == "network" && job.config.contains_key("network:name"));
    let config = &job.expect("a job of network").config;
    assert!(config.contains_key("network:kind") && config.contains_key("network:size"));
    assert_eq!(held(&world)["network naming"].0, LeaseStatus::Committed);
    // Asked again, it has the same, and nothing is left to do.
    assert_eq!(deploy(&world, OnFailure::Hold).await, RunResult::Succeeded);
    assert_eq!(held(&world)["network naming"].1, "dev-lan-001");
}

#[tokio::test]
async fn parameters_that_break_a_contract_start_nothing_and_lease_nothing() {
    let world = world();
    bound(&world, 2);
    let report = look(&world).await.unwrap();
    assert_ne!(report.result, RunResult::Succeeded);
    assert_eq!(held(&world).len(), 0);
    assert_eq!(deploy(&world, OnFailure::Hold).await, RunResult::Failed);
    let jobs = world.contents().jobs;
    assert!(
        jobs.iter().all(|job| job.unit.component != "network"),
        "{jobs:?}"
    );
    assert_eq!(held(&world).len(), 0);
    let ports = Arc::new(world.ports(&Crash::never()));
    let context = RunContext::load(ports, DEV).await.unwrap();
    let network = "network".parse().unwrap();
    let error = context.prepare(&network).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::PARAMETERS_INVALID);
    assert!(error.message().contains("size"), "{error}");
}

/// Wherever a process dies, whoever goes on comes to the same end, and nothing is lost or left over.
#[tokio::test]
async fn a_crash_at_any_write_leaves_leases_that_the_next_attempt_settles() {
    let whole = world();
    deploy(&whole, OnFailure::Hold).await;
    let wanted: Vec<_> = held(&whole)
        .into_iter()
        .map(|(key, (status, _))| (key, status))
        .collect();
    for at in 0.. {
        let world = world();
        let asked = request(DEPLOY, OnFailure::Hold, None);
        if start(&world, asked.clone(), &Crash::before_write(at))
            .await
            .is_some()
        {
            assert!(at > 10, "nothing was ever written");
            break;
        }
        let last = world.read(|contents| {
            let (run, (_, events)) = contents.runs.last_key_value()?;
            Some((*run, progress_of(events).result))
        });
        match last {
            Some((run, None)) => drop(go_on(&world, run, &Crash::never()).await),
            Some((_, Some(_))) => {}
            None => drop(start(&world, asked, &Crash::never()).await),
        }
        let left = held(&world)
            .into_iter()
            .map(|(key, (status, _))| (key, status));
        assert_eq!(left.collect::<Vec<_>>(), wanted, "crash at write {at}");
    }
}
