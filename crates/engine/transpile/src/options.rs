//! What `tsconfig.json` asks for, as far as translating depends on it.
//!
//! The SDK does not use the file as the compiler would: what it sets itself stands above everything
//! that the file inherits, and below what the file says in person. Programs depend on that.

use std::path::{Path, PathBuf};

use nimbus_engine_files::{ProjectFiles, TsConfig, extended_file};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::paths::{self, PathRule};
use crate::unsupported::{Reason, Unsupported};

/// Deeper chains of `extends` are taken for a circle.
const DEEPEST: usize = 16;

/// The compiler that the program would be compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiler {
    pub major: u32,
    pub minor: u32,
    /// Whether the SDK asks new compilers for modules as Node.js takes them; older SDKs ask for
    /// CommonJS.
    pub node_modules: bool,
}

impl Compiler {
    /// The one that comes with the SDK, used when the program brings none.
    pub const BUNDLED: Self = Self {
        major: 3,
        minor: 8,
        node_modules: false,
    };

    /// By the version that a package says it has.
    pub fn of_version(version: &str, node_modules: bool) -> Option<Self> {
        let mut parts = version.split(['.', '-']);
        Some(Self {
            major: parts.next()?.parse().ok()?,
            minor: parts.next()?.parse().ok()?,
            node_modules,
        })
    }

    /// Whether modules are taken as Node.js takes them when the project says nothing.
    pub fn knows_nodenext(self) -> bool {
        self.node_modules && (self.major, self.minor) >= (4, 7)
    }
}

/// How modules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Modules {
    CommonJs,
    /// As Node.js would take the file: by its ending and its package.
    Node,
    Es,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Jsx {
    /// Left as it is, which Node.js cannot run.
    Kept,
    Classic {
        factory: String,
        fragment: String,
    },
    Automatic {
        source: String,
        development: bool,
    },
}

/// Everything that a file's translation depends on besides the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TranslationOptions {
    pub(crate) modules: Modules,
    pub(crate) interop: bool,
    /// Fields are defined, not assigned: they hide what a parent class has set.
    pub(crate) define_fields: bool,
    pub(crate) legacy_decorators: bool,
    pub(crate) decorator_metadata: bool,
    pub(crate) verbatim: bool,
    pub(crate) always_strict: bool,
    pub(crate) jsx: Jsx,
}

/// A project's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProjectSettings {
    pub(crate) options: TranslationOptions,
    pub(crate) paths: Vec<PathRule>,
    pub(crate) base_url: Option<PathBuf>,
    /// The merged `compilerOptions`, for what is compiled by the compiler after all.
    pub(crate) merged: Map<String, Value>,
}

/// `compilerOptions` of one file or of a chain of them.
#[derive(Default)]
struct Layer {
    values: Map<String, Value>,
    paths: Option<(Map<String, Value>, PathBuf)>,
    base_url: Option<PathBuf>,
}

impl ProjectSettings {
    pub(crate) fn read(file: &Path, compiler: Compiler) -> Result<Self, Unsupported> {
        let own = if file.is_file() {
            document(file)?
        } else {
            TsConfig::default()
        };
        let mut layer = inherited(file, &own, 0)?;
        let defaults = sdk_defaults(compiler);
        layer.values.extend(defaults);
        overlay(&mut layer, file, &own);
        Self::from_layer(layer, compiler).map_err(|reason| reason.in_file(file))
    }

