//! How notifications leave a server: webhooks that are signed as Standard Webhooks has it, mail over SMTP, and when it is
//! tried again.
//!
//! Nothing here is kept and nothing is decided about people: callers have what is to be sent, send it here and note the
//! outcome. Addresses of webhooks are somebody else's, so they are called through the client that never calls inwards;
//! the mail relay is the operator's. No outcome has a secret in it, and none repeats what a receiver answered beyond the
//! number of its answer.

mod mail;
mod outcome;
mod retry;
mod signature;
mod webhook;

pub use mail::{Mail, MailEncryption, MailRelay, Mailer, MailerError};
pub use outcome::{SendOutcome, SendVerdict};
pub use retry::{MOST_TRIES, delay_before_next};
pub use signature::{SECRET_PREFIX, WebhookSecret, WebhookSecretError};
pub use webhook::{WebhookMessage, WebhookSender, WebhookSettings};
