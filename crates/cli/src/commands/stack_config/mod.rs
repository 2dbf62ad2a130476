//! `nimbus stack-config …`: the configuration of a stack in `Pulumi.<stack>.yaml`, secrets
//! encrypted. Comments and everything else in the file stay as they are.

mod get;
mod ls;
mod rm;
mod set;

use clap::Subcommand;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{FolderEdit, unreadable};
use nimbus_engine_backend::project::{
    ConfigKey, ConfigMap, ConfigValue, Project, StackSettings, parse_key,
};
use nimbus_engine_backend::{BackendError, EnvironmentVariables, Keyring, StackRef, StackSecrets};
use nimbus_engine_model::{PathSegment, PropertyPath, REDACTED};
use nimbus_engine_operations::{find_project, key_services, refuse_secrets_service};
use nimbus_engine_sandbox::SandboxSettings;
use serde_json::Value;

use crate::commands::program::{LocationArgs, sandbox_settings};
use crate::commands::values::shown;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

pub(crate) use get::GetReport;
pub(crate) use ls::StackConfigReport;
pub(crate) use set::{ChangeReport, from_input};

#[derive(Debug, Subcommand)]
pub(crate) enum StackConfigCommand {
    /// Set a value, encrypted with --secret
    Set(set::StackConfigSetArgs),
    /// Print a value
    Get(get::StackConfigGetArgs),
    /// Remove a value
    Rm(rm::StackConfigRmArgs),
    /// List all keys with their values
    Ls(ls::StackConfigLsArgs),
}

impl StackConfigCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Set(args) => set::run(args, context).await,
            Self::Get(args) => get::run(args, context).await,
            Self::Rm(args) => rm::run(args, context).await,
            Self::Ls(args) => ls::run(args, context).await,
        }
    }
}

/// Saves what `--config KEY=VALUE` gave, as the official command line does before it runs.
pub(crate) fn save_assignments(
    location: &LocationArgs,
    sandbox: Option<&SandboxSettings>,
    context: &CommandContext,
) -> Result<()> {
    if context.assignments.is_empty() {
        return Ok(());
    }
    let (mut opened, _edit) = OpenedStackConfig::edit_in_sandbox(location, sandbox, context)?;
    for assignment in &context.assignments {
        let (key, value) = assignment.split_once('=').unwrap_or((assignment, ""));
        let (key, path) = parse_key(key, &opened.project.name, false)?;
        let value = ConfigValue::from_input(value, &path);
        opened.settings.set(&key, &path, value)?;
    }
    opened.settings.save()
}

/// A stack's settings and the key to its secrets. The backend is not needed.
struct OpenedStackConfig {
    project: Project,
    stack: String,
    settings: StackSettings,
    secrets: StackSecrets,
}

impl OpenedStackConfig {
    fn new(location: &LocationArgs, context: &CommandContext) -> Result<Self> {
        let sandbox = sandbox_settings(context)?;
        Self::in_sandbox(location, sandbox.as_ref(), context)
    }

    /// The same to change it: nobody else does until the second value is dropped.
    fn edit(location: &LocationArgs, context: &CommandContext) -> Result<(Self, FolderEdit)> {
        let sandbox = sandbox_settings(context)?;
        Self::edit_in_sandbox(location, sandbox.as_ref(), context)
    }

    fn edit_in_sandbox(
        location: &LocationArgs,
        sandbox: Option<&SandboxSettings>,
        context: &CommandContext,
    ) -> Result<(Self, FolderEdit)> {
        let (project, _) = find_project(&location.location(context)?.directory, sandbox)?;
        let folder = project.directory();
        let edit = FolderEdit::begin(folder).map_err(|error| unreadable(folder, error))?;
        Ok((Self::in_sandbox(location, sandbox, context)?, edit))
    }

    /// With the settings of the sandbox: a stranger's project does not say which file is read or written.
    fn in_sandbox(
        location: &LocationArgs,
        sandbox: Option<&SandboxSettings>,
        context: &CommandContext,
    ) -> Result<Self> {
        let location = location.location(context)?;
        let (mut project, files) = find_project(&location.directory, sandbox)?;
        let name = StackRef::parse(&location.stack, &project.name).map_err(BackendError::from)?;
        project.name = name.project().to_owned();
        let file = project.stack_file(name.stack());
        let settings = StackSettings::read_with(&files, &file, &project.name)?;
        refuse_secrets_service(&settings, sandbox)?;
        let keyring = Keyring::new(EnvironmentVariables::process(), key_services(sandbox));
        let secrets = StackSecrets::declared(&keyring, &settings.secrets()?, None);
        Ok(Self {
            project,
            stack: name.stack().to_owned(),
            settings,
            secrets,
        })
    }

    /// One value in the clear. Only what is in it has to be decrypted.
    fn open(&self, key: &ConfigKey, path: &[PathSegment]) -> Result<Option<Value>> {
        let Some(value) = self.settings.config.get(key, &[]) else {
            return Ok(None);
        };
        let mut alone = ConfigMap::default();
        alone
            .set(key, &[], value.clone())
            .map_err(|error| Error::new(ErrorCode::CONFIG_KEY, error.to_string()))?;
        let opened = alone.decrypted(&self.secrets)?;
        let path = PropertyPath::new(path.iter().cloned());
        Ok(opened
            .get(key)
            .and_then(|value| path.get(value))
            .map(|value| shown(value, true)))
    }
}

/// A value with its secrets closed.
fn closed(value: &ConfigValue) -> Value {
    match value {
        ConfigValue::Null => Value::Null,
        ConfigValue::Bool(value) => Value::Bool(*value),
        ConfigValue::Int(value) => Value::from(*value),
        ConfigValue::UInt(value) => Value::from(*value),
        ConfigValue::Float(value) => Value::from(*value),
        ConfigValue::Text(text) => Value::from(text.as_str()),
        ConfigValue::Secure(_) => Value::from(REDACTED),
        ConfigValue::List(items) => items.iter().map(closed).collect(),
        ConfigValue::Map(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), closed(value)))
                .collect(),
        ),
    }
}
