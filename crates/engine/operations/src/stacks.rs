//! What other stacks offer, read from the same backend.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_backend::{Backend, BackendError, Keyring, NameError, ORGANIZATION, StackRef};
use nimbus_engine_model::{PropertyMap, PropertyValue, ROOT_STACK_TYPE, Snapshot};
use nimbus_engine_monitor::{StackReadError, StackReader};

/// Reads stacks of a backend as they are now: no lease is needed to look.
pub(crate) struct BackendStacks {
    pub(crate) backend: Backend,
    pub(crate) keyring: Arc<Keyring>,
    /// The project that is meant where a name has none.
    pub(crate) project: String,
    /// For a stranger's program, the projects of others that the operator lets it read.
    pub(crate) others: Option<BTreeSet<String>>,
    /// What stacks of the same deployment have, if this is a part of one.
    pub(crate) neighbours: Option<NeighbourOutputs>,
}

/// Outputs of stacks of a deployment as its run knows them, by project and stack. In a preview they
/// are those that the stacks would have.
pub type NeighbourOutputs = BTreeMap<(String, String), PropertyMap>;

impl BackendStacks {
    /// Programs that were written for a service name its organisations. A deployment has stacks of
    /// one owner, so there it does not matter which is named.
    fn named(&self, name: &str) -> Result<StackRef, StackReadError> {
        let unreadable = |error: NameError| StackReadError::Unreadable {
            name: name.to_owned(),
            reason: error.to_string(),
        };
        let own = name.split_once('/').filter(|_| self.neighbours.is_some());
        let parsed = match own {
            Some((_, rest)) => StackRef::parse(&format!("{ORGANIZATION}/{rest}"), &self.project),
            None => StackRef::parse(name, &self.project),
        };
        parsed.map_err(unreadable)
    }

    /// What the run of the deployment knows of a stack.
    fn neighbour(&self, name: &str) -> Result<Option<PropertyMap>, StackReadError> {
        let Some(neighbours) = &self.neighbours else {
            return Ok(None);
        };
        let stack = self.named(name)?;
        let key = (stack.project().to_owned(), stack.stack().to_owned());
        Ok(neighbours.get(&key).cloned())
    }

    async fn snapshot(&self, name: &str) -> Result<Option<Snapshot>, StackReadError> {
        let unreadable = |reason: String| StackReadError::Unreadable {
            name: name.to_owned(),
            reason,
        };
        let stack = self.named(name)?;
        // Whoever writes a program chooses the name, and a backend may hold the stacks of others.
        let project = stack.project();
        if let Some(others) = &self.others
            && project != self.project
            && !others.contains(project)
        {
            return Err(unreadable(format!(
                "it is a stack of another project, and programs of strangers read those that the \
                 operator names in engine.sandbox_references; {project} is not there"
            )));
        }
        match self.backend.stack(stack).load(&self.keyring).await {
            Ok(loaded) => Ok(loaded.snapshot),
            Err(BackendError::NotFound { .. }) => Err(StackReadError::NotFound {
                name: name.to_owned(),
            }),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }
}

#[async_trait]
impl StackReader for BackendStacks {
    async fn outputs(&self, name: &str) -> Result<PropertyMap, StackReadError> {
        if let Some(outputs) = self.neighbour(name)? {
            return Ok(outputs);
        }
        let snapshot = self.snapshot(name).await?;
        Ok(snapshot.as_ref().map(stack_outputs).unwrap_or_default())
    }

    async fn resource_outputs(&self, name: &str) -> Result<PropertyMap, StackReadError> {
        let snapshot = self.snapshot(name).await?.unwrap_or_default();
        let live = snapshot
            .resources
            .iter()
            .filter(|resource| !resource.delete);
        let entry = |resource: &Arc<nimbus_engine_model::ResourceState>| {
            let content = PropertyMap::from([
                ("type".to_owned(), resource.type_.as_str().into()),
                ("outputs".to_owned(), resource.outputs.clone().into()),
            ]);
            (resource.urn.to_string(), PropertyValue::Object(content))
        };
        Ok(live.map(entry).collect())
    }
}

/// The outputs of a stack; a stack that was never deployed has none.
pub fn stack_outputs(snapshot: &Snapshot) -> PropertyMap {
    let root = snapshot.resources.iter().find(|resource| {
        resource.type_ == ROOT_STACK_TYPE && resource.parent.is_none() && !resource.delete
    });
    root.map(|root| root.outputs.clone()).unwrap_or_default()
}
