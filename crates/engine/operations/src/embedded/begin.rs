//! Where an operation starts: what is recorded, what others are doing, and what was asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::{
    BackendError, DeclaredSecrets, Keyring, ORGANIZATION, Owner, Stack, StackSecrets, StateVersion,
};
use nimbus_engine_deploy::{DeploymentOptions, DeploymentPlan, Targets};
use nimbus_engine_model::secrets::Crypter;
use nimbus_engine_model::{NamingRules, NamingScope, Snapshot};
use nimbus_engine_ports::DeploymentContext;

use super::{EmbeddedOperation, StartState};
use crate::notices;
use crate::plan::{self, Seal};
use crate::request::ResourceSelection;

/// The configuration key with rules for names of objects.
const NAMING: &str = "pulumi:autonaming";

impl EmbeddedOperation<'_> {
    pub(super) fn options(&self, start: &StartState) -> Result<DeploymentOptions> {
        let asked = &self.request.options;
        Ok(DeploymentOptions {
            parallel: asked.steps_at_once(),
            dry_run: self.request.options.dry_run,
            continue_on_error: asked.continue_on_error,
            refresh: asked.refresh || self.workspace.project.refresh_always,
            targets: chosen(&asked.targets),
            excludes: chosen(&asked.excludes),
            replace_targets: asked.replace.clone(),
            plan: self.plan(start)?,
            generate_plan: asked.save_plan.is_some(),
            base_serial: start_of_plan(start),
            naming: self.naming()?.map(Arc::new),
            allow_mass_removal: asked.allow_mass_removal,
            ..DeploymentOptions::default()
        })
    }

    /// The stack's rules for names of objects, if its configuration has any.
    fn naming(&self) -> Result<Option<NamingRules>> {
        let Some(text) = self.config.values.get(NAMING) else {
            return Ok(None);
        };
        let scope = NamingScope {
            organization: ORGANIZATION,
            project: &self.workspace.project.name,
            stack: self.workspace.access.name.stack(),
            config: &self.config.values,
        };
        let rules = NamingRules::parse(text, scope).map_err(|error| {
            Error::new(ErrorCode::CONFIG_BAD_VALUE, format!("{NAMING}: {error}"))
                .with_help(format!("correct {NAMING} in the stack's settings file"))
        })?;
        Ok(Some(rules))
    }

    /// The plan that this run is held to, if what it was made for is still there.
    fn plan(&self, start: &StartState) -> Result<Option<DeploymentPlan>> {
        let Some(path) = &self.request.options.plan else {
            return Ok(None);
        };
        let seal = self.seal(start)?;
        let crypter: &dyn Crypter = start.secrets.as_ref();
        Ok(Some(plan::load(path, &seal, crypter)?))
    }

    pub(super) fn seal(&self, start: &StartState) -> Result<Seal> {
        let options = &self.request.options;
        let file = options.plan.as_ref().or(options.save_plan.as_ref());
        let root = self.workspace.project.directory();
        let program =
            plan::program_digest(&self.workspace.files, root, file.map(|path| path.as_path()));
        let program = program.map_err(|error| {
            let message = format!("the files of {} cannot be read: {error}", root.display());
            Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
        })?;
        Ok(Seal {
            project: self.workspace.project.name.clone(),
            stack: self.workspace.access.name.stack().to_owned(),
            state: start_of_plan(start),
            config: plan::text_digest(&self.config_text()),
            program,
        })
    }

    /// The configuration as a plan remembers it. Secrets count as they are encrypted; those that
    /// came in memory count by their names, because a digest of a short secret would give it away.
    fn config_text(&self) -> String {
        let config = self.config;
        if !self.config_is_given {
            return config.encrypted.to_json().to_string();
        }
        let shown = config.values.iter().map(|(key, value)| {
            let secret = config.secret_keys.contains(key);
            (key, (!secret).then_some(value))
        });
        serde_json::to_string(&shown.collect::<BTreeMap<_, _>>()).expect("texts have a JSON form")
    }

    pub(super) fn context(&self) -> DeploymentContext {
        let parallel = self.request.options.parallel.unwrap_or(0);
        DeploymentContext {
            project: self.workspace.project.name.clone(),
            stack: self.workspace.access.name.stack().to_owned(),
            organization: ORGANIZATION.to_owned(),
            config: self.config.values.clone(),
            config_secret_keys: self.config.secret_keys.clone(),
            dry_run: self.request.options.dry_run,
            parallel: i32::try_from(parallel).unwrap_or(i32::MAX),
            monitor_endpoint: String::new(),
        }
    }

    /// Reads the state without holding anything. A stack that does not exist yet is empty.
    pub(super) async fn look(&self, stack: &Stack) -> Result<StartState> {
        let keyring = &self.workspace.access.keyring;
        let loaded = match stack.load(keyring).await {
            Ok(loaded) => Some(loaded),
            Err(BackendError::NotFound { .. }) if self.creates_stacks() => {
                notices::new_stack(self.events.as_ref(), &self.workspace.access.name);
                None
            }
            Err(error) => return Err(error.into()),
        };
        let version = loaded.as_ref().map(|loaded| loaded.version);
        let snapshot = loaded
            .and_then(|loaded| loaded.snapshot)
            .unwrap_or_default();
        let secrets = self.secrets(keyring, &snapshot)?;
        Ok(StartState {
            snapshot,
            version,
            secrets,
        })
    }

    fn secrets(&self, keyring: &Arc<Keyring>, snapshot: &Snapshot) -> Result<Arc<StackSecrets>> {
        let declared = self.declared_secrets()?;
        let recorded = snapshot.secrets_provider.clone();
        Ok(Arc::new(StackSecrets::declared(
            keyring, &declared, recorded,
        )))
    }

    /// With configuration that is given, nothing of the stack's file counts: the state carries its key.
    pub(super) fn declared_secrets(&self) -> Result<DeclaredSecrets> {
        if self.config_is_given {
            return Ok(DeclaredSecrets::Nothing);
        }
        self.workspace.settings.secrets()
    }

    /// A preview shows the state as it is written down; whoever is changing it, or died changing
    /// it, knows more.
    pub(super) async fn tell_others(&self, stack: &Stack) -> Result<()> {
        match stack.holder().await? {
            Some(holder) if !is_dead(&holder.owner) => notices::held(self.events.as_ref(), &holder),
            Some(_) | None => {
                if let Some(report) = stack.interrupted().await? {
                    notices::interrupted(self.events.as_ref(), &report);
                }
            }
        }
        Ok(())
    }
}

/// Whether the holder of a lease was a process of this machine and is gone.
fn is_dead(owner: &Owner) -> bool {
    owner.hostname == Owner::current("").hostname && !owner.is_running_here()
}

fn chosen(choice: &ResourceSelection) -> Targets {
    Targets {
        patterns: choice.patterns.clone(),
        dependents: choice.dependents,
    }
}

fn serial(version: Option<&StateVersion>) -> String {
    version.map_or_else(|| "none".to_owned(), ToString::to_string)
}

/// Names the state that a plan starts from. One with nothing in it is the same as none: the first run
/// makes the stack before it looks at its plan.
fn start_of_plan(start: &StartState) -> String {
    let snapshot = &start.snapshot;
    let is_empty = snapshot.resources.is_empty() && snapshot.pending_operations.is_empty();
    serial(start.version.as_ref().filter(|_| !is_empty))
}
