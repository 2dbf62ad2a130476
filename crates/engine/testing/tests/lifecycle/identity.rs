//! What a resource is may change: its kind, its provider, its mark for replacement.

use std::sync::Arc;

use nimbus_engine_testing::{Rig, ScriptedResource};

use crate::{A, assert_ok, assert_steps, program};

#[tokio::test]
async fn a_tainted_resource_is_replaced_once() {
    let mut rig = Rig::new();
    let one = program([ScriptedResource::custom(A, "a")]);
    assert_ok(&rig.up(&one).await);
    for resource in &mut rig.snapshot.resources {
        if resource.urn.name() == "a" {
            Arc::make_mut(resource).taint = true;
        }
    }
    let run = rig.up(&one).await;
    assert_ok(&run);
    assert_steps(
        &run,
        &["create-replacement a", "replace a", "delete-replaced a"],
    );
    assert_steps(&rig.up(&one).await, &[]);
}

#[tokio::test]
async fn a_resource_that_becomes_a_component_is_replaced() {
    let mut rig = Rig::new();
    assert_ok(&rig.up(&program([ScriptedResource::custom(A, "a")])).await);
    let run = rig
        .up(&program([ScriptedResource::component(A, "a")]))
        .await;
    assert_ok(&run);
    assert!(rig.cloud.ids().is_empty(), "the object is gone");
    assert!(
        rig.snapshot
            .resources
            .iter()
            .any(|r| r.urn.name() == "a" && !r.custom)
    );
}

#[tokio::test]
async fn another_provider_with_equal_configuration_replaces_nothing() {
    let mut rig = Rig::new();
    let with = |provider: &str| {
        program([
            ScriptedResource::provider_of("pkg", provider).prop("region", "x"),
            ScriptedResource::custom(A, "a").provider(provider),
        ])
    };
    assert_ok(&rig.up(&with("one")).await);
    let run = rig.up(&with("two")).await;
    assert_ok(&run);
    assert_eq!(
        rig.cloud.ids(),
        ["id-1"],
        "the same object, another provider"
    );
    let a = rig
        .snapshot
        .resources
        .iter()
        .find(|r| r.urn.name() == "a")
        .unwrap();
    assert!(a.provider.contains("::two::"), "{}", a.provider);
}

#[tokio::test]
async fn a_provider_whose_configuration_forces_it_replaces_its_resources() {
    let mut rig = Rig::new();
    let with = |region: &str| {
        program([
            ScriptedResource::provider_of("pkg", "mine").prop("replaceRegion", region),
            ScriptedResource::custom(A, "a").provider("mine"),
        ])
    };
    assert_ok(&rig.up(&with("x")).await);
    let run = rig.up(&with("y")).await;
    assert_ok(&run);
    assert_eq!(rig.cloud.ids(), ["id-2"]);
}

#[tokio::test]
async fn parallel_runs_end_in_the_same_state_as_serial_ones() {
    let wide = program(
        (0..12)
            .map(|i| ScriptedResource::custom(A, &format!("r{i}")).prop("foo", "1"))
            .chain([ScriptedResource::custom(A, "last").from_output("x", "r3", "computed")]),
    );
    let mut serial = Rig::new();
    assert_ok(&serial.up(&wide).await);
    let mut parallel = Rig::new();
    parallel.options.parallel = 8;
    assert_ok(&parallel.up(&wide).await);
    assert_ok(&parallel.destroy().await);
    assert!(parallel.cloud.ids().is_empty() && parallel.snapshot.resources.is_empty());
    assert_eq!(serial.cloud.ids().len(), 13);
}
