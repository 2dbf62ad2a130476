//! What of a workspace goes to a server and comes back: programs and templates, and nothing else.
//!
//! What does not count as part of a program is left out, and so is what usually holds secrets. A link is refused on the way
//! out, because what it leads to may be anybody's, and on the way in, because it could lead out of the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result, name_collision, unportable_name};
use nimbus_disk::{FileMode, unreadable, unwritable};
use nimbus_engine_files::is_left_out;
use sha2::{Digest as _, Sha256};

use crate::Workspace;

/// A server takes files up to this size.
const MOST_FILE_BYTES: u64 = 512 * 1024;
/// And so many of them.
const MOST_FILES: usize = 5000;

const PROGRAMS: &str = "stacks";
const TEMPLATES: [&str; 3] = [
    "tools/templates/config",
    "tools/templates/default",
    "tools/templates/custom",
];

/// Files of a workspace by their path in it, with `/` between its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shipment {
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Names that programs do not need and that usually hold what nobody else may have.
fn is_secret(name: &str) -> bool {
    name == ".env" || name.starts_with(".env.") || name == ".npmrc" || name == ".netrc"
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::WORKSPACE_FILE_INVALID, message)
}

/// Whether a path that a server names is one of a program or a template, and leads nowhere else.
pub fn is_shipped_path(path: &str) -> bool {
    // Where letters have no case, another spelling is the same folder.
    let left_out = |part: &str| {
        let folded = part.to_ascii_lowercase();
        let configuration = folded.starts_with("pulumi.") && folded != "pulumi.yaml";
        is_left_out(part) || is_left_out(&folded) || is_secret(&folded) || configuration
    };
    let plain = |part: &str| unportable_name(part).is_none() && !left_out(part);
    if !path.split('/').all(plain) {
        return false;
    }
    let template = |folder: &str| {
        let rest = path
            .strip_prefix(folder)
            .and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|name| name.ends_with(".yaml") && !name.contains('/'))
    };
    TEMPLATES.into_iter().any(template) || path.starts_with("stacks/")
}

impl Shipment {
    /// SHA-256 of a content, in hexadecimal digits: the name by which servers know it.
    pub fn digest(content: &[u8]) -> String {
        hex::encode(Sha256::digest(content))
    }

    /// Everything that goes.
    ///
    /// # Errors
    ///
    /// When something cannot be read, is a link, or is too large.
    pub fn collect(workspace: &Workspace) -> Result<Self> {
        let mut shipment = Self::default();
        let root = workspace.root();
        shipment.add_folder(root, Path::new(PROGRAMS))?;
        for folder in TEMPLATES {
            for path in entries(&root.join(folder))? {
                let yaml = path
                    .extension()
                    .is_some_and(|extension| extension == "yaml");
                if yaml && let Some(name) = path.file_name() {
                    shipment.add_file(root, &Path::new(folder).join(name))?;
                }
            }
        }
        shipment.refuse_collisions()?;
        Ok(shipment)
    }

    /// Whoever fetches it may have a disk on which letters have no case.
    fn refuse_collisions(&self) -> Result<()> {
        match name_collision(self.files.keys().map(String::as_str)) {
            None => Ok(()),
            Some(collision) => Err(invalid(collision.to_string())
                .with_help("rename one of them; some systems cannot have both")),
        }
    }

