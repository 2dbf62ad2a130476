//! Logs of runs for people: one for the run and one for each unit that did something.
//!
//! Lines look like `[YYYY-MM-DD HH:MM:SS] [LEVEL] [component] message`, in UTC. A log is a view of
//! the record: it may be deleted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use jiff::Timestamp;
use nimbus_core::{ComponentName, Result};
use nimbus_disk::unwritable;
use nimbus_orchestrator::{CheckStatus, DiagnosticLevel, ResourceStatus, RunEvent, RunStatus};
use nimbus_runs::RunRecord;
use nimbus_runs::ports::{RunLog, RunLogs};

use crate::place::Records;

/// The log files of a deployment.
#[derive(Clone, Debug)]
pub(crate) struct RunLogFiles {
    records: Records,
}

/// Files of one run, opened when they are first needed.
#[derive(Debug)]
struct OpenRunLog {
    records: Records,
    environment: String,
    stamp: String,
    run: File,
    units: BTreeMap<ComponentName, File>,
}

/// Where the log of a run is, or that of one of its units.
pub fn log_path(records: &Records, record: &RunRecord, unit: Option<&str>) -> PathBuf {
    let request = &record.request;
    let name = unit.unwrap_or_else(|| request.action.as_str());
    let file = format!("{name}-{}-{}.log", request.environment, record.stamp);
    records.directory().join("logs").join(file)
}

/// `YYYYMMDD-HHMMSS`.
pub(crate) fn stamp(now: Timestamp) -> String {
    now.strftime("%Y%m%d-%H%M%S").to_string()
}

impl RunLogFiles {
    pub(crate) fn new(records: &Records) -> Self {
        Self {
            records: records.clone(),
        }
    }

    fn open_files(&self, record: &RunRecord) -> io::Result<OpenRunLog> {
        let folder = self.records.directory().join("logs");
        let files = self.records.files();
        files.create_folders(&folder)?;
        Ok(OpenRunLog {
            run: files.append(&log_path(&self.records, record, None))?,
            records: self.records.clone(),
            environment: record.request.environment.to_string(),
            stamp: record.stamp.clone(),
            units: BTreeMap::new(),
        })
    }
}

impl RunLogs for RunLogFiles {
    fn open(&self, record: &RunRecord) -> Result<Box<dyn RunLog>> {
        let opened = self.open_files(record).map_err(|error| {
            let folder = self.records.directory().join("logs");
            unwritable(&folder, error)
        })?;
        Ok(Box::new(opened))
    }
}

