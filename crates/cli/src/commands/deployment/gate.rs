//! `nimbus gate`: what has to be true of an environment before the next one follows.

use jiff::Timestamp;
use nimbus_control_wire::EnvironmentGate;
use nimbus_core::{EnvironmentName, Result};
use nimbus_engine_backend::Owner;
use nimbus_local::{GateFile, RunFiles};
use nimbus_orchestrator::gate::GateItemStatus;
use nimbus_runs::ports::{GateSignature, SystemRunClock};
use nimbus_runs::{PromotionGates, timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::local::find_place;
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct GateArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Environment, such as dev; all of them when left out
    #[arg(long, short, value_parser = super::environment)]
    pub(crate) environment: Option<EnvironmentName>,
    /// Record that an item is done, such as load-tests
    #[arg(long, value_name = "ITEM", requires = "environment")]
    pub(crate) pass: Option<String>,
    /// What is recorded with it: who looked at what
    #[arg(long, value_name = "TEXT", requires = "pass", default_value = "")]
    pub(crate) note: String,
    /// Gates of rehearsals instead
    #[arg(long)]
    pub(crate) rehearse: bool,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

pub(crate) async fn run(args: GateArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.id, args.rehearse, context)?;
    let manifest = &place.deployment.manifest;
    let (runs, gates) = (RunFiles::new(&place.records), GateFile::new(&place.records));
    let promotion = PromotionGates {
        runs: &runs,
        gates: &gates,
        clock: &SystemRunClock,
    };
    if let (Some(item), Some(environment)) = (&args.pass, args.environment) {
        let signature = GateSignature {
            user: Owner::current("").username,
            at: timestamp(Timestamp::now()),
            note: args.note.clone(),
        };
        promotion
            .sign(manifest, environment, item, signature)
            .await?;
    }
    let mut shown = Vec::new();
    for environment in place.environments(args.environment) {
        let items = promotion.status(manifest, environment).await?.into_iter();
        shown.push(ShownGate {
            environment: environment.to_string(),
            items: items.map(ShownItem::from).collect(),
        });
    }
    context.output.result(&GateReport { gates: shown })?;
    Ok(CommandOutcome::Done)
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
    item: String,
    done: bool,
    /// Who or what says so, or what is missing.
    note: String,
}

impl From<GateItemStatus> for ShownItem {
    fn from(standing: GateItemStatus) -> Self {
        Self {
            item: standing.item.as_str().to_owned(),
            done: standing.done,
            note: standing.note,
        }
    }
}

impl GateReport {
    /// As a server tells it.
    pub(crate) fn of_server(gates: Vec<EnvironmentGate>) -> Self {
        let shown = |gate: EnvironmentGate| ShownGate {
            environment: gate.environment,
            items: gate
                .items
                .into_iter()
                .map(|one| ShownItem {
                    item: one.item,
                    done: one.done,
                    note: one.note,
                })
                .collect(),
        };
        Self {
            gates: gates.into_iter().map(shown).collect(),
        }
    }
}

impl Report for GateReport {
    const SCHEMA: &'static str = "nimbus/gate/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut page = ReportPage::default();
        for gate in &self.gates {
            page.line(&gate.environment);
            for item in &gate.items {
                let mark = match item.done {
                    true => terminal.paint(TextStyle::Good, "✓"),
                    false => terminal.paint(TextStyle::Warning, "·"),
                };
                page.line(format!("  {mark} {:<23} {}", item.item, item.note));
            }
        }
        page.into_text()
    }
}
