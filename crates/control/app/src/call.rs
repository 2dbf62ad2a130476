//! Who calls, and from where.

use std::net::IpAddr;

use jiff::Timestamp;
use nimbus_control_audit::{Actor, ActorKind};
use nimbus_control_auth::access::{Caller, Circumstances};
use nimbus_core::{TenantId, TraceId, UserId};
use uuid::Uuid;

/// What a transport knows about a request before it knows the caller.
#[derive(Clone, Debug)]
pub struct RequestContext {
    pub ip: Option<IpAddr>,
    pub user_agent: Option<String>,
    /// The place that the operator gave the address's network, if any.
    pub location: Option<String>,
    pub trace_id: TraceId,
    pub now: Timestamp,
}

impl RequestContext {
    pub(crate) fn ip_text(&self) -> Option<String> {
        self.ip.map(|ip| ip.to_string())
    }

    pub(crate) fn seconds(&self) -> i64 {
        self.now.as_second()
    }

    pub(crate) fn circumstances(&self) -> Circumstances {
        Circumstances {
            ip: self.ip,
            now: self.now,
            location: self.location.clone(),
        }
    }
}

/// Somebody who proved who they are. What they may do was read from the store for this request.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The tenant that the user belongs to.
    pub home: TenantId,
    pub user: UserId,
    pub kind: ActorKind,
    /// The session, unless an API key was used.
    pub session: Option<Uuid>,
    pub caller: Caller,
}

impl Identity {
    pub(crate) fn actor(&self) -> Actor {
        Actor::new(self.kind, self.user)
    }
}

/// A request with its caller.
#[derive(Clone, Debug)]
pub struct Call {
    pub who: Identity,
    pub context: RequestContext,
}
