//! How a program's TypeScript becomes JavaScript.
//!
//! It is translated here before the program starts, unless something stands in the way; then the
//! SDK compiles it while it loads it, as it does under its own command line.

use std::path::{Path, PathBuf};

use nimbus_engine_transpile::{
    Compiler, TranslationCache, TranslationRequest, entry_file, transpile,
};
use serde_json::Value;

use crate::check::{SandboxedCheck, TypeCheckRequest};
use crate::entry::ProgramEntry;
use crate::error::LaunchError;
use crate::node::inside::{self, Translated, TranslationInput};
use crate::spec::ProgramSpec;

/// Runs in the program's process before the SDK does.
const START: &str = include_str!("scripts/start.cjs");
/// Beside it: what Node.js asks for ES modules.
const MODULES: &str = include_str!("scripts/modules.mjs");

/// Beside it: what keeps code.
pub(crate) const CODE: &str = include_str!("scripts/code.cjs");

/// `sdk` leaves TypeScript to the SDK: a way out for programs that want it so.
const CHOICE: &str = "NIMBUS_TYPESCRIPT";

/// Flags of Node.js that bring code which wants to load files its own way.
const LOADERS: [&str; 5] = [
    "--require",
    "-r",
    "--import",
    "--loader",
    "--experimental-loader",
];

#[derive(Clone, Debug)]
pub(crate) enum TypeScript {
    /// The SDK runs the program as it likes, and why.
    BySdk { reason: String },
    /// JavaScript, or TypeScript that has become it.
    Ours(PreparedFiles),
}

/// Files that a program is started with.
#[derive(Clone, Debug)]
pub(crate) struct PreparedFiles {
    /// Loaded before the SDK.
    pub(crate) start: PathBuf,
    /// The translated program, if there was any TypeScript in it.
    pub(crate) program: Option<PathBuf>,
    /// What is to be known about its types before it may change anything.
    pub(crate) check: Option<TypeCheckRequest>,
}

/// What is known about the SDK and the project before its program is looked at.
pub(crate) struct TypeScriptProject<'a> {
    pub(crate) spec: &'a ProgramSpec,
    pub(crate) entry: &'a ProgramEntry,
    pub(crate) node: &'a Path,
    pub(crate) node_args: &'a [String],
    pub(crate) run_module: &'a Path,
}

