//! `nimbus up`: the control plane in one process, until it is told to stop.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nimbus_config::{FlowEngine, Rate, RatePeriod, Secret, SettingOrigin, Settings};
use nimbus_control_server::{
    ApiOptions, ArchiveAddress, ConnectionLimits, ControlServer, DatabaseLocation, DatabaseOptions,
    DemoSite, Front, GivenKeys, Limit, MetricsReaders, RequestRates, RunLimits, RunOptions,
    ServerOptions, TemporalAddress, WorkflowEngine, WorkflowOptions,
};
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_backend::project::own_project_file;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

use super::installation::InstallationArgs;
use super::{needs, outgoing};
use crate::commands::program::{demo_sandbox, tenant_sandbox};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

const USUAL_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);

#[derive(clap::Args, Debug)]
pub(crate) struct ControlUpArgs {
    #[command(flatten)]
    place: InstallationArgs,

    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Folder with the keys of the installation, which servers on one database share; without it, in
    /// the data directory
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,

    /// Make an installation to look at: a tenant, people, and sixteen programs that are rehearsed
    #[arg(long)]
    demo: bool,

    /// Fetch nothing: end where PostgreSQL, or a package of the demonstration, is missing
    #[arg(long)]
    no_download: bool,

    /// Answer questions of GraphQL documents about the schema itself, for tools that ask them
    #[arg(long)]
    graphql_introspection: bool,
}

pub(crate) async fn run(args: ControlUpArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let started = Instant::now();
    let mut database = args.place.options(context)?;
    refuse_in_project(&args, &database, context)?;
    needs::database(&mut database, !args.no_download, context).await?;
    let mut runs = run_options(context)?;
    if args.demo {
        runs.sandbox = Some(demo_sandbox(context)?);
        needs::packages(&mut runs, &database.data_dir, !args.no_download, context).await?;
    }
    let options = ServerOptions {
        listen: args.listen.unwrap_or(USUAL_ADDRESS),
        keys: args.keys,
        database,
        operator: context.settings()?.settings.app.name.value.clone(),
        api: ApiOptions {
            graphql_introspection: args.graphql_introspection,
            ..api_options(&context.settings()?.settings, context)?
        },
        connections: ConnectionLimits::default(),
        runs,
        workflows: workflow_options(&context.settings()?.settings, context)?,
        valkey: valkey_address(&context.settings()?.settings),
    };
    // Heard from the beginning, so that a start can be given up.
    let stop = stop_requested()?;
    let mut stop = Box::pin(stop);
    let mut server = tokio::select! {
        server = ControlServer::start(&options) => server?,
        () = &mut stop => return Err(Error::new(ErrorCode::CANCELLED, "stopped while starting")),
    };
    let demo = if args.demo {
        match server.fill_demo().await {
            Ok(site) => Some(DemoSignIn::new(site)),
            Err(error) => {
                server.close().await;
                return Err(error);
            }
        }
    } else {
        None
    };
    context.output.result(&UpReport {
        demo,
        address: server.url(),
        setup_link: server.setup_link(),
        data_dir: options.database.data_dir.display().to_string(),
        ready_after_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })?;
    server.serve(stop).await?;
    Ok(CommandOutcome::Done)
}

/// Pulumi's users type `up` in a folder with a project and mean its program. Nothing is written to a
/// folder of the system before somebody has asked for a server.
fn refuse_in_project(
    args: &ControlUpArgs,
    database: &DatabaseOptions,
    context: &CommandContext,
) -> Result<()> {
    let asked = args.place.is_chosen()
        || args.listen.is_some()
        || args.keys.is_some()
        || args.graphql_introspection
        || args.demo
        || matches!(database.place, DatabaseLocation::External(_));
    if asked || own_project_file(&context.directory).is_err() {
        return Ok(());
    }
    let message = format!(
        "this folder has a Pulumi project, and `{} up` starts a control plane: it would keep its \
         data in {} and listen on {USUAL_ADDRESS}",
        context.program,
        database.data_dir.display()
    );
    let help = format!(
        "`{0} program up` brings the project's stack up; for the control plane name its place: \
         `{0} up --data-dir {1}`",
        context.program,
        database.data_dir.display()
    );
    Err(Error::new(ErrorCode::PROJECT_HERE, message).with_help(help))
}

