//! Limits on requests: a bucket of tokens per caller that fills with time.

use std::collections::HashMap;
use std::hash::Hash;

/// So many requests per so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    pub requests: u32,
    pub per_seconds: f64,
}

impl Limit {
    /// More than anybody asks for.
    pub const NONE: Self = Self::per_second(u32::MAX);

    /// Whichever lets more pass.
    pub fn max(self, other: Self) -> Self {
        if self.per_token() <= other.per_token() {
            self
        } else {
            other
        }
    }

    pub const fn per_minute(requests: u32) -> Self {
        Self {
            requests,
            per_seconds: 60.0,
        }
    }

    pub const fn per_second(requests: u32) -> Self {
        Self {
            requests,
            per_seconds: 1.0,
        }
    }

    /// Reads `100/minute`, `30/second` or `5000/hour`.
    pub fn parse(text: &str) -> Option<Self> {
        let (requests, unit) = text.trim().split_once('/')?;
        let requests = requests.trim().parse().ok().filter(|count| *count > 0)?;
        let per_seconds = match unit.trim() {
            "second" => 1.0,
            "minute" => 60.0,
            "hour" => 3600.0,
            _ => return None,
        };
        Some(Self {
            requests,
            per_seconds,
        })
    }

    fn per_token(self) -> f64 {
        self.per_seconds / f64::from(self.requests)
    }
}

/// One bucket per key. Full buckets are forgotten, so memory is bounded by the callers of one
/// period.
#[derive(Debug)]
pub struct Limiter<K> {
    limit: Limit,
    buckets: HashMap<K, Bucket>,
    swept_at: f64,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: f64,
}

impl<K: Eq + Hash> Limiter<K> {
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            buckets: HashMap::new(),
            swept_at: 0.0,
        }
    }

    /// Takes a token, or says how many seconds to wait for one. `now` is in seconds, from any
    /// steady clock.
    pub fn take(&mut self, key: K, now: f64) -> Result<(), f64> {
        self.sweep(now);
        let full = f64::from(self.limit.requests);
        let bucket = self.buckets.entry(key).or_insert(Bucket {
            tokens: full,
            at: now,
        });
        let gained = (now - bucket.at).max(0.0) / self.limit.per_token();
        bucket.tokens = (bucket.tokens + gained).min(full);
        bucket.at = now;
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        Err((1.0 - bucket.tokens) * self.limit.per_token())
    }

    fn sweep(&mut self, now: f64) {
        if now - self.swept_at < self.limit.per_seconds {
            return;
        }
        self.swept_at = now;
        let per_seconds = self.limit.per_seconds;
        self.buckets
            .retain(|_, bucket| now - bucket.at < per_seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_gets_its_share_and_no_more() {
        let mut limiter = Limiter::new(Limit::per_minute(60));
        let allowed = (0..100).filter(|_| limiter.take("a", 10.0).is_ok()).count();
        assert_eq!(allowed, 60);
        let wait = limiter.take("a", 10.0).unwrap_err();
        assert!((0.9..=1.1).contains(&wait), "{wait}");
        assert!(limiter.take("a", 11.1).is_ok());
        assert!(limiter.take("a", 11.1).is_err());
    }

    #[test]
    fn other_callers_are_not_affected() {
        let mut limiter = Limiter::new(Limit::per_minute(1));
        assert!(limiter.take("a", 0.0).is_ok());
        assert!(limiter.take("a", 0.0).is_err());
        assert!(limiter.take("b", 0.0).is_ok());
    }

    #[test]
    fn callers_of_the_past_are_forgotten() {
        let mut limiter = Limiter::new(Limit::per_second(1));
        for caller in 0..1000 {
            let _ = limiter.take(caller, 1.0);
        }
        let _ = limiter.take(0, 100.0);
        assert_eq!(limiter.buckets.len(), 1);
    }

    #[test]
    fn limits_are_read_as_the_settings_write_them() {
        assert_eq!(Limit::parse("100/minute"), Some(Limit::per_minute(100)));
        for text in ["", "100", "0/minute", "x/minute", "1/day"] {
            assert_eq!(Limit::parse(text), None, "{text}");
        }
    }
}
