//! The command line as types.

use std::path::PathBuf;

use clap::{CommandFactory as _, Parser};

use crate::commands::NimbusCommand;

/// Runs Pulumi programs for many teams: plan, deploy, roll back, with state that cannot be lost.
#[derive(Debug, Parser)]
#[command(
    name = "nimbus",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: NimbusCommand,
}

/// Options that every command takes.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct GlobalArgs {
    /// Write one JSON document to standard output: the result, or the error
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Say nothing but results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    /// No colours, whatever the terminal; NO_COLOR does the same
    #[arg(long, global = true)]
    pub(crate) no_color: bool,

    /// Run as if started in this directory
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,

    // With `program up` and `program preview` also KEY=VALUE, as the official command line has it:
    // the value is saved in the configuration of the stack first. docs/engines.md says so;
    // here it would double the help of every command.
    /// Settings file instead of config/nimbus.yaml, relative to the directory of -C
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Vec<PathBuf>,

    /// Work on this server instead of on local files, as whoever signed in there; also NIMBUS_SERVER
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) server: Option<String>,

    /// Least severe log level on standard error: error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", global = true)]
    pub(crate) log_level: Option<String>,
}

/// Headings of the root help with their commands. A test fails when a command is in none.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Deployments",
        &[
            "new",
            "deployment",
            "environment",
            "component",
            "template",
            "run",
            "workspace",
            "secret",
        ],
    ),
    (
        "Day by day",
        &[
            "init", "adopt", "preview", "deploy", "status", "logs", "why", "refresh", "resume",
            "rollback", "destroy",
        ],
    ),
    (
        "Programs and their state",
        &[
            "program",
            "stack",
            "state",
            "stack-config",
            "plugin",
            "sandbox",
        ],
    ),
    (
        "Control plane",
        &[
            "up",
            "worker",
            "migrate-database",
            "backup",
            "restore",
            "recover",
        ],
    ),
    (
        "Administration of a control plane",
        &[
            "setup",
            "login",
            "logout",
            "tenant",
            "user",
            "group",
            "role",
            "key",
            "audit",
            "catalog",
            "rule",
            "zone",
            "cmdb",
            "approve",
            "notification",
            "webhook",
            "workflow",
            "schedule",
            "resolver",
            "ipam",
            "naming",
            "image",
        ],
    ),
    (
        "Set up and inspect",
        &[
            "doctor",
            "validate-aws",
            "validate-pulumi",
            "config",
            "locks",
            "unlock",
            "latencies",
            "rotate",
        ],
    ),
    (
        "The same as a verb of a group, by an earlier name",
        &[
            "list",
            "validate",
            "validate-stack",
            "validate-dependencies",
            "graph",
            "decommission",
            "deploy-stack",
            "destroy-stack",
            "export-state",
            "gate",
            "list-environments",
            "enable-environment",
            "disable-environment",
            "list-templates",
            "show-template",
            "validate-template",
            "create-template",
            "update-template",
            "list-stacks",
            "discover",
            "discover-resources",
            "new-stack",
            "register-stack",
            "update-stack",
            "unregister-stack",
            "register-all-stacks",
        ],
    ),
    (
        "From version 2.3",
        &[
            "migrate",
            "migrate-environment-names",
            "migrate-stack-naming",
            "migrate-stack-scripts",
            "migrate-undo",
        ],
    ),
    ("Help", &["explain", "completions", "man", "help"]),
];

/// The parser, under the name by which it was called.
pub(crate) fn command(program: &str) -> clap::Command {
    let command = Cli::command()
        .name(program.to_owned())
        .bin_name(program.to_owned());
    let header = command.get_styles().get_header();
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n\
         {}{header}Options:{header:#}\n{{options}}{{after-help}}",
        grouped_commands(&command)
    );
    command.help_template(template).after_help(format!(
        "`{program} help COMMAND` explains a command, `{program} explain NIM-0001` an error."
    ))
}

fn grouped_commands(command: &clap::Command) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text.push_str(&format!("{header}{heading}:{header:#}\n"));
        for name in *names {
            let about = match command.find_subcommand(name) {
                Some(subcommand) => subcommand.get_about().map(ToString::to_string),
                // The library adds it while parsing.
                None => Some("Explain a command".to_owned()),
            };
            let about = about.unwrap_or_default();
            text.push_str(&format!("  {literal}{name:<25}{literal:#} {about}\n"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command("nimbus").debug_assert();
    }

    #[test]
    fn every_visible_command_is_in_a_group_of_the_help() {
        let command = command("nimbus");
        for subcommand in command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let name = subcommand.get_name();
            let listed = GROUPS.iter().any(|(_, names)| names.contains(&name));
            assert!(listed, "{name} is in no group of args::GROUPS");
            assert!(
                subcommand.get_about().is_some(),
                "{name} has no description"
            );
        }
    }
}
