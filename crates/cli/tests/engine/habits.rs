//! What Pulumi's users type in a project directory: `stack`, `state` and `config`, the selected
//! stack, and pointers for what is called something else here.

use std::io::{Read as _, Write as _};
use std::process::Command;

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::support::{ProgramRunOutput, Site, finish, node_sdk};
use crate::terminal_session::Session;

/// As somebody who names no stack.
fn unnamed(site: &Site, arguments: &[&str]) -> ProgramRunOutput {
    let mut command = site.command(arguments);
    command.env_remove("PULUMI_STACK");
    finish(command.output().unwrap())
}

const PROVIDER: &str = "urn:pulumi:dev::notes::pulumi:providers:pkg::default";

fn urn(stack: &str, name: &str) -> String {
    format!("urn:pulumi:{stack}::notes::pkg:index:Note::{name}")
}

fn note(name: &str, needs: &[&str]) -> Value {
    let needs: Vec<String> = needs.iter().map(|need| urn("dev", need)).collect();
    json!({
        "urn": urn("dev", name),
        "custom": true,
        "id": format!("{name}-1"),
        "type": "pkg:index:Note",
        "inputs": {"text": name},
        "outputs": {"text": name},
        "protect": name == "a",
        "dependencies": needs,
        "provider": format!("{PROVIDER}::p-1"),
    })
}

/// A stack `dev` with the notes a, b that needs a, and c.
fn three_notes() -> Site {
    let site = Site::new();
    let provider = json!({
        "urn": PROVIDER, "custom": true, "id": "p-1", "type": "pulumi:providers:pkg",
    });
    let resources = [provider, note("a", &[]), note("b", &["a"]), note("c", &[])];
    let manifest = json!({"time": "2026-01-01T00:00:00Z", "magic": "", "version": ""});
    let state = json!({
        "version": 3,
        "deployment": {"manifest": manifest, "resources": resources},
    });
    site.write("state.json", &state.to_string());
    site.state(&["import", "--file", "../state.json", "--yes"])
        .ok();
    site
}

fn listed(site: &Site, stack: &str) -> Vec<String> {
    let report = site.state(&["ls", "--stack", stack, "--json"]).ok().json();
    let resources = report["resources"].as_array().unwrap();
    let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
    resources.iter().map(name).collect()
}

#[test]
fn stacks_are_made_selected_renamed_and_removed() {
    let site = Site::new();
    let nothing = unnamed(&site, &["config", "set", "greeting", "hi"]).failed(2);
    assert!(nothing.stderr.contains("NIM-0616"), "{}", nothing.stderr);

    unnamed(&site, &["stack", "init", "dev"]).ok();
    unnamed(&site, &["stack", "init", "prod", "--no-select"]).ok();
    unnamed(&site, &["stack", "init", "dev"]).failed(4);
    let stacks = unnamed(&site, &["stack", "ls", "--json"]).ok().json();
    assert_eq!(stacks["project"], "notes");
    let shown = |at: usize| {
        let one = &stacks["stacks"][at];
        (one["name"].as_str(), one["current"].as_bool())
    };
    assert_eq!(shown(0), (Some("dev"), Some(true)));
    assert_eq!(shown(1), (Some("prod"), Some(false)));

    // What is selected is what commands work on.
    unnamed(&site, &["config", "set", "greeting", "hi"]).ok();
    assert_eq!(
        unnamed(&site, &["config", "get", "greeting"]).ok().stdout,
        "hi\n"
    );
    let file = site.read("program/Pulumi.dev.yaml");
    assert!(file.contains("notes:greeting: hi"), "{file}");
    unnamed(&site, &["stack", "select", "prod"]).ok();
    unnamed(&site, &["config", "get", "greeting"]).failed(3);
    let unknown = unnamed(&site, &["stack", "select", "stage"]).failed(3);
    assert!(
        unknown.stderr.contains("there are dev, prod"),
        "{}",
        unknown.stderr
    );

    unnamed(&site, &["stack", "select", "dev"]).ok();
    unnamed(&site, &["stack", "rename", "test"]).ok();
    assert_eq!(
        unnamed(&site, &["config", "get", "greeting"]).ok().stdout,
        "hi\n"
    );
    assert!(!site.path("program/Pulumi.dev.yaml").exists());
    let asked = unnamed(&site, &["stack", "rm", "test"]).failed(6);
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    unnamed(&site, &["stack", "rm", "test", "--yes"]).ok();
    assert!(!site.path("program/Pulumi.test.yaml").exists());
    unnamed(&site, &["config", "get", "greeting"]).failed(2);
    let left = unnamed(&site, &["stack", "ls"]).ok().stdout;
    assert!(left.contains("prod") && !left.contains("test"), "{left}");
}

