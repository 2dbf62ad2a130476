//! Changes that a running production sees: nothing that holds data is replaced.

use std::collections::BTreeSet;

use crate::place::{LibrarySite, QUICK};
use crate::steps::{ResourceSteps, STATEFUL, Statuses};

/// One change at a time, in production: what holds data, or is known by name, stays what it is.
pub(crate) fn one_by_one(place: &LibrarySite) {
    let lost = |what: &str| {
        let events = place.events("deploy", "prod", QUICK);
        let failed = Statuses::read(&events);
        assert!(failed.with("failed").is_empty(), "{what}: {:?}", failed.0);
        ResourceSteps::read(&events).losses(STATEFUL)
    };
    let nothing = BTreeSet::new();
    let version = [
        ("allowMajorUpgrade: false", "allowMajorUpgrade: true"),
        ("engineVersion: \"17.6\"", "engineVersion: \"18.1\""),
    ];
    place.edit_stack("database-rds", "prod", &version);
    assert_eq!(lost("another major version"), nothing);

    let zones = |from: u8, to: u8| {
        let key = "availabilityZoneCount";
        let edit = (format!("{key}: {from}"), format!("{key}: {to}"));
        place.edit_stack("network", "prod", &[(&edit.0, &edit.1)]);
    };
    zones(3, 2);
    let third = ["data", "private", "public"].map(|tier| format!("delete network-{tier}-subnet-2"));
    assert_eq!(lost("a zone less"), BTreeSet::from(third));
    zones(2, 3);
    assert_eq!(lost("a zone more"), nothing);
    place.add_zone();
    zones(3, 4);
    let events = place.events("deploy", "prod", QUICK);
    let steps = ResourceSteps::read(&events);
    steps.position("network-data-subnet-3", ":Subnet", "done");
    assert_eq!(
        steps.losses(STATEFUL),
        nothing,
        "a zone that is new in the region"
    );
    // The API's link cannot be moved: it is another one, and only one is left.
    steps.position("services-api-vpc-link", ":VpcLink", "done");
    let objects = place.objects("prod").into_iter();
    assert_eq!(objects.filter(|one| one.contains(":VpcLink\"")).count(), 1);

    place.edit_stack("containers-apps", "prod", &[("name: api", "name: shop")]);
    assert_eq!(lost("another name of an application"), nothing);
}
