//! A workspace that somebody else wrote.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{FolderFiles, unreadable};
use nimbus_engine_files::{NotContained, ProjectFiles, RootsError, require_contained};
use nimbus_orchestrator::ComponentTemplate;

use crate::workspace::{ROOT, Workspace};

/// Below these, files are read for programs and nothing is written: packages that several projects share
/// are linked to from there.
const ONLY_READ: &[&str] = &["stacks"];

/// Links by these names are packages, wherever they are.
const PACKAGES: &[&str] = &["node_modules", "venv", ".venv"];

impl Workspace {
    /// A stranger's workspace, looked through and held: from now on its files are opened from the folder that was
    /// looked through, so that whoever changes a name in it afterwards leads nobody anywhere.
    ///
    /// # Errors
    ///
    /// What leads out, by its name.
    pub fn contained(self, roots: &[PathBuf]) -> Result<Self> {
        let files = match FolderFiles::held(self.root()) {
            Ok(files) => files,
            Err(error) => {
                // A kernel that cannot is told as such by whoever looks.
                self.require_contained(roots)?;
                return Err(unreadable(self.root(), error));
            }
        };
        let programs = self.program_files(roots)?;
        let held = self.held_by(files, programs);
        held.require_contained(roots)?;
        Ok(held)
    }

    /// Refuses a stranger's workspace in which anything leads out of it, and programs that lie neither in it
    /// nor in a root of the operator.
    ///
    /// # Errors
    ///
    /// What leads out, by its name.
    pub fn require_contained(&self, roots: &[PathBuf]) -> Result<()> {
        let root =
            std::path::absolute(self.root()).map_err(|error| unreadable(self.root(), error))?;
        self.require_found_here(&root)?;
        require_contained(&root, roots, is_only_read).map_err(|error| refused(&error))?;
        let files = self.program_files(roots)?;
        for template in self.yaml_files(&self.stack_templates())? {
            // One that cannot be read is reported by whoever needs it; the others are looked at all the same.
            let read = self
                .document(&template)
                .and_then(|document| ComponentTemplate::read(&document));
            let Some(source) = read.ok().and_then(|template| template.source) else {
                continue;
            };
            match files.canonicalize(Path::new(&source)) {
                Ok(_) => {}
                // A program that is not there yet, in a place that is allowed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let path = root.join(source);
                    let source = error;
                    return Err(refused(&NotContained::Entry { path, source }));
                }
            }
        }
        Ok(())
    }

    /// Reads programs in the workspace and in roots of the operator.
    fn program_files(&self, roots: &[PathBuf]) -> Result<ProjectFiles> {
        let root =
            std::path::absolute(self.root()).map_err(|error| unreadable(self.root(), error))?;
        ProjectFiles::beneath(&root, roots).map_err(|error| refused(&NotContained::Roots(error)))
    }

    /// The folder that was given is the operator's word; `cloud` in it is whoever's who made it.
    fn require_found_here(&self, root: &Path) -> Result<()> {
        let is_link = fs::symlink_metadata(root).is_ok_and(|found| found.is_symlink());
        if !is_link || root.file_name().is_none_or(|name| name != ROOT) {
            return Ok(());
        }
        let message = format!(
            "{} is a link, and the workspace is a stranger's",
            root.display()
        );
        Err(Error::new(ErrorCode::OUTSIDE_PROJECT, message)
            .with_help("give the workspace's own folder with -C"))
    }
}

/// Refuses a folder in a stranger's project that is none, or in which anything leads out of it. One that is not
/// there is made by whoever needs it.
///
/// # Errors
///
/// What leads out, by its name.
pub fn require_own_folder(folder: &Path) -> Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            let message = format!("{} is not a folder of the project", folder.display());
            return Err(Error::new(ErrorCode::OUTSIDE_PROJECT, message)
                .with_help("take it out of the project"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(folder, error)),
    }
    let folder = std::path::absolute(folder).map_err(|error| unreadable(folder, error))?;
    require_contained(&folder, &[], |_| false).map_err(|error| refused(&error))
}

