//! How many people used the server lately, without saying who.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Whoever was here within this time is active.
const LATELY: Duration = Duration::from_secs(300);
/// More are not told apart; a server with so many active people knows that it has many.
const MOST: usize = 100_000;

/// When somebody was here last, by a number that means nothing outside of this process.
#[derive(Debug, Default)]
pub(crate) struct RecentUsers {
    numbers: RandomState,
    seen: Mutex<HashMap<u64, Instant>>,
}

impl RecentUsers {
    pub(crate) fn saw(&self, user: &str, now: Instant) {
        let number = self.numbers.hash_one(user);
        let mut seen = self.seen.lock();
        if seen.len() < MOST || seen.contains_key(&number) {
            seen.insert(number, now);
        }
    }

    /// How many are active; forgets the others.
    pub(crate) fn count(&self, now: Instant) -> usize {
        let mut seen = self.seen.lock();
        seen.retain(|_, at| now.duration_since(*at) < LATELY);
        seen.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_counts_once_and_for_five_minutes() {
        let users = RecentUsers::default();
        let start = Instant::now();
        users.saw("ada", start);
        users.saw("ada", start + Duration::from_secs(10));
        users.saw("bob", start + Duration::from_secs(200));
        assert_eq!(users.count(start + Duration::from_secs(250)), 2);
        assert_eq!(users.count(start + Duration::from_secs(320)), 1);
        assert_eq!(users.count(start + Duration::from_secs(600)), 0);
    }
}
