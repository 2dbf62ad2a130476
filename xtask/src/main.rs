//! Developer commands of this repository: `cargo xtask <command>`.
//!
//! One file or folder per command. Everything here serves people who work on Nimbus, so it depends
//! on no Nimbus crate: the checks must run even when the product does not compile. Dependencies are
//! few because every fresh clone waits for this program before it sees anything else.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool for developers speaks on its standard streams"
)]

mod bench;
mod cache;
mod console;
mod demo;
mod env;
mod library;
mod linted;
mod process;
mod repo;
mod setup;
mod spec;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::repo::Repo;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of this repository")]
struct XtaskArguments {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Set up and run the main job on embedded defaults.
    Demo(demo::DemoOptions),
    /// Build the web console, which the binary then carries.
    Console(console::ConsoleOptions),
    /// Set up and pass every check and test.
    Test(test::TestOptions),
    /// Install what tests and the demo need into a per-user cache.
    Setup(setup::SetupOptions),
    /// Print the variables by which tests find what `setup` installed.
    Env,
    /// Check the rules of the tree: borders, headers, paths, documents.
    Tidy(tidy::TidyOptions),
    /// Count the requirements that are met, per group.
    Spec,
    /// Measure alternatives side by side; writes a table, JSON and a chart.
    Bench(bench::BenchOptions),
    /// Run one program and print what it used as JSON; `bench` calls this.
    #[command(hide = true)]
    Measure(bench::measure::MeasureOptions),
}

fn main() -> ExitCode {
    if let Err(error) = process::watch_for_interrupts() {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    match run(XtaskArguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if process::interrupted() => {
            eprintln!("\ninterrupted: nothing was left half done; run the same command again");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: XtaskCommand) -> Result<()> {
    let repo = Repo::locate()?;
    match command {
        XtaskCommand::Demo(options) => demo::run(&repo, &options),
        XtaskCommand::Console(options) => console::run(&repo, &options),
        XtaskCommand::Test(options) => test::run(&repo, &options),
        XtaskCommand::Setup(options) => setup::run(&repo, &options),
        XtaskCommand::Env => env::run(&repo),
        XtaskCommand::Tidy(options) => tidy::run(&repo, &options),
        XtaskCommand::Spec => spec::run(&repo),
        XtaskCommand::Bench(options) => bench::run(&repo, &options),
        XtaskCommand::Measure(options) => bench::measure::run(&options),
    }
}
