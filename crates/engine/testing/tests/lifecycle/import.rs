//! Taking over objects that exist.

use nimbus_engine_model::{PropertyMap, PropertyValue};
use nimbus_engine_testing::{Rig, ScriptedResource};

use crate::{A, assert_ok, assert_steps, program};

fn foo(value: &str) -> PropertyMap {
    PropertyMap::from([("foo".to_owned(), PropertyValue::from(value))])
}

fn importing(value: &str) -> nimbus_engine_testing::ScriptedProgram {
    program([ScriptedResource::custom(A, "a")
        .prop("foo", value)
        .option(|goal| goal.import_id = Some("theirs".to_owned()))])
}

#[tokio::test]
async fn an_existing_object_is_taken_over_and_then_stays_the_same() {
    let mut rig = Rig::new();
    rig.cloud.plant("theirs", A, foo("1"));
    let run = rig.up(&importing("1")).await;
    assert_ok(&run);
    assert_steps(&run, &["import a"]);
    assert!(rig.cloud.log().is_empty(), "importing changes nothing");
    let a = rig
        .snapshot
        .resources
        .iter()
        .find(|r| r.urn.name() == "a")
        .unwrap();
    assert_eq!(a.id.as_deref(), Some("theirs"));
    assert_eq!(a.import_id.as_deref(), Some("theirs"));
    assert_steps(&rig.up(&importing("1")).await, &[]);
}

#[tokio::test]
async fn importing_what_does_not_exist_fails() {
    let mut rig = Rig::new();
    let run = rig.up(&importing("1")).await;
    assert!(!run.succeeded());
    assert!(rig.snapshot.resources.iter().all(|r| r.urn.name() != "a"));
}
