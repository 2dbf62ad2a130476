//! How an archive becomes a folder that reaches nothing outside itself.
//!
//! Files and folders are made only below the target, never through a link: links are made last, and
//! only if they lead to something inside. Devices, hard links and whatever else an archive can hold
//! are refused, as are archives that unpack to more than anybody's plugin.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

/// How much is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Bytes of an archive.
    pub archive: u64,
    /// Bytes of everything in it.
    pub unpacked: u64,
    pub entries: u64,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        Self {
            archive: 2 << 30,
            unpacked: 6 << 30,
            entries: 200_000,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    #[error("it is damaged or incomplete: {0}")]
    Damaged(io::Error),
    #[error("{name:?} in it would be written outside of the plugin's folder")]
    Outside { name: String },
    #[error("the link {name:?} in it leads to {target:?}, out of the plugin's folder")]
    Link { name: String, target: String },
    #[error("{name:?} in it is neither a file nor a folder")]
    Special { name: String },
    #[error("it unpacks to more than {0}")]
    TooMuch(String),
    #[error("{name:?} cannot be written: {source}")]
    Write { name: String, source: io::Error },
}

/// Unpacks a compressed archive into an empty folder.
pub(crate) fn unpack(
    archive: File,
    target: &Path,
    limits: &UnpackLimits,
) -> Result<(), UnpackError> {
    let mut archive = Archive::new(MultiGzDecoder::new(io::BufReader::new(archive)));
    let mut writer = UnpackWriter::new(target, limits);
    for entry in archive.entries().map_err(UnpackError::Damaged)? {
        let mut entry = entry.map_err(UnpackError::Damaged)?;
        let path = entry.path().map_err(UnpackError::Damaged)?.into_owned();
        let name = inside(&path).ok_or_else(|| outside(&path))?;
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let runs = entry.header().mode().unwrap_or(0o644) & 0o111 != 0;
                writer.file(&name, runs, &mut entry)?;
            }
            EntryType::Directory => writer.folder(&name)?,
            EntryType::Symlink => {
                let link = entry.link_name().map_err(UnpackError::Damaged)?;
                writer.link(name, &link.unwrap_or_default())?;
            }
            EntryType::XGlobalHeader => {}
            _ => return Err(special(&name)),
        }
    }
    writer.finish()
}

/// Copies an unpacked plugin into an empty folder, by the same rules.
pub(crate) fn copy(from: &Path, target: &Path, limits: &UnpackLimits) -> Result<(), UnpackError> {
    let mut writer = UnpackWriter::new(target, limits);
    let mut open = vec![PathBuf::new()];
    while let Some(name) = open.pop() {
        let entries = fs::read_dir(from.join(&name)).map_err(UnpackError::Damaged)?;
        for entry in entries {
            let entry = entry.map_err(UnpackError::Damaged)?;
            let name = name.join(entry.file_name());
            let metadata = entry.metadata().map_err(UnpackError::Damaged)?;
            let kind = metadata.file_type();
            if kind.is_dir() {
                writer.folder(&name)?;
                open.push(name);
            } else if kind.is_file() {
                let mut file = File::open(entry.path()).map_err(UnpackError::Damaged)?;
                let runs = metadata.permissions().mode() & 0o111 != 0;
                writer.file(&name, runs, &mut file)?;
            } else if kind.is_symlink() {
                let link = fs::read_link(entry.path()).map_err(UnpackError::Damaged)?;
                writer.link(name, &link)?;
            } else {
                return Err(special(&name));
            }
        }
    }
    writer.finish()
}

/// Writes below one folder, and counts.
struct UnpackWriter<'a> {
    target: &'a Path,
    limits: &'a UnpackLimits,
    bytes: u64,
    entries: u64,
    /// Made when everything else is there, so that nothing is written through them.
    links: Vec<(PathBuf, PathBuf)>,
}

impl<'a> UnpackWriter<'a> {
    fn new(target: &'a Path, limits: &'a UnpackLimits) -> Self {
        Self {
            target,
            limits,
            bytes: 0,
            entries: 0,
            links: Vec::new(),
        }
    }

    fn folder(&mut self, name: &Path) -> Result<(), UnpackError> {
        self.count()?;
        fs::create_dir_all(self.target.join(name)).map_err(unwritable(name))
    }

