//! Calls in the name of somebody who is not there: roll-outs and schedules go on long after they were asked for.

use jiff::Timestamp;
use nimbus_control_audit::ActorKind;
use nimbus_core::{ErrorCode, TenantId, TraceId, UserId};

use crate::app::App;
use crate::call::{Call, Identity, RequestContext};
use crate::failure::{Failure, Result};

impl App {
    /// Somebody who asked for something that happens later, with what they may do now. `what`: that thing, in words.
    pub(crate) async fn call_in_name(
        &self,
        home: TenantId,
        id: UserId,
        what: &str,
        now: Timestamp,
    ) -> Result<Call> {
        let gone = || {
            let message = format!("whoever made {what} is not there any more, or is disabled");
            Failure::new(ErrorCode::NOT_PERMITTED, message)
        };
        let found = self
            .inner
            .store
            .tenant_tx(home, async |tx| {
                let user = tx.user_get(id).await?;
                let caller = self.caller_of(tx, id, None, None).await?;
                Ok::<_, Failure>((user, caller))
            })
            .await;
        let (user, caller) = match found {
            Err(failure) if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND => {
                return Err(gone());
            }
            found => found?,
        };
        if user.disabled_at.is_some() {
            return Err(gone());
        }
        let kind = match user.kind.as_str() {
            "user" => ActorKind::User,
            _ => ActorKind::ServiceAccount,
        };
        Ok(Call {
            who: Identity {
                home,
                user: id,
                kind,
                session: None,
                caller,
            },
            context: RequestContext {
                ip: None,
                user_agent: None,
                location: None,
                trace_id: TraceId::random(),
                now,
            },
        })
    }
}
