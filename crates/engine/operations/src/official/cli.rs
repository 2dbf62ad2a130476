//! The official command line: which one, and whether it will do.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_process::{ChildProcess, CodeOrigin, OutputLines, Tail};
use semver::Version;
use std::sync::Arc;

/// The oldest that has every option which is used here.
const OLDEST: Version = Version::new(3, 163, 0);

/// How long it may take to say its version.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OfficialCli {
    pub(super) program: PathBuf,
    pub(super) version: Version,
}

impl OfficialCli {
    /// Finds it on the search path and asks for its version.
    pub(super) async fn find(environment: &EnvironmentVariables, directory: &Path) -> Result<Self> {
        let path = environment.non_empty("PATH").unwrap_or_default();
        let program = which::which_in("pulumi", Some(path), directory).map_err(|_| missing())?;
        let mut command = Command::new(&program);
        command.arg("version");
        super::surroundings(&mut command, environment);
        let said = said(command).await.map_err(|problem| {
            unusable(format!("{} does not run: {problem}", program.display()))
        })?;
        Self::checked(program, &said)
    }

    fn checked(program: PathBuf, said: &str) -> Result<Self> {
        let shown = program.display();
        let Some(version) = parse(said) else {
            let message = format!("{shown} does not say its version: {:?}", said.trim());
            return Err(unusable(message));
        };
        // A pre-release of a version has what that version has.
        let release = Version::new(version.major, version.minor, version.patch);
        if release < OLDEST || release.major != OLDEST.major {
            let message =
                format!("{shown} is version {version}, and {OLDEST} or a later 3.x is needed");
            return Err(unusable(message));
        }
        Ok(Self { program, version })
    }
}

fn parse(said: &str) -> Option<Version> {
    let word = said.split_whitespace().next()?;
    Version::parse(word.strip_prefix('v').unwrap_or(word)).ok()
}

/// The first lines that a program says before it ends well.
async fn said(command: Command) -> Result<String, String> {
    let started = ChildProcess::start(command, CodeOrigin::Operators)
        .await
        .map_err(|error| error.to_string())?;
    let tail = Arc::new(Tail::default());
    let mut pumps = [
        OutputLines::start(started.stdout, {
            let tail = Arc::clone(&tail);
            move |line| tail.push(line)
        }),
        OutputLines::start(started.stderr, |_| ()),
    ];
    let Ok(exit) = tokio::time::timeout(PATIENCE, started.process.ended()).await else {
        return Err("it does not answer".to_owned());
    };
    for pump in &mut pumps {
        pump.drain(PATIENCE).await;
    }
    match exit {
        nimbus_engine_process::Exit::Code(0) => Ok(tail.text()),
        other => Err(other.to_string()),
    }
}

fn missing() -> Error {
    unusable("there is no `pulumi` on $PATH".to_owned())
}

fn unusable(message: String) -> Error {
    Error::new(ErrorCode::OFFICIAL_CLI_UNUSABLE, message).with_help(format!(
        "install Pulumi {OLDEST} or later, or leave out `--engine pulumi`: the embedded engine \
         needs no `pulumi`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &str) -> Result<Version> {
        OfficialCli::checked("pulumi".into(), said).map(|cli| cli.version)
    }

    #[test]
    fn versions_are_read_and_old_ones_refused() {
        for said in [
            "v3.260.0\n",
            "3.163.0",
            "v3.163.0-alpha.1+abc\n",
            "v3.400.1 extra",
        ] {
            assert!(check(said).is_ok(), "{said}");
        }
        for said in ["", "v3.162.9", "v2.25.0", "v4.0.0", "unknown", "v3"] {
            let error = check(said).expect_err(said);
            assert_eq!(error.code(), ErrorCode::OFFICIAL_CLI_UNUSABLE, "{said}");
            assert!(error.help().is_some_and(|help| help.contains("3.163.0")));
        }
    }
}