    fn from_layer(layer: Layer, compiler: Compiler) -> Result<Self, Reason> {
        let values = &layer.values;
        let flag = |name: &str| values.get(name).and_then(Value::as_bool);
        let text = |name: &str| values.get(name).and_then(Value::as_str);
        if flag("allowJs") == Some(true) {
            return Err(Reason::new("allowJs compiles JavaScript files as well"));
        }
        let target = target(text("target").unwrap_or("es5"))?;
        let modules = modules(text("module").unwrap_or("commonjs"))?;
        let by_default = modules == Modules::Node || compiler.major >= 6;
        let strict = flag("strict").unwrap_or(compiler.major >= 6);
        let options = TranslationOptions {
            modules,
            interop: flag("esModuleInterop").unwrap_or(by_default),
            define_fields: flag("useDefineForClassFields").unwrap_or(target >= 2022),
            legacy_decorators: flag("experimentalDecorators").unwrap_or(false),
            decorator_metadata: flag("emitDecoratorMetadata").unwrap_or(false),
            verbatim: flag("verbatimModuleSyntax").unwrap_or(false)
                || flag("preserveValueImports").unwrap_or(false),
            always_strict: flag("alwaysStrict").unwrap_or(strict),
            jsx: jsx(text("jsx"), &text),
        };
        let paths = match &layer.paths {
            Some((paths, folder)) => {
                paths::read(paths, layer.base_url.as_deref().unwrap_or(folder))
            }
            None => Vec::new(),
        };
        Ok(Self {
            options,
            paths,
            base_url: layer.base_url,
            merged: layer.values,
        })
    }
}

fn sdk_defaults(compiler: Compiler) -> Map<String, Value> {
    let (module, resolution) = if compiler.knows_nodenext() {
        ("nodenext", "nodenext")
    } else {
        ("commonjs", "node")
    };
    let text = |name: &str, value: &str| (name.to_owned(), Value::from(value));
    Map::from_iter([
        text("target", "es2020"),
        text("module", module),
        text("moduleResolution", resolution),
    ])
}

fn document(file: &Path) -> Result<TsConfig, Unsupported> {
    let unreadable = |text: String| Reason::new(text).in_file(file);
    let text = crate::resolve::read_text(file)
        .map_err(|error| unreadable(format!("it cannot be read: {error}")))?;
    TsConfig::parse(&text).ok_or_else(|| unreadable("it is not a JSON document".to_owned()))
}

/// What a file has from those it extends, without what it says itself.
fn inherited(file: &Path, document: &TsConfig, depth: usize) -> Result<Layer, Unsupported> {
    let refused = |text: String| Reason::new(text).in_file(file);
    if depth > DEEPEST {
        return Err(refused("its chain of `extends` has no end".to_owned()));
    }
    let parents = document.extends();
    let parents =
        parents.ok_or_else(|| refused("`extends` is neither a name nor a list".to_owned()))?;
    let mut layer = Layer::default();
    for parent in parents {
        let path = extended_file(&ProjectFiles::UNRESTRICTED, file, parent)
            .ok_or_else(|| refused(format!("it extends {parent}, which is not there")))?;
        let content = self::document(&path)?;
        let above = inherited(&path, &content, depth + 1)?;
        layer.values.extend(above.values);
        layer.paths = above.paths.or(layer.paths);
        layer.base_url = above.base_url.or(layer.base_url);
        overlay(&mut layer, &path, &content);
    }
    Ok(layer)
}

/// Puts a file's own settings on top.
fn overlay(layer: &mut Layer, file: &Path, settings: &TsConfig) {
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    let Some(Value::Object(own)) = settings.document().get("compilerOptions") else {
        return;
    };
    if let Some(Value::Object(paths)) = own.get("paths") {
        layer.paths = Some((paths.clone(), folder.to_owned()));
    }
    if let Some(Value::String(base)) = own.get("baseUrl") {
        layer.base_url = Some(folder.join(base));
    }
    let values = own
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    layer.values.extend(values);
}

/// The year of the language's version.
fn target(name: &str) -> Result<u32, Reason> {
    let lower = name.to_ascii_lowercase();
    Ok(match lower.as_str() {
        "es3" | "es5" => {
            let text = format!("its target {name} changes how loops and classes behave");
            return Err(Reason::new(text));
        }
        "es6" => 2015,
        "esnext" => u32::MAX,
        other => other
            .strip_prefix("es")
            .and_then(|year| year.parse().ok())
            .ok_or_else(|| Reason::new(format!("its target {name} is not known")))?,
    })
}

