//! How guessing passwords is slowed without locking the owner out.
//!
//! Four counts decide. Wrong attempts on an account from one network make that network wait, longer each
//! time. Wrong attempts on the account from everywhere, from the network on whatever account, and on the
//! whole installation make *strangers* wait; a network from which the owner signed in before is held to
//! the first count alone. So an attacker who floods an account, or all of them, stops other strangers,
//! never the owner at the usual desk, and no wait is longer than the window.

/// What the last while saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Times of wrong attempts on the account from this network, any order.
    pub from_here: Vec<i64>,
    /// Times of wrong attempts on the account from everywhere, any order.
    pub from_anywhere: Vec<i64>,
    /// Whether the owner signed in from this network in the past.
    pub known_here: bool,
    /// Wrong attempts from this network on whatever account: how many, and the last one.
    pub by_network: (usize, i64),
    /// Wrong attempts on the whole installation in the last minute: how many, and the last one.
    pub on_everything: (usize, i64),
}

/// Whether an attempt is made at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptVerdict {
    Try,
    /// Say nothing about the password; say when to come back.
    Wait {
        seconds: i64,
    },
}

/// How far back attempts count, and the longest wait there is.
pub const WINDOW_SECONDS: i64 = 15 * 60;

/// So many mistakes are free.
const FREE_HERE: usize = 5;
const FREE_ANYWHERE: usize = 20;
/// An office behind one address makes some.
const FREE_OF_NETWORK: usize = 50;
/// More than people make; whoever guesses from everywhere at everybody makes them.
const FREE_OF_ALL: usize = 1000;
const FLOOD_SECONDS: i64 = 60;
/// The first wait; each further mistake doubles it.
const FIRST_WAIT_SECONDS: i64 = 5;

impl History {
    pub fn judge(&self, now: i64) -> AttemptVerdict {
        let here = wait(&self.from_here, FREE_HERE, now);
        let stranger = if self.known_here {
            0
        } else {
            let network = wait_after(self.by_network, FREE_OF_NETWORK, WINDOW_SECONDS, now);
            let (failed, last) = self.on_everything;
            let flooded = failed >= FREE_OF_ALL && now - last < FLOOD_SECONDS;
            wait(&self.from_anywhere, FREE_ANYWHERE, now)
                .max(network)
                .max(if flooded { FLOOD_SECONDS } else { 0 })
        };
        match here.max(stranger) {
            seconds if seconds > 0 => AttemptVerdict::Wait { seconds },
            _ => AttemptVerdict::Try,
        }
    }
}

fn wait(mistakes: &[i64], free: usize, now: i64) -> i64 {
    let recent = || {
        mistakes
            .iter()
            .copied()
            .filter(|at| now - at < WINDOW_SECONDS)
    };
    match recent().max() {
        Some(last) => wait_after((recent().count(), last), free, WINDOW_SECONDS, now),
        None => 0,
    }
}

fn wait_after((count, last): (usize, i64), free: usize, window: i64, now: i64) -> i64 {
    let beyond = count.saturating_sub(free);
    if beyond == 0 || now - last >= window {
        return 0;
    }
    let doublings = u32::try_from(beyond - 1).unwrap_or(u32::MAX).min(20);
    let wait = (FIRST_WAIT_SECONDS << doublings).min(WINDOW_SECONDS);
    // A clock that went back must not make the wait longer.
    (last + wait - now).clamp(0, WINDOW_SECONDS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn mistakes(count: usize) -> Vec<i64> {
        vec![NOW; count]
    }

    #[test]
    fn a_few_mistakes_are_free_and_each_further_one_doubles_the_wait() {
        for (count, seconds) in [(5, 0), (6, 5), (7, 10), (8, 20), (14, 900), (100, 900)] {
            let history = History {
                from_here: mistakes(count),
                ..History::default()
            };
            let expected = match seconds {
                0 => AttemptVerdict::Try,
                seconds => AttemptVerdict::Wait { seconds },
            };
            assert_eq!(history.judge(NOW), expected, "{count}");
        }
    }

    #[test]
    fn a_flood_from_elsewhere_stops_strangers_and_not_the_owner_at_the_usual_desk() {
        let flood = History {
            from_anywhere: mistakes(10_000),
            ..History::default()
        };
        assert!(matches!(flood.judge(NOW), AttemptVerdict::Wait { .. }));
        let at_home = History {
            known_here: true,
            ..flood
        };
        assert_eq!(at_home.judge(NOW), AttemptVerdict::Try);
    }

    #[test]
    fn a_known_address_does_not_get_unlimited_guesses() {
        let history = History {
            from_here: mistakes(50),
            from_anywhere: mistakes(50),
            known_here: true,
            ..History::default()
        };
        assert!(matches!(history.judge(NOW), AttemptVerdict::Wait { .. }));
    }

    #[test]
    fn guessing_one_password_for_many_accounts_or_from_many_networks_is_slowed_too() {
        let spray = History {
            by_network: (60, NOW),
            ..History::default()
        };
        let storm = History {
            on_everything: (1000, NOW),
            ..History::default()
        };
        for history in [spray, storm] {
            assert!(matches!(history.judge(NOW), AttemptVerdict::Wait { .. }));
            assert_eq!(history.judge(NOW + WINDOW_SECONDS), AttemptVerdict::Try);
            let at_home = History {
                known_here: true,
                ..history
            };
            assert_eq!(at_home.judge(NOW), AttemptVerdict::Try);
        }
    }

    proptest! {
        #[test]
        fn nobody_waits_longer_than_the_window(
            from_here in prop::collection::vec(NOW - 2_000..NOW + 2_000, 0..60),
            from_anywhere in prop::collection::vec(NOW - 2_000..NOW + 2_000, 0..60),
            known_here: bool,
        ) {
            let last = from_here.iter().chain(&from_anywhere).copied().max().unwrap_or(NOW);
            let history = History { from_here, from_anywhere, known_here, ..History::default() };
            if let AttemptVerdict::Wait { seconds } = history.judge(NOW) {
                prop_assert!((1..=WINDOW_SECONDS).contains(&seconds));
            }
            prop_assert_eq!(history.judge(last + WINDOW_SECONDS), AttemptVerdict::Try);
        }
    }
}
