//! Translation of a program that runs in a sandbox, in a sandbox of its own.
//!
//! Reading and parsing what a stranger wrote is done where the stranger's program could do it too:
//! it sees no more files, and text that brings a parser down brings down nothing else. The same
//! binary is started again for it, see [`translate_if_asked`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use nimbus_engine_files::ProjectFiles;
use nimbus_engine_process::{CodeIsolation, CodeOrigin};
use nimbus_engine_sandbox::{Interpreter, Sandbox, readable_by_program};
use nimbus_engine_transpile::{
    Compiler, TranslationCache, TranslationRequest, entry_file, transpile,
};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::inquiry::{self, Unanswered};

/// The first argument that makes a program the translator.
const TRANSLATE: &str = "internal-translate";

/// Translations are a few times as long as programs, and programs are not megabytes.
const MOST_BYTES: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// What is translated.
pub(crate) struct TranslationInput<'a> {
    pub(crate) files: &'a ProjectFiles,
    pub(crate) root: &'a Path,
    pub(crate) directory: &'a Path,
    /// What `Pulumi.yaml` says is run in the directory.
    pub(crate) name: &'a str,
    pub(crate) tsconfig: &'a Path,
    /// The compiler's version, and whether the SDK asks it to take modules as Node.js does.
    pub(crate) version: &'a str,
    pub(crate) node_modules: bool,
}

/// A program as it was translated.
pub(crate) struct Translated {
    /// The file that the program begins with.
    pub(crate) entry: PathBuf,
    pub(crate) program: String,
    /// Whether there was any TypeScript in it.
    pub(crate) has_files: bool,
}

/// The translated program, or why there is none.
pub(crate) async fn translate(
    sandbox: &Sandbox,
    wanted: &TranslationInput<'_>,
) -> Result<Translated, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = std::process::Command::new(&own);
    command
        .arg(TRANSLATE)
        .args([
            wanted.directory.as_os_str(),
            wanted.name.as_ref(),
            wanted.tsconfig.as_os_str(),
        ])
        .args([
            wanted.version,
            if wanted.node_modules { "node" } else { "" },
        ])
        .current_dir(wanted.directory);
    let room = sandbox.without_network().open();
    let mut room = room.map_err(|error| error.to_string())?;
    let interpreter = Interpreter::Operators(&own);
    let readable = readable_by_program(wanted.files, wanted.root, wanted.directory, interpreter);
    let readable = readable.map_err(|error| error.to_string())?;
    let enclosed = room
        .enclose(&command, &readable, &[])
        .map_err(|error| error.to_string())?;
    // It is our own program that parses what a stranger wrote.
    let origin = CodeOrigin::Tenants(CodeIsolation::Sandbox);
    let failed = |error: std::io::Error| format!("its translation failed: {error}");
    let text = match inquiry::answer(enclosed, origin, MOST_BYTES, PATIENCE).await {
        Ok(text) => {
            String::from_utf8(text).map_err(|error| failed(std::io::Error::other(error)))?
        }
        Err(Unanswered::TooLate) => return Err("its translation takes too long".to_owned()),
        Err(Unanswered::Failed(reason)) => return Err(failed(std::io::Error::other(reason))),
    };
    let Some((entry, program)) = text.split_once('\n') else {
        let reason = text.lines().next().unwrap_or("it ended early").to_owned();
        return Err(failed(std::io::Error::other(reason)));
    };
    // Named by what the project says of itself, so it has to be the project's.
    let entry = wanted
        .files
        .canonicalize(Path::new(entry))
        .map_err(failed)?;
    let program = program.to_owned();
    let bundle: TranslatedFiles =
        serde_json::from_str(&program).map_err(|error| failed(error.into()))?;
    Ok(Translated {
        entry,
        has_files: !bundle.files.is_empty(),
        program,
    })
}

/// What is looked at of a translation.
#[derive(Deserialize)]
struct TranslatedFiles {
    files: BTreeMap<String, IgnoredAny>,
}

/// Does the translator's work if the arguments of this process ask for it. A program that runs
/// programs in sandboxes calls this before it does anything else.
pub fn translate_if_asked(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != TRANSLATE {
        return None;
    }
    let mut next = || arguments.next().unwrap_or_default();
    let (directory, name) = (PathBuf::from(next()), next());
    let tsconfig = PathBuf::from(next());
    let (version, modules) = (next(), next());
    let Some(entry) = entry_file(&directory, &name.to_string_lossy()) else {
        let _ = std::io::stdout().write_all(b"there is no file to begin with");
        return Some(ExitCode::FAILURE);
    };
    let compiler = Compiler::of_version(&version.to_string_lossy(), !modules.is_empty());
    let request = TranslationRequest {
        entry: &entry,
        tsconfig: &tsconfig,
        compiler: compiler.unwrap_or(Compiler::BUNDLED),
    };
    // Nothing is kept from one translation to the next: this folder is the sandbox's own.
    let cache = TranslationCache::at(std::env::temp_dir().join("translated"));
    let (text, code) = match transpile(&request, &cache) {
        Ok(bundle) => match serde_json::to_string(&bundle) {
            Ok(text) => (format!("{}\n{text}", entry.display()), ExitCode::SUCCESS),
            Err(error) => (error.to_string(), ExitCode::FAILURE),
        },
        Err(unsupported) => (unsupported.to_string(), ExitCode::FAILURE),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Some(code),
        Err(_) => Some(ExitCode::FAILURE),
    }
}
