use nimbus_core::UnitName;

use super::*;
use crate::gate::GateItem;

fn manifest() -> Manifest {
    let config = |value: Value| match value {
        Value::Object(map) => BTreeMap::from([(EnvironmentName::DEV, map)]),
        _ => BTreeMap::new(),
    };
    let stack = |needs: &[&str], values| ComponentEntry {
        enabled: true,
        priority: 100,
        dependencies: needs.iter().map(|n| n.parse().unwrap()).collect(),
        network: (!needs.is_empty()).then_some(NetworkAccess::Full),
        pulumi: None,
        config: config(values),
    };
    Manifest {
        metadata: ManifestMetadata {
            id: "D1BRV40".parse().unwrap(),
            organization: "Company-A".to_owned(),
            project: "ecommerce".to_owned(),
            template: "minimal".to_owned(),
            labels: BTreeMap::from([("team".to_owned(), "infrastructure".to_owned())]),
        },
        environments: IndexMap::from([(
            EnvironmentName::DEV,
            EnvironmentTarget {
                enabled: true,
                account: Some("111111111111".to_owned()),
                region: "us-east-1".to_owned(),
                confirm: Some(true),
                gate: Some(GateDefinition::of_middle()),
                checks: BTreeMap::from([(
                    "smoke".to_owned(),
                    CheckCommand {
                        command: "curl -f https://example.com".to_owned(),
                        seconds: 60,
                        needed: true,
                        rehearse: false,
                    },
                )]),
            },
        )]),
        stacks: BTreeMap::from([
            (
                "network".parse().unwrap(),
                stack(&[], json!({"vpcCidr": "10.0.0.0/16"})),
            ),
            (
                "compute".parse().unwrap(),
                stack(&[], json!({"a": [{"b": "x-{{RUNTIME:network:vpcId}}"}]})),
            ),
        ]),
        shared: SharedValues::default(),
    }
}

#[test]
fn it_is_written_and_read_back() {
    let text = manifest().write();
    let document = Document::parse(FILE_NAME, &text).unwrap();
    assert_eq!(Manifest::read(&document).unwrap(), manifest(), "{text}");
}

#[test]
fn placeholders_that_name_no_stack_make_no_edges() {
    let mut manifest = manifest();
    let others = [
        "env:HOME",
        "aws:availabilityZones",
        "calculate:uuid",
        "calculate:timestamp",
    ];
    let others = others.map(|other| json!(format!("{{{{RUNTIME:{other}}}}}")));
    let compute = manifest.stacks.get_mut("compute").unwrap();
    let config = compute.config.entry(EnvironmentName::PROD).or_default();
    config.insert("others".to_owned(), json!(others));
    let graph = manifest.graph(EnvironmentName::PROD).unwrap();
    assert_eq!(graph.needs("compute").count(), 0);
}

#[test]
fn placeholders_make_edges_in_the_graph() {
    let graph = manifest().graph(EnvironmentName::DEV).unwrap();
    assert_eq!(graph.needs("compute").collect::<Vec<_>>(), ["network"]);
    let other = manifest().graph(EnvironmentName::PROD).unwrap();
    assert_eq!(
        other.needs("compute").count(),
        0,
        "prod has no such placeholder"
    );
}

#[test]
fn a_disabled_dependency_is_missing() {
    let mut manifest = manifest();
    manifest.stacks.get_mut("network").unwrap().enabled = false;
    assert!(matches!(
        manifest.graph(EnvironmentName::DEV),
        Err(GraphError::Missing { needs, .. }) if needs == "network"
    ));
}

#[test]
fn another_kind_of_file_is_refused() {
    let document = Document::parse(FILE_NAME, "apiVersion: v1\nkind: Pod\n").unwrap();
    let error = Manifest::read(&document).unwrap_err();
    assert!(error.message().contains("apiVersion must be"), "{error}");
}

fn with_spec(spec: &str) -> Result<Manifest> {
    let text = format!(
        "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {{deploymentId: D1, organization: o, \
         project: p, template: t}}\nspec:\n{spec}"
    );
    Manifest::read(&Document::parse(FILE_NAME, &text).unwrap())
}

fn order(spec: &str) -> String {
    let manifest = with_spec(&format!("{spec}  stacks: {{}}\n")).unwrap();
    let names: Vec<_> = manifest.environments.keys().map(|e| e.as_str()).collect();
    names.join(" ")
}

fn line_of(error: &Error) -> usize {
    error.spans()[0].line_and_column().0
}

/// A refusal and its line.
fn refusal(spec: &str) -> (String, usize) {
    let error = with_spec(spec).unwrap_err();
    (error.to_string(), line_of(&error))
}

