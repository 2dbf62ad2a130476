//! When something that was not delivered is tried again.
//!
//! Seconds at first, for receivers that are being restarted; days at last, for those that somebody has to mend. Ten tries
//! take about 75 hours, as Standard Webhooks recommends. Each pause is up to a fifth longer or shorter, so that what
//! failed together does not come back together.

use std::time::Duration;

/// After so many tries it is a dead letter.
pub const MOST_TRIES: u32 = 10;

const FIRST: f64 = 5.0;
const FACTOR: f64 = 5.0;
const LONGEST: f64 = 24.0 * 3600.0;
const SPREAD: f64 = 0.2;

/// The pause after so many failed tries; nothing after the last of them. `chance` is between 0 and 1.
pub fn delay_before_next(tries: u32, chance: f64) -> Option<Duration> {
    if tries >= MOST_TRIES {
        return None;
    }
    let exponent = i32::try_from(tries.saturating_sub(1)).unwrap_or(i32::MAX);
    let pause = (FIRST * FACTOR.powi(exponent)).min(LONGEST);
    let spread = 1.0 + SPREAD * (chance.clamp(0.0, 1.0) * 2.0 - 1.0);
    Some(Duration::from_secs_f64(pause * spread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_day_have_an_end_and_are_spread() {
        let pauses: Vec<u64> = (1..MOST_TRIES)
            .map(|tries| delay_before_next(tries, 0.5).unwrap().as_secs())
            .collect();
        assert_eq!(
            pauses,
            [5, 25, 125, 625, 3_125, 15_625, 78_125, 86_400, 86_400]
        );
        let hours = pauses.iter().sum::<u64>() / 3600;
        assert_eq!(hours, 75);
        assert_eq!(delay_before_next(MOST_TRIES, 0.5), None);
        assert_eq!(delay_before_next(u32::MAX, 0.5), None);
        let spread = |chance| delay_before_next(3, chance).unwrap().as_secs();
        assert_eq!((spread(0.0), spread(1.0)), (100, 150));
        // A number that is none spreads as little as possible.
        assert!(delay_before_next(0, 7.0).unwrap() <= Duration::from_secs(6));
    }
}
