//! `Pulumi.yaml`: what a project is.
//!
//! Keys that Nimbus has no use for are left alone, as the official command line does; `template`
//! is one of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::{Document, NodeKind, View};
use nimbus_engine_files::{ProjectFiles, is_outside};
use serde_json::{Map, Value};

use super::declaration::{self, Declaration};
use super::discover;
use crate::names::StackRef;

#[derive(Clone, Debug)]
pub struct Project {
    /// The file itself.
    pub path: PathBuf,
    pub name: String,
    pub runtime: Option<ProjectRuntime>,
    /// Where the program starts, relative to the project's folder.
    pub main: Option<String>,
    pub description: Option<String>,
    /// Configuration that the project declares, by key as written.
    pub config: BTreeMap<String, Declaration>,
    pub stack_config_dir: Option<String>,
    pub backend_url: Option<String>,
    /// Refresh before every operation.
    pub refresh_always: bool,
    pub packages: BTreeMap<String, PackageSpec>,
    pub plugins: Plugins,
    pub required_pulumi_version: Option<String>,
}

/// Why a file of a project was not read.
pub(super) fn unreadable(path: &Path, error: std::io::Error) -> Error {
    match is_outside(&error) {
        true => {
            let message = format!("cannot read {}: {error}", path.display());
            Error::new(ErrorCode::OUTSIDE_PROJECT, message).with_source(error)
        }
        false => nimbus_disk::unreadable(path, error),
    }
}

/// The language of a program.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ProjectRuntime {
    pub name: String,
    pub options: Map<String, Value>,
}

/// A package that the program uses and that is not in its language's own registry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PackageSpec {
    pub source: String,
    pub version: Option<String>,
    pub parameters: Vec<String>,
    /// Base64 of a sha256 per `os-arch`.
    pub checksums: BTreeMap<String, String>,
    pub download_url: Option<String>,
    pub extensions: Vec<String>,
}

/// Plugins at fixed places, for those who develop them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Plugins {
    pub providers: Vec<PluginPath>,
    pub languages: Vec<PluginPath>,
    pub analyzers: Vec<PluginPath>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginPath {
    pub name: String,
    pub version: Option<String>,
    /// As written: relative to the project's folder.
    pub path: String,
}

impl Project {
    /// Finds and reads the project of a folder.
    pub fn find(directory: &Path) -> Result<Self> {
        Self::read(&discover::find_project_file(directory)?)
    }

    pub fn read(path: &Path) -> Result<Self> {
        // tidy-allow(read): for projects of one's own
        Self::from_document(path, &Document::read(path)?)
    }

    /// The same through the reader of a stranger's files.
    pub fn read_with(files: &ProjectFiles, path: &Path) -> Result<Self> {
        let text = files
            .own()
            .read_to_string(path)
            .map_err(|error| unreadable(path, error))?;
        Self::from_document(path, &Document::parse(&path.display().to_string(), &text)?)
    }

    pub(super) fn from_document(path: &Path, document: &Document) -> Result<Self> {
        let root = document.view();
        let name = root.required("name")?;
        let name_text = name.str()?;
        // The stack's name is checked where there is one; any will do for the project's.
        StackRef::new(name_text, "x").map_err(|error| invalid(&name, error.to_string()))?;
        let (config, config_dir) = config(&root, name_text)?;
        let plugins = match root.optional("plugins")? {
            Some(view) => plugins(&view)?,
            None => Plugins::default(),
        };
        Ok(Self {
            path: path.to_owned(),
            name: name_text.to_owned(),
            runtime: root
                .optional("runtime")?
                .map(|view| runtime(&view))
                .transpose()?,
            main: text(&root, "main")?,
            description: text(&root, "description")?,
            config,
            stack_config_dir: config_dir,
            backend_url: backend_url(&root)?,
            refresh_always: refresh_always(&root)?,
            packages: packages(&root)?,
            plugins,
            required_pulumi_version: text(&root, "requiredPulumiVersion")?,
        })
    }

