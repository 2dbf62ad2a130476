//! What a plan was made for: the parts of the world that must not move until it is carried out.

use std::fmt;
use std::io;
use std::path::Path;

use nimbus_engine_files::ProjectFiles;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Digests are hexadecimal sha256.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Seal {
    pub(crate) project: String,
    pub(crate) stack: String,
    /// Names the recorded state that the plan starts from.
    pub(crate) state: String,
    /// The stack's configuration as it is written down, secrets still encrypted.
    pub(crate) config: String,
    /// Every file of the program that is not installed or generated.
    pub(crate) program: String,
}

/// A part that moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedPart {
    Project,
    Stack,
    State,
    Config,
    Program,
}

impl fmt::Display for SealedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Project => "it is for another project",
            Self::Stack => "it is for another stack",
            Self::State => "the recorded state has changed",
            Self::Config => "the stack's configuration has changed",
            Self::Program => "the program's files have changed",
        })
    }
}

impl Seal {
    /// What is not as it was, with the most telling part first.
    pub(crate) fn moved(&self, now: &Self) -> Vec<SealedPart> {
        let parts = [
            (SealedPart::Project, self.project == now.project),
            (SealedPart::Stack, self.stack == now.stack),
            (SealedPart::State, self.state == now.state),
            (SealedPart::Config, self.config == now.config),
            (SealedPart::Program, self.program == now.program),
        ];
        parts
            .into_iter()
            .filter_map(|(part, same)| (!same).then_some(part))
            .collect()
    }
}

/// The digest of a program's files: their names and contents. `except` is the plan itself, which
/// may well lie beside the program; files of stack configuration are sealed apart. Which files there
/// are is decided where a skip decides it too.
pub(crate) fn program_digest(
    files: &ProjectFiles,
    root: &Path,
    except: Option<&Path>,
) -> io::Result<String> {
    let mut total = Sha256::new();
    for (name, content) in files.program_digests(root, except)? {
        total.update(u64::try_from(name.len()).unwrap_or(u64::MAX).to_be_bytes());
        total.update(name.as_bytes());
        total.update(content);
    }
    Ok(hex::encode(total.finalize()))
}

pub(crate) fn text_digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use nimbus_orchestrator::Fingerprint;
    use nimbus_workspace::add_program;

    use super::*;

    fn seal() -> Seal {
        Seal {
            project: "p".into(),
            stack: "s".into(),
            state: "1".into(),
            config: "c".into(),
            program: "f".into(),
        }
    }

    #[test]
    fn every_part_that_moved_is_named() {
        assert_eq!(seal().moved(&seal()), []);
        let now = Seal {
            state: "2".into(),
            program: "g".into(),
            ..seal()
        };
        assert_eq!(seal().moved(&now), [SealedPart::State, SealedPart::Program]);
        let elsewhere = Seal {
            stack: "t".into(),
            ..seal()
        };
        assert_eq!(seal().moved(&elsewhere), [SealedPart::Stack]);
    }

    #[test]
    fn a_program_is_its_files_and_not_what_tools_put_beside_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("index.ts", "one");
        write("Pulumi.yaml", "name: p");
        let plan = root.join("plan.json");
        let digest = || program_digest(&ProjectFiles::UNRESTRICTED, root, Some(&plan)).unwrap();
        let first = digest();
        for (name, text) in [
            ("node_modules/x/index.js", "installed"),
            ("Pulumi.dev.yaml", "config: {}"),
            (".git/HEAD", "ref"),
            ("plan.json", "{}"),
        ] {
            write(name, text);
            assert_eq!(digest(), first, "{name}");
        }
        write("src/lib.ts", "new");
        let second = digest();
        assert_ne!(second, first);
        fs::rename(root.join("src/lib.ts"), root.join("src/other.ts")).unwrap();
        assert_ne!(digest(), second, "a name is part of a program");
        write("Pulumi.yaml", "name: q");
        assert_ne!(digest(), second);
    }

    /// Whatever is changed, removed or added: both see it, or neither does.
    #[test]
    fn a_seal_and_a_skip_agree_on_what_a_program_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("cloud");
        let source = root.join("stacks/network/src");
        let write = |name: &str, text: &str| {
            let path = source.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        fs::create_dir_all(root.join("tools/templates")).unwrap();
        write(
            "index.ts",
            "import '../../../lib/a'; new FileAsset('../data.json');",
        );
        write(
            "package.json",
            r#"{"dependencies": {"linked": "1", "installed": "1"}}"#,
        );
        write("../../../packages/linked/index.ts", "1");
        fs::create_dir_all(root.join("stacks/node_modules")).unwrap();
        let link = |target: &str, place: &str| symlink(target, root.join(place)).unwrap();
        link("../../packages/linked", "stacks/node_modules/linked");
        write("../outside.txt", "1");
        link("../outside.txt", "stacks/network/src/link.txt");

        let seal = || program_digest(&ProjectFiles::UNRESTRICTED, &source, None).unwrap();
        let skip = || {
            let mut fingerprint = Fingerprint::default();
            add_program(&mut fingerprint, &ProjectFiles::UNRESTRICTED, &source).unwrap();
            fingerprint.digest()
        };
        // The kind of file, and whether it is of the program.
        let kinds = [
            ("index.ts", true),
            ("lib/helper.py", true),
            ("Pulumi.yaml", true),
            ("package.json", true),
            ("requirements.txt", true),
            ("some.data", true),
            ("../outside.txt", true),
            ("../data.json", true),
            ("../../../lib/a.ts", true),
            ("../../../packages/linked/index.ts", true),
            ("../../package-lock.json", true),
            ("../../../tsconfig.json", true),
            ("../../../../package.json", false),
            ("../unrelated.ts", false),
            ("../../other/src/index.ts", false),
            ("Pulumi.dev.yaml", false),
            ("Pulumi.prod.yml", false),
            ("node_modules/installed/index.js", false),
            ("../../node_modules/installed/index.js", false),
            ("__pycache__/a.pyc", false),
            ("venv/bin/python", false),
            (".venv/bin/python", false),
            (".git/HEAD", false),
            (".mypy_cache/x", false),
            (".nimbus/state/x", false),
            (".pulumi/stacks/dev.json", false),
        ];
        for (name, counts) in kinds {
            let mut before = (seal(), skip());
            let texts = ["// one", "// two"].map(|text| match name {
                "index.ts" => format!("import '../../../lib/a'; '../data.json'; {text}"),
                "package.json" => format!(r#"{{"dependencies": {{"linked": "{text}"}}}}"#),
                _ => text.to_owned(),
            });
            for text in texts {
                write(name, &text);
                let after = (seal(), skip());
                assert_eq!(after.0 != before.0, counts, "the seal of {name}");
                assert_eq!(after.1 != before.1, counts, "the skip of {name}");
                before = after;
            }
        }
    }
}
