//! `nimbus setup`, `nimbus login` and `nimbus logout`.

use nimbus_control_client::{Client, ProfileTokens, ServerProfile};
use nimbus_core::{Error, ErrorCode, Result};
use serde_json::{Value, json};

use super::AdminReport;
use super::server::{profiles, read_password, text};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct LoginArgs {
    /// Address of the server, such as https://nimbus.example; without it the profile's
    #[arg(long, value_name = "URL", env = "NIMBUS_SERVER")]
    server: Option<String>,

    /// Tenant to sign in to, as slugs joined by `/`; empty for the operator's own
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,

    /// Your e-mail address
    #[arg(long, value_name = "EMAIL")]
    email: Option<String>,

    /// Read the password from standard input instead of asking for it on the terminal
    #[arg(long)]
    password_stdin: bool,

    /// Name under which the sign-in is kept
    #[arg(
        long,
        value_name = "NAME",
        env = "NIMBUS_PROFILE",
        default_value = "default"
    )]
    profile: String,
}

pub(crate) async fn login(args: LoginArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let known = profiles()?
        .get(Some(&args.profile))
        .ok()
        .map(|(_, profile)| profile);
    let missing = |what: &str| {
        Error::new(
            ErrorCode::USAGE,
            format!("`login` needs --{what} the first time"),
        )
    };
    let server = args
        .server
        .or_else(|| known.as_ref().map(|profile| profile.server.clone()))
        .ok_or_else(|| missing("server"))?;
    let email = args
        .email
        .or_else(|| known.as_ref().map(|profile| profile.email.clone()))
        .ok_or_else(|| missing("email"))?;
    let tenant = args
        .tenant
        .or_else(|| known.as_ref().map(|profile| profile.tenant.clone()))
        .unwrap_or_default();
    let password = read_password(&format!("Password of {email}: "), args.password_stdin)?;
    let mut client = Client::anonymous(&server)?;
    let body = json!({"tenant": tenant, "email": email, "password": password});
    let answer = client.post("/api/v1/auth/login", &body).await?;
    let profile = ServerProfile {
        server,
        tenant,
        tenant_id: text(&answer, "tenant_id")?,
        email,
    };
    let before = remember(&args.profile, &profile, &answer)?;
    report(context, &args.profile, &profile, before)
}

/// Keeps a sign-in for the commands that follow; the profile that they used until now, if it was another.
fn remember(name: &str, profile: &ServerProfile, answer: &Value) -> Result<Option<String>> {
    let tokens = ProfileTokens::of_answer(answer).ok_or_else(|| {
        Error::new(
            ErrorCode::SERVER_ANSWER,
            "the server answered without tokens",
        )
    })?;
    let profiles = profiles()?;
    let before = profiles.put(name, profile)?;
    profiles.put_tokens(name, Some(&tokens))?;
    Ok(before)
}

fn report(
    context: &CommandContext,
    name: &str,
    profile: &ServerProfile,
    before: Option<String>,
) -> Result<CommandOutcome> {
    let ServerProfile { server, email, .. } = profile;
    let mut data =
        json!({"server": server, "email": email, "profile": name, "tenant_id": profile.tenant_id});
    let mut text = format!("signed in at {server} as {email}");
    // The next command would otherwise work in another place than the one before, and nobody would know why.
    if let Some(before) = before {
        text.push_str(&format!(
            "\ncommands now use the profile `{name}`; until now it was `{before}`: \
             choose with --profile or NIMBUS_PROFILE"
        ));
        data["previous_profile"] = json!(before);
    }
    let report = AdminReport::done(data, text);
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

#[derive(clap::Args, Debug)]
pub(crate) struct SetupArgs {
    /// The link that `nimbus up` printed
    #[arg(value_name = "LINK")]
    link: String,

    /// E-mail address of the first administrator
    #[arg(long, value_name = "EMAIL")]
    email: String,

    /// Name of the first administrator; without it the part of the address before the @
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Read the password from standard input instead of asking for it on the terminal
    #[arg(long)]
    password_stdin: bool,

    /// Name under which the sign-in is kept
    #[arg(
        long,
        value_name = "NAME",
        env = "NIMBUS_PROFILE",
        default_value = "default"
    )]
    profile: String,
}

/// Finishes the first run from a terminal, as the page behind the link does from a browser.
pub(crate) async fn setup(args: SetupArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let (server, token) = taken_apart(&args.link)?;
    nimbus_telemetry::register_secret(&token);
    let mut client = Client::anonymous(&server)?;
    let question = format!("New password of {}: ", args.email);
    let password = read_password(&question, args.password_stdin)?;
    let name = args.name.unwrap_or_else(|| {
        let before = args.email.split('@').next();
        before.unwrap_or_default().to_owned()
    });
    let body =
        json!({"token": token, "email": args.email, "display_name": name, "password": password});
    let answer = client.post("/api/v1/setup/complete", &body).await?;
    let profile = ServerProfile {
        server,
        tenant: String::new(),
        tenant_id: text(&answer, "tenant_id")?,
        email: args.email,
    };
    let before = remember(&args.profile, &profile, &answer)?;
    report(context, &args.profile, &profile, before)
}

/// A link's server and token.
fn taken_apart(link: &str) -> Result<(String, String)> {
    link.split_once("/setup?token=")
        .filter(|(server, token)| !server.is_empty() && !token.is_empty())
        .map(|(server, token)| (server.to_owned(), token.to_owned()))
        .ok_or_else(|| {
            Error::new(ErrorCode::USAGE, "this is not a link of a first run")
                .with_help("`nimbus up` prints it when it starts, until the first run is finished; it ends in /setup?token=…")
        })
}

#[derive(clap::Args, Debug)]
pub(crate) struct LogoutArgs {
    /// Profile to sign out of; without it the one that was used last
    #[arg(long, value_name = "NAME", env = "NIMBUS_PROFILE")]
    profile: Option<String>,
}

/// Ends the session on the server and forgets the tokens; they are forgotten even if the server
/// cannot be reached.
pub(crate) async fn logout(args: LogoutArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let profiles = profiles()?;
    let (name, profile) = profiles.get(args.profile.as_deref())?;
    let mut client = Client::of_profile(&profiles, &name, &profile)?;
    let ended = client.post("/api/v1/auth/logout", &json!({})).await;
    profiles.put_tokens(&name, None)?;
    if let Err(error) = ended {
        context.output.note(&format!(
            "the tokens are forgotten; the session could not be ended: {error}"
        ));
    }
    let data = json!({"server": profile.server, "profile": name});
    let report = AdminReport::done(data, format!("signed out at {}", profile.server));
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}
