//! Schemas, files that name them, and what the readers think of the same files.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;

use nimbus_document::Document;
use serde_json::Value;

use crate::support::{MANIFEST, WorkspaceSite};

fn validator(place: &WorkspaceSite, name: &str) -> jsonschema::Validator {
    let text = place.read(&format!("cloud/tools/schemas/{name}"));
    jsonschema::validator_for(&serde_json::from_str::<Value>(&text).unwrap()).unwrap()
}

fn as_json(path: &Path) -> Value {
    let document = Document::read(path).unwrap();
    document.to_json(document.root()).unwrap()
}

/// The schema that a file names in its first line, which must exist where it says.
fn named_schema(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let first = text.lines().next().unwrap();
    let relative = first.strip_prefix("# yaml-language-server: $schema=");
    assert!(relative.is_some(), "{}: {first}", path.display());
    let relative = relative.unwrap();
    let target = path.parent().unwrap().join(relative);
    assert!(
        target.is_file(),
        "{} names {}",
        path.display(),
        target.display()
    );
    target.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn every_shipped_template_and_every_generated_manifest_keeps_its_schema() {
    let place = WorkspaceSite::empty();
    assert_eq!(place.run(&["new"]).code, 0);
    let mut checked = 0;
    for kind in ["config", "default"] {
        for entry in
            std::fs::read_dir(place.path(&format!("cloud/tools/templates/{kind}"))).unwrap()
        {
            let path = entry.unwrap().path();
            let schema = validator(&place, &named_schema(&path));
            let errors: Vec<_> = schema
                .iter_errors(&as_json(&path))
                .map(|e| e.to_string())
                .collect();
            assert!(errors.is_empty(), "{}: {errors:?}", path.display());
            checked += 1;
        }
    }
    assert_eq!(checked, 20);
    let templates = ["default", "minimal", "microservices", "data-platform"];
    for (number, template) in templates.into_iter().enumerate() {
        let id = format!("D{number}");
        let ran = place.run(&[
            "init",
            &id,
            "--org",
            "o",
            "--project",
            template,
            "--template",
            template,
            "--domain",
            "x.example",
            "--account-dev",
            "111111111111",
        ]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let path = place.path(&format!(
            "cloud/deploy/{id}-o-{template}/Deployment_Manifest.yaml"
        ));
        let schema = validator(&place, &named_schema(&path));
        let errors: Vec<_> = schema
            .iter_errors(&as_json(&path))
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{template}: {errors:?}");
    }
}

#[test]
fn registered_stacks_and_custom_templates_name_their_schemas() {
    let place = WorkspaceSite::with_deployment();
    place.run(&["register-stack", "queue"]);
    place.run(&["create-template", "our-own", "--from-deployment", "D1BRV40"]);
    assert_eq!(
        place.run(&["new"]).code,
        0,
        "adds what an older workspace lacks"
    );
    for file in ["config/queue.yaml", "custom/our-own.yaml"] {
        let path = place.path(&format!("cloud/tools/templates/{file}"));
        let schema = validator(&place, &named_schema(&path));
        assert!(schema.is_valid(&as_json(&path)), "{file}");
    }
    assert_eq!(named_schema(&place.path(MANIFEST)), "manifest.schema.json");
}

#[test]
fn what_the_reader_refuses_the_schema_refuses() {
    let place = WorkspaceSite::with_deployment();
    place.run(&["new"]);
    let schema = validator(&place, "manifest.schema.json");
    let good = place.read(MANIFEST);
    for (from, to) in [
        ("kind: DeploymentManifest", "kind: Pod"),
        ("deploymentId: D1BRV40", "deploymentId: ../x"),
        ("      enabled: true", "      enabled: yes"),
        ("    dev:\n", "    Dev:\n"),
        ("spec:\n", "more: 1\nspec:\n"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        place.write(MANIFEST, &bad);
        assert!(!schema.is_valid(&as_json(&place.path(MANIFEST))), "{to}");
        assert_eq!(place.run(&["validate", "D1BRV40"]).code, 2, "{to}");
    }
}
