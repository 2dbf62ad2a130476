//! A program whose packages are read in part gets the verdict that it would get with all of them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::node_sdk;

/// A package of the form that providers have, small.
const CLOUD: &[(&str, &str)] = &[
    (
        "package.json",
        r#"{"name": "cloud", "version": "1.0.0", "types": "index.d.ts", "pulumi": {"resource": true}}"#,
    ),
    (
        "index.d.ts",
        r#"import * as compute from "./compute";
import * as storage from "./storage";
import * as types from "./types";
export * from "./region";
export { compute, storage, types, };"#,
    ),
    (
        "region.d.ts",
        r#"export declare const Region: { readonly North: "north"; readonly South: "south" };
export type Region = (typeof Region)[keyof typeof Region];"#,
    ),
    (
        "storage/index.d.ts",
        r#"export { BucketArgs } from "./bucket";
export type Bucket = import("./bucket").Bucket;
export declare const Bucket: typeof import("./bucket").Bucket;
export { Store as Shop } from "./store";
export { Subscription } from "./mixins";
export { Vault } from "./vault";
export { Lock } from "./locks";"#,
    ),
    (
        "storage/vault.d.ts",
        r#"export interface VaultArgs { owner: string; }
export declare class Vault { constructor(name: string, args: VaultArgs); }"#,
    ),
    (
        "storage/locks.d.ts",
        r#"export interface Lock { strength: number; }
declare module "./vault" { interface VaultArgs { secured: boolean; } }"#,
    ),
    (
        "storage/bucket.d.ts",
        r#"import * as inputs from "../types/input";
/** A bucket, not to be confused with a `Queue` or a `Machine`. */
export declare class Bucket { readonly size: number; constructor(name: string, args?: BucketArgs); }
export interface BucketArgs { /** Rules. */ rules?: inputs.storage.Rule[]; region?: "north" | "south"; }"#,
    ),
    (
        "storage/store.d.ts",
        "export declare class Store { readonly open: boolean; }",
    ),
    (
        "storage/mixins.d.ts",
        r#"import { Bucket } from "./bucket";
export interface Subscription { bucket: Bucket; }
declare module "./bucket" { interface Bucket { onChange(name: string): Subscription; } }"#,
    ),
    (
        "compute/index.d.ts",
        r#"export { Machine, MachineArgs } from "./machine";
export { Queue } from "./queue";"#,
    ),
    (
        "compute/machine.d.ts",
        r#"import { Bucket } from "../storage";
export declare class Machine { readonly disk: Bucket; constructor(name: string, args: MachineArgs); }
export interface MachineArgs { cores: number; }"#,
    ),
    (
        "compute/queue.d.ts",
        "export declare class Queue { readonly length: string; }",
    ),
    (
        "types/index.d.ts",
        r#"import * as input from "./input";
export { input, };"#,
    ),
    (
        "types/input.d.ts",
        r#"export declare namespace storage {
    interface Rule { days: number; then?: Action; }
    interface Action { kind: "delete" | "move"; }
    interface Unused { never: string; }
}
export declare namespace compute { interface Disk { size: number; } }"#,
    ),
];

struct Project {
    directory: TempDir,
    sdk: PathBuf,
}

impl Project {
    fn new(sdk: &Path, package: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let project = Self {
            directory,
            sdk: sdk.join("node_modules/@pulumi/pulumi/cmd/run/index.js"),
        };
        for (name, text) in package {
            project.write(&format!("node_modules/cloud/{name}"), text);
        }
        project.write(
            "tsconfig.json",
            r#"{"compilerOptions": {"strict": true, "types": [], "skipLibCheck": true}}"#,
        );
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        let root = self.directory.path().canonicalize();
        root.expect("it exists").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    /// The scripts, as they are put beside each other.
    fn scripts(&self) -> PathBuf {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/node/scripts");
        let folder = self.path("scripts");
        fs::create_dir_all(&folder).expect("a folder");
        let check = fs::read_dir(sources.join("check")).expect("a folder");
        let check = check.map(|file| file.expect("a file").path());
        for file in check.chain([sources.join("code.cjs")]) {
            fs::copy(&file, folder.join(file.file_name().expect("a name"))).expect("a copy");
        }
        folder
    }

    /// What the checker finds out about programs, one after another.
    fn check(&self, programs: &[&str]) -> Vec<Value> {
        let script = self.scripts().join("check.cjs");
        let mut checker = Command::new("node")
            .arg(script)
            .env("NIMBUS_OUTLINES", self.path("outlines"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node");
        let mut input = checker.stdin.take().expect("its input");
        for (index, program) in programs.iter().enumerate() {
            let name = format!("program{index}.ts");
            self.write(&name, program);
            let request = json!({
                "id": index,
                "sdk": self.sdk,
                "entry": self.path(&name),
                "tsconfig": self.path("tsconfig.json"),
                "defaults": {"target": "es2020", "module": "commonjs", "moduleResolution": "node"},
            });
            writeln!(input, "{request}").expect("it reads");
        }
        drop(input);
        let output = checker.wait_with_output().expect("its end");
        let text = String::from_utf8(output.stdout).expect("text");
        let answers = text.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).expect("an answer");
            answer["result"].clone()
        });
        answers.collect()
    }

    fn check_one(&self, program: &str) -> Value {
        self.check(&[program]).remove(0)
    }
}

fn codes(result: &Value) -> Vec<u64> {
    let errors = result["errors"].as_array().expect("a list of errors");
    let codes = errors.iter().map(|error| error["code"].as_u64());
    codes.map(|code| code.expect("a number")).collect()
}

