//! The files that make up a program: one answer, for the digest of a sealed plan and for the
//! fingerprint by which a unit is skipped.
//!
//! A file that is missed here means a run that is skipped although something changed, or a plan that
//! is carried out though its program moved. So more is counted rather than less: every file of the
//! program's directory, the files above it that decide which packages are installed, packages of the
//! same repository that are linked instead of installed, and whatever a source file names by a path
//! that leaves the program. Of a lock file that a package workspace shares, the part counts that this
//! program's packages come from (`lock_part`). A path that is only known while the program runs cannot be seen;
//! `--force` is for that.
//!
//! What a stranger's sources name beyond its own roots is not shown to it when it runs, so it is not
//! opened and does not count; a link that leads there is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::error::is_outside;
use crate::lock_part::{self, PackageNeeds};
use crate::project_files::ProjectFiles;

/// What a program does not consist of: installed packages (the lock file stands for them) and what
/// tools leave behind.
const LEFT_OUT: &[&str] = &[
    "node_modules",
    "__pycache__",
    "venv",
    ".venv",
    ".git",
    ".mypy_cache",
    ".nimbus",
    ".pulumi",
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

/// A text in quotes that may name a package, or a file of one.
static NAMES_PACKAGE: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"(?:@[A-Za-z0-9~._-]+/)?[A-Za-z0-9~_-][A-Za-z0-9~._-]*";
    Regex::new(&format!(r#"["'`]({name})(?:/[^"'`\n]*)?["'`]"#)).expect("a constant expression")
});

/// How a Nimbus workspace and a repository are recognised: what lies above them is of other programs.
const WORKSPACE: &str = "tools/templates";
const REPOSITORY: &str = ".git";

/// What belongs to a program and is larger than this is no program.
const LARGEST_FILE: u64 = 4 << 30;
/// Sources are read as a whole; what is larger was made by a machine and names nothing by hand.
const LARGEST_SOURCE: u64 = 64 << 20;

/// Sha256 of what counts of a file.
pub type FileDigest = [u8; 32];

/// One file of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramFile {
    /// A file, or a link to one, by its path.
    Content(PathBuf),
    /// A link whose end cannot be read, by the text in it.
    Link(PathBuf),
}

impl ProgramFile {
    /// Digest of everything that counts of it. A file may be as large as it likes to be, and is
    /// never held as a whole.
    fn digest(&self, files: &ProjectFiles) -> io::Result<FileDigest> {
        let path = match self {
            Self::Content(path) => path,
            Self::Link(target) => {
                return Ok(Sha256::digest(target.as_os_str().as_encoded_bytes()).into());
            }
        };
        let mut file = files.open(path)?.take(LARGEST_FILE + 1);
        let mut digest = Sha256::new();
        let mut piece = vec![0; 64 << 10];
        let mut total = 0;
        loop {
            let length = file.read(&mut piece)?;
            if length == 0 {
                return Ok(digest.finalize().into());
            }
            total += length as u64;
            if total > LARGEST_FILE {
                let message = "a file of the program has more than 4 GiB";
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
            }
            digest.update(&piece[..length]);
        }
    }
}

impl ProjectFiles {
    /// Everything that the program in `directory` consists of: the digest of each file by the name
    /// under which it counts. `except` is left out: a plan may well lie beside the program that it is
    /// sealed to.
    ///
    /// # Errors
    ///
    /// The program's directory, or a file or folder that it leads to, cannot be read.
    pub fn program_digests(
        &self,
        directory: &Path,
        except: Option<&Path>,
    ) -> io::Result<BTreeMap<String, FileDigest>> {
        let except = except.and_then(|path| path.canonicalize().ok());
        let is_except = |file: &ProgramFile| match file {
            ProgramFile::Content(path) => {
                except.is_some() && self.canonicalize(path).ok() == except
            }
            ProgramFile::Link(_) => false,
        };
        let directory = normal(&std::path::absolute(directory)?);
        let mut parts = ProgramParts {
            files: self,
            directory: directory.clone(),
            found: BTreeMap::new(),
            folders: BTreeSet::new(),
            mentioned: BTreeSet::new(),
            unread: false,
        };
        parts.add_folder(&directory, "")?;
        let mut digests = parts.digests_above()?;
        for (name, file) in parts.found {
            if !is_except(&file) {
                digests.insert(name, file.digest(self)?);
            }
        }
        Ok(digests)
    }

    /// Every file of a program's own directory, sorted.
    ///
    /// # Errors
    ///
    /// The directory cannot be listed.
    pub fn program_directory(&self, directory: &Path) -> io::Result<Vec<ProgramFile>> {
        Ok(self.own_files(directory)?.into_values().collect())
    }

