//! `nimbus ipam`: pools of addresses, how much of them is used, and who has what.

use nimbus_control_client::encoded;
use nimbus_core::Result;
use serde_json::json;

use super::AdminReport;
use super::resolver::{LeaseListArgs, leases};
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct IpamArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: IpamCommand,
}

#[derive(Debug, clap::Subcommand)]
enum IpamCommand {
    /// List the pools that can be used here
    List,
    /// Show a pool and how much of it is used
    Show {
        /// Its name
        pool: String,
        /// What rehearsals have of it
        #[arg(long)]
        rehearsal: bool,
    },
    /// Make a pool
    Create {
        /// Its name
        pool: String,
        /// Its addresses, such as 10.0.0.0/8 or fd00::/48
        cidr: String,
        /// The pool that it is a block of
        #[arg(long, value_name = "POOL")]
        parent: Option<String>,
        /// Single addresses are taken from it, not blocks
        #[arg(long)]
        addresses: bool,
        /// The gateway of a pool of addresses; its first one by default
        #[arg(long, value_name = "ADDRESS", requires = "addresses")]
        gateway: Option<String>,
        /// A block that is never given; may be repeated
        #[arg(long, value_name = "CIDR")]
        reserve: Vec<String>,
        /// The landing zone whose environments alone may take from it
        #[arg(long, value_name = "NAME")]
        zone: Option<String>,
    },
    /// Delete a pool of which nothing is taken
    Delete {
        /// Its name
        pool: String,
    },
    /// Keep a block of a pool for nobody
    Reserve {
        /// The pool
        pool: String,
        /// The block
        cidr: String,
    },
    /// Give a reserved block free
    Unreserve {
        /// The pool
        pool: String,
        /// The block
        cidr: String,
    },
    /// List what was leased from the pools, newest first
    Leases {
        /// Only of this pool
        #[arg(long)]
        pool: Option<String>,
        #[command(flatten)]
        which: LeaseListArgs,
    },
}

const FIELDS: &[&str] = &[
    "name",
    "cidr",
    "purpose",
    "parent",
    "gateway",
    "reserved",
    "landing_zone",
    "owner",
];

pub(crate) async fn run(args: IpamArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let pools = format!("{tenant}/address-pools");
    let report = match args.command {
        IpamCommand::List => AdminReport::list(server.client.get(&pools).await?, FIELDS),
        IpamCommand::Show { pool, rehearsal } => {
            let path = format!("{pools}/{}?rehearsal={rehearsal}", encoded(&pool));
            let mut found = server.client.get(&path).await?;
            let usage = found["usage"].clone();
            for (key, value) in usage.as_object().into_iter().flatten() {
                found[key.as_str()] = value.clone();
            }
            let used = [
                "addresses",
                "free",
                "used_percent",
                "largest_free_prefix",
                "leased",
                "committed",
            ];
            AdminReport::item(found, &[FIELDS, &used].concat())
        }
        IpamCommand::Create {
            pool,
            cidr,
            parent,
            addresses,
            gateway,
            reserve,
            zone,
        } => {
            let body = json!({
                "name": pool,
                "cidr": cidr,
                "parent": parent,
                "purpose": if addresses { "addresses" } else { "blocks" },
                "gateway": gateway,
                "reserved": reserve,
                "landing_zone": zone,
            });
            AdminReport::item(server.client.post(&pools, &body).await?, FIELDS)
        }
        IpamCommand::Delete { pool } => {
            let path = format!("{pools}/{}", encoded(&pool));
            server.client.delete(&path).await?;
            AdminReport::done(json!({"deleted": pool}), format!("deleted pool {pool}"))
        }
        IpamCommand::Reserve { pool, cidr } => {
            let path = format!("{pools}/{}/reserve", encoded(&pool));
            let body = json!({"cidr": cidr});
            AdminReport::item(server.client.post(&path, &body).await?, FIELDS)
        }
        IpamCommand::Unreserve { pool, cidr } => {
            let path = format!("{pools}/{}/unreserve", encoded(&pool));
            let body = json!({"cidr": cidr});
            AdminReport::item(server.client.post(&path, &body).await?, FIELDS)
        }
        IpamCommand::Leases { pool, which } => {
            leases(&mut server, &tenant, &which.of("ipam"), pool.as_deref()).await?
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}