impl RunLog for OpenRunLog {
    fn text(&mut self, source: &str, text: &str) -> io::Result<()> {
        for line in text.lines() {
            let line = format_line(Timestamp::now(), DiagnosticLevel::Info, source, line);
            self.run.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn event(&mut self, event: &RunEvent) -> io::Result<()> {
        let lines = log_lines(event, Timestamp::now()).concat();
        if lines.is_empty() {
            return Ok(());
        }
        self.run.write_all(lines.as_bytes())?;
        if let Some(unit) = event.unit_name() {
            self.unit(unit)?.write_all(lines.as_bytes())?;
            if is_over(event) {
                // A run may have more units than a process may have open files.
                self.units.remove(unit);
            }
        }
        Ok(())
    }
}

impl OpenRunLog {
    fn unit(&mut self, unit: &ComponentName) -> io::Result<&mut File> {
        if !self.units.contains_key(unit) {
            let file = format!("{unit}-{}-{}.log", self.environment, self.stamp);
            let path = self.records.directory().join("logs").join(file);
            // Names of logs can be guessed: no link is written through.
            let opened = self.records.files().append(&path)?;
            self.units.insert(unit.clone(), opened);
        }
        self.units
            .get_mut(unit)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Whether a unit is done for now; a rollback opens its log again.
fn is_over(event: &RunEvent) -> bool {
    matches!(event, RunEvent::Unit { status, .. } if !matches!(status.as_str(), "running" | "rolling_back"))
}

pub(crate) fn format_line(
    at: Timestamp,
    level: DiagnosticLevel,
    source: &str,
    message: &str,
) -> String {
    let time = at.strftime("%Y-%m-%d %H:%M:%S");
    let level = level.as_str();
    format!("[{time}] [{level}] [{source}] {message}\n")
}

/// An event as lines of a log.
pub fn log_lines(event: &RunEvent, at: Timestamp) -> Vec<String> {
    let Some((level, message)) = describe(event) else {
        return Vec::new();
    };
    let component = event
        .unit_name()
        .map_or("orchestrator", |name| name.as_str());
    let line = |line: &str| format_line(at, level, component, line);
    message.lines().map(line).collect()
}

/// How an event reads in a log.
fn describe(event: &RunEvent) -> Option<(DiagnosticLevel, String)> {
    Some(match event {
        RunEvent::Run {
            run,
            status,
            result,
            message,
            ..
        } => {
            let what = match (status, result) {
                (RunStatus::Started, _) => "started".to_owned(),
                (RunStatus::Resumed, _) => "resumed".to_owned(),
                (RunStatus::Late, _) => "takes too long: nothing more starts".to_owned(),
                (RunStatus::Undoing, _) => "Initiating automatic rollback...".to_owned(),
                (RunStatus::Ended, Some(result)) => format!("ended: {}", result.word()),
                (RunStatus::Ended, None) => "ended".to_owned(),
            };
            let message = message.as_ref().map(|text| format!(": {text}"));
            let text = format!("Run {run} {what}{}", message.unwrap_or_default());
            (DiagnosticLevel::Info, text)
        }
        RunEvent::Plan { .. } => return None,
        RunEvent::Unit {
            status,
            message,
            reason,
            seconds,
            changes,
            ..
        } => {
            let level = match status.as_str() {
                "failed" => DiagnosticLevel::Error,
                "not_started" => DiagnosticLevel::Warning,
                _ => DiagnosticLevel::Info,
            };
            let mut text = status.replace('_', " ");
            if let Some(seconds) = seconds {
                text.push_str(&format!(" in {seconds}s"));
            }
            let counts: Vec<_> = changes.iter().map(|(op, n)| format!("{n} {op}")).collect();
            if !counts.is_empty() {
                text.push_str(&format!(" ({})", counts.join(", ")));
            }
            for more in [reason, message].into_iter().flatten() {
                text.push_str(&format!(": {more}"));
            }
            (level, text)
        }
        RunEvent::Resource {
            status,
            op,
            type_,
            name,
            id,
            seconds,
            ..
        } => {
            let (level, what) = match status {
                ResourceStatus::Planned => (DiagnosticLevel::Info, "planned"),
                ResourceStatus::Started => (DiagnosticLevel::Info, "started"),
                ResourceStatus::Done => (DiagnosticLevel::Info, "done"),
                ResourceStatus::Failed => (DiagnosticLevel::Error, "failed"),
            };
            let id = id
                .as_ref()
                .map(|id| format!(" id={id}"))
                .unwrap_or_default();
            let time = seconds.map(|s| format!(" in {s:.1}s")).unwrap_or_default();
            (level, format!("{op} {type_} {name} {what}{id}{time}"))
        }
        RunEvent::Check {
            check,
            status,
            message,
            seconds,
            ..
        } => {
            let level = match status {
                CheckStatus::Failed => DiagnosticLevel::Error,
                CheckStatus::Warned => DiagnosticLevel::Warning,
                _ => DiagnosticLevel::Info,
            };
            let message = message.as_deref().unwrap_or_default();
            if *status == CheckStatus::Output {
                return Some((level, format!("check {check}: {message}")));
            }
            let time = seconds.map(|s| format!(" in {s}s")).unwrap_or_default();
            let text = format!("check {check} {}{time} {message}", status.word());
            (level, text.trim_end().to_owned())
        }
        RunEvent::Diagnostic { level, message, .. } => (*level, message.clone()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nimbus_core::EnvironmentName;
    use nimbus_orchestrator::{RunAction, RunId, UnitState};
    use nimbus_runs::{RunChoices, RunRequest};

    use super::*;

    fn record() -> RunRecord {
        let text = str::to_owned;
        RunRecord {
            run: RunId(1),
            started: text("t"),
            stamp: text("20260102-030405"),
            request: RunRequest {
                action: RunAction::Deploy,
                deployment: "D1".parse().unwrap(),
                environment: EnvironmentName::DEV,
                rehearsal: false,
                user: text("u"),
                host: text("h"),
                choices: RunChoices::default(),
                manifest: String::new(),
                manifest_parts: BTreeMap::new(),
                plan: String::new(),
            },
        }
    }

    #[test]
    fn logs_of_units_are_open_only_while_they_run() {
        let temp = tempfile::tempdir().unwrap();
        let records = Records::real(temp.path());
        let mut logs = RunLogFiles::new(&records).open_files(&record()).unwrap();
        let unit =
            |name: &str, state| RunEvent::unit("t".to_owned(), &name.parse().unwrap(), &state);
        for at in 0..2000 {
            let name = format!("u{at}");
            logs.event(&unit(&name, UnitState::Running)).unwrap();
            assert_eq!(logs.units.len(), 1);
            logs.event(&unit(&name, UnitState::Succeeded)).unwrap();
            assert!(logs.units.is_empty());
        }
        logs.event(&unit("u7", UnitState::RollingBack)).unwrap();
        logs.event(&unit("u7", UnitState::RolledBack)).unwrap();
        let text = fs::read_to_string(log_path(&records, &record(), Some("u7"))).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn lines_have_the_known_form() {
        let at: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(
            format_line(at, DiagnosticLevel::Warning, "network", "careful"),
            "[2026-01-02 03:04:05] [WARN] [network] careful\n"
        );
        assert_eq!(stamp(at), "20260102-030405");
    }
}
