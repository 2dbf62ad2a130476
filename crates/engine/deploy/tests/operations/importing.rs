//! Taking existing objects over, by option and by operation.

use futures::FutureExt as _;
use nimbus_engine_model::{Goal, PackageDescriptor, Urn};
use nimbus_engine_ports::{CheckFailure, CheckResponse, InitFailure, ProviderError, ReadResponse};

use super::support::*;
use nimbus_engine_deploy::{DeployError, ImportProvider, ImportSpec};

async fn one(rig: &mut AnsweringRig, change: fn(&mut Goal)) -> RigRun {
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

fn plant(rig: &AnsweringRig, id: &str, value: &str) {
    rig.provider
        .objects
        .lock()
        .insert(id.to_owned(), props(&[("x", value.into())]));
}

const SAME: fn(&mut Goal) = |goal| {
    set(goal, "x", "1");
    goal.import_id = Some("theirs".to_owned());
};

#[tokio::test]
async fn an_object_that_is_as_wanted_is_only_recorded() {
    let mut rig = AnsweringRig::new();
    plant(&rig, "theirs", "1");
    let run = one(&mut rig, SAME).await.ok();
    assert_eq!(run.step_lines(), ["import a"]);
    assert_eq!(rig.take_calls(), ["read a theirs"]);
    let a = rig.resource("a");
    assert_eq!(a.id.as_deref(), Some("theirs"));
    assert_eq!(a.import_id.as_deref(), Some("theirs"));
    assert!(
        one(&mut rig, SAME).await.ok().step_lines().is_empty(),
        "it is imported already"
    );
}

#[tokio::test]
async fn an_object_that_differs_is_recorded_and_then_updated() {
    let mut rig = AnsweringRig::new();
    plant(&rig, "theirs", "other");
    let run = one(&mut rig, SAME).await.ok();
    assert_eq!(run.step_lines(), ["import a", "update a"]);
    assert_eq!(rig.resource("a").inputs["x"], "1".into());
    assert_eq!(rig.names(), ["proj-test", "default", "a"]);
}

#[tokio::test]
async fn an_object_that_would_have_to_be_replaced_is_refused() {
    let mut rig = AnsweringRig::new();
    rig.provider
        .objects
        .lock()
        .insert("theirs".to_owned(), props(&[("replace", "1".into())]));
    let change = |goal: &mut Goal| {
        set(goal, "replace", "2");
        goal.import_id = Some("theirs".to_owned());
    };
    let run = one(&mut rig, change).await;
    assert!(matches!(run.error(), DeployError::InvalidGoal { .. }));
    assert!(rig.provider.objects.lock().contains_key("theirs"));
    assert!(rig.find("a").is_some(), "the import itself was done");
}

#[tokio::test]
async fn importing_over_a_managed_resource_deletes_that_one_at_the_end() {
    let mut rig = AnsweringRig::new();
    one(&mut rig, |goal| set(goal, "x", "1")).await.ok();
    plant(&rig, "theirs", "1");
    let run = one(&mut rig, SAME).await.ok();
    assert_eq!(
        run.step_lines(),
        ["import-replacement a", "replace a", "delete-replaced a"]
    );
    assert_eq!(
        rig.provider.objects.lock().keys().collect::<Vec<_>>(),
        ["theirs"]
    );
    assert_eq!(rig.resource("a").id.as_deref(), Some("theirs"));
}

#[tokio::test]
async fn what_cannot_be_imported_fails_and_leaves_no_trace() {
    type Answer = fn() -> Option<Result<ReadResponse, ProviderError>>;
    let answers: [Answer; 3] = [
        || None,
        || Some(Err(unknown("died"))),
        || {
            let id = Some("theirs".to_owned());
            Some(Ok(ReadResponse {
                id,
                ..ReadResponse::default()
            }))
        },
    ];
    for answer in answers {
        let mut rig = AnsweringRig::new();
        rig.answers(|answers| answers.read = Some(Box::new(move |_| answer())));
        let run = one(&mut rig, SAME).await;
        assert!(matches!(run.error(), DeployError::StepsFailed { .. }));
        assert!(rig.find("a").is_none());
        assert!(rig.snapshot.pending_operations.is_empty());
    }
}

#[tokio::test]
async fn an_unhealthy_object_is_imported_with_its_errors_and_updated() {
    let mut rig = AnsweringRig::new();
    rig.answers(|answers| {
        answers.read = Some(Box::new(|_| {
            Some(Err(ProviderError::InitFailed(Box::new(InitFailure {
                id: "theirs".to_owned(),
                properties: props(&[("x", "1".into())]),
                inputs: Some(props(&[("x", "1".into())])),
                reasons: vec!["not ready".to_owned()],
                refresh_before_update: false,
            }))))
        }));
    });
    let run = one(&mut rig, SAME).await.ok();
    assert_eq!(run.step_lines(), ["import a", "update a"]);
}

fn spec(name: &str, id: &str) -> ImportSpec {
    ImportSpec {
        type_: TYPE.to_owned(),
        name: name.to_owned(),
        id: id.to_owned(),
        parent: None,
        provider: ImportProvider::Default {
            package: Box::new(PackageDescriptor {
                name: "pkg".to_owned(),
                version: Some(semver::Version::new(1, 2, 3)),
                ..PackageDescriptor::default()
            }),
            config: props(&[("region", "x".into())]),
        },
        protect: true,
        properties: Vec::new(),
        component: false,
    }
}

#[tokio::test]
async fn the_operation_makes_stack_and_provider_and_records_the_objects() {
    let mut rig = AnsweringRig::new();
    plant(&rig, "one", "1");
    plant(&rig, "two", "2");
    let parent = Urn::new(STACK, PROJECT, None, "my:m:Component", "comp");
    let comp = ImportSpec {
        type_: "my:m:Component".to_owned(),
        component: true,
        ..spec("comp", "")
    };
    let child = ImportSpec {
        parent: Some(parent.clone()),
        ..spec("b", "two")
    };
    // Children may come before their parents in the list.
    let run = rig.import(vec![child, spec("a", "one"), comp]).await.ok();
    assert_eq!(
        run.step_lines(),
        [
            "create default_1_2_3",
            "import a",
            "import comp",
            "import b"
        ]
    );
    let a = rig.resource("a");
    assert_eq!(a.id.as_deref(), Some("one"));
    assert_eq!(a.inputs["x"], "1".into());
    assert!(a.protect && a.import_id.is_none());
    assert_eq!(a.parent.as_ref(), Some(&Urn::root_stack(STACK, PROJECT)));
    assert_eq!(rig.resource("b").parent.as_ref(), Some(&parent));
    assert!(rig.resource("comp").provider.is_empty());
    let provider = rig.resource("default_1_2_3");
    assert_eq!(provider.inputs["version"], "1.2.3".into());
    assert_eq!(provider.inputs["region"], "x".into());
    let names = rig.names();
    let position = |name: &str| names.iter().position(|other| other == name);
    assert!(position("comp") < position("b"));

    // Again, with one more: what is there stays, in its place.
    let before = rig.snapshot.resources.clone();
    plant(&rig, "three", "3");
    let run = rig
        .import(vec![spec("a", "one"), spec("c", "three")])
        .await
        .ok();
    assert_eq!(run.step_lines(), ["import c"]);
    assert_eq!(rig.snapshot.resources[..before.len()], before[..]);
}

#[tokio::test]
async fn only_named_inputs_are_kept_and_complaints_are_warnings() {
    let mut rig = AnsweringRig::new();
    rig.provider.objects.lock().insert(
        "one".to_owned(),
        props(&[("x", "1".into()), ("y", "2".into())]),
    );
    rig.answers(|answers| {
        answers.check = Some(Box::new(|request| {
            let failure = CheckFailure {
                property: "y".to_owned(),
                reason: "is required".to_owned(),
            };
            Some(Ok(CheckResponse {
                properties: request.news.clone(),
                failures: vec![failure],
            }))
        }));
    });
    let import = ImportSpec {
        properties: vec!["x".to_owned()],
        ..spec("a", "one")
    };
    let run = rig.import(vec![import]).await.ok();
    assert_eq!(rig.resource("a").inputs, props(&[("x", "1".into())]));
    assert!(run.says("is required"));
}

#[tokio::test]
async fn imports_that_contradict_the_record_are_refused() {
    let mut rig = AnsweringRig::new();
    plant(&rig, "one", "1");
    plant(&rig, "other", "1");
    rig.import(vec![spec("a", "one")]).await.ok();
    let nobody = Urn::new(STACK, PROJECT, None, "pulumi:providers:pkg", "nobody");
    let parent = Urn::new(STACK, PROJECT, None, "my:m:Component", "nobody");
    for imports in [
        vec![spec("a", "other")],
        vec![spec("b", "other"), spec("b", "other")],
        vec![ImportSpec {
            provider: ImportProvider::Existing(nobody),
            ..spec("b", "other")
        }],
        vec![ImportSpec {
            parent: Some(parent),
            ..spec("b", "other")
        }],
    ] {
        let run = rig.import(imports.clone()).await;
        assert!(
            matches!(run.error(), DeployError::InvalidGoal { .. }),
            "{imports:?}"
        );
    }
    assert!(rig.import(Vec::new()).await.ok().step_lines().is_empty());
    assert_eq!(rig.resource("a").outputs.get("x"), Some(&"1".into()));
}

#[tokio::test]
async fn a_preview_shows_an_import_that_would_have_to_be_replaced() {
    for delete_first in [false, true] {
        let rig = AnsweringRig::new();
        let object = props(&[("replace", "1".into())]);
        rig.provider
            .objects
            .lock()
            .insert("theirs".to_owned(), object);
        let run = rig
            .preview(move |m| {
                async move {
                    m.resource("a", |goal| {
                        set(goal, "replace", "2");
                        goal.import_id = Some("theirs".to_owned());
                        goal.delete_before_replace = Some(delete_first);
                    })
                    .await?;
                    m.done();
                    Ok(())
                }
                .boxed()
            })
            .await
            .ok();
        assert!(run.says("import option is still set"));
        assert!(
            run.step_lines().contains(&"replace a".to_owned()),
            "{:?}",
            run.step_lines()
        );
    }
}

#[tokio::test]
async fn a_previewed_import_looks_and_records_nothing() {
    let rig = AnsweringRig::new();
    plant(&rig, "one", "1");
    let (preview, watch) = rig.spec(true);
    let run = watch.into_run(nimbus_engine_deploy::import(preview, vec![spec("a", "one")]).await);
    let run = run.ok();
    assert_eq!(run.step_lines(), ["create default_1_2_3", "import a"]);
    assert!(run.entries.is_empty());
    assert_eq!(rig.take_calls(), ["read a one"]);
}
