//! Giving a stack another name, and taking a stack away.

use std::sync::Arc;

use nimbus_engine_model::format::{Layout, SecretsMode, read_unverified, write_checkpoint};
use nimbus_engine_model::secrets::{CiphertextCache, SealedText};
use nimbus_engine_model::{PendingOperation, ROOT_STACK_TYPE, ResourceState, Snapshot, Urn};

use super::Stack;
use crate::error::BackendError;
use crate::journal::put_away;
use crate::layout::{Compression, StackKeys};
use crate::lease::{Lease, Owner};
use crate::names::StackRef;
use crate::secrets::Keyring;

impl Stack {
    /// Gives the stack, with its history and tags, another name. The old name is free afterwards,
    /// except for the `.bak` file that it leaves.
    pub async fn rename(
        &self,
        new: &StackRef,
        owner: Owner,
        keyring: &Arc<Keyring>,
    ) -> Result<Stack, BackendError> {
        let target = self.backend.stack(new.clone());
        let rename = async |lease: &Lease| {
            let to_target = async |target_lease: &Lease| {
                self.rename_under(lease, &target, target_lease, keyring)
                    .await
            };
            target.locked(owner.clone(), to_target).await
        };
        self.locked(owner.clone(), rename).await?;
        Ok(target)
    }

    async fn rename_under(
        &self,
        lease: &Lease,
        target: &Stack,
        target_lease: &Lease,
        keyring: &Arc<Keyring>,
    ) -> Result<(), BackendError> {
        self.recover(lease, keyring).await?;
        if target.exists().await? {
            return Err(BackendError::Exists {
                stack: target.stack.clone(),
            });
        }
        let current = self.must_find().await?;
        let wrong = |source| BackendError::state(&current.key, source);
        let file = self.read(&current)?;
        let opened = file
            .deployment
            .map(|deployment| deployment.open(&SealedText));
        let snapshot = opened
            .transpose()
            .map_err(wrong)?
            .map(|(snapshot, _)| snapshot);
        let renamer = Renamer {
            old: &self.stack,
            new: &target.stack,
        };
        let renamed = snapshot.map(|snapshot| renamer.snapshot(snapshot));
        let mut cache = CiphertextCache::default();
        let secrets = SecretsMode::Encrypt {
            crypter: &SealedText,
            cache: &mut cache,
        };
        let bytes = write_checkpoint(&target.head(), renamed.as_ref(), secrets, Layout::Compact)
            .map_err(wrong)?;
        target.save(target_lease, None, bytes).await?;
        target.set_tags(&self.tags().await?).await?;
        self.copy_history(target).await?;
        // From here on everything exists twice, and the old name goes.
        self.take_away(current.compression).await
    }

    /// Removes the stack. One that still has resources is removed only by force.
    pub async fn remove(
        &self,
        force: bool,
        owner: Owner,
        keyring: &Arc<Keyring>,
    ) -> Result<(), BackendError> {
        let remove = async |lease: &Lease| self.remove_under(lease, force, keyring).await;
        self.locked(owner, remove).await
    }

    async fn remove_under(
        &self,
        lease: &Lease,
        force: bool,
        keyring: &Arc<Keyring>,
    ) -> Result<(), BackendError> {
        if !force {
            self.recover(lease, keyring).await?;
        }
        let current = self.must_find().await?;
        if !force {
            let resources = self.managed(&current.bytes)?;
            if resources > 0 {
                let stack = self.stack.clone();
                return Err(BackendError::NotEmpty { stack, resources });
            }
        }
        self.take_away(current.compression).await
    }

    /// How many resources would be left to nobody. The stack's own root is none.
    fn managed(&self, checkpoint: &[u8]) -> Result<usize, BackendError> {
        let wrong = |source| self.state_error(source);
        let file = read_unverified(checkpoint).map_err(wrong)?;
        let opened = file
            .deployment
            .map(|deployment| deployment.open(&SealedText));
        let snapshot = opened.transpose().map_err(wrong)?;
        Ok(snapshot.map_or(0, |(snapshot, _)| {
            let resources = snapshot.resources.iter();
            let own = resources.filter(|resource| resource.type_ != ROOT_STACK_TYPE);
            own.count() + snapshot.pending_operations.len()
        }))
    }

    async fn copy_history(&self, target: &Stack) -> Result<(), BackendError> {
        let storage = self.backend.storage();
        let (from, to) = (self.keys.history_folder(), target.keys.history_folder());
        let prefix = format!("{from}/{}-", self.stack.stack());
        for entry in storage.list(&from).await? {
            if let Some(rest) = entry.key.strip_prefix(&prefix) {
                let new = format!("{to}/{}-{rest}", target.stack.stack());
                storage.copy(&entry.key, &new).await?;
            }
        }
        Ok(())
    }

    /// Keeps the state as `.bak`, then deletes it and all that goes with it.
    async fn take_away(&self, compression: Compression) -> Result<(), BackendError> {
        let storage = self.backend.storage();
        let keys: &StackKeys = &self.keys;
        let checkpoint = keys.checkpoint(compression);
        storage
            .copy(&checkpoint, &keys.previous_checkpoint(compression))
            .await?;
        for compression in Compression::ALL {
            storage.delete(&keys.checkpoint(compression)).await?;
        }
        // A journal of this stack would not fit one of the same name to come.
        put_away(self.backend.place(), &self.stack, self.now()).await?;
        storage.delete(&keys.tags()).await?;
        storage.delete(&keys.ledger()).await?;
        for entry in storage.list(&keys.history_folder()).await? {
            storage.delete(&entry.key).await?;
        }
        Ok(())
    }
}

/// Rewrites the URNs of one stack. Those of other stacks stay.
struct Renamer<'a> {
    old: &'a StackRef,
    new: &'a StackRef,
}

impl Renamer<'_> {
    fn snapshot(&self, mut snapshot: Snapshot) -> Snapshot {
        for resource in &mut snapshot.resources {
            self.resource(Arc::make_mut(resource));
        }
        for PendingOperation { resource, .. } in &mut snapshot.pending_operations {
            self.resource(Arc::make_mut(resource));
        }
        snapshot
    }

    fn urn(&self, urn: &mut Urn) {
        if urn.stack() != self.old.stack() || urn.project() != self.old.project() {
            return;
        }
        let (stack, project) = (self.new.stack(), self.new.project());
        *urn = if urn.type_() == ROOT_STACK_TYPE {
            Urn::root_stack(stack, project)
        } else {
            let qualified = urn.qualified_type();
            let (parents, own) = match qualified.rsplit_once('$') {
                Some((parents, own)) => (Some(parents), own),
                None => (None, qualified),
            };
            Urn::new(stack, project, parents, own, urn.name())
        };
    }

    fn resource(&self, resource: &mut ResourceState) {
        resource.each_urn(&mut |urn| self.urn(urn));
    }
}
