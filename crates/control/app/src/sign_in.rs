//! Signing in, staying signed in, signing out.

use std::collections::BTreeSet;

use nimbus_control_audit::{Actor, ActorKind, Outcome, Priority, Record};
use nimbus_control_auth::api_key::{self, PresentedKey};
use nimbus_control_auth::attempts::{History, Verdict};
use nimbus_control_auth::operation;
use nimbus_control_auth::password::Verified;
use nimbus_control_auth::refresh::{Decision, Family, RefreshTokens};
use nimbus_control_auth::token::Subject;
use nimbus_control_store::{Session, StoreError, TenantTx, Timestamp, User, UserChange};
use nimbus_core::{Error, ErrorCode, TenantId, UserId};
use serde_json::json;
use uuid::Uuid;

use crate::app::{App, seconds};
use crate::call::{Call, Identity, RequestContext};
use crate::failure::{Failure, Result};
use crate::input;

/// Who says they are who.
#[derive(Debug)]
pub struct LoginInput {
    /// Slugs from the operator's tenant down, joined by `/`; empty for the operator's own.
    pub tenant: String,
    pub email: String,
    pub password: String,
}

/// A session's tokens.
#[derive(Clone, Debug)]
pub struct SignedIn {
    pub tenant: TenantId,
    pub user: UserId,
    pub session: Uuid,
    pub access_token: String,
    pub access_seconds: u32,
    pub refresh_token: String,
    pub refresh_seconds: u32,
}

/// One answer for every reason, so that nobody learns which accounts exist.
fn refused() -> Failure {
    Error::new(
        ErrorCode::SIGN_IN_REFUSED,
        "the tenant, the name or the password is wrong",
    )
    .with_help("check the spelling; an account that was disabled cannot sign in either")
    .into()
}

