//! Workflows, their steps and their schedules as metrics.
//!
//! A runtime tells an end from wherever it executes, where nothing may be waited for, and may tell one again when it runs a
//! workflow's code to answer a query. So ends go into a queue, and whoever empties it asks the runtime when each was.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use nimbus_control_metrics::{Metrics, known_word};
use nimbus_workflows::{Control, FlowId, FlowObserver, FlowState, StepOutcome};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The way to the runtime, once it is open.
pub(crate) type KnownControl = Arc<OnceLock<Arc<dyn Control>>>;

/// Ends that wait to be counted. Whatever comes while so many wait is counted without its time.
const MOST_WAITING: usize = 1_000;
/// An end that lies further back than this was counted when it came.
const BEFORE: Duration = Duration::from_secs(10);
/// All schedules of tenants.
const TENANTS: &str = "tenant";
/// The names of the platform's, which are labels.
const SCHEDULES: &[&str] = &[
    "audit-log-archive",
    "cleanup-expired-tokens",
    "notification-digest",
    "remove-old-records",
    "state-export",
];

struct EndedFlow {
    id: FlowId,
    flow: &'static str,
    status: &'static str,
    at: Timestamp,
}

struct FlowCounts {
    metrics: Arc<Metrics>,
    ends: Sender<EndedFlow>,
}

impl FlowObserver for FlowCounts {
    fn flow_ended(&self, id: &FlowId, flow: &'static str, state: &FlowState) {
        let status = match state {
            FlowState::Succeeded(_) => "succeeded",
            FlowState::Failed(_) => "failed",
            FlowState::NeedsAttention(_) => "needs_attention",
            FlowState::Cancelled => "cancelled",
            FlowState::Running | FlowState::Stuck(_) => return,
        };
        let ended = EndedFlow {
            id: id.clone(),
            flow,
            status,
            at: Timestamp::now(),
        };
        if let Err(full) = self.ends.try_send(ended) {
            count(&self.metrics, &full.into_inner(), None);
        }
    }

    fn attempt_ended(&self, step: &'static str, outcome: &StepOutcome) {
        let status = match outcome {
            StepOutcome::Done(_) => "succeeded",
            StepOutcome::Failed(_) => "failed",
            StepOutcome::Cancelled => "cancelled",
        };
        self.metrics.activity_ended(step, status);
    }
}

fn count(metrics: &Metrics, ended: &EndedFlow, took: Option<Duration>) {
    metrics.workflow_ended(ended.flow, ended.status, took);
    let Some(rest) = ended.id.as_str().strip_prefix("schedule:") else {
        return;
    };
    let name = rest.split(':').next().unwrap_or_default();
    let name = match known_word(name, SCHEDULES) {
        nimbus_control_metrics::OTHER => TENANTS,
        known => known,
    };
    metrics.schedule_ended(name, ended.status);
}

/// Who counts what ends, for the definitions of a runtime.
pub(crate) fn flow_counts(metrics: &Arc<Metrics>, control: KnownControl) -> Arc<dyn FlowObserver> {
    let (ends, waiting) = channel(MOST_WAITING);
    tokio::spawn(look_up(Arc::clone(metrics), control, waiting));
    Arc::new(FlowCounts {
        metrics: Arc::clone(metrics),
        ends,
    })
}

/// Until nobody counts any more.
async fn look_up(metrics: Arc<Metrics>, control: KnownControl, mut waiting: Receiver<EndedFlow>) {
    while let Some(ended) = waiting.recv().await {
        let Some(control) = control.get() else {
            count(&metrics, &ended, None);
            continue;
        };
        match times(&**control, &ended).await {
            Some((_, Some(before))) if before + BEFORE < ended.at => {}
            Some((created, _)) => {
                let took = ended.at.duration_since(created);
                count(&metrics, &ended, Duration::try_from(took).ok());
            }
            None => count(&metrics, &ended, None),
        }
    }
}

/// When it began, and when it ended as far as the runtime has heard.
async fn times(control: &dyn Control, ended: &EndedFlow) -> Option<(Timestamp, Option<Timestamp>)> {
    let record = control.status(&ended.id).await.ok()?;
    Some((record.created, record.ended))
}

#[cfg(test)]
mod tests {
    use nimbus_control_flows::platform_schedules;

    use super::*;

    #[test]
    fn every_schedule_of_the_platform_is_a_label_and_a_tenants_is_not() {
        let names: Vec<String> = platform_schedules()
            .into_iter()
            .map(|schedule| schedule.name)
            .collect();
        assert_eq!(names, SCHEDULES);
        let metrics = Metrics::default();
        for id in [
            "schedule:state-export:20261118T100000Z",
            "schedule:tenant.0b5b.nightly:20261118T100000Z",
            "run:a:b:1",
        ] {
            let ended = EndedFlow {
                id: FlowId::new(id).expect("a name"),
                flow: "Any",
                status: "succeeded",
                at: Timestamp::now(),
            };
            count(&metrics, &ended, Some(Duration::from_secs(3)));
        }
        let text = metrics.text();
        for line in [
            "nimbus_temporal_workflows_total{workflow_type=\"Any\",status=\"succeeded\"} 3",
            "nimbus_temporal_workflow_duration_seconds_sum{workflow_type=\"Any\"} 9.0",
            "nimbus_temporal_schedules_total{schedule_name=\"state-export\",status=\"succeeded\"} 1",
            "nimbus_temporal_schedules_total{schedule_name=\"tenant\",status=\"succeeded\"} 1",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("nightly"));
    }
}
