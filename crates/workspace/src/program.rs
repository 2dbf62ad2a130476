//! The files that make up a stack's program, for its fingerprint.
//!
//! A file that is missed here means a run that is skipped although something changed, so more is
//! counted rather than less: every file of the program's directory, the files above it that decide
//! which packages are installed, packages of the same repository that are linked instead of
//! installed, and whatever a source file names by a path that leaves the program. A path that is
//! only known while the program runs cannot be seen; `--force` is for that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use nimbus_orchestrator::{Fingerprint, FingerprintInput};
use regex::Regex;
use serde_json::Value;

/// What a program does not consist of: installed packages (the lock file stands for them) and what
/// tools leave behind.
const LEFT_OUT: &[&str] = &[
    "node_modules",
    "__pycache__",
    "venv",
    ".venv",
    ".git",
    ".nimbus",
];

/// Files above a program that decide which packages it gets and how it is compiled.
const ABOVE: &[&str] = &[
    "package.json",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "tsconfig.json",
    "tsconfig.base.json",
    "uv.lock",
];

const SOURCES: &[&str] = &["ts", "tsx", "mts", "cts", "js", "mjs", "cjs", "jsx", "py"];

/// A text in quotes that leads out of its directory.
static LEADS_OUT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"["'`](\.\./[^"'`\n$]*|\.\.)["'`]"#).expect("a constant expression")
});

/// Adds everything that the program in `directory` consists of, looking above it up to and
/// including `root`.
pub fn add_program(fingerprint: &mut Fingerprint, directory: &Path, root: &Path) -> io::Result<()> {
    let mut parts = ProgramParts {
        directory: normal(directory),
        root: normal(root),
        found: BTreeMap::new(),
        folders: BTreeSet::new(),
    };
    parts.add_folder(directory, "")?;
    parts.add_above()?;
    for (name, file) in parts.found {
        fingerprint.add(FingerprintInput::ProgramFile(name), fs::read(&file)?);
    }
    Ok(())
}

/// Every file of a program, sorted.
pub fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            let left_out = path
                .file_name()
                .is_some_and(|name| LEFT_OUT.iter().any(|left_out| name == *left_out));
            if left_out {
                continue;
            }
            // A linked file counts as what it leads to; a linked folder could lead round in a
            // circle, and what is outside is found by other means.
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Files that name packages besides sources.
const PACKAGES: &[&str] = &["package.json", "requirements.txt", "pyproject.toml"];

/// Whether a program's sources or its lists of packages have one of these texts in them. A comment
/// counts too: whoever asks wants to know what might be needed.
pub fn mentions(directory: &Path, texts: &[&str]) -> bool {
    let tells = |file: &Path| {
        is_source(file)
            || file
                .file_name()
                .is_some_and(|name| PACKAGES.iter().any(|list| name == *list))
    };
    let has_one = |file: &PathBuf| {
        fs::read_to_string(file)
            .is_ok_and(|content| texts.iter().any(|text| content.contains(text)))
    };
    // A program that is not there needs nothing.
    let found = files(directory).unwrap_or_default();
    found.iter().filter(|file| tells(file)).any(has_one)
}

fn is_source(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| SOURCES.iter().any(|source| extension == *source))
}

/// What was found of a program so far.
struct ProgramParts {
    directory: PathBuf,
    root: PathBuf,
    /// Files by the name under which they count.
    found: BTreeMap<String, PathBuf>,
    /// Folders that were looked at.
    folders: BTreeSet<PathBuf>,
}

