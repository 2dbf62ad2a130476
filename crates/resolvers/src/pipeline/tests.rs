use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::config::ResolverSettings;
use crate::lease::LeaseHolder;
use crate::question::UnitFacts;
use crate::register::{LeaseAsker, LeaseRegister};

struct RegisterService {
    register: Mutex<LeaseRegister>,
    settings: ResolverSettings,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl ResolverService for RegisterService {
    async fn answer(&self, question: &ResolverQuestion) -> Result<ResolverAnswer, ResolverError> {
        self.asked.lock().unwrap().push(question.key());
        let facts = UnitFacts {
            deployment: "D1".into(),
            environment: "dev".into(),
            component: "vm".into(),
            ..UnitFacts::default()
        };
        let asker = LeaseAsker {
            facts: &facts,
            holder: LeaseHolder::Run(1),
            now: 0,
        };
        let mut register = self.register.lock().unwrap();
        let mut seal = |_| Ok(String::new());
        let mut answer = register.answer(&self.settings, question, &asker, &mut seal)?;
        if question.resolver == ResolverKind::Secret {
            answer.outputs.insert("value".into(), "hunter2".into());
        }
        Ok(answer)
    }

    async fn give_back(&self, leases: &[Uuid]) -> Result<(), ResolverError> {
        let mut register = self.register.lock().unwrap();
        register.give_back(LeaseHolder::Run(1), leases);
        Ok(())
    }
}

fn service() -> RegisterService {
    let file = json!({
        "pools": [{"name": "hosts", "cidr": "10.0.0.0/29", "purpose": "addresses"},
            {"name": "tiny", "cidr": "10.1.0.0/32"}],
        "resolvers": {"ipam": {"address_pool": "hosts"}, "naming": {"pattern": "{env}-{type}-{seq}"}},
    });
    RegisterService {
        register: Mutex::default(),
        settings: ResolverSettings::read(&file, "dev").unwrap(),
        asked: Mutex::default(),
    }
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "ip_address": {"type": "string"},
            "gateway": {"type": "string"},
            "kind": {"type": "string", "default": "vm"},
            "cores": {"type": "integer", "default": 2, "maximum": 8},
            "password": {"type": "string"},
        },
        "required": ["name", "cores", "ip_address"],
        "additionalProperties": false,
    })
}

fn bindings() -> Map<String, Value> {
    let all = json!({
        "name": {"resolver": "naming", "output": "name", "inputs": {"resource_type": {"param": "kind"}}},
        "ip_address": {"resolver": "ipam", "output": "cidr", "inputs": {"allocation_type": "address"}},
        "gateway": {"resolver": "ipam", "output": "gateway", "inputs": {"allocation_type": "address"}},
    });
    all.as_object().unwrap().clone()
}

struct NoMoreThan(i64);

impl ParameterCheck for NoMoreThan {
    fn problems(&self, parameters: &Map<String, Value>, _: &BTreeSet<String>) -> Vec<String> {
        match parameters["cores"].as_i64() {
            Some(cores) if cores > self.0 => {
                vec![format!("cores: at most {}, by operator", self.0)]
            }
            _ => Vec::new(),
        }
    }
}

async fn resolve(
    service: &RegisterService,
    bindings: &Map<String, Value>,
    user: Value,
    most: i64,
) -> Result<ResolvedParameters, String> {
    let given = GivenParameters {
        values: user.as_object().unwrap().clone(),
        ..GivenParameters::default()
    };
    resolve_given(service, bindings, &given, most).await
}

async fn resolve_given(
    service: &RegisterService,
    bindings: &Map<String, Value>,
    given: &GivenParameters,
    most: i64,
) -> Result<ResolvedParameters, String> {
    let contract = ParameterContract::read(&schema(), bindings).map_err(|e| e.to_string())?;
    let limit = NoMoreThan(most);
    let resolver = ParameterResolver {
        service,
        checks: vec![&limit],
    };
    let resolved = resolver.resolve(&contract, given).await;
    resolved.map_err(|error| error.to_string())
}

#[tokio::test]
async fn defaults_then_the_user_then_resolvers() {
    let service = service();
    let user = json!({"cores": 4, "name": "mine"});
    let resolved = resolve(&service, &bindings(), user, 8).await.unwrap();
    assert_eq!(
        Value::from(resolved.values),
        json!({"name": "dev-vm-1", "ip_address": "10.0.0.2/29", "gateway": "10.0.0.1",
            "kind": "vm", "cores": 4})
    );
    assert_eq!(resolved.origins["kind"], ParameterOrigin::Default);
    assert_eq!(resolved.origins["cores"], ParameterOrigin::User);
    let ParameterOrigin::Resolver {
        lease, replaced, ..
    } = &resolved.origins["name"]
    else {
        panic!("{:?}", resolved.origins);
    };
    assert!(lease.is_some() && *replaced);
    // Two outputs of one question are of one lease.
    assert_eq!(service.register.lock().unwrap().live().count(), 2);
    // A second time is asked again and answered the same.
    let asked = service.asked.lock().unwrap().len();
    let user = json!({"cores": 4});
    let again = resolve(&service, &bindings(), user, 8).await.unwrap();
    assert_eq!(again.values["name"], "dev-vm-1");
    assert_eq!(service.asked.lock().unwrap().len(), asked * 2);
}

