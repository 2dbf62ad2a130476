//! How long a real run would take, as part of a rehearsal's last line.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nimbus_core::ComponentName;
use nimbus_engine_operations::OperationOptions;
use nimbus_orchestrator::RunDirection;
use nimbus_rehearsal::{CriticalStep, Forecast, Observer, UnitOrder};
use nimbus_runs::FinishedRun;
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::program::{sentence, spoken};

/// What a real run would take, from the latencies that were given.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Prediction {
    seconds: f64,
    /// Stacks that nothing could have ended earlier than, in order.
    critical_path: Vec<PredictedStep>,
    units: BTreeMap<String, PredictedUnit>,
    #[serde(skip)]
    text: String,
}

#[derive(JsonSchema, Serialize)]
struct PredictedUnit {
    seconds: f64,
    /// Resources that nothing could have ended earlier than, in order.
    critical_path: Vec<PredictedStep>,
}

#[derive(JsonSchema, Serialize)]
struct PredictedStep {
    name: String,
    /// Of a resource.
    #[serde(rename = "type")]
    type_: Option<String>,
    seconds: f64,
}

/// Nothing when no latency was given.
pub(super) fn predict(
    observer: &Observer,
    began: Instant,
    finished: &FinishedRun,
) -> Option<Prediction> {
    let graph = &finished.graph;
    let unit = |name| UnitOrder {
        name: ComponentName::as_str(name),
        after: match finished.direction {
            RunDirection::Forward => graph.needs(name).map(ComponentName::as_str).collect(),
            RunDirection::Reverse => graph.needed_by(name).map(ComponentName::as_str).collect(),
        },
    };
    let units: Vec<_> = graph.names().map(unit).collect();
    let steps = OperationOptions::default().steps_at_once();
    let parallel = finished.record.request.choices.parallel;
    let run = observer.forecast_run(began, &units, parallel, steps)?;
    let mut text = format!("  {}\n", capitalised(&sentence(&run.total)));
    for (name, forecast) in &run.units {
        text.push_str(&format!("    {name}: {}\n", spoken(forecast.took)));
    }
    Some(Prediction {
        seconds: rounded(run.total.took),
        critical_path: run.total.path.into_iter().map(step).collect(),
        units: run.units.into_iter().map(predicted).collect(),
        text,
    })
}

impl Prediction {
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

fn predicted((name, forecast): (String, Forecast)) -> (String, PredictedUnit) {
    let unit = PredictedUnit {
        seconds: rounded(forecast.took),
        critical_path: forecast.path.into_iter().map(step).collect(),
    };
    (name, unit)
}

fn step(leg: CriticalStep) -> PredictedStep {
    PredictedStep {
        name: leg.name,
        type_: leg.type_,
        seconds: rounded(leg.took),
    }
}

fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
