//! Paths of files that a tenant keeps on a server, and that others write to their disks.

use nimbus_core::{Error, ErrorCode, name_collision, unportable_name};

use crate::failure::{Failure, Result};

/// A path below a folder of the tenant: relative, plain, the same everywhere, and none that a package manager would use.
pub(crate) fn check_path(path: &str) -> Result<()> {
    if let Some(name) = path.split('/').find(|name| is_left_out(name)) {
        let message = format!("`{name}` is not kept: it usually holds what nobody else may have");
        return Err(Error::new(ErrorCode::WORKSPACE_FILE_INVALID, message)
            .with_help("leave it out; give secrets with `nimbus secret` and values in the manifest")
            .into());
    }
    let shown = |text: &str| text.chars().take(80).collect::<String>();
    let refusal = path.split('/').find_map(|name| {
        let reason = match name.eq_ignore_ascii_case("node_modules") {
            true => Some("is for packages, which are installed"),
            false => unportable_name(name),
        };
        Some((name, reason?))
    });
    let message = match refusal {
        None if path.len() <= 300 => return Ok(()),
        None => format!("`{}` is longer than 300 characters", shown(path)),
        Some((name, reason)) => format!(
            "`{}` is not a path that is kept: `{}` {reason}",
            shown(path),
            shown(name)
        ),
    };
    Err(Error::new(ErrorCode::WORKSPACE_FILE_INVALID, message)
        .with_help("paths are relative, of letters, digits and ._-@+, and have no node_modules")
        .into())
}

/// What the command line never sends. A server does not take it from somebody else either.
fn is_left_out(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let of_stack = name.starts_with("pulumi.") && name.ends_with(".yaml") && name != "pulumi.yaml";
    of_stack || name == ".env" || name.starts_with(".env.") || name == ".npmrc" || name == ".netrc"
}

/// Refuses files that could not be put beside each other: one that is a folder of another, and names of files or folders
/// that are one where letters have no case.
pub(crate) fn check_beside<'a>(paths: impl Iterator<Item = &'a str>) -> Result<()> {
    match name_collision(paths) {
        None => Ok(()),
        Some(collision) => Err(Failure::field("files", collision.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_another_place_on_some_machine_is_not_kept() {
        for path in [
            "src/../x",
            "/src",
            "src//x",
            "src/.git/config",
            "src/.GIT/config",
            "src/Node_Modules/x.js",
            "src/nul",
            "src/CON.ts",
            "src/x./y",
            "src/.ENV",
            "src/.Env.local",
            "src/PULUMI.dev.yaml",
            "src/a b",
            "src/.nimbus/x",
        ] {
            let failure = check_path(path).unwrap_err();
            assert_eq!(
                failure.error.code(),
                ErrorCode::WORKSPACE_FILE_INVALID,
                "{path}"
            );
        }
        assert!(check_path(&format!("src/{}", "a/".repeat(200) + "b")).is_err());
        for path in [
            "src/index.ts",
            "src/Pulumi.yaml",
            "src/console/com.ts",
            "src/.gitignore",
        ] {
            assert!(check_path(path).is_ok(), "{path}");
        }
    }
}
