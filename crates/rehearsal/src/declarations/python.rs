//! What a resource returns, read from the annotations of the installed Python SDK.
//!
//! An SDK has a class per resource, with a getter per output property:
//!
//! ```text
//! @pulumi.getter(name="byteLength")
//! def byte_length(self) -> pulumi.Output[int]:
//! ```
//!
//! The code is read as text and never run. File names are compared without underscores and without
//! regard to case, because SDKs differ in how they write `randomUuid4` or `lambda`.

use std::fs;
use std::path::{Path, PathBuf};

use super::parse::forces_new;
use super::{DEPTH, Property, Type};

/// The virtual environments that are looked into, nearest first. They may be made later.
#[derive(Debug, Default)]
pub(super) struct Python {
    environments: Vec<PathBuf>,
}

/// The usual names of a virtual environment in a program's folder.
const ENVIRONMENTS: [&str; 2] = ["venv", ".venv"];

impl Python {
    /// Virtual environments of the program's folder and of those above it.
    pub(super) fn of_program(directory: &Path) -> Self {
        let mut found = Self::default();
        for ancestor in directory.ancestors() {
            for name in ENVIRONMENTS {
                found.add(&ancestor.join(name));
            }
        }
        found
    }

    /// Also looks into this virtual environment.
    pub(super) fn add(&mut self, environment: &Path) {
        self.environments.push(environment.to_owned());
    }

    /// The `site-packages` folders that there are now.
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let libraries = self.environments.iter().map(|folder| folder.join("lib"));
        let versions = libraries.filter_map(|folder| fs::read_dir(folder).ok());
        versions
            .flat_map(|versions| versions.flatten())
            .map(|entry| entry.path().join("site-packages"))
    }

    pub(super) fn resource(&self, token: &str) -> Option<Vec<Property>> {
        let (module, name) = self.module_and_name(token)?;
        module.class(&module.file_of(name)?, name, DEPTH)
    }

    /// The class `GetThingResult` in the file of the function `getThing`.
    pub(super) fn function(&self, token: &str) -> Option<Vec<Property>> {
        let (module, name) = self.module_and_name(token)?;
        let file = module.file_of(name)?;
        let first = name.chars().next()?;
        let result = format!("{}{}Result", first.to_ascii_uppercase(), &name[1..]);
        module.class(&file, &result, DEPTH)
    }

    fn module_and_name<'a>(&self, token: &'a str) -> Option<(Module, &'a str)> {
        let mut parts = token.splitn(3, ':');
        let (package, module, name) = (parts.next()?, parts.next()?, parts.next()?);
        if name.is_empty() || !name.is_ascii() {
            return None;
        }
        let package = format!("pulumi_{}", package.replace('-', "_"));
        let mut packages = self.folders().map(|folder| folder.join(&package));
        let root = packages.find(|folder| folder.join("__init__.py").is_file())?;
        let mut folder = root.clone();
        for part in module.split('/') {
            let is_file = plain(part) == plain(name);
            if part != "index" && !is_file && !part.is_empty() {
                folder = entry(&folder, part, "")?;
            }
        }
        Some((Module { root, folder }, name))
    }
}

/// A folder of a package.
struct Module {
    root: PathBuf,
    folder: PathBuf,
}

impl Module {
    fn file_of(&self, name: &str) -> Option<PathBuf> {
        entry(&self.folder, name, ".py")
    }

    /// Properties that a class of a file has getters for.
    fn class(&self, file: &Path, name: &str, depth: usize) -> Option<Vec<Property>> {
        let text = fs::read_to_string(file).ok()?;
        let getters = getters(&text, name)?;
        let property = |getter: Getter<'_>| {
            let (type_, optional) = Annotation(getter.annotation).read(self, depth);
            Property {
                name: getter.name.to_owned(),
                type_,
                optional,
                forces_new: forces_new(getter.doc),
            }
        };
        Some(getters.into_iter().map(property).collect())
    }

    /// `outputs.Rule` is in this folder, `_meta.v1.outputs.Rule` in another one of the package.
    fn output(&self, path: &str, depth: usize) -> Option<Type> {
        let (before, name) = path.rsplit_once('.')?;
        let mut folder = self.folder.clone();
        if let Some(elsewhere) = before.strip_suffix(".outputs") {
            folder = self.root.clone();
            for part in elsewhere.split('.') {
                folder = entry(&folder, part, "")?;
            }
        } else if before != "outputs" {
            return None;
        }
        let file = folder.join("outputs.py");
        let module = Self {
            root: self.root.clone(),
            folder,
        };
        Some(Type::Object(module.class(&file, name, depth)?))
    }
}

