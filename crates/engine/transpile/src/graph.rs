//! A program: its entry and everything of its own that it reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bundle::{Bundle, Compiled, File, ModuleFormat};
use crate::cache::{CacheKey, TranslationCache};
use crate::emit::{REVISION, emit};
use crate::options::{Compiler, Modules, ProjectSettings};
use crate::resolve::{ModuleResolver, manifest};
use crate::unsupported::{Reason, Unsupported};

/// A program to translate.
#[derive(Clone, Debug)]
pub struct TranslationRequest<'a> {
    /// The file that is run first.
    pub entry: &'a Path,
    /// The project's `tsconfig.json`; it need not be there.
    pub tsconfig: &'a Path,
    pub compiler: Compiler,
}

/// What the cache has about a file.
#[derive(Serialize, Deserialize)]
enum KeptTranslation {
    Compiled(Compiled),
    Refused(Reason),
}

/// Translates a program, or says what stands in the way.
pub fn transpile(
    request: &TranslationRequest<'_>,
    cache: &TranslationCache,
) -> Result<Bundle, Unsupported> {
    let settings = ProjectSettings::read(request.tsconfig, request.compiler)?;
    let mut walk = Walk {
        settings: &settings,
        resolver: ModuleResolver::new(&settings),
        cache,
        compiled: BTreeMap::new(),
        reused: 0,
    };
    let entry = request
        .entry
        .canonicalize()
        .map_err(|error| Reason::new(error.to_string()).in_file(request.entry))?;
    walk.visit(entry)?;
    walk.check_passed_on()?;
    Ok(walk.bundle())
}

struct Walk<'a> {
    settings: &'a ProjectSettings,
    resolver: ModuleResolver<'a>,
    cache: &'a TranslationCache,
    compiled: BTreeMap<PathBuf, (ModuleFormat, Compiled)>,
    reused: usize,
}

impl Walk<'_> {
    fn visit(&mut self, entry: PathBuf) -> Result<(), Unsupported> {
        let mut seen = BTreeSet::from([entry.clone()]);
        let mut open = vec![entry];
        while let Some(path) = open.pop() {
            let requests = match kind(&path) {
                SourceKind::TypeScript => {
                    let (format, compiled) = self.file(&path)?;
                    let requests = compiled.requests.clone();
                    self.compiled.insert(path.clone(), (format, compiled));
                    requests
                }
                // What JavaScript asks for is found when it does.
                SourceKind::Other => Vec::new(),
            };
            for name in requests {
                if let Some(found) = self.resolver.resolve(&path, &name)
                    && seen.insert(found.clone())
                {
                    open.push(found);
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(ModuleFormat, Compiled), Unsupported> {
        let refused = |reason: Reason| reason.in_file(path);
        let format = format(path, self.settings.options.modules).map_err(refused)?;
        let text = crate::resolve::read_text(path)
            .map_err(|error| refused(Reason::new(format!("it cannot be read: {error}"))))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let key = self.key(&name, &text, format);
        let kept = match self.cache.get(&key) {
            Some(kept) => {
                self.reused += 1;
                kept
            }
            None => {
                let kept = match emit(&name, &text, &self.settings.options, format) {
                    Ok(compiled) => KeptTranslation::Compiled(compiled),
                    Err(reason) => KeptTranslation::Refused(reason),
                };
                self.cache.put(&key, &kept);
                kept
            }
        };
        match kept {
            KeptTranslation::Compiled(compiled) => Ok((format, compiled)),
            KeptTranslation::Refused(reason) => Err(refused(reason)),
        }
    }

    fn key(&self, name: &str, text: &str, format: ModuleFormat) -> CacheKey {
        let options = serde_json::to_vec(&(REVISION, &self.settings.options, format));
        let options = options.expect("options have a JSON form");
        CacheKey::of([
            b"transpiled",
            options.as_slice(),
            name.as_bytes(),
            text.as_bytes(),
        ])
    }

    /// ES modules are tied together by name before they run, so a name that is passed on must be
    /// more than a type. CommonJS passes on that there is nothing, and nobody is harmed.
    fn check_passed_on(&self) -> Result<(), Unsupported> {
        for (path, (format, compiled)) in &self.compiled {
            if *format != ModuleFormat::Module {
                continue;
            }
            for (module, name) in &compiled.passed_on {
                let own = self.resolver.resolve(path, module);
                let is_value = own.is_some_and(|own| self.is_value(&own, name));
                if !is_value {
                    let text = format!("whether {name} of {module}, which it passes on, is a type");
                    return Err(Reason::new(text).in_file(path));
                }
            }
        }
        Ok(())
    }

    fn is_value(&self, path: &Path, name: &str) -> bool {
        let Some((_, compiled)) = self.compiled.get(path) else {
            return false;
        };
        // What comes through a star might be either.
        compiled.stars.is_empty() && !compiled.types.iter().any(|known| known == name)
    }

    fn bundle(self) -> Bundle {
        let modules = self.compiled.values().any(|(format, compiled)| {
            let imports =
                compiled.imports_late && self.settings.options.modules != Modules::CommonJs;
            *format == ModuleFormat::Module || imports
        });
        let files = self.compiled.into_iter().map(|(path, (format, compiled))| {
            let Compiled { code, map, .. } = compiled;
            (path, File { format, code, map })
        });
        Bundle {
            files: files.collect(),
            paths: self.settings.paths.clone(),
            base_url: self.settings.base_url.clone(),
            modules,
            compiler_options: self.settings.merged.clone(),
            reused: self.reused,
        }
    }
}

enum SourceKind {
    TypeScript,
    Other,
}

fn kind(path: &Path) -> SourceKind {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let declares = [".d.ts", ".d.mts", ".d.cts"];
    if declares.iter().any(|ending| name.ends_with(ending)) {
        return SourceKind::Other;
    }
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("ts" | "tsx" | "mts" | "cts") => SourceKind::TypeScript,
        _ => SourceKind::Other,
    }
}

/// How Node.js will load a file, if that fits how the project wants it written.
fn format(path: &Path, modules: Modules) -> Result<ModuleFormat, Reason> {
    let loaded = match path.extension().and_then(|ending| ending.to_str()) {
        Some("mts") => ModuleFormat::Module,
        Some("cts") => ModuleFormat::CommonJs,
        _ if in_module_package(path) => ModuleFormat::Module,
        _ => ModuleFormat::CommonJs,
    };
    match (modules, loaded) {
        (Modules::Node, loaded) => Ok(loaded),
        (Modules::CommonJs, ModuleFormat::CommonJs) => Ok(ModuleFormat::CommonJs),
        (Modules::Es, ModuleFormat::Module) => Ok(ModuleFormat::Module),
        (Modules::CommonJs, ModuleFormat::Module) => Err(Reason::new(
            "tsconfig.json wants CommonJS and package.json ES modules",
        )),
        (Modules::Es, ModuleFormat::CommonJs) => Err(Reason::new(
            "tsconfig.json wants ES modules and package.json does not",
        )),
    }
}

fn in_module_package(path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .find_map(manifest)
        .is_some_and(|manifest| manifest["type"] == "module")
}
