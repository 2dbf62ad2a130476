//! The check of a program that runs in a sandbox, in a sandbox of its own.
//!
//! The compiler is one of the program's own packages, and so is everything that it loads. It runs
//! where the program could run too: it reads the program and what is installed for it, has no
//! network, no variables and no engine to talk to, and is ended with everything that it started. It
//! serves one program and no other.
//!
//! What it says is believed about this program alone: a compiler that lies lets its own program
//! through, which is as good as having written no types. A verdict is kept under a digest, made
//! here, of everything that the compiler could read. Whoever gets it has the same compiler.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use nimbus_engine_files::ProjectFiles;
use nimbus_engine_process::{CodeIsolation, CodeOrigin};
use nimbus_engine_sandbox::{
    Interpreter, Intervention, Sandbox, code_of_program, readable_by_program,
};
use nimbus_engine_transpile::CacheKey;

use super::{
    CheckedFiles, CheckerAnswer, REVISION, TypeCheckRequest, TypeChecker, TypeVerdict, scripts,
};
use crate::contents::FileDigests;
use crate::inquiry::{self, Unanswered};

/// A list of errors is not megabytes.
const MOST_BYTES: u64 = 16 << 20;
/// Long enough for a large program on a slow machine.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Where a program's types are checked.
#[derive(Clone, Debug)]
pub(crate) struct SandboxedCheck {
    pub(crate) sandbox: Sandbox,
    pub(crate) files: ProjectFiles,
    pub(crate) root: PathBuf,
    pub(crate) directory: PathBuf,
}

impl TypeChecker {
    pub(super) async fn check_inside(
        &self,
        request: &TypeCheckRequest,
        place: &SandboxedCheck,
    ) -> TypeVerdict {
        let key = self.key(request, place).await;
        if let Some(verdict) = key.as_ref().and_then(|key| self.cache.get(key)) {
            return verdict;
        }
        self.count();
        let verdict = match self.ask_inside(request, place).await {
            Ok(found) => found.into_verdict(),
            Err(reason) => return TypeVerdict::Unavailable(reason),
        };
        // Nothing is kept about files that changed while they were read.
        if let Some(key) = key
            && self.key(request, place).await.as_ref() == Some(&key)
        {
            self.cache.put(&key, &verdict);
        }
        verdict
    }

    /// The digest of everything that the verdict depends on.
    async fn key(&self, request: &TypeCheckRequest, place: &SandboxedCheck) -> Option<CacheKey> {
        // Of the interpreter, which is not the program's, path, size and time will do.
        let seen = code_of_program(&place.files, &place.root, &place.directory).ok()?;
        let contents = FileDigests::clone(&self.contents);
        let digest = tokio::task::spawn_blocking(move || contents.digest(&seen));
        let digest = digest.await.ok()??;
        let node = std::fs::metadata(&request.node).ok()?;
        let modified = node.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let node = format!("{} {}", node.len(), modified.as_nanos());
        Some(CacheKey::of([
            b"types inside".as_slice(),
            REVISION.to_string().as_bytes(),
            scripts::key().as_str().as_bytes(),
            request.line().as_bytes(),
            request.node.as_os_str().as_encoded_bytes(),
            node.as_bytes(),
            digest.as_str().as_bytes(),
        ]))
    }

    async fn ask_inside(
        &self,
        request: &TypeCheckRequest,
        place: &SandboxedCheck,
    ) -> Result<CheckedFiles, String> {
        let told = |error: &dyn std::fmt::Display| format!("types cannot be checked: {error}");
        let script = scripts::place(&self.cache);
        let script = script.map_err(|error| told(&error))?;
        let mut command = std::process::Command::new(&request.node);
        command
            .arg(&script)
            .arg(request.line())
            .current_dir(&place.directory);
        let node = Interpreter::Operators(&request.node);
        let readable = readable_by_program(&place.files, &place.root, &place.directory, node);
        let readable = readable.map_err(|error| told(&error))?;
        let readable = readable.and(script.parent().map(Path::to_owned));
        let room = place.sandbox.without_network().open();
        let mut room = room.map_err(|error| told(&error))?;
        let enclosed = room.enclose(&command, &readable, &[]);
        let enclosed = enclosed.map_err(|error| told(&error))?;
        let answer = match answer(enclosed).await {
            Ok(answer) => answer,
            Err(reason) => return Err(told(&because(room.intervention(), reason))),
        };
        match (answer.result, answer.failure) {
            (Some(found), _) => Ok(found),
            (None, failure) => Err(failure.unwrap_or_default()),
        }
    }
}

/// The only answer of a process, which is gone afterwards with everything that it started.
async fn answer(command: std::process::Command) -> Result<CheckerAnswer, String> {
    let origin = CodeOrigin::Tenants(CodeIsolation::Sandbox);
    let text = match inquiry::answer(command, origin, MOST_BYTES, PATIENCE).await {
        Ok(text) => text,
        Err(Unanswered::TooLate) => return Err("the compiler takes too long".to_owned()),
        Err(Unanswered::Failed(reason)) => return Err(reason),
    };
    let lines = text.split(|byte| *byte == b'\n');
    // Whatever else a package prints, it is not an answer.
    let mut answers = lines.filter_map(|line| serde_json::from_slice(line).ok());
    answers
        .next()
        .ok_or_else(|| "the compiler ended without an answer".to_owned())
}

/// What the sandbox did is a better reason than what came of it.
fn because(intervention: Option<Intervention>, reason: String) -> String {
    match intervention {
        Some(Intervention::Stopped(cause)) => format!("the compiler was stopped: {cause}"),
        Some(Intervention::NotRun { step, reason }) => format!("{step}: {reason}"),
        None => reason,
    }
}
