//! Backups of a whole workspace: one private archive with a digest of every file, and its way back.
//!
//! The archive begins with a list of everything in it. A restore unpacks beside its target and
//! compares every file with the list; only then does anything take the place of anything. What can
//! be installed again (packages) is left out, and so is state that is kept elsewhere.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::{Draft, FileMode, FolderFiles, layout};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

const SCHEMA: &str = "nimbus/workspace-backup/1";
const LIST: &str = "nimbus-backup.json";
/// No list of a real workspace is longer; an archive that claims one is not ours.
const LONGEST_LIST: u64 = 256 << 20;

/// What is installed again or belongs to other tools.
const LEFT_OUT: &[&str] = &["node_modules", "__pycache__", "venv", ".venv", ".git"];

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupList {
    schema: String,
    /// RFC 3339.
    pub created: String,
    pub nimbus: String,
    pub files: BTreeMap<String, BackupEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "snake_case")]
pub enum BackupEntry {
    File {
        size: u64,
        mode: u32,
        sha256: String,
    },
    Link {
        to: String,
    },
}

/// Where a restore put what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub list: BackupList,
    /// What was there before, if something was.
    pub aside: Option<PathBuf>,
}

/// Writes everything of a workspace into one file: all of it or nothing.
///
/// # Errors
///
/// When something cannot be read or written, or changes meanwhile.
pub fn back_up(files: &FolderFiles, root: &Path, target: &Path) -> Result<BackupList> {
    // Whoever mistypes where a backup goes should not find it in a folder that was made for it.
    let folder = target.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let unwritable = |error: io::Error| unwritten(target, &error);
    let list = list_of(files, root)?;
    let draft = Draft::inside(folder, target, FileMode::Private);
    // The name of a draft means nothing to anybody.
    let draft = draft.map_err(|error| unwritable(io::Error::from(error.kind())))?;
    write_archive(files, root, draft.as_file(), &list).map_err(unwritable)?;
    draft.commit().map_err(unwritable)?;
    Ok(list)
}

/// As [`back_up`], into a file of the workspace itself, which may be a stranger's.
pub(crate) fn back_up_inside(
    files: &FolderFiles,
    root: &Path,
    target: &Path,
) -> Result<BackupList> {
    let unwritable = |error: io::Error| unwritten(target, &error);
    let folder = target.parent().unwrap_or(target);
    let draft = files.draft(folder, target, FileMode::Private);
    let list = list_of(files, root)?;
    let draft = draft.map_err(unwritable)?;
    write_archive(files, root, draft.as_file(), &list).map_err(unwritable)?;
    draft.commit(b"").map_err(unwritable)?;
    Ok(list)
}

fn list_of(files: &FolderFiles, root: &Path) -> Result<BackupList> {
    let found = survey(files, root).map_err(|error| failed("cannot read the workspace", &error))?;
    Ok(BackupList {
        schema: SCHEMA.to_owned(),
        created: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        nimbus: env!("CARGO_PKG_VERSION").to_owned(),
        files: found,
    })
}

fn unwritten(target: &Path, error: &io::Error) -> Error {
    failed(&format!("cannot write {}", target.display()), error)
}

fn failed(what: &str, error: &io::Error) -> Error {
    Error::new(ErrorCode::FILE_UNWRITABLE, format!("{what}: {error}"))
}

/// Every file and link below a folder, by its path.
fn survey(files: &FolderFiles, root: &Path) -> io::Result<BTreeMap<String, BackupEntry>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for path in files.entries(&folder)? {
            let name = path.file_name().unwrap_or_default();
            if LEFT_OUT.iter().any(|left_out| name == *left_out) {
                continue;
            }
            let kind = files.link_metadata(&path)?;
            if kind.is_dir() {
                if !holds_locks(&path) {
                    open.push(path);
                }
                continue;
            }
            let Some(relative) = path.strip_prefix(root).ok().and_then(Path::to_str) else {
                let message = format!("{} has a name that is no text", path.display());
                return Err(io::Error::other(message));
            };
            let entry = if kind.is_symlink() {
                let to = files.read_link(&path)?.display().to_string();
                BackupEntry::Link { to }
            } else if kind.is_file() {
                BackupEntry::File {
                    size: kind.len(),
                    mode: kind.permissions().mode() & 0o777,
                    sha256: digest(&mut files.open(&path)?)?.1,
                }
            } else {
                // Sockets and pipes live with a process and mean nothing without it.
                continue;
            };
            found.insert(relative.to_owned(), entry);
        }
    }
    Ok(found)
}

