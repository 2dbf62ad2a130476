//! The first run: whoever has the link from the server's terminal becomes the first administrator.

use nimbus_control_audit::{Actor, AuditRecord, Priority};
use nimbus_control_auth::operation;
use nimbus_control_auth::role::PROVIDER_ADMIN;
use nimbus_control_store::{Holder, NewUser, RoleHolding, SetupStatus};
use nimbus_core::ErrorCode;
use serde_json::json;

use crate::app::App;
use crate::call::RequestContext;
use crate::failure::{Failure, Result};
use crate::input;
use crate::sign_in::SignedIn;

/// What the wizard asks for.
#[derive(Debug)]
pub struct SetupInput {
    /// From the link that the server printed.
    pub token: String,
    pub email: String,
    pub display_name: String,
    pub password: String,
}

impl App {
    pub async fn setup_status(&self) -> Result<SetupStatus> {
        Ok(self.inner.store.setup_status().await?)
    }

    /// Creates the first administrator and signs them in. Works once.
    pub async fn setup_complete(
        &self,
        context: &RequestContext,
        setup: SetupInput,
    ) -> Result<SignedIn> {
        let email = input::email("email", &setup.email)?;
        let display_name = input::name("display_name", &setup.display_name, 200)?;
        input::password(&setup.password, &email, "")?;
        let password_hash = self.hash_password(setup.password).await?;
        let root = self.inner.store.tenant_find(&[]).await?;
        let new = NewUser {
            service_account: false,
            email,
            display_name,
            password_hash: Some(password_hash),
        };
        let token = setup.token;
        self.inner
            .store
            .tenant_tx(root, async |tx| {
                if !tx.setup_complete(&token).await? {
                    return Err(Failure::new(
                        ErrorCode::SIGN_IN_REFUSED,
                        "the set-up link is not valid, or the set-up was completed before",
                    ));
                }
                let user = tx.user_create(&new).await?;
                let holder = Holder::User(user.user_id());
                tx.role_assign(PROVIDER_ADMIN, holder, &administrator())
                    .await?;
                let signed_in = self.open_session(tx, context, user.user_id()).await?;
                let mut record =
                    AuditRecord::new(Actor::nobody(), operation::SETUP_COMPLETE.id, "setup")
                        .on(user.id)
                        .after(json!({"email": user.email, "role": PROVIDER_ADMIN}))
                        .priority(Priority::Critical);
                record.trace_id = Some(context.trace_id.to_string());
                record.ip_address = context.ip_text();
                self.audit(tx, context, record).await?;
                Ok(signed_in)
            })
            .await
    }
}

/// How somebody who runs the installation holds that role: everywhere, always and for ever.
pub(crate) fn administrator() -> RoleHolding {
    RoleHolding {
        reach: "subtree".to_owned(),
        conditions: json!({}),
        expires_at: None,
    }
}
