//! The settings, and the services that they name.

use std::time::Duration;

use nimbus_config::{LoadedSettings, SettingOrigin};
use nimbus_core::Result;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{CheckGroup, CheckState, DoctorCheck};
use crate::context::{CommandContext, is_chosen};

const PATIENCE: Duration = Duration::from_secs(3);

pub(super) async fn check_all(context: &CommandContext) -> Vec<DoctorCheck> {
    let loaded = context.settings();
    let mut checks = vec![settings(&loaded)];
    if let Ok(loaded) = loaded {
        checks.extend(unknown_variables(loaded));
        checks.extend(unused_variables(loaded));
        checks.extend(secrets_in_file(context, loaded));
        checks.push(object_store(loaded).await);
    }
    checks
}

fn settings(loaded: &Result<&LoadedSettings>) -> DoctorCheck {
    let check = |detail: String| {
        DoctorCheck::ok("settings", CheckGroup::Services, "Settings", detail).required()
    };
    match loaded {
        Ok(LoadedSettings {
            file: Some(file), ..
        }) => check(format!("read from {}", file.display())),
        Ok(LoadedSettings { file: None, .. }) => check("defaults and environment, no file".into()),
        Err(error) => {
            let place = error.spans().first().map_or_else(String::new, |span| {
                let (line, column) = span.line_and_column();
                format!(" ({}:{line}:{column})", span.name)
            });
            let fix = error
                .help()
                .unwrap_or("`nimbus config show` marks the place");
            check(format!("{}{place}", error.message())).state(CheckState::Failed, fix)
        }
    }
}

fn unknown_variables(loaded: &LoadedSettings) -> Option<DoctorCheck> {
    let (variable, nearest) = loaded.unknown_variables.first()?;
    let names: Vec<_> = loaded
        .unknown_variables
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let fix = match nearest {
        Some(nearest) => format!("unset {variable}; did you mean {nearest}?"),
        None => format!("unset {variable}; `nimbus config show --json` lists all variables"),
    };
    let detail = format!("{} mean nothing to Nimbus", names.join(", "));
    let check = DoctorCheck::ok("variables", CheckGroup::Services, "Variables", detail);
    Some(check.state(CheckState::Warning, fix))
}

/// What nothing reads must not be believed to work.
fn unused_variables(loaded: &LoadedSettings) -> Option<DoctorCheck> {
    let first = loaded.unused_variables.first()?;
    let detail = format!("not used: {}", loaded.unused_variables.join(", "));
    let fix = format!("unset {first}; nothing reads it");
    let check = DoctorCheck::ok("unused", CheckGroup::Services, "Unused variables", detail);
    Some(check.state(CheckState::Warning, fix))
}

/// A file with a secret in it is for its owner alone.
#[cfg(unix)]
fn secrets_in_file(context: &CommandContext, loaded: &LoadedSettings) -> Option<DoctorCheck> {
    use std::os::unix::fs::PermissionsExt as _;

    let file = loaded.file.as_ref()?;
    let from_file = |origin: &SettingOrigin| matches!(origin, SettingOrigin::File { .. });
    let entries = loaded.settings.entries();
    if !entries
        .iter()
        .any(|entry| entry.secret && from_file(&entry.origin))
    {
        return None;
    }
    let mode = std::fs::metadata(context.directory.join(file))
        .ok()?
        .permissions()
        .mode()
        & 0o777;
    let detail = format!("{} holds secrets and has mode {mode:03o}", file.display());
    let check = DoctorCheck::ok(
        "secrets_file",
        CheckGroup::Services,
        "Secrets in the file",
        detail,
    );
    let fix = format!("chmod 600 {}", file.display());
    Some(if mode & 0o077 == 0 {
        check
    } else {
        check.state(CheckState::Warning, fix)
    })
}

#[cfg(not(unix))]
fn secrets_in_file(_: &CommandContext, _: &LoadedSettings) -> Option<DoctorCheck> {
    None
}

/// The object store counts as set up when somebody chose an address or a key for it.
async fn object_store(loaded: &LoadedSettings) -> DoctorCheck {
    let s3 = &loaded.settings.s3;
    let check =
        |detail: String| DoctorCheck::ok("s3", CheckGroup::Services, "S3 object store", detail);
    if !is_chosen(&s3.endpoint.origin) && !is_chosen(&s3.access_key.origin) {
        let detail = "not set up; only for state in an object store";
        let fix = "set NIMBUS_S3_ENDPOINT, NIMBUS_S3_ACCESS_KEY and NIMBUS_S3_SECRET_KEY";
        return check(detail.into()).state(CheckState::NotUsed, fix);
    }
    let url = s3.endpoint.value.url();
    let (host, port) = (
        url.host_str().unwrap_or(""),
        url.port_or_known_default().unwrap_or(80),
    );
    let fix = format!("start it, or correct s3.endpoint ({})", s3.endpoint.origin);
    match timeout(
        PATIENCE,
        TcpStream::connect((host.trim_matches(['[', ']']), port)),
    )
    .await
    {
        Ok(Ok(_)) if s3.access_key.value.is_none() || s3.secret_key.value.is_none() => {
            let fix = "set NIMBUS_S3_ACCESS_KEY and NIMBUS_S3_SECRET_KEY";
            check(format!("{host}:{port} answers, but a key is missing"))
                .state(CheckState::Warning, fix)
        }
        Ok(Ok(_)) => check(format!("{host}:{port} answers")),
        Ok(Err(error)) => check(format!("{host}:{port}: {error}")).state(CheckState::Failed, fix),
        Err(_) => check(format!("{host}:{port} does not answer")).state(CheckState::Failed, fix),
    }
}
