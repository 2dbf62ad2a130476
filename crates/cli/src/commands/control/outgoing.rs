//! How notifications leave a server, from the settings.

use std::path::Path;
use std::time::Duration;

use nimbus_config::{MailProtection, Settings};
use nimbus_control_server::{MailEncryption, MailRelay, WebhookSettings};
use nimbus_core::{Error, ErrorCode, Result};
use zeroize::Zeroizing;

pub(super) fn webhooks(settings: &Settings) -> Result<WebhookSettings> {
    let given = &settings.webhooks;
    let text = |setting: &Option<String>| setting.clone().unwrap_or_default();
    let mut webhooks =
        WebhookSettings::parse(&text(&given.networks.value), &text(&given.ports.value)).map_err(
            |problem| {
                Error::new(ErrorCode::CONFIG_BAD_VALUE, problem)
                    .with_help("look at notifications.webhooks.networks and .ports")
            },
        )?;
    webhooks.enabled = given.enabled.value;
    webhooks.timeout = Duration::from_secs(given.timeout.value.into());
    webhooks.rules.plain = given.plain.value;
    Ok(webhooks)
}

/// The relay, if there is one and mail is wanted.
pub(super) fn mail(settings: &Settings, directory: &Path) -> Result<Option<MailRelay>> {
    let smtp = &settings.smtp;
    let Some(host) = smtp
        .host
        .value
        .clone()
        .filter(|_| settings.email.enabled.value)
    else {
        return Ok(None);
    };
    let Some(from) = smtp.from.value.clone() else {
        let message = "smtp.host is set and smtp.from is not";
        return Err(Error::new(ErrorCode::CONFIG_BAD_VALUE, message)
            .with_help("set NIMBUS_SMTP_FROM, such as Nimbus <nimbus@example.com>"));
    };
    let authorities = match &smtp.authorities.value {
        None => None,
        Some(file) => {
            let path = directory.join(file);
            let read = std::fs::read(&path).map_err(|error| {
                let message = format!("{} cannot be read: {error}", path.display());
                Error::new(ErrorCode::FILE_UNREADABLE, message)
                    .with_help("look at smtp.authorities (NIMBUS_SMTP_AUTHORITIES)")
            })?;
            Some(read)
        }
    };
    let password = smtp.password.value.as_ref();
    Ok(Some(MailRelay {
        host,
        port: smtp.port.value,
        user: smtp.user.value.clone(),
        password: password.map(|secret| Zeroizing::new(secret.expose().to_owned())),
        encryption: match smtp.encryption.value {
            MailProtection::StartTls => MailEncryption::StartTls,
            MailProtection::Tls => MailEncryption::Tls,
            MailProtection::None => MailEncryption::None,
        },
        authorities,
        from,
    }))
}
