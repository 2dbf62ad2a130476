//! Each stack by itself: its template and its program, what it hands to others, and its versions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Map, Value};

use crate::place::{DEPLOY_AND_HOLD, ID, LibrarySite, QUICK};
use crate::steps::{ResourceSteps, Statuses};

/// A deployment beside the usual one, made of a template that has monitoring too.
const WATCHED: &str = "D3LIB";

pub(crate) const SIXTEEN: [&str; 16] = [
    "authentication",
    "compute-ec2",
    "compute-lambda",
    "containers-apps",
    "containers-images",
    "database-rds",
    "dns",
    "monitoring",
    "network",
    "secrets",
    "security",
    "services-api",
    "services-ecr",
    "services-ecs",
    "services-eks",
    "storage",
];

/// What `list-stacks` or `discover` says, by the name of the stack.
fn listed(place: &LibrarySite, command: &str) -> BTreeMap<String, Value> {
    let report: Value = serde_json::from_str(&place.ok(&[command, "--json"])).unwrap();
    let stacks = report["stacks"].as_array().unwrap();
    let named = stacks
        .iter()
        .map(|stack| (stack["name"].as_str().unwrap().to_owned(), stack.clone()));
    named.collect()
}

fn texts(list: &Value) -> BTreeSet<String> {
    let words = list.as_array().into_iter().flatten();
    words.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Files directly in a directory of the workspace, by name without their extension.
fn file_stems(place: &LibrarySite, directory: &str) -> BTreeSet<String> {
    let files = fs::read_dir(place.path(directory)).unwrap();
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    files.map(|file| stem(&file.unwrap().path())).collect()
}

#[test]
fn each_of_sixteen_has_a_template_and_a_program_of_its_name() {
    let place = LibrarySite::bare("default");
    let sixteen: BTreeSet<String> = SIXTEEN.map(str::to_owned).into();
    assert_eq!(file_stems(&place, "cloud/tools/templates/config"), sixteen);
    for command in ["list-stacks", "discover"] {
        let stacks = listed(&place, command);
        let names: BTreeSet<String> = stacks.keys().cloned().collect();
        assert_eq!(names, sixteen, "{command}");
        for (name, stack) in &stacks {
            let both = (&stack["program"], &stack["registered"]);
            assert_eq!(both, (&Value::Bool(true), &Value::Bool(true)), "{name}");
        }
    }
    for stack in SIXTEEN {
        let directory = place.path("cloud/stacks").join(stack).join("src");
        assert!(directory.join("index.ts").is_file(), "{stack}");
        place.ok(&["validate-stack", ID, stack, "--environment", "prod"]);
    }

    // The lists are what is there: without its program, or its template, a stack is told apart.
    fs::remove_dir_all(place.path("cloud/stacks/dns")).unwrap();
    assert_eq!(listed(&place, "list-stacks")["dns"]["program"], false);
    assert!(!listed(&place, "discover").contains_key("dns"));
    let (code, stdout, stderr) = place.run(&["validate-stack", ID, "dns", "-e", "prod"]);
    assert_ne!(code, 0, "{stdout}\n{stderr}");
    fs::remove_file(place.path("cloud/tools/templates/config/storage.yaml")).unwrap();
    assert!(!listed(&place, "list-stacks").contains_key("storage"));
    assert_eq!(listed(&place, "discover")["storage"]["registered"], false);
}

/// Stacks that need another one for what is off until somebody wants it: secrets that a function
/// reads, and images that were built by then.
const NOT_USED_YET: [(&str, &str); 2] = [
    ("compute-lambda", "secrets"),
    ("containers-apps", "containers-images"),
];

/// The stack that a recorded resource is of: `urn:pulumi:D1LIB-network-dev::…`.
fn stack_of(resource: &Value) -> &str {
    let urn = resource["urn"].as_str().unwrap_or_default();
    let unit = urn.split("::").next().unwrap_or_default();
    let unit = unit.strip_prefix("urn:pulumi:").unwrap_or_default();
    let named = unit.strip_prefix(ID).and_then(|it| it.strip_prefix('-'));
    named
        .and_then(|it| it.rsplit_once('-'))
        .map_or("", |(stack, _)| stack)
}

/// What each stack has exported.
pub(crate) fn exported(
    place: &LibrarySite,
    environment: &str,
) -> BTreeMap<String, Map<String, Value>> {
    let resources = place.resources(environment).into_iter();
    let roots = resources.filter(|one| one["type"] == "pulumi:pulumi:Stack");
    let outputs = roots.map(|root| {
        let outputs = root["outputs"].as_object().cloned().unwrap_or_default();
        (stack_of(&root).to_owned(), outputs)
    });
    outputs.collect()
}

/// Texts of a value that are long enough to be recognised elsewhere: ids, names and addresses.
fn words(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) if text.len() >= 8 => vec![text.as_str()],
        Value::Array(all) => all.iter().flat_map(words).collect(),
        Value::Object(all) => all.values().flat_map(words).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Asserts that every stack has exported what its template declares, and that whoever depends on
/// one has got something of it.
pub(crate) fn assert_outputs_are_exported_and_used(place: &LibrarySite, environment: &str) {
    let outputs = exported(place, environment);
    let mut inputs: BTreeMap<String, String> = BTreeMap::new();
    for resource in place.resources(environment) {
        let text = inputs.entry(stack_of(&resource).to_owned()).or_default();
        text.push_str(&resource["inputs"].to_string());
    }
    for (name, stack) in listed(place, "list-stacks") {
        let own: BTreeSet<String> = outputs[&name].keys().cloned().collect();
        assert_eq!(own, texts(&stack["outputs"]), "{name} in {environment}");
        assert!(!own.is_empty(), "{name} hands nothing on");
        for needed in texts(&stack["dependencies"]) {
            if NOT_USED_YET.contains(&(name.as_str(), needed.as_str())) {
                continue;
            }
            let given = outputs[&needed].values().flat_map(words);
            let used = given.filter(|word| inputs[&name].contains(*word)).count();
            assert!(used > 0, "{name} has nothing of {needed}");
        }
    }
}

#[test]
fn what_a_stack_no_longer_exports_stops_whoever_refers_to_it() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "minimal");
    let program = place.path("cloud/stacks/network/src/index.ts");
    let whole = fs::read_to_string(&program).unwrap();
    let less = whole.replacen("export const vpcId = network.vpcId;\n", "", 1);
    assert_ne!(less, whole);
    fs::write(&program, less).unwrap();
    let (code, stdout, stderr) = place.run(&[DEPLOY_AND_HOLD, QUICK].concat());
    let said = format!("{stdout}{stderr}");
    assert_ne!(code, 0, "{said}");
    assert!(said.contains("vpcId"), "{said}");
    let stacks: BTreeSet<String> = exported(&place, "dev").into_keys().collect();
    assert!(stacks.contains("network"), "{stacks:?}");
    assert!(!stacks.contains("security"), "{stacks:?}");

    fs::write(&program, whole).unwrap();
    let mended = place.every_stack("deploy", "dev", QUICK);
    assert!(mended.with("failed").is_empty(), "{:?}", mended.0);
    let given = exported(&place, "dev");
    let vpc = given["network"]["vpcId"].as_str().unwrap();
    let groups = place.resources("dev").into_iter();
    let groups = groups.filter(|one| {
        stack_of(one) == "security"
            && one["type"]
                .as_str()
                .is_some_and(|kind| kind.ends_with(":SecurityGroup"))
    });
    let places: BTreeSet<String> = groups
        .map(|group| group["inputs"]["vpcId"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(places, BTreeSet::from([vpc.to_owned()]));
}

#[test]
fn monitoring_works_with_three_stacks_and_waits_for_them() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "minimal");
    let others = ["dns", "network", "security"];
    place.ok(&["update-template", "minimal", "--enable-stack", "monitoring"]);
    let init = [
        "init",
        WATCHED,
        "--template",
        "minimal",
        "--org",
        "Example",
        "--project",
        "shop",
        "--domain",
        "shop.example.com",
        "--account-dev",
        "111111111111",
    ];
    place.ok(&init);
    let run = |command: &str, more: &[&str]| {
        let usual = [
            command,
            WATCHED,
            "--environment",
            "dev",
            "--rehearse",
            "--json",
        ];
        let events = place.ok(&[&usual[..], more].concat());
        let ended = Statuses::read(&events);
        assert_eq!(ended.with("succeeded").len(), 4, "{:?}", ended.0);
        ResourceSteps::read(&events)
    };
    let up = run("deploy", QUICK);
    up.position("monitoring-dashboard", ":Dashboard", "done");
    let down = run("destroy", &["--yes"]);
    for other in others {
        up.assert_stack_before(other, "monitoring");
        down.assert_stack_before("monitoring", other);
    }
}

