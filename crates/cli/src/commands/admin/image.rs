//! `nimbus image`: which image of a cloud is an operating system.

use nimbus_control_client::encoded;
use nimbus_core::Result;
use serde_json::json;

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ImageArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ImageCommand {
    /// List the catalog, the nearest entries first
    List,
    /// Keep an image; it replaces the entry of the same system
    Set {
        /// The cloud, such as proxmox or aws
        cloud: String,
        /// The operating system, such as debian
        os_family: String,
        /// Its version, such as 12
        os_version: String,
        /// What the cloud's provider takes
        image_id: String,
        /// Only in this region
        #[arg(long)]
        region: Option<String>,
        /// x86_64 or arm64
        #[arg(long, default_value = "x86_64")]
        architecture: String,
        /// The image in words
        #[arg(long)]
        name: Option<String>,
        /// No longer for anything new
        #[arg(long)]
        deprecated: bool,
        /// The version to take instead
        #[arg(long, value_name = "VERSION", requires = "deprecated")]
        replaced_by: Option<String>,
    },
    /// Remove an entry
    Remove {
        /// The id of the entry
        image: String,
    },
}

const FIELDS: &[&str] = &[
    "cloud",
    "os_family",
    "os_version",
    "architecture",
    "region",
    "image_id",
    "deprecated",
    "replaced_by",
    "owner",
    "id",
];

pub(crate) async fn run(args: ImageArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let images = format!("{tenant}/images");
    let report = match args.command {
        ImageCommand::List => AdminReport::list(server.client.get(&images).await?, FIELDS),
        ImageCommand::Set {
            cloud,
            os_family,
            os_version,
            image_id,
            region,
            architecture,
            name,
            deprecated,
            replaced_by,
        } => {
            let body = json!({
                "cloud": cloud,
                "os_family": os_family,
                "os_version": os_version,
                "image_id": image_id,
                "region": region,
                "architecture": architecture,
                "image_name": name,
                "deprecated": deprecated,
                "replaced_by": replaced_by,
            });
            AdminReport::item(server.client.put(&images, &body).await?, FIELDS)
        }
        ImageCommand::Remove { image } => {
            let path = format!("{images}/{}", encoded(&image));
            server.client.delete(&path).await?;
            AdminReport::done(json!({"removed": image}), format!("removed image {image}"))
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}
