//! Ends the tests when one of them hangs, and says which.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::process;

/// No test takes so long, on a busy machine of two cores either. One that does waits for something that
/// never comes.
pub(super) const LIMIT: Duration = Duration::from_secs(1800);

/// One test's long form takes minutes; none is meant to take as long as all of them together.
pub(super) const LONG_LIMIT: Duration = Duration::from_secs(7200);

/// Ends everything that runs once a test is overdue, and returns its name; nothing if `over` comes
/// first.
pub(super) fn watch_for_hangs(
    slow: &Mutex<SlowTests>,
    over: &AtomicBool,
    limit: Duration,
) -> Vec<String> {
    while !over.load(Ordering::SeqCst) {
        let overdue = slow.lock().map(|slow| slow.overdue(Instant::now(), limit));
        let overdue = overdue.unwrap_or_default();
        if !overdue.is_empty() {
            over.store(true, Ordering::SeqCst);
            process::end_running();
            return overdue;
        }
        thread::park_timeout(Duration::from_secs(1));
    }
    Vec::new()
}

/// Tests that are running for long, by binary, as the binaries tell by themselves: `test a::b has been
/// running for over 60 seconds`.
#[derive(Debug, Default)]
pub(super) struct SlowTests(BTreeMap<(String, String), Instant>);

impl SlowTests {
    const TOLD_AFTER: Duration = Duration::from_secs(60);

    pub(super) fn read_line(&mut self, binary: &str, line: &str, now: Instant) {
        if line.starts_with("test result: ") {
            self.ended(binary);
            return;
        }
        let Some(rest) = line.strip_prefix("test ") else {
            return;
        };
        if let Some(name) = rest.strip_suffix(" has been running for over 60 seconds") {
            let begun = now.checked_sub(Self::TOLD_AFTER).unwrap_or(now);
            self.0.insert((binary.to_owned(), name.to_owned()), begun);
        } else if let Some((name, _)) = rest.split_once(" ... ") {
            self.0.remove(&(binary.to_owned(), name.to_owned()));
        }
    }

    /// None of its tests is running any more.
    pub(super) fn ended(&mut self, binary: &str) {
        self.0.retain(|(other, _), _| other != binary);
    }

    fn overdue(&self, now: Instant, limit: Duration) -> Vec<String> {
        let late = self.0.iter().filter(|(_, begun)| now - **begun >= limit);
        late.map(|((_, name), _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_hangs_is_named_and_one_that_ends_is_not() {
        let mut slow = SlowTests::default();
        let now = Instant::now();
        for line in [
            "test a::ends has been running for over 60 seconds",
            "test b::hangs has been running for over 60 seconds",
            "test a::ends ... ok",
            "test c::fine ... ok",
        ] {
            slow.read_line("one", line, now);
        }
        slow.read_line("other", "test result: ok. 3 passed; 0 failed;", now);
        assert_eq!(slow.overdue(now, LIMIT), Vec::<String>::new());
        assert_eq!(slow.overdue(now + LIMIT, LIMIT), ["b::hangs"]);
        slow.read_line("one", "test result: ok. 3 passed; 0 failed;", now);
        assert_eq!(slow.overdue(now + LIMIT, LIMIT), Vec::<String>::new());
    }
}
