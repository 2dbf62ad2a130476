//! What an operation says about those before and beside it.

use nimbus_engine_backend::{HeldBy, JournalOutcome, RecoveryReport, StackRef};
use nimbus_engine_model::integrity::IntegrityFinding;
use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};

/// A misspelled name would be a stack of its own.
pub(crate) fn new_stack(events: &dyn EventSink, name: &StackRef) {
    let message = format!("{name} does not exist yet; it would be made");
    emit(events, Severity::Info, message);
}

/// Somebody else is changing the stack.
pub(crate) fn held(events: &dyn EventSink, holder: &HeldBy) {
    let message = format!(
        "{} is changing this stack right now; what is shown here may be out of date",
        holder.owner
    );
    warn(events, message);
}

/// An operation died and nobody has settled what it left.
pub(crate) fn interrupted(events: &dyn EventSink, report: &RecoveryReport) {
    let message = format!(
        "{}\nThis preview starts from the state before it; the next up, destroy or refresh settles it",
        describe(report)
    );
    warn(events, message);
}

/// What earlier operations had left was settled just now.
pub fn recovered(events: &dyn EventSink, reports: &[RecoveryReport]) {
    for report in reports {
        let end = match &report.journal {
            JournalOutcome::Waiting => return interrupted(events, report),
            JournalOutcome::Compacted { version, evidence } => format!(
                "Its journal is part of the state now, version {version}, and is kept as {evidence}"
            ),
            JournalOutcome::WasCompacted { evidence } => {
                format!("Its state was complete; the journal is kept as {evidence}")
            }
        };
        warn(events, format!("{}\n{end}", describe(report)));
    }
}

/// The new state breaks rules. It was written nevertheless: it is the only record.
pub(crate) fn findings(events: &dyn EventSink, findings: &[IntegrityFinding]) {
    if findings.is_empty() {
        return;
    }
    let list: Vec<String> = findings
        .iter()
        .map(|finding| format!("  {finding}"))
        .collect();
    let message = format!(
        "the state that was written contradicts itself:\n{}\n`nimbus state repair` shows what can be done",
        list.join("\n")
    );
    emit(events, Severity::Error, message);
}

/// What is known of an interrupted operation, and what is not.
pub fn describe(report: &RecoveryReport) -> String {
    let mut text = format!(
        "an earlier {} by {} did not finish: {} acts have a recorded outcome",
        report.operation,
        report.owner,
        report.known.len()
    );
    if report.unknown.is_empty() {
        text.push_str(", and none is unknown");
        return text;
    }
    text.push_str(", and nobody knows what became of:");
    for act in &report.unknown {
        text.push_str(&format!("\n  {} {}", act.kind.as_str(), act.urn));
        if let Some(id) = &act.id {
            text.push_str(&format!(" [id={id}]"));
        }
        if let Some(message) = &act.message {
            text.push_str(&format!(": {message}"));
        }
    }
    text
}

fn warn(events: &dyn EventSink, message: String) {
    emit(events, Severity::Warning, message);
}

fn emit(events: &dyn EventSink, severity: Severity, message: String) {
    events.emit(EngineEvent::Diagnostic(Diagnostic {
        severity,
        urn: None,
        message,
        stream_id: 0,
        ephemeral: false,
    }));
}
