//! Programs that Nimbus starts or can work with.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures::future::join_all;
use tokio::process::Command;
use tokio::time::timeout;

use super::fix::SystemPackages;
use super::{CheckGroup, CheckState, DoctorCheck};

/// A program that does not say its version within this time is broken.
const PATIENCE: Duration = Duration::from_secs(10);

struct RequiredTool {
    id: &'static str,
    title: &'static str,
    /// Names to look for, the first that is found counts.
    programs: &'static [&'static str],
    version_argument: &'static str,
    minimum: (u32, u32),
    needed_for: &'static str,
    packages: SystemPackages,
}

const TOOLS: &[RequiredTool] = &[
    RequiredTool {
        id: "node",
        title: "Node.js",
        programs: &["node"],
        version_argument: "--version",
        minimum: (22, 0),
        needed_for: "TypeScript and JavaScript programs",
        packages: SystemPackages {
            apt: Some("nodejs"),
            dnf: Some("nodejs"),
            apk: Some("nodejs"),
            pacman: Some("nodejs"),
            zypper: Some("nodejs22"),
            brew: Some("node"),
            page: "https://nodejs.org/en/download",
        },
    },
    RequiredTool {
        id: "npm",
        title: "npm",
        programs: &["npm"],
        version_argument: "--version",
        minimum: (8, 0),
        needed_for: "dependencies of TypeScript and JavaScript programs",
        packages: SystemPackages {
            apt: Some("npm"),
            dnf: Some("npm"),
            apk: Some("npm"),
            pacman: Some("npm"),
            zypper: Some("npm22"),
            brew: Some("node"),
            page: "https://nodejs.org/en/download",
        },
    },
    RequiredTool {
        id: "python",
        title: "Python",
        programs: &["python3", "python"],
        version_argument: "--version",
        minimum: (3, 9),
        needed_for: "Python programs",
        packages: SystemPackages {
            apt: Some("python3 python3-venv"),
            dnf: Some("python3"),
            apk: Some("python3"),
            pacman: Some("python"),
            zypper: Some("python3"),
            brew: Some("python"),
            page: "https://www.python.org/downloads",
        },
    },
    RequiredTool {
        id: "pulumi",
        title: "Pulumi CLI",
        programs: &["pulumi"],
        version_argument: "version",
        minimum: (3, 0),
        needed_for: "the `pulumi` engine; the embedded engine does without",
        packages: SystemPackages {
            apt: None,
            dnf: None,
            apk: None,
            pacman: Some("pulumi"),
            zypper: None,
            brew: Some("pulumi/tap/pulumi"),
            page: "https://www.pulumi.com/docs/install",
        },
    },
    RequiredTool {
        id: "postgres",
        title: "PostgreSQL server",
        programs: &["postgres"],
        version_argument: "--version",
        minimum: (15, 0),
        needed_for: "a private database of the server; `nimbus up` fetches one with npm, and db.host needs none",
        packages: POSTGRES,
    },
    RequiredTool {
        id: "initdb",
        title: "PostgreSQL initdb",
        programs: &["initdb"],
        version_argument: "--version",
        minimum: (15, 0),
        needed_for: "a private database of the server; `nimbus up` fetches one with npm, and db.host needs none",
        packages: POSTGRES,
    },
    RequiredTool {
        id: "temporal",
        title: "Temporal",
        programs: &["temporal"],
        version_argument: "--version",
        minimum: (1, 0),
        needed_for: "workflows on Temporal; the embedded runtime does without",
        packages: SystemPackages {
            apt: None,
            dnf: None,
            apk: None,
            pacman: None,
            zypper: None,
            brew: Some("temporal"),
            page: "https://docs.temporal.io/cli/setup-cli",
        },
    },
];

const POSTGRES: SystemPackages = SystemPackages {
    apt: Some("postgresql"),
    dnf: Some("postgresql-server"),
    apk: Some("postgresql"),
    pacman: Some("postgresql"),
    zypper: Some("postgresql-server"),
    brew: Some("postgresql@17"),
    page: "https://www.postgresql.org/download",
};

pub(super) async fn check_all() -> Vec<DoctorCheck> {
    join_all(TOOLS.iter().map(check)).await
}

