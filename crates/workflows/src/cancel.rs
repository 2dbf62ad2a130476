//! How a running step learns that it is no longer wanted. Without a runtime: whoever waits leaves a
//! waker.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Given to a step; fires once and stays fired.
#[derive(Clone, Default)]
pub struct CancelSignal(Arc<Mutex<Waiters>>);

#[derive(Default)]
struct Waiters {
    fired: bool,
    wakers: Vec<Waker>,
}

impl CancelSignal {
    /// Tells everybody who holds a clone.
    pub fn fire(&self) {
        let wakers = {
            let mut waiters = self.waiters();
            waiters.fired = true;
            std::mem::take(&mut waiters.wakers)
        };
        for waker in wakers {
            waker.wake();
        }
    }

    pub fn is_fired(&self) -> bool {
        self.waiters().fired
    }

    /// Returns when it has fired.
    pub async fn fired(&self) {
        poll_fn(|context| {
            let mut waiters = self.waiters();
            if waiters.fired {
                return Poll::Ready(());
            }
            let waker = context.waker();
            if !waiters.wakers.iter().any(|known| known.will_wake(waker)) {
                waiters.wakers.push(waker.clone());
            }
            Poll::Pending
        })
        .await;
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, Waiters> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CancelSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelSignal")
            .field(&self.is_fired())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::executor::block_on;
    use futures::future::join;

    use super::*;

    #[test]
    fn it_wakes_everybody_and_stays_fired() {
        let signal = CancelSignal::default();
        assert!(signal.fired().now_or_never().is_none());
        let (a, b) = (signal.clone(), signal.clone());
        block_on(async {
            let waiting = join(a.fired(), b.fired());
            join(waiting, async { signal.fire() }).await;
        });
        assert!(signal.is_fired());
        assert!(signal.fired().now_or_never().is_some());
    }
}
