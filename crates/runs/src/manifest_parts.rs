//! The parts of a manifest that a run depends on, so that whoever goes on with it can say which of them
//! is no longer what it was.
//!
//! Another environment, a gate or a label may change while a run waits to be gone on with: nothing of
//! the run was decided by them. Digests are keyed, because values of configuration may be secret.

use std::collections::BTreeMap;

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_orchestrator::{
    ComponentEntry, Fingerprint, FingerprintInput, NetworkAccess, RunAction,
};
use serde_json::{Value, json};

use crate::context::RunContext;
use crate::record::RunRecord;

/// Begins the names of parts that only matter when something is made.
const CONFIGURATION: &str = "configuration of ";

/// Digests by what people call a part. Only chosen components count, if some were chosen.
pub(crate) fn manifest_parts(
    context: &RunContext,
    chosen: Option<&[ComponentName]>,
) -> BTreeMap<String, String> {
    let manifest = &context.manifest;
    let environment = context.environment;
    let mut parts = BTreeMap::new();
    let mut add = |name: String, value: Value| {
        let mut digest = Fingerprint::default();
        let input = FingerprintInput::Config("manifest".to_owned());
        digest.add_private(&context.ports.key, input, value.to_string());
        parts.insert(name, digest.digest());
    };
    add("project".to_owned(), json!(manifest.metadata.project));
    if let Some(target) = context.target() {
        let place = json!([target.account, target.region]);
        add(format!("environment {environment}"), place);
        for (name, check) in &target.checks {
            let check = json!([check.command, check.seconds, check.needed, check.rehearse]);
            add(format!("check {name}"), check);
        }
    }
    for (name, entry) in &manifest.stacks {
        let meant = chosen.is_none_or(|chosen| chosen.contains(name));
        if !meant || !entry.enabled {
            continue;
        }
        add(format!("stack {name}"), shape(entry));
        if let Some(config) = entry.config.get(&environment) {
            let sorted: BTreeMap<_, _> = config.iter().collect();
            add(format!("{CONFIGURATION}{name}"), json!(sorted));
        }
    }
    parts
}

fn shape(entry: &ComponentEntry) -> Value {
    let needs: Vec<&str> = entry
        .dependencies
        .iter()
        .map(|need| need.as_str())
        .collect();
    // The words of records that are there already.
    let network = entry.network.map(|network| match network {
        NetworkAccess::None => "None",
        NetworkAccess::Full => "Full",
    });
    match &entry.pulumi {
        // Records of before there were such names have three parts.
        None => json!([entry.priority, needs, network]),
        Some(names) => json!([entry.priority, needs, network, names.project, names.stacks]),
    }
}

/// Refuses to go on with a run whose manifest has moved. Half of an environment would be what was
/// asked for and half something else, and the record would tell of neither.
pub(crate) fn refuse_other_manifest(record: &RunRecord, context: &RunContext) -> Result<()> {
    let request = &record.request;
    let counts = |name: &str| match request.action {
        RunAction::Deploy => true,
        // What is taken away is found by name; what it was made from no longer matters.
        RunAction::Destroy => !name.starts_with(CONFIGURATION) && !name.starts_with("check "),
        // Where it leads is recorded in versions; the manifest is not asked.
        RunAction::Rollback | RunAction::Preview | RunAction::Refresh => false,
    };
    let before = &request.manifest_parts;
    // Older records have none.
    if before.is_empty() {
        return Ok(());
    }
    let now = manifest_parts(context, request.choices.components.as_deref());
    let mut moved = Vec::new();
    for (name, digest) in before.iter().filter(|(name, _)| counts(name)) {
        match now.get(name) {
            Some(same) if same == digest => {}
            Some(_) => moved.push(format!("{name} is another")),
            None => moved.push(format!("{name} is gone")),
        }
    }
    let new = now
        .keys()
        .filter(|name| counts(name) && !before.contains_key(*name));
    moved.extend(new.map(|name| format!("{name} is new")));
    if moved.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the manifest is not what run {} began with: {}",
        record.run,
        moved.join(", ")
    );
    let verb = request.action.as_str();
    let help = format!(
        "put it back as it was and resume, or start a new run with `nimbus {verb} {} --environment \
         {}`; what did not change is skipped",
        request.deployment, request.environment
    );
    Err(Error::new(ErrorCode::PLAN_MOVED, message).with_help(help))
}
