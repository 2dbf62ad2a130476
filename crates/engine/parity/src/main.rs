//! The nimbus command, for the tests of this crate: cargo tells a test only where the programs of
//! its own package are. It must not differ from `nimbus` in anything.

fn main() -> std::process::ExitCode {
    nimbus_cli::main()
}
