//! Working on a part of the stack.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use nimbus_engine_model::Urn;
use nimbus_engine_ports::RegisterError;

use super::support::*;
use nimbus_engine_deploy::{DeployError, Targets};

/// a ← b ← c, and d alone.
fn program(
    value: &'static str,
) -> impl Fn(ClosureMonitor) -> BoxFuture<'static, Result<(), RegisterError>> {
    move |m| {
        async move {
            let a = m.resource("a", |goal| set(goal, "x", value)).await?;
            let b = m
                .resource("b", |goal| {
                    set(goal, "x", value);
                    goal.dependencies = vec![a.urn.clone()];
                })
                .await?;
            m.resource("c", |goal| {
                set(goal, "x", value);
                goal.dependencies = vec![b.urn.clone()];
            })
            .await?;
            m.resource("d", |goal| set(goal, "x", value)).await?;
            m.done();
            Ok(())
        }
        .boxed()
    }
}

fn some(names: &[&str], dependents: bool) -> Targets {
    let urns: Vec<Urn> = names.iter().map(|name| urn(name)).collect();
    Targets {
        dependents,
        ..Targets::urns(&urns)
    }
}

#[tokio::test]
async fn targets_and_their_dependants_change_and_the_rest_stays() {
    for (targets, expected) in [
        (some(&["b"], false), vec!["update b"]),
        (some(&["b"], true), vec!["update b", "update c"]),
        (some(&["a"], true), vec!["update a", "update b", "update c"]),
        (
            Targets {
                patterns: vec!["**::[ab]".to_owned(), "**::a*".to_owned()],
                dependents: false,
            },
            vec!["update a"],
        ),
    ] {
        let mut rig = AnsweringRig::new();
        rig.up(program("1")).await.ok();
        rig.options.targets = targets;
        let run = rig.up(program("2")).await.ok();
        assert_eq!(run.step_lines(), expected);
        assert_eq!(rig.resource("d").inputs["x"], "1".into());
        rig.options.targets = Targets::default();
        let rest = rig.up(program("2")).await.ok();
        assert_eq!(rest.step_lines().len(), 4 - expected.len());
    }
}

#[tokio::test]
async fn excluded_resources_and_their_dependants_stay() {
    for (dependents, expected) in [
        (false, vec!["update a", "update c", "update d"]),
        (true, vec!["update a", "update d"]),
    ] {
        let mut rig = AnsweringRig::new();
        rig.up(program("1")).await.ok();
        rig.options.excludes = some(&["b"], dependents);
        assert_eq!(rig.up(program("2")).await.ok().step_lines(), expected);
        rig.options.excludes = some(&["a"], dependents);
        let run = rig.up(program("3")).await.ok();
        let through_others = run.step_lines().contains(&"update c".to_owned());
        assert_eq!(through_others, !dependents, "c depends on a by way of b");
    }
}

#[tokio::test]
async fn a_create_outside_the_targets_is_left_out_and_unknown() {
    let mut rig = AnsweringRig::new();
    rig.options.targets = some(&["d"], false);
    let run = rig
        .up(|m| {
            async move {
                let a = m.resource("a", |_| ()).await?;
                assert!(a.elided && a.id.is_none());
                m.resource("d", |_| ()).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(run.step_lines(), ["create d"]);
    assert!(rig.find("a").is_none());
}

#[tokio::test]
async fn a_target_that_needs_an_untargeted_create_is_refused() {
    let mut rig = AnsweringRig::new();
    rig.options.targets = some(&["b"], false);
    let run = rig.up(program("1")).await;
    assert!(
        matches!(run.error(), DeployError::OutsideTargets { .. }),
        "{:?}",
        run.error()
    );
    assert!(run.says("not among the targets"));
    assert!(rig.take_calls().is_empty());
}

#[tokio::test]
async fn unwanted_resources_outside_the_targets_stay_in_a_valid_order() {
    let mut rig = AnsweringRig::new();
    rig.up(program("1")).await.ok();
    // a is gone from the program; b still depends on it in the record and is not targeted.
    rig.options.targets = some(&["d"], false);
    let run = rig
        .up(|m| {
            async move {
                m.resource("b", |goal| set(goal, "x", "2")).await?;
                m.resource("d", |goal| set(goal, "x", "2")).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(
        run.all_step_lines(),
        ["same a", "same b", "update d", "same c"],
        "what b needs goes ahead of it"
    );
    let names = rig.names();
    let position = |name: &str| names.iter().position(|other| other == name).unwrap();
    assert!(
        position("a") < position("b") && position("b") < position("c"),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_targeted_destroy_takes_dependants_only_when_told() {
    let mut rig = AnsweringRig::new();
    rig.up(program("1")).await.ok();
    rig.options.targets = some(&["b"], false);
    let run = rig.destroy().await;
    assert!(matches!(run.error(), DeployError::OutsideTargets { .. }));
    assert_eq!(rig.names().len(), 6);
    rig.options.targets = some(&["b"], true);
    let run = rig.destroy().await.ok();
    assert_eq!(run.step_lines(), ["delete c", "delete b"]);
    assert_eq!(rig.names(), ["proj-test", "default", "a", "d"]);
}

#[tokio::test]
async fn a_destroy_spares_what_excluded_resources_need() {
    let mut rig = AnsweringRig::new();
    rig.up(program("1")).await.ok();
    rig.options.excludes = some(&["b"], false);
    let run = rig.destroy().await.ok();
    assert_eq!(run.step_lines(), ["delete d", "delete c"]);
    assert_eq!(rig.names(), ["proj-test", "default", "a", "b"]);
}

#[tokio::test]
async fn targets_that_do_not_exist_are_named() {
    let mut rig = AnsweringRig::new();
    rig.up(program("1")).await.ok();
    rig.options.targets = some(&["a", "typo"], false);
    for run in [rig.destroy().await, rig.up(program("1")).await] {
        let DeployError::UnknownTargets { targets } = run.error() else {
            panic!("{:?}", run.error())
        };
        assert_eq!(*targets, [urn("typo").to_string()]);
    }
    rig.options.targets = Targets::default();
    rig.options.replace_targets = vec![urn("typo").to_string()];
    assert!(matches!(
        rig.up(program("1")).await.error(),
        DeployError::UnknownTargets { .. }
    ));
}

#[tokio::test]
async fn an_untargeted_rename_waits() {
    let mut rig = AnsweringRig::new();
    rig.up(program("1")).await.ok();
    rig.options.targets = some(&["d"], false);
    let run = rig
        .up(|m| {
            async move {
                m.resource("renamed", |goal| {
                    set(goal, "x", "1");
                    let spec = nimbus_engine_model::AliasSpec {
                        name: Some("a".to_owned()),
                        ..Default::default()
                    };
                    goal.aliases = vec![nimbus_engine_model::Alias::Spec(spec)];
                })
                .await?;
                m.resource("d", |goal| set(goal, "x", "2")).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(run.step_lines(), ["update d"]);
    assert!(rig.find("a").is_some() && rig.find("renamed").is_none());
}

#[tokio::test]
async fn a_target_may_need_what_the_program_no_longer_registers() {
    let mut rig = AnsweringRig::new();
    rig.up(program("1")).await.ok();
    rig.options.targets = some(&["new"], false);
    let run = rig
        .up(|m| {
            async move {
                m.resource("new", |goal| goal.dependencies = vec![urn("b")])
                    .await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(
        run.all_step_lines()[..3],
        ["same a", "same b", "create new"],
        "records that it needs go ahead of it"
    );
}
