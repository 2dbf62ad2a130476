//! What other stacks offer, read from the same backend.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_backend::{Backend, BackendError, Keyring, StackRef};
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
}

impl BackendStacks {
    async fn snapshot(&self, name: &str) -> Result<Option<Snapshot>, StackReadError> {
        let unreadable = |reason: String| StackReadError::Unreadable {
            name: name.to_owned(),
            reason,
        };
        let stack =
            StackRef::parse(name, &self.project).map_err(|error| unreadable(error.to_string()))?;
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
