//! What goes over the wire. Ids are text, times are RFC 3339, and unknown fields of inputs are
//! refused: tenant, owner and status come from the server alone.
//!
//! Here is what all of them share; their bodies are in a file per resource.

mod audit;
mod roles;
mod sign_in;
mod tenants;
mod users;

use nimbus_control_app as app;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use audit::{AuditEntryBody, AuditQuery, AuditVerdict};
pub(crate) use roles::{
    Explain, Explanation, GrantBody, NewAssignment, NewRole, PermissionBody, ReplaceRole,
    RoleAssignmentBody, RoleBody,
};
pub(crate) use sign_in::{
    ChangePassword, CompleteSetup, EndedSessionsBody, Login, Me, Refresh, SessionBody,
    SetupStatusBody, SignedInBody,
};
pub(crate) use tenants::{
    Effective, MoveTenant, NewTenantBody, PatchTenant, SetQuotas, TenantBody,
};
pub(crate) use users::{
    ApiKeyBody, GroupBody, NewGroupBody, NewKeyBody, NewUserBody, PatchGroup, PatchUser, UserBody,
};

pub(crate) fn time(timestamp: app::Timestamp) -> String {
    timestamp.0.to_string()
}

pub(crate) fn maybe_time(timestamp: Option<app::Timestamp>) -> Option<String> {
    timestamp.map(time)
}

/// A list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// Give this as `after` to read on; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

impl<T> Page<T> {
    /// A page of a list. One that is full may have another one after it.
    pub(crate) fn part<R>(rows: Vec<R>, limit: u32, place: impl Fn(&R) -> String) -> Self
    where
        T: From<R>,
    {
        Self::part_as(rows, limit, place, T::from)
    }

    /// As [`part`](Self::part), for items that do not know their rows.
    pub(crate) fn part_as<R>(
        rows: Vec<R>,
        limit: u32,
        place: impl Fn(&R) -> String,
        item: impl Fn(R) -> T,
    ) -> Self {
        let full = rows.len() >= limit as usize;
        let next = rows.last().filter(|_| full).map(place);
        Self {
            items: rows.into_iter().map(item).collect(),
            next,
        }
    }
}

/// A list that is given whole, because it is short or because half of it would mislead.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WholeListOf{T}")]
pub(crate) struct WholeList<T> {
    pub(crate) items: Vec<T>,
}

impl<T> WholeList<T> {
    pub(crate) fn of<R>(rows: Vec<R>, item: impl Fn(R) -> T) -> Self {
        Self {
            items: rows.into_iter().map(item).collect(),
        }
    }
}

/// Where a list that is ordered by time goes on.
pub(crate) fn place(at: app::Timestamp, id: uuid::Uuid) -> String {
    app::RowCursor { at, id }.to_string()
}
