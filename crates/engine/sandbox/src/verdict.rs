//! Why a program that was made to end was made to end, and what its failures have to do with the
//! sandbox.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::policy::{ProgramNetwork, ResourceLimits, SandboxPolicy};

/// What the helper tells the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HelperReport {
    /// The program was not run.
    Failed { step: String, reason: String },
    /// The program was made to end.
    Stopped { cause: ExceededLimit },
}

/// What a program used too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceededLimit {
    Memory { bytes: u64 },
    Processes { count: u64 },
    OpenFiles { count: u64 },
    TemporarySpace { bytes: u64 },
    TemporaryFiles { count: u64 },
    Output { bytes: u64 },
}

impl ExceededLimit {
    /// The setting that says how much it may be.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Memory { .. } => "engine.sandbox_memory_mib",
            Self::Processes { .. } => "engine.sandbox_processes",
            Self::OpenFiles { .. } => "engine.sandbox_open_files",
            Self::TemporarySpace { .. } => "engine.sandbox_temporary_mib",
            Self::TemporaryFiles { .. } => "engine.sandbox_temporary_files",
            Self::Output { .. } => "engine.sandbox_output_mib",
        }
    }
}

/// What was too much, and the setting that says so.
impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { bytes } => write!(f, "it used more than {} of memory", ByteSize(*bytes)),
            Self::Processes { count } => write!(f, "it ran {count} processes and threads"),
            Self::OpenFiles { count } => {
                write!(f, "one of its processes had {count} files open")
            }
            Self::TemporarySpace { bytes } => {
                write!(
                    f,
                    "it filled its temporary directory of {}",
                    ByteSize(*bytes)
                )
            }
            Self::TemporaryFiles { count } => write!(f, "it made {count} temporary files"),
            Self::Output { bytes } => write!(f, "it printed more than {}", ByteSize(*bytes)),
        }?;
        write!(f, "; the limit is set by {}", self.setting())
    }
}

struct ByteSize(u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let unit = units
            .iter()
            .find(|(_, bits)| self.0 >= 1 << bits && self.0.is_multiple_of(1 << bits));
        match unit {
            Some((name, bits)) => write!(f, "{} {name}", self.0 >> bits),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// What was used at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) memory_bytes: u64,
    pub(crate) processes: u64,
    /// Of the process that has most.
    pub(crate) open_files: u64,
    pub(crate) temporary_full: bool,
    pub(crate) temporary_files_full: bool,
}

impl Usage {
    /// The limit that was reached, if one was.
    pub(crate) fn judge(&self, limits: &ResourceLimits) -> Option<ExceededLimit> {
        // A program that opens as many files as it may has one more to open.
        let open_files = limits.open_files.saturating_sub(1);
        // Processes first: many of them have much memory together, which is not what is wrong.
        if self.processes >= limits.processes {
            let count = limits.processes;
            Some(ExceededLimit::Processes { count })
        } else if self.memory_bytes > limits.memory_bytes {
            let bytes = limits.memory_bytes;
            Some(ExceededLimit::Memory { bytes })
        } else if self.open_files >= open_files {
            let count = limits.open_files;
            Some(ExceededLimit::OpenFiles { count })
        } else if self.temporary_full {
            let bytes = limits.temporary_bytes;
            Some(ExceededLimit::TemporarySpace { bytes })
        } else if self.temporary_files_full {
            let count = limits.temporary_files;
            Some(ExceededLimit::TemporaryFiles { count })
        } else {
            None
        }
    }
}

/// Words that runtimes use, with what they have to do with the sandbox.
struct Hint {
    words: &'static [&'static str],
    says: &'static str,
}

const NO_NETWORK: Hint = Hint {
    words: &[
        // Nothing listens on a loopback of one's own, name servers included.
        "ECONNREFUSED",
        "Connection refused",
        "ENETUNREACH",
        "EAI_AGAIN",
        "ENOTFOUND",
        "EHOSTUNREACH",
        "Network is unreachable",
        "Temporary failure in name resolution",
        "Name or service not known",
        "fetch failed",
    ],
    says: "the program runs without network (network: none); if it needs one, give --network \
           full, set engine.sandbox_network to full, or write network: full for its stack in \
           the manifest of the deployment",
};

