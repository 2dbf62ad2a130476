use super::*;
use crate::fingerprint::{FingerprintInput, InputChange, InputDifference};
use crate::graph::GraphUnit;

fn graph() -> UnitGraph {
    let unit = |name: &str, priority, needs: &[&str]| GraphUnit {
        name: name.parse().unwrap(),
        priority,
        needs: needs.iter().map(|n| n.parse().unwrap()).collect(),
    };
    UnitGraph::new([
        unit("dns", 10, &[]),
        unit("network", 20, &[]),
        unit("security", 30, &["network"]),
        unit("monitoring", 120, &["dns", "security"]),
    ])
    .unwrap()
}

fn plan(reasons: &[(&str, RunReason)]) -> RunPlan {
    let reasons = reasons
        .iter()
        .map(|(n, r)| (n.parse().unwrap(), r.clone()))
        .collect();
    let estimates = [
        ("dns", 2),
        ("network", 8),
        ("security", 6),
        ("monitoring", 5),
    ]
    .map(|(name, minutes)| {
        (
            name.parse().unwrap(),
            Estimate {
                minutes: Some(minutes),
                longest: Some(minutes),
                resources: Some(10),
                rehearsed: None,
                measured: false,
            },
        )
    });
    RunPlan::new(
        PlanSubject::Directory("D1BRV40-A-shop".to_owned()),
        EnvironmentName::DEV,
        &graph(),
        &reasons,
        &BTreeMap::from(estimates),
    )
}

#[test]
fn the_estimate_is_the_sum_of_the_layers_longest_active_units() {
    let all = ["dns", "network", "security", "monitoring"].map(|n| (n, RunReason::NeverDeployed));
    assert_eq!(plan(&all).minutes(), 8 + 6 + 5);
    assert_eq!(
        plan(&[("dns", RunReason::Forced)]).minutes(),
        2 + 5,
        "monitoring may follow dns"
    );
    assert_eq!(plan(&[]).minutes(), 0);
}

#[test]
fn a_run_may_take_twice_the_time_that_its_units_may_take_one_after_the_other() {
    let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
    let all = ["dns", "network", "security", "monitoring"].map(|n| (n, RunReason::NeverDeployed));
    assert_eq!(plan(&all).time_limit(4), minutes(2 * (8 + 6 + 5)));
    assert_eq!(plan(&all).time_limit(1), minutes(2 * (2 + 8 + 6 + 5)));
    assert_eq!(plan(&[]).time_limit(4), None);

    let many: Vec<ComponentName> = (0..64)
        .map(|number| format!("u{number}").parse().unwrap())
        .collect();
    let units = many.iter().map(|name| GraphUnit {
        name: name.clone(),
        priority: 0,
        needs: Default::default(),
    });
    let graph = UnitGraph::new(units).unwrap();
    let reasons = many.iter().map(|name| (name.clone(), RunReason::Forced));
    // Their last run had nothing to do and took seconds.
    let reasons = reasons.collect();
    let planned = |estimate: Estimate| {
        let quick = estimate.learnt(3, 10);
        let estimates = many.iter().map(|name| (name.clone(), quick)).collect();
        let id = PlanSubject::Rehearsal("D1".parse().unwrap());
        RunPlan::new(id, EnvironmentName::DEV, &graph, &reasons, &estimates)
    };
    let said = Estimate {
        longest: Some(5),
        ..Estimate::default()
    };
    assert_eq!(planned(said).minutes(), 1);
    assert_eq!(planned(said).time_limit(4), minutes(2 * 64 * 5 / 4));
    assert_eq!(planned(said).unit_limits().len(), 64);
    let unsaid = planned(Estimate::default());
    assert_eq!(unsaid.time_limit(4), None, "nobody said what is too long");
    assert!(unsaid.unit_limits().is_empty());
}

#[test]
fn units_that_need_a_running_one_wait_for_its_outputs() {
    let plan = plan(&[("network", RunReason::LastRunFailed)]);
    let decision = |name: &str| {
        plan.units()
            .find(|u| u.name == name)
            .unwrap()
            .decision
            .clone()
    };
    assert_eq!(decision("dns"), UnitDecision::Skip);
    assert_eq!(
        decision("security"),
        UnitDecision::Depends {
            on: "network".parse().unwrap()
        }
    );
    assert_eq!(
        decision("monitoring"),
        UnitDecision::Depends {
            on: "security".parse().unwrap()
        }
    );
}

#[test]
fn the_text_is_what_users_know() {
    insta::assert_snapshot!(plan(&[("network", RunReason::NeverDeployed)]).to_string());
}

/// A deployment of this many units, all of which run, with what is known of their times.
fn many(count: usize, estimate: impl Fn(usize) -> Estimate) -> RunPlan {
    let name = |at: usize| {
        format!("service-number-{at:03}")
            .parse::<ComponentName>()
            .unwrap()
    };
    let units = (0..count).map(|at| GraphUnit {
        name: name(at),
        priority: 100,
        needs: (at >= 16).then(|| name(at % 16)).into_iter().collect(),
    });
    let graph = UnitGraph::new(units).unwrap();
    let keys = (0..4).map(|at| InputDifference {
        input: FingerprintInput::Config(format!("a-key-of-the-configuration-{at}")),
        change: InputChange::Modified,
    });
    let changed = RunReason::Changed(keys.collect());
    let runs = (0..count).filter(|at| at % 2 == 0);
    let reasons = runs.map(|at| (name(at), changed.clone())).collect();
    let estimates = (0..count).map(|at| (name(at), estimate(at))).collect();
    let id = PlanSubject::Rehearsal("D1".parse().unwrap());
    RunPlan::new(id, EnvironmentName::DEV, &graph, &reasons, &estimates)
}