/// A lock belongs to a process of this machine; who restores it elsewhere would wait for nobody.
fn holds_locks(folder: &Path) -> bool {
    let above = folder
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default();
    folder.file_name().is_some_and(|name| name == "locks")
        && (above == layout::FOLDER || above == ".pulumi")
}

fn write_archive(
    files: &FolderFiles,
    root: &Path,
    target: &File,
    list: &BackupList,
) -> io::Result<()> {
    let packer = GzEncoder::new(BufWriter::new(target), Compression::default());
    let mut archive = tar::Builder::new(packer);
    let text = serde_json::to_vec(list)?;
    append(
        &mut archive,
        LIST,
        0o600,
        text.len() as u64,
        text.as_slice(),
    )?;
    for (path, entry) in &list.files {
        let BackupEntry::File { size, mode, sha256 } = entry else {
            continue;
        };
        let mut reader = Hashing::new(files.open(&root.join(path))?.take(*size));
        append(&mut archive, path, *mode, *size, &mut reader)?;
        if reader.finish() != *sha256 {
            return Err(io::Error::other(format!(
                "{path} changed meanwhile; do it again"
            )));
        }
    }
    archive
        .into_inner()?
        .finish()?
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    Ok(())
}

fn append(
    archive: &mut tar::Builder<impl Write>,
    path: &str,
    mode: u32,
    size: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(mode);
    header.set_cksum();
    archive.append_data(&mut header, path, content)
}

/// Makes a workspace from an archive. Nothing changes unless every file is as it was.
///
/// # Errors
///
/// When the archive is damaged or none of ours, or something is there and `force` was not given.
pub fn restore(source: &Path, target: &Path, force: bool) -> Result<Restored> {
    let taken = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
    if taken && !force {
        let message = format!("{} is there and not empty", target.display());
        return Err(Error::new(ErrorCode::BACKUP_UNREADABLE, message).with_help(
            "restore into another directory with --into, or give --force: what is there is moved aside",
        ));
    }
    let name = target
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let above = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let above = above.unwrap_or_else(|| Path::new("."));
    let unwritable =
        |error: io::Error| failed(&format!("cannot restore into {}", target.display()), &error);
    fs::create_dir_all(above).map_err(unwritable)?;
    let draft = tempfile::Builder::new()
        .prefix(&format!(".{name}.restore-"))
        .tempdir_in(above)
        .map_err(unwritable)?;
    let file = File::open(source).map_err(|error| {
        let message = format!("{}: {error}", source.display());
        Error::new(ErrorCode::BACKUP_UNREADABLE, message)
            .with_help("nothing was changed; give a file that `nimbus workspace backup` wrote")
    })?;
    let list = unpack(source, file, draft.path())?;
    let aside = take_place(draft.path(), target, &name, above).map_err(unwritable)?;
    // It is where it belongs; there is nothing left to clear away.
    let _ = draft.keep();
    Ok(Restored { list, aside })
}

/// Reads an archive to its end and compares every file with its list.
///
/// # Errors
///
/// When the archive is damaged or none of ours.
pub(crate) fn verify_backup(source: &Path, file: File) -> Result<BackupList> {
    let draft = tempfile::tempdir().map_err(|error| failed("cannot unpack", &error))?;
    unpack(source, file, draft.path())
}

/// Puts the finished draft where it belongs, and what is there aside.
fn take_place(
    draft: &Path,
    target: &Path,
    name: &str,
    above: &Path,
) -> io::Result<Option<PathBuf>> {
    let aside = match fs::symlink_metadata(target) {
        Err(_) => None,
        Ok(_) if fs::remove_dir(target).is_ok() => None,
        Ok(_) => {
            let stamp = Timestamp::now().strftime("%Y%m%d-%H%M%S");
            let aside = above.join(format!("{name}.before-restore-{stamp}"));
            nimbus_disk::rename(target, &aside)?;
            Some(aside)
        }
    };
    if let Err(error) = nimbus_disk::place_folder(draft, target) {
        if let Some(aside) = &aside {
            // Better what was there than nothing.
            let _ = nimbus_disk::rename(aside, target);
        }
        return Err(error);
    }
    Ok(aside)
}

