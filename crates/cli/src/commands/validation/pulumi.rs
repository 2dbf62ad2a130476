//! `nimbus validate-pulumi`: whether programs can run and their state be kept.
//!
//! The embedded engine needs no official command line and no account; both are reported, because
//! `--engine pulumi` and stacks that live elsewhere need them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nimbus_core::{ErrorKind, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct ValidatePulumiArgs {}

pub(crate) async fn run(_: ValidatePulumiArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let home = variable("PULUMI_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".pulumi")));
    let checks = vec![
        InstallationCheck::good("engine", format!("embedded, {}", env!("CARGO_PKG_VERSION"))),
        runtime(),
        passphrase(&variable),
        state(&variable),
        official(),
        login(
            &variable,
            home.as_ref().map(|home| home.join("credentials.json")),
        ),
    ];
    let valid = checks.iter().all(|check| check.status != Status::Missing);
    context.output.result(&PulumiReport { valid, checks })?;
    Ok(if valid {
        CommandOutcome::Done
    } else {
        CommandOutcome::Reported(ErrorKind::Unavailable)
    })
}

fn runtime() -> InstallationCheck {
    match version("node", "--version") {
        Some(version) => InstallationCheck::good("node", version),
        None => InstallationCheck {
            name: "node",
            status: Status::Missing,
            detail: "not installed; TypeScript programs run with it".to_owned(),
            help: Some("nimbus doctor --fix".to_owned()),
        },
    }
}

fn passphrase(variable: &impl Fn(&str) -> Option<String>) -> InstallationCheck {
    for name in ["PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"] {
        if variable(name).is_some() {
            return InstallationCheck::good("passphrase", format!("from {name}"));
        }
    }
    // An empty passphrase is a choice, too, but it must be made.
    if std::env::var_os("PULUMI_CONFIG_PASSPHRASE").is_some() {
        return InstallationCheck::good(
            "passphrase",
            "empty, from PULUMI_CONFIG_PASSPHRASE".to_owned(),
        );
    }
    InstallationCheck {
        name: "passphrase",
        status: Status::Missing,
        detail: "not set; secrets in state are encrypted with it".to_owned(),
        help: Some(
            "export PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE with the name of a file".to_owned(),
        ),
    }
}

fn state(variable: &impl Fn(&str) -> Option<String>) -> InstallationCheck {
    match variable("PULUMI_BACKEND_URL") {
        Some(url) => InstallationCheck::good(
            "state",
            format!("programs keep it in {}", without_password(&url)),
        ),
        None => InstallationCheck::good(
            "state",
            "beside each deployment, in .nimbus/state".to_owned(),
        ),
    }
}

/// An address may hold a password between `:` and `@`.
fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rfind('@')) {
        (Some((scheme, _)), Some(at)) => format!("{scheme}://…{}", &url[at..]),
        _ => url.to_owned(),
    }
}

fn official() -> InstallationCheck {
    match version("pulumi", "version") {
        Some(version) => InstallationCheck::good("pulumi", version),
        None => {
            InstallationCheck::optional("pulumi", "not installed; only `--engine pulumi` needs it")
        }
    }
}

fn login(variable: &impl Fn(&str) -> Option<String>, file: Option<PathBuf>) -> InstallationCheck {
    if variable("PULUMI_ACCESS_TOKEN").is_some() {
        return InstallationCheck::good("login", "a token in PULUMI_ACCESS_TOKEN".to_owned());
    }
    let text = file.and_then(|file| fs::read_to_string(file).ok());
    let current = text
        .and_then(|text| serde_json::from_str::<Value>(&text).ok())
        .and_then(|value| value.get("current")?.as_str().map(str::to_owned));
    match current {
        Some(url) => InstallationCheck::good("login", without_password(&url)),
        None => InstallationCheck::optional("login", "not logged in; state on files needs none"),
    }
}

fn version(program: &str, argument: &str) -> Option<String> {
    let path = which::which(program).ok()?;
    // tidy-allow(start): the official command line, the operator's
    let output = Command::new(path).arg(argument).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct PulumiReport {
    /// Whether deployments can run.
    valid: bool,
    checks: Vec<InstallationCheck>,
}

#[derive(JsonSchema, Serialize)]
struct InstallationCheck {
    name: &'static str,
    status: Status,
    detail: String,
    help: Option<String>,
}

#[derive(Clone, Copy, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Good,
    /// Absent, and deployments run without.
    Optional,
    Missing,
}

impl InstallationCheck {
    fn good(name: &'static str, detail: String) -> Self {
        Self {
            name,
            status: Status::Good,
            detail,
            help: None,
        }
    }

    fn optional(name: &'static str, detail: &str) -> Self {
        Self {
            name,
            status: Status::Optional,
            detail: detail.to_owned(),
            help: None,
        }
    }
}

impl Report for PulumiReport {
    const SCHEMA: &'static str = "nimbus/validate-pulumi/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let mark = match check.status {
                Status::Good => terminal.paint(TextStyle::Good, "✓"),
                Status::Optional => "·".to_owned(),
                Status::Missing => terminal.paint(TextStyle::Bad, "✗"),
            };
            text.push_str(&format!("{mark} {:<11} {}\n", check.name, check.detail));
            if let Some(help) = &check.help {
                text.push_str(&format!(
                    "  {}\n",
                    terminal.paint(TextStyle::Faint, &format!("→ {help}"))
                ));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        let shown = without_password("https://user:hush@state.example/x");
        assert_eq!(shown, "https://…@state.example/x");
        assert_eq!(without_password("s3://bucket"), "s3://bucket");
    }
}