#[test]
fn a_plan_of_64_units_fits_into_eighty_columns_with_its_words_whole() {
    let text = many(64, |_| Estimate::default().learnt(60, 3)).to_string();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // Five lines for each of 32 stacks that run, three and nine for those that do not, and what is around them.
    assert_eq!(text.lines().count(), 203, "{text}");
    for at in 0..64 {
        assert!(
            text.contains(&format!("service-number-{at:03}")),
            "{at}: {text}"
        );
    }
    let boxed = |lines: &[&str], width: usize| -> String {
        let boxed = |line: &&str| format!("│ {line:<width$} │\n");
        lines.iter().map(boxed).collect()
    };
    let first = boxed(
        &[
            "Layer 1 (Parallel - No Dependencies)",
            "  - service-number-000 [Priority: 100] [DEPLOYING - 1 min] config",
            "      a-key-of-the-configuration-0 changed, config",
            "      a-key-of-the-configuration-1 changed, config",
            "      a-key-of-the-configuration-2 changed, config",
            "      a-key-of-the-configuration-3 changed",
        ],
        69,
    );
    assert!(text.contains(&first), "{first}\n{text}");
    let last = boxed(
        &[
            "  - [SKIPPED - No changes] 8: service-number-001, service-number-003,",
            "      service-number-005, service-number-007, service-number-009,",
            "      service-number-011, service-number-013, service-number-015",
            "  Parallelization: 8 active │ Layer time: ~1 min",
        ],
        69,
    );
    assert!(text.contains(&last), "{last}\n{text}");
    let times = "Estimated Time: 2 minutes in the cloud, as it took last time (0% time savings)\n";
    assert!(text.contains(times), "{text}");
}

#[test]
fn what_a_rehearsal_takes_and_what_the_cloud_takes_are_said_apart_and_nothing_of_the_unknown() {
    let said = Estimate {
        minutes: Some(12),
        ..Estimate::default()
    };
    let told = |estimate: Estimate| many(2, |_| estimate).to_string();
    let both = told(said.rehearsed(3, 7));
    assert!(
        both.contains("Estimated Time: 12 minutes in the cloud, as templates say"),
        "{both}"
    );
    let learnt = told(said.learnt(180, 7).rehearsed(3, 7));
    assert!(
        learnt.contains("Estimated Time: 3 minutes in the cloud, as it took last time"),
        "{learnt}"
    );
    assert!(both.contains("Rehearsal Time: ~3 seconds"), "{both}");
    let first = told(said);
    assert!(!first.contains("Rehearsal Time"), "{first}");
    let nothing = told(Estimate::default());
    for word in [
        "Estimated",
        "Rehearsal Time",
        "Time Saved",
        " min",
        "Layer time",
        "Resource Count",
    ] {
        assert!(!nothing.contains(word), "{word}: {nothing}");
    }
    let measured = told(Estimate::default().rehearsed(4, 7));
    assert!(!measured.contains("Estimated"), "{measured}");
    assert!(
        measured.contains("Rehearsal Time: ~4 seconds"),
        "{measured}"
    );
    let some = many(4, |at| if at == 0 { said } else { Estimate::default() }).to_string();
    let some = some.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        some.contains(
            "12 minutes in the cloud, as templates say, without 1 stack of which nothing is known"
        ),
        "{some}"
    );
    let mixed = many(4, |at| if at == 0 { said } else { said.learnt(60, 1) }).to_string();
    let mixed = mixed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        mixed.contains("12 minutes in the cloud, as it took last time or templates say"),
        "{mixed}"
    );
}

#[test]
fn a_plan_has_the_same_digest_wherever_and_whenever_it_is_made() {
    let plan = plan(&[("network", RunReason::NeverDeployed)]);
    assert_eq!(
        plan.digest(),
        "033bad81ff5c4460e67f26c285bd2c5ef457da06d8f67982bd498309645703e2"
    );
    let mut learnt = plan.clone();
    learnt.layers[0][0].estimate = Estimate::default().learnt(3_600, 1);
    assert_eq!(learnt.digest(), plan.digest(), "estimates decide nothing");
}

#[test]
fn plans_that_differ_in_anything_that_is_done_have_different_digests() {
    let plan = plan(&[("network", RunReason::NeverDeployed)]);
    let changes: [fn(&mut RunPlan); 7] = [
        |plan| plan.subject = PlanSubject::Directory("D1-A-other".to_owned()),
        |plan| plan.environment = EnvironmentName::PROD,
        |plan| plan.layers[0].swap(0, 1),
        |plan| {
            plan.layers.pop();
        },
        |plan| plan.layers[0][0].priority += 1,
        |plan| plan.layers[0][0].name = "other".parse().unwrap(),
        |plan| plan.layers[0][1].decision = UnitDecision::Run(RunReason::Forced),
    ];
    let mut digests = std::collections::BTreeSet::from([plan.digest()]);
    for change in changes {
        let mut changed = plan.clone();
        change(&mut changed);
        digests.insert(changed.digest());
    }
    assert_eq!(digests.len(), 8);
}
