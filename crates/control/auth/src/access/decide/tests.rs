use proptest::prelude::*;

use super::*;
use crate::access::TimeWindow;
use crate::permission::{self, PERMISSIONS, Tier};
use crate::role::{Environments, Grant, built_in};

fn tenants() -> [TenantId; 3] {
    [TenantId::random(), TenantId::random(), TenantId::random()]
}

fn caller(role: &str, tenant: TenantId, reach: AssignmentReach) -> Caller {
    Caller {
        id: "somebody".to_owned(),
        assignments: vec![Assignment {
            role: built_in(role).unwrap(),
            tenant,
            reach,
            conditions: Conditions::default(),
            until: None,
            via: None,
        }],
        limit: None,
        until: None,
    }
}

fn in_tenant(path: &[TenantId]) -> Resource {
    Resource::in_tenant(path, "deployment").unwrap()
}

fn in_environment(path: &[TenantId], environment: &str) -> Resource {
    Resource {
        environment: Some(environment.to_owned()),
        ..in_tenant(path)
    }
}

/// A Wednesday, 10:30 in UTC.
fn now() -> Circumstances {
    Circumstances {
        ip: Some("10.1.2.3".parse().unwrap()),
        now: "2026-07-15T10:30:00Z".parse().unwrap(),
        location: Some("office".to_owned()),
    }
}

fn allowed(caller: &Caller, permission: &str, resource: &Resource) -> bool {
    PolicyEngine::default()
        .decide(caller, permission, resource, &now())
        .allowed
}

#[test]
fn nothing_is_allowed_without_a_role() {
    let path = tenants();
    let nobody = Caller {
        id: "x".to_owned(),
        assignments: Vec::new(),
        limit: None,
        until: None,
    };
    for permission in PERMISSIONS {
        assert!(!allowed(&nobody, permission.key, &in_tenant(&path)));
    }
}

#[test]
fn each_tier_has_exactly_its_keys() {
    let path = tenants();
    for (role, tier) in [
        ("provider_admin", Tier::Provider),
        ("tenant_admin", Tier::TenantAdmin),
        ("user", Tier::User),
        ("read_only", Tier::ReadOnly),
    ] {
        let caller = caller(role, path[2], AssignmentReach::Own);
        for permission in PERMISSIONS {
            let expected = permission.tier <= tier && permission.tier != Tier::System;
            assert_eq!(
                allowed(&caller, permission.key, &in_tenant(&path)),
                expected,
                "{role} {}",
                permission.key
            );
        }
    }
}

#[test]
fn a_role_ends_at_its_tenant() {
    let [root, one, below] = tenants();
    let other = TenantId::random();
    let own = caller("tenant_admin", one, AssignmentReach::Own);
    let subtree = caller("tenant_admin", one, AssignmentReach::Subtree);
    for (path, own_expected, subtree_expected) in [
        (vec![root, one], true, true),
        (vec![root, one, below], false, true),
        (vec![root], false, false),
        (vec![root, other], false, false),
        (vec![root, other, below], false, false),
    ] {
        let resource = in_tenant(&path);
        assert_eq!(allowed(&own, "users:read", &resource), own_expected);
        assert_eq!(allowed(&subtree, "users:read", &resource), subtree_expected);
    }
}

/// The matrix of document 004: Admin, Developer, Operator, Viewer.
#[test]
fn the_four_roles_keep_their_environment_rules() {
    let path = tenants();
    let rows: &[(&str, Option<&str>, [bool; 4])] = &[
        (
            "deployment:definition:create",
            None,
            [true, true, true, false],
        ),
        (
            "stack:instance:deploy",
            Some("dev"),
            [true, true, true, false],
        ),
        (
            "stack:instance:deploy",
            Some("stage"),
            [true, true, true, false],
        ),
        (
            "stack:instance:deploy",
            Some("prod"),
            [true, false, true, false],
        ),
        ("component:deploy", Some("prod"), [true, false, true, false]),
        (
            "deployment:environment:manage",
            Some("stage"),
            [true, true, true, false],
        ),
        (
            "deployment:environment:manage",
            Some("prod"),
            [true, false, true, false],
        ),
        (
            "stack:instance:destroy",
            Some("dev"),
            [true, true, false, false],
        ),
        (
            "stack:instance:destroy",
            Some("stage"),
            [true, true, false, false],
        ),
        (
            "stack:instance:destroy",
            Some("prod"),
            [true, false, false, false],
        ),
        (
            "component:destroy",
            Some("prod"),
            [true, false, false, false],
        ),
        ("deployment:definition:read", None, [true, true, true, true]),
        (
            "deployment:definition:read",
            Some("prod"),
            [true, true, true, true],
        ),
        (
            "deployment:log:read",
            Some("prod"),
            [true, true, true, true],
        ),
        ("registry:stack:manage", None, [true, false, false, false]),
        (
            "template:definition:manage",
            None,
            [true, false, false, false],
        ),
        (
            "deployment:definition:delete",
            None,
            [true, false, false, false],
        ),
    ];
    for (permission, environment, expected) in rows {
        let resource = match environment {
            Some(environment) => in_environment(&path, environment),
            None => in_tenant(&path),
        };
        for (role, expected) in ["admin", "developer", "operator", "viewer"]
            .iter()
            .zip(expected)
        {
            let caller = caller(role, path[2], AssignmentReach::Own);
            assert_eq!(
                allowed(&caller, permission, &resource),
                *expected,
                "{role} {permission} {environment:?}"
            );
        }
    }
}

