//! A platform directory on disk: `tools/templates`, `stacks` and `deploy` under one root.
//!
//! Reading gives values; writing is atomic: a deployment is made in a hidden directory beside its place and moved there whole, so that a failure leaves
//! nothing behind.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use nimbus_core::{ComponentName, DeploymentId, Error, ErrorCode, Result};
use nimbus_disk::{FolderFiles, layout, unreadable, unwritable};
use nimbus_document::Document;
use nimbus_engine_files::ProjectFiles;
use nimbus_orchestrator::{
    CONFIG_FOLDER, ComponentTemplate, FILE_NAME, Manifest, ManifestTemplate, RenderedDeployment,
    TemplateLibrary, WRITTEN_FILE, naming, written_configs,
};

use crate::configured::written_text;

/// Directory that holds a workspace, below the place where a user works.
pub const ROOT: &str = "cloud";

#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    /// How its files are opened; a stranger's workspace is held.
    files: FolderFiles,
    sources: ProgramSources,
}

/// Where programs may lie that are not below `stacks/`, because their template has a `source`.
#[derive(Clone, Debug)]
enum ProgramSources {
    Anywhere,
    /// In a stranger's workspace, where these files may be read.
    Beneath(ProjectFiles),
    Nowhere,
}

/// A deployment found on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceDeployment {
    pub directory: PathBuf,
    pub manifest: Manifest,
}

impl Workspace {
    /// The workspace of a directory: itself, its `cloud/`, or the nearest one above.
    pub fn find(from: &Path) -> Result<Self> {
        for directory in from.ancestors() {
            for root in [directory.join(ROOT), directory.to_owned()] {
                if root.join("tools/templates").is_dir() {
                    return Ok(Self::at(root));
                }
            }
        }
        Err(Error::new(
            ErrorCode::WORKSPACE_MISSING,
            format!("{} is in no Nimbus workspace", from.display()),
        )
        .with_help("run `nimbus new` to make one here, or give its place with -C DIR"))
    }

    /// The workspace at a place, whether or not there is one yet.
    pub fn at(root: PathBuf) -> Self {
        let files = FolderFiles::own(&root);
        Self {
            root,
            files,
            sources: ProgramSources::Anywhere,
        }
    }

    /// The same with programs below `stacks/` only. A server has nothing else of a tenant, and what a `source` leads
    /// to would be somebody else's.
    #[must_use]
    pub fn without_sources(self) -> Self {
        Self {
            sources: ProgramSources::Nowhere,
            ..self
        }
    }

    /// The same, from a folder that is open, with programs where these files may be read.
    pub(crate) fn held_by(self, files: FolderFiles, programs: ProjectFiles) -> Self {
        Self {
            files,
            sources: ProgramSources::Beneath(programs),
            ..self
        }
    }

    /// Opens what is in it. Of a stranger's workspace nothing else is, whatever its names lead to by now.
    pub fn files(&self) -> &FolderFiles {
        &self.files
    }

    /// A document of it.
    pub(crate) fn document(&self, path: &Path) -> Result<Document> {
        if !self.files.is_held() {
            return Document::read(path);
        }
        let bytes = self.files.read(path);
        let bytes = bytes.map_err(|error| unreadable(path, error))?;
        Document::parse_bytes(&path.display().to_string(), &bytes)
    }

    /// The same by its whole path, without links.
    ///
    /// # Errors
    ///
    /// When a part of the path cannot be read.
    pub fn absolute(&self) -> Result<Self> {
        let parent = self.root.parent().unwrap_or(&self.root);
        let found = match self.root.exists() {
            true => self.root.canonicalize(),
            false => parent
                .canonicalize()
                .map(|parent| parent.join(self.root.file_name().unwrap_or_default())),
        };
        let root = found.map_err(|error| unreadable(&self.root, error))?;
        if self.files.is_held() {
            // What is held has been looked through under the name that it was given.
            return Ok(self.clone());
        }
        Ok(Self {
            sources: self.sources.clone(),
            ..Self::at(root)
        })
    }

