//! Roles: named sets of permissions, some of them limited to environments.

use std::collections::BTreeSet;

use nimbus_core::EnvironmentName;
use serde::{Deserialize, Serialize};

use crate::permission::{self, Effect, Tier};

/// Where a permission of a role holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Environments {
    Any,
    Only(BTreeSet<String>),
}

impl Environments {
    pub fn only<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Only(names.into_iter().map(str::to_owned).collect())
    }
}

/// Some permissions and where they hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub permissions: BTreeSet<String>,
    pub environments: Environments,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub name: String,
    pub description: String,
    pub grants: Vec<Grant>,
}

impl Role {
    /// Every key that the role names, whatever the environment.
    pub fn keys(&self) -> BTreeSet<&str> {
        self.grants
            .iter()
            .flat_map(|grant| grant.permissions.iter().map(String::as_str))
            .collect()
    }

    /// A role of somebody's own making, or what is wrong with it.
    pub fn custom(name: &str, description: &str, grants: Vec<Grant>) -> Result<Self, RoleError> {
        let valid = (2..=64).contains(&name.len())
            && name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte)
            });
        if !valid {
            return Err(RoleError::Name);
        }
        if is_built_in(name) {
            return Err(RoleError::BuiltIn);
        }
        if grants.iter().all(|grant| grant.permissions.is_empty()) {
            return Err(RoleError::Empty);
        }
        let grants = grants.into_iter().map(resolved).collect::<Result<_, _>>()?;
        Ok(Self {
            name: name.to_owned(),
            description: description.to_owned(),
            grants,
        })
    }
}

fn resolved(grant: Grant) -> Result<Grant, RoleError> {
    let mut permissions = BTreeSet::new();
    for key in &grant.permissions {
        let keys = permission::resolve(key).ok_or_else(|| RoleError::UnknownKey(key.clone()))?;
        permissions.extend(keys.into_iter().map(str::to_owned));
    }
    Ok(Grant {
        permissions,
        ..grant
    })
}

/// What is wrong with a role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleError {
    #[error(
        "a role's name has 2 to 64 lower-case letters, digits, `-` and `_`, and starts with a letter"
    )]
    Name,
    #[error("a built-in role has this name")]
    BuiltIn,
    #[error("a role needs at least one permission")]
    Empty,
    #[error("there is no permission `{0}`")]
    UnknownKey(String),
}

/// The name of the role that runs the installation.
pub const PROVIDER_ADMIN: &str = "provider_admin";
/// The name of the role that runs a tenant.
pub const TENANT_ADMIN: &str = "tenant_admin";

/// The name of the role of document 004 that may everything inside a tenant.
pub const ADMIN: &str = "admin";

/// Names of the roles that every tenant has, with what they are for.
pub const BUILT_IN: &[(&str, &str)] = &[
    (
        PROVIDER_ADMIN,
        "runs the installation: everything, everywhere",
    ),
    (TENANT_ADMIN, "runs a tenant: everything inside it"),
    (
        "user",
        "works in a tenant: the permissions of the user tier",
    ),
    ("read_only", "looks, and changes nothing"),
    (ADMIN, "everything inside a tenant, in every environment"),
    (
        "developer",
        "deploys to and destroys dev and stage, reads prod",
    ),
    ("operator", "deploys to every environment, deletes nothing"),
    ("viewer", "looks at everything inside a tenant"),
];

pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|(own, _)| *own == name)
}

/// A built-in role.
pub fn built_in(name: &str) -> Option<Role> {
    let (name, description) = BUILT_IN.iter().find(|(own, _)| *own == name)?;
    let grants = match *name {
        PROVIDER_ADMIN => vec![anywhere(tier(Tier::Provider))],
        TENANT_ADMIN | ADMIN => vec![anywhere(tier(Tier::TenantAdmin))],
        "user" => vec![anywhere(tier(Tier::User))],
        "read_only" | "viewer" => vec![anywhere(tier(Tier::ReadOnly))],
        "developer" => developer(),
        "operator" => operator(),
        _ => return None,
    };
    Some(Role {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        grants,
    })
}

