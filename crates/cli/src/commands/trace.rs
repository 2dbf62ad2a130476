//! `--trace FILE`, for every command that runs an operation.

use std::path::{Path, PathBuf};

/// Where a trace goes.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct TraceArgs {
    /// Write a trace for Perfetto or chrome://tracing: run, stacks, operations, steps, provider calls
    #[arg(long = "trace", value_name = "FILE")]
    trace_file: Option<PathBuf>,
}

impl TraceArgs {
    pub(crate) fn file(&self) -> Option<&Path> {
        self.trace_file.as_deref()
    }
}