pub(crate) fn run_options(context: &CommandContext) -> Result<RunOptions> {
    let settings = &context.settings()?.settings.runs;
    let places = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let modules = settings.node_modules.value.as_ref();
    let modules = modules.map(|folder| context.directory.join(folder));
    // Otherwise the first to hear of it is a tenant, whose program does not find its packages.
    if let Some(folder) = modules.as_ref().filter(|folder| !folder.is_dir()) {
        let message = format!("there is no folder {}", folder.display());
        return Err(Error::new(ErrorCode::CONFIG_BAD_VALUE, message)
            .with_help("look at runs.node_modules (NIMBUS_RUNS_NODE_MODULES)"));
    }
    Ok(RunOptions {
        limits: RunLimits {
            at_once: places(settings.at_once.value),
            per_tenant: settings.per_tenant.value.map(places),
            time: Duration::from_secs(settings.time_limit.value.into()),
        },
        node_modules: modules,
        sandbox: Some(tenant_sandbox(context)?),
    })
}

fn api_options(settings: &Settings, context: &CommandContext) -> Result<ApiOptions> {
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
    let metrics_readers = match &server.metrics_networks.value {
        Some(networks) => MetricsReaders::parse(networks).map_err(|part| {
            let message = format!("`{part}` is not a network such as 10.0.0.0/8");
            Error::new(ErrorCode::CONFIG_BAD_VALUE, message)
                .with_help("look at server.metrics_networks")
        })?,
        None => MetricsReaders::default(),
    };
    let s3 = &settings.s3;
    let objects = |url: &String| ArchiveAddress {
        url: url.clone(),
        // Amazon's own unless another one was named.
        s3_endpoint: (s3.endpoint.origin != SettingOrigin::Default)
            .then(|| s3.endpoint.value.url().to_string()),
        s3_access_key: secret(&s3.access_key.value),
        s3_secret_key: secret(&s3.secret_key.value),
    };
    Ok(ApiOptions {
        webhooks: outgoing::webhooks(settings)?,
        mail: outgoing::mail(settings, &context.directory)?,
        graphql_introspection: false,
        metrics_readers,
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
        rate: settings.rate_limiting.enabled.value.then(|| RequestRates {
            caller: limit(settings.rate_limiting.default_limit.value),
            tenant: limit(settings.rate_limiting.tenant_limit.value),
        }),
        archive: settings.audit.archive.value.as_ref().map(objects),
        state_export: settings.state.export.value.as_ref().map(objects),
        audit_retention_days: settings.audit.retention_days.value,
        tenant_grace_days: settings.tenancy.grace_days.value,
    })
}

