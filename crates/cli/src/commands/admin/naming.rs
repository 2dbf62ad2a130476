//! `nimbus naming`: how resources are named, and which names are taken.

use nimbus_core::Result;

use super::resolver::{LeaseListArgs, PlaceArgs, configure, leases};
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct NamingArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: NamingCommand,
}

#[derive(Debug, clap::Subcommand)]
enum NamingCommand {
    /// Set the pattern of names, such as '{env}-{type}-{seq:03d}'
    Pattern {
        /// Text with {env}, {type}, {org}, {project}, {component}, {deployment}, {region} and {seq}
        pattern: String,
        /// What completes a name in the domain name system
        #[arg(long)]
        domain: Option<String>,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// List the names that are taken, newest first
    Leases(LeaseListArgs),
}

pub(crate) async fn run(args: NamingArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let report = match args.command {
        NamingCommand::Pattern {
            pattern,
            domain,
            place,
        } => {
            let mut set = vec![format!("pattern={pattern}")];
            set.extend(domain.map(|domain| format!("domain={domain}")));
            configure(&mut server, &tenant, "naming", &set, &place).await?
        }
        NamingCommand::Leases(which) => {
            leases(&mut server, &tenant, &which.of("naming"), None).await?
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}
