//! What a run says before it begins and after it failed: true, counted right, and with commands that work as they are
//! told.

use std::fs;

use crate::support::{DIAMOND, ID, Site, node_sdk};

const PAIR: &[crate::support::Stack<'_>] = &[("a", &[]), ("b", &["a"])];

/// Gives `size` of a stack in dev a value that is no text.
fn set_value(site: &Site, stack: &str, value: &str) {
    site.set_size(stack, "to be replaced");
    let path = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"to be replaced\"", value)).unwrap();
}

/// The command in backquotes that has these words in it, as somebody pastes it.
fn pasted(text: &str, words: &str) -> Vec<String> {
    let mut quoted = text.split('`').skip(1).step_by(2);
    let command = quoted.find(|one| one.contains(words));
    let command = command.unwrap_or_else(|| panic!("no `{words}` in {text}"));
    let mut found = command.split_whitespace().map(str::to_owned);
    assert_eq!(found.next().as_deref(), Some("nimbus"), "{command}");
    found.collect()
}

fn paste(site: &Site, command: &[String]) -> crate::support::DeployOutput {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    site.run(&words)
}

#[test]
fn a_secret_or_variable_that_is_missing_is_found_before_the_first_stack_starts() {
    let test = "a_secret_or_variable_that_is_missing_is_found_before_the_first_stack_starts";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, PAIR);
    site.run(&["validate", ID]).ok();
    set_value(&site, "b", "{secret: db/password}");
    let command = format!("nimbus secret set {ID} db/password --environment dev");
    for checked in [
        site.run(&["validate", ID]),
        site.run(&["validate-stack", ID, "b", "--environment", "dev"]),
        site.rehearse("preview", &[]),
        site.rehearse("deploy", &[]),
    ] {
        assert_ne!(checked.code, 0, "{}", checked.stdout);
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert!(said.contains("Missing secret"), "{said}");
        assert!(said.contains("Deployment_Manifest.yaml:"), "{said}");
        assert!(said.contains(&command), "{said}");
    }
    assert_eq!(site.resources(), [""; 0]);
    assert!(!site.rehearsal(".nimbus/runs").join("R0001").exists());
    // What is not about it is not held up.
    site.run(&["validate-stack", ID, "a", "--environment", "dev"])
        .ok();
    site.rehearse("deploy-stack", &["a"]).ok();

    set_value_again(
        &site,
        "{secret: db/password}",
        "\"{{RUNTIME:env:OUR_TOKEN|secret}}\"",
    );
    let missing = site.run(&["validate", ID]);
    assert_ne!(missing.code, 0);
    assert!(
        missing.stdout.contains("the variable OUR_TOKEN is not set"),
        "{}",
        missing.stdout
    );
    let missing = site.rehearse("deploy", &[]);
    assert!(missing.stderr.contains("OUR_TOKEN"), "{}", missing.stderr);
    for verb in [
        &["validate", ID][..],
        &["deploy", ID, "--environment", "dev", "--rehearse"],
    ] {
        let mut command = site.command(verb);
        let ran = command.env("OUR_TOKEN", "hunter2").output().unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
}

fn set_value_again(site: &Site, from: &str, to: &str) {
    let path = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replace(from, to)).unwrap();
}

#[test]
fn a_lost_answer_is_not_damage_and_the_command_that_is_told_works() {
    let test = "a_lost_answer_is_not_damage_and_the_command_that_is_told_works";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, PAIR);
    let orders = site.orders("orders: [{on: create, name: b-first, do: lose}]\n");
    let lost = site.rehearse("deploy", &["--orders", &orders]).with(1);
    let said = lost.stdout;
    assert!(!said.contains("damaged"), "{said}");
    assert!(
        said.contains("Rolled back because nobody knows what became of a step"),
        "{said}"
    );
    assert!(said.contains("Stacks: 2 not rolled back"), "{said}");
    let words = format!("{ID} --environment dev --rehearse --forget-creates");
    let status = site.rehearse("status", &[]).ok();
    assert_eq!(pasted(&status.stdout, &words), pasted(&said, &words));
    paste(&site, &pasted(&said, &words)).ok();
    assert_eq!(site.resources(), [""; 0]);

    // One that holds did not go back, and does not say so.
    let held = ["--orders", &orders, "--on-failure", "hold"];
    let held = site.rehearse("deploy", &held).with(1);
    assert!(!held.stdout.contains("Rolled back"), "{}", held.stdout);
    let asks = site.rehearse("resume", &[]).with(1);
    paste(&site, &pasted(&asks.stdout, &words)).ok();
}

#[test]
fn what_a_failed_stack_did_is_counted_and_what_was_undone_is_told_apart() {
    let test = "what_a_failed_stack_did_is_counted_and_what_was_undone_is_told_apart";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, PAIR);
    let orders = site.orders("orders: [{on: create, name: b-second, do: fail}]\n");
    let held = ["--json", "--orders", &orders, "--on-failure", "hold"];
    let held = site.rehearse("deploy", &held).with(1);
    let summary = held.summary();
    // The stack itself and the first thing.
    assert_eq!(summary["units"][1]["changes"]["create"], 2, "{summary}");
    let status = site.rehearse("status", &["--json"]).ok();
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    let shown = status.to_string();
    let b = status["environments"][0]["stacks"].as_array();
    let b = b.and_then(|stacks| stacks.iter().find(|stack| stack["name"] == "b"));
    assert_eq!(
        b.unwrap_or_else(|| panic!("{shown}"))["resources"],
        2,
        "{shown}"
    );

    let site = Site::new(&sdk, PAIR);
    site.orders("orders: [{on: create, name: b-second, do: fail}]\n");
    let orders = site.path("orders.yaml").display().to_string();
    let undone = site.rehearse("deploy", &["--orders", &orders]).with(1);
    let words = "Resources: none; undone again: 5 create";
    assert!(undone.stdout.contains(words), "{}", undone.stdout);
}

