//! State in a bucket, secrets under a key of a key management service; moto plays both.

use std::path::Path;

use nimbus_test_tools::{AwsServer, Tool, tool_or_skip};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::interruptions::{processes_of, signal};
use crate::support::{ProgramRunOutput, Site, end_of, finish, wait_until};

struct Cloud(AwsServer);

impl Cloud {
    /// With a bucket `states` and a key `alias/state`.
    fn start(program: &Path) -> Self {
        let cloud = Self(AwsServer::start(program));
        cloud.0.make_bucket("states");
        let made = cloud.keys("CreateKey", &json!({}));
        let made: Value = serde_json::from_str(&made).unwrap();
        let id = &made["KeyMetadata"]["KeyId"];
        let alias = json!({ "AliasName": "alias/state", "TargetKeyId": id });
        cloud.keys("CreateAlias", &alias);
        cloud
    }

    /// Asks the key management service.
    fn keys(&self, operation: &str, body: &Value) -> String {
        let scope = "Credential=k/20260101/eu-west-1/kms/aws4_request";
        let headers = [
            ("X-Amz-Target", &*format!("TrentService.{operation}")),
            ("Authorization", &*format!("AWS4-HMAC-SHA256 {scope}")),
            ("Content-Type", "application/x-amz-json-1.1"),
        ];
        self.0.ask("POST /", &headers, &body.to_string())
    }

    /// Nimbus with this cloud and no passphrase.
    fn run(&self, site: &Site, arguments: &[&str]) -> ProgramRunOutput {
        finish(self.command(site, arguments).output().unwrap())
    }

    fn command(&self, site: &Site, arguments: &[&str]) -> std::process::Command {
        let endpoint = self.0.address();
        let mut command = site.command(arguments);
        command
            .env_remove("PULUMI_CONFIG_PASSPHRASE")
            .env(
                "PULUMI_BACKEND_URL",
                format!("s3://states?region=eu-west-1&endpoint={endpoint}&s3ForcePathStyle=true"),
            )
            .env("AWS_ENDPOINT_URL", endpoint)
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret");
        command
    }
}

const SETTINGS: &str = "program/Pulumi.dev.yaml";

#[test]
fn a_stack_lives_in_a_bucket_with_its_secrets_under_a_key_of_kms() {
    let program = tool_or_skip!(Tool::S3Server);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let cloud = Cloud::start(&program);
    let site = Site::notes(&sdk);
    let url = "awskms://alias/state?region=eu-west-1";
    let settings = site.read(SETTINGS);
    site.write(SETTINGS, &format!("secretsprovider: {url}\n{settings}"));
    let secret = ["stack-config", "set", "password", "hunter2", "--secret"];
    cloud.run(&site, &secret).ok();
    let settings = site.read(SETTINGS);
    assert!(settings.contains("encryptedkey: ") && !settings.contains("encryptionsalt"));

    let up = ["program", "up", "--yes", "--skip-preview"];
    cloud.run(&site, &up).ok();
    assert_eq!(site.read("cloud/password.note"), "hunter2");
    assert!(!site.path("backend").exists(), "nothing is kept here");
    assert!(!site.path("home/.pulumi").exists(), "nothing is kept here");

    let exported = cloud.run(&site, &["state", "export"]).ok();
    assert!(!exported.stdout.contains("hunter2") && !exported.stdout.contains("plaintext"));
    let providers = &exported.json()["deployment"]["secrets_providers"];
    assert_eq!(providers["type"], "cloud");
    assert_eq!(providers["state"]["url"], url);
    let key = providers["state"]["encryptedkey"].as_str().unwrap();
    assert!(settings.contains(key), "{settings}");

    let again = cloud.run(&site, &up).ok();
    assert!(again.stdout.contains("5 unchanged"), "{}", again.stdout);
    let secret = ["program", "outputs", "secret", "--show-secrets"];
    assert_eq!(cloud.run(&site, &secret).ok().stdout, "hunter2\n");
}

#[test]
fn a_key_that_cannot_be_had_is_refused_before_anything_happens() {
    let program = tool_or_skip!(Tool::S3Server);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let cloud = Cloud::start(&program);
    let site = Site::notes(&sdk);
    let settings = site.read(SETTINGS);
    for (url, code) in [
        ("awskms://alias/nobody?region=eu-west-1", "NIM-0731"),
        (
            "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k",
            "NIM-0240",
        ),
    ] {
        site.write(SETTINGS, &format!("secretsprovider: {url}\n{settings}"));
        let secret = ["stack-config", "set", "password", "hunter2", "--secret"];
        let refused = cloud.run(&site, &secret);
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains(code), "{}", refused.stderr);
        assert!(!site.read(SETTINGS).contains("hunter2"));
    }
}

/// F3 through the real binary, in the long form: an update is stopped past its lease of a minute, another one
/// takes the stack, and the first is woken. It writes nothing more, and nothing that it started stays.
#[test]
fn an_update_that_was_stopped_past_its_lease_ends_when_it_wakes() {
    let program = tool_or_skip!(Tool::S3Server);
    let sdk = tool_or_skip!(Tool::NodeSdk);
    if !nimbus_test_tools::is_long() {
        // What holds without a minute's wait: a_holder_that_was_stopped_past_its_lease_is_fenced_when_it_wakes.
        return;
    }
    let cloud = Cloud::start(&program);
    let site = Site::notes(&sdk);
    let url = "awskms://alias/state?region=eu-west-1";
    let settings = site.read(SETTINGS);
    site.write(SETTINGS, &format!("secretsprovider: {url}\n{settings}"));
    cloud
        .run(&site, &["stack-config", "set", "stalls", "true"])
        .ok();
    let up = ["program", "up", "--yes", "--skip-preview"];
    let first = cloud
        .command(&site, &up)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let slow = site.path("cloud/slow.note");
    wait_until("the slow note is written", || slow.exists());
    signal(&first, Signal::SIGSTOP);
    // Another one comes, finds the stack taken, and tries again until it is not.
    let refresh = ["program", "refresh", "--yes", "--skip-preview"];
    wait_until("the lease is over", || {
        let tried = cloud.run(&site, &refresh);
        assert!(
            tried.code == 0 || tried.stderr.contains("NIM-0209"),
            "{}",
            tried.stderr
        );
        tried.code == 0
    });
    let state = cloud.run(&site, &["state", "export"]).ok().stdout;
    signal(&first, Signal::SIGCONT);
    let ended = end_of(first);
    assert_ne!(ended.code, 0, "{}", ended.stdout);
    assert!(
        ended.stderr.contains("took over") || ended.stderr.contains("lease"),
        "{}",
        ended.stderr
    );
    wait_until("nothing of it is left", || processes_of(&site).is_empty());
    assert_eq!(cloud.run(&site, &["state", "export"]).ok().stdout, state);
}
