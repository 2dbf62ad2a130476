use super::*;

fn library() -> TemplateLibrary {
    let stack = |name: &str, text: &str| {
        let document = Document::parse(name, &format!("name: {name}\n{text}")).unwrap();
        (
            name.parse().unwrap(),
            ComponentTemplate::read(&document).unwrap(),
        )
    };
    let template = "name: small\nenvironments:\n\
        \x20 dev: {enabled: true, account: '{{AWS_ACCOUNT_DEV}}', region: '{{PRIMARY_REGION}}'}\n\
        \x20 prod: {enabled: false, account: '{{AWS_ACCOUNT_PROD}}', region: '{{PRIMARY_REGION}}'}\n\
        stacks: {network: , security: , extra: {enabled: false}}\n";
    let manifest = ManifestTemplate::read(&Document::parse("small", template).unwrap()).unwrap();
    TemplateLibrary {
        stacks: BTreeMap::from([
            stack(
                "network",
                "variables: {VPC_CIDR_DEV: {default: 10.0.0.0/16}, AZ_COUNT_DEV: {default: 2}}\n\
                 environments: {dev: {vpcCidr: '{{VPC_CIDR_DEV}}', zones: '{{AZ_COUNT_DEV}}'}}\n",
            ),
            stack(
                "security",
                "dependencies: [network]\nconfig: {vpcId: '{{RUNTIME:network:vpcId}}'}\n",
            ),
            stack("extra", "dependencies: [security]\n"),
        ]),
        manifests: BTreeMap::from([("small".to_owned(), manifest)]),
    }
}

fn answers() -> InitAnswers {
    InitAnswers {
        organization: "Company-A".to_owned(),
        project: "ecommerce".to_owned(),
        template: "small".to_owned(),
        accounts: BTreeMap::from([(EnvironmentName::DEV, "111111111111".to_owned())]),
        ..InitAnswers::default()
    }
}

fn id() -> DeploymentId {
    "D1BRV40".parse().unwrap()
}

#[test]
fn the_variables_of_a_template_are_those_of_its_values_and_its_stacks() {
    let found = library().variables_of("small").unwrap();
    let expected = [
        "AWS_ACCOUNT_DEV",
        "AWS_ACCOUNT_PROD",
        "AZ_COUNT_DEV",
        "PRIMARY_REGION",
        "VPC_CIDR_DEV",
    ];
    assert!(found.iter().eq(expected), "{found:?}");
    assert!(library().variables_of("smal").is_err());
}

#[test]
fn there_is_one_file_for_each_enabled_stack_and_environment() {
    let rendered = render(&library(), &id(), &answers()).unwrap();
    assert_eq!(
        rendered.configs.keys().collect::<Vec<_>>(),
        [
            "network.dev.yaml",
            "network.prod.yaml",
            "security.dev.yaml",
            "security.prod.yaml"
        ]
    );
    assert_eq!(
        rendered.configs["network.dev.yaml"],
        "# Written from the manifest. An edit here counts for this stack in this environment; keys that\n# are left as they are follow the manifest. Placeholders are resolved at run time.\n\
         config:\n  \"aws:region\": us-east-1\n  \"network:vpcCidr\": \"10.0.0.0/16\"\n  \"network:zones\": 2\n"
    );
    assert!(rendered.configs["security.dev.yaml"].contains("{{RUNTIME:network:vpcId}}"));
    let security = &rendered.manifest.stacks["security"];
    assert!(
        security.dependencies.contains("network"),
        "dependencies come from the template"
    );
}

#[test]
fn answers_override_defaults_and_keep_types() {
    let mut answers = answers();
    answers
        .variables
        .insert("VPC_CIDR_DEV".to_owned(), "10.50.0.0/16".to_owned());
    answers
        .variables
        .insert("AZ_COUNT_DEV".to_owned(), "3".to_owned());
    let rendered = render(&library(), &id(), &answers).unwrap();
    let dev = &rendered.manifest.stacks["network"].config[&EnvironmentName::DEV];
    assert_eq!(dev["vpcCidr"], json!("10.50.0.0/16"));
    assert_eq!(dev["zones"], json!(3));
    assert!(rendered.configs["network.dev.yaml"].contains("10.50.0.0/16"));
}

#[test]
fn all_stacks_may_be_asked_for() {
    let answers = InitAnswers {
        all_stacks: true,
        ..answers()
    };
    assert_eq!(
        render(&library(), &id(), &answers).unwrap().configs.len(),
        6
    );
}

#[test]
fn no_variable_is_left_after_rendering() {
    let rendered = render(&library(), &id(), &answers()).unwrap();
    let texts = rendered
        .configs
        .values()
        .cloned()
        .chain([rendered.manifest.write()]);
    for text in texts {
        assert!(variables_in(&text).is_empty(), "{text}");
    }
}

#[test]
fn unknown_templates_and_variables_are_refused_with_a_hint() {
    let error = render(
        &library(),
        &id(),
        &InitAnswers {
            template: "smal".into(),
            ..answers()
        },
    );
    assert_eq!(error.unwrap_err().help(), Some("did you mean `small`?"));
    let mut answers = answers();
    answers
        .variables
        .insert("VPC_CIDR_DEF".to_owned(), "x".to_owned());
    let error = render(&library(), &id(), &answers).unwrap_err();
    assert_eq!(error.help(), Some("did you mean `VPC_CIDR_DEV`?"));
}

#[test]
fn a_template_with_a_broken_chain_renders_nothing() {
    let mut library = library();
    library
        .manifests
        .get_mut("small")
        .unwrap()
        .stacks
        .remove("network");
    let error = render(&library, &id(), &answers()).unwrap_err();
    assert!(
        error
            .message()
            .contains("Stack 'security' depends on 'network'"),
        "{error}"
    );
}

