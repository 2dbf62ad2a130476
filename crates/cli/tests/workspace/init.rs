//! Every way to begin.

use crate::support::{MANIFEST, WorkspaceSite};

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
    command.write_stdin("D1BRV40\n\necommerce\n\n\n\n\n\n\n\nn\n");
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
    command.write_stdin("D1\no\np\nx.example\nsmall\n\n\n\n\n\n\n");
    let ran = place.finish(command);
    let questions: Vec<_> = ran
        .stderr
        .split(": ")
        .map(str::trim)
        .filter(|q| !q.is_empty())
        .collect();
    assert_eq!(
        questions,
        [
            "Deployment ID (leave blank for auto-generate)",
            "Organization name",
            "Project name",
            "Domain",
            "Template (default/minimal/microservices/data-platform) [default]",
            "Primary region [us-east-1]",
            "Secondary region [us-west-2]",
            "AWS Account (dev)",
            "AWS Account (stage)",
            "AWS Account (prod)",
            "Enable all stacks? [Y/n]",
        ]
    );
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
