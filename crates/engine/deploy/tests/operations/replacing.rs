//! Replacements: before and after the delete, and what is left of them.

use futures::FutureExt as _;
use nimbus_engine_model::{AliasSpec, Goal, NamingMode, NamingRules, NamingScope};
use nimbus_engine_ports::{CheckResponse, DiffResponse, Diffs, InitFailure, ProviderError};

use super::support::*;

pub(super) type Change = fn(&mut Goal);

pub(super) async fn one(rig: &mut AnsweringRig, change: Change) -> RigRun {
    rig.up(move |m| {
        async move {
            m.resource("a", change).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

const CREATE_FIRST: [&str; 3] = ["create-replacement a", "replace a", "delete-replaced a"];
const DELETE_FIRST: [&str; 3] = ["delete-replaced a", "replace a", "create-replacement a"];

#[tokio::test]
async fn a_replacement_is_made_first_and_the_old_one_deleted_last() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |goal| set(goal, "replace", "1")).await.ok();
    let run = one(&mut rig, |goal| set(goal, "replace", "2")).await.ok();
    assert_eq!(run.step_lines(), CREATE_FIRST);
    assert_eq!(rig.take_calls(), ["create a", "create a", "delete a id-1"]);
    assert_eq!(rig.resource("a").id.as_deref(), Some("id-2"));
}

#[tokio::test]
async fn the_option_beats_the_providers_wish_about_the_order() {
    for (option, wish, expected) in [
        (None, false, CREATE_FIRST),
        (None, true, DELETE_FIRST),
        (Some(true), false, DELETE_FIRST),
        (Some(false), true, CREATE_FIRST),
    ] {
        let mut rig = AnsweringRig::new();
        one(&mut rig, |goal| set(goal, "replace", "1")).await.ok();
        rig.answers(|answers| {
            answers.diff = Some(Box::new(move |request| {
                let diff = compare(&request.old_inputs, &request.new_inputs);
                Some(Ok(DiffResponse {
                    delete_before_replace: wish,
                    ..diff
                }))
            }));
        });
        let run = rig
            .up(move |m| {
                async move {
                    m.resource("a", |goal| {
                        set(goal, "replace", "2");
                        goal.delete_before_replace = option;
                    })
                    .await?;
                    m.done();
                    Ok(())
                }
                .boxed()
            })
            .await
            .ok();
        assert_eq!(run.step_lines(), expected, "option {option:?}, wish {wish}");
    }
}

#[tokio::test]
async fn a_failed_create_after_the_delete_is_finished_by_the_next_run() {
    let mut rig = AnsweringRig::new();
    let with: [Change; 2] = [
        |goal| {
            set(goal, "replace", "1");
            goal.delete_before_replace = Some(true);
        },
        |goal| {
            set(goal, "replace", "2");
            goal.delete_before_replace = Some(true);
        },
    ];
    one(&mut rig, with[0]).await.ok();
    rig.answers(|answers| answers.create = Some(Box::new(|_| Some(Err(failed("no"))))));
    assert!(one(&mut rig, with[1]).await.outcome.result.is_err());
    assert!(rig.resource("a").pending_replacement);
    rig.default_answers();
    rig.take_calls();
    let run = one(&mut rig, with[1]).await.ok();
    assert_eq!(run.step_lines(), ["replace a", "create-replacement a"]);
    assert_eq!(rig.take_calls(), ["create a"], "it was deleted before");
    assert!(!rig.resource("a").pending_replacement);
}

#[tokio::test]
async fn what_waits_for_a_replacement_that_nobody_wants_is_only_forgotten() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |_| ()).await.ok();
    rig.edit("a", |state| state.pending_replacement = true);
    rig.take_calls();
    let wanted = rig.preview(|m| {
        async move {
            m.resource("a", |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    });
    let steps = wanted.await.ok().step_lines();
    assert_eq!(
        steps,
        ["replace a", "create-replacement a"],
        "it is gone, though nothing changed"
    );
    let run = rig
        .up(|m| {
            async move {
                m.done();
                Ok(())
            }
            .boxed()
        })
        .await
        .ok();
    assert_eq!(run.step_lines(), ["remove-pending-replace a"]);
    assert!(rig.take_calls().is_empty());
    assert!(rig.find("a").is_none());
}

#[tokio::test]
async fn pending_deletes_are_finished_by_the_next_run() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |goal| set(goal, "replace", "1")).await.ok();
    rig.answers(|answers| answers.delete = Some(Box::new(|_| Some(Err(failed("busy"))))));
    assert!(
        one(&mut rig, |goal| set(goal, "replace", "2"))
            .await
            .outcome
            .result
            .is_err()
    );
    assert_eq!(
        rig.snapshot
            .resources
            .iter()
            .filter(|state| state.delete)
            .count(),
        1
    );
    rig.default_answers();
    let run = one(&mut rig, |goal| set(goal, "replace", "2")).await.ok();
    assert_eq!(run.step_lines(), ["delete-replaced a"]);
    assert_eq!(
        rig.provider.objects.lock().keys().collect::<Vec<_>>(),
        ["id-2"]
    );
}

