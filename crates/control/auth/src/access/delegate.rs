//! What somebody may pass on: never more than they hold.
//!
//! A decision asks about one moment and one place; what is passed on is used at other moments and in other
//! places. So this does not ask the decision. It compares what would be given with what the giver holds,
//! piece by piece: permission, tenant and reach, environments, conditions and end. Each piece that is given
//! lies inside one assignment of the giver, except that environments may come from several.

use std::collections::BTreeSet;

use jiff::Timestamp;
use nimbus_core::TenantId;

use super::condition::Conditions;
use super::decide::{Assignment, AssignmentReach, Caller};
use crate::role::{Environments, Grant};

/// Permissions that somebody would get.
#[derive(Clone, Copy, Debug)]
pub struct Delegation<'a> {
    pub grants: &'a [Grant],
    /// From the operator down to the tenant in which they count.
    pub path: &'a [TenantId],
    pub reach: AssignmentReach,
    /// When they count. `None` if that is decided later, by somebody who is asked again then.
    pub when: Option<Validity<'a>>,
}

/// Under which conditions and how long something counts.
#[derive(Clone, Copy, Debug)]
pub struct Validity<'a> {
    pub conditions: &'a Conditions,
    /// `None` is for ever.
    pub until: Option<Timestamp>,
}

/// What the giver does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    #[error("the permission {key}, which you do not have here")]
    Permission { key: String },
    #[error("the permission {key} in {environments}, which you do not have there")]
    Environments { key: String, environments: String },
    #[error(
        "the permission {key} at times, addresses, places or tags at which you do not have it yourself"
    )]
    Conditions { key: String },
    #[error("the permission {key} for longer than you have it yourself, which is until {until}")]
    Time { key: String, until: Timestamp },
}

impl Caller {
    /// The first permission of a delegation that the caller does not hold in full.
    pub fn exceeded_by(&self, given: &Delegation<'_>) -> Option<Excess> {
        given.grants.iter().find_map(|grant| {
            grant
                .permissions
                .iter()
                .find_map(|key| self.exceeded(key, grant, given))
        })
    }

    fn exceeded(&self, key: &str, grant: &Grant, given: &Delegation<'_>) -> Option<Excess> {
        let key_text = || key.to_owned();
        if self
            .limit
            .as_ref()
            .is_some_and(|limit| !limit.contains(key))
        {
            return Some(Excess::Permission { key: key_text() });
        }
        let here: Vec<_> = self
            .assignments
            .iter()
            .filter(|held| held.reaches(given.path, given.reach))
            .flat_map(|held| held.role.grants.iter().map(move |part| (held, part)))
            .filter(|(_, part)| part.permissions.contains(key))
            .collect();
        if here.is_empty() {
            return Some(Excess::Permission { key: key_text() });
        }
        if let Some(environments) = outside(here.iter().copied(), &grant.environments) {
            return Some(Excess::Environments {
                key: key_text(),
                environments,
            });
        }
        // Without one there is nothing more to compare, and nothing is exceeded.
        let when = given.when?;
        let met: Vec<_> = here
            .iter()
            .copied()
            .filter(|(held, _)| when.conditions.within(&held.conditions))
            .collect();
        if outside(met.iter().copied(), &grant.environments).is_some() {
            return Some(Excess::Conditions { key: key_text() });
        }
        let lasting = met
            .iter()
            .copied()
            .filter(|(held, _)| ends_within(when.until, earlier(held.until, self.until)));
        if outside(lasting, &grant.environments).is_some() {
            let until = met
                .iter()
                .filter_map(|(held, _)| earlier(held.until, self.until))
                .max()?;
            return Some(Excess::Time {
                key: key_text(),
                until,
            });
        }
        None
    }

    /// Whether the caller's assignments name a permission in a tenant at all, now or at another time.
    pub fn names(&self, key: &str, path: &[TenantId]) -> bool {
        self.limit.as_ref().is_none_or(|limit| limit.contains(key))
            && self.assignments.iter().any(|held| {
                held.reaches(path, AssignmentReach::Own) && held.role.keys().contains(key)
            })
    }
}

impl Assignment {
    fn reaches(&self, path: &[TenantId], reach: AssignmentReach) -> bool {
        match self.reach {
            AssignmentReach::Subtree => path.contains(&self.tenant),
            AssignmentReach::Own => {
                reach == AssignmentReach::Own && path.last() == Some(&self.tenant)
            }
        }
    }
}

/// The environments that none of these holdings has.
fn outside<'a>(
    held: impl Iterator<Item = (&'a Assignment, &'a Grant)>,
    wanted: &Environments,
) -> Option<String> {
    let mut any = false;
    let mut some: BTreeSet<&str> = BTreeSet::new();
    for (_, grant) in held {
        any = true;
        match &grant.environments {
            Environments::Any => return None,
            Environments::Only(names) => some.extend(names.iter().map(String::as_str)),
        }
    }
    match wanted {
        Environments::Any => Some("every environment".to_owned()),
        Environments::Only(names) => {
            let lacking: Vec<&str> = names
                .iter()
                .map(String::as_str)
                .filter(|name| !some.contains(name))
                .collect();
            if lacking.is_empty() && any {
                None
            } else {
                Some(lacking.join(", "))
            }
        }
    }
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn ends_within(given: Option<Timestamp>, held: Option<Timestamp>) -> bool {
    match (given, held) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(given), Some(held)) => given <= held,
    }
}

#[cfg(test)]
mod tests;
