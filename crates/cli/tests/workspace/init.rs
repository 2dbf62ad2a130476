//! Every way to begin.

use crate::support::{MANIFEST, WorkspaceSite};

/// It had 1,242 lines when every stack repeated everything for every environment.
#[test]
fn the_manifest_of_the_default_template_says_once_what_is_shared() {
    let place = WorkspaceSite::empty();
    let ran = place.run(&[
        "init",
        "D1ONCE",
        "--org",
        "Company-A",
        "--project",
        "ecommerce",
        "--domain",
        "shop.example",
        "--account-dev",
        "111111111111",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = place.read("cloud/deploy/D1ONCE-Company-A-ecommerce/Deployment_Manifest.yaml");
    let lines = text.lines().count();
    assert!(lines < 800, "it has {lines} lines");
    let (head, stacks) = text.split_once("\n  stacks:\n").unwrap();
    for shared in ["costCenter: engineering", "team: infrastructure"] {
        assert!(head.contains(shared), "{head}");
        assert!(!stacks.contains(shared), "{shared} is shared");
    }
    for name in ["organization:", "project:", "deploymentId:", "environment:"] {
        let again = stacks.lines().filter(|line| line.trim().starts_with(name));
        assert_eq!(again.count(), 0, "{name} is shared");
    }
}

#[test]
fn the_first_init_lays_out_the_workspace_and_makes_48_config_files() {
    let place = WorkspaceSite::empty();
    let ran = place.run(&[
        "init",
        "--org",
        "Company-A",
        "--project",
        "ecommerce",
        "--domain",
        "shop.example",
        "--account-dev",
        "111111111111",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stdout
            .contains("Created 48 config files (16 stacks × 3 environments)"),
        "{ran:?}"
    );
    let mut areas: Vec<_> = std::fs::read_dir(place.path("cloud"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| ![".nimbus", "policies", "rehearsal"].contains(&name.as_str()))
        .collect();
    areas.sort();
    assert_eq!(areas, ["deploy", "stacks", "tools"]);
    for folder in [
        "docs",
        "templates/docs",
        "templates/stack",
        "templates/config",
        "templates/default",
        "templates/custom",
    ] {
        assert!(
            place.path(&format!("cloud/tools/{folder}")).is_dir(),
            "{folder}"
        );
    }
    for (folder, count) in [("config", 16), ("default", 4), ("docs", 7)] {
        let path = place.path(&format!("cloud/tools/templates/{folder}"));
        assert_eq!(std::fs::read_dir(path).unwrap().count(), count, "{folder}");
    }
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let place = WorkspaceSite::new();
    place.write(
        "init.yaml",
        "id: D1BRV40\norg: Company-A\nproject: ecommerce\ntemplate: small\nregion: eu-west-1\nteam: shop\n\
         accounts: {dev: '111111111111'}\nvpcCidr: 10.9.0.0/16\n",
    );
    let ran = place.run(&[
        "init",
        "--from-file",
        "init.yaml",
        "--region",
        "eu-north-1",
        "--account-prod",
        "333333333333",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let manifest = place.read(MANIFEST);
    for text in [
        "eu-north-1",
        "333333333333",
        "111111111111",
        "team: shop",
        "10.9.0.0/16",
    ] {
        assert!(manifest.contains(text), "{text}: {manifest}");
    }
    assert!(!manifest.contains("eu-west-1"));
}

#[test]
fn an_interview_takes_flags_as_its_defaults() {
    let place = WorkspaceSite::new();
    let mut command = place.command(&[
        "init",
        "--interactive",
        "--org",
        "Company-A",
        "--template",
        "small",
        "--team",
        "shop",
    ]);
    command.write_stdin("D1BRV40\n\necommerce\n\n\n\n\n\nn\n");
    let ran = place.finish(command);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr.contains("Organization name [Company-A]: "),
        "{ran:?}"
    );
    assert!(place.read(MANIFEST).contains("team: shop"));
}

#[test]
fn questions_come_in_the_order_that_users_know() {
    let place = WorkspaceSite::new();
    let mut command = place.command(&["init", "--interactive"]);
    command.write_stdin("D1\no\np\nx.example\nsmall\n\n\n\n\n");
    let ran = place.finish(command);
    assert_eq!(
        questions(&ran.stderr),
        [
            "Deployment ID (leave blank for auto-generate)",
            "Organization name",
            "Project name",
            "Domain",
            "Template (small) [small]",
            "Primary region [us-east-1]",
            "AWS Account (dev)",
            "AWS Account (prod)",
            "Enable all stacks? [Y/n]",
        ]
    );
    // What can be chosen is what there is, the shipped ones first.
    let place = WorkspaceSite::empty();
    assert_eq!(place.run(&["new"]).code, 0);
    let minimal = place.read("cloud/tools/templates/default/minimal.yaml");
    place.write(
        "cloud/tools/templates/custom/ours.yaml",
        &minimal.replace("name: minimal\n", "name: ours\n"),
    );
    let mut command = place.command(&["init", "--interactive"]);
    command.write_stdin("D1\no\np\nx.example\nours\n\n\n\n\n");
    let ran = place.finish(command);
    let choice = "Template (default/minimal/microservices/data-platform/ours) [default]";
    assert_eq!(questions(&ran.stderr)[4], choice, "{ran:?}");
}

#[test]
fn an_unknown_template_is_refused_with_a_hint_and_nothing_is_made() {
    let place = WorkspaceSite::new();
    let with = |template: &str| {
        let usual = ["init", "D1", "--org", "o", "--project", "p"];
        place.run(&[&usual[..], &["--template", template]].concat())
    };
    let unknown = with("smal");
    assert_ne!(unknown.code, 0, "{unknown:?}");
    assert!(
        unknown.stderr.contains("did you mean `small`?"),
        "{unknown:?}"
    );
    // Found out when everything is rendered, and as late as that nothing is there.
    let text = place.read("cloud/tools/templates/default/small.yaml");
    let without = text.replace("  network: # first\n", "");
    assert_ne!(text, without);
    place.write(
        "cloud/tools/templates/custom/broken.yaml",
        &without.replace("name: small", "name: broken"),
    );
    let broken = with("broken");
    assert_ne!(broken.code, 0, "{broken:?}");
    assert!(broken.stderr.contains("depends on 'network'"), "{broken:?}");
    let made = std::fs::read_dir(place.path("cloud/deploy"));
    assert_eq!(made.into_iter().flatten().count(), 0);
    assert_eq!(with("small").code, 0);
    let manifest = place.read("cloud/deploy/D1-o-p/Deployment_Manifest.yaml");
    assert!(manifest.contains("\n    web:"), "{manifest}");
}

fn questions(stderr: &str) -> Vec<&str> {
    let all = stderr.split(": ").map(str::trim);
    all.filter(|question| !question.is_empty()).collect()
}

#[test]
fn nobody_is_asked_for_what_a_template_has_no_use_for() {
    let place = WorkspaceSite::new();
    place.write(
        "cloud/tools/templates/custom/plain.yaml",
        "name: plain\nenvironments: {test: {enabled: true}, live: {enabled: true}}\nstacks: {web: }\n",
    );
    place.write("cloud/tools/templates/config/web.yaml", "name: web\n");
    let mut command = place.command(&["init", "--interactive", "--template", "plain"]);
    command.write_stdin("D1\no\np\n\n\n\n");
    let ran = place.finish(command);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        questions(&ran.stderr)[4..],
        ["Template (plain/small) [plain]", "Enable all stacks? [Y/n]",]
    );
}

#[test]
fn accounts_are_given_for_environments_of_any_name() {
    let place = WorkspaceSite::new();
    place.write(
        "cloud/tools/templates/custom/two.yaml",
        "name: two\nenvironments:\n\
         \x20 test: {enabled: true, account: '{{AWS_ACCOUNT_TEST}}'}\n\
         \x20 eu-live: {enabled: true, account: '{{AWS_ACCOUNT_EU_LIVE}}'}\nstacks: {network: }\n",
    );
    let usual = [
        "init",
        "D1TWO",
        "--org",
        "o",
        "--project",
        "p",
        "--template",
        "two",
    ];
    let with = |more: &[&str]| place.run(&[&usual, more].concat());
    for (wrong, why) in [
        (&["--account", "test"][..], "is not ENV=NUMBER"),
        (&["--account", "Test=111111111111"], "--account Test="),
        (&["--account", "test=11"], "12 digits"),
        (&["--account", "dev=111111111111"], "has no environment dev"),
        (
            &[
                "--account",
                "dev=111111111111",
                "--account-dev",
                "222222222222",
            ],
            "dev has two accounts",
        ),
    ] {
        let ran = with(wrong);
        assert_ne!(ran.code, 0, "{wrong:?}: {ran:?}");
        assert!(ran.stderr.contains(why), "{wrong:?}: {ran:?}");
    }
    let given = [
        "--account",
        "test=111111111111",
        "--account",
        "eu-live=222222222222",
    ];
    let ran = with(&given);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = place.json(&["list-environments", "D1TWO"]);
    let accounts: Vec<_> = report["environments"].as_array().unwrap().iter().collect();
    assert_eq!(accounts[0]["account"], "111111111111", "{report}");
    assert_eq!(accounts[1]["account"], "222222222222", "{report}");
}

/// Every variable that each template has, through a stack that asks for all of them.
#[test]
fn every_template_variable_has_its_value_or_its_default() {
    let place = WorkspaceSite::empty();
    place.run(&["new"]);
    let names = [
        "DEPLOYMENT_ID",
        "TIMESTAMP",
        "USER_EMAIL",
        "ORGANIZATION",
        "PROJECT_NAME",
        "DOMAIN",
        "PULUMI_ORG",
        "PRIMARY_REGION",
        "SECONDARY_REGION",
        "AWS_ACCOUNT_DEV",
        "AWS_ACCOUNT_STAGE",
        "AWS_ACCOUNT_PROD",
        "TEAM",
        "COST_CENTER",
        "DESCRIPTION",
    ];
    let config: String = names
        .iter()
        .map(|name| format!("  {name}: '{{{{{name}}}}}'\n"))
        .collect();
    place.write(
        "cloud/tools/templates/config/all.yaml",
        &format!("name: all\nconfig:\n{config}"),
    );
    let default = place.read("cloud/tools/templates/default/default.yaml");
    place.write(
        "cloud/tools/templates/custom/all-standard.yaml",
        &(default.replace("name: default\n", "name: all-standard\n") + "  all:\n"),
    );
    place.write(".gitconfig", "[user]\n\temail = ada@example.com\n");
    let ran = place.run(&[
        "init",
        "D1CUSTOM",
        "--org",
        "Company A",
        "--project",
        "shop",
        "--domain",
        "shop.example",
        "--template",
        "all-standard",
        "--account-dev",
        "111111111111",
        "--account-stage",
        "222222222222",
        "--account-prod",
        "333333333333",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let directory = "cloud/deploy/D1CUSTOM-Company-A-shop";
    let text = place.read(&format!("{directory}/config/all.dev.yaml"));
    for (name, value) in [
        ("DEPLOYMENT_ID", "D1CUSTOM"),
        ("USER_EMAIL", "\"ada@example.com\""),
        ("ORGANIZATION", "Company A"),
        ("PROJECT_NAME", "shop"),
        ("DOMAIN", "shop.example"),
        ("PULUMI_ORG", "company-a"),
        ("PRIMARY_REGION", "us-east-1"),
        ("SECONDARY_REGION", "us-west-2"),
        ("AWS_ACCOUNT_DEV", "\"111111111111\""),
        ("AWS_ACCOUNT_STAGE", "\"222222222222\""),
        ("AWS_ACCOUNT_PROD", "\"333333333333\""),
        ("TEAM", "infrastructure"),
        ("COST_CENTER", "engineering"),
    ] {
        assert!(
            text.contains(&format!("\"all:{name}\": {value}\n")),
            "{name}: {text}"
        );
    }
    assert!(
        text.contains("\"all:DESCRIPTION\": \"shop for Company A"),
        "{text}"
    );
    let time = text
        .lines()
        .find(|line| line.contains("TIMESTAMP"))
        .unwrap();
    let time = time.split('"').nth(3).unwrap();
    assert!(
        time.len() == 20 && time.ends_with('Z') && time.contains('T'),
        "{time}"
    );
    for (stack, environment, line) in [
        ("network", "dev", "\"network:vpcCidr\": \"10.0.0.0/16\""),
        ("network", "stage", "\"network:vpcCidr\": \"10.1.0.0/16\""),
        ("network", "prod", "\"network:vpcCidr\": \"10.2.0.0/16\""),
        ("network", "dev", "\"network:availabilityZoneCount\": 2"),
        ("network", "stage", "\"network:availabilityZoneCount\": 2"),
        ("network", "prod", "\"network:availabilityZoneCount\": 3"),
        ("database-rds", "dev", "db.t3.micro"),
        ("database-rds", "stage", "db.t3.small"),
        ("database-rds", "prod", "db.r5.large"),
    ] {
        let text = place.read(&format!("{directory}/config/{stack}.{environment}.yaml"));
        assert!(text.contains(line), "{stack} {environment} {line}: {text}");
    }
}

/// As the log has it.
fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Names of environments are the template's, and what a stack needs is looked for in all of them.
#[test]
fn what_an_environment_lacks_is_said_at_init_and_by_every_validation() {
    let place = WorkspaceSite::new();
    place.write(
        "cloud/tools/templates/config/web.yaml",
        "name: web\nparameters: {type: object, required: [size]}\nenvironments: {test: {size: '1'}}\n",
    );
    place.write(
        "cloud/tools/templates/custom/two.yaml",
        "name: two\nenvironments: {test: {enabled: true}, live: {enabled: true}, old: {enabled: false}}\n\
         stacks: {web: }\n",
    );
    let arguments = [
        "init",
        "D1TWO",
        "--org",
        "o",
        "--project",
        "p",
        "--template",
        "two",
    ];
    let before = now();
    let ran = place.run(&arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    let missing = "spec.stacks.web.config.live: \"size\" is a required property";
    let live = format!("To do before a deploy: {missing}");
    assert!(ran.stderr.contains(&live), "{ran:?}");
    // One that is switched off has time, and is not forgotten.
    let old = missing.replace("config.live", "config.old");
    let old = format!("To do before old is switched on: {old}");
    assert!(ran.stderr.contains(&old), "{ran:?}");
    assert!(!ran.stderr.contains("config.test"), "{ran:?}");
    assert!(
        ran.stdout
            .contains("nimbus deploy D1TWO --environment test\n"),
        "{ran:?}"
    );
    let directory = "cloud/deploy/D1TWO-o-p";
    let log = place.read(&format!("{directory}/logs/init.log"));
    assert!(
        log.contains(&format!("[WARNING] [validate] {live}")),
        "{log}"
    );
    // Each line has the time at which it happened, to the second.
    let times: Vec<&str> = log.lines().map(|line| &line[1..20]).collect();
    assert!(times.is_sorted(), "{log}");
    let (first, last) = (times[0], times[times.len() - 1]);
    assert!(before.as_str() <= first && last <= now().as_str(), "{log}");

    // Also where the manifest does not even name the environment.
    let manifest = format!("{directory}/Deployment_Manifest.yaml");
    let text = place.read(&manifest);
    let without = text.replace("        live: {}\n", "");
    assert_ne!(text, without, "{text}");
    place.write(&manifest, &without);
    let ran = place.run(&["validate", "D1TWO"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stdout.contains(missing), "{ran:?}");
}

#[test]
fn an_edited_manifest_is_what_counts() {
    let place = WorkspaceSite::with_deployment();
    let edited = place
        .read(MANIFEST)
        .replace("us-east-1", "eu-west-1")
        .replacen("    web:\n", "    web:\n      # off for now\n", 1);
    place.write(MANIFEST, &edited);
    let environments = place.json(&["list-environments", "D1BRV40"]);
    assert_eq!(environments["environments"][0]["region"], "eu-west-1");
    assert_eq!(
        place
            .run(&["validate", "D1BRV40", "--environment", "dev"])
            .code,
        0
    );
    let odd = edited.replacen("      enabled: true", "      enabled: sometimes", 1);
    place.write(MANIFEST, &odd);
    assert_eq!(place.run(&["validate", "D1BRV40"]).code, 2);
}
