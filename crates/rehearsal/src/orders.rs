//! What a user tells the simulated cloud to do wrong, how slow to be and how much to allow.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nimbus_core::Result;
use nimbus_document::{Document, View};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::latency::{self, Latencies};
use crate::pattern::Pattern;

const USUAL_STALL: Duration = Duration::from_secs(30);
const USUAL_THROTTLES: u32 = 3;

/// A call to the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CloudCall {
    Create,
    Read,
    Update,
    Delete,
}

impl CloudCall {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// What happens instead of, or before, what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderedEffect {
    /// The cloud refuses.
    Fail { message: String },
    /// The cloud acts, and the answer is lost.
    Lose,
    /// The object is made but does not become ready.
    Half { message: String },
    /// Nothing for so long, then as usual.
    Stall(Duration),
    /// So many attempts are refused because there were too many before; a provider tries again.
    Throttle { times: u32 },
    /// The object is gone before it is looked at.
    Vanish,
}

/// The account that a simulated cloud is in. Shared with whoever reads the manifest: it is read once more
/// under a lock, when the cloud is open already, and what it says then is what counts.
#[derive(Clone, Debug, Default)]
pub struct SimulatedAccount(Arc<Mutex<Option<String>>>);

impl SimulatedAccount {
    pub fn set(&self, account: Option<&str>) {
        *self.0.lock() = account.map(str::to_owned);
    }
}

/// See the module's documentation. Rules are tried in order; the first that fits acts.
#[derive(Debug)]
pub struct FaultOrders {
    pub region: String,
    /// What orders say; otherwise what is declared.
    account: Option<String>,
    declared: SimulatedAccount,
    rules: Vec<FaultRule>,
    seen: Mutex<Vec<usize>>,
    pub latencies: Latencies,
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
struct FaultRule {
    call: Option<CloudCall>,
    type_: Option<Pattern>,
    name: Option<String>,
    /// Only the nth call that fits, from 1.
    nth: Option<usize>,
    action: OrderedEffect,
}

impl Default for FaultOrders {
    fn default() -> Self {
        Self {
            region: "us-east-1".to_owned(),
            account: None,
            declared: SimulatedAccount::default(),
            rules: Vec::new(),
            seen: Mutex::default(),
            latencies: Latencies::default(),
            quotas: BTreeMap::new(),
            planted: Vec::new(),
        }
    }
}

impl FaultOrders {
    /// The account that is simulated, unless orders name another.
    #[must_use]
    pub fn in_account(mut self, declared: &SimulatedAccount) -> Self {
        self.declared = declared.clone();
        self
    }

