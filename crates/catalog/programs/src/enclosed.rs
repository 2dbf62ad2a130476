//! Reads programs in a process of its own, with limits.
//!
//! A parser's time and memory are not bounded by the length of what it reads: a few kilobytes of labels or `<` inside
//! of each other take gigabytes, or a processor for minutes, and which texts do is the parser's to know. Nothing stops
//! a thread. So the program that serves starts itself again, with a limit of memory and time from the kernel, gives it
//! the files, and ends it when it does not answer. It has no variables of the server's and opens no file.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nimbus_catalog::{ProgramLanguage, ProgramSurface, SourceProblem, SurfaceReader};
use nimbus_engine_process::{CodeOrigin, spawn_blocking};
use serde::{Deserialize, Serialize};

use crate::ProgramReader;

/// The first argument that makes a program the reader.
const READ: &str = "internal-surface";
/// What is shown of a program is not longer than the program, in a form that is a few times as long.
const MOST_ANSWER_BYTES: u64 = 16 << 20;
/// What is read; more than a server takes.
const MOST_INPUT_BYTES: u64 = 16 << 20;

/// How much reading one program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingLimits {
    /// With the parser's stack, of which 512 MiB are set aside and few are used.
    pub memory_bytes: u64,
    pub time: Duration,
}

impl Default for ReadingLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            time: Duration::from_secs(10),
        }
    }
}

/// Reads programs of both languages, each in a process of its own.
#[derive(Clone, Debug)]
pub struct EnclosedReader {
    program: PathBuf,
    limits: ReadingLimits,
}

/// What the process is given.
#[derive(Debug, Serialize, Deserialize)]
struct ReadingInput<'a> {
    language: ProgramLanguage,
    files: Cow<'a, BTreeMap<String, String>>,
}

type ReadingAnswer = Result<ProgramSurface, Vec<SourceProblem>>;

impl EnclosedReader {
    /// `program` calls [`read_if_asked`] before it does anything else.
    pub fn new(program: PathBuf, limits: ReadingLimits) -> Self {
        Self { program, limits }
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command
            .arg(READ)
            .arg(self.limits.memory_bytes.to_string())
            .arg(self.limits.time.as_secs().max(1).to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        spawn_blocking(&mut command, CodeOrigin::Ours)
    }

    /// What the process says, or nothing if it ended early or was ended.
    fn ask(&self, input: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        let mut child = self.start()?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            end(&mut child);
            return Err(io::Error::other("the reader has no pipes"));
        };
        // Both end with the process, whoever ends it: the other side of their pipes is gone then.
        thread::spawn(move || stdin.write_all(&input));
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let mut answer = Vec::new();
            let read = stdout.take(MOST_ANSWER_BYTES).read_to_end(&mut answer);
            // Nobody waits any more for one that comes too late.
            let _ = send.send(read.map(|_| answer));
        });
        let answer = receive.recv_timeout(self.limits.time);
        let ended = match &answer {
            Ok(_) => child.wait().is_ok_and(|status| status.success()),
            Err(_) => false,
        };
        end(&mut child);
        match answer {
            Ok(answer) if ended => answer.map(Some),
            Ok(_) | Err(_) => Ok(None),
        }
    }
}

/// Ends a process, if it is still there, and waits until it is gone.
fn end(child: &mut Child) {
    // An error is a process that has ended.
    let _ = child.kill();
    let _ = child.wait();
}

impl SurfaceReader for EnclosedReader {
    fn read(
        &self,
        language: ProgramLanguage,
        files: &BTreeMap<String, String>,
    ) -> Result<ProgramSurface, Vec<SourceProblem>> {
        let told = |message: String| {
            vec![SourceProblem {
                file: "src".to_owned(),
                line: None,
                message,
            }]
        };
        let input = ReadingInput {
            language,
            files: Cow::Borrowed(files),
        };
        let input = serde_json::to_vec(&input)
            .map_err(|error| told(format!("it cannot be given to the reader: {error}")))?;
        let answer = self
            .ask(input)
            .map_err(|error| told(format!("it cannot be read now: {error}")))?;
        let answer: Option<ReadingAnswer> =
            answer.and_then(|answer| serde_json::from_slice(&answer).ok());
        answer.unwrap_or_else(|| {
            Err(told(format!(
                "reading it takes more than {} MiB or {} seconds; make it simpler",
                self.limits.memory_bytes >> 20,
                self.limits.time.as_secs()
            )))
        })
    }
}

/// Does the reader's work if the arguments of this process ask for it. The program of an [`EnclosedReader`] calls this
/// before it does anything else.
pub fn read_if_asked(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != READ {
        return None;
    }
    let mut number = || arguments.next()?.to_str()?.parse::<u64>().ok();
    let (Some(memory), Some(seconds)) = (number(), number()) else {
        return Some(ExitCode::FAILURE);
    };
    let done = limit(memory, seconds).and_then(|()| answer());
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn answer() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().take(MOST_INPUT_BYTES).read_to_end(&mut text)?;
    let input: ReadingInput<'_> = serde_json::from_slice(&text)?;
    let answer: ReadingAnswer = ProgramReader.read(input.language, &input.files);
    io::stdout().write_all(&serde_json::to_vec(&answer)?)
}

/// The kernel's own limits, so that they hold when nobody is left who waits.
#[cfg(unix)]
fn limit(memory_bytes: u64, seconds: u64) -> io::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    for (resource, value) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_DATA, memory_bytes),
        (Resource::RLIMIT_CPU, seconds),
        (Resource::RLIMIT_FSIZE, 0),
    ] {
        let (_, most) = getrlimit(resource)?;
        let value = value.min(most);
        setrlimit(resource, value, value)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn limit(_memory_bytes: u64, _seconds: u64) -> io::Result<()> {
    Ok(())
}
