//! Ctrl-C and requests to end: the first lets running steps finish, the second does not.

use std::convert::Infallible;

use nimbus_engine_operations::{CancelStage, Cancellation};
use tokio::signal::unix::{SignalKind, signal};

/// Waits for requests to stop and passes them on, for ever. `told` is called for the first one.
pub(super) async fn pass_on(cancellation: &Cancellation, told: impl Fn()) -> Infallible {
    let listeners = signal(SignalKind::interrupt())
        .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
    let Ok((mut interrupt, mut terminate)) = listeners else {
        // Without listeners a signal ends the process, and the journal has what was known.
        return std::future::pending().await;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if cancellation.request() == CancelStage::Stopping {
            told();
        }
    }
}
