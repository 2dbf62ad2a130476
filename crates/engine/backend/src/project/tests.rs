//! Settings files: read, resolved against a project, and edited.

use std::path::Path;

use nimbus_core::{ErrorCode, Result};
use nimbus_document::Document;
use nimbus_engine_model::{PropertyValue, SecretsProvider};
use proptest::prelude::*;

use super::*;
use crate::environment::EnvironmentVariables;
use crate::secrets::{DeclaredSecrets, KeyServices, Keyring, StackSecrets};

const PATH: &str = "/p/Pulumi.dev.yaml";

fn settings(text: &str) -> StackSettings {
    StackSettings::parse(Path::new(PATH), "shop", text.to_owned()).unwrap()
}

fn refused(text: &str) -> nimbus_core::Error {
    StackSettings::parse(Path::new(PATH), "shop", text.to_owned()).unwrap_err()
}

fn project(config: &str) -> Project {
    let text = format!("name: shop\nruntime: nodejs\n{config}");
    let document = Document::parse("Pulumi.yaml", &text).unwrap();
    Project::from_document(Path::new("/p/Pulumi.yaml"), &document).unwrap()
}

/// Secrets that are only encoded: `c2VjcmV0` is `secret`.
fn secrets() -> StackSecrets {
    let provider = SecretsProvider {
        kind: "b64".into(),
        state: serde_json::Value::Null,
    };
    StackSecrets::new(
        &Keyring::new(EnvironmentVariables::fixed([]), KeyServices::Any),
        Some(provider),
    )
}

fn resolved(declared: &str, config: &str) -> Result<ResolvedConfig> {
    let settings = settings(&format!("config:\n{config}"));
    resolve(&project(declared), "dev", &settings.config, &secrets())
}

#[test]
fn programs_get_text_and_json_with_secrets_in_clear() {
    let config = resolved(
        "",
        "  size: 3\n  aws:region: eu-west-1\n  flag: true\n  none:\n\
         \x20 token: {secure: c2VjcmV0}\n\
         \x20 db:\n    host: <db>\n    password: {secure: c2VjcmV0}\n    ports: [1, 2.5]\n",
    )
    .unwrap();
    insta::assert_json_snapshot!(config.values, @r###"
    {
      "aws:region": "eu-west-1",
      "shop:db": "{\"host\":\"\\u003cdb\\u003e\",\"password\":\"secret\",\"ports\":[1,2.5]}",
      "shop:flag": "true",
      "shop:none": "",
      "shop:size": "3",
      "shop:token": "secret"
    }
    "###);
    assert_eq!(
        Vec::from_iter(&config.secret_keys),
        ["shop:db", "shop:token"]
    );
    assert_eq!(config.properties["shop:size"], PropertyValue::Number(3.0));
    assert_eq!(config.properties["shop:flag"], PropertyValue::Bool(true));
    assert_eq!(
        config.properties["shop:token"],
        PropertyValue::secret("secret".into())
    );
    assert!(
        !format!("{config:?}").contains("secret\""),
        "a secret in debug output"
    );
}

#[test]
fn defaults_fill_in_what_the_stack_does_not_say() {
    let declared = "config:\n  size: {type: string, default: small}\n  count: 2\n\
                    \x20 aws:region: eu-west-1\n  net.cidr: {type: string, default: 10.0.0.0/16}\n";
    let config = resolved(declared, "  count: 5\n  net: {name: main}\n").unwrap();
    assert_eq!(config.values["shop:size"], "small");
    assert_eq!(config.values["shop:count"], "5");
    assert_eq!(config.values["aws:region"], "eu-west-1");
    assert_eq!(
        config.values["shop:net"],
        r#"{"cidr":"10.0.0.0/16","name":"main"}"#
    );
}

#[test]
fn what_the_project_requires_is_checked() {
    let code = |declared: &str, config: &str| {
        let declared = format!("config:\n  {declared}\n");
        let result = resolved(&declared, config);
        result
            .map(|_| ())
            .map_err(|error| (error.code(), error.message().to_owned()))
    };
    let (missing, message) =
        code("a: {type: string}\n  b: {type: string}", "  c: 1\n").unwrap_err();
    assert_eq!(missing, ErrorCode::CONFIG_MISSING);
    assert!(message.contains("a, b"), "{message}");
    let typed = code("a: {type: integer}", "  a: many\n").unwrap_err();
    assert_eq!(typed.0, ErrorCode::CONFIG_TYPE);
    assert!(!typed.1.contains("many"), "values stay out of messages");
    let clear = code("a: {type: string, secret: true}", "  a: clear\n").unwrap_err();
    assert_eq!(clear.0, ErrorCode::CONFIG_NOT_SECRET);
    code(
        "a: {type: string, secret: true}",
        "  a: {secure: c2VjcmV0}\n",
    )
    .unwrap();
    code(
        "a: {type: array, items: {type: integer}}",
        "  a: [1, \"2\"]\n",
    )
    .unwrap();
}

#[test]
fn a_secret_that_does_not_open_names_its_key_only() {
    let error = resolved("", "  token: {secure: '!!'}\n").unwrap_err();
    assert_eq!(error.code(), ErrorCode::SECRETS_UNREADABLE);
    assert!(error.message().contains("shop:token"));

    let settings = settings("config:\n  token: {secure: c2VjcmV0}\n");
    let no_salt = StackSecrets::new(
        &Keyring::new(EnvironmentVariables::fixed([]), KeyServices::Any),
        None,
    );
    let error = resolve(&project(""), "dev", &settings.config, &no_salt).unwrap_err();
    assert_eq!(error.code(), ErrorCode::SECRETS_UNREADABLE);
}

#[test]
fn a_missing_passphrase_is_named_when_it_is_needed() {
    let salt = "v1:fozI5u6B030=:v1:F+6ZduKKd8G0/V7L:PGMFeIzwobWRKmEAzUdaQHqC5mMRIQ==";
    let keyring = Keyring::new(EnvironmentVariables::fixed([]), KeyServices::Any);
    let secrets = StackSecrets::with_salt(&keyring, Some(salt));
    let plain = settings("config:\n  a: 1\n");
    resolve(&project(""), "dev", &plain.config, &secrets).unwrap();
    let secret = settings("config:\n  a: {secure: v1:x:y}\n");
    let error = resolve(&project(""), "dev", &secret.config, &secrets).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PASSPHRASE_MISSING);
    let shown = error.message();
    assert!(shown.contains("PULUMI_CONFIG_PASSPHRASE_FILE"), "{shown}");
}

