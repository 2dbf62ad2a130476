//! Accounts of a tenant with clouds: kept sealed, never shown again, given to providers of its own runs alone.

use std::collections::BTreeMap;

use nimbus_control_auth::operation;
use nimbus_control_store::{CloudAccount, NewCloudAccount};
use nimbus_core::{EnvironmentName, TenantId};
use serde_json::{Value, json};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::app::{App, EVERY_ENVIRONMENT};
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
            EXPIRATION,
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
/// When credentials of AWS end, as its command line exports it.
const EXPIRATION: &str = "AWS_CREDENTIAL_EXPIRATION";
/// Where keys of Google are exchanged for tokens.
const GOOGLE_TOKENS: &str = "https://oauth2.googleapis.com/token";
const GOOGLE_KEY: &str = "GOOGLE_CREDENTIALS";
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
        if name.starts_with('.') || name.contains('/') {
            return Err(Failure::field("name", "it begins with `.` or has a `/`"));
        }
        let environment = match &input.environment {
            None => None,
            Some(text) => Some(text.parse::<EnvironmentName>().map_err(|_| {
                Failure::field("environment", "this is not the name of an environment")
            })?),
        };
        let plaintext = checked(&input)?;
        let place = environment.map(|name| name.to_string());
        self.ensure_in(call, &permit, place_of(place.as_deref()))?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let known = tx.cloud_account_lock(&name).await?;
                if let Some(known) = &known {
                    // Whoever gives it to another environment takes it from the one that has it.
                    let place = place_of(known.environment.as_deref());
                    self.ensure_in(call, &permit, place)?;
                }
                let id = known.as_ref().map_or_else(Uuid::new_v4, |known| known.id);
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
                let known = tx.cloud_account_lock(name).await?;
                let known = known.ok_or_else(Failure::not_found)?;
                let place = place_of(known.environment.as_deref());
                self.ensure_in(call, &permit, place)?;
                tx.cloud_account_delete(name).await?;
                self.audit(tx, &call.context, permit.record().on(name))
                    .await?;
                Ok(())
            })
            .await
    }
}

/// A key itself. Google's libraries take a path there too, and descriptions of keys that are in other files or at other
/// addresses: they would read the server's files, and send them where the description says.
fn is_service_account_key(text: &str) -> bool {
    let key: Option<serde_json::Map<String, Value>> = serde_json::from_str(text).ok();
    key.is_some_and(|key| {
        let own = key.get("type").and_then(Value::as_str) == Some("service_account");
        let asks = key.get("token_uri").and_then(Value::as_str);
        own && asks.is_none_or(|address| address == GOOGLE_TOKENS)
    })
}

/// Where an account decides what runs work on. One without an environment is for all that have none of their own.
fn place_of(environment: Option<&str>) -> &str {
    environment.unwrap_or(EVERY_ENVIRONMENT)
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
        if name == EXPIRATION && value.parse::<jiff::Timestamp>().is_err() {
            let message = format!("{name} has to be a time such as 2026-01-31T12:00:00Z");
            return Err(Failure::field("credentials", message));
        }
        if name == GOOGLE_KEY && !is_service_account_key(value) {
            let message = format!("{name} has to be the key of a service account, as JSON");
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
