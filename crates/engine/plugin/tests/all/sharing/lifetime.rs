//! When shared processes start and end.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_plugin::{KeepWarm, ProviderPool};
use nimbus_engine_ports::{ProviderError, ProviderHost, ReadRequest, Severity};
use tempfile::TempDir;

use super::*;
use crate::process::{FOLDER, ROLE, eventually, is_running, role};

#[tokio::test]
async fn a_process_that_was_left_in_the_middle_of_something_gets_no_new_users() {
    let (fake, entered, gate) = waiting();
    let running = Running::start(fake).await;
    let machine = Machine::with(WARM, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    let creating = Arc::clone(&second);
    let request = two.create("ours");
    let ours = tokio::spawn(async move { creating.create(request).await });
    entered.notified().await;
    ours.abort();
    assert!(ours.await.unwrap_err().is_cancelled());
    drop((second, two));

    let third = machine.unit("three").provider("eu").await;
    assert_eq!(machine.counts(), (2, 2));
    gate.add_permits(2);
    first.create(one.create("theirs")).await.unwrap();
    first.close().await;
    assert_eq!(machine.counts(), (2, 1));
    drop(third);
}

#[tokio::test]
async fn a_crash_fails_the_calls_of_all_and_the_next_gets_a_new_process() {
    let machine = Machine::new(WARM, &role("dies"));
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    assert_eq!(machine.counts(), (1, 1));
    let reading = Arc::clone(&second);
    let read = tokio::spawn(async move { reading.read(ReadRequest::default()).await });
    let created = first.create(one.create("thing")).await;
    let Err(ProviderError::Unknown { message }) = created else {
        panic!("{created:?}")
    };
    assert_eq!(message, "the plugin fake ended (exit code 7) during Create");
    let read = read.await.unwrap();
    assert!(
        matches!(
            read,
            Err(ProviderError::Unknown { .. } | ProviderError::Failed { .. })
        ),
        "{read:?}"
    );
    for unit in [&one, &two] {
        eventually("the news", || {
            let told = unit.audience.told(Severity::Error);
            told.iter()
                .any(|line| line.contains("ended by itself"))
                .then_some(())
        })
        .await;
    }
    let third = machine.unit("three").provider("eu").await;
    assert_eq!(machine.counts(), (2, 1));
    drop(third);
}

/// Not a test of its own: an engine that keeps a plugin warm until somebody kills it.
pub(crate) async fn keep_warm_for_ever(folder: &Path) {
    let machine = Machine {
        installed: TempDir::new().unwrap(),
        pool: ProviderPool::new(WARM, LIMITS, Arc::new(Ports)),
    };
    let unit = machine.unit_with("one", |options| {
        options.search.installed = Some(folder.to_owned());
    });
    unit.provider("eu").await.close().await;
    assert_eq!(machine.pool.len(), 1);
    fs::write(folder.join("warm"), "").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_warm_process_does_not_outlive_an_engine_that_is_killed() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let mut engine = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::acts_as_another_program"])
        .env(ROLE, "warm engine")
        .env(FOLDER, machine.installed.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the plugin to be warm", || {
        machine.installed.path().join("warm").exists().then_some(())
    })
    .await;
    assert_eq!(machine.counts(), (1, 1));
    engine.kill().unwrap();
    engine.wait().unwrap();
    eventually("its end", || (machine.counts() == (1, 0)).then_some(())).await;
}

#[tokio::test]
async fn a_process_that_nobody_uses_ends_after_a_while() {
    let running = Running::start(creates()).await;
    let keep = KeepWarm {
        idle: Some(Duration::from_millis(100)),
        ..WARM
    };
    let machine = Machine::with(keep, &running);
    let provider = machine.unit("one").provider("eu").await;
    let again = machine.unit("two").provider("eu").await;
    provider.close().await;
    assert_eq!(machine.counts(), (1, 1));
    again.close().await;
    eventually("its end", || (machine.counts() == (1, 0)).then_some(())).await;
    assert!(running.calls().contains(&"cancel"), "it was asked first");
    machine.unit("three").provider("eu").await;
    assert_eq!(machine.counts().0, 2);
}

