//! From the first request to the last: how a program ends, and how it is made to end.
//!
//! An SDK's exit code proves little: after a failed registration Node.js ends with zero and signals
//! a normal end. So the monitor keeps its own book. A failure, once noted, is never forgotten, and
//! a program counts as complete only if it said so, in the way its SDK can say it.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::Ending;

pub(crate) struct Lifecycle {
    failed: AtomicBool,
    /// No request gets another answer than that the deployment ends.
    ending: CancellationToken,
    /// A program that has asked for everything waits for this.
    released: CancellationToken,
    progress: watch::Sender<ProgramProgress>,
}

/// How far the program has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct ProgramProgress {
    stack_registered: bool,
    stack_outputs_registered: bool,
    /// The SDK is recent enough to announce the end of the program.
    announces_end: bool,
    end_announced: bool,
}

/// Whether what the program asked for is all that it wanted to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    Complete,
    /// A registration failed, or the deployment was ended. Somebody has said why.
    Failed,
    /// The program never registered its stack, so it asked for nothing in its name.
    NoStack,
    /// The program stopped before its end.
    EndedEarly,
}

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self {
            failed: AtomicBool::new(false),
            ending: CancellationToken::new(),
            released: CancellationToken::new(),
            progress: watch::Sender::default(),
        }
    }

    /// Notes a failure; the program may go on.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
    }

    /// Notes a failure and ends the program: every pending and every later request is turned away.
    pub(crate) fn abort(&self) -> Ending {
        self.fail();
        self.ending.cancel();
        Ending
    }

    pub(crate) fn release(&self) {
        self.released.cancel();
    }

    pub(crate) async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// Does the work unless the deployment ends before it is done.
    pub(crate) async fn unless_ending<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Ending> {
        tokio::select! {
            biased;
            () = self.ending.cancelled() => Err(Ending),
            done = work => Ok(done),
        }
    }

    pub(crate) fn stack_registered(&self) {
        self.progress
            .send_modify(|progress| progress.stack_registered = true);
    }

    pub(crate) fn stack_outputs_registered(&self) {
        self.progress
            .send_modify(|progress| progress.stack_outputs_registered = true);
    }

    pub(crate) fn will_announce_end(&self) {
        self.progress
            .send_modify(|progress| progress.announces_end = true);
    }

    /// The program has asked for everything and may be called back until it is released. `false`:
    /// it said so before.
    pub(crate) async fn announce_end(&self) -> Result<bool, Ending> {
        let mut first = false;
        self.progress.send_modify(|progress| {
            first = !progress.end_announced;
            progress.end_announced = true;
        });
        if first {
            self.unless_ending(self.released.cancelled()).await?;
        }
        Ok(first)
    }

    pub(crate) async fn end_announced(&self) {
        let mut progress = self.progress.subscribe();
        // The sender lives as long as this value, so waiting cannot fail.
        let _ = progress.wait_for(|progress| progress.end_announced).await;
    }

    pub(crate) fn completion(&self) -> Completion {
        let progress = *self.progress.borrow();
        if self.failed.load(Ordering::SeqCst) {
            Completion::Failed
        } else if !progress.stack_registered {
            Completion::NoStack
        } else if progress.end_announced {
            Completion::Complete
        } else if progress.announces_end || !progress.stack_outputs_registered {
            Completion::EndedEarly
        } else {
            Completion::Complete
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_program_is_complete_when_it_announced_its_end() {
        let life = Lifecycle::new();
        assert_eq!(life.completion(), Completion::NoStack);
        life.will_announce_end();
        life.stack_registered();
        life.stack_outputs_registered();
        assert_eq!(life.completion(), Completion::EndedEarly);
        life.progress
            .send_modify(|progress| progress.end_announced = true);
        assert_eq!(life.completion(), Completion::Complete);
    }

    #[test]
    fn an_old_program_is_complete_when_it_gave_its_outputs() {
        let life = Lifecycle::new();
        life.stack_registered();
        assert_eq!(life.completion(), Completion::EndedEarly);
        life.stack_outputs_registered();
        assert_eq!(life.completion(), Completion::Complete);
    }

    #[tokio::test]
    async fn a_failure_outlasts_an_announced_end() {
        let life = Lifecycle::new();
        life.stack_registered();
        life.fail();
        life.release();
        assert_eq!(life.announce_end().await, Ok(true));
        assert_eq!(
            life.announce_end().await,
            Ok(false),
            "the end is announced once"
        );
        assert_eq!(life.completion(), Completion::Failed);
    }

    #[tokio::test]
    async fn ending_turns_away_whoever_waits() {
        let life = Arc::new(Lifecycle::new());
        let waiting = tokio::spawn({
            let life = Arc::clone(&life);
            async move { life.announce_end().await }
        });
        life.end_announced().await;
        life.abort();
        assert_eq!(waiting.await.expect("the task does not panic"), Err(Ending));
        assert_eq!(life.unless_ending(async { 1 }).await, Err(Ending));
    }
}
