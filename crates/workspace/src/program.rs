//! The files that make up a stack's program, for its fingerprint. Which files those are is decided
//! in `nimbus-engine-files`, for skips and for sealed plans alike.

use std::io;
use std::path::Path;

use nimbus_engine_files::{ProgramFile, ProjectFiles, is_source};
use nimbus_orchestrator::{Fingerprint, FingerprintInput};

/// Adds everything that the program in `directory` consists of, as a sealed plan sees it too, as far
/// as its files may be read.
pub fn add_program(
    fingerprint: &mut Fingerprint,
    files: &ProjectFiles,
    directory: &Path,
) -> io::Result<()> {
    for (name, digest) in files.program_digests(directory, None)? {
        fingerprint.add_digest(FingerprintInput::ProgramFile(name), &digest);
    }
    Ok(())
}

/// Files that name packages besides sources.
const PACKAGES: &[&str] = &["package.json", "requirements.txt", "pyproject.toml"];

/// Whether a program's sources or its lists of packages have one of these texts in them. A comment
/// counts too: whoever asks wants to know what might be needed.
pub fn mentions(files: &ProjectFiles, directory: &Path, texts: &[&str]) -> bool {
    let tells = |file: &Path| {
        is_source(file)
            || file
                .file_name()
                .is_some_and(|name| PACKAGES.iter().any(|list| name == *list))
    };
    let has_one = |file: &Path| {
        files
            .read_to_string(file)
            .is_ok_and(|content| texts.iter().any(|text| content.contains(text)))
    };
    // A program that is not there needs nothing.
    let found = files.program_directory(directory).unwrap_or_default();
    found.iter().any(|file| match file {
        ProgramFile::Content(path) => tells(path) && has_one(path),
        ProgramFile::Link(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const OWN: &ProjectFiles = &ProjectFiles::UNRESTRICTED;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for (name, text) in files {
                let path = tree.0.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            tree
        }
    }

    #[test]
    fn a_fingerprint_has_every_file_of_the_program_and_no_other() {
        let tree = Tree::new(&[
            ("network/src/index.ts", "import '../../lib';"),
            ("network/src/Pulumi.dev.yaml", "config: {}"),
            ("network/src/node_modules/x/index.js", ""),
            ("lib.ts", ""),
            ("package-lock.json", "{}"),
        ]);
        let directory = tree.0.path().join("network/src");
        fs::create_dir_all(tree.0.path().join("tools/templates")).unwrap();
        let mut fingerprint = Fingerprint::default();
        add_program(&mut fingerprint, OWN, &directory).unwrap();
        let inputs: Vec<_> = fingerprint
            .inputs()
            .map(|(input, _)| input.to_string())
            .collect();
        assert_eq!(
            inputs,
            [
                "file ../../lib.ts",
                "file ../../package-lock.json (whole: it is not of version 2 or 3)",
                "file index.ts"
            ]
        );
    }

    #[test]
    fn packages_are_found_in_sources_and_lists_but_not_in_what_is_installed() {
        let tree = Tree::new(&[
            ("ts/index.ts", "import * as aws from \"@pulumi/aws\";\n"),
            ("py/requirements.txt", "pulumi-aws>=6\n"),
            ("none/index.ts", "export const a = 1;\n"),
            ("none/README.md", "@pulumi/aws\n"),
            ("none/node_modules/x/package.json", "\"@pulumi/aws\"\n"),
        ]);
        let found = |name: &str| {
            mentions(
                OWN,
                &tree.0.path().join(name),
                &["@pulumi/aws", "pulumi-aws"],
            )
        };
        assert!(found("ts") && found("py"));
        assert!(!found("none") && !found("missing"));
    }
}
