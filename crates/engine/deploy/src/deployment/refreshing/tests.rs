use nimbus_engine_ports::DiffResponse;

use nimbus_engine_model::StepOp;

use super::*;

fn urn(name: &str) -> Urn {
    Urn::new("s", "p", None, "t:m:T", name)
}

fn state(name: &str, change: impl FnOnce(&mut ResourceState)) -> Arc<ResourceState> {
    let mut state = ResourceState::new(urn(name), true);
    change(&mut state);
    Arc::new(state)
}

fn gone() -> Refreshed {
    Refreshed {
        op: StepOp::Delete,
        new: None,
        diff: DiffResponse::default(),
    }
}

#[test]
fn references_to_what_is_gone_are_dropped_and_others_stay() {
    let dependent = state("c", |state| {
        state.dependencies = vec![urn("a"), urn("b")];
        state.property_dependencies = [
            ("only".to_owned(), vec![urn("a")]),
            ("both".to_owned(), vec![urn("a"), urn("b")]),
            ("none".to_owned(), Vec::new()),
        ]
        .into();
        state.replace_with = vec![urn("a")];
        state.deleted_with = Some(urn("a"));
    });
    let base = Base::new(vec![state("a", |_| ()), state("b", |_| ()), dependent]).unwrap();
    let resources = rebuilt(&base, &HashMap::from([(0, gone())]));
    let [b, c] = resources.as_slice() else {
        panic!("{resources:?}")
    };
    assert_eq!(b.urn, urn("b"));
    assert_eq!(c.dependencies, [urn("b")]);
    assert_eq!(
        c.property_dependencies,
        [
            ("both".to_owned(), vec![urn("b")]),
            ("none".to_owned(), Vec::new())
        ]
        .into()
    );
    assert!(c.replace_with.is_empty() && c.deleted_with.is_none());
}

#[test]
fn children_move_up_to_the_nearest_ancestor_that_is_left() {
    let under = |name: &str, parent: &str| state(name, |state| state.parent = Some(urn(parent)));
    let base = Base::new(vec![
        state("a", |_| ()),
        under("b", "a"),
        under("c", "b"),
        under("d", "c"),
        under("e", "gone-root"),
    ])
    .unwrap();
    let resources = rebuilt(&base, &HashMap::from([(1, gone()), (2, gone())]));
    let parents: Vec<_> = resources.iter().map(|state| state.parent.clone()).collect();
    assert_eq!(parents, [None, Some(urn("a")), None]);
}

#[test]
fn what_did_not_change_is_the_very_same_record() {
    let base = Base::new(vec![state("a", |_| ())]).unwrap();
    let resources = rebuilt(&base, &HashMap::new());
    assert!(Arc::ptr_eq(&resources[0], &base.resources[0]));
}
