//! `nimbus login` and `nimbus logout`.

use nimbus_control_client::{Client, Profile, Tokens};
use nimbus_core::{Error, ErrorCode, Result};
use serde_json::json;

use super::AdminReport;
use super::server::{profiles, read_password, text};
use crate::context::Context;
use crate::exit::Outcome;

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

    /// Read the password from standard input
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

pub(crate) async fn login(args: LoginArgs, context: &Context) -> Result<Outcome> {
    let profiles = profiles()?;
    let known = profiles
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
    let tokens = Tokens::of_answer(&answer).ok_or_else(|| {
        Error::new(
            ErrorCode::SERVER_ANSWER,
            "the server answered without tokens",
        )
    })?;
    let profile = Profile {
        server: server.clone(),
        tenant,
        tenant_id: text(&answer, "tenant_id")?,
        email: email.clone(),
    };
    profiles.put(&args.profile, &profile)?;
    profiles.put_tokens(&args.profile, Some(&tokens))?;
    let data = json!({"server": server, "email": email, "profile": args.profile, "tenant_id": profile.tenant_id});
    let report = AdminReport::done(data, format!("signed in at {server} as {email}"));
    context.output.result(&report)?;
    Ok(Outcome::Done)
}

#[derive(clap::Args, Debug)]
pub(crate) struct LogoutArgs {
    /// Profile to sign out of; without it the one that was used last
    #[arg(long, value_name = "NAME", env = "NIMBUS_PROFILE")]
    profile: Option<String>,
}

/// Ends the session on the server and forgets the tokens; they are forgotten even if the server
/// cannot be reached.
pub(crate) async fn logout(args: LogoutArgs, context: &Context) -> Result<Outcome> {
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
    Ok(Outcome::Done)
}
