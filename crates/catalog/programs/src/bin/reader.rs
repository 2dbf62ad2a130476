//! The reader alone. The `nimbus` program is its own reader; see [`nimbus_catalog_programs::read_if_asked`].

use std::process::ExitCode;

fn main() -> ExitCode {
    nimbus_catalog_programs::read_if_asked(std::env::args_os()).unwrap_or(ExitCode::FAILURE)
}
