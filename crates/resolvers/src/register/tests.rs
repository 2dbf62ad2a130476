use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn settings() -> ResolverSettings {
    let file = json!({
        "pools": [
            {"name": "corp", "cidr": "10.0.0.0/16"},
            {"name": "lan", "cidr": "10.0.0.0/24", "parent": "corp"},
            {"name": "hosts", "cidr": "192.168.0.0/29", "purpose": "addresses"},
            {"name": "six", "cidr": "fd00::/48", "reserved": ["fd00::/64"]},
        ],
        "resolvers": {
            "ipam": {"pool": "corp", "address_pool": "hosts", "prefix_length": 24},
            "naming": {"pattern": "{env}-{type}-{seq:03d}"},
            "image_catalog": {"cloud": "proxmox"},
        },
    });
    ResolverSettings::read(&file, "dev").unwrap()
}

struct RegisterCase {
    register: LeaseRegister,
    settings: ResolverSettings,
    now: i64,
}

impl RegisterCase {
    fn new() -> Self {
        Self {
            register: LeaseRegister::default(),
            settings: settings(),
            now: 0,
        }
    }

    fn ask(
        &mut self,
        component: &str,
        holder: LeaseHolder,
        resolver: ResolverKind,
        inputs: Value,
    ) -> Result<ResolverAnswer, ResolverError> {
        let facts = UnitFacts {
            deployment: "D1".into(),
            environment: "dev".into(),
            component: component.into(),
            ..UnitFacts::default()
        };
        let inputs = inputs.as_object().unwrap().clone();
        let question = ResolverQuestion::new(resolver, inputs)?;
        let asker = LeaseAsker {
            facts: &facts,
            holder,
            now: self.now,
        };
        let mut seal = |rules: SecretRules| Ok(format!("sealed {}", rules.length));
        self.register
            .answer(&self.settings, &question, &asker, &mut seal)
    }

    fn cidr(&mut self, component: &str, inputs: Value) -> Result<String, ResolverError> {
        let answer = self.ask(component, LeaseHolder::Run(1), ResolverKind::Ipam, inputs)?;
        Ok(answer.outputs["cidr"].as_str().unwrap().to_owned())
    }

    fn name(&mut self, component: &str, inputs: Value) -> Result<String, ResolverError> {
        let answer = self.ask(component, LeaseHolder::Run(1), ResolverKind::Naming, inputs)?;
        Ok(answer.outputs["name"].as_str().unwrap().to_owned())
    }

    fn settle(&mut self, component: &str, run: u64, settlement: Settlement) {
        let unit = LeaseUnit {
            deployment: "D1".into(),
            environment: "dev".into(),
            component: component.into(),
        };
        self.register.settle(&unit, run, settlement);
    }
}

#[test]
fn a_unit_that_asks_again_has_the_same_answer_and_others_have_others() {
    let mut case = RegisterCase::new();
    // The child pool is nobody else's.
    assert_eq!(case.cidr("a", json!({})).unwrap(), "10.0.1.0/24");
    assert_eq!(case.cidr("a", json!({})).unwrap(), "10.0.1.0/24");
    assert_eq!(case.cidr("b", json!({})).unwrap(), "10.0.2.0/24");
    assert_eq!(
        case.cidr("a", json!({"label": "second"})).unwrap(),
        "10.0.3.0/24"
    );
    let inner = json!({"parent_scope": "lan", "prefix_length": 26});
    assert_eq!(case.cidr("a", inner).unwrap(), "10.0.0.0/26");
    let address = json!({"allocation_type": "address"});
    assert_eq!(case.cidr("a", address.clone()).unwrap(), "192.168.0.2/29");
    assert_eq!(case.cidr("b", address).unwrap(), "192.168.0.3/29");
    let six = json!({"parent_scope": "six", "prefix_length": 64});
    assert_eq!(case.cidr("a", six).unwrap(), "fd00:0:0:1::/64");
}

#[test]
fn an_exhausted_pool_says_which_and_what_comes_back_is_given_again() {
    let mut case = RegisterCase::new();
    let address = || json!({"allocation_type": "address"});
    for component in ["a", "b", "c", "d", "e"] {
        case.cidr(component, address()).unwrap();
    }
    let error = case.cidr("f", address()).unwrap_err();
    assert_eq!(error.code(), nimbus_core::ErrorCode::POOL_EXHAUSTED);
    let words = error.to_string();
    assert!(
        words.contains("hosts (192.168.0.0/29) of this workspace has no free address"),
        "{words}"
    );
    assert_eq!(case.register.live().count(), 5, "nothing was leased for it");
    case.settle("b", 1, Settlement::Destroyed);
    assert_eq!(case.cidr("f", address()).unwrap(), "192.168.0.3/29");
}