    fn own_files(&self, directory: &Path) -> io::Result<BTreeMap<PathBuf, ProgramFile>> {
        let mut found = BTreeMap::new();
        let mut open = vec![directory.to_owned()];
        while let Some(next) = open.pop() {
            for path in self.entries(&next)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if is_left_out(&name) {
                    continue;
                }
                let itself = self.symlink_metadata(&path)?;
                // A linked file counts as what it leads to; a linked folder could lead round in a
                // circle, and what is outside is found by other means.
                if itself.is_dir() {
                    // A workspace inside of a program is about it, and changes with every run.
                    if !self.is_dir(&path.join(WORKSPACE)) {
                        open.push(path);
                    }
                } else if itself.is_file() {
                    found.insert(path.clone(), ProgramFile::Content(path));
                } else if itself.is_symlink() {
                    match self.metadata(&path) {
                        Ok(end) if end.is_file() => {
                            found.insert(path.clone(), ProgramFile::Content(path));
                        }
                        Ok(_) => {}
                        Err(error) if is_outside(&error) => return Err(error),
                        Err(_) => {
                            let target = self.read_link(&path)?;
                            found.insert(path, ProgramFile::Link(target));
                        }
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Whether a file or a folder of this name is no part of any program.
pub fn is_left_out(name: &str) -> bool {
    LEFT_OUT.contains(&name) || is_stack_config(name)
}

/// `Pulumi.<stack>.yaml`, but not `Pulumi.yaml`: configuration is not of the program, and counts by
/// its values.
fn is_stack_config(name: &str) -> bool {
    let stem = name
        .strip_suffix(".yaml")
        .or_else(|| name.strip_suffix(".yml"));
    stem.and_then(|stem| stem.strip_prefix("Pulumi."))
        .is_some_and(|stack| !stack.is_empty())
}

/// Whether a file is one that programs are written in.
pub fn is_source(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| SOURCES.iter().any(|source| extension == *source))
}

/// Whether a file says how a program is compiled, and may build on a package for it.
fn is_compiler_settings(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("tsconfig") && name.ends_with(".json")
}

/// What was found of a program so far.
struct ProgramParts<'a> {
    files: &'a ProjectFiles,
    directory: PathBuf,
    /// Files by the name under which they count.
    found: BTreeMap<String, ProgramFile>,
    /// Folders that were looked at.
    folders: BTreeSet<PathBuf>,
    /// Texts in sources that may be names of packages.
    mentioned: BTreeSet<String>,
    /// Whether a source was too large to be looked through.
    unread: bool,
}

impl ProgramParts<'_> {
    /// A folder with everything that it leads to. `prefix` tells its files from those of others.
    fn add_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        if !self.folders.insert(self.files.canonicalize(folder)?) {
            return Ok(());
        }
        for (path, file) in self.files.own_files(folder)? {
            let name = path.strip_prefix(folder).unwrap_or(&path);
            self.add_file(file, format!("{prefix}{}", name.display()))?;
        }
        for (name, package) in self.linked_packages(folder) {
            self.add_folder(&package, &format!("{name}/"))?;
        }
        Ok(())
    }

    fn add_file(&mut self, file: ProgramFile, name: String) -> io::Result<()> {
        self.found.insert(name, file.clone());
        let ProgramFile::Content(path) = file else {
            return Ok(());
        };
        if !is_source(&path) && !is_compiler_settings(&path) {
            return Ok(());
        }
        let text = match self.files.read_at_most(&path, LARGEST_SOURCE) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.unread = true;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&text);
        let packages = NAMES_PACKAGE.captures_iter(&text);
        let packages = packages.filter_map(|found| found.get(1));
        self.mentioned
            .extend(packages.map(|name| name.as_str().to_owned()));
        if !is_source(&path) {
            return Ok(());
        }
        let named = LEADS_OUT.captures_iter(&text);
        for named in named.filter_map(|found| found.get(1)) {
            self.add_named(&path, named.as_str())?;
        }
        Ok(())
    }

    /// Something that a source file names: an import, relative to the file, or a file or folder that
    /// becomes an asset, relative to the program.
    fn add_named(&mut self, file: &Path, path: &str) -> io::Result<()> {
        let beside = file.parent().map(|folder| folder.join(path));
        let bases = beside.into_iter().chain([self.directory.join(path)]);
        for target in bases
            .map(|base| normal(&base))
            .filter_map(|base| self.existing(&base))
            .collect::<Vec<_>>()
        {
            // The folder above the program would be everything there is.
            let contains_us = self.directory.starts_with(&target);
            if contains_us || target.starts_with(&self.directory) {
                continue;
            }
            let name = self.name_outside(&target);
            if self.files.is_dir(&target) {
                self.add_folder(&target, &format!("{name}/"))?;
            } else if self.files.is_file(&target) && !self.found.contains_key(&name) {
                self.add_file(ProgramFile::Content(target), name)?;
            }
        }
        Ok(())
    }

