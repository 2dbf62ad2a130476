//! Staying signed in and signing out: sessions, their refresh tokens, and their ends.

use nimbus_control_audit::{Actor, ActorKind, Outcome, Priority};
use nimbus_control_auth::operation;
use nimbus_control_auth::refresh::{Family, RefreshDecision, RefreshTokens};
use nimbus_control_store::{ListPage, RowCursor, Session, TenantTx};
use nimbus_core::UserId;
use serde_json::json;
use tracing::warn;
use uuid::Uuid;

use super::{SignedIn, hide_missing, plain_record};
use crate::app::{App, seconds};
use crate::call::{Call, RequestContext};
use crate::failure::{Failure, Result};

impl App {
    /// Exchanges a refresh token. One that was used up ends its whole family.
    pub async fn refresh(&self, context: &RequestContext, token: &str) -> Result<SignedIn> {
        let presented = RefreshTokens::parse(token).ok_or_else(Failure::not_signed_in)?;
        let exchanged = self
            .inner
            .store
            .tenant_tx(presented.tenant, async |tx| {
                let Some(session) = tx.session_lock(presented.session).await? else {
                    return Ok(None);
                };
                if tx.session_user(session.id).await?.is_none() {
                    return Ok(None);
                }
                let family = Family {
                    seed: session.seed,
                    generation: session.generation.unsigned_abs(),
                    rotated_at: seconds(session.rotated_at.into()),
                    expires_at: seconds(session.expires_at.into()),
                    revoked: session.revoked_at.is_some(),
                };
                match self
                    .inner
                    .refresh
                    .decide(&family, &presented, context.seconds())
                {
                    RefreshDecision::Rotate { next } => {
                        tx.session_rotate(session.id, next.cast_signed()).await?;
                        let actor = Actor::new(ActorKind::User, UserId::from(session.user_id));
                        let record =
                            plain_record(context, actor, operation::REFRESH.id).on(session.id);
                        self.audit(tx, context, record).await?;
                        Ok(Some(self.tokens_of(
                            presented.tenant,
                            context,
                            &session,
                            next,
                        )))
                    }
                    RefreshDecision::Repeat { current } => Ok(Some(self.tokens_of(
                        presented.tenant,
                        context,
                        &session,
                        current,
                    ))),
                    RefreshDecision::Reuse => {
                        self.end_family(tx, context, &session).await?;
                        Ok(None)
                    }
                    RefreshDecision::Refuse => Ok(None),
                }
            })
            .await
            .map_err(|failure: Failure| hide_missing(failure))?;
        exchanged.ok_or_else(Failure::not_signed_in)
    }

    async fn end_family(
        &self,
        tx: &mut TenantTx,
        context: &RequestContext,
        session: &Session,
    ) -> Result<()> {
        let user = UserId::from(session.user_id);
        tx.session_revoke(session.id, user).await?;
        let record = plain_record(
            context,
            Actor::new(ActorKind::User, user),
            "auth.refresh.reused",
        )
        .on(session.id)
        .outcome(Outcome::Denied)
        .priority(Priority::High);
        self.audit(tx, context, record).await.map(drop)
    }

    /// Ends the caller's session, at once.
    pub async fn logout(&self, call: &Call) -> Result<()> {
        let Some(session) = call.who.session else {
            return Err(Failure::field(
                "authorization",
                "an API key has no session; revoke the key",
            ));
        };
        self.revoke_own_session(call, session, operation::LOGOUT.id)
            .await
    }

    pub async fn end_own_session(&self, call: &Call, session: Uuid) -> Result<()> {
        self.revoke_own_session(call, session, operation::REVOKE_OWN_SESSION.id)
            .await
    }

    async fn revoke_own_session(&self, call: &Call, session: Uuid, action: &str) -> Result<()> {
        self.inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                if !tx.session_revoke(session, call.who.user).await? {
                    return Err(Failure::not_found());
                }
                let record = self.record_of(call, action, "session").on(session);
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }

    /// Ends every session of the caller but the one that asks; how many there were.
    pub async fn end_other_sessions(&self, call: &Call) -> Result<u64> {
        self.inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                let ended = tx
                    .session_revoke_others(call.who.user, call.who.session)
                    .await?;
                let record = self
                    .record_of(call, operation::REVOKE_OTHER_SESSIONS.id, "session")
                    .after(json!({"ended": ended}));
                self.audit(tx, &call.context, record).await?;
                Ok(ended)
            })
            .await
    }

    pub async fn own_sessions(
        &self,
        call: &Call,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<Session>> {
        let user = call.who.user;
        self.note_read(call, operation::OWN_SESSIONS).await?;
        Ok(self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.session_list(user, &page).await)
            .await?)
    }

    /// Removes sessions that ended a while ago in every tenant, and the memory of old attempts. One tenant's
    /// failure keeps no other's from being removed.
    pub async fn remove_ended_sessions(&self) -> Result<u64> {
        let store = &self.inner.store;
        let mut removed = store.sign_in_clean_up().await?;
        for tenant in self.every_tenant().await? {
            let cleaned = store
                .tenant_tx(tenant, async |tx| tx.session_clean_up().await)
                .await;
            match cleaned {
                Ok(count) => removed += count,
                Err(error) => warn!(%error, %tenant, "ended sessions of a tenant were not removed"),
            }
        }
        Ok(removed)
    }
}
