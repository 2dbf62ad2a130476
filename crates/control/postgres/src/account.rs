//! As whom the cluster runs, and as whom Nimbus itself does.

use nix::unistd::{Uid, User};

use crate::PostgresError;

/// Users that PostgreSQL may run as when Nimbus runs as root, which PostgreSQL refuses to.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// The name of the user that Nimbus runs as; the socket lets this one in.
    pub(crate) own_name: String,
    /// The user to change to, if it must be another one.
    pub(crate) other: Option<User>,
}

impl Account {
    pub(crate) fn find() -> Result<Self, PostgresError> {
        let own = Uid::effective();
        let own_name = User::from_uid(own)
            .ok()
            .flatten()
            .map(|user| user.name)
            .ok_or(PostgresError::NoAccount)?;
        let other = if own.is_root() {
            Some(unprivileged()?)
        } else {
            None
        };
        Ok(Self { own_name, other })
    }
}

fn unprivileged() -> Result<User, PostgresError> {
    UNPRIVILEGED
        .iter()
        .find_map(|name| User::from_name(name).ok().flatten())
        .ok_or(PostgresError::NoAccount)
}
