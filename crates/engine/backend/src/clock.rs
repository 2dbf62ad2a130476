//! Time, injected.
//!
//! Wall time goes into records that people read. Decisions about leases use the storage's own time
//! or this process's monotonic time, never the difference of two machines' wall clocks.

use std::fmt;
use std::time::{Duration, Instant};

use jiff::Timestamp;

pub trait LeaseClock: Send + Sync + fmt::Debug {
    /// What a calendar on the wall says.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemLeaseClock {
    start: Instant,
}

impl Default for SystemLeaseClock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl LeaseClock for SystemLeaseClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Nanoseconds since 1970, as file names of the layout carry them.
pub(crate) fn unix_nanos(at: Timestamp) -> i128 {
    at.as_nanosecond()
}
