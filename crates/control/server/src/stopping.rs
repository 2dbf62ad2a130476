//! How long a stop takes, part by part.
//!
//! Whoever stops a server waits for it: a service manager, a rollout, a person. Every part has a limit of its own, so that
//! nothing that a client, a tenant's program or the database does keeps the process longer than the sum of them. What is left
//! undone is what a kill would leave, and the next start goes on from there.
//!
//! Without runs under way a stop is over within 15 seconds; with them within 90, which is what the units and charts in
//! `deploy/` allow.

use std::future::Future;
use std::time::Duration;

use tracing::warn;

/// For requests that arrived whole to be answered.
pub(crate) const REQUESTS: Duration = Duration::from_secs(8);
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
            seconds = limit.as_secs(),
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
        let begun = tokio::time::Instant::now();
        assert!(!within(READS, "what never ends", std::future::pending()).await);
        assert_eq!(begun.elapsed(), READS);
        assert!(within(READS, "what is done", std::future::ready(())).await);
        assert_eq!(begun.elapsed(), READS);
    }

    /// What the documents and `deploy/` say. Runs are waited for from the beginning, beside the requests.
    #[test]
    fn the_sum_is_what_is_promised() {
        let database = Duration::from_secs(21);
        let after = WORKFLOWS + DELIVERIES + EVENTS + CHECKPOINTS + CONNECTIONS;
        assert!(RUNS.max(REQUESTS + READS) + after + database < Duration::from_secs(90));
    }
}
