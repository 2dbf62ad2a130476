//! PostgreSQL dies under the server: nothing that was acknowledged is lost, and requests are told.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use nimbus_control_runs::{DatabaseStorage, TenantVault};
use nimbus_control_store::{NewTenant, StoreError};
use nimbus_control_vault::{KeyEncryptionKey, KeyRing};
use nimbus_engine_backend::store::{Storage as _, WriteCondition};
use nimbus_test_tools::{Tool, short_or_long, tool_or_skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::{Running, folder, options, post, postmaster};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

async fn ready(server: &Running, patience: Duration, also: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < patience {
        if also() && server.get("/ready").await.status == 200 {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_every_kill() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let root = server.store.tenant_find(&[]).await.unwrap();
    let mut acknowledged = BTreeSet::new();
    let mut attempted = BTreeSet::new();
    for round in 0..short_or_long(5, 200) {
        let victim = Pid::from_raw(postmaster(&options.database.data_dir).unwrap());
        let store = server.store.clone();
        let (progress, mut seen) = watch::channel(0);
        // A pair of rows per transaction: never one without the other.
        let (stop, stopped) = watch::channel(false);
        let writing = tokio::spawn(async move {
            let (mut done, mut failed) = (Vec::new(), Vec::new());
            // A kill between two writes may pass without a failure, so only the test ends this.
            for number in (0..).take_while(|_| !*stopped.borrow()) {
                let names = [format!("{round}-{number}-a"), format!("{round}-{number}-b")];
                let written: Result<(), StoreError> = store
                    .tenant_tx(root, async |tx| {
                        for name in &names {
                            tx.compartment_create(name, None).await?;
                        }
                        Ok(())
                    })
                    .await;
                match written {
                    Ok(()) => done.push(number),
                    Err(_) => failed.push(number),
                }
                progress.send_replace(done.len());
                tokio::task::yield_now().await;
            }
            (done, failed)
        });
        // Some writes in, after another number of them each time, while the next one is under way.
        let begun = seen.wait_for(|written| *written > round % 7);
        drop(timeout(PATIENCE, begun).await.expect("writes go on"));
        kill(victim, Signal::SIGKILL).unwrap();
        // What the dead one left behind answers for a moment longer, so readiness alone says little.
        let replaced = || {
            let now = postmaster(&options.database.data_dir);
            now.is_some_and(|now| now != victim.as_raw())
        };
        assert!(ready(&server, PATIENCE, replaced).await, "round {round}");
        stop.send_replace(true);
        let ended = timeout(PATIENCE, writing).await;
        let (done, failed) = ended.expect("the writer is told to end").unwrap();
        acknowledged.extend(done.into_iter().map(|number| (round, number)));
        attempted.extend(failed.into_iter().map(|number| (round, number)));
    }
    let rows = server
        .store
        .tenant_tx(root, async |tx| tx.compartment_list().await)
        .await
        .unwrap();
    let names: BTreeSet<_> = rows.into_iter().map(|row| row.name).collect();
    let whole = |(round, number): &(usize, i32)| {
        ["a", "b"]
            .iter()
            .filter(|half| names.contains(&format!("{round}-{number}-{half}")))
            .count()
    };
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|pair| whole(pair) != 2)
        .collect();
    let torn: Vec<_> = attempted.iter().filter(|pair| whole(pair) == 1).collect();
    assert!(
        lost.is_empty() && torn.is_empty(),
        "lost {lost:?}, torn {torn:?}"
    );
    assert!(!acknowledged.is_empty());
    server.stop().await;
}

/// A state that knows its own number and digest, as large as states are.
fn numbered_state(number: u64) -> String {
    let body = format!("{number} ").repeat(20_000);
    format!(
        "{number}\n{:02x?}\n{body}",
        Sha256::digest(&body).as_slice()
    )
}

/// The number of a state that is whole.
fn number_of(state: &[u8]) -> u64 {
    let text = std::str::from_utf8(state).unwrap();
    let (number, rest) = text.split_once('\n').unwrap();
    let (digest, body) = rest.split_once('\n').unwrap();
    let found = format!("{:02x?}", Sha256::digest(body).as_slice());
    assert_eq!(found, digest, "{number}");
    number.parse().unwrap()
}

/// F7: the state of a stack is replaced again and again while PostgreSQL is killed: what is there afterwards
/// is the last one that was acknowledged or the one after it, whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_the_one_before_or_the_one_after_every_kill() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let root = server.store.tenant_find(&[]).await.unwrap();
    let new = NewTenant::new(root, "acme", "Acme");
    let made: Result<_, StoreError> = server
        .store
        .registry_tx(root, async |tx| tx.tenant_create(&new).await)
        .await;
    let acme = made.unwrap().id;
    let ring = KeyRing::new(KeyEncryptionKey::generate(), Vec::new());
    let vault = TenantVault::open(&server.store, &ring, acme).await.unwrap();
    let storage = DatabaseStorage::new(vault, "deployments/D1/state");
    let mut next = 1;
    for round in 0..short_or_long(5, 200) {
        let victim = Pid::from_raw(postmaster(&options.database.data_dir).unwrap());
        let (progress, mut seen) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let writer = storage.clone();
        let writing = tokio::spawn(async move {
            let mut acknowledged = next - 1;
            // A kill between two writes may pass without a failure, so only the test ends this.
            for number in (next..).take_while(|_| !*stopped.borrow()) {
                let state = numbered_state(number).into();
                match writer
                    .put("dev.json", state, WriteCondition::Anything)
                    .await
                {
                    Ok(_) => acknowledged = number,
                    Err(_) => return acknowledged,
                }
                progress.send_modify(|count| *count += 1);
            }
            acknowledged
        });
        let begun = seen.wait_for(|written| *written > round % 7);
        drop(timeout(PATIENCE, begun).await.expect("writes go on"));
        kill(victim, Signal::SIGKILL).unwrap();
        let replaced = || {
            let now = postmaster(&options.database.data_dir);
            now.is_some_and(|now| now != victim.as_raw())
        };
        assert!(ready(&server, PATIENCE, replaced).await, "round {round}");
        stop.send_replace(true);
        let acknowledged = timeout(PATIENCE, writing).await.unwrap().unwrap();
        let found = storage.get("dev.json").await.unwrap().unwrap();
        let found = number_of(&found.bytes);
        assert!(
            found == acknowledged || found == acknowledged + 1,
            "round {round}: {found} after {acknowledged}"
        );
        next = found + 1;
    }
    server.stop().await;
}

/// F6: the database is away for so long, first hanging and then gone. Nobody is answered with 500 or hangs,
/// and soon after its return everything works, with what was there before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_database_is_told_and_over_when_it_is_over() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let root = server.store.tenant_find(&[]).await.unwrap();
    let outages = short_or_long(vec![5], vec![5, 60]);
    for seconds in outages {
        let name = format!("before-{seconds}");
        server
            .store
            .tenant_tx(root, async |tx| tx.compartment_create(&name, None).await)
            .await
            .unwrap();
        let victim = Pid::from_raw(postmaster(&options.database.data_dir).unwrap());
        let family = children(victim);
        for process in family.iter().chain([&victim]) {
            kill(*process, Signal::SIGSTOP).unwrap();
        }
        let begun = Instant::now();
        let (mut refused, mut slowest) = (0, Duration::ZERO);
        while begun.elapsed() < Duration::from_secs(seconds) {
            let body = r#"{"email": "owner@operator.example", "password": "x"}"#;
            let asked = Instant::now();
            let answer = timeout(PATIENCE, post(server.address, "/api/v1/auth/login", body)).await;
            let answer = answer.expect("nobody hangs");
            slowest = slowest.max(asked.elapsed());
            assert_eq!(answer.status, 503, "{}", answer.body);
            assert!(answer.head.contains("retry-after:"), "{}", answer.head);
            refused += 1;
        }
        for process in family.iter().chain([&victim]) {
            let _ = kill(*process, Signal::SIGCONT);
        }
        let returned = Instant::now();
        let works = || true;
        assert!(ready(&server, Duration::from_secs(30), works).await);
        let after = returned.elapsed();
        println!("{seconds} s away: {refused} refused, slowest {slowest:?}, back after {after:?}");
        assert!(refused > 0);
        let rows = server
            .store
            .tenant_tx(root, async |tx| tx.compartment_list().await)
            .await
            .unwrap();
        assert!(rows.iter().any(|row| row.name == name));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_away_requests_are_told_to_come_back() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let victim = Pid::from_raw(postmaster(&options.database.data_dir).unwrap());
    // Stopped, not dead: connections hang instead of breaking.
    let family = children(victim);
    for process in family.iter().chain([&victim]) {
        kill(*process, Signal::SIGSTOP).unwrap();
    }
    let asked = Instant::now();
    // What was seen a moment ago may still be told.
    let answer = loop {
        let answer = server.get("/api/v1/ready").await;
        if answer.status == 503 {
            break answer;
        }
        assert!(
            asked.elapsed() < PATIENCE,
            "a database that is away is ready"
        );
        tokio::task::yield_now().await;
    };
    assert!(answer.head.contains("retry-after:"), "{}", answer.head);
    assert_eq!(answer.json()["error"]["code"], "UNAVAILABLE");
    assert!(asked.elapsed() < PATIENCE, "{:?}", asked.elapsed());
    assert_eq!(server.get("/live").await.status, 200);
    // The API proper, which would need the database for its answer.
    let body = r#"{"email": "owner@operator.example", "password": "x"}"#;
    let answer = timeout(PATIENCE, post(server.address, "/api/v1/auth/login", body)).await;
    let answer = answer.expect("nobody hangs for ever");
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.head.contains("retry-after:"), "{}", answer.head);
    assert_eq!(answer.json()["error"]["code"], "UNAVAILABLE");
    for process in family.iter().chain([&victim]) {
        let _ = kill(*process, Signal::SIGCONT);
    }
    assert!(ready(&server, PATIENCE, || true).await);
    server.stop().await;
}

pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
        .unwrap_or_default();
    text.split_whitespace()
        .filter_map(|number| number.parse().ok())
        .map(Pid::from_raw)
        .collect()
}

/// Every connection for requests is taken by somebody who does not give it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_need_none_of_the_connections_for_requests() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let server = Running::start(&options).await;
    let root = server.store.tenant_find(&[]).await.unwrap();
    let (done, wait) = watch::channel(false);
    let mut holders = Vec::new();
    let (taken, mut all) = watch::channel(0);
    for _ in 0..options.database.pool_size {
        let (store, mut wait, taken) = (server.store.clone(), wait.clone(), taken.clone());
        holders.push(tokio::spawn(async move {
            let held: Result<(), StoreError> = store
                .tenant_tx(root, async |tx| {
                    tx.compartment_list().await?;
                    taken.send_modify(|count| *count += 1);
                    let _ = wait.wait_for(|done| *done).await;
                    Ok(())
                })
                .await;
            held
        }));
    }
    let pool = options.database.pool_size;
    timeout(PATIENCE, all.wait_for(|count| *count == pool))
        .await
        .unwrap()
        .unwrap();
    for path in ["/live", "/ready", "/health"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    done.send_replace(true);
    for holder in holders {
        holder.await.unwrap().unwrap();
    }
    server.stop().await;
}

