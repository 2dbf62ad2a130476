//! The same program under the name that the specification gives it, `cloud`.

fn main() -> std::process::ExitCode {
    nimbus_cli::main()
}
