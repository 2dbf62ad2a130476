//! What a resource returns, read from the type declarations of the installed SDK: the npm module's,
//! or else the annotations of the Python package.
//!
//! A token such as `aws:s3/bucket:Bucket` names a file and a class in the package's npm module.
//! Only what is asked for is read, and each answer is kept: the declarations of a large package are
//! megabytes. That a package is not there is not kept: the run itself may be installing it, and whoever
//! asks afterwards must find it.

mod parse;
mod python;
mod token;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use parse::{DeclarationFile, DeclaredMember};
use python::Python;

/// The type of a property.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Text,
    /// A text that can only be this.
    Literal(String),
    Number,
    Bool,
    List(Box<Type>),
    Map(Box<Type>),
    Object(Vec<Property>),
    /// Anything else: files, free-form values, types that were not found.
    Any,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    pub name: String,
    pub type_: Type,
    /// May be absent.
    pub optional: bool,
    /// Its documentation says that changing it makes a new resource.
    pub forces_new: bool,
}

/// Reads declarations from `node_modules` directories, nearest first.
#[derive(Default)]
pub struct Declarations {
    /// Where modules may be, now or later.
    modules: Vec<PathBuf>,
    python: Python,
    known: Mutex<BTreeMap<String, Arc<Vec<Property>>>>,
    files: Mutex<BTreeMap<PathBuf, Arc<DeclarationFile>>>,
}

/// How deep nested types are followed; real ones refer to themselves.
const DEPTH: usize = 5;

impl Declarations {
    /// Looks in `node_modules` of the program's directory and of those above it.
    pub fn of_program(directory: &Path) -> Self {
        let modules = directory.ancestors().map(|d| d.join("node_modules"));
        Self {
            modules: modules.collect(),
            python: Python::of_program(directory),
            ..Self::default()
        }
    }

    /// Looks where another program finds its modules too.
    pub fn and_program(mut self, directory: &Path) -> Self {
        let other = Self::of_program(directory);
        self.modules.extend(other.modules);
        let mut seen = std::collections::BTreeSet::new();
        self.modules.retain(|found| seen.insert(found.clone()));
        for name in ["venv", ".venv"] {
            self.python.add(&directory.join(name));
        }
        self
    }

    /// Looks into this virtual environment of Python too.
    pub fn and_python(mut self, environment: &Path) -> Self {
        self.python.add(environment);
        self
    }

    /// Properties of a resource; `None` when the SDK does not declare it.
    pub fn resource(&self, token: &str) -> Option<Arc<Vec<Property>>> {
        let in_node = |package: PathBuf, file: PathBuf, name: &str| {
            let file = self.file(&file)?;
            Some(self.resolve(&package, parse::class(file.text(), name)?))
        };
        self.remembered(token, in_node, || self.python.resource(token))
    }

    /// Properties of what a function returns.
    pub fn function(&self, token: &str) -> Option<Arc<Vec<Property>>> {
        let in_node = |package: PathBuf, file: PathBuf, name: &str| {
            let file = self.file(&file)?;
            let mut result = name.to_owned();
            result[..1].make_ascii_uppercase();
            Some(self.resolve(
                &package,
                parse::interface(file.text(), &format!("{result}Result"))?,
            ))
        };
        self.remembered(token, in_node, || self.python.function(token))
    }

    fn remembered(
        &self,
        token: &str,
        in_node: impl FnOnce(PathBuf, PathBuf, &str) -> Option<Vec<Property>>,
        in_python: impl FnOnce() -> Option<Vec<Property>>,
    ) -> Option<Arc<Vec<Property>>> {
        if let Some(known) = self.known.lock().get(token) {
            return Some(known.clone());
        }
        let found = locate(token).and_then(|place| {
            let package = self.package(place.package)?;
            let file = package.join(place.file);
            in_node(package, file, place.name)
        });
        let found = found.or_else(in_python).map(Arc::new)?;
        self.known.lock().insert(token.to_owned(), found.clone());
        Some(found)
    }

    fn package(&self, name: &str) -> Option<PathBuf> {
        let candidates = self.modules.iter().flat_map(|modules| {
            [
                modules.join("@pulumi").join(name),
                modules.join(format!("pulumi-{name}")),
            ]
        });
        candidates
            .into_iter()
            .find(|directory| directory.join("package.json").is_file())
            .map(|d| {
                // Some packages ship their build in `bin`.
                if d.join("bin/index.d.ts").is_file() {
                    d.join("bin")
                } else {
                    d
                }
            })
    }

