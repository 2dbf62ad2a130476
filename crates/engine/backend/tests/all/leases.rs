//! One writer per stack, whatever happens to writers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use nimbus_core::ErrorCode;
use nimbus_engine_backend::store::{MemoryStorage, Storage, WriteCondition};
use nimbus_engine_backend::{
    Backend, BackendError, LeaseClock, LeaseError, Stack, StackSession, UpdateResult,
};
use nimbus_engine_ports::JournalError;

use crate::child::{ENTRY, SAYS};
use crate::support::*;

/// Lines that a child says.
pub(crate) fn sayings(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let out = BufReader::new(child.stdout.take().unwrap());
    out.lines()
        .map_while(Result::ok)
        .filter_map(|line| line.split_once(SAYS).map(|(_, said)| said.to_owned()))
}

fn locked(result: Result<StackSession, BackendError>) -> nimbus_core::Error {
    let error = result.err().expect("somebody else holds the lease");
    assert_eq!(error.code(), ErrorCode::STACK_LOCKED, "{error}");
    error.into()
}

async fn is_lost(session: &StackSession) -> bool {
    matches!(
        session.journal().append(begins(99, "late")).await,
        Err(JournalError::LeaseLost { .. })
    )
}

#[tokio::test]
async fn a_second_writer_is_refused_and_told_who_is_first() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let first = begin(&stack).await;
    // Another backend object on the same folder: nothing is remembered in memory.
    let other = local(folder.path()).await.stack(shop_dev());
    let error = locked(other.begin(request()).await);
    assert!(error.message().contains("`a test`"), "{}", error.message());
    assert!(error.message().contains(&std::process::id().to_string()));
    assert!(error.help().unwrap().contains("nimbus state unlock"));
    let holder = other.holder().await.unwrap().unwrap();
    assert_eq!(holder.owner.pid, std::process::id());
    first.end().await.unwrap();
    assert_eq!(other.holder().await.unwrap(), None);
    begin(&other).await.end().await.unwrap();
}

#[tokio::test]
async fn epochs_only_go_up() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let mut last = 0;
    for _ in 0..3 {
        let session = begin(&stack).await;
        let epoch = session.lease().epoch().get();
        assert!(epoch > last);
        last = epoch;
        session.end().await.unwrap();
    }
}

#[tokio::test]
async fn a_lease_that_is_dropped_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    drop(begin(&stack).await);
    begin(&stack).await.end().await.unwrap();
}

#[tokio::test]
async fn a_live_process_keeps_its_lease_and_a_killed_one_loses_it() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let mut holder = child(ENTRY, "hold", folder.path()).spawn().unwrap();
    let held = sayings(&mut holder).next().unwrap();
    let epoch: u64 = held.strip_prefix("held ").unwrap().parse().unwrap();
    let error = locked(stack.begin(request()).await);
    assert!(error.message().contains(&holder.id().to_string()));
    let refused = stack.unlock().await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::LEASE_HOLDER_ALIVE);
    kill(&mut holder);
    let session = begin(&stack).await;
    assert_eq!(session.lease().epoch().get(), epoch + 1);
    let locks = std::fs::read_dir(folder.path().join(".pulumi/locks/organization/shop/dev"));
    assert_eq!(
        locks.unwrap().count(),
        1,
        "the dead one's lock is gone, ours is there"
    );
    session.end().await.unwrap();
}

#[tokio::test]
async fn a_process_that_only_sleeps_keeps_its_lease() {
    use nix::sys::signal::{Signal, kill as signal};
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let mut holder = child(ENTRY, "hold", folder.path()).spawn().unwrap();
    sayings(&mut holder).next().unwrap();
    let pid = nix::unistd::Pid::from_raw(holder.id().try_into().unwrap());
    signal(pid, Signal::SIGSTOP).unwrap();
    locked(stack.begin(request()).await);
    assert!(stack.unlock().await.is_err());
    signal(pid, Signal::SIGCONT).unwrap();
    kill(&mut holder);
}

