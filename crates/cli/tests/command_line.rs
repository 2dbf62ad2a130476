//! The real binaries, as a user meets them.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

/// What a run left behind.
struct BinaryOutput {
    code: i32,
    stdout: String,
    stderr: String,
}

impl BinaryOutput {
    fn json(&self) -> Value {
        assert_eq!(
            self.stdout.lines().count(),
            1,
            "one document: {}",
            self.stdout
        );
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// A program in an environment of its own: no settings, no colours, an empty home.
struct Machine {
    home: TempDir,
    variables: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Self {
        Self {
            home: TempDir::new().unwrap(),
            variables: Vec::new(),
        }
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn file(self, name: &str, text: &str) -> Self {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn run_as(&self, program: &str, arguments: &[&str]) -> BinaryOutput {
        let mut command = Command::cargo_bin(program).unwrap();
        command
            .env_clear()
            .current_dir(self.path())
            .env("HOME", self.path())
            .args(arguments);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.variables.iter().cloned());
        let output = command.output().unwrap();
        BinaryOutput {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn run(&self, arguments: &[&str]) -> BinaryOutput {
        self.run_as("nimbus", arguments)
    }
}

fn valid_against(schema: &str, document: &Value) {
    let path = format!(
        "{}/../../docs/reference/json/{schema}.schema.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(document)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?} in {document}");
}

#[test]
fn help_is_grouped_and_goes_to_standard_output() {
    let ran = Machine::new().run(&["--help"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn help_of_a_command_shows_its_options_and_the_common_ones() {
    let ran = Machine::new().run(&["help", "config", "show"]);
    assert_eq!(ran.code, 0);
    insta::assert_snapshot!(ran.stdout);
}

/// Verbs of a group, each with the command that its description names: `list  List … (list-templates)`.
fn verbs(help: &str) -> Vec<(String, String)> {
    let named = Regex::new(r"^  ([a-z-]+) +.*\(([a-z -]+)\)(?: \[alias(?:es)?: .*\])?$").unwrap();
    let commands = help.split("Commands:\n").nth(1).unwrap();
    let lines = commands.lines().take_while(|line| !line.is_empty());
    let lines = lines.filter(|line| !line.starts_with("  help "));
    let verb = |line: &str| {
        let found = named.captures(line);
        assert!(found.is_some(), "which command is this? {line}");
        let found = found.unwrap();
        (found[1].to_owned(), found[2].to_owned())
    };
    lines.map(verb).collect()
}

#[test]
fn a_verb_of_a_group_is_the_command_that_it_names() {
    let machine = Machine::new();
    let help = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(["--help"]).collect();
        let ran = machine.run(&words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
        ran.stdout
    };
    // From the usage on: only what stands above it differs.
    let options = |words: &str| {
        let text = help(words);
        let usage = text.find("Usage:").unwrap();
        text[usage..].replace(&format!("nimbus {words}"), "nimbus IT")
    };
    for (group, least) in [
        ("deployment", 15),
        ("environment", 8),
        ("template", 5),
        ("component", 18),
    ] {
        let verbs = verbs(&help(group));
        assert!(verbs.len() >= least, "{group}: {verbs:?}");
        for (verb, command) in verbs {
            let ours = format!("{group} {verb}");
            assert_eq!(options(&ours), options(&command), "{ours} is {command}");
        }
    }
}

#[test]
fn a_verb_of_a_group_does_what_its_command_does() {
    let machine = Machine::new();
    let init = ["D1GROUP", "--org", "acme", "--project", "shop"];
    let domain = ["--domain", "shop.example.com"];
    let made = machine.run(&[&["deployment", "create"], &init[..], &domain].concat());
    assert_eq!(made.code, 0, "{}", made.stderr);
    for (verb, command) in [
        (&["deployment", "list"][..], &["list"][..]),
        (&["deployment", "ls"], &["list"]),
        (&["deployment", "status", "D1GROUP"], &["status", "D1GROUP"]),
        (
            &["environment", "list", "D1GROUP"],
            &["list-environments", "D1GROUP"],
        ),
        (&["template", "list"], &["list-templates"]),
        (&["component", "list"], &["list-stacks"]),
    ] {
        for more in [&[][..], &["--json"]] {
            let [ours, theirs] = [verb, command].map(|words| machine.run(&[words, more].concat()));
            assert_eq!((ours.code, theirs.code), (0, 0), "{verb:?}");
            assert!(!ours.stdout.is_empty(), "{verb:?}");
            assert_eq!(ours.stdout, theirs.stdout, "{verb:?}");
        }
    }
    assert!(
        machine
            .run(&["deployment", "list"])
            .stdout
            .contains("D1GROUP")
    );
}

#[test]
fn the_second_name_is_the_same_program() {
    let machine = Machine::new();
    let nimbus = machine.run_as("nimbus", &["--help"]).stdout;
    let cloud = machine.run_as("cloud", &["--help"]).stdout;
    assert!(cloud.contains("Usage: cloud "), "{cloud}");
    assert_eq!(cloud.replace("cloud ", "nimbus "), nimbus);
    let version = machine.run_as("cloud", &["--version"]).stdout;
    assert_eq!(version, format!("cloud {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn without_a_command_the_help_is_an_error() {
    let ran = Machine::new().run(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("Usage: nimbus"), "{}", ran.stderr);
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    let mut all = String::new();
    for arguments in [
        &["dcotor"][..],
        &["doctor", "--jsn"],
        &["explain"],
        &["completions", "cmd"],
        &["config"],
        &["man"],
        &["explain", "NIM-0001", "--list"],
        &["-C"],
    ] {
        let ran = Machine::new().run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}");
        all.push_str(&format!(
            "$ nimbus {}\n{}\n",
            arguments.join(" "),
            ran.stderr
        ));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn with_json_a_mistake_is_one_object_on_standard_output() {
    for arguments in [
        &["--json", "dcotor"][..],
        &["dcotor", "--json"],
        &["--json"],
    ] {
        let ran = Machine::new().run(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (2, ""), "{arguments:?}");
        let document = ran.json();
        valid_against("error", &document);
        assert_eq!(document["error"]["code"], "NIM-0002");
    }
    let document = Machine::new().run(&["--json", "completoins"]).json();
    let help = document["error"]["help"].as_str().unwrap();
    assert!(
        help.contains("similar subcommand") && help.contains("'completions'"),
        "{help}"
    );
}

#[test]
fn an_unknown_key_is_marked_in_the_file_with_the_nearest_one() {
    let machine = Machine::new().file(
        "config/nimbus.yaml",
        "app:\n  name: x\nloging:\n  level: INFO\n",
    );
    let ran = machine.run(&["config", "show"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(ran.stderr, @"
    NIM-0008

      x config/nimbus.yaml has an unknown key `loging`
       ,-[config/nimbus.yaml:3:1]
     2 |   name: x
     3 | loging:
       : ^^^|^^
       :    `-- not a setting
     4 |   level: INFO
       `----
      help: did you mean `logging`?

      nimbus explain NIM-0008 tells more
    ");
    let document = machine.run(&["config", "show", "--json"]).json();
    valid_against("error", &document);
    let place = &document["error"]["places"][0];
    assert_eq!(
        (&place["file"], &place["line"]),
        (&"config/nimbus.yaml".into(), &3.into())
    );
}

#[test]
fn a_bad_value_is_refused_with_what_is_accepted() {
    let machine = Machine::new().file("config/nimbus.yaml", "tenancy:\n  isolation: none\n");
    let ran = machine.run(&["config", "show"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("schema_with_rls"), "{}", ran.stderr);
    let ran = Machine::new().run(&["config", "show", "--log-level", "loud"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--log-level"), "{}", ran.stderr);
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let machine = Machine::new().file("config/nimbus.yaml", "app: \x1b[31m\n");
    let ran = machine.run(&["config", "show"]);
    assert_eq!(ran.code, 2);
    assert!(!ran.stderr.contains('\x1b'), "{:?}", ran.stderr);
    assert!(ran.stderr.contains("U+001B"), "{}", ran.stderr);
}

#[test]
fn settings_are_shown_with_their_origin_and_without_secrets() {
    let machine = Machine::new()
        .file(
            "config/nimbus.yaml",
            "app:\n  name: Sky\ndb:\n  password: hunter2\n",
        )
        .variable("NIMBUS_DB_PORT", "6543")
        .variable("NIMBUS_JWT_SECRET", "jwt-secret");
    let ran = machine.run(&["config", "show", "--origin", "--log-level", "warn"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let chosen: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| !line.ends_with("default"))
        .collect();
    insta::assert_snapshot!(chosen.join("\n"), @"
    app.name                         Sky                        config/nimbus.yaml:2
    db.port                          6543                       NIMBUS_DB_PORT
    db.password                      [secret]                   config/nimbus.yaml:4
    auth.jwt_secret                  [secret]                   NIMBUS_JWT_SECRET
    logging.level                    WARN                       --log-level
    ");
    let plain = machine.run(&["config", "show"]).stdout;
    assert!(
        plain.contains("Sky") && !plain.contains("config/nimbus.yaml"),
        "{plain}"
    );

    let ran = machine.run(&["config", "show", "--json"]);
    let document = ran.json();
    valid_against("config-show-v1", &document);
    assert!(!ran.stdout.contains("hunter2") && !ran.stdout.contains("jwt-secret"));
    let settings = document["settings"].as_array().unwrap();
    let port = settings
        .iter()
        .find(|setting| setting["key"] == "db.port")
        .unwrap();
    assert_eq!(
        (&port["value"], &port["origin"]["variable"]),
        (&6543.into(), &"NIMBUS_DB_PORT".into())
    );
}

#[test]
fn another_settings_file_can_be_named() {
    let machine = Machine::new().file("conf/other.yaml", "app: {name: Other}\n");
    let name = |ran: BinaryOutput| {
        ran.stdout
            .lines()
            .next()
            .unwrap()
            .split_whitespace()
            .last()
            .unwrap()
            .to_owned()
    };
    assert_eq!(name(machine.run(&["config", "show"])), "Nimbus");
    assert_eq!(
        name(machine.run(&["config", "show", "--config", "conf/other.yaml"])),
        "Other"
    );
    assert_eq!(
        name(machine.run(&["-C", "conf", "--config", "other.yaml", "config", "show"])),
        "Other"
    );
    let machine = machine.variable("NIMBUS_CONFIG", "conf/other.yaml");
    assert_eq!(name(machine.run(&["config", "show"])), "Other");
    let ran = machine.run(&["config", "show", "--config", "absent.yaml"]);
    assert_eq!(ran.code, 7);
    assert!(ran.stderr.contains("absent.yaml"), "{}", ran.stderr);
}

#[test]
fn a_directory_that_is_not_there_cannot_be_entered() {
    let machine = Machine::new();
    let ran = machine.run(&["-C", "no/such/place", "doctor"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (7, ""));
    assert!(ran.stderr.contains("no/such/place"), "{}", ran.stderr);
    let document = machine
        .run(&["-C", "no/such/place", "doctor", "--json"])
        .json();
    valid_against("error", &document);
    assert_eq!(document["error"]["code"], "NIM-0003");
}

#[test]
fn an_unknown_variable_is_told_on_standard_error_only() {
    let machine = Machine::new().variable("NIMBUS_DB_PASWORD", "hunter2");
    let ran = machine.run(&["config", "show"]);
    assert_eq!(ran.code, 0);
    assert!(
        ran.stderr.contains("did you mean NIMBUS_DB_PASSWORD?"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("hunter2"));
    let ran = machine.run(&["config", "show", "--json"]);
    let line: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["trace_id"].as_str().unwrap().len(), 32);
    assert_eq!(ran.json()["unknown_variables"][0], "NIMBUS_DB_PASWORD");
}

#[test]
fn every_code_can_be_explained() {
    let machine = Machine::new();
    let list = machine.run(&["explain", "--list"]);
    assert!(
        list.stdout
            .starts_with("NIM-0001  Nimbus itself went wrong\n"),
        "{}",
        list.stdout
    );
    let document = machine.run(&["explain", "--list", "--json"]).json();
    valid_against("explain-list-v1", &document);
    assert_eq!(
        document["codes"].as_array().unwrap().len(),
        list.stdout.lines().count()
    );

    for spelling in ["NIM-0008", "nim-0008", "8"] {
        let ran = machine.run(&["explain", spelling]);
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.starts_with("# NIM-0008: "), "{}", ran.stdout);
    }
    let document = machine.run(&["explain", "8", "--json"]).json();
    valid_against("explain-v1", &document);
    assert_eq!(document["code"], "NIM-0008");

    let ran = machine.run(&["explain", "NIM-9999"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("NIM-0011"), "{}", ran.stderr);
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = Machine::new().run(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{shell}");
        assert!(
            ran.stdout.contains("NIMBUS_COMPLETE"),
            "{shell}: {}",
            ran.stdout
        );
    }
    let cloud = Machine::new()
        .run_as("cloud", &["completions", "bash"])
        .stdout;
    assert!(cloud.contains(" cloud\n"), "{cloud}");
    assert!(!cloud.contains("nimbus "), "{cloud}");
}

#[test]
fn a_shell_is_told_commands_options_and_what_there_is() {
    let machine = Machine::new().variable("NIMBUS_COMPLETE", "fish");
    let complete = |words: &[&str]| {
        let ran = machine.run(&[&["--", "nimbus"], words].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
        let value = |line: &str| line.split('\t').next().unwrap().to_owned();
        ran.stdout.lines().map(value).collect::<Vec<String>>()
    };
    assert_eq!(complete(&["doct"]), ["doctor"]);
    assert!(complete(&["run", ""]).contains(&"watch".to_owned()));
    assert!(complete(&["preview", "--form"]).contains(&"--format".to_owned()));

    let mut command = Command::cargo_bin("nimbus").unwrap();
    command
        .env_clear()
        .env("HOME", machine.path())
        .current_dir(machine.path())
        .args(["new"])
        .assert()
        .success();
    let mut command = Command::cargo_bin("nimbus").unwrap();
    command
        .env_clear()
        .env("HOME", machine.path())
        .current_dir(machine.path())
        .args(["init", "D1SHELL", "--org", "acme", "--project", "shop"])
        .args(["--domain", "shop.example.com"])
        .assert()
        .success();
    assert_eq!(complete(&["deploy", "D"]), ["D1SHELL"]);
    assert_eq!(complete(&["status", "D"]), ["D1SHELL"]);
    let environments = complete(&["deploy", "D1SHELL", "--environment", ""]);
    assert!(environments.contains(&"dev".to_owned()), "{environments:?}");
    let stacks = complete(&["logs", "D1SHELL", "--stack", "net"]);
    assert_eq!(stacks, ["network"]);
    fs::write(machine.path().join("Pulumi.prod.yaml"), "config: {}\n").unwrap();
    assert_eq!(complete(&["program", "up", "--stack", "p"]), ["prod"]);
    assert_eq!(complete(&["stack", "select", ""]).first().unwrap(), "prod");
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let machine = Machine::new();
    let ran = machine.run(&["man", "--out", "share/man1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for page in [
        "nimbus",
        "nimbus-doctor",
        "nimbus-config",
        "nimbus-config-show",
        "nimbus-explain",
    ] {
        let text = fs::read_to_string(machine.path().join(format!("share/man1/{page}.1"))).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
    }
    assert!(
        !machine
            .path()
            .join("share/man1/nimbus-internal-docs.1")
            .exists()
    );
    assert_eq!(
        machine
            .run(&["man", "--out", "share/man1", "--quiet"])
            .stderr,
        ""
    );
    let blocked = Machine::new().file("share", "not a directory");
    assert_eq!(blocked.run(&["man", "--out", "share/man1"]).code, 7);
}

#[test]
fn reference_documents_are_the_committed_ones() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["internal-docs", "--out", "out"]).code, 0);
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for name in [
        "cli.md",
        "configuration.md",
        "exit-codes.md",
        "json-output.md",
        "nimbus.schema.json",
    ] {
        let fresh = fs::read_to_string(machine.path().join("out").join(name)).unwrap();
        let old = fs::read_to_string(committed.join(name)).unwrap();
        assert!(
            fresh == old,
            "docs/reference/{name} is old: run `cargo xtask tidy --bless`"
        );
    }
}
