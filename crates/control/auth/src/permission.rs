//! Every permission there is: one list, from which roles, policies, documentation and tests come.
//!
//! A key reads `area:thing:action`; a few keys of the founding documents have two parts and keep
//! them. A key's tier is the lowest of the four tiers that has it by default. To add one: a line
//! below, in its area. A key is never renamed: roles in databases name it.

use serde::Serialize;

/// The tiers, lowest first. A tier has everything that the tiers below it have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    ReadOnly,
    User,
    TenantAdmin,
    /// Who runs the installation.
    Provider,
    /// No person: given to a program's key alone, one by one.
    System,
}

impl Tier {
    /// As the interface tells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "ReadOnly",
            Self::User => "User",
            Self::TenantAdmin => "TenantAdmin",
            Self::Provider => "Provider",
            Self::System => "System",
        }
    }
}

/// What a permission does to things, which decides how environments and 004's roles treat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Read,
    Write,
    /// Changes what runs in an environment.
    Deploy,
    /// Removes what runs in an environment.
    Destroy,
    /// Removes a record.
    Delete,
}

/// One thing that can be permitted.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Permission {
    pub key: &'static str,
    pub tier: Tier,
    pub effect: Effect,
    pub description: &'static str,
}

macro_rules! permissions {
    ($($key:literal $tier:ident $effect:ident $description:literal;)*) => {
        /// The registry.
        pub const PERMISSIONS: &[Permission] = &[$(Permission {
            key: $key,
            tier: Tier::$tier,
            effect: Effect::$effect,
            description: $description,
        },)*];
    };
}