#[tokio::test]
async fn replacements_get_inputs_of_their_own() {
    let mut rig = AnsweringRig::new();
    // The provider keeps a generated name as long as it is told the old inputs.
    rig.answers(|answers| {
        answers.check = Some(Box::new(|request| {
            let mut properties = request.news.clone();
            let kept = request
                .olds
                .as_ref()
                .and_then(|olds| olds.get("generated"))
                .cloned();
            let anew = || format!("new {:?}", request.news.get("replace")).into();
            properties.insert("generated".to_owned(), kept.unwrap_or_else(anew));
            Some(Ok(CheckResponse {
                properties,
                failures: Vec::new(),
            }))
        }));
    });
    one(&mut rig, |goal| set(goal, "replace", "1")).await.ok();
    let first = rig.resource("a").inputs["generated"].clone();
    one(&mut rig, |goal| {
        set(goal, "replace", "1");
        set(goal, "x", "y");
    })
    .await
    .ok();
    assert_eq!(
        rig.resource("a").inputs["generated"],
        first,
        "an update keeps the name"
    );
    one(&mut rig, |goal| set(goal, "replace", "2")).await.ok();
    assert_ne!(
        rig.resource("a").inputs["generated"],
        first,
        "a replacement does not"
    );
}

#[tokio::test]
async fn replace_on_changes_replaces_where_the_provider_would_update() {
    let mut rig = AnsweringRig::new();
    let with: [Change; 2] = [
        |goal| {
            set(goal, "x", "1");
            goal.replace_on_changes = vec!["x".to_owned()];
        },
        |goal| {
            set(goal, "x", "2");
            goal.replace_on_changes = vec!["x".to_owned()];
        },
    ];
    one(&mut rig, with[0]).await.ok();
    let run = one(&mut rig, with[1]).await.ok();
    assert_eq!(run.step_lines(), CREATE_FIRST);
    let replace = run
        .step_events()
        .find(|step| step.op.as_str() == "replace")
        .unwrap();
    assert_eq!(replace.replace_keys, ["x"]);
}

#[tokio::test]
async fn tainted_and_targeted_resources_are_replaced_though_nothing_changed() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |_| ()).await.ok();
    rig.edit("a", |state| state.taint = true);
    assert_eq!(one(&mut rig, |_| ()).await.ok().step_lines(), CREATE_FIRST);
    assert!(!rig.resource("a").taint);
    rig.options.replace_targets = vec![urn("a").to_string()];
    assert_eq!(one(&mut rig, |_| ()).await.ok().step_lines(), CREATE_FIRST);
}

#[tokio::test]
async fn a_changed_trigger_replaces() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |goal| goal.replacement_trigger = "1".into())
        .await
        .ok();
    let same = one(&mut rig, |goal| goal.replacement_trigger = "1".into())
        .await
        .ok();
    assert!(same.step_lines().is_empty());
    let run = one(&mut rig, |goal| goal.replacement_trigger = "2".into())
        .await
        .ok();
    assert_eq!(run.step_lines(), CREATE_FIRST);
}

#[tokio::test]
async fn half_made_resources_are_updated_or_replaced_as_the_options_say() {
    for (paths, expected) in [
        (vec![], vec!["update a"]),
        (vec!["*"], CREATE_FIRST.to_vec()),
    ] {
        let mut rig = AnsweringRig::new();
        rig.answers(|answers| {
            answers.create = Some(Box::new(|request| {
                Some(Err(ProviderError::InitFailed(Box::new(InitFailure {
                    id: "half".to_owned(),
                    properties: request.properties.clone(),
                    inputs: None,
                    reasons: vec!["not ready".to_owned()],
                    refresh_before_update: false,
                }))))
            }));
        });
        assert!(one(&mut rig, |_| ()).await.outcome.result.is_err());
        let half = rig.resource("a");
        assert_eq!(half.id.as_deref(), Some("half"));
        assert_eq!(half.init_errors, ["not ready"]);
        rig.default_answers();
        let paths: Vec<String> = paths.into_iter().map(str::to_owned).collect();
        let run = rig
            .up(move |m| {
                let paths = paths.clone();
                async move {
                    m.resource("a", |goal| goal.replace_on_changes = paths)
                        .await?;
                    m.done();
                    Ok(())
                }
                .boxed()
            })
            .await
            .ok();
        assert_eq!(run.step_lines(), expected);
        assert!(rig.resource("a").init_errors.is_empty());
    }
}

