//! Whether a program's types are right, beside its start.
//!
//! One process checks the programs of a run one after another: most of what a check reads are
//! declarations of installed packages, and programs of one workspace share them. What was found out
//! is kept under a key of everything it depends on: the own files that were read, the options, the
//! list of installed packages and the compiler's version. For programs in sandboxes all of this is
//! different: see `inside`.

mod inside;
mod scripts;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use nimbus_engine_process::{CodeIsolation, CodeOrigin, spawn};
use nimbus_engine_transpile::{CacheKey, TranslationCache};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use crate::contents::FileDigests;
use crate::node::KEPT_CODE;
pub(crate) use inside::SandboxedCheck;

/// Tells the process where to keep what it knows about packages.
const OUTLINES: &str = "NIMBUS_OUTLINES";

/// Counts up when the same program may get another verdict than before.
const REVISION: u32 = 1;

/// Checks types for everybody in this process.
#[derive(Debug)]
pub struct TypeChecker {
    cache: TranslationCache,
    server: Mutex<Option<CheckerProcess>>,
    /// What is known about files of programs in sandboxes.
    contents: FileDigests,
    checked: AtomicUsize,
}

/// A program whose types are to be checked.
#[derive(Clone, Debug)]
pub(crate) struct TypeCheckRequest {
    pub(crate) node: PathBuf,
    /// The SDK's entry point; from there it finds its compiler.
    pub(crate) sdk: PathBuf,
    pub(crate) entry: PathBuf,
    pub(crate) tsconfig: PathBuf,
    /// Whether modules are taken as Node.js takes them, unless the project says otherwise.
    pub(crate) node_modules: bool,
    pub(crate) compiler: String,
    /// The list of installed packages. Without one nothing is kept.
    pub(crate) locked: Option<PathBuf>,
    /// Where it is checked, if the program runs in a sandbox.
    pub(crate) place: Option<Box<SandboxedCheck>>,
}

/// What a check finds out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TypeVerdict {
    Passed,
    Failed(Vec<TypeProblem>),
    /// The program needs to be compiled as a whole, which the SDK can do.
    Whole,
    /// Nothing was found out; the SDK checks types as well, while it compiles.
    Unavailable(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TypeProblem {
    #[serde(default)]
    file: Option<PathBuf>,
    #[serde(default)]
    line: u32,
    #[serde(default)]
    column: u32,
    code: u32,
    message: String,
}

impl fmt::Display for TypeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            code,
            message,
            ..
        } = self;
        match &self.file {
            Some(file) => {
                let file = file.display();
                write!(f, "{file}:{line}:{column} - error TS{code}: {message}")
            }
            None => write!(f, "error TS{code}: {message}"),
        }
    }
}

#[derive(Deserialize)]
struct CheckerAnswer {
    result: Option<CheckedFiles>,
    failure: Option<String>,
}

#[derive(Deserialize)]
struct CheckedFiles {
    whole: bool,
    files: Vec<PathBuf>,
    errors: Vec<TypeProblem>,
}

impl CheckedFiles {
    fn into_verdict(self) -> TypeVerdict {
        match (self.errors, self.whole) {
            (errors, _) if !errors.is_empty() => TypeVerdict::Failed(errors),
            (_, true) => TypeVerdict::Whole,
            (_, false) => TypeVerdict::Passed,
        }
    }
}

/// The process that checks.
#[derive(Debug)]
struct CheckerProcess {
    node: PathBuf,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Ends with us: it is killed when dropped, and ends by itself when nobody asks any more.
    _process: Child,
}

impl TypeChecker {
    /// Keeps what it finds out in this folder.
    pub fn new(cache: &Path) -> Self {
        Self {
            cache: TranslationCache::at(cache),
            server: Mutex::default(),
            contents: FileDigests::default(),
            checked: AtomicUsize::new(0),
        }
    }

    /// How many programs had to be checked, because nothing was known about them.
    pub fn checked(&self) -> usize {
        self.checked.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.checked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) async fn check(&self, request: &TypeCheckRequest) -> TypeVerdict {
        if let Some(place) = &request.place {
            return self.check_inside(request, place).await;
        }
        let base = request.base();
        if let Some(verdict) = base.as_ref().and_then(|base| self.known(base)) {
            return verdict;
        }
        self.count();
        let found = match self.ask(request).await {
            Ok(found) => found,
            Err(reason) => return TypeVerdict::Unavailable(reason),
        };
        let files = found.files.clone();
        let verdict = found.into_verdict();
        if let Some(base) = base
            && let Some(key) = verdict_key(&base, &files)
        {
            self.cache.put(&key, &verdict);
            self.cache.put(&base, &files);
        }
        verdict
    }