fn is_only_read(name: &Path) -> bool {
    let is_packages = name
        .file_name()
        .is_some_and(|name| PACKAGES.iter().any(|packages| name == *packages));
    is_packages || ONLY_READ.iter().any(|folder| name.starts_with(folder))
}

fn refused(error: &NotContained) -> Error {
    let code = match error {
        NotContained::Roots(RootsError::Kernel) => ErrorCode::ISOLATION_WEAK,
        NotContained::Roots(_) => ErrorCode::SANDBOX_ROOT,
        NotContained::Entry { .. } => ErrorCode::OUTSIDE_PROJECT,
    };
    Error::new(code, error.to_string()).with_help(
        "with engine.sandbox: strict nothing in a workspace may lead out of it; programs, and links to \
         packages below stacks/, may lie in a folder that the operator names in engine.sandbox_roots",
    )
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let temp = tempfile::tempdir().unwrap();
        let templates = temp.path().join("cloud/tools/templates/config");
        fs::create_dir_all(&templates).unwrap();
        fs::create_dir_all(temp.path().join("elsewhere/src")).unwrap();
        let workspace = Workspace::find(temp.path()).unwrap();
        (temp, workspace)
    }

    #[track_caller]
    fn assert_refused(workspace: &Workspace, words: &str) {
        let error = workspace.require_contained(&[]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::OUTSIDE_PROJECT);
        assert!(error.message().contains(words), "{}", error.message());
    }

    #[test]
    fn on_a_server_a_source_leads_nowhere() {
        let (temp, workspace) = workspace();
        let template = workspace.stack_templates().join("dns.yaml");
        let dns: nimbus_core::ComponentName = "dns".parse().unwrap();
        let usual = temp.path().join("cloud/stacks/dns/src");
        for source in ["../elsewhere/src", "/etc", "/proc/self/root", "deploy"] {
            fs::write(&template, format!("name: dns\nsource: {source}\n")).unwrap();
            let served = workspace.clone().without_sources();
            assert_eq!(served.stack_source(&dns), usual, "{source}");
            let absolute = served.absolute().unwrap();
            assert!(
                absolute
                    .stack_source(&dns)
                    .ends_with("cloud/stacks/dns/src")
            );
        }
    }

    #[test]
    fn a_program_elsewhere_needs_a_root_of_the_operator() {
        let (temp, workspace) = workspace();
        workspace.require_contained(&[]).unwrap();
        let template = workspace.stack_templates().join("dns.yaml");
        fs::write(&template, "name: dns\nsource: ../elsewhere/src\n").unwrap();
        assert_refused(&workspace, "elsewhere");
        let root = temp.path().join("elsewhere");
        workspace.require_contained(&[root]).unwrap();
    }

    /// The kernel cannot tell where these lead; the text of each leads to the folder outside.
    #[test]
    fn a_program_elsewhere_is_refused_by_whatever_way() {
        let (temp, workspace) = workspace();
        fs::create_dir(temp.path().join("cloud/deploy")).unwrap();
        fs::write(temp.path().join("cloud/file"), "").unwrap();
        let long = "x".repeat(300);
        let template = workspace.stack_templates().join("dns.yaml");
        let ways = [
            "deploy/x/../../../elsewhere/src".to_owned(),
            "deploy/x/y/../../../../elsewhere/src".to_owned(),
            "./x/../../elsewhere/./src".to_owned(),
            "file/../../elsewhere/src".to_owned(),
            format!("{long}/../../elsewhere/src"),
            temp.path()
                .join("cloud/x/../../elsewhere/src")
                .display()
                .to_string(),
        ];
        for way in ways {
            let said = |source: &str| {
                fs::write(&template, format!("name: dns\nsource: {source}\n")).unwrap();
                let error = workspace.require_contained(&[]).unwrap_err();
                assert_eq!(error.code(), ErrorCode::OUTSIDE_PROJECT, "{source}");
                error.message().to_owned()
            };
            let there = said(&way);
            // Nobody learns whether something is there.
            let absent = way.replace("elsewhere", "nowhere");
            assert_eq!(there.replace("elsewhere", "nowhere"), said(&absent));
        }
        // A template that nobody can read keeps no other from being looked at.
        fs::write(workspace.stack_templates().join("a.yaml"), "name: [").unwrap();
        assert_refused(&workspace, "nowhere");
    }

    #[test]
    fn a_program_that_is_not_there_leads_nowhere() {
        let (temp, workspace) = workspace();
        let template = workspace.stack_templates().join("dns.yaml");
        for folder in ["programs/dns", "links/a/b/c"] {
            fs::create_dir_all(temp.path().join("cloud").join(folder)).unwrap();
        }
        symlink("a/b/c", temp.path().join("cloud/links/deep")).unwrap();
        fs::create_dir(temp.path().join("cloud/links/elsewhere")).unwrap();
        let workspace = workspace.contained(&[]).unwrap();
        let dns = "dns".parse::<nimbus_core::ComponentName>().unwrap();
        let found = |source: &str| {
            fs::write(&template, format!("name: dns\nsource: {source}\n")).unwrap();
            workspace.require_contained(&[]).unwrap();
            let found = workspace.stack_source(&dns);
            found.strip_prefix(temp.path()).unwrap().to_owned()
        };
        assert_eq!(
            found("./programs/../programs/dns"),
            Path::new("cloud/programs/dns")
        );
        // By its text this is the folder `elsewhere` outside.
        let through_link = "links/deep/../../../elsewhere";
        assert_eq!(found(through_link), Path::new("cloud/links/elsewhere"));
        let usual = Path::new("cloud/stacks/dns/src");
        assert_eq!(found("programs/later"), usual);
        // Whatever the template says after everything was looked at.
        for source in ["../elsewhere/src", "x/../../elsewhere/src"] {
            fs::write(&template, format!("name: dns\nsource: {source}\n")).unwrap();
            assert_eq!(workspace.stack_source(&dns), temp.path().join(usual));
        }
    }

    #[test]
    fn a_linked_manifest_template_or_workspace_is_refused() {
        let (temp, workspace) = workspace();
        let secret = temp.path().join("elsewhere/secret");
        fs::write(&secret, "hunter2: [").unwrap();
        let link = workspace.stack_templates().join("dns.yaml");
        symlink(&secret, &link).unwrap();
        assert_refused(&workspace, "dns.yaml");
        fs::remove_file(&link).unwrap();
        let moved = temp.path().join("moved");
        fs::rename(temp.path().join("cloud"), &moved).unwrap();
        symlink(&moved, temp.path().join("cloud")).unwrap();
        assert_refused(&workspace, "is a link");
    }

    /// A program that runs meanwhile puts a link where a folder was when everything was looked at.
    #[test]
    fn what_is_swapped_after_the_look_leads_nowhere() {
        let (temp, workspace) = workspace();
        let text = "name: dns\n";
        fs::write(workspace.stack_templates().join("dns.yaml"), text).unwrap();
        let workspace = workspace.contained(&[]).unwrap();
        assert_eq!(workspace.library().unwrap().stacks.len(), 1);
        let templates = temp.path().join("cloud/tools/templates");
        fs::rename(&templates, temp.path().join("cloud/aside")).unwrap();
        let elsewhere = temp.path().join("elsewhere/config");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("dns.yaml"), "hunter2: [").unwrap();
        symlink(temp.path().join("elsewhere"), &templates).unwrap();
        let read = workspace.library().map(|library| library.stacks.len());
        assert!(read.is_ok_and(|found| found == 0), "nothing is there");
        // And the workspace itself.
        let cloud = temp.path().join("cloud");
        fs::rename(&cloud, temp.path().join("moved")).unwrap();
        let hostile = temp.path().join("hostile/deploy/D1-o-p");
        fs::create_dir_all(&hostile).unwrap();
        fs::write(hostile.join("Deployment_Manifest.yaml"), "hunter2: [").unwrap();
        symlink(temp.path().join("hostile"), &cloud).unwrap();
        assert!(workspace.deployment_directories().unwrap().is_empty());
    }
}