    fn file(&self, path: &Path) -> Option<Arc<DeclarationFile>> {
        let mut files = self.files.lock();
        if let Some(known) = files.get(path) {
            return Some(known.clone());
        }
        let text = fs::read_to_string(path).ok()?;
        let file = Arc::new(DeclarationFile::new(text));
        files.insert(path.to_owned(), file.clone());
        Some(file)
    }

    fn resolve(&self, package: &Path, members: Vec<DeclaredMember>) -> Vec<Property> {
        self.resolve_members(package, members, DEPTH)
    }

    fn resolve_members(
        &self,
        package: &Path,
        members: Vec<DeclaredMember>,
        depth: usize,
    ) -> Vec<Property> {
        members
            .into_iter()
            .map(|member| Property {
                type_: self.resolve_type(package, member.type_, depth),
                name: member.name,
                optional: member.optional,
                forces_new: member.forces_new,
            })
            .collect()
    }

    fn resolve_type(&self, package: &Path, type_: parse::Written, depth: usize) -> Type {
        use parse::Written;
        match type_ {
            Written::Known(type_) => type_,
            Written::List(inner) => Type::List(Box::new(self.resolve_type(package, *inner, depth))),
            Written::Map(inner) => Type::Map(Box::new(self.resolve_type(package, *inner, depth))),
            Written::Object(members) if depth > 0 => {
                Type::Object(self.resolve_members(package, members, depth - 1))
            }
            Written::Output(path) if depth > 0 => {
                let file = self.file(&package.join("types/output.d.ts"));
                let members = file.and_then(|file| file.namespaced(&path));
                members.map_or(Type::Any, |members| {
                    Type::Object(self.resolve_members(package, members, depth - 1))
                })
            }
            Written::Object(_) | Written::Output(_) => Type::Any,
        }
    }
}

struct DeclarationLocation<'a> {
    package: &'a str,
    file: PathBuf,
    name: &'a str,
}