    /// What was found out about the very same files.
    fn known(&self, base: &CacheKey) -> Option<TypeVerdict> {
        let files: Vec<PathBuf> = self.cache.get(base)?;
        self.cache.get(&verdict_key(base, &files)?)
    }

    async fn ask(&self, request: &TypeCheckRequest) -> Result<CheckedFiles, String> {
        let mut server = self.server.lock().await;
        let mut asked = match server.take().filter(|server| server.node == request.node) {
            Some(server) => server,
            None => CheckerProcess::start(&request.node, &self.cache)?,
        };
        let answer = asked
            .ask(request)
            .await
            .map_err(|error| format!("the process that checks types ended: {error}"))?;
        // Only a process that answered is asked again.
        *server = Some(asked);
        match (answer.result, answer.failure) {
            (Some(found), _) => Ok(found),
            (None, failure) => Err(failure.unwrap_or_default()),
        }
    }
}

impl CheckerProcess {
    fn start(node: &Path, cache: &TranslationCache) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("types cannot be checked: {error}");
        let script = scripts::place(cache).map_err(told)?;
        let mut command = Command::new(node);
        command
            .arg(script)
            .env(OUTLINES, cache.root().join("outlines"))
            .env(KEPT_CODE, cache.root().join("code"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // The compiler is one of the project's packages.
        let origin = CodeOrigin::Tenants(CodeIsolation::OwnProject);
        let mut process = spawn(&mut command, origin).map_err(told)?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (input, output) = pipes.ok_or("the process that checks types has no pipes")?;
        Ok(Self {
            node: node.to_owned(),
            input,
            output: BufReader::new(output).lines(),
            _process: process,
        })
    }

    async fn ask(&mut self, request: &TypeCheckRequest) -> std::io::Result<CheckerAnswer> {
        let mut line = request.line();
        line.push('\n');
        self.input.write_all(line.as_bytes()).await?;
        self.input.flush().await?;
        let answer = self.output.next_line().await?;
        let answer = answer.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        Ok(serde_json::from_str(&answer)?)
    }
}

impl TypeCheckRequest {
    fn line(&self) -> String {
        let (module, resolution) = if self.node_modules {
            ("nodenext", "nodenext")
        } else {
            ("commonjs", "node")
        };
        json!({
            "id": 1,
            "sdk": self.sdk,
            "entry": self.entry,
            "tsconfig": self.tsconfig,
            "defaults": {"target": "es2020", "module": module, "moduleResolution": resolution},
        })
        .to_string()
    }

    /// Everything that is known before a check.
    fn base(&self) -> Option<CacheKey> {
        // tidy-allow(read): a check outside of sandboxes is of one's own program
        let locked = std::fs::read(self.locked.as_ref()?).ok()?;
        // tidy-allow(read): as above
        let tsconfig = std::fs::read(&self.tsconfig).unwrap_or_default();
        let revision = format!("{REVISION} {} {}", self.compiler, self.node_modules);
        Some(CacheKey::of([
            b"types".as_slice(),
            revision.as_bytes(),
            scripts::key().as_str().as_bytes(),
            self.entry.as_os_str().as_encoded_bytes(),
            &tsconfig,
            &locked,
        ]))
    }
}

/// `None` when a file is gone, and with it the verdict.
fn verdict_key(base: &CacheKey, files: &[PathBuf]) -> Option<CacheKey> {
    let contents: Option<Vec<Vec<u8>>> =
        // tidy-allow(read): as above
        files.iter().map(|file| std::fs::read(file).ok()).collect();
    let contents = contents?;
    let names = files.iter().map(|file| file.as_os_str().as_encoded_bytes());
    let parts = names.zip(contents.iter().map(Vec::as_slice));
    let parts = parts.flat_map(|(name, content)| [name, content]);
    Some(CacheKey::of(
        [base.as_str().as_bytes()].into_iter().chain(parts),
    ))
}
