//! Deployments of a server from the command line: what is shown, how it ends, and what a broken connection costs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nimbus_test_tools::{Tool, tool_or_skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use regex::Regex;
use serde_json::{Value, json};

use crate::deployments::{ApiCaller, program};
use crate::support::{AdminOutput, EMAIL, PASSWORD, Site, Up, wait_for};

pub(crate) const ID: &str = "D1PAIR";
const RUN: [&str; 5] = [ID, "--environment", "dev", "--rehearse", "--no-typecheck"];

fn write(site: &Site, path: &str, text: &str) {
    let place = site.folder.path().join("cloud").join(path);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, text).unwrap();
}

fn put_stack(site: &Site, name: &str, needs: &str, source: &str) {
    let template = format!(
        "name: {name}\ndependencies: [{needs}]\nconfig:\n  size: '1'\noutputs: {{first: }}\n"
    );
    write(
        site,
        &format!("tools/templates/config/{name}.yaml"),
        &template,
    );
    let folder = format!("stacks/{name}/src");
    let project = format!("name: {name}\nruntime: nodejs\ndescription: {name}\n");
    write(site, &format!("{folder}/Pulumi.yaml"), &project);
    write(
        site,
        &format!("{folder}/package.json"),
        "{\"main\":\"index.js\"}\n",
    );
    write(site, &format!("{folder}/index.js"), source);
}

/// Two small programs and a deployment of them, in files.
fn workspace(site: &Site, sdk: &Path) {
    put_stack(site, "first", "", &program(1));
    put_stack(site, "second", "first", &program(1));
    let template = "name: pair\ndescription: Two stacks\nenvironments:\n  dev: {enabled: true, \
                    account: '111111111111', region: eu-west-1}\nstacks: {first: , second: }\n";
    write(site, "tools/templates/custom/pair.yaml", template);
    fs::create_dir_all(site.folder.path().join("cloud/deploy")).unwrap();
    let modules = site.folder.path().join("cloud/stacks/node_modules");
    symlink(sdk.join("node_modules"), modules).unwrap();
    let init = [
        "init",
        ID,
        "--org",
        "o",
        "--project",
        "p",
        "--template",
        "pair",
    ];
    site.run_with(&init, "").expect(0);
}

impl AdminOutput {
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{}", self.stdout))
    }

    /// What was said, without times, numbers of runs, and where.
    fn plain(&self) -> (String, String) {
        let hide = [
            (r" --server http://[^ `]*", ""),
            (r"\bR\d{4}\b", "R"),
            (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME"),
            (r"(?m)^ *\d+s ", "TIME "),
            (r"\bin \d+(\.\d+)?s\b", "in TIME"),
            (r"~\d+ seconds", "~N seconds"),
            (r"by [^ \n]+", "by SOMEBODY"),
            (r"id=[^ ]+", "id=ID"),
            // What a terminal would act on, and where things lie: a server tells neither.
            (r"\x1b\[[0-9;]*m", ""),
            (r"/[^ '(]*/stacks/", "stacks/"),
            (r"/[^ '(]*/node_modules/", "node_modules/"),
            (r"/[^ '(]*/\.cache/", "~/.cache/"),
        ];
        let plain = |text: &str| {
            hide.iter().fold(text.to_owned(), |text, (pattern, with)| {
                let found = Regex::new(pattern).unwrap();
                found.replace_all(&text, *with).into_owned()
            })
        };
        (plain(&self.stdout), plain(&self.stderr))
    }
}

/// A server, and the same commands on files of this machine.
pub(crate) struct Both {
    site: Site,
    pub(crate) server: Up,
    address: String,
}

impl Both {
    pub(crate) fn new(postgres: &Path, sdk: &Path) -> Self {
        let site = Site::of_programs(postgres, sdk);
        let server = site.up();
        site.set_up(&server);
        workspace(&site, sdk);
        let address = server.report["address"].as_str().unwrap().to_owned();
        Self {
            site,
            server,
            address,
        }
    }

    pub(crate) fn there(&self, arguments: &[&str]) -> AdminOutput {
        let mut all = vec!["--server", self.address.as_str()];
        all.extend(arguments);
        self.site.run_with(&all, "")
    }

    fn here(&self, arguments: &[&str]) -> AdminOutput {
        self.site.run_with(arguments, "")
    }

