//! What `deploy/ci` ships: every script of it is run as a job would run it, in a rehearsal.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nimbus_document::Document;
use serde_json::Value;

use crate::support::{DeployOutput, ID, Site, node_sdk};

fn shipped(name: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ci");
    let document = Document::read(&root.join(name)).unwrap();
    document.to_json(document.root()).unwrap()
}

/// A folder with the command under test, before everything else on the path.
fn path_with_nimbus(site: &Site) -> String {
    let bin = site.path("bin");
    fs::create_dir_all(&bin).unwrap();
    let nimbus = bin.join("nimbus");
    if !nimbus.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_nimbus"), nimbus).unwrap();
    }
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

fn script(
    site: &Site,
    shell: &[&str],
    text: &str,
    variables: &BTreeMap<String, String>,
) -> DeployOutput {
    // The environment of a site's command, so that nothing of this machine leaks in.
    let plain = site.command(&[]);
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(text).env_clear();
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("PATH", path_with_nimbus(site)).envs(variables);
    let output = command.current_dir(site.path("")).output().unwrap();
    DeployOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A job that uses the action: its inputs, and what the runner adds.
struct Job<'a> {
    site: &'a Site,
    inputs: BTreeMap<String, String>,
    known: BTreeMap<String, String>,
}

impl Job<'_> {
    /// The value of `${{ … }}`, for what the action asks about.
    fn value(&self, text: &str) -> String {
        let Some(inner) = text
            .strip_prefix("${{")
            .and_then(|rest| rest.strip_suffix("}}"))
        else {
            assert!(!text.contains("${{"), "a mixed expression: {text}");
            return text.to_owned();
        };
        let name = inner.trim();
        match name.strip_prefix("inputs.") {
            Some(input) => self.inputs[input].clone(),
            None => self.known.get(name).cloned().unwrap_or_default(),
        }
    }

    fn step(&mut self, name: &str) -> DeployOutput {
        let action = shipped("github/action.yml");
        let steps = action["runs"]["steps"].as_array().unwrap();
        let step = steps.iter().find(|step| step["name"] == name).unwrap();
        let mut variables: BTreeMap<String, String> = [
            ("GITHUB_ACTIONS", "true".to_owned()),
            ("GITHUB_WORKSPACE", self.site.path("").display().to_string()),
            ("GITHUB_OUTPUT", self.file("outputs")),
            ("GITHUB_STEP_SUMMARY", self.file("summary.md")),
            ("RUNNER_TEMP", self.site.path("").display().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            variables.insert(name.clone(), self.value(value.as_str().unwrap()));
        }
        let text = step["run"].as_str().unwrap();
        assert!(
            !text.contains("${{"),
            "inputs are pasted into a script: {text}"
        );
        let shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"];
        let output = script(self.site, &shell, text, &variables);
        let outputs = fs::read_to_string(self.file("outputs")).unwrap_or_default();
        for (key, value) in outputs.lines().filter_map(|line| line.split_once('=')) {
            let key = format!("steps.preview.outputs.{key}");
            self.known.insert(key, value.to_owned());
        }
        output
    }

    fn file(&self, name: &str) -> String {
        self.site.path(name).display().to_string()
    }
}

fn job<'a>(site: &'a Site, given: &[(&str, &str)]) -> Job<'a> {
    let action = shipped("github/action.yml");
    let mut inputs = BTreeMap::new();
    for (name, input) in action["inputs"].as_object().unwrap() {
        assert!(input["description"].is_string(), "{name}");
        let given = given.iter().find(|(given, _)| given == name);
        let value = match given {
            Some((_, value)) => (*value).to_owned(),
            None => input["default"].as_str().unwrap_or_default().to_owned(),
        };
        inputs.insert(name.clone(), value);
    }
    for (name, _) in given {
        assert!(inputs.contains_key(*name), "the action has no input {name}");
    }
    Job {
        site,
        inputs,
        known: BTreeMap::new(),
    }
}

/// Records how it was called; the list of comments has one of somebody else and, once posted, ours.
fn recorder_of_gh(site: &Site) -> PathBuf {
    let calls = site.path("gh-calls");
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{0}'\n\
         case \"$*\" in\n\
         *--paginate*) if grep -q POST '{0}'; then echo 7; fi ;;\n\
         esac\n",
        calls.display()
    );
    site.write("bin/gh", &text);
    let gh = site.path("bin/gh");
    fs::set_permissions(&gh, fs::Permissions::from_mode(0o755)).unwrap();
    calls
}

