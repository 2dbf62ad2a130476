//! State in a bucket, secrets under a key of a key management service; moto plays both.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nimbus_test_tools::{Tool, tool_or_skip};
use serde_json::{Value, json};

use crate::support::{Ran, Site, finish};

struct Cloud {
    server: Child,
    port: u16,
}

impl Drop for Cloud {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Cloud {
    /// With a bucket `states` and a key `alias/state`.
    fn start(program: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let server = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut cloud = Self { server, port };
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = cloud.server.try_wait().unwrap();
            assert!(ended.is_none(), "the server has ended");
            std::thread::yield_now();
        }
        cloud.ask("PUT /states", "s3", "", "");
        let made = cloud.ask("POST /", "kms", "TrentService.CreateKey", "{}");
        let id = made["KeyMetadata"]["KeyId"].as_str().unwrap();
        let alias = json!({ "AliasName": "alias/state", "TargetKeyId": id }).to_string();
        cloud.ask("POST /", "kms", "TrentService.CreateAlias", &alias);
        cloud
    }

    fn ask(&self, what: &str, service: &str, target: &str, body: &str) -> Value {
        // A bucket of any other region needs a document that says so.
        let region = if service == "s3" {
            "us-east-1"
        } else {
            "eu-west-1"
        };
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        let request = format!(
            "{what} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-Amz-Target: {target}\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=k/20260101/{region}/{service}/aws4_request\r\n\
             Content-Type: application/x-amz-json-1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or(Value::Null)
    }

    /// Nimbus with this cloud and no passphrase.
    fn run(&self, site: &Site, arguments: &[&str]) -> Ran {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
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
        finish(command.output().unwrap())
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
