use serde_json::json;

use super::*;

struct Fake;

#[async_trait]
impl ValueLookup for Fake {
    async fn output(
        &self,
        component: &ComponentName,
        output: &str,
    ) -> Result<LookupValue, ValueLookupError> {
        Ok(match (component.as_str(), output) {
            ("network", "vpcId") => LookupValue::open("vpc-1"),
            ("network", "subnetIds") => LookupValue::open(json!(["subnet-1", "subnet-2"])),
            ("network", "cidr") => LookupValue::open("10.0.0.0/16"),
            ("database", "password") => LookupValue::Known {
                value: json!("hush"),
                secret: true,
            },
            ("later", _) => LookupValue::Unknown,
            _ => LookupValue::Absent,
        })
    }

    async fn aws(&self, query: &str, _: &[String]) -> Result<LookupValue, ValueLookupError> {
        Err(ValueLookupError {
            message: format!("no credentials for {query}"),
        })
    }

    async fn calculate(
        &self,
        function: &str,
        p: &[String],
        _: bool,
    ) -> Result<LookupValue, ValueLookupError> {
        Ok(LookupValue::open(format!("{function}({})", p.join(","))))
    }

    async fn env(&self, variable: &str) -> Result<LookupValue, ValueLookupError> {
        Ok(if variable == "HOME" {
            LookupValue::open("/home")
        } else {
            LookupValue::Absent
        })
    }

    async fn resolver(
        &self,
        resolver: ResolverKind,
        output: &str,
        parameters: &[String],
    ) -> Result<LookupValue, ValueLookupError> {
        Ok(LookupValue::open(format!(
            "{resolver}.{output}({})",
            parameters.join(",")
        )))
    }

    async fn secret(&self, name: &str) -> Result<LookupValue, ValueLookupError> {
        Ok(match name {
            "token" => LookupValue::open("hush"),
            _ => LookupValue::Absent,
        })
    }
}

async fn one(value: Value) -> Result<UnitConfigValue, ResolveError> {
    let config = Map::from_iter([("k".to_owned(), value)]);
    resolve(&config, &Fake)
        .await
        .map(|mut resolution| resolution.config.remove("k").unwrap())
}

fn known(value: Value) -> UnitConfigValue {
    UnitConfigValue::Known {
        value,
        secret: false,
    }
}

#[tokio::test]
async fn values_keep_their_types_alone_and_become_text_inside() {
    let list = one(json!("{{RUNTIME:network:subnetIds}}")).await.unwrap();
    assert_eq!(list, known(json!(["subnet-1", "subnet-2"])));
    let text = one(json!("id={{RUNTIME:network:vpcId}}!")).await.unwrap();
    assert_eq!(text, known(json!("id=vpc-1!")));
    let deep = one(json!({"a": ["{{RUNTIME:env:HOME}}", 1]}))
        .await
        .unwrap();
    assert_eq!(deep, known(json!({"a": ["/home", 1]})));
    assert!(matches!(
        one(json!("x{{RUNTIME:network:subnetIds}}")).await,
        Err(ResolveError::NotText { .. })
    ));
}

#[tokio::test]
async fn inner_placeholders_come_first() {
    let nested = json!("{{RUNTIME:calculate:subnets:{{RUNTIME:network:cidr}}:24:3}}");
    assert_eq!(
        one(nested).await.unwrap(),
        known(json!("subnets(10.0.0.0/16,24,3)"))
    );
}

#[tokio::test]
async fn defaults_stand_in_for_what_is_absent_only() {
    let with = json!("{{RUNTIME:env:NOPE|{{RUNTIME:network:vpcId}}}}");
    assert_eq!(one(with).await.unwrap(), known(json!("vpc-1")));
    let without = one(json!("{{RUNTIME:network:nope}}")).await.unwrap_err();
    assert_eq!(
        without.to_string(),
        "k: {{RUNTIME:network:nope}} does not exist and has no default"
    );
    let failed = one(json!("{{RUNTIME:aws:ami:x|y}}")).await.unwrap_err();
    assert!(
        failed.to_string().contains("no credentials"),
        "an error is not an absence"
    );
}

#[tokio::test]
async fn secrets_and_unknowns_spread() {
    let secret = one(json!(["a", "p={{RUNTIME:database:password}}"]))
        .await
        .unwrap();
    assert_eq!(
        secret,
        UnitConfigValue::Known {
            value: json!(["a", "p=hush"]),
            secret: true
        }
    );
    let unknown = one(json!({"x": "a-{{RUNTIME:later:thing}}"}))
        .await
        .unwrap();
    assert_eq!(unknown, UnitConfigValue::Unknown);
    let derived = json!("{{RUNTIME:calculate:f:{{RUNTIME:later:thing}}}}");
    assert_eq!(one(derived).await.unwrap(), UnitConfigValue::Unknown);
}

