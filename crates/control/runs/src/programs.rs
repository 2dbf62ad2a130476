//! A tenant's templates and programs as files, for programs are run from files.
//!
//! What the tenant has lies over the shipped library, and the versions of the catalog that a run is made of over the
//! library as well. A folder is named by a digest over all of it and
//! never changes once it is there, so that runs share it and a change makes another one.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nimbus_core::Result;
use nimbus_disk::{place_folder, unwritable};
use nimbus_engine_operations::SandboxSettings;
use nimbus_local::sandbox_choice;
use nimbus_runs::SandboxChoice;
use nimbus_workspace::Workspace;
use sha2::{Digest as _, Sha256};

use crate::access::RunAccess;
use crate::pinned::PinnedVersions;
use crate::tenant_texts::TenantTexts;

/// How programs of tenants are run.
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// Where files are written out.
    pub folder: PathBuf,
    /// Packages of Node.js that the operator has for programs.
    pub node_modules: Option<PathBuf>,
    pub sandbox: Option<SandboxSettings>,
}

/// Programs of tenants on this machine.
#[derive(Clone, Debug)]
pub struct TenantPrograms {
    settings: ProgramSettings,
    texts: TenantTexts,
}

impl TenantPrograms {
    pub fn new(settings: ProgramSettings) -> Self {
        Self {
            texts: TenantTexts::new(&settings),
            settings,
        }
    }

    pub(crate) fn texts(&self) -> &TenantTexts {
        &self.texts
    }

    /// How programs are kept from everything else. They may lead into their own workspace and into the
    /// operator's packages.
    pub(crate) fn sandbox(&self, workspace: &Workspace) -> Option<SandboxSettings> {
        let mut sandbox = self.settings.sandbox.clone()?;
        sandbox.roots.push(workspace.root().to_owned());
        if let Some(given) = &self.settings.node_modules {
            sandbox.roots.extend(linked_packages(given));
            sandbox.roots.push(given.clone());
        }
        Some(sandbox)
    }

    /// What is recorded of that with a run. How much programs may use and where folders lie is this
    /// machine's, and the next attempt may be another's.
    pub(crate) fn isolation(&self) -> SandboxChoice {
        sandbox_choice(self.settings.sandbox.as_ref()).without_limits()
    }

    /// Whether programs are kept from everything else, whatever they try.
    pub(crate) fn is_strict(&self) -> bool {
        let sandbox = self.settings.sandbox.as_ref();
        sandbox.is_some_and(SandboxSettings::is_strict)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.settings.folder
    }

    /// The tenant's workspace as it is now, written out.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written.
    pub(crate) async fn write_out(
        &self,
        access: &dyn RunAccess,
        catalog: &PinnedVersions,
    ) -> Result<Workspace> {
        let index = access.workspace().await?;
        let mut whole = Sha256::new();
        whole.update(LIBRARY.as_slice());
        whole.update(LAYOUT);
        if let Some(modules) = &self.settings.node_modules {
            whole.update(modules.as_os_str().as_encoded_bytes());
        }
        for file in &index {
            whole.update(file.path.as_bytes());
            whole.update([0]);
            whole.update(hex::decode(&file.digest).unwrap_or_default());
        }
        catalog.add_to(&mut whole);
        let tenant = self.settings.folder.join(access.tenant().to_string());
        let target = tenant.join(hex::encode(whole.finalize()));
        if !target.is_dir() {
            fs::create_dir_all(&tenant).map_err(|error| unwritable(&tenant, error))?;
            let draft = tempfile::Builder::new()
                .prefix("draft-")
                .tempdir_in(&tenant);
            let draft = draft.map_err(|error| unwritable(&tenant, error))?;
            for file in &index {
                let content = access.content(&file.digest).await?;
                write(&draft.path().join(&file.path), &content)
                    .map_err(|error| unwritable(&target, error))?;
            }
            for (path, content) in access.pinned_files().await? {
                write(&draft.path().join(&path), content.as_bytes())
                    .map_err(|error| unwritable(&target, error))?;
            }
            self.finish(draft.path(), &target, catalog)
                .map_err(|error| unwritable(&target, error))?;
        }
        Ok(Workspace::find(&target)?.without_sources())
    }

    fn finish(&self, draft: &Path, target: &Path, catalog: &PinnedVersions) -> io::Result<()> {
        // Of a stack that the catalog has, nothing of the same name that is shipped is mixed in.
        nimbus_library::write_missing_but(draft, |path| catalog.has(path))?;
        if let Some(given) = &self.settings.node_modules {
            let stacks = draft.join("stacks");
            // In a strict sandbox a program sees its own folder and nothing above it.
            for stack in fs::read_dir(&stacks)? {
                let modules = stack?.path().join("src/node_modules");
                if modules.parent().is_some_and(Path::is_dir) && !modules.exists() {
                    symlink(given, modules)?;
                }
            }
            // After the others: what it leads to is the operator's, and has no stacks.
            symlink(given, stacks.join("node_modules"))?;
        }
        match place_folder(draft, target) {
            // Another run was faster and wrote the same.
            Err(_) if target.is_dir() => Ok(()),
            placed => placed,
        }
    }
}

/// Another one makes workspaces that were written out before be written out anew.
const LAYOUT: &[u8] = b"3";

/// What is shipped, as one digest.
static LIBRARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut whole = Sha256::new();
    for (path, content) in nimbus_library::files() {
        whole.update(path.as_bytes());
        whole.update([0]);
        whole.update(Sha256::digest(content));
    }
    whole.finalize().to_vec()
});

/// Where packages lie that the operator's folder has as links: code that programs share is installed
/// like this, and brings files along.
pub(crate) fn linked_packages(modules: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let listed = fs::read_dir(folder).into_iter().flatten().flatten();
        listed.map(|entry| entry.path()).collect()
    };
    let scoped = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b"@")
    };
    let packages = entries(modules).into_iter().flat_map(|path| {
        if scoped(&path) && !path.is_symlink() {
            entries(&path)
        } else {
            vec![path]
        }
    });
    packages
        .filter(|path| path.is_symlink())
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| path.is_dir())
        .collect()
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_are_links_lead_to_where_their_files_are() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for folder in [
            "shared",
            "tool",
            "node_modules/@cloud",
            "node_modules/plain",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink("../../shared", root.join("node_modules/@cloud/shared")).unwrap();
        symlink("../tool", root.join("node_modules/tool")).unwrap();
        symlink("../nothing", root.join("node_modules/gone")).unwrap();
        let mut found = linked_packages(&root.join("node_modules"));
        found.sort();
        assert_eq!(found, [root.join("shared"), root.join("tool")]);
    }
}