    /// The project's folder.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or_else(|| Path::new(""))
    }

    /// Where a stack's settings are.
    pub fn stack_file(&self, stack: &str) -> PathBuf {
        discover::stack_file(&self.path, self.stack_config_dir.as_deref(), stack)
    }
}

/// An error about what a value means, rather than what kind it is.
pub(super) fn invalid(view: &View<'_>, message: impl Into<String>) -> Error {
    let document = view.document();
    document.error(ErrorCode::PROJECT_INVALID, view.span(), message, "here")
}

fn text(view: &View<'_>, key: &str) -> Result<Option<String>> {
    view.optional(key)?
        .map(|value| value.str().map(str::to_owned))
        .transpose()
}

fn runtime(view: &View<'_>) -> Result<ProjectRuntime> {
    if let Some(name) = view.node().as_str() {
        let runtime = ProjectRuntime {
            name: name.to_owned(),
            ..ProjectRuntime::default()
        };
        return Ok(runtime);
    }
    view.only_keys(&["name", "options"])?;
    let options = match view.optional("options")? {
        Some(options) => match view.document().to_json(options.node())? {
            Value::Object(map) => map,
            _ => return Err(options.error("runtime.options must be a mapping", "not a mapping")),
        },
        None => Map::new(),
    };
    let name = text(view, "name")?.unwrap_or_default();
    Ok(ProjectRuntime { name, options })
}

/// Declarations, and the folder of stack files, which used to be written under the same key.
fn config(
    root: &View<'_>,
    project: &str,
) -> Result<(BTreeMap<String, Declaration>, Option<String>)> {
    let folder = text(root, "stackConfigDir")?;
    let Some(view) = root.optional("config")? else {
        return Ok((BTreeMap::new(), folder));
    };
    if let NodeKind::String(old_folder) = &view.node().kind {
        if folder.is_some() {
            let message = "the folder of stack files is given twice, as config and stackConfigDir";
            return Err(invalid(&view, message));
        }
        return Ok((BTreeMap::new(), Some(old_folder.clone())));
    }
    let mut declarations = BTreeMap::new();
    for (key, value) in view.entries()? {
        let declaration = declaration::read(project, key, &value)?;
        declarations.insert(key.to_owned(), declaration);
    }
    Ok((declarations, folder))
}

fn backend_url(root: &View<'_>) -> Result<Option<String>> {
    let Some(view) = root.optional("backend")? else {
        return Ok(None);
    };
    view.only_keys(&["url"])?;
    Ok(text(&view, "url")?.filter(|url| !url.is_empty()))
}

fn refresh_always(root: &View<'_>) -> Result<bool> {
    let Some(view) = root.optional("options")? else {
        return Ok(false);
    };
    view.only_keys(&["refresh"])?;
    match view.optional("refresh")? {
        None => Ok(false),
        Some(refresh) if refresh.str()? == "always" => Ok(true),
        Some(refresh) => {
            Err(refresh.error("options.refresh can only be `always`", "unknown value"))
        }
    }
}

fn packages(root: &View<'_>) -> Result<BTreeMap<String, PackageSpec>> {
    let Some(view) = root.optional("packages")? else {
        return Ok(BTreeMap::new());
    };
    view.entries()?
        .map(|(name, value)| Ok((name.to_owned(), package(&value)?)))
        .collect()
}

fn package(view: &View<'_>) -> Result<PackageSpec> {
    if let Some(short) = view.node().as_str() {
        let (source, version) = match short.split_once('@') {
            Some((source, version)) => (source, Some(version.to_owned())),
            None => (short, None),
        };
        let source = source.to_owned();
        return Ok(PackageSpec {
            source,
            version,
            ..PackageSpec::default()
        });
    }
    let keys = [
        "source",
        "version",
        "parameters",
        "checksums",
        "pluginDownloadURL",
        "extensions",
    ];
    view.only_keys(&keys)?;
    let checksums = match view.optional("checksums")? {
        Some(checksums) => checksums
            .entries()?
            .map(|(platform, sum)| Ok((platform.to_owned(), sum.str()?.to_owned())))
            .collect::<Result<_>>()?,
        None => BTreeMap::new(),
    };
    Ok(PackageSpec {
        source: view.required("source")?.str()?.to_owned(),
        version: text(view, "version")?,
        parameters: texts(view, "parameters")?,
        checksums,
        download_url: text(view, "pluginDownloadURL")?,
        extensions: texts(view, "extensions")?,
    })
}