#[tokio::test]
async fn of_two_racing_processes_exactly_one_wins_each_round() {
    let folder = tempfile::tempdir().unwrap();
    created(&local(folder.path()).await).await;
    let mut racers: Vec<_> = (0..2)
        .map(|_| {
            let mut racer = child(ENTRY, "race", folder.path()).spawn().unwrap();
            let lines = sayings(&mut racer);
            (racer, lines)
        })
        .collect();
    let tell = |racers: &mut Vec<(Child, _)>| {
        for (racer, _) in racers.iter_mut() {
            let stdin = racer.stdin.as_mut().unwrap();
            stdin.write_all(b"x").unwrap();
            stdin.flush().unwrap();
        }
    };
    let mut last = 0;
    for round in 0..60 {
        tell(&mut racers);
        let said: Vec<String> = racers
            .iter_mut()
            .map(|(_, lines)| lines.next().unwrap())
            .collect();
        let won: Vec<u64> = said
            .iter()
            .filter_map(|line| line.strip_prefix("won ")?.parse().ok())
            .collect();
        assert_eq!(won.len(), 1, "round {round}: {said:?}");
        assert!(
            won[0] > last,
            "round {round}: epoch {} after {last}",
            won[0]
        );
        last = won[0];
        tell(&mut racers);
        for (_, lines) in &mut racers {
            assert_eq!(lines.next().unwrap(), "ready");
        }
    }
    for (mut racer, _) in racers {
        drop(racer.stdin.take());
        racer.wait().unwrap();
    }
}

#[tokio::test]
async fn a_holder_elsewhere_is_believed_until_a_person_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let session = begin(&stack).await;
    session.journal().append(begins(1, "early")).await.unwrap();
    // As if this process ran on another machine that shares the disk: another host name in the
    // record, and no lock of this kernel.
    let record = folder.path().join(".nimbus/leases/shop/dev.json");
    let text = std::fs::read_to_string(&record).unwrap();
    let hostname = session_hostname(&stack).await;
    let elsewhere = text.replace(
        &format!("\"hostname\":\"{hostname}\""),
        "\"hostname\":\"mars\"",
    );
    assert_ne!(text, elsewhere);
    std::fs::write(&record, elsewhere).unwrap();
    std::fs::remove_file(folder.path().join(".nimbus/leases/shop/dev.lock")).unwrap();

    let error = locked(stack.begin(request()).await);
    assert!(error.message().contains("mars"), "{}", error.message());
    assert!(!is_lost(&session).await, "nobody took it away yet");

    let unlocked = stack.unlock().await.unwrap();
    assert_eq!(unlocked.former.unwrap().owner.hostname, "mars");
    assert_eq!(unlocked.pulumi_locks.len(), 1);
    assert!(is_lost(&session).await, "a stale epoch is refused");
    let second = begin(&stack).await;
    assert!(second.lease().epoch() > session.lease().epoch());
    let before = std::fs::read(folder.path().join(".pulumi/stacks/shop/dev.json")).unwrap();
    let update = update(UpdateResult::Succeeded);
    let finish = session
        .finish(snapshot(&["stale"]), &update)
        .await
        .unwrap_err();
    assert_eq!(finish.code(), ErrorCode::LEASE_LOST);
    let after = std::fs::read(folder.path().join(".pulumi/stacks/shop/dev.json")).unwrap();
    assert_eq!(before, after, "a stale writer changed the state");
    let recovered = &second.recovered()[0];
    assert_eq!(
        recovered.unknown.len(),
        2,
        "what was accepted before is known to the successor"
    );
    second.end().await.unwrap();
}

async fn session_hostname(stack: &Stack) -> String {
    stack.holder().await.unwrap().unwrap().owner.hostname
}

