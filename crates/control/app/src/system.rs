//! How the installation is, looked at when somebody asks. Only for whoever runs it.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_control_auth::operation;
use nimbus_control_delivery::MailRelay;
use nimbus_control_store::{DatabaseFigures, Isolation};
use nimbus_control_wire::{DatabaseView, RunnersView, SystemCheck, SystemView};
use nimbus_core::TenantId;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};

/// Clocks that are further apart than this make leases and sign-ins unreliable.
const MOST_CLOCK_MS: i128 = 2_000;

/// What the server knows of itself and of its machine.
#[async_trait]
pub trait SystemSource: Send + Sync {
    fn version(&self) -> String;

    /// Places for runs; counts are filled in by others.
    fn runners(&self) -> RunnersView;

    /// The sandbox, the packages that programs find, where keys are: looked at now.
    async fn checks(&self) -> Vec<SystemCheck>;
}

impl fmt::Debug for dyn SystemSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemSource(..)")
    }
}

impl App {
    /// The installation is the operator's: in another tenant there is none to be seen.
    pub async fn system_show(&self, call: &Call, tenant: TenantId) -> Result<SystemView> {
        let permit = self.permit(call, operation::SHOW_SYSTEM, tenant).await?;
        let store = &self.inner.store;
        if store.tenant_find(&[]).await? != tenant {
            return Err(Failure::not_found());
        }
        store
            .tenant_tx(tenant, async |tx| {
                self.audit(tx, &call.context, permit.record()).await
            })
            .await?;
        let figures = store.database_figures().await?;
        let now = Timestamp::now();
        let work = store.work_figures().await?;
        let mut checks = vec![database_check(&figures), self.isolation_check().await?];
        let source = self.inner.system.get();
        if let Some(source) = source {
            checks.extend(source.checks().await);
        }
        checks.push(clock_check(figures.time.into(), now));
        checks.push(mail_check(self.inner.settings.mail.as_ref()));
        Ok(SystemView {
            version: source.map_or_else(String::new, |source| source.version()),
            server_time: now.to_string(),
            checks,
            runners: RunnersView {
                running: work.running,
                queued: work.queued,
                servers: work.servers,
                ..source.map(|source| source.runners()).unwrap_or_default()
            },
            database: DatabaseView {
                tenants: store.active_tenants().await?,
                isolation: match store.isolation() {
                    Isolation::SchemaWithRls => "schema_with_rls".to_owned(),
                    Isolation::Shared => "shared".to_owned(),
                },
                version: figures.version,
                bytes: figures.bytes,
                schema: figures.newest_migration.to_owned(),
                connections: figures.connections,
                most_connections: figures.most_connections,
                milliseconds: figures.round_trip.as_secs_f64() * 1000.0,
            },
        })
    }

    async fn isolation_check(&self) -> Result<SystemCheck> {
        let found = self.inner.store.weaknesses().await?;
        let told: Vec<_> = found.iter().map(ToString::to_string).collect();
        let fatal = found.iter().any(nimbus_control_store::Weakness::is_fatal);
        let status = match (found.is_empty(), fatal) {
            (true, _) => "ok",
            (false, false) => "warning",
            (false, true) => "failed",
        };
        Ok(check(
            "isolation",
            "Tenants apart",
            status,
            match found.is_empty() {
                true => "Every table of tenants is guarded by row-level security, for the app's role too.".to_owned(),
                false => told.join("; "),
            },
            fatal.then_some("The server refuses its next start until this is mended."),
        ))
    }
}

fn check(kind: &str, name: &str, status: &str, message: String, help: Option<&str>) -> SystemCheck {
    SystemCheck {
        kind: kind.to_owned(),
        name: name.to_owned(),
        status: status.to_owned(),
        message,
        help: help.map(str::to_owned),
    }
}

fn database_check(figures: &DatabaseFigures) -> SystemCheck {
    let full = figures.connections * 10 >= figures.most_connections * 9;
    check(
        "database",
        "PostgreSQL",
        if full { "warning" } else { "ok" },
        format!(
            "{} answers in {:.1} ms; {} of {} connections.",
            figures.version,
            figures.round_trip.as_secs_f64() * 1000.0,
            figures.connections,
            figures.most_connections
        ),
        full.then_some(
            "Nearly every connection is taken: requests will wait, then be turned away.",
        ),
    )
}

fn clock_check(database: Timestamp, here: Timestamp) -> SystemCheck {
    let apart = here.duration_since(database).as_millis().abs();
    let far = apart > MOST_CLOCK_MS;
    check(
        "clock",
        "Clocks",
        if far { "warning" } else { "ok" },
        format!("This server and its database are {apart} ms apart."),
        far.then_some("Leases count on the database's clock and sign-ins on this one's: keep both in step with NTP."),
    )
}

/// Whether there is a relay for mail; nobody is asked whether it answers, for nobody is written to by looking.
fn mail_check(relay: Option<&MailRelay>) -> SystemCheck {
    match relay {
        Some(relay) => check(
            "mail",
            "Mail",
            "ok",
            format!(
                "Notifications are mailed through {}:{}.",
                relay.host, relay.port
            ),
            None,
        ),
        None => check(
            "mail",
            "Mail",
            "warning",
            "No mail is sent.".to_owned(),
            Some(
                "Set smtp.host (NIMBUS_SMTP_HOST) and smtp.from; until then people are told in the application.",
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_far_apart_are_told_whichever_is_ahead() {
        let here: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        for (other, status) in [
            ("2026-01-01T00:00:09Z", "ok"),
            ("2026-01-01T00:00:00Z", "warning"),
            ("2026-01-01T00:01:00Z", "warning"),
        ] {
            assert_eq!(
                clock_check(other.parse().unwrap(), here).status,
                status,
                "{other}"
            );
        }
    }
}
