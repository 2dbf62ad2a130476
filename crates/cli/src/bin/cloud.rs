//! `cloud`, the name that the specification gives to the program: starts the `nimbus` beside it under this name.
//!
//! Not a second copy of it, which would double what is built, linked and shipped.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const NAME: &str = "nimbus";

fn main() -> ExitCode {
    let own = std::env::current_exe();
    // Without a place of its own it is found as any command is.
    let program = own.map_or_else(|_| PathBuf::from(NAME), |own| own.with_file_name(NAME));
    let mut command = Command::new(&program);
    command.arg0("cloud").args(std::env::args_os().skip(1));
    // tidy-allow(start): our own program, which takes the place of this one
    let error = command.exec();
    // There is nowhere left to report that standard error is closed.
    let _ = writeln!(
        std::io::stderr(),
        "error: cannot start {}: {error}\n  help: `cloud` belongs into the folder of `{NAME}`",
        program.display()
    );
    ExitCode::FAILURE
}