/// A file or folder of this name, however it is written.
fn entry(folder: &Path, name: &str, ending: &str) -> Option<PathBuf> {
    let wanted = plain(name);
    let entries = fs::read_dir(folder).ok()?.flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let fits = |file: &String| {
        file.strip_suffix(ending)
            .is_some_and(|stem| plain(stem) == wanted)
    };
    names.find(fits).map(|name| folder.join(name))
}

fn plain(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

struct Getter<'a> {
    name: &'a str,
    annotation: &'a str,
    doc: &'a str,
}

/// The getters of a class; `None` when there is no such class.
fn getters<'a>(text: &'a str, class: &str) -> Option<Vec<Getter<'a>>> {
    let heads = [format!("\nclass {class}("), format!("\nclass {class}:")];
    let start = heads.iter().find_map(|head| text.find(head.as_str()))? + 1;
    let body = &text[start..];
    let body = match body.find("\nclass ") {
        Some(end) => &body[..end],
        None => body,
    };
    let mut found = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.find("@pulumi.getter") {
        rest = &rest[at..];
        let Some(definition) = rest.find("def ") else {
            break;
        };
        let decorators = &rest[..definition];
        let said = decorators.split('"').nth(1);
        rest = &rest[definition + "def ".len()..];
        let Some((own, after)) = rest.split_once('(') else {
            break;
        };
        let Some((head, after)) = after.split_once(":\n") else {
            break;
        };
        rest = after;
        if let Some((_, annotation)) = head.split_once("->") {
            found.push(Getter {
                name: said.filter(|_| decorators.contains("name=")).unwrap_or(own),
                annotation: annotation.trim(),
                doc: docstring(after),
            });
        }
    }
    Some(found)
}

fn docstring(body: &str) -> &str {
    let body = body.trim_start();
    let Some(text) = body.strip_prefix("\"\"\"") else {
        return "";
    };
    text.split("\"\"\"").next().unwrap_or_default()
}

/// A type as it is written.
#[derive(Clone, Copy)]
struct Annotation<'a>(&'a str);

impl<'a> Annotation<'a> {
    /// The type, and whether it may be absent.
    fn read(self, module: &Module, depth: usize) -> (Type, bool) {
        let text = self.0.trim().trim_matches(['\'', '"']);
        let Some((head, arguments)) = text.split_once('[') else {
            return (self.simple(text, module, depth), text == "None");
        };
        let arguments = arguments.strip_suffix(']').unwrap_or(arguments);
        let mut arguments = split(arguments);
        let first = arguments.next().unwrap_or_default();
        let inner = |text: &'a str| Annotation(text).read(module, depth);
        match head.rsplit('.').next().unwrap_or_default() {
            "Output" | "Awaitable" => inner(first),
            "Optional" => (inner(first).0, true),
            "Union" => {
                let rest_is_none = arguments.any(|text| text.trim() == "None");
                (inner(first).0, rest_is_none)
            }
            "Sequence" | "List" | "list" => (Type::List(Box::new(inner(first).0)), false),
            "Mapping" | "Dict" | "dict" => {
                let value = arguments.next().unwrap_or("Any");
                (Type::Map(Box::new(inner(value).0)), false)
            }
            _ => (Type::Any, false),
        }
    }

    fn simple(self, text: &str, module: &Module, depth: usize) -> Type {
        match text.strip_prefix("_builtins.").unwrap_or(text) {
            "str" => Type::Text,
            "int" | "float" => Type::Number,
            "bool" => Type::Bool,
            path if path.contains("outputs.") && depth > 0 => {
                module.output(path, depth - 1).unwrap_or(Type::Any)
            }
            _ => Type::Any,
        }
    }
}

