//! Where the workflows are and how they are treated.

use std::time::Duration;

use nimbus_core::{Error, ErrorCode};
use secrecy::SecretString;

/// The name of this application in the library's tables, and of its one executor.
pub(crate) const APPLICATION: &str = "nimbus";
/// Where new workflows wait to be begun.
pub(crate) const QUEUE: &str = "nimbus";
/// The topic of everything that is sent to a workflow.
pub(crate) const INBOX: &str = "inbox";

/// See the fields; [`EmbeddedOptions::new`] has what is usual.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// Of a role that owns the schema, or may create it. No pooler in between that shares sessions:
    /// ownership is a lock of a session.
    pub url: SecretString,
    pub schema: String,
    /// Of the workflows' code: changed only when the code cannot go on with what was recorded before.
    pub version: String,
    /// How often new workflows and ends of workflows are looked for.
    pub poll: Duration,
    /// How many steps run at once in this process.
    pub step_slots: usize,
    pub connections: u32,
    /// How long workflows that ended are kept.
    pub retention: Duration,
    /// How often a workflow may be begun without getting any further before it is given up.
    pub fruitless_begins: u32,
}

impl EmbeddedOptions {
    pub fn new(url: SecretString) -> Self {
        Self {
            url,
            schema: "nimbus_workflows".to_owned(),
            version: "1".to_owned(),
            poll: Duration::from_millis(100),
            step_slots: 64,
            connections: 10,
            retention: Duration::from_secs(30 * 24 * 60 * 60),
            fruitless_begins: 10,
        }
    }

    /// The schema's name is put into statements.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let begins = self.schema.starts_with(|c: char| c.is_ascii_lowercase());
        if begins && self.schema.len() <= 40 && self.schema.chars().all(letter) {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::WORKFLOW_INVALID,
            format!("`{}` is not a name of a schema", self.schema),
        )
        .with_help("use lower case letters, digits and _ only"))
    }
}