/// A program that fails at a limit by itself is gone before anybody stops it.
const OTHERS: [Hint; 5] = [
    Hint {
        words: &["EROFS", "Read-only file system"],
        says: "in the sandbox a program can write only to its temporary directory, which the \
               variable TMPDIR names",
    },
    Hint {
        words: &[
            "Array buffer allocation failed",
            "Cannot allocate memory",
            "ENOMEM",
            "MemoryError",
            "out of memory",
        ],
        says: "in the sandbox the memory of a program is limited by the setting \
               engine.sandbox_memory_mib",
    },
    Hint {
        words: &["EMFILE", "Too many open files"],
        says: "in the sandbox the open files of a process are limited by the setting \
               engine.sandbox_open_files",
    },
    Hint {
        words: &["ENOSPC", "No space left on device"],
        says: "in the sandbox temporary space is limited by the settings \
               engine.sandbox_temporary_mib and engine.sandbox_temporary_files",
    },
    Hint {
        words: &[
            "EAGAIN",
            "Resource temporarily unavailable",
            "can't start new thread",
        ],
        says: "in the sandbox the processes and threads of a program are limited by the setting \
               engine.sandbox_processes",
    },
];

/// What a failure's own words have to do with the sandbox, with what to do about it.
pub fn explain(words: &str, policy: &SandboxPolicy) -> Option<&'static str> {
    let network = (policy.network == ProgramNetwork::None).then_some(&NO_NETWORK);
    let mut hints = network.into_iter().chain(&OTHERS);
    let fits = |hint: &&Hint| hint.words.iter().any(|word| words.contains(word));
    hints.find(fits).map(|hint| hint.says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_the_limits_is_nobodys_business() {
        let limits = ResourceLimits::default();
        let usage = Usage {
            memory_bytes: limits.memory_bytes,
            processes: limits.processes - 1,
            open_files: limits.open_files - 2,
            ..Usage::default()
        };
        assert_eq!(usage.judge(&limits), None);
    }

    #[test]
    fn each_limit_has_its_own_name() {
        let limits = ResourceLimits::default();
        let usage = |change: fn(&mut Usage)| {
            let mut usage = Usage::default();
            change(&mut usage);
            let cause = usage.judge(&limits).expect("a limit was reached");
            cause.to_string()
        };
        assert_eq!(
            usage(|u| u.memory_bytes = u64::MAX),
            "it used more than 4 GiB of memory; the limit is set by engine.sandbox_memory_mib"
        );
        assert!(usage(|u| u.processes = 512).contains("512 processes"));
        assert!(usage(|u| u.open_files = 4096).contains("4096 files"));
        assert!(usage(|u| u.temporary_full = true).contains("512 MiB"));
        assert!(usage(|u| u.temporary_files_full = true).contains("50000 temporary files"));
    }

    /// A program that notices a limit before anybody else does names no setting itself.
    #[test]
    fn a_failure_at_a_limit_is_explained_by_its_setting() {
        for (words, setting) in [
            ("RangeError: Array buffer allocation failed", "memory_mib"),
            ("MemoryError", "memory_mib"),
            ("Error: EMFILE: too many open files, open 'x'", "open_files"),
            ("OSError: [Errno 24] Too many open files", "open_files"),
            ("Error: ENOSPC: no space left on device", "temporary_mib"),
            (
                "OSError: [Errno 28] No space left on device",
                "temporary_mib",
            ),
            ("Error: spawn sleep EAGAIN", "processes"),
            ("RuntimeError: can't start new thread", "processes"),
        ] {
            let hint = explain(words, &SandboxPolicy::default()).expect(words);
            let setting = format!("engine.sandbox_{setting}");
            assert!(hint.contains(&setting), "{words}: {hint}");
        }
    }

    #[test]
    fn a_missing_network_is_explained_only_where_it_is_missing() {
        let mut policy = SandboxPolicy::default();
        let words = "Error: getaddrinfo EAI_AGAIN example.com";
        let hint = explain(words, &policy).expect("a hint");
        assert!(hint.contains("network: none") && hint.contains("engine.sandbox_network"));
        assert_eq!(explain("TypeError: x is not a function", &policy), None);
        policy.network = ProgramNetwork::Full;
        assert_eq!(explain(words, &policy), None);
    }
}