    /// Makes the folders of a workspace that has nothing in it.
    ///
    /// # Errors
    ///
    /// When one cannot be made.
    pub fn make_folders(&self) -> Result<()> {
        for folder in [self.stack_templates(), self.deployments()] {
            fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
        }
        Ok(())
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn deployments(&self) -> PathBuf {
        self.root.join("deploy")
    }

    /// The program of a stack: below `stacks/`, or where its template says.
    pub fn stack_source(&self, stack: &ComponentName) -> PathBuf {
        let usual = self.root.join("stacks").join(stack.as_str()).join("src");
        if usual.is_dir() {
            return usual;
        }
        // A template that cannot be read is reported by whoever reads all of them.
        let template = self
            .document(&self.stack_templates().join(format!("{stack}.yaml")))
            .and_then(|document| ComponentTemplate::read(&document));
        match template.ok().and_then(|template| template.source) {
            Some(source) => match &self.sources {
                // What leads nowhere that is allowed is no program, whatever lies where its text seems to lead.
                ProgramSources::Beneath(files) => {
                    self.found_source(files, &source).unwrap_or(usual)
                }
                ProgramSources::Anywhere => plain(&self.root.join(source)),
                ProgramSources::Nowhere => usual,
            },
            None => usual,
        }
    }

    /// Where the source of a stranger's template really is, below the name by which the workspace was given.
    fn found_source(&self, programs: &ProjectFiles, source: &str) -> Option<PathBuf> {
        // Relative paths start at the workspace.
        let real = programs.canonicalize(Path::new(source)).ok()?;
        let root = programs.canonicalize(Path::new(".")).ok()?;
        Some(match real.strip_prefix(&root) {
            Ok(inside) => self.root.join(inside),
            Err(_) => real,
        })
    }

    pub fn stack_templates(&self) -> PathBuf {
        self.root.join("tools/templates/config")
    }

    /// Every template, read and checked.
    pub fn library(&self) -> Result<TemplateLibrary> {
        let mut library = TemplateLibrary::default();
        for path in self.yaml_files(&self.stack_templates())? {
            let document = self.document(&path)?;
            let template = ComponentTemplate::read(&document)?;
            require_name(&document, &path, &template.name)?;
            self.require_one_source(&document, &template)?;
            library.stacks.insert(template.name.clone(), template);
        }
        for kind in ["default", "custom"] {
            for path in self.yaml_files(&self.root.join("tools/templates").join(kind))? {
                let document = self.document(&path)?;
                let template = ManifestTemplate::read(&document)?;
                require_name(&document, &path, &template.name)?;
                library.manifests.insert(template.name.clone(), template);
            }
        }
        Ok(library)
    }

    /// A program is in one place: two would make it a guess which of them runs.
    fn require_one_source(&self, document: &Document, template: &ComponentTemplate) -> Result<()> {
        let usual = self.root.join("stacks").join(&*template.name).join("src");
        if template.source.is_none() || !usual.is_dir() {
            return Ok(());
        }
        let source = document.view().required("source")?;
        let message = format!("the stack {} has two programs", template.name);
        let hint = format!("there is one in {} too", usual.display());
        Err(source.error(message, hint))
    }

    /// Directories of deployments, by id, whatever state they are in.
    pub fn deployment_directories(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let root = self.deployments();
        if !self.files.is_folder(&root) {
            return Ok(found);
        }
        let entries = self.files.entries(&root);
        for path in entries.map_err(|error| unreadable(&root, error))? {
            if self.files.exists(&path.join(FILE_NAME)) {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Whether an id is taken, finished deployment or not.
    pub fn is_taken(&self, id: &DeploymentId) -> bool {
        self.directory_of(id.as_str())
            .is_ok_and(|found| found.is_some())
    }

    pub fn deployment(&self, id: &str) -> Result<WorkspaceDeployment> {
        let directory = self.directory_of(id)?.ok_or_else(|| self.unknown(id))?;
        let manifest = self.manifest_at(&directory)?;
        Ok(WorkspaceDeployment {
            directory,
            manifest,
        })
    }

    /// The manifest in a deployment's directory.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn manifest_at(&self, directory: &Path) -> Result<Manifest> {
        Manifest::read(&self.document(&directory.join(FILE_NAME))?)
    }

    /// The manifest of a deployment as it is written, for complaints that point into it.
    pub fn manifest_document(&self, id: &str) -> Result<Document> {
        let directory = self.directory_of(id)?.ok_or_else(|| self.unknown(id))?;
        self.document(&directory.join(FILE_NAME))
    }

    /// Manifests of all deployments, without those that cannot be read: they are reported where
    /// they are asked for.
    pub fn readable_deployments(&self) -> Result<Vec<Manifest>> {
        let directories = self.deployment_directories()?;
        let read = |directory: &PathBuf| {
            self.document(&directory.join(FILE_NAME))
                .and_then(|document| Manifest::read(&document))
        };
        Ok(directories
            .iter()
            .filter_map(|directory| read(directory).ok())
            .collect())
    }

    /// Writes a new deployment: all of it or nothing. Returns its directory.
    pub fn create(&self, rendered: &RenderedDeployment, log: &str) -> Result<PathBuf> {
        let metadata = &rendered.manifest.metadata;
        let name = naming::directory(&metadata.id, &metadata.organization, &metadata.project);
        let target = self.deployments().join(&name);
        // Two that are made at once must not both find the id free. The lock ends with its process.
        let _claim = self.claim()?;
        if self.is_taken(&metadata.id) {
            return Err(Error::new(
                ErrorCode::DEPLOYMENT_EXISTS,
                format!("the deployment id {} is taken", metadata.id),
            )
            .with_help("leave the id out to have one made, or choose another"));
        }
        let draft = self.deployments().join(format!(".{name}.new"));
        let written = write_draft(&draft, rendered, log)
            .and_then(|()| nimbus_disk::place_folder(&draft, &target));
        written.map_err(|error| {
            // Whatever is left of the draft is ours; if even that cannot go, the error below says
            // more than a second one would.
            let _ = fs::remove_dir_all(&draft);
            not_made(&target, error)
        })?;
        Ok(target)
    }

    /// Keeps others from making a deployment until it is dropped.
    fn claim(&self) -> Result<fs::File> {
        let folder = layout::beside(&self.root);
        let path = layout::making(&self.root);
        let claimed = self
            .files
            .create_folders(&folder)
            .and_then(|()| self.files.create_folders(&self.deployments()))
            .and_then(|()| self.files.open_lock(&path))
            .and_then(|file| file.lock().map(|()| file));
        claimed.map_err(|error| unwritable(&path, error))
    }

    fn unknown(&self, id: &str) -> Error {
        let place = self.deployments();
        let message = format!("there is no deployment {id} in {}", place.display());
        Error::new(ErrorCode::DEPLOYMENT_UNKNOWN, message)
            .with_help("`nimbus list` shows what there is")
    }

    pub(crate) fn yaml_files(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        if !self.files.is_folder(directory) {
            return Ok(Vec::new());
        }
        let entries = self.files.entries(directory);
        let mut found = entries.map_err(|error| unreadable(directory, error))?;
        found.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
        Ok(found)
    }

    fn directory_of(&self, id: &str) -> Result<Option<PathBuf>> {
        let mine = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| naming::belongs_to(name, id))
        };
        Ok(self.deployment_directories()?.into_iter().find(mine))
    }
}

/// Without `.` and `..`, as people would write it. Links are left alone.
fn plain(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if found.file_name().is_some() => {
                found.pop();
            }
            Component::CurDir => {}
            other => found.push(other),
        }
    }
    found
}