    pub(crate) fn account(&self) -> String {
        let ordered = self.account.clone();
        let account = ordered.or_else(|| self.declared.0.lock().clone());
        account.unwrap_or_else(|| "123456789012".to_owned())
    }

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
            orders.account = Some(account.scalar_text()?.to_owned());
        }
        if let Some(list) = view.optional("orders")? {
            orders.rules = list
                .items()?
                .map(|item| rule(&item))
                .collect::<Result<_>>()?;
        }
        if let Some(latency) = view.optional("latency")? {
            orders.latencies = Latencies::from_view(&latency)?;
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

    /// The same cloud without anything that was ordered to go wrong or to be slow.
    #[must_use]
    pub fn without_faults(mut self) -> Self {
        self.rules.clear();
        self.seen.lock().clear();
        self.latencies = Latencies::default();
        self
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

    /// What to do with this call; counts it.
    pub fn action(&self, call: CloudCall, type_: &str, name: &str) -> Option<OrderedEffect> {
        let mut seen = self.seen.lock();
        for (at, rule) in self.rules.iter().enumerate() {
            let fits = rule.call.is_none_or(|known| known == call)
                && rule.type_.as_ref().is_none_or(|known| known.fits(type_))
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

    pub fn quota(&self, type_: &str) -> Option<usize> {
        self.quotas.get(type_).copied()
    }
}

fn rule(view: &View<'_>) -> Result<FaultRule> {
    view.only_keys(&[
        "on", "type", "name", "nth", "do", "message", "seconds", "times",
    ])?;
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
    let stall = view.optional("seconds")?;
    let stall = stall.as_ref().map(latency::time).transpose()?;
    let times = view.optional("times")?;
    let what = view.required("do")?;
    let action = match what.str()? {
        "fail" => OrderedEffect::Fail { message },
        "throttle" => OrderedEffect::Throttle {
            times: times.as_ref().map_or(Ok(USUAL_THROTTLES), throttles)?,
        },
        "lose" => OrderedEffect::Lose,
        "half" => OrderedEffect::Half { message },
        "stall" => OrderedEffect::Stall(stall.unwrap_or(USUAL_STALL)),
        "vanish" => OrderedEffect::Vanish,
        _ => {
            let help = "one of fail, throttle, lose, half, stall, vanish";
            return Err(what.error("there is no such order", help));
        }
    };
    let nth = view.optional("nth")?.map(|v| v.u64()).transpose()?;
    Ok(FaultRule {
        call,
        type_: text("type")?.map(Pattern::new),
        name: text("name")?,
        nth: nth.map(|n| n as usize),
        action,
    })
}

fn throttles(view: &View<'_>) -> Result<u32> {
    let times = u32::try_from(view.u64()?).ok().filter(|times| *times > 0);
    times.ok_or_else(|| view.error("this is no number of attempts", "one or more"))
}

fn call(view: &View<'_>) -> Result<CloudCall> {
    Ok(match view.str()? {
        "create" => CloudCall::Create,
        "read" => CloudCall::Read,
        "update" => CloudCall::Update,
        "delete" => CloudCall::Delete,
        _ => {
            return Err(view.error(
                "there is no such call",
                "one of create, read, update, delete",
            ));
        }
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

    fn orders(text: &str) -> Result<FaultOrders> {
        FaultOrders::from_document(&Document::parse("orders.yaml", text).unwrap())
    }

    #[test]
    fn the_nth_call_of_a_type_fails_and_no_other() {
        let orders =
            orders("orders: [{on: create, type: a:b:C, nth: 2, do: fail, message: full}]").unwrap();
        let create = || orders.action(CloudCall::Create, "a:b:C", "x");
        assert_eq!(create(), None);
        assert_eq!(orders.action(CloudCall::Create, "other", "x"), None);
        assert_eq!(
            create(),
            Some(OrderedEffect::Fail {
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
        assert_eq!(orders.action(CloudCall::Delete, "a:b:C", "x"), None);
        assert_eq!(
            orders.action(CloudCall::Read, "t", "db"),
            Some(OrderedEffect::Vanish)
        );
        assert_eq!(
            orders.action(CloudCall::Delete, "a:b:C", "x"),
            Some(OrderedEffect::Lose)
        );
        orders.latencies.or_seconds(0.5);
        let takes = |call| orders.latencies.of(call, "x", "urn");
        assert_eq!(takes(CloudCall::Create), Duration::from_secs(2));
        assert_eq!(takes(CloudCall::Read), Duration::from_millis(500));
        for wrong in ["", "do: dance", "on: create", "do: fail, on: never"] {
            assert!(orders.add(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_alone_means_every_call() {
        let orders = orders("orders: [{name: db, do: lose}]").unwrap();
        for call in [
            CloudCall::Create,
            CloudCall::Read,
            CloudCall::Update,
            CloudCall::Delete,
        ] {
            assert_eq!(orders.action(call, "t", "db"), Some(OrderedEffect::Lose));
            assert_eq!(orders.action(call, "t", "web"), None);
        }
    }

    #[test]
    fn orders_name_types_by_pattern_and_say_how_long_and_how_often() {
        let orders = orders(
            "orders: [{type: 'aws:rds/*', do: stall, seconds: 2m}, {type: a, do: throttle, times: 9}, {do: throttle}]",
        )
        .unwrap();
        let action = |type_| orders.action(CloudCall::Create, type_, "x");
        assert_eq!(
            action("aws:rds/instance:Instance"),
            Some(OrderedEffect::Stall(Duration::from_secs(120)))
        );
        assert_eq!(action("a"), Some(OrderedEffect::Throttle { times: 9 }));
        assert_eq!(action("b"), Some(OrderedEffect::Throttle { times: 3 }));
    }

    #[test]
    fn wrong_orders_are_refused() {
        for text in [
            "orders: [{do: explode}]",
            "orders: [{on: creation, do: fail}]",
            "orders: [{typ: x, do: fail}]",
            "latency: {create: fast}",
            "orders: [{do: stall, seconds: -1}]",
            "orders: [{do: throttle, times: 0}]",
            "orders: [{do: throttle, times: often}]",
            "quotas: {x: -1}",
        ] {
            assert!(orders(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_account_is_the_one_declared_last_unless_orders_name_another() {
        let declared = SimulatedAccount::default();
        let orders = FaultOrders::default().in_account(&declared);
        assert_eq!(orders.account(), "123456789012");
        for account in ["111111111111", "222222222222"] {
            declared.set(Some(account));
            assert_eq!(orders.account(), account);
        }
        let document = Document::parse("orders", "account: '333333333333'\n").unwrap();
        let ordered = FaultOrders::from_document(&document).unwrap();
        assert_eq!(ordered.in_account(&declared).account(), "333333333333");
    }
}