/// Arguments at this level.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |letter| {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> (tempfile::TempDir, Python) {
        let temp = tempfile::tempdir().unwrap();
        let sdk = temp
            .path()
            .join(".venv/lib/python3.12/site-packages/pulumi_aws");
        fs::create_dir_all(sdk.join("lambda_")).unwrap();
        fs::create_dir_all(sdk.join("meta/v1")).unwrap();
        fs::write(sdk.join("__init__.py"), "").unwrap();
        fs::write(
            sdk.join("lambda_/function_url.py"),
            r#"
class FunctionUrlArgs:
    @pulumi.getter(name="wrong")
    def wrong(self) -> pulumi.Input[str]:
        return 1

class FunctionUrl(pulumi.CustomResource):
    def __init__(__self__, name):
        pass

    @_builtins.property
    @pulumi.getter(name="functionUrl")
    def function_url(self) -> pulumi.Output[_builtins.str]:
        """
        The address. Forces new resource.
        """
        return pulumi.get(self, "function_url")

    @_builtins.property
    @pulumi.getter
    @pulumi.deprecated("""use "another" one""")
    def size(self) -> pulumi.Output[Optional[_builtins.int]]:
        return pulumi.get(self, "size")

    @property
    @pulumi.getter
    def cors(self) -> pulumi.Output[Optional['outputs.Cors']]:
        return pulumi.get(self, "cors")

    @property
    @pulumi.getter
    def tags(self) -> pulumi.Output[Mapping[str, Sequence[bool]]]:
        return pulumi.get(self, "tags")

    @property
    @pulumi.getter
    def meta(self) -> pulumi.Output['_meta.v1.outputs.Meta']:
        return pulumi.get(self, "meta")
"#,
        )
        .unwrap();
        fs::write(
            sdk.join("lambda_/outputs.py"),
            "\nclass Cors(dict):\n    @property\n    @pulumi.getter(name=\"maxAge\")\n    def max_age(self) -> Optional[int]:\n        return 1\n\n    @property\n    @pulumi.getter\n    def inner(self) -> Optional['outputs.Cors']:\n        return 1\n",
        )
        .unwrap();
        fs::write(
            sdk.join("meta/v1/outputs.py"),
            "\nclass Meta(dict):\n    @property\n    @pulumi.getter\n    def name(self) -> str:\n        return 1\n",
        )
        .unwrap();
        let python = Python::of_program(&temp.path().join("src"));
        (temp, python)
    }

    #[test]
    fn getters_say_names_types_and_what_cannot_be_changed() {
        let (_temp, python) = package();
        let properties = python
            .resource("aws:lambda/functionUrl:FunctionUrl")
            .unwrap();
        let names: Vec<_> = properties.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["functionUrl", "size", "cors", "tags", "meta"]);
        assert!(properties[0].forces_new && !properties[1].forces_new);
        assert_eq!(properties[0].type_, Type::Text);
        assert_eq!(
            (&properties[1].type_, properties[1].optional),
            (&Type::Number, true)
        );
        let Type::Object(cors) = &properties[2].type_ else {
            panic!("{:?}", properties[2]);
        };
        assert_eq!(
            (cors[0].name.as_str(), &cors[0].type_),
            ("maxAge", &Type::Number)
        );
        let list = Type::List(Box::new(Type::Bool));
        assert_eq!(properties[3].type_, Type::Map(Box::new(list)));
        let Type::Object(meta) = &properties[4].type_ else {
            panic!("{:?}", properties[4]);
        };
        assert_eq!(meta[0].type_, Type::Text);
    }

    #[test]
    fn what_is_not_declared_is_not_made_up() {
        let (_temp, python) = package();
        for token in [
            "",
            "aws",
            "aws:lambda",
            "aws:lambda/functionUrl:",
            "aws:lambda/other:Other",
            "aws:../..:Cors",
            "gcp:a/b:B",
        ] {
            assert_eq!(python.resource(token), None, "{token}");
            assert_eq!(python.function(token), None, "{token}");
        }
    }
}