#[test]
fn configuration_is_set_in_secret_and_removed_by_the_usual_words() {
    let site = Site::new();
    unnamed(&site, &["stack", "init", "dev"]).ok();
    unnamed(&site, &["config", "set", "greeting", "hi"]).ok();
    unnamed(
        &site,
        &["config", "set", "--secret", "password", "open sesame"],
    )
    .ok();
    let file = site.read("program/Pulumi.dev.yaml");
    assert!(file.contains("secure: v1:"), "{file}");
    assert!(!file.contains("open sesame"), "{file}");
    let get = |key: &str| unnamed(&site, &["config", "get", key]);
    assert_eq!(get("password").ok().stdout, "open sesame\n");
    let both = unnamed(&site, &["stack-config", "get", "password"]).ok();
    assert_eq!(both.stdout, "open sesame\n", "by either name");

    unnamed(&site, &["config", "rm", "password"]).ok();
    get("password").failed(3);
    assert_eq!(get("greeting").ok().stdout, "hi\n", "the others stay");
    let file = site.read("program/Pulumi.dev.yaml");
    assert!(!file.contains("notes:password"), "{file}");
}

#[test]
fn a_stack_with_resources_is_removed_only_by_force() {
    let site = three_notes();
    let refused = site.run(&["stack", "rm", "dev", "--yes"]).failed(6);
    assert!(refused.stderr.contains("NIM-0208"), "{}", refused.stderr);
    site.run(&["stack", "rm", "dev", "--yes", "--force"]).ok();
    let left = site.run(&["stack", "ls", "--json"]).ok().json();
    assert_eq!(left["stacks"], json!([]));
}

#[test]
fn the_selection_is_the_official_command_lines_own() {
    let pulumi = tool_or_skip!(Tool::PulumiCli);
    let site = Site::new();
    // It makes no folder of its own.
    std::fs::create_dir(site.path("backend")).unwrap();
    let official = |arguments: &[&str]| {
        let plain = site.command(&[]);
        let mut command = Command::new(&pulumi);
        command.args(arguments).env_clear();
        for (name, value) in plain.get_envs().filter(|(name, _)| *name != "PULUMI_STACK") {
            command.env(name, value.unwrap_or_default());
        }
        command.env("PULUMI_SKIP_UPDATE_CHECK", "true");
        let output = command.current_dir(site.path("program")).output().unwrap();
        finish(output).ok()
    };
    official(&["stack", "init", "one"]);
    official(&["stack", "init", "two"]);
    official(&["stack", "select", "one"]);
    let current = |output: ProgramRunOutput| {
        let stacks = output.json();
        let stacks = stacks["stacks"].as_array().unwrap().clone();
        let current = stacks.iter().find(|one| one["current"] == true);
        current.map(|one| one["name"].as_str().unwrap().to_owned())
    };
    assert_eq!(
        current(unnamed(&site, &["stack", "ls", "--json"]).ok()).as_deref(),
        Some("one")
    );
    unnamed(&site, &["stack", "select", "two"]).ok();
    let selected = official(&["stack", "--show-name"]);
    assert_eq!(selected.stdout.trim(), "two");
}

#[test]
fn resources_are_forgotten_renamed_and_unprotected_in_the_state() {
    let site = three_notes();
    let [a, b] = ["a", "b"].map(|name| urn("dev", name));
    let needed = site.state(&["delete", &a, "--yes"]).failed(6);
    assert!(needed.stderr.contains("NIM-0615"), "{}", needed.stderr);
    assert!(
        needed.stderr.contains("--target-dependents"),
        "{}",
        needed.stderr
    );
    let protected = site
        .state(&["delete", &a, "--target-dependents", "--yes"])
        .failed(6);
    assert!(
        protected.stderr.contains("is protected"),
        "{}",
        protected.stderr
    );
    let asked = site.state(&["delete", &b]).failed(6);
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert_eq!(listed(&site, "dev"), ["default", "a", "b", "c"]);

    let renamed = site
        .state(&["rename", &a, "first", "--yes", "--json"])
        .ok()
        .json();
    assert_eq!(renamed["added"], json!([urn("dev", "first")]));
    let shown = site.state(&["show", &b, "--json"]).ok().json();
    assert!(shown.to_string().contains(&urn("dev", "first")), "{shown}");
    site.state(&["unprotect", "--all", "--yes"]).ok();
    let nothing = site.state(&["unprotect", "--all", "--yes"]).ok().stdout;
    assert!(nothing.contains("Nothing had to be changed"), "{nothing}");
    let first = urn("dev", "first");
    site.state(&["delete", &first, "--target-dependents", "--yes"])
        .ok();
    assert_eq!(listed(&site, "dev"), ["default", "c"]);
    // What was there before is a version of the history.
    let history = site.state(&["history", "--json"]).ok().stdout;
    assert!(history.matches("import").count() >= 3, "{history}");
    site.state(&["delete", &urn("dev", "nobody"), "--yes"])
        .failed(3);
}

