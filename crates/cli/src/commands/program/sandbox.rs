//! How a program is kept from everything else: flags first, then the settings.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueEnum;
use nimbus_config::{
    AddressList, Engine, FlagValue, NameList, SandboxMode, SandboxNetwork, SettingOrigin,
};
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_sandbox::{
    Allowances, IsolationMode, ProgramNetwork, ResourceLimits, SandboxSettings,
};

use crate::context::CommandContext;

/// How a program is kept from everything else.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxArgs {
    /// Run the program in a sandbox; without this the setting engine.sandbox decides
    #[arg(long, value_name = "MODE")]
    sandbox: Option<ModeArg>,

    /// What the program can reach from its sandbox; without this engine.sandbox_network decides
    #[arg(long, value_name = "NETWORK")]
    network: Option<NetworkArg>,

    /// Run the program although this machine cannot isolate it completely
    #[arg(long)]
    allow_weak_isolation: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// As its user, among everything else
    Off,
    /// With whatever isolation this machine offers
    BestEffort,
    /// With complete isolation, or not at all
    Strict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NetworkArg {
    /// Nothing
    None,
    /// Whatever this machine can reach
    Full,
}

/// What the settings alone say, for commands that run many programs.
pub(crate) fn from_settings(context: &CommandContext) -> Result<Option<SandboxSettings>> {
    let no_flags = SandboxArgs {
        sandbox: None,
        network: None,
        allow_weak_isolation: false,
    };
    no_flags.settings(context)
}

/// What a server does with programs of its tenants: they are strangers', so without a word of the operator
/// they are isolated completely or not run. The setting `off` is for programs of one's own.
pub(crate) fn for_tenants(context: &CommandContext) -> Result<SandboxSettings> {
    let chosen = &context.settings()?.settings.engine;
    let strict = SandboxArgs {
        sandbox: (chosen.sandbox.value == SandboxMode::Off).then_some(ModeArg::Strict),
        network: None,
        allow_weak_isolation: false,
    };
    let settings = strict.settings(context)?;
    settings.ok_or_else(|| Error::new(ErrorCode::INTERNAL, "a server has a sandbox"))
}

/// As [`for_tenants`], for a demonstration of the shipped programs: whatever isolation this machine offers, unless the
/// operator says otherwise, so that it can be looked at anywhere.
pub(crate) fn for_demo(context: &CommandContext) -> Result<SandboxSettings> {
    let chosen = &context.settings()?.settings.engine;
    if chosen.sandbox.origin != SettingOrigin::Default {
        return for_tenants(context);
    }
    let offered = SandboxArgs {
        sandbox: Some(ModeArg::BestEffort),
        network: None,
        allow_weak_isolation: false,
    };
    let settings = offered.settings(context)?;
    settings.ok_or_else(|| Error::new(ErrorCode::INTERNAL, "a server has a sandbox"))
}

impl SandboxArgs {
    /// The mode as a setting, which it goes before.
    pub(crate) fn flag(&self) -> Option<FlagValue> {
        let mode = match self.sandbox? {
            ModeArg::Off => SandboxMode::Off,
            ModeArg::BestEffort => SandboxMode::BestEffort,
            ModeArg::Strict => SandboxMode::Strict,
        };
        Some(FlagValue {
            path: "engine.sandbox",
            flag: "--sandbox",
            value: mode.word().to_owned(),
        })
    }

    /// What is asked of the sandbox; `None` for none.
    pub(crate) fn settings(&self, context: &CommandContext) -> Result<Option<SandboxSettings>> {
        let chosen = &context.settings()?.settings.engine;
        let decided = self.decide(
            chosen.sandbox.value,
            chosen.sandbox_network.value,
            chosen.allow_weak_isolation.value,
        )?;
        Ok(decided.map(|settings| SandboxSettings {
            limits: limits(chosen),
            roots: roots(chosen),
            allowances: allowances(chosen),
            ..settings
        }))
    }

