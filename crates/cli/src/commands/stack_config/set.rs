//! `nimbus stack-config set`.

use std::io::{self, IsTerminal as _, Read as _};

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::project::{ConfigValue, parse_key};
use schemars::JsonSchema;
use serde::Serialize;
use zeroize::Zeroizing;

use super::OpenedStackConfig;
use crate::commands::program::LocationArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::Terminal;

#[derive(clap::Args, Debug)]
pub(crate) struct StackConfigSetArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// The key: name, or namespace:name
    #[arg(value_name = "KEY")]
    key: String,

    /// The value; without one it is read from standard input
    ///
    /// A secret given here may stay in the history of your shell.
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,

    /// Encrypt the value with the stack's passphrase
    #[arg(long)]
    secret: bool,

    /// The key is a path into a structure, such as servers[0].name
    #[arg(long)]
    path: bool,
}

pub(crate) async fn run(
    args: StackConfigSetArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let value = match args.value {
        Some(value) => Zeroizing::new(value),
        None => {
            // A mistake in the place or the key is said before anybody is asked for the value.
            let opened = OpenedStackConfig::new(&args.location, context)?;
            parse_key(&args.key, &opened.project.name, args.path)?;
            from_input(&args.key)?
        }
    };
    let (mut opened, _edit) = OpenedStackConfig::edit(&args.location, context)?;
    let (key, path) = parse_key(&args.key, &opened.project.name, args.path)?;
    if args.secret {
        opened
            .settings
            .set_secret(&key, &path, &value, &opened.secrets)?;
    } else {
        opened
            .settings
            .set(&key, &path, ConfigValue::from_input(&value, &path))?;
    }
    opened.settings.save()?;
    context.output.result(&ChangeReport {
        stack: opened.stack,
        file: opened.settings.path.display().to_string(),
        key: key.to_string(),
        secret: args.secret,
        verb: "set",
    })?;
    Ok(CommandOutcome::Done)
}

/// One value, without the line break that ends it.
pub(crate) fn from_input(key: &str) -> Result<Zeroizing<String>> {
    let unreadable = |message: String| {
        Error::new(ErrorCode::USAGE, message)
            .with_help("give the value as an argument, or pipe it in")
    };
    if io::stdin().is_terminal() {
        return Err(unreadable(format!("{key} has no value")));
    }
    let mut text = Zeroizing::new(String::new());
    io::stdin()
        .lock()
        .read_to_string(&mut text)
        .map_err(|error| unreadable(format!("the value of {key} cannot be read: {error}")))?;
    let trimmed = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Zeroizing::new(
        trimmed.strip_suffix('\r').unwrap_or(trimmed).to_owned(),
    ))
}

/// What was changed. Never holds the value.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ChangeReport {
    pub(super) stack: String,
    /// The file that was written.
    pub(super) file: String,
    /// The whole key: `namespace:name`.
    pub(super) key: String,
    pub(super) secret: bool,
    /// `set` or `removed`.
    #[serde(rename = "change")]
    pub(super) verb: &'static str,
}

impl Report for ChangeReport {
    const SCHEMA: &'static str = "nimbus/stack-config-change/1";

    fn text(&self, _: Terminal) -> String {
        let how = if self.secret { ", encrypted" } else { "" };
        format!("{} {} in {}{how}\n", self.key, self.verb, self.file)
    }
}
