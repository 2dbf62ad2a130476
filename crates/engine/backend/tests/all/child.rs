//! What this test binary does when another test has started it as a process of its own.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use nimbus_engine_backend::BackendError;
use nimbus_engine_backend::LeaseError;

use crate::support::*;

/// The entry point of child processes; in the test runner itself it has nothing to do.
#[test]
fn process() {
    let Some((role, root)) = role() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    match role.as_str() {
        "hold" => runtime.block_on(hold(&root)),
        "append" => runtime.block_on(append(&root)),
        "update" => runtime.block_on(whole_updates(&root)),
        "race" => runtime.block_on(race(&root)),
        "sleeper" => runtime.block_on(crate::s3::sleeper()),
        "fill" => runtime.block_on(fill(&root)),
        other => panic!("no role {other}"),
    }
}

pub(crate) const ENTRY: &str = "child::process";

/// Starts what a child says; the test harness writes to the same stream, without line breaks.
pub(crate) const SAYS: &str = "child says: ";

pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{SAYS}{text}").unwrap();
    out.flush().unwrap();
}

fn wait_for_parent() {
    let mut byte = [0];
    let _ = std::io::stdin().read(&mut byte);
}

/// Takes the lease and keeps it until the end.
async fn hold(root: &Path) {
    let stack = local(root).await.stack(shop_dev());
    let session = begin(&stack).await;
    say(&format!("held {}", session.lease().epoch()));
    wait_for_parent();
}

/// Appends beginnings and outcomes from several tasks at once and says which are durable.
async fn append(root: &Path) {
    let stack = local(root).await.stack(shop_dev());
    let session = begin(&stack).await;
    let journal = session.journal();
    let next = Arc::new(std::sync::atomic::AtomicU64::new(1));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (journal, next) = (Arc::clone(&journal), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let act = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let name = format!("r{act}");
                journal.append(begins(act, &name)).await.unwrap();
                say(&format!("begun {name}"));
                journal.append(succeeds(act, &name)).await.unwrap();
                say(&format!("done {name}"));
            }
        });
    }
    tasks.join_all().await;
}

/// One update after the other, each with one resource more.
async fn whole_updates(root: &Path) {
    let stack = local(root).await.stack(shop_dev());
    let mut all: Vec<String> = Vec::new();
    loop {
        let name = format!("r{}", all.len());
        let session = begin(&stack).await;
        session.journal().append(begins(1, &name)).await.unwrap();
        session.journal().append(succeeds(1, &name)).await.unwrap();
        all.push(name);
        let state = snapshot(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let update = update(nimbus_engine_backend::UpdateResult::Succeeded);
        session.finish(state, &update).await.unwrap();
        say(&format!("finished {}", all.len()));
    }
}

/// Tries once to take the lease when the parent says so, and keeps it until told to stop.
async fn race(root: &Path) {
    let stack = local(root).await.stack(shop_dev());
    loop {
        let mut byte = [0];
        if std::io::stdin().read(&mut byte).unwrap() == 0 {
            return;
        }
        let session = match stack.begin(request()).await {
            Ok(session) => {
                say(&format!("won {}", session.lease().epoch()));
                Some(session)
            }
            Err(BackendError::Lease(LeaseError::Held { .. } | LeaseError::HeldByPulumi { .. })) => {
                say("lost");
                None
            }
            Err(error) => panic!("{error}"),
        };
        // The parent has heard from everybody.
        assert_eq!(std::io::stdin().read(&mut byte).unwrap(), 1);
        if let Some(session) = session {
            session.end().await.unwrap();
        }
        say("ready");
    }
}

/// Largest file that this process may write, from now on. The limit can be raised again.
fn limit_files(bytes: u64) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, bytes, hard).unwrap();
}

/// Writes until there is no room, gets some, and loses it again.
async fn fill(root: &Path) {
    let stack = local(root).await.stack(shop_dev());
    let session = begin(&stack).await;
    let journal = session.journal();
    limit_files(30_000);
    let mut act = 1;
    let mut append = async || {
        let name = format!("r{act}-{}", "x".repeat(500));
        let appended = journal.append(begins(act, &name)).await;
        act += 1;
        appended.map(|()| name)
    };
    let error = loop {
        match append().await {
            Ok(name) => say(&format!("begun {name}")),
            Err(error) => break error,
        }
    };
    say(&format!("refused {error}"));
    limit_files(60_000);
    let name = append().await.expect("there is room again");
    say(&format!("begun {name}"));
    let large: Vec<String> = (0..1000).map(|n| format!("large{n}")).collect();
    let large: Vec<&str> = large.iter().map(String::as_str).collect();
    let update = update(nimbus_engine_backend::UpdateResult::Succeeded);
    let finish = session.finish(snapshot(&large), &update).await;
    let error: nimbus_core::Error = finish.unwrap_err().into();
    say(&format!("finish {} {}", error.code(), error.message()));
}
