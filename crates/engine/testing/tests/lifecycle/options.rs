//! Options of a resource: protect, retain, deletedWith, ignoreChanges, secrets, providers.

use nimbus_engine_model::{PropertyValue, StepOp};
use nimbus_engine_testing::{Rig, ScriptedResource};

use crate::{A, B, assert_ok, assert_steps, program};

#[tokio::test]
async fn a_protected_resource_is_neither_deleted_nor_replaced() {
    let mut rig = Rig::new();
    let with = |v: &str| {
        program([ScriptedResource::custom(A, "a")
            .prop("replace", v)
            .option(|goal| goal.protect = Some(true))])
    };
    assert_ok(&rig.up(&with("1")).await);
    assert!(!rig.up(&with("2")).await.succeeded(), "replace");
    assert!(!rig.up(&program([])).await.succeeded(), "delete");
    assert!(!rig.destroy().await.succeeded(), "destroy");
    assert_eq!(rig.cloud.ids(), ["id-1"]);
    assert!(
        rig.snapshot
            .resources
            .iter()
            .any(|r| r.urn.name() == "a" && r.protect)
    );
}

#[tokio::test]
async fn lifting_the_protection_allows_the_delete() {
    let mut rig = Rig::new();
    let with = |protect| {
        program([ScriptedResource::custom(A, "a").option(|goal| goal.protect = Some(protect))])
    };
    assert_ok(&rig.up(&with(true)).await);
    let lifted = rig.up(&with(false)).await;
    assert_ok(&lifted);
    assert_steps(&lifted, &[]);
    assert_ok(&rig.up(&program([])).await);
    assert!(rig.cloud.ids().is_empty());
}

#[tokio::test]
async fn retain_on_delete_forgets_and_leaves() {
    let mut rig = Rig::new();
    let keep = program([
        ScriptedResource::custom(A, "a").option(|goal| goal.retain_on_delete = Some(true))
    ]);
    assert_ok(&rig.up(&keep).await);
    let run = rig.up(&program([])).await;
    assert_ok(&run);
    assert_steps(&run, &["delete a"]);
    assert_eq!(rig.cloud.ids(), ["id-1"], "the object stays");
    assert!(rig.snapshot.resources.iter().all(|r| r.urn.name() != "a"));
}

#[tokio::test]
async fn deleted_with_spares_the_delete_when_its_owner_goes_too() {
    let mut rig = Rig::new();
    let both = program([
        ScriptedResource::custom(A, "owner"),
        ScriptedResource::custom(B, "part").deleted_with("owner"),
    ]);
    assert_ok(&rig.up(&both).await);
    rig.fault(|faults| faults.delete_fails = vec!["part".to_owned()]);
    let run = rig.destroy().await;
    assert_ok(&run);
    assert!(rig.snapshot.resources.is_empty());
}

#[tokio::test]
async fn ignored_changes_keep_the_old_value() {
    let mut rig = Rig::new();
    let with = |foo: &str, bar: &str| {
        program([ScriptedResource::custom(A, "a")
            .prop("foo", foo)
            .prop("bar", bar)
            .option(|goal| goal.ignore_changes = vec!["foo".to_owned()])])
    };
    assert_ok(&rig.up(&with("1", "1")).await);
    assert_steps(&rig.up(&with("2", "1")).await, &[]);
    let run = rig.up(&with("2", "2")).await;
    assert_steps(&run, &["update a"]);
    assert_eq!(
        rig.cloud.get("id-1").unwrap().inputs["foo"],
        PropertyValue::from("1")
    );
}

#[tokio::test]
async fn outputs_of_secret_inputs_and_named_ones_are_secret() {
    let mut rig = Rig::new();
    let run = rig
        .up(&program([ScriptedResource::custom(A, "a")
            .prop(
                "password",
                PropertyValue::secret(PropertyValue::from("hush")),
            )
            .option(|goal| {
                goal.additional_secret_outputs = vec!["computed".to_owned()];
            })]))
        .await;
    assert_ok(&run);
    let a = rig
        .snapshot
        .resources
        .iter()
        .find(|r| r.urn.name() == "a")
        .unwrap();
    for key in ["password", "computed"] {
        assert!(
            matches!(a.outputs[key], PropertyValue::Secret(_)),
            "{key}: {:?}",
            a.outputs[key]
        );
    }
}

#[tokio::test]
async fn a_changed_option_is_recorded_without_a_step_shown() {
    let mut rig = Rig::new();
    let with = |retain| {
        program([
            ScriptedResource::custom(A, "a").option(|goal| goal.retain_on_delete = Some(retain))
        ])
    };
    assert_ok(&rig.up(&with(false)).await);
    let run = rig.up(&with(true)).await;
    assert_ok(&run);
    assert_steps(&run, &[]);
    assert!(
        rig.snapshot
            .resources
            .iter()
            .any(|r| r.urn.name() == "a" && r.retain_on_delete)
    );
}

#[tokio::test]
async fn an_explicit_provider_is_created_first_and_deleted_last() {
    let mut rig = Rig::new();
    let all = program([
        ScriptedResource::provider_of("pkg", "mine").prop("region", "x"),
        ScriptedResource::custom(A, "a").provider("mine"),
    ]);
    let run = rig.up(&all).await;
    assert_ok(&run);
    assert_steps(&run, &["create mine", "create a"]);
    let run = rig.destroy().await;
    assert_ok(&run);
    assert_steps(&run, &["delete a", "delete mine"]);
}

#[tokio::test]
async fn a_read_resource_is_recorded_as_external_and_never_deleted() {
    let mut rig = Rig::new();
    rig.cloud.plant("theirs", A, Default::default());
    let run = rig
        .up(&program([ScriptedResource::read(A, "r", "theirs")]))
        .await;
    assert_ok(&run);
    assert_steps(&run, &["read r"]);
    assert_eq!(run.count(StepOp::Read), 0, "a first look is no change");
    assert!(
        rig.snapshot
            .resources
            .iter()
            .any(|r| r.urn.name() == "r" && r.external)
    );
    assert_ok(&rig.destroy().await);
    assert!(rig.snapshot.resources.is_empty());
    assert_eq!(rig.cloud.ids(), ["theirs"]);
}
