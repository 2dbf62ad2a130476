//! Aliases: a renamed, retyped or moved resource is the same resource.

use nimbus_engine_model::{AliasParent, AliasSpec};
use nimbus_engine_testing::{Rig, ScriptedResource};

use crate::{A, B, assert_ok, assert_steps, program};

fn named(name: &str) -> AliasSpec {
    AliasSpec {
        name: Some(name.to_owned()),
        ..AliasSpec::default()
    }
}

#[tokio::test]
async fn a_renamed_resource_is_kept() {
    let mut rig = Rig::new();
    assert_ok(
        &rig.up(&program([
            ScriptedResource::custom(A, "old").prop("foo", "1")
        ]))
        .await,
    );
    let run = rig
        .up(&program([ScriptedResource::custom(A, "new")
            .prop("foo", "1")
            .alias(named("old"))]))
        .await;
    assert_ok(&run);
    assert_steps(&run, &[]);
    assert_eq!(rig.cloud.ids(), ["id-1"]);
    assert!(rig.snapshot.resources.iter().any(|r| r.urn.name() == "new"));
    assert!(rig.snapshot.resources.iter().all(|r| r.urn.name() != "old"));
}

#[tokio::test]
async fn an_alias_may_be_a_urn() {
    let mut rig = Rig::new();
    assert_ok(&rig.up(&program([ScriptedResource::custom(A, "old")])).await);
    let old = rig.urn(A, "old");
    let run = rig
        .up(&program(
            [ScriptedResource::custom(B, "new").alias_urn(old)],
        ))
        .await;
    assert_ok(&run);
    assert_eq!(
        rig.cloud.ids(),
        ["id-1"],
        "type and name changed, the object stays"
    );
}

#[tokio::test]
async fn children_follow_an_aliased_parent() {
    let mut rig = Rig::new();
    let before = program([
        ScriptedResource::component("my:mod:Old", "comp"),
        ScriptedResource::custom(A, "child").parent("comp"),
    ]);
    assert_ok(&rig.up(&before).await);
    let retyped = AliasSpec {
        type_: Some("my:mod:Old".to_owned()),
        ..AliasSpec::default()
    };
    let after = program([
        ScriptedResource::component("my:mod:New", "comp").alias(retyped),
        ScriptedResource::custom(A, "child").parent("comp"),
    ]);
    let run = rig.up(&after).await;
    assert_ok(&run);
    assert_eq!(rig.cloud.ids(), ["id-1"]);
    let again = rig.up(&after).await;
    assert_ok(&again);
    assert_steps(&again, &[]);
}

#[tokio::test]
async fn a_resource_moves_under_a_parent() {
    let mut rig = Rig::new();
    assert_ok(&rig.up(&program([ScriptedResource::custom(A, "a")])).await);
    let no_parent = AliasSpec {
        parent: AliasParent::None,
        ..AliasSpec::default()
    };
    let run = rig
        .up(&program([
            ScriptedResource::component("my:mod:Comp", "comp"),
            ScriptedResource::custom(A, "a")
                .parent("comp")
                .alias(no_parent),
        ]))
        .await;
    assert_ok(&run);
    assert_eq!(rig.cloud.ids(), ["id-1"]);
}

#[tokio::test]
async fn references_to_the_old_name_are_rewritten() {
    let mut rig = Rig::new();
    assert_ok(
        &rig.up(&program([
            ScriptedResource::custom(A, "old"),
            ScriptedResource::custom(B, "user").from_output("x", "old", "computed"),
        ]))
        .await,
    );
    // The dependant is not reached by this run, so its record must follow on its own.
    let run = rig
        .up(&program([
            ScriptedResource::custom(A, "new").alias(named("old")),
            ScriptedResource::custom(B, "user").from_output("x", "new", "computed"),
        ])
        .failing_after(1))
        .await;
    assert!(!run.succeeded());
    let old = rig.urn(A, "old");
    for resource in &rig.snapshot.resources {
        assert!(!resource.dependencies.contains(&old), "{}", resource.urn);
    }
}