/// A disk of its own that is full: whoever may mount one tries it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_not_ready_and_is_again_when_there_is_room() {
    let binaries = tool_or_skip!(Tool::Postgres);
    let folder = folder();
    let options = options(folder.path(), &binaries);
    let Some(_disk) = SmallDisk::mount(&options.database.data_dir) else {
        nimbus_test_tools::record_skip(
            "mounting a small disk needs rights that this user has not",
            "a_full_disk_is_not_ready_and_is_again_when_there_is_room",
        );
        return;
    };
    let server = Running::start(&options).await;
    assert_eq!(server.get("/ready").await.status, 200);
    let filler = options.database.data_dir.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    let block = vec![1_u8; 1024 * 1024];
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    drop(file);
    let full = async || server.get("/ready").await.status == 503;
    let started = Instant::now();
    while !full().await {
        assert!(started.elapsed() < PATIENCE, "a full disk is ready");
        tokio::task::yield_now().await;
    }
    let told = server.get("/ready").await;
    assert_eq!(
        told.json()["error"]["reference"],
        "NIM-0818",
        "{}",
        told.body
    );
    assert_eq!(server.get("/live").await.status, 200);
    std::fs::remove_file(&filler).unwrap();
    assert!(ready(&server, PATIENCE, || true).await);
    server.stop().await;
}

/// A file system of its own, as large as a cluster and a little more.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(at: &std::path::Path) -> Option<Self> {
        use nix::mount::{MsFlags, mount};
        std::fs::create_dir_all(at).ok()?;
        let size = Some("size=300m,mode=755");
        mount(Some("tmpfs"), at, Some("tmpfs"), MsFlags::empty(), size).ok()?;
        Some(Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}