const PASSES: &[&str] = &[
    r#"import * as cloud from "cloud";
       const bucket = new cloud.storage.Bucket("a", { rules: [{ days: 1, then: { kind: "move" } }], region: cloud.Region.South });
       export const size: number = bucket.size;
       bucket.onChange("b").bucket.size;"#,
    r#"import { compute } from "cloud";
       const machine = new compute.Machine("m", { cores: 2 });
       export const size: number = machine.disk.size;"#,
    r#"import { Bucket as B, Shop } from "cloud/storage";
       import type * as cloud from "cloud";
       const rule: cloud.types.input.storage.Rule = { days: 3 };
       const shop: Shop = { open: true };
       export const made = [new B("x", { rules: [rule] }), shop];"#,
];

#[test]
fn what_is_right_passes_without_the_rest_of_its_packages() {
    let Some(sdk) = node_sdk("what_is_right_passes_without_the_rest") else {
        return;
    };
    let project = Project::new(&sdk, CLOUD);
    // Twice: with what was just found out about the package, and with what was kept.
    for _ in 0..2 {
        for result in project.check(PASSES) {
            assert_eq!(codes(&result), [0_u64; 0], "{result}");
            assert_eq!(result["inPart"], true, "{result}");
        }
    }
    assert_eq!(
        fs::read_dir(project.path("outlines"))
            .expect("a folder")
            .count(),
        1
    );
}

#[test]
fn what_is_wrong_fails_however_far_away_the_reason_is() {
    let Some(sdk) = node_sdk("what_is_wrong_fails_however_far_away") else {
        return;
    };
    let project = Project::new(&sdk, CLOUD);
    let wrong = [
        // Nothing of what is missing here is named.
        (
            r#"import * as cloud from "cloud"; export const all: Record<keyof typeof cloud.compute, 1> = { Machine: 1 };"#,
            2741,
        ),
        (
            r#"import * as cloud from "cloud"; const { compute } = cloud; export const all: Record<keyof typeof compute, 1> = { Machine: 1 };"#,
            2741,
        ),
        (
            r#"import { compute as c } from "cloud"; export const all: { [K in keyof typeof c]: 1 } = { Machine: 1 };"#,
            2741,
        ),
        (
            r#"type C = typeof import("cloud").compute; export const all: Record<keyof C, 1> = { Machine: 1 };"#,
            2741,
        ),
        (
            r#"import * as cloud from "cloud";
               new cloud.storage.Bucket("a", { rules: [{ days: 1, then: { kind: "copy" } }] });"#,
            2322,
        ),
        // What it lacks is asked for from a file that has none of its names.
        (
            r#"import * as cloud from "cloud"; new cloud.storage.Vault("v", { owner: "me" });"#,
            2345,
        ),
        (
            r#"import * as cloud from "cloud"; export const n: number = new cloud.compute.Queue().length;"#,
            2322,
        ),
        (
            r#"import { compute } from "cloud"; new compute.Machine("m", { cores: 1 }).disk.weight;"#,
            2339,
        ),
        (
            r#"import * as cloud from "cloud"; new cloud.storage.Buckett("a");"#,
            2551,
        ),
    ];
    let programs: Vec<_> = wrong.iter().map(|(program, _)| *program).collect();
    for (result, (program, code)) in project.check(&programs).iter().zip(&wrong) {
        assert_eq!(codes(result), [*code], "{program}\n{result}");
    }
}

#[test]
fn a_package_that_has_changed_is_read_as_it_is_now() {
    let Some(sdk) = node_sdk("a_package_that_has_changed_is_read") else {
        return;
    };
    let project = Project::new(&sdk, CLOUD);
    let program = r#"import * as cloud from "cloud"; export const q: string = new cloud.compute.Queue().length;"#;
    assert_eq!(codes(&project.check_one(program)), [0_u64; 0]);
    let changed = "/* now it counts */ export declare class Queue { readonly length: number; }";
    project.write("node_modules/cloud/compute/queue.d.ts", changed);
    for _ in 0..2 {
        assert_eq!(codes(&project.check_one(program)), [2322]);
    }
    let kept = fs::read_dir(project.path("outlines")).expect("a folder");
    for file in kept.map(|file| file.expect("a file").path()) {
        let text = fs::read_to_string(&file).expect("text");
        fs::write(&file, text.replace("Queue", "Quart")).expect("a file");
    }
    assert_eq!(codes(&project.check_one(program)), [2322]);
    let right = program.replace("string", "number");
    let result = project.check_one(&right);
    assert_eq!(
        (codes(&result), &result["inPart"]),
        (Vec::new(), &json!(true))
    );
}

#[test]
fn a_package_that_cannot_be_followed_by_names_is_read_as_a_whole() {
    let Some(sdk) = node_sdk("a_package_that_cannot_be_followed_by_names") else {
        return;
    };
    for more in [
        "declare global { interface Array<T> { extra: T; } } export {};",
        r#"import * as compute from "./compute"; export type Names = keyof typeof compute;"#,
        r#"export type Names = keyof typeof import("./compute");"#,
    ] {
        let mut package = CLOUD.to_vec();
        package.push(("more.d.ts", more));
        let project = Project::new(&sdk, &package);
        let result = project.check_one(PASSES[0]);
        assert_eq!(codes(&result), [0_u64; 0], "{more}");
        assert_ne!(result["inPart"], true, "{more}");
    }
}
