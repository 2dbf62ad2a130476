//! TypeScript that is translated before it runs does what it does when the SDK compiles it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nimbus_engine_language::{ProgramEnvironment, Runtime, TypeChecker};
use nimbus_engine_ports::{ProgramError, Severity};

use crate::support::{Bench, Ready, THING_TS, bench, link_sdk, node_sdk, typescript};

const PACKAGE: (&str, &str) = ("package.json", r#"{"name": "shop"}"#);
const THING: (&str, &str) = ("thing.ts", THING_TS);

fn program(sdk: &Path, files: &[(&str, &str)]) -> Bench {
    let bench = bench(Runtime::Node, files);
    link_sdk(&bench, sdk);
    bench
}

/// The same program, compiled by the SDK.
fn by_sdk(mut bench: Bench) -> Bench {
    let choice = [("NIMBUS_TYPESCRIPT".into(), "sdk".into())];
    bench.spec.environment = ProgramEnvironment::Inherit(BTreeMap::from(choice));
    bench
}

fn checked(mut bench: Bench) -> Bench {
    let cache = bench.directory.path().join(".cache");
    bench.spec.transpile_only = false;
    bench.spec.checker = Some(Arc::new(TypeChecker::new(&cache)));
    bench
}

/// What a program wanted: its resources with their inputs, and its outputs.
fn wanted(ready: &Ready) -> Vec<String> {
    let mut wanted: Vec<_> = ready
        .registrar
        .goals()
        .iter()
        .map(|goal| {
            // Where the SDK itself registers something depends on whether its own source maps are
            // read; only the program's own files are its author's business.
            let position = Some(goal.source_position.as_str())
                .filter(|position| !position.contains("node_modules"))
                .unwrap_or_default();
            format!("{} {:?} {position}", goal.name, goal.properties)
        })
        .collect();
    wanted.sort();
    wanted.push(format!("{:?}", ready.stack_outputs()));
    wanted
}

async fn same_both_ways(sdk: &Path, files: &[(&str, &str)]) {
    let ours = program(sdk, files).ready().await;
    assert_eq!(ours.program.left_to_sdk(), None);
    ours.succeed().await;
    let theirs = by_sdk(program(sdk, files)).ready().await;
    assert!(theirs.program.left_to_sdk().is_some());
    theirs.succeed().await;
    assert_eq!(wanted(&ours), wanted(&theirs));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_options_of_its_own() {
    let Some(sdk) = node_sdk("a_program_without_options_of_its_own") else {
        return;
    };
    let index = r#"
import * as pulumi from "@pulumi/pulumi";
import * as path from "path";
import { Thing } from "./thing";
import { Size, sizes, Kind } from "./shapes";
import { lookup } from "./folder";
import type { Named } from "./shapes";

const named: Named = { name: path.basename("/a/b") };
enum Colour { Red, Green = 5, Blue }
namespace Inner { export const depth = Colour.Blue; }
abstract class Base { constructor(protected readonly tag: string) {} abstract say(): string; }
class Derived extends Base { count = sizes.length; constructor() { super("t"); } say() { return `${this.tag}${this.count}`; } }
function generic<T extends object>(value: T): T { return value satisfies object; }
new Thing("a", generic({ named, size: Size.Large, kind: Kind.Of, green: Colour.Green, back: Colour[5], depth: Inner.depth }));
export const said = new Derived().say();
export const found = pulumi.output(lookup("x")!);
export let late: string | undefined;
late = "late";
"#;
    let shapes = r#"
export const enum Size { Small = "s", Large = "l" }
export enum Kind { Of = 1 << 3 }
export interface Named { name: string }
export const sizes: Size[] = [Size.Small, Size.Large];
export { Size as Alias };
"#;
    let folder = r#"import { Kind } from "../shapes"; export const lookup = (k: string): string => `${k}${Kind.Of}`;"#;
    let files = [
        PACKAGE,
        THING,
        ("index.ts", index),
        ("shapes.ts", shapes),
        ("folder/index.ts", folder),
    ];
    same_both_ways(&sdk, &files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commonjs_with_required_modules_json_and_an_assigned_export() {
    let Some(sdk) = node_sdk("commonjs_with_required_modules") else {
        return;
    };
    let tsconfig = r#"{ // as people write it
        "compilerOptions": {"module": "commonjs", "moduleResolution": "node", "target": "es2018", "strict": true, "resolveJsonModule": true, "esModuleInterop": true, "ignoreDeprecations": "5.0",}
    }"#;
    let index = r#"
import os from "os";
import data from "./data.json";
import maker = require("./maker");
import { Thing } from "./thing";
new Thing("a", { sep: os.EOL, data, made: maker.make(2), same: maker === require("./maker") });
const later = import("./later").then(module => module.word);
export const word = later;
"#;
    let maker = r#"class Maker { make(n: number) { return n * 2; } } export = new Maker();"#;
    let files = [
        PACKAGE,
        THING,
        ("tsconfig.json", tsconfig),
        ("index.ts", index),
        ("maker.ts", maker),
        ("later.ts", "export const word = \"later\";"),
        ("data.json", r#"{"a": [1]}"#),
    ];
    same_both_ways(&sdk, &files).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_exports_a_function() {
    let Some(sdk) = node_sdk("a_program_that_exports_a_function") else {
        return;
    };
    let index = r#"
import { Thing } from "./thing";
export = async function main() {
    const thing = new Thing("a", 1);
    return { id: thing.id };
};
"#;
    let tsconfig = r#"{"compilerOptions": {"module": "commonjs", "moduleResolution": "node", "target": "es2020"}}"#;
    same_both_ways(
        &sdk,
        &[
            PACKAGE,
            THING,
            ("tsconfig.json", tsconfig),
            ("index.ts", index),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_with_and_without_define() {
    let Some(sdk) = node_sdk("fields_with_and_without_define") else {
        return;
    };
    // What the parent sets stays unless the field is defined anew.
    let index = r#"
import { Thing } from "./thing";
class Parent { [key: string]: any; constructor() { this.given = "parent"; } }
class Child extends Parent { given: any; own = "own"; }
new Thing("a", { given: new Child().given ?? "gone", keys: Object.keys(new Child()).sort() });
"#;
    for define in ["true", "false"] {
        let tsconfig = format!(
            r#"{{"compilerOptions": {{"target": "es2022", "useDefineForClassFields": {define}}}}}"#
        );
        let files = [
            PACKAGE,
            THING,
            ("tsconfig.json", &tsconfig),
            ("index.ts", index),
        ];
        same_both_ways(&sdk, &files).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decorators_of_the_old_kind() {
    let Some(sdk) = node_sdk("decorators_of_the_old_kind") else {
        return;
    };
    let index = r#"
import { Thing } from "./thing";
const seen: string[] = [];
const note = (label: string) => (target: any, key?: string) => { seen.push(`${label} ${key ?? target.name}`); };
@note("class")
class Marked { @note("field") field = 1; @note("method") method() {} }
new Thing("a", { seen, field: new Marked().field });
"#;
    let tsconfig = r#"{"compilerOptions": {"target": "es2020", "experimentalDecorators": true}}"#;
    same_both_ways(
        &sdk,
        &[
            PACKAGE,
            THING,
            ("tsconfig.json", tsconfig),
            ("index.ts", index),
        ],
    )
    .await;
}

/// Without a comparison: how the SDK compiles ES modules depends on what else is installed.
#[tokio::test(flavor = "multi_thread")]
async fn es_modules() {
    let Some(sdk) = node_sdk("es_modules") else {
        return;
    };
    let index = r#"
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./thing.js";
await Promise.resolve();
new Thing("a", "b");
export const late = pulumi.output((await import("./words.js")).word);
"#;
    let files = [
        ("package.json", r#"{"name": "shop", "type": "module"}"#),
        THING,
        ("index.ts", index),
        (
            "words.ts",
            "export type Word = string; export const word: Word = \"w\";",
        ),
    ];
    let ready = program(&sdk, &files).ready().await;
    ready.succeed().await;
    assert_eq!(ready.goal("a").properties["value"], "b".into());
    assert_eq!(ready.stack_outputs()["late"], "w".into());
}

/// Files that say by their ending what they are. The SDK loads some of them as they are.
#[tokio::test(flavor = "multi_thread")]
async fn commonjs_inside_of_es_modules() {
    let Some(sdk) = node_sdk("commonjs_inside_of_es_modules") else {
        return;
    };
    let index = r#"
import { Thing } from "./thing.js";
import legacy from "./legacy.cjs";
import { word, type Word } from "./words.mjs";
const typed: Word = word;
new Thing("a", [legacy.value, typed, import.meta.url.endsWith("index.ts")]);
"#;
    let files = [
        ("package.json", r#"{"name": "shop", "type": "module"}"#),
        THING,
        ("index.ts", index),
        ("legacy.cts", "const value: number = 3; export = { value };"),
        (
            "words.mts",
            "export type Word = string; export const word: Word = \"w\";",
        ),
    ];
    let ready = program(&sdk, &files).ready().await;
    ready.succeed().await;
    let expected = vec![3.0.into(), "w".into(), true.into()].into();
    assert_eq!(ready.goal("a").properties["value"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_only_the_compilers_paths_explain() {
    let Some(sdk) = node_sdk("names_that_only_the_compilers_paths_explain") else {
        return;
    };
    let tsconfig = r#"{"compilerOptions": {"paths": {"@lib/*": ["./lib/*"]}}}"#;
    let index = r#"import { Thing } from "./thing"; import { five } from "@lib/five"; new Thing("a", five);"#;
    let files = [
        PACKAGE,
        THING,
        ("tsconfig.json", tsconfig),
        ("index.ts", index),
        ("lib/five.ts", "export const five: number = 5;"),
    ];
    let ready = program(&sdk, &files).ready().await;
    ready.succeed().await;
    assert_eq!(ready.goal("a").properties["value"], 5.0.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_of_the_workspace_are_part_of_the_program() {
    let Some(sdk) = node_sdk("packages_of_the_workspace_are_part_of_the_program") else {
        return;
    };
    let index = r#"import { Thing } from "./thing"; import { name } from "@ours/shared"; import { deep } from "@ours/shared/deep"; new Thing("a", [name, deep]);"#;
    let files = [
        PACKAGE,
        THING,
        ("index.ts", index),
        (
            "shared/package.json",
            r#"{"name": "@ours/shared", "main": "main.ts"}"#,
        ),
        ("shared/main.ts", "export const name: string = \"shared\";"),
        ("shared/deep.ts", "export const deep = 1 as number;"),
    ];
    let bench = bench(Runtime::Node, &files);
    let modules = bench.directory.path().join("node_modules");
    std::fs::create_dir_all(modules.join("@ours")).expect("a folder");
    let link = |to: &Path, from: &str| {
        std::os::unix::fs::symlink(to, modules.join(from)).expect("a link");
    };
    link(Path::new("../../shared"), "@ours/shared");
    for name in ["@pulumi", "typescript", "source-map-support"] {
        link(&sdk.join("node_modules").join(name), name);
    }
    let ready = bench.ready().await;
    assert_eq!(ready.program.left_to_sdk(), None);
    ready.succeed().await;
    assert_eq!(
        ready.goal("a").properties["value"],
        vec!["shared".into(), 1.0.into()].into()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_nobody_could_foresee() {
    let Some(sdk) = node_sdk("a_file_that_nobody_could_foresee") else {
        return;
    };
    let index = r#"import { Thing } from "./thing"; const name = ["./extra", "1"].join(""); new Thing("a", require(name).value);"#;
    same_both_ways(
        &sdk,
        &[
            PACKAGE,
            THING,
            ("index.ts", index),
            ("extra1.ts", "export const value: number = 7;"),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stack_traces_point_into_the_typescript() {
    let Some(sdk) = node_sdk("stack_traces_point_into_the_typescript") else {
        return;
    };
    let index =
        "interface Unused {\n    a: string;\n}\nimport { fail } from \"./fails\";\nfail();\n";
    let fails = "type Gone = number;\n\nexport function fail(): never {\n    throw new Error(\"boom\");\n}\n";
    for module in ["", r#", "type": "module""#] {
        let package = format!(r#"{{"name": "shop"{module}}}"#);
        let index = if module.is_empty() {
            index.to_owned()
        } else {
            index.replace("./fails", "./fails.js")
        };
        let files = [
            ("package.json", package.as_str()),
            ("index.ts", &index),
            ("fails.ts", fails),
        ];
        let ready = program(&sdk, &files).ready().await;
        assert_eq!(ready.program.left_to_sdk(), None);
        let run = ready.run().await;
        assert!(matches!(run, Err(ProgramError::AlreadyReported)), "{run:?}");
        let told = ready.audience.errors();
        assert!(
            told.contains("fails.ts:4:11") && told.contains("index.ts:5:"),
            "{told}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_loaded_late_is_as_if_it_had_been_loaded_before() {
    let Some(sdk) = node_sdk("what_is_loaded_late_is_as_if_it_had_been_loaded_before") else {
        return;
    };
    let index = r#"
import * as pulumi from "@pulumi/pulumi";
import { LocalWorkspace } from "@pulumi/pulumi/automation";
import { debuggablePromise } from "@pulumi/pulumi/runtime/debuggable";
export const kind = typeof pulumi.automation;
export const same = pulumi.automation.LocalWorkspace === LocalWorkspace;
export const listed = Object.keys(pulumi.automation).includes("LocalWorkspace");
export const promise = pulumi.output(1).promise().then(() => 2);
export const traces = new Error("x").stack!.includes("index.ts:9:");
const noted: any = debuggablePromise(Promise.resolve(1), "here");
export const made = `${noted._debugStackTrace}`.includes("index.ts:10:");
"#;
    same_both_ways(&sdk, &[PACKAGE, ("index.ts", index)]).await;
    let outputs = program(&sdk, &[PACKAGE, ("index.ts", index)]).ready().await;
    outputs.succeed().await;
    let outputs = format!("{:?}", outputs.stack_outputs());
    assert!(!outputs.contains("Bool(false)"), "{outputs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_translated_alone_is_left_to_the_sdk() {
    let Some(sdk) = node_sdk("what_cannot_be_translated_alone_is_left_to_the_sdk") else {
        return;
    };
    let index = r#"
import * as pulumi from "@pulumi/pulumi";
class Provider implements pulumi.dynamic.ResourceProvider { async create() { return { id: "i", outs: {} }; } }
class Made extends pulumi.dynamic.Resource { constructor(name: string) { super(new Provider(), name, {}); } }
new Made("made");
"#;
    let ready = typescript(&sdk, index).ready().await;
    assert!(ready.program.left_to_sdk().is_some());
    ready.succeed().await;
    assert!(ready.goal("made").properties.contains_key("__provider"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_error_stops_the_program_before_it_asks_for_anything() {
    let Some(sdk) = node_sdk("a_type_error_stops_the_program_before_it_asks_for_anything") else {
        return;
    };
    let index =
        "import { Thing } from \"./thing\";\nconst n: number = \"text\";\nnew Thing(\"a\", n);\n";
    let ready = checked(typescript(&sdk, index)).ready().await;
    assert_eq!(ready.program.left_to_sdk(), None);
    let run = ready.run().await;
    assert!(matches!(run, Err(ProgramError::AlreadyReported)), "{run:?}");
    let told = ready.audience.errors();
    assert!(told.contains("index.ts:2:7 - error TS2322"), "{told}");
    assert!(
        ready.registrar.goals().is_empty(),
        "nothing may be asked for"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_is_kept_until_a_file_changes() {
    let Some(sdk) = node_sdk("a_verdict_is_kept_until_a_file_changes") else {
        return;
    };
    let index = "import { Thing } from \"./thing\";\nimport { word } from \"./word\";\nnew Thing(\"a\", word);\n";
    let bench = checked(typescript(&sdk, index));
    let word = bench.directory.path().join("word.ts");
    std::fs::write(&word, "export const word: string = \"w\";").expect("a file");
    bench.again().await.succeed().await;
    bench.again().await.succeed().await;
    let checker = bench.spec.checker.as_ref().expect("it was set");
    assert_eq!(checker.checked(), 1, "the second time it was known");
    std::fs::write(&word, "export const word: string = 1;").expect("a file");
    let ready = bench.again().await;
    let run = ready.run().await;
    assert!(matches!(run, Err(ProgramError::AlreadyReported)), "{run:?}");
    let told = ready.audience.errors();
    assert!(told.contains("word.ts:1:14"), "{told}");
    assert_eq!(checker.checked(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_constant_enum_of_a_package_needs_the_whole_program() {
    let Some(sdk) = node_sdk("a_constant_enum_of_a_package_needs_the_whole_program") else {
        return;
    };
    let index = "import { Thing } from \"./thing\";\nimport { Level } from \"levels\";\nnew Thing(\"a\", Level.High);\n";
    let files = [
        PACKAGE,
        THING,
        ("index.ts", index),
        (
            "node_modules/levels/package.json",
            r#"{"name": "levels", "version": "1.0.0", "types": "index.d.ts", "main": "index.js"}"#,
        ),
        (
            "node_modules/levels/index.d.ts",
            "export declare const enum Level { Low = 1, High = 9 }",
        ),
        ("node_modules/levels/index.js", ""),
    ];
    let bench = bench(Runtime::Node, &files);
    for name in ["@pulumi", "@types", "typescript", "source-map-support"] {
        let link = bench.directory.path().join("node_modules").join(name);
        std::os::unix::fs::symlink(sdk.join("node_modules").join(name), link).expect("a link");
    }
    let ready = checked(bench).ready().await;
    assert_eq!(ready.program.left_to_sdk(), None);
    ready.succeed().await;
    assert_eq!(ready.goal("a").properties["value"], 9.0.into());
    assert!(ready.audience.messages(Severity::Error).is_empty());
}