const THREE: &str = "  environments:\n    live: {enabled: true, region: r}\n    \
                     build: {enabled: true, region: r}\n    test: {enabled: true, region: r}\n";

#[test]
fn environments_follow_each_other_as_the_list_says() {
    let listed = format!("{THREE}  promotion: [build, test, live]\n");
    assert_eq!(order(&listed), "build test live");
    let manifest = with_spec(&format!("{listed}  stacks: {{}}\n")).unwrap();
    let from = |name: &str| manifest.promoted_from(name.parse().unwrap());
    assert_eq!(from("build"), None);
    assert_eq!(from("test"), Some("build".parse().unwrap()));
    assert_eq!(from("live"), Some("test".parse().unwrap()));
    assert_eq!(from("nowhere"), None);
    let again = Manifest::read(&Document::parse(FILE_NAME, &manifest.write()).unwrap());
    assert_eq!(
        again.unwrap().environments.keys().collect::<Vec<_>>(),
        manifest.environments.keys().collect::<Vec<_>>(),
        "the order survives the file"
    );
}

#[test]
fn without_a_list_the_usual_names_have_the_usual_order_and_others_that_of_the_file() {
    assert_eq!(order(THREE), "live build test");
    let target = "{enabled: true, region: r}";
    let usual = format!("  environments: {{prod: {target}, dev: {target}, stage: {target}}}\n");
    assert_eq!(order(&usual), "dev stage prod");
    let two = format!("  environments: {{prod: {target}, dev: {target}}}\n");
    assert_eq!(order(&two), "dev prod");
    let mixed = format!("  environments: {{prod: {target}, dev: {target}, qa: {target}}}\n");
    assert_eq!(order(&mixed), "prod dev qa");
}

#[test]
fn a_list_that_does_not_name_every_environment_once_is_refused_with_its_place() {
    let line = THREE.lines().count() + 5;
    for (list, words) in [
        ("[build, test]", "does not say when `live` follows"),
        (
            "[build, test, life, live]",
            "there is no environment `life`",
        ),
        ("[build, test, live, test]", "`test` is promoted twice"),
    ] {
        let spec = format!("{THREE}  promotion: {list}\n  stacks: {{}}\n");
        let (message, at) = refusal(&spec);
        assert!(message.contains(words), "{message}");
        assert_eq!(at, line, "{message}");
    }
}

#[test]
fn configuration_of_an_environment_that_there_is_not_is_refused_with_a_hint() {
    let target = "{enabled: true, region: r}";
    let stray = |environments: &str, name: &str| {
        let spec = format!(
            "  environments: {{{environments}: {target}}}\n  stacks:\n    web:\n      enabled: true\n      \
             config:\n        {name}: {{size: 1}}\n"
        );
        let error = with_spec(&spec).unwrap_err();
        assert!(
            error
                .message()
                .contains(&format!("no environment `{name}`")),
            "{error}"
        );
        assert_eq!(line_of(&error), 10, "{error}");
        error.spans()[0].label.clone()
    };
    assert_eq!(stray("live", "lives"), "did you mean `live`?");
    assert_eq!(stray("live", "other"), "the only valid one is `live`");
    assert!(stray("stage", "staging").contains("staging is called stage"));
    assert_eq!(
        stray("live", "staging"),
        "the only valid one is `live`",
        "nothing was renamed where there is no stage"
    );
}

#[test]
fn gates_are_read_and_written_and_the_usual_one_stands_in() {
    let spec = "  environments:\n    build: {enabled: true, region: r, gate: {items: [deploy, window]}}\n    \
                test: {enabled: true, region: r}\n    live: {enabled: true, region: r, gate: {items: [monitoring], \
                monitoringHours: 7}}\n  stacks: {}\n";
    let manifest = with_spec(spec).unwrap();
    let gate = |name: &str| manifest.gate(name.parse().unwrap());
    assert_eq!(gate("build").items, [GateItem::Deploy, GateItem::Window]);
    assert_eq!(gate("build").monitoring_hours, None);
    assert_eq!(gate("test"), GateDefinition::of_middle());
    assert_eq!(gate("live").monitoring_hours, Some(7));
    let again = Manifest::read(&Document::parse(FILE_NAME, &manifest.write()).unwrap());
    assert_eq!(again.unwrap(), manifest);

    let usual = with_spec(&format!("{THREE}  stacks: {{}}\n")).unwrap();
    let gate = |name: &str| usual.gate(name.parse().unwrap());
    assert_eq!(
        gate("live"),
        GateDefinition::of_first(),
        "first in the file"
    );
    assert_eq!(gate("build"), GateDefinition::of_middle());
    assert_eq!(gate("test"), GateDefinition::of_last());
}

