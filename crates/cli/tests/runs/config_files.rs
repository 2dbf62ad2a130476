//! `config/<stack>.<environment>.yaml` is what a run reads; the manifest and the file go together.

use std::fs;

use crate::support::{ID, Site, node_sdk};

/// Replaces a text that a file of the deployment has once.
fn edit(site: &Site, name: &str, from: &str, to: &str) {
    let path = site.deployment(name);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{from} in {text}");
    fs::write(&path, text.replace(from, to)).unwrap();
}

fn file(site: &Site, name: &str) -> String {
    fs::read_to_string(site.deployment(name)).unwrap()
}

fn why(site: &Site, stack: &str) -> String {
    site.rehearse("why", &[stack]).ok().stdout
}

/// The size that the resources of a stack were made with, in dev.
fn deployed_size(site: &Site, stack: &str) -> String {
    let resources = site.resources();
    let first = resources
        .iter()
        .find(|one| one.contains(&format!("{stack}-first")));
    let first = first.unwrap_or_else(|| panic!("{resources:?}"));
    let at = first.find("\"size\":\"").unwrap() + 8;
    first[at..].split('"').next().unwrap().to_owned()
}

#[test]
fn an_edit_of_a_configuration_file_counts_and_why_names_the_key() {
    let Some(sdk) = node_sdk("an_edit_of_a_configuration_file_counts_and_why_names_the_key") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    site.rehearse("deploy", &[]).ok();
    edit(
        &site,
        "config/a.dev.yaml",
        "\"a:size\": \"1\"",
        "\"a:size\": \"7\" # for the test",
    );
    assert!(
        why(&site, "a").contains("config a:size changed"),
        "{}",
        why(&site, "a")
    );
    let ran = site.rehearse("deploy", &["--json"]).ok();
    assert_eq!(ran.status("a"), "succeeded");
    assert_eq!(deployed_size(&site, "a"), "7");
    assert!(file(&site, "config/a.dev.yaml").contains("# for the test"));

    // The manifest changes something else: the file follows it, and the edit stays.
    edit(
        &site,
        "config/b.stage.yaml",
        "\"b:size\": \"1\"",
        "\"b:size\": \"3\"",
    );
    site.set_size("b", "5");
    site.rehearse("deploy", &[]).ok();
    assert_eq!(deployed_size(&site, "b"), "5");
    assert!(file(&site, "config/b.dev.yaml").contains("\"b:size\": \"5\""));
    assert!(file(&site, "config/b.stage.yaml").contains("\"b:size\": \"3\""));
    assert!(file(&site, "config/a.dev.yaml").contains("# for the test"));

    // A file that is gone is written again, and then the manifest counts.
    fs::remove_file(site.deployment("config/a.dev.yaml")).unwrap();
    site.rehearse("deploy", &[]).ok();
    assert_eq!(deployed_size(&site, "a"), "1");
    assert!(file(&site, "config/a.dev.yaml").contains("\"a:size\": \"1\""));
}

#[test]
fn a_key_that_was_changed_in_both_places_is_refused_with_both() {
    let Some(sdk) = node_sdk("a_key_that_was_changed_in_both_places_is_refused_with_both") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.rehearse("deploy", &[]).ok();
    edit(
        &site,
        "config/a.dev.yaml",
        "\"a:size\": \"1\"",
        "\"a:size\": \"2\"",
    );
    site.set_size("a", "3");
    let manifest = file(&site, "Deployment_Manifest.yaml");
    let line = manifest
        .lines()
        .position(|line| line.contains("size: \"3\""));
    let line = line.unwrap() + 1;
    let config = file(&site, "config/a.dev.yaml");
    let there = config
        .lines()
        .position(|line| line.contains("a:size"))
        .unwrap()
        + 1;
    for verb in ["deploy", "preview"] {
        let refused = site.rehearse(verb, &["--json"]);
        assert_ne!(refused.code, 0);
        let error = &refused.summary()["error"];
        assert_eq!(error["code"], "NIM-0774", "{}", refused.stdout);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("`a:size`"), "{message}");
        assert!(
            message.contains(&format!("a.dev.yaml:{there}")),
            "{message}"
        );
        assert!(
            message.contains(&format!("Deployment_Manifest.yaml:{line}")),
            "{message}"
        );
    }
    assert_eq!(deployed_size(&site, "a"), "1", "nothing was changed");
    assert_eq!(file(&site, "config/a.dev.yaml"), config);

    // Looking does not need the two to agree, and agreeing is enough.
    site.run(&["status", ID, "--rehearse"]).ok();
    edit(
        &site,
        "config/a.dev.yaml",
        "\"a:size\": \"2\"",
        "\"a:size\": \"3\"",
    );
    site.rehearse("deploy", &[]).ok();
    assert_eq!(deployed_size(&site, "a"), "3");
}