    fn add_folder(&mut self, root: &Path, folder: &Path) -> Result<()> {
        for path in entries(&root.join(folder))? {
            let Some(name) = path.file_name() else {
                continue;
            };
            let shown = name.to_string_lossy();
            if is_left_out(&shown) || is_secret(&shown) {
                continue;
            }
            let below = folder.join(name);
            let kind = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, error))?;
            if kind.is_dir() {
                self.add_folder(root, &below)?;
            } else {
                self.add_file(root, &below)?;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, root: &Path, below: &Path) -> Result<()> {
        let path = root.join(below);
        let kind = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, error))?;
        let shown = below.display();
        if kind.is_symlink() {
            return Err(
                invalid(format!("{shown} is a link, and links are not sent"))
                    .with_help("put the file itself there, or take the link away"),
            );
        }
        if !kind.is_file() {
            return Err(invalid(format!("{shown} is no file")));
        }
        if kind.len() > MOST_FILE_BYTES {
            let message = format!(
                "{shown} has {} bytes; {MOST_FILE_BYTES} are sent",
                kind.len()
            );
            return Err(
                invalid(message).with_help("a program should not need it; move it elsewhere")
            );
        }
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        let name = parts
            .map(|parts| parts.join("/"))
            .ok_or_else(|| invalid(format!("{shown} has a name that is no text")))?;
        for part in name.split('/') {
            if let Some(reason) = unportable_name(part) {
                return Err(invalid(format!("{shown} is not sent: `{part}` {reason}"))
                    .with_help("give it another name"));
            }
        }
        let content = fs::read(&path).map_err(|error| unreadable(&path, error))?;
        self.files.insert(name, content);
        if self.files.len() > MOST_FILES {
            let message = format!("the workspace has more than {MOST_FILES} files to send");
            return Err(invalid(message).with_help("take out what programs do not need"));
        }
        Ok(())
    }

    /// Paths whose file in a workspace is another one than here.
    ///
    /// # Errors
    ///
    /// When a path is none of a program or a template, or leads over a link.
    pub fn differing(&self, root: &Path) -> Result<Vec<String>> {
        self.refuse_collisions()?;
        let mut differing = Vec::new();
        for (path, content) in &self.files {
            let place = place_of(root, path)?;
            match fs::read(&place) {
                Ok(there) if there == *content => {}
                Ok(_) => differing.push(path.clone()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&place, error)),
            }
        }
        Ok(differing)
    }

    /// Writes every file that is not there as it is here; returns how many that were.
    ///
    /// # Errors
    ///
    /// When a path is none of a program or a template or leads over a link, before anything is written; or when
    /// something cannot be written.
    pub fn write(&self, root: &Path) -> Result<usize> {
        self.refuse_collisions()?;
        let mut places = Vec::new();
        for (path, content) in &self.files {
            places.push((place_of(root, path)?, content));
        }
        let mut written = 0;
        for (place, content) in places {
            if fs::read(&place).is_ok_and(|there| there == *content) {
                continue;
            }
            nimbus_disk::replace(&place, content, FileMode::KeptOrShared)
                .map_err(|error| unwritable(&place, error))?;
            written += 1;
        }
        Ok(written)
    }
}