#[test]
fn a_gate_that_nobody_can_understand_is_refused_with_its_place() {
    for (gate, words) in [
        ("{items: [smoketests]}", "no gate has an item `smoketests`"),
        ("{items: [deploy, deploy]}", "`deploy` is asked for twice"),
        ("{items: [deploy], monitoringHours: 4}", "nothing watches"),
        ("{items: [deploy], hours: 4}", "hours"),
        ("{monitoringHours: 4}", "items"),
    ] {
        let spec = format!(
            "  environments:\n    dev:\n      enabled: true\n      region: r\n      gate: {gate}\n  stacks: {{}}\n"
        );
        let (message, line) = refusal(&spec);
        assert!(message.contains(words), "{message}");
        assert_eq!(line, 9, "{message}");
    }
}

#[test]
fn the_last_of_several_environments_needs_a_second_word_unless_the_manifest_says_otherwise() {
    let needs = |spec: &str, name: &str| {
        let manifest = with_spec(&format!("{spec}  stacks: {{}}\n")).unwrap();
        manifest.needs_confirmation(name.parse().unwrap())
    };
    assert!(needs(THREE, "test"), "it is the last");
    assert!(!needs(THREE, "live") && !needs(THREE, "build"));
    let one = "  environments: {play: {enabled: true, region: r}}\n";
    assert!(!needs(one, "play"));
    let prod = "  environments: {prod: {enabled: true, region: r}}\n";
    assert!(needs(prod, "prod"));
    let said = "  environments:\n    dev: {enabled: true, region: r, confirm: true}\n    \
                prod: {enabled: true, region: r, confirm: false}\n";
    assert!(needs(said, "dev") && !needs(said, "prod"));
}

#[test]
fn a_placeholder_with_a_default_waits_for_its_stack_only_where_there_is_one() {
    let mut manifest = manifest();
    let value = json!("{{RUNTIME:network:vpcId|none}}");
    let compute = manifest.stacks.get_mut("compute").unwrap();
    compute.config = BTreeMap::from([(
        EnvironmentName::DEV,
        Map::from_iter([("vpcId".to_owned(), value)]),
    )]);
    let graph = manifest.graph(EnvironmentName::DEV).unwrap();
    assert_eq!(graph.needs("compute").collect::<Vec<_>>(), ["network"]);
    manifest.stacks.get_mut("network").unwrap().enabled = false;
    let graph = manifest.graph(EnvironmentName::DEV).unwrap();
    assert_eq!(graph.needs("compute").count(), 0);
    manifest.stacks.remove("network");
    assert!(manifest.graph(EnvironmentName::DEV).is_ok());
}

#[test]
fn two_units_never_share_a_stack() {
    let mut shared = manifest();
    let target = shared.environments[&EnvironmentName::DEV].clone();
    shared.environments = ["prod", "eu-prod"]
        .map(|name| (name.parse().unwrap(), target.clone()))
        .into();
    let entry = shared.stacks.values().next().unwrap().clone();
    let entry = ComponentEntry {
        dependencies: BTreeSet::new(),
        config: BTreeMap::new(),
        ..entry
    };
    shared.stacks = ["app", "app-eu"]
        .map(|name| (name.parse().unwrap(), entry.clone()))
        .into();
    let read = |manifest: &Manifest| {
        let document = Document::parse(FILE_NAME, &manifest.write()).unwrap();
        Manifest::read(&document)
    };
    let error = read(&shared).unwrap_err();
    assert!(error.message().contains("D1BRV40-app-eu-prod"), "{error}");
    shared.stacks.remove("app");
    read(&shared).unwrap();
}

#[test]
fn a_stack_belongs_to_one_environment() {
    let mut manifest = manifest();
    let target = manifest.environments[&EnvironmentName::DEV].clone();
    let [prod, pre] = ["prod", "pre-prod"].map(|name| name.parse::<EnvironmentName>().unwrap());
    manifest.environments = IndexMap::from([(pre, target.clone()), (prod, target)]);
    let component = manifest.stacks.keys().next().unwrap().clone();
    let stack = |environment| UnitName::new(&manifest.metadata.id, &component, environment);
    assert!(manifest.has_unit_in(prod, "ecommerce", &stack(prod)));
    assert!(manifest.has_unit_in(pre, "ecommerce", &stack(pre)));
    assert!(!manifest.has_unit_in(prod, "ecommerce", &stack(pre)));
    assert!(!manifest.has_unit_in(pre, "ecommerce", &stack(prod)));
    assert!(manifest.has_unit_in(prod, "ecommerce", "D1BRV40-gone-prod"));
    assert!(!manifest.has_unit_in(prod, "ecommerce", "D1OTHER-gone-prod"));
    assert!(!manifest.has_unit_in(prod, "ecommerce", "D1BRV40-prod"));
}
