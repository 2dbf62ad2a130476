use std::collections::BTreeMap;

use nimbus_document::Document;

use super::*;
use crate::template::ComponentTemplate;

fn library() -> TemplateLibrary {
    let stack = |name: &str, rest: &str| {
        let document = Document::parse(name, &format!("name: {name}\n{rest}")).unwrap();
        (
            name.parse().unwrap(),
            ComponentTemplate::read(&document).unwrap(),
        )
    };
    TemplateLibrary {
        stacks: BTreeMap::from([
            stack("network", "outputs: {vpcId: , subnetIds: }\n"),
            stack("security", "dependencies: [network]\n"),
            stack(
                "compute-ec2",
                "dependencies: [network, security]\nparameters:\n\
                 \x20 required: [size, vpcId]\n  properties: {size: {type: integer, minimum: 1}}\n",
            ),
        ]),
        manifests: BTreeMap::new(),
    }
}

fn manifest(stacks: &str) -> Manifest {
    let text = format!(
        "apiVersion: nimbus/v1\nkind: DeploymentManifest\nmetadata: {{deploymentId: D1, organization: o, \
         project: p, template: t}}\nspec:\n  environments:\n    dev: {{enabled: true, account: '111111111111', \
         region: r}}\n  stacks:\n{stacks}"
    );
    Manifest::read(&Document::parse("m.yaml", &text).unwrap()).unwrap()
}

fn details(stacks: &str) -> Vec<String> {
    let findings = validate(&manifest(stacks), &library(), &[EnvironmentName::DEV]);
    findings.iter().map(ToString::to_string).collect()
}

const NETWORK: &str = "    network: {enabled: true}\n";

#[test]
fn a_good_manifest_has_no_findings() {
    let good = format!(
        "{NETWORK}    security: {{enabled: true, dependencies: [network]}}\n    compute-ec2:\n      \
         enabled: true\n      dependencies: [network, security]\n      \
         config: {{dev: {{size: 2, vpcId: '{{{{RUNTIME:network:vpcId}}}}'}}}}\n"
    );
    assert_eq!(details(&good), Vec::<String>::new());
}

#[test]
fn the_four_dependency_errors_read_as_specified() {
    let cycle = "    security: {enabled: true, dependencies: [network]}\n    network: {enabled: true, \
                 dependencies: [security]}\n";
    assert!(details(cycle).contains(
        &"ERROR: Circular dependency detected\n  network → security → network".to_owned()
    ));
    let missing =
        "    network: {enabled: false}\n    security: {enabled: true, dependencies: [network]}\n";
    assert_eq!(
        details(missing),
        [
            "ERROR: Missing dependency\n  Stack 'security' depends on 'network' but 'network' is not enabled"
        ]
    );
    let reference = format!(
        "{NETWORK}    security: {{enabled: true, dependencies: [network], config: {{dev: {{a: \
         '{{{{RUNTIME:network:vpcIdd}}}}'}}}}}}\n"
    );
    assert_eq!(
        details(&reference),
        [
            "ERROR: Invalid cross-stack reference\n  Stack 'security' references 'network:vpcIdd' but output does not exist"
        ]
    );
    let mismatch = format!("{NETWORK}    security: {{enabled: true}}\n");
    assert_eq!(
        details(&mismatch),
        [
            "ERROR: Template dependency mismatch\n  Stack 'security' declares dependency on 'network' in template but not in manifest"
        ]
    );
}

#[test]
fn values_are_checked_against_the_schema_and_placeholders_are_trusted() {
    let wrong = format!(
        "{NETWORK}    security: {{enabled: true, dependencies: [network]}}\n    compute-ec2: {{enabled: true, \
         dependencies: [network, security], config: {{dev: {{size: 0}}}}}}\n"
    );
    let found = details(&wrong);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .any(|text| text.contains("config.dev.size: 0 is less than")),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|text| text.contains("\"vpcId\" is a required")),
        "{found:?}"
    );
}

#[test]
fn a_key_with_the_programs_name_is_held_to_the_schema_too() {
    for spelling in ["compute-ec2:size", "compute-ec2:config:size"] {
        let found = details(&format!(
            "{NETWORK}    compute-ec2: {{enabled: true, config: {{dev: {{'{spelling}': 0, vpcId: v}}}}}}\n"
        ));
        assert!(
            found.iter().any(|text| text.contains("0 is less than")),
            "{spelling}: {found:?}"
        );
    }
    let found = details(&format!(
        "{NETWORK}    compute-ec2: {{enabled: true, config: {{dev: {{size: 1, 'compute-ec2:size': 0, vpcId: v}}}}}}\n"
    ));
    assert!(
        found.iter().any(|text| text.contains("same parameter")),
        "{found:?}"
    );
}

#[test]
fn malformed_placeholders_and_accounts_are_found() {
    let broken = "    network: {enabled: true, config: {dev: {a: '{{RUNTIME:x'}}}\n";
    assert!(
        details(broken)[0]
            .contains("spec.stacks.network.config.dev.a: the placeholder is not closed")
    );
    let mut no_account = manifest(NETWORK);
    let dev = &mut no_account.environments[&EnvironmentName::DEV];
    dev.account = Some(String::new());
    let findings = validate(&no_account, &library(), &[EnvironmentName::DEV]);
    assert_eq!(findings[0].title, "Invalid AWS account");
}

#[test]
fn an_account_and_a_region_are_demanded_only_of_what_uses_them() {
    let without = |stacks: &str| {
        let mut manifest = manifest(stacks);
        let dev = &mut manifest.environments[&EnvironmentName::DEV];
        dev.account = None;
        dev.region = String::new();
        let written = Document::parse("m.yaml", &manifest.write()).unwrap();
        assert_eq!(Manifest::read(&written).unwrap(), manifest);
        validate(&manifest, &library(), &[EnvironmentName::DEV])
    };
    assert_eq!(without(NETWORK), []);
    let asks = "    network: {enabled: true, config: {dev: {zones: '{{RUNTIME:aws:availabilityZones}}'}}}\n";
    let findings = without(asks);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].title, "Missing AWS region");
    assert!(
        findings[0].detail.contains("availabilityZones"),
        "{findings:?}"
    );
}

#[test]
fn production_in_the_account_of_dev_is_a_warning() {
    let mut manifest = manifest(NETWORK);
    let dev = manifest.environments[&EnvironmentName::DEV].clone();
    manifest.environments.insert(EnvironmentName::PROD, dev);
    let findings = validate(&manifest, &library(), &[EnvironmentName::PROD]);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].severity, FindingSeverity::Warning);
}

#[test]
fn a_reference_with_a_default_may_lead_nowhere_but_not_astray() {
    let with = |placeholder: &str| {
        details(&format!(
            "{NETWORK}    security: {{enabled: true, dependencies: [network], config: {{dev: {{a: \
             '{placeholder}'}}}}}}\n"
        ))
    };
    assert_eq!(
        with("{{RUNTIME:compute-ec2:groupName|}}"),
        Vec::<String>::new()
    );
    assert_eq!(with("{{RUNTIME:compute-ec3:groupName|}}").len(), 1);
    assert_eq!(with("{{RUNTIME:network:vpcIdd|}}").len(), 1);
}
