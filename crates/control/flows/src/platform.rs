//! What the platform does by the clock: one workflow with one step each, so that each has its own history, attempts and
//! pause.

use std::sync::Arc;
use std::time::Duration;

use nimbus_core::Error;
use nimbus_workflows::{Definitions, Durable, Fail, FlowDef, FlowFailure, StepDef, StepOptions};

use crate::port::{ExportedStates, PlatformWork, RemovedRecords};

/// A workflow of one step under the same types.
macro_rules! single_step {
    ($($(#[$doc:meta])* $flow:ident = $flow_name:literal, $step:ident = $step_name:literal -> $out:ty;)*) => {$(
        struct $step;

        impl StepDef for $step {
            const NAME: &'static str = $step_name;
            type In = ();
            type Out = $out;
        }

        $(#[$doc])*
        #[derive(Debug)]
        pub struct $flow;

        impl FlowDef for $flow {
            const NAME: &'static str = $flow_name;
            type In = ();
            type Out = $out;

            async fn run(durable: &dyn Durable, (): ()) -> Result<$out, Fail> {
                durable.step::<$step>(&(), attempts()).await
            }
        }
    )*};
}

single_step! {
    /// Removes sessions, refresh tokens and sign-ins that ended.
    TokenCleanupWorkflow = "TokenCleanupWorkflow", RemoveEndedSessions = "remove_ended_sessions" -> u64;
    /// Moves older parts of audit trails to the archive.
    AuditArchiveWorkflow = "AuditArchiveWorkflow", ArchiveAudit = "archive_audit" -> u64;
    /// Makes mails of what people want to hear together.
    NotificationDigestWorkflow = "NotificationDigestWorkflow", GatherDigests = "gather_digests" -> u64;
    /// Writes the states of all stacks to a folder or bucket.
    StateExportWorkflow = "StateExportWorkflow", ExportStates = "export_states" -> ExportedStates;
    /// Removes notifications, deliveries and deleted tenants that nobody needs any more.
    RetentionWorkflow = "RetentionWorkflow", RemoveOldRecords = "remove_old_records" -> RemovedRecords;
}

/// Ten attempts within about seven minutes, which is longer than a restart of a database takes.
fn attempts() -> StepOptions {
    StepOptions::default()
        .attempts(10)
        .backoff(Duration::from_secs(1))
        .timeout(Duration::from_secs(6 * 60 * 60))
}

/// Whatever it was, it may be otherwise in a while: nothing here depends on somebody's input.
pub(crate) fn may_pass(error: &Error) -> FlowFailure {
    FlowFailure::new(error.code(), error.to_string())
}

/// For looks at rows, which do not fail for good: the database comes back.
pub(crate) const PATIENT: u32 = 1_000_000;

pub(crate) fn define(definitions: &mut Definitions, platform: &Arc<dyn PlatformWork>) {
    macro_rules! step {
        ($step:ident, $flow:ident, $method:ident) => {
            let work = Arc::clone(platform);
            definitions.step::<$step, _, _>(move |_, ()| {
                let work = Arc::clone(&work);
                async move { work.$method().await.map_err(|error| may_pass(&error)) }
            });
            definitions.flow::<$flow>();
        };
    }
    step!(
        RemoveEndedSessions,
        TokenCleanupWorkflow,
        remove_ended_sessions
    );
    step!(ArchiveAudit, AuditArchiveWorkflow, archive_audit);
    step!(GatherDigests, NotificationDigestWorkflow, gather_digests);
    step!(ExportStates, StateExportWorkflow, export_states);
    step!(RemoveOldRecords, RetentionWorkflow, remove_old_records);
}
