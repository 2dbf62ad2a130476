//! A roll-out of a version over many instances: waves, and what happens next.
//!
//! Instances go from the environment that comes first to the one that comes last, and within one from the smallest
//! deployment to the largest. A wave begins when the one before it has ended; too many failures end the roll-out, and
//! nothing further starts. What was started goes on to its own end.

use serde::{Deserialize, Serialize};

/// How instances are divided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WaveRule {
    /// So many in each wave; whatever is left is one more.
    Counts(Vec<u32>),
    /// So much of all of them has been started with each wave, in percent; whatever is left is one more.
    Percentages(Vec<u8>),
    /// These environments in each wave; whatever is left is one more.
    Environments(Vec<Vec<String>>),
    /// One wave for each place in the order of environments.
    Promotion,
}

/// Why instances cannot be divided like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaveProblem {
    #[error("name one wave at least, and 100 at most")]
    Number,
    #[error("a wave has one instance at least")]
    Empty,
    #[error("percentages go up, from 1 to 100")]
    Percentages,
    #[error("the environment {name} is in two waves")]
    Twice { name: String },
}

const MOST_WAVES: usize = 100;

impl WaveRule {
    /// # Errors
    ///
    /// When nobody can be divided like this.
    pub fn check(&self) -> Result<(), WaveProblem> {
        let number = match self {
            Self::Counts(counts) => counts.len(),
            Self::Percentages(parts) => parts.len(),
            Self::Environments(groups) => groups.len(),
            Self::Promotion => return Ok(()),
        };
        if !(1..=MOST_WAVES).contains(&number) {
            return Err(WaveProblem::Number);
        }
        match self {
            Self::Counts(counts) if counts.contains(&0) => Err(WaveProblem::Empty),
            Self::Percentages(parts) => {
                let rising = parts.windows(2).all(|pair| pair[0] < pair[1]);
                let inside = parts.iter().all(|part| (1..=100).contains(part));
                match rising && inside {
                    true => Ok(()),
                    false => Err(WaveProblem::Percentages),
                }
            }
            Self::Environments(groups) => {
                let mut seen = std::collections::BTreeSet::new();
                for name in groups.iter().flatten() {
                    if !seen.insert(name) {
                        return Err(WaveProblem::Twice { name: name.clone() });
                    }
                }
                match groups.iter().any(Vec::is_empty) {
                    true => Err(WaveProblem::Empty),
                    false => Ok(()),
                }
            }
            Self::Counts(_) | Self::Promotion => Ok(()),
        }
    }
}

/// What decides about an instance's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutPlace {
    pub environment: String,
    /// Of the environment, in the order of its deployment.
    pub rank: usize,
    /// How many stacks its deployment has: so much can suffer.
    pub size: usize,
    /// Decides where all else is equal, so that a plan is always the same.
    pub name: String,
}

/// Divides instances, by their place in the slice. Every instance is in exactly one wave, and no wave is empty.
pub fn plan_waves(instances: &[RolloutPlace], rule: &WaveRule) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..instances.len()).collect();
    order.sort_by(|left, right| {
        let key = |at: &usize| {
            let one = &instances[*at];
            (one.rank, one.size, &one.name)
        };
        key(left).cmp(&key(right)).then(left.cmp(right))
    });
    let mut waves: Vec<Vec<usize>> = match rule {
        WaveRule::Counts(counts) => {
            let mut rest = order.as_slice();
            let mut waves = Vec::new();
            for count in counts {
                let count = usize::try_from(*count)
                    .unwrap_or(usize::MAX)
                    .min(rest.len());
                let (wave, left) = rest.split_at(count);
                waves.push(wave.to_vec());
                rest = left;
            }
            waves.push(rest.to_vec());
            waves
        }
        WaveRule::Percentages(parts) => {
            let mut waves = Vec::new();
            let mut begun = 0;
            for part in parts {
                let until = (order.len() * usize::from(*part)).div_ceil(100);
                let until = until.clamp(begun, order.len());
                waves.push(order[begun..until].to_vec());
                begun = until;
            }
            waves.push(order[begun..].to_vec());
            waves
        }
        WaveRule::Environments(groups) => {
            let group = |at: usize| {
                let name = &instances[at].environment;
                let named = groups.iter().position(|group| group.contains(name));
                named.unwrap_or(groups.len())
            };
            let of = |wave: usize| order.iter().copied().filter(move |at| group(*at) == wave);
            (0..=groups.len()).map(|wave| of(wave).collect()).collect()
        }
        WaveRule::Promotion => {
            let mut ranks: Vec<usize> = instances.iter().map(|one| one.rank).collect();
            ranks.sort_unstable();
            ranks.dedup();
            let of = |rank: usize| {
                let order = order.iter().copied();
                order
                    .filter(move |at| instances[*at].rank == rank)
                    .collect()
            };
            ranks.into_iter().map(of).collect()
        }
    };
    waves.retain(|wave| !wave.is_empty());
    waves
}

