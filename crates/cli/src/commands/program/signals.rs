//! Ctrl-C and requests to end: the first lets running steps finish, the second does not.

use std::convert::Infallible;
use std::time::Duration;

use nimbus_engine_operations::{CancelStage, Cancellation};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// How long an operation may take to end after the second request.
const GRACE: Duration = Duration::from_secs(20);
/// What shells call the end by an interrupt.
const INTERRUPTED: i32 = 130;

/// Ends the process where the second request to end is not heard, because the operation is busy with
/// itself. It listens on a thread of its own: one that computes keeps its own from listening. The
/// journal has what was known.
pub(super) struct LastResort(
    #[expect(dead_code, reason = "dropping it disarms")] oneshot::Sender<()>,
);

impl LastResort {
    pub(super) fn arm() -> Self {
        let (armed, mut disarmed) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            // Without a runtime there is only the usual way.
            let Ok(runtime) = runtime else { return };
            let unheard = runtime.block_on(async {
                tokio::select! {
                    _ = &mut disarmed => return false,
                    () = second_request() => {}
                }
                tokio::select! {
                    _ = &mut disarmed => false,
                    () = tokio::time::sleep(GRACE) => true,
                }
            });
            if unheard {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "main does not return while an operation is busy with itself"
                )]
                std::process::exit(INTERRUPTED);
            }
        });
        Self(armed)
    }
}

async fn second_request() {
    let listeners = signal(SignalKind::interrupt())
        .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
    let Ok((mut interrupt, mut terminate)) = listeners else {
        return std::future::pending().await;
    };
    for _ in 0..2 {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

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
