//! A stranger's workspace or project and a backend in which others have their states: every command that opens one
//! is held to what the operator gave, and what the workspace has recorded says nothing.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::network::isolates;
use crate::support::{ID, Site, node_sdk};

const SECRET: &str = "secret of somebody else";
const STACK: &str = "urn:pulumi:dev::a::pulumi:pulumi:Stack::a-dev";

/// A backend of others, with states of the projects that a stranger would name, and a workspace of the stranger's.
struct SharedBackend {
    folder: TempDir,
    site: Site,
}

impl SharedBackend {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let shared = Self {
            // Nothing is run, so nothing needs packages.
            site: Site::new(folder.path(), &[("a", &[])]),
            folder,
        };
        fs::create_dir(shared.folder.path().join("node_modules")).unwrap();
        shared.put("p", &format!("{ID}-a-dev"));
        shared.put("a", "dev");
        shared
    }

    fn states(&self) -> PathBuf {
        self.folder.path().join("states")
    }

    fn url(&self) -> String {
        format!("file://{}", self.states().display())
    }

    fn put(&self, project: &str, stack: &str) {
        let name = format!("urn:pulumi:{stack}::{project}::pulumi:pulumi:Stack::{project}-{stack}");
        let state = json!({
            "version": 3,
            "checkpoint": {
                "stack": format!("organization/{project}/{stack}"),
                "latest": {
                    "manifest": {"time": "2026-01-02T03:04:05Z", "magic": "", "version": ""},
                    "resources": [{
                        "urn": name,
                        "custom": false,
                        "type": "pulumi:pulumi:Stack",
                        "outputs": {"first": SECRET},
                    }],
                },
            },
        });
        let path = self.states().join(format!(".pulumi/stacks/{project}"));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(format!("{stack}.json")), state.to_string()).unwrap();
    }

    /// Everything that others have there.
    fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        collect(&self.states(), &mut found);
        found.sort();
        found
    }

    /// What a command said, and whether it succeeded.
    fn run(&self, words: &[&str], sandbox: &str, more: &[(&str, &str)]) -> (bool, String) {
        let ran = self
            .site
            .command(words)
            .env("NIMBUS_ENGINE_SANDBOX", sandbox)
            .env("NIMBUS_ENGINE_SANDBOX_ROOTS", self.folder.path())
            .envs(more.iter().copied())
            .output()
            .unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (ran.status.success(), said)
    }

    #[track_caller]
    fn assert_refused(&self, words: &[&str], more: &[(&str, &str)], code: &str) {
        let before = self.contents();
        let (ran, said) = self.run(words, "strict", more);
        assert!(!ran, "{words:?}: {said}");
        assert!(said.contains(code), "{words:?}: {said}");
        assert!(!said.contains(SECRET), "{words:?}: {said}");
        assert_eq!(self.contents(), before, "{words:?}");
        assert!(self.site.deployment("Deployment_Manifest.yaml").exists());
    }
}

