//! Edits of recorded states: read, change on a copy, and write if nobody wrote meanwhile.
//!
//! What was there before stays in the stack's history. Secrets stay sealed, except for resources
//! that go to another stack, whose key is another.

use std::sync::Arc;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::{ImportOptions, Keyring, Owner, Stack, StateVersion};
use nimbus_engine_model::edit::{EditError, MoveRequest, MovedResources, move_resources};
use nimbus_engine_model::format::{Layout, SecretsMode, write_export};
use nimbus_engine_model::secrets::{CiphertextCache, SealedText};
use nimbus_engine_model::{Snapshot, Urn};

use crate::workspace::StackAccess;

/// A state before and after an edit that nobody has written yet.
#[derive(Clone, Debug)]
pub struct PreparedEdit {
    stack: Stack,
    keyring: Arc<Keyring>,
    version: StateVersion,
    pub before: Snapshot,
    pub after: Snapshot,
}

impl PreparedEdit {
    pub async fn open(
        access: &StackAccess,
        edit: impl FnOnce(&Snapshot) -> std::result::Result<Snapshot, EditError>,
    ) -> Result<Self> {
        let stack = access.stack();
        let state = stack.load_unverified().await?;
        let before = state.snapshot.unwrap_or_default();
        let after = edit(&before).map_err(|error| refused(error, access))?;
        Ok(Self {
            stack,
            keyring: Arc::clone(&access.keyring),
            version: state.version,
            before,
            after,
        })
    }

    /// Whether there is anything to write.
    pub fn has_changes(&self) -> bool {
        self.before != self.after
    }

    /// Makes it the state of the stack.
    pub async fn write(&self, command: &str) -> Result<()> {
        let mut cache = CiphertextCache::default();
        let secrets = SecretsMode::Encrypt {
            crypter: &SealedText,
            cache: &mut cache,
        };
        let bytes = write_export(Some(&self.after), secrets, Layout::Compact)?;
        write(&self.stack, self.version, &bytes, command, &self.keyring).await?;
        Ok(())
    }
}

/// Resources that would go from one stack to another.
#[derive(Clone, Debug)]
pub struct PreparedMove {
    source: Stack,
    destination: Stack,
    source_keys: Arc<Keyring>,
    destination_keys: Arc<Keyring>,
    source_version: StateVersion,
    destination_version: StateVersion,
    destination_before: Vec<u8>,
    pub moved: MovedResources,
}

impl PreparedMove {
    pub async fn open(
        from: &StackAccess,
        to: &StackAccess,
        resources: &[Urn],
        with_parents: bool,
    ) -> Result<Self> {
        if from.name == to.name {
            let message = format!("{} is both where they are and where they go", from.name);
            return Err(Error::new(ErrorCode::STATE_EDIT, message));
        }
        let (source, destination) = (from.stack(), to.stack());
        let loaded = source.load(&from.keyring).await?;
        let other = destination.load(&to.keyring).await?;
        let request = MoveRequest {
            resources,
            with_parents,
            to_stack: to.name.stack(),
            to_project: to.name.project(),
        };
        let moved = move_resources(
            &loaded.snapshot.unwrap_or_default(),
            &other.snapshot.unwrap_or_default(),
            request,
        )
        .map_err(|error| refused(error, from))?;
        Ok(Self {
            source_version: loaded.version,
            destination_version: other.version,
            destination_before: destination.export().await?,
            source_keys: Arc::clone(&from.keyring),
            destination_keys: Arc::clone(&to.keyring),
            source,
            destination,
            moved,
        })
    }

    /// First where they go, so that a crash in between leaves them twice and never nowhere.
    pub async fn write(&self, command: &str) -> Result<()> {
        // In clear text for a moment, in memory only: each stack seals with its own key.
        let opened =
            |snapshot: &Snapshot| write_export(Some(snapshot), SecretsMode::Show, Layout::Compact);
        let (there, here) = (
            opened(&self.moved.destination)?,
            opened(&self.moved.source)?,
        );
        let keys = &self.destination_keys;
        let version = self.destination_version;
        let written = write(&self.destination, version, &there, command, keys).await?;
        let left = write(
            &self.source,
            self.source_version,
            &here,
            command,
            &self.source_keys,
        );
        let Err(error) = left.await else {
            return Ok(());
        };
        let back = ImportOptions {
            accept_older: true,
            accept_broken: true,
            accept_other_stack: true,
            // Whoever wrote meanwhile is not undone.
            made_of: Some(written),
        };
        let owner = Owner::current(command);
        let undone = self
            .destination
            .import(&self.destination_before, back, owner, keys)
            .await;
        Err(match undone {
            Ok(_) => error,
            Err(_) => {
                let message = format!(
                    "the resources are in {} and could not be taken out of {}: {}",
                    self.destination.name(),
                    self.source.name(),
                    error.message()
                );
                let help = format!(
                    "`nimbus state delete` takes them out of {} when it can be written again",
                    self.source.name()
                );
                Error::new(error.code(), message)
                    .with_help(help)
                    .with_source(error)
            }
        })
    }
}

async fn write(
    stack: &Stack,
    expected: StateVersion,
    bytes: &[u8],
    command: &str,
    keyring: &Arc<Keyring>,
) -> Result<StateVersion> {
    let options = ImportOptions {
        // The edited copy is as old as what it was made of.
        accept_older: true,
        made_of: Some(expected),
        ..ImportOptions::default()
    };
    let owner = Owner::current(command);
    Ok(stack.import(bytes, options, owner, keyring).await?.version)
}

fn refused(error: EditError, access: &StackAccess) -> Error {
    let (code, help) = match &error {
        EditError::Unknown { .. } => (
            ErrorCode::RESOURCE_UNKNOWN,
            format!(
                "`nimbus state ls --stack {}` lists what there is",
                nimbus_core::shell_word(access.name.stack())
            ),
        ),
        EditError::Ambiguous { .. } => (
            ErrorCode::STATE_EDIT,
            "let an update delete the old ones first, or edit an export".to_owned(),
        ),
        EditError::Protected { .. } => (
            ErrorCode::STATE_EDIT,
            "`nimbus state unprotect URN` first, or give --force".to_owned(),
        ),
        EditError::Dependents { .. } => (
            ErrorCode::STATE_EDIT,
            "name them too: --target-dependents forgets them with it".to_owned(),
        ),
        EditError::Taken { .. } | EditError::Root { .. } | EditError::Name { .. } => {
            (ErrorCode::STATE_EDIT, "give another name".to_owned())
        }
        EditError::ProviderDiffers { .. } => (
            ErrorCode::STATE_EDIT,
            "configure both alike, or give one of them another name".to_owned(),
        ),
        EditError::View { .. } => (ErrorCode::STATE_EDIT, "name its owner".to_owned()),
    };
    Error::new(code, error.to_string()).with_help(help)
}
