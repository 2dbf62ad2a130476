//! The passphrase that protects the secrets of units.

use nimbus_engine_backend::{Environment, PASSPHRASE, PASSPHRASE_FILE, SecretsError, passphrase};

/// The secrets of a rehearsal protect nothing real, so nobody is asked to think of a passphrase.
const REHEARSED: &str = "rehearsal";

/// The variables that units see: in a rehearsal there is always a passphrase.
pub(crate) fn environment(rehearsing: bool) -> Environment {
    let process = Environment::process();
    let given = process.get(PASSPHRASE).is_some() || process.get(PASSPHRASE_FILE).is_some();
    if rehearsing && !given {
        return process.or(PASSPHRASE, REHEARSED);
    }
    process
}

/// Fails when there is no passphrase. Units would find out one by one, in the middle of a run.
pub fn require_passphrase(rehearsing: bool) -> Result<(), SecretsError> {
    passphrase(&environment(rehearsing)).map(|_| ())
}
