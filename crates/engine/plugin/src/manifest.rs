//! The file that makes a folder of source a plugin or a policy pack.

use std::collections::BTreeMap;
use std::path::Path;

use nimbus_core::Error;
use nimbus_document::{Document, View};
use nimbus_engine_files::ProjectFiles;

/// What is needed of `PulumiPlugin.yaml` or `PulumiPolicy.yaml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PluginManifest {
    pub(crate) runtime: String,
    /// Options of the runtime, as text.
    pub(crate) options: BTreeMap<String, String>,
    /// Overrides the version that the code itself reports.
    pub(crate) version: Option<String>,
}

impl PluginManifest {
    pub(crate) fn read(files: &ProjectFiles, file: &Path) -> Result<Self, Error> {
        let text = files
            .own()
            .read_to_string(file)
            .map_err(|error| nimbus_disk::unreadable(file, error))?;
        let document = Document::parse(&file.display().to_string(), &text)?;
        let root = document.view();
        let version = root.optional("version")?;
        let version = version
            .map(|version| version.scalar_text().map(str::to_owned))
            .transpose()?;
        let (runtime, options) = read_runtime(&root.required("runtime")?)?;
        Ok(Self {
            runtime,
            options,
            version,
        })
    }
}

/// Either a name, or a name with options.
fn read_runtime(runtime: &View<'_>) -> Result<(String, BTreeMap<String, String>), Error> {
    if runtime.node().as_str().is_some() {
        return Ok((runtime.str()?.to_owned(), BTreeMap::new()));
    }
    let name = runtime.required("name")?.str()?.to_owned();
    let mut texts = BTreeMap::new();
    if let Some(options) = runtime.optional("options")? {
        for (key, value) in options.entries()? {
            if !value.node().is_null() {
                texts.insert(key.to_owned(), value.scalar_text()?.to_owned());
            }
        }
    }
    Ok((name, texts))
}
