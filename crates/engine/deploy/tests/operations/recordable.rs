//! What is accepted can be recorded, and how long that takes.

use std::time::{Duration, Instant};

use futures::FutureExt as _;
use nimbus_engine_deploy::DeployError;
use nimbus_engine_model::format::{
    CheckpointHead, Layout, SecretsMode, read_checkpoint, write_checkpoint,
};
use nimbus_engine_model::{Alias, Urn};
use proptest::prelude::*;

use super::support::*;

/// Registers a component and a resource, and whether that went well.
async fn register(rig: &mut AnsweringRig, type_: String, name: String) -> RigRun {
    rig.up(move |m| {
        let (type_, name) = (type_.clone(), name.clone());
        async move {
            m.component(&name, |goal| goal.type_.clone_from(&type_))
                .await?;
            m.resource(&format!("{name}-thing"), |_| ()).await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
}

fn written(rig: &AnsweringRig) -> Vec<u8> {
    let head = CheckpointHead::default();
    let (secrets, layout) = (SecretsMode::Show, Layout::Compact);
    write_checkpoint(&head, Some(&rig.snapshot), secrets, layout).unwrap()
}

#[tokio::test]
async fn what_no_state_can_hold_is_refused_before_anything_is_made() {
    for (type_, name) in [
        ("my:m:C", "a\0b"),
        ("my:m\0:C", "a"),
        ("", "a"),
        ("my:m:C", "\0"),
    ] {
        let mut rig = AnsweringRig::new();
        let run = register(&mut rig, type_.to_owned(), name.to_owned()).await;
        let error = run.error();
        let refused = matches!(
            error,
            DeployError::InvalidGoal { .. } | DeployError::ProgramFailed { .. }
        );
        assert!(refused, "{type_:?} {name:?}: {error}");
        assert!(rig.provider.objects.lock().is_empty(), "{type_:?} {name:?}");
        read_checkpoint(&written(&rig)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_is_accepted_comes_back_from_the_state(
        type_ in "([a:$]|\\PC|\\x00|[\\x01-\\x1f]|\u{202e}){0,8}",
        name in "([a:$]|\\PC|\\x00|[\\x01-\\x1f]|\u{2028}){0,8}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut rig = AnsweringRig::new();
        let run = runtime.block_on(register(&mut rig, type_.clone(), name.clone()));
        let text = written(&rig);
        let read = read_checkpoint(&text);
        prop_assert!(read.is_ok(), "{:?} {:?}: {:?}", type_, name, read.err());
        if run.succeeded() {
            prop_assert!(!type_.is_empty() && !type_.contains('\0') && !name.contains('\0'));
            let urn = Urn::new(STACK, PROJECT, None, &type_, &name);
            prop_assert_eq!(Urn::parse(urn.as_str()), Ok(urn.clone()));
            prop_assert!(rig.snapshot.resources.iter().any(|state| state.urn == urn));
        } else {
            prop_assert!(type_.is_empty() || type_.contains('\0') || name.contains('\0'));
            prop_assert!(rig.provider.objects.lock().is_empty());
        }
    }
}

#[tokio::test]
async fn as_many_aliases_as_fit_in_a_message_take_no_minutes() {
    let mut rig = AnsweringRig::new();
    let begun = Instant::now();
    rig.up(|m| {
        async move {
            m.resource("a", |goal| {
                let earlier = |number| Alias::Urn(urn(&format!("earlier-{number}")));
                goal.aliases = (0..100_000).map(earlier).collect();
            })
            .await?;
            m.done();
            Ok(())
        }
        .boxed()
    })
    .await
    .ok();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
}