fn texts(view: &View<'_>, key: &str) -> Result<Vec<String>> {
    match view.optional(key)? {
        Some(list) => list
            .items()?
            .map(|item| item.str().map(str::to_owned))
            .collect(),
        None => Ok(Vec::new()),
    }
}

fn plugins(view: &View<'_>) -> Result<Plugins> {
    Ok(Plugins {
        providers: plugin_paths(view, "providers")?,
        languages: plugin_paths(view, "languages")?,
        analyzers: plugin_paths(view, "analyzers")?,
    })
}

fn plugin_paths(view: &View<'_>, key: &str) -> Result<Vec<PluginPath>> {
    let Some(list) = view.optional(key)? else {
        return Ok(Vec::new());
    };
    list.items()?
        .map(|item| {
            item.only_keys(&["name", "version", "path"])?;
            Ok(PluginPath {
                name: item.required("name")?.str()?.to_owned(),
                version: text(&item, "version")?,
                path: item.required("path")?.str()?.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Project> {
        let document = Document::parse("Pulumi.yaml", text)?;
        Project::from_document(Path::new("/p/Pulumi.yaml"), &document)
    }

    #[test]
    fn a_whole_file_is_read() {
        let project = parse(
            "name: shop\n\
             runtime:\n  name: nodejs\n  options:\n    typescript: false\n    nodeargs: --inspect\n\
             main: src\n\
             description: The shop\n\
             stackConfigDir: cfg\n\
             backend: {url: 's3://states'}\n\
             options: {refresh: always}\n\
             template: {anything: goes}\n\
             packages:\n  tf: terraform-provider@0.5.1\n  own:\n    source: ./own\n    parameters: [a, b]\n\
             plugins:\n  providers:\n    - {name: aws, path: ./bin, version: 1.2.3}\n",
        )
        .unwrap();
        assert_eq!(project.name, "shop");
        let runtime = project.runtime.clone().unwrap();
        assert_eq!(runtime.name, "nodejs");
        assert_eq!(runtime.options["typescript"], false);
        assert_eq!(project.main.as_deref(), Some("src"));
        assert_eq!(project.backend_url.as_deref(), Some("s3://states"));
        assert!(project.refresh_always);
        assert_eq!(project.packages["tf"].version.as_deref(), Some("0.5.1"));
        assert_eq!(project.packages["own"].parameters, ["a", "b"]);
        assert_eq!(project.plugins.providers[0].path, "./bin");
        assert_eq!(
            project.stack_file("dev"),
            Path::new("/p/cfg/Pulumi.dev.yaml")
        );
    }

    #[test]
    fn short_forms_are_read() {
        let project = parse("name: shop\nruntime: python\nconfig: settings\n").unwrap();
        assert_eq!(project.runtime.unwrap().name, "python");
        assert_eq!(project.stack_config_dir.as_deref(), Some("settings"));
        assert!(project.config.is_empty());
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        for (text, line, part) in [
            ("runtime: nodejs\n", 1, "name"),
            ("name: a/b\n", 1, "a/b"),
            ("name: 3\n", 1, "text"),
            ("name: a\nruntime: {nam: x}\n", 2, "nam"),
            ("name: a\noptions: {refresh: never}\n", 2, "always"),
            ("name: a\nconfig: x\nstackConfigDir: y\n", 2, "twice"),
            ("name: a\npackages:\n  p: {version: 1}\n", 3, "source"),
            (
                "name: a\nplugins:\n  providers:\n    - {name: x}\n",
                4,
                "path",
            ),
        ] {
            let error = parse(text).unwrap_err();
            let shown = format!("{} {:?}", error.message(), error.help());
            assert!(shown.contains(part), "{text}: {shown}");
            let found = error.spans()[0].line_and_column().0;
            assert_eq!(found, line, "{text}: {shown}");
        }
    }
}