/// What a roll-out is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutPolicy {
    /// So many instances may fail before nothing further starts.
    pub max_failures: u32,
    /// Wait for somebody before each wave but the first.
    pub pause_between_waves: bool,
}

/// Where a roll-out is. What ended stays ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RolloutState {
    /// Nothing has begun.
    Planned,
    Running {
        wave: usize,
    },
    /// Nothing starts until somebody says so; `wave` is the one that goes on then.
    Paused {
        wave: usize,
        reason: PauseReason,
    },
    /// Somebody wanted no more of it.
    Stopped {
        wave: usize,
    },
    /// More instances failed than may.
    Failed {
        wave: usize,
        failures: u32,
    },
    Succeeded,
}

/// Why a roll-out waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// Somebody said so.
    Asked,
    /// The wave before has ended.
    BetweenWaves,
}

impl RolloutState {
    /// As lists and the database name it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Running { .. } => "running",
            Self::Paused { .. } => "paused",
            Self::Stopped { .. } => "stopped",
            Self::Failed { .. } => "failed",
            Self::Succeeded => "succeeded",
        }
    }

    /// Whether nothing can start any more.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Planned | Self::Running { .. } | Self::Paused { .. } => false,
            Self::Stopped { .. } | Self::Failed { .. } | Self::Succeeded => true,
        }
    }
}

/// What somebody wants of a roll-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutSignal {
    Pause,
    Resume,
    Stop,
}

/// A signal that a roll-out does not take in its state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the roll-out is {status}")]
pub struct RolloutRefusal {
    pub status: &'static str,
}

/// Where one instance of a roll-out is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceProgress {
    Waiting,
    /// Started, or about to be.
    UnderWay,
    Succeeded,
    Failed,
    /// It needs no upgrade, or cannot have one.
    Skipped,
}

