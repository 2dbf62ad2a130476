//! Schedules of tenants: runs that start by the clock, in the name of whoever asked for them.
//!
//! Rows say what there is, and the runtime is made to have it: right after a change, and whenever a server looks. Only
//! runs can be scheduled, as many as a tenant may have and as often as it may; whether one starts is decided when it is time, by
//! what its author may do then.

use std::time::Duration;

use jiff::Timestamp;
use nimbus_control_auth::operation::{self, Need, Operation};
use nimbus_control_flows::{
    ScheduledRun, ScheduledRunInput, ensure_tenant_schedules, tenant_schedule,
};
use nimbus_control_store::{NewTenantSchedule, StoreError, TenantSchedule};
use nimbus_core::{EnvironmentName, Error, ErrorCode, ErrorKind, TenantId, UserId};
use nimbus_workflows::FlowSchedule;
use serde_json::{Value, json};
use tracing::warn;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::flows::FlowControl;
use crate::repeat::RequestKey;
use crate::run_input::RunInput;

const MOST_SCHEDULES: i64 = 20;
/// Two starts lie so far apart at least.
const LEAST_PAUSE: Duration = Duration::from_secs(15 * 60);
/// So many starts are looked at.
const LOOKED_AT: usize = 200;

/// A schedule as somebody wants it.
#[derive(Clone, Debug)]
pub struct ScheduleInput {
    /// `refresh`, `preview` or `deploy`.
    pub action: String,
    pub deployment: String,
    pub environment: String,
    pub rehearsal: bool,
    /// Five fields.
    pub cron: String,
    /// Such as `Europe/Vienna`; UTC when absent.
    pub time_zone: Option<String>,
    pub paused: bool,
}

impl App {
    pub async fn tenant_schedule_list(
        &self,
        call: &Call,
        tenant: TenantId,
    ) -> Result<Vec<TenantSchedule>> {
        let operation = operation::LIST_TENANT_SCHEDULES;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.tenant_schedules().await?;
                self.audit(tx, &call.context, permit.record()).await?;
                let seen = found.into_iter();
                Ok(seen
                    .filter(|one| self.reaches(call, &permit, &one.environment))
                    .collect())
            })
            .await
    }

    /// Makes a schedule, or changes it. From then on runs are asked for in the caller's name.
    pub async fn tenant_schedule_put(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        input: ScheduleInput,
    ) -> Result<TenantSchedule> {
        let operation = operation::PUT_TENANT_SCHEDULE;
        let environment = input.environment.parse::<EnvironmentName>();
        let environment = environment
            .map_err(|_| Failure::field("environment", "this is not the name of an environment"))?;
        let environment = environment.to_string();
        let permit = self
            .permit_in(call, operation, tenant, Some(&environment))
            .await?;
        // Nobody lets start by the clock what they may not start by hand.
        let starts = starts(&input.action)?;
        if let Need::Permission(key) = starts.need {
            self.ensure_key_in(call, &permit, key, &environment)?;
        }
        let new = NewTenantSchedule {
            name: plain(name)?,
            action: input.action,
            deployment: input.deployment,
            environment,
            rehearsal: input.rehearsal,
            cron: input.cron.split_whitespace().collect::<Vec<_>>().join(" "),
            time_zone: input.time_zone.unwrap_or_else(|| "UTC".to_owned()),
            paused: input.paused,
            requested_by: call.who.user,
            requested_from: call.who.home,
        };
        let (cron, zone) = (&new.cron, &new.time_zone);
        rare_enough(
            &tenant_schedule(tenant, name, cron, zone, false),
            call.context.now,
        )?;
        let put = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                // It has to be there, and stays what it is when it goes.
                tx.deployment_get(&new.deployment).await?;
                let before = tx.tenant_schedule_lock(&new.name).await?;
                if let Some(before) = &before {
                    self.ensure_in(call, &permit, &before.environment)?;
                }
                let put = tx.tenant_schedule_put(&new, MOST_SCHEDULES).await?;
                let put = put.ok_or_else(too_many)?;
                let record = permit
                    .record()
                    .on(name)
                    .before(before.as_ref().map_or(Value::Null, told))
                    .after(told(&put));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(put)
            })
            .await?;
        self.schedules_changed();
        Ok(put)
    }

    pub async fn tenant_schedule_delete(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
    ) -> Result<()> {
        let operation = operation::DELETE_TENANT_SCHEDULE;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = tx.tenant_schedule_lock(name).await?;
                let before = before.ok_or_else(Failure::not_found)?;
                self.ensure_in(call, &permit, &before.environment)?;
                tx.tenant_schedule_delete(name).await?;
                let record = permit.record().on(name).before(told(&before));
                self.audit(tx, &call.context, record).await?;
                Ok::<_, Failure>(())
            })
            .await?;
        self.schedules_changed();
        Ok(())
    }

    /// Makes the runtime have the schedules that tenants have. How many changed there.
    pub async fn sync_tenant_schedules(&self) -> Result<usize> {
        let Some(FlowControl(control)) = self.inner.flows.get() else {
            return Ok(0);
        };
        let wanted = self.inner.store.schedules_of_all().await?;
        let wanted: Vec<FlowSchedule> = wanted.iter().map(scheduled).collect();
        Ok(ensure_tenant_schedules(&**control, &wanted).await?)
    }

    /// In the background: a runtime that is away hears of it when a server looks.
    fn schedules_changed(&self) {
        let app = self.clone();
        tokio::spawn(async move {
            if let Err(failure) = app.sync_tenant_schedules().await {
                let error = failure.error.log_text();
                warn!(%error, "the workflow runtime was not told of a tenant's schedules; it is told later");
            }
        });
    }

    /// Asks for the run of a schedule. What is refused for good is an answer; what may pass is an error.
    pub(crate) async fn scheduled_start(
        &self,
        input: &ScheduledRunInput,
        key: &str,
    ) -> Result<ScheduledRun> {
        match self.scheduled_run(input, key).await {
            Ok(run) => Ok(run),
            Err(failure) => match failure.error.code().kind() {
                ErrorKind::Unavailable | ErrorKind::Internal => Err(failure),
                _ => Ok(refused(failure.error.to_string())),
            },
        }
    }

    async fn scheduled_run(&self, input: &ScheduledRunInput, key: &str) -> Result<ScheduledRun> {
        let ScheduledRunInput { tenant, schedule } = input;
        let found = self
            .inner
            .store
            .tenant_tx(*tenant, async |tx| tx.tenant_schedule_lock(schedule).await);
        let found = match found.await {
            Err(StoreError::TenantUnknown) => None,
            found => found?,
        };
        let Some(found) = found.filter(|one| !one.paused) else {
            return Ok(refused("the schedule is gone, or paused".to_owned()));
        };
        let home = TenantId::from(found.requested_from);
        let author = UserId::from(found.requested_by);
        let now = Timestamp::now();
        let call = self.call_in_name(home, author, "the schedule", now).await?;
        let asked = RunInput {
            environment: found.environment.clone(),
            rehearsal: found.rehearsal,
            message: Some(format!("schedule {schedule}")),
            ..RunInput::default()
        };
        let key = RequestKey {
            key: key.to_owned(),
            request: json!({"schedule": schedule}),
        };
        let operation = starts(&found.action)?;
        let queued = self.run_start(
            &call,
            operation,
            *tenant,
            &found.deployment,
            asked,
            Some(key),
        );
        Ok(ScheduledRun {
            run: Some(Box::pin(queued).await?.run.id),
            refused: None,
        })
    }
}

