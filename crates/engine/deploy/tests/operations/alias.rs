//! Earlier names.

use futures::FutureExt as _;
use nimbus_engine_model::{Alias, AliasParent, AliasSpec, Urn};
use nimbus_engine_ports::EngineEvent;

use super::support::*;

fn named(name: &str) -> Alias {
    Alias::Spec(AliasSpec {
        name: Some(name.to_owned()),
        ..AliasSpec::default()
    })
}

#[tokio::test]
async fn a_renamed_resource_is_the_same_and_its_users_follow() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            let old = m.resource("old", |_| ()).await?;
            m.resource("user", |goal| depend(goal, "x", &old)).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let run = rig
        .up(|m| {
            async move {
                let new = m
                    .resource("new", |goal| goal.aliases = vec![named("old")])
                    .await?;
                assert_eq!(new.urn, urn("new"));
                m.resource("user", |goal| depend(goal, "x", &new)).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert!(run.step_lines().is_empty(), "{:?}", run.step_lines());
    assert_eq!(rig.names(), ["proj-test", "default", "new", "user"]);
    assert_eq!(rig.resource("user").dependencies, [urn("new")]);
    assert!(
        rig.resource("new").aliases.is_empty(),
        "once written, the old name is history"
    );
}

#[tokio::test]
async fn the_first_alias_that_is_recorded_counts_and_the_own_name_before_all() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            m.resource("b", |goal| set(goal, "x", "b")).await?;
            m.resource("c", |goal| set(goal, "x", "c")).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let run = rig
        .up(|m| {
            async move {
                let aliases = vec![named("nobody"), named("c"), named("b")];
                m.resource("new", |goal| {
                    set(goal, "x", "c");
                    goal.aliases = aliases;
                })
                .await?;
                m.resource("b", |goal| {
                    set(goal, "x", "b");
                    goal.aliases = vec![named("c")];
                })
                .await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert!(run.step_lines().is_empty(), "{:?}", run.step_lines());
}

#[tokio::test]
async fn two_claims_to_one_record_are_refused() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            m.resource("old", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    for second in ["other", "old"] {
        let run = rig
            .preview(move |m| {
                async move {
                    m.resource("new", |goal| goal.aliases = vec![named("old")])
                        .await?;
                    m.resource(second, |goal| goal.aliases = vec![named("old")])
                        .await?;
                    m.done();
                    Ok(())
                }
                .boxed()
            })
            .await;
        assert!(run.outcome.result.is_err());
        assert!(run.says("claims to be"), "{second}");
    }
}

#[tokio::test]
async fn children_inherit_the_earlier_names_of_their_parents() {
    let mut rig = AnsweringRig::new();
    let before = |m: ClosureMonitor| {
        async move {
            let outer = m.component("app", |_| ()).await?;
            let inner = m
                .component("app-db", |goal| goal.parent = Some(outer.urn))
                .await?;
            m.resource("app-db-disk", |goal| goal.parent = Some(inner.urn))
                .await?;
            m.done();
            Ok(())
        }
        .boxed()
    };
    rig.up(before).await.ok();
    let run = rig
        .up(|m| {
            async move {
                // Renaming the outermost is enough: names that begin with it follow.
                let outer = m
                    .component("shop", |goal| goal.aliases = vec![named("app")])
                    .await?;
                let inner = m
                    .component("shop-db", |goal| goal.parent = Some(outer.urn))
                    .await?;
                m.resource("shop-db-disk", |goal| goal.parent = Some(inner.urn))
                    .await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert!(run.step_lines().is_empty(), "{:?}", run.step_lines());
    assert_eq!(
        rig.names(),
        ["proj-test", "shop", "shop-db", "default", "shop-db-disk"]
    );
    assert_eq!(
        rig.resource("shop-db").parent.as_ref().unwrap().name(),
        "shop"
    );
}

#[tokio::test]
async fn own_and_inherited_aliases_multiply() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            let parent = m.component("old-parent", |_| ()).await?;
            m.resource("old-child", |goal| goal.parent = Some(parent.urn))
                .await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    // Both were renamed, and the parent was of another type too.
    let run = rig
        .up(|m| {
            async move {
                let parent = m
                    .component("new-parent", |goal| {
                        goal.type_ = "my:m:Other".to_owned();
                        goal.aliases = vec![Alias::Spec(AliasSpec {
                            name: Some("old-parent".to_owned()),
                            type_: Some("my:m:Component".to_owned()),
                            ..AliasSpec::default()
                        })];
                    })
                    .await?;
                m.resource("new-child", |goal| {
                    goal.parent = Some(parent.urn);
                    goal.aliases = vec![named("old-child")];
                })
                .await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert!(run.step_lines().is_empty(), "{:?}", run.step_lines());
}

#[tokio::test]
async fn a_resource_may_move_to_another_parent_or_from_another_project() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            m.resource("a", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let run = rig
        .up(|m| {
            async move {
                let parent = m.component("comp", |_| ()).await?;
                m.resource("a", |goal| {
                    goal.parent = Some(parent.urn);
                    goal.aliases = vec![Alias::Spec(AliasSpec {
                        parent: AliasParent::None,
                        ..AliasSpec::default()
                    })];
                })
                .await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(run.step_lines(), ["create comp"]);
    let foreign = Urn::new(STACK, "other-project", None, TYPE, "a");
    rig.edit("a", |state| {
        state.urn = foreign.clone();
        state.parent = None;
    });
    let run = rig
        .up(|m| {
            async move {
                m.resource("a", |goal| {
                    goal.aliases = vec![Alias::Spec(AliasSpec {
                        project: Some("other-project".to_owned()),
                        ..AliasSpec::default()
                    })];
                })
                .await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(run.step_lines(), ["delete comp"]);
    assert_eq!(rig.resource("a").urn, urn("a"));
}

#[tokio::test]
async fn an_alias_may_name_a_parent_that_was_renamed_itself() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            let parent = m.component("old-parent", |_| ()).await?;
            m.resource("child", |goal| goal.parent = Some(parent.urn))
                .await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let run = rig
        .up(|m| {
            async move {
                let parent = m
                    .component("new-parent", |goal| {
                        goal.type_ = "my:m:Other".to_owned();
                        goal.aliases = vec![Alias::Spec(AliasSpec {
                            name: Some("old-parent".to_owned()),
                            type_: Some("my:m:Component".to_owned()),
                            ..AliasSpec::default()
                        })];
                    })
                    .await?;
                // It left its parent, which is known by its new name only.
                m.resource("child", |goal| {
                    goal.aliases = vec![Alias::Spec(AliasSpec {
                        parent: AliasParent::Urn(parent.urn),
                        ..AliasSpec::default()
                    })];
                })
                .await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert!(run.step_lines().is_empty(), "{:?}", run.step_lines());
}

#[tokio::test]
async fn what_is_told_of_a_renamed_component_starts_from_its_old_record() {
    let mut rig = AnsweringRig::new();
    let program = |name: &'static str, earlier: &'static [&'static str]| {
        move |m: ClosureMonitor| {
            async move {
                let aliases = earlier.iter().map(|name| named(name)).collect();
                let comp = m.component(name, |goal| goal.aliases = aliases).await?;
                let outputs = props(&[("url", name.into())]);
                m.registrar.register_outputs(comp.urn, outputs).await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program("old", &[])).await.ok();
    let run = rig.up(program("new", &["old"])).await.ok();
    let told = run.events.iter().filter_map(|event| match event {
        EngineEvent::ResourceOutputs { step, .. } if step.urn.name() == "new" => Some(step),
        _ => None,
    });
    let old: Vec<_> = told
        .map(|step| step.old.as_ref().map(|old| old.outputs.clone()))
        .collect();
    assert_eq!(old, [Some(props(&[("url", "old".into())]))]);
}
