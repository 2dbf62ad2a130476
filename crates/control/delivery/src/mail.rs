//! Sends mail through the operator's relay.
//!
//! Encrypted unless the operator says otherwise, and with a certificate that is checked. What the relay answers is the
//! operator's to read, in the log; whoever looks at a delivery sees its number.

use std::fmt;
use std::time::Duration;

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use nimbus_core::{Error, ErrorCode};
use zeroize::Zeroizing;

use crate::outcome::{SendOutcome, SendVerdict};

/// For all of a conversation; a relay that takes longer is tried again.
const LONGEST: Duration = Duration::from_secs(60);
/// For one answer in it.
const LONGEST_ANSWER: Duration = Duration::from_secs(20);
/// Answers about the address itself: it is not there, and asking again will not make it so. Others, such as a refused
/// password, are the operator's to mend.
const NO_SUCH_ADDRESS: &[u16] = &[501, 550, 551, 553];

/// How the way to the relay is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailEncryption {
    /// Begins in the clear and goes on encrypted, or not at all.
    StartTls,
    /// From the first byte.
    Tls,
    /// Never; for a relay on the same machine.
    None,
}

/// The operator's relay.
#[derive(Clone)]
pub struct MailRelay {
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<Zeroizing<String>>,
    pub encryption: MailEncryption,
    /// Authorities that sign the relay's certificate besides those of the system, as PEM.
    pub authorities: Option<Vec<u8>>,
    /// Whom mail is from, with or without a name.
    pub from: String,
}

impl fmt::Debug for MailRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailRelay")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("encryption", &self.encryption)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

/// Why there is nobody to send mail with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailerError {
    #[error("`{0}` is not an address that mail can be from, such as Nimbus <nimbus@example.com>")]
    From(String),
    #[error("a user and a password for the mail relay belong together")]
    HalfCredentials,
    #[error("the certificates for the mail relay cannot be read")]
    Authorities,
    #[error("the connection to the mail relay cannot be encrypted on this machine")]
    Encryption,
}

impl From<MailerError> for Error {
    fn from(error: MailerError) -> Self {
        Self::new(ErrorCode::CONFIG_BAD_VALUE, error.to_string())
            .with_help("look at the settings of smtp")
    }
}

/// One mail.
#[derive(Clone, Debug)]
pub struct Mail {
    /// Names it for whoever gets it twice; the same for each time that it is sent.
    pub id: String,
    pub to: String,
    pub subject: String,
    pub text: String,
}

/// Sends mail. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl fmt::Debug for Mailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailer")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl Mailer {
    /// Connects to nobody yet.
    ///
    /// # Errors
    ///
    /// When the settings cannot be used, whatever the relay says.
    pub fn new(relay: &MailRelay) -> Result<Self, MailerError> {
        let from: Mailbox = relay
            .from
            .parse()
            .map_err(|_| MailerError::From(relay.from.clone()))?;
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&relay.host)
            .port(relay.port)
            .timeout(Some(LONGEST_ANSWER))
            .hello_name(ClientId::Domain(from.email.domain().to_owned()))
            .tls(encryption(relay)?);
        builder = match (&relay.user, &relay.password) {
            (Some(user), Some(password)) => {
                builder.credentials(Credentials::new(user.clone(), password.to_string()))
            }
            (None, None) => builder,
            _ => return Err(MailerError::HalfCredentials),
        };
        Ok(Self {
            transport: builder.build(),
            from,
        })
    }

    pub async fn send(&self, mail: &Mail) -> SendOutcome {
        let message = match self.message(mail) {
            Ok(message) => message,
            Err(problem) => return SendOutcome::unanswered(SendVerdict::Refused, problem),
        };
        match tokio::time::timeout(LONGEST, self.transport.send(message)).await {
            Ok(Ok(response)) => SendOutcome::delivered(response.code().into()),
            Ok(Err(error)) => failed(&error),
            Err(_) => {
                let problem = "the mail relay did not answer in time";
                SendOutcome::unanswered(SendVerdict::Retry, problem)
            }
        }
    }

    fn message(&self, mail: &Mail) -> Result<Message, &'static str> {
        let to: Address = mail
            .to
            .parse()
            .map_err(|_| "this is not an address that mail can be sent to")?;
        let id = format!("<{}@{}>", mail.id, self.from.email.domain());
        // So that no absence note answers it.
        let automatic = HeaderValue::new(
            HeaderName::new_from_ascii_str("Auto-Submitted"),
            "auto-generated".to_owned(),
        );
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(one_line(&mail.subject))
            .message_id(Some(id))
            .date_now()
            .raw_header(automatic)
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.clone())
            .map_err(|_| "the mail cannot be written")
    }
}

