//! Figures of workflows on Temporal: `cargo xtask bench control-plane` runs this and keeps what it prints.
//!
//! Arguments: Temporal's program and how many workflows. The server is the development server with its files on disk, on
//! the same machine; a cluster of it on a database of its own is another thing.

#![allow(
    clippy::unwrap_used,
    reason = "the starter of the server is the tests', which fail like tests"
)]

#[path = "../tests/dev_server/mod.rs"]
#[expect(dead_code, reason = "tests do more with it")]
mod dev_server;

use std::error::Error;
use std::io::Write as _;
use std::path::Path;

use nimbus_workflows_temporal::{TemporalOptions, TemporalRuntime};
use nimbus_workflows_testing::{rate, rate_definitions};

use dev_server::DevServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or("no program of Temporal")?;
    let count = arguments.next().ok_or("no number of workflows")?;
    let count: u32 = count.to_string_lossy().parse()?;
    let server = DevServer::with_files(Path::new(&program));
    server.answers().await;
    let options = TemporalOptions::new(server.address(), "default");
    let runtime = TemporalRuntime::open(options).await?;
    let worker = runtime.work(rate_definitions())?;
    let figures = rate(&runtime, count).await;
    worker.stop().await;
    writeln!(std::io::stdout(), "{:#}", figures?)?;
    Ok(())
}
