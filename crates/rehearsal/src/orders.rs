//! What a user tells the simulated cloud to do wrong, how slow to be and how much to allow.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nimbus_core::Result;
use nimbus_document::{Document, View};
use parking_lot::Mutex;
use serde_json::{Map, Value};

/// A call to the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    Create,
    Read,
    Update,
    Delete,
}

/// What happens instead of, or before, what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The cloud refuses.
    Fail { message: String },
    /// The cloud acts, and the answer is lost.
    Lose,
    /// The object is made but does not become ready.
    Half { message: String },
    /// Nothing for so long, then as usual.
    Stall(Duration),
    /// The object is gone before it is looked at.
    Vanish,
}

/// See the module's documentation. Rules are tried in order; the first that fits acts.
#[derive(Debug)]
pub struct Orders {
    pub region: String,
    pub account: String,
    rules: Vec<Rule>,
    seen: Mutex<Vec<usize>>,
    latency: Latency,
    quotas: BTreeMap<String, usize>,
    /// Objects that exist before anything is deployed.
    pub planted: Vec<Planted>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Planted {
    pub type_: String,
    pub id: String,
    pub properties: Map<String, Value>,
}

#[derive(Debug)]
struct Rule {
    call: Option<Call>,
    type_: Option<String>,
    name: Option<String>,
    /// Only the nth call that fits, from 1.
    nth: Option<usize>,
    action: Action,
}

#[derive(Debug, Default)]
struct Latency {
    /// Everything is multiplied by this.
    scale: f64,
    usual: BTreeMap<Call, f64>,
    types: BTreeMap<String, BTreeMap<Call, f64>>,
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            region: "us-east-1".to_owned(),
            account: "123456789012".to_owned(),
            rules: Vec::new(),
            seen: Mutex::default(),
            latency: Latency {
                scale: 1.0,
                ..Latency::default()
            },
            quotas: BTreeMap::new(),
            planted: Vec::new(),
        }
    }
}

impl Orders {
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_document(&Document::read(path)?)
    }

    pub fn from_document(document: &Document) -> Result<Self> {
        let view = document.view();
        view.only_keys(&[
            "region", "account", "orders", "latency", "quotas", "objects",
        ])?;
        let mut orders = Self::default();
        if let Some(region) = view.optional("region")? {
            orders.region = region.str()?.to_owned();
        }
        if let Some(account) = view.optional("account")? {
            orders.account = account.scalar_text()?.to_owned();
        }
        if let Some(list) = view.optional("orders")? {
            orders.rules = list
                .items()?
                .map(|item| rule(&item))
                .collect::<Result<_>>()?;
        }
        if let Some(latency) = view.optional("latency")? {
            orders.latency = read_latency(&latency)?;
        }
        if let Some(quotas) = view.optional("quotas")? {
            for (type_, most) in quotas.entries()? {
                orders.quotas.insert(type_.to_owned(), most.u64()? as usize);
            }
        }
        if let Some(objects) = view.optional("objects")? {
            orders.planted = objects
                .items()?
                .map(|item| planted(&item))
                .collect::<Result<_>>()?;
        }
        *orders.seen.lock() = vec![0; orders.rules.len()];
        Ok(orders)
    }

    /// Adds an order that is written as in the file: `on: create, type: aws:s3/bucket:Bucket, do: fail`.
    pub fn add(&mut self, text: &str) -> Result<()> {
        let text = text.trim();
        let text = if text.starts_with('{') {
            text.to_owned()
        } else {
            format!("{{{text}}}")
        };
        let document = Document::parse("order", &text)?;
        self.rules.push(rule(&document.view())?);
        self.seen.lock().push(0);
        Ok(())
    }

    /// How long calls take that nothing else is said about.
    pub fn slow_down(&mut self, seconds: f64) {
        for call in [Call::Create, Call::Read, Call::Update, Call::Delete] {
            self.latency.usual.entry(call).or_insert(seconds);
        }
    }

    /// What to do with this call; counts it.
    pub fn action(&self, call: Call, type_: &str, name: &str) -> Option<Action> {
        let mut seen = self.seen.lock();
        for (at, rule) in self.rules.iter().enumerate() {
            let fits = rule.call.is_none_or(|known| known == call)
                && rule.type_.as_deref().is_none_or(|known| known == type_)
                && rule.name.as_deref().is_none_or(|known| known == name);
            if !fits {
                continue;
            }
            seen[at] += 1;
            if rule.nth.is_none_or(|nth| nth == seen[at]) {
                return Some(rule.action.clone());
            }
        }
        None
    }

    /// How long this call takes.
    pub fn latency(&self, call: Call, type_: &str) -> Duration {
        let own = self
            .latency
            .types
            .get(type_)
            .and_then(|calls| calls.get(&call));
        let seconds = own
            .or_else(|| self.latency.usual.get(&call))
            .copied()
            .unwrap_or(0.0);
        Duration::try_from_secs_f64(seconds * self.latency.scale).unwrap_or_default()
    }

    pub fn quota(&self, type_: &str) -> Option<usize> {
        self.quotas.get(type_).copied()
    }
}