async fn check(tool: &RequiredTool) -> DoctorCheck {
    let found = |detail: String| DoctorCheck::ok(tool.id, CheckGroup::Programs, tool.title, detail);
    let Some(path) = find(tool.programs) else {
        let detail = format!("not found; for {}", tool.needed_for);
        return found(detail).state(CheckState::Missing, fix(tool));
    };
    let place = path.display();
    let Some(output) = version_text(&path, tool.version_argument).await else {
        let detail = format!("{place} does not answer `{}`", tool.version_argument);
        return found(detail).state(CheckState::Failed, fix(tool));
    };
    let Some(version) = ToolVersion::find(&output) else {
        let detail = format!("{place} does not say which version it is");
        return found(detail).state(CheckState::Warning, fix(tool));
    };
    let detail = format!("{} at {place}", version.text);
    if version.number < tool.minimum {
        let (major, minor) = tool.minimum;
        let detail = format!(
            "{detail}, older than {major}.{minor}; for {}",
            tool.needed_for
        );
        // A package manager that has the old one has no newer one under the same name.
        let fix = format!(
            "install {major}.{minor} or newer, see {}",
            tool.packages.page
        );
        return found(detail).state(CheckState::Failed, fix);
    }
    found(detail)
}

fn fix(tool: &RequiredTool) -> String {
    tool.packages
        .install(|manager| which::which(manager).is_ok())
}

fn find(programs: &[&str]) -> Option<PathBuf> {
    programs.iter().find_map(|program| {
        which::which(program)
            .ok()
            .or_else(|| find_beside_postgres(program))
    })
}

/// Debian keeps the server's programs out of the `PATH`, a directory per major version.
fn find_beside_postgres(program: &str) -> Option<PathBuf> {
    if !matches!(program, "postgres" | "initdb") {
        return None;
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin").join(program)))
        .filter(|path| path.is_file())
        .max()
}

async fn version_text(program: &Path, argument: &str) -> Option<String> {
    let output = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        // tidy-allow(start): tools on the operator's search path
        .output();
    let output = timeout(PATIENCE, output).await.ok()?.ok()?;
    let text = [output.stdout, output.stderr].concat();
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&text).into_owned())
}

#[derive(Debug, PartialEq, Eq)]
struct ToolVersion {
    text: String,
    number: (u32, u32),
}

impl ToolVersion {
    /// The first thing in a text that looks like `1.2` or `v1.2.3`.
    fn find(text: &str) -> Option<Self> {
        let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
        words.map(|word| word.trim_matches('.')).find_map(|word| {
            let mut parts = word.split('.');
            let major = parts.next()?.parse().ok()?;
            let minor = parts.next()?.parse().ok()?;
            Some(Self {
                text: word.to_owned(),
                number: (major, minor),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (text, version, number) in [
            ("v20.20.1\n", "20.20.1", (20, 20)),
            ("Python 3.11.2", "3.11.2", (3, 11)),
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
                "15.18",
                (15, 18),
            ),
            (
                "temporal version 1.9.1 (Server 1.32.0, UI 2.1)",
                "1.9.1",
                (1, 9),
            ),
            ("11.4.2\n", "11.4.2", (11, 4)),
        ] {
            let expected = ToolVersion {
                text: version.into(),
                number,
            };
            assert_eq!(ToolVersion::find(text), Some(expected), "{text}");
        }
        for text in ["", "no number", "7", "...", "a.b"] {
            assert_eq!(ToolVersion::find(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn a_program_that_is_nowhere_is_missing_with_a_fix() {
        let tool = RequiredTool {
            programs: &["nimbus-no-such-program"],
            ..first_tool()
        };
        let check = check(&tool).await;
        assert_eq!(check.state, CheckState::Missing);
        assert!(!check.fix.unwrap().is_empty());
        assert!(!check.required, "no program is needed by every command");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn old_and_broken_programs_are_told_apart() {
        // The shell answers with what it is given: a version, nothing, or a failure.
        let shell = |argument| RequiredTool {
            programs: &["true"],
            version_argument: argument,
            ..first_tool()
        };
        assert_eq!(
            check(&shell("--x")).await.state,
            CheckState::Warning,
            "says no version"
        );
        let failing = RequiredTool {
            programs: &["false"],
            ..first_tool()
        };
        assert_eq!(check(&failing).await.state, CheckState::Failed);
        let old = RequiredTool {
            programs: &["echo"],
            version_argument: "v1.2.3",
            ..first_tool()
        };
        let check = check(&old).await;
        assert_eq!(check.state, CheckState::Failed);
        assert!(check.detail.contains("older than 20.0"), "{}", check.detail);
        let fix = check.fix.as_deref().unwrap_or_default();
        assert!(
            fix.starts_with("install 20.0 or newer, see https://"),
            "{fix}"
        );
        let new = RequiredTool {
            programs: &["echo"],
            version_argument: "v20.0.0",
            ..first_tool()
        };
        assert_eq!(super::check(&new).await.state, CheckState::Ok);
    }

    fn first_tool() -> RequiredTool {
        RequiredTool {
            id: "node",
            title: "Node.js",
            programs: &["node"],
            version_argument: "--version",
            minimum: (20, 0),
            needed_for: "programs",
            packages: POSTGRES,
        }
    }
}