impl App {
    pub async fn login(&self, context: &RequestContext, login: LoginInput) -> Result<SignedIn> {
        let slugs: Vec<&str> = login
            .tenant
            .split('/')
            .filter(|slug| !slug.is_empty())
            .collect();
        let tenant = match self.inner.store.tenant_find(&slugs).await {
            Ok(tenant) => tenant,
            Err(StoreError::TenantUnknown) => {
                // The same work as for a tenant that exists.
                self.verify(login.password, None).await;
                return Err(refused());
            }
            Err(error) => return Err(error.into()),
        };
        let email: String = login
            .email
            .trim()
            .to_lowercase()
            .chars()
            .take(254)
            .collect();
        let ip = context.ip_text().unwrap_or_default();
        let (history, credentials) = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let attempts = tx.attempt_history(&email, &ip).await?;
                let credentials = tx.user_credentials(&email).await?;
                Ok::<_, StoreError>((attempts, credentials))
            })
            .await?;
        let times =
            |times: Vec<Timestamp>| times.into_iter().map(|at| seconds(at.into())).collect();
        let history = History {
            from_here: times(history.failed_here),
            from_anywhere: times(history.failed_anywhere),
            known_here: history.succeeded_here,
        };
        if let Verdict::Wait { seconds } = history.judge(context.seconds()) {
            return Err(Failure::wait(seconds.unsigned_abs()));
        }
        let stored = credentials.as_ref().map(|(_, hash)| hash.clone());
        let password = login.password.clone();
        let verified = self.verify(login.password, stored).await;
        let user = credentials
            .map(|(user, _)| user)
            .filter(|_| verified != Verified::No);
        let Some(user) = user else {
            self.note_wrong_password(context, tenant, &email, &ip)
                .await?;
            return Err(refused());
        };
        let new_hash = match verified {
            Verified::YesOutdated => Some(self.hash_password(password).await?),
            _ => None,
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.attempt_note(&email, &ip, true).await?;
                if new_hash.is_some() {
                    let change = UserChange {
                        password_hash: new_hash,
                        ..UserChange::default()
                    };
                    tx.user_update(user, &change).await?;
                }
                tx.user_signed_in(user).await?;
                let signed_in = self.open_session(tx, context, user).await?;
                let record = plain_record(
                    context,
                    Actor::new(ActorKind::User, user),
                    operation::LOGIN.id,
                )
                .on(signed_in.session);
                self.audit(tx, context, record).await?;
                Ok(signed_in)
            })
            .await
    }

    async fn verify(&self, password: String, stored: Option<String>) -> Verified {
        let app = self.clone();
        let _turn = self.inner.hashing.acquire().await;
        tokio::task::spawn_blocking(move || {
            let password = zeroize::Zeroizing::new(password);
            app.inner.hasher.verify(&password, stored.as_deref())
        })
        .await
        .unwrap_or(Verified::No)
    }

    async fn note_wrong_password(
        &self,
        context: &RequestContext,
        tenant: TenantId,
        email: &str,
        ip: &str,
    ) -> Result<()> {
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.attempt_note(email, ip, false).await?;
                let record = plain_record(context, Actor::nobody(), operation::LOGIN.id)
                    .after(json!({"email": email}))
                    .outcome(Outcome::Denied);
                self.audit(tx, context, record).await.map(drop)
            })
            .await
    }

    pub(crate) async fn open_session(
        &self,
        tx: &mut TenantTx,
        context: &RequestContext,
        user: UserId,
    ) -> Result<SignedIn> {
        let ip = context.ip_text();
        let lifetime = self.inner.settings.refresh_seconds;
        let session = tx
            .session_create(user, lifetime, ip.as_deref(), context.user_agent.as_deref())
            .await?;
        Ok(self.tokens_of(tx.tenant(), context, &session, 0))
    }

    fn tokens_of(
        &self,
        tenant: TenantId,
        context: &RequestContext,
        session: &Session,
        generation: u32,
    ) -> SignedIn {
        let settings = &self.inner.settings;
        let user = UserId::from(session.user_id);
        let subject = Subject {
            user,
            tenant,
            session: session.id,
        };
        SignedIn {
            tenant,
            user,
            session: session.id,
            access_token: self.inner.tokens.issue(
                subject,
                context.seconds(),
                settings.access_seconds,
            ),
            access_seconds: settings.access_seconds,
            refresh_token: self
                .inner
                .refresh
                .token(tenant, session.id, session.seed, generation),
            refresh_seconds: settings.refresh_seconds,
        }
    }

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
                    Decision::Rotate { next } => {
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
                    Decision::Repeat { current } => Ok(Some(self.tokens_of(
                        presented.tenant,
                        context,
                        &session,
                        current,
                    ))),
                    Decision::Reuse => {
                        self.end_family(tx, context, &session).await?;
                        Ok(None)
                    }
                    Decision::Refuse => Ok(None),
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

    /// Who a bearer token or an API key belongs to, and what they may do now.
    pub async fn authenticate(
        &self,
        context: &RequestContext,
        credential: &str,
    ) -> Result<Identity> {
        let identity = if credential.starts_with(api_key::PREFIX) {
            self.authenticate_key(context, credential).await
        } else {
            self.authenticate_token(context, credential).await
        };
        identity.map_err(hide_missing)
    }

    async fn authenticate_token(&self, context: &RequestContext, token: &str) -> Result<Identity> {
        let claims = self
            .inner
            .tokens
            .read(token, context.seconds())
            .map_err(|_| Failure::not_signed_in())?;
        self.inner
            .store
            .tenant_tx(claims.tenant_id, async |tx| {
                let user = tx.session_user(claims.sid).await?;
                let user = user
                    .filter(|user| *user == claims.sub)
                    .ok_or_else(Failure::not_signed_in)?;
                Ok(Identity {
                    home: claims.tenant_id,
                    user,
                    kind: ActorKind::User,
                    session: Some(claims.sid),
                    caller: self.caller_of(tx, user, None).await?,
                })
            })
            .await
    }

    async fn authenticate_key(&self, context: &RequestContext, text: &str) -> Result<Identity> {
        let presented = PresentedKey::parse(text).ok_or_else(Failure::not_signed_in)?;
        self.inner
            .store
            .tenant_tx(presented.tenant, async |tx| {
                let (key, hash) = tx
                    .key_use(presented.id)
                    .await?
                    .ok_or_else(Failure::not_signed_in)?;
                let expires = key.expires_at.map(|at| seconds(at.into()));
                let alive = api_key::is_alive(expires, key.revoked_at.is_some(), context.seconds());
                if !alive || !presented.matches(&hash) {
                    return Err(Failure::not_signed_in());
                }
                let user = UserId::from(key.user_id);
                let limit: BTreeSet<String> = key.scopes.into_iter().collect();
                Ok(Identity {
                    home: presented.tenant,
                    user,
                    kind: ActorKind::ServiceAccount,
                    session: None,
                    caller: self.caller_of(tx, user, Some(limit)).await?,
                })
            })
            .await
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

    pub async fn own_sessions(&self, call: &Call) -> Result<Vec<Session>> {
        let user = call.who.user;
        self.note_read(call, operation::OWN_SESSIONS).await?;
        Ok(self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.session_list(user).await)
            .await?)
    }

    /// Removes sessions that ended a while ago, and the memory of old attempts, in every tenant.
    pub async fn remove_ended_sessions(&self) -> Result<u64> {
        let mut removed = 0;
        for tenant in self.every_tenant().await? {
            let store = &self.inner.store;
            removed += store
                .tenant_tx(tenant, async |tx| tx.session_clean_up().await)
                .await?;
        }
        Ok(removed)
    }

    /// The caller, as the store has them.
    pub async fn me(&self, call: &Call) -> Result<(User, nimbus_control_store::Tenant)> {
        self.note_read(call, operation::ME).await?;
        self.caller_and_tenant(call).await
    }

    async fn caller_and_tenant(&self, call: &Call) -> Result<(User, nimbus_control_store::Tenant)> {
        Ok(self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                let user = tx.user_get(call.who.user).await?;
                let tenant = tx.tenant_get(call.who.home).await?;
                Ok::<_, StoreError>((user, tenant))
            })
            .await?)
    }

    /// Changes the caller's own password; every other session ends.
    pub async fn change_password(&self, call: &Call, current: String, new: String) -> Result<()> {
        let (user, tenant) = self.caller_and_tenant(call).await?;
        let email = user.email.clone();
        let stored = self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.user_credentials(&email).await)
            .await?;
        let stored = stored.map(|(_, hash)| hash);
        if self.verify(current, stored).await == Verified::No {
            return Err(refused());
        }
        input::password(&new, &user.email, &tenant.name)?;
        let password_hash = Some(self.hash_password(new).await?);
        self.inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                let change = UserChange {
                    password_hash,
                    ..UserChange::default()
                };
                tx.user_update(call.who.user, &change).await?;
                for session in tx.session_list(call.who.user).await? {
                    if Some(session.id) != call.who.session {
                        tx.session_revoke(session.id, call.who.user).await?;
                    }
                }
                let record = self
                    .record_of(call, operation::CHANGE_PASSWORD.id, "user")
                    .on(call.who.user)
                    .priority(Priority::High);
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }
}

/// A tenant that is gone is no reason to say so.
fn hide_missing(failure: Failure) -> Failure {
    if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND {
        return Failure::not_signed_in();
    }
    failure
}

fn plain_record(context: &RequestContext, actor: Actor, action: &str) -> Record {
    let mut record = Record::new(actor, action, "session");
    record.trace_id = Some(context.trace_id.to_string());
    record.ip_address = context.ip_text();
    record
}
