//! Questions to a real AWS API, served by moto, which checks signatures and permissions.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use nimbus_aws::{Aws, AwsError, AwsSettings, AwsValue, AwsVariables, MasterKey};
use nimbus_test_tools::{AwsServer, Tool, tool_or_skip};
use serde_json::{Value, json};

struct Moto {
    server: AwsServer,
    /// Of a user who may do everything.
    keys: (String, String),
}

/// Requests before signatures are checked: user, policy, key.
const UNCHECKED: u32 = 3;

impl Moto {
    fn start(program: &Path) -> Self {
        Self::start_checking_after(program, UNCHECKED)
    }

    fn start_checking_after(program: &Path, requests: u32) -> Self {
        let count = ("INITIAL_NO_AUTH_ACTION_COUNT", &*requests.to_string());
        let mut moto = Self {
            server: AwsServer::start_with(program, &[count]),
            keys: Default::default(),
        };
        moto.make_user();
        moto
    }

    fn make_user(&mut self) {
        let policy = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;
        let user = "Version=2010-05-08&UserName=nimbus";
        self.setup("iam", &format!("Action=CreateUser&{user}"));
        let policy: String = url::form_urlencoded::byte_serialize(policy.as_bytes()).collect();
        let put = format!("Action=PutUserPolicy&{user}&PolicyName=all&PolicyDocument={policy}");
        self.setup("iam", &put);
        let made = self.setup("iam", &format!("Action=CreateAccessKey&{user}"));
        let field = |name: &str| {
            let rest = made.split_once(&format!("<{name}>")).unwrap().1;
            rest.split_once('<').unwrap().0.to_owned()
        };
        self.keys = (field("AccessKeyId"), field("SecretAccessKey"));
    }