impl TypeScriptProject<'_> {
    pub(crate) async fn typescript(&self) -> Result<TypeScript, LaunchError> {
        let decided = self.decide().await?;
        if let TypeScript::BySdk { reason } = &decided {
            tracing::info!(%reason, "the SDK compiles the program, which takes longer");
        }
        Ok(decided)
    }

    async fn decide(&self) -> Result<TypeScript, LaunchError> {
        let by_sdk = |reason: &str| {
            Ok(TypeScript::BySdk {
                reason: reason.to_owned(),
            })
        };
        let options = &self.spec.options;
        let wanted = options.flag("typescript")?.unwrap_or(true);
        let tsconfig = options.text("tsconfig")?;
        let Some(root) = &self.spec.typescript_cache else {
            return by_sdk("there is no folder to keep translations in");
        };
        if self
            .spec
            .environment
            .get(CHOICE)
            .is_some_and(|choice| choice == "sdk")
        {
            return by_sdk("a variable says so");
        }
        if !self.spec.transpile_only && self.spec.checker.is_none() {
            return by_sdk("types are checked in the program's own process");
        }
        if self.brings_loaders() {
            return by_sdk("other loaders are set for Node.js");
        }
        let cache = TranslationCache::at(root);
        let Ok(start) = scripts(&cache) else {
            return by_sdk("nothing can be written to the cache");
        };
        if !wanted {
            return Ok(TypeScript::Ours(PreparedFiles {
                start,
                program: None,
                check: None,
            }));
        }
        let file = self
            .entry
            .directory
            .join(tsconfig.unwrap_or("tsconfig.json"));
        if tsconfig.is_some() && !self.spec.files.is_file(&file) {
            return by_sdk("the file that the option tsconfig names is not there");
        }
        let (compiler, version, node_modules) = self.compiler();
        if let Some(sandbox) = &self.spec.sandbox {
            let wanted = TranslationInput {
                files: &self.spec.files,
                root: &self.spec.root,
                directory: &self.entry.directory,
                name: &self.entry.name,
                tsconfig: &file,
                version: &version,
                node_modules,
            };
            return match inside::translate(sandbox, &wanted).await {
                Ok(translated) => {
                    let checked = !self.spec.transpile_only && translated.has_files;
                    let Translated { entry, program, .. } = translated;
                    let check = checked.then(|| self.check(entry, file, compiler, version));
                    self.ours(&cache, start, &program, check)
                }
                Err(reason) => by_sdk(&reason),
            };
        }
        let Some(entry) = entry_file(&self.entry.directory, &self.entry.name) else {
            return by_sdk("there is no file to begin with");
        };
        let (work_cache, work_entry, work_file) = (cache.clone(), entry.clone(), file.clone());
        let translated = tokio::task::spawn_blocking(move || {
            let request = TranslationRequest {
                entry: &work_entry,
                tsconfig: &work_file,
                compiler,
            };
            transpile(&request, &work_cache)
        });
        let bundle = match translated.await {
            Ok(Ok(bundle)) => bundle,
            Ok(Err(unsupported)) => return by_sdk(&unsupported.to_string()),
            Err(_) => return by_sdk("its translation ended before its time"),
        };
        let program = serde_json::to_string(&bundle).unwrap_or_default();
        let checked = !self.spec.transpile_only && !bundle.files.is_empty();
        let check = checked.then(|| self.check(entry, file, compiler, version));
        self.ours(&cache, start, &program, check)
    }

    fn ours(
        &self,
        cache: &TranslationCache,
        start: PathBuf,
        program: &str,
        check: Option<TypeCheckRequest>,
    ) -> Result<TypeScript, LaunchError> {
        let Ok(program) = cache.file("program.json", program) else {
            return Ok(TypeScript::BySdk {
                reason: "nothing can be written to the cache".to_owned(),
            });
        };
        Ok(TypeScript::Ours(PreparedFiles {
            start,
            program: Some(program),
            check,
        }))
    }

    fn check(
        &self,
        entry: PathBuf,
        tsconfig: PathBuf,
        compiler: Compiler,
        version: String,
    ) -> TypeCheckRequest {
        TypeCheckRequest {
            node: self.node.to_owned(),
            sdk: self.run_module.to_owned(),
            entry,
            tsconfig,
            node_modules: compiler.knows_nodenext(),
            compiler: version,
            // In a sandbox the list is not believed, and so not looked for.
            locked: match self.spec.sandbox {
                Some(_) => None,
                None => locked(&self.entry.directory),
            },
            place: self.spec.sandbox.clone().map(|sandbox| {
                Box::new(SandboxedCheck {
                    sandbox,
                    files: self.spec.files.clone(),
                    root: self.spec.root.clone(),
                    directory: self.entry.directory.clone(),
                })
            }),
        }
    }

    fn brings_loaders(&self) -> bool {
        let is_loader = |word: &str| {
            let name = word.split('=').next().unwrap_or(word);
            LOADERS.contains(&name)
        };
        let options = self.spec.environment.get("NODE_OPTIONS");
        let options = options.map(|options| options.to_string_lossy().into_owned());
        let mut words = options
            .iter()
            .flat_map(|options| options.split_whitespace());
        words.any(is_loader) || self.node_args.iter().any(|word| is_loader(word))
    }

    /// The compiler that the SDK would find, with its version, and whether the SDK asks it to take
    /// modules as Node.js does.
    fn compiler(&self) -> (Compiler, String, bool) {
        let sources = self.run_module.with_file_name("run.js");
        let files = &self.spec.files;
        let asks = files.read_to_string(&sources);
        let asks = asks.is_ok_and(|text| text.contains("\"nodenext\""));
        let found = self.run_module.ancestors().find_map(|folder| {
            let file = folder.join("node_modules/typescript/package.json");
            let manifest: Value = serde_json::from_slice(&files.read(&file).ok()?).ok()?;
            manifest["version"].as_str().map(str::to_owned)
        });
        let version = found.unwrap_or_else(|| "3.8.3".to_owned());
        let compiler = Compiler::of_version(&version, asks).unwrap_or(Compiler::BUNDLED);
        (compiler, version, asks)
    }
}

/// Puts our scripts where Node.js can read them.
fn scripts(cache: &TranslationCache) -> std::io::Result<PathBuf> {
    // They look for each other.
    let names = [
        ("code.cjs", CODE),
        ("modules.mjs", MODULES),
        ("start.cjs", START),
    ];
    cache.folder(&names).map(|folder| folder.join("start.cjs"))
}

/// What stands for the installed packages. Npm keeps a list of what it really installed.
fn locked(folder: &Path) -> Option<PathBuf> {
    let names = [
        "node_modules/.package-lock.json",
        "package-lock.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
    ];
    folder.ancestors().find_map(|ancestor| {
        let mut files = names.iter().map(|name| ancestor.join(name));
        files.find(|file| file.is_file())
    })
}