#[test]
fn environments_and_foreign_providers_are_refused_with_the_reason() {
    settings("environment: []\n").refuse_environments().unwrap();
    settings("").refuse_environments().unwrap();
    let error = settings("config: {a: 1}\nenvironment:\n  - prod\n")
        .refuse_environments()
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::ENVIRONMENTS_UNSUPPORTED);
    assert_eq!(error.spans()[0].line_and_column().0, 3);

    let vault = settings("secretsprovider: hashivault://mykey\nencryptedkey: abcd\n");
    let declared = vault.secrets().unwrap();
    let keyring = Keyring::new(EnvironmentVariables::fixed([]), KeyServices::Any);
    let refused = StackSecrets::declared(&keyring, &declared, None).crypter();
    let error = nimbus_core::Error::from(refused.err().unwrap());
    assert_eq!(error.code(), ErrorCode::SECRETS_PROVIDER);
    assert!(error.message().contains("hashivault") && !error.message().contains("mykey"));
    let damaged = settings("secretsprovider: awskms://k\nencryptedkey: '?'\n");
    assert!(damaged.secrets().is_err());
}

#[test]
fn a_data_key_goes_beside_the_address_of_its_service() {
    let mut settings = settings("# ours\nsecretsprovider: awskms://k\nconfig:\n  shop:a: b\n");
    let url = "awskms://k".to_owned();
    assert_eq!(settings.secrets().unwrap(), DeclaredSecrets::Service(url));
    let made = SecretsProvider {
        kind: "cloud".into(),
        state: serde_json::json!({ "url": "awskms://k", "encryptedkey": "AQID" }),
    };
    settings.set_secrets(&made).unwrap();
    assert!(
        settings
            .text()
            .starts_with("# ours\nsecretsprovider: awskms://k\n")
    );
    assert!(
        settings.text().contains("encryptedkey: AQID\n"),
        "{}",
        settings.text()
    );
    assert_eq!(settings.secrets().unwrap(), DeclaredSecrets::Provider(made));
}

