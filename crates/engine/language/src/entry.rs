//! Where a program is.

use std::path::{Path, PathBuf};

use nimbus_engine_files::{ProjectFiles, is_outside};

use crate::error::LaunchError;

/// The directory a program is run in, and what is run there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramEntry {
    pub(crate) directory: PathBuf,
    /// A file of the directory, or `.` for the directory itself.
    pub(crate) name: String,
}

impl ProgramEntry {
    /// Relative paths inside a program start at the directory of its entry.
    pub(crate) fn find(
        files: &ProjectFiles,
        root: &Path,
        main: Option<&str>,
    ) -> Result<Self, LaunchError> {
        let path = match main {
            None | Some("") => root.to_owned(),
            Some(main) => root.join(main),
        };
        let missing = |path: PathBuf| LaunchError::EntryMissing {
            path,
            help: "correct main in Pulumi.yaml: it names a file or directory below it",
        };
        let path = files.canonicalize(&path).map_err(|error| {
            if is_outside(&error) {
                return LaunchError::outside(error);
            }
            missing(path)
        })?;
        if files.is_dir(&path) {
            return Ok(Self {
                directory: path,
                name: ".".to_owned(),
            });
        }
        let name = path.file_name().and_then(|name| name.to_str());
        match (path.parent(), name) {
            (Some(directory), Some(name)) => Ok(Self {
                directory: directory.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err(missing(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_run_in_its_directory_and_a_directory_in_itself() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let root = root.path().canonicalize().expect("it exists");
        std::fs::create_dir(root.join("src")).expect("a directory");
        std::fs::write(root.join("src/app.ts"), "").expect("a file");
        let files = ProjectFiles::unrestricted();
        let find = |main| ProgramEntry::find(&files, &root, main).expect("it exists");
        assert_eq!(
            find(None),
            ProgramEntry {
                directory: root.clone(),
                name: ".".to_owned()
            }
        );
        let source = root.join("src");
        assert_eq!(
            find(Some("src")),
            ProgramEntry {
                directory: source.clone(),
                name: ".".to_owned()
            }
        );
        assert_eq!(
            find(Some("./src/app.ts")),
            ProgramEntry {
                directory: source,
                name: "app.ts".to_owned()
            }
        );
        assert!(matches!(
            ProgramEntry::find(&files, &root, Some("absent")),
            Err(LaunchError::EntryMissing { .. })
        ));
    }

    #[test]
    fn a_strangers_program_starts_in_its_own_folder() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let project = root.path().join("project");
        std::fs::create_dir_all(project.join("src")).expect("directories");
        std::fs::write(root.path().join("secret.ts"), "").expect("a file");
        std::os::unix::fs::symlink("..", project.join("up")).expect("a link");
        let files = ProjectFiles::beneath(&project, &[]).expect("a kernel with openat2");
        assert!(ProgramEntry::find(&files, &project, Some("src")).is_ok());
        for out in [
            "/etc",
            "..",
            "up",
            "../secret.ts",
            "up/secret.ts",
            "/proc/self/root",
        ] {
            let refused = ProgramEntry::find(&files, &project, Some(out)).expect_err(out);
            assert!(
                matches!(refused, LaunchError::Outside(_)),
                "{out}: {refused}"
            );
        }
    }
}
