//! How long a run would take for real, told from its rehearsal.
//!
//! A rehearsal may wait less than its calls are said to take, or not at all. What is foretold is
//! therefore not measured with a clock: the run is told again ([`replay`]) with the times that the
//! calls take, in the order that the dependencies of the resources demand, with as many at once as
//! the engine allows. The engine's own work is counted as it was measured.

mod observer;
mod order;
mod replay;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::orders::CloudCall;
use observer::{CallKind, CallSeen, UnitSeen};
use replay::{Task, replay};

pub use observer::Observer;

/// How long something would take for real.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    pub took: Duration,
    /// What nothing could have ended earlier than, in order.
    pub path: Vec<CriticalStep>,
}

/// One step of a critical path.
#[derive(Clone, Debug, PartialEq)]
pub struct CriticalStep {
    /// A resource's name, or a unit's.
    pub name: String,
    /// A resource's type; none for a unit.
    pub type_: Option<String>,
    pub took: Duration,
}

/// The forecast of a run over units, and of each that ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunForecast {
    pub total: Forecast,
    pub units: BTreeMap<String, Forecast>,
}

/// A unit in the order of a run.
#[derive(Clone, Debug)]
pub struct UnitOrder<'a> {
    pub name: &'a str,
    /// Units that end before it begins.
    pub after: Vec<&'a str>,
}

/// A call on its way: knows what it takes, whether or not that is waited.
pub(crate) struct Timing {
    began: Instant,
    simulated: Duration,
    waited: Duration,
}

impl Timing {
    pub(crate) fn begin() -> Self {
        Self {
            began: Instant::now(),
            simulated: Duration::ZERO,
            waited: Duration::ZERO,
        }
    }

    /// Simulated time passes, of which so much is really waited.
    pub(crate) fn pass(&mut self, simulated: Duration, waited: Duration) {
        self.simulated += simulated;
        self.waited += waited;
    }

    pub(crate) fn end(self, what: What<'_>, observer: &Observer) {
        let ended = Instant::now();
        let own = (ended - self.began).saturating_sub(self.waited);
        observer.call(CallSeen {
            urn: what.urn.to_owned(),
            type_: what.type_.to_owned(),
            name: what.name.to_owned(),
            kind: match what.call {
                CloudCall::Delete => CallKind::Delete,
                CloudCall::Read if what.recorded => CallKind::Look,
                CloudCall::Create | CloudCall::Read | CloudCall::Update => CallKind::Make,
            },
            began: self.began,
            ended,
            takes: own + self.simulated,
            simulated: self.simulated,
        });
    }
}

/// What was called.
pub(crate) struct What<'a> {
    pub(crate) urn: &'a str,
    pub(crate) type_: &'a str,
    pub(crate) name: &'a str,
    pub(crate) call: CloudCall,
    /// The caller has a record of the object.
    pub(crate) recorded: bool,
}

impl Observer {
    /// How long a unit takes for real, with so many steps at once; `None` when nothing of it took
    /// simulated time.
    pub fn forecast(&self, unit: &str, steps: usize) -> Option<Forecast> {
        let seen = self.seen();
        let unit = seen.units.get(unit)?;
        let calls = calls_of(unit, &seen.calls);
        let any = calls.iter().any(|call| !call.simulated.is_zero());
        any.then(|| forecast_unit(unit, &calls, steps))
    }

    /// How long a run over units takes for real, with so many units and steps of each at once;
    /// `None` when nothing of it took simulated time.
    pub fn forecast_run(
        &self,
        began: Instant,
        order: &[UnitOrder<'_>],
        units_at_once: usize,
        steps: usize,
    ) -> Option<RunForecast> {
        let ended = Instant::now();
        let seen = self.seen();
        let mut units = BTreeMap::new();
        let mut tasks = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        let mut any = false;
        for unit in order {
            let Some((told, first, last)) = seen.units.get(unit.name).and_then(operations) else {
                continue;
            };
            let calls = calls_of(told, &seen.calls);
            any |= calls.iter().any(|call| !call.simulated.is_zero());
            let forecast = forecast_unit(told, &calls, steps);
            names.push(unit.name);
            tasks.push(Task {
                began: first.saturating_duration_since(began),
                ended: last.saturating_duration_since(began),
                takes: forecast.took,
                after: Vec::new(),
            });
            units.insert(unit.name.to_owned(), forecast);
        }
        let needs: BTreeMap<_, _> = order.iter().map(|unit| (unit.name, &unit.after)).collect();
        for (at, name) in names.iter().enumerate() {
            tasks[at].after = reached(name, &needs, &names);
        }
        let told = replay(
            &tasks,
            units_at_once,
            ended.saturating_duration_since(began),
        );
        let leg = |at: &usize| CriticalStep {
            name: names[*at].to_owned(),
            type_: None,
            took: tasks[*at].takes,
        };
        let total = Forecast {
            took: told.took,
            path: told.path.iter().map(leg).collect(),
        };
        any.then_some(RunForecast { total, units })
    }
}

fn operations(unit: &UnitSeen) -> Option<(&UnitSeen, Instant, Instant)> {
    let first = unit.operations.iter().map(|(began, _)| *began).min()?;
    let last = unit.operations.iter().map(|(_, ended)| *ended).max()?;
    Some((unit, first, last))
}

fn calls_of<'a>(unit: &UnitSeen, calls: &'a [CallSeen]) -> Vec<&'a CallSeen> {
    let known = |call: &&CallSeen| unit.resources.contains_key(&call.urn);
    calls.iter().filter(known).collect()
}

/// Units that ran and that a unit comes after, also through those that did not run.
fn reached(name: &str, needs: &BTreeMap<&str, &Vec<&str>>, ran: &[&str]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    let mut frontier = needs
        .get(name)
        .map(|list| list.to_vec())
        .unwrap_or_default();
    while let Some(next) = frontier.pop() {
        if seen.contains(&next) {
            continue;
        }
        seen.push(next);
        match ran.iter().position(|known| *known == next) {
            Some(at) => found.push(at),
            None => frontier.extend(needs.get(next).into_iter().flat_map(|list| list.iter())),
        }
    }
    found
}

/// Operations of a unit follow each other.
fn forecast_unit(unit: &UnitSeen, calls: &[&CallSeen], steps: usize) -> Forecast {
    let mut whole = Forecast::default();
    let mut before = None;
    for (began, ended) in &unit.operations {
        let within = |call: &&&CallSeen| call.began >= *began && call.ended <= *ended;
        let own: Vec<&CallSeen> = calls.iter().filter(within).copied().collect();
        let order = order::order(&own, &unit.resources);
        let task = |(call, after): (&&CallSeen, Vec<usize>)| Task {
            began: call.began.saturating_duration_since(*began),
            ended: call.ended.saturating_duration_since(*began),
            takes: call.takes,
            after,
        };
        let tasks: Vec<Task> = own.iter().zip(order).map(task).collect();
        let told = replay(&tasks, steps, ended.saturating_duration_since(*began));
        let pause = before.map(|before| began.saturating_duration_since(before));
        whole.took += told.took + pause.unwrap_or_default();
        whole.path.extend(told.path.iter().map(|at| CriticalStep {
            name: own[*at].name.clone(),
            type_: Some(own[*at].type_.clone()),
            took: own[*at].takes,
        }));
        before = Some(*ended);
    }
    whole
}

#[cfg(test)]
mod tests;
