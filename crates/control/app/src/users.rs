//! Users and service accounts of a tenant.

use nimbus_control_audit::Priority;
use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation;
use nimbus_control_auth::role::PROVIDER_ADMIN;
use nimbus_control_store::{NewUser, Session, TenantTx, User, UserChange};
use nimbus_core::{ErrorCode, TenantId, UserId};
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
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<User>> {
        let permit = self.permit(call, operation::LIST_USERS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let users = tx.user_list(after.as_deref(), limit).await?;
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
            (input::name("email", &new.email, 100)?.to_lowercase(), None)
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
            display_name: new.display_name.trim().chars().take(200).collect(),
            password_hash,
        };
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let user = tx.user_create(&new).await?;
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
                self.ensure_above(call, tx, &permit.resource, id).await?;
                if patch.disabled == Some(true) {
                    self.ensure_not_last(tx, id).await?;
                }
                let after = tx.user_update(id, &change).await?;
                if ends_sessions {
                    tx.session_revoke_all(id).await?;
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
                self.ensure_above(call, tx, &permit.resource, id).await?;
                self.ensure_not_last(tx, id).await?;
                tx.session_revoke_all(id).await?;
                tx.user_delete(id).await?;
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
    ) -> Result<Vec<Session>> {
        let permit = self.permit(call, operation::LIST_SESSIONS, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.user_get(id).await?;
                let sessions = tx.session_list(id).await?;
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
                if !tx
                    .session_list(id)
                    .await?
                    .iter()
                    .any(|own| own.id == session)
                {
                    return Err(Failure::not_found());
                }
                tx.session_revoke(session, id).await?;
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
                let ended = tx.session_revoke_all(id).await?;
                let record = permit.record().on(id).after(json!({"ended": ended}));
                self.audit(tx, &call.context, record).await?;
                Ok(ended)
            })
            .await
    }

    /// Whoever changes a user's password or takes a user over must have all that the user has;
    /// otherwise it would be a way up.
    pub(crate) async fn ensure_above(
        &self,
        call: &Call,
        tx: &mut TenantTx,
        resource: &Resource,
        user: UserId,
    ) -> Result<()> {
        if user == call.who.user {
            return Ok(());
        }
        let rows = tx.role_assignments_of(user).await?;
        for assignment in self.assignments(tx, &rows).await? {
            self.ensure_covers(call, &assignment.role, assignment.reach, resource)?;
        }
        Ok(())
    }

    /// The installation always has somebody who runs it.
    pub(crate) async fn ensure_not_last(&self, tx: &mut TenantTx, user: UserId) -> Result<()> {
        let has_it = tx
            .role_assignments_of(user)
            .await?
            .iter()
            .any(|assignment| assignment.role == PROVIDER_ADMIN);
        if has_it
            && tx
                .role_holders_besides(PROVIDER_ADMIN, None, Some(user))
                .await?
                == 0
        {
            return Err(Failure::new(
                ErrorCode::NOT_PERMITTED,
                "this is the last administrator of the installation",
            ));
        }
        Ok(())
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
