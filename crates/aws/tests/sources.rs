//! Every place where credentials can come from, asked over HTTP as the real ones are.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::{Path, PathBuf};

use nimbus_aws::{Aws, AwsError, AwsSettings, AwsVariables};
use nimbus_test_tools::CredentialServices;

/// Profiles of every kind, and the session that signing in left.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path: PathBuf = home.path().join(".aws").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "credentials",
        "[base]\naws_access_key_id=BASE\naws_secret_access_key=hush\n",
    );
    write(
        "config",
        "[profile sso]\nsso_session=corp\nsso_account_id=123456789012\nsso_role_name=Deployer\n\
         [sso-session corp]\nsso_start_url=https://corp.example/start\nsso_region=eu-west-1\n\
         [profile expired]\nsso_start_url=https://old.example/start\nsso_region=eu-west-1\n\
         sso_account_id=123456789012\nsso_role_name=Deployer\n\
         [profile role]\nrole_arn=arn:aws:iam::123456789012:role/r\nsource_profile=base\n\
         [profile loop]\nrole_arn=arn:aws:iam::123456789012:role/r\nsource_profile=nobody\n\
         [profile process]\ncredential_process=echo '{\"Version\":1,\"AccessKeyId\":\"PROCESS\",\"SecretAccessKey\":\"hush\"}'\n\
         [profile silent]\ncredential_process=echo hush-hush\n",
    );
    // The file's name is the SHA-1 of the session's name.
    write(
        "sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json",
        &format!(
            r#"{{"accessToken": "{}", "expiresAt": "2099-01-01T00:00:00Z", "region": "eu-west-1", "startUrl": "https://corp.example/start"}}"#,
            CredentialServices::SIGNED_IN
        ),
    );
    fs::write(home.path().join("token"), "a.web.token").unwrap();
    home
}

fn settings(home: &Path, variables: &[(&str, &str)], metadata: bool) -> AwsSettings {
    let url = CredentialServices::start().url();
    let container = format!("{url}/container");
    let given = variables.iter().map(|(name, value)| match *value {
        "SERVICE" => (*name, url.as_str()),
        "CONTAINER" => (*name, container.as_str()),
        value => (*name, value),
    });
    let own = [
        ("HOME", home.to_str().unwrap()),
        ("AWS_ENDPOINT_URL", &*url),
        ("AWS_MAX_ATTEMPTS", "1"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &*url),
    ];
    let variables = AwsVariables::fixed(own.into_iter().chain(given));
    let variables = match metadata {
        true => variables.with_metadata(),
        false => variables,
    };
    AwsSettings::load(variables).unwrap()
}

/// The name of the key that signed, and where it is said to come from.
async fn found(
    home: &Path,
    variables: &[(&str, &str)],
    metadata: bool,
) -> Result<(String, String), AwsError> {
    let aws = Aws::new(settings(home, variables, metadata))?;
    let identity = aws.identity("eu-west-1").await?;
    let key = identity.arn.rsplit('/').next().unwrap().to_owned();
    Ok((key, identity.source))
}

#[tokio::test]
async fn credentials_come_from_wherever_an_aws_tool_finds_them() {
    let home = home();
    let token = home.path().join("token");
    let token = token.to_str().unwrap();
    let role = "arn:aws:iam::123456789012:role/r";
    let keys = [("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let web = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token),
        ("AWS_ROLE_ARN", role),
        ("AWS_ROLE_SESSION_NAME", "ci"),
    ];
    let container = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "CONTAINER"),
        (
            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
            CredentialServices::CONTAINER_TOKEN,
        ),
    ];
    let profile = |name| vec![("AWS_PROFILE", name)];
    for (variables, key, place) in [
        ([&keys[..], &web].concat(), "ENV", "the environment"),
        (
            web.to_vec(),
            "WEB",
            "web identity for arn:aws:iam::123456789012:role/r",
        ),
        (profile("base"), "BASE", "profile base"),
        (
            vec![("AWS_DEFAULT_PROFILE", "base")],
            "BASE",
            "profile base",
        ),
        (profile("sso"), "SSO", "single sign-on of profile sso"),
        (
            profile("process"),
            "PROCESS",
            "the credential process of profile process",
        ),
        (
            profile("role"),
            "ROLE",
            "arn:aws:iam::123456789012:role/r by way of profile role",
        ),
        (
            container.to_vec(),
            "CONTAINER",
            "the credential service of this container",
        ),
        (vec![], "INSTANCE", "the metadata service of this instance"),
    ] {
        let found = found(home.path(), &variables, true).await;
        let expected = (key.to_owned(), place.to_owned());
        assert_eq!(found.as_ref().unwrap(), &expected, "{variables:?}");
    }
}

#[tokio::test]
async fn what_cannot_work_says_why_and_nobody_else_is_asked_instead() {
    let home = home();
    for (variables, texts) in [
        (
            ("AWS_ACCESS_KEY_ID", "k"),
            vec!["AWS_SECRET_ACCESS_KEY is not set"],
        ),
        (
            ("AWS_SECRET_ACCESS_KEY", "s"),
            vec!["AWS_ACCESS_KEY_ID is not set"],
        ),
        (
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "f"),
            vec!["AWS_ROLE_ARN is not set"],
        ),
        (
            ("AWS_PROFILE", "nope"),
            vec!["`nope`", "neither of the profile files"],
        ),
        (
            ("AWS_PROFILE", "expired"),
            vec!["`expired`", "gives no credentials"],
        ),
        (
            ("AWS_PROFILE", "loop"),
            vec!["`loop`", "gives no credentials"],
        ),
        (
            ("AWS_PROFILE", "silent"),
            vec!["`silent`", "gives no credentials"],
        ),
    ] {
        // An instance would answer.
        let error = found(home.path(), &[variables], true).await.unwrap_err();
        for text in texts {
            assert!(error.to_string().contains(text), "{variables:?}: {error}");
        }
        assert!(!error.to_string().contains("hush-hush"), "{error}");
    }
}

#[tokio::test]
async fn variables_of_somebody_else_do_not_reach_the_machines_own_services() {
    let home = home();
    let container = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "CONTAINER")];
    for variables in [&[][..], &container] {
        let error = found(home.path(), variables, false).await.unwrap_err();
        assert!(matches!(error, AwsError::NoCredentials { .. }), "{error}");
    }
}
