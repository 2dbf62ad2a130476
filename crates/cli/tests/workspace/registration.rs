//! Stacks and templates come, change and go.

use serde_json::json;

use crate::support::WorkspaceSite;
use crate::terminal_session::Session;

#[test]
fn a_stack_is_registered_used_updated_and_unregistered() {
    let place = WorkspaceSite::new();
    place.write(
        "defaults.yaml",
        "config: {depth: 3}\nenvironments: {prod: {depth: 9}}\n",
    );
    let ran = place.run(&[
        "register-stack",
        "queue",
        "--description",
        "Queues of the shop",
        "--defaults-file",
        "defaults.yaml",
        "--dependencies",
        "network",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let listed = place.json(&["list-stacks"]);
    let queue = listed["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["name"] == "queue")
        .unwrap()
        .clone();
    assert_eq!(queue["description"], "Queues of the shop");
    assert_eq!(queue["dependencies"], json!(["network"]));
    assert_eq!(queue["outputs"], json!(["url"]));

    assert_eq!(
        place
            .run(&["update-template", "small", "--enable-stack", "queue"])
            .code,
        0
    );
    assert_eq!(place.init(&[]).code, 0);
    let config = place.read("cloud/deploy/D1BRV40-Company-A-ecommerce/config/queue.prod.yaml");
    assert!(config.contains("\"queue:depth\": 9"), "{config}");

    let updated = place.json(&[
        "update-stack",
        "queue",
        "--priority",
        "70",
        "--description",
        "More",
    ]);
    assert_eq!(
        (&updated["priority"], &updated["description"]),
        (&json!(70), &json!("More"))
    );

    let refused = place.run(&["unregister-stack", "queue"]);
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.stderr.contains("deployment D1BRV40"), "{refused:?}");
    assert_eq!(place.run(&["unregister-stack", "queue", "--force"]).code, 0);
    assert!(place.path("cloud/stacks/queue/src/Pulumi.yaml").exists());
    assert!(
        !place
            .path("cloud/tools/templates/config/queue.yaml")
            .exists()
    );
}

#[test]
fn at_a_terminal_defaults_are_asked_for_one_after_the_other() {
    let place = WorkspaceSite::new();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nimbus"));
    command
        .args(["register-stack", "queue"])
        .env("HOME", place.root())
        .current_dir(place.root());
    let mut session = Session::start(&command);
    for answer in ["depth=3\n", "prod.depth=9\n", "\n"] {
        session.wait_for("(leave blank to finish)");
        session.seen.clear();
        session.answer(answer);
    }
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    place.run(&["update-template", "small", "--enable-stack", "queue"]);
    assert_eq!(place.init(&[]).code, 0);
    for (environment, depth) in [("dev", 3), ("prod", 9)] {
        let file = format!("config/queue.{environment}.yaml");
        let config = place.read(&format!("cloud/deploy/D1BRV40-Company-A-ecommerce/{file}"));
        let line = format!("\"queue:depth\": {depth}\n");
        assert!(config.contains(&line), "{config}");
    }
}

#[test]
fn everything_that_is_there_can_be_registered_at_once() {
    let place = WorkspaceSite::with_deployment();
    for stack in ["network", "web"] {
        std::fs::remove_file(place.path(&format!("cloud/tools/templates/config/{stack}.yaml")))
            .unwrap();
    }
    assert_eq!(
        place.run(&["register-all-stacks"]).code,
        2,
        "--from-discovery must be said"
    );
    let web = "cloud/tools/templates/config/web.yaml";
    // What they need is stored when it is asked for, and not otherwise.
    place.json(&["register-all-stacks", "--from-discovery"]);
    let bare = place.read(web);
    assert!(!bare.contains("- network"), "{bare}");
    for stack in ["network", "queue", "web"] {
        std::fs::remove_file(place.path(&format!("cloud/tools/templates/config/{stack}.yaml")))
            .unwrap();
    }
    let report = place.json(&[
        "register-all-stacks",
        "--from-discovery",
        "--include-dependencies",
    ]);
    let stacks: Vec<_> = report["stacks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["name"].clone(), s["registered"].clone()))
        .collect();
    assert_eq!(
        stacks,
        [
            (json!("network"), json!(true)),
            (json!("queue"), json!(true)),
            (json!("web"), json!(true)),
        ]
    );
    let web = place.read(web);
    assert!(web.contains("dependencies:\n  - network\n"), "{web}");
    let again = place.json(&["register-all-stacks", "--from-discovery"]);
    assert!(
        again["stacks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|s| s["registered"] == false)
    );
}

#[test]
fn a_template_made_from_a_deployment_makes_the_same_deployment_again() {
    let place = WorkspaceSite::new();
    place.init(&["--account-dev", "111111111111", "--vpc-cidr", "10.9.0.0/16"]);
    let ran = place.run(&[
        "create-template",
        "company-standard",
        "--from-deployment",
        "D1BRV40",
        "--description",
        "As we like it",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        place
            .run(&["list-templates"])
            .stdout
            .contains("As we like it")
    );
    assert_eq!(
        place.run(&["validate-template", "company-standard"]).code,
        0
    );
    let again = place.run(&[
        "init",
        "D2",
        "--org",
        "Other",
        "--project",
        "p",
        "--template",
        "company-standard",
    ]);
    assert_eq!(again.code, 0, "{again:?}");
    let config = place.read("cloud/deploy/D2-Other-p/config/network.dev.yaml");
    assert!(config.contains("10.9.0.0/16"), "{config}");
    assert!(
        !place
            .read("cloud/deploy/D2-Other-p/Deployment_Manifest.yaml")
            .contains("111111111111")
    );

    let updated = place.json(&[
        "update-template",
        "company-standard",
        "--disable-stack",
        "web",
    ]);
    assert_eq!(updated["disabled"], json!(["web"]));
    place.run(&[
        "init",
        "D3",
        "--org",
        "o",
        "--project",
        "p",
        "--template",
        "company-standard",
    ]);
    assert!(
        !place
            .path("cloud/deploy/D3-o-p/config/web.dev.yaml")
            .exists()
    );
}

#[test]
fn a_new_stack_comes_with_tests_and_is_registered() {
    let place = WorkspaceSite::empty();
    assert_eq!(place.run(&["new"]).code, 0);
    let ran = place.run(&["new-stack", "queue", "--description", "Queues of the shop"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for file in [
        "src/index.ts",
        "src/Pulumi.yaml",
        "tests/queue.test.ts",
        "docs/Stack_History.md",
    ] {
        assert!(
            place.path(&format!("cloud/stacks/queue/{file}")).is_file(),
            "{file}"
        );
    }
    let added = place.run(&["update-template", "minimal", "--enable-stack", "queue"]);
    assert_eq!(added.code, 0, "{added:?}");
    let ran = place.run(&[
        "init",
        "D1",
        "--org",
        "o",
        "--project",
        "p",
        "--template",
        "minimal",
        "--domain",
        "x.example",
        "--account-dev",
        "111111111111",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let valid = place.run(&["validate", "D1"]);
    assert_eq!(valid.code, 0, "{valid:?}");
}

#[test]
fn a_made_up_value_is_forgotten_when_asked() {
    let place = WorkspaceSite::with_deployment();
    let memory = "cloud/deploy/D1BRV40-Company-A-ecommerce/.nimbus/dev/web.json";
    place.write(
        memory,
        r#"{"made": {"uuid:": "1", "password:32": "s|c", "password:32:admin": "s|d"}}"#,
    );
    let usual = ["rotate", "D1BRV40", "web", "--environment", "dev"];
    let one = place.json(&[&usual[..], &["--only", "password:32:admin"]].concat());
    assert_eq!(one["forgotten"], json!(["password:32:admin"]));
    assert!(place.read(memory).contains("s|c"));
    let all = place.json(&usual);
    assert_eq!(all["forgotten"], json!(["password:32", "uuid"]));
    assert_eq!(place.run(&usual).code, 3, "nothing is left");
    assert_eq!(
        place
            .run(&["rotate", "D1BRV40", "nope", "--environment", "dev"])
            .code,
        3
    );
}
