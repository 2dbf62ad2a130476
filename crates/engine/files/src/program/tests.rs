use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(tree.0.path().join(WORKSPACE)).unwrap();
        for (name, text) in files {
            tree.write(name, text);
        }
        tree
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self) -> BTreeMap<String, FileDigest> {
        self.read_by(&ProjectFiles::UNRESTRICTED)
    }

    fn read_by(&self, files: &ProjectFiles) -> BTreeMap<String, FileDigest> {
        let source = self.0.path().join("network/src");
        files.program_digests(&source, None).unwrap()
    }

    fn names(&self) -> Vec<String> {
        self.program().into_keys().collect()
    }
}

fn digest_of(text: &str) -> FileDigest {
    Sha256::digest(text).into()
}

#[test]
fn packages_are_looked_for_up_to_the_workspace_or_the_repository() {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("a/b/src");
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("index.ts"), "1").unwrap();
    for folder in ["", "a", "a/b"] {
        fs::write(temp.path().join(folder).join("package-lock.json"), "{}").unwrap();
    }
    let above = || {
        let files = ProjectFiles::UNRESTRICTED;
        let found = files.program_digests(&source, None).unwrap();
        found.len() - 1
    };
    assert_eq!(above(), 0, "nobody says whose these are");
    fs::create_dir(temp.path().join("a").join(REPOSITORY)).unwrap();
    assert_eq!(above(), 2);
    fs::create_dir_all(temp.path().join("a/b").join(WORKSPACE)).unwrap();
    assert_eq!(above(), 1);
}

#[test]
fn a_workspace_inside_of_a_program_is_not_of_it() {
    let temp = tempfile::tempdir().unwrap();
    for name in ["index.ts", "lib/a.ts", "cloud/deploy/D1/manifest.yaml"] {
        let path = temp.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "1").unwrap();
    }
    fs::create_dir_all(temp.path().join("cloud").join(WORKSPACE)).unwrap();
    let files = ProjectFiles::UNRESTRICTED;
    let found = files.program_digests(temp.path(), None).unwrap();
    assert_eq!(
        found.into_keys().collect::<Vec<_>>(),
        ["index.ts", "lib/a.ts"]
    );
}

#[test]
fn a_plan_beside_its_program_is_not_of_it() {
    let tree = Tree::new(&[
        ("network/src/index.ts", "1"),
        ("network/src/plan.json", "1"),
    ]);
    let source = tree.0.path().join("network/src");
    let plan = source.join("plan.json");
    let files = ProjectFiles::UNRESTRICTED;
    let found = files.program_digests(&source, Some(&plan)).unwrap();
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["index.ts"]);
}

#[test]
fn code_and_lock_file_count_and_installed_packages_do_not() {
    let tree = Tree::new(&[
        ("network/src/index.ts", "1"),
        ("network/src/bin/tool.js", "1"),
        ("network/src/node_modules/x/y.js", "1"),
        ("package-lock.json", "{}"),
    ]);
    let names = [
        "../../package-lock.json (whole: it is not of version 2 or 3)",
        "bin/tool.js",
        "index.ts",
    ];
    assert_eq!(tree.names(), names);

    let first = tree.program();
    tree.write("network/src/node_modules/x/y.js", "2");
    assert_eq!(tree.program(), first);
    tree.write("package-lock.json", "{\"a\":1}");
    assert_ne!(tree.program(), first, "other packages may be installed");
    let second = tree.program();
    tree.write("network/src/vpc.ts", "2");
    assert_ne!(tree.program(), second);
}

