use proptest::prelude::*;

use super::*;
use crate::access::{Circumstances, PolicyEngine, Resource, TimeWindow};
use crate::role::{Role, built_in};

const KEY: &str = "stack:instance:deploy";

fn grant(key: &str, environments: Environments) -> Grant {
    Grant {
        permissions: [key.to_owned()].into(),
        environments,
    }
}

fn role(grants: Vec<Grant>) -> Role {
    Role {
        name: "some-role".to_owned(),
        description: String::new(),
        grants,
    }
}

fn held(tenant: TenantId, environments: Environments) -> Assignment {
    Assignment {
        role: role(vec![grant(KEY, environments)]),
        tenant,
        reach: AssignmentReach::Own,
        conditions: Conditions::default(),
        until: None,
        via: None,
    }
}

fn caller(assignments: Vec<Assignment>) -> Caller {
    Caller {
        id: "giver".to_owned(),
        assignments,
        limit: None,
        until: None,
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

/// What is wrong with giving one permission in one tenant.
fn excess(
    caller: &Caller,
    path: &[TenantId],
    environments: Environments,
    conditions: &Conditions,
    until: Option<Timestamp>,
) -> Option<Excess> {
    caller.exceeded_by(&Delegation {
        grants: &[grant(KEY, environments)],
        path,
        reach: AssignmentReach::Own,
        when: Some(Validity { conditions, until }),
    })
}

#[test]
fn a_lead_of_dev_gives_dev_and_not_prod() {
    let tenant = TenantId::random();
    let lead = caller(vec![held(tenant, Environments::only(["dev"]))]);
    let ask = |environments| excess(&lead, &[tenant], environments, &Conditions::default(), None);
    assert_eq!(ask(Environments::only(["dev"])), None);
    for wider in [
        Environments::Any,
        Environments::only(["prod"]),
        Environments::only(["dev", "prod"]),
    ] {
        assert!(matches!(ask(wider), Some(Excess::Environments { .. })));
    }
    let both = caller(vec![
        held(tenant, Environments::only(["dev"])),
        held(tenant, Environments::only(["prod"])),
    ]);
    let given = Environments::only(["dev", "prod"]);
    assert_eq!(
        excess(&both, &[tenant], given, &Conditions::default(), None),
        None
    );
}

#[test]
fn conditions_are_passed_on_narrower_and_never_wider() {
    let tenant = TenantId::random();
    let mut limited = held(tenant, Environments::Any);
    limited.conditions = Conditions {
        ip: ["10.0.0.0/8".to_owned()].into(),
        time: Some(TimeWindow {
            from: "08:00".to_owned(),
            to: "18:00".to_owned(),
            weekdays: [1, 2, 3].into(),
            zone: "Europe/Berlin".to_owned(),
        }),
        location: ["office".to_owned()].into(),
        tags: [("team".to_owned(), "blue".to_owned())].into(),
    };
    let own = limited.conditions.clone();
    let lead = caller(vec![limited]);
    let ask =
        |conditions: &Conditions| excess(&lead, &[tenant], Environments::Any, conditions, None);
    assert_eq!(ask(&own), None);
    let narrower = Conditions {
        ip: ["10.1.0.0/16".to_owned()].into(),
        time: Some(TimeWindow {
            from: "09:00".to_owned(),
            to: "12:00".to_owned(),
            weekdays: [2].into(),
            zone: "Europe/Berlin".to_owned(),
        }),
        tags: [
            ("team".to_owned(), "blue".to_owned()),
            ("tier".to_owned(), "one".to_owned()),
        ]
        .into(),
        ..own.clone()
    };
    assert_eq!(ask(&narrower), None);
    let window = |from: &str, to: &str, weekdays: &[i8], zone: &str| Conditions {
        time: Some(TimeWindow {
            from: from.to_owned(),
            to: to.to_owned(),
            weekdays: weekdays.iter().copied().collect(),
            zone: zone.to_owned(),
        }),
        ..own.clone()
    };
    let with_ip = |network: &str| Conditions {
        ip: [network.to_owned()].into(),
        ..own.clone()
    };
    for wider in [
        Conditions::default(),
        Conditions {
            ip: BTreeSet::new(),
            ..own.clone()
        },
        with_ip("0.0.0.0/0"),
        with_ip("11.0.0.0/8"),
        with_ip("::/0"),
        Conditions {
            ip: ["10.0.0.0/8".to_owned(), "192.168.0.0/16".to_owned()].into(),
            ..own.clone()
        },
        Conditions {
            time: None,
            ..own.clone()
        },
        window("07:59", "18:00", &[1], "Europe/Berlin"),
        window("08:00", "18:01", &[1], "Europe/Berlin"),
        window("22:00", "06:00", &[1], "Europe/Berlin"),
        window("08:00", "18:00", &[], "Europe/Berlin"),
        window("08:00", "18:00", &[4], "Europe/Berlin"),
        window("09:00", "10:00", &[1], "America/New_York"),
        Conditions {
            location: BTreeSet::new(),
            ..own.clone()
        },
        Conditions {
            location: ["office".to_owned(), "home".to_owned()].into(),
            ..own.clone()
        },
        Conditions {
            tags: std::collections::BTreeMap::new(),
            ..own.clone()
        },
        Conditions {
            tags: [("team".to_owned(), "red".to_owned())].into(),
            ..own.clone()
        },
    ] {
        assert!(
            matches!(ask(&wider), Some(Excess::Conditions { .. })),
            "{wider:?}"
        );
    }
}

#[test]
fn nothing_outlasts_what_the_giver_has() {
    let tenant = TenantId::random();
    let mut ending = held(tenant, Environments::Any);
    ending.until = Some(at(1000));
    let mut key = caller(vec![held(tenant, Environments::Any)]);
    key.until = Some(at(1000));
    for giver in [caller(vec![ending]), key] {
        let ask = |until| {
            excess(
                &giver,
                &[tenant],
                Environments::Any,
                &Conditions::default(),
                until,
            )
        };
        assert_eq!(ask(Some(at(1000))), None);
        for longer in [None, Some(at(1001))] {
            assert!(
                matches!(ask(longer), Some(Excess::Time { .. })),
                "{longer:?}"
            );
        }
    }
}

#[test]
fn scopes_of_a_key_and_reach_in_the_tree_are_limits() {
    let [root, child, other] = [(); 3].map(|()| TenantId::random());
    let mut key = caller(vec![held(child, Environments::Any)]);
    key.limit = Some(["users:key:manage".to_owned()].into());
    let anything = Conditions::default();
    let permission = |found| matches!(found, Some(Excess::Permission { .. }));
    assert!(permission(excess(
        &key,
        &[root, child],
        Environments::Any,
        &anything,
        None
    )));
    let own = caller(vec![held(child, Environments::Any)]);
    assert_eq!(
        excess(&own, &[root, child], Environments::Any, &anything, None),
        None
    );
    assert!(permission(excess(
        &own,
        &[root, other],
        Environments::Any,
        &anything,
        None
    )));
    assert!(permission(excess(
        &own,
        &[root],
        Environments::Any,
        &anything,
        None
    )));
    let subtree = own.exceeded_by(&Delegation {
        grants: &[grant(KEY, Environments::Any)],
        path: &[root, child],
        reach: AssignmentReach::Subtree,
        when: None,
    });
    assert!(permission(subtree));
    assert!(own.names(KEY, &[root, child]) && !own.names("users:read", &[root, child]));
    assert!(!key.names(KEY, &[root, child]));
}

fn environments() -> impl Strategy<Value = Environments> {
    prop_oneof![
        Just(Environments::Any),
        prop::collection::btree_set(prop_oneof![Just("dev"), Just("stage"), Just("prod")], 1..3)
            .prop_map(Environments::only),
    ]
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let network = prop_oneof![
        Just("10.0.0.0/8"),
        Just("10.1.0.0/16"),
        Just("10.1.2.0/24"),
        Just("192.168.0.0/16"),
        Just("0.0.0.0/0"),
    ];
    let window = (
        0_u8..24,
        0_u8..24,
        prop::collection::btree_set(1_i8..8, 0..4),
    )
        .prop_map(|(from, to, weekdays)| TimeWindow {
            from: format!("{from:02}:00"),
            to: format!("{to:02}:00"),
            weekdays,
            zone: "UTC".to_owned(),
        });
    (
        prop::collection::btree_set(network.prop_map(str::to_owned), 0..3),
        prop::option::of(window),
        prop::collection::btree_set(
            prop_oneof![Just("office".to_owned()), Just("lab".to_owned())],
            0..2,
        ),
    )
        .prop_map(|(ip, time, location)| Conditions {
            ip,
            time,
            location,
            ..Conditions::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The comparison against the decision itself: whatever may be given permits nothing, at no address,
    /// time and place and in no environment, that the giver was not permitted there and then.
    #[test]
    fn what_may_be_given_permits_nothing_that_the_giver_may_not(
        given_environments in environments(),
        held_environments in prop::collection::vec(environments(), 1..3),
        given_conditions in conditions(),
        held_conditions in conditions(),
        ip in prop_oneof![Just("10.1.2.3"), Just("10.9.9.9"), Just("192.168.1.1"), Just("8.8.8.8")],
        hour in 0_i64..168,
        place in prop::option::of(prop_oneof![Just("office"), Just("lab"), Just("home")]),
        environment in prop::option::of(prop_oneof![Just("dev"), Just("stage"), Just("prod")]),
    ) {
        let tenant = TenantId::random();
        let giver = caller(
            held_environments
                .into_iter()
                .map(|environments| Assignment {
                    conditions: held_conditions.clone(),
                    ..held(tenant, environments)
                })
                .collect(),
        );
        let refused = excess(&giver, &[tenant], given_environments.clone(), &given_conditions, None);
        if refused.is_none() {
            let taker = caller(vec![Assignment {
                conditions: given_conditions,
                ..held(tenant, given_environments)
            }]);
            let resource = Resource {
                environment: environment.map(str::to_owned),
                ..Resource::in_tenant(&[tenant], "deployment").unwrap()
            };
            let circumstances = Circumstances {
                ip: Some(ip.parse().unwrap()),
                now: at(1_800_000_000 + hour * 3600),
                location: place.map(str::to_owned),
            };
            let engine = PolicyEngine::default();
            let may = |who: &Caller| engine.decide(who, KEY, &resource, &circumstances).allowed;
            prop_assert!(!may(&taker) || may(&giver));
        }
    }
}

#[test]
fn every_built_in_role_may_be_given_by_whoever_has_it() {
    for (name, _) in crate::role::BUILT_IN {
        let tenant = TenantId::random();
        let role = built_in(name).unwrap();
        let holder = caller(vec![Assignment {
            role: role.clone(),
            ..held(tenant, Environments::Any)
        }]);
        let conditions = Conditions::default();
        let given = Delegation {
            grants: &role.grants,
            path: &[tenant],
            reach: AssignmentReach::Own,
            when: Some(Validity {
                conditions: &conditions,
                until: None,
            }),
        };
        assert_eq!(holder.exceeded_by(&given), None, "{name}");
    }
}