    pub(crate) fn push(&self) -> Value {
        self.there(&["workspace", "push", "--json"])
            .expect(0)
            .json()
    }

    /// Says and ends the same, here and there.
    pub(crate) fn same(&self, arguments: &[&str], code: i32) -> AdminOutput {
        let here = self.here(arguments);
        let there = self.there(arguments);
        let shown = format!("{arguments:?}\n{}\n{}", here.stderr, there.stderr);
        assert_eq!((here.code, there.code), (code, code), "{shown}");
        assert_eq!(here.plain(), there.plain(), "{arguments:?}");
        there
    }
}

pub(crate) fn with<'a>(verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec![verb];
    all.extend(RUN);
    all.extend(more);
    all
}

#[test]
fn a_workspace_is_pushed_and_its_deployment_runs_there_as_it_does_here() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let both = Both::new(&postgres, &sdk);
    let pushed = both.push();
    assert_eq!(pushed["sent"].as_array().unwrap().len(), 9, "{pushed}");
    assert_eq!(pushed["deployments"], json!([{"id": ID, "what": "made"}]));
    let again = both.push();
    assert_eq!(again["sent"], json!([]), "{again}");
    assert_eq!(again["deployments"][0]["what"], "unchanged");

    both.same(&["validate", ID], 0);
    both.same(&["graph", ID], 0);
    both.same(&["list-environments", ID], 0);
    both.same(&["list"], 0);
    both.same(&["status", ID, "--rehearse"], 0);
    both.same(&with("preview", &[]), 8);
    both.same(&with("preview", &["--expect-no-changes"]), 6);
    let first = both.same(&with("deploy", &[]), 0);
    assert!(first.stdout.contains("Stacks: 2 done"), "{}", first.stdout);
    assert!(first.stderr.contains("Execution Plan"), "{}", first.stderr);
    let second = both.same(&with("deploy", &["--message", "once more"]), 0);
    assert!(second.stdout.contains("2 skipped"), "{}", second.stdout);
    // What a preview showed is what is deployed, where it was made.
    let same = |file| with("preview", &["--expect-no-changes", "--save", file]);
    both.there(&same("there.json")).expect(0);
    both.here(&same("here.json")).expect(0);
    let held = |file| with("deploy", &["--plan", file, "--message", "once more"]);
    both.there(&held("there.json")).expect(0);
    both.here(&held("here.json")).expect(0);
    for refused in [
        both.there(&held("here.json")),
        both.here(&held("there.json")),
    ] {
        assert!(refused.stderr.contains("NIM-0600"), "{}", refused.stderr);
    }
    let status = both.same(&["status", ID, "--rehearse"], 0);
    assert!(status.stdout.contains("version "), "{}", status.stdout);
    let told = both.there(&["status", ID, "--rehearse", "--json"]).json();
    let last = &told["environments"][0]["last_run"];
    assert_eq!(
        (&last["user"], &last["message"]),
        (&json!(EMAIL), &json!("once more"))
    );

    // A program that fails fails the same way, and going on is told the same way.
    put_stack(
        &both.site,
        "second",
        "first",
        "throw new Error('not today');\n",
    );
    let pushed = both.push();
    assert_eq!(pushed["sent"], json!(["stacks/second/src/index.js"]));
    let failed = both.same(&with("deploy", &["--on-failure", "hold"]), 1);
    assert!(
        failed.stdout.contains("Next: put right"),
        "{}",
        failed.stdout
    );
    let status = both.same(&["status", ID, "--rehearse"], 0);
    assert!(
        status.stdout.contains("next: put right"),
        "{}",
        status.stdout
    );
    put_stack(&both.site, "second", "first", &program(2));
    both.push();
    let resume = ["resume", ID, "--environment", "dev", "--rehearse"];
    let resumed = both.same(&resume, 0);
    assert!(resumed.stdout.contains("succeeded"), "{}", resumed.stdout);

    let versions = both.there(&with("rollback", &["--list", "--json"])).json();
    let versions = versions["versions"].as_array().unwrap().len();
    let known = both.here(&with("rollback", &["--list", "--json"])).json();
    assert_eq!(versions, known["versions"].as_array().unwrap().len());
    let runs = both.there(&["runs", "list", ID, "--json"]).json();
    let newest = &runs["runs"][0];
    assert_eq!(
        (&newest["kind"], &newest["status"]),
        (&json!("deploy"), &json!("succeeded"))
    );
    let log = both
        .there(&["logs", ID, "--rehearse", "--stack", "second"])
        .expect(0);
    assert!(
        log.stdout.contains("[second] succeeded in"),
        "{}",
        log.stdout
    );
    let export = ["export-state", ID, "--environment", "dev", "--rehearse"];
    let states = |output: AdminOutput| {
        let states = output.expect(0).json()["stacks"].clone();
        states
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(states(both.here(&export)), states(both.there(&export)));
    let alone = [&export[..], &["--stack", "second"]].concat();
    for one in [both.here(&alone), both.there(&alone)] {
        assert_eq!(one.expect(0).json()["version"], 3);
    }
    both.same(
        &["discover-resources", ID, "--rehearse", "--type", "nothing"],
        0,
    );
    both.same(&with("rollback", &[]), 0);
    both.same(&with("destroy", &[]), 0);
    assert_eq!(both.server.stop(), 0);
}