#[tokio::test]
async fn a_lock_of_the_official_command_line_is_respected() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let locks = folder.path().join(".pulumi/locks/organization/shop/dev");
    std::fs::create_dir_all(&locks).unwrap();
    let lock = locks.join("5f0e2a9c-0000-4000-8000-000000000000.json");
    let content = r#"{"pid":4242,"username":"grace","hostname":"mars","timestamp":"2026-01-02T03:04:05.678+01:00"}"#;
    std::fs::write(&lock, content).unwrap();
    std::fs::write(locks.join("note.json.attrs"), "{}").unwrap();
    let error = locked(stack.begin(request()).await);
    assert!(
        error.message().contains("grace@mars (process 4242)"),
        "{}",
        error.message()
    );
    assert!(lock.exists());
    assert_eq!(
        stack.holder().await.unwrap(),
        None,
        "we hold nothing meanwhile"
    );
    let unlocked = stack.unlock().await.unwrap();
    assert_eq!(unlocked.pulumi_locks.len(), 1);
    begin(&stack).await.end().await.unwrap();
    std::fs::write(&lock, "half").unwrap();
    let error = locked(stack.begin(request()).await);
    assert!(
        error.message().contains("unreadable"),
        "{}",
        error.message()
    );
}

#[tokio::test]
async fn a_damaged_record_is_not_guessed_at() {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let record = folder.path().join(".nimbus/leases/shop/dev.json");
    std::fs::write(&record, "{\"epoch\":").unwrap();
    let error = stack.begin(request()).await.err().unwrap();
    assert_eq!(error.code(), ErrorCode::LEASE_UNREADABLE);
    stack.unlock().await.unwrap();
    let session = begin(&stack).await;
    let epoch = session.lease().epoch().get();
    assert!(epoch > 1_000_000_000, "{epoch} might have been used before");
    session.end().await.unwrap();
}

/// Two machines with clocks of their own, and the bucket's.
async fn machines() -> (Arc<ManualClock>, [(Arc<ManualClock>, Stack); 2]) {
    let bucket_clock = ManualClock::new();
    let storage = MemoryStorage::new(Arc::clone(&bucket_clock) as Arc<dyn LeaseClock>);
    let storage = Arc::new(storage) as Arc<dyn Storage>;
    let machine = async |create: bool| {
        let clock = ManualClock::new();
        let options = options(Arc::clone(&clock) as Arc<dyn LeaseClock>);
        let backend = Backend::in_storage(Arc::clone(&storage), options)
            .await
            .unwrap();
        let stack = backend.stack(shop_dev());
        if create {
            stack.create(owner()).await.unwrap();
        }
        (clock, stack)
    };
    let first = machine(true).await;
    let second = machine(false).await;
    (bucket_clock, [first, second])
}

const LIFETIME: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_lease_in_a_bucket_runs_out_by_the_buckets_clock_alone() {
    let (bucket, [(clock_a, a), (clock_b, b)]) = machines().await;
    let first = begin(&a).await;
    // Wall clocks an hour wrong in both directions change nothing.
    for seconds in [3600, -7200] {
        clock_a.jump(seconds);
        clock_b.jump(-seconds);
        locked(b.begin(request()).await);
        first.journal().append(begins(1, "one")).await.unwrap();
    }
    bucket.advance(LIFETIME);
    locked(b.begin(request()).await);
    bucket.advance(Duration::from_secs(3));
    let second = begin(&b).await;
    assert!(second.lease().epoch() > first.lease().epoch());
    assert_eq!(second.recovered()[0].unknown.len(), 1);
    drop(first);
    second.end().await.unwrap();
}

#[tokio::test]
async fn a_released_lease_writes_no_more() {
    let (_, [(_, a), _]) = machines().await;
    let folder = tempfile::tempdir().unwrap();
    for stack in [a, created(&local(folder.path()).await).await] {
        let session = begin(&stack).await;
        let journal = session.journal();
        let update = update(UpdateResult::Succeeded);
        session.finish(snapshot(&["a"]), &update).await.unwrap();
        let late = journal.append(begins(1, "late")).await;
        assert!(
            matches!(late, Err(JournalError::LeaseLost { .. })),
            "{late:?}"
        );
    }
}

