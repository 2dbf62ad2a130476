//! Break-glass: an administrator for an installation that lost its own, made by whoever has the machine.
//!
//! Nobody asks who that is: they have the data and the keys already. What they do is recorded like anything
//! else, with the name that the machine knows them by.

use nimbus_control_audit::{Actor, AuditRecord, Priority};
use nimbus_control_auth::role::PROVIDER_ADMIN;
use nimbus_control_store::{Holder, NewUser, UserChange};
use nimbus_core::UserId;
use serde_json::json;

use crate::app::App;
use crate::failure::Result;
use crate::input;
use crate::setup::administrator;

/// Who is to run the installation again.
#[derive(Debug)]
pub struct RecoverInput {
    pub email: String,
    pub password: String,
    /// Who says so, as the machine knows them.
    pub by: String,
}

/// What was done.
#[derive(Clone, Debug)]
pub struct Recovered {
    pub user: UserId,
    pub email: String,
    /// Whether the account is new.
    pub created: bool,
}

impl App {
    /// Gives the operator's tenant an administrator with this address and password. An account that is there
    /// gets the password and the role, is enabled, and has no session left.
    pub async fn recover_administrator(&self, wanted: RecoverInput) -> Result<Recovered> {
        let email = input::email("email", &wanted.email)?;
        input::password(&wanted.password, &email, "")?;
        let password_hash = Some(self.hash_password(wanted.password).await?);
        let root = self.inner.store.tenant_find(&[]).await?;
        self.inner
            .store
            .tenant_tx(root, async |tx| {
                let found = tx
                    .user_by_email(&email)
                    .await?
                    .filter(|user| user.kind == "user");
                let created = found.is_none();
                let user = match found {
                    Some(user) => {
                        let change = UserChange {
                            disabled: Some(false),
                            password_hash,
                            ..UserChange::default()
                        };
                        tx.session_revoke_others(user.user_id(), None).await?;
                        tx.user_update(user.user_id(), &change).await?
                    }
                    None => {
                        let new = NewUser {
                            service_account: false,
                            email: email.clone(),
                            display_name: "Recovered administrator".to_owned(),
                            password_hash,
                        };
                        tx.user_create(&new).await?
                    }
                };
                // One that has a condition or an end stands in the way of one that has neither.
                for assignment in tx.role_assignments_of(user.user_id()).await? {
                    if assignment.role == PROVIDER_ADMIN && assignment.user_id == Some(user.id) {
                        tx.role_unassign(assignment.id).await?;
                    }
                }
                let holder = Holder::User(user.user_id());
                tx.role_assign(PROVIDER_ADMIN, holder, &administrator())
                    .await?;
                let record = AuditRecord::new(Actor::system(), "installation.recover", "users")
                    .on(user.id)
                    .after(json!({
                        "email": user.email,
                        "created": created,
                        "role": PROVIDER_ADMIN,
                        "by": wanted.by,
                    }))
                    .priority(Priority::Critical);
                let now = jiff::Timestamp::now();
                tx.audit_append(&self.inner.keys.audit, now, record).await?;
                Ok(Recovered {
                    user: user.user_id(),
                    email: user.email,
                    created,
                })
            })
            .await
    }
}