impl ProgramParts {
    /// A folder with everything that it leads to. `prefix` tells its files from those of others.
    fn add_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        if !self.folders.insert(folder.canonicalize()?) {
            return Ok(());
        }
        for file in files(folder)? {
            let name = file.strip_prefix(folder).unwrap_or(&file);
            self.add_file(&file, format!("{prefix}{}", name.display()))?;
        }
        for (name, package) in linked_packages(folder)? {
            self.add_folder(&package, &format!("{name}/"))?;
        }
        Ok(())
    }

    fn add_file(&mut self, file: &Path, name: String) -> io::Result<()> {
        self.found.insert(name, file.to_owned());
        if !is_source(file) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
        for path in LEADS_OUT
            .captures_iter(&text)
            .filter_map(|found| found.get(1))
        {
            self.add_outside(file, path.as_str())?;
        }
        Ok(())
    }

    /// Something that a source file names: an import, relative to the file, or a file or folder that
    /// becomes an asset, relative to the program.
    fn add_outside(&mut self, file: &Path, path: &str) -> io::Result<()> {
        let beside = file.parent().map(|folder| folder.join(path));
        let bases = beside.into_iter().chain([self.directory.join(path)]);
        for target in bases
            .map(|base| normal(&base))
            .filter_map(|base| existing(&base))
        {
            // The folder above the program would be everything there is.
            let contains_us = self.directory.starts_with(&target);
            if contains_us || target.starts_with(&self.directory) {
                continue;
            }
            let name = self.name_outside(&target);
            if target.is_dir() {
                self.add_folder(&target, &format!("{name}/"))?;
            } else if !self.found.contains_key(&name) {
                self.add_file(&target, name)?;
            }
        }
        Ok(())
    }

    fn add_above(&mut self) -> io::Result<()> {
        let above: Vec<_> = self
            .directory
            .ancestors()
            .skip(1)
            .map(Path::to_owned)
            .collect();
        for folder in above
            .iter()
            .take_while(|above| above.starts_with(&self.root))
        {
            for file in ABOVE.iter().map(|name| folder.join(name)) {
                if file.is_file() {
                    self.found.insert(self.name_outside(&file), file);
                }
            }
        }
        Ok(())
    }

    /// `../../package.json`, as seen from the program.
    fn name_outside(&self, file: &Path) -> String {
        let common = self
            .directory
            .ancestors()
            .find(|above| file.starts_with(above));
        let Some(common) = common else {
            return file.display().to_string();
        };
        let steps = self.directory.strip_prefix(common);
        let depth = steps.map_or(0, |steps| steps.components().count());
        let rest = file.strip_prefix(common).unwrap_or(file);
        format!("{}{}", "../".repeat(depth), rest.display())
    }
}

/// Packages that a folder depends on and that are linked rather than installed, by name.
fn linked_packages(folder: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let Ok(text) = fs::read(folder.join("package.json")) else {
        return Ok(BTreeMap::new());
    };
    // The package manager complains about a file that is no JSON, in better words.
    let package: Value = serde_json::from_slice(&text).unwrap_or_default();
    let mut packages = BTreeMap::new();
    for kind in ["dependencies", "optionalDependencies", "devDependencies"] {
        let names = package.get(kind).and_then(Value::as_object);
        for name in names.into_iter().flatten().map(|(name, _)| name) {
            let mut places = folder
                .ancestors()
                .map(|above| above.join("node_modules").join(name));
            let Some(place) = places.find(|place| place.exists()) else {
                continue;
            };
            let target = place.canonicalize()?;
            let installed = target
                .components()
                .any(|part| part.as_os_str() == "node_modules");
            if !installed {
                packages.insert(name.clone(), target);
            }
        }
    }
    Ok(packages)
}

/// What a path in a program means: itself, or a module without its ending.
fn existing(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return Some(path.to_owned());
    }
    let endings = SOURCES.iter().copied().chain(["json"]);
    let text = path.to_str()?;
    // `./x.js` in a TypeScript file is the module `x.ts`.
    let stem = text.strip_suffix(".js").unwrap_or(text);
    endings
        .map(|ending| PathBuf::from(format!("{stem}.{ending}")))
        .find(|file| file.is_file())
}