/// Unpacks into an empty folder and compares with the list.
fn unpack(source: &Path, file: File, folder: &Path) -> Result<BackupList> {
    let damaged = |problem: &str| {
        let message = format!("{}: {problem}", source.display());
        Error::new(ErrorCode::BACKUP_UNREADABLE, message)
            .with_help("nothing was changed; give a file that `nimbus workspace backup` wrote")
    };
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    let broken = |error: io::Error| damaged(&format!("the archive cannot be read: {error}"));
    let mut entries = archive.entries().map_err(broken)?;
    let first = entries
        .next()
        .ok_or_else(|| damaged("the archive is empty"))?;
    let list = read_list(first.map_err(broken)?).map_err(|problem| damaged(&problem))?;
    let mut missing: BTreeMap<&str, &BackupEntry> = list
        .files
        .iter()
        .map(|(path, entry)| (path.as_str(), entry))
        .collect();
    for entry in entries {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.display().to_string();
        let Some(BackupEntry::File { size, mode, sha256 }) = missing.remove(path.as_str()) else {
            return Err(damaged(&format!("{path} is not in its list")));
        };
        let written = write_file(&folder.join(&path), *mode, &mut entry).map_err(broken)?;
        if written != (*size, sha256.clone()) {
            return Err(damaged(&format!("{path} is damaged")));
        }
    }
    // The digest over everything stands at the very end.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(broken)?;
    for (path, entry) in missing {
        let BackupEntry::Link { to } = entry else {
            return Err(damaged(&format!("{path} is missing")));
        };
        make_link(&folder.join(path), to).map_err(broken)?;
    }
    Ok(list)
}

fn read_list(entry: tar::Entry<'_, impl Read>) -> std::result::Result<BackupList, String> {
    if entry.path().map_err(|error| error.to_string())?.as_os_str() != LIST {
        return Err("it is no backup of a workspace".to_owned());
    }
    let list: BackupList = serde_json::from_reader(entry.take(LONGEST_LIST))
        .map_err(|error| format!("its list cannot be read: {error}"))?;
    if list.schema != SCHEMA {
        return Err(format!("its schema is {:?}", list.schema));
    }
    match list.files.keys().find(|path| !is_inside(path)) {
        Some(path) => Err(format!("{path:?} leads out of the workspace")),
        None => Ok(list),
    }
}

fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

fn write_file(path: &Path, mode: u32, content: &mut impl Read) -> io::Result<(u64, String)> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create_new(path)?;
    file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
    let mut reader = Hashing::new(content);
    let size = io::copy(&mut reader, &mut file)?;
    // tidy-allow(copy): one of many in a folder that gets its name when all are there
    file.sync_all()?;
    Ok((size, reader.finish()))
}

fn make_link(path: &Path, to: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    symlink(to, path)
}

fn digest(reader: &mut impl Read) -> io::Result<(u64, String)> {
    let mut hashing = Hashing::new(reader);
    let size = io::copy(&mut hashing, &mut io::sink())?;
    Ok((size, hashing.finish()))
}

/// Computes a digest of what is read through it.
struct Hashing<R> {
    inner: R,
    state: Sha256,
}

impl<R> Hashing<R> {
    fn new(inner: R) -> Self {
        Self {
            inner,
            state: Sha256::new(),
        }
    }