    fn decide(
        &self,
        mode: SandboxMode,
        network: SandboxNetwork,
        allow_weak: bool,
    ) -> Result<Option<SandboxSettings>> {
        let allow_weak = allow_weak || self.allow_weak_isolation;
        let mode = self.sandbox.unwrap_or(match mode {
            SandboxMode::Off => ModeArg::Off,
            SandboxMode::BestEffort => ModeArg::BestEffort,
            SandboxMode::Strict => ModeArg::Strict,
        });
        let network = self.network.unwrap_or(match network {
            SandboxNetwork::None => NetworkArg::None,
            SandboxNetwork::Full => NetworkArg::Full,
        });
        let mode = match mode {
            ModeArg::Off if self.network == Some(NetworkArg::None) => {
                let message = "--network none needs a sandbox, and there is none";
                return Err(Error::new(ErrorCode::USAGE, message)
                    .with_help("add --sandbox best-effort or --sandbox strict"));
            }
            ModeArg::Off => return Ok(None),
            ModeArg::BestEffort => IsolationMode::BestEffort,
            ModeArg::Strict => IsolationMode::Strict { allow_weak },
        };
        Ok(Some(SandboxSettings {
            mode,
            network: match network {
                NetworkArg::None => ProgramNetwork::None,
                NetworkArg::Full => ProgramNetwork::Full,
            },
            limits: ResourceLimits::default(),
            environment: Vec::new(),
            roots: Vec::new(),
            allowances: Allowances::default(),
        }))
    }
}

fn roots(chosen: &Engine) -> Vec<PathBuf> {
    let roots = chosen.sandbox_roots.value.as_ref();
    roots
        .map(|roots| roots.paths().to_vec())
        .unwrap_or_default()
}

fn allowances(chosen: &Engine) -> Allowances {
    let names = |list: &NameList| -> BTreeSet<String> { list.names().iter().cloned().collect() };
    let listed = |list: &Option<NameList>| list.as_ref().map(names);
    Allowances {
        providers: listed(&chosen.sandbox_providers.value),
        variables: listed(&chosen.sandbox_env.value).unwrap_or_default(),
        lookups: listed(&chosen.sandbox_lookups.value).unwrap_or_default(),
        projects: listed(&chosen.sandbox_projects.value).unwrap_or_default(),
        references: listed(&chosen.sandbox_references.value).unwrap_or_default(),
        secrets: chosen
            .sandbox_secrets
            .value
            .iter()
            .flat_map(AddressList::addresses)
            .cloned()
            .collect(),
    }
}

fn limits(chosen: &Engine) -> ResourceLimits {
    let bytes = |mebibytes: u32| u64::from(mebibytes) << 20;
    ResourceLimits {
        memory_bytes: bytes(chosen.sandbox_memory_mib.value),
        processes: chosen.sandbox_processes.value.into(),
        open_files: chosen.sandbox_open_files.value.into(),
        temporary_bytes: bytes(chosen.sandbox_temporary_mib.value),
        temporary_files: chosen.sandbox_temporary_files.value.into(),
        output_bytes: bytes(chosen.sandbox_output_mib.value),
        request_bytes: bytes(chosen.sandbox_requests_mib.value),
        ..ResourceLimits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_FLAGS: SandboxArgs = SandboxArgs {
        sandbox: None,
        network: None,
        allow_weak_isolation: false,
    };

    fn decide(args: &SandboxArgs, mode: SandboxMode) -> Option<SandboxSettings> {
        let decided = args.decide(mode, SandboxNetwork::None, false);
        decided.expect("nothing contradicts itself")
    }

    #[test]
    fn without_flags_the_settings_decide() {
        assert_eq!(decide(&NO_FLAGS, SandboxMode::Off), None);
        let strict = decide(&NO_FLAGS, SandboxMode::Strict).expect("a sandbox");
        assert_eq!(strict.mode, IsolationMode::Strict { allow_weak: false });
        assert_eq!(strict.network, ProgramNetwork::None);
    }

    /// The limits that are documented with the settings are those of the sandbox itself.
    #[test]
    fn without_settings_the_limits_are_the_usual_ones() {
        let settings = nimbus_config::Settings::default();
        assert_eq!(limits(&settings.engine), ResourceLimits::default());
    }

    #[test]
    fn flags_win_over_settings() {
        let args = SandboxArgs {
            sandbox: Some(ModeArg::Off),
            ..NO_FLAGS
        };
        assert_eq!(decide(&args, SandboxMode::Strict), None);
        let args = SandboxArgs {
            sandbox: Some(ModeArg::Strict),
            network: Some(NetworkArg::Full),
            allow_weak_isolation: true,
        };
        let settings = decide(&args, SandboxMode::Off).expect("a sandbox");
        assert_eq!(settings.mode, IsolationMode::Strict { allow_weak: true });
        assert_eq!(settings.network, ProgramNetwork::Full);
    }

    #[test]
    fn nobody_is_left_to_believe_in_a_sandbox_that_is_not_there() {
        let args = SandboxArgs {
            network: Some(NetworkArg::None),
            ..NO_FLAGS
        };
        let decided = args.decide(SandboxMode::Off, SandboxNetwork::None, false);
        assert_eq!(decided.expect_err("a mistake").code(), ErrorCode::USAGE);
    }
}
