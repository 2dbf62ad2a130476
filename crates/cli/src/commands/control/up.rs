//! `nimbus up`: the control plane in one process, until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use nimbus_config::{Rate, RatePeriod, Secret, SettingOrigin, Settings};
use nimbus_control_server::{
    ApiOptions, ArchiveAddress, ConnectionLimits, ControlServer, Front, GivenKeys, Limit,
    RunOptions, ServerOptions,
};
use nimbus_core::{Error, ErrorCode, Result};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

use super::installation::InstallationArgs;
use crate::commands::program::tenant_sandbox;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct ControlUpArgs {
    #[command(flatten)]
    place: InstallationArgs,

    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,

    /// Folder with the keys of the installation, which servers on one database share; without it, in
    /// the data directory
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
}

pub(crate) async fn run(args: ControlUpArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let started = Instant::now();
    let options = ServerOptions {
        listen: args.listen,
        keys: args.keys,
        database: args.place.options(context)?,
        operator: context.settings()?.settings.app.name.value.clone(),
        api: api_options(&context.settings()?.settings)?,
        connections: ConnectionLimits::default(),
        runs: run_options(context)?,
    };
    // Heard from the beginning, so that a start can be given up.
    let stop = stop_requested()?;
    let mut stop = Box::pin(stop);
    let server = tokio::select! {
        server = ControlServer::start(&options) => server?,
        () = &mut stop => return Err(Error::new(ErrorCode::CANCELLED, "stopped while starting")),
    };
    context.output.result(&UpReport {
        address: server.url(),
        setup_link: server.setup_link(),
        data_dir: options.database.data_dir.display().to_string(),
        ready_after_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })?;
    server.serve(stop).await?;
    Ok(CommandOutcome::Done)
}

fn run_options(context: &CommandContext) -> Result<RunOptions> {
    let settings = &context.settings()?.settings.runs;
    let modules = settings.node_modules.value.as_ref();
    Ok(RunOptions {
        at_once: usize::try_from(settings.at_once.value).unwrap_or(usize::MAX),
        node_modules: modules.map(|folder| context.directory.join(folder)),
        sandbox: Some(tenant_sandbox(context)?),
    })
}

fn api_options(settings: &Settings) -> Result<ApiOptions> {
    let secret = |setting: &Option<Secret>| {
        setting
            .as_ref()
            .map(|secret| Zeroizing::new(secret.expose().to_owned()))
    };
    let text = |setting: &Option<String>| setting.clone().unwrap_or_default();
    let server = &settings.server;
    let front = Front::parse(
        &text(&server.trusted_proxies.value),
        &text(&server.locations.value),
    )
    .map_err(|error| {
        Error::new(ErrorCode::CONFIG_BAD_VALUE, error.to_string())
            .with_help("look at server.trusted_proxies and server.locations")
    })?;
    let s3 = &settings.s3;
    Ok(ApiOptions {
        given_keys: GivenKeys {
            token_secret: secret(&settings.auth.jwt_secret.value),
            previous_token_secret: secret(&settings.auth.jwt_previous_secret.value),
            secret_key: secret(&settings.app.secret_key.value),
        },
        access_seconds: settings.auth.jwt_expiry.value,
        refresh_seconds: settings.auth.refresh_token_expiry.value,
        public_url: server
            .public_url
            .value
            .as_ref()
            .map(|url| url.url().to_string()),
        front,
        rate: settings
            .rate_limiting
            .enabled
            .value
            .then(|| limit(settings.rate_limiting.default_limit.value)),
        archive: settings
            .audit
            .archive
            .value
            .as_ref()
            .map(|url| ArchiveAddress {
                url: url.clone(),
                // Amazon's own unless another one was named.
                s3_endpoint: (s3.endpoint.origin != SettingOrigin::Default)
                    .then(|| s3.endpoint.value.url().to_string()),
                s3_access_key: secret(&s3.access_key.value),
                s3_secret_key: secret(&s3.secret_key.value),
            }),
        audit_retention_days: settings.audit.retention_days.value,
        tenant_grace_days: settings.tenancy.grace_days.value,
    })
}

fn limit(rate: Rate) -> Limit {
    let per_seconds = match rate.period {
        RatePeriod::Second => 1.0,
        RatePeriod::Minute => 60.0,
        RatePeriod::Hour => 3600.0,
        RatePeriod::Day => 86_400.0,
    };
    Limit {
        requests: rate.requests,
        per_seconds,
    }
}

/// Ready when somebody asks the process to end.
fn stop_requested() -> Result<impl Future<Output = ()> + Send + 'static> {
    let listen = |kind| {
        signal(kind).map_err(|error| {
            Error::new(ErrorCode::INTERNAL, "signals cannot be heard").with_source(error)
        })
    };
    let (mut terminate, mut interrupt) = (
        listen(SignalKind::terminate())?,
        listen(SignalKind::interrupt())?,
    );
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct UpReport {
    /// Where the server listens.
    address: String,
    /// Page that finishes the first run, with the secret that opens it; null once that is done.
    setup_link: Option<String>,
    data_dir: String,
    ready_after_ms: u64,
}

impl Report for UpReport {
    const SCHEMA: &'static str = "nimbus/up/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = format!(
            "Nimbus is ready at {}\n",
            terminal.paint(TextStyle::Good, &self.address)
        );
        if let Some(link) = &self.setup_link {
            text.push_str(&format!("Finish the first run at {link}\n"));
            text.push_str("  or with `nimbus setup <that link> --email <yours>`\n");
        }
        text.push_str(&format!("Data is in {}\n", self.data_dir));
        text
    }
}