fn with_template(text: &str) -> TemplateLibrary {
    let template = ManifestTemplate::read(&Document::parse("other", text).unwrap()).unwrap();
    let mut library = library();
    library.manifests.insert("other".to_owned(), template);
    library
}

fn of_other(accounts: &[(&str, &str)]) -> InitAnswers {
    InitAnswers {
        template: "other".to_owned(),
        accounts: accounts
            .iter()
            .map(|(name, account)| (name.parse().unwrap(), (*account).to_owned()))
            .collect(),
        ..answers()
    }
}

#[test]
fn gates_checks_and_confirmation_of_a_template_are_those_of_its_deployments() {
    let library = with_template(
        "name: other\nenvironments:\n  dev:\n    confirm: true\n    region: '{{PRIMARY_REGION}}'\n    \
         gate: {items: [deploy, monitoring], monitoringHours: 2}\n    \
         checks: {smoke: {command: 'curl https://{{DOMAIN}}/health', timeoutSeconds: 9}}\n\
         stacks: {network: }\n",
    );
    let answers = InitAnswers {
        domain: "shop.example".to_owned(),
        ..of_other(&[])
    };
    let manifest = render(&library, &id(), &answers).unwrap().manifest;
    let dev = &manifest.environments[&EnvironmentName::DEV];
    assert!(dev.enabled && manifest.needs_confirmation(EnvironmentName::DEV));
    assert_eq!(dev.region, "us-east-1");
    assert_eq!(
        manifest.gate(EnvironmentName::DEV).monitoring_hours,
        Some(2)
    );
    let smoke = &dev.checks["smoke"];
    assert_eq!(smoke.command, "curl https://shop.example/health");
    assert_eq!(smoke.seconds, 9);
    let document = Document::parse("m.yaml", &manifest.write()).unwrap();
    assert_eq!(Manifest::read(&document).unwrap(), manifest);
}

#[test]
fn a_gate_of_a_template_that_no_manifest_may_have_renders_nothing() {
    let library = with_template(
        "name: other\nenvironments: {dev: {gate: {items: [smoke-test]}}}\nstacks: {network: }\n",
    );
    let error = render(&library, &id(), &of_other(&[])).unwrap_err();
    assert!(
        error
            .message()
            .contains("environment dev: no gate has an item `smoke-test`"),
        "{error}"
    );
}

#[test]
fn environments_may_have_any_names_from_template_to_validation() {
    let library = with_template(
        "name: other\nenvironments:\n  live: {account: '{{AWS_ACCOUNT_LIVE}}', region: r}\n  \
         pre-live: {account: '{{AWS_ACCOUNT_PRE_LIVE}}', region: r}\n  \
         test: {account: '{{AWS_ACCOUNT_TEST}}', region: r}\n\
         promotion: [test, pre-live, live]\n\
         stacks: {network: {config: {test: {zones: 1}}}, security: }\n",
    );
    let answers = of_other(&[
        ("test", "111111111111"),
        ("pre-live", "222222222222"),
        ("live", "333333333333"),
    ]);
    let rendered = render(&library, &id(), &answers).unwrap();
    let document = Document::parse("m.yaml", &rendered.manifest.write()).unwrap();
    let manifest = Manifest::read(&document).unwrap();
    assert_eq!(manifest, rendered.manifest);
    let names: Vec<EnvironmentName> = manifest.environments.keys().copied().collect();
    assert_eq!(names, ["test", "pre-live", "live"]);
    let [test, pre_live, live] = names[..] else {
        panic!("three");
    };
    let account = manifest.environments[&pre_live].account.as_deref();
    assert_eq!(account, Some("222222222222"));
    assert_eq!(manifest.promoted_from(live), Some(pre_live));
    assert!(manifest.needs_confirmation(live) && !manifest.needs_confirmation(test));
    assert_eq!(manifest.stacks["network"].config[&test]["zones"], json!(1));
    assert!(rendered.configs.contains_key("security.pre-live.yaml"));
    for environment in &names {
        let graph = manifest.graph(*environment).unwrap();
        assert_eq!(graph.needs("security").collect::<Vec<_>>(), ["network"]);
    }
    let findings = crate::validate::validate(&manifest, &library, &names);
    assert_eq!(findings, [], "{findings:?}");
}

#[test]
fn an_account_for_an_environment_that_is_not_there_is_refused() {
    let mut answers = answers();
    answers
        .accounts
        .insert(EnvironmentName::STAGE, "222222222222".to_owned());
    let refused = render(&library(), &id(), &answers).unwrap_err();
    assert_eq!(refused.message(), "template small has no environment stage");
    assert!(refused.help().unwrap().to_string().contains("dev, prod"));
}

#[test]
fn a_name_below_a_domain_needs_a_domain() {
    let mut library = library();
    let text = "name: extra\nconfig: {domain: '{{DOMAIN}}'}\n\
                environments: {dev: {zones: ['dev.{{DOMAIN}}']}}\n";
    let document = Document::parse("extra", text).unwrap();
    let stack = ComponentTemplate::read(&document).unwrap();
    library.stacks.insert("extra".parse().unwrap(), stack);
    // Not of a stack that is switched off.
    render(&library, &id(), &answers()).unwrap();
    let mut answers = InitAnswers {
        all_stacks: true,
        ..answers()
    };
    let refused = render(&library, &id(), &answers).unwrap_err();
    assert_eq!(
        refused.message(),
        "stack extra, dev: `zones` is a name below the domain, and there is no domain"
    );
    answers.domain = "shop.example.com".to_owned();
    render(&library, &id(), &answers).unwrap();
}