#[tokio::test]
async fn of_too_many_that_wait_the_one_that_has_waited_longest_ends() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(KeepWarm { most: 1, ..WARM }, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("us").await);
    first.close().await;
    assert_eq!(machine.counts(), (2, 2));
    second.close().await;
    eventually("the end of one", || {
        (machine.counts() == (2, 1)).then_some(())
    })
    .await;
    machine.unit("three").provider("us").await;
    assert_eq!(machine.counts().0, 2, "the younger one is still there");
}

#[tokio::test]
async fn a_process_takes_new_users_only_while_its_credentials_are_fresh() {
    let running = Running::start(creates()).await;
    let keep = KeepWarm {
        age: Duration::ZERO,
        ..WARM
    };
    let machine = Machine::with(keep, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let first = one.provider("eu").await;
    assert_eq!(machine.counts().0, 1);
    let second = two.provider("eu").await;
    assert_eq!(machine.counts(), (2, 2));
    first.create(one.create("thing")).await.unwrap();
    for provider in [first, second] {
        provider.close().await;
    }
    assert_eq!(machine.counts(), (2, 0), "and does not wait for any");
}

#[tokio::test]
async fn where_nobody_would_end_it_properly_only_a_reviewed_plugin_waits() {
    let running = Running::start(creates()).await;
    let keep = KeepWarm {
        only_reviewed: true,
        ..WARM
    };
    let machine = Machine::with(keep, &running);
    machine.unit("one").provider("eu").await.close().await;
    assert_eq!(machine.counts(), (1, 1));
    let unreviewed = machine.unit_with("two", only_in_folders);
    unreviewed.provider("eu").await.close().await;
    assert_eq!(machine.counts(), (2, 1));
    assert!(running.calls().contains(&"cancel"), "it was asked to end");
}

#[tokio::test]
async fn a_start_that_fails_fails_for_all_who_wait_and_is_tried_again_by_the_next() {
    let machine = Machine::new(WARM, "sleep 0.3; echo 'no licence' >&2; exit 3");
    let units: Vec<_> = ["one", "two", "three"]
        .map(|name| machine.unit(name))
        .into();
    let fake = package("fake");
    let loads = units.iter().map(|unit| unit.host.load(&fake));
    for loaded in futures::future::join_all(loads).await {
        let error = loaded.err().unwrap().to_string();
        assert!(error.contains("no licence"), "{error}");
    }
    assert_eq!(machine.counts(), (1, 0));
    assert!(units[0].host.load(&fake).await.is_err());
    assert_eq!(machine.counts().0, 2);
}

#[tokio::test]
async fn a_configuration_that_is_refused_is_refused_once_for_all_who_wait() {
    let running = Running::start(Fake {
        configure: answer(|_| Err(tonic::Status::unknown("bad credentials"))),
        ..modern()
    })
    .await;
    let machine = Machine::with(WARM, &running);
    let units: Vec<_> = ["one", "two", "three"]
        .map(|name| machine.unit(name))
        .into();
    let configure = units.iter().map(|unit| async {
        let provider = unit.load().await;
        let configured = provider.configure(unit.configuration("eu")).await;
        (provider, configured)
    });
    let ended = futures::future::join_all(configure).await;
    for (_, configured) in &ended {
        let error = configured.as_ref().unwrap_err().to_string();
        assert!(error.contains("bad credentials"), "{error}");
    }
    let calls = running.calls();
    assert_eq!(calls.iter().filter(|call| **call == "configure").count(), 1);
    assert_eq!(machine.counts(), (1, 0));
}

#[tokio::test]
async fn dropping_the_pool_leaves_no_process_behind() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let unit = machine.unit("one");
    unit.provider("eu").await;
    let pids = machine.processes();
    assert_eq!(machine.counts(), (1, 1), "it is warm");
    drop(unit);
    let Machine { installed, pool } = machine;
    drop(pool);
    for pid in pids {
        eventually("its death", || (!is_running(pid)).then_some(())).await;
    }
    drop(installed);
}