/// Switches an environment on and off, which nobody does to one that they change nothing in.
pub const SWITCH_ENVIRONMENT: &str = "deployment:environment:manage";

/// Works everywhere except that nothing in prod is changed. The two environments are those that the shipped
/// templates have before prod; a role is the same in every tenant, whatever its manifests call theirs. A tenant with
/// other names makes a role of its own, because an environment that nobody named must not be open by default.
fn developer() -> Vec<Grant> {
    let in_environments = permission::of_tier(Tier::TenantAdmin)
        .filter(|permission| matches!(permission.effect, Effect::Deploy | Effect::Destroy))
        .map(|permission| permission.key)
        .chain([SWITCH_ENVIRONMENT]);
    let elsewhere = permission::of_tier(Tier::User)
        .filter(|permission| matches!(permission.effect, Effect::Read | Effect::Write))
        .map(|permission| permission.key)
        // Switching prod off is a change of prod.
        .filter(|key| *key != SWITCH_ENVIRONMENT);
    let shipped = [EnvironmentName::DEV, EnvironmentName::STAGE];
    vec![
        anywhere(elsewhere.collect()),
        Grant {
            permissions: in_environments.map(str::to_owned).collect(),
            environments: Environments::only(shipped.iter().map(EnvironmentName::as_str)),
        },
    ]
}

/// Runs everything everywhere, and removes nothing.
fn operator() -> Vec<Grant> {
    let deploy = permission::of_tier(Tier::TenantAdmin)
        .filter(|permission| permission.effect == Effect::Deploy)
        .map(|permission| permission.key);
    let rest = permission::of_tier(Tier::User)
        .filter(|permission| matches!(permission.effect, Effect::Read | Effect::Write))
        .map(|permission| permission.key);
    vec![anywhere(deploy.chain(rest).collect())]
}

fn tier(tier: Tier) -> BTreeSet<&'static str> {
    permission::of_tier(tier)
        .map(|permission| permission.key)
        .collect()
}

fn anywhere(keys: BTreeSet<&'static str>) -> Grant {
    Grant {
        permissions: keys.into_iter().map(str::to_owned).collect(),
        environments: Environments::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_role_exists_and_permits_something() {
        for (name, _) in BUILT_IN {
            assert!(!built_in(name).unwrap().keys().is_empty(), "{name}");
        }
        assert_eq!(built_in("nobody"), None);
    }

    #[test]
    fn an_operator_has_no_delete_of_any_kind() {
        let operator = built_in("operator").unwrap();
        for key in operator.keys() {
            let effect = permission::find(key).unwrap().effect;
            assert!(!matches!(effect, Effect::Delete | Effect::Destroy), "{key}");
        }
    }

    #[test]
    fn a_viewer_only_reads() {
        for key in built_in("viewer").unwrap().keys() {
            assert_eq!(permission::find(key).unwrap().effect, Effect::Read, "{key}");
        }
    }

    #[test]
    fn custom_roles_name_permissions_that_exist() {
        let grant = |keys: &[&str]| {
            vec![Grant {
                permissions: keys.iter().map(|&key| key.to_owned()).collect(),
                environments: Environments::Any,
            }]
        };
        let role = Role::custom(
            "cmdb_write",
            "",
            grant(&["cmdb:write", "pulumi:template:manage"]),
        )
        .unwrap();
        assert_eq!(role.keys().len(), 4, "a superseded key stands for three");
        let refused = |name: &str, keys: &[&str]| Role::custom(name, "", grant(keys)).unwrap_err();
        assert_eq!(refused("Tenant Admin", &["cmdb:read"]), RoleError::Name);
        assert_eq!(refused("tenant_admin", &["cmdb:read"]), RoleError::BuiltIn);
        assert_eq!(refused("empty", &[]), RoleError::Empty);
        assert_eq!(
            refused("odd", &["x:y"]),
            RoleError::UnknownKey("x:y".to_owned())
        );
    }
}