fn modules(name: &str) -> Result<Modules, Reason> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "commonjs" => Modules::CommonJs,
        "node16" | "node18" | "node20" | "nodenext" => Modules::Node,
        "es6" | "es2015" | "es2020" | "es2022" | "esnext" | "preserve" => Modules::Es,
        _ => return Err(Reason::new(format!("its module {name} is not for Node.js"))),
    })
}

fn jsx<'a>(mode: Option<&str>, text: &impl Fn(&str) -> Option<&'a str>) -> Jsx {
    let or = |name: &str, otherwise: &str| text(name).unwrap_or(otherwise).to_owned();
    match mode {
        Some("react") => Jsx::Classic {
            factory: or("jsxFactory", "React.createElement"),
            fragment: or("jsxFragmentFactory", "React.Fragment"),
        },
        Some(mode @ ("react-jsx" | "react-jsxdev")) => Jsx::Automatic {
            source: or("jsxImportSource", "react"),
            development: mode == "react-jsxdev",
        },
        _ => Jsx::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: Compiler = Compiler {
        major: 5,
        minor: 9,
        node_modules: true,
    };

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        folder
    }

    fn read(files: &[(&str, &str)], compiler: Compiler) -> Result<ProjectSettings, Unsupported> {
        let folder = folder(files);
        ProjectSettings::read(&folder.path().join("tsconfig.json"), compiler)
    }

    #[test]
    fn without_a_file_the_sdk_decides() {
        let settings = read(&[], MODERN).expect("defaults");
        assert_eq!(settings.options.modules, Modules::Node);
        assert!(settings.options.interop && !settings.options.define_fields);
        let bundled = read(&[], Compiler::BUNDLED).expect("defaults");
        assert_eq!(bundled.options.modules, Modules::CommonJs);
        assert!(!bundled.options.interop);
    }

    #[test]
    fn what_is_inherited_ranks_below_the_sdk_and_what_is_said_above() {
        let base = r#"{"compilerOptions": {"target": "es2022", "module": "commonjs", "strict": true, "experimentalDecorators": true}}"#;
        let inherits = [
            ("base.json", base),
            ("tsconfig.json", r#"{"extends": "./base"}"#),
        ];
        let options = read(&inherits, MODERN).expect("settings").options;
        assert_eq!(options.modules, Modules::Node);
        assert!(options.always_strict && options.legacy_decorators && !options.define_fields);
        let says = [
            ("base.json", base),
            (
                "tsconfig.json",
                r#"{"extends": ["./base.json"], "compilerOptions": {"target": "ES2022", "module": "CommonJS"}}"#,
            ),
        ];
        let options = read(&says, MODERN).expect("settings").options;
        assert_eq!(options.modules, Modules::CommonJs);
        assert!(options.define_fields && !options.interop);
    }

    #[test]
    fn packages_can_be_extended() {
        let files = [
            (
                "node_modules/@ours/base/tsconfig.json",
                r#"{"compilerOptions": {"strict": true}}"#,
            ),
            ("tsconfig.json", r#"{"extends": "@ours/base"}"#),
        ];
        assert!(
            read(&files, MODERN)
                .expect("settings")
                .options
                .always_strict
        );
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for text in [
            "{",
            r#"{"extends": "./absent"}"#,
            r#"{"extends": "./tsconfig.json"}"#,
            r#"{"compilerOptions": {"target": "es5"}}"#,
            r#"{"compilerOptions": {"module": "amd"}}"#,
            r#"{"compilerOptions": {"allowJs": true}}"#,
        ] {
            let refused = read(&[("tsconfig.json", text)], MODERN);
            assert!(refused.is_err(), "{text}");
        }
    }
}