fn workflow_options(settings: &Settings, context: &CommandContext) -> Result<WorkflowOptions> {
    let temporal = &settings.temporal;
    if settings.workflows.engine.value == FlowEngine::Embedded {
        return Ok(WorkflowOptions::default());
    }
    let read = |key: &str, file: &Option<String>| {
        let Some(file) = file else {
            return Ok(None);
        };
        let path = context.directory.join(file);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let message = format!("{} cannot be read: {error}", path.display());
            Error::new(ErrorCode::FILE_UNREADABLE, message).with_help(format!("look at {key}"))
        })?;
        Ok::<_, Error>(Some(Zeroizing::new(text)))
    };
    let key = read("temporal.certificate_key", &temporal.certificate_key.value)?;
    let certificate = read("temporal.certificate", &temporal.certificate.value)?;
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            let message = "of temporal.certificate and temporal.certificate_key one is set and the other is not";
            return Err(Error::new(ErrorCode::CONFIG_BAD_VALUE, message).with_help("set both"));
        }
    };
    let api_key = temporal.api_key.value.as_ref();
    let api_key = api_key.map(|secret| Zeroizing::new(secret.expose().to_owned()));
    if !temporal.tls.value && (identity.is_some() || api_key.is_some()) {
        let message = "certificates and keys are not sent to a Temporal server without TLS";
        return Err(Error::new(ErrorCode::CONFIG_BAD_VALUE, message)
            .with_help("set temporal.tls (NIMBUS_TEMPORAL_TLS)"));
    }
    let scheme = if temporal.tls.value { "https" } else { "http" };
    Ok(WorkflowOptions {
        engine: WorkflowEngine::Temporal(TemporalAddress {
            address: format!("{scheme}://{}:{}", temporal.host.value, temporal.port.value),
            namespace: temporal.namespace.value.clone(),
            queue: temporal.task_queue.value.clone(),
            root: read("temporal.authorities", &temporal.authorities.value)?,
            identity,
            api_key,
        }),
    })
}

/// Only if somebody named one: a server alone needs none.
fn valkey_address(settings: &Settings) -> Option<Zeroizing<String>> {
    let url = &settings.valkey.url;
    (url.origin != SettingOrigin::Default).then(|| Zeroizing::new(url.value.url().to_string()))
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
pub(crate) fn stop_requested() -> Result<impl Future<Output = ()> + Send + 'static> {
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
    /// Who can sign in at a demonstration; absent without `--demo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    demo: Option<DemoSignIn>,
}

/// Who can sign in at a demonstration.
#[derive(JsonSchema, Serialize)]
pub(crate) struct DemoSignIn {
    tenant: String,
    /// Address and role; the first one may do everything in the tenant.
    people: Vec<DemoPerson>,
    /// Runs the installation; signs in without a tenant.
    operator: String,
    /// The same for everybody. Only the first start knows it.
    password: Option<String>,
    deployment: String,
    environment: String,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct DemoPerson {
    email: String,
    role: String,
}

impl DemoSignIn {
    fn new(site: DemoSite) -> Self {
        let person = |(email, role): (&str, &str)| DemoPerson {
            email: email.to_owned(),
            role: role.to_owned(),
        };
        Self {
            tenant: site.tenant.to_owned(),
            people: site.people.into_iter().map(person).collect(),
            operator: site.operator.to_owned(),
            password: site.password,
            deployment: site.deployment.to_owned(),
            environment: site.environment.to_owned(),
        }
    }

    fn text(&self, address: &str, terminal: Terminal) -> String {
        let mut text = String::new();
        if let Some(first) = self.people.first() {
            text.push_str(&format!(
                "Sign in as {} of the tenant {}\n",
                terminal.paint(TextStyle::Good, &first.email),
                self.tenant,
            ));
        }
        match &self.password {
            Some(password) => text.push_str(&format!(
                "  password {password}   (shown once, the same for everybody)\n"
            )),
            None => text.push_str("  with the password that the first start showed\n"),
        }
        for person in self.people.iter().skip(1) {
            text.push_str(&format!("  {:<22} {}\n", person.email, person.role));
        }
        text.push_str(&format!(
            "  {:<22} runs the installation, without a tenant\n",
            self.operator
        ));
        text.push_str(&format!(
            "{} is being rehearsed in {}: nothing real is touched\n",
            self.deployment, self.environment
        ));
        text.push_str(&format!(
            "  nimbus login --server {address} --tenant {} --email {}\n",
            self.tenant,
            self.people.first().map_or("", |person| &person.email)
        ));
        text
    }
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
        if let Some(demo) = &self.demo {
            text.push_str(&demo.text(&self.address, terminal));
        }
        text.push_str(&format!("Data is in {}\n", self.data_dir));
        text
    }
}
