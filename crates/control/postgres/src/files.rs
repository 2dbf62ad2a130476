//! The folders and files of a cluster: where the socket is and who may use it.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

use crate::account::Account;
use crate::{ADMINISTRATOR, ClusterOptions, PostgresError};

/// A socket's whole path has at most 107 bytes, and PostgreSQL adds a file name with a temporary ending.
const LONGEST_SOCKET_FOLDER: usize = 80;

/// A folder that only the cluster's user can look into.
pub(crate) fn private_folder(path: &Path, account: &Account) -> Result<(), PostgresError> {
    let refused = |what: &'static str| PostgresError::folder(path, what);
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(refused("it cannot be created")(error)),
    }
    let found = fs::symlink_metadata(path).map_err(refused("it cannot be read"))?;
    let ours = [
        Some(Uid::effective().as_raw()),
        account.other.as_ref().map(|user| user.uid.as_raw()),
    ];
    if !found.is_dir() || !ours.contains(&Some(found.uid())) {
        return Err(PostgresError::Folder {
            path: path.to_owned(),
            what: "it belongs to somebody else".to_owned(),
            source: None,
        });
    }
    if let Some(user) = &account.other {
        chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
            .map_err(refused("it cannot be given to PostgreSQL's user"))?;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
        .map_err(refused("it cannot be closed to others"))
}

/// Where the socket goes: beside the data, or in a short place of its own if that is too long.
pub(crate) fn socket_folder(data: &Path) -> PathBuf {
    let beside = data.with_file_name("run");
    if beside.as_os_str().len() <= LONGEST_SOCKET_FOLDER {
        return beside;
    }
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    let name = format!("nimbus-{}-{:016x}", Uid::effective(), hasher.finish());
    let temporary = std::env::temp_dir();
    let short = if temporary.as_os_str().len() <= 40 {
        temporary
    } else {
        "/tmp".into()
    };
    short.join(name)
}

/// Only the user that Nimbus runs as, and only as one of the roles; over a port, whoever has a password.
pub(crate) fn write_access(
    data: &Path,
    account: &Account,
    options: &ClusterOptions,
) -> Result<(), PostgresError> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let own = quoted(&account.own_name);
    let entries = [ADMINISTRATOR.to_owned()]
        .into_iter()
        .chain(options.roles.iter().cloned());
    let map: String = entries
        .map(|role| format!("nimbus {own} {}\n", quoted(&role)))
        .collect();
    let write = |name: &str, text: &str| {
        let path = data.join(name);
        fs::write(&path, text).map_err(PostgresError::folder(&path, "it cannot be written"))
    };
    let over_tcp = match options.tcp_port {
        Some(_) => "host all all 127.0.0.1/32 scram-sha-256\n",
        None => "",
    };
    write(
        "pg_hba.conf",
        &format!("local all all peer map=nimbus\n{over_tcp}"),
    )?;
    write("pg_ident.conf", &map)
}

/// Every folder on the way must let PostgreSQL's user pass.
pub(crate) fn check_reachable(path: &Path, account: &Account) -> Result<(), PostgresError> {
    let Some(user) = &account.other else {
        return Ok(());
    };
    for folder in path.ancestors().skip(1) {
        let found =
            fs::metadata(folder).map_err(PostgresError::folder(folder, "it cannot be read"))?;
        let mode = found.permissions().mode();
        let passes = mode & 0o001 != 0
            || (found.uid() == user.uid.as_raw() && mode & 0o100 != 0)
            || (found.gid() == user.gid.as_raw() && mode & 0o010 != 0);
        if !passes {
            return Err(PostgresError::Folder {
                path: folder.to_owned(),
                what: format!(
                    "the user {}, as whom PostgreSQL runs, cannot pass through it",
                    user.name
                ),
                source: None,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_gets_a_short_socket() {
        let short = socket_folder(Path::new("/srv/nimbus/postgres"));
        assert_eq!(short, Path::new("/srv/nimbus/run"));
        let long = format!("/srv/{}/postgres", "x".repeat(120));
        let folder = socket_folder(Path::new(&long));
        assert!(
            folder.as_os_str().len() <= LONGEST_SOCKET_FOLDER,
            "{folder:?}"
        );
        assert_ne!(folder, socket_folder(Path::new(&format!("{long}2"))));
    }
}