permissions! {
    // Components and resolvers.
    "component:definition:read" ReadOnly Read "see components and their versions";
    "component:definition:create" TenantAdmin Write "create components";
    "component:definition:update" TenantAdmin Write "edit components";
    "component:definition:delete" TenantAdmin Delete "delete components";
    "component:definition:publish" Provider Write "publish component versions for every tenant";
    "component:version:publish" TenantAdmin Write "publish versions of the tenant's own components";
    "component:governance:read" ReadOnly Read "see the rules about components that hold for the tenant";
    "component:governance:manage" Provider Write "set what tenants may do with components";
    "semantic:definition:read" ReadOnly Read "see the semantic layer";
    "semantic:definition:manage" Provider Write "edit the semantic layer";
    "resolver:config:read" ReadOnly Read "see resolver configuration";
    "resolver:config:manage" Provider Write "change resolver configuration";
    "component:deploy" User Deploy "deploy a component";
    "component:destroy" TenantAdmin Destroy "destroy a deployed component";
    "component:upgrade" TenantAdmin Deploy "upgrade a deployed component";
    "component:preview" User Read "preview a component";
    "component:instance:read" ReadOnly Read "see deployed components";
    // Stacks.
    "stack:definition:read" ReadOnly Read "see stacks";
    "stack:definition:create" TenantAdmin Write "create stacks";
    "stack:definition:update" TenantAdmin Write "edit stacks";
    "stack:definition:delete" TenantAdmin Delete "delete stacks";
    "stack:definition:fork" TenantAdmin Write "fork stacks";
    "stack:definition:publish" Provider Write "publish stacks for every tenant";
    "stack:instance:read" ReadOnly Read "see stack instances";
    "stack:instance:deploy" User Deploy "deploy a stack";
    "stack:instance:destroy" TenantAdmin Destroy "destroy a stack instance";
    "stack:instance:upgrade" TenantAdmin Deploy "upgrade a stack instance";
    "stack:instance:day2" User Deploy "run a day-2 operation";
    // Deployments, as the orchestration API has them.
    "deployment:definition:read" ReadOnly Read "see deployments and their status";
    "deployment:definition:create" User Write "make a deployment";
    "deployment:definition:update" User Write "change a deployment's manifest";
    "deployment:definition:delete" TenantAdmin Delete "remove a deployment";
    "deployment:log:read" ReadOnly Read "read a deployment's logs";
    "deployment:state:read" User Read "read a deployment's state";
    "deployment:state:export" TenantAdmin Read "export a deployment's state";
    "deployment:state:repair" TenantAdmin Write "mend a deployment's state";
    "deployment:environment:manage" User Write "enable and disable environments of a deployment";
    "registry:stack:manage" TenantAdmin Write "register, change and unregister programs";
    "template:definition:read" ReadOnly Read "see templates";
    "template:definition:manage" TenantAdmin Write "create and delete templates";
    // Landing zones and environments.
    "landingzone:bootstrap:manage" Provider Write "control the bootstrap of landing zones";
    "landingzone:definition:read" ReadOnly Read "see landing zones";
    "landingzone:definition:create" TenantAdmin Write "create landing zones";
    "landingzone:definition:update" TenantAdmin Write "edit landing zones";
    "landingzone:definition:delete" TenantAdmin Delete "delete landing zones";
    "environment:definition:read" ReadOnly Read "see environments";
    "environment:definition:create" TenantAdmin Write "create environments";
    "environment:definition:update" TenantAdmin Write "edit environments";
    "environment:definition:delete" TenantAdmin Delete "delete environments";
    // Events.
    "events:source:manage" Provider Write "manage event sources";
    "events:rules:manage" TenantAdmin Write "manage routing rules";
    "events:log:read" ReadOnly Read "read the event log";
    "events:webhook:receive" System Write "post to the webhook receiver";
    // Configuration management, drift, cost, topology.
    "cmdb:read" ReadOnly Read "see configuration items";
    "cmdb:write" User Write "change configuration items";
    "cmdb:item:import" TenantAdmin Write "import configuration items";
    "drift:report:read" ReadOnly Read "see drift";
    "drift:report:decide" User Write "accept or reject drift";
    "drift:schedule:manage" TenantAdmin Write "set when drift is looked for";
    "cost:report:read" ReadOnly Read "see costs";
    "cost:budget:manage" TenantAdmin Write "set budgets";
    "topology:plan:read" ReadOnly Read "see topologies";
    "topology:plan:manage" User Write "draw topologies";
    // Approvals, workflows, impersonation, notifications.
    "approval:request:read" ReadOnly Read "see approvals";
    "approval:request:decide" TenantAdmin Write "approve and reject";
    "approval:policy:manage" TenantAdmin Write "set which environments need approval";
    "workflow:definition:read" ReadOnly Read "see workflow definitions";
    "workflow:definition:manage" TenantAdmin Write "edit workflow definitions";
    "workflow:run:signal" User Write "send signals to workflows";
    "impersonation:session:request" Provider Write "ask to act in another user's name";
    "impersonation:session:approve" TenantAdmin Write "let somebody act in a user's name";
    "breakglass:session:start" Provider Write "start emergency access";
    "notification:channel:manage" TenantAdmin Write "manage notification channels";
    "cloud:account:read" ReadOnly Read "see cloud accounts, without credentials";
    "cloud:account:manage" TenantAdmin Write "manage cloud accounts and their credentials";
    // Tenants and people.
    "tenant:definition:read" ReadOnly Read "see the tenant and its sub-tenants";
    "tenant:definition:create" TenantAdmin Write "create sub-tenants";
    "tenant:definition:update" TenantAdmin Write "rename tenants and change their settings";
    "tenant:definition:move" Provider Write "move a tenant in the tree";
    "tenant:definition:delete" Provider Delete "delete and restore tenants";
    "tenant:quota:manage" Provider Write "set what a tenant may use";
    "users:read" ReadOnly Read "see users, groups and service accounts";
    "users:account:create" TenantAdmin Write "create users and service accounts";
    "users:account:update" TenantAdmin Write "change, disable and enable users and service accounts";
    "users:account:delete" TenantAdmin Delete "delete users and service accounts";
    "users:group:manage" TenantAdmin Write "manage groups and their members";
    "users:session:read" TenantAdmin Read "see the sessions of others";
    "users:session:revoke" TenantAdmin Write "end the sessions of others";
    "users:key:read" TenantAdmin Read "see API keys, without their secrets";
    "users:key:manage" TenantAdmin Write "create and revoke API keys";
    "rbac:role:read" ReadOnly Read "see roles and who has them";
    "rbac:role:manage" TenantAdmin Write "create, change and delete roles";
    "rbac:assignment:manage" TenantAdmin Write "give and take roles";
    "rbac:decision:explain" TenantAdmin Read "ask why somebody may or may not do something";
    // Audit and the installation.
    "audit:log:read" TenantAdmin Read "read the audit trail";
    "audit:log:export" TenantAdmin Read "export the audit trail";
    "audit:log:verify" TenantAdmin Read "verify the audit trail";
    "audit:retention:manage" Provider Write "set how long the audit trail stays in the database";
    "system:setting:read" Provider Read "see the installation's settings";
    "system:setting:manage" Provider Write "change the installation's settings";
    "system:worker:join" Provider Write "carry runs out for the installation, with what they need of their tenants";
    "system:key:rotate" Provider Write "replace encryption keys";
}

/// Keys of the superseded document 001, and what they stand for today.
pub const LEGACY: &[(&str, &[&str])] = &[
    ("pulumi:template:read", &["component:definition:read"]),
    (
        "pulumi:template:manage",
        &[
            "component:definition:create",
            "component:definition:update",
            "component:definition:delete",
        ],
    ),
    ("pulumi:stack:deploy", &["component:deploy"]),
    ("pulumi:stack:destroy", &["component:destroy"]),
    ("pulumi:constraint:manage", &["component:governance:manage"]),
];