    fn setup(&self, service: &str, form: &str) -> String {
        let scope = format!("Credential=k/20260101/us-east-1/{service}/aws4_request");
        let signed = format!("AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=x");
        let headers = [
            ("Authorization", &*signed),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.server.ask("POST /", &headers, form)
    }

    /// Puts something in place with moto's own client, which signs by itself.
    fn prepare(&self, program: &Path, script: &str) {
        let python = program.parent().unwrap().join("bin/python");
        let script = format!(
            "import boto3\nc = lambda s: boto3.client(s, 'eu-west-1', endpoint_url='{}')\n{script}",
            self.server.address()
        );
        let output = Command::new(python)
            .args(["-c", &script])
            .env("AWS_ACCESS_KEY_ID", &self.keys.0)
            .env("AWS_SECRET_ACCESS_KEY", &self.keys.1)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn aws(&self, variables: &[(&str, &str)]) -> Aws {
        let address = self.server.address();
        let own = [("AWS_ENDPOINT_URL", &*address), ("AWS_MAX_ATTEMPTS", "2")];
        let variables = own.iter().chain(variables).copied();
        Aws::new(AwsSettings::load(AwsVariables::fixed(variables)).unwrap()).unwrap()
    }

    fn with_keys(&self) -> Aws {
        let (key, secret) = &self.keys;
        self.aws(&[
            ("AWS_ACCESS_KEY_ID", key),
            ("AWS_SECRET_ACCESS_KEY", secret),
        ])
    }
}

async fn lookup(aws: &Aws, query: &str, parameters: &[&str]) -> Result<AwsValue, AwsError> {
    let parameters: Vec<_> = parameters.iter().map(|p| (*p).to_owned()).collect();
    aws.lookup("eu-west-1", query, &parameters).await
}

fn value(value: Value) -> AwsValue {
    AwsValue::Value(value)
}

#[tokio::test]
async fn the_four_questions_are_answered_and_signatures_are_accepted() {
    let program = tool_or_skip!(Tool::S3Server);
    let moto = Moto::start(&program);
    moto.prepare(
        &program,
        "c('ssm').put_parameter(Name='/shop/url', Value='https://x', Type='String')\n\
         c('ssm').put_parameter(Name='/shop/zones', Value='a,b', Type='StringList')\n\
         c('ssm').put_parameter(Name='/shop/token', Value='hush', Type='SecureString')\n\
         c('secretsmanager').create_secret(Name='shop/db', SecretString='{\"password\": \"hush\"}')\n\
         c('ec2').register_image(Name='web-1', Architecture='x86_64', RootDeviceName='/dev/sda1')\n",
    );
    let aws = moto.with_keys();
    let zones = json!(["eu-west-1a", "eu-west-1b", "eu-west-1c"]);
    assert_eq!(
        lookup(&aws, "availabilityZones", &[]).await.unwrap(),
        value(zones)
    );
    let two = lookup(&aws, "availabilityZones", &["2"]).await.unwrap();
    assert_eq!(two, value(json!(["eu-west-1a", "eu-west-1b"])));
    let many = lookup(&aws, "availabilityZones", &["9"]).await.unwrap();
    assert_eq!(many, AwsValue::Absent);

    for image in ["amazonLinux2", "self/web-*"] {
        let found = lookup(&aws, "latestAmiId", &[image]).await.unwrap();
        assert!(
            matches!(&found, AwsValue::Value(Value::String(id)) if id.starts_with("ami-")),
            "{image}: {found:?}"
        );
    }
    let none = lookup(&aws, "latestAmiId", &["self/other-*"])
        .await
        .unwrap();
    assert_eq!(none, AwsValue::Absent);

    let url = lookup(&aws, "ssmParameter", &["/shop/url"]).await.unwrap();
    assert_eq!(url, value(json!("https://x")));
    let list = lookup(&aws, "ssmParameter", &["/shop/zones"])
        .await
        .unwrap();
    assert_eq!(list, value(json!(["a", "b"])));
    let token = lookup(&aws, "ssmParameter", &["/shop/token"])
        .await
        .unwrap();
    assert_eq!(token, AwsValue::Secret(json!("hush")));
    let none = lookup(&aws, "ssmParameter", &["/nope"]).await.unwrap();
    assert_eq!(none, AwsValue::Absent);

    let whole = lookup(&aws, "secret", &["shop/db"]).await.unwrap();
    assert_eq!(whole, AwsValue::Secret(json!(r#"{"password": "hush"}"#)));
    let member = lookup(&aws, "secret", &["shop/db#password"]).await.unwrap();
    assert_eq!(member, AwsValue::Secret(json!("hush")));
    assert_eq!(
        lookup(&aws, "secret", &["nope"]).await.unwrap(),
        AwsValue::Absent
    );

    let identity = aws.identity("eu-west-1").await.unwrap();
    assert_eq!(identity.arn, "arn:aws:iam::123456789012:user/nimbus");
    assert_eq!(identity.source, "the environment");
}

#[tokio::test]
async fn a_wrong_key_is_refused_with_the_reason_of_aws() {
    let program = tool_or_skip!(Tool::S3Server);
    let moto = Moto::start(&program);
    let aws = moto.aws(&[
        ("AWS_ACCESS_KEY_ID", &moto.keys.0),
        ("AWS_SECRET_ACCESS_KEY", "not-the-secret"),
    ]);
    let error = lookup(&aws, "availabilityZones", &[]).await.unwrap_err();
    assert!(matches!(&error, AwsError::Refused { .. }), "{error:?}");
    assert!(!error.to_string().contains("not-the-secret"), "{error}");
}

#[tokio::test]
async fn profiles_and_roles_give_keys_that_work() {
    let program = tool_or_skip!(Tool::S3Server);
    let moto = Moto::start(&program);
    moto.prepare(
        &program,
        "import json\n\
         trust = json.dumps({'Version': '2012-10-17', 'Statement': [{'Effect': 'Allow', 'Principal': {'AWS': '*'}, 'Action': 'sts:AssumeRole'}]})\n\
         everything = json.dumps({'Version': '2012-10-17', 'Statement': [{'Effect': 'Allow', 'Action': '*', 'Resource': '*'}]})\n\
         c('iam').create_role(RoleName='reader', AssumeRolePolicyDocument=trust)\n\
         c('iam').put_role_policy(RoleName='reader', PolicyName='all', PolicyDocument=everything)\n",
    );
    let role = "arn:aws:iam::123456789012:role/reader";
    let home = tempfile::tempdir().unwrap();
    let (key, secret) = &moto.keys;
    fs::create_dir(home.path().join(".aws")).unwrap();
    fs::write(
        home.path().join(".aws/credentials"),
        format!("[base]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"),
    )
    .unwrap();
    fs::write(
        home.path().join(".aws/config"),
        format!("[profile reader]\nregion = eu-west-1\nrole_arn = {role}\nsource_profile = base\n"),
    )
    .unwrap();
    let home_text = home.path().to_str().unwrap();

    let by_profile = moto.aws(&[("HOME", home_text), ("AWS_PROFILE", "base")]);
    assert_eq!(
        by_profile.identity("eu-west-1").await.unwrap().source,
        "profile base"
    );
    let by_role = moto.aws(&[("HOME", home_text), ("AWS_PROFILE", "reader")]);
    assert_eq!(by_role.region().as_deref(), Some("eu-west-1"));
    let identity = by_role.identity("eu-west-1").await.unwrap();
    assert!(
        identity.arn.contains(":assumed-role/reader/"),
        "{identity:?}"
    );
}

/// The exchange of a token is not signed, so the server must not insist on it here.
#[tokio::test]
async fn a_web_identity_is_exchanged_for_keys_that_work() {
    let program = tool_or_skip!(Tool::S3Server);
    let moto = Moto::start_checking_after(&program, 1000);
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join("token");
    fs::write(&token, "a.web.token\n").unwrap();
    let by_token = moto.aws(&[
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reader"),
        ("AWS_ROLE_SESSION_NAME", "ci"),
    ]);
    let identity = by_token.identity("eu-west-1").await.unwrap();
    assert!(identity.arn.ends_with("/reader/ci"), "{identity:?}");
    fs::remove_file(&token).unwrap();
    let again = by_token.identity("eu-west-1").await;
    assert!(again.is_ok(), "keys are kept while they are good");
}

#[tokio::test]
async fn texts_come_back_from_the_key_management_service_only_under_their_own_context() {
    let program = tool_or_skip!(Tool::S3Server);
    let moto = Moto::start(&program);
    moto.prepare(
        &program,
        "key = c('kms').create_key()['KeyMetadata']['KeyId']\n\
         c('kms').create_alias(AliasName='alias/state', TargetKeyId=key)\n",
    );
    let key = MasterKey {
        id: "alias/state".to_owned(),
        region: "eu-west-1".to_owned(),
        context: [("stack".to_owned(), "dev".to_owned())].into(),
    };
    let aws = moto.with_keys();
    let ciphertext = aws.encrypt(&key, b"hush").await.unwrap();
    assert!(!ciphertext.windows(4).any(|part| part == b"hush"));
    assert_eq!(**aws.decrypt(&key, &ciphertext).await.unwrap(), *b"hush");

    let elsewhere = MasterKey {
        context: [("stack".to_owned(), "prod".to_owned())].into(),
        ..key.clone()
    };
    let refused = aws.decrypt(&elsewhere, &ciphertext).await.unwrap_err();
    assert!(matches!(refused, AwsError::Refused { .. }), "{refused}");
    let nobody = MasterKey {
        id: "alias/nobody".to_owned(),
        ..key
    };
    let refused = aws.encrypt(&nobody, b"hush").await.unwrap_err();
    assert!(matches!(refused, AwsError::Refused { .. }), "{refused}");
}
