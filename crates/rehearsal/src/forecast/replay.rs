//! A run told again with other times: who waited for whom stays, how long each thing takes does not.
//!
//! Whatever was neither a task nor waiting for one is work of the engine or the program. It is
//! counted as it was measured. So a replay with the measured times gives the measured run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Something that was done. Times count from the beginning of the run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) began: Duration,
    pub(super) ended: Duration,
    /// How long it takes in the replay.
    pub(super) takes: Duration,
    /// Tasks that must be over before it begins, by position.
    pub(super) after: Vec<usize>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Replay {
    pub(super) took: Duration,
    /// The tasks that nothing could have begun earlier than, in order.
    pub(super) path: Vec<usize>,
}

/// Tells a run that `ended` then again, with at most so many tasks at once.
pub(super) fn replay(tasks: &[Task], slots: usize, ended: Duration) -> Replay {
    let Some(last) = tasks.iter().map(|task| task.ended).max() else {
        return Replay {
            took: ended,
            path: Vec::new(),
        };
    };
    let mut stage = ReplaySchedule::new(tasks, slots.max(1));
    stage.play();
    let end = |at: &usize| stage.ended[*at].unwrap_or_default();
    let mut path = Vec::new();
    let mut next = (0..tasks.len()).max_by_key(end);
    let took = next.as_ref().map(end).unwrap_or_default();
    while let Some(at) = next {
        path.push(at);
        next = stage.cause[at];
    }
    path.reverse();
    Replay {
        took: took + ended.saturating_sub(last),
        path,
    }
}

/// Work around a task that is none of the cloud's.
#[derive(Clone, Copy, Default)]
struct ReplayedWork {
    /// Before it asked for its turn.
    before: Duration,
    /// Once it had its turn, when it had to wait for that.
    within: Duration,
}

struct ReplaySchedule<'a> {
    tasks: &'a [Task],
    slots: usize,
    work: Vec<ReplayedWork>,
    waits_for: Vec<usize>,
    followers: Vec<Vec<usize>>,
    /// Who asked for a turn, by when and in which order they really began.
    ready: BinaryHeap<Reverse<(Duration, usize)>>,
    running: BinaryHeap<Reverse<(Duration, usize)>>,
    ended: Vec<Option<Duration>>,
    cause: Vec<Option<usize>>,
}

impl<'a> ReplaySchedule<'a> {
    fn new(tasks: &'a [Task], slots: usize) -> Self {
        let mut followers = vec![Vec::new(); tasks.len()];
        let mut waits_for = vec![0; tasks.len()];
        for (at, waits_for) in waits_for.iter_mut().enumerate() {
            for before in known_before(tasks, at) {
                followers[before].push(at);
                *waits_for += 1;
            }
        }
        let mut stage = Self {
            tasks,
            slots,
            work: work(tasks, slots),
            followers,
            ready: BinaryHeap::new(),
            running: BinaryHeap::new(),
            ended: vec![None; tasks.len()],
            cause: vec![None; tasks.len()],
            waits_for,
        };
        for at in 0..tasks.len() {
            if stage.waits_for[at] == 0 {
                stage.ready.push(Reverse((stage.work[at].before, at)));
            }
        }
        stage
    }

    fn play(&mut self) {
        let mut freed = None;
        let mut now = Duration::ZERO;
        loop {
            while self.running.len() < self.slots
                && let Some(Reverse((asked, at))) = self.ready.peek().copied()
                && asked <= now
            {
                self.ready.pop();
                let end = now + self.work[at].within + self.tasks[at].takes;
                self.running.push(Reverse((end, at)));
                if asked < now && freed.is_some() {
                    self.cause[at] = freed;
                }
            }
            let ends = self.running.peek().map(|Reverse((end, _))| *end);
            let asks = self.ready.peek().map(|Reverse((asked, _))| *asked);
            let asks = asks.filter(|_| self.running.len() < self.slots);
            let Some(next) = ends.into_iter().chain(asks).min() else {
                return;
            };
            now = next;
            while let Some(Reverse((end, at))) = self.running.peek().copied()
                && end <= now
            {
                self.running.pop();
                freed = Some(at);
                self.finish(at, end);
            }
        }
    }