/// The permission of a key.
pub fn find(key: &str) -> Option<&'static Permission> {
    PERMISSIONS.iter().find(|permission| permission.key == key)
}

/// The keys that a word stands for: itself, what a legacy key maps to, or nothing.
pub fn resolve(key: &str) -> Option<Vec<&'static str>> {
    if let Some(permission) = find(key) {
        return Some(vec![permission.key]);
    }
    LEGACY
        .iter()
        .find(|(legacy, _)| *legacy == key)
        .map(|(_, keys)| keys.to_vec())
}

/// Everything that a tier has.
pub fn of_tier(tier: Tier) -> impl Iterator<Item = &'static Permission> {
    PERMISSIONS
        .iter()
        .filter(move |permission| permission.tier <= tier && permission.tier != Tier::System)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn tier_of(key: &str) -> Option<Tier> {
        find(key).map(|permission| permission.tier)
    }

    #[test]
    fn keys_are_unique_and_follow_the_grammar() {
        let keys: BTreeSet<_> = PERMISSIONS
            .iter()
            .map(|permission| permission.key)
            .collect();
        assert_eq!(keys.len(), PERMISSIONS.len());
        for permission in PERMISSIONS {
            let parts: Vec<_> = permission.key.split(':').collect();
            assert!((2..=3).contains(&parts.len()), "{}", permission.key);
            for part in parts {
                let valid = part
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
                assert!(valid && !part.is_empty(), "{}", permission.key);
            }
            assert!(!permission.description.is_empty());
        }
    }

    #[test]
    fn the_keys_of_the_component_document_have_their_tiers() {
        use Tier::{Provider, ReadOnly, System, TenantAdmin, User};
        for (key, tier) in [
            ("component:definition:read", ReadOnly),
            ("component:definition:create", TenantAdmin),
            ("component:definition:update", TenantAdmin),
            ("component:definition:delete", TenantAdmin),
            ("component:definition:publish", Provider),
            ("component:governance:manage", Provider),
            ("resolver:config:read", ReadOnly),
            ("resolver:config:manage", Provider),
            ("component:deploy", User),
            ("component:destroy", TenantAdmin),
            ("component:upgrade", TenantAdmin),
            ("component:preview", User),
            ("landingzone:bootstrap:manage", Provider),
            ("stack:definition:read", ReadOnly),
            ("stack:definition:create", TenantAdmin),
            ("stack:definition:update", TenantAdmin),
            ("stack:definition:publish", Provider),
            ("stack:instance:deploy", User),
            ("stack:instance:destroy", TenantAdmin),
            ("stack:instance:upgrade", TenantAdmin),
            ("stack:instance:day2", User),
            ("events:source:manage", Provider),
            ("events:rules:manage", TenantAdmin),
            ("events:log:read", ReadOnly),
            ("events:webhook:receive", System),
        ] {
            assert_eq!(tier_of(key), Some(tier), "{key}");
        }
    }

    #[test]
    fn the_keys_of_tokens_exist() {
        for key in ["cmdb:read", "cmdb:write", "users:read"] {
            assert!(find(key).is_some(), "{key}");
        }
    }

    #[test]
    fn superseded_keys_map_to_keys_of_the_same_tier() {
        use Tier::{Provider, ReadOnly, TenantAdmin, User};
        for (legacy, tier) in [
            ("pulumi:template:read", ReadOnly),
            ("pulumi:template:manage", TenantAdmin),
            ("pulumi:stack:deploy", User),
            ("pulumi:stack:destroy", TenantAdmin),
            ("pulumi:constraint:manage", Provider),
        ] {
            let keys = resolve(legacy).unwrap();
            assert!(!keys.is_empty());
            for key in keys {
                assert_eq!(tier_of(key), Some(tier), "{legacy} -> {key}");
            }
        }
        assert_eq!(resolve("component:deploy"), Some(vec!["component:deploy"]));
        assert_eq!(resolve("no:such:key"), None);
    }

    #[test]
    fn a_tier_has_what_the_tiers_below_it_have_and_nobody_has_system_keys() {
        let keys = |tier| of_tier(tier).map(|p| p.key).collect::<BTreeSet<_>>();
        let tiers = [
            Tier::ReadOnly,
            Tier::User,
            Tier::TenantAdmin,
            Tier::Provider,
        ];
        for pair in tiers.windows(2) {
            assert!(keys(pair[0]).is_subset(&keys(pair[1])));
            assert_ne!(keys(pair[0]), keys(pair[1]));
        }
        assert!(!keys(Tier::Provider).contains("events:webhook:receive"));
        assert!(of_tier(Tier::ReadOnly).all(|permission| permission.effect == Effect::Read));
    }
}
