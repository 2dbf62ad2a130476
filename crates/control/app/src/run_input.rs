//! What a run is asked to do, read and held to its limits before anything of it is queued.

use std::collections::BTreeSet;

use nimbus_control_auth::operation::Operation;
use nimbus_core::{ComponentName, ErrorCode};
use nimbus_orchestrator::{OnFailure, RunAction};
use nimbus_runs::{RehearsalChoice, RunChoices};
use uuid::Uuid;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::input;

/// Most units at once that a caller may ask for.
const MOST_PARALLEL: usize = 32;
/// Most orders that a rehearsal takes, and how long one may be.
const MOST_ORDERS: usize = 20;
const MOST_ORDER_BYTES: usize = 500;
const MOST_LATENCY_MS: u32 = 60_000;
const MOST_MESSAGE_LETTERS: usize = 2_000;

/// What a run is asked to do.
#[derive(Clone, Debug, Default)]
pub struct RunInput {
    pub environment: String,
    /// On a simulated cloud.
    pub rehearsal: bool,
    /// Also units that did not change.
    pub force: bool,
    pub parallel: Option<usize>,
    /// Only these; all of them when absent.
    pub components: Option<Vec<String>>,
    /// `automatic`, `rollback`, `hold` or `continue`; automatic when absent.
    pub on_failure: Option<String>,
    /// Skip checking the types of TypeScript programs.
    pub transpile_only: bool,
    /// The version that a rollback returns to.
    pub to_version: Option<u32>,
    /// Whether a rollback goes on without creates of unknown outcome.
    pub forget_creates: bool,
    /// Whether a refresh believes that much of what is recorded is gone.
    pub allow_mass_removal: bool,
    /// The preview whose plan a deploy is held to.
    pub plan: Option<String>,
    /// Why a deploy goes past the gate of the environment before; it is recorded.
    pub skip_gate: Option<String>,
    pub message: Option<String>,
    /// What the simulated cloud of a rehearsal does wrong.
    pub orders: Vec<String>,
    /// Milliseconds that its calls take.
    pub latency_ms: Option<u32>,
}

/// Whether a text is an order for a simulated cloud.
pub type OrderCheck = fn(&str) -> nimbus_core::Result<()>;

impl App {
    /// From now on orders for simulated clouds are read with this before a run is queued. The first one stays.
    pub fn check_orders_with(&self, check: OrderCheck) {
        // An error is a server that has one already.
        let _ = self.inner.orders.set(check);
    }

    /// Refuses orders that the run itself could not read. They come in one line each.
    pub(crate) fn check_orders(&self, input: &RunInput) -> Result<()> {
        let Some(check) = self.inner.orders.get() else {
            return Ok(());
        };
        for (number, order) in input.orders.iter().enumerate() {
            if let Err(error) = check(order) {
                let words = error.to_string().replace('\n', " ");
                return Err(Failure::field(format!("orders[{number}]"), words));
            }
        }
        Ok(())
    }
}

pub(crate) fn action_of(operation: Operation) -> Result<RunAction> {
    match operation.id {
        "deployments.deploy" | "stacks.deploy" => Ok(RunAction::Deploy),
        "deployments.destroy" => Ok(RunAction::Destroy),
        "deployments.preview" => Ok(RunAction::Preview),
        "deployments.rollback" => Ok(RunAction::Rollback),
        "deployments.refresh" => Ok(RunAction::Refresh),
        other => Err(Failure::new(
            ErrorCode::INTERNAL,
            format!("{other} is no run"),
        )),
    }
}

/// What happens when a unit fails. Only a deploy has something to go back to: what a destroy deleted
/// is gone, and a rollback is on its way back already.
fn on_failure(action: RunAction, asked: Option<&str>) -> Result<OnFailure> {
    if action != RunAction::Deploy {
        return match asked {
            None | Some("hold") => Ok(OnFailure::Hold),
            Some(_) => {
                let words = format!("a {} can only hold when something fails", action.as_str());
                Err(Failure::field("on_failure", words))
            }
        };
    }
    match asked {
        None | Some("automatic") => Ok(OnFailure::Automatic),
        Some("rollback") => Ok(OnFailure::Rollback),
        Some("hold") => Ok(OnFailure::Hold),
        Some("continue") => Ok(OnFailure::Continue),
        Some(_) => {
            let words = "give automatic, rollback, hold or continue";
            Err(Failure::field("on_failure", words))
        }
    }
}