#[test]
fn a_stack_has_versions_of_its_own() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "minimal");
    for stack in SIXTEEN {
        let source = place.path("cloud/stacks").join(stack).join("src");
        let package: Value =
            serde_json::from_slice(&fs::read(source.join("package.json")).unwrap()).unwrap();
        assert_eq!(package["name"], format!("@cloud/{stack}"));
        assert!(package["version"].is_string(), "{stack}");
        // Only the package of components is shared: no stack is built from another one.
        let own = package["dependencies"].as_object().unwrap().keys();
        let others: Vec<_> = own.filter(|name| name.starts_with("@cloud/")).collect();
        assert_eq!(others, ["@cloud/shared"], "{stack}");
    }
    let all = BTreeSet::from(["dns", "network", "security"]);
    assert_eq!(
        place.every_stack("deploy", "dev", QUICK).with("succeeded"),
        all
    );
    // A repository for each of them is nothing that a program consists of.
    for stack in &all {
        let repository = place.path("cloud/stacks").join(stack).join(".git");
        fs::create_dir(&repository).unwrap();
        fs::write(repository.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }
    assert_eq!(
        place.every_stack("deploy", "dev", QUICK).with("skipped"),
        all
    );

    // The next version of one is deployed alone, and so is the way back to the one before.
    let source = place.path("cloud/stacks/security/src");
    let version = |package: &str, program: &str| {
        fs::write(source.join("package.json"), package).unwrap();
        fs::write(source.join("index.ts"), program).unwrap();
        let ended = place.every_stack("deploy", "dev", QUICK);
        assert_eq!(ended.with("succeeded"), BTreeSet::from(["security"]));
        assert_eq!(ended.with("skipped"), BTreeSet::from(["dns", "network"]));
        exported(&place, "dev")["security"].get("edition").cloned()
    };
    let read = |file: &str| fs::read_to_string(source.join(file)).unwrap();
    let (package, program) = (read("package.json"), read("index.ts"));
    let next = package.replacen("\"version\": \"1.0.0\"", "\"version\": \"1.1.0\"", 1);
    assert_ne!(next, package);
    let more = format!("{program}export const edition = \"1.1.0\";\n");
    assert_eq!(version(&next, &more), Some(Value::from("1.1.0")));
    assert_eq!(version(&package, &program), None);
}