    /// Files above the program by name. Which names those are is ours to say and not the program's;
    /// where they lead is not the program's either, so a stranger's are read beneath their root.
    fn digests_above(&self) -> io::Result<BTreeMap<String, FileDigest>> {
        let root = outermost(&self.directory);
        let files = match self.files.is_restricted() {
            true => ProjectFiles::beneath(root, &[]).map_err(io::Error::other)?,
            false => ProjectFiles::UNRESTRICTED,
        };
        let mut digests = BTreeMap::new();
        let above = self.directory.ancestors().skip(1);
        for folder in above.take_while(|above| above.starts_with(root)) {
            for file in ABOVE.iter().map(|name| folder.join(name)) {
                if files.is_file(&file) {
                    let mut name = self.name_outside(&file);
                    let digest = match self.lock_digest(&files, &file)? {
                        Some(Ok(part)) => part,
                        Some(Err(why)) => {
                            name.push_str(&format!(" (whole: {why})"));
                            ProgramFile::Content(file).digest(&files)?
                        }
                        None => ProgramFile::Content(file).digest(&files)?,
                    };
                    digests.insert(name, digest);
                }
            }
        }
        Ok(digests)
    }

    /// The digest of what this program reads of a lock file, or why it counts whole; `None` for any other file.
    fn lock_digest(
        &self,
        files: &ProjectFiles,
        file: &Path,
    ) -> io::Result<Option<Result<FileDigest, &'static str>>> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if !lock_part::is_lock(&name) {
            return Ok(None);
        }
        if self.unread {
            return Ok(Some(Err("a source of the program is too large to be read")));
        }
        let folder = file.parent().unwrap_or(file);
        let needs = PackageNeeds {
            members: self.members(files, &files.canonicalize(folder)?),
            mentioned: self.mentioned.clone(),
        };
        match files.read_at_most(file, LARGEST_SOURCE) {
            Ok(text) => Ok(Some(lock_part::digest(&name, &text, &needs))),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Ok(Some(Err("it is too large to be read")))
            }
            Err(error) => Err(error),
        }
    }

    /// Folders of packages below a folder, by their paths from there, that the program's sources are of, and what each
    /// of them asks for. Sources that are of no package there count with their own folder: packages are found from it.
    fn members(
        &self,
        files: &ProjectFiles,
        root: &Path,
    ) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut folders = BTreeSet::from([self.directory.as_path()]);
        for file in self.found.values() {
            if let ProgramFile::Content(path) = file
                && is_source(path)
            {
                folders.extend(path.parent());
            }
        }
        let mut members = BTreeMap::new();
        for folder in folders {
            // What cannot be reached from here is not below the lock file's folder.
            let Ok(folder) = files.canonicalize(folder) else {
                continue;
            };
            let mut above = folder
                .ancestors()
                .take_while(|above| above.starts_with(root));
            let package = above.find(|above| files.is_file(&above.join("package.json")));
            let member = package.unwrap_or(&folder);
            let Ok(path) = member.strip_prefix(root) else {
                continue;
            };
            let path = path.to_string_lossy().into_owned();
            if members.contains_key(&path) {
                continue;
            }
            let text = files.read(&member.join("package.json")).unwrap_or_default();
            // The package manager complains about a file that is no JSON, in better words.
            let package: Value = serde_json::from_slice(&text).unwrap_or_default();
            members.insert(path, lock_part::asked_for(&package));
        }
        members
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

    /// Packages that a folder depends on and that are linked rather than installed, by name.
    fn linked_packages(&self, folder: &Path) -> BTreeMap<String, PathBuf> {
        let Ok(text) = self.files.read(&folder.join("package.json")) else {
            return BTreeMap::new();
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
                let Some(place) = places.find(|place| self.files.exists(place)) else {
                    continue;
                };
                let Ok(target) = self.files.canonicalize(&place) else {
                    continue;
                };
                let installed = target
                    .components()
                    .any(|part| part.as_os_str() == "node_modules");
                if !installed {
                    packages.insert(name.clone(), target);
                }
            }
        }
        packages
    }

    /// What a path in a program means: itself, or a module without its ending.
    fn existing(&self, path: &Path) -> Option<PathBuf> {
        if self.files.exists(path) {
            return Some(path.to_owned());
        }
        let endings = SOURCES.iter().copied().chain(["json"]);
        let text = path.to_str()?;
        // `./x.js` in a TypeScript file is the module `x.ts`.
        let stem = text.strip_suffix(".js").unwrap_or(text);
        endings
            .map(|ending| PathBuf::from(format!("{stem}.{ending}")))
            .find(|file| self.files.is_file(file))
    }
}

/// The folder up to which it is looked for packages above a program: its workspace, else its
/// repository, else the program itself.
fn outermost(directory: &Path) -> &Path {
    let marked = |mark: &str| {
        let mut above = directory.ancestors();
        above.find(|folder| ProjectFiles::UNRESTRICTED.exists(&folder.join(mark)))
    };
    let found = marked(WORKSPACE).or_else(|| marked(REPOSITORY));
    found.unwrap_or(directory)
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
mod tests;
