//! Carrying an adoption out: all of it or nothing.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use nimbus_core::{EnvironmentName, Result};
use nimbus_disk::{append_beneath, layout, unwritable};
use nimbus_engine_backend::{
    EnvironmentVariables, ImportOptions, Keyring, Owner, SecretsError, StackSecrets,
};
use nimbus_engine_operations::{StackAccess, StackGrant, StackLocation};
use nimbus_orchestrator::{DiagnosticLevel, RenderedDeployment, configs};
use nimbus_workspace::{Workspace, files};
use zeroize::Zeroizing;

use super::plan::{AdoptedSecret, AdoptedState, AdoptionPlan};
use super::record::AdoptionRecord;
use crate::logs::format_line;
use crate::secret_file::{SecretFile, SecretScope};

/// What an adoption made.
#[derive(Clone, Debug)]
pub struct Adopted {
    /// The deployment's directory.
    pub directory: PathBuf,
    /// Environments that have states, which a preview can compare with their programs.
    pub with_state: Vec<EnvironmentName>,
    /// States that had a secret in clear when they were taken over: what their programs forgot.
    pub exposed: Vec<String>,
}

impl AdoptionPlan {
    /// Writes everything. After a failure nothing of it is left.
    ///
    /// # Errors
    ///
    /// When a secret cannot be opened, the id is taken, or something cannot be written.
    pub async fn carry_out(self, workspace: &Workspace, made_workspace: bool) -> Result<Adopted> {
        let keyring = Keyring::new(EnvironmentVariables::process(), self.services.clone());
        let mut record = AdoptionRecord::new(made_workspace, self.templates.keys().cloned());
        // First of all: who cannot open the secrets cannot take them over.
        let written = match open_secrets(&self.secrets, &keyring) {
            Ok(opened) => self.write(workspace, &mut record, &opened, &keyring).await,
            Err(error) => Err(error),
        };
        if written.is_err() {
            record.take_back(workspace);
        }
        written
    }

    async fn write(
        &self,
        workspace: &Workspace,
        record: &mut AdoptionRecord,
        secrets: &[(&AdoptedSecret, Zeroizing<String>)],
        keyring: &Arc<Keyring>,
    ) -> Result<Adopted> {
        for (name, text) in &self.templates {
            files::replace(&workspace.stack_template(name), text)?;
        }
        let rendered = RenderedDeployment {
            manifest: self.manifest.clone(),
            configs: configs(&self.manifest),
        };
        let names: Vec<&str> = self
            .manifest
            .stacks
            .keys()
            .map(|name| name.as_str())
            .collect();
        let log = log_line(&format!("Adopted {}", names.join(", ")));
        let directory = workspace.create(&rendered, &log)?;
        record.directory = Some(directory.clone());
        let mut file = SecretFile::load(&directory)?;
        for (secret, value) in secrets {
            let scope = SecretScope::In(secret.environment);
            file.set(&secret.name, scope, value, None, keyring)?;
        }
        if !secrets.is_empty() {
            file.save()?;
        }
        for state in &self.states {
            let version = import(&directory, state, keyring).await?;
            record.states.insert(state.stack.to_string(), version);
            let copied = format!("Copied the state of {} from {}", state.stack, state.from);
            append_log(&directory, &log_line(&copied))?;
        }
        record.save(&directory)?;
        let mut with_state: Vec<_> = self.states.iter().map(|state| state.environment).collect();
        with_state.sort_by_key(|environment| self.manifest.environments.get_index_of(environment));
        with_state.dedup();
        Ok(Adopted {
            directory,
            with_state,
            exposed: self.exposed(secrets),
        })
    }
}

impl AdoptionPlan {
    /// A program that forgot to mark a secret has it in its state. The next deploy encrypts it there,
    /// but the history, and the state that this is a copy of, keep it.
    fn exposed(&self, secrets: &[(&AdoptedSecret, Zeroizing<String>)]) -> Vec<String> {
        let mut found = Vec::new();
        for state in &self.states {
            let text = String::from_utf8_lossy(&state.bytes);
            for (secret, value) in secrets {
                let escaped = Zeroizing::new(serde_json::Value::from(value.as_str()).to_string());
                let escaped = escaped.trim_matches('"');
                if escaped.len() >= SHORTEST && text.contains(escaped) {
                    found.push(format!("{} has {} in clear", state.stack, secret.name));
                }
            }
        }
        found
    }
}

/// A text that is shorter is found everywhere.
const SHORTEST: usize = 6;

fn open_secrets<'a>(
    secrets: &'a [AdoptedSecret],
    keyring: &Arc<Keyring>,
) -> Result<Vec<(&'a AdoptedSecret, Zeroizing<String>)>> {
    let open = |secret: &'a AdoptedSecret| {
        let declared = secret.settings.secrets()?;
        let stack = StackSecrets::declared(keyring, &declared, None);
        let opened = stack.crypter()?.decrypt(&secret.ciphertext);
        let text = opened.map_err(SecretsError::from)?;
        Ok((secret, text))
    };
    secrets.iter().map(open).collect()
}

/// A line of `logs/init.log`, in the form that every log has, with the time at which it was done.
fn log_line(message: &str) -> String {
    format_line(Timestamp::now(), DiagnosticLevel::Info, "adopt", message)
}

fn append_log(directory: &Path, line: &str) -> Result<()> {
    let folder = directory.join("logs");
    let name = Path::new("init.log");
    append_beneath(&folder, name)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|error| unwritable(&folder.join(name), error))
}

/// Copies a state. Its secrets stay as they are encrypted: the state names their provider.
async fn import(directory: &Path, state: &AdoptedState, keyring: &Arc<Keyring>) -> Result<String> {
    let folder = layout::state(directory);
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
    let location = StackLocation {
        directory: directory.to_owned(),
        stack: state.stack.to_string(),
        backend: Some(format!("file://{}", folder.display())),
        // It was given a place of its own.
        granted: StackGrant::Named,
    };
    let access = StackAccess::with_keys(&location, keyring).await?;
    let stack = access.stack();
    let owner = Owner::current("nimbus adopt");
    stack.create(owner.clone()).await?;
    let options = ImportOptions {
        accept_older: true,
        ..ImportOptions::default()
    };
    let imported = stack.import(&state.bytes, options, owner, keyring).await?;
    Ok(imported.version.to_string())
}
