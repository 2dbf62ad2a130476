//! Figures of the embedded runtime: `cargo xtask bench control-plane` runs this and keeps what it prints.
//!
//! Arguments: the folder of PostgreSQL's programs and how many workflows. The cluster is a durable one, as in an
//! installation.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;

use nimbus_control_store::Store;
use nimbus_control_testing::DurableCluster;
use nimbus_workflows_embedded::{EmbeddedOptions, EmbeddedRuntime};
use nimbus_workflows_testing::{rate, rate_definitions};
use secrecy::SecretString;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args_os().skip(1);
    let binaries = arguments
        .next()
        .ok_or("no folder of PostgreSQL's programs")?;
    let count = arguments.next().ok_or("no number of workflows")?;
    let count: u32 = count.to_string_lossy().parse()?;
    let cluster = DurableCluster::start(Path::new(&binaries)).await?;
    // Opening makes the database.
    let (store, _) = Store::open(cluster.database("nimbus", 2)).await?;
    let options = EmbeddedOptions::new(SecretString::from(cluster.url("nimbus")));
    let runtime = EmbeddedRuntime::open(options).await?;
    let worker = runtime.work(rate_definitions());
    let figures = rate(&runtime, count).await;
    worker.stop().await;
    store.close().await;
    cluster.stop().await;
    writeln!(std::io::stdout(), "{:#}", figures?)?;
    Ok(())
}