#[test]
fn a_secret_in_a_configuration_file_stays_one() {
    let Some(sdk) = node_sdk("a_secret_in_a_configuration_file_stays_one") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[])]);
    site.write("value", "hunter2-of-a");
    let mut command = site.command(&["secret", "set", ID, "a.size"]);
    let input = fs::File::open(site.path("value")).unwrap();
    let set = command.stdin(input).output().unwrap();
    assert!(
        set.status.success(),
        "{}",
        String::from_utf8_lossy(&set.stderr)
    );
    edit(
        &site,
        "config/a.dev.yaml",
        "\"a:size\": \"1\"",
        "\"a:size\": {secret: a.size}",
    );
    site.rehearse("deploy", &[]).ok();
    let resources = site.resources().join("\n");
    assert!(!resources.contains("hunter2"), "{resources}");
    assert!(resources.contains("ciphertext"), "{resources}");
    assert!(!file(&site, "config/.written.json").contains("hunter2"));

    // A name that there is not is complained of where it stands.
    edit(
        &site,
        "config/a.dev.yaml",
        "{secret: a.size}",
        "{secret: a.sise}",
    );
    let failed = site.rehearse("deploy", &[]);
    assert_ne!(failed.code, 0);
    assert!(failed.stderr.contains("a.dev.yaml:"), "{}", failed.stderr);
    // What Pulumi encrypted for a stack of its own cannot be read here.
    edit(
        &site,
        "config/a.dev.yaml",
        "{secret: a.sise}",
        "{secure: v1:abcdef}",
    );
    let failed = site.rehearse("deploy", &[]);
    assert!(
        failed.stderr.contains("nimbus secret set"),
        "{}",
        failed.stderr
    );
}

#[test]
fn every_value_has_its_place_and_what_is_shared_is_written_once() {
    let Some(sdk) = node_sdk("every_value_has_its_place_and_what_is_shared_is_written_once") else {
        return;
    };
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    edit(
        &site,
        "Deployment_Manifest.yaml",
        "spec:\n",
        "spec:\n  defaults:\n    team: shop\n    tier: small\n",
    );
    edit(
        &site,
        "Deployment_Manifest.yaml",
        "    stage:\n      account",
        "    stage:\n      defaults: {tier: large}\n      account",
    );
    site.rehearse("deploy", &[]).ok();
    for name in ["config/a.dev.yaml", "config/b.stage.yaml"] {
        assert!(
            file(&site, name).contains(":team\": shop"),
            "{}",
            file(&site, name)
        );
    }
    edit(
        &site,
        "config/b.dev.yaml",
        "\"b:size\": \"1\"",
        "\"b:size\": \"4\"",
    );

    let shown = site.run(&["config", "show", ID, "--json"]).ok().summary();
    let origin = |stack: &str, environment: &str, key: &str| {
        let units = shown["units"].as_array().unwrap();
        let unit = units
            .iter()
            .find(|one| one["stack"] == stack && one["environment"] == environment);
        let values = unit.unwrap()["values"].as_array().unwrap();
        let value = values.iter().find(|one| one["key"] == key);
        value.unwrap_or_else(|| panic!("{key}: {values:?}")).clone()
    };
    let text = file(&site, "Deployment_Manifest.yaml");
    let line = |what: &str| text.lines().position(|line| line.contains(what)).unwrap() + 1;
    for (stack, environment, key, value, layer) in [
        ("b", "dev", "b:size", "4", "config_file"),
        ("b", "stage", "b:size", "1", "stack"),
        (
            "b",
            "dev",
            "b:from-a",
            "{{RUNTIME:a:first}}",
            "stack_defaults",
        ),
        ("b", "dev", "b:tier", "small", "defaults"),
        ("b", "stage", "b:tier", "large", "environment_defaults"),
        ("a", "dev", "aws:region", "eu-west-1", "environment"),
    ] {
        let found = origin(stack, environment, key);
        assert_eq!(found["value"], value, "{found}");
        assert_eq!(found["origin"]["layer"], layer, "{found}");
    }
    assert_eq!(
        origin("a", "dev", "a:team")["origin"]["line"],
        line("team: shop")
    );
    let edited = origin("b", "dev", "b:size");
    assert!(
        edited["origin"]["file"]
            .as_str()
            .unwrap()
            .ends_with("config/b.dev.yaml")
    );

    let told = site
        .run(&["config", "show", ID, "--stack", "a", "--origin"])
        .ok();
    let place = format!("Deployment_Manifest.yaml:{}", line("team: shop"));
    assert!(told.stdout.contains(&place), "{}", told.stdout);

    // One place to change it for all.
    edit(
        &site,
        "Deployment_Manifest.yaml",
        "team: shop",
        "team: platform",
    );
    for stack in ["a", "b"] {
        assert!(why(&site, stack).contains(&format!("config {stack}:team changed")));
    }
}