/// A create whose answer was lost is asked about on a server as it is on this machine, and the commands that are named lead
/// out of it.
#[test]
fn a_create_that_nobody_knows_of_has_a_way_out_on_a_server_too() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let both = Both::new(&postgres, &sdk);
    both.push();
    let caller = ApiCaller::new(&both.server);
    let lost = json!({
        "environment": "dev", "rehearsal": true, "transpile_only": true, "on_failure": "hold",
        "orders": ["on: create, name: thing, do: lose"],
    });
    let run = caller.post(&format!("/deployments/{ID}/deploy"), &lost);
    let (ended, events) = caller.finish(&run);
    assert_eq!(ended["result"], "failed", "{ended} {events:?}");
    let next = || {
        let status = both.there(&["status", ID, "--rehearse", "--json"]).json();
        status["environments"][0]["next"].clone()
    };
    let view = || {
        let view = both.there(&["run", "view", ID, "--rehearse", "--json"]);
        view.expect(0).json()["next"].clone()
    };
    let resume = ["resume", ID, "--environment", "dev", "--rehearse"];
    let plain = format!("`nimbus {} --server {}`", resume.join(" "), both.address);
    assert!(next().as_str().unwrap().contains(&plain), "{}", next());
    let asked = both.there(&resume).expect(1);
    assert!(
        asked
            .stdout
            .contains("nobody knows whether these were created"),
        "{}",
        asked.stdout
    );
    let flag = format!("{} --forget-creates`", plain.trim_end_matches('`'));
    assert!(next().as_str().unwrap().contains(&flag), "{}", next());
    assert_eq!(view(), next());
    assert!(asked.stdout.contains(&flag), "{}", asked.stdout);
    both.there(&[&resume[..], &["--forget-creates"]].concat())
        .expect(0);
    assert_eq!(next(), Value::Null);
    // Only what goes on or goes back can have something to forget.
    let begun = json!({"environment": "dev", "rehearsal": true, "forget_creates": true});
    let (status, refused) = caller.ask("POST", &format!("/deployments/{ID}/deploy"), "", &begun);
    assert_eq!(status, 400, "{refused}");
    assert_eq!(both.server.stop(), 0);
}

/// Passes connections on, and can cut all that there are.
struct Wire {
    address: String,
    open: Arc<Mutex<Vec<TcpStream>>>,
    /// How many connections there were.
    count: Arc<AtomicUsize>,
}

impl Wire {
    fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let count: Arc<AtomicUsize> = Arc::default();
        let (opened, counted) = (Arc::clone(&open), Arc::clone(&count));
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let Ok(near) = near else { return };
                let far = TcpStream::connect(&server).unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let both = [near.try_clone().unwrap(), far.try_clone().unwrap()];
                opened.lock().unwrap().extend(both);
                for (from, to) in [
                    (near.try_clone().unwrap(), far.try_clone().unwrap()),
                    (far, near),
                ] {
                    std::thread::spawn(move || pass(from, to));
                }
            }
        });
        Self {
            address,
            open,
            count,
        }
    }

    fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16384];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// A sign-in at another address of the same server.
