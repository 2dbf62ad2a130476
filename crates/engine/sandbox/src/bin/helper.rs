//! The helper alone. The `nimbus` program is its own helper; see [`nimbus_engine_sandbox::help`].

use std::process::ExitCode;

fn main() -> ExitCode {
    nimbus_engine_sandbox::help(std::env::args_os()).unwrap_or(ExitCode::FAILURE)
}
