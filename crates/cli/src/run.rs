//! From the arguments to the exit code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, io, panic};

use clap::FromArgMatches as _;
use clap::error::ErrorKind as ClapErrorKind;
use nimbus_config::{LoadedSettings, LogFormat, LogLevel};
use nimbus_core::{Error, ErrorCode, ErrorKind, Result, TraceId};
use nimbus_telemetry::{Guard, LogLineFormat, TelemetryOptions};
use tracing::level_filters::LevelFilter;

use crate::actions::ActionsJob;
use crate::args::{Cli, command};
use crate::commands::Weight;
use crate::completion;
use crate::context::{CommandContext, is_chosen};
use crate::diagnostic::{ErrorDocument, render};
use crate::exit::{CommandOutcome, exit_code};
use crate::habits;
use crate::output::CommandOutput;

/// How long work on threads may go on once a command is over.
const LAST_WORK: Duration = Duration::from_secs(2);

/// The program.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    // Started again by itself, to close a sandbox around a program; see that crate.
    if let Some(code) = nimbus_engine_sandbox::help(arguments.clone()) {
        return code;
    }
    // And to translate what runs in one.
    if let Some(code) = nimbus_engine_operations::translate_if_asked(arguments.clone()) {
        return code;
    }
    // And to read the programs of components.
    if let Some(code) = nimbus_control_server::read_if_asked(arguments.clone()) {
        return code;
    }
    let program = program_name(arguments.first());
    if let Some(code) = completion::complete_if_asked(program, &arguments) {
        return ExitCode::from(code);
    }
    let trace_id = TraceId::random();
    let code = match parse(program, &arguments) {
        Parsed::Command(cli) => {
            let output = CommandOutput::new(cli.global.json, cli.global.quiet, cli.global.no_color);
            let outcome = guard_panics(|| execute(program, *cli, output, trace_id));
            report(program, outcome, output, trace_id)
        }
        Parsed::Shown => 0,
        Parsed::Wrong { error, output } => report(program, Err(error), output, trace_id),
        Parsed::WrongAndShown => exit_code(ErrorKind::Invalid),
    };
    ExitCode::from(code)
}

/// `cloud` when it was called so, else `nimbus`.
fn program_name(argument: Option<&OsString>) -> &'static str {
    let stem = argument.and_then(|argument| Path::new(argument).file_stem());
    if stem.is_some_and(|stem| stem == "cloud") {
        "cloud"
    } else {
        "nimbus"
    }
}

enum Parsed {
    Command(Box<Cli>),
    /// Help or version, already written.
    Shown,
    Wrong {
        error: Error,
        output: CommandOutput,
    },
    /// The parser's own message for people is better than ours: it knows the usage line.
    WrongAndShown,
}

fn parse(program: &str, arguments: &[OsString]) -> Parsed {
    // What went wrong may have hidden the flags, so they are looked for by hand.
    let given = |flag: &str| {
        arguments
            .iter()
            .take_while(|argument| *argument != "--")
            .any(|argument| argument == flag)
    };
    let color = if given("--no-color") {
        clap::ColorChoice::Never
    } else {
        clap::ColorChoice::Auto
    };
    let parsed = command(program)
        .color(color)
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let error = match parsed {
        Ok(mut cli) => {
            cli.command = cli.command.ungrouped();
            return Parsed::Command(Box::new(cli));
        }
        Err(error) => error,
    };
    match error.kind() {
        ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion => {
            // A reader that went away is not our problem.
            let _ = error.print();
            Parsed::Shown
        }
        _ if let Some(pointer) = habits::pointer(&command(program), &error, arguments) => {
            let output = CommandOutput::new(given("--json"), given("--quiet"), given("--no-color"));
            Parsed::Wrong {
                error: pointer.error(program),
                output,
            }
        }
        _ if given("--json") => {
            let output = CommandOutput::new(true, given("--quiet"), given("--no-color"));
            Parsed::Wrong {
                error: usage_error(program, &error),
                output,
            }
        }
        _ => {
            let _ = error.print();
            Parsed::WrongAndShown
        }
    }
}

/// The parser's message as one of our errors: its first line, and its tips as help.
fn usage_error(program: &str, error: &clap::Error) -> Error {
    let text = error.render().to_string();
    let message = text
        .lines()
        .next()
        .unwrap_or("")
        .trim_start_matches("error: ")
        .to_owned();
    let tips: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("tip: "))
        .collect();
    let help = match tips.is_empty() {
        true => format!("`{program} help` lists commands and options"),
        false => tips.join("; "),
    };
    Error::new(ErrorCode::USAGE, message).with_help(help)
}

fn execute(
    program: &'static str,
    cli: Cli,
    output: CommandOutput,
    trace_id: TraceId,
) -> Result<CommandOutcome> {
    let directory = enter(cli.global.directory.as_deref())?;
    let context = CommandContext::new(
        program,
        &cli.global,
        output,
        trace_id,
        directory,
        &cli.command,
    )?;
    if let Some(assignment) = context.assignments.first()
        && !cli.command.takes_assignments()
    {
        let message = format!("this command does not take --config {assignment}");
        return Err(Error::new(ErrorCode::USAGE, message).with_help(
            "`program up` and `program preview` do; `stack-config set` sets a value for all commands",
        ));
    }
    let weight = cli.command.weight();
    let trace = cli.command.trace_file();
    let trace = trace.map(|file| context.directory.join(file));
    let runtime = match weight {
        Weight::Light => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build(),
        Weight::Heavy => tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build(),
    };
    let runtime = runtime.map_err(|error| {
        Error::new(ErrorCode::INTERNAL, "the runtime does not start").with_source(error)
    })?;
    let outcome: Result<CommandOutcome> = runtime.block_on(async {
        let guard = match weight {
            Weight::Light => None,
            Weight::Heavy => Some(start_telemetry(&context, trace.as_deref())?),
        };
        let outcome = Box::pin(cli.command.run(&context)).await;
        if let Err(error) = &outcome {
            tracing::debug!(code = %error.code(), "{}", error.log_text());
        }
        if let Some(guard) = guard {
            // Sending what is queued waits for a thread of its own.
            let _ = tokio::task::spawn_blocking(move || guard.shutdown()).await;
        }
        outcome
    });
    // Threads that wait for a disk or another process would keep this one for as long as they do.
    runtime.shutdown_timeout(LAST_WORK);
    outcome
}

