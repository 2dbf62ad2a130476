//! Create, same, update, delete; components and the stack; who may register what.

use std::sync::Arc;

use futures::FutureExt as _;
use nimbus_engine_model::{JournalEntry, OperationKind, PropertyValue, StepOp};
use nimbus_engine_ports::{EngineEvent, RegisterError};

use super::support::*;
use nimbus_engine_deploy::DeployError;

#[tokio::test]
async fn create_then_same_then_update_then_delete() {
    let mut rig = AnsweringRig::new();
    let program = |value: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                let a = m.resource("a", |goal| set(goal, "x", value)).await?;
                assert_eq!(a.id.as_deref(), Some("id-1"));
                assert_eq!(a.outputs["x"], value.into());
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    assert_eq!(rig.up(program("1")).await.ok().step_lines(), ["create a"]);
    let same = rig.up(program("1")).await.ok();
    assert_eq!(same.all_step_lines(), ["same a"]);
    assert_eq!(rig.up(program("2")).await.ok().step_lines(), ["update a"]);
    assert_eq!(rig.resource("a").inputs["x"], "2".into());
    let gone = rig
        .up(|m| {
            async move {
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(gone.step_lines(), ["delete a"]);
    assert_eq!(
        rig.take_calls(),
        ["create a", "update a id-1", "delete a id-1"]
    );
    assert!(rig.find("a").is_none());
}

#[tokio::test]
async fn every_act_has_a_beginning_and_an_outcome_in_the_journal() {
    let mut rig = AnsweringRig::new();
    let run = rig
        .up(|m| {
            async move {
                m.resource("a", |_| ()).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    let begun: Vec<_> = run
        .entries
        .iter()
        .filter_map(|entry| match entry {
            JournalEntry::Begin { act, operation } => Some((*act, operation.kind)),
            _ => None,
        })
        .collect();
    let [(act, OperationKind::Creating)] = begun.as_slice() else {
        panic!("{begun:?}")
    };
    let ended = run.entries.iter().any(|entry| {
        matches!(entry, JournalEntry::Success { act: ended, change }
            if ended == act && change.state.as_ref().is_some_and(|state| state.id.is_some()))
    });
    assert!(ended, "{:?}", run.entries);
}

#[tokio::test]
async fn a_same_rewrites_the_record_when_options_or_dependencies_changed() {
    let mut rig = AnsweringRig::new();
    let program = |changed: bool| {
        move |m: ClosureMonitor| {
            async move {
                let a = m.resource("a", |_| ()).await?;
                m.resource("b", |goal| {
                    if changed {
                        goal.protect = Some(true);
                        goal.dependencies = vec![a.urn.clone()];
                        goal.custom_timeouts.create = 60.0;
                    }
                })
                .await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program(false)).await.ok();
    let run = rig.up(program(true)).await.ok();
    assert_eq!(run.step_lines(), [] as [&str; 0]);
    let b = rig.resource("b");
    assert!(b.protect);
    assert_eq!(b.dependencies, [urn("a")]);
    assert_eq!(b.custom_timeouts.create, 60.0);
}

#[tokio::test]
async fn a_run_that_changes_nothing_leaves_the_state_as_it_was() {
    let mut rig = AnsweringRig::new();
    let program = |m: ClosureMonitor| {
        async move {
            let comp = m.component("comp", |_| ()).await?;
            let parent = Some(comp.urn.clone());
            let a = m.resource("a", |goal| goal.parent = parent.clone()).await?;
            m.resource("b", |goal| depend(goal, "x", &a)).await?;
            m.registrar
                .register_outputs(comp.urn, props(&[("url", "u".into())]))
                .await?;
            *m.outputs.lock() = Some(props(&[("name", "n".into())]));
            Ok(())
        }
        .boxed()
    };
    rig.up(program).await.ok();
    let before = rig.snapshot.resources.clone();
    let run = rig.up(program).await.ok();
    assert_eq!(rig.snapshot.resources, before);
    assert_eq!(
        run.count(StepOp::Same),
        4,
        "stack, component and two resources; not the provider"
    );
}

#[tokio::test]
async fn components_answer_with_nothing_and_record_the_outputs_they_register() {
    let mut rig = AnsweringRig::new();
    let program = |url: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                let comp = m.component("comp", |goal| set(goal, "x", "1")).await?;
                assert!(comp.outputs.is_empty() && comp.id.is_none());
                m.resource("child", |goal| goal.parent = Some(comp.urn.clone()))
                    .await?;
                m.registrar
                    .register_outputs(comp.urn, props(&[("url", url.into())]))
                    .await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program("one")).await.ok();
    assert_eq!(
        rig.resource("comp").outputs,
        props(&[("url", "one".into())])
    );
    rig.up(program("two")).await.ok();
    assert_eq!(
        rig.resource("comp").outputs,
        props(&[("url", "two".into())])
    );
    let names = rig.names();
    let position = |name: &str| names.iter().position(|other| other == name);
    assert!(
        position("comp") < position("child"),
        "parents stay before children: {names:?}"
    );
}

#[tokio::test]
async fn outputs_of_what_is_not_registered_are_refused() {
    let mut rig = AnsweringRig::new();
    let run = rig
        .up(|m| {
            async move {
                m.registrar
                    .register_outputs(urn("nobody"), props(&[]))
                    .await
            }
            .boxed()
        })
        .await;
    assert!(
        matches!(run.error(), DeployError::InvalidGoal { .. }),
        "{:?}",
        run.error()
    );
}

#[tokio::test]
async fn stack_outputs_replace_the_old_ones_unless_something_failed() {
    let mut rig = AnsweringRig::new();
    let program = |key: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                *m.outputs.lock() = Some(props(&[(key, key.into())]));
                m.resource("a", |goal| set(goal, "x", key)).await?;
                Ok(())
            }
            .boxed()
        }
    };
    let outputs = |rig: &AnsweringRig| rig.resource("proj-test").outputs.clone();
    rig.up(program("one")).await.ok();
    assert_eq!(outputs(&rig), props(&[("one", "one".into())]));
    rig.answers(|answers| answers.update = Some(Box::new(|_| Some(Err(failed("no"))))));
    rig.options.continue_on_error = true;
    assert!(rig.up(program("two")).await.outcome.result.is_err());
    assert_eq!(
        outputs(&rig),
        props(&[("one", "one".into()), ("two", "two".into())])
    );
    rig.default_answers();
    rig.up(program("two")).await.ok();
    assert_eq!(outputs(&rig), props(&[("two", "two".into())]));
}

#[tokio::test]
async fn two_resources_of_one_name_fail_the_run_and_nothing_is_deleted() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            m.resource("keep", |_| ()).await?;
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
                m.resource("a", |_| ()).await?;
                let second = m.resource("a", |_| ()).await;
                assert!(
                    matches!(second, Err(RegisterError::Invalid { .. })),
                    "{second:?}"
                );
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(matches!(run.error(), DeployError::InvalidGoal { .. }));
    assert!(run.says("two resources"));
    assert!(rig.find("keep").is_some());
}

#[tokio::test]
async fn a_parent_must_be_registered_first() {
    let mut rig = AnsweringRig::new();
    let run = rig
        .up(|m| {
            async move {
                m.resource("a", |goal| goal.parent = Some(urn("nobody")))
                    .await?;
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(matches!(run.error(), DeployError::InvalidGoal { .. }));
    assert!(run.says("parent"));
}

#[tokio::test]
async fn a_provider_must_be_registered_first() {
    let mut rig = AnsweringRig::new();
    let run = rig
        .up(|m| {
            async move {
                let provider = "urn:pulumi:test::proj::pulumi:providers:pkg::nobody::1";
                m.resource("a", |goal| goal.provider = provider.to_owned())
                    .await?;
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(run.says("is not registered"), "{:?}", run.error());
}

#[tokio::test]
async fn a_program_that_ends_early_deletes_nothing() {
    let mut rig = AnsweringRig::new();
    let both = |m: ClosureMonitor| {
        async move {
            m.resource("a", |_| ()).await?;
            m.resource("b", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    };
    rig.up(both).await.ok();
    // It exits cleanly, but before it said what the stack's outputs are.
    let early = rig
        .up(|m| {
            async move {
                m.resource("a", |_| ()).await?;
                Ok(())
            }
            .boxed()
        })
        .await;
    assert!(matches!(
        early.error(),
        DeployError::ProgramIncomplete { orphans: 1 }
    ));
    assert!(rig.find("b").is_some());
    let threw = rig
        .up(|m| {
            async move {
                m.done();
                m.resource("a", |_| ()).await?;
                Err(RegisterError::Invalid {
                    message: "thrown".to_owned(),
                })
            }
            .boxed()
        })
        .await;
    assert!(matches!(threw.error(), DeployError::ProgramFailed { .. }));
    assert!(rig.find("b").is_some());
}

#[tokio::test]
async fn the_summary_tells_what_was_done() {
    let mut rig = AnsweringRig::new();
    let run = rig
        .up(|m| {
            async move {
                m.resource("a", |_| ()).await?;
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    let Some(EngineEvent::Summary(summary)) = run.events.last() else {
        panic!("no summary")
    };
    assert!(summary.succeeded && !summary.is_preview && !summary.maybe_corrupt);
    assert_eq!(
        summary.changes,
        [(StepOp::Create, 2)].into(),
        "the stack and a"
    );
}

#[tokio::test]
async fn resources_are_found_as_registered_and_as_recorded() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            m.resource("a", |goal| set(goal, "x", "old")).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    rig.up(|m| {
        async move {
            let recorded = m.registrar.resource(&urn("a")).expect("it is recorded");
            assert_eq!(recorded.inputs["x"], PropertyValue::from("old"));
            m.resource("a", |goal| set(goal, "x", "new")).await?;
            let registered = m.registrar.resource(&urn("a")).expect("it is registered");
            assert_eq!(registered.inputs["x"], PropertyValue::from("new"));
            assert!(m.registrar.resource(&urn("nobody")).is_none());
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
}

#[tokio::test]
async fn destroy_deletes_dependants_first() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            let comp = m.component("comp", |_| ()).await?;
            let a = m
                .resource("a", |goal| goal.parent = Some(comp.urn.clone()))
                .await?;
            m.resource("b", |goal| depend(goal, "x", &a)).await?;
            m.resource("c", |goal| goal.dependencies = vec![a.urn.clone()])
                .await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let run = rig.destroy().await.ok();
    assert_eq!(
        run.step_lines(),
        ["delete c", "delete b", "delete a", "delete comp"]
    );
    assert!(rig.snapshot.resources.is_empty());
    assert!(rig.provider.objects.lock().is_empty());
}

#[tokio::test]
async fn registrations_overlap_and_each_gets_its_own_answer() {
    let mut rig = AnsweringRig::new();
    rig.options.parallel = 4;
    rig.up(|m| {
        async move {
            let names: Vec<String> = (0..20).map(|i| format!("r{i}")).collect();
            let all = names
                .iter()
                .map(|name| m.resource(name, |goal| set(goal, "n", &**name)));
            for (name, result) in names.iter().zip(futures::future::join_all(all).await) {
                assert_eq!(result?.outputs["n"], PropertyValue::from(name.as_str()));
            }
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    assert_eq!(rig.provider.objects.lock().len(), 20);
}

#[tokio::test]
async fn a_program_that_fails_keeps_the_outputs_it_did_not_get_to() {
    let mut rig = AnsweringRig::new();
    rig.up(|m| {
        async move {
            *m.outputs.lock() = Some(props(&[("kept", "1".into())]));
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let run = rig
        .up(|m| {
            async move {
                let outputs = props(&[("new", "2".into())]);
                m.registrar
                    .register_outputs(m.root.clone(), outputs)
                    .await?;
                Err(RegisterError::Invalid {
                    message: "thrown".to_owned(),
                })
            }
            .boxed()
        })
        .await;
    assert!(matches!(run.error(), DeployError::ProgramFailed { .. }));
    assert_eq!(
        rig.resource("proj-test").outputs,
        props(&[("kept", "1".into()), ("new", "2".into())])
    );
}

#[test]
fn operations_can_run_on_any_thread() {
    fn send<T: Send>(_: &T) {}
    let rig = AnsweringRig::new();
    let nothing = program(|_| async { Ok(()) }.boxed());
    send(&nimbus_engine_deploy::update(rig.spec(false).0, nothing));
    send(&nimbus_engine_deploy::destroy(rig.spec(false).0));
    send(&nimbus_engine_deploy::refresh(rig.spec(false).0));
    send(&nimbus_engine_deploy::import(rig.spec(false).0, Vec::new()));
}

#[tokio::test]
async fn times_tell_when_a_resource_was_made_and_when_it_last_changed() {
    let mut rig = AnsweringRig::new();
    let program = |value: &'static str| {
        move |m: ClosureMonitor| {
            async move {
                m.resource("a", |goal| set(goal, "x", value)).await?;
                m.resource("b", |_| ()).await?;
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program("1")).await.ok();
    let made: Vec<_> = rig.snapshot.resources.clone();
    assert!(
        made.iter()
            .all(|s| s.created.is_some() && s.created == s.modified)
    );
    rig.refresh().await.ok();
    assert_eq!(rig.snapshot.resources, made, "looking changes nothing");
    rig.up(program("2")).await.ok();
    let a = rig.resource("a");
    assert!(a.modified > a.created);
    let untouched = rig
        .snapshot
        .resources
        .iter()
        .filter(|s| s.urn.name() != "a");
    assert!(untouched.into_iter().all(|s| s.created == s.modified));
}

#[tokio::test]
async fn as_many_steps_as_allowed_run_at_once() {
    let mut rig = AnsweringRig::new();
    rig.options.parallel = 3;
    let meeting = Arc::new(tokio::sync::Barrier::new(3));
    *rig.provider.meeting.lock() = Some(meeting);
    let run = rig.up(|m| {
        async move {
            let names = ["a", "b", "c"];
            let all = names.iter().map(|name| m.resource(name, |_| ()));
            futures::future::try_join_all(all).await?;
            m.done();
            Ok(())
        }
        .boxed()
    });
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, run)
        .await
        .expect("they wait for each other")
        .ok();
}
