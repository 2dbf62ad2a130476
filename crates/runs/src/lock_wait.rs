//! Taking an environment for a run, or waiting until whoever has it is done.

use std::time::Duration;

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};

use crate::ports::{EnvironmentGuard, EnvironmentLocks, LockAttempt, LockHolder};

/// How to wait for an environment that another run holds.
pub struct LockWait<'a> {
    pub limit: Duration,
    /// Hears, at first and then every second, who has it and how much time is left.
    pub waiting: &'a mut (dyn FnMut(&LockHolder, Duration) + Send),
}

/// Takes an environment, or waits for it.
///
/// # Errors
///
/// When somebody else holds it, for longer than one waits.
pub async fn take_environment(
    locks: &dyn EnvironmentLocks,
    environment: EnvironmentName,
    command: &str,
    mut wait: Option<LockWait<'_>>,
) -> Result<Box<dyn EnvironmentGuard>> {
    let started = tokio::time::Instant::now();
    loop {
        let holder = match locks.try_lock(environment, command).await? {
            LockAttempt::Taken(guard) => return Ok(guard),
            LockAttempt::HeldBy(holder) => holder,
        };
        let limit = wait.as_ref().map(|wait| wait.limit);
        let left = limit.unwrap_or_default().saturating_sub(started.elapsed());
        let Some(wait) = wait.as_mut().filter(|_| !left.is_zero()) else {
            return Err(locked(environment, &holder));
        };
        (wait.waiting)(&holder, left);
        tokio::time::sleep(left.min(Duration::from_secs(1))).await;
    }
}

fn locked(environment: EnvironmentName, holder: &LockHolder) -> Error {
    let LockHolder {
        user,
        host,
        process,
        command,
        run,
        since,
        silence: _,
    } = holder;
    let run = run.map(|run| format!(", run {run}")).unwrap_or_default();
    let message = format!(
        "State locked by {user} ({environment}: `{command}` on {host}, process {process}{run}, \
         since {since})"
    );
    Error::new(ErrorCode::ENVIRONMENT_LOCKED, message)
        .with_help("wait for it with --wait, or see `nimbus locks ID`")
}