#[tokio::test]
async fn what_a_resolver_is_asked_is_shown_so_nothing_secret_is_in_it() {
    let asked = json!("{{RUNTIME:ipam:cidr:label={{RUNTIME:network:vpcId}}}}");
    assert_eq!(
        one(asked).await.unwrap(),
        known(json!("ipam.cidr(label=vpc-1)"))
    );
    let hidden = json!("{{RUNTIME:ipam:cidr:label={{RUNTIME:database:password}}}}");
    let error = one(hidden).await.unwrap_err().to_string();
    assert!(
        error.contains("may not be secret") && !error.contains("hush"),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_made_up_has_no_secret_in_its_name() {
    for function in ["password:24", "uuid", "timestamp"] {
        let text =
            format!("{{{{RUNTIME:calculate:{function}:{{{{RUNTIME:database:password}}}}}}}}");
        let error = one(json!(text)).await.unwrap_err().to_string();
        assert!(
            error.contains("may not be secret") && !error.contains("hush"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn lookups_are_recorded_without_the_values_of_inner_ones() {
    let config = Map::from_iter([
        ("a".to_owned(), json!("{{RUNTIME:network:vpcId}}")),
        (
            "b".to_owned(),
            json!("{{RUNTIME:calculate:f:{{RUNTIME:database:password}}}}"),
        ),
    ]);
    let resolution = resolve(&config, &Fake).await.unwrap();
    let names: Vec<_> = resolution.lookups.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "{{RUNTIME:calculate:f:{{RUNTIME:database:password}}}}",
            "{{RUNTIME:database:password}}",
            "{{RUNTIME:network:vpcId}}",
        ]
    );
    assert!(matches!(
        resolution.config["b"],
        UnitConfigValue::Known { secret: true, .. }
    ));
}

#[test]
fn what_is_digested_of_a_value_is_the_same_in_every_build() {
    let value: Value =
        serde_json::from_str(r#"{"b": [1, {"d": null, "c": "x"}], "a": 2.5}"#).unwrap();
    let text = LookupValue::open(value).fingerprint_text();
    assert_eq!(
        text.as_deref(),
        Some(r#"open {"a":2.5,"b":[1,{"c":"x","d":null}]}"#)
    );
}

#[test]
fn values_that_differ_in_anything_are_digested_differently() {
    let secret = |value: Value| LookupValue::Known {
        value,
        secret: true,
    };
    let texts: Vec<_> = [
        LookupValue::open(1),
        LookupValue::open("1"),
        LookupValue::open(json!([1])),
        LookupValue::open(Value::Null),
        LookupValue::open("absent"),
        secret(json!(1)),
        secret(json!("1")),
        LookupValue::Absent,
    ]
    .iter()
    .map(|value| value.fingerprint_text().unwrap())
    .collect();
    let different: std::collections::BTreeSet<_> = texts.iter().collect();
    assert_eq!(different.len(), texts.len(), "{texts:?}");
    assert_eq!(LookupValue::Unknown.fingerprint_text(), None);
    assert_eq!(UnitConfigValue::Unknown.fingerprint_text(), None);
    assert_eq!(
        known(json!("1")).fingerprint_text(),
        LookupValue::open("1").fingerprint_text()
    );
}

fn secret(value: Value) -> UnitConfigValue {
    UnitConfigValue::Known {
        value,
        secret: true,
    }
}

#[tokio::test]
async fn secrets_of_the_deployment_are_named_and_stay_secret_inside_others() {
    assert_eq!(
        one(json!({"secret": "token"})).await.unwrap(),
        secret(json!("hush"))
    );
    let inside = one(json!({"user": "u", "password": {"secret": "token"}})).await;
    assert_eq!(
        inside.unwrap(),
        secret(json!({"user": "u", "password": "hush"}))
    );
    let error = one(json!({"secret": "tokn"})).await.unwrap_err();
    assert!(error.to_string().contains("nimbus secret set"), "{error}");
    let plain = one(json!({"secret": 5})).await.unwrap();
    assert_eq!(
        plain,
        known(json!({"secret": 5})),
        "no name, so no reference"
    );
    let config = Map::from_iter([("k".to_owned(), json!({"secret": "token"}))]);
    let resolved = resolve(&config, &Fake).await.unwrap();
    let names: Vec<_> = resolved.lookups.keys().map(String::as_str).collect();
    assert_eq!(names, ["{secret: token}"]);
}

#[tokio::test]
async fn the_word_secret_marks_a_placeholder() {
    let marked = one(json!("{{RUNTIME:env:HOME|secret}}")).await.unwrap();
    assert_eq!(marked, secret(json!("/home")));
    let within = one(json!("at {{RUNTIME:env:HOME|secret}}")).await.unwrap();
    assert_eq!(within, secret(json!("at /home")));
    let fallback = one(json!("{{RUNTIME:env:NOPE|x|secret}}")).await.unwrap();
    assert_eq!(fallback, secret(json!("x")));
    assert!(matches!(
        one(json!("{{RUNTIME:env:NOPE|secret}}")).await,
        Err(ResolveError::Absent { .. })
    ));
}
