//! A whole folder that leads nowhere else.
//!
//! What Nimbus keeps in a workspace (manifests, settings of stacks, logs, records, locks) is read and written by
//! many, under names that everybody can guess. A stranger who may put links there has them read and
//! written through. So before anything of a stranger's workspace is used, everything in it is looked at
//! once: nothing of the stranger's runs with a right to write there afterwards.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::RootsError;
use crate::project_files::ProjectFiles;

/// Why a folder of a stranger is not used.
#[derive(Debug, thiserror::Error)]
pub enum NotContained {
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error("{} cannot be used: {source}", path.display())]
    Entry {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Refuses a folder in which a link leads out of it, or something is neither a file, a folder nor a link:
/// a pipe keeps whoever opens it.
///
/// Links for which `is_only_read` says yes, by their path from the folder on, may lead into the roots of the
/// operator. Others may not, because they may be written through.
pub fn require_contained(
    folder: &Path,
    roots: &[PathBuf],
    is_only_read: impl Fn(&Path) -> bool,
) -> Result<(), NotContained> {
    let own = ProjectFiles::beneath(folder, &[])?;
    let wide = ProjectFiles::beneath(folder, roots)?;
    let mut folders = vec![folder.to_owned()];
    while let Some(level) = folders.pop() {
        let Some(entries) = unless_gone(own.entries(&level), &level)? else {
            continue;
        };
        for path in entries {
            let Some(found) = unless_gone(own.symlink_metadata(&path), &path)? else {
                continue;
            };
            if found.is_dir() {
                folders.push(path);
            } else if found.is_symlink() {
                let name = path.strip_prefix(folder).unwrap_or(&path);
                let reader = if is_only_read(name) { &wide } else { &own };
                // What leads nowhere leads nowhere outside.
                unless_gone(reader.canonicalize(&path), &path)?;
            } else if !found.is_file() {
                let source = io::Error::other("it is neither a file nor a folder");
                return Err(NotContained::Entry { path, source });
            }
        }
    }
    Ok(())
}

/// Runs come and go, and with them files of theirs.
fn unless_gone<T>(found: io::Result<T>, path: &Path) -> Result<Option<T>, NotContained> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(NotContained::Entry {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::error::is_outside;

    struct Places {
        temp: tempfile::TempDir,
    }

    impl Places {
        fn new() -> Self {
            let places = Self {
                temp: tempfile::tempdir().unwrap(),
            };
            for folder in ["own/stacks/a", "own/deploy/d/logs", "roots/shared", "other"] {
                fs::create_dir_all(places.path(folder)).unwrap();
            }
            fs::write(places.path("other/secret"), "x").unwrap();
            places
        }

        fn path(&self, name: &str) -> PathBuf {
            self.temp.path().join(name)
        }

        fn check(&self) -> Result<(), NotContained> {
            let roots = [self.path("roots")];
            require_contained(&self.path("own"), &roots, |name| name.starts_with("stacks"))
        }

        #[track_caller]
        fn assert_refused(&self) {
            match self.check() {
                Err(NotContained::Entry { source, .. }) => assert!(is_outside(&source), "{source}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn links_may_lead_about_inside_and_nowhere() {
        let places = Places::new();
        symlink("../../deploy", places.path("own/stacks/a/inside")).unwrap();
        symlink("nothing", places.path("own/stacks/a/nowhere")).unwrap();
        places.check().unwrap();
    }

    #[test]
    fn a_link_out_is_refused_wherever_it_lies_and_whatever_it_leads_to() {
        let target = |places: &Places| places.path("other/secret");
        for name in ["link", "deploy/d/logs/a.log", "stacks/a/src", ".nimbus"] {
            for missing in [false, true] {
                let places = Places::new();
                let mut to = target(&places);
                if missing {
                    // A file that would be made.
                    to.set_file_name("new");
                }
                symlink(&to, places.path("own").join(name)).unwrap();
                places.assert_refused();
            }
            let places = Places::new();
            let up = "../".repeat(name.split('/').count());
            symlink(format!("{up}other"), places.path("own").join(name)).unwrap();
            places.assert_refused();
        }
    }

    /// Whoever makes the missing folder later would open the way.
    #[test]
    fn a_link_out_by_way_of_what_is_missing_is_refused() {
        for target in ["other", "new"] {
            let places = Places::new();
            let to = format!("gone/../../../../{target}");
            symlink(to, places.path("own/stacks/a/link")).unwrap();
            places.assert_refused();
        }
        let places = Places::new();
        symlink("gone/../../../new", places.path("own/stacks/a/link")).unwrap();
        places.check().unwrap();
    }

    #[test]
    fn roots_of_the_operator_are_only_read() {
        let places = Places::new();
        symlink(
            places.path("roots/shared"),
            places.path("own/stacks/a/node_modules"),
        )
        .unwrap();
        places.check().unwrap();
        symlink(places.path("roots/shared"), places.path("own/deploy/d/x")).unwrap();
        places.assert_refused();
    }

    #[test]
    fn a_socket_or_pipe_is_refused() {
        let places = Places::new();
        let path = places.path("own/deploy/d/manifest.yaml");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(places.check().is_err());
    }
}
