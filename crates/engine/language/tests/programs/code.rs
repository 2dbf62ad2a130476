//! What the JavaScript engine made of modules is kept, and no program can tell.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Bench, node_sdk, typescript};

/// What a program could notice: how modules are loaded, their traces, what they know of each other.
const CURIOUS: &str = r#"
import * as pulumi from "@pulumi/pulumi";
const inner = require("curious/inner");
export const variables = Object.keys(process.env).filter((name) => /^NIMBUS_(?!TEST_|TYPESCRIPT)/.test(name)).join();
export const main = require.main?.filename.endsWith("cmd/run/index.js") && inner.main === require.main;
export const parts = [require.cache[require.resolve("curious/inner")] === inner.self, typeof require.extensions[".js"]].join();
export const same = inner.cache === require.cache && inner.extensions === require.extensions && inner.found === require.resolve("curious/lazy");
export const paths = require.resolve.paths("x")!.length > 0 && inner.paths > 0;
export const parent = inner.self.parent.filename.endsWith("index.ts") && module.children.includes(inner.self);
export const where = inner.where;
export const loaded = inner.later().then((later: any) => later.word);
export const missing = (() => { try { require("curious/broken"); return ""; } catch (error: any) { return error.name; } })();
export const strict = inner.strict;
export const version = typeof pulumi.version;
"#;

const INNER: &str = "exports.where = new Error('x').stack.split('\\n')[1].replace(/.*inner/, 'inner'); exports.self = module;
exports.later = require('./lazy').later; exports.strict = (function () { return this === undefined; })();
exports.main = require.main; exports.cache = require.cache; exports.extensions = require.extensions;
exports.found = require.resolve('./lazy'); exports.paths = require.resolve.paths('x').length;
";

fn curious(sdk: &Path) -> Bench {
    let files = [
        ("curious/inner.js", INNER),
        (
            "curious/lazy.js",
            "exports.later = () => import('./later.mjs');",
        ),
        ("curious/later.mjs", "export const word = 'later';"),
        ("curious/broken.js", "this is no program"),
    ];
    with_packages(typescript(sdk, CURIOUS), sdk, &files)
}

/// Installs files beside the SDK: of what is not installed nothing is kept.
fn with_packages(bench: Bench, sdk: &Path, files: &[(&str, &str)]) -> Bench {
    let modules = bench.directory.path().join("node_modules");
    fs::remove_file(&modules).expect("a link to all of the SDK's");
    for (name, text) in files {
        let file = modules.join(name);
        fs::create_dir_all(file.parent().expect("a package")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    for name in ["@pulumi", "typescript", "source-map-support"] {
        let installed = sdk.join("node_modules").join(name);
        std::os::unix::fs::symlink(installed, modules.join(name)).expect("a link");
    }
    bench
}

fn kept(bench: &Bench) -> Vec<PathBuf> {
    let folder = fs::read_dir(bench.directory.path().join(".cache/code")).expect("a folder");
    folder.map(|file| file.expect("a file").path()).collect()
}

async fn seen(bench: &Bench) -> String {
    let ready = bench.again().await;
    ready.succeed().await;
    format!("{:?}", ready.stack_outputs())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_sees_the_same_with_and_without_kept_code() {
    let Some(sdk) = node_sdk("a_program_sees_the_same_with_and_without_kept_code") else {
        return;
    };
    let mut bench = curious(&sdk);
    let first = seen(&bench).await;
    let [file] = &kept(&bench)[..] else {
        unreachable!("one file is kept: {:?}", kept(&bench));
    };
    let code = fs::read(file).expect("code");
    assert_eq!(seen(&bench).await, first);
    assert_eq!(
        fs::read(file).expect("code"),
        code,
        "everything was known the second time"
    );
    // Nothing is kept of programs that the SDK compiles.
    bench.spec.environment = nimbus_engine_language::ProgramEnvironment::Inherit(
        [("NIMBUS_TYPESCRIPT".into(), "sdk".into())].into(),
    );
    assert_eq!(seen(&bench).await, first);
    for expected in ["SyntaxError", "inner.js:1:17", "\"later\""] {
        assert!(first.contains(expected), "{expected}: {first}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_code_that_is_damaged_is_made_again() {
    let Some(sdk) = node_sdk("kept_code_that_is_damaged_is_made_again") else {
        return;
    };
    let bench = curious(&sdk);
    let first = seen(&bench).await;
    let [file] = &kept(&bench)[..] else {
        unreachable!("one file is kept: {:?}", kept(&bench));
    };
    let code = fs::read(file).expect("code");
    let mut flipped = code.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    let truncated = code[..middle].to_vec();
    for damaged in [flipped, truncated, Vec::new(), b"nothing of ours".to_vec()] {
        fs::write(file, &damaged).expect("it can be written");
        assert_eq!(seen(&bench).await, first);
        let again = fs::read(file).expect("code");
        assert!(again.len() > middle && again != damaged);
    }
}

const PLACE: &str = "exports.where = new Error('x').stack.split('\\n')[1];\n";

/// The JavaScript engine keeps a module's code together with the name that the module had.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_text_in_several_places_knows_where_it_is() {
    let Some(sdk) = node_sdk("the_same_text_in_several_places_knows_where_it_is") else {
        return;
    };
    let index =
        r#"export const all = ["one", "two", "./place"].map((name) => require(name).where);"#;
    let place = || {
        let packages = [("one/index.js", PLACE), ("two/index.js", PLACE)];
        let bench = with_packages(typescript(&sdk, index), &sdk, &packages);
        fs::write(bench.directory.path().join("place.js"), PLACE).expect("a file");
        bench
    };
    let (here, mut there) = (place(), place());
    there
        .spec
        .typescript_cache
        .clone_from(&here.spec.typescript_cache);
    for bench in [&here, &there, &here] {
        let traces = seen(bench).await;
        let root = bench.directory.path().canonicalize().expect("a folder");
        for name in [
            "node_modules/one/index.js",
            "node_modules/two/index.js",
            "place.js",
        ] {
            let expected = format!("{}:1:17", root.join(name).display());
            assert!(traces.contains(&expected), "{expected}: {traces}");
        }
    }
}
