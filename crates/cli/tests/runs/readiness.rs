//! What is looked at before a real deploy: nothing begins unless all of it is right.

use std::fs;

use nimbus_test_tools::{AwsServer, Tool, tool_or_skip};

use crate::support::{DeployOutput, ID, Site};

const DEPLOY: &[&str] = &["deploy", ID, "--environment", "dev", "--yes", "--json"];

/// A program that needs no cloud although its packages say that it might.
fn cloudless(site: &Site, stacks: &[&str]) {
    for stack in stacks {
        let program = format!(
            "const pulumi = require('@pulumi/pulumi');\n\
             exports.first = new pulumi.Config('{stack}').require('size');\nexports.ids = [];\n"
        );
        site.write(&format!("cloud/stacks/{stack}/src/index.js"), &program);
    }
}

fn names_aws(site: &Site, stack: &str) {
    site.write(
        &format!("cloud/stacks/{stack}/src/package.json"),
        "{\"main\": \"index.js\", \"dependencies\": {\"@pulumi/aws\": \"7.0.0\"}}\n",
    );
}

fn with_aws(site: &Site, arguments: &[&str], endpoint: &str) -> DeployOutput {
    let output = site
        .command(arguments)
        .env("AWS_ACCESS_KEY_ID", "AKIA")
        .env("AWS_SECRET_ACCESS_KEY", "hush")
        .env("AWS_ENDPOINT_URL", endpoint)
        .output()
        .unwrap();
    DeployOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn refused(site: &Site, arguments: &[&str], code: &str) -> String {
    let ran = site.run(arguments);
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(ran.summary()["error"]["code"], code, "{}", ran.stdout);
    assert!(
        !site.deployment(".nimbus/runs").exists(),
        "no run was begun"
    );
    assert!(
        !site.deployment(".nimbus/state/.pulumi/stacks").exists(),
        "no state was made"
    );
    ran.summary().to_string()
}

#[test]
fn a_deploy_is_refused_with_everything_that_is_in_its_way() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    cloudless(&site, &["a", "b"]);
    names_aws(&site, "b");
    let credentials = refused(&site, DEPLOY, "NIM-0730");
    assert!(credentials.contains("AWS_PROFILE"), "{credentials}");

    let one = [
        "deploy-stack",
        ID,
        "b",
        "--environment",
        "dev",
        "--yes",
        "--json",
    ];
    fs::remove_dir_all(site.path("cloud/stacks/a")).unwrap();
    let all = refused(&site, DEPLOY, "NIM-0761");
    for part in [
        "2 things",
        "NIM-0730",
        "NIM-0733",
        "the stack a has no program",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    // The program of another stack is not its business; that it is not deployed is.
    let needs = refused(&site, &one, "NIM-0761");
    for part in ["2 things", "NIM-0730", "NIM-0760", "b needs a"] {
        assert!(needs.contains(part), "{part}: {needs}");
    }
    let mut locked = site.command(DEPLOY);
    locked.env_remove("PULUMI_CONFIG_PASSPHRASE");
    let output = String::from_utf8(locked.output().unwrap().stdout).unwrap();
    assert!(output.contains("3 things"), "{output}");
    assert!(output.contains("passphrase"), "{output}");
}

#[test]
fn a_deploy_begins_when_aws_answers_or_is_not_needed() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let server = tool_or_skip!(Tool::S3Server);
    let site = Site::new(&sdk, &[("a", &[]), ("b", &["a"])]);
    cloudless(&site, &["a", "b"]);
    site.run(DEPLOY).ok();

    names_aws(&site, "b");
    let moto = AwsServer::start(&server);
    // Credentials of another account stop it before anything is changed, a destroy as well.
    let destroy = ["destroy", ID, "--environment", "dev", "--yes", "--json"];
    for command in [DEPLOY, &destroy] {
        let other = with_aws(&site, command, &moto.address());
        let error = other.summary()["error"].clone();
        assert_eq!(error["code"], "NIM-0777", "{}", other.stdout);
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("dev is in account 111111111111"),
            "{message}"
        );
        assert!(message.contains("123456789012"), "{message}");
    }
    // A stack that is switched off is still taken away with somebody's credentials.
    let manifest = site.deployment("Deployment_Manifest.yaml");
    let text = fs::read_to_string(&manifest).unwrap();
    let at = text.find("\n    b:").unwrap();
    let off = text[at..].replacen("enabled: true", "enabled: false", 1);
    assert_ne!(off, text[at..]);
    fs::write(&manifest, format!("{}{off}", &text[..at])).unwrap();
    let named = [
        "destroy-stack",
        ID,
        "b",
        "--environment",
        "dev",
        "--yes",
        "--json",
    ];
    let refresh = ["refresh", ID, "--environment", "dev", "--yes", "--json"];
    for command in [&named[..], &destroy, &refresh] {
        let other = with_aws(&site, command, &moto.address());
        let summary = other.summary();
        assert_eq!(
            summary["error"]["code"], "NIM-0777",
            "{command:?}: {summary}"
        );
    }
    fs::write(&manifest, text.replace("111111111111", "123456789012")).unwrap();
    let ran = with_aws(&site, DEPLOY, &moto.address()).ok();
    assert_eq!(ran.status("b"), "succeeded", "{}", ran.stdout);

    // Whoever goes on with a run that was left does so in the same account.
    let sound = site.path("cloud/stacks/b/src/index.js");
    let program = fs::read_to_string(&sound).unwrap();
    fs::write(&sound, "throw new Error('not yet');\n").unwrap();
    let held = [DEPLOY, &["--on-failure", "hold"]].concat();
    let failed = with_aws(&site, &held, &moto.address()).with(1).summary();
    assert_eq!(failed["result"], "failed", "{failed}");
    fs::write(&sound, program).unwrap();
    let resume = ["resume", failed["run"].as_str().unwrap(), "--json"];
    let elsewhere = AwsServer::start_with(&server, &[("MOTO_ACCOUNT_ID", "210987654321")]);
    let other = with_aws(&site, &resume, &elsewhere.address());
    let error = other.summary()["error"].clone();
    assert_eq!(error["code"], "NIM-0777", "{}", other.stdout);
    assert!(error["message"].to_string().contains("210987654321"));
    let ran = with_aws(&site, &resume, &moto.address()).ok();
    assert_eq!(ran.status("b"), "succeeded", "{}", ran.stdout);

    // An address at which nobody answers.
    let address = moto.address();
    drop(moto);
    let ran = with_aws(&site, DEPLOY, &address);
    assert_ne!(ran.code, 0);
    assert_eq!(ran.summary()["error"]["code"], "NIM-0732", "{}", ran.stdout);
}
