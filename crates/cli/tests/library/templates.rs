//! Every template, from its first file to a deployment in every environment that it has.

use std::collections::BTreeSet;
use std::fs;

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::place::{ID, LibrarySite, QUICK};

/// Templates, how many stacks they turn on, and their environments.
const TEMPLATES: &[(&str, usize, &[&str])] = &[
    ("default", 16, &["dev", "stage", "prod"]),
    ("minimal", 3, &["dev"]),
    ("microservices", 9, &["dev", "stage", "prod"]),
    ("data-platform", 6, &["dev", "stage", "prod"]),
];

#[test]
fn every_template_initialises_and_validates() {
    for (template, stacks, environments) in TEMPLATES {
        let place = LibrarySite::bare(template);
        place.ok(&["validate-template", template]);
        place.ok(&["validate", ID]);
        place.ok(&["validate-dependencies", ID]);
        place.ok(&["graph", ID]);
        let files = fs::read_dir(place.deployment().join("config")).unwrap();
        let files = files.map(|one| one.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
        assert_eq!(files.count(), stacks * environments.len(), "{template}");
    }
}

/// In every environment, one beside the other as in an account; then a look at what is there.
fn deploys_everywhere(template: &str) {
    let library = tool_or_skip!(Tool::Library);
    let (_, stacks, environments) = TEMPLATES
        .iter()
        .find(|(name, ..)| *name == template)
        .unwrap();
    let place = LibrarySite::new(&library, template);
    for environment in *environments {
        place.ok(&["enable-environment", ID, environment]);
        let deployed = place.every_stack("deploy", environment, QUICK);
        let done = deployed.with("succeeded");
        assert_eq!(done.len(), *stacks, "{environment}: {:?}", deployed.0);
        let again = place.every_stack("deploy", environment, QUICK);
        assert_eq!(again.with("skipped").len(), *stacks, "{:?}", again.0);
    }
    place.every_stack("destroy", "dev", &["--yes"]);
    assert_eq!(place.objects("dev"), BTreeSet::new());
    for environment in environments.iter().filter(|one| **one != "dev") {
        assert!(
            place.recorded(environment) > 50,
            "{environment} is untouched"
        );
    }
}

#[test]
fn minimal_deploys_in_every_environment() {
    deploys_everywhere("minimal");
}

#[test]
fn microservices_deploys_in_every_environment() {
    deploys_everywhere("microservices");
}

#[test]
fn data_platform_deploys_in_every_environment() {
    deploys_everywhere("data-platform");
}
