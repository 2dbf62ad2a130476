//! The states of all stacks of an environment as one value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_disk::unwritable;
use nimbus_engine_backend::{BackendError, EnvironmentVariables, KeyServices};
use nimbus_engine_operations::{SandboxSettings, StackAccess, StackLocation, StateLocation};
use serde::Serialize;
use serde_json::Value;

use crate::kept_states::write_private;
use crate::place::DeploymentPlace;

const SCHEMA: &str = "nimbus/environment-state/1";

/// What is recorded of an environment. Secrets in it are encrypted as they are in the states.
#[derive(Clone, Debug, Serialize)]
pub struct EnvironmentStates {
    schema: &'static str,
    deployment: String,
    environment: String,
    rehearsal: bool,
    exported: String,
    /// By stack, in the official export form; a stack that was never deployed is left out.
    pub stacks: BTreeMap<String, Value>,
}

impl EnvironmentStates {
    /// Reads the states of every component, also of one that is switched off; `backend` is where they are when not in the
    /// deployment's own directory.
    ///
    /// # Errors
    ///
    /// When a state cannot be read, or is of a project that was not given to a stranger's manifest.
    pub async fn read(
        place: &DeploymentPlace,
        environment: EnvironmentName,
        backend: Option<&str>,
        sandbox: Option<&SandboxSettings>,
    ) -> Result<Self> {
        let manifest = &place.deployment.manifest;
        let mut stacks = BTreeMap::new();
        if backend.is_some() || place.state_folder().is_dir() {
            let states = place.states(backend, sandbox);
            for component in manifest.stacks.keys() {
                if let Some(state) = state(place, component, environment, &states).await? {
                    stacks.insert(component.to_string(), state);
                }
            }
        }
        Ok(Self {
            schema: SCHEMA,
            deployment: manifest.metadata.id.to_string(),
            environment: environment.to_string(),
            rehearsal: place.records.is_rehearsal(),
            exported: Timestamp::now().to_string(),
            stacks,
        })
    }

    /// Those that a server gave.
    pub fn of_server(
        deployment: String,
        environment: String,
        rehearsal: bool,
        exported: String,
        stacks: BTreeMap<String, Value>,
    ) -> Self {
        Self {
            schema: SCHEMA,
            deployment,
            environment,
            rehearsal,
            exported,
            stacks,
        }
    }

    /// How many resources a stack has; providers that nobody asked for are no resources.
    pub fn resources_of(&self, stack: &str) -> u64 {
        let resources = self
            .stacks
            .get(stack)
            .and_then(|state| state["deployment"]["resources"].as_array());
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let counts = |one: &&Value| {
            let provider = text(one, "type").starts_with("pulumi:providers:");
            !(provider && text(one, "urn").contains("::default")) && one["delete"] != true
        };
        resources.map_or(0, |all| all.iter().filter(counts).count() as u64)
    }

    /// As it stands in a file.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// One of them alone, in the form that `pulumi stack import` reads.
    ///
    /// # Errors
    ///
    /// When the stack has none here.
    pub fn text_of(&self, stack: &str) -> Result<String> {
        if let Some(state) = self.stacks.get(stack) {
            return Ok(serde_json::to_string_pretty(state).unwrap_or_default() + "\n");
        }
        let message = format!(
            "{} has no state of {stack} in {}",
            self.deployment, self.environment
        );
        let known: Vec<&str> = self.stacks.keys().map(String::as_str).collect();
        Err(
            Error::new(ErrorCode::STACK_UNKNOWN, message).with_help(match known.is_empty() {
                true => "nothing is deployed there".to_owned(),
                false => format!("these have one: {}", known.join(", ")),
            }),
        )
    }
}

/// Writes all of a text or nothing, readable by its owner only.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_states(path: &Path, text: &str) -> Result<()> {
    write_private(path, text.as_bytes()).map_err(|error| unwritable(path, error))
}

async fn state(
    place: &DeploymentPlace,
    component: &ComponentName,
    environment: EnvironmentName,
    states: &StateLocation,
) -> Result<Option<Value>> {
    let unit = place
        .deployment
        .manifest
        .pulumi_stack(component, environment);
    let location = StackLocation {
        directory: place.workspace.stack_source(component),
        ..states.clone().stack(unit.to_string())
    };
    // It is exported as it is, with its secrets encrypted.
    let services = KeyServices::Only(BTreeSet::new());
    let access = StackAccess::open(&location, &EnvironmentVariables::process(), &services).await?;
    let bytes = match access.stack().export().await {
        Ok(bytes) => bytes,
        Err(BackendError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let state = serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("the state of {unit} has no JSON form");
        Error::new(ErrorCode::STATE_UNREADABLE, message).with_source(error)
    })?;
    Ok(Some(state))
}
