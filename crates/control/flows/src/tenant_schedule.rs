//! What tenants let start by the clock: a run of one of their environments. The run has a workflow of its own; this one asks
//! for it.

use std::sync::Arc;

use nimbus_core::{Result, TenantId};
use nimbus_workflows::{
    Control, Definitions, Durable, Fail, FlowDef, FlowSchedule, StepDef, StepOptions, When,
};
use serde_json::json;

use crate::platform::may_pass;
use crate::port::{PlatformWork, ScheduledRun, ScheduledRunInput};

/// What the names of tenants' schedules begin with; none of the platform's does.
const PREFIX: &str = "tenant.";

/// Asks for the run of a schedule.
#[derive(Debug)]
pub struct ScheduledRunWorkflow;

impl FlowDef for ScheduledRunWorkflow {
    const NAME: &'static str = "ScheduledRunWorkflow";
    type In = ScheduledRunInput;
    type Out = ScheduledRun;

    async fn run(durable: &dyn Durable, input: ScheduledRunInput) -> Result<ScheduledRun, Fail> {
        let options = StepOptions::default().attempts(10);
        durable.step::<StartScheduledRun>(&input, options).await
    }
}

struct StartScheduledRun;

impl StepDef for StartScheduledRun {
    const NAME: &'static str = "start_scheduled_run";
    type In = ScheduledRunInput;
    type Out = ScheduledRun;
}

pub(crate) fn define(definitions: &mut Definitions, platform: &Arc<dyn PlatformWork>) {
    let work = Arc::clone(platform);
    definitions.step::<StartScheduledRun, _, _>(move |scope, input| {
        let work = Arc::clone(&work);
        async move {
            let started = work.start_scheduled(&input, &scope.key()).await;
            started.map_err(|error| may_pass(&error))
        }
    });
    definitions.flow::<ScheduledRunWorkflow>();
}

/// A tenant's schedule as a runtime has it.
pub fn tenant_schedule(
    tenant: TenantId,
    name: &str,
    cron: &str,
    time_zone: &str,
    paused: bool,
) -> FlowSchedule {
    let when = When::Cron {
        fields: cron.to_owned(),
        time_zone: time_zone.to_owned(),
    };
    let input = json!(ScheduledRunInput {
        tenant,
        schedule: name.to_owned(),
    });
    let own = format!("{PREFIX}{tenant}.{name}");
    let mut schedule = FlowSchedule::new(&own, when, ScheduledRunWorkflow::NAME, input);
    schedule.paused = paused;
    schedule
}

/// Makes the runtime have exactly these schedules of tenants. How many changed. One that is as it should be is not put again,
/// which would forget a start that was missed.
pub async fn ensure_tenant_schedules(
    control: &dyn Control,
    wanted: &[FlowSchedule],
) -> Result<usize> {
    let there = control.schedules().await?;
    let mut changed = 0;
    for view in &there {
        let name = &view.schedule.name;
        if name.starts_with(PREFIX) && wanted.iter().all(|one| one.name != *name) {
            control.delete_schedule(name).await?;
            changed += 1;
        }
    }
    for one in wanted {
        if there.iter().all(|view| view.schedule != *one) {
            control.put_schedule(one).await?;
            changed += 1;
        }
    }
    Ok(changed)
}