#[test]
fn resources_move_to_another_stack_with_their_provider() {
    let site = three_notes();
    site.run(&["stack", "init", "prod", "--no-select"]).ok();
    let a = urn("dev", "a");
    let moved = ["move", "--dest", "prod", &a, "--yes", "--json"];
    let report = site.state(&moved).ok().json();
    assert_eq!(report["moved"][0]["to"], urn("prod", "a"));
    assert_eq!(
        report["forgotten"],
        json!([{"from": urn("dev", "b"), "to": a}])
    );
    assert_eq!(listed(&site, "dev"), ["default", "b", "c"]);
    assert_eq!(listed(&site, "prod"), ["notes-prod", "default", "a"]);
    let sound = site
        .run(&["state", "repair", "--stack", "prod"])
        .ok()
        .stdout;
    assert!(sound.contains("The state is sound"), "{sound}");
    let again = site.state(&moved).failed(3);
    assert!(
        again.stderr.is_empty() || again.stdout.contains("NIM-0609"),
        "{}",
        again.stdout
    );
}

#[test]
fn secrets_of_moved_resources_are_sealed_with_the_other_stacks_key() {
    let Some(sdk) = node_sdk("secrets_of_moved_resources_are_sealed_with_the_other_stacks_key")
    else {
        return;
    };
    let site = Site::notes(&sdk);
    site.config(&["set", "--secret", "password", "open sesame"])
        .ok();
    site.up().ok();
    site.run(&["stack", "init", "prod", "--no-select"]).ok();
    let all = site.state(&["ls", "--stack", "dev", "--json"]).ok().json();
    let resources = all["resources"].as_array().unwrap();
    let password = resources
        .iter()
        .find(|one| one["name"] == "password")
        .unwrap();
    let urn = password["urn"].as_str().unwrap();
    site.state(&["move", "--dest", "prod", urn, "--yes"]).ok();
    let sealed = site.state(&["export", "--stack", "prod"]).ok().stdout;
    assert!(!sealed.contains("open sesame"), "{sealed}");
    let clear = site
        .state(&["export", "--stack", "prod", "--show-secrets"])
        .ok()
        .stdout;
    assert!(clear.contains("open sesame"), "{clear}");
}

#[test]
fn at_the_prompt_details_shows_every_property() {
    let Some(sdk) = node_sdk("at_the_prompt_details_shows_every_property") else {
        return;
    };
    let site = Site::notes(&sdk);
    let mut session = Session::start(&site.command(&["program", "up"]));
    session.wait_for("Update dev? [y/N/details]");
    assert!(!session.seen.contains("hello again"), "{}", session.seen);
    session.answer("details\n");
    session.wait_for("hello again");
    session.answer("n\n");
    let (code, seen) = session.end();
    assert_eq!(code, 130, "{seen}");
    assert_eq!(
        seen.matches("Update dev? [y/N/details]").count(),
        2,
        "{seen}"
    );
    assert!(site.cloud().is_empty());
}

#[test]
fn without_a_terminal_a_plan_is_an_answer_and_silence_is_none() {
    let Some(sdk) = node_sdk("without_a_terminal_a_plan_is_an_answer_and_silence_is_none") else {
        return;
    };
    let site = Site::notes(&sdk);
    let asked = site.program(&["up"]).failed(6);
    assert!(asked.stderr.contains("NIM-0010"), "{}", asked.stderr);
    let page = site
        .program(&["preview", "--format", "markdown", "--save-plan", "p.json"])
        .ok();
    let heading = "<!-- nimbus program dev -->\n### Previewing update of dev: 4 create\n";
    assert!(page.stdout.starts_with(heading), "{}", page.stdout);
    assert!(page.stdout.contains("hello again"), "{}", page.stdout);
    assert!(!page.stdout.contains('\u{1b}'));
    let both = ["preview", "--format", "markdown", "--json"];
    site.program(&both).failed(2);
    site.program(&["up", "--plan", "p.json"]).ok();
    site.program(&["preview", "--expect-no-changes"]).ok();
    site.config(&["set", "greeting", "other"]).ok();
    let changed = site.program(&["preview", "--expect-no-changes"]).failed(6);
    assert!(changed.stderr.contains("NIM-0604"), "{}", changed.stderr);
}

