//! Stopping an operation, in two stages.
//!
//! The first request lets running steps end, so that their outcomes are known. The second ends
//! everything at once; what was running then is unknown and stays in the journal as such.

use tokio_util::sync::CancellationToken;

/// Shared between whoever may stop an operation and the operation itself.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    stop: CancellationToken,
    kill: CancellationToken,
}

/// What a request to stop amounted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelStage {
    Stopping,
    Killing,
}

impl Cancellation {
    pub fn new() -> Self {
        Self::default()
    }

    /// One that can be asked to stop by itself, and is whenever this one is.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            stop: self.stop.child_token(),
            kill: self.kill.child_token(),
        }
    }

    /// Somebody asked to stop: the first time gently, the second time at once.
    pub fn request(&self) -> CancelStage {
        if self.stop.is_cancelled() {
            self.kill.cancel();
            CancelStage::Killing
        } else {
            self.stop.cancel();
            CancelStage::Stopping
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Cancelled by the first request.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Returns when everything must end at once.
    pub async fn killed(&self) {
        self.kill.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_request_kills() {
        let cancellation = Cancellation::new();
        assert!(!cancellation.is_stopping());
        assert_eq!(cancellation.request(), CancelStage::Stopping);
        assert!(cancellation.is_stopping() && !cancellation.kill.is_cancelled());
        assert_eq!(cancellation.request(), CancelStage::Killing);
        assert!(cancellation.kill.is_cancelled());
        assert_eq!(cancellation.request(), CancelStage::Killing);
    }

    #[test]
    fn a_child_stops_alone_and_with_its_parent() {
        let parent = Cancellation::new();
        let (first, second) = (parent.child(), parent.child());
        first.request();
        assert!(first.is_stopping() && !parent.is_stopping() && !second.is_stopping());
        parent.request();
        assert!(second.is_stopping());
    }
}