fn write_draft(draft: &Path, rendered: &RenderedDeployment, log: &str) -> io::Result<()> {
    if draft.exists() {
        fs::remove_dir_all(draft)?;
    }
    fs::create_dir_all(draft.join(CONFIG_FOLDER))?;
    fs::create_dir_all(draft.join("logs"))?;
    let config = draft.join(CONFIG_FOLDER);
    for (name, text) in &rendered.configs {
        fs::write(config.join(name), text)?;
    }
    let written = written_text(&written_configs(&rendered.manifest));
    fs::write(config.join(WRITTEN_FILE), written)?;
    fs::write(draft.join("logs/init.log"), log)?;
    fs::write(draft.join(FILE_NAME), rendered.manifest.write())
}

/// A template is found by its file's name, so the name inside must be the same.
fn require_name(document: &Document, path: &Path, name: &str) -> Result<()> {
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    if stem == name {
        return Ok(());
    }
    let view = document.view().required("name")?;
    Err(view.error(
        format!("{} has the name `{name}`", path.display()),
        format!("must be `{stem}`"),
    ))
}

fn not_made(path: &Path, error: io::Error) -> Error {
    unwritable(path, error)
        .with_help("nothing was left behind; check space and permissions and run it again")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nimbus_core::EnvironmentName;
    use nimbus_orchestrator::{InitAnswers, render};

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let temp = tempfile::tempdir().unwrap();
        let templates = temp.path().join("cloud/tools/templates");
        fs::create_dir_all(templates.join("config")).unwrap();
        fs::create_dir_all(templates.join("default")).unwrap();
        fs::create_dir_all(temp.path().join("cloud/deploy")).unwrap();
        fs::write(templates.join("config/network.yaml"), "name: network\n").unwrap();
        fs::write(
            templates.join("default/minimal.yaml"),
            "name: minimal\nenvironments: {dev: {region: '{{PRIMARY_REGION}}'}}\nstacks: {network: }\n",
        )
        .unwrap();
        let workspace = Workspace::find(&temp.path().join("cloud/deploy")).unwrap();
        (temp, workspace)
    }

    fn rendered(workspace: &Workspace, id: &str) -> RenderedDeployment {
        let answers = InitAnswers {
            organization: "Company A".to_owned(),
            project: "shop".to_owned(),
            template: "minimal".to_owned(),
            accounts: BTreeMap::from([(EnvironmentName::DEV, "1".to_owned())]),
            ..InitAnswers::default()
        };
        render(
            &workspace.library().unwrap(),
            &id.parse().unwrap(),
            &answers,
        )
        .unwrap()
    }

    #[test]
    fn a_deployment_is_written_and_found_again_in_any_case() {
        let (_temp, workspace) = workspace();
        let directory = workspace
            .create(&rendered(&workspace, "D1BRV40"), "log\n")
            .unwrap();
        assert!(directory.ends_with("deploy/D1BRV40-Company-A-shop"));
        assert!(directory.starts_with(workspace.root().join("deploy")));
        assert!(directory.join("config/network.dev.yaml").is_file());
        assert_eq!(
            fs::read_to_string(directory.join("logs/init.log")).unwrap(),
            "log\n"
        );
        let found = workspace.deployment("d1brv40").unwrap();
        assert_eq!(found.directory, directory);
        assert_eq!(found.manifest, rendered(&workspace, "D1BRV40").manifest);
    }

    #[test]
    fn a_taken_id_is_refused_and_the_first_stays_as_it_is() {
        let (_temp, workspace) = workspace();
        workspace
            .create(&rendered(&workspace, "D1"), "first")
            .unwrap();
        let error = workspace
            .create(&rendered(&workspace, "D1"), "second")
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::DEPLOYMENT_EXISTS);
        let log = workspace
            .deployment("D1")
            .unwrap()
            .directory
            .join("logs/init.log");
        assert_eq!(fs::read_to_string(log).unwrap(), "first");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let (_temp, workspace) = workspace();
        let mut broken = rendered(&workspace, "D1");
        broken
            .configs
            .insert("no/such/folder.yaml".to_owned(), String::new());
        let error = workspace.create(&broken, "").unwrap_err();
        assert_eq!(error.code(), ErrorCode::FILE_UNWRITABLE);
        assert_eq!(fs::read_dir(workspace.deployments()).unwrap().count(), 0);
    }

    #[test]
    fn a_template_whose_name_is_not_its_files_is_refused() {
        let (_temp, workspace) = workspace();
        fs::write(
            workspace.stack_templates().join("dns.yaml"),
            "name: network\n",
        )
        .unwrap();
        assert!(
            workspace
                .library()
                .unwrap_err()
                .message()
                .contains("dns.yaml")
        );
    }

    #[test]
    fn no_workspace_says_how_to_make_one() {
        let temp = tempfile::tempdir().unwrap();
        let error = Workspace::find(temp.path()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::WORKSPACE_MISSING);
    }
}