#[test]
fn wrong_settings_are_pointed_at() {
    for (text, line) in [
        ("config:\n  a: 1\n  shop:a: 2\n", 3),
        ("config:\n  a:b:c: 2\n", 2),
        ("config: [1]\n", 1),
        ("encryptionsalt: {a: 1}\n", 1),
        ("config:\n  a: 'x\n", 2),
    ] {
        let error = refused(text);
        assert_eq!(error.spans()[0].line_and_column().0, line, "{text}");
    }
}

const WRITTEN: &str = "\
# Settings of dev.
encryptionsalt: v1:abc=:v1:x:y # do not lose
config:
  # how big
  size: small # for now
  aws:region: eu-west-1
  shop:db:
    host: db.local   # the primary
    ports:
      - 1
      - 2

  token:
    secure: v1:old

# the end
";

fn edit(change: impl FnOnce(&mut StackSettings) -> Result<()>) -> String {
    let mut settings = settings(WRITTEN);
    change(&mut settings).unwrap();
    settings.text().to_owned()
}

fn key(text: &str) -> (ConfigKey, Vec<nimbus_engine_model::PathSegment>) {
    parse_key(text, "shop", true).unwrap()
}

fn set(text: &str, value: &str) -> impl FnOnce(&mut StackSettings) -> Result<()> {
    let ((key, path), value) = (key(text), value.to_owned());
    move |settings| {
        let value = ConfigValue::from_input(&value, &path);
        settings.set(&key, &path, value)
    }
}

fn remove(text: &str) -> impl FnOnce(&mut StackSettings) -> Result<()> {
    let (key, path) = key(text);
    move |settings| settings.remove(&key, &path)
}

/// Lines that differ, with their signs.
fn difference(after: &str) -> Vec<String> {
    let (before, after): (Vec<_>, Vec<_>) = (WRITTEN.lines().collect(), after.lines().collect());
    let common = |a: &[&str], b: &[&str]| a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let start = common(&before, &after);
    let (mut b, mut a) = (before.len(), after.len());
    while b > start && a > start && before[b - 1] == after[a - 1] {
        (b, a) = (b - 1, a - 1);
    }
    let gone = before[start..b].iter().map(|line| format!("-{line}"));
    gone.chain(after[start..a].iter().map(|line| format!("+{line}")))
        .collect()
}

#[test]
fn an_edit_changes_its_own_line_and_no_other() {
    let changes = [
        (
            edit(set("size", "large")),
            vec!["-  size: small # for now", "+  size: large # for now"],
        ),
        (
            edit(set("size", "3")),
            vec!["-  size: small # for now", "+  size: \"3\" # for now"],
        ),
        (
            edit(set("aws:region", "us-east-1")),
            vec!["-  aws:region: eu-west-1", "+  aws:region: us-east-1"],
        ),
        (
            edit(set("db.host", "other")),
            vec![
                "-    host: db.local   # the primary",
                "+    host: other   # the primary",
            ],
        ),
        (
            edit(set("db.ports[1]", "7")),
            vec!["-      - 2", "+      - 7"],
        ),
        (edit(set("db.ports[2]", "3")), vec!["+      - 3"]),
        (
            edit(set("db.user.name", "ada")),
            vec!["+    user:", "+      name: ada"],
        ),
        (edit(set("new", "1 2")), vec!["+  shop:new: \"1 2\""]),
        (edit(remove("size")), vec!["-  size: small # for now"]),
        (edit(remove("db.ports[0]")), vec!["-      - 1"]),
        (
            edit(remove("token")),
            vec!["-  token:", "-    secure: v1:old"],
        ),
        (edit(remove("absent.x")), vec![]),
    ];
    for (after, expected) in changes {
        assert_eq!(difference(&after), expected, "{after}");
    }
}