    fn finish(self) -> String {
        hex::encode(self.state.finalize())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.state.update(&buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(root: &Path) {
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("deploy/D1/Deployment_Manifest.yaml", "a: 1\n");
        write("deploy/D1/.nimbus/state/stacks/p/u.json", "{\"version\":3}");
        write("deploy/D1/.nimbus/locks/dev.lock", "us");
        write("stacks/node_modules/left-out/index.js", "x");
        write(
            &format!("stacks/{}/deep.ts", "long-name-".repeat(20)),
            "deep",
        );
        let key = root.join(".nimbus/digest.key");
        write(".nimbus/digest.key", "secret");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("../D1", root.join("deploy/latest")).unwrap();
    }

    fn packed() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("cloud");
        workspace(&root);
        let file = temp.path().join("backup.tgz");
        back_up(&FolderFiles::own(&root), &root, &file).unwrap();
        (temp, file)
    }

    fn contents(root: &Path) -> io::Result<BTreeMap<String, BackupEntry>> {
        survey(&FolderFiles::own(root), root)
    }

    fn refused(result: Result<Restored>, part: &str) {
        let error = result.unwrap_err();
        assert_eq!(error.code(), ErrorCode::BACKUP_UNREADABLE);
        assert!(error.message().contains(part), "{error}");
    }

    #[test]
    fn a_workspace_comes_back_as_it_was() {
        let (temp, file) = packed();
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let target = temp.path().join("other");
        let restored = restore(&file, &target, false).unwrap();
        assert_eq!(restored.aside, None);
        assert_eq!(
            contents(&target).unwrap(),
            contents(&temp.path().join("cloud")).unwrap()
        );
        assert!(!target.join("stacks/node_modules").exists());
        assert!(!target.join("deploy/D1/.nimbus/locks").exists());
        let names = fs::read_dir(temp.path()).unwrap().count();
        assert_eq!(names, 3, "no draft is left behind");
    }

    #[test]
    fn what_is_there_is_refused_or_moved_aside_whole() {
        let (temp, file) = packed();
        let root = temp.path().join("cloud");
        fs::write(root.join("new"), "later").unwrap();
        refused(restore(&file, &root, false), "not empty");
        assert!(root.join("new").exists());
        let aside = restore(&file, &root, true).unwrap().aside.unwrap();
        assert!(!root.join("new").exists());
        assert_eq!(fs::read_to_string(aside.join("new")).unwrap(), "later");
    }

    #[test]
    fn a_damaged_archive_changes_nothing() {
        let (temp, file) = packed();
        let root = temp.path().join("cloud");
        let before = contents(&root).unwrap();
        let whole = fs::read(&file).unwrap();
        assert_eq!(
            verify_backup(&file, File::open(&file).unwrap())
                .unwrap()
                .files,
            before
        );
        for cut in [0, 10, whole.len() / 2, whole.len() - 12] {
            fs::write(&file, &whole[..cut]).unwrap();
            assert!(restore(&file, &root, true).is_err(), "cut at {cut}");
            assert!(
                verify_backup(&file, File::open(&file).unwrap()).is_err(),
                "cut at {cut}"
            );
            assert_eq!(contents(&root).unwrap(), before);
        }
        for at in (0..whole.len()).step_by(37) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            fs::write(&file, bytes).unwrap();
            // Some bytes of a header mean nothing; then everything is as it was all the same.
            if restore(&file, &temp.path().join("new"), false).is_ok() {
                assert_eq!(
                    contents(&temp.path().join("new")).unwrap(),
                    before,
                    "byte {at}"
                );
                fs::remove_dir_all(temp.path().join("new")).unwrap();
            }
        }
        let drafts = fs::read_dir(temp.path()).unwrap().flatten();
        let left = drafts.filter(|entry| entry.file_name().to_string_lossy().contains("restore"));
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn an_archive_cannot_write_outside_of_its_target() {
        let temp = tempfile::tempdir().unwrap();
        let list = BackupList {
            schema: SCHEMA.to_owned(),
            created: String::new(),
            nimbus: String::new(),
            files: BTreeMap::from([(
                "../evil".to_owned(),
                BackupEntry::Link { to: "/".to_owned() },
            )]),
        };
        let file = temp.path().join("evil.tgz");
        let files = FolderFiles::own(temp.path());
        let target = File::create(&file).unwrap();
        write_archive(&files, temp.path(), &target, &list).unwrap();
        refused(restore(&file, &temp.path().join("t"), false), "leads out");
        assert!(!is_inside("/etc/x") && !is_inside("a/../../b") && !is_inside(""));
    }
}