#[test]
fn every_step_of_the_github_action_runs() {
    let Some(sdk) = node_sdk("every_step_of_the_github_action_runs") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    let calls = recorder_of_gh(&site);
    let plan = site.path("saved.plan").display().to_string();
    let about = [
        ("command", "preview"),
        ("deployment", ID),
        ("environment", "dev"),
        ("rehearse", "true"),
        ("plan", plan.as_str()),
    ];
    let mut preview = job(&site, &about);
    preview
        .known
        .insert("github.repository".to_owned(), "o/r".to_owned());
    preview.known.insert(
        "github.event.pull_request.number".to_owned(),
        "5".to_owned(),
    );
    let version = preview.step("Install Nimbus").ok();
    assert!(version.stdout.starts_with("nimbus "), "{}", version.stdout);
    preview.step("Preview").ok();
    assert_eq!(preview.known["steps.preview.outputs.changes"], "true");
    let page = fs::read_to_string(&preview.known["steps.preview.outputs.markdown"]).unwrap();
    assert!(page.starts_with("<!-- nimbus preview D1RUNS dev -->\n### Preview of D1RUNS in dev"));
    assert!(page.contains("| a | succeeded | 3 create |"), "{page}");
    let summary = fs::read_to_string(site.path("summary.md")).unwrap();
    assert!(summary.contains("### Preview of D1RUNS"), "{summary}");

    preview.step("Comment").ok();
    preview.step("Comment").ok();
    let calls = fs::read_to_string(calls).unwrap();
    let file = preview.known["steps.preview.outputs.markdown"].clone();
    let posted = format!("--method POST repos/o/r/issues/5/comments --field body=@{file}");
    let renewed = format!("--method PATCH repos/o/r/issues/comments/7 --field body=@{file}");
    assert!(
        calls.contains(&posted) && calls.contains(&renewed),
        "{calls}"
    );

    let mut deploy = job(
        &site,
        &[
            &[("command", "deploy"), ("message", "from a job")],
            &about[1..],
        ]
        .concat(),
    );
    let done = deploy.step("Deploy").ok();
    assert!(done.stdout.contains("2 done"), "{}", done.stdout);
    let summary = fs::read_to_string(site.path("summary.md")).unwrap();
    assert!(summary.contains("### Deploy of D1RUNS in dev"), "{summary}");

    // Nothing is left to do, which a search for drift accepts, and then something is.
    let drift = [&about[..4], &[("expect-no-changes", "true")]].concat();
    let mut quiet = job(&site, &drift);
    quiet.step("Preview").ok();
    assert_eq!(quiet.known["steps.preview.outputs.changes"], "false");
    site.set_size("b", "9");
    let found = job(&site, &drift).step("Preview").with(6);
    assert!(
        found.stderr.contains("::error title=NIM-0604::"),
        "{}",
        found.stderr
    );
}

#[test]
fn failures_are_annotations_and_part_of_the_summary() {
    let Some(sdk) = node_sdk("failures_are_annotations_and_part_of_the_summary") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let orders =
        site.orders("orders: [{on: create, name: a-second, do: fail, message: '50 % | no'}]\n");
    let arguments = [
        "deploy",
        ID,
        "--environment",
        "dev",
        "--rehearse",
        "--orders",
        &orders,
        "--on-failure",
        "hold",
    ];
    let output = site
        .command(&arguments)
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", site.path("summary.md"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let line = told
        .lines()
        .find(|line| line.starts_with("::error "))
        .unwrap();
    assert!(
        line.starts_with("::error title=a of D1RUNS dev::"),
        "{line}"
    );
    assert!(line.contains("50 %25 | no"), "{line}");
    let summary = fs::read_to_string(site.path("summary.md")).unwrap();
    assert!(summary.contains("**a** failed:"), "{summary}");
    assert!(summary.contains("50 % | no"), "{summary}");

    // A mistake in a file is shown at its line.
    let manifest = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("metadata:", "metadata: [", 1)).unwrap();
    let output = site
        .command(&["validate", ID, "--json"])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_WORKSPACE", site.path(""))
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let here = "::error file=cloud/deploy/D1RUNS-o-p/Deployment_Manifest.yaml,line=";
    assert!(told.contains(here), "{told}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        document["error"].is_object(),
        "standard output stays one document"
    );
}

