//! Workers on other machines: processes that have the server's address and a key, and nothing else of it.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nimbus_test_tools::{Tool, tool_or_skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::deployments::{ApiCaller, register};
use crate::support::{PATIENCE, Site, Up, is_alive, wait_for};

/// Another machine: a folder, a home and a process of its own.
struct OtherMachine {
    site: Site,
    process: Child,
    name: String,
}

impl OtherMachine {
    /// Joins with a key, and waits until it is listed.
    fn join(site: Site, caller: &ApiCaller, name: &str, server: &str, key: &str) -> Self {
        let token = site.log("token");
        fs::write(&token, key).unwrap();
        let process = site
            .command(&["worker", "--server", server, "--name", name, "--json"])
            .args(["--token-file", token.to_str().unwrap(), "--data-dir"])
            .arg(site.data())
            .stdin(Stdio::null())
            .stdout(File::create(site.log("worker.out")).unwrap())
            .stderr(File::create(site.log("worker.err")).unwrap())
            .spawn()
            .unwrap();
        let mut joined = Self {
            site,
            process,
            name: name.to_owned(),
        };
        let started = Instant::now();
        while joined.status(caller) != "present" {
            let ended = joined.process.try_wait().unwrap();
            assert!(ended.is_none(), "{}", joined.said());
            assert!(started.elapsed() < PATIENCE, "{}", joined.said());
            // tidy-allow(sleep): nothing tells when another process has joined
            std::thread::sleep(Duration::from_millis(50));
        }
        joined
    }

    fn status(&self, caller: &ApiCaller) -> String {
        let all = caller.get("/workers");
        let mut all = all["items"].as_array().unwrap().iter();
        let own = all.find(|worker| worker["name"] == *self.name);
        own.map_or_else(String::new, |own| {
            own["status"].as_str().unwrap().to_owned()
        })
    }

    fn said(&self) -> String {
        fs::read_to_string(self.site.log("worker.out")).unwrap()
            + &fs::read_to_string(self.site.log("worker.err")).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().cast_signed()), signal).unwrap();
    }

    /// How it ended.
    fn wait(&mut self) -> i32 {
        self.process.wait().unwrap().code().unwrap_or(-1)
    }

    fn has_taken(&self, run: &Value) -> bool {
        let id = run["id"].as_str().unwrap();
        let said = self.said();
        said.lines()
            .any(|line| line.contains("a run was taken") && line.contains(id))
    }
}

impl Drop for OtherMachine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server that carries nothing out itself, and somebody who runs it.
struct Headquarters {
    site: Site,
    server: Up,
    caller: ApiCaller,
}

impl Headquarters {
    fn new(postgres: &std::path::Path, sdk: &std::path::Path, milliseconds: u32) -> Self {
        let site = Site::of_programs(postgres, sdk).with("NIMBUS_RUNS_AT_ONCE", "0");
        let server = site.up();
        site.set_up(&server);
        let caller = ApiCaller::new(&server);
        register(&caller, "slow", "", milliseconds);
        let template = "name: one\ndescription: A stack\nenvironments:\n  dev: {enabled: true, \
                        account: '111111111111', region: eu-west-1}\nstacks: {slow: }\n";
        caller.post("/templates", &json!({"content": template}));
        let wanted =
            json!({"id": "D1FAR", "organization": "o", "project": "far", "template": "one"});
        caller.post("/deployments", &wanted);
        Self {
            site,
            server,
            caller,
        }
    }

    /// The key that a worker joins with, and its id.
    fn key(&self, name: &str) -> (String, String) {
        let made = self.site.ask(&["worker", "token", name]);
        let text = |field: &str| made["data"][field].as_str().unwrap().to_owned();
        (text("secret"), text("id"))
    }

    fn join(&self, machine: Site, name: &str) -> OtherMachine {
        let address = format!("http://{}", self.server.address());
        let (key, _) = self.key(name);
        OtherMachine::join(machine, &self.caller, name, &address, &key)
    }