/// Where a file of a server goes.
fn place_of(root: &Path, path: &str) -> Result<PathBuf> {
    if !is_shipped_path(path) {
        let message =
            format!("the server sent `{path}`, which is neither a program nor a template");
        return Err(invalid(message));
    }
    let mut place = root.to_owned();
    for part in path.split('/') {
        place.push(part);
        let link = fs::symlink_metadata(&place).is_ok_and(|kind| kind.is_symlink());
        if link {
            let message = format!("{} is a link; nothing is written over it", place.display());
            return Err(invalid(message).with_help("take it away, or fetch into another workspace"));
        }
    }
    Ok(place)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        found.push(entry.map_err(|error| unreadable(folder, error))?.path());
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let temp = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("stacks/app/src/index.js", "app"),
            ("stacks/app/src/Pulumi.yaml", "name: app"),
            ("stacks/app/src/Pulumi.dev.yaml", "secret"),
            ("stacks/app/src/node_modules/x/index.js", "x"),
            ("stacks/app/.nimbus/state.json", "state"),
            ("stacks/app/.env", "TOKEN=x"),
            ("stacks/tsconfig.json", "{}"),
            ("tools/templates/config/app.yaml", "name: app"),
            ("tools/templates/custom/pair.yaml", "name: pair"),
            ("tools/templates/custom/notes.txt", "x"),
            ("tools/docs/a.md", "x"),
            ("deploy/D1-o-p/Deployment_Manifest.yaml", "x"),
            (".nimbus/key", "key"),
        ] {
            let place = temp.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        let workspace = Workspace::find(temp.path()).unwrap();
        (temp, workspace)
    }

    #[test]
    fn programs_and_templates_go_and_nothing_else() {
        let (_temp, workspace) = workspace();
        let shipment = Shipment::collect(&workspace).unwrap();
        let paths: Vec<_> = shipment.files.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "stacks/app/src/Pulumi.yaml",
                "stacks/app/src/index.js",
                "stacks/tsconfig.json",
                "tools/templates/config/app.yaml",
                "tools/templates/custom/pair.yaml",
            ]
        );
    }

    #[test]
    fn links_and_large_files_are_refused_by_name() {
        let (temp, workspace) = workspace();
        let place = temp.path().join("stacks/app/src/extra");
        for target in ["/etc/hostname", "/etc", "nowhere"] {
            symlink(target, &place).unwrap();
            let error = Shipment::collect(&workspace).unwrap_err();
            assert!(error.message().contains("stacks/app/src/extra"), "{error}");
            fs::remove_file(&place).unwrap();
        }
        let large = fs::File::create(&place).unwrap();
        large.set_len(MOST_FILE_BYTES + 1).unwrap();
        let error = Shipment::collect(&workspace).unwrap_err();
        assert_eq!(error.code(), ErrorCode::WORKSPACE_FILE_INVALID);
        assert!(error.message().contains("extra"), "{error}");
    }

    #[test]
    fn what_a_server_sends_stays_in_the_workspace() {
        let (temp, _) = workspace();
        let root = temp.path();
        for path in [
            "../outside",
            "stacks/../../outside",
            "/etc/passwd",
            "stacks//a",
            "stacks/a/.nimbus/key",
            "stacks/a/node_modules/x.js",
            "deploy/D1-o-p/Deployment_Manifest.yaml",
            "tools/templates/custom/../../../x.yaml",
            "C:\\x",
            "stacks/a/.GIT/config",
            "stacks/a/.git\u{200c}/config",
            "stacks/a/Node_Modules/x.js",
            "stacks/a/src/nul.ts",
            "stacks/a/src/PULUMI.dev.yaml",
            "stacks/a/src/.npmrc",
            "stacks/a/src/x.",
        ] {
            let files = BTreeMap::from([(path.to_owned(), b"x".to_vec())]);
            assert!(Shipment { files }.write(root).is_err(), "{path}");
        }
        for (one, other) in [
            ("stacks/a/src/Index.ts", "stacks/a/src/index.ts"),
            ("stacks/A/src/x.ts", "stacks/a/src/y.ts"),
            ("stacks/a/src/x", "stacks/a/src/x/y"),
        ] {
            let files = [one, other].map(|path| (path.to_owned(), b"x".to_vec()));
            let shipment = Shipment {
                files: BTreeMap::from(files),
            };
            let error = shipment.write(root).unwrap_err();
            assert_eq!(error.code(), ErrorCode::WORKSPACE_FILE_INVALID, "{one}");
            assert!(!root.join("stacks/a").exists(), "nothing is written");
        }
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.join("stacks/linked")).unwrap();
        let files = BTreeMap::from([("stacks/linked/x".to_owned(), b"x".to_vec())]);
        assert!(Shipment { files }.write(root).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_differs_is_told_and_what_is_written_is_there() {
        let (temp, _) = workspace();
        let files = BTreeMap::from([
            ("stacks/app/src/index.js".to_owned(), b"other".to_vec()),
            ("stacks/new/src/index.js".to_owned(), b"new".to_vec()),
            ("stacks/tsconfig.json".to_owned(), b"{}".to_vec()),
        ]);
        let shipment = Shipment { files };
        let differing = shipment.differing(temp.path()).unwrap();
        assert_eq!(differing, ["stacks/app/src/index.js"]);
        assert_eq!(shipment.write(temp.path()).unwrap(), 2);
        assert!(shipment.differing(temp.path()).unwrap().is_empty());
    }
}