/// Names and reasons that people wrote are in subjects; a line end in one would begin another header.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

fn encryption(relay: &MailRelay) -> Result<Tls, MailerError> {
    if relay.encryption == MailEncryption::None {
        return Ok(Tls::None);
    }
    let mut parameters = TlsParameters::builder(relay.host.clone());
    if let Some(pem) = &relay.authorities {
        let authority = Certificate::from_pem(pem).map_err(|_| MailerError::Authorities)?;
        parameters = parameters.add_root_certificate(authority);
    }
    let parameters = parameters
        .build_rustls()
        .map_err(|_| MailerError::Encryption)?;
    Ok(match relay.encryption {
        MailEncryption::Tls => Tls::Wrapper(parameters),
        MailEncryption::StartTls | MailEncryption::None => Tls::Required(parameters),
    })
}

fn failed(error: &lettre::transport::smtp::Error) -> SendOutcome {
    tracing::warn!(%error, "the mail relay did not take a mail");
    let Some(code) = error.status() else {
        let problem = match (error.is_timeout(), error.is_tls()) {
            (true, _) => "the mail relay did not answer in time",
            (false, true) => "the connection to the mail relay could not be encrypted",
            (false, false) => "the mail relay cannot be reached",
        };
        return SendOutcome::unanswered(SendVerdict::Retry, problem);
    };
    let number: u16 = code.into();
    let verdict = match NO_SUCH_ADDRESS.contains(&number) {
        true => SendVerdict::Refused,
        false => SendVerdict::Retry,
    };
    SendOutcome::answered(verdict, number, format!("the mail relay answered {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay() -> MailRelay {
        MailRelay {
            host: "127.0.0.1".to_owned(),
            port: 25,
            user: None,
            password: None,
            encryption: MailEncryption::None,
            authorities: None,
            from: "Nimbus <nimbus@example.com>".to_owned(),
        }
    }

    #[test]
    fn settings_that_cannot_work_are_refused_before_anybody_waits_for_mail() {
        let refused = |relay: &MailRelay| Mailer::new(relay).unwrap_err();
        let mut wrong = relay();
        wrong.from = "nobody".to_owned();
        assert_eq!(refused(&wrong), MailerError::From("nobody".to_owned()));
        let mut half = relay();
        half.user = Some("nimbus".to_owned());
        assert_eq!(refused(&half), MailerError::HalfCredentials);
        let error = Error::from(refused(&half));
        assert_eq!(error.code(), ErrorCode::CONFIG_BAD_VALUE);
    }

    #[test]
    fn a_subject_is_one_line_and_the_id_is_the_same_each_time() {
        let mailer = Mailer::new(&relay()).unwrap();
        let mail = Mail {
            id: "d1".to_owned(),
            to: "ana@acme.example".to_owned(),
            subject: "denied\r\nBcc: mal@evil.example".to_owned(),
            text: "Grüße".to_owned(),
        };
        let text = |mail: &Mail| {
            let message = mailer.message(mail).unwrap();
            String::from_utf8(message.formatted()).unwrap()
        };
        let written = text(&mail);
        assert!(!written.contains("\r\nBcc:"), "{written}");
        assert!(written.contains("Message-ID: <d1@example.com>\r\n"));
        let to = Mail {
            to: "x@y, z@w".to_owned(),
            ..mail
        };
        assert!(mailer.message(&to).is_err());
    }
}