pub(crate) fn sign_in(site: &Site, address: &str, tenant: &str, email: &str, profile: &str) {
    let login = [
        "login",
        "--server",
        address,
        "--tenant",
        tenant,
        "--email",
        email,
        "--profile",
        profile,
        "--password-stdin",
    ];
    site.run_with(&login, &format!("{PASSWORD}\n")).expect(0);
}

#[test]
fn a_broken_connection_loses_nothing_and_doubles_nothing_and_ctrl_c_stops_the_run() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let both = Both::new(&postgres, &sdk);
    put_stack(&both.site, "first", "", &program(3000));
    put_stack(&both.site, "second", "first", &program(3000));
    both.push();
    let wire = Wire::to(both.server.address());
    sign_in(&both.site, &wire.address, "", EMAIL, "wire");

    let start = |name: &str| {
        let out = both.site.log(name);
        let arguments = with("deploy", &["--json"]);
        let child = both
            .site
            .command(&["--server", &wire.address])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::create(both.site.log("deploy.err")).unwrap())
            .spawn()
            .unwrap();
        (child, out)
    };
    let heard = |out: &Path, word: &str| {
        let text = fs::read_to_string(out).unwrap();
        text.lines().any(|line| line.contains(word))
    };
    let (mut child, out) = start("deploy.out");
    for unit in ["first", "second"] {
        let word = format!("\"unit\":\"{unit}\",\"status\":\"running\"");
        wait_for("the unit runs", || heard(&out, &word));
        let before = wire.count.load(Ordering::SeqCst);
        wire.cut();
        wait_for("somebody comes back", || {
            wire.count.load(Ordering::SeqCst) > before
        });
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let told: Vec<Value> = fs::read_to_string(&out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (summary, events) = told.split_last().unwrap();
    assert_eq!(summary["result"], "succeeded", "{summary}");
    let caller = ApiCaller::new(&both.server);
    let run = caller.get("/runs")["items"][0].clone();
    let (_, recorded) = caller.finish(&run);
    let recorded: Vec<&Value> = recorded
        .iter()
        .filter(|event| event["event"] != "layer")
        .collect();
    let told: Vec<&Value> = events.iter().collect();
    assert_eq!(told, recorded);

    // Whoever presses Ctrl-C stops the run, and is told how it goes on.
    put_stack(&both.site, "first", "", &program(3001));
    both.push();
    let (mut child, out) = start("stopped.out");
    wait_for("the first unit runs", || {
        heard(&out, "\"unit\":\"first\",\"status\":\"running\"")
    });
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let text = fs::read_to_string(&out).unwrap();
    let summary: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(summary["result"], "interrupted", "{summary}");
    assert!(summary["next"].as_str().unwrap().contains(&wire.address));
    let runs = both.there(&["runs", "list", ID, "--profile", "default", "--json"]);
    assert_eq!(runs.json()["runs"][0]["status"], "interrupted");
    assert_eq!(both.server.stop(), 0);
}

#[test]
fn what_cannot_be_done_is_told_and_never_done_here() {
    let postgres = tool_or_skip!(Tool::Postgres);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let both = Both::new(&postgres, &sdk);
    both.push();
    let refused = |output: AdminOutput, code: i32, reference: &str| {
        let output = output.expect(code);
        let error = output.json()["error"].clone();
        assert_eq!(error["code"], reference, "{error}");
        assert!(error["help"].is_string(), "{error}");
        error
    };

    // Somebody of another tenant finds what somebody finds who looks for nothing.
    both.site.ask(&["tenant", "create", "acme"]);
    let email = "bob@acme.example";
    both.site
        .run_with(
            &[
                "user",
                "create",
                email,
                "--tenant",
                "acme",
                "--role",
                "tenant_admin",
                "--password-stdin",
            ],
            &format!("{PASSWORD}\n"),
        )
        .expect(0);
    sign_in(&both.site, &both.address, "acme", email, "bob");
    for id in [ID, "D0NONE"] {
        let asked: [&[&str]; 3] = [
            &["status", id, "--profile", "bob", "--json"],
            &[
                "deploy",
                id,
                "--environment",
                "dev",
                "--rehearse",
                "--profile",
                "bob",
                "--json",
            ],
            &["logs", id, "--profile", "bob", "--json"],
        ];
        for arguments in asked {
            let error = refused(both.there(arguments), 3, "NIM-0704");
            assert!(error["message"].as_str().unwrap().contains(id), "{error}");
        }
    }
    let listed = both.there(&["list", "--profile", "bob", "--json"]).json();
    assert_eq!(listed["deployments"], json!([]));

    // What has no form for a server does nothing, here either.
    let manifest = both
        .site
        .folder
        .path()
        .join("cloud/deploy/D1PAIR-o-p/Deployment_Manifest.yaml");
    let before = fs::read(&manifest).unwrap();
    refused(
        both.there(&["why", ID, "first", "--environment", "dev", "--json"]),
        6,
        "NIM-0886",
    );
    refused(both.there(&["doctor", "--json"]), 6, "NIM-0886");
    refused(
        both.there(&with("deploy", &["--refresh", "--json"])),
        6,
        "NIM-0886",
    );
    refused(
        both.there(&with("preview", &["--diff", "--json"])),
        6,
        "NIM-0886",
    );
    let mut by_variable = both.site.command(&["discover", "--json"]);
    let by_variable = by_variable
        .env("NIMBUS_SERVER", &both.address)
        .output()
        .unwrap();
    assert_eq!(by_variable.status.code(), Some(6));
    refused(
        both.here(&["list", "--tenant", "acme", "--json"]),
        2,
        "NIM-0002",
    );
    refused(both.here(&["workspace", "push", "--json"]), 2, "NIM-0002");
    assert_eq!(fs::read(&manifest).unwrap(), before);

    // A manifest that was changed there is not written over.
    both.there(&["disable-environment", ID, "dev", "--profile", "default"])
        .expect(0);
    let text = String::from_utf8(before).unwrap() + "# mine\n";
    fs::write(&manifest, text).unwrap();
    let push = ["workspace", "push", "--profile", "default", "--json"];
    refused(both.there(&push), 4, "NIM-0861");
    let pull = ["workspace", "pull", "--profile", "default", "--json"];
    refused(both.there(&pull), 4, "NIM-0861");
    both.there(&["workspace", "pull", "--force", "--profile", "default"])
        .expect(0);
    let fetched = fs::read_to_string(&manifest).unwrap();
    assert!(
        fetched.contains("enabled: false") && !fetched.contains("# mine"),
        "{fetched}"
    );

    // A link is not followed, and what is fetched elsewhere is what was sent.
    let link = both
        .site
        .folder
        .path()
        .join("cloud/stacks/first/src/secret");
    symlink("/etc/passwd", &link).unwrap();
    refused(both.there(&push), 2, "NIM-0885");
    fs::remove_file(&link).unwrap();
    // Not below the workspace, which would be found.
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().display().to_string();
    both.there(&[
        "-C",
        &elsewhere,
        "workspace",
        "pull",
        "--profile",
        "default",
    ])
    .expect(0);
    for path in [
        "stacks/first/src/index.js",
        "tools/templates/custom/pair.yaml",
    ] {
        let there = fs::read(Path::new(&elsewhere).join("cloud").join(path)).unwrap();
        assert_eq!(
            there,
            fs::read(both.site.folder.path().join("cloud").join(path)).unwrap()
        );
    }

    // Wrong addresses, nobody, an ended sign-in, a server that is away.
    let at = |address: &str| {
        both.site
            .run_with(&["--server", address, "list", "--json"], "")
    };
    refused(at("nowhere"), 5, "NIM-0854");
    refused(at("http://127.0.0.1:1"), 5, "NIM-0854");
    let tokens = both.site.log("profiles/tokens.json");
    let kept: Value = serde_json::from_slice(&fs::read(&tokens).unwrap()).unwrap();
    let mut ended = kept.clone();
    ended["default"] = json!({"access": "gone", "refresh": "gone"});
    fs::write(&tokens, ended.to_string()).unwrap();
    let list = ["list", "--profile", "default", "--json"];
    let error = refused(both.there(&list), 5, "NIM-0854");
    assert!(
        error["help"].as_str().unwrap().contains("nimbus login"),
        "{error}"
    );
    fs::write(&tokens, kept.to_string()).unwrap();
    let Both {
        site,
        server,
        address,
    } = both;
    assert_eq!(server.stop(), 0);
    let away = site.run_with(
        &[
            "--server",
            &address,
            "list",
            "--profile",
            "default",
            "--json",
        ],
        "",
    );
    refused(away, 7, "NIM-0864");
}
