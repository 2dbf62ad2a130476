//! `validate-aws` against a real AWS API, and `validate-pulumi`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use nimbus_test_tools::{AwsServer, Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::support::WorkspaceSite;

#[test]
fn credentials_that_work_are_shown_with_account_and_zones() {
    let program = tool_or_skip!(Tool::S3Server);
    let moto = AwsServer::start(&program);
    let place = WorkspaceSite::empty();
    place.write(
        ".aws/credentials",
        "[shop]\naws_access_key_id = AKIA\naws_secret_access_key = hush\n",
    );
    place.write(".aws/config", "[profile shop]\nregion = eu-west-1\n");
    let command = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command
            .env("AWS_PROFILE", "shop")
            .env("AWS_ENDPOINT_URL", moto.address());
        place.finish(command)
    };
    let ran = command(&["validate-aws"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for text in [
        "AWS answers in eu-west-1",
        "account: 123456789012",
        "profile shop",
        "eu-west-1a",
    ] {
        assert!(ran.stdout.contains(text), "{text}: {ran:?}");
    }
    assert!(!ran.stdout.contains("hush"));
    let ran = command(&["validate-aws", "--region", "us-east-2", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["region"], "us-east-2");
    assert_eq!(report["zones"][0], "us-east-2a");
}

#[test]
fn what_programs_need_is_reported_and_what_is_missing_has_a_code() {
    let place = WorkspaceSite::empty();
    place.write(
        ".pulumi/credentials.json",
        r#"{"current": "https://u:hush@state.example"}"#,
    );
    let report = place.json(&["validate-pulumi"]);
    let detail = |name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|check| check["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(detail("engine")["status"], "good");
    assert_eq!(detail("passphrase")["status"], "good");
    assert_eq!(detail("login")["detail"], json!("https://…@state.example"));

    let mut command = place.command(&["validate-pulumi"]);
    command.env_remove("PULUMI_CONFIG_PASSPHRASE");
    let ran = place.finish(command);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(
        ran.stdout.contains("→ export PULUMI_CONFIG_PASSPHRASE"),
        "{ran:?}"
    );
}