#[tokio::test]
async fn validation_comes_last_and_a_refusal_leases_nothing() {
    let service = service();
    for (user, most, says) in [
        (json!({"cores": 9}), 8, "cores: "),
        (json!({"cores": 4}), 3, "at most 3, by operator"),
        (json!({"colour": "red"}), 8, "colour"),
        (json!({"kind": 7}), 8, "resource_type"),
    ] {
        let error = resolve(&service, &bindings(), user, most)
            .await
            .unwrap_err();
        assert!(error.contains(says), "{error}");
        assert_eq!(
            service.register.lock().unwrap().live().count(),
            0,
            "{error}"
        );
    }
    // A resolver that refuses after another has answered.
    let mut bound = bindings();
    let tiny = json!({"resolver": "ipam", "inputs": {"parent_scope": "none", "prefix_length": 32}});
    bound.insert("password".into(), tiny);
    let error = resolve(&service, &bound, json!({}), 8).await.unwrap_err();
    assert!(error.contains("no pool `none`"), "{error}");
    assert_eq!(service.register.lock().unwrap().live().count(), 0);
    // An output that this answer does not have.
    let single = json!({"resolver": "ipam", "output": "gateway",
        "inputs": {"parent_scope": "tiny", "prefix_length": 32}});
    bound.insert("password".into(), single);
    let error = resolve(&service, &bound, json!({}), 8).await.unwrap_err();
    assert!(error.contains("`password` is not known"), "{error}");
    assert_eq!(service.register.lock().unwrap().live().count(), 0);
}

#[tokio::test]
async fn secrets_are_marked_and_never_in_a_refusal() {
    let service = service();
    let mut bound = bindings();
    let secret = json!({"resolver": "secret", "output": "value", "inputs": {"name": "db"}});
    bound.insert("password".into(), secret.clone());
    let resolved = resolve(&service, &bound, json!({}), 8).await.unwrap();
    assert!(resolved.secret.contains("password"));
    // Bound to a number, the secret breaks the schema and is not told.
    let cores = json!({"resolver": "secret", "output": "value", "inputs": {"name": "db"}});
    bound.insert("cores".into(), cores);
    let error = resolve(&service, &bound, json!({}), 8).await.unwrap_err();
    assert!(
        error.contains("cores: ") && !error.contains("hunter2"),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_known_only_later_stays_unknown_and_takes_nothing() {
    let service = service();
    let given = GivenParameters {
        unknown: BTreeSet::from(["kind".to_owned()]),
        ..GivenParameters::default()
    };
    let resolved = resolve_given(&service, &bindings(), &given, 8).await;
    let resolved = resolved.unwrap();
    let unknown: Vec<_> = resolved.unknown.iter().map(String::as_str).collect();
    assert_eq!(unknown, ["kind", "name"]);
    assert!(!resolved.values.contains_key("name"), "{resolved:?}");
    assert_eq!(resolved.values["ip_address"], "10.0.0.2/29");
    // Only what could be asked was asked.
    assert_eq!(service.register.lock().unwrap().live().count(), 1);
    // A bound input is the resolver's, whatever is to come for it.
    let given = GivenParameters {
        unknown: BTreeSet::from(["name".to_owned()]),
        ..GivenParameters::default()
    };
    let resolved = resolve_given(&service, &bindings(), &given, 8).await;
    let resolved = resolved.unwrap();
    assert_eq!(resolved.values["name"], "dev-vm-1");
    assert!(resolved.unknown.is_empty());
}

#[tokio::test]
async fn a_question_is_shown_so_nothing_secret_is_in_it() {
    let service = service();
    let given = GivenParameters {
        values: Map::from_iter([("kind".to_owned(), "hunter2".into())]),
        secret: BTreeSet::from(["kind".to_owned()]),
        ..GivenParameters::default()
    };
    let error = resolve_given(&service, &bindings(), &given, 8).await;
    let error = error.unwrap_err();
    assert!(
        error.contains("`kind`, which is secret") && !error.contains("hunter2"),
        "{error}"
    );
    assert_eq!(service.register.lock().unwrap().live().count(), 0);
}

#[tokio::test]
async fn numbers_that_came_as_text_are_numbers() {
    let service = service();
    let fine = resolve(&service, &bindings(), json!({"cores": "4"}), 8).await;
    assert_eq!(fine.unwrap().values["cores"], "4", "given on as it came");
    let error = resolve(&service, &bindings(), json!({"cores": "9"}), 8).await;
    assert!(error.unwrap_err().contains("cores: "));
}

#[test]
fn a_contract_that_cannot_be_answered_is_refused() {
    let read = |more: Value| {
        let bound = more.as_object().unwrap().clone();
        ParameterContract::read(&schema(), &bound)
            .unwrap_err()
            .to_string()
    };
    for (bound, says) in [
        (json!({"size": "ipam"}), "no input of the component"),
        (json!({"name": "dns"}), "no resolver `dns`"),
        (
            json!({"name": {"resolver": "naming", "inputs": {"resource_type": {"param": "x"}}}}),
            "needs `x`",
        ),
        (
            json!({"name": {"resolver": "naming", "inputs": {"resource_type": {"param": "gateway"}}},
                "gateway": {"resolver": "naming", "inputs": {"resource_type": {"param": "name"}}}}),
            "need each other",
        ),
    ] {
        let error = read(bound);
        assert!(error.contains(says), "{error}");
    }
}