    fn finish(&mut self, at: usize, end: Duration) {
        self.ended[at] = Some(end);
        for follower in self.followers[at].clone() {
            self.waits_for[follower] -= 1;
            if self.waits_for[follower] == 0 {
                self.cause[follower] = Some(at);
                let asked = end + self.work[follower].before;
                self.ready.push(Reverse((asked, follower)));
            }
        }
    }
}

/// What a task waits for, without what cannot be true: nothing waits for what ended later.
fn known_before(tasks: &[Task], at: usize) -> impl Iterator<Item = usize> {
    let task = &tasks[at];
    let mut after = task.after.clone();
    after.sort_unstable();
    after.dedup();
    after.into_iter().filter(move |before| {
        tasks.get(*before).is_some_and(|earlier| {
            earlier.ended <= task.began && (earlier.began, *before) < (task.began, at)
        })
    })
}

fn work(tasks: &[Task], slots: usize) -> Vec<ReplayedWork> {
    // Moments at which a turn became free for somebody who had to wait for one.
    let mut freed: Vec<Duration> = tasks.iter().map(|task| task.ended).collect();
    freed.retain(|moment| {
        let busy = |task: &&Task| task.began < *moment && task.ended >= *moment;
        tasks.iter().filter(busy).count() >= slots
    });
    freed.sort_unstable();
    let of = |(at, task): (usize, &Task)| {
        let asked = known_before(tasks, at).map(|before| tasks[before].ended);
        let asked = asked.max().unwrap_or_default();
        let earlier = freed.partition_point(|moment| *moment <= task.began);
        match earlier.checked_sub(1).map(|last| freed[last]) {
            Some(turn) if turn > asked => ReplayedWork {
                before: Duration::ZERO,
                within: task.began.saturating_sub(turn),
            },
            _ => ReplayedWork {
                before: task.began.saturating_sub(asked),
                within: Duration::ZERO,
            },
        }
    };
    tasks.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn task(began: u64, ended: u64, takes: u64, after: &[usize]) -> Task {
        Task {
            began: s(began),
            ended: s(ended),
            takes: s(takes),
            after: after.to_vec(),
        }
    }

    #[test]
    fn a_chain_takes_the_sum_and_what_is_beside_it_nothing() {
        // The engine needs a second before each, and two at the end.
        let tasks = [
            task(1, 1, 100, &[]),
            task(2, 2, 200, &[0]),
            task(2, 2, 50, &[]),
            task(3, 3, 10, &[1, 2]),
        ];
        let told = replay(&tasks, 8, s(5));
        assert_eq!(told.took, s(1 + 100 + 1 + 200 + 1 + 10 + 2));
        assert_eq!(told.path, [0, 1, 3]);
    }

    #[test]
    fn turns_are_waited_for() {
        let tasks: Vec<_> = (0..6).map(|_| task(0, 0, 10, &[])).collect();
        for (slots, took) in [(1, 60), (2, 30), (4, 20), (6, 10), (100, 10)] {
            assert_eq!(replay(&tasks, slots, s(0)).took, s(took), "{slots} at once");
        }
        assert_eq!(replay(&tasks, 2, s(0)).path.len(), 3);
    }

    #[test]
    fn nothing_takes_as_long_as_it_took() {
        let told = replay(&[], 4, s(7));
        assert_eq!((told.took, told.path.len()), (s(7), 0));
    }

    #[test]
    fn a_task_that_began_before_its_reason_ended_had_another_reason() {
        let tasks = [task(0, 9, 9, &[1]), task(1, 2, 100, &[0])];
        assert_eq!(replay(&tasks, 8, s(9)).took, s(101));
    }

    /// Carries tasks out second by second, as an engine does.
    fn carry_out(plan: &[(u64, Vec<usize>)], takes: &[u64], slots: usize) -> (Vec<Task>, Duration) {
        let mut tasks: Vec<Option<Task>> = vec![None; plan.len()];
        let mut now = 0;
        while tasks.iter().any(Option::is_none) {
            while let Some(at) = next_turn(plan, &tasks, now, slots) {
                tasks[at] = Some(task(now, now + takes[at], 0, &plan[at].1));
            }
            now += 1;
        }
        let tasks: Vec<Task> = tasks.into_iter().flatten().collect();
        let ended = tasks.iter().map(|task| task.ended).max();
        (tasks, ended.unwrap_or_default())
    }

    /// Who asked first, if somebody may begin.
    fn next_turn(
        plan: &[(u64, Vec<usize>)],
        tasks: &[Option<Task>],
        now: u64,
        slots: usize,
    ) -> Option<usize> {
        let busy = tasks.iter().flatten().filter(|task| task.ended > s(now));
        if busy.count() >= slots {
            return None;
        }
        let asked = |at: usize| {
            let (work, after) = &plan[at];
            let ends = after.iter().map(|p| Some(tasks[*p].as_ref()?.ended));
            let ready = ends.collect::<Option<Vec<_>>>()?.into_iter().max();
            Some((ready.unwrap_or_default() + s(*work), at))
        };
        let open = (0..plan.len()).filter(|at| tasks[*at].is_none());
        let first = open.filter_map(asked).min();
        first
            .filter(|(asked, _)| *asked <= s(now))
            .map(|(_, at)| at)
    }

    fn plans() -> impl Strategy<Value = Vec<(u64, Vec<usize>)>> {
        let one = (
            0_u64..4,
            prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        );
        prop::collection::vec(one, 1..12).prop_map(|drawn| {
            let before = |at: usize, list: Vec<prop::sample::Index>| {
                let chosen = list.into_iter().filter(|_| at > 0);
                chosen.map(|index| index.index(at)).collect()
            };
            let items = drawn.into_iter().enumerate();
            items
                .map(|(at, (work, list))| (work, before(at, list)))
                .collect()
        })
    }

    proptest! {
        /// At the scale of one: what is foretold is what was.
        #[test]
        fn with_the_measured_times_it_is_the_measured_run(
            plan in plans(), times in prop::collection::vec(1_u64..9, 12), slots in 1_usize..5
        ) {
            let measured = |plan: &[(u64, Vec<usize>)], slots| {
                let (mut tasks, ended) = carry_out(plan, &times, slots);
                for task in &mut tasks {
                    task.takes = task.ended - task.began;
                }
                (tasks, ended)
            };
            let (tasks, ended) = measured(&plan, usize::MAX);
            prop_assert_eq!(replay(&tasks, usize::MAX, ended).took, ended);
            // Work before a turn cannot be told from waiting for it, so there is none here.
            let idle: Vec<_> = plan.into_iter().map(|(_, after)| (0, after)).collect();
            let (tasks, ended) = measured(&idle, slots);
            prop_assert_eq!(replay(&tasks, slots, ended).took, ended);
        }

        /// From a run in which calls took no time to one in which they do.
        #[test]
        fn a_run_without_waiting_foretells_the_one_with(
            plan in plans(), times in prop::collection::vec(1_u64..90, 12)
        ) {
            let quick = vec![0; plan.len()];
            let (mut tasks, ended) = carry_out(&plan, &quick, usize::MAX);
            for (task, takes) in tasks.iter_mut().zip(&times) {
                task.takes = s(*takes);
            }
            let (_, real) = carry_out(&plan, &times, usize::MAX);
            prop_assert_eq!(replay(&tasks, usize::MAX, ended).took, real);
        }
    }
}
