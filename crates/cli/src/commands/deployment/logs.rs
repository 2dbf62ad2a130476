//! `nimbus logs`: what a run of an environment wrote down.

use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_disk::{FolderFiles, unreadable};
use nimbus_local::{DeploymentPlace, EnvironmentLockFiles, RunFiles, log_path};
use nimbus_orchestrator::{RunId, progress_of};
use nimbus_runs::ports::RunStore as _;
use serde::Serialize;

use super::local::find_place;
use super::run::duration;
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

/// How often a followed log is looked at.
const LOOK: Duration = Duration::from_millis(200);

#[derive(clap::Args, Debug)]
pub(crate) struct LogsArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Environment, such as dev; the first one when left out
    #[arg(long, short, value_parser = super::environment)]
    pub(crate) environment: Option<EnvironmentName>,
    /// Only what one stack did
    #[arg(long, value_name = "STACK")]
    pub(crate) stack: Option<String>,
    /// Run, such as R0012; the last one when left out
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<RunId>,
    /// Go on until the run ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Least severe level: debug, info, warn or error
    #[arg(long, value_name = "LEVEL", value_parser = level, default_value = "debug")]
    pub(crate) level: u8,
    /// Only what is younger, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) since: Option<Duration>,
    /// Logs of rehearsals instead
    #[arg(long)]
    pub(crate) rehearse: bool,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

fn level(text: &str) -> std::result::Result<u8, String> {
    rank(&text.to_ascii_uppercase())
        .ok_or_else(|| format!("`{text}` is no level; there are debug, info, warn and error"))
}

fn rank(level: &str) -> Option<u8> {
    match level {
        "DEBUG" => Some(0),
        "INFO" => Some(1),
        "WARN" | "WARNING" => Some(2),
        "ERROR" => Some(3),
        _ => None,
    }
}

pub(crate) async fn run(args: LogsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let place = find_place(&args.id, args.rehearse, context)?;
    let environment = match args.environment {
        Some(environment) => environment,
        // The first one is where work begins.
        None => place.environments(None).first().copied().ok_or_else(|| {
            let message = format!("deployment {} has no environments", args.id);
            Error::new(ErrorCode::ENVIRONMENT_UNKNOWN, message)
        })?,
    };
    let runs = RunFiles::new(&place.records);
    let record = runs.pick(environment, args.run).await?;
    let path = log_path(&place.records, &record, args.stack.as_deref());
    let filter = LogFilter::new(&args);
    let mut place_in_file = 0;
    loop {
        // What is written between the two looks is seen by the next.
        let over = !args.follow || is_over(&runs, record.run, &place, environment).await?;
        let file = (place.records.files(), path.as_path());
        place_in_file = print_from(file, place_in_file, &filter, &args, context)?;
        if over {
            return Ok(CommandOutcome::Done);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A run is over when it says so, or when nobody holds the environment for it any more.
async fn is_over(
    runs: &RunFiles,
    run: RunId,
    place: &DeploymentPlace,
    environment: EnvironmentName,
) -> Result<bool> {
    let holder = EnvironmentLockFiles::new(&place.records).holder(environment)?;
    let alive = holder.is_some_and(|held| held.record.run == Some(run));
    let progress = progress_of(&runs.events(run).await?);
    Ok(progress.result.is_some() || !alive)
}

/// Which lines of a log are shown.
pub(crate) struct LogFilter {
    level: u8,
    from: Option<Timestamp>,
}

/// Prints complete lines from a place on, and returns the next.
fn print_from(
    (files, path): (&FolderFiles, &Path),
    from: u64,
    filter: &LogFilter,
    args: &LogsArgs,
    context: &CommandContext,
) -> Result<u64> {
    let mut file = match files.open(path) {
        Ok(file) => file,
        // A stack that has not begun has no log yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && args.follow => return Ok(0),
        Err(error) => {
            return Err(
                unreadable(path, error).with_help("a stack that was skipped has no log of its own")
            );
        }
    };
    let failed = |error: std::io::Error| unreadable(path, error);
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut reader = BufReader::new(file);
    let mut at = from;
    let mut line = String::new();
    loop {
        line.clear();
        let read = reader.read_line(&mut line).map_err(failed)?;
        if read == 0 || !line.ends_with('\n') {
            return Ok(at);
        }
        at += read as u64;
        filter.show(&line, context)?;
    }
}

#[derive(Debug, PartialEq, Serialize)]
struct LogEntry<'a> {
    at: String,
    level: &'a str,
    component: &'a str,
    message: &'a str,
    #[serde(skip)]
    time: Timestamp,
}

impl<'a> LogEntry<'a> {
    /// `[YYYY-MM-DD HH:MM:SS] [LEVEL] [component] message`.
    fn parse(line: &'a str) -> Option<Self> {
        let (time, rest) = line.strip_prefix('[')?.split_once("] [")?;
        let (level, rest) = rest.split_once("] [")?;
        let (component, message) = rest.split_once("] ").unwrap_or((rest, ""));
        let civil: DateTime = time.replace(' ', "T").parse().ok()?;
        let time = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
        Some(Self {
            at: time.to_string(),
            level,
            component: component.trim_end_matches(']'),
            message,
            time,
        })
    }
}

impl LogFilter {
    pub(crate) fn new(args: &LogsArgs) -> Self {
        Self {
            level: args.level,
            from: args.since.map(|since| Timestamp::now() - since),
        }
    }

    /// Shows a line with its end, if it is wanted.
    pub(crate) fn show(&self, line: &str, context: &CommandContext) -> Result<()> {
        let entry = LogEntry::parse(line.trim_end()).filter(|entry| self.wants(entry));
        match entry {
            None => Ok(()),
            Some(entry) if context.output.is_json() => context.output.json_line(&entry),
            Some(_) => context.output.raw(line),
        }
    }

    fn wants(&self, entry: &LogEntry<'_>) -> bool {
        let severe = rank(entry.level).is_none_or(|rank| rank >= self.level);
        severe && self.from.is_none_or(|from| entry.time >= from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back_and_filtered() {
        let line = "[2026-01-02 03:04:05] [WARN] [network] a] [b";
        let entry = LogEntry::parse(line).unwrap();
        assert_eq!((entry.level, entry.component), ("WARN", "network"));
        assert_eq!(entry.message, "a] [b");
        let filter = |level, from: Option<&str>| LogFilter {
            level,
            from: from.map(|text| text.parse().unwrap()),
        };
        assert!(filter(2, None).wants(&entry));
        assert!(!filter(3, None).wants(&entry));
        assert!(filter(0, Some("2026-01-02T03:04:05Z")).wants(&entry));
        assert!(!filter(0, Some("2026-01-02T03:04:06Z")).wants(&entry));
        assert!(LogEntry::parse("no log line").is_none());
    }
}
