//! F1: an engine that is killed anywhere leaves no object behind that its state does not explain.
//!
//! Each seed is a real process with a program of its own, killed by itself at one of its moments: at an
//! event (before an intent, after an outcome), before the cloud acts (after the intent), after the cloud
//! acted (before the outcome). The cloud writes down what it did in a file of its own; another process
//! compares that with the state.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nimbus_core::StackOperation;
use nimbus_engine_model::{OperationKind, Snapshot};
use nimbus_engine_operations::{Cancellation, OperationOptions};
use nimbus_engine_testing::{Cloud, CloudAct, CloudMoment, ScriptedResource};
use nimbus_test_tools::short_or_long;
use nix::sys::signal::{Signal, kill};
use parking_lot::Mutex;

use crate::support::{OnEvent, Site, bucket};

const PLACE: &str = "NIMBUS_TEST_PLACE";
const SEED: &str = "NIMBUS_TEST_SEED";
const MOMENT: &str = "NIMBUS_TEST_MOMENT";
const ENTRY: &str = "kills::an_engine_of_another_test";

/// Numbers that follow from a seed, the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Up to eight resources, some of which need one before them.
    fn program(&mut self) -> Vec<ScriptedResource> {
        let mut made: Vec<String> = Vec::new();
        let mut resources = Vec::new();
        for name in 0..8 {
            if self.below(4) == 0 {
                continue;
            }
            let name = format!("r{name}");
            let mut resource = bucket(&name)
                .prop("foo", self.below(3) as f64)
                .prop("replace", self.below(2) as f64);
            if self.below(3) == 0 {
                resource = resource.option(|goal| goal.delete_before_replace = Some(true));
            }
            if !made.is_empty() && self.below(2) == 0 {
                let needed = &made[self.below(made.len() as u64) as usize];
                resource = resource.from_output("needs", needed, "computed");
            }
            made.push(name);
            resources.push(resource);
        }
        resources
    }
}

/// Counts moments, and ends the process at one of them.
struct Moments {
    passed: AtomicUsize,
    /// None counts before it is set.
    last: AtomicUsize,
    truth: Mutex<File>,
}

impl Moments {
    fn pass(&self) {
        let last = self.last.load(Ordering::SeqCst);
        if last > 0 && self.passed.fetch_add(1, Ordering::SeqCst) + 1 == last {
            let _ = kill(nix::unistd::getpid(), Signal::SIGKILL);
        }
    }

    fn cloud(self: &Arc<Self>) -> Cloud {
        let moments = Arc::clone(self);
        Cloud::observed(Box::new(move |moment| {
            if let CloudMoment::After(act, urn) = moment {
                let urn = urn.map(ToString::to_string).unwrap_or_default();
                let line = match act {
                    CloudAct::Created { id } => format!("created {id} {urn}\n"),
                    CloudAct::Updated { id } => format!("updated {id} {urn}\n"),
                    CloudAct::Deleted { id } => format!("deleted {id} {urn}\n"),
                };
                let written = moments.truth.lock().write_all(line.as_bytes());
                written.expect("what was done is written down");
            }
            moments.pass();
        }))
    }
}

/// The process that is killed; in the test runner itself it has nothing to do.
#[test]
fn an_engine_of_another_test() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let (seed, moment) = (number(SEED).expect("a seed"), number(MOMENT).expect("one"));
    let moments = Arc::new(Moments {
        passed: AtomicUsize::new(0),
        last: AtomicUsize::new(0),
        truth: Mutex::new(File::create(place.join("truth")).expect("a file")),
    });
    let site = Site::at(&place, moments.cloud());
    let mut numbers = Numbers(seed);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        site.program(numbers.program());
        site.up().await.succeeded();
        site.program(numbers.program());
        moments.last.store(moment as usize, Ordering::SeqCst);
        let options = OperationOptions {
            parallel: Some(1 + seed as usize % 3),
            ..OperationOptions::default()
        };
        let heard = Arc::clone(&moments);
        let events: OnEvent = Box::new(move |_| heard.pass());
        site.watched(
            StackOperation::Update,
            options,
            &Cancellation::new(),
            Some(events),
        )
        .await
        .succeeded();
    });
    let passed = moments.passed.load(Ordering::SeqCst).to_string();
    std::fs::write(place.join("moments"), passed).expect("how many there were");
}

