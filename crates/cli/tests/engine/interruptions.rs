//! Operations that are stopped, killed or in each other's way.

use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Site, end_of, node_sdk, wait_until};

pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).unwrap();
    kill(Pid::from_raw(pid), signal).unwrap();
}

#[test]
fn after_a_kill_the_next_command_explains_and_repairs() {
    let Some(sdk) = node_sdk("after_a_kill_the_next_command_explains_and_repairs") else {
        return;
    };
    let site = Site::notes(&sdk);
    site.up().ok();
    let child = site.stalled_up();
    signal(&child, Signal::SIGKILL);
    end_of(child).failed(-1);

    let preview = site.program(&["preview"]).ok();
    assert!(
        preview.stdout.contains("did not finish"),
        "{}",
        preview.stdout
    );
    assert!(
        preview.stdout.contains("creating urn:pulumi:dev::notes"),
        "{}",
        preview.stdout
    );
    let repair = site.state(&["repair", "--json"]).ok().json();
    assert_eq!(repair["unknown"], serde_json::json!([]), "not settled yet");
    assert!(
        repair["journal"].as_str().unwrap().contains("::slow"),
        "{repair}"
    );
    assert_eq!(repair["written"], false);

    let refused = site.up().failed(6);
    assert!(refused.stderr.contains("NIM-0602"), "{}", refused.stderr);
    assert!(refused.stderr.contains("::slow"), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("--clear-pending-creates"),
        "the refusal names the command that works: {}",
        refused.stderr
    );
    let repair = site.state(&["repair"]).failed(6);
    assert!(!repair.stdout.contains("sound"), "{}", repair.stdout);
    for words in ["creating urn:pulumi:dev", "--clear-pending-creates"] {
        assert!(repair.stdout.contains(words), "{}", repair.stdout);
    }
    let listed = site.state(&["ls", "--stack", "dev", "--json"]).ok().json();
    assert_eq!(listed["unknown"][0]["kind"], "creating");

    // Somebody looks, finds the note and removes it.
    std::fs::remove_file(site.path("cloud/slow.note")).unwrap();
    site.program(&[
        "refresh",
        "--yes",
        "--skip-preview",
        "--clear-pending-creates",
    ])
    .ok();
    site.go();
    site.up().ok();
    assert_eq!(site.cloud(), ["first.note", "second.note", "slow.note"]);
    let history = site.state(&["history"]).ok();
    assert!(history.stdout.contains("interrupted"), "{}", history.stdout);
}

#[test]
fn a_create_that_was_cut_short_is_found_by_its_name_and_not_made_twice() {
    let test = "a_create_that_was_cut_short_is_found_by_its_name_and_not_made_twice";
    let Some(sdk) = node_sdk(test) else {
        return;
    };
    let site = Site::notes(&sdk);
    // Only one create is in flight when the engine dies.
    site.up().ok();
    let child = site.stalled_up();
    signal(&child, Signal::SIGKILL);
    end_of(child).failed(-1);
    site.up().failed(6);
    let refresh = site.program(&["refresh", "--yes", "--skip-preview"]).ok();
    assert!(
        refresh.stdout.contains("found as slow"),
        "{}",
        refresh.stdout
    );
    let written = std::fs::metadata(site.path("cloud/slow.note")).unwrap();
    site.up().ok();
    let after = std::fs::metadata(site.path("cloud/slow.note")).unwrap();
    assert_eq!(
        written.modified().unwrap(),
        after.modified().unwrap(),
        "it was not written again"
    );
    let listed = site.state(&["ls", "--stack", "dev", "--json"]).ok().json();
    assert_eq!(listed["unknown"], serde_json::json!([]), "{listed}");
}

#[test]
fn a_second_run_is_refused_and_names_the_first() {
    let Some(sdk) = node_sdk("a_second_run_is_refused_and_names_the_first") else {
        return;
    };
    let site = Site::notes(&sdk);
    let child = site.stalled_up();
    let second = site
        .program(&["destroy", "--yes", "--skip-preview", "--json"])
        .failed(4);
    let error = &second.json()["error"];
    assert_eq!(error["code"], "NIM-0209");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("process {}", child.id())),
        "{message}"
    );
    assert!(message.contains("nimbus program up"), "{message}");
    let unlock = site.state(&["unlock", "--yes"]).failed(6);
    assert!(unlock.stderr.contains("NIM-0211"), "{}", unlock.stderr);
    site.go();
    end_of(child).ok();
    site.program(&["destroy", "--yes", "--skip-preview"]).ok();
    assert!(site.cloud().is_empty());
}