fn conditional(conditions: Conditions, path: &[TenantId; 3]) -> Caller {
    conditions.check().unwrap();
    let mut caller = caller("tenant_admin", path[2], AssignmentReach::Own);
    caller.assignments[0].conditions = conditions;
    caller
}

#[test]
fn an_address_outside_the_networks_is_denied() {
    let path = tenants();
    let caller = conditional(
        Conditions {
            ip: ["10.0.0.0/8".to_owned(), "2001:db8::/32".to_owned()].into(),
            ..Conditions::default()
        },
        &path,
    );
    for (ip, expected) in [
        (Some("10.255.0.1"), true),
        (Some("2001:db8::7"), true),
        (Some("11.0.0.1"), false),
        (Some("2001:db9::7"), false),
        (None, false),
    ] {
        let circumstances = Circumstances {
            ip: ip.map(|ip| ip.parse().unwrap()),
            ..now()
        };
        let decision = PolicyEngine::default().decide(
            &caller,
            "users:read",
            &in_tenant(&path),
            &circumstances,
        );
        assert_eq!(decision.allowed, expected, "{ip:?}");
        if !expected {
            assert!(
                decision.reasons[0].contains("condition is not met"),
                "{decision:?}"
            );
        }
    }
}

#[test]
fn a_time_outside_the_window_is_denied() {
    let path = tenants();
    let window = |from: &str, to: &str, weekdays: &[i8], zone: &str| Conditions {
        time: Some(TimeWindow {
            from: from.to_owned(),
            to: to.to_owned(),
            weekdays: weekdays.iter().copied().collect(),
            zone: zone.to_owned(),
        }),
        ..Conditions::default()
    };
    // It is Wednesday, 10:30 in UTC and 12:30 in Berlin.
    for (conditions, expected) in [
        (window("08:00", "18:00", &[], "UTC"), true),
        (window("10:30", "10:31", &[], "UTC"), true),
        (window("08:00", "10:30", &[], "UTC"), false),
        (window("12:00", "13:00", &[3], "Europe/Berlin"), true),
        (window("10:00", "11:00", &[], "Europe/Berlin"), false),
        (window("08:00", "18:00", &[6, 7], "UTC"), false),
        (window("22:00", "06:00", &[], "UTC"), false),
        (window("22:00", "11:00", &[], "UTC"), true),
        (window("00:00", "24:00", &[], "UTC"), true),
    ] {
        let caller = conditional(conditions.clone(), &path);
        assert_eq!(
            allowed(&caller, "users:read", &in_tenant(&path)),
            expected,
            "{conditions:?}"
        );
    }
}

#[test]
fn another_location_is_denied() {
    let path = tenants();
    for (places, expected) in [(vec!["office", "home"], true), (vec!["home"], false)] {
        let location = places.iter().map(|&place| place.to_owned()).collect();
        let caller = conditional(
            Conditions {
                location,
                ..Conditions::default()
            },
            &path,
        );
        assert_eq!(allowed(&caller, "users:read", &in_tenant(&path)), expected);
        let nowhere = Circumstances {
            location: None,
            ..now()
        };
        assert!(
            !PolicyEngine::default()
                .decide(&caller, "users:read", &in_tenant(&path), &nowhere)
                .allowed
        );
    }
}

#[test]
fn tags_of_the_resource_decide() {
    let path = tenants();
    let conditions = Conditions {
        tags: [("team".to_owned(), "blue".to_owned())].into(),
        ..Conditions::default()
    };
    let caller = conditional(conditions, &path);
    for (tags, expected) in [
        (vec![("team", "blue")], true),
        (vec![("team", "red")], false),
        (vec![], false),
    ] {
        let tags = tags
            .into_iter()
            .map(|(tag, value)| (tag.to_owned(), value.to_owned()))
            .collect();
        let resource = Resource {
            tags,
            ..in_tenant(&path)
        };
        assert_eq!(allowed(&caller, "users:read", &resource), expected);
    }
}

