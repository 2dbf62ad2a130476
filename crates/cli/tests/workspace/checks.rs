//! `validate-aws` against a real AWS API, and `validate-pulumi`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use nimbus_test_tools::{AwsServer, CredentialServices, Tool, tool_or_skip};
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

/// Single sign-on is a file that signing in left, and a service that takes what is in it.
#[test]
fn credentials_of_single_sign_on_and_of_an_instance_are_found() {
    let services = CredentialServices::start();
    let place = WorkspaceSite::empty();
    place.write(
        ".aws/config",
        "[profile corp]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Deployer\n\
         [sso-session corp]\nsso_start_url = https://corp.example/start\nsso_region = eu-west-1\n",
    );
    let session = format!(
        r#"{{"accessToken": "{}", "expiresAt": "2099-01-01T00:00:00Z"}}"#,
        CredentialServices::SIGNED_IN
    );
    // Named by the digest of the session's name.
    let cache = ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";
    place.write(cache, &session);
    let ask = |profile: Option<&str>| {
        let mut command = place.command(&["validate-aws", "--region", "eu-west-1"]);
        command
            .env("AWS_ENDPOINT_URL", services.url())
            .env_remove("AWS_EC2_METADATA_DISABLED")
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", services.url());
        if let Some(profile) = profile {
            command.env("AWS_PROFILE", profile);
        }
        place.finish(command)
    };
    let signed_in = ask(Some("corp"));
    let words = "credentials: single sign-on of profile corp";
    assert!(signed_in.stdout.contains(words), "{signed_in:?}");
    assert!(signed_in.stdout.contains("user/SSO"), "{signed_in:?}");
    place.write(cache, &session.replace("2099", "2019"));
    let over = ask(Some("corp"));
    assert_eq!(over.code, 7, "{over:?}");
    assert!(over.stderr.contains("aws sso login"), "{over:?}");
    let instance = ask(None);
    let words = "the metadata service of this instance";
    assert!(instance.stdout.contains(words), "{instance:?}");
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
