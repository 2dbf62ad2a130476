use nimbus_core::EnvironmentName;
use nimbus_orchestrator::read_defaults;

use super::*;

fn workspace() -> (tempfile::TempDir, Workspace) {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("cloud");
    for stack in ["network", "web", "queue"] {
        let source = root.join("stacks").join(stack).join("src");
        fs::create_dir_all(&source).unwrap();
        let project = format!("name: {stack}\nruntime: nodejs\ndescription: The {stack}\n");
        fs::write(source.join("Pulumi.yaml"), project).unwrap();
        fs::write(
            source.join("index.ts"),
            "export const url = 1;\nconst x = 2;\n",
        )
        .unwrap();
    }
    fs::create_dir_all(root.join("tools/templates/config")).unwrap();
    let workspace = Workspace::find(&root).unwrap();
    (temp, workspace)
}

fn component(name: &str) -> ComponentName {
    name.parse().unwrap()
}

fn needing(names: &[&str]) -> ComponentRegistration {
    ComponentRegistration {
        dependencies: Some(names.iter().map(|name| name.parse().unwrap()).collect()),
        ..ComponentRegistration::default()
    }
}

#[test]
fn a_program_becomes_a_stack_with_its_description_and_exports() {
    let (_temp, workspace) = workspace();
    workspace
        .register(&component("network"), &ComponentRegistration::default())
        .unwrap();
    let web = workspace
        .register(&component("web"), &needing(&["network"]))
        .unwrap();
    assert_eq!(web.description, "The web");
    assert_eq!(web.outputs.keys().collect::<Vec<_>>(), ["url"]);
    let library = workspace.library().unwrap();
    assert!(library.stacks["web"].dependencies.contains("network"));
}

#[test]
fn defaults_are_kept() {
    let (_temp, workspace) = workspace();
    let text = "config: {size: 1}\nenvironments: {prod: {size: 3}}\n";
    let defaults = read_defaults(&Document::parse("d.yaml", text).unwrap()).unwrap();
    let registration = ComponentRegistration {
        defaults,
        ..ComponentRegistration::default()
    };
    let template = workspace
        .register(&component("web"), &registration)
        .unwrap();
    let size = |environment| template.defaults(environment)["size"].clone();
    assert_eq!(size(EnvironmentName::DEV), json!(1));
    assert_eq!(size(EnvironmentName::PROD), json!(3));
    let wrong = Document::parse("d.yaml", "name: x\n").unwrap();
    assert!(read_defaults(&wrong).is_err());
}

#[test]
fn what_cannot_be_registered_leaves_no_template() {
    let (_temp, workspace) = workspace();
    let code = |stack: &str, registration: &ComponentRegistration| {
        let made = check_name(stack).and_then(|stack| workspace.register(&stack, registration));
        made.unwrap_err().code()
    };
    assert_eq!(
        code("nope", &needing(&[])),
        ErrorCode::STACK_PROGRAM_MISSING
    );
    assert_eq!(code("web", &needing(&["nope"])), ErrorCode::STACK_UNKNOWN);
    assert_eq!(code("web", &needing(&["web"])), ErrorCode::GRAPH_INVALID);
    let longest = ComponentName::LONGEST;
    for name in [
        "../x",
        "Web",
        "",
        "ü",
        "aws",
        "-a",
        &"a".repeat(longest + 1),
    ] {
        assert_eq!(code(name, &needing(&[])), ErrorCode::MALFORMED_ID, "{name}");
    }
    // The longest one leaves room for an id and an environment in the 63 characters that clouds allow.
    let name = "a".repeat(longest);
    assert_eq!(code(&name, &needing(&[])), ErrorCode::STACK_PROGRAM_MISSING);
    assert!(format!("D1BRV40-{name}-production").len() <= 63);
    assert!(workspace.library().unwrap().stacks.is_empty());
    workspace
        .register(&component("web"), &needing(&[]))
        .unwrap();
    assert_eq!(code("web", &needing(&[])), ErrorCode::STACK_REGISTERED);
}

#[test]
fn an_update_keeps_what_it_does_not_mention() {
    let (_temp, workspace) = workspace();
    workspace
        .register(&component("network"), &needing(&[]))
        .unwrap();
    workspace
        .register(&component("web"), &needing(&[]))
        .unwrap();
    let path = workspace.stack_template(&component("web"));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        format!("{text}\n# Ask Ada before changing this.\nconfig: {{size: 1}}\n"),
    )
    .unwrap();
    workspace
        .update_registration(&component("web"), &needing(&["network"]))
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("# Ask Ada before changing this.\nconfig: {size: 1}\n"),
        "{text}"
    );
    let cycle = workspace.update_registration(&component("network"), &needing(&["web"]));
    assert!(cycle.unwrap_err().message().contains("Circular dependency"));
    assert!(
        workspace.library().unwrap().stacks["network"]
            .dependencies
            .is_empty()
    );
}

#[test]
fn a_stack_in_use_is_not_unregistered_by_mistake() {
    let (_temp, workspace) = workspace();
    workspace
        .register(&component("network"), &needing(&[]))
        .unwrap();
    workspace
        .register(&component("web"), &needing(&["network"]))
        .unwrap();
    let error = workspace
        .unregister(&component("network"), false)
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::STACK_IN_USE);
    assert!(error.message().contains("stack web"), "{error}");
    workspace.unregister(&component("web"), false).unwrap();
    workspace.unregister(&component("network"), false).unwrap();
    assert!(workspace.library().unwrap().stacks.is_empty());
    assert_eq!(workspace.programs().len(), 3, "programs stay");
}

#[test]
fn a_project_file_says_no_more_than_it_may() {
    let read = |text: &str| {
        ProjectFile::read(&Document::parse("Pulumi.yaml", text).unwrap(), "web")
            .map_err(|e| e.code())
    };
    assert!(read("name: web\nruntime: nodejs\ndescription: d\n").is_ok());
    for more in [
        "name: other\nruntime: nodejs\n",
        "name: web\nruntime: go\n",
        "name: web\nruntime: {name: nodejs, options: {typescript: true}}\n",
        "name: web\nruntime: nodejs\nmain: index.ts\n",
        "name: web\nruntime: nodejs\nconfig: {aws:region: eu-west-1}\n",
        "name: web\nruntime: nodejs\norganization: shop\n",
    ] {
        assert_eq!(read(more), Err(ErrorCode::PROJECT_NOT_MINIMAL), "{more}");
    }
}

#[test]
fn exports_are_found_in_both_languages() {
    let text = "export const a = 1;\nexport let b: string;\n  export const no = 1;\n\
                pulumi.export('c', 1)\nexports.d = 1;\n";
    let names: Vec<_> = exports(text).into_iter().collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
}