/// `aws:s3/bucket:Bucket` is class `Bucket` of `s3/bucket.d.ts` in package `aws`. Where the token
/// does not name the file, as in `kubernetes:core/v1:ConfigMap`, the file is named for the class.
fn locate(token: &str) -> Option<DeclarationLocation<'_>> {
    let mut parts = token.splitn(3, ':');
    let (package, module, name) = (parts.next()?, parts.next()?, parts.next()?);
    if name.is_empty() || !name.is_char_boundary(1) {
        return None;
    }
    let mut file_name = name.to_owned();
    file_name[..1].make_ascii_lowercase();
    let module = module
        .strip_prefix("index")
        .map_or(module, |rest| rest.trim_start_matches('/'));
    let names_file = module.rsplit('/').next() == Some(file_name.as_str());
    let path = match (module.is_empty(), names_file) {
        (true, _) => file_name,
        (false, true) => module.to_owned(),
        (false, false) => format!("{module}/{file_name}"),
    };
    let unsafe_path = path.split('/').any(|part| part == ".." || part.is_empty());
    (!unsafe_path).then(|| DeclarationLocation {
        package,
        file: PathBuf::from(format!("{path}.d.ts")),
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(token: &str) -> Option<(String, String)> {
        locate(token).map(|p| (p.package.to_owned(), p.file.display().to_string()))
    }

    #[test]
    fn tokens_name_files() {
        for (token, package, file) in [
            ("aws:s3/bucket:Bucket", "aws", "s3/bucket.d.ts"),
            (
                "random:index/randomPet:RandomPet",
                "random",
                "randomPet.d.ts",
            ),
            (
                "kubernetes:core/v1:ConfigMap",
                "kubernetes",
                "core/v1/configMap.d.ts",
            ),
            ("command:local:Command", "command", "local/command.d.ts"),
            (
                "aws:index/getCallerIdentity:getCallerIdentity",
                "aws",
                "getCallerIdentity.d.ts",
            ),
        ] {
            assert_eq!(
                located(token),
                Some((package.to_owned(), file.to_owned())),
                "{token}"
            );
        }
        for token in [
            "",
            "aws",
            "aws:s3",
            "aws:s3/bucket:",
            "aws:../../etc/passwd:X",
        ] {
            assert_eq!(located(token), None, "{token}");
        }
    }

    fn package() -> (tempfile::TempDir, Declarations) {
        let temp = tempfile::tempdir().unwrap();
        let aws = temp.path().join("node_modules/@pulumi/aws");
        fs::create_dir_all(aws.join("s3")).unwrap();
        fs::create_dir_all(aws.join("types")).unwrap();
        fs::write(aws.join("package.json"), "{}").unwrap();
        fs::write(
            aws.join("s3/bucket.d.ts"),
            "import * as outputs from \"../types/output\";\n\
             /** A bucket. */\nexport declare class Bucket extends pulumi.CustomResource {\n\
             static get(name: string, id: pulumi.Input<pulumi.ID>, state?: BucketState): Bucket;\n\
             /** Its name. */\nreadonly arn: pulumi.Output<string>;\n\
             /** Forces new resource. */\nreadonly bucket: pulumi.Output<string>;\n\
             readonly tags: pulumi.Output<{\n[key: string]: string;\n} | undefined>;\n\
             readonly versioning: pulumi.Output<outputs.s3.Versioning>;\n\
             readonly rules: pulumi.Output<outputs.s3.Rule[]>;\n\
             readonly kind: pulumi.Output<\"Bucket\">;\n\
             constructor(name: string, args?: BucketArgs);\n}\nexport interface BucketState {}\n",
        )
        .unwrap();
        fs::write(
            aws.join("types/output.d.ts"),
            "export declare namespace ec2 {\n    interface Rule {\n        wrong: string;\n    }\n}\n\
             export declare namespace s3 {\n    interface Rule {\n        id: string;\n        \
             inner?: outputs.s3.Rule;\n    }\n    interface Versioning {\n        enabled?: boolean;\n        \
             days: number;\n    }\n}\n",
        )
        .unwrap();
        let declarations = Declarations::of_program(&temp.path().join("program/src"));
        (temp, declarations)
    }

    #[test]
    fn a_resource_is_read_with_nested_types() {
        let (_temp, declarations) = package();
        let bucket = declarations.resource("aws:s3/bucket:Bucket").unwrap();
        let names: Vec<_> = bucket.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names,
            ["arn", "bucket", "tags", "versioning", "rules", "kind"]
        );
        let property = |name: &str| bucket.iter().find(|p| p.name == name).unwrap();
        assert!(property("bucket").forces_new && !property("arn").forces_new);
        assert!(property("tags").optional);
        assert_eq!(property("tags").type_, Type::Map(Box::new(Type::Text)));
        assert_eq!(property("kind").type_, Type::Literal("Bucket".to_owned()));
        let Type::Object(versioning) = &property("versioning").type_ else {
            panic!()
        };
        assert_eq!(versioning[1].type_, Type::Number);
        let Type::List(rule) = &property("rules").type_ else {
            panic!()
        };
        let Type::Object(rule) = rule.as_ref() else {
            panic!()
        };
        assert_eq!(rule[0].name, "id", "from namespace s3, not ec2");
    }

    #[test]
    fn a_function_is_read_by_its_result() {
        let (temp, declarations) = package();
        let file = temp.path().join("node_modules/@pulumi/aws/getThing.d.ts");
        let text = "export interface GetThingResult {\n    readonly arn: string;\n    readonly tags?: string[];\n}\n";
        fs::write(file, text).unwrap();
        let thing = declarations
            .function("aws:index/getThing:getThing")
            .unwrap();
        assert_eq!(
            (thing[0].name.as_str(), &thing[0].type_),
            ("arn", &Type::Text)
        );
        assert!(thing[1].optional);
    }

    #[test]
    fn what_is_installed_later_is_found_then() {
        let (temp, _) = package();
        let (modules, away) = (
            temp.path().join("node_modules"),
            temp.path().join("elsewhere"),
        );
        fs::rename(&modules, &away).unwrap();
        let declarations = Declarations::of_program(&temp.path().join("program"));
        assert!(declarations.resource("aws:s3/bucket:Bucket").is_none());
        fs::rename(&away, &modules).unwrap();
        assert!(declarations.resource("aws:s3/bucket:Bucket").is_some());
    }

    #[test]
    fn what_is_not_declared_is_none() {
        let (_temp, declarations) = package();
        for token in ["aws:s3/nothing:Nothing", "gcp:x/y:Y", "nonsense"] {
            assert!(declarations.resource(token).is_none(), "{token}");
        }
    }
}