impl InstanceProgress {
    fn has_ended(self) -> bool {
        match self {
            Self::Waiting | Self::UnderWay => false,
            Self::Succeeded | Self::Failed | Self::Skipped => true,
        }
    }
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutAdvance {
    pub state: RolloutState,
    /// Instances to be started, by wave and place in it.
    pub start: Vec<(usize, usize)>,
}

/// What follows from where the instances of each wave are. Asked again with its own answer it starts nothing twice, once
/// what it said is started is under way.
pub fn advance_rollout(
    state: &RolloutState,
    policy: &RolloutPolicy,
    waves: &[Vec<InstanceProgress>],
) -> RolloutAdvance {
    let stay = |state: RolloutState| RolloutAdvance {
        state,
        start: Vec::new(),
    };
    let failed = waves.iter().flatten();
    let failed = failed.filter(|one| **one == InstanceProgress::Failed);
    let failures = u32::try_from(failed.count()).unwrap_or(u32::MAX);
    let too_many = failures > policy.max_failures;
    match state {
        RolloutState::Planned
        | RolloutState::Stopped { .. }
        | RolloutState::Failed { .. }
        | RolloutState::Succeeded => stay(state.clone()),
        RolloutState::Running { wave } | RolloutState::Paused { wave, .. } if too_many => {
            stay(RolloutState::Failed {
                wave: *wave,
                failures,
            })
        }
        RolloutState::Paused { .. } => stay(state.clone()),
        RolloutState::Running { wave } => {
            let mut wave = *wave;
            loop {
                let Some(current) = waves.get(wave) else {
                    return stay(RolloutState::Succeeded);
                };
                if !current.iter().all(|one| one.has_ended()) {
                    let waiting = current.iter().enumerate();
                    let waiting = waiting.filter(|(_, one)| **one == InstanceProgress::Waiting);
                    return RolloutAdvance {
                        start: waiting.map(|(place, _)| (wave, place)).collect(),
                        state: RolloutState::Running { wave },
                    };
                }
                wave += 1;
                if policy.pause_between_waves && wave < waves.len() {
                    return stay(RolloutState::Paused {
                        wave,
                        reason: PauseReason::BetweenWaves,
                    });
                }
            }
        }
    }
}

/// Where a roll-out is once somebody said so.
///
/// # Errors
///
/// When it does not take the signal now.
pub fn signal_rollout(
    state: &RolloutState,
    signal: RolloutSignal,
) -> Result<RolloutState, RolloutRefusal> {
    let refused = || RolloutRefusal {
        status: state.word(),
    };
    match (signal, state) {
        (RolloutSignal::Pause, RolloutState::Running { wave }) => Ok(RolloutState::Paused {
            wave: *wave,
            reason: PauseReason::Asked,
        }),
        (RolloutSignal::Resume, RolloutState::Planned) => Ok(RolloutState::Running { wave: 0 }),
        (RolloutSignal::Resume, RolloutState::Paused { wave, .. }) => {
            Ok(RolloutState::Running { wave: *wave })
        }
        (RolloutSignal::Stop, RolloutState::Planned) => Ok(RolloutState::Stopped { wave: 0 }),
        (
            RolloutSignal::Stop,
            RolloutState::Running { wave } | RolloutState::Paused { wave, .. },
        ) => Ok(RolloutState::Stopped { wave: *wave }),
        (RolloutSignal::Pause | RolloutSignal::Resume | RolloutSignal::Stop, _) => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(environment: &str, rank: usize, size: usize, name: &str) -> RolloutPlace {
        RolloutPlace {
            environment: environment.to_owned(),
            rank,
            size,
            name: name.to_owned(),
        }
    }

    #[test]
    fn the_first_environment_and_the_smallest_deployment_go_first() {
        let all = [
            place("prod", 1, 1, "a"),
            place("dev", 0, 5, "b"),
            place("dev", 0, 1, "c"),
            place("prod", 1, 1, "d"),
        ];
        let waves = |rule| plan_waves(&all, &rule);
        assert_eq!(
            waves(WaveRule::Promotion),
            [vec![2, 1], vec![0, 3]],
            "one wave for each environment"
        );
        assert_eq!(waves(WaveRule::Counts(vec![1])), [vec![2], vec![1, 0, 3]]);
        assert_eq!(
            waves(WaveRule::Percentages(vec![25, 100])),
            [vec![2], vec![1, 0, 3]]
        );
        let named = WaveRule::Environments(vec![vec!["prod".to_owned()]]);
        assert_eq!(waves(named), [vec![0, 3], vec![2, 1]]);
    }

    #[test]
    fn waves_that_nobody_can_be_divided_into_are_refused() {
        for rule in [
            WaveRule::Counts(Vec::new()),
            WaveRule::Counts(vec![1, 0]),
            WaveRule::Counts(vec![1; 101]),
            WaveRule::Percentages(vec![50, 50]),
            WaveRule::Percentages(vec![101]),
            WaveRule::Environments(vec![vec![]]),
            WaveRule::Environments(vec![vec!["dev".to_owned()], vec!["dev".to_owned()]]),
        ] {
            assert!(rule.check().is_err(), "{rule:?}");
        }
        assert!(WaveRule::Percentages(vec![10, 100]).check().is_ok());
    }

    use InstanceProgress::{Failed, Skipped, Succeeded, UnderWay, Waiting};

    #[test]
    fn a_wave_begins_when_the_one_before_has_ended() {
        let policy = RolloutPolicy::default();
        let running = RolloutState::Running { wave: 0 };
        let waves = [vec![Waiting, Skipped], vec![Waiting]];
        let next = advance_rollout(&running, &policy, &waves);
        assert_eq!((next.state.word(), next.start), ("running", vec![(0, 0)]));
        let waves = [vec![UnderWay, Skipped], vec![Waiting]];
        assert!(advance_rollout(&running, &policy, &waves).start.is_empty());
        let waves = [vec![Succeeded, Skipped], vec![Waiting]];
        let next = advance_rollout(&running, &policy, &waves);
        assert_eq!(next.start, [(1, 0)]);
        let pausing = RolloutPolicy {
            pause_between_waves: true,
            ..policy
        };
        let next = advance_rollout(&running, &pausing, &waves);
        assert_eq!((next.state.word(), next.start.len()), ("paused", 0));
        let resumed = signal_rollout(&next.state, RolloutSignal::Resume).unwrap();
        assert_eq!(advance_rollout(&resumed, &pausing, &waves).start, [(1, 0)]);
        let waves = [vec![Succeeded, Skipped], vec![Succeeded]];
        let next = advance_rollout(&resumed, &pausing, &waves);
        assert_eq!(next.state, RolloutState::Succeeded);
    }

    #[test]
    fn too_many_failures_end_it_and_nothing_further_starts() {
        let policy = RolloutPolicy {
            max_failures: 1,
            ..RolloutPolicy::default()
        };
        let running = RolloutState::Running { wave: 0 };
        let one = [vec![Failed, Succeeded], vec![Waiting]];
        assert_eq!(advance_rollout(&running, &policy, &one).start, [(1, 0)]);
        let two = [vec![Failed, Failed, Waiting], vec![Waiting]];
        let next = advance_rollout(&running, &policy, &two);
        assert_eq!((next.state.word(), next.start.len()), ("failed", 0));
        assert!(signal_rollout(&next.state, RolloutSignal::Resume).is_err());
        assert!(signal_rollout(&RolloutState::Succeeded, RolloutSignal::Stop).is_err());
    }

    fn progress() -> impl Strategy<Value = Vec<Vec<InstanceProgress>>> {
        let one = prop_oneof![
            Just(Waiting),
            Just(UnderWay),
            Just(Succeeded),
            Just(Failed),
            Just(Skipped)
        ];
        proptest::collection::vec(proptest::collection::vec(one, 1..4), 1..5)
    }

    proptest! {
        #[test]
        fn every_instance_is_in_one_wave(
            ranks in proptest::collection::vec((0..4_usize, 0..9_usize), 0..40),
            counts in proptest::collection::vec(1..9_u32, 1..5),
            by_percent in any::<bool>(),
        ) {
            let all: Vec<_> = ranks
                .iter()
                .enumerate()
                .map(|(at, (rank, size))| place(&format!("e{rank}"), *rank, *size, &at.to_string()))
                .collect();
            let rule = match by_percent {
                true => WaveRule::Percentages(vec![10, 40, 90]),
                false => WaveRule::Counts(counts),
            };
            let waves = plan_waves(&all, &rule);
            prop_assert!(waves.iter().all(|wave| !wave.is_empty()));
            let order: Vec<usize> = waves.concat();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..all.len()).collect::<Vec<_>>());
            prop_assert!(order.windows(2).all(|pair| all[pair[0]].rank <= all[pair[1]].rank));
        }

        #[test]
        fn nothing_starts_early_late_or_twice(
            waves in progress(),
            wave in 0..5_usize,
            max_failures in 0..4_u32,
            pause in any::<bool>(),
        ) {
            let policy = RolloutPolicy { max_failures, pause_between_waves: pause };
            let next = advance_rollout(&RolloutState::Running { wave }, &policy, &waves);
            let failures = waves.iter().flatten().filter(|one| **one == Failed).count();
            if failures > max_failures as usize {
                prop_assert_eq!(next.state.word(), "failed");
                prop_assert!(next.start.is_empty());
            }
            let mut after = waves.clone();
            for (wave, place) in &next.start {
                prop_assert_eq!(waves[*wave][*place], Waiting);
                let state = RolloutState::Running { wave: *wave };
                prop_assert_eq!(&next.state, &state);
                after[*wave][*place] = UnderWay;
            }
            prop_assert!(advance_rollout(&next.state, &policy, &after).start.is_empty());
        }

        #[test]
        fn what_ended_starts_nothing_and_takes_no_signal(waves in progress(), wave in 0..5_usize) {
            let policy = RolloutPolicy::default();
            for state in [
                RolloutState::Stopped { wave },
                RolloutState::Failed { wave, failures: 1 },
                RolloutState::Succeeded,
            ] {
                let next = advance_rollout(&state, &policy, &waves);
                prop_assert_eq!(&next.state, &state);
                prop_assert!(next.start.is_empty());
                for signal in [RolloutSignal::Pause, RolloutSignal::Resume, RolloutSignal::Stop] {
                    prop_assert!(signal_rollout(&state, signal).is_err());
                }
            }
        }
    }
}
