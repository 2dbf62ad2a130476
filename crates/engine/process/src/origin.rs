//! Whose code a process runs, said by everybody who starts one.
//!
//! Nothing in Nimbus starts a process but through the functions here and [`Process::start`]: `cargo
//! xtask tidy` sees to it. So whoever adds a place where something is started has to say whose it is,
//! and a stranger's program that is not closed in a sandbox is not started.
//!
//! [`Process::start`]: crate::Process::start

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command, Output};

/// The first argument of our own program when it closes a sandbox around another one.
const SANDBOX: &str = "internal-sandbox";

/// Whose code is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOrigin {
    /// Nimbus itself.
    Ours,
    /// Installed by whoever runs this machine: interpreters, tools and plugins.
    Operators,
    /// A project's: its program, its packages, its interpreter, whatever they bring along.
    Tenants(CodeIsolation),
}

/// What stands around a project's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeIsolation {
    /// A sandbox.
    Sandbox,
    /// Nothing: the project belongs to the user who runs it.
    OwnProject,
}

impl CodeOrigin {
    /// Refuses a stranger's code that would run as the engine does.
    pub(crate) fn admit(self, command: &Command) -> io::Result<()> {
        let enclosed = command.get_args().next() == Some(OsStr::new(SANDBOX));
        match self {
            Self::Tenants(CodeIsolation::Sandbox) if !enclosed => {
                let message = "a stranger's program is started in its sandbox or not at all";
                Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
            }
            Self::Ours | Self::Operators | Self::Tenants(_) => Ok(()),
        }
    }
}

/// Runs a command to its end, for those who have no runtime.
pub fn run_blocking(command: &mut Command, origin: CodeOrigin) -> io::Result<Output> {
    origin.admit(command)?;
    command.output()
}

/// Starts a command that its caller looks after.
pub fn spawn_blocking(command: &mut Command, origin: CodeOrigin) -> io::Result<Child> {
    origin.admit(command)?;
    command.spawn()
}

/// Runs a command to its end. It is killed when nobody waits for it any more.
pub async fn run(command: &mut tokio::process::Command, origin: CodeOrigin) -> io::Result<Output> {
    origin.admit(command.as_std())?;
    command.kill_on_drop(true).output().await
}

/// Starts a command that its caller talks to. It is killed when it is dropped.
pub fn spawn(
    command: &mut tokio::process::Command,
    origin: CodeOrigin,
) -> io::Result<tokio::process::Child> {
    origin.admit(command.as_std())?;
    command.kill_on_drop(true).spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_program_is_not_started_without_its_sandbox() {
        let strangers = CodeOrigin::Tenants(CodeIsolation::Sandbox);
        let refused = run_blocking(&mut Command::new("true"), strangers);
        let refused = refused.expect_err("it has no sandbox");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        let mut enclosed = Command::new("true");
        enclosed.arg(SANDBOX);
        assert!(run_blocking(&mut enclosed, strangers).is_ok());
        for origin in [
            CodeOrigin::Ours,
            CodeOrigin::Operators,
            CodeOrigin::Tenants(CodeIsolation::OwnProject),
        ] {
            assert!(run_blocking(&mut Command::new("true"), origin).is_ok());
        }
    }

    #[tokio::test]
    async fn nor_is_one_that_is_waited_for() {
        let strangers = CodeOrigin::Tenants(CodeIsolation::Sandbox);
        assert!(
            crate::ChildProcess::start(Command::new("true"), strangers)
                .await
                .is_err()
        );
        let mut command = tokio::process::Command::new("true");
        assert!(run(&mut command, strangers).await.is_err());
        assert!(spawn(&mut command, strangers).is_err());
        assert!(spawn_blocking(&mut Command::new("true"), strangers).is_err());
    }
}
