//! What this server tells about itself: its places for runs, its sandbox, the packages that programs find.

use std::path::PathBuf;

use async_trait::async_trait;
use nimbus_control_app::SystemSource;
use nimbus_control_runs::{RunLimits, missing_isolation};
use nimbus_control_wire::{RunnersView, SystemCheck};

use crate::runs::RunOptions;

/// How programs of tenants are kept apart here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SandboxLevel {
    Off,
    BestEffort,
    Strict,
}

#[derive(Debug)]
pub(crate) struct ServedSystem {
    limits: RunLimits,
    sandbox: SandboxLevel,
    node_modules: Option<PathBuf>,
}

impl ServedSystem {
    pub(crate) fn new(options: &RunOptions) -> Self {
        Self {
            limits: options.limits,
            sandbox: match &options.sandbox {
                None => SandboxLevel::Off,
                Some(settings) if settings.is_strict() => SandboxLevel::Strict,
                Some(_) => SandboxLevel::BestEffort,
            },
            node_modules: options.node_modules.clone(),
        }
    }
}

#[async_trait]
impl SystemSource for ServedSystem {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn runners(&self) -> RunnersView {
        let (places, per_customer) = self.limits.shares();
        RunnersView {
            places: places as u64,
            per_customer: per_customer as u64,
            most_seconds: self.limits.time.as_secs(),
            ..RunnersView::default()
        }
    }

    async fn checks(&self) -> Vec<SystemCheck> {
        // Starts processes of its own, and waits for them.
        let tried = tokio::task::spawn_blocking(missing_isolation).await;
        let packages = self.node_modules.as_ref().map(|folder| folder.is_dir());
        vec![
            sandbox_check(self.sandbox, tried.unwrap_or_default()),
            packages_check(packages),
            keys_check(),
        ]
    }
}

fn check(kind: &str, name: &str, status: &str, message: String, help: Option<&str>) -> SystemCheck {
    SystemCheck {
        kind: kind.to_owned(),
        name: name.to_owned(),
        status: status.to_owned(),
        message,
        help: help.map(str::to_owned),
    }
}

fn sandbox_check(level: SandboxLevel, missing: Option<Vec<String>>) -> SystemCheck {
    let found = match &missing {
        None => "it could not be tried what this machine offers".to_owned(),
        Some(missing) if missing.is_empty() => "this machine offers everything for it".to_owned(),
        Some(missing) => format!("this machine lacks {}", missing.join(", ")),
    };
    let complete = missing.is_some_and(|missing| missing.is_empty());
    let (status, message, help) = match level {
        SandboxLevel::Off => (
            "warning",
            format!("Off: programs run among everything else; {found}."),
            Some("Rehearsals work. Set engine.sandbox to strict before tenants deploy for real."),
        ),
        SandboxLevel::BestEffort => (
            "warning",
            format!("As good as this machine allows; {found}."),
            Some("Rehearsals work. Real runs of tenants need engine.sandbox: strict."),
        ),
        SandboxLevel::Strict if complete => ("ok", format!("Strict; {found}."), None),
        SandboxLevel::Strict => (
            "failed",
            format!("Strict, and {found}."),
            Some("Programs are refused until it is there; `nimbus doctor` says how."),
        ),
    };
    check("sandbox", "Sandbox", status, message, help)
}

fn packages_check(found: Option<bool>) -> SystemCheck {
    let (status, message, help) = match found {
        Some(true) => (
            "ok",
            "Programs find the packages of the shipped library.",
            None,
        ),
        Some(false) => (
            "failed",
            "The folder of packages is gone.",
            Some("Look at runs.node_modules (NIMBUS_RUNS_NODE_MODULES)."),
        ),
        None => (
            "warning",
            "No packages of Node.js are set up.",
            Some("Programs bring their own, or fail; runs.node_modules names a folder for all."),
        ),
    };
    check("packages", "Packages", status, message.to_owned(), help)
}

/// A server does not start without its keys, so whoever asks has them.
fn keys_check() -> SystemCheck {
    let message = "The installation's keys open every tenant's; they are not in the database.";
    let help = "Keep a copy elsewhere: a backup without them cannot be read.";
    check("keys", "Keys", "ok", message.to_owned(), Some(help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_sandbox_that_this_machine_cannot_keep_is_a_failure_and_less_is_a_warning() {
        let status = |level, missing: Option<Vec<String>>| sandbox_check(level, missing).status;
        assert_eq!(status(SandboxLevel::Strict, Some(Vec::new())), "ok");
        let lacking = Some(vec!["seccomp".to_owned()]);
        assert_eq!(status(SandboxLevel::Strict, lacking.clone()), "failed");
        assert_eq!(status(SandboxLevel::Strict, None), "failed");
        assert_eq!(status(SandboxLevel::BestEffort, lacking.clone()), "warning");
        assert_eq!(status(SandboxLevel::Off, Some(Vec::new())), "warning");
        assert!(
            sandbox_check(SandboxLevel::Strict, lacking)
                .message
                .contains("seccomp")
        );
    }
}
