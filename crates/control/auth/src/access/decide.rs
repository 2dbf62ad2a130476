//! The question and the answer.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request,
    RestrictedExpression,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use nimbus_core::TenantId;
use serde::Serialize;

use super::condition::Conditions;
use super::policies::Policies;
use crate::role::Role;

/// How far down the tree an assignment counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssignmentReach {
    Own,
    Subtree,
}

/// A role that somebody has.
#[derive(Clone, Debug)]
pub struct Assignment {
    pub role: Role,
    pub tenant: TenantId,
    pub reach: AssignmentReach,
    pub conditions: Conditions,
    /// When it ends; `None` is never.
    pub until: Option<Timestamp>,
    /// The group through which it came.
    pub via: Option<String>,
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    pub id: String,
    pub assignments: Vec<Assignment>,
    /// The keys that an API key is limited to.
    pub limit: Option<BTreeSet<String>>,
    /// When what the caller proves itself with ends; `None` is never.
    pub until: Option<Timestamp>,
}

/// What it is about.
#[derive(Clone, Debug)]
pub struct Resource {
    pub tenant: TenantId,
    /// From the operator down to the tenant itself.
    pub path: Vec<TenantId>,
    pub kind: String,
    pub id: Option<String>,
    pub environment: Option<String>,
    pub tags: BTreeMap<String, String>,
}

impl Resource {
    /// Something in a tenant, outside of environments.
    pub fn in_tenant(path: &[TenantId], kind: &str) -> Option<Self> {
        Some(Self {
            tenant: *path.last()?,
            path: path.to_vec(),
            kind: kind.to_owned(),
            id: None,
            environment: None,
            tags: BTreeMap::new(),
        })
    }
}

/// Here and now.
#[derive(Clone, Debug)]
pub struct Circumstances {
    pub ip: Option<IpAddr>,
    pub now: Timestamp,
    pub location: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    pub allowed: bool,
    /// The policies that decided, in words.
    pub reasons: Vec<String>,
}

/// Asks Cedar.
#[derive(Debug, Default)]
pub struct PolicyEngine {
    authorizer: Authorizer,
}

impl PolicyEngine {
    pub fn decide(
        &self,
        caller: &Caller,
        permission: &str,
        resource: &Resource,
        circumstances: &Circumstances,
    ) -> Decision {
        let policies = Policies::of(caller, circumstances.now, true);
        match self.ask(&policies, caller, permission, resource, circumstances) {
            Some((allowed, mut reasons)) => {
                if reasons.is_empty() {
                    reasons = self.why_not(caller, permission, resource, circumstances);
                }
                Decision { allowed, reasons }
            }
            None => Decision {
                allowed: false,
                reasons: vec!["the question could not be put".to_owned()],
            },
        }
    }

    /// Nothing permitted it: because a condition was not met, or because no role has it.
    fn why_not(
        &self,
        caller: &Caller,
        permission: &str,
        resource: &Resource,
        circumstances: &Circumstances,
    ) -> Vec<String> {
        let unconditional = Policies::of(caller, circumstances.now, false);
        match self.ask(&unconditional, caller, permission, resource, circumstances) {
            Some((true, roles)) => roles
                .into_iter()
                .map(|role| format!("{role} would permit it, and its condition is not met"))
                .collect(),
            _ => vec![format!("no role permits {permission} here")],
        }
    }

    fn ask(
        &self,
        policies: &Policies,
        caller: &Caller,
        permission: &str,
        resource: &Resource,
        circumstances: &Circumstances,
    ) -> Option<(bool, Vec<String>)> {
        let principal = uid("Caller", &caller.id)?;
        let action = uid("Action", permission)?;
        let target = uid(
            "Resource",
            &format!(
                "{}/{}",
                resource.kind,
                resource.id.as_deref().unwrap_or("*")
            ),
        )?;
        let entities = entities(&target, resource)?;
        let context = context(caller, circumstances)?;
        let request = Request::new(principal, action, target, context, None).ok()?;
        let response = self
            .authorizer
            .is_authorized(&request, &policies.set, &entities);
        let reasons = response
            .diagnostics()
            .reason()
            .filter_map(|id| policies.words.get(id).cloned())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let allowed = response.decision() == cedar_policy::Decision::Allow;
        Some((allowed, reasons))
    }
}

fn uid(kind: &str, id: &str) -> Option<EntityUid> {
    let kind: EntityTypeName = kind.parse().ok()?;
    Some(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}

/// The resource, and the tenants above it as a chain.
fn entities(target: &EntityUid, resource: &Resource) -> Option<Entities> {
    let mut all = Vec::new();
    let mut above: Option<EntityUid> = None;
    for tenant in &resource.path {
        let tenant = uid("Tenant", &tenant.to_string())?;
        let parents: HashSet<_> = above.iter().cloned().collect();
        all.push(Entity::new_no_attrs(tenant.clone(), parents));
        above = Some(tenant);
    }
    let tenant = uid("Tenant", &resource.tenant.to_string())?;
    let tags = resource
        .tags
        .iter()
        .map(|(tag, value)| (tag.clone(), RestrictedExpression::new_string(value.clone())));
    let mut attributes = vec![
        (
            "tenant".to_owned(),
            RestrictedExpression::new_entity_uid(tenant.clone()),
        ),
        (
            "tags".to_owned(),
            RestrictedExpression::new_record(tags).ok()?,
        ),
    ];
    if let Some(environment) = &resource.environment {
        let value = RestrictedExpression::new_string(environment.clone());
        attributes.push(("environment".to_owned(), value));
    }
    let parents = HashSet::from([tenant]);
    all.push(Entity::new(target.clone(), attributes.into_iter().collect(), parents).ok()?);
    Entities::from_entities(all, None).ok()
}

fn context(caller: &Caller, circumstances: &Circumstances) -> Option<Context> {
    let mut pairs = Vec::new();
    if let Some(ip) = circumstances.ip {
        pairs.push((
            "ip".to_owned(),
            RestrictedExpression::new_ip(ip.to_string()),
        ));
    }
    if let Some(location) = &circumstances.location {
        let value = RestrictedExpression::new_string(location.clone());
        pairs.push(("location".to_owned(), value));
    }
    let zones: BTreeSet<_> = caller
        .assignments
        .iter()
        .filter_map(|assignment| assignment.conditions.time.as_ref())
        .map(|window| window.zone.as_str())
        .collect();
    let times = zones
        .into_iter()
        .filter_map(|zone| Some((zone.to_owned(), local_time(zone, circumstances.now)?)));
    pairs.push((
        "times".to_owned(),
        RestrictedExpression::new_record(times).ok()?,
    ));
    Context::from_pairs(pairs).ok()
}

fn local_time(zone: &str, now: Timestamp) -> Option<RestrictedExpression> {
    let local = now.to_zoned(TimeZone::get(zone).ok()?);
    let minute = i64::from(local.hour()) * 60 + i64::from(local.minute());
    let weekday = i64::from(local.weekday().to_monday_one_offset());
    let number = |name: &str, value| (name.to_owned(), RestrictedExpression::new_long(value));
    RestrictedExpression::new_record([number("minute", minute), number("weekday", weekday)]).ok()
}

#[cfg(test)]
mod tests;
