//! Refresh: the record follows the world, and an unreachable world removes nothing.

use nimbus_engine_model::{PropertyMap, PropertyValue};
use nimbus_engine_testing::{Rig, ScriptedResource};

use crate::{A, assert_ok, assert_steps, program};

#[tokio::test]
async fn drift_is_recorded_and_the_next_run_puts_it_right() {
    let mut rig = Rig::new();
    let one = program([ScriptedResource::custom(A, "a").prop("foo", "1")]);
    assert_ok(&rig.up(&one).await);
    let drifted = PropertyMap::from([("foo".to_owned(), PropertyValue::from("changed"))]);
    rig.cloud.plant("id-1", A, drifted);
    let run = rig.refresh().await;
    assert_ok(&run);
    let a = rig
        .snapshot
        .resources
        .iter()
        .find(|r| r.urn.name() == "a")
        .unwrap();
    assert_eq!(a.outputs["foo"], PropertyValue::from("changed"));
    assert_steps(&rig.up(&one).await, &["update a"]);
}

#[tokio::test]
async fn a_vanished_object_leaves_the_record() {
    let mut rig = Rig::new();
    let two = program([
        ScriptedResource::custom(A, "a"),
        ScriptedResource::custom(A, "b"),
    ]);
    assert_ok(&rig.up(&two).await);
    rig.cloud.vanish("id-1");
    rig.options.allow_mass_removal = true;
    assert_ok(&rig.refresh().await);
    assert!(rig.snapshot.resources.iter().all(|r| r.urn.name() != "a"));
    rig.options.allow_mass_removal = false;
    assert_steps(&rig.up(&two).await, &["create a"]);
}

#[tokio::test]
async fn an_error_while_reading_removes_nothing() {
    let mut rig = Rig::new();
    let one = program([ScriptedResource::custom(A, "a")]);
    assert_ok(&rig.up(&one).await);
    let before = rig.snapshot.resources.clone();
    rig.fault(|faults| faults.read_fails = vec!["a".to_owned()]);
    assert!(!rig.refresh().await.succeeded());
    assert_eq!(rig.snapshot.resources, before);
}

#[tokio::test]
async fn losing_many_at_once_is_refused_unless_allowed() {
    let mut rig = Rig::new();
    let many = program((0..20).map(|i| ScriptedResource::custom(A, &format!("r{i}"))));
    assert_ok(&rig.up(&many).await);
    for i in 1..=8 {
        rig.cloud.vanish(&format!("id-{i}"));
    }
    let before = rig.snapshot.resources.clone();
    assert!(!rig.refresh().await.succeeded());
    assert_eq!(rig.snapshot.resources, before);
    rig.options.allow_mass_removal = true;
    assert_ok(&rig.refresh().await);
    assert_eq!(rig.snapshot.resources.len(), before.len() - 8);
}
