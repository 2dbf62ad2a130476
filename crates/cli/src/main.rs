//! The `nimbus` program. Everything is in the library.

fn main() -> std::process::ExitCode {
    nimbus_cli::main()
}