fn collect(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn no_command_opens_stacks_of_projects_that_were_not_given() {
    let test = "no_command_opens_stacks_of_projects_that_were_not_given";
    if !isolates(test) {
        return;
    }
    let shared = SharedBackend::new();
    let url = shared.url();
    let commands: [&[&str]; 4] = [
        &["export-state", ID, "-e", "dev", "--backend", &url],
        &["discover-resources", ID, "--backend", &url],
        &["decommission", ID, "--yes", "--backend", &url],
        &["migrate-stack-naming", "--backend", &url],
    ];
    for words in commands {
        for projects in ["none", "own"] {
            let given = [("NIMBUS_ENGINE_SANDBOX_PROJECTS", projects)];
            shared.assert_refused(words, &given, "NIM-0413");
        }
        shared.assert_refused(words, &[], "NIM-0413");
    }
    // Found by the variable as well as by the flag.
    let variable = [("PULUMI_BACKEND_URL", url.as_str())];
    shared.assert_refused(&["migrate-stack-naming"], &variable, "NIM-0413");

    // What was given is opened, and without strict the manifest is one's own.
    let given = [("NIMBUS_ENGINE_SANDBOX_PROJECTS", "p")];
    let cases: [(&str, &[(&str, &str)]); 2] = [("strict", &given), ("off", &[])];
    for (sandbox, more) in cases {
        let (ran, said) = shared.run(commands[0], sandbox, more);
        assert!(ran && said.contains(SECRET), "{sandbox}: {said}");
        let (ran, said) = shared.run(commands[1], sandbox, more);
        assert!(ran, "{sandbox}: {said}");
        let (ran, said) = shared.run(commands[2], sandbox, more);
        assert!(!ran && said.contains("NIM-0762"), "{sandbox}: {said}");
    }
}

/// Records lie in the workspace, and `migrate-undo` removes the stacks that one names.
#[test]
fn a_recorded_migration_does_not_say_which_states_are_removed() {
    let test = "a_recorded_migration_does_not_say_which_states_are_removed";
    if !isolates(test) {
        return;
    }
    let shared = SharedBackend::new();
    let record = json!({
        "command": "migrate-stack-naming",
        "at": "2026-01-02T03:04:05Z",
        "changes": [],
        "states": [{"backend": shared.url(), "stack": format!("organization/p/{ID}-a-dev")}],
    });
    let path = "cloud/.nimbus/migrations/20260102T030405Z.json";
    shared.site.write(path, &record.to_string());
    shared.assert_refused(&["migrate-undo"], &[], "NIM-0409");
}

/// `decommission` looks wherever recorded runs kept states, and removes those.
#[test]
fn a_recorded_run_does_not_say_where_states_are_removed() {
    let test = "a_recorded_run_does_not_say_where_states_are_removed";
    let Some(sdk) = node_sdk(test).filter(|_| isolates(test)) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let program = "require('@pulumi/pulumi');\nexports.first = 'x';\nexports.ids = [];\n";
    site.write("cloud/stacks/a/src/index.js", program);
    fs::create_dir(site.path("shared")).unwrap();
    let url = format!("file://{}", site.path("shared").display());
    for verb in ["deploy", "destroy"] {
        site.run(&[verb, ID, "-e", "dev", "--yes", "--backend", &url])
            .ok();
    }
    let state = site.path(&format!("shared/.pulumi/stacks/p/{ID}-a-dev.json"));
    let run = |more: &[&str], variable: Option<&str>| {
        let words = ["decommission", ID, "--yes"];
        let words = [&words[..], more].concat();
        let ran = site
            .command(&words)
            .env("NIMBUS_ENGINE_SANDBOX", "strict")
            .env("NIMBUS_ENGINE_SANDBOX_ROOTS", &sdk)
            .env("NIMBUS_ENGINE_SANDBOX_PROJECTS", "p")
            .envs(variable.map(|url| ("PULUMI_BACKEND_URL", url)))
            .output()
            .unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        (
            ran.status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    };
    let elsewhere = "file:///elsewhere";
    let tries: [(&[&str], Option<&str>); 3] = [
        (&[], None),
        (&["--backend", elsewhere], None),
        (&[], Some(elsewhere)),
    ];
    for (more, variable) in tries {
        let (ran, said) = run(more, variable);
        assert!(!ran && said.contains("NIM-0409"), "{more:?}: {said}");
        assert!(state.exists(), "{more:?}: {said}");
    }
    let (ran, said) = run(&[], Some(&url));
    assert!(ran, "{said}");
    assert!(!state.exists(), "{said}");
}

/// With a short name the project in the folder would say whose stack is meant, for commands on states, too.
#[test]
fn a_project_does_not_say_whose_state_is_meant() {
    let test = "a_project_does_not_say_whose_state_is_meant";
    if !isolates(test) {
        return;
    }
    let shared = SharedBackend::new();
    shared
        .site
        .write("evil/Pulumi.yaml", "name: a\nruntime: nodejs\n");
    let url = shared.url();
    let at = ["--dir", "evil", "--backend", url.as_str()];
    let commands: [&[&str]; 6] = [
        &["state", "export", "--stack", "dev"],
        &["state", "show", "--stack", "dev", STACK],
        &["state", "ls", "--stack", "dev"],
        &["state", "history", "--stack", "dev"],
        &["program", "outputs", "--stack", "dev"],
        &["stack", "rm", "dev", "--yes", "--force"],
    ];
    for words in commands {
        shared.assert_refused(&[words, &at[..]].concat(), &[], "NIM-0411");
    }
    // The operator's word counts.
    let whole = ["state", "export", "--stack", "organization/a/dev"];
    let (ran, said) = shared.run(&[&whole[..], &at].concat(), "strict", &[]);
    assert!(ran && said.contains(SECRET), "{said}");
}