#[test]
fn after_a_wrong_configuration_the_next_command_is_one_that_works() {
    let test = "after_a_wrong_configuration_the_next_command_is_one_that_works";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, PAIR);
    let path = "cloud/stacks/b/src/index.js";
    let program = fs::read_to_string(site.path(path)).unwrap();
    let picky = "if (size === 'wrong') throw new Error('no such size');\nconst first";
    site.write(path, &program.replacen("const first", picky, 1));
    site.set_size("b", "wrong");
    let failed = site.rehearse("deploy", &["--json"]).with(1);
    let next = failed.summary()["next"].as_str().unwrap().to_owned();
    site.set_size("b", "2");
    let refused = paste(&site, &pasted(&next, "nimbus resume"));
    assert!(refused.stderr.contains("NIM-0601"), "{}", refused.stderr);
    paste(&site, &pasted(&next, "nimbus deploy")).ok();
}

#[test]
fn colours_of_a_program_are_in_no_log() {
    let test = "colours_of_a_program_are_in_no_log";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    let path = "cloud/stacks/a/src/index.js";
    let program = fs::read_to_string(site.path(path)).unwrap();
    site.write(
        path,
        &format!("{program}console.log('\\u001b[31mred words\\u001b[0m');\n"),
    );
    site.rehearse("deploy", &[]).ok();
    let logs = site.rehearse("logs", &[]).ok().stdout;
    assert!(logs.contains("[a] red words\n"), "{logs}");
    assert!(!logs.contains('\u{1b}'), "{logs}");
}

#[test]
fn destroying_the_last_environment_needs_its_confirmation() {
    let site = Site::without_sdk(DIAMOND);
    let destroy = |environment: &str, more: &[&str]| {
        let usual = ["destroy", ID, "--environment", environment];
        site.run(&[&usual, more].concat())
    };
    let refused = destroy("stage", &["--yes"]).with(6);
    assert!(refused.stderr.contains("NIM-0010"), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("destroying stage needs --confirm"),
        "{}",
        refused.stderr
    );
    destroy("stage", &["--confirm"]).ok();
    destroy("dev", &["--yes"]).ok();
    // What has no preview does not send people to one.
    let refused = destroy("dev", &[]).with(6);
    assert!(refused.stderr.contains("give --yes"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("preview"), "{}", refused.stderr);
}

/// The cause is what a program said, once, and the advice is for a deployment: Pulumi's own is for a file that it does not read.
#[test]
fn a_program_that_fails_is_told_in_its_own_words_with_advice_that_helps() {
    let test = "a_program_that_fails_is_told_in_its_own_words_with_advice_that_helps";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::new(&sdk, PAIR);
    let path = site.deployment("Deployment_Manifest.yaml");
    site.set_size("b", "misspelt");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("size: \"misspelt\"", "sise: \"1\"")).unwrap();
    let failed = || {
        let ran = site.rehearse("deploy", &["--on-failure", "hold"]).with(1);
        format!("{}{}", ran.stdout, ran.stderr)
    };
    let said = failed();
    let cause = "b: the program failed: Missing required configuration variable 'b:size'";
    assert!(said.contains(cause), "{said}");
    assert_eq!(said.matches("Missing required").count(), 1, "{said}");
    assert!(said.contains("under spec.stacks.b.config"), "{said}");
    assert!(!said.contains("pulumi config set"), "{said}");
    fs::write(&path, text).unwrap();

    site.write(
        "cloud/stacks/b/src/index.js",
        "throw new Error('not today');\n",
    );
    let said = failed();
    assert!(
        said.contains("b: the program failed: Error: not today"),
        "{said}"
    );
    let view = site.run(&["run", "view", ID, "--rehearse"]).ok().stdout;
    assert!(
        view.contains("the program failed: Error: not today"),
        "{view}"
    );
}

/// Of stacks that nobody has counted yet no sum is told.
#[test]
fn a_count_of_resources_is_told_where_all_are_known() {
    let Some(sdk) = node_sdk("a_count_of_resources_is_told_where_all_are_known") else {
        return;
    };
    let site = Site::new(&sdk, PAIR);
    site.rehearse("deploy-stack", &["a"]).ok();
    let first = site.rehearse("deploy", &[]).ok().stderr;
    assert!(first.contains("Changed Stacks: 1 (b)"), "{first}");
    assert!(!first.contains("Total Resource Count"), "{first}");
    site.set_size("b", "2");
    let second = site.rehearse("deploy", &[]).ok().stderr;
    let count = "Total Resource Count: ~3 resources (3 skipped)";
    assert!(second.contains(count), "{second}");
}
