//! Accounts of a tenant with clouds: kept sealed, never shown again, given to providers of its own runs alone.

use std::collections::BTreeMap;

use nimbus_control_auth::operation;
use nimbus_control_store::{CloudAccount, NewCloudAccount};
use nimbus_core::{EnvironmentName, TenantId};
use serde_json::json;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::input;

/// Variables by which the providers of a cloud take credentials. Nothing else can be given: a variable such as `PATH`
/// would decide what a provider runs.
const CLOUDS: &[(&str, &[&str])] = &[
    (
        "aws",
        &[
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ],
    ),
    (
        "azure",
        &[
            "ARM_CLIENT_ID",
            "ARM_CLIENT_SECRET",
            "ARM_TENANT_ID",
            "ARM_SUBSCRIPTION_ID",
        ],
    ),
    ("gcp", &["GOOGLE_CREDENTIALS", "GOOGLE_PROJECT"]),
];
const MOST_CREDENTIAL_BYTES: usize = 16 * 1024;

/// An account to be kept.
#[derive(Debug)]
pub struct CloudAccountInput {
    pub provider: String,
    /// For this environment; for all that have none of their own without one.
    pub environment: Option<String>,
    /// Variables and their values.
    pub credentials: BTreeMap<String, Zeroizing<String>>,
}

impl App {
    pub async fn cloud_account_list(
        &self,
        call: &Call,
        tenant: TenantId,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<CloudAccount>> {
        let operation = operation::LIST_CLOUD_ACCOUNTS;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let found = tx.cloud_account_list(after.as_deref(), limit).await?;
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(found)
            })
            .await
    }

    /// Makes an account, or replaces what opens it.
    pub async fn cloud_account_put(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
        input: CloudAccountInput,
    ) -> Result<CloudAccount> {
        let operation = operation::PUT_CLOUD_ACCOUNT;
        let permit = self.permit(call, operation, tenant).await?;
        let name = input::name("name", name, 100)?;
        let environment = match &input.environment {
            None => None,
            Some(text) => Some(text.parse::<EnvironmentName>().map_err(|_| {
                Failure::field("environment", "this is not the name of an environment")
            })?),
        };
        let plaintext = checked(&input)?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let known = tx.cloud_account_id(&name).await?;
                let id = known.unwrap_or_else(Uuid::new_v4);
                let sealed = self
                    .seal(tx, &CloudAccount::credentials_field(id), &plaintext)
                    .await?;
                let new = NewCloudAccount {
                    id,
                    name: name.clone(),
                    provider_type: input.provider.clone(),
                    environment: environment.map(|environment| environment.to_string()),
                    sealed,
                    by: call.who.user,
                };
                let account = tx.cloud_account_put(&new).await?;
                let record = permit.record().on(&account.name).after(json!({
                    "provider": account.provider_type,
                    "environment": account.environment,
                    "replaced": known.is_some(),
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(account)
            })
            .await
    }

    pub async fn cloud_account_delete(
        &self,
        call: &Call,
        tenant: TenantId,
        name: &str,
    ) -> Result<()> {
        let operation = operation::DELETE_CLOUD_ACCOUNT;
        let permit = self.permit(call, operation, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.cloud_account_delete(name).await?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(())
            })
            .await
    }
}

/// The credentials as they are sealed, if a provider of the cloud would take them.
fn checked(input: &CloudAccountInput) -> Result<Zeroizing<Vec<u8>>> {
    let Some((_, known)) = CLOUDS.iter().find(|(name, _)| *name == input.provider) else {
        let names: Vec<&str> = CLOUDS.iter().map(|(name, _)| *name).collect();
        return Err(Failure::field(
            "provider",
            format!("give one of {}", names.join(", ")),
        ));
    };
    if input.credentials.is_empty() {
        return Err(Failure::field("credentials", "give at least one"));
    }
    for (name, value) in &input.credentials {
        if !known.contains(&name.as_str()) {
            let message = format!("give only {}", known.join(", "));
            return Err(Failure::field("credentials", message));
        }
        if value.is_empty() || value.len() > MOST_CREDENTIAL_BYTES {
            let message = format!("{name} is empty or too long");
            return Err(Failure::field("credentials", message));
        }
    }
    let plain: BTreeMap<&str, &str> = input
        .credentials
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let bytes = serde_json::to_vec(&plain)
        .map_err(|_| Failure::field("credentials", "they cannot be kept"))?;
    Ok(Zeroizing::new(bytes))
}
