//! What is counted of durable workflows. Names are those of the older documents, whichever runtime executes.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use crate::labels::{ActivityLabels, ScheduleLabels, WorkflowLabel, WorkflowLabels};
use crate::metrics::{MetricList, Metrics, Timed, run_times};

#[derive(Debug)]
pub(crate) struct FlowMetrics {
    workflows: Family<WorkflowLabels, Counter>,
    seconds: Timed<WorkflowLabel>,
    activities: Family<ActivityLabels, Counter>,
    schedules: Family<ScheduleLabels, Counter>,
}

impl FlowMetrics {
    pub(crate) fn new(list: &mut MetricList) -> Self {
        Self {
            workflows: list.add(
                "nimbus_temporal_workflows",
                "Workflows that ended on this server, by type and how",
            ),
            seconds: list.timed(
                "nimbus_temporal_workflow_duration_seconds",
                "Time from a workflow's start to its end, with its waits",
                run_times,
            ),
            activities: list.add(
                "nimbus_temporal_activities",
                "Attempts of steps of workflows that ended on this server",
            ),
            schedules: list.add(
                "nimbus_temporal_schedules",
                "Workflows of schedules that ended on this server; those of tenants are counted together",
            ),
        }
    }
}

/// Durable workflows. Types and steps are those that this program defines.
impl Metrics {
    /// `took`: since it was started, if that is known.
    pub fn workflow_ended(
        &self,
        workflow_type: &'static str,
        status: &'static str,
        took: Option<Duration>,
    ) {
        let flows = &self.flows;
        let labels = WorkflowLabels {
            workflow_type,
            status,
        };
        flows.workflows.get_or_create(&labels).inc();
        if let Some(took) = took {
            let seconds = flows
                .seconds
                .get_or_create(&WorkflowLabel { workflow_type });
            seconds.observe(took.as_secs_f64());
        }
    }

    pub fn activity_ended(&self, activity_type: &'static str, status: &'static str) {
        let labels = ActivityLabels {
            activity_type,
            status,
        };
        self.flows.activities.get_or_create(&labels).inc();
    }

    /// The name of a schedule of the platform, or a word for all others.
    pub fn schedule_ended(&self, schedule_name: &'static str, status: &'static str) {
        let labels = ScheduleLabels {
            schedule_name,
            status,
        };
        self.flows.schedules.get_or_create(&labels).inc();
    }
}
