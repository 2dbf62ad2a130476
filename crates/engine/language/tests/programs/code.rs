//! What the JavaScript engine made of modules is kept, and no program can tell.

use std::fs;
use std::path::PathBuf;

use crate::support::{Bench, node_sdk, typescript};

/// What a program could notice: how modules are loaded, their traces, what they know of each other.
const CURIOUS: &str = r#"
import * as pulumi from "@pulumi/pulumi";
const inner = require("./inner");
export const variables = Object.keys(process.env).filter((name) => /^NIMBUS_(?!TEST_|TYPESCRIPT)/.test(name)).join();
export const main = require.main?.filename.endsWith("cmd/run/index.js");
export const parts = [require.cache[require.resolve("./inner")] === inner.self, typeof require.extensions[".js"]].join();
export const paths = require.resolve.paths("x")!.length > 0;
export const parent = inner.self.parent.filename.endsWith("index.ts") && module.children.includes(inner.self);
export const where = inner.where;
export const loaded = inner.later().then((later: any) => later.word);
export const missing = (() => { try { require("./broken"); return ""; } catch (error: any) { return error.name; } })();
export const strict = inner.strict;
export const version = typeof pulumi.version;
"#;

const INNER: &str = "exports.where = new Error('x').stack.split('\\n')[1].replace(/.*inner/, 'inner'); exports.self = module;
exports.later = require('./lazy').later; exports.strict = (function () { return this === undefined; })();
";

fn curious(sdk: &std::path::Path) -> Bench {
    let bench = typescript(sdk, CURIOUS);
    for (name, text) in [
        ("inner.js", INNER),
        ("lazy.js", "exports.later = () => import('./later.mjs');"),
        ("later.mjs", "export const word = 'later';"),
        ("broken.js", "this is no program"),
    ] {
        fs::write(bench.directory.path().join(name), text).expect("a file");
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
