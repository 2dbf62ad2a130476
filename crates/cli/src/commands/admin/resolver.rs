//! `nimbus resolver`: which resolvers there are, how they are configured, and what they have leased.

use nimbus_control_client::encoded;
use nimbus_core::{Error, ErrorCode, Result};
use serde_json::{Map, Value, json};

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ResolverArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: ResolverCommand,
}

/// For what something is configured.
#[derive(clap::Args, Debug)]
pub(crate) struct PlaceArgs {
    /// For this environment; for all that say nothing themselves without it
    #[arg(long)]
    environment: Option<String>,
    /// For this landing zone; for all of them without it
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum ResolverCommand {
    /// List resolvers with their inputs and outputs
    List,
    /// List what is configured, each over those before it
    Config,
    /// Configure a resolver; what is not named stays
    Configure {
        /// ipam, naming, image_catalog or secret
        resolver: String,
        /// A key and its value, as JSON or as text; an empty value removes the key
        #[arg(long = "set", value_name = "KEY=VALUE", required = true)]
        set: Vec<String>,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// List what was leased, newest first
    Leases(LeaseListArgs),
    /// Give a lease back that nothing has any more
    Release {
        /// The id of the lease
        lease: String,
        /// Even if something that is deployed may have it
        #[arg(long)]
        force: bool,
    },
}

/// Which leases are listed.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct LeaseListArgs {
    /// Only of this resolver
    #[arg(long)]
    resolver: Option<String>,
    /// Only of this deployment
    #[arg(long)]
    deployment: Option<String>,
    /// Only leased, committed or released ones
    #[arg(long)]
    status: Option<String>,
}

impl LeaseListArgs {
    /// The same, of one resolver.
    pub(super) fn of(self, resolver: &str) -> Self {
        Self {
            resolver: Some(resolver.to_owned()),
            ..self
        }
    }
}

pub(crate) async fn run(args: ResolverArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let report = match args.command {
        ResolverCommand::List => {
            let found = server.client.get(&format!("{tenant}/resolvers")).await?;
            AdminReport::list(
                with_names(found),
                &["resolver_type", "inputs", "outputs", "description"],
            )
        }
        ResolverCommand::Config => {
            let path = format!("{tenant}/resolver-configurations");
            let fields = ["resolver", "owner", "landing_zone", "environment", "config"];
            AdminReport::list(server.client.get(&path).await?, &fields)
        }
        ResolverCommand::Configure {
            resolver,
            set,
            place,
        } => configure(&mut server, &tenant, &resolver, &set, &place).await?,
        ResolverCommand::Leases(which) => leases(&mut server, &tenant, &which, None).await?,
        ResolverCommand::Release { lease, force } => {
            let id = encoded(&lease);
            let path = format!("{tenant}/resolver-leases/{id}?force={force}");
            server.client.delete(&path).await?;
            AdminReport::done(json!({"released": lease}), format!("released {lease}"))
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

/// Names of inputs and outputs beside their schemas, for people.
fn with_names(mut found: Value) -> Value {
    let names = |schema: &Value| {
        let properties = schema["properties"].as_object();
        let names = properties
            .into_iter()
            .flatten()
            .map(|(name, _)| json!(name));
        Value::Array(names.collect())
    };
    for item in found["items"].as_array_mut().into_iter().flatten() {
        item["inputs"] = names(&item["input_schema"]);
        item["outputs"] = names(&item["output_schema"]);
    }
    found
}

/// Sets keys of a resolver's configuration at one place; the others stay as they are.
pub(super) async fn configure(
    server: &mut Connection,
    tenant: &str,
    resolver: &str,
    set: &[String],
    place: &PlaceArgs,
) -> Result<AdminReport> {
    let known = server
        .client
        .get(&format!("{tenant}/resolver-configurations"))
        .await?;
    let own = tenant.rsplit('/').next().unwrap_or_default();
    let here = |item: &&Value| {
        item["resolver"] == resolver
            && item["owner_id"] == own
            && item["environment"].as_str() == place.environment.as_deref()
            && item["landing_zone"].as_str() == place.zone.as_deref()
    };
    let known = known["items"].as_array().into_iter().flatten().find(here);
    let known = known.and_then(|item| item["config"].as_object().cloned());
    let mut config: Map<String, Value> = known.unwrap_or_default();
    for pair in set {
        let Some((key, text)) = pair.split_once('=') else {
            let message = format!("`{pair}` is not KEY=VALUE");
            return Err(Error::new(ErrorCode::INPUT_INVALID, message));
        };
        if text.is_empty() {
            config.remove(key);
        } else {
            let value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            config.insert(key.to_owned(), value);
        }
    }
    let body = json!({
        "environment": place.environment,
        "landing_zone": place.zone,
        "config": config,
    });
    let path = format!("{tenant}/resolvers/{}/configuration", encoded(resolver));
    server.client.put(&path, &body).await?;
    let text = format!("configured {resolver}: {}", Value::Object(config));
    Ok(AdminReport::done(body, text))
}

/// Lists leases, of one pool if it is named.
pub(super) async fn leases(
    server: &mut Connection,
    tenant: &str,
    which: &LeaseListArgs,
    pool: Option<&str>,
) -> Result<AdminReport> {
    let query = [
        ("resolver", which.resolver.as_deref()),
        ("deployment", which.deployment.as_deref()),
        ("status", which.status.as_deref()),
        ("pool", pool),
    ];
    let given = query.iter().filter_map(|(name, value)| {
        let value = encoded((*value)?);
        Some(format!("{name}={value}"))
    });
    let given: Vec<_> = given.collect();
    let path = match given.is_empty() {
        true => format!("{tenant}/resolver-leases"),
        false => format!("{tenant}/resolver-leases?{}", given.join("&")),
    };
    let fields = [
        "status",
        "holder",
        "deployment",
        "environment",
        "component",
        "question",
        "outputs",
        "id",
    ];
    Ok(AdminReport::list(server.client.list(&path).await?, &fields))
}
