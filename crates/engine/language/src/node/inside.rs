//! Translation of a program that runs in a sandbox, in a sandbox of its own.
//!
//! Reading and parsing what a stranger wrote is done where the stranger's program could do it too:
//! it sees no more files, and text that brings a parser down brings down nothing else. The same
//! binary is started again for it, see [`translate_if_asked`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use nimbus_engine_sandbox::{Sandbox, readable_by_program};
use nimbus_engine_transpile::{Cache, Compiler, Request, transpile};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// The first argument that makes a program the translator.
const TRANSLATE: &str = "internal-translate";

/// Translations are a few times as long as programs, and programs are not megabytes.
const MOST_BYTES: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// What is translated.
pub(crate) struct Wanted<'a> {
    pub(crate) root: &'a Path,
    pub(crate) directory: &'a Path,
    pub(crate) entry: &'a Path,
    pub(crate) tsconfig: &'a Path,
    /// The compiler's version, and whether the SDK asks it to take modules as Node.js does.
    pub(crate) version: &'a str,
    pub(crate) node_modules: bool,
}

/// A program as it was translated.
pub(crate) struct Translated {
    pub(crate) program: String,
    /// Whether there was any TypeScript in it.
    pub(crate) has_files: bool,
}

/// The translated program, or why there is none.
pub(crate) async fn translate(
    sandbox: &Sandbox,
    wanted: &Wanted<'_>,
) -> Result<Translated, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = std::process::Command::new(&own);
    command
        .arg(TRANSLATE)
        .args([wanted.entry, wanted.tsconfig])
        .args([
            wanted.version,
            if wanted.node_modules { "node" } else { "" },
        ])
        .current_dir(wanted.directory);
    let room = sandbox.without_network().open();
    let mut room = room.map_err(|error| error.to_string())?;
    let readable = readable_by_program(wanted.root, wanted.directory, &own);
    let enclosed = room
        .enclose(&command, &readable, &[])
        .map_err(|error| error.to_string())?;
    let run = run(Command::from(enclosed));
    let translated = timeout(PATIENCE, run).await;
    let translated = translated.map_err(|_| "its translation takes too long".to_owned())?;
    let failed = |error| format!("its translation failed: {error}");
    let program = translated.map_err(failed)?;
    let bundle: Bundle = serde_json::from_str(&program).map_err(|error| failed(error.into()))?;
    Ok(Translated {
        has_files: !bundle.files.is_empty(),
        program,
    })
}

/// What is looked at of a translation.
#[derive(Deserialize)]
struct Bundle {
    files: BTreeMap<String, IgnoredAny>,
}

async fn run(mut command: Command) -> std::io::Result<String> {
    let mut process = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut text = String::new();
    if let Some(output) = process.stdout.take() {
        output.take(MOST_BYTES).read_to_string(&mut text).await?;
    }
    if process.wait().await?.success() {
        return Ok(text);
    }
    let reason = text.lines().next().unwrap_or("it ended early").to_owned();
    Err(std::io::Error::other(reason))
}

/// Does the translator's work if the arguments of this process ask for it. A program that runs
/// programs in sandboxes calls this before it does anything else.
pub fn translate_if_asked(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != TRANSLATE {
        return None;
    }
    let mut next = || arguments.next().unwrap_or_default();
    let (entry, tsconfig) = (PathBuf::from(next()), PathBuf::from(next()));
    let (version, modules) = (next(), next());
    let compiler = Compiler::of_version(&version.to_string_lossy(), !modules.is_empty());
    let request = Request {
        entry: &entry,
        tsconfig: &tsconfig,
        compiler: compiler.unwrap_or(Compiler::BUNDLED),
    };
    // Nothing is kept from one translation to the next: this folder is the sandbox's own.
    let cache = Cache::at(std::env::temp_dir().join("translated"));
    let (text, code) = match transpile(&request, &cache) {
        Ok(bundle) => match serde_json::to_string(&bundle) {
            Ok(text) => (text, ExitCode::SUCCESS),
            Err(error) => (error.to_string(), ExitCode::FAILURE),
        },
        Err(unsupported) => (unsupported.to_string(), ExitCode::FAILURE),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Some(code),
        Err(_) => Some(ExitCode::FAILURE),
    }
}
