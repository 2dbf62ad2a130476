//! Text of strangers in what commands print: it begins no line, moves no cursor and turns nothing around.

use serde_json::{Value, json};

use crate::support::Site;
use crate::terminal_session::Session;

/// Clears the screen, begins a line of its own and turns the rest of it around.
const HOSTILE: &str = "x\u{1b}[2J\nforged  line\r\u{202e}\u{2066}\u{200f}";
const SHOWN: &str = r"x\u{1b}[2J\nforged  line\r\u{202e}\u{2066}\u{200f}";
/// As a double-quoted text of YAML, whose files have no control characters themselves.
const YAML: &str = r#""x\u001b[2J\nforged  line\r\u202e\u2066\u200f""#;

/// A stack whose program exported such a text, under such a name too.
fn deployed() -> Site {
    let site = Site::new();
    let state = json!({
        "version": 3,
        "deployment": {
            "manifest": {"time": "2026-01-01T00:00:00Z", "magic": "", "version": ""},
            "resources": [{
                "urn": "urn:pulumi:dev::notes::pulumi:pulumi:Stack::notes-dev",
                "custom": false,
                "type": "pulumi:pulumi:Stack",
                "outputs": {"text": HOSTILE, HOSTILE: "named", "list": ["\u{202e}"]},
            }],
        },
    });
    site.write("state.json", &state.to_string());
    site.state(&["import", "--file", "../state.json", "--yes", "--force"])
        .ok();
    site
}

fn assert_harmless(text: &str) {
    let acts = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2066}\u{200f}".contains(c);
    assert!(!text.contains(acts), "{text:?}");
    assert!(
        !text.lines().any(|line| line.starts_with("forged")),
        "{text}"
    );
}

#[test]
fn outputs_of_a_program_are_shown_as_text() {
    let site = deployed();
    let listed = site.program(&["outputs"]).ok().stdout;
    assert_harmless(&listed);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.contains(&format!("  {SHOWN}\n")), "{listed}");
    assert!(listed.contains(&format!("{SHOWN}  named\n")), "{listed}");

    let shown = site.state(&["show", "notes-dev"]).ok().stdout;
    assert_harmless(&shown);
    assert!(shown.contains(r"\u{202e}"), "{shown}");

    // Programs get what there is.
    let exact = site.program(&["outputs", "--json"]).ok().json();
    assert_eq!(exact["outputs"]["text"], HOSTILE);
    assert_eq!(exact["outputs"][HOSTILE], "named");
    let one = site.program(&["outputs", "text"]).ok().stdout;
    assert_eq!(one, format!("{HOSTILE}\n"));
}

#[test]
fn one_output_is_shown_as_text_on_a_terminal() {
    let site = deployed();
    let session = Session::start(&site.command(&["program", "outputs", "text"]));
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains(r"x\u{1b}[2J"), "{seen:?}");
    assert!(!seen.contains("\u{1b}[2J"), "{seen:?}");
    assert!(!seen.contains('\u{202e}'), "{seen:?}");
}

#[test]
fn values_of_a_stacks_configuration_are_shown_as_text() {
    let site = Site::new();
    site.write(
        "program/Pulumi.dev.yaml",
        &format!("config:\n  notes:greeting: {YAML}\n"),
    );
    let listed = site.config(&["ls"]).ok().stdout;
    assert_eq!(listed, format!("notes:greeting  {SHOWN}\n"));
    let exact = site.config(&["ls", "--json"]).ok().json();
    assert_eq!(exact["entries"][0]["value"], HOSTILE);
    let one = site.config(&["get", "greeting"]).ok().stdout;
    assert_eq!(one, format!("{HOSTILE}\n"));
}

#[test]
fn settings_that_a_file_says_are_shown_as_text() {
    let site = Site::new();
    site.write(
        "program/config/nimbus.yaml",
        &format!("app:\n  name: {YAML}\n"),
    );
    for arguments in [&["config", "show"][..], &["config", "show", "--origin"]] {
        let shown = site.run(arguments).ok().stdout;
        assert_harmless(&shown);
        assert!(shown.contains(SHOWN), "{shown}");
    }
    let exact = site.run(&["config", "show", "--json"]).ok().json();
    let settings = exact["settings"].as_array().unwrap();
    let name = settings.iter().find(|setting| setting["key"] == "app.name");
    assert_eq!(
        name.map(|setting| &setting["value"]),
        Some(&Value::from(HOSTILE))
    );
}