/// Goes to the directory of `-C` and says where we are.
#[expect(
    clippy::disallowed_methods,
    reason = "this is -C itself, before any thread is started"
)]
fn enter(directory: Option<&Path>) -> Result<PathBuf> {
    if let Some(directory) = directory {
        env::set_current_dir(directory).map_err(|error| {
            let shown = directory.display();
            Error::new(
                ErrorCode::FILE_UNREADABLE,
                format!("cannot enter {shown}: {error}"),
            )
            .with_help("check the directory given with -C")
            .with_source(error)
        })?;
    }
    env::current_dir().map_err(|error| {
        let message = format!("the working directory is gone or closed to you: {error}");
        Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
    })
}

/// Logs of a command are for the person in front of it: warnings, in plain lines, unless the
/// settings say otherwise.
fn start_telemetry(context: &CommandContext, trace: Option<&Path>) -> Result<Guard> {
    let LoadedSettings {
        settings,
        unknown_variables,
        unused_variables,
        ..
    } = context.settings()?;
    let level = &settings.logging.level;
    let level = if is_chosen(&level.origin) {
        level.value
    } else {
        LogLevel::Warn
    };
    let format = &settings.logging.format;
    let json = match is_chosen(&format.origin) {
        true => format.value == LogFormat::Json,
        false => context.output.is_json(),
    };
    let color = context.output.stderr_terminal().color;
    let endpoint = settings.telemetry.otlp_endpoint.value.as_ref();
    let guard = nimbus_telemetry::init(TelemetryOptions {
        level: level_filter(level),
        format: if json {
            LogLineFormat::Json
        } else {
            LogLineFormat::Plain { color }
        },
        trace_id: context.trace_id,
        otlp_endpoint: endpoint.map(|endpoint| endpoint.url().to_string()),
        trace: trace.map(trace_writer).transpose()?,
        writer: Box::new(io::stderr()),
    })?;
    for (variable, nearest) in unknown_variables {
        let hint = nearest
            .map(|name| format!("; did you mean {name}?"))
            .unwrap_or_default();
        tracing::warn!("the variable {variable} means nothing to Nimbus{hint}");
    }
    for variable in unused_variables {
        tracing::warn!("the variable {variable} is not used: nothing reads it");
    }
    Ok(guard)
}

/// Refused before anything happens: a run of an hour without its trace would be for nothing.
fn trace_writer(path: &Path) -> Result<Box<dyn io::Write + Send>> {
    let file = std::fs::File::create(path).map_err(|error| {
        let message = format!("cannot write the trace {}: {error}", path.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
    })?;
    Ok(Box::new(io::BufWriter::new(file)))
}

fn level_filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

fn report(
    program: &str,
    outcome: Result<CommandOutcome>,
    output: CommandOutput,
    trace_id: TraceId,
) -> u8 {
    let error = match outcome {
        Ok(outcome) => return outcome.exit_code(),
        Err(error) => error,
    };
    if output.is_json() {
        // If standard output is closed, the exit code still tells.
        let _ = output.json_line(&ErrorDocument::new(&error, trace_id));
    } else {
        output.complain(&render(&error, program, output.stderr_terminal()));
    }
    if let Some(job) = ActionsJob::current(output) {
        job.annotate_error(&error);
    }
    exit_code(error.kind())
}

/// A panic is a defect of ours: it becomes an error with a code, not a backtrace.
fn guard_panics(body: impl FnOnce() -> Result<CommandOutcome>) -> Result<CommandOutcome> {
    if env::var_os("RUST_BACKTRACE").is_none() {
        // The standard hook writes to standard error, secrets and all. This one is cleaned, and it
        // is heard from threads whose panic nobody catches.
        panic::set_hook(Box::new(|info| tracing::error!("{info}")));
    }
    panic::catch_unwind(panic::AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let what = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(
            Error::new(ErrorCode::INTERNAL, format!("Nimbus went wrong: {what}"))
                .with_help("set RUST_BACKTRACE=1 to see where, and report it"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_a_code() {
        let error = guard_panics(|| panic!("two and two are {}", 5)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::INTERNAL);
        assert!(error.message().contains("two and two are 5"));
        assert!(guard_panics(|| Ok(CommandOutcome::Done)).is_ok());
        let _ = panic::take_hook();
    }

    #[test]
    fn the_name_follows_the_call() {
        for (called, name) in [
            ("/usr/bin/cloud", "cloud"),
            ("cloud.exe", "cloud"),
            ("./nimbus", "nimbus"),
            ("renamed", "nimbus"),
        ] {
            assert_eq!(program_name(Some(&called.into())), name);
        }
        assert_eq!(program_name(None), "nimbus");
    }
}
