//! Signing in, and who a token or a key belongs to. What comes of a session afterwards is in `sessions`.

mod sessions;

use std::collections::BTreeSet;

use nimbus_control_audit::{Actor, ActorKind, AuditRecord, Outcome, Priority};
use nimbus_control_auth::api_key::{self, PresentedKey};
use nimbus_control_auth::attempts::{AttemptVerdict, History};
use nimbus_control_auth::network::Network;
use nimbus_control_auth::operation;
use nimbus_control_auth::password::Verified;
use nimbus_control_auth::token::TokenSubject;
use nimbus_control_store::{
    AccountDigest, Session, SignInAttempt, StoreError, TenantTx, Timestamp, User, UserChange,
};
use nimbus_core::{Error, ErrorCode, TenantId, UserId};
use serde_json::json;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::app::{App, seconds};
use crate::call::{Call, Identity, RequestContext};
use crate::failure::{Failure, Result};
use crate::input;

/// More than the tree is deep, so that no tenant has a longer path.
const MOST_SLUGS: usize = 20;
/// What is recorded of a name that somebody gave.
const SHOWN_CHARACTERS: usize = 254;

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
    /// What is done for a tenant or a user that nobody has is what is done for others: the same statements,
    /// the same hash, the same entry in a trail, and it counts against the same limits.
    pub async fn login(&self, context: &RequestContext, login: LoginInput) -> Result<SignedIn> {
        let email = login.email.trim().to_lowercase();
        let root = self.inner.store.tenant_find(&[]).await?;
        let tenant = self.tenant_named(&login.tenant).await?;
        let account = match tenant {
            Some(tenant) => AccountDigest::of(&tenant.to_string(), &email),
            None => AccountDigest::of(&format!("/{}", login.tenant), &email),
        };
        let attempt = self.begin_attempt(context, account).await?;
        let home = tenant.unwrap_or(root);
        let found = self
            .inner
            .store
            .tenant_tx(home, async |tx| tx.user_credentials(&email).await)
            .await?;
        let credentials = found.filter(|_| tenant.is_some());
        let stored = credentials.as_ref().map(|(_, hash)| hash.clone());
        let password = Zeroizing::new(login.password);
        let verified = self.verify(password.clone(), stored).await?;
        let user = credentials
            .map(|(user, _)| user)
            .filter(|_| verified != Verified::No);
        let Some(user) = user else {
            let mut record = plain_record(context, Actor::nobody(), operation::LOGIN.id)
                .outcome(Outcome::Denied);
            let shown = |text: &str| text.chars().take(SHOWN_CHARACTERS).collect::<String>();
            record = match tenant {
                Some(_) => record.after(json!({"email": shown(&email)})),
                // The operator sees what is tried on tenants that nobody has.
                None => {
                    record.after(json!({"email": shown(&email), "tenant": shown(&login.tenant)}))
                }
            };
            self.inner
                .store
                .tenant_tx(home, async |tx| {
                    self.audit(tx, context, record).await.map(drop)
                })
                .await?;
            self.inner.store.metrics().sign_in("refused");
            return Err(refused());
        };
        let new_hash = match verified {
            Verified::YesOutdated => Some(self.hash_password(password.to_string()).await?),
            _ => None,
        };
        let signed_in = self
            .inner
            .store
            .tenant_tx(home, async |tx| {
                tx.sign_in_succeeded(&attempt).await?;
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
                Ok::<_, Failure>(signed_in)
            })
            .await?;
        self.inner.store.metrics().sign_in("succeeded");
        Ok(signed_in)
    }

    /// The tenant at the end of slugs that are joined by `/`.
    async fn tenant_named(&self, text: &str) -> Result<Option<TenantId>> {
        let mut slugs: Vec<&str> = text.split('/').filter(|slug| !slug.is_empty()).collect();
        if slugs.len() > MOST_SLUGS || text.len() > MOST_SLUGS * 41 {
            // No tenant is there; asking about one that cannot be keeps the time the same.
            slugs = vec!["-"];
        }
        match self.inner.store.tenant_find(&slugs).await {
            Ok(tenant) => Ok(Some(tenant)),
            Err(StoreError::TenantUnknown) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts an attempt, or says how long to wait for the next one.
    async fn begin_attempt(
        &self,
        context: &RequestContext,
        account: AccountDigest,
    ) -> Result<SignInAttempt> {
        let network = context.ip.map(Network::of_caller);
        let network = network.map_or_else(|| "nowhere".to_owned(), |network| network.to_string());
        let store = &self.inner.store;
        let attempt = store.sign_in_begin(account, &network).await?;
        let times = |times: &[Timestamp]| times.iter().map(|at| seconds((*at).into())).collect();
        let count = |failures: i64, last: Option<Timestamp>| {
            let failures = usize::try_from(failures).unwrap_or_default();
            (failures, last.map_or(0, |at| seconds(at.into())))
        };
        let history = History {
            from_here: times(&attempt.failed_here),
            from_anywhere: times(&attempt.failed_anywhere),
            known_here: attempt.known_here,
            by_network: count(attempt.network_failures, attempt.network_last),
            on_everything: count(attempt.all_failures, attempt.all_last),
        };
        match history.judge(context.seconds()) {
            AttemptVerdict::Try => Ok(attempt),
            AttemptVerdict::Wait { seconds } => {
                store.sign_in_not_made(&attempt).await?;
                store.metrics().sign_in("slowed");
                Err(Failure::wait(seconds.unsigned_abs()))
            }
        }
    }

    async fn verify(
        &self,
        password: Zeroizing<String>,
        stored: Option<String>,
    ) -> Result<Verified> {
        self.hashing(move |hasher| hasher.verify(&password, stored.as_deref()))
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
        let subject = TokenSubject {
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
                    caller: self.caller_of(tx, user, None, None).await?,
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
                let until = key.expires_at.map(Into::into);
                Ok(Identity {
                    home: presented.tenant,
                    user,
                    kind: ActorKind::ServiceAccount,
                    session: None,
                    caller: self.caller_of(tx, user, Some(limit), until).await?,
                })
            })
            .await
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
        // Whoever has a session and not the password guesses no better here than at the front door.
        let account = AccountDigest::of(&call.who.home.to_string(), &email);
        let attempt = self.begin_attempt(&call.context, account).await?;
        let stored = self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.user_credentials(&email).await)
            .await?;
        let stored = stored.map(|(_, hash)| hash);
        if self.verify(Zeroizing::new(current), stored).await? == Verified::No {
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
                tx.sign_in_succeeded(&attempt).await?;
                tx.user_update(call.who.user, &change).await?;
                tx.session_revoke_others(call.who.user, call.who.session)
                    .await?;
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

fn plain_record(context: &RequestContext, actor: Actor, action: &str) -> AuditRecord {
    let mut record = AuditRecord::new(actor, action, "session");
    record.trace_id = Some(context.trace_id.to_string());
    record.ip_address = context.ip_text();
    record
}
