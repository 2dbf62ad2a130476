//! The passphrase that protects the secrets of units.

use nimbus_engine_backend::{EnvironmentVariables, PASSPHRASE, SecretsError, passphrase};

/// The secrets of a rehearsal protect nothing real, so nobody is asked for a passphrase; and it is
/// always the same one, so that rehearsals go on whether or not one is set for real runs.
const REHEARSED: &str = "rehearsal";

/// The variables that units see: in a rehearsal there is always a passphrase.
pub fn environment(rehearsing: bool) -> EnvironmentVariables {
    let process = EnvironmentVariables::process();
    if rehearsing {
        return process.with(PASSPHRASE, REHEARSED);
    }
    process
}

/// Fails when there is no passphrase. Units would find out one by one, in the middle of a run.
pub fn require_passphrase(rehearsing: bool) -> Result<(), SecretsError> {
    passphrase(&environment(rehearsing)).map(|_| ())
}