#[tokio::test]
async fn a_renewed_lease_in_a_bucket_does_not_run_out() {
    let (bucket, [(clock_a, a), (_, b)]) = machines().await;
    let first = begin(&a).await;
    for _ in 0..10 {
        for clock in [&bucket, &clock_a] {
            clock.advance(LIFETIME / 2);
        }
        first.lease().renew().await.unwrap();
        locked(b.begin(request()).await);
    }
    first.journal().append(begins(1, "one")).await.unwrap();
    first.end().await.unwrap();
    begin(&b).await.end().await.unwrap();
}

#[tokio::test]
async fn a_writer_that_slept_too_long_is_refused_by_the_bucket_itself() {
    let (bucket, [(_, a), (_, b)]) = machines().await;
    let first = begin(&a).await;
    first.journal().append(begins(1, "one")).await.unwrap();
    // The sleeper's own clock stood still, so it believes in its lease.
    bucket.advance(LIFETIME * 2);
    let second = begin(&b).await;
    assert_eq!(second.recovered()[0].unknown.len(), 1);
    assert!(is_lost(&first).await);
    let update = update(UpdateResult::Succeeded);
    let finish = first
        .finish(snapshot(&["stale"]), &update)
        .await
        .unwrap_err();
    assert_eq!(finish.code(), ErrorCode::LEASE_LOST);
    second.finish(snapshot(&["fresh"]), &update).await.unwrap();
    let loaded = b.load(&keyring()).await.unwrap();
    assert_eq!(names(&loaded.snapshot.unwrap()), ["fresh"]);
}

#[tokio::test]
async fn a_sleeper_that_had_written_nothing_is_shut_out_as_well() {
    let (bucket, [(_, a), (_, b)]) = machines().await;
    let first = begin(&a).await;
    bucket.advance(LIFETIME * 2);
    let second = begin(&b).await;
    let before = b.load(&keyring()).await.unwrap().version;
    assert!(is_lost(&first).await, "its first line must be refused");
    let update = update(UpdateResult::Succeeded);
    let finish = first
        .finish(snapshot(&["stale"]), &update)
        .await
        .unwrap_err();
    assert_eq!(finish.code(), ErrorCode::LEASE_LOST);
    assert_eq!(b.load(&keyring()).await.unwrap().version, before);
    second.end().await.unwrap();
}

#[tokio::test]
async fn an_unlocked_writer_in_a_bucket_is_shut_out() {
    let (_, [(_, a), (_, b)]) = machines().await;
    let first = begin(&a).await;
    b.unlock().await.unwrap();
    let lost = first.lease().renew().await.unwrap_err();
    assert!(matches!(lost, LeaseError::Lost { .. }));
    let second = begin(&b).await;
    assert!(is_lost(&first).await);
    let waited = tokio::time::timeout(Duration::from_secs(5), first.lease().lost()).await;
    assert!(waited.is_ok(), "whoever waits for the loss is told");
    second.end().await.unwrap();
}

#[tokio::test]
async fn a_writer_that_cannot_renew_stops_itself() {
    let (_, [(clock, a), _]) = machines().await;
    let session = begin(&a).await;
    session.journal().append(begins(1, "one")).await.unwrap();
    clock.advance(LIFETIME);
    assert!(is_lost(&session).await);
    assert!(session.lease().check().await.is_err());
}