/// Answers as GitLab does: no notes at first, then the one that was posted.
fn gitlab() -> (String, std::thread::JoinHandle<Vec<(String, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let mut seen: Vec<(String, String)> = Vec::new();
        while seen.len() < 4 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = Vec::new();
            let (head, body) = loop {
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).unwrap();
                bytes.extend_from_slice(&buffer[..count]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let length = head.to_ascii_lowercase();
                let length = length.split_once("content-length: ").map(|(_, rest)| rest);
                let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
                if body.len() >= length.unwrap_or(0) {
                    break (head.to_owned(), body.to_owned());
                }
            };
            let call = head
                .lines()
                .next()
                .unwrap()
                .trim_end_matches(" HTTP/1.1")
                .to_owned();
            let posted = seen.iter().find(|(call, _)| call.starts_with("POST"));
            let answer = match posted {
                Some((_, body)) if call.starts_with("GET") => {
                    let note: Value = serde_json::from_str(body).unwrap();
                    serde_json::json!([{"id": 1, "body": "somebody's"}, {"id": 7, "body": note["body"]}]).to_string()
                }
                _ if call.starts_with("GET") => "[]".to_owned(),
                _ => "{}".to_owned(),
            };
            let length = answer.len();
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{answer}").unwrap();
            seen.push((call, body));
        }
        seen
    });
    (address, serving)
}

#[test]
fn every_script_of_the_gitlab_template_runs() {
    let Some(sdk) = node_sdk("every_script_of_the_gitlab_template_runs") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let template = shipped("gitlab/nimbus.gitlab-ci.yml");
    let mut variables: BTreeMap<String, String> = template["variables"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    let (address, serving) = gitlab();
    for (name, value) in [
        ("NIMBUS_CI_DEPLOYMENT", ID),
        ("NIMBUS_CI_REHEARSE", "true"),
        ("NIMBUS_CI_GITLAB_TOKEN", "glpat-of-a-test"),
        ("CI_API_V4_URL", &address),
        ("CI_PROJECT_ID", "11"),
        ("CI_MERGE_REQUEST_IID", "3"),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    variables.insert(
        "CI_PROJECT_DIR".to_owned(),
        site.path("").display().to_string(),
    );
    let run = |job: &str, variables: &BTreeMap<String, String>| {
        let lines = template[job]["script"].as_array().unwrap();
        let text: Vec<&str> = lines.iter().map(|line| line.as_str().unwrap()).collect();
        script(&site, &["sh", "-e", "-c"], &text.join("\n"), variables)
    };
    run(".nimbus-preview", &variables).ok();
    run(".nimbus-preview", &variables).ok();
    let calls = serving.join().unwrap();
    let notes = "/projects/11/merge_requests/3/notes";
    let names: Vec<&str> = calls.iter().map(|(call, _)| call.as_str()).collect();
    let list = format!("GET {notes}?per_page=100&page=1");
    let expected = [
        list.clone(),
        format!("POST {notes}"),
        list,
        format!("PUT {notes}/7"),
    ];
    assert_eq!(names, expected);
    assert!(
        calls[1].1.contains("### Preview of D1RUNS in dev"),
        "{}",
        calls[1].1
    );
    for artifact in template[".nimbus-preview"]["artifacts"]["paths"]
        .as_array()
        .unwrap()
    {
        assert!(site.path(artifact.as_str().unwrap()).exists(), "{artifact}");
    }

    let done = run(".nimbus-deploy", &variables).ok();
    assert!(done.stdout.contains("1 done"), "{}", done.stdout);
    fs::remove_file(site.path("nimbus.plan")).unwrap();
    run(".nimbus-deploy", &variables).ok();
}

#[test]
fn pipes_get_no_colours_whatever_the_terminal_is_called() {
    let Some(sdk) = node_sdk("pipes_get_no_colours_whatever_the_terminal_is_called") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let orders = site.orders("orders: [{on: create, name: a-second, do: fail, message: no}]\n");
    let about = [ID, "--environment", "dev", "--rehearse"];
    let commands: [(&str, &[&str]); 6] = [
        ("preview", &["--diff"]),
        ("preview", &["--format", "markdown"]),
        ("deploy", &["--orders", &orders]),
        ("deploy", &[]),
        ("deploy", &["--json", "--force"]),
        ("why", &["a"]),
    ];
    for (verb, more) in commands {
        let arguments = [&[verb], &about[..], more].concat();
        let output = site
            .command(&arguments)
            .envs([("TERM", "xterm-256color"), ("COLORTERM", "truecolor")])
            .output()
            .unwrap();
        for bytes in [output.stdout, output.stderr] {
            assert!(
                !bytes.contains(&0x1b),
                "{verb}: {}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
}
