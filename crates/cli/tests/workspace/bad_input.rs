//! Input that no careful person would write. Every one gets a typed error, and nothing is lost.

use crate::support::{MANIFEST, WorkspaceSite, without_trace};

/// The error's code in `--json`, after checking that people get the same one.
fn code_of(place: &WorkspaceSite, arguments: &[&str]) -> String {
    let json = without_trace(place.json(arguments));
    let code = json["error"]["code"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let ran = place.run(arguments);
    assert!(ran.code != 0 && ran.code != 70, "{ran:?}");
    assert!(ran.stderr.contains(&code) || code.is_empty(), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    code
}

fn broken_manifest(text: &str) -> String {
    let place = WorkspaceSite::with_deployment();
    place.write(MANIFEST, text);
    let code = code_of(&place, &["validate", "D1BRV40"]);
    assert_eq!(place.read(MANIFEST), text, "a broken file is left as it is");
    code
}

#[test]
fn yaml_that_is_none_is_refused_with_its_place() {
    assert_eq!(broken_manifest("spec:\n\tstacks: {}\n"), "NIM-0005", "tabs");
    assert_eq!(
        broken_manifest("kind: a\nkind: b\n"),
        "NIM-0005",
        "duplicate keys"
    );
    assert_eq!(broken_manifest("a: [1, 2\n"), "NIM-0005", "not closed");
    assert_eq!(
        broken_manifest("a: 1\n---\nb: 2\n"),
        "NIM-0005",
        "two documents"
    );
    assert_eq!(
        broken_manifest("a: \u{1b}[31m\n"),
        "NIM-0005",
        "control characters"
    );
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            before.trim_end_matches(", ")
        ));
    }
    assert_eq!(broken_manifest(&bomb), "NIM-0006", "an alias bomb");
    let deep = "[".repeat(5000) + &"]".repeat(5000);
    assert_eq!(
        broken_manifest(&format!("a: {deep}\n")),
        "NIM-0006",
        "nested too deep"
    );
}

