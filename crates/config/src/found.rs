//! What a settings file may say that was found instead of named.
//!
//! The file is looked for where a command works, and with `engine.sandbox: strict` that is a stranger's
//! project: it would be the stranger who says which folders are shown, which variables are read and
//! where traces go. So there is a list of what such a file may set, and a setting that is made tomorrow
//! is not on it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::Document;

use crate::load::{Sources, descend};
use crate::setting::SettingOrigin;
use crate::settings::Settings;
use crate::types::SandboxMode;
use crate::value::SettingValue as _;

/// What changes nothing but how things look. The mode itself is among them because whoever reads it from
/// here has not asked for `strict` elsewhere, where it would win.
const HARMLESS: &[&str] = &[
    "app.name",
    "engine.sandbox",
    "logging.format",
    "logging.level",
];

const HELP: &str = "if the file is yours, name it with --config FILE or NIMBUS_CONFIG; else take the line \
                    out, or give the setting by its variable";

/// Refuses a found file that sets what is the operator's to say.
pub(crate) fn require_harmless(settings: &Settings, document: &Document) -> Result<()> {
    if settings.engine.sandbox.value != SandboxMode::Strict {
        return Ok(());
    }
    for entry in settings.entries() {
        if !matches!(entry.origin, SettingOrigin::File { .. }) || HARMLESS.contains(&entry.path) {
            continue;
        }
        let Some(view) = descend(&document.view(), entry.path)? else {
            continue;
        };
        let message = format!(
            "{} sets {}, and with engine.sandbox: strict a file that lies in a project does not",
            document.name(),
            entry.path
        );
        let error = document.error(
            ErrorCode::FOUND_SETTINGS,
            view.span(),
            message,
            "the operator's to say",
        );
        return Err(error.with_help(HELP));
    }
    Ok(())
}

/// Refuses a found file that is a link, a pipe or anything else, before it is read: a complaint about it
/// would show what it leads to. Known only where `strict` was asked for outside of the file.
pub(crate) fn require_plain(sources: &Sources, path: &Path) -> Result<()> {
    if !asks_for_strict(sources) {
        return Ok(());
    }
    let whole = sources.directory.join(path);
    let is_plain = |path: &Path, folder: bool| {
        fs::symlink_metadata(path).is_ok_and(|found| match folder {
            true => found.is_dir(),
            false => found.is_file(),
        })
    };
    let folder = whole.parent().is_some_and(|folder| is_plain(folder, true));
    if folder && is_plain(&whole, false) {
        return Ok(());
    }
    let message = format!(
        "{} is not a plain file of its folder, and with engine.sandbox: strict it is not read",
        path.display()
    );
    Err(Error::new(ErrorCode::FOUND_SETTINGS, message).with_help(HELP))
}

fn asks_for_strict(sources: &Sources) -> bool {
    const MODE: &str = "engine.sandbox";
    let flag = sources.flags.iter().rfind(|flag| flag.path == MODE);
    let variable = sources.environment.get(OsStr::new("NIMBUS_ENGINE_SANDBOX"));
    let asked = match flag {
        Some(flag) => Some(flag.value.as_str()),
        None => variable.and_then(|value| value.to_str()),
    };
    asked.is_some_and(|mode| SandboxMode::parse(mode) == Ok(SandboxMode::Strict))
}
