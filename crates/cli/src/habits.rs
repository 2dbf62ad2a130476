//! Words that people type because other tools have them, and what they are called here.
//!
//! Only what the parser refuses comes here: nothing is done by a word that means something else
//! elsewhere. A test tries every command that is pointed at.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind as ClapErrorKind};
use nimbus_core::{Error, ErrorCode};

/// Typed words after the program's name, the command that does it, and what that does. `None` means
/// that there is nothing of the kind, and the text says what there is instead.
const HABITS: &[(&str, Option<&str>, &str)] = &[
    (
        "apply",
        Some("deploy"),
        "deploys an environment; `program up` brings one project up",
    ),
    (
        "plan",
        Some("preview"),
        "shows what a deploy would do, `--save FILE` keeps it as a plan",
    ),
    (
        "import",
        Some("program import"),
        "takes existing objects under management",
    ),
    (
        "cancel",
        Some("program cancel"),
        "stops an operation on a stack, `run cancel` a run",
    ),
    (
        "output",
        Some("program outputs"),
        "prints the outputs of a stack",
    ),
    (
        "outputs",
        Some("program outputs"),
        "prints the outputs of a stack",
    ),
    (
        "about",
        Some("doctor"),
        "says what this machine has and lacks",
    ),
    (
        "whoami",
        Some("login"),
        "signs in to a server and says as whom; local commands need no login",
    ),
    (
        "install",
        Some("plugin install"),
        "gets the plugins that a program needs",
    ),
    (
        "history",
        Some("state history"),
        "lists the operations on a stack, `run list` those on deployments",
    ),
    ("watch", Some("run watch"), "shows a run as it happens"),
    (
        "ls",
        Some("list"),
        "lists deployments, `stack ls` the stacks of a project",
    ),
    (
        "get",
        Some("status"),
        "shows what is deployed, `state ls` what a stack has",
    ),
    (
        "describe",
        Some("run view"),
        "shows one run, `state show` one resource",
    ),
    ("delete", Some("destroy"), "deletes what an environment has"),
    ("remove", Some("destroy"), "deletes what an environment has"),
    (
        "fmt",
        Some("validate"),
        "checks manifests; their layout is yours",
    ),
    ("org", Some("tenant"), "lists and makes tenants of a server"),
    (
        "policy",
        Some("program up"),
        "takes `--policy-pack DIR`, as `deploy` does",
    ),
    (
        "package",
        Some("plugin install"),
        "gets plugins; SDKs of packages come with the project's own package manager",
    ),
    (
        "console",
        Some("up"),
        "runs the control plane, and its console with it",
    ),
    ("server", Some("up"), "runs the control plane"),
    ("serve", Some("up"), "runs the control plane"),
    (
        "convert",
        None,
        "programs stay in their language; `adopt` takes projects as they are",
    ),
    (
        "stack output",
        Some("program outputs"),
        "prints the outputs of a stack",
    ),
    (
        "stack export",
        Some("state export"),
        "writes the state in the official form",
    ),
    (
        "stack import",
        Some("state import"),
        "replaces the state by an exported one",
    ),
    (
        "stack history",
        Some("state history"),
        "lists the operations on a stack",
    ),
    (
        "stack graph",
        Some("graph"),
        "shows which stack of a deployment needs which",
    ),
    (
        "stack list",
        Some("stack ls"),
        "lists the stacks of the project",
    ),
    ("stack new", Some("stack init"), "makes a stack"),
    ("stack delete", Some("stack rm"), "removes a stack"),
    (
        "stack unselect",
        Some("stack select"),
        "selects another one",
    ),
    (
        "stack tag",
        None,
        "tags of stacks are kept when states move, and not edited here",
    ),
    (
        "stack change-secrets-provider",
        None,
        "export with `state export --show-secrets`, then import into a stack with the other provider",
    ),
    (
        "state edit",
        Some("state export"),
        "writes a file; edit it, then `state import` checks and takes it",
    ),
    ("state rm", Some("state delete"), "forgets a resource"),
    (
        "state list",
        Some("state ls"),
        "lists the resources of a stack",
    ),
    (
        "state mv",
        Some("state move"),
        "hands resources to another stack",
    ),
    (
        "config list",
        Some("config ls"),
        "lists the configuration of a stack",
    ),
    ("config unset", Some("config rm"), "removes a value"),
    (
        "plugin list",
        Some("plugin ls"),
        "lists the installed plugins",
    ),
    (
        "plugin uninstall",
        Some("plugin rm"),
        "removes installed plugins",
    ),
];

/// Root commands about deployments, and about a server, that Pulumi's users type in a project directory.
const OF_PROGRAMS: [&str; 5] = ["preview", "destroy", "deploy", "refresh", "up"];

/// Where a word points.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HabitPointer {
    typed: String,
    command: Option<&'static str>,
    what: &'static str,
}

impl HabitPointer {
    pub(crate) fn error(&self, program: &str) -> Error {
        let message = match self.typed.as_str() {
            "up" => format!("`{program} up` starts a control plane, and knows no such option"),
            "login" => {
                format!("`{program} login` signs in to a control plane: `--server URL` names it")
            }
            typed if OF_PROGRAMS.contains(&typed) => {
                format!("`{program} {typed}` needs the id of a deployment")
            }
            typed => format!("there is no `{program} {typed}`"),
        };
        let help = match self.command {
            Some(command) => format!("`{program} {command}` {}", self.what),
            None => self.what.to_owned(),
        };
        Error::new(ErrorCode::USAGE, message).with_help(help)
    }
}

