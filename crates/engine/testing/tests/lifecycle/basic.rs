//! Create, same, update, delete; what a preview shows and does not do.

use nimbus_engine_model::{PropertyMap, PropertyValue, StepOp};
use nimbus_engine_testing::{CloudAct, Rig, ScriptedResource, render_snapshot};

use crate::{A, B, assert_ok, assert_steps, program, sames};

#[tokio::test]
async fn a_first_run_creates_in_order_and_a_second_changes_nothing() {
    let mut rig = Rig::new();
    let two = program([
        ScriptedResource::custom(A, "a").prop("foo", "1"),
        ScriptedResource::custom(B, "b").from_output("bar", "a", "computed"),
    ]);
    let first = rig.up(&two).await;
    assert_ok(&first);
    assert_steps(&first, &["create a", "create b"]);
    insta::assert_snapshot!(render_snapshot(&rig.snapshot), @r"
    proj-test
    default id=00000000-0000-0000-0000-000000000001
    a id=id-1 foo=1
    b id=id-2 bar=id-1!
    ");

    let before = rig.snapshot.clone();
    let second = rig.up(&two).await;
    assert_ok(&second);
    assert_steps(&second, &[]);
    assert_eq!(sames(&second), 4, "stack, provider and two resources");
    assert_eq!(rig.snapshot.resources, before.resources);
    assert_eq!(rig.cloud.log().len(), 2);
}

#[tokio::test]
async fn a_changed_input_updates_and_only_that_resource() {
    let mut rig = Rig::new();
    let with = |foo: &str| {
        program([
            ScriptedResource::custom(A, "a").prop("foo", foo),
            ScriptedResource::custom(B, "b").prop("x", "y"),
        ])
    };
    assert_ok(&rig.up(&with("1")).await);
    let run = rig.up(&with("2")).await;
    assert_ok(&run);
    assert_steps(&run, &["update a"]);
    assert_eq!(
        rig.cloud.get("id-1").unwrap().inputs["foo"],
        PropertyValue::from("2")
    );
}

#[tokio::test]
async fn what_the_program_no_longer_asks_for_is_deleted_dependants_first() {
    let mut rig = Rig::new();
    let all = program([
        ScriptedResource::custom(A, "a"),
        ScriptedResource::custom(A, "b").depends_on("a"),
        ScriptedResource::custom(A, "c").from_output("x", "b", "computed"),
    ]);
    assert_ok(&rig.up(&all).await);
    let run = rig.up(&program([])).await;
    assert_ok(&run);
    assert_steps(&run, &["delete c", "delete b", "delete a"]);
    assert!(rig.cloud.ids().is_empty());
    assert_eq!(rig.snapshot.resources.len(), 1, "only the stack is left");
}

#[tokio::test]
async fn destroy_removes_everything_in_reverse_order() {
    let mut rig = Rig::new();
    let all = program([
        ScriptedResource::component("my:mod:Comp", "comp"),
        ScriptedResource::custom(A, "a").parent("comp"),
        ScriptedResource::custom(A, "b").depends_on("a"),
    ]);
    assert_ok(&rig.up(&all).await);
    let run = rig.destroy().await;
    assert_ok(&run);
    assert_steps(&run, &["delete b", "delete a", "delete comp"]);
    assert!(rig.snapshot.resources.is_empty());
    assert!(rig.cloud.ids().is_empty());
}

#[tokio::test]
async fn a_preview_announces_the_same_steps_and_changes_nothing() {
    let mut rig = Rig::new();
    assert_ok(&rig.up(&program([ScriptedResource::custom(A, "old")])).await);
    let next = program([
        ScriptedResource::custom(A, "new").prop("foo", "1"),
        ScriptedResource::custom(B, "dependant").from_output("bar", "new", "computed"),
    ]);
    let before = (rig.snapshot.clone(), rig.cloud.log());
    let preview = rig.preview(&next).await;
    assert_ok(&preview);
    assert_steps(&preview, &["create new", "create dependant", "delete old"]);
    assert!(
        preview.entries.is_empty(),
        "a preview has nothing to record"
    );
    assert_eq!((rig.snapshot.clone(), rig.cloud.log()), before);

    let dependant = preview
        .step_events()
        .find(|step| step.urn.name() == "dependant")
        .unwrap();
    let inputs = &dependant.new.as_ref().unwrap().inputs;
    assert_eq!(
        inputs["bar"],
        PropertyValue::Computed,
        "unknown stays unknown"
    );
}

#[tokio::test]
async fn every_act_is_recorded_before_and_after() {
    let mut rig = Rig::new();
    let run = rig.up(&program([ScriptedResource::custom(A, "a")])).await;
    assert_ok(&run);
    let begins = run
        .entries
        .iter()
        .filter(|entry| matches!(entry, nimbus_engine_model::JournalEntry::Begin { .. }))
        .count();
    assert!(begins >= 1, "{:#?}", run.entries);
    assert!(rig.snapshot.pending_operations.is_empty());
    assert_eq!(
        rig.cloud.log(),
        [CloudAct::Created {
            id: "id-1".to_owned()
        }]
    );
}

#[tokio::test]
async fn components_keep_the_outputs_they_register() {
    let mut rig = Rig::new();
    let outputs = PropertyMap::from([("url".to_owned(), PropertyValue::from("http://x"))]);
    let run = rig
        .up(&program([ScriptedResource::component(
            "my:mod:Comp",
            "comp",
        )
        .outputs(outputs.clone())]))
        .await;
    assert_ok(&run);
    let comp = rig
        .snapshot
        .resources
        .iter()
        .find(|r| r.urn.name() == "comp")
        .unwrap();
    assert_eq!(comp.outputs, outputs);
    assert_eq!(run.count(StepOp::Create), 2, "stack and component");
}

#[tokio::test]
async fn the_same_urn_twice_fails_the_run_and_deletes_nothing() {
    let mut rig = Rig::new();
    assert_ok(
        &rig.up(&program([ScriptedResource::custom(A, "keep")]))
            .await,
    );
    let run = rig
        .up(&program([
            ScriptedResource::custom(A, "a"),
            ScriptedResource::custom(A, "a"),
        ]))
        .await;
    assert!(!run.succeeded());
    assert!(
        rig.cloud.get("id-1").is_some(),
        "what the program did not reach stays"
    );
}

#[tokio::test]
async fn a_program_that_throws_deletes_nothing() {
    let mut rig = Rig::new();
    let both = program([
        ScriptedResource::custom(A, "a"),
        ScriptedResource::custom(A, "b"),
    ]);
    assert_ok(&rig.up(&both).await);
    let run = rig.up(&both.clone().failing_after(1)).await;
    assert!(!run.succeeded());
    assert_steps(&run, &[]);
    assert_eq!(rig.cloud.ids().len(), 2);
    assert_eq!(
        rig.snapshot
            .resources
            .iter()
            .filter(|r| r.type_ == A)
            .count(),
        2
    );
}
