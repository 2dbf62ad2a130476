//! `nimbus secret`: values of a deployment that nobody may see.

use std::collections::BTreeMap;

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result, printable_line};
use nimbus_engine_backend::{EnvironmentVariables, Keyring};
use nimbus_local::{SecretFile, SecretScope};
use schemars::JsonSchema;
use serde::Serialize;
use zeroize::Zeroizing;

use super::environment;
use super::local::find_place;
use crate::commands::stack_config::from_input;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Subcommand, Debug)]
pub(crate) enum SecretCommand {
    /// Encrypt a value and keep it with the deployment
    Set(SetSecretArgs),
    /// List names of secrets and where they have values
    List(ListSecretsArgs),
    /// Remove a secret
    Rm(RemoveSecretArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct SetSecretArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Name, by which the manifest refers to it: {secret: NAME}
    name: String,
    /// Only in this environment; in all that have no value of their own when left out
    #[arg(long, short, value_parser = environment)]
    environment: Option<EnvironmentName>,
    /// Take the value of this variable; read from standard input when left out
    #[arg(long, value_name = "VARIABLE")]
    from_env: Option<String>,
    /// How the first secret of a deployment decides to encrypt all of them: an address such as
    /// awskms://alias/NAME?region=REGION; PULUMI_CONFIG_PASSPHRASE when left out
    #[arg(long, value_name = "URL")]
    provider: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ListSecretsArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RemoveSecretArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    id: String,
    /// Name
    name: String,
    /// Only its value in this environment; all of them when left out
    #[arg(long, short, value_parser = environment)]
    environment: Option<EnvironmentName>,
}

impl SecretCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Set(args) => set(args, context),
            Self::List(args) => list(&args, context),
            Self::Rm(args) => remove(args, context),
        }
    }
}

fn set(args: SetSecretArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.id, false, context)?;
    let manifest = &place.deployment.manifest;
    if let Some(environment) = args.environment
        && !manifest.environments.contains_key(&environment)
    {
        return Err(manifest.unknown_environment(environment));
    }
    let value = match &args.from_env {
        Some(variable) => Zeroizing::new(std::env::var(variable).map_err(|_| {
            let message = format!("the variable {variable} is not set");
            Error::new(ErrorCode::USAGE, message).with_help("set it, or pipe the value in")
        })?),
        None => from_input(&args.name)?,
    };
    let folder = &place.deployment.directory;
    let (mut file, _edit) = SecretFile::edit_with(place.records.files(), folder)?;
    let keyring = Keyring::new(EnvironmentVariables::process(), context.key_services()?);
    let scope = SecretScope::from(args.environment);
    file.set(
        &args.name,
        scope,
        &value,
        args.provider.as_deref(),
        &keyring,
    )?;
    file.save()?;
    report("set", args.name, args.environment, &file, context)
}

fn remove(args: RemoveSecretArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.id, false, context)?;
    let folder = &place.deployment.directory;
    let (mut file, _edit) = SecretFile::edit_with(place.records.files(), folder)?;
    file.remove(&args.name, args.environment.map(SecretScope::In))?;
    file.save()?;
    report("removed", args.name, args.environment, &file, context)
}

fn report(
    change: &'static str,
    name: String,
    environment: Option<EnvironmentName>,
    file: &SecretFile,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    context.output.result(&SecretChangeReport {
        change,
        name,
        environment: environment.map(|environment| environment.to_string()),
        file: file.path().display().to_string(),
    })?;
    Ok(CommandOutcome::Done)
}

fn list(args: &ListSecretsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.id, false, context)?;
    let file = SecretFile::load_with(place.records.files(), &place.deployment.directory)?;
    let scopes = |scopes: Vec<SecretScope>| scopes.iter().map(ToString::to_string).collect();
    context.output.result(&SecretsReport {
        deployment: place.deployment.manifest.metadata.id.to_string(),
        provider: file.provider_kind().map(str::to_owned),
        secrets: file
            .names()
            .map(|(name, found)| (name.to_owned(), scopes(found)))
            .collect(),
    })?;
    Ok(CommandOutcome::Done)
}

/// What was changed. Never holds the value.
#[derive(JsonSchema, Serialize)]
pub(crate) struct SecretChangeReport {
    /// `set` or `removed`.
    change: &'static str,
    name: String,
    /// `null` for all that have no value of their own.
    environment: Option<String>,
    file: String,
}

impl Report for SecretChangeReport {
    const SCHEMA: &'static str = "nimbus/secret-change/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let of = self.environment.as_ref();
        let of = of.map(|name| format!(" of {name}")).unwrap_or_default();
        format!(
            "{mark} {}{of} {} in {}\n",
            printable_line(&self.name),
            self.change,
            printable_line(&self.file)
        )
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct SecretsReport {
    deployment: String,
    /// How they are encrypted; `null` when there are none.
    provider: Option<String>,
    /// Where each has a value; `*` stands for every environment without one of its own.
    secrets: BTreeMap<String, Vec<String>>,
}

impl Report for SecretsReport {
    const SCHEMA: &'static str = "nimbus/secrets/1";

    fn text(&self, _: Terminal) -> String {
        if self.secrets.is_empty() {
            return format!("{} has no secrets\n", self.deployment);
        }
        let longest = self.secrets.keys().map(String::len).max().unwrap_or(0);
        let line = |(name, scopes): (&String, &Vec<String>)| {
            format!("{name:<longest$}  {}\n", scopes.join(", "))
        };
        self.secrets.iter().map(line).collect()
    }
}