#[test]
fn what_others_call_it_is_pointed_at() {
    let site = Site::new();
    let told = site.run(&["refresh"]).failed(2);
    assert!(
        told.stderr
            .contains("`nimbus refresh` needs the id of a deployment"),
        "{}",
        told.stderr
    );
    assert!(
        told.stderr.contains("`nimbus program refresh`"),
        "{}",
        told.stderr
    );
    let told = site.run(&["stack", "output", "--json"]).failed(2);
    let error = &told.json()["error"];
    assert_eq!(error["code"], "NIM-0002");
    assert!(
        error["help"]
            .as_str()
            .unwrap()
            .contains("`nimbus program outputs`"),
        "{error}"
    );
    let told = site.run(&["preview"]).failed(2);
    assert!(
        told.stderr.contains("`nimbus program preview`"),
        "{}",
        told.stderr
    );

    for elsewhere in [&["-C", "program", "preview"][..], &["preview", "-Cprogram"]] {
        let mut command = site.command(elsewhere);
        let told = finish(command.current_dir(site.path("")).output().unwrap()).failed(2);
        assert!(
            told.stderr.contains("`nimbus program preview`"),
            "{}",
            told.stderr
        );
    }

    for typed in [&["up", "-y"][..], &["up", "--stack", "dev"]] {
        let told = site.run(typed).failed(2);
        let pointer = "`nimbus program up`";
        assert!(told.stderr.contains(pointer), "{}", told.stderr);
    }
    let told = site.run(&["login", "s3://states"]).failed(2);
    assert!(
        told.stderr.contains("PULUMI_BACKEND_URL"),
        "{}",
        told.stderr
    );
    // A workspace is not what `pulumi new` makes, and is made by nobody who asks for that.
    for typed in ["typescript", "aws-python", "kubernetes-go"] {
        let told = site.run(&["new", typed]).failed(2);
        assert!(told.stderr.contains("nimbus adopt"), "{}", told.stderr);
        assert!(!site.path("program").join(typed).exists());
    }

    // A server is started where one was asked for, and nowhere else.
    let up = site.run(&["up"]).failed(2);
    assert!(up.stderr.contains("NIM-0015"), "{}", up.stderr);
    assert!(up.stderr.contains("`nimbus program up`"), "{}", up.stderr);
    let made: Vec<_> = std::fs::read_dir(site.path("home")).unwrap().collect();
    assert!(made.is_empty(), "{made:?}");
}

/// Answers every request with "not found" and tells what was asked for.
fn empty_mirror() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/mirror", listener.local_addr().unwrap());
    let (sender, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).unwrap_or_default();
            let answer = b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let written = stream.write_all(answer);
            let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
            if written.is_err() || sender.send(text).is_err() {
                return;
            }
        }
    });
    (address, asked)
}

#[test]
fn a_plugin_that_a_preview_lacks_is_fetched_where_the_setting_allows_it() {
    let Some(sdk) =
        node_sdk("a_plugin_that_a_preview_lacks_is_fetched_where_the_setting_allows_it")
    else {
        return;
    };
    let site = Site::new();
    let source = "const pulumi = require('@pulumi/pulumi');\n\
                  class Thing extends pulumi.CustomResource {}\n\
                  new Thing('demo:index:Thing', 'one', {});\n";
    site.write("program/index.js", source);
    site.write(
        "program/package.json",
        r#"{"name":"notes","main":"index.js"}"#,
    );
    site.write(
        "program/node_modules/demo/package.json",
        r#"{"name":"demo","version":"1.0.0","pulumi":{"resource":true,"name":"demo","version":"1.0.0"}}"#,
    );
    for entry in std::fs::read_dir(sdk.join("node_modules"))
        .unwrap()
        .flatten()
    {
        let link = site.path("program/node_modules").join(entry.file_name());
        std::os::unix::fs::symlink(entry.path(), link).unwrap();
    }
    let (mirror, asked) = empty_mirror();
    let preview = |setting: Option<&str>| {
        let mut command = site.command(&["program", "preview"]);
        command.env("NIMBUS_ENGINE_PLUGIN_MIRROR_URL", &mirror);
        if let Some(setting) = setting {
            command.env("NIMBUS_ENGINE_INSTALL_PLUGINS", setting);
        }
        finish(command.output().unwrap())
    };
    // Nobody is at a terminal.
    for setting in [None, Some("never")] {
        let told = preview(setting);
        let all = format!("{}{}", told.stdout, told.stderr);
        let told = all.matches("nimbus plugin install demo").count();
        assert_eq!(told, 1, "an error is told once: {all}");
        assert!(asked.try_recv().is_err(), "nothing was fetched");
    }
    let fetched = preview(Some("always")).failed(3);
    let note = "installing the plugin demo 1.0.0, which the program needs";
    assert!(fetched.stderr.contains(note), "{}", fetched.stderr);
    assert!(fetched.stderr.contains("NIM-0305"), "{}", fetched.stderr);
    let first = asked.recv().unwrap();
    let wanted = "GET /mirror/pulumi-resource-demo-v1.0.0-";
    assert!(first.starts_with(wanted), "{first}");
}
