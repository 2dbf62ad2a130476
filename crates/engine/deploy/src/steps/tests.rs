use nimbus_engine_model::StateRef;

use super::*;

fn state(name: &str) -> ResourceState {
    let mut state = ResourceState::new(Urn::new("s", "p", None, "pkg:m:T", name), true);
    state.provider = "urn:pulumi:s::p::pulumi:providers:pkg::default::1".to_owned();
    state
}

fn known(change: impl FnOnce(&mut ResourceState)) -> RecordedResource {
    let mut state = state("a");
    state.id = Some("id".to_owned());
    change(&mut state);
    RecordedResource {
        key: StateRef::Base(0),
        state: Arc::new(state),
    }
}

#[test]
fn a_same_step_takes_over_id_and_outputs() {
    let old = known(|old| {
        old.outputs.insert("x".to_owned(), "y".into());
    });
    let step = SameStep::new(old.clone(), state("a")).unwrap();
    assert_eq!(step.new_state().id.as_deref(), Some("id"));
    assert_eq!(step.new_state().outputs, old.state.outputs);
    assert!(!step.changes_record());
}

#[test]
fn an_option_changes_the_record_and_a_source_position_does_not() {
    let mut moved = state("a");
    moved.source_position = "project://index.ts#1".to_owned();
    assert!(
        !SameStep::new(known(|_| ()), moved)
            .unwrap()
            .changes_record()
    );
    let mut retained = state("a");
    retained.retain_on_delete = true;
    assert!(
        SameStep::new(known(|_| ()), retained)
            .unwrap()
            .changes_record()
    );
}

#[test]
fn records_without_id_or_provider_are_refused_as_bad_state() {
    for broken in [
        known(|old| old.id = None),
        known(|old| old.provider.clear()),
    ] {
        let error = DeleteStep::new(broken, DeleteReason::Unwanted).unwrap_err();
        assert!(matches!(error, DeployError::BadState { .. }), "{error}");
    }
}

#[test]
fn operations_follow_from_what_is_known() {
    let op = |external, reason| {
        let old = known(|old| {
            old.external = external;
            old.delete = reason == DeleteReason::Replaced;
        });
        DeleteStep::new(old, reason).unwrap().op()
    };
    assert_eq!(op(false, DeleteReason::Unwanted), StepOp::Delete);
    assert_eq!(op(false, DeleteReason::Replaced), StepOp::DeleteReplaced);
    assert_eq!(
        op(false, DeleteReason::BeforeReplacement),
        StepOp::DeleteReplaced
    );
    assert_eq!(op(true, DeleteReason::Unwanted), StepOp::ReadDiscard);
    assert_eq!(op(true, DeleteReason::Replaced), StepOp::DiscardReplaced);
}

#[test]
fn a_delete_asks_the_provider_only_when_there_is_something_to_delete() {
    let needs = |change: fn(&mut ResourceState)| {
        DeleteStep::new(known(change), DeleteReason::Unwanted)
            .unwrap()
            .needs_provider()
    };
    assert!(needs(|_| ()));
    assert!(!needs(|old| old.external = true));
    assert!(!needs(|old| old.retain_on_delete = true));
    assert!(!needs(|old| old.custom = false));
}

#[test]
fn what_was_replaced_cannot_be_replaced_again_or_updated() {
    let replaced = known(|old| old.delete = true);
    let replacement = Replacement {
        old: replaced.clone(),
        delete_later: true,
        reasons: Reasons::default(),
    };
    assert!(CreateStep::replacing(state("a"), replacement).is_err());
    assert!(UpdateStep::new(replaced, state("a"), &DiffResponse::default()).is_err());
}

#[test]
fn reading_never_forgets_a_managed_object() {
    let mut read = state("a");
    read.external = true;
    read.id = Some("other".to_owned());
    assert!(ReadStep::new(Some(known(|_| ())), read.clone()).is_err());
    assert!(ReadStep::replacing(known(|_| ()), read.clone()).is_ok());
    read.id = Some("id".to_owned());
    assert!(ReadStep::new(Some(known(|_| ())), read).is_ok());
}

#[test]
fn default_providers_are_internal_and_explicit_ones_are_not() {
    let urn = |name| Urn::new("s", "p", None, "pulumi:providers:pkg", name);
    assert!(is_default_provider(&urn("default_1_2_3")));
    assert!(!is_default_provider(&urn("mine")));
}