#[test]
fn a_key_does_only_what_it_was_limited_to() {
    let path = tenants();
    let mut caller = caller("tenant_admin", path[2], AssignmentReach::Own);
    caller.limit = Some(
        [
            "users:read".to_owned(),
            "tenant:definition:delete".to_owned(),
        ]
        .into(),
    );
    let resource = in_tenant(&path);
    assert!(allowed(&caller, "users:read", &resource));
    assert!(
        !allowed(&caller, "users:account:create", &resource),
        "not among its scopes"
    );
    assert!(
        !allowed(&caller, "tenant:definition:delete", &resource),
        "a scope gives nothing by itself"
    );
    let decision =
        PolicyEngine::default().decide(&caller, "users:account:create", &resource, &now());
    assert_eq!(decision.reasons, ["the key's scopes leave this out"]);
    caller.limit = Some(BTreeSet::new());
    assert!(
        !allowed(&caller, "users:read", &resource),
        "no scopes are not all scopes"
    );
}

#[test]
fn the_answer_names_the_role_and_the_group() {
    let path = tenants();
    let mut caller = caller("viewer", path[2], AssignmentReach::Own);
    caller.assignments[0].via = Some("ops".to_owned());
    let decision = PolicyEngine::default().decide(&caller, "users:read", &in_tenant(&path), &now());
    assert_eq!(
        decision.reasons,
        [format!(
            "role viewer in tenant {} through group ops",
            path[2]
        )]
    );
    let denied =
        PolicyEngine::default().decide(&caller, "users:account:create", &in_tenant(&path), &now());
    assert_eq!(
        denied.reasons,
        ["no role permits users:account:create here"]
    );
}

#[test]
fn conditions_that_cannot_be_read_are_refused() {
    let ip = |text: &str| Conditions {
        ip: [text.to_owned()].into(),
        ..Conditions::default()
    };
    for bad in [
        "",
        "10.0.0.0/33",
        "host",
        "10.0.0.0/8\") || true || ip(\"10.0.0.0/8",
    ] {
        assert!(ip(bad).check().is_err(), "{bad}");
    }
    let zone = TimeWindow {
        from: "08:00".into(),
        to: "18:00".into(),
        weekdays: [8].into(),
        zone: "UTC".into(),
    };
    assert!(
        Conditions {
            time: Some(zone),
            ..Conditions::default()
        }
        .check()
        .is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Names chosen to break out of the policy's text permit nothing more than they say.
    #[test]
    fn text_from_outside_cannot_become_policy(
        place in "[ -~é\\n\\\\\"{}()&|]{0,30}",
        environment in "[ -~é\\n\\\\\"{}()&|]{0,30}",
    ) {
        let path = tenants();
        let mut caller = caller("viewer", path[2], AssignmentReach::Own);
        caller.assignments[0].conditions.location = [place.clone()].into();
        caller.assignments[0].role.grants = vec![Grant {
            permissions: ["users:read".to_owned()].into(),
            environments: Environments::Only([environment.clone()].into()),
        }];
        let resource = in_environment(&path, &environment);
        let at = |location: &str| Circumstances { location: Some(location.to_owned()), ..now() };
        let engine = PolicyEngine::default();
        prop_assert!(engine.decide(&caller, "users:read", &resource, &at(&place)).allowed);
        prop_assert!(!engine.decide(&caller, "users:read", &resource, &at("elsewhere!")).allowed);
        prop_assert!(!engine.decide(&caller, "users:account:create", &resource, &at(&place)).allowed);
        let other = in_environment(&path, "some other environment");
        prop_assert!(!engine.decide(&caller, "users:read", &other, &at(&place)).allowed);
    }

    /// Giving somebody another role never takes anything away.
    #[test]
    fn more_roles_never_permit_less(choice in 0usize..8, key in 0usize..90) {
        let path = tenants();
        let key = PERMISSIONS[key % PERMISSIONS.len()].key;
        let (name, _) = crate::role::BUILT_IN[choice];
        let one = caller("viewer", path[2], AssignmentReach::Own);
        let mut both = one.clone();
        both.assignments.extend(caller(name, path[2], AssignmentReach::Own).assignments);
        prop_assert!(permission::find(key).is_some());
        if allowed(&one, key, &in_tenant(&path)) {
            prop_assert!(allowed(&both, key, &in_tenant(&path)));
        }
    }
}