#[tokio::test]
async fn a_component_may_become_a_custom_resource_and_back() {
    let mut rig = AnsweringRig::new();
    let program = |custom: bool| {
        move |m: ClosureMonitor| {
            async move {
                if custom {
                    m.resource("a", |_| ()).await?;
                } else {
                    m.component("a", |goal| goal.type_ = TYPE.to_owned())
                        .await?;
                }
                m.done();
                Ok(())
            }
            .boxed()
        }
    };
    rig.up(program(false)).await.ok();
    assert_eq!(rig.up(program(true)).await.ok().step_lines(), CREATE_FIRST);
    assert_eq!(rig.resource("a").id.as_deref(), Some("id-1"));
    assert_eq!(rig.up(program(false)).await.ok().step_lines(), CREATE_FIRST);
    assert!(rig.provider.objects.lock().is_empty());
    assert!(rig.resource("a").id.is_none());
}

#[tokio::test]
async fn the_engine_compares_when_the_provider_cannot() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |goal| set(goal, "x", "1")).await.ok();
    rig.answers(|answers| {
        answers.diff = Some(Box::new(|_| {
            Some(Ok(DiffResponse {
                changes: Diffs::Unknown,
                ..DiffResponse::default()
            }))
        }));
    });
    assert!(
        one(&mut rig, |goal| set(goal, "x", "1"))
            .await
            .ok()
            .step_lines()
            .is_empty()
    );
    assert_eq!(
        one(&mut rig, |goal| set(goal, "x", "2"))
            .await
            .ok()
            .step_lines(),
        ["update a"]
    );
}

#[tokio::test]
async fn a_renamed_resource_can_be_replaced_in_the_same_run() {
    for dbr in [false, true] {
        let mut rig = AnsweringRig::new();
        one(&mut rig, |goal| set(goal, "replace", "1")).await.ok();
        let run = rig
            .up(move |m| {
                async move {
                    m.resource("b", |goal| {
                        set(goal, "replace", "2");
                        goal.delete_before_replace = Some(dbr);
                        let spec = AliasSpec {
                            name: Some("a".to_owned()),
                            ..AliasSpec::default()
                        };
                        goal.aliases = vec![nimbus_engine_model::Alias::Spec(spec)];
                    })
                    .await?;
                    m.done();
                    Ok(())
                }
                .boxed()
            })
            .await
            .ok();
        assert!(
            run.step_lines()
                .contains(&"create-replacement b".to_owned()),
            "{:?}",
            run.step_lines()
        );
        assert_eq!(rig.names(), ["proj-test", "default", "b"]);
        assert_eq!(rig.provider.objects.lock().len(), 1);
    }
}

fn naming(text: &str) -> std::sync::Arc<NamingRules> {
    let scope = NamingScope {
        organization: "organization",
        project: PROJECT,
        stack: STACK,
        config: &std::collections::BTreeMap::new(),
    };
    std::sync::Arc::new(NamingRules::parse(text, scope).unwrap())
}

#[tokio::test]
async fn what_always_has_the_same_name_is_deleted_before_its_replacement_is_made() {
    for (rules, expected) in [
        (r#"{"mode":"verbatim"}"#, DELETE_FIRST),
        (r#"{"pattern":"${name}-${hex(4)}"}"#, CREATE_FIRST),
        (r#"{"mode":"default"}"#, CREATE_FIRST),
    ] {
        let mut rig = AnsweringRig::new();
        rig.options.naming = Some(naming(rules));
        one(&mut rig, |goal| set(goal, "replace", "1")).await.ok();
        let run = one(&mut rig, |goal| set(goal, "replace", "2")).await.ok();
        assert_eq!(run.step_lines(), expected, "{rules}");
    }
}

#[tokio::test]
async fn providers_hear_the_rule_for_the_name_of_an_object() {
    let mut rig = AnsweringRig::new();
    rig.options.naming = Some(naming(r#"{"pattern":"${project}-${name}","enforce":true}"#));
    rig.answers(|answers| {
        answers.check = Some(Box::new(|request| {
            let naming = request.naming.clone().unwrap();
            assert_eq!(naming.mode, NamingMode::Enforce);
            let properties = props(&[("name", naming.proposed.into())]);
            Some(Ok(CheckResponse {
                properties,
                failures: Vec::new(),
            }))
        }));
    });
    one(&mut rig, |_| ()).await.ok();
    assert_eq!(
        rig.resource("a").inputs["name"],
        format!("{PROJECT}-a").into()
    );
}
