//! When the platform's own workflows start.

use nimbus_core::Result;
use nimbus_workflows::{Control, FlowDef, FlowSchedule, When};
use serde_json::Value;

use crate::platform::{
    AuditArchiveWorkflow, NotificationDigestWorkflow, RetentionWorkflow, StateExportWorkflow,
    TokenCleanupWorkflow,
};

/// In UTC. Digests are looked for every hour, because each person chooses theirs.
pub fn platform_schedules() -> Vec<FlowSchedule> {
    let schedule = |name: &str, cron: &str, flow: &str| {
        FlowSchedule::new(name, When::cron(cron), flow, Value::Null)
    };
    vec![
        schedule("audit-log-archive", "0 3 * * *", AuditArchiveWorkflow::NAME),
        schedule(
            "cleanup-expired-tokens",
            "*/15 * * * *",
            TokenCleanupWorkflow::NAME,
        ),
        schedule(
            "notification-digest",
            "0 * * * *",
            NotificationDigestWorkflow::NAME,
        ),
        schedule("remove-old-records", "30 * * * *", RetentionWorkflow::NAME),
        schedule("state-export", "0 * * * *", StateExportWorkflow::NAME),
    ]
}

/// Makes those that are missing or were made by another version. One that is there stays as it is: putting it again
/// would forget a start that was missed, and one that somebody paused stays paused.
pub async fn ensure_platform_schedules(control: &dyn Control) -> Result<()> {
    let there = control.schedules().await?;
    for mut wanted in platform_schedules() {
        let found = there.iter().find(|view| view.schedule.name == wanted.name);
        if let Some(found) = found {
            wanted.paused = found.schedule.paused;
            if found.schedule == wanted {
                continue;
            }
        }
        control.put_schedule(&wanted).await?;
    }
    Ok(())
}
