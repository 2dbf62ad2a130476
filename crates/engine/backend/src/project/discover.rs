//! Where a project's files are.

use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result};

/// Endings that the official command line knows, in its order.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// The nearest `Pulumi.yaml` in a folder or above it.
pub fn find_project_file(directory: &Path) -> Result<PathBuf> {
    let found = directory.ancestors().find_map(|folder| {
        ENDINGS
            .iter()
            .map(|ending| folder.join(format!("Pulumi.{ending}")))
            .find(|path| path.is_file())
    });
    found.ok_or_else(|| {
        // Without the dot of a folder that was called `.`.
        let folder: PathBuf = directory.components().collect();
        let message = format!(
            "there is no Pulumi.yaml in {} or above it",
            folder.display()
        );
        Error::new(ErrorCode::PROJECT_NOT_FOUND, message)
            .with_help("give the program's folder with --dir; values of a deployment are in its manifest and config/ files, its secrets are set with `nimbus secret set`")
    })
}

/// The `Pulumi.yaml` of this very folder, for a stranger's project: what lies above it is somebody
/// else's.
pub fn own_project_file(directory: &Path) -> Result<PathBuf> {
    let named = |ending| directory.join(format!("Pulumi.{ending}"));
    let mut there = ENDINGS.map(named).into_iter();
    let Some(found) = there.find(|path| path.symlink_metadata().is_ok()) else {
        let message = format!("there is no Pulumi.yaml in {}", directory.display());
        return Err(Error::new(ErrorCode::PROJECT_NOT_FOUND, message)
            .with_help("give the folder of the stranger's program itself with --dir"));
    };
    if !found.is_file() {
        let message = format!("{} is not a regular file", found.display());
        return Err(Error::new(ErrorCode::PROJECT_INVALID, message)
            .with_help("a project is described by a file, not by a folder, pipe or device"));
    }
    Ok(found)
}

/// The file with a stack's settings: beside the project's file or in its `stackConfigDir`.
pub(crate) fn stack_file(project_file: &Path, config_dir: Option<&str>, stack: &str) -> PathBuf {
    let folder = project_file.parent().unwrap_or_else(|| Path::new(""));
    let ending = project_file
        .extension()
        .map_or_else(|| "yaml".into(), |ending| ending.to_string_lossy());
    let name = format!("Pulumi.{stack}.{ending}");
    match config_dir {
        Some(dir) => folder.join(dir).join(name),
        None => folder.join(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_project_is_in_its_own_folder_or_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(folder.path().join("Pulumi.yaml"), "name: outer").unwrap();
        let error = own_project_file(&inner).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PROJECT_NOT_FOUND);
        let file = inner.join("Pulumi.yaml");
        std::os::unix::net::UnixListener::bind(&file).unwrap();
        let error = own_project_file(&inner).unwrap_err();
        assert!(error.message().contains("is not a regular file"), "{error}");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "name: inner").unwrap();
        assert_eq!(own_project_file(&inner).unwrap(), file);
    }

    #[test]
    fn the_nearest_project_wins() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let outer = folder.path().join("Pulumi.yml");
        std::fs::write(&outer, "name: x").unwrap();
        assert_eq!(find_project_file(&deep).unwrap(), outer);
        let inner = folder.path().join("a/Pulumi.yaml");
        std::fs::write(&inner, "name: y").unwrap();
        assert_eq!(find_project_file(&deep).unwrap(), inner);
        let error = find_project_file(Path::new("/")).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PROJECT_NOT_FOUND);
    }

    #[test]
    fn stack_files_lie_beside_the_project_unless_it_says_otherwise() {
        let file = Path::new("/p/Pulumi.yaml");
        assert_eq!(
            stack_file(file, None, "dev"),
            Path::new("/p/Pulumi.dev.yaml")
        );
        assert_eq!(
            stack_file(file, Some("cfg"), "dev"),
            Path::new("/p/cfg/Pulumi.dev.yaml")
        );
    }
}
