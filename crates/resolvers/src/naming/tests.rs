use proptest::prelude::*;
use serde_json::json;

use super::*;

fn facts() -> UnitFacts {
    UnitFacts {
        deployment: "D1BRV40".into(),
        environment: "dev".into(),
        component: "web".into(),
        organization: "Acme & Sons".into(),
        project: "Shop".into(),
        region: "eu-west-1".into(),
    }
}

fn request(pattern: &str, inputs: Value) -> Result<NameRequest, ResolverError> {
    let config: NamingConfig = serde_json::from_value(json!({
        "pattern": pattern,
        "domain": "acme.example",
        "max_length": {"short": 10, "windows_vm": 40},
        "abbreviations": {"database": "db"},
    }))
    .unwrap();
    let inputs = inputs.as_object().unwrap().clone();
    let question = ResolverQuestion::new(ResolverKind::Naming, inputs)?;
    NameRequest::read(&question, &config, &facts(), "operator")
}

#[test]
fn the_pattern_of_the_founding_documents_gives_its_name() {
    let vm = request("{env}-{type}-{seq:03d}", json!({"resource_type": "vm"})).unwrap();
    assert_eq!(vm.name(1).unwrap(), "dev-vm-001");
    assert_eq!(vm.name(1234).unwrap(), "dev-vm-1234");
    assert_eq!(vm.outputs("dev-vm-001")["fqdn"], "dev-vm-001.acme.example");
    let all = "{org}-{project}-{component}-{deployment}-{region}-{type}{seq}";
    let all = request(all, json!({"resource_type": "database"})).unwrap();
    assert_eq!(
        all.name(7).unwrap(),
        "acme-sons-shop-web-d1brv40-eu-west-1-db7"
    );
    let prod = json!({"resource_type": "vm", "environment": "prod"});
    assert_eq!(
        request("{env}-{seq}", prod).unwrap().name(2).unwrap(),
        "prod-2"
    );
}

#[test]
fn names_that_break_a_rule_name_the_rule_and_its_owner() {
    for (kind, pattern, says) in [
        (
            "storage_account",
            "{env}-{type}-{seq}",
            "only small letters and digits",
        ),
        ("windows_vm", "a-very-long-prefix-{seq}", "at most 15"),
        ("short", "eleven-char{seq}", "at most 10"),
        ("bucket", "b{seq}", "at least 3"),
        ("vm", "Dev-{seq}", "small letters"),
        ("vm", "-{seq}", "neither first nor last"),
    ] {
        let error = request(pattern, json!({"resource_type": kind}))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(says) && error.contains("operator"),
            "{error}"
        );
    }
    // A number that grows too long is refused as well.
    let short = request("ninechar{seq}", json!({"resource_type": "short"})).unwrap();
    assert!(short.name(99).is_ok());
    assert!(short.name(100).is_err());
}

#[test]
fn wrong_patterns_are_refused() {
    for (pattern, says) in [
        ("{env", "not closed"),
        ("{who}", "there is no {who}"),
        ("{seq:3}", "there is no {seq:3}"),
        ("{seq:00d}", "there is no"),
        ("{seq}-{seq}", "more than one"),
        ("", "empty"),
    ] {
        let error = NamePattern::parse(pattern).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let numbered = json!({"resource_type": "vm", "sequence": 3});
    let error = request("{env}-x", numbered).unwrap_err().to_string();
    assert!(error.contains("no {seq}"), "{error}");
}

#[test]
fn sequences_are_apart_by_everything_but_their_number() {
    let key = |pattern, kind| {
        let inputs = json!({"resource_type": kind});
        request(pattern, inputs).unwrap().sequence_key()
    };
    assert_eq!(key("{env}-{seq}", "vm"), key("{env}-{seq:03d}", "vm"));
    assert_ne!(key("{env}-{seq}", "vm"), key("{env}-{seq}", "bucket"));
    assert_ne!(key("{env}-{seq}-a", "vm"), key("{env}-{seq}-b", "vm"));
    let fixed = request("{env}-gateway", json!({"resource_type": "vm"})).unwrap();
    assert_eq!(fixed.numbers().size(), 1);
    assert_eq!(block_number(number_block(77)), 77);
}

proptest! {
    #[test]
    fn every_name_that_is_made_obeys_its_rule(
        organization in "\\PC{0,20}",
        kind in prop_oneof![Just("vm"), Just("bucket"), Just("storage_account"), Just("windows_vm")],
        pattern in prop_oneof![Just("{org}{seq}"), Just("{org}-{type}-{seq:03d}"), Just("{env}{seq}{org}")],
        number in 0_u32..2_000_000,
    ) {
        let config = NamingConfig { pattern: Some(pattern.into()), ..NamingConfig::default() };
        let inputs = json!({"resource_type": kind}).as_object().unwrap().clone();
        let question = ResolverQuestion::new(ResolverKind::Naming, inputs).unwrap();
        let facts = UnitFacts { organization, ..facts() };
        if let Ok(request) = NameRequest::read(&question, &config, &facts, "o")
            && let Ok(name) = request.name(number)
        {
            let rule = NameRule::of(kind, &config);
            prop_assert!(name.len() <= rule.longest && name.len() >= rule.shortest);
            prop_assert_eq!(rule.problem(&name), None);
            prop_assert!(!name.chars().any(|c| c.is_ascii_uppercase() || !c.is_ascii()));
            prop_assert!(name.contains(&number.to_string()));
        }
    }
}
