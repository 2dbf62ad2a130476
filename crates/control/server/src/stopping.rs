//! How long a stop takes, part by part and as a whole.
//!
//! Whoever stops a server waits for it: a service manager, a rollout, a person. Every part has a limit of its own, and all
//! of them together have one: parts that are each within their limit could add up to three times what is promised, as on a
//! machine whose database hangs. What is left undone is what a kill would leave, and the next start goes on from there.
//!
//! Without runs under way a stop is over within 15 seconds; with them within 90, which is what the units and charts in
//! `deploy/` allow.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

/// For requests that arrived whole to be answered.
pub(crate) const REQUESTS: Duration = Duration::from_secs(6);
/// For a request that has begun to arrive whole. Nobody has been promised anything for it.
pub(crate) const ARRIVALS: Duration = Duration::from_secs(3);
/// For the last records of reads to be written.
pub(crate) const READS: Duration = Duration::from_secs(5);
/// For runs to stop between two steps, counted from when the server was told; a little more than workers give them.
pub(crate) const RUNS: Duration = Duration::from_secs(45);
/// For the workflow runtime to put down what it does. What it does not put down is begun again by whoever comes next.
pub(crate) const WORKFLOWS: Duration = Duration::from_secs(5);
/// For what is being sent to arrive. What does not is sent again by whoever comes next.
pub(crate) const DELIVERIES: Duration = Duration::from_secs(2);
/// For events to be passed on to other servers.
pub(crate) const EVENTS: Duration = Duration::from_secs(3);
/// For the audit trail to be signed as far as it has come.
pub(crate) const CHECKPOINTS: Duration = Duration::from_secs(5);
/// For connections to the database to be given back.
pub(crate) const CONNECTIONS: Duration = Duration::from_secs(3);

/// For everything up to the database, once no run is waited for any more.
const BEFORE_DATABASE: Duration = Duration::from_secs(9);
/// For everything. The rest up to what is promised is for a machine that is slow to let us go on.
const WHOLE: Duration = Duration::from_secs(13);
/// What a part has if those before it took all there was, and what the database has at least.
const LEAST: Duration = Duration::from_millis(200);
const LEAST_FOR_DATABASE: Duration = Duration::from_secs(2);

/// The time that a stop has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StopClock {
    begun: Instant,
}

impl StopClock {
    /// From the moment at which the server was told.
    pub(crate) fn start() -> Self {
        Self {
            begun: Instant::now(),
        }
    }

    /// Time that runs took is not taken from what comes after them.
    pub(crate) fn leave_out(&mut self, waited: Duration) {
        self.begun += waited;
    }

    /// Waits for a part of the stop, as long as it may take and as there is time. Whether it was finished.
    pub(crate) async fn within(
        self,
        limit: Duration,
        what: &'static str,
        part: impl Future<Output = ()>,
    ) -> bool {
        let left = BEFORE_DATABASE.saturating_sub(self.begun.elapsed());
        within(limit.min(left.max(LEAST)), what, part).await
    }

    /// How long a private database may take to write everything. Ended without, it recovers when it starts.
    pub(crate) fn for_database(self) -> Duration {
        let left = WHOLE.saturating_sub(self.begun.elapsed());
        left.max(LEAST_FOR_DATABASE)
    }
}

/// Waits for a part of the stop, as long as it may take. Whether it was finished.
pub(crate) async fn within(
    limit: Duration,
    what: &'static str,
    part: impl Future<Output = ()>,
) -> bool {
    let finished = tokio::time::timeout(limit, part).await.is_ok();
    if !finished {
        warn!(
            what,
            seconds = limit.as_secs_f64(),
            "a part of the stop was not finished in time"
        );
    }
    finished
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_takes_longer_than_it_may() {
        let begun = Instant::now();
        assert!(!within(READS, "what never ends", std::future::pending()).await);
        assert_eq!(begun.elapsed(), READS);
        assert!(within(READS, "what is done", std::future::ready(())).await);
        assert_eq!(begun.elapsed(), READS);
    }

    /// What the documents and `deploy/` say, whichever parts never end. Runs are waited for from the beginning, beside the
    /// requests.
    #[tokio::test(start_paused = true)]
    async fn the_sum_is_what_is_promised() {
        let told = Instant::now();
        let clock = StopClock::start();
        tokio::time::advance(REQUESTS).await;
        let never = std::future::pending::<()>;
        for limit in [
            READS,
            WORKFLOWS,
            DELIVERIES,
            EVENTS,
            CHECKPOINTS,
            CONNECTIONS,
        ] {
            assert!(!clock.within(limit, "what never ends", never()).await);
        }
        let stop = told.elapsed() + clock.for_database() + nimbus_control_postgres::END_PATIENCE;
        assert!(stop < Duration::from_secs(15), "{stop:?}");
        // With runs, the clock starts once they were waited for.
        assert!(RUNS + stop < Duration::from_secs(90));
    }

    /// Where nothing hangs, the database has nearly all of the time.
    #[tokio::test(start_paused = true)]
    async fn time_that_others_did_not_need_is_the_databases() {
        let clock = StopClock::start();
        assert!(
            clock
                .within(READS, "what is done", std::future::ready(()))
                .await
        );
        assert_eq!(clock.for_database(), WHOLE);
    }
}