/// What to say instead of the parser's own message, if a habit is behind the mistake.
pub(crate) fn pointer(
    command: &clap::Command,
    error: &clap::Error,
    arguments: &[OsString],
) -> Option<HabitPointer> {
    match error.kind() {
        ClapErrorKind::InvalidSubcommand => {
            let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
                return None;
            };
            let mut typed = path_before(command, arguments, word);
            typed.push(word);
            let typed = typed.join(" ");
            let habit = HABITS.iter().find(|(habit, ..)| *habit == typed)?;
            Some(HabitPointer {
                typed,
                command: habit.1,
                what: habit.2,
            })
        }
        ClapErrorKind::MissingRequiredArgument => in_project(arguments),
        ClapErrorKind::UnknownArgument => match first_word(arguments)?.0 {
            "login" => Some(HabitPointer {
                typed: "login".to_owned(),
                command: None,
                what: "local commands need no login; where states are is said by PULUMI_BACKEND_URL, `backend` in Pulumi.yaml \
                       or --backend",
            }),
            "up" => in_project(arguments),
            _ => None,
        },
        _ => None,
    }
}

/// Names of commands that were typed before a word.
fn path_before<'a>(command: &clap::Command, arguments: &'a [OsString], word: &str) -> Vec<&'a str> {
    let mut at = command;
    let mut path = Vec::new();
    let words = arguments.iter().skip(1).filter_map(|one| one.to_str());
    for one in words.take_while(|one| *one != word) {
        if let Some(below) = at.find_subcommand(one) {
            at = below;
            path.push(one);
        }
    }
    path
}

/// The first word that is no option, and the directory that `-C` names.
fn first_word(arguments: &[OsString]) -> Option<(&str, &Path)> {
    let mut folder = Path::new(".");
    let mut words = arguments.iter().skip(1).filter_map(|one| one.to_str());
    let mut first = None;
    while let Some(word) = words.next() {
        match word.strip_prefix("-C") {
            Some("") => folder = Path::new(words.next()?),
            Some(joined) => folder = Path::new(joined),
            None if !word.starts_with('-') => first = first.or(Some(word)),
            None => {}
        }
    }
    Some((first?, folder))
}

/// `preview` alone, where there is a project and no deployment is named; `up` with an option of Pulumi's.
fn in_project(arguments: &[OsString]) -> Option<HabitPointer> {
    let (first, folder) = first_word(arguments)?;
    let verb = OF_PROGRAMS.iter().find(|verb| **verb == first)?;
    let names = ["Pulumi.yaml", "Pulumi.yml", "Pulumi.json"];
    if !names.iter().any(|name| folder.join(name).exists()) {
        return None;
    }
    let command = match *verb {
        "preview" => "program preview",
        "destroy" => "program destroy",
        "refresh" => "program refresh",
        _ => "program up",
    };
    Some(HabitPointer {
        typed: (*verb).to_owned(),
        command: Some(command),
        what: "works on the stack of the Pulumi project in this folder",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::command;

    fn refused(words: &[&str]) -> Option<HabitPointer> {
        let command = command("nimbus");
        let arguments: Vec<OsString> = words.iter().map(Into::into).collect();
        let error = command.clone().try_get_matches_from(&arguments).err()?;
        pointer(&command, &error, &arguments)
    }

    #[test]
    fn every_habit_is_refused_by_the_parser_and_points_at_a_command_that_exists() {
        let root = command("nimbus");
        for (habit, pointed, _) in HABITS {
            let mut words = vec!["nimbus"];
            words.extend(habit.split(' '));
            let found = refused(&words).unwrap_or_else(|| panic!("{habit} is no habit"));
            assert_eq!(found.typed, *habit);
            let mut at = &root;
            for word in pointed.iter().flat_map(|pointed| pointed.split(' ')) {
                let below = at.find_subcommand(word);
                at = below.unwrap_or_else(|| panic!("{habit} points at {word}, which is none"));
            }
        }
        assert_eq!(refused(&["nimbus", "dcotor"]), None);
    }

    #[test]
    fn commands_of_the_page_for_pulumis_users_exist() {
        let root = command("nimbus");
        let page = include_str!("../../../docs/from-pulumi.md");
        let mut found = 0;
        for quoted in page.split('`').skip(1).step_by(2) {
            let Some(words) = quoted.strip_prefix("nimbus ") else {
                continue;
            };
            let mut at = &root;
            for word in words
                .split(' ')
                .filter(|word| !matches!(*word, "…" | "help" | "SHELL"))
            {
                let below = at.find_subcommand(word);
                at = below.unwrap_or_else(|| panic!("`{quoted}` is no command"));
            }
            found += 1;
        }
        assert!(found > 30, "{found}");
    }

    #[test]
    fn options_before_a_habit_do_not_hide_it() {
        let found = refused(&["nimbus", "--json", "-C", "/x", "stack", "output"]);
        assert_eq!(
            found.map(|found| found.typed).as_deref(),
            Some("stack output")
        );
    }
}