#[tokio::test]
async fn of_many_racers_for_a_bucket_exactly_one_wins() {
    let (_, [(_, a), (_, b)]) = machines().await;
    for round in 0..50 {
        let racers = [&a, &b, &a, &b].map(|stack| {
            let stack = stack.clone();
            tokio::spawn(async move { stack.begin(request()).await })
        });
        let mut winners = Vec::new();
        for racer in racers {
            match racer.await.unwrap() {
                Ok(session) => winners.push(session),
                Err(BackendError::Lease(LeaseError::Held { .. })) => {}
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        assert_eq!(winners.len(), 1, "round {round}");
        for winner in winners {
            winner.end().await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_heartbeat_keeps_a_lease_and_notices_its_loss() {
    let storage = Arc::new(MemoryStorage::new(Arc::new(
        nimbus_engine_backend::SystemLeaseClock::default(),
    ))) as Arc<dyn Storage>;
    let mut options = options(Arc::new(nimbus_engine_backend::SystemLeaseClock::default()));
    options.lease.heartbeat = Some(Duration::from_millis(5));
    let backend = Backend::in_storage(Arc::clone(&storage), options)
        .await
        .unwrap();
    let stack = created(&backend).await;
    let session = begin(&stack).await;
    let key = ".nimbus/leases/shop/dev.json";
    let tag = storage.get(key).await.unwrap().unwrap().tag;
    while storage.get(key).await.unwrap().unwrap().tag == tag {
        tokio::task::yield_now().await;
    }
    storage
        .put(key, "{\"epoch\":9}".into(), WriteCondition::Anything)
        .await
        .unwrap();
    let lost = session.lease().lost().await;
    assert!(lost.contains("unlocked"), "{lost}");
}

/// F16: a hundred want the same stack at one moment. One has it, and every other one is told who.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hundred_at_once_one_runs_and_the_others_are_told_who() {
    let folder = tempfile::tempdir().unwrap();
    let (_, [(_, in_bucket), _]) = machines().await;
    for stack in [in_bucket, created(&local(folder.path()).await).await] {
        let start = Arc::new(tokio::sync::Barrier::new(100));
        let racers: Vec<_> = (0..100)
            .map(|_| {
                let (stack, start) = (stack.clone(), Arc::clone(&start));
                tokio::spawn(async move {
                    start.wait().await;
                    stack.begin(request()).await
                })
            })
            .collect();
        let (mut winners, mut told) = (Vec::new(), 0);
        for racer in racers {
            match racer.await.unwrap() {
                Ok(session) => winners.push(session),
                Err(BackendError::Lease(LeaseError::Held { .. })) => told += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!((winners.len(), told), (1, 99));
        let winner = winners.remove(0);
        winner.journal().append(begins(1, "one")).await.unwrap();
        winner.end().await.unwrap();
    }
}

/// Time that passes when everybody waits for it.
#[derive(Debug)]
struct PausedClock(tokio::time::Instant);

impl LeaseClock for PausedClock {
    fn now(&self) -> jiff::Timestamp {
        let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// F19: an update of twelve minutes under a lease of five, and under the one of a minute that is usual.
#[tokio::test(start_paused = true)]
async fn an_update_longer_than_its_lease_keeps_it_by_its_own_heartbeat() {
    for (lifetime, heartbeat) in [(300, 75), (60, 15)] {
        let clock = Arc::new(PausedClock(tokio::time::Instant::now()));
        let storage = MemoryStorage::new(Arc::clone(&clock) as Arc<dyn LeaseClock>);
        let mut options = options(clock);
        options.lease.lifetime = Duration::from_secs(lifetime);
        options.lease.heartbeat = Some(Duration::from_secs(heartbeat));
        let backend = Backend::in_storage(Arc::new(storage), options).await;
        let stack = created(&backend.unwrap()).await;
        let session = begin(&stack).await;
        for minute in 1..=12 {
            // tidy-allow(sleep): the clock is paused and goes on when this is all that is waited for
            tokio::time::sleep(Duration::from_secs(60)).await;
            let name = format!("r{minute}");
            let written = session.journal().append(begins(minute, &name)).await;
            written.unwrap_or_else(|error| panic!("minute {minute}: {error}"));
            locked(stack.begin(request()).await);
        }
        let update = update(UpdateResult::Succeeded);
        session.finish(snapshot(&["all"]), &update).await.unwrap();
        begin(&stack).await.end().await.unwrap();
    }
}