    fn file(&mut self, name: &Path, runs: bool, content: &mut dyn Read) -> Result<(), UnpackError> {
        self.count()?;
        let path = self.target.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(unwritable(name))?;
        }
        let mode = if runs { 0o755 } else { 0o644 };
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(true).mode(mode);
        let mut file = options.open(&path).map_err(unwritable(name))?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = content.read(&mut buffer).map_err(UnpackError::Damaged)?;
            if count == 0 {
                return Ok(());
            }
            self.bytes += count as u64;
            if self.bytes > self.limits.unpacked {
                let limit = format!("{} bytes", self.limits.unpacked);
                return Err(UnpackError::TooMuch(limit));
            }
            file.write_all(&buffer[..count]).map_err(unwritable(name))?;
        }
    }

    fn link(&mut self, name: PathBuf, leads_to: &Path) -> Result<(), UnpackError> {
        self.count()?;
        if !stays_inside(&name, leads_to) {
            return Err(UnpackError::Link {
                name: name.display().to_string(),
                target: leads_to.display().to_string(),
            });
        }
        self.links.push((name, leads_to.to_owned()));
        Ok(())
    }

    fn count(&mut self) -> Result<(), UnpackError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            let limit = format!("{} files", self.limits.entries);
            return Err(UnpackError::TooMuch(limit));
        }
        Ok(())
    }

    fn finish(self) -> Result<(), UnpackError> {
        for (name, leads_to) in &self.links {
            let path = self.target.join(name);
            // A link's own folder must be a real one, or another link would carry it outside.
            self.real_folder(name)?;
            symlink(leads_to, &path).map_err(unwritable(name))?;
        }
        Ok(())
    }

    fn real_folder(&self, name: &Path) -> Result<(), UnpackError> {
        let mut folder = self.target.to_owned();
        for part in name.parent().into_iter().flat_map(Path::components) {
            folder.push(part);
            match fs::symlink_metadata(&folder) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Err(outside(name)),
                Err(_) => fs::create_dir(&folder).map_err(unwritable(name))?,
            }
        }
        Ok(())
    }
}

/// The path without `.`; `None` if it leads anywhere but down.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => clean.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

/// Whether a link leads to something inside, whatever other links there are: it may go up only at
/// its beginning, and not further than the folder. In the middle of a target `..` would be relative
/// to wherever a link before it leads.
fn stays_inside(name: &Path, leads_to: &Path) -> bool {
    let mut depth = name.components().count().saturating_sub(1);
    let mut descending = false;
    for part in leads_to.components() {
        match part {
            Component::ParentDir if descending || depth == 0 => return false,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => descending = true,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    descending
}

fn outside(path: &Path) -> UnpackError {
    UnpackError::Outside {
        name: path.display().to_string(),
    }
}

fn special(name: &Path) -> UnpackError {
    UnpackError::Special {
        name: name.display().to_string(),
    }
}

fn unwritable(name: &Path) -> impl FnOnce(io::Error) -> UnpackError {
    let name = name.display().to_string();
    move |source| UnpackError::Write { name, source }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn links_may_go_up_only_at_their_beginning() {
        for (name, target, fine) in [
            ("bin/x", "../lib/x.js", true),
            ("x", "y", true),
            ("x", "./y", true),
            ("x", "../y", false),
            ("a/b", "../../y", false),
            ("a/b/c", "../../y", true),
            ("x", "/etc/passwd", false),
            ("y", "deep/x/../..", false),
            ("a/x", "..", false),
            ("x", "", false),
        ] {
            assert_eq!(
                stays_inside(Path::new(name), Path::new(target)),
                fine,
                "{name} -> {target}"
            );
        }
    }

    /// Links of any shape, made from few names so that they often meet.
    fn links() -> impl Strategy<Value = Vec<(String, String)>> {
        let name = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4);
        let target =
            prop::collection::vec(prop::sample::select(vec!["..", ".", "a", "b", "c"]), 1..6);
        let link = (name, target).prop_map(|(name, target)| (name.join("/"), target.join("/")));
        prop::collection::vec(link, 1..6)
    }

    proptest! {
        #[test]
        fn nothing_that_is_unpacked_leads_outside(links in links()) {
            let place = tempfile::tempdir().expect("a folder");
            let target = place.path().join("plugin");
            fs::create_dir(&target).expect("a folder");
            let limits = UnpackLimits::default();
            let mut writer = UnpackWriter::new(&target, &limits);
            let taken = links.iter().try_for_each(|(name, leads_to)| {
                writer.link(PathBuf::from(name), Path::new(leads_to))
            });
            if taken.is_err() || writer.finish().is_err() {
                return Ok(());
            }
            let root = target.canonicalize().expect("it is there");
            for (name, _) in &links {
                if let Ok(real) = target.join(name).canonicalize() {
                    prop_assert!(real.starts_with(&root), "{links:?}: {}", real.display());
                }
            }
        }
    }
}