/// Whether the process was killed; if there was no such moment, how many there are.
fn killed_at(place: &Path, seed: u64, moment: u64) -> Result<(), u64> {
    let mut engine = Command::new(std::env::current_exe().expect("this program"));
    engine
        .args(["--exact", ENTRY, "--test-threads=1"])
        .envs([(SEED, seed.to_string()), (MOMENT, moment.to_string())])
        .env(PLACE, place)
        .stdout(Stdio::null());
    let status = engine.status().expect("it starts");
    if status.signal() == Some(Signal::SIGKILL as i32) {
        return Ok(());
    }
    assert!(status.success(), "seed {seed}: {status}");
    let passed = std::fs::read_to_string(place.join("moments")).expect("a number");
    Err(passed.parse().expect("a number"))
}

/// What the cloud says exists: ids with the resource that each belongs to.
fn truth(place: &Path) -> BTreeMap<String, String> {
    let mut objects = BTreeMap::new();
    let text = std::fs::read_to_string(place.join("truth")).expect("the cloud's own book");
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["created", id, urn] => drop(objects.insert(id.to_owned(), urn.to_owned())),
            ["deleted", id, _] => drop(objects.remove(id)),
            _ => {}
        }
    }
    objects
}

/// Objects that neither a resource nor a pending create explains, and resources without an object that
/// no pending delete explains.
fn unexplained(objects: &BTreeMap<String, String>, state: &Snapshot) -> Vec<String> {
    let resources = || {
        let all = state.resources.iter();
        all.filter(|one| one.type_ == "pkg:index:Bucket")
    };
    let recorded: BTreeSet<&str> = resources().filter_map(|one| one.id.as_deref()).collect();
    let mut creating: Vec<String> = Vec::new();
    let mut deleting: BTreeSet<&str> = BTreeSet::new();
    for pending in &state.pending_operations {
        match pending.kind {
            OperationKind::Creating => creating.push(pending.resource.urn.to_string()),
            OperationKind::Deleting => deleting.extend(pending.resource.id.as_deref()),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for (id, urn) in objects {
        if recorded.contains(id.as_str()) {
            continue;
        }
        // One begun create explains one object.
        match creating.iter().position(|begun| begun == urn) {
            Some(place) => drop(creating.swap_remove(place)),
            None => found.push(format!("{id} of {urn} is nobody's")),
        }
    }
    // One that was deleted to be made anew stays on record without its object.
    for one in resources().filter(|one| !one.pending_replacement) {
        let Some(id) = one.id.as_deref() else {
            continue;
        };
        if !objects.contains_key(id) && !deleting.contains(id) {
            found.push(format!("{id} is recorded and was never told to go"));
        }
    }
    found
}

async fn check_seed(seed: u64) -> bool {
    let place = tempfile::tempdir().expect("a temporary folder");
    let mut moment = 1 + Numbers(seed ^ 0xface).below(60);
    while let Err(moments) = killed_at(place.path(), seed, moment) {
        if moments == 0 {
            return false;
        }
        moment = 1 + moment % moments;
        std::fs::remove_dir_all(place.path().join("state")).expect("begun anew");
    }
    let site = Site::at(place.path(), Cloud::default());
    let session = site.hold().await;
    let state = session.snapshot().expect("there is a state");
    let found = unexplained(&truth(place.path()), state);
    assert!(
        found.is_empty(),
        "seed {seed}, killed at moment {moment}: {found:?}\n{:?}",
        state.pending_operations
    );
    session.end().await.expect("it can be given back");
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_engine_leaves_no_object_that_its_state_does_not_explain() {
    let seeds = short_or_long(24, 500);
    let (mut killed, mut seed) = (0, 0);
    while killed < seeds {
        let pair = [seed, seed + 1].map(|seed| tokio::spawn(check_seed(seed)));
        for one in pair {
            killed += usize::from(one.await.expect("the seed is sound"));
        }
        seed += 2;
    }
}