    fn deploy(&self) -> Value {
        let rehearse =
            json!({"environment": "dev", "rehearsal": true, "transpile_only": true, "force": true});
        self.caller.post("/deployments/D1FAR/deploy", &rehearse)
    }

    /// Waits until the program of a run is at work.
    fn at_work(&self, run: &Value) {
        self.caller.watch(run, |event| event["event"] == "resource");
    }

    fn succeeded(&self, run: &Value) -> Vec<Value> {
        let events = self.caller.watch(run, |_| false);
        let id = run["id"].as_str().unwrap();
        let ended = self.caller.get(&format!("/runs/{id}"));
        assert_eq!(ended["result"], "succeeded", "{ended} {events:?}");
        events
    }
}

#[test]
fn a_run_is_carried_out_on_another_machine_that_is_listed_drained_and_leaves() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let office = Headquarters::new(&postgres, &sdk, 0);
    let run = office.deploy();
    let mut machine = office.join(Site::of_programs(&postgres, &sdk), "far-1");
    office.succeeded(&run);
    assert!(machine.has_taken(&run), "{}", machine.said());
    // What it left is the server's: the next run finds nothing to do, and the states are there.
    let state = office
        .caller
        .get("/deployments/D1FAR/state?environment=dev&rehearsal=true");
    assert!(state.to_string().contains("slow"), "{state}");
    let again = json!({"environment": "dev", "rehearsal": true, "transpile_only": true});
    let second = office.caller.post("/deployments/D1FAR/deploy", &again);
    let events = office.succeeded(&second);
    assert!(
        events.iter().any(|event| event["status"] == "skipped"),
        "{events:?}"
    );
    // The machine has no file with the key of any tenant, nor the server's.
    assert!(!machine.site.data().join("keys").exists());
    // Drained, it takes nothing more; resumed, it does.
    let drained = office.site.ask(&["worker", "drain", "far-1"]);
    assert_eq!(drained["data"]["status"], "draining");
    let third = office.deploy();
    wait_for("it beats while it is drained", || {
        machine.status(&office.caller) == "draining"
    });
    assert!(!machine.has_taken(&third), "{}", machine.said());
    office.site.ask(&["worker", "resume", "far-1"]);
    office.succeeded(&third);
    machine.signal(Signal::SIGTERM);
    assert_eq!(machine.wait(), 0, "{}", machine.said());
    assert_eq!(machine.status(&office.caller), "left");
    assert!(is_alive(office.server.pid().as_raw()));
}

#[test]
fn a_worker_that_is_killed_or_sleeps_past_its_lease_loses_its_run_to_another() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let office = Headquarters::new(&postgres, &sdk, 6000);
    let machine = || Site::of_programs(&postgres, &sdk);
    let mut first = office.join(machine(), "far-1");
    // Killed without a word.
    let run = office.deploy();
    office.at_work(&run);
    first.signal(Signal::SIGKILL);
    first.wait();
    let killed = Instant::now();
    let second = office.join(machine(), "far-2");
    wait_for("another worker takes over", || second.has_taken(&run));
    assert!(killed.elapsed() < Duration::from_secs(60));
    office.succeeded(&run);
    // Asleep past its lease: whoever has the run then is the only one who writes.
    let run = office.deploy();
    office.at_work(&run);
    second.signal(Signal::SIGSTOP);
    let third = office.join(machine(), "far-3");
    wait_for("another worker takes over", || third.has_taken(&run));
    second.signal(Signal::SIGCONT);
    wait_for("the one that slept hears that its run is lost", || {
        second.said().contains("a run was lost to another worker")
    });
    let events = office.succeeded(&run);
    let ends = events
        .iter()
        .filter(|event| event["event"] == "run" && event["status"] == "ended");
    assert_eq!(ends.count(), 1, "{events:?}");
}
