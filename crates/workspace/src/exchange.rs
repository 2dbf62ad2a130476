//! Manifests that a workspace has in common with servers.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_disk::{FileMode, layout, unreadable, unwritable};
use nimbus_orchestrator::{FILE_NAME, Manifest, RenderedDeployment, configs, naming};
use serde::{Deserialize, Serialize};

use crate::{Workspace, files};

/// Which revisions of manifests a workspace had in common with servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangedDeployments {
    /// By server, tenant and deployment.
    #[serde(default)]
    revisions: BTreeMap<String, i64>,
}

impl ExchangedDeployments {
    /// What is remembered; a file that cannot be read remembers nothing.
    pub fn load(workspace: &Workspace) -> Self {
        let text = fs::read(layout::exchanged(workspace.root())).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    pub fn revision(&self, key: &str) -> Option<i64> {
        self.revisions.get(key).copied()
    }

    pub fn remember(&mut self, key: String, revision: i64) {
        self.revisions.insert(key, revision);
    }

    /// # Errors
    ///
    /// When it cannot be written.
    pub fn save(&self, workspace: &Workspace) -> Result<()> {
        let path = layout::exchanged(workspace.root());
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        nimbus_disk::replace(&path, &text, FileMode::KeptOrShared)
            .map_err(|error| unwritable(&path, error))
    }
}

/// Where the manifest of a server goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestPlace {
    path: PathBuf,
    /// Such as `deploy/D1-acme-shop/Deployment_Manifest.yaml`.
    pub name: String,
    exists: bool,
    /// Whether another one is there.
    pub differs: bool,
}

impl Workspace {
    /// Where a manifest that a server has goes: where its deployment is, or where it will be.
    ///
    /// # Errors
    ///
    /// When what is there cannot be read.
    pub fn manifest_place(&self, manifest: &Manifest, text: &str) -> Result<ManifestPlace> {
        let metadata = &manifest.metadata;
        let directory = match self.deployment(metadata.id.as_str()) {
            Ok(found) => found.directory,
            Err(_) => self.deployments().join(naming::directory(
                &metadata.id,
                &metadata.organization,
                &metadata.project,
            )),
        };
        let path = directory.join(FILE_NAME);
        let there = match fs::read_to_string(&path) {
            Ok(there) => Some(there),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(&path, error)),
        };
        let shown = path.strip_prefix(self.root()).unwrap_or(&path);
        Ok(ManifestPlace {
            name: shown.display().to_string(),
            exists: there.is_some(),
            differs: there.is_some_and(|there| there != text),
            path,
        })
    }

    /// Puts a manifest in its place, with the files of a new deployment where it is one. The word for what was done.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn put_manifest(
        &self,
        place: &ManifestPlace,
        manifest: &Manifest,
        text: &str,
    ) -> Result<&'static str> {
        if place.exists && !place.differs {
            return Ok("unchanged");
        }
        if !place.exists {
            let rendered = RenderedDeployment {
                manifest: manifest.clone(),
                configs: configs(manifest),
            };
            self.create(&rendered, "")?;
        }
        // As it was written there: comments are its owner's.
        files::replace(&place.path, text)?;
        Ok(if place.exists { "changed" } else { "made" })
    }
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;

    use super::*;

    const TEXT: &str = "# ours\napiVersion: v1\nkind: Deployment\n";

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("tools/templates")).unwrap();
        fs::create_dir_all(temp.path().join("deploy")).unwrap();
        let workspace = Workspace::find(temp.path()).unwrap();
        (temp, workspace)
    }

    #[test]
    fn revisions_are_remembered_by_server_and_deployment() {
        let (_temp, workspace) = workspace();
        let mut exchanged = ExchangedDeployments::load(&workspace);
        assert_eq!(exchanged.revision("s - D1"), None);
        exchanged.remember("s - D1".to_owned(), 3);
        exchanged.save(&workspace).unwrap();
        let again = ExchangedDeployments::load(&workspace);
        assert_eq!(
            (again.revision("s - D1"), again.revision("t - D1")),
            (Some(3), None)
        );
    }

    #[test]
    fn a_manifest_is_put_as_it_was_written() {
        let (_temp, workspace) = workspace();
        let answers = nimbus_orchestrator::InitAnswers {
            organization: "o".to_owned(),
            project: "p".to_owned(),
            template: "t".to_owned(),
            ..Default::default()
        };
        let mut library = nimbus_orchestrator::TemplateLibrary::default();
        let template =
            Document::parse("t.yaml", "name: t\nenvironments: {dev: {region: r}}\n").unwrap();
        let template = nimbus_orchestrator::ManifestTemplate::read(&template).unwrap();
        library.manifests.insert("t".to_owned(), template);
        let id = "D1".parse().unwrap();
        let manifest = nimbus_orchestrator::render(&library, &id, &answers)
            .unwrap()
            .manifest;
        let text = format!("{}{}", TEXT.lines().next().unwrap(), "\n") + &manifest.write();
        let place = workspace.manifest_place(&manifest, &text).unwrap();
        assert!(!place.differs);
        assert_eq!(
            workspace.put_manifest(&place, &manifest, &text).unwrap(),
            "made"
        );
        let place = workspace.manifest_place(&manifest, &text).unwrap();
        assert_eq!(
            workspace.put_manifest(&place, &manifest, &text).unwrap(),
            "unchanged"
        );
        let place = workspace.manifest_place(&manifest, "other").unwrap();
        assert!(place.differs, "{place:?}");
        assert!(place.name.starts_with("deploy/D1-o-p/"), "{place:?}");
    }
}
