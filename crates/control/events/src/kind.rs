//! Which kinds of events there are, who may hear them, and which recorded action tells which.
//!
//! A feature that has something to tell adds a line here. If what it does is recorded in the audit trail, a line of
//! [`TOLD_BY`] is all there is to it; anything else is published with `TenantTx::live_publish`.

/// Who hears an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Whoever has this permission in the event's tenant, and in its environment if it has one.
    Permission(&'static str),
    /// The same, and the person whom it is about.
    PersonOr(&'static str),
    /// The person whom it is about, and nobody else; without one, whoever has this permission.
    PersonElse(&'static str),
    /// The person whom it is about, and nobody else.
    Person,
}

/// What an event is about, for those who watch one thing and not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTopic {
    /// Something that a tenant has was made, changed or taken away.
    Resource,
    /// Something that runs went from one state to the next.
    State,
    /// What is there is not what was left there.
    Drift,
    Approval,
    Notification,
    Session,
    Audit,
}

impl EventTopic {
    /// The topic of a kind of this name: a new kind is of a resource unless its name says something else.
    pub fn of(name: &str) -> Self {
        match name.split_once('.').unwrap_or((name, "")) {
            (_, "status_changed" | "state_changed") => Self::State,
            ("drift", _) => Self::Drift,
            ("approval", _) => Self::Approval,
            ("notification", _) => Self::Notification,
            ("session" | "impersonation", _) => Self::Session,
            ("audit", _) => Self::Audit,
            _ => Self::Resource,
        }
    }
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKind {
    pub name: &'static str,
    pub audience: Audience,
}

macro_rules! kinds {
    ($($name:ident = $text:literal $audience:expr;)*) => {
        $(pub const $name: EventKind = EventKind { name: $text, audience: $audience };)*

        /// The registry.
        pub const KINDS: &[EventKind] = &[$($name,)*];
    };
}

use Audience::{Permission, Person, PersonElse, PersonOr};

const APPROVALS: Audience = PersonElse("approval:request:read");
const AUDIT: Audience = Permission("audit:log:read");
const CMDB: Audience = Permission("cmdb:read");
const CLOUD: Audience = Permission("cloud:account:read");
const DEPLOYMENTS: Audience = Permission("deployment:definition:read");
const DRIFT: Audience = Permission("drift:report:read");
const KEYS: Audience = Permission("users:key:read");
const PROGRAMS: Audience = Permission("component:definition:read");
const ROLES: Audience = Permission("rbac:role:read");
const RUNS: Audience = Permission("deployment:log:read");
const TEMPLATES: Audience = Permission("template:definition:read");
const TENANTS: Audience = Permission("tenant:definition:read");
const USERS: Audience = Permission("users:read");
const USER: Audience = PersonOr("users:read");

kinds! {
    AUDIT_RECORDED = "audit.recorded" AUDIT;

    RUN_STATUS_CHANGED = "run.status_changed" DEPLOYMENTS;
    UNIT_STATUS_CHANGED = "unit.status_changed" RUNS;
    DRIFT_DETECTED = "drift.detected" DRIFT;
    CMDB_CHANGED = "cmdb.changed" CMDB;
    RESOURCE_CREATED = "resource.created" CMDB;
    RESOURCE_UPDATED = "resource.updated" CMDB;
    RESOURCE_DELETED = "resource.deleted" CMDB;

    APPROVAL_REQUIRED = "approval.required" APPROVALS;
    APPROVAL_CHANGED = "approval.changed" APPROVALS;
    APPROVAL_COMPLETED = "approval.completed" APPROVALS;
    APPROVAL_POLICY_CHANGED = "approval_policy.changed" APPROVALS;
    NOTIFICATION_NEW = "notification.new" Person;

    DEPLOYMENT_CREATED = "deployment.created" DEPLOYMENTS;
    DEPLOYMENT_UPDATED = "deployment.updated" DEPLOYMENTS;
    DEPLOYMENT_DELETED = "deployment.deleted" DEPLOYMENTS;
    ENVIRONMENT_ENABLED = "environment.enabled" DEPLOYMENTS;
    ENVIRONMENT_DISABLED = "environment.disabled" DEPLOYMENTS;
    STACK_REGISTERED = "stack.registered" PROGRAMS;
    STACK_UPDATED = "stack.updated" PROGRAMS;
    STACK_UNREGISTERED = "stack.unregistered" PROGRAMS;
    TEMPLATE_CREATED = "template.created" TEMPLATES;
    TEMPLATE_DELETED = "template.deleted" TEMPLATES;
    WORKSPACE_CHANGED = "workspace.changed" PROGRAMS;
    CLOUD_ACCOUNT_CHANGED = "cloud_account.changed" CLOUD;
    CLOUD_ACCOUNT_DELETED = "cloud_account.deleted" CLOUD;

    TENANT_CREATED = "tenant.created" TENANTS;
    TENANT_UPDATED = "tenant.updated" TENANTS;
    TENANT_MOVED = "tenant.moved" TENANTS;
    TENANT_DELETED = "tenant.deleted" TENANTS;
    TENANT_RESTORED = "tenant.restored" TENANTS;
    USER_CREATED = "user.created" USER;
    USER_UPDATED = "user.updated" USER;
    USER_DELETED = "user.deleted" USER;
    GROUP_CREATED = "group.created" USERS;
    GROUP_UPDATED = "group.updated" USERS;
    GROUP_DELETED = "group.deleted" USERS;
    KEY_CREATED = "key.created" KEYS;
    KEY_REVOKED = "key.revoked" KEYS;
    ROLE_CREATED = "role.created" ROLES;
    ROLE_UPDATED = "role.updated" ROLES;
    ROLE_DELETED = "role.deleted" ROLES;
    ROLE_ASSIGNED = "role.assigned" ROLES;
    ROLE_UNASSIGNED = "role.unassigned" ROLES;
    SESSION_STARTED = "session.started" Person;
    SESSION_ENDED = "session.ended" Person;
}

/// Whom an event that is told by a recorded action is about, besides the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Nobody in particular.
    Nobody,
    /// Who acted.
    Actor,
    /// The user whom the record is on.
    Resource,
}

/// Actions of the audit trail and what they tell once they are done.
pub const TOLD_BY: &[(&str, EventKind, About)] = &[
    (
        "approvals.policies.put",
        APPROVAL_POLICY_CHANGED,
        About::Nobody,
    ),
    (
        "approvals.policies.delete",
        APPROVAL_POLICY_CHANGED,
        About::Nobody,
    ),
    ("cmdb.items.update", CMDB_CHANGED, About::Nobody),
    ("cmdb.relationships.create", CMDB_CHANGED, About::Nobody),
    ("cmdb.relationships.delete", CMDB_CHANGED, About::Nobody),
    ("cmdb.compartments.create", CMDB_CHANGED, About::Nobody),
    ("cmdb.imports.create", CMDB_CHANGED, About::Nobody),
    ("deployments.create", DEPLOYMENT_CREATED, About::Nobody),
    ("deployments.update", DEPLOYMENT_UPDATED, About::Nobody),
    ("deployments.delete", DEPLOYMENT_DELETED, About::Nobody),
    ("environments.enable", ENVIRONMENT_ENABLED, About::Nobody),
    ("environments.disable", ENVIRONMENT_DISABLED, About::Nobody),
    ("stacks.register", STACK_REGISTERED, About::Nobody),
    ("stacks.update", STACK_UPDATED, About::Nobody),
    ("stacks.unregister", STACK_UNREGISTERED, About::Nobody),
    ("templates.create", TEMPLATE_CREATED, About::Nobody),
    ("templates.delete", TEMPLATE_DELETED, About::Nobody),
    ("workspace.change", WORKSPACE_CHANGED, About::Nobody),
    ("cloud_accounts.put", CLOUD_ACCOUNT_CHANGED, About::Nobody),
    (
        "cloud_accounts.delete",
        CLOUD_ACCOUNT_DELETED,
        About::Nobody,
    ),
    ("tenants.create", TENANT_CREATED, About::Nobody),
    ("tenants.update", TENANT_UPDATED, About::Nobody),
    ("tenants.quotas.set", TENANT_UPDATED, About::Nobody),
    ("tenants.move", TENANT_MOVED, About::Nobody),
    ("tenants.delete", TENANT_DELETED, About::Nobody),
    ("tenants.restore", TENANT_RESTORED, About::Nobody),
    ("users.create", USER_CREATED, About::Resource),
    ("users.update", USER_UPDATED, About::Resource),
    ("users.delete", USER_DELETED, About::Resource),
    ("users.sessions.revoke", SESSION_ENDED, About::Resource),
    ("groups.create", GROUP_CREATED, About::Nobody),
    ("groups.update", GROUP_UPDATED, About::Nobody),
    ("groups.members.add", GROUP_UPDATED, About::Nobody),
    ("groups.members.remove", GROUP_UPDATED, About::Nobody),
    ("groups.delete", GROUP_DELETED, About::Nobody),
    ("keys.create", KEY_CREATED, About::Nobody),
    ("keys.revoke", KEY_REVOKED, About::Nobody),
    ("roles.create", ROLE_CREATED, About::Nobody),
    ("roles.update", ROLE_UPDATED, About::Nobody),
    ("roles.delete", ROLE_DELETED, About::Nobody),
    ("roles.assign", ROLE_ASSIGNED, About::Nobody),
    ("roles.unassign", ROLE_UNASSIGNED, About::Nobody),
    ("auth.login", SESSION_STARTED, About::Actor),
    ("auth.logout", SESSION_ENDED, About::Actor),
    ("auth.sessions.revoke", SESSION_ENDED, About::Actor),
    ("auth.sessions.revoke_others", SESSION_ENDED, About::Actor),
    ("auth.password.change", SESSION_ENDED, About::Actor),
];

/// What a recorded action tells.
pub fn told_by(action: &str) -> Option<(EventKind, About)> {
    TOLD_BY
        .iter()
        .find(|(known, _, _)| *known == action)
        .map(|(_, kind, about)| (*kind, *about))
}

/// The kind of this name. One that another version wrote is unknown, and told to nobody.
pub fn find(name: &str) -> Option<EventKind> {
    KINDS.iter().find(|kind| kind.name == name).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_its_topic() {
        let of = |topic| {
            let kinds = KINDS.iter().map(|kind| kind.name);
            kinds
                .filter(|name| EventTopic::of(name) == topic)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(EventTopic::State),
            ["run.status_changed", "unit.status_changed"]
        );
        assert_eq!(of(EventTopic::Drift), ["drift.detected"]);
        assert_eq!(
            of(EventTopic::Approval),
            [
                "approval.required",
                "approval.changed",
                "approval.completed"
            ]
        );
        assert_eq!(of(EventTopic::Notification), ["notification.new"]);
        assert_eq!(of(EventTopic::Audit), ["audit.recorded"]);
        // What is for one person alone is no change of a resource of the tenant.
        for name in of(EventTopic::Resource) {
            assert!(find(name).is_some_and(|kind| kind.audience != Person));
        }
    }

    #[test]
    fn kinds_have_names_of_two_words_and_actions_tell_one_thing() {
        let names: BTreeSet<_> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        for name in names {
            assert_eq!(name.split('.').count(), 2, "{name}");
            assert!(
                name.chars()
                    .all(|c| c.is_ascii_lowercase() || c == '.' || c == '_')
            );
        }
        let actions: BTreeSet<_> = TOLD_BY.iter().map(|(action, _, _)| action).collect();
        assert_eq!(actions.len(), TOLD_BY.len());
        for (action, kind, about) in TOLD_BY {
            assert!(find(kind.name).is_some(), "{action}");
            // What only its person hears has one.
            assert!(
                kind.audience != Person || *about != About::Nobody,
                "{action}"
            );
        }
    }
}