#[test]
fn names_count_up_come_back_and_are_unique() {
    let mut case = RegisterCase::new();
    let vm = || json!({"resource_type": "vm"});
    assert_eq!(case.name("a", vm()).unwrap(), "dev-vm-001");
    assert_eq!(case.name("b", vm()).unwrap(), "dev-vm-002");
    assert_eq!(
        case.name("c", json!({"resource_type": "bucket"})).unwrap(),
        "dev-bucket-001"
    );
    let third = json!({"resource_type": "vm", "sequence": 3});
    assert_eq!(case.name("c", third.clone()).unwrap(), "dev-vm-003");
    let error = case.name("d", third).unwrap_err();
    assert_eq!(error.code(), nimbus_core::ErrorCode::NAME_TAKEN);
    assert_eq!(case.name("d", vm()).unwrap(), "dev-vm-004");
    case.settle("a", 1, Settlement::Destroyed);
    assert_eq!(case.name("e", vm()).unwrap(), "dev-vm-001");
    // Another pattern that makes the same name goes on to the next.
    case.settings.naming.pattern = Some("dev-{type}-{seq:03d}".into());
    assert_eq!(case.name("f", vm()).unwrap(), "dev-vm-005");
    case.settings.naming.pattern = Some("gateway".into());
    assert_eq!(case.name("g", vm()).unwrap(), "gateway");
    let error = case.name("h", vm()).unwrap_err().to_string();
    assert!(
        error.contains("`gateway`") && error.contains("D1-g-dev"),
        "{error}"
    );
}

#[test]
fn a_secret_is_made_once_and_only_its_reference_leaves() {
    let mut case = RegisterCase::new();
    let ask = |case: &mut RegisterCase| {
        let inputs = json!({"name": "db", "length": 20});
        case.ask("a", LeaseHolder::Run(1), ResolverKind::Secret, inputs)
            .unwrap()
    };
    let first = ask(&mut case);
    assert_eq!(ask(&mut case).outputs, first.outputs);
    assert_eq!(first.outputs.keys().collect::<Vec<_>>(), ["reference"]);
    let lease = case.register.find(first.lease.unwrap()).unwrap();
    assert_eq!(lease.sealed.as_deref(), Some("sealed 20"));
}

#[test]
fn a_plan_that_nobody_carries_out_lets_go() {
    let mut case = RegisterCase::new();
    let plan = |case: &mut RegisterCase, component: &str| {
        let answer = case.ask(component, LeaseHolder::Plan, ResolverKind::Ipam, json!({}));
        answer.unwrap().outputs["cidr"].as_str().unwrap().to_owned()
    };
    assert_eq!(plan(&mut case, "a"), "10.0.1.0/24");
    assert_eq!(plan(&mut case, "b"), "10.0.2.0/24");
    case.cidr("b", json!({})).unwrap();
    case.now = PLAN_LEASE_SECONDS;
    assert_eq!(plan(&mut case, "c"), "10.0.1.0/24", "that of a came back");
    assert_eq!(plan(&mut case, "b"), "10.0.2.0/24", "a run has it");
}

#[test]
fn what_was_taken_for_nothing_is_given_back_and_what_is_committed_stays() {
    let mut case = RegisterCase::new();
    let ask = |case: &mut RegisterCase, component: &str| {
        case.ask(
            component,
            LeaseHolder::Run(1),
            ResolverKind::Ipam,
            json!({}),
        )
        .unwrap()
    };
    let (a, b) = (ask(&mut case, "a"), ask(&mut case, "b"));
    assert!(a.fresh && !ask(&mut case, "a").fresh);
    case.settle("a", 1, Settlement::Deployed);
    let both = [a.lease.unwrap(), b.lease.unwrap()];
    case.register.give_back(LeaseHolder::Run(1), &both);
    assert!(case.register.find(both[0]).is_some());
    assert!(case.register.find(both[1]).is_none());
}

#[test]
fn a_plan_that_ends_takes_nothing_from_the_run_that_adopted_it() {
    let mut case = RegisterCase::new();
    let mut ask = |holder| {
        case.ask("a", holder, ResolverKind::Ipam, json!({}))
            .unwrap()
    };
    let shown = ask(LeaseHolder::Plan).lease.unwrap();
    assert_eq!(ask(LeaseHolder::Run(1)).lease, Some(shown));
    case.register.give_back(LeaseHolder::Plan, &[shown]);
    assert!(case.register.find(shown).is_some(), "the run may deploy it");
}

proptest! {
    #[test]
    fn whatever_runs_do_nothing_overlaps_and_everything_comes_back(
        moves in prop::collection::vec((0_usize..6, 0_u8..5, 22_u8..28), 1..80),
    ) {
        let mut case = RegisterCase::new();
        let components = ["a", "b", "c", "d", "e", "f"];
        for (run, (at, what, prefix)) in moves.into_iter().enumerate() {
            let run = run as u64 + 1;
            let component = components[at];
            match what {
                0 | 1 => {
                    let inputs = json!({"prefix_length": prefix});
                    let holder = LeaseHolder::Run(run);
                    let asked = case.ask(component, holder, ResolverKind::Ipam, inputs);
                    if what == 0 && asked.is_ok() {
                        case.settle(component, run, Settlement::Deployed);
                    } else {
                        case.settle(component, run, Settlement::Undone);
                    }
                }
                2 => case.settle(component, run, Settlement::Destroyed),
                3 => case.settle(component, run, Settlement::Restored { to_run: run / 2 }),
                _ => {
                    let inputs = json!({"prefix_length": prefix});
                    let _ = case.ask(component, LeaseHolder::Plan, ResolverKind::Ipam, inputs);
                }
            }
            let held: Vec<_> = case.register.live().filter_map(|one| one.block).collect();
            for (at, one) in held.iter().enumerate() {
                prop_assert!(!held[..at].iter().any(|other| other.overlaps(*one)));
            }
        }
        for component in components {
            case.settle(component, 1000, Settlement::Destroyed);
        }
        prop_assert_eq!(case.register.live().count(), 0);
        let pool = case.settings.pools[0].clone();
        let free = case.register.free(&case.settings, &pool).size();
        prop_assert_eq!(free, pool.cidr.size() - 256);
    }
}
