//! `nimbus gate`: what has to be true of an environment before the next one follows.

use jiff::Timestamp;
use nimbus_core::Result;
use nimbus_engine_backend::Owner;
use nimbus_local::{Gates, Signature};
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::gate::{self, Item};
use schemars::JsonSchema;
use serde::Serialize;

use super::local::Place;
use crate::context::Context;
use crate::exit::Outcome;
use crate::output::Report;
use crate::style::{Terminal, Tone};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Environment: dev, stage or prod; all of them when left out
    #[arg(long, short, value_parser = super::environment)]
    environment: Option<Environment>,
    /// Record that an item is done, such as load-tests
    #[arg(long, value_name = "ITEM", requires = "environment")]
    pass: Option<String>,
    /// What is recorded with it: who looked at what
    #[arg(long, value_name = "TEXT", requires = "pass", default_value = "")]
    note: String,
    /// Gates of rehearsals instead
    #[arg(long)]
    rehearse: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome> {
    let place = Place::find(&args.id, args.rehearse, context)?;
    let gates = Gates::of_deployment(&place.directory);
    if let (Some(item), Some(environment)) = (&args.pass, args.environment) {
        sign(&gates, environment, item, args.note.clone())?;
    }
    let mut shown = Vec::new();
    for (environment, target) in &place.deployment.manifest.environments {
        if args.environment.is_some_and(|only| only != *environment) {
            continue;
        }
        let evidence = gates.evidence(*environment, target.enabled)?;
        let items = gate::record(*environment, &evidence).into_iter();
        shown.push(ShownGate {
            environment: environment.to_string(),
            items: items.map(ShownItem::from).collect(),
        });
    }
    context.output.result(&GateReport { gates: shown })?;
    Ok(Outcome::Done)
}

fn sign(gates: &Gates, environment: Environment, item: &str, note: String) -> Result<()> {
    let items = gate::items(environment).iter().copied();
    let open: Vec<&str> = items
        .filter(|item| item.can_be_signed())
        .map(Item::as_str)
        .collect();
    if !open.contains(&item) {
        let message = format!(
            "{item} cannot be recorded for {environment}; there are {}",
            open.join(", ")
        );
        return Err(super::usage(message));
    }
    let at = Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string();
    let user = Owner::current("").username;
    gates.sign(environment, item, Signature { user, at, note })
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct GateReport {
    gates: Vec<ShownGate>,
}

#[derive(JsonSchema, Serialize)]
struct ShownGate {
    environment: String,
    items: Vec<ShownItem>,
}

#[derive(JsonSchema, Serialize)]
struct ShownItem {
    item: &'static str,
    done: bool,
    /// Who or what says so, or what is missing.
    note: String,
}

impl From<gate::Standing> for ShownItem {
    fn from(standing: gate::Standing) -> Self {
        Self {
            item: standing.item.as_str(),
            done: standing.done,
            note: standing.note,
        }
    }
}

impl Report for GateReport {
    const SCHEMA: &'static str = "nimbus/gate/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        for gate in &self.gates {
            text.push_str(&format!("{}\n", gate.environment));
            for item in &gate.items {
                let mark = match item.done {
                    true => terminal.paint(Tone::Good, "✓"),
                    false => terminal.paint(Tone::Warning, "·"),
                };
                text.push_str(&format!("  {mark} {:<23} {}\n", item.item, item.note));
            }
        }
        text
    }
}