fn rule(view: &View<'_>) -> Result<Rule> {
    view.only_keys(&["on", "type", "name", "nth", "do", "message", "seconds"])?;
    let text = |key: &str| -> Result<Option<String>> {
        view.optional(key)?
            .map(|v| v.str().map(str::to_owned))
            .transpose()
    };
    let call = match view.optional("on")? {
        None => None,
        Some(on) if on.str()? == "any" => None,
        Some(on) => Some(call(&on)?),
    };
    let message =
        text("message")?.unwrap_or_else(|| "refused by order of the rehearsal".to_owned());
    let seconds = view
        .optional("seconds")?
        .map(|v| v.f64())
        .transpose()?
        .unwrap_or(30.0);
    let what = view.required("do")?;
    let action = match what.str()? {
        "fail" => Action::Fail { message },
        "throttle" => Action::Fail {
            message: "ThrottlingException: Rate exceeded".to_owned(),
        },
        "lose" => Action::Lose,
        "half" => Action::Half { message },
        "stall" => Action::Stall(Duration::try_from_secs_f64(seconds).unwrap_or_default()),
        "vanish" => Action::Vanish,
        _ => {
            let help = "one of fail, throttle, lose, half, stall, vanish";
            return Err(what.error("there is no such order", help));
        }
    };
    let nth = view.optional("nth")?.map(|v| v.u64()).transpose()?;
    Ok(Rule {
        call,
        type_: text("type")?,
        name: text("name")?,
        nth: nth.map(|n| n as usize),
        action,
    })
}

fn call(view: &View<'_>) -> Result<Call> {
    Ok(match view.str()? {
        "create" => Call::Create,
        "read" => Call::Read,
        "update" => Call::Update,
        "delete" => Call::Delete,
        _ => {
            return Err(view.error(
                "there is no such call",
                "one of create, read, update, delete",
            ));
        }
    })
}

fn read_latency(view: &View<'_>) -> Result<Latency> {
    view.only_keys(&["scale", "create", "read", "update", "delete", "types"])?;
    let calls = |view: &View<'_>| -> Result<BTreeMap<Call, f64>> {
        let mut found = BTreeMap::new();
        for (key, call) in [
            ("create", Call::Create),
            ("read", Call::Read),
            ("update", Call::Update),
            ("delete", Call::Delete),
        ] {
            if let Some(seconds) = view.optional(key)? {
                found.insert(call, seconds.f64()?);
            }
        }
        Ok(found)
    };
    let mut types = BTreeMap::new();
    if let Some(list) = view.optional("types")? {
        for (type_, own) in list.entries()? {
            types.insert(type_.to_owned(), calls(&own)?);
        }
    }
    let scale = view
        .optional("scale")?
        .map(|v| v.f64())
        .transpose()?
        .unwrap_or(1.0);
    Ok(Latency {
        scale,
        usual: calls(view)?,
        types,
    })
}

fn planted(view: &View<'_>) -> Result<Planted> {
    view.only_keys(&["type", "id", "properties"])?;
    let properties = match view.optional("properties")? {
        Some(properties) => match view.document().to_json(properties.node())? {
            Value::Object(map) => map,
            _ => return Err(properties.error("properties must be a mapping", "here")),
        },
        None => Map::new(),
    };
    Ok(Planted {
        type_: view.required("type")?.str()?.to_owned(),
        id: view.required("id")?.scalar_text()?.to_owned(),
        properties,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(text: &str) -> Result<Orders> {
        Orders::from_document(&Document::parse("orders.yaml", text).unwrap())
    }

    #[test]
    fn the_nth_call_of_a_type_fails_and_no_other() {
        let orders =
            orders("orders: [{on: create, type: a:b:C, nth: 2, do: fail, message: full}]").unwrap();
        let create = || orders.action(Call::Create, "a:b:C", "x");
        assert_eq!(create(), None);
        assert_eq!(orders.action(Call::Create, "other", "x"), None);
        assert_eq!(
            create(),
            Some(Action::Fail {
                message: "full".to_owned()
            })
        );
        assert_eq!(create(), None);
    }

    #[test]
    fn orders_are_added_one_by_one_and_slowness_is_a_default() {
        let mut orders = orders("latency: {create: 2}").unwrap();
        orders
            .add("on: delete, type: a:b:C, nth: 2, do: lose")
            .unwrap();
        orders.add("{name: db, do: vanish}").unwrap();
        assert_eq!(orders.action(Call::Delete, "a:b:C", "x"), None);
        assert_eq!(orders.action(Call::Read, "t", "db"), Some(Action::Vanish));
        assert_eq!(
            orders.action(Call::Delete, "a:b:C", "x"),
            Some(Action::Lose)
        );
        orders.slow_down(0.5);
        assert_eq!(orders.latency(Call::Create, "x"), Duration::from_secs(2));
        assert_eq!(orders.latency(Call::Read, "x"), Duration::from_millis(500));
        for wrong in ["", "do: dance", "on: create", "do: fail, on: never"] {
            assert!(orders.add(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_alone_means_every_call() {
        let orders = orders("orders: [{name: db, do: lose}]").unwrap();
        for call in [Call::Create, Call::Read, Call::Update, Call::Delete] {
            assert_eq!(orders.action(call, "t", "db"), Some(Action::Lose));
            assert_eq!(orders.action(call, "t", "web"), None);
        }
    }

    #[test]
    fn latency_is_scaled_and_types_come_first() {
        let orders =
            orders("latency: {scale: 0.01, create: 10, types: {a:b:Db: {create: 300}}}").unwrap();
        assert_eq!(
            orders.latency(Call::Create, "x"),
            Duration::from_millis(100)
        );
        assert_eq!(
            orders.latency(Call::Create, "a:b:Db"),
            Duration::from_secs(3)
        );
        assert_eq!(orders.latency(Call::Delete, "x"), Duration::ZERO);
    }

    #[test]
    fn wrong_orders_are_refused() {
        for text in [
            "orders: [{do: explode}]",
            "orders: [{on: creation, do: fail}]",
            "orders: [{typ: x, do: fail}]",
            "latency: {create: fast}",
            "quotas: {x: -1}",
        ] {
            assert!(orders(text).is_err(), "{text}");
        }
    }
}
