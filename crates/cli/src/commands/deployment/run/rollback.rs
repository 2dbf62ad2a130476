//! `nimbus rollback`: return an environment to an earlier version.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_operations::Cancellation;
use nimbus_local::{Recovery, Versions};
use nimbus_orchestrator::graph::{Graph, Name, Unit};
use nimbus_orchestrator::record::{RunChoices, RunKind, VersionRecord};
use nimbus_orchestrator::run::{Direction, OnFailure};
use schemars::JsonSchema;
use serde::Serialize;

use super::crew::Work;
use super::session::{Order, carry_out, lock};
use super::{HowArgs, rehearsal_note};
use crate::commands::deployment::local::{Place, RunArgs, allow, open};
use crate::commands::program::confirm;
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::{Terminal, Tone};

#[derive(clap::Args, Debug)]
pub(crate) struct RollbackArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    how: HowArgs,
    /// Version to return to; the one before the current when left out
    #[arg(long, visible_alias = "to", value_name = "VERSION")]
    to_version: Option<u32>,
    /// List the versions instead
    #[arg(long, conflicts_with = "to_version")]
    list: bool,
}

pub(crate) async fn rollback(args: RollbackArgs, context: &Context) -> Result<Outcome> {
    let run = &args.run;
    let place = Place::find(&run.id, run.rehearse, context)?;
    let versions = Versions::of_environment(&place.directory, run.environment);
    if args.list {
        let report = VersionsReport::new(run, &versions.all()?);
        context.output.result(&report)?;
        return Ok(Outcome::Done);
    }
    allow(&place.deployment, run.environment)?;
    let held = lock(&place, run, args.how.wait, "rollback", context).await?;
    let current = versions.last()?.ok_or_else(|| {
        let message = format!("{} has no versions yet", run.environment);
        Error::new(ErrorCode::VERSION_UNKNOWN, message)
    })?;
    let number = args
        .to_version
        .unwrap_or_else(|| current.version.saturating_sub(1));
    let target = versions.find(number)?;
    let (states, graph) = states(&target, Some(&current))?;
    if !args.how.yes && !run.rehearse {
        let question = format!(
            "Return {} stacks of {} to version {number}?",
            states.len(),
            run.environment
        );
        confirm(context, &question).await?;
    }
    // Opening it checks that everything that is needed is there.
    open(run, context, &Cancellation::default())?;
    rehearsal_note(run, context);
    let order = Order {
        kind: RunKind::Rollback,
        work: Work::Restore(states),
        direction: Direction::Reverse,
        graph,
        choices: RunChoices {
            force: false,
            parallel: args.how.parallel,
            on_failure: OnFailure::Hold,
            stacks: None,
            backend: run.backend.clone(),
            to_version: Some(number),
        },
        plan: None,
        warnings: Vec::new(),
        goes_on: None,
        recovery: Recovery::default(),
    };
    carry_out(order, run, place, held, context).await
}

/// The state that each unit returns to, and who needs whom. Units that came later go away.
pub(super) fn states(
    target: &VersionRecord,
    current: Option<&VersionRecord>,
) -> Result<(BTreeMap<Name, Option<usize>>, Graph)> {
    let mut states = BTreeMap::new();
    let mut needs: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
    let now = current.into_iter().flat_map(|version| &version.units);
    for (name, unit) in now {
        states.insert(name.clone(), None);
        needs.insert(name.clone(), unit.needs.clone());
    }
    for (name, unit) in &target.units {
        // What is as it was stays alone.
        let same = current.and_then(|version| version.units.get(name));
        if same.is_some_and(|same| same.state == unit.state) {
            states.remove(name);
            needs.remove(name);
            continue;
        }
        states.insert(name.clone(), Some(unit.state));
        needs.insert(name.clone(), unit.needs.clone());
    }
    let units = needs.iter().map(|(name, needs)| Unit {
        name: name.clone(),
        priority: 0,
        needs: needs
            .iter()
            .filter(|need| states.contains_key(*need))
            .cloned()
            .collect(),
    });
    let graph = Graph::new(units)
        .map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}")))?;
    Ok((states, graph))
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct VersionsReport {
    deployment: String,
    environment: String,
    /// Oldest first; the last one is what is there now.
    versions: Vec<ShownVersion>,
}

#[derive(JsonSchema, Serialize)]
struct ShownVersion {
    version: u32,
    run: String,
    /// `deploy`, `destroy` or `rollback`.
    kind: &'static str,
    at: String,
    user: String,
    /// State of each unit: its number in the unit's own history.
    units: BTreeMap<String, usize>,
}

impl VersionsReport {
    fn new(run: &RunArgs, versions: &[VersionRecord]) -> Self {
        let shown = versions.iter().map(|record| ShownVersion {
            version: record.version,
            run: record.run.to_string(),
            kind: record.kind.as_str(),
            at: record.at.clone(),
            user: record.user.clone(),
            units: record
                .units
                .iter()
                .map(|(name, unit)| (name.clone(), unit.state))
                .collect(),
        });
        Self {
            deployment: run.id.clone(),
            environment: run.environment.to_string(),
            versions: shown.collect(),
        }
    }
}

impl Report for VersionsReport {
    const SCHEMA: &'static str = "nimbus/versions/1";

    fn text(&self, terminal: Terminal) -> String {
        if self.versions.is_empty() {
            return format!("{} has no versions yet\n", self.environment);
        }
        let heading = format!(
            "{:>7}  {:<8} {:<9} {:<25} {:<12} STACKS",
            "VERSION", "RUN", "KIND", "AT", "BY"
        );
        let mut text = terminal.paint(Tone::Heading, &heading) + "\n";
        for shown in &self.versions {
            let ShownVersion {
                version,
                run,
                kind,
                at,
                user,
                units,
            } = shown;
            let count = units.len();
            text.push_str(&format!(
                "{version:>7}  {run:<8} {kind:<9} {at:<25} {user:<12} {count}\n"
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use nimbus_orchestrator::record::{RunId, UnitVersion};

    use super::*;

    fn version(number: u32, units: &[(&str, usize, &[&str])]) -> VersionRecord {
        let unit = |(name, state, needs): &(&str, usize, &[&str])| {
            let unit = UnitVersion {
                stack: (*name).to_owned(),
                state: *state,
                program: String::new(),
                fingerprint: String::new(),
                needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            };
            ((*name).to_owned(), unit)
        };
        VersionRecord {
            version: number,
            run: RunId(number),
            kind: RunKind::Deploy,
            at: String::new(),
            user: String::new(),
            units: units.iter().map(unit).collect(),
        }
    }

    #[test]
    fn what_came_later_goes_what_changed_returns_and_the_rest_stays() {
        let target = version(1, &[("net", 1, &[]), ("app", 1, &["net"])]);
        let current = version(
            3,
            &[("net", 1, &[]), ("app", 2, &["net"]), ("new", 1, &["app"])],
        );
        let (states, graph) = states(&target, Some(&current)).unwrap();
        assert_eq!(
            states,
            BTreeMap::from([("app".to_owned(), Some(1)), ("new".to_owned(), None)])
        );
        assert_eq!(graph.needs("new").collect::<Vec<_>>(), ["app"]);
        assert_eq!(graph.needs("app").count(), 0, "net is not touched");
    }
}