#[test]
fn the_first_secret_brings_its_salt() {
    let environment = EnvironmentVariables::fixed([("PULUMI_CONFIG_PASSPHRASE", "p")]);
    let keyring = Keyring::new(environment, KeyServices::Any);
    let secrets = StackSecrets::with_salt(&keyring, None);
    let mut settings = StackSettings::read(Path::new("/absent/Pulumi.dev.yaml"), "shop").unwrap();
    let (key, path) = key("token");
    settings
        .set_secret(&key, &path, "hunter2", &secrets)
        .unwrap();
    let salt = settings.encryption_salt.clone().unwrap();
    assert!(
        settings
            .text()
            .starts_with(&format!("encryptionsalt: {salt}\n"))
    );
    assert!(!settings.text().contains("hunter2"));
    let again = StackSecrets::declared(&keyring, &settings.secrets().unwrap(), None);
    let config = resolve(&project(""), "dev", &settings.config, &again).unwrap();
    assert_eq!(config.values["shop:token"], "hunter2");
}

#[test]
fn a_file_without_configuration_gets_some_and_loses_it_again() {
    for start in [
        "",
        "# only a comment",
        "encryptionsalt: v1:a\n",
        "config: {}\n",
        "config:\n",
    ] {
        let mut settings = settings(start);
        set("a", "x")(&mut settings).unwrap();
        assert_eq!(
            settings.config.get(&key("a").0, &[]),
            Some(&ConfigValue::Text("x".into()))
        );
        for line in start.lines().filter(|line| !line.starts_with("config")) {
            assert!(
                settings.text().contains(line),
                "{start:?} became {:?}",
                settings.text()
            );
        }
        remove("a")(&mut settings).unwrap();
        assert!(settings.config.is_empty(), "{:?}", settings.text());
    }
}

#[test]
fn what_cannot_be_edited_safely_is_left_alone() {
    let anchored = "config:\n  a: &x 1\n  b: *x\n";
    let mut anchored = settings(anchored);
    let error = set("a", "2")(&mut anchored).unwrap_err();
    assert_eq!(error.code(), ErrorCode::STACK_FILE_UNEDITABLE);
    assert_eq!(anchored.text(), "config:\n  a: &x 1\n  b: *x\n");
    let mut flow = settings("config: {a: 1, b: [1, 2]}\n");
    set("b[0]", "9")(&mut flow).unwrap();
    assert_eq!(
        flow.text(),
        "config:\n  shop:a: \"1\"\n  shop:b:\n    - 9\n    - 2\n"
    );
}

#[test]
fn a_saved_file_is_whole_and_keeps_link_and_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real.yaml");
    let link = folder.path().join("Pulumi.dev.yaml");
    std::fs::write(&real, WRITTEN).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut settings = StackSettings::read(&link, "shop").unwrap();
    set("size", "large")(&mut settings).unwrap();
    settings.save().unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), settings.text());
    let mode = std::fs::metadata(&real).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640);
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        2,
        "nothing is left beside"
    );
}

fn any_step() -> impl Strategy<Value = (String, Option<String>)> {
    let key = prop_oneof![
        Just("size"),
        Just("db.host"),
        Just("db.ports[0]"),
        Just("db.ports[1]"),
        Just("token"),
        Just("aws:region"),
        Just("new"),
        Just("deep.a.b"),
        Just("deep.a.c[0]"),
        Just("db.x.y"),
    ];
    let value = prop::option::of("[ -~]{0,10}|true|12|a: b|- x|#|line\nbreak");
    (key.prop_map(str::to_owned), value)
}

proptest! {
    /// After any series of edits the file says what a map edited in the same way says, and every
    /// comment outside of what was replaced is still there.
    #[test]
    fn edits_agree_with_a_plain_map(steps in prop::collection::vec(any_step(), 1..12)) {
        let mut settings = settings(WRITTEN);
        let mut model = settings.config.clone();
        for (text, value) in steps {
            let (key, path) = key(&text);
            match value {
                Some(value) => {
                    let value = ConfigValue::from_input(&value, &path);
                    let expected = model.set(&key, &path, value.clone());
                    let found = settings.set(&key, &path, value);
                    prop_assert_eq!(expected.is_ok(), found.is_ok(), "{:?}\n{}", found, settings.text());
                }
                None => {
                    model.remove(&key, &path).unwrap();
                    settings.remove(&key, &path).unwrap();
                }
            }
            prop_assert_eq!(&settings.config, &model);
        }
        for comment in ["# Settings of dev.", "# do not lose", "# the end"] {
            prop_assert!(settings.text().contains(comment));
        }
    }
}