fn refused(why: String) -> ScheduledRun {
    ScheduledRun {
        run: None,
        refused: Some(why),
    }
}

fn scheduled(row: &TenantSchedule) -> FlowSchedule {
    let tenant = TenantId::from(row.tenant_id);
    tenant_schedule(tenant, &row.name, &row.cron, &row.time_zone, row.paused)
}

/// What a schedule may start.
fn starts(action: &str) -> Result<Operation> {
    match action {
        "refresh" => Ok(operation::REFRESH_DEPLOYMENT),
        "preview" => Ok(operation::PREVIEW),
        "deploy" => Ok(operation::DEPLOY),
        _ => Err(Failure::field("action", "give refresh, preview or deploy")),
    }
}

/// A name that is part of others.
fn plain(name: &str) -> Result<String> {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let valid = (1..=40).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(letters);
    if valid {
        return Ok(name.to_owned());
    }
    let message = "a name has 1 to 40 lower-case letters, digits and `-`, and begins with a letter";
    Err(Failure::field("name", message))
}

fn rare_enough(schedule: &FlowSchedule, now: Timestamp) -> Result<()> {
    schedule
        .check()
        .map_err(|error| Failure::field("cron", error.to_string()))?;
    let mut last = schedule.next_after(now)?;
    for _ in 0..LOOKED_AT {
        // There is none any more.
        let Ok(next) = schedule.next_after(last) else {
            break;
        };
        let apart = next.duration_since(last);
        if Duration::try_from(apart).is_ok_and(|apart| apart < LEAST_PAUSE) {
            let message = format!("it starts at {last} and at {next}");
            return Err(Error::new(ErrorCode::SCHEDULE_TOO_OFTEN, message)
                .with_help("let 15 minutes lie between two starts")
                .into());
        }
        last = next;
    }
    Ok(())
}

fn too_many() -> Failure {
    let message = format!("a tenant has {MOST_SCHEDULES} schedules at most");
    Error::new(ErrorCode::SCHEDULE_LIMIT, message)
        .with_help("delete one that nobody needs")
        .into()
}

fn told(row: &TenantSchedule) -> Value {
    json!({
        "action": row.action,
        "deployment": row.deployment,
        "environment": row.environment,
        "rehearsal": row.rehearsal,
        "cron": row.cron,
        "time_zone": row.time_zone,
        "paused": row.paused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_starts_every_quarter_of_an_hour_at_most() {
        let now: Timestamp = "2026-11-18T10:00:00Z".parse().expect("a time");
        let check = |cron: &str, zone: &str| {
            let schedule = tenant_schedule(TenantId::random(), "n", cron, zone, false);
            rare_enough(&schedule, now).map_err(|failure| failure.error.code())
        };
        assert_eq!(check("*/15 * * * *", "UTC"), Ok(()));
        assert_eq!(check("30 2 * * *", "Europe/Vienna"), Ok(()));
        let often = Err(ErrorCode::SCHEDULE_TOO_OFTEN);
        assert_eq!(check("*/14 * * * *", "UTC"), often);
        assert_eq!(check("* * * * *", "UTC"), often);
        // Only once a day, and then twice within five minutes.
        assert_eq!(check("0,5 3 * * *", "UTC"), often);
        for (cron, zone) in [
            ("0 25 * * *", "UTC"),
            ("0 2 * * *", "Mars/Olympus"),
            ("", ""),
        ] {
            assert_eq!(check(cron, zone), Err(ErrorCode::INPUT_INVALID), "{cron}");
        }
    }

    #[test]
    fn only_runs_that_change_nothing_by_themselves_or_deploy_can_be_scheduled() {
        for action in ["refresh", "preview", "deploy"] {
            assert!(starts(action).is_ok());
        }
        for action in ["destroy", "rollback", "TokenCleanupWorkflow", ""] {
            assert!(starts(action).is_err(), "{action}");
        }
    }
}
