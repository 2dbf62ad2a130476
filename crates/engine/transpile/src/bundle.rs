//! A translated program: what Node.js is given instead of the files on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::paths::PathRule;

/// How Node.js loads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModuleFormat {
    CommonJs,
    Module,
}

/// A file's translation. It depends on the file's name and text and on the project's options, and
/// on nothing else, so that it can be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiled {
    pub code: String,
    /// Its source map; the only source is the file's own name.
    pub map: String,
    /// Names of the modules it asks for.
    pub(crate) requests: Vec<String>,
    /// Names that it exports and that are only types.
    pub(crate) types: Vec<String>,
    /// Names of other modules that it exports as they are: module, name.
    pub(crate) passed_on: Vec<(String, String)>,
    /// Modules of which it exports everything.
    pub(crate) stars: Vec<String>,
    /// Whether it asks for a module while it runs.
    pub(crate) imports_late: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct File {
    pub format: ModuleFormat,
    pub code: String,
    pub map: String,
}

/// A whole program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bundle {
    pub files: BTreeMap<PathBuf, File>,
    pub paths: Vec<PathRule>,
    #[serde(rename = "baseUrl")]
    pub base_url: Option<PathBuf>,
    /// Whether anything in it is loaded as an ES module.
    pub modules: bool,
    /// For files that nobody could foresee, compiled when they are asked for.
    #[serde(rename = "compilerOptions")]
    pub compiler_options: Map<String, Value>,
    /// How many of its files were found translated.
    #[serde(skip)]
    pub reused: usize,
}

impl Bundle {
    /// The program's own files, translated or not; types are checked in these.
    pub fn sources(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }
}