/// The path without `.` and `..`, without asking the file system.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for (name, text) in files {
                tree.write(name, text);
            }
            tree
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn fingerprint(&self) -> Fingerprint {
            let mut fingerprint = Fingerprint::default();
            let root = self.0.path();
            add_program(&mut fingerprint, &root.join("network/src"), root).unwrap();
            fingerprint
        }

        fn names(&self) -> Vec<String> {
            let fingerprint = self.fingerprint();
            let names = fingerprint.inputs().map(|(input, _)| input.to_string());
            names.collect()
        }
    }

    #[test]
    fn packages_are_found_in_sources_and_lists_but_not_in_what_is_installed() {
        let tree = Tree::new(&[
            ("ts/index.ts", "import * as aws from \"@pulumi/aws\";\n"),
            ("py/requirements.txt", "pulumi-aws>=6\n"),
            ("none/index.ts", "export const a = 1;\n"),
            ("none/README.md", "@pulumi/aws\n"),
            ("none/node_modules/x/package.json", "\"@pulumi/aws\"\n"),
        ]);
        let found =
            |name: &str| mentions(&tree.0.path().join(name), &["@pulumi/aws", "pulumi-aws"]);
        assert!(found("ts") && found("py"));
        assert!(!found("none") && !found("missing"));
    }

    #[test]
    fn code_and_lock_file_count_and_installed_packages_do_not() {
        let tree = Tree::new(&[
            ("network/src/index.ts", "1"),
            ("network/src/bin/tool.js", "1"),
            ("network/src/node_modules/x/y.js", "1"),
            ("package-lock.json", "{}"),
        ]);
        let names = [
            "file ../../package-lock.json",
            "file bin/tool.js",
            "file index.ts",
        ];
        assert_eq!(tree.names(), names);

        let first = tree.fingerprint();
        tree.write("network/src/node_modules/x/y.js", "2");
        assert_eq!(tree.fingerprint(), first);
        tree.write("package-lock.json", "{\"a\":1}");
        assert_ne!(tree.fingerprint(), first, "other packages may be installed");
        let second = tree.fingerprint();
        tree.write("network/src/vpc.ts", "2");
        assert_ne!(tree.fingerprint(), second);
    }

    #[test]
    fn linked_packages_count_beside_files_of_the_same_name() {
        let tree = Tree::new(&[
            ("network/src/index.ts", "1"),
            (
                "network/src/package.json",
                r#"{"dependencies": {"@cloud/shared": "1", "@pulumi/aws": "7"}}"#,
            ),
            ("shared/index.ts", "1"),
            (
                "shared/package.json",
                r#"{"dependencies": {"@cloud/names": "1"}}"#,
            ),
            ("names/index.ts", "1"),
            ("other/index.ts", "1"),
            ("node_modules/@pulumi/aws/index.js", "1"),
        ]);
        let links = tree.0.path().join("node_modules/@cloud");
        fs::create_dir_all(&links).unwrap();
        for name in ["shared", "names", "other"] {
            symlink(format!("../../{name}"), links.join(name)).unwrap();
        }
        let names = [
            "file @cloud/names/index.ts",
            "file @cloud/shared/index.ts",
            "file @cloud/shared/package.json",
            "file index.ts",
            "file package.json",
        ];
        assert_eq!(tree.names(), names);
        for changed in ["network/src/index.ts", "shared/index.ts", "names/index.ts"] {
            let before = tree.fingerprint();
            tree.write(changed, "2");
            assert_eq!(
                tree.fingerprint().changes_since(&before).len(),
                1,
                "{changed}"
            );
        }
    }

    #[test]
    fn what_a_source_file_names_outside_of_the_program_counts() {
        let tree = Tree::new(&[
            (
                "network/src/index.ts",
                "import {a} from \"../../lib/a\";\nnew FileArchive('../../app');\n\
                 const up = '../..'; `../${x}`; '../../nothing'",
            ),
            ("lib/a.ts", "export * from '../other/b.js'"),
            ("lib/unused.ts", ""),
            ("other/b.ts", ""),
            ("app/server/main.py", ""),
        ]);
        let names = [
            "file ../../app/server/main.py",
            "file ../../lib/a.ts",
            "file ../../other/b.ts",
            "file index.ts",
        ];
        assert_eq!(tree.names(), names);
    }

    #[test]
    fn a_linked_file_counts_as_what_it_leads_to() {
        let tree = Tree::new(&[("network/src/index.ts", "1"), ("elsewhere.txt", "1")]);
        let link = tree.0.path().join("network/src/data.txt");
        symlink("../../elsewhere.txt", link).unwrap();
        let before = tree.fingerprint();
        tree.write("elsewhere.txt", "2");
        assert_ne!(tree.fingerprint(), before);
    }
}