#[test]
fn wrong_types_and_unknown_keys_are_refused_with_their_place() {
    let place = WorkspaceSite::with_deployment();
    let good = place.read(MANIFEST);
    for (from, to) in [
        ("      enabled: true", "      enabled: 3"),
        ("stacks:\n", "stacks: []\n  others:\n"),
        ("dependencies:\n", "dependancies:\n"),
        ("deploymentId: D1BRV40", "deploymentId: [D1]"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        place.write(MANIFEST, &bad);
        let json = without_trace(place.json(&["validate", "D1BRV40"]));
        assert_eq!(json["error"]["code"], "NIM-0007", "{to}: {json}");
        let places = json["error"]["places"].as_array().map_or(0, Vec::len);
        assert_eq!(places, 1, "{json}");
    }
}

#[test]
fn ids_and_names_never_leave_their_directory() {
    let place = WorkspaceSite::with_deployment();
    place.write("outside.yaml", "name: outside\n");
    let long = "x".repeat(300);
    for id in [
        "../x",
        "D1/../../x",
        "/etc/passwd",
        "D1BRV40/",
        "ü",
        "",
        ".",
        &long,
    ] {
        for command in [
            "validate",
            "graph",
            "list-environments",
            "validate-dependencies",
        ] {
            let code = code_of(&place, &[command, id]);
            assert!(
                ["NIM-0704", "NIM-0014"].contains(&code.as_str()),
                "{command} {id}: {code}"
            );
        }
    }
    for name in ["../../outside", "ü", "", &long] {
        assert_eq!(
            code_of(&place, &["register-stack", name]),
            "NIM-0014",
            "{name}"
        );
        assert_eq!(code_of(&place, &["new-stack", name]), "NIM-0014", "{name}");
        assert_eq!(
            code_of(
                &place,
                &["create-template", name, "--from-deployment", "D1BRV40"]
            ),
            "NIM-0014",
            "{name}"
        );
        assert_eq!(
            code_of(&place, &["show-template", name]),
            "NIM-0700",
            "{name}"
        );
        assert_eq!(
            code_of(&place, &["update-template", name, "--description", "x"]),
            "NIM-0700",
            "{name}"
        );
        assert_eq!(
            code_of(&place, &["unregister-stack", name]),
            "NIM-0707",
            "{name}"
        );
        assert_eq!(
            code_of(&place, &["update-stack", name, "--priority", "1"]),
            "NIM-0707",
            "{name}"
        );
        assert_eq!(
            code_of(
                &place,
                &["validate-stack", "D1BRV40", name, "--environment", "dev"]
            ),
            "NIM-0707",
            "{name}"
        );
    }
    assert_eq!(place.read("outside.yaml"), "name: outside\n");
}

#[test]
fn names_that_cannot_be_used_are_refused_before_anything_is_written() {
    let place = WorkspaceSite::new();
    let long = "x".repeat(300);
    for (org, project) in [
        ("", "p"),
        ("o", "ü"),
        (long.as_str(), "p"),
        ("o", long.as_str()),
        ("../..", "p"),
    ] {
        let code = code_of(
            &place,
            &[
                "init",
                "--org",
                org,
                "--project",
                project,
                "--template",
                "small",
            ],
        );
        assert!(
            ["NIM-0014", "NIM-0002"].contains(&code.as_str()),
            "{org} {project}: {code}"
        );
    }
    assert_eq!(
        code_of(
            &place,
            &[
                "init",
                "--org",
                "o",
                "--project",
                "p",
                "--account-dev",
                "12"
            ]
        ),
        "NIM-0002"
    );
    assert_eq!(
        code_of(
            &place,
            &[
                "init",
                "--org",
                "o",
                "--project",
                "p",
                "--vpc-cidr",
                "10.0.0.0"
            ]
        ),
        "NIM-0002"
    );
    assert_eq!(
        code_of(
            &place,
            &["init", "--org", "o", "--project", "p", "--template", "smal"]
        ),
        "NIM-0700"
    );
    assert_eq!(
        code_of(
            &place,
            &[
                "init",
                "--org",
                "o",
                "--project",
                "p",
                "--template",
                "small",
                "--set",
                "NOPE=1"
            ]
        ),
        "NIM-0701"
    );
    assert!(
        !place.path("cloud/deploy").exists()
            || std::fs::read_dir(place.path("cloud/deploy"))
                .unwrap()
                .count()
                == 0
    );
    let unicode = place.run(&[
        "init",
        "D1",
        "--org",
        "Société Ünïcode",
        "--project",
        "日本 shop",
        "--template",
        "small",
    ]);
    assert_eq!(unicode.code, 0, "{unicode:?}");
    assert!(place.path("cloud/deploy/D1-Soci-t-n-code-shop").is_dir());
}

#[test]
fn findings_point_at_line_and_column() {
    let place = WorkspaceSite::with_deployment();
    let bad = place
        .read(MANIFEST)
        .replace("network:vpcId", "network:vpcIdd")
        .replace("size: 1", "size: '{{RUNTIME:calculate:median}}'");
    place.write(MANIFEST, &bad);
    let report = place.json(&["validate", "D1BRV40", "--environment", "dev"]);
    for finding in report["findings"].as_array().unwrap() {
        // What is wrong, and what to do.
        for said in ["title", "detail", "help"] {
            let words = finding[said].as_str().unwrap_or_default();
            assert!(words.len() > 5, "{said}: {finding}");
        }
        let line = finding["place"]["line"].as_u64().unwrap() as usize;
        let column = finding["place"]["column"].as_u64().unwrap() as usize;
        let text = bad.lines().nth(line - 1).unwrap();
        assert!(
            text[column - 1..].starts_with("{{RUNTIME:"),
            "{finding}: {text}"
        );
    }
    assert_eq!(report["findings"].as_array().unwrap().len(), 2, "{report}");
}

#[test]
fn a_defaults_file_or_an_init_file_that_is_wrong_names_itself() {
    let place = WorkspaceSite::new();
    place.write("d.yaml", "confg: {}\n");
    let ran = place.run(&["register-stack", "queue", "--defaults-file", "d.yaml"]);
    assert!(
        ran.stderr.contains("d.yaml") && ran.stderr.contains("did you mean `config`?"),
        "{ran:?}"
    );
    place.write("i.yaml", "org: o\nprojct: p\n");
    let ran = place.run(&["init", "--from-file", "i.yaml"]);
    assert!(
        ran.stderr.contains("i.yaml") && ran.stderr.contains("did you mean `project`?"),
        "{ran:?}"
    );
    assert_eq!(place.run(&["init", "--from-file", "nope.yaml"]).code, 7);
}

#[test]
fn texts_of_manifests_and_templates_are_shown_on_their_line() {
    const HOSTILE: &str = "x\u{1b}[2J\nforged  line\u{202e}";
    const SHOWN: &str = r"x\u{1b}[2J\nforged  line\u{202e}";
    // Files have no control characters themselves; escapes of YAML stand for them.
    const YAML: &str = r#""x\u001b[2J\nforged  line\u202e""#;
    let place = WorkspaceSite::with_deployment();
    let manifest = place.read(MANIFEST);
    // However the manifest quotes it.
    let line = |line: &str| match line.trim_start().starts_with("template:") {
        true => format!("  template: {YAML}\n"),
        false => format!("{line}\n"),
    };
    let hostile: String = manifest.lines().map(line).collect();
    assert!(hostile.contains(YAML), "{manifest}");
    place.write(MANIFEST, &hostile);
    let template = "cloud/tools/templates/config/network.yaml";
    let described = place.read(template);
    let described = described.replacen("description: Networks", &format!("description: {YAML}"), 1);
    place.write(template, &described);

    for command in ["list", "list-stacks"] {
        let ran = place.run(&[command]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains(SHOWN), "{ran:?}");
        assert!(!ran.stdout.contains(['\u{1b}', '\u{202e}']), "{ran:?}");
        let mut lines = ran.stdout.lines();
        assert!(!lines.any(|line| line.starts_with("forged")), "{ran:?}");
    }
    let exact = place.json(&["list"]);
    assert_eq!(exact["deployments"][0]["template"], HOSTILE);
    let exact = place.json(&["list-stacks"]);
    let stacks = exact["stacks"].as_array().unwrap();
    assert!(
        stacks.iter().any(|stack| stack["description"] == HOSTILE),
        "{exact}"
    );
}