/// The preview that a deploy is to be held to.
pub(crate) fn plan_id(action: RunAction, input: &RunInput) -> Result<Option<Uuid>> {
    let Some(plan) = &input.plan else {
        return Ok(None);
    };
    if action != RunAction::Deploy {
        return Err(Failure::field("plan", "only a deploy is held to a plan"));
    }
    let plan = plan.parse();
    plan.map(Some)
        .map_err(|_| Failure::field("plan", "this is not the id of a preview"))
}

pub(crate) fn choices(action: RunAction, input: &RunInput) -> Result<RunChoices> {
    let parallel = input.parallel.unwrap_or(4);
    if !(1..=MOST_PARALLEL).contains(&parallel) {
        return Err(Failure::field(
            "parallel",
            format!("give 1 to {MOST_PARALLEL}"),
        ));
    }
    if input.forget_creates && action != RunAction::Rollback {
        let words =
            "only a rollback begins without what nobody knows of; a run goes on with its resume";
        return Err(Failure::field("forget_creates", words));
    }
    if input.to_version.is_some() && action != RunAction::Rollback {
        let words = "only a rollback returns to a version";
        return Err(Failure::field("to_version", words));
    }
    if input.allow_mass_removal && action != RunAction::Refresh {
        let words = "only a refresh takes out of a state what is gone";
        return Err(Failure::field("allow_mass_removal", words));
    }
    if input.force && action == RunAction::Refresh {
        let words = "a refresh looks at every stack as it is";
        return Err(Failure::field("force", words));
    }
    let components = match &input.components {
        None => None,
        Some(names) => {
            let names = names.iter().map(|name| name.parse::<ComponentName>());
            let names = names.collect::<std::result::Result<Vec<_>, _>>();
            let names = names.map_err(|error| Failure::field("stacks", error.to_string()))?;
            if names.is_empty() {
                let words = "name one at least, or leave it out for all of them";
                return Err(Failure::field("stacks", words));
            }
            let different: BTreeSet<&ComponentName> = names.iter().collect();
            if different.len() < names.len() {
                return Err(Failure::field("stacks", "name each of them once"));
            }
            Some(names)
        }
    };
    Ok(RunChoices {
        force: input.force,
        parallel,
        on_failure: on_failure(action, input.on_failure.as_deref())?,
        components,
        to_version: input.to_version,
        forget_creates: input.forget_creates,
        allow_mass_removal: input.allow_mass_removal,
        typecheck: !input.transpile_only,
        message: message(input)?,
        skip_gate: skip_gate(action, input)?,
        rehearsal: told_cloud(input)?,
        ..RunChoices::default()
    })
}

/// What somebody says of a run. It comes with every list of runs.
fn message(input: &RunInput) -> Result<Option<String>> {
    let said = input.message.as_deref();
    said.map(|text| input::text("message", text, MOST_MESSAGE_LETTERS))
        .transpose()
}

/// Why a deploy goes past a gate. A reason that says nothing is none.
fn skip_gate(action: RunAction, input: &RunInput) -> Result<Option<String>> {
    let Some(reason) = input.skip_gate.as_deref() else {
        return Ok(None);
    };
    if action != RunAction::Deploy {
        let words = "only a deploy has a gate before it";
        return Err(Failure::field("skip_gate", words));
    }
    if reason.trim().is_empty() {
        return Err(Failure::field("skip_gate", "say why"));
    }
    input::text("skip_gate", reason, MOST_MESSAGE_LETTERS).map(Some)
}

/// What a simulated cloud is told. Real ones take no orders.
fn told_cloud(input: &RunInput) -> Result<RehearsalChoice> {
    let has_orders = !input.orders.is_empty() || input.latency_ms.is_some();
    if has_orders && !input.rehearsal {
        let message = "only the simulated cloud of a rehearsal takes orders";
        return Err(Failure::field("orders", message));
    }
    if input.orders.len() > MOST_ORDERS {
        return Err(Failure::field(
            "orders",
            format!("give up to {MOST_ORDERS}"),
        ));
    }
    if let Some(long) = input
        .orders
        .iter()
        .position(|order| order.len() > MOST_ORDER_BYTES)
    {
        let field = format!("orders[{long}]");
        return Err(Failure::field(
            field,
            format!("it has more than {MOST_ORDER_BYTES} bytes"),
        ));
    }
    if input.latency_ms.is_some_and(|time| time > MOST_LATENCY_MS) {
        return Err(Failure::field(
            "latency_ms",
            format!("give 0 to {MOST_LATENCY_MS}"),
        ));
    }
    Ok(RehearsalChoice {
        more_orders: input.orders.clone(),
        latency: input.latency_ms.map(|time| f64::from(time) / 1000.0),
        ..RehearsalChoice::default()
    })
}
