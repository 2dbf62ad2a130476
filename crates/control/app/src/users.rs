//! Users and service accounts of a tenant.

use nimbus_control_audit::Priority;
use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation;
use nimbus_control_store::{
    ListPage, NewUser, Quota, RowCursor, Session, TenantTx, User, UserChange,
};
use nimbus_core::{TenantId, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;

/// A user or, without password, a service account to be made.
#[derive(Debug)]
pub struct UserInput {
    pub service_account: bool,
    pub email: String,
    pub display_name: String,
    pub password: Option<String>,
}

/// What changes about a user.
#[derive(Debug, Default)]
pub struct UserPatch {
    pub display_name: Option<String>,
    pub disabled: Option<bool>,
    pub password: Option<String>,
}

impl App {
    pub async fn user_list(
        &self,
        call: &Call,
        tenant: TenantId,
        email: Option<String>,
        page: ListPage<String>,
    ) -> Result<Vec<User>> {
        let permit = self.permit(call, operation::LIST_USERS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let users = match &email {
                    Some(email) => {
                        let found = tx.user_by_email(&email.to_lowercase()).await?;
                        found.into_iter().collect()
                    }
                    None => tx.user_list(&page).await?,
                };
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(users)
            })
            .await
    }

    pub async fn user_get(&self, call: &Call, tenant: TenantId, id: UserId) -> Result<User> {
        let permit = self.permit(call, operation::GET_USER, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let user = tx.user_get(id).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(user)
            })
            .await
    }

    pub async fn user_create(&self, call: &Call, tenant: TenantId, new: UserInput) -> Result<User> {
        let permit = self.permit(call, operation::CREATE_USER, tenant).await?;
        let (email, password_hash) = if new.service_account {
            if new.password.is_some() {
                return Err(Failure::field(
                    "password",
                    "a service account has keys and no password",
                ));
            }
            (input::service_name("email", &new.email)?, None)
        } else {
            let email = input::email("email", &new.email)?;
            let password = new
                .password
                .ok_or_else(|| Failure::field("password", "a user needs one"))?;
            let name = self.path_name(call, tenant).await?;
            input::password(&password, &email, &name)?;
            (email, Some(self.hash_password(password).await?))
        };
        let new = NewUser {
            service_account: new.service_account,
            email,
            display_name: input::optional_name("display_name", &new.display_name, 200)?,
            password_hash,
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let user = tx.user_create(&new).await?;
                tx.quota_check(Quota::Users).await?;
                let record = permit.record().on(user.id).after(view(&user));
                self.audit(tx, &call.context, record).await?;
                Ok(user)
            })
            .await
    }

    /// A new password and a disabled account both end every session of the user.
    pub async fn user_update(
        &self,
        call: &Call,
        tenant: TenantId,
        id: UserId,
        patch: UserPatch,
    ) -> Result<User> {
        let permit = self.permit(call, operation::UPDATE_USER, tenant).await?;
        let new_password = patch.password.is_some();
        let password_hash = match patch.password {
            None => None,
            Some(password) => {
                input::password(&password, "", "")?;
                Some(self.hash_password(password).await?)
            }
        };
        let ends_sessions = new_password || patch.disabled == Some(true);
        let change = UserChange {
            display_name: patch
                .display_name
                .map(|name| input::name("display_name", &name, 200))
                .transpose()?,
            disabled: patch.disabled,
            password_hash,
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = tx.user_get(id).await?;
                if new_password && before.kind != "user" {
                    return Err(Failure::field(
                        "password",
                        "a service account has keys and no password",
                    ));
                }
                if new_password && id == call.who.user {
                    return Err(Failure::field(
                        "password",
                        "your own password is changed where the current one is asked for",
                    ));
                }
                self.ensure_above(call, tx, &permit.resource, id, new_password)
                    .await?;
                let path = &permit.resource.path;
                let after = self
                    .keeping_administrator(tx, path, async |tx| {
                        Ok(tx.user_update(id, &change).await?)
                    })
                    .await?;
                if ends_sessions {
                    tx.session_revoke_others(id, None).await?;
                }
                let mut record = permit
                    .record()
                    .on(id)
                    .before(view(&before))
                    .after(view(&after));
                if new_password {
                    record = record.priority(Priority::High);
                }
                self.audit(tx, &call.context, record).await?;
                Ok(after)
            })
            .await
    }

    pub async fn user_delete(&self, call: &Call, tenant: TenantId, id: UserId) -> Result<()> {
        let permit = self.permit(call, operation::DELETE_USER, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let before = tx.user_get(id).await?;
                self.ensure_above(call, tx, &permit.resource, id, false)
                    .await?;
                tx.session_revoke_others(id, None).await?;
                let path = &permit.resource.path;
                self.keeping_administrator(tx, path, async |tx| Ok(tx.user_delete(id).await?))
                    .await?;
                let record = permit.record().on(id).before(view(&before));
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }

    pub async fn user_sessions(
        &self,
        call: &Call,
        tenant: TenantId,
        id: UserId,
        page: ListPage<RowCursor>,
    ) -> Result<Vec<Session>> {
        let permit = self.permit(call, operation::LIST_SESSIONS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.user_get(id).await?;
                let sessions = tx.session_list(id, &page).await?;
                self.audit(tx, &call.context, permit.record().on(id))
                    .await?;
                Ok(sessions)
            })
            .await
    }

    /// Ends one session of a user, at once.
    pub async fn user_revoke_session(
        &self,
        call: &Call,
        tenant: TenantId,
        id: UserId,
        session: Uuid,
    ) -> Result<()> {
        let permit = self.permit(call, operation::REVOKE_SESSION, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.user_get(id).await?;
                self.ensure_above(call, tx, &permit.resource, id, false)
                    .await?;
                if !tx.session_revoke(session, id).await? {
                    return Err(Failure::not_found());
                }
                let record = permit
                    .record()
                    .on(id)
                    .after(json!({"session": session.to_string()}));
                self.audit(tx, &call.context, record).await.map(drop)
            })
            .await
    }

    /// Ends every session of a user; how many there were.
    pub async fn user_revoke_sessions(
        &self,
        call: &Call,
        tenant: TenantId,
        id: UserId,
    ) -> Result<u64> {
        let permit = self
            .permit(call, operation::REVOKE_SESSIONS, tenant)
            .await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.user_get(id).await?;
                self.ensure_above(call, tx, &permit.resource, id, false)
                    .await?;
                let ended = tx.session_revoke_others(id, None).await?;
                let record = permit.record().on(id).after(json!({"ended": ended}));
                self.audit(tx, &call.context, record).await?;
                Ok(ended)
            })
            .await
    }

    /// Whoever changes a user must have the permissions that the user has, and whoever gets to act as the
    /// user (`takes_over`) must have them as widely and as long; otherwise it would be a way up.
    pub(crate) async fn ensure_above(
        &self,
        call: &Call,
        tx: &mut TenantTx,
        resource: &Resource,
        user: UserId,
        takes_over: bool,
    ) -> Result<()> {
        if user == call.who.user {
            return Ok(());
        }
        let rows = tx.role_assignments_of(user).await?;
        let assignments = self.assignments(tx, &rows).await?;
        self.ensure_holds_all(call, &assignments, &resource.path, takes_over)
    }

    async fn path_name(&self, call: &Call, tenant: TenantId) -> Result<String> {
        let found = self
            .inner
            .store
            .tenant_tx(call.who.home, async |tx| tx.tenant_get(tenant).await)
            .await?;
        Ok(found.name)
    }
}

fn view(user: &User) -> Value {
    json!({
        "kind": user.kind,
        "email": user.email,
        "display_name": user.display_name,
        "disabled": user.disabled_at.is_some(),
    })
}
