//! What production refuses to delete, and the way to delete it all the same.

use std::collections::BTreeSet;

use nimbus_test_tools::{Tool, tool_or_skip};

use crate::place::{ID, LibrarySite, QUICK};
use crate::steps::Statuses;

#[test]
fn production_is_destroyed_only_after_its_protection_is_off() {
    let library = tool_or_skip!(Tool::Library);
    let place = LibrarySite::new(&library, "microservices");
    place.ok(&["enable-environment", ID, "prod"]);
    place.every_stack("deploy", "prod", QUICK);
    let protected = |place: &LibrarySite| -> BTreeSet<String> {
        let objects = place.objects("prod").into_iter();
        objects
            .filter(|object| object.contains(":UserPool\"") || object.contains(":LoadBalancer\""))
            .collect()
    };
    let before = protected(&place);
    assert_eq!(before.len(), 2, "{before:?}");

    let destroy = [
        "destroy",
        ID,
        "--environment",
        "prod",
        "--rehearse",
        "--yes",
    ];
    let (code, stdout, stderr) = place.run(&destroy);
    let said = format!("{stdout}{stderr}");
    assert_ne!(code, 0, "{said}");
    assert!(said.contains("is protected against deletion"), "{said}");
    assert_eq!(
        protected(&place),
        before,
        "what is protected is still there"
    );

    for stack in ["authentication", "services-ecs"] {
        let edit = [("deletionProtection: true", "deletionProtection: false")];
        place.edit_stack(stack, "prod", &edit);
    }
    let again = place.every_stack("deploy", "prod", QUICK);
    assert!(again.with("failed").is_empty(), "{:?}", again.0);
    let gone = Statuses::read(&place.events("destroy", "prod", &["--yes"]));
    assert!(gone.with("failed").is_empty(), "{:?}", gone.0);
    place.assert_only_the_data_key_is_left("prod");
}
