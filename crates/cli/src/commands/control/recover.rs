//! `nimbus recover`: break-glass, an administrator for an installation that lost its own.

use std::path::PathBuf;

use nimbus_control_server::{Database, RecoverInput, recover};
use nimbus_core::Result;
use schemars::JsonSchema;
use serde::Serialize;

use super::installation::{InstallationArgs, installation_keys};
use crate::commands::admin::read_password;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct ControlRecoverArgs {
    #[command(flatten)]
    place: InstallationArgs,

    /// E-mail address of the administrator; an account that exists gets a new password and is enabled
    #[arg(long)]
    email: String,

    /// Read the password from standard input instead of asking for it on the terminal
    #[arg(long)]
    password_stdin: bool,

    /// Folder with the keys of the installation; without it, in the data directory
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
}

pub(crate) async fn run(
    args: ControlRecoverArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let options = args.place.options(context)?;
    let keys = installation_keys(context, &options, args.keys)?;
    let question = format!("New password of {}: ", args.email);
    let wanted = RecoverInput {
        password: read_password(&question, args.password_stdin)?,
        email: args.email,
        by: who(),
    };
    // Beside a server that runs, or without one.
    let recovered = match Database::of_running(&options).await? {
        Some(store) => recover(store, &keys, wanted).await?,
        None => {
            let database = Database::open(&options).await?;
            let recovered = recover(database.store.clone(), &keys, wanted).await;
            database.close().await;
            recovered?
        }
    };
    context.output.result(&RecoverReport {
        user_id: recovered.user.to_string(),
        email: recovered.email,
        created: recovered.created,
    })?;
    Ok(CommandOutcome::Done)
}

/// Who the machine says this is, and who it was before `sudo`.
fn who() -> String {
    let uid = nix::unistd::Uid::effective();
    let name = nix::unistd::User::from_uid(uid)
        .ok()
        .flatten()
        .map_or_else(|| uid.to_string(), |user| user.name);
    match std::env::var("SUDO_USER") {
        Ok(before) if !before.is_empty() => format!("{name} (sudo by {before})"),
        _ => name,
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct RecoverReport {
    user_id: String,
    email: String,
    /// Whether the account is new.
    created: bool,
}

impl Report for RecoverReport {
    const SCHEMA: &'static str = "nimbus/recover/1";

    fn text(&self, _terminal: Terminal) -> String {
        let done = if self.created {
            "was made"
        } else {
            "has a new password, is enabled and signed out everywhere"
        };
        format!(
            "{} {done}, and administers the installation. The audit trail has it.\n",
            self.email
        )
    }
}
