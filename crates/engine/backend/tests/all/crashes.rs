//! Processes that die while they write: whatever was acknowledged is found by whoever comes next.

use std::sync::Arc;

use nimbus_engine_backend::store::{Storage, WriteCondition};
use nimbus_engine_backend::{Backend, Stack, UpdateResult};

use crate::child::ENTRY;
use crate::journal::{interrupted, state};
use crate::leases::sayings;
use crate::support::*;

/// Kills a process while it appends, at a moment that the seed decides.
async fn crash(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    deploy(&stack, &["base"]).await;
    let mut writer = child(ENTRY, "append", folder.path()).spawn().unwrap();
    let lines = sayings(&mut writer);
    // A spread of crash points without a timer: so many acknowledgements, then the end.
    let enough = 1 + (seed * 7919) % 97;
    let mut said: Vec<String> = Vec::new();
    for line in lines {
        said.push(line);
        if said.len() as u64 == enough {
            writer.kill().unwrap();
        }
    }
    writer.wait().unwrap();
    let promised = |word: &str| -> Vec<String> {
        let lines = said.iter();
        lines
            .filter_map(|line| line.strip_prefix(word).map(str::to_owned))
            .collect()
    };
    let session = begin(&stack).await;
    let snapshot = session.snapshot().unwrap();
    let (made, open) = (names(snapshot), pending(snapshot));
    for name in promised("done ") {
        assert!(
            made.contains(&name),
            "seed {seed}: {name} was made, and the state forgot it"
        );
    }
    for name in promised("begun ") {
        let accounted = made.contains(&name) || open.contains(&name);
        assert!(
            accounted,
            "seed {seed}: {name} was begun, and nobody knows of it"
        );
    }
    assert!(made.contains(&"base".to_owned()));
    session.end().await.unwrap();
}

#[tokio::test]
async fn whatever_was_acknowledged_survives_a_kill_at_any_moment() {
    for seed in 0..40 {
        crash(seed).await;
    }
}

/// Kills a process while it runs whole updates.
async fn crash_in_updates(seed: usize) {
    let folder = tempfile::tempdir().unwrap();
    let stack = created(&local(folder.path()).await).await;
    let mut writer = child(ENTRY, "update", folder.path()).spawn().unwrap();
    let mut last = 0;
    for (count, line) in sayings(&mut writer).enumerate() {
        last = line.strip_prefix("finished ").unwrap().parse().unwrap();
        if count == seed % 7 {
            // Somewhere in the next update; where, is up to the scheduler and the seed.
            (0..seed * 300).for_each(|_| std::hint::spin_loop());
            writer.kill().unwrap();
        }
    }
    writer.wait().unwrap();
    let session = begin(&stack).await;
    let made = names(session.snapshot().unwrap());
    assert!(
        made.len() >= last,
        "seed {seed}: {last} were promised, {made:?} are there"
    );
    session.end().await.unwrap();
    let history = stack.history().await.unwrap();
    assert!(
        history.len() >= last,
        "seed {seed}: an update is missing in the history"
    );
    let version = history.last().unwrap();
    let bytes = stack.version_bytes(version).await.unwrap();
    stack.export_version(&bytes).await.unwrap();
}

#[tokio::test]
async fn a_kill_in_the_middle_of_an_update_leaves_the_old_state_or_the_new() {
    for seed in 0..25 {
        crash_in_updates(seed).await;
    }
}

/// A bucket that stops answering after so many writes, like a process that is killed.
#[derive(Debug)]
struct Dying {
    inner: Arc<dyn Storage>,
    writes: parking_lot::Mutex<usize>,
}

impl Dying {
    fn write(&self) -> Result<(), nimbus_engine_backend::store::StorageError> {
        let mut left = self.writes.lock();
        if *left == 0 {
            return Err(nimbus_engine_backend::store::StorageError::NotStored {
                key: "anything".into(),
                detail: "the process is dead".into(),
            });
        }
        *left -= 1;
        Ok(())
    }
}

