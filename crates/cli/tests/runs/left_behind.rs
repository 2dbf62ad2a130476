//! Every state in which a run can be left names its next command, and that command works.
//!
//! Walks over one deployment: each row leaves the environment in another way, then nothing is done but what
//! `nimbus status` names next, until it names nothing more. Which commands those are and how each of them ends
//! is part of the row: a walk that takes another way is as wrong as one that leads nowhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{DeployOutput, ID, Site, node_sdk, wait_until};

/// More commands than this lead nowhere.
const MOST_STEPS: usize = 4;

const PROGRAM: &str = "cloud/stacks/a/src/index.js";

const GOES_ON: &[(&str, i32)] = &[("resume", 0)];
const ASKS_FIRST: &[(&str, i32)] = &[("resume", 1), ("resume --forget-creates", 0)];

const FAIL_B: &str = "{on: update, name: b-first, do: fail, message: no}";

/// A state, how the environment is left in it, and the commands from there with their exit codes.
type Row<'a> = (&'a str, &'a dyn Fn(&Walk), &'a [(&'a str, i32)]);

struct Walk {
    site: Site,
}

/// What is under way when a run is killed: a word of its record, and the act that its journal has.
struct Moment<'a> {
    record: &'a str,
    act: Option<(&'a str, &'a str)>,
}

/// The first command in a text.
fn command_in(text: &str) -> Vec<String> {
    let command = text
        .split('`')
        .nth(1)
        .unwrap_or_else(|| panic!("no command: {text}"));
    let words = command.split(' ').map(str::to_owned);
    let words: Vec<_> = words.collect();
    assert_eq!(words[0], "nimbus", "{text}");
    words[1..].to_vec()
}

impl Walk {
    fn newest_run(&self) -> PathBuf {
        let runs = fs::read_dir(self.site.rehearsal(".nimbus/runs"));
        let runs = runs
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        runs.max().unwrap_or_default()
    }

    fn heard(&self, what: &str) -> bool {
        self.count(what) > 0
    }

    fn count(&self, what: &str) -> usize {
        let events = fs::read_to_string(self.newest_run().join("events.jsonl"));
        events.unwrap_or_default().matches(what).count()
    }

    /// The journal of the stack that a resource is of, `a-first` such as.
    fn journal(&self, resource: &str) -> String {
        let stack = &resource[..1];
        let file = format!(".nimbus/journal/p/{ID}-{stack}-dev.jsonl");
        let bytes = fs::read(self.site.rehearsal(&file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Starts a run and waits until it is there. The journal is looked at besides the record: an act is
    /// announced before it is written down, and one that is not written down has never begun.
    fn start_until(&self, verb: &str, orders: &str, flags: &[&str], moment: &Moment<'_>) -> Child {
        let before = self.newest_run();
        let orders = self.site.orders(orders);
        let more = [&["--json", "--orders", &orders], flags].concat();
        // A resumed run has its old record, and the journal of the attempt that died.
        let resumes = verb == "resume";
        let known = if resumes {
            self.count(moment.record)
        } else {
            0
        };
        let old = moment.act.map(|(_, resource)| self.journal(resource));
        let run = self.site.start(verb, &more);
        wait_until(moment.record, || {
            let begun = resumes || self.newest_run() != before;
            begun && self.count(moment.record) > known
        });
        if let Some((kind, resource)) = moment.act {
            let (kind, name) = (format!("\"{kind}\""), format!("::{resource}\""));
            wait_until(&format!("{kind} of {resource}"), || {
                let journal = self.journal(resource);
                let begins = |line: &str| line.contains(&kind) && line.contains(&name);
                Some(&journal) != old.as_ref() && journal.lines().any(begins)
            });
        }
        run
    }

    /// Starts a run and kills it at a moment.
    fn kill_at(&self, verb: &str, orders: &str, flags: &[&str], moment: &Moment<'_>) {
        let mut run = self.start_until(verb, orders, flags, moment);
        signal(&run, Signal::SIGKILL);
        run.wait().unwrap();
    }

    fn deploy(&self, orders: &str, policy: &str) -> DeployOutput {
        let orders = self.site.orders(orders);
        let flags = ["--json", "--orders", &orders, "--on-failure", policy];
        self.site.rehearse("deploy", &flags)
    }

    fn status(&self) -> Value {
        let status = self.site.run(&["status", ID, "--rehearse", "--json"]).ok();
        status.summary()["environments"][0].clone()
    }

    /// Does what is named next until nothing is, and says what that was and how it ended.
    fn follow(&self, state: &str) -> Vec<(String, i32)> {
        let mut done: Vec<(String, i32)> = Vec::new();
        let mut said = String::new();
        loop {
            let status = self.status();
            let Some(next) = status["next"].as_str() else {
                break;
            };
            assert!(done.len() < MOST_STEPS, "{state}: {done:?}, then {next}");
            let command = command_in(next);
            if command.iter().any(|word| word == "--forget-creates") {
                // The stack that waits for it names the same command.
                let named = format!("`nimbus {}`", command.join(" "));
                assert!(said.contains(&named), "{state}: {named}: {said}");
            }
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            let ran = self.site.run(&words);
            let place = format!(" {ID} --environment dev --rehearse");
            done.push((command.join(" ").replace(&place, ""), ran.code));
            said = format!("{}{}", ran.stdout, ran.stderr);
        }
        let open = self.site.resources();
        let open = open.iter().filter(|line| line.starts_with("pending"));
        assert_eq!(open.count(), 0, "{state}: {done:?}: {said}");
        done
    }

    /// Whether the environment is what the manifest says, after a deploy that nothing keeps.
    fn is_sound(&self, state: &str) {
        let deployed = self.site.rehearse("deploy", &["--json"]);
        assert_eq!(deployed.code, 0, "{state}: {}", deployed.stdout);
        let again = self.site.rehearse("deploy", &["--json"]).ok();
        assert_eq!(again.summary()["changes"], false, "{state}");
    }

    /// Makes every stack's resources something to be updated.
    fn set_size(&self, size: &str) {
        for stack in ["a", "b"] {
            self.site.set_size(stack, size);
        }
    }

    /// Gives `a` one resource more, or takes it away again.
    fn has_third(&self, there: bool) {
        let text = fs::read_to_string(self.site.path(PROGRAM)).unwrap();
        let more = "new Thing('a-third', {});\n";
        let text = text.replace(more, "");
        let text = if there {
            text.replace("const first =", &format!("{more}const first ="))
        } else {
            text
        };
        self.site.write(PROGRAM, &text);
    }

    fn walk(&self, rows: &[Row<'_>]) {
        for (number, (state, leave, expected)) in rows.iter().enumerate() {
            // Another than the one that is deployed, from the first row on.
            self.set_size(&(number + 2).to_string());
            leave(self);
            let done = self.follow(state);
            let done: Vec<_> = done.iter().map(|(one, code)| (&**one, *code)).collect();
            assert_eq!(done, *expected, "{state}");
            if number + 1 < rows.len() {
                self.is_sound(state);
            }
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

const STARTED: &str = "\"status\":\"started\"";

/// While a resource is created, updated or deleted.
fn during<'a>(kind: &'a str, resource: &'a str) -> Moment<'a> {
    Moment {
        record: STARTED,
        act: Some((kind, resource)),
    }
}

/// What fails, and what then happens to the update of `a` that goes back.
fn back(effect: &str) -> String {
    format!("orders: [{FAIL_B}, {{on: update, name: a-first, nth: 2, {effect}}}]\n")
}

const BACK: &[&str] = &["--on-failure", "rollback"];

fn walk_of(sdk: &Path) -> Walk {
    Walk {
        site: Site::new(sdk, &[("a", &[]), ("b", &["a"])]),
    }
}

#[test]
fn every_state_that_a_killed_run_leaves_names_a_next_command_that_works() {
    let test = "every_state_that_a_killed_run_leaves_names_a_next_command_that_works";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let walk = walk_of(&sdk);
    let slow_update = "latency: {update: 60}\n";
    let rows: &[Row<'_>] = &[
        (
            "killed in a create",
            &|walk| {
                let create = during("creating", "a-first");
                walk.kill_at("deploy", "latency: {create: 60}\n", &[], &create);
            },
            ASKS_FIRST,
        ),
        (
            "killed in an update",
            &|walk| {
                let update = during("updating", "a-first");
                walk.kill_at("deploy", slow_update, &[], &update);
            },
            GOES_ON,
        ),
        (
            "killed again while it was resumed",
            &|walk| {
                let update = during("updating", "a-first");
                walk.kill_at("deploy", slow_update, &[], &update);
                let again = Moment {
                    record: "\"resumed\"",
                    act: update.act,
                };
                walk.kill_at("resume", slow_update, &[], &again);
            },
            GOES_ON,
        ),
        (
            "killed while it was rolled back",
            &|walk| {
                let undone = Moment {
                    record: "\"rolling_back\"",
                    act: Some(("updating", "a-first")),
                };
                walk.kill_at("deploy", &back("do: stall, seconds: 60"), BACK, &undone);
            },
            // It goes on going back, and a run that was rolled back did not succeed.
            &[("resume", 1)],
        ),
        (
            "killed in a create while it was rolled back",
            &|walk| {
                walk.has_third(true);
                walk.is_sound("with one resource more");
                walk.has_third(false);
                walk.set_size("back");
                let orders = format!(
                    "orders: [{FAIL_B}, {{on: create, name: a-third, do: stall, seconds: 60}}]\n"
                );
                let undone = Moment {
                    record: "\"rolling_back\"",
                    act: Some(("creating", "a-third")),
                };
                walk.kill_at("deploy", &orders, BACK, &undone);
            },
            // A run that could not go back is over: another one does.
            &[("resume", 1), ("rollback --forget-creates", 0)],
        ),
        (
            "killed while it was refreshed",
            &|walk| {
                let looking = Moment {
                    record: "\"running\"",
                    act: None,
                };
                walk.kill_at("refresh", "latency: {read: 60}\n", &[], &looking);
            },
            GOES_ON,
        ),
        (
            "ended at once by a second Ctrl-C",
            &|walk| {
                walk.has_third(true);
                let create = during("creating", "a-third");
                let slow = "latency: {create: 3000}\n";
                let run = walk.start_until("deploy", slow, &[], &create);
                signal(&run, Signal::SIGINT);
                let heard = "stopping: running steps finish";
                wait_until(heard, || walk.heard(heard));
                signal(&run, Signal::SIGINT);
                assert_eq!(run.wait_with_output().unwrap().status.code(), Some(130));
            },
            ASKS_FIRST,
        ),
        (
            "killed while it was destroyed",
            &|walk| {
                let delete = during("deleting", "b-second");
                walk.kill_at("destroy", "latency: {delete: 60}\n", &[], &delete);
            },
            GOES_ON,
        ),
    ];
    walk.walk(rows);
    assert_eq!(walk.site.resources(), [""; 0], "everything was destroyed");
}

#[test]
fn every_state_that_a_failed_run_leaves_names_a_next_command_that_works() {
    let test = "every_state_that_a_failed_run_leaves_names_a_next_command_that_works";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let walk = walk_of(&sdk);
    walk.has_third(true);
    walk.is_sound("at first");
    let held = |ran: DeployOutput| {
        let summary = ran.with(1).summary();
        assert_eq!(summary["result"], "failed", "{summary}");
    };
    let rows: &[Row<'_>] = &[
        (
            "failed and held",
            &|walk| held(walk.deploy(&format!("orders: [{FAIL_B}]\n"), "hold")),
            GOES_ON,
        ),
        (
            "one stack that failed",
            &|walk| {
                walk.site.rehearse("deploy-stack", &["a"]).ok();
                let orders = walk.site.orders(&format!("orders: [{FAIL_B}]\n"));
                let flags = ["b", "--json", "--orders", &orders, "--on-failure", "hold"];
                held(walk.site.rehearse("deploy-stack", &flags));
            },
            GOES_ON,
        ),
        (
            "a delete that failed",
            &|walk| {
                walk.has_third(false);
                let order = "orders: [{on: delete, name: a-third, do: fail, message: no}]\n";
                held(walk.deploy(order, "hold"));
            },
            GOES_ON,
        ),
        (
            "a check that failed",
            &|walk| {
                declare_check(&walk.site);
                held(walk.deploy("orders: []\n", "hold"));
                fs::write(walk.site.rehearsal("fine"), "").unwrap();
            },
            GOES_ON,
        ),
        (
            "a stack that took too long",
            &|walk| {
                // Two updates of three minutes each, where two minutes are allowed, sixty times as fast.
                estimate(&walk.site, "a", 120);
                estimate(&walk.site, "b", 1);
                let orders = walk.site.orders("latency: {update: 180}\n");
                let more = ["--json", "--orders", &orders, "--time-scale", "0.0166"];
                let more = [&more[..], &["--on-failure", "hold"]].concat();
                let late = walk.site.rehearse("deploy", &more);
                assert!(late.stdout.contains("took longer than"), "{}", late.stdout);
                held(late);
                estimate(&walk.site, "b", 120);
            },
            GOES_ON,
        ),
        (
            "rolled back but for a stack that is stuck",
            &|walk| {
                let orders = back("do: fail, message: not back either");
                let stuck = walk.deploy(&orders, "rollback").with(1);
                let summary = stuck.summary();
                assert_eq!(summary["result"], "needs_attention", "{summary}");
                assert_eq!(summary["next"], walk.status()["next"]);
            },
            &[("rollback", 0)],
        ),
        (
            "a rollback that failed",
            &|walk| {
                let orders = "orders: [{on: update, name: a-first, do: fail, message: no}]\n";
                let orders = walk.site.orders(orders);
                let flags = ["--to-version", "1", "--orders", &orders];
                let failed = walk.site.rehearse("rollback", &flags).with(1);
                assert!(failed.stdout.contains(": failed in"), "{}", failed.stdout);
                assert!(
                    !failed.stdout.contains("ollback completed"),
                    "{}",
                    failed.stdout
                );
            },
            GOES_ON,
        ),
        (
            "cancelled by somebody else while it was watched",
            &cancelled,
            GOES_ON,
        ),
    ];
    walk.walk(rows);
    walk.is_sound("at last");
}

/// Declares a check of `dev` that passes once a file is there.
fn declare_check(site: &Site) {
    let path = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let check = "\n    dev:\n      checks: {smoke: {command: 'test -e fine', rehearse: true}}";
    let declared = text.replacen("\n    dev:", check, 1);
    assert_ne!(declared, text);
    fs::write(&path, declared).unwrap();
}

/// Says how long a stack should take.
fn estimate(site: &Site, stack: &str, minutes: u32) {
    let template = site.path(&format!("cloud/tools/templates/config/{stack}.yaml"));
    let text = fs::read_to_string(&template).unwrap();
    let text = text.split("estimate:").next().unwrap();
    let estimate = format!("estimate: {{minutes: {minutes}, resources: 2}}\n");
    fs::write(&template, format!("{text}{estimate}")).unwrap();
}

/// `run watch` looks on, `run cancel` ends it, `run view` says how it ended and what comes next.
fn cancelled(walk: &Walk) {
    let before = walk.newest_run();
    let orders = walk.site.orders("latency: {update: 2}\n");
    let run = walk.site.start("deploy", &["--json", "--orders", &orders]);
    wait_until("an update is under way", || {
        walk.newest_run() != before && walk.heard(STARTED)
    });
    let name = walk
        .newest_run()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let view = ["run", "view", &name, "--rehearse", "--json"];
    assert_eq!(walk.site.run(&view).ok().summary()["result"], "running");
    let watch = walk
        .site
        .command(&["run", "watch", ID, "--rehearse"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    walk.site.run(&["run", "cancel", &name, "--rehearse"]).ok();
    assert_eq!(run.wait_with_output().unwrap().status.code(), Some(130));
    let watched = watch.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&watched.stdout).into_owned();
    assert_eq!(watched.status.code(), Some(130), "{told}");
    assert!(told.contains("interrupted"), "{told}");
    let seen = walk.site.run(&view).ok().summary();
    assert_eq!(seen["result"], "interrupted", "{seen}");
    assert!(
        seen["next"].as_str().unwrap().contains("nimbus resume"),
        "{seen}"
    );
    let over = walk.site.run(&["run", "cancel", &name, "--rehearse"]);
    assert_ne!(over.code, 0, "{}", over.stdout);
    assert!(over.stderr.contains("is not running"), "{}", over.stderr);
}
