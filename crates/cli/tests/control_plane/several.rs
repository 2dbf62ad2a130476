//! Several servers on one database: when one goes, its runs and its clients go on at the others.

use std::time::Instant;

use nimbus_control_testing::{ADMINISTRATOR, TestValkey, shared_cluster};
use nimbus_test_tools::{Tool, is_long, tool_or_skip};
use serde_json::{Value, json};

use crate::deployments::{ApiCaller, register};
use crate::support::{PATIENCE, Site, Up, request};

/// A client of runs that knows how far it is, and asks whichever server there is.
struct FollowedRun {
    id: String,
    events: Vec<Value>,
}

impl FollowedRun {
    /// Reads on after the last event that it has; whether the run is over.
    fn read(&mut self, caller: &ApiCaller) -> bool {
        let after = self.events.len();
        let page = caller.get(&format!("/runs/{}/events?after={after}", self.id));
        for item in page["items"].as_array().unwrap() {
            let next = u64::try_from(self.events.len()).unwrap() + 1;
            assert_eq!(item["seq"], next, "nothing is lost or doubled");
            self.events.push(item["event"].clone());
        }
        page["complete"] == true
    }

    fn has_begun(&self) -> bool {
        self.events.iter().any(|event| event["status"] == "running")
    }
}

fn read_all(runs: &mut [FollowedRun], caller: &ApiCaller, enough: impl Fn(&[FollowedRun]) -> bool) {
    let started = Instant::now();
    loop {
        // Every one is read, also after one that is not over.
        let mut open = 0;
        for run in runs.iter_mut() {
            open += usize::from(!run.read(caller));
        }
        if open == 0 || enough(runs) {
            return;
        }
        assert!(started.elapsed() < PATIENCE);
        // tidy-allow(sleep): the events of runs are asked for, as a client without a socket does
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn start(caller: &ApiCaller, count: usize) -> Vec<FollowedRun> {
    let rehearse =
        json!({"environment": "dev", "rehearsal": true, "transpile_only": true, "force": true});
    let started = (0..count).map(|number| {
        let run = caller.post(&format!("/deployments/D1N{number}/deploy"), &rehearse);
        FollowedRun {
            id: run["id"].as_str().unwrap().to_owned(),
            events: Vec::new(),
        }
    });
    started.collect()
}

fn succeeded(runs: &[FollowedRun], caller: &ApiCaller) {
    for run in runs {
        let ended = caller.get(&format!("/runs/{}", run.id));
        assert_eq!(ended["result"], "succeeded", "{ended} {:?}", run.events);
        // What was read in parts from several servers is what one reads at once.
        let mut whole = FollowedRun {
            id: run.id.clone(),
            events: Vec::new(),
        };
        while !whole.read(caller) {}
        assert_eq!(whole.events, run.events);
    }
}

#[test]
fn runs_and_their_clients_go_on_through_a_kill_and_a_rolling_restart() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let valkey = TestValkey::start(&tool_or_skip!(Tool::Valkey));
    let count = if is_long() { 50 } else { 3 };
    let socket = shared_cluster(&postgres).display().to_string();
    let url = format!("postgresql://{ADMINISTRATOR}@localhost/nimbus?host={socket}");
    let keys = tempfile::tempdir().unwrap();
    let keys = keys.path().display().to_string();
    let more = ["--database-url", &url, "--keys", &keys];
    let site = || Site::of_programs(&postgres, &sdk).with("NIMBUS_VALKEY_URL", &valkey.url());
    let (one, two) = (site(), site());
    let up = |site: &Site| -> Up {
        site.try_up_with(&more)
            .unwrap_or_else(|refusal| panic!("{refusal}"))
    };
    let mut first = up(&one);
    one.set_up(&first);
    let second = up(&two);
    let here = ApiCaller::new(&first);
    register(&here, "slow", "", 1500);
    let template = "name: one\ndescription: A stack\nenvironments:\n  dev: {enabled: true, \
                    account: '111111111111', region: eu-west-1}\nstacks: {slow: }\n";
    here.post("/templates", &json!({"content": template}));
    for number in 0..count {
        let id = format!("D1N{number}");
        let wanted =
            json!({"id": id, "organization": "o", "project": id.to_lowercase(), "template": "one"});
        here.post("/deployments", &wanted);
    }
    // One server is killed while runs are at work.
    let mut runs = start(&here, count);
    read_all(&mut runs, &here, |runs| {
        runs.iter().any(FollowedRun::has_begun)
    });
    first.process.kill().unwrap();
    first.process.wait().unwrap();
    let killed = Instant::now();
    // A token is good at any of them, and what was read is not read again.
    let there = ApiCaller {
        address: second.address(),
        token: here.token,
    };
    read_all(&mut runs, &there, |runs| {
        runs.iter().any(FollowedRun::has_begun)
    });
    let first = up(&one);
    let (status, _) = request(&first.address(), "GET", "/ready", "", "");
    assert_eq!(status, 200);
    assert!(killed.elapsed() < PATIENCE);
    read_all(&mut runs, &there, |_| false);
    succeeded(&runs, &there);
    // The other one is stopped in order, as for an update: it hands over and ends well.
    let mut runs = start(&there, count);
    read_all(&mut runs, &there, |runs| {
        runs.iter().any(FollowedRun::has_begun)
    });
    assert_eq!(second.stop(), 0);
    let here = ApiCaller {
        address: first.address(),
        token: there.token,
    };
    read_all(&mut runs, &here, |_| false);
    succeeded(&runs, &here);
    assert_eq!(first.stop(), 0);
}
