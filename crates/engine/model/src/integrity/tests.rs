use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::snapshot::IntegrityRecord;
use crate::test_support::urn;

fn component(name: &str) -> ResourceState {
    ResourceState::new(urn(name), false)
}

fn provider(name: &str, id: &str) -> ResourceState {
    let urn = Urn::new("dev", "shop", None, "pulumi:providers:pkg", name);
    let mut provider = ResourceState::new(urn, true);
    provider.id = Some(id.to_owned());
    provider
}

fn depends(name: &str, on: &[&str]) -> ResourceState {
    let mut resource = component(name);
    resource.dependencies = on.iter().map(|name| urn(name)).collect();
    resource
}

fn snapshot(resources: impl IntoIterator<Item = ResourceState>) -> Snapshot {
    Snapshot {
        manifest: SnapshotManifest::new("v3.260.0", Timestamp::UNIX_EPOCH),
        resources: resources.into_iter().map(Arc::new).collect(),
        ..Snapshot::default()
    }
}

fn names(snapshot: &Snapshot) -> String {
    snapshot
        .resources
        .iter()
        .map(|resource| resource.urn.name())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_sound_state_has_no_findings_and_needs_no_repair() {
    let mut used = component("b");
    used.custom = true;
    used.id = Some("i".to_owned());
    used.provider = format!("{}::p1", provider("p", "p1").urn);
    let mut replaced = component("a");
    replaced.delete = true;
    let sound = snapshot([
        component("a"),
        provider("p", "p1"),
        used,
        depends("c", &["a", "b"]),
        replaced,
    ]);
    assert_eq!(verify(&sound), []);
    let repair = repair(&sound);
    assert_eq!(
        (repair.snapshot, repair.actions, repair.remaining),
        (sound, vec![], vec![])
    );
}

#[test]
fn every_kind_of_link_is_checked() {
    type SetLink = fn(&mut ResourceState, Urn);
    let links: [(ResourceLink, SetLink); 5] = [
        (ResourceLink::Parent, |r, u| r.parent = Some(u)),
        (ResourceLink::Dependency, |r, u| r.dependencies = vec![u]),
        (ResourceLink::Property("p".to_owned()), |r, u| {
            r.property_dependencies = [("p".to_owned(), vec![u])].into();
        }),
        (ResourceLink::DeletedWith, |r, u| r.deleted_with = Some(u)),
        (ResourceLink::ReplaceWith, |r, u| r.replace_with = vec![u]),
    ];
    for (link, set) in links {
        let mut resource = component("a");
        set(&mut resource, urn("x"));
        let missing = IntegrityFinding::Missing {
            index: 0,
            urn: urn("a"),
            link: link.clone(),
            target: urn("x").to_string(),
        };
        assert_eq!(verify(&snapshot([resource.clone()])), [missing]);
        let late = IntegrityFinding::OutOfOrder {
            index: 0,
            urn: urn("a"),
            link: link.clone(),
            target: urn("x").to_string(),
            target_index: 2,
        };
        assert_eq!(
            verify(&snapshot([
                resource.clone(),
                component("b"),
                component("x")
            ])),
            [late]
        );
        assert_eq!(verify(&snapshot([component("x"), resource])), [], "{link}");
    }
}

#[test]
fn providers_are_known_by_urn_and_id() {
    let mut user = component("a");
    user.custom = true;
    user.provider = format!("{}::p1", provider("p", "p1").urn);
    let finding = |snapshot: &Snapshot| verify(snapshot).into_iter().next();
    assert_eq!(
        finding(&snapshot([provider("p", "p1"), user.clone()])),
        None
    );
    assert!(matches!(
        finding(&snapshot([provider("p", "p2"), user.clone()])),
        Some(IntegrityFinding::Missing {
            index: 1,
            link: ResourceLink::Provider,
            ..
        })
    ));
    assert!(matches!(
        finding(&snapshot([user.clone(), provider("p", "p1")])),
        Some(IntegrityFinding::OutOfOrder {
            index: 0,
            link: ResourceLink::Provider,
            target_index: 1,
            ..
        })
    ));
    let mut replaced = user.clone();
    replaced.pending_replacement = true;
    assert_eq!(
        finding(&snapshot([replaced])),
        None,
        "it may outlive its provider"
    );
    user.provider = "nonsense".to_owned();
    assert!(matches!(
        finding(&snapshot([user])),
        Some(IntegrityFinding::BadProviderReference { .. })
    ));
    let mut blank = provider("p", "p1");
    blank.id = None;
    assert!(matches!(
        finding(&snapshot([blank])),
        Some(IntegrityFinding::ProviderWithoutId { .. })
    ));
}

#[test]
fn identity_and_manifest_are_checked() {
    let mut identified = component("a");
    identified.id = Some("i".to_owned());
    assert_eq!(
        verify(&snapshot([identified])),
        [IntegrityFinding::ComponentWithId {
            index: 0,
            urn: urn("a")
        }]
    );
    let mut untyped = component("a");
    untyped.type_ = String::new();
    assert_eq!(
        verify(&snapshot([untyped])),
        [IntegrityFinding::NoType {
            index: 0,
            urn: urn("a")
        }]
    );
    let mut tampered = snapshot([]);
    tampered.manifest.magic = "x".to_owned();
    assert!(matches!(
        verify(&tampered)[..],
        [IntegrityFinding::Magic { .. }]
    ));
    let fixed = repair(&tampered);
    assert_eq!(
        (fixed.actions, fixed.remaining),
        (vec![RepairAction::FixedMagic], vec![])
    );
}

#[test]
fn only_one_live_resource_may_have_a_urn() {
    let mut old = component("a");
    old.delete = true;
    assert_eq!(
        verify(&snapshot([old.clone(), old.clone(), component("a"), old])),
        []
    );
    let twice = snapshot([
        component("b"),
        component("a"),
        component("a"),
        component("a"),
    ]);
    let duplicate = |second| IntegrityFinding::DuplicateUrn {
        urn: urn("a"),
        first: 1,
        second,
    };
    assert_eq!(verify(&twice), [duplicate(2), duplicate(3)]);
}

#[test]
fn repair_restores_the_order() {
    let mixed = snapshot([
        depends("c", &["b"]),
        depends("b", &["a"]),
        component("x"),
        component("a"),
    ]);
    let repair = repair(&mixed);
    assert_eq!(names(&repair.snapshot), "a b c x");
    let moved = |urn: &str, before: &str| RepairAction::Moved {
        urn: crate::test_support::urn(urn),
        before: crate::test_support::urn(before),
    };
    assert_eq!(repair.actions, [moved("a", "c"), moved("b", "c")]);
    assert_eq!(repair.remaining, []);
    assert_eq!(names(&mixed), "c b x a", "the original is untouched");
}

#[test]
fn repair_drops_links_to_what_does_not_exist() {
    let mut resource = depends("a", &["gone", "b"]);
    resource.property_dependencies = [
        ("p".to_owned(), vec![urn("gone"), urn("b")]),
        ("q".to_owned(), vec![urn("gone")]),
    ]
    .into();
    resource.deleted_with = Some(urn("gone"));
    resource.replace_with = vec![urn("gone")];
    let mut broken = snapshot([component("b"), resource]);
    broken.integrity_error = Some(IntegrityRecord::default());
    let repair = repair(&broken);
    let mended = &repair.snapshot.resources[1];
    assert_eq!(mended.dependencies, [urn("b")]);
    assert_eq!(
        mended.property_dependencies,
        [("p".to_owned(), vec![urn("b")]), ("q".to_owned(), vec![])].into()
    );
    assert_eq!(
        (&mended.deleted_with, mended.replace_with.len()),
        (&None, 0)
    );
    assert_eq!(repair.actions.len(), 5);
    assert_eq!(repair.remaining, []);
    assert_eq!(repair.snapshot.integrity_error, None, "it is mended");
}

#[test]
fn repair_renames_the_children_of_a_missing_parent() {
    let child_urn = Urn::new("dev", "shop", Some("gone:mod:Parent"), "pkg:mod:Child", "c");
    let mut child = ResourceState::new(child_urn.clone(), false);
    child.parent = Some(urn("gone"));
    let grandchild_urn = Urn::new(
        "dev",
        "shop",
        Some("gone:mod:Parent$pkg:mod:Child"),
        "pulumi:providers:pkg",
        "g",
    );
    let mut grandchild = ResourceState::new(grandchild_urn.clone(), true);
    grandchild.id = Some("p1".to_owned());
    grandchild.parent = Some(child_urn.clone());
    let mut user = depends("u", &[]);
    user.custom = true;
    user.provider = format!("{grandchild_urn}::p1");
    user.dependencies = vec![child_urn];
    let repair = repair(&snapshot([child, grandchild, user]));
    let urns: Vec<_> = repair
        .snapshot
        .resources
        .iter()
        .map(|resource| resource.urn.as_str())
        .collect();
    assert_eq!(
        urns[..2],
        [
            "urn:pulumi:dev::shop::pkg:mod:Child::c",
            "urn:pulumi:dev::shop::pkg:mod:Child$pulumi:providers:pkg::g",
        ]
    );
    let user = &repair.snapshot.resources[2];
    assert_eq!(user.dependencies[0].as_str(), urns[0]);
    assert_eq!(user.provider, format!("{}::p1", urns[1]));
    assert_eq!(repair.remaining, []);
}

#[test]
fn repair_keeps_one_of_two_records_of_the_same_object_and_never_drops_an_object() {
    let object = |id: &str| {
        let mut object = component("a");
        object.custom = true;
        object.id = Some(id.to_owned());
        object
    };
    let same = repair(&snapshot([object("i"), object("i")]));
    assert_eq!(
        same.actions,
        [RepairAction::RemovedDuplicate {
            urn: urn("a"),
            index: 1
        }]
    );
    assert_eq!(same.remaining, []);
    let two = repair(&snapshot([object("i"), object("j")]));
    assert_eq!(two.actions, []);
    assert_eq!(two.snapshot.resources.len(), 2);
    assert!(matches!(
        two.remaining[..],
        [IntegrityFinding::DuplicateUrn { .. }]
    ));
}

#[test]
fn a_circle_stays_and_is_reported() {
    let circle = [
        depends("a", &["b"]),
        depends("b", &["c"]),
        depends("c", &["a"]),
    ];
    let resources: Vec<_> = circle.iter().cloned().map(Arc::new).collect();
    let error = sort_order(&resources).unwrap_err();
    assert_eq!(error.urns, ["a", "b", "c", "a"].map(urn));
    let repair = repair(&snapshot(circle));
    assert_eq!(repair.snapshot.resources.len(), 3);
    assert!(!repair.snapshot.resources.is_empty());
}

#[test]
fn what_waits_for_its_delete_depends_on_its_own_kind() {
    let mut old_base = component("base");
    old_base.delete = true;
    let mut old_user = depends("user", &["base"]);
    old_user.delete = true;
    let resources: Vec<_> = [
        old_user,
        old_base,
        depends("user", &["base"]),
        component("base"),
    ]
    .map(Arc::new)
    .into();
    assert_eq!(sort_order(&resources).unwrap(), [1, 0, 3, 2]);
}

#[test]
fn a_chain_as_long_as_the_largest_states_is_sorted() {
    let name = |index: usize| index.to_string();
    let resources: Vec<_> = (0..30_000)
        .map(|index| Arc::new(depends(&name(index), &[&name(index + 1)])))
        .collect();
    let order = sort_order(&resources).unwrap();
    assert_eq!(order.first(), Some(&29_999));
    assert_eq!(order.last(), Some(&0));
}

fn any_state() -> impl Strategy<Value = Snapshot> {
    let resource = (
        "[a-f]",
        any::<bool>(),
        prop::collection::vec("[a-h]", 0..3),
        "[12]",
    );
    prop::collection::vec(resource, 0..8).prop_map(|resources| {
        snapshot(resources.into_iter().map(|(name, delete, on, id)| {
            let on: Vec<_> = on.iter().map(String::as_str).collect();
            let mut resource = depends(&name, &on);
            resource.custom = true;
            resource.delete = delete;
            resource.id = Some(id);
            resource
        }))
    })
}

proptest! {
    #[test]
    fn repair_loses_no_object_and_adds_no_problem(state in any_state()) {
        let before = verify(&state);
        let repair = repair(&state);
        let objects = |snapshot: &Snapshot| -> std::collections::BTreeSet<_> {
            snapshot.resources.iter().map(|r| (r.urn.clone(), r.id.clone(), r.delete)).collect()
        };
        prop_assert_eq!(objects(&repair.snapshot), objects(&state));
        prop_assert!(repair.remaining.len() <= before.len());
        if before.is_empty() {
            prop_assert_eq!(repair.actions, []);
            prop_assert_eq!(repair.snapshot, state);
        }
    }

    #[test]
    fn repair_is_done_after_one_turn(state in any_state()) {
        let once = repair(&state);
        let twice = repair(&once.snapshot);
        prop_assert_eq!(twice.actions, []);
        prop_assert_eq!(twice.snapshot, once.snapshot);
    }
}