/// F17: whatever else would change a stack is refused while it is updated; looking at it is allowed, and shows
/// what was there before.
#[test]
fn whatever_would_change_a_stack_is_refused_while_it_is_updated() {
    let Some(sdk) = node_sdk("whatever_would_change_a_stack_is_refused_while_it_is_updated") else {
        return;
    };
    let site = Site::notes(&sdk);
    site.up().ok();
    let before = site.state(&["export"]).ok().stdout;
    site.write("before.json", &before);
    let notes = site.cloud();
    let child = site.stalled_up();
    let apply = ["--yes", "--skip-preview", "--json"];
    let imported = ["import", "pkg:index:Note", "other", "other-1"];
    for arguments in [&["up"][..], &["destroy"], &["refresh"], &imported] {
        let arguments = [&["program"], arguments, &apply].concat();
        let refused = site.run(&arguments).failed(4);
        assert_eq!(refused.json()["error"]["code"], "NIM-0209", "{arguments:?}");
    }
    let arguments = ["import", "--file", "../before.json", "--yes", "--force"];
    let refused = site.state(&arguments);
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    assert!(refused.stderr.contains("NIM-0209"), "{}", refused.stderr);
    // These look, and settle nothing.
    site.state(&["repair", "--yes"]);
    let preview = site.program(&["preview"]);
    assert!(preview.code == 0 || preview.stderr.contains("NIM-0209"));
    assert_eq!(site.state(&["export"]).ok().stdout, before);
    let with_slow: Vec<String> = notes.iter().cloned().chain(["slow.note".into()]).collect();
    assert_eq!(site.cloud(), with_slow, "nobody else wrote anything");
    site.go();
    end_of(child).ok();
    let listed = site.state(&["ls", "--stack", "dev"]).ok();
    assert!(listed.stdout.contains("::slow  slow"), "{}", listed.stdout);
}

#[test]
fn cancel_lets_the_running_step_end_and_keeps_it() {
    let Some(sdk) = node_sdk("cancel_lets_the_running_step_end_and_keeps_it") else {
        return;
    };
    let site = Site::notes(&sdk);
    let child = site.stalled_up();
    let cancel = site.program(&["cancel", "--json"]).ok().json();
    assert_eq!(cancel["pid"], child.id());
    site.go();
    let ended = end_of(child).failed(130);
    assert!(ended.stderr.contains("NIM-0012"), "{}", ended.stderr);
    let listed = site.state(&["ls", "--stack", "dev"]).ok();
    assert!(listed.stdout.contains("::slow  slow"), "{}", listed.stdout);
    assert!(!listed.stdout.contains("nobody knows"), "{}", listed.stdout);
    site.up().ok();
}

#[test]
fn a_second_request_kills_and_the_journal_knows() {
    let Some(sdk) = node_sdk("a_second_request_kills_and_the_journal_knows") else {
        return;
    };
    let site = Site::notes(&sdk);
    let child = site.stalled_up();
    site.program(&["cancel", "--kill"]).ok();
    end_of(child).failed(130);
    let waiting = site.state(&["ls", "--stack", "dev"]).ok();
    assert!(
        waiting.stdout.contains("? creating slow") && waiting.stdout.contains("was interrupted"),
        "{}",
        waiting.stdout
    );
    let refused = site.up().failed(6);
    assert!(
        refused.stdout.contains("did not finish"),
        "{}",
        refused.stdout
    );
    assert!(refused.stderr.contains("NIM-0602"), "{}", refused.stderr);
    let state = site.state(&["ls", "--stack", "dev"]).ok();
    assert!(state.stdout.contains("? creating slow"), "{}", state.stdout);
}

/// Processes of this machine whose variables name the site.
#[cfg(target_os = "linux")]
pub(crate) fn processes_of(site: &Site) -> Vec<String> {
    let home = site.path("home").display().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| {
            let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&variables).contains(&home)
        })
        .collect()
}

/// One request is enough, even if a provider never answers: after half a minute it is left behind,
/// and so is nothing that runs.
#[cfg(target_os = "linux")]
#[test]
fn a_provider_that_never_answers_is_ended_with_the_run() {
    let Some(sdk) = node_sdk("a_provider_that_never_answers_is_ended_with_the_run") else {
        return;
    };
    let site = Site::notes(&sdk);
    let child = site.stalled_up();
    assert!(processes_of(&site).len() >= 2, "the engine and a provider");
    let asked = std::time::Instant::now();
    signal(&child, Signal::SIGINT);
    let ended = end_of(child);
    // Either the wait for the provider ends first or the provider does, being made to.
    assert_ne!(ended.code, 0, "{}", ended.stdout);
    assert!(ended.stdout.contains("Cancelled."), "{}", ended.stdout);
    wait_until("nothing is left", || processes_of(&site).is_empty());
    println!("gone {:?} after the request", asked.elapsed());
    let state = site.state(&["ls", "--stack", "dev"]).ok();
    assert!(
        state.stdout.contains("? creating slow"),
        "{}\nafter:\n{}\n{}",
        state.stdout,
        ended.stdout,
        ended.stderr
    );
}