/// One lock file of two members: each reads its own packages of it, linked ones' and those that a source names.
#[test]
fn a_shared_lock_file_counts_as_far_as_the_program_reads_it() {
    let lock = |aws: &str, left: &str, deep: &str, other: &str, stray: &str| {
        format!(
            r#"{{"lockfileVersion": 3, "packages": {{
            "": {{"workspaces": ["*/src", "shared"]}},
            "network/src": {{"dependencies": {{"aws": "1", "@cloud/shared": "1"}}}},
            "other/src": {{"dependencies": {{"other": "1"}}}},
            "shared": {{"dependencies": {{"left": "1"}}}},
            "node_modules/@cloud/shared": {{"resolved": "shared", "link": true}},
            "node_modules/aws": {{"version": "{aws}", "dependencies": {{"deep": "1"}}}},
            "node_modules/aws/node_modules/deep": {{"version": "{deep}"}},
            "node_modules/deep": {{"version": "{other}"}},
            "node_modules/left": {{"version": "{left}"}},
            "node_modules/other": {{"version": "{other}"}},
            "node_modules/stray": {{"version": "{stray}"}}
            }}}}"#
        )
    };
    let first = lock("1", "1", "1", "1", "1");
    let tree = Tree::new(&[
        (
            "network/src/index.ts",
            "import 'aws';\nrequire('stray/lib');",
        ),
        (
            "network/src/package.json",
            r#"{"dependencies": {"aws": "1", "@cloud/shared": "1"}}"#,
        ),
        ("shared/package.json", r#"{"dependencies": {"left": "1"}}"#),
        ("package.json", r#"{"workspaces": ["*/src", "shared"]}"#),
        ("package-lock.json", &first),
    ]);
    let before = tree.program();
    assert!(before.contains_key("../../package-lock.json"), "{before:?}");
    tree.write("package-lock.json", &lock("1", "1", "1", "2", "1"));
    assert_eq!(tree.program(), before, "packages of another member");
    for read in [
        lock("2", "1", "1", "1", "1"),
        lock("1", "2", "1", "1", "1"),
        lock("1", "1", "2", "1", "1"),
        lock("1", "1", "1", "1", "2"),
    ] {
        tree.write("package-lock.json", &read);
        assert_ne!(tree.program(), before, "{read}");
    }
}

#[test]
fn linked_packages_count_beside_files_of_the_same_name() {
    let tree = Tree::new(&[
        ("network/src/index.ts", "1"),
        (
            "network/src/package.json",
            r#"{"dependencies": {"@cloud/shared": "1", "@pulumi/aws": "7"}}"#,
        ),
        ("shared/index.ts", "1"),
        (
            "shared/package.json",
            r#"{"dependencies": {"@cloud/names": "1"}}"#,
        ),
        ("names/index.ts", "1"),
        ("other/index.ts", "1"),
        ("node_modules/@pulumi/aws/index.js", "1"),
    ]);
    let links = tree.0.path().join("node_modules/@cloud");
    fs::create_dir_all(&links).unwrap();
    for name in ["shared", "names", "other"] {
        symlink(format!("../../{name}"), links.join(name)).unwrap();
    }
    let names = [
        "@cloud/names/index.ts",
        "@cloud/shared/index.ts",
        "@cloud/shared/package.json",
        "index.ts",
        "package.json",
    ];
    assert_eq!(tree.names(), names);
    for changed in ["network/src/index.ts", "shared/index.ts", "names/index.ts"] {
        let before = tree.program();
        tree.write(changed, "2");
        let after = tree.program();
        let changed_files = after
            .iter()
            .filter(|(name, content)| before[*name] != **content);
        assert_eq!(changed_files.count(), 1, "{changed}");
    }
}

#[test]
fn what_a_source_file_names_outside_of_the_program_counts() {
    let tree = Tree::new(&[
        (
            "network/src/index.ts",
            "import {a} from \"../../lib/a\";\nnew FileArchive('../../app');\n\
             const up = '../..'; `../${x}`; '../../nothing'",
        ),
        ("lib/a.ts", "export * from '../other/b.js'"),
        ("lib/unused.ts", ""),
        ("other/b.ts", ""),
        ("app/server/main.py", ""),
    ]);
    let names = [
        "../../app/server/main.py",
        "../../lib/a.ts",
        "../../other/b.ts",
        "index.ts",
    ];
    assert_eq!(tree.names(), names);
}

#[test]
fn a_linked_file_counts_as_what_it_leads_to() {
    let tree = Tree::new(&[("network/src/index.ts", "1"), ("elsewhere.txt", "1")]);
    let link = tree.0.path().join("network/src/data.txt");
    symlink("../../elsewhere.txt", link).unwrap();
    let before = tree.program();
    tree.write("elsewhere.txt", "2");
    assert_ne!(tree.program(), before);
}

#[test]
fn configuration_of_stacks_and_what_tools_keep_are_not_of_the_program() {
    let tree = Tree::new(&[("network/src/index.ts", "1")]);
    let before = tree.program();
    for name in [
        "Pulumi.dev.yaml",
        "Pulumi.prod.yml",
        ".git/HEAD",
        ".pulumi/stacks/dev.json",
        ".nimbus/state/x",
        ".mypy_cache/x",
        "venv/bin/python",
    ] {
        tree.write(&format!("network/src/{name}"), "x");
        assert_eq!(tree.program(), before, "{name}");
    }
    tree.write("network/src/Pulumi.yaml", "name: network");
    assert_ne!(tree.program(), before);
}

#[test]
fn a_link_that_leads_nowhere_counts_as_its_text() {
    let tree = Tree::new(&[("network/src/index.ts", "1")]);
    symlink("../nothing", tree.0.path().join("network/src/data")).unwrap();
    assert_eq!(tree.program()["data"], digest_of("../nothing"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_strangers_program_is_its_own_files_and_a_link_out_of_it_is_refused() {
    let tree = Tree::new(&[
        ("network/src/index.ts", "import '../../secret';"),
        ("package-lock.json", "{}"),
        ("secret.ts", "1"),
    ]);
    let source = tree.0.path().join("network/src");
    let restricted = ProjectFiles::beneath(&source, &[]).unwrap();
    let found = tree.read_by(&restricted);
    let names = [
        "../../package-lock.json (whole: it is not of version 2 or 3)",
        "index.ts",
    ];
    assert_eq!(found.into_keys().collect::<Vec<_>>(), names);
    symlink("../../secret.ts", source.join("link.ts")).unwrap();
    let refused = restricted.program_digests(&source, None).unwrap_err();
    assert!(is_outside(&refused), "{refused}");
}
