//! Units that take longer than their share are asked to stop, so that one that hangs does not hold its
//! run for ever.

use std::time::Duration;

use nimbus_core::{ComponentName, Error, ErrorCode};
use nimbus_engine_operations::Cancellation;
use nimbus_orchestrator::RollbackTrigger;
use nimbus_runs::UnitFailure;

/// How long an operation that was asked to stop has until it is killed, at most. One that had less time in all, in a
/// rehearsal that is faster than the cloud, has no more than that again.
const GRACE: Duration = Duration::from_secs(60);

/// Lets an operation run for so long; then it is asked to stop, and at last killed. What it left open
/// is looked up by whoever undoes it or goes on with it. Also says the limit that it exceeded.
pub(super) async fn in_time<T>(
    running: impl Future<Output = T>,
    limit: Option<Duration>,
    cancellation: &Cancellation,
) -> (T, Option<Duration>) {
    let mut running = std::pin::pin!(running);
    let Some(limit) = limit else {
        return (running.await, None);
    };
    if let Ok(ended) = tokio::time::timeout(limit, running.as_mut()).await {
        return (ended, None);
    }
    cancellation.request();
    if let Ok(ended) = tokio::time::timeout(GRACE.min(limit), running.as_mut()).await {
        return (ended, Some(limit));
    }
    cancellation.request();
    (running.await, Some(limit))
}

/// The failure of a unit that took too long, which undoes a run by itself.
pub(super) fn too_late(component: &ComponentName, limit: Duration, error: &Error) -> UnitFailure {
    let message = format!(
        "{component} took longer than {} seconds, twice what was planned, and was stopped: {}",
        limit.as_secs_f64().ceil(),
        error.message()
    );
    let error = Error::new(ErrorCode::UNIT_OVERTIME, message).with_help(
        "what it left is looked up when the run is undone or resumed; if it needs more time, give its \
         template a longer `estimate`",
    );
    UnitFailure {
        trigger: Some(RollbackTrigger::Overtime),
        ..UnitFailure::from(error)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(600);

    /// Work of so long, by a clock that nobody waits for.
    async fn takes(time: Duration) {
        let never = std::future::pending::<()>();
        tokio::time::timeout(time, never).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_stop_is_asked_first_and_killed_a_minute_later() {
        let cancellation = Cancellation::new();
        let began = Instant::now();
        let running = async {
            cancellation.stop_token().cancelled().await;
            let asked = began.elapsed();
            cancellation.killed().await;
            (asked, began.elapsed())
        };
        let ((asked, killed), late) = in_time(running, Some(LIMIT), &cancellation).await;
        assert_eq!((asked, killed), (LIMIT, LIMIT + GRACE));
        assert_eq!(late, Some(LIMIT));
    }

    #[tokio::test(start_paused = true)]
    async fn what_had_little_time_has_as_much_again_to_stop() {
        let cancellation = Cancellation::new();
        let began = Instant::now();
        let limit = Duration::from_secs(2);
        let running = cancellation.killed();
        in_time(running, Some(limit), &cancellation).await;
        assert_eq!(began.elapsed(), limit * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_stops_when_it_is_asked_is_not_killed() {
        let cancellation = Cancellation::new();
        let began = Instant::now();
        let running = async {
            cancellation.stop_token().cancelled().await;
            takes(GRACE / 2).await;
        };
        let ((), late) = in_time(running, Some(LIMIT), &cancellation).await;
        assert_eq!((began.elapsed(), late), (LIMIT + GRACE / 2, Some(LIMIT)));
        let killed = tokio::time::timeout(LIMIT, cancellation.killed()).await;
        assert!(killed.is_err(), "nobody asked twice");
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_in_time_or_has_no_limit_is_asked_nothing() {
        for limit in [Some(LIMIT), None] {
            let cancellation = Cancellation::new();
            let running = takes(LIMIT / 2);
            let ((), late) = in_time(running, limit, &cancellation).await;
            assert_eq!(late, None);
            assert!(!cancellation.is_stopping());
        }
    }
}