#[async_trait::async_trait]
impl Storage for Dying {
    async fn get(
        &self,
        key: &str,
    ) -> Result<
        Option<nimbus_engine_backend::store::StoredObject>,
        nimbus_engine_backend::store::StorageError,
    > {
        self.inner.get(key).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: bytes::Bytes,
        expect: WriteCondition,
    ) -> Result<nimbus_engine_backend::store::Put, nimbus_engine_backend::store::StorageError> {
        self.write()?;
        self.inner.put(key, bytes, expect).await
    }

    async fn copy(
        &self,
        from: &str,
        to: &str,
    ) -> Result<(), nimbus_engine_backend::store::StorageError> {
        self.write()?;
        self.inner.copy(from, to).await
    }

    async fn delete(&self, key: &str) -> Result<(), nimbus_engine_backend::store::StorageError> {
        self.write()?;
        self.inner.delete(key).await
    }

    async fn list(
        &self,
        folder: &str,
    ) -> Result<
        Vec<nimbus_engine_backend::store::ListedObject>,
        nimbus_engine_backend::store::StorageError,
    > {
        self.inner.list(folder).await
    }

    async fn time(&self) -> Result<jiff::Timestamp, nimbus_engine_backend::store::StorageError> {
        self.inner.time().await
    }
}

/// Ends a process after each of its writes in turn, in an update and in the recovery of one, until
/// it gets through; after each death somebody else must find everything that was acknowledged.
#[tokio::test]
async fn a_death_between_any_two_writes_is_understood() {
    for recovering in [false, true] {
        let mut deaths = 0;
        for writes in 0.. {
            let clock = ManualClock::new();
            let (healthy, storage) = bucket(&clock).await;
            let stack = match recovering {
                true => interrupted(&healthy).await,
                false => {
                    let stack = created(&healthy).await;
                    deploy(&stack, &["base"]).await;
                    stack
                }
            };
            let dying = Arc::new(Dying {
                inner: Arc::clone(&storage),
                writes: parking_lot::Mutex::new(writes),
            });
            let mortal = Backend::in_storage(dying, options(clock.clone()))
                .await
                .unwrap();
            let (acknowledged, through) = one_update(&mortal.stack(shop_dev())).await;
            clock.advance(std::time::Duration::from_secs(120));

            let session = begin(&stack).await;
            let snapshot = session.snapshot().unwrap();
            let known: Vec<String> = [names(snapshot), pending(snapshot)].concat();
            for name in acknowledged.iter().map(String::as_str).chain(["base"]) {
                assert!(
                    known.contains(&name.to_owned()),
                    "after {writes} writes {name} is lost; known are {known:?}"
                );
            }
            if recovering {
                assert!(
                    known.contains(&"a".to_owned()) && known.contains(&"b".to_owned()),
                    "{known:?}"
                );
            }
            session.end().await.unwrap();
            // Everything works again, and nothing of the dead is in the way.
            deploy(&stack, &["base", "after"]).await;
            assert_eq!(names(&state(&stack).await), ["base", "after"]);
            if through {
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 8, "only {deaths} places to die");
    }
}

/// What was acknowledged before the storage stopped, and whether it lasted to the end.
async fn one_update(stack: &Stack) -> (Vec<String>, bool) {
    let mut acknowledged = Vec::new();
    let Ok(session) = stack.begin(request()).await else {
        return (acknowledged, false);
    };
    let journal = session.journal();
    for (act, name) in [(1, "x"), (2, "y")] {
        for entry in [begins(act, name), succeeds(act, name)] {
            if journal.append(entry).await.is_err() {
                return (acknowledged, false);
            }
            acknowledged.push(name.to_owned());
        }
    }
    let mut result = session.snapshot().unwrap().clone();
    result.resources.extend([resource("x"), resource("y")]);
    let finished = session
        .finish(result, &update(UpdateResult::Succeeded))
        .await;
    (acknowledged, finished.is_ok())
}
