//! The official event log, line by line, as events of ours.
//!
//! Its form is public; what is unknown in it is passed over, because newer versions add to it.
//! Secrets are blank in it already.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_model::format::read_property;
use nimbus_engine_model::secrets::{CryptError, Crypter};
use nimbus_engine_model::{
    PropertyMap, PropertyPath, PropertyValue, REDACTED, ResourceState, StepOp, Urn,
};
use nimbus_engine_ports::{
    Diagnostic, DiffKind, EnforcementLevel, EngineEvent, FailureCause, PolicyViolation,
    PropertyDiff, Severity, StepEvent, Summary,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

/// What a line of the log is to us.
#[derive(Debug)]
pub(super) enum Logged {
    Event(EngineEvent),
    /// The last line, which is there after every run.
    End,
    /// Nothing that we know.
    Other,
}

pub(super) fn parse(line: &str) -> Logged {
    let Ok(line) = serde_json::from_str::<LoggedLine>(line) else {
        return Logged::Other;
    };
    if line.cancel_event.is_some() {
        return Logged::End;
    }
    event(line).map_or(Logged::Other, Logged::Event)
}

fn event(line: LoggedLine) -> Option<EngineEvent> {
    if let Some(Prelude { config }) = line.prelude_event {
        return Some(EngineEvent::Prelude { config });
    }
    if let Some(Envelope { metadata, planning }) = line.resource_pre_event {
        let step = step(metadata)?;
        return Some(EngineEvent::ResourcePre { step, planning });
    }
    if let Some(Envelope { metadata, planning }) = line.res_outputs_event {
        let step = step(metadata)?;
        return Some(EngineEvent::ResourceOutputs { step, planning });
    }
    if let Some(Envelope { metadata, planning }) = line.res_op_failed_event {
        let step = step(metadata)?;
        return Some(EngineEvent::ResourceFailed {
            step,
            planning,
            // The log does not have it; whoever hears the errors before it fills it in.
            cause: FailureCause::Other,
        });
    }
    if let Some(message) = line.diagnostic_event {
        return diagnostic(message).map(EngineEvent::Diagnostic);
    }
    if let Some(policy) = line.policy_event {
        return Some(EngineEvent::PolicyViolation(violation(policy)));
    }
    if let Some(policy) = line.policy_remediation_event {
        return Some(EngineEvent::PolicyRemediation {
            urn: Urn::parse(&policy.resource_urn).ok()?,
            policy: policy.policy_name,
            pack: policy.policy_pack_name,
            pack_version: policy.policy_pack_version,
            before: properties(policy.before),
            after: properties(policy.after),
        });
    }
    line.summary_event
        .map(|ended| EngineEvent::Summary(summary(ended)))
}

fn step(metadata: LoggedStep) -> Option<StepEvent> {
    let detailed_diff = metadata.detailed_diff.map(|diffs| {
        let entry = |(path, diff): (String, Diff)| {
            let kind = parse_diff(&diff.diff_kind)?;
            let input_diff = diff.input_diff;
            Some((path, PropertyDiff { kind, input_diff }))
        };
        diffs.into_iter().filter_map(entry).collect()
    });
    Some(StepEvent {
        op: parse_op(&metadata.op)?,
        urn: Urn::parse(&metadata.urn).ok()?,
        type_: metadata.type_,
        provider: metadata.provider,
        old: metadata.old.and_then(state).map(Arc::new),
        new: metadata.new.and_then(state).map(Arc::new),
        replace_keys: metadata.keys.unwrap_or_default(),
        changed_keys: metadata.diffs.unwrap_or_default(),
        detailed_diff,
        logical: metadata.logical,
    })
}

fn state(state: LoggedState) -> Option<ResourceState> {
    let mut known = ResourceState::new(Urn::parse(&state.urn).ok()?, state.custom);
    known.delete = state.delete;
    known.id = Some(state.id).filter(|id| !id.is_empty());
    known.parent = Urn::parse(&state.parent).ok();
    known.protect = state.protect;
    known.taint = state.taint;
    known.external = state.external;
    known.retain_on_delete = state.retain_on_delete;
    known.inputs = properties(state.inputs);
    known.outputs = properties(state.outputs);
    known.provider = state.provider;
    known.init_errors = state.init_errors.unwrap_or_default();
    // A path that cannot be read hides nothing; the state file has it is.
    known.hide_diff = state
        .hide_diffs
        .iter()
        .flatten()
        .filter_map(|path| PropertyPath::parse(path).ok())
        .collect();
    Some(known)
}

/// A value that cannot be read is not shown; the state file has it.
fn properties(map: Option<Map<String, Value>>) -> PropertyMap {
    let value = Value::Object(map.unwrap_or_default()).to_string();
    match read_property(value.as_bytes(), &Blank) {
        Ok(PropertyValue::Object(map)) => map,
        _ => PropertyMap::new(),
    }
}

/// Secrets in the log are blank words; that they were secrets is kept.
struct Blank;

impl Crypter for Blank {
    fn encrypt(&self, _: &str) -> Result<String, CryptError> {
        Ok(REDACTED.to_owned())
    }

    fn decrypt(&self, _: &str) -> Result<Zeroizing<String>, CryptError> {
        Ok(Zeroizing::new(format!("\"{REDACTED}\"")))
    }
}

fn diagnostic(message: LoggedDiagnostic) -> Option<Diagnostic> {
    let severity = match message.severity.as_str() {
        // What SDKs say about their inner life; it may quote anything.
        "debug" => return None,
        "error" => Severity::Error,
        "warning" => Severity::Warning,
        _ => Severity::Info,
    };
    Some(Diagnostic {
        severity,
        urn: Urn::parse(&message.urn).ok(),
        message: message.message.trim_end_matches('\n').to_owned(),
        stream_id: message.stream_id,
        ephemeral: message.ephemeral,
    })
}

fn violation(policy: Policy) -> PolicyViolation {
    PolicyViolation {
        urn: Urn::parse(&policy.resource_urn).ok(),
        message: policy.message,
        policy: policy.policy_name,
        pack: policy.policy_pack_name,
        pack_version: policy.policy_pack_version,
        enforcement: match policy.enforcement_level.as_str() {
            "advisory" => EnforcementLevel::Advisory,
            "remediate" => EnforcementLevel::Remediate,
            "disabled" => EnforcementLevel::Disabled,
            _ => EnforcementLevel::Mandatory,
        },
    }
}

fn summary(ended: LoggedSummary) -> Summary {
    let changes = ended.resource_changes.unwrap_or_default().into_iter();
    Summary {
        is_preview: ended.is_preview,
        duration: Duration::from_secs(ended.duration_seconds),
        changes: changes
            .filter_map(|(op, count)| Some((parse_op(&op)?, count)))
            .collect(),
        maybe_corrupt: ended.maybe_corrupt,
        succeeded: ended.result.as_deref() == Some("succeeded"),
        policy_packs: ended.policy_packs.unwrap_or_default(),
    }
}

fn parse_op(text: &str) -> Option<StepOp> {
    serde_json::from_value(Value::from(text)).ok()
}

fn parse_diff(text: &str) -> Option<DiffKind> {
    const ALL: [DiffKind; 6] = [
        DiffKind::Add,
        DiffKind::AddReplace,
        DiffKind::Delete,
        DiffKind::DeleteReplace,
        DiffKind::Update,
        DiffKind::UpdateReplace,
    ];
    ALL.into_iter().find(|kind| kind.as_str() == text)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoggedLine {
    cancel_event: Option<Value>,
    prelude_event: Option<Prelude>,
    diagnostic_event: Option<LoggedDiagnostic>,
    resource_pre_event: Option<Envelope>,
    res_outputs_event: Option<Envelope>,
    res_op_failed_event: Option<Envelope>,
    policy_event: Option<Policy>,
    policy_remediation_event: Option<Policy>,
    summary_event: Option<LoggedSummary>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Prelude {
    config: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Envelope {
    metadata: LoggedStep,
    #[serde(default)]
    planning: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LoggedStep {
    op: String,
    urn: String,
    #[serde(rename = "type")]
    type_: String,
    old: Option<LoggedState>,
    new: Option<LoggedState>,
    keys: Option<Vec<String>>,
    diffs: Option<Vec<String>>,
    detailed_diff: Option<BTreeMap<String, Diff>>,
    logical: bool,
    provider: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Diff {
    diff_kind: String,
    input_diff: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LoggedState {
    urn: String,
    custom: bool,
    delete: bool,
    id: String,
    parent: String,
    protect: bool,
    taint: bool,
    external: bool,
    retain_on_delete: bool,
    inputs: Option<Map<String, Value>>,
    outputs: Option<Map<String, Value>>,
    provider: String,
    init_errors: Option<Vec<String>>,
    hide_diffs: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LoggedDiagnostic {
    urn: String,
    message: String,
    severity: String,
    #[serde(rename = "streamID")]
    stream_id: i32,
    ephemeral: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Policy {
    resource_urn: String,
    message: String,
    policy_name: String,
    policy_pack_name: String,
    policy_pack_version: String,
    enforcement_level: String,
    before: Option<Map<String, Value>>,
    after: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LoggedSummary {
    maybe_corrupt: bool,
    duration_seconds: u64,
    resource_changes: Option<BTreeMap<String, usize>>,
    #[serde(rename = "PolicyPacks")]
    policy_packs: Option<BTreeMap<String, String>>,
    is_preview: bool,
    result: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const URN: &str = "urn:pulumi:dev::p::a:b:C::n";

    fn parsed(line: &str) -> EngineEvent {
        match parse(line) {
            Logged::Event(event) => event,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_step_keeps_everything_that_is_shown_and_secrets_stay_secret() {
        let line = format!(
            r#"{{"sequence":7,"timestamp":1,"resOutputsEvent":{{"metadata":{{"op":"update","urn":"{URN}",
            "type":"a:b:C","old":null,"new":{{"type":"a:b:C","urn":"{URN}","custom":true,"id":"x","parent":"",
            "inputs":{{"n":1,"s":{{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270",
            "ciphertext":"[secret]"}}}},"outputs":{{}},"provider":""}},"diffs":["n"],
            "detailedDiff":{{"n":{{"diffKind":"update-replace","inputDiff":true}}}},"logical":true,
            "provider":""}},"planning":true}}}}"#
        );
        let EngineEvent::ResourceOutputs { step, planning } = parsed(&line) else {
            panic!("another event");
        };
        assert!(planning && step.logical);
        assert_eq!(step.op, StepOp::Update);
        let new = step.new.expect("a state");
        assert_eq!(new.id.as_deref(), Some("x"));
        assert!(matches!(new.inputs["s"], PropertyValue::Secret(_)));
        assert_eq!(new.inputs["n"], PropertyValue::Number(1.0));
        let diff = step.detailed_diff.expect("a diff");
        assert_eq!(diff["n"].kind, DiffKind::UpdateReplace);
        assert!(diff["n"].input_diff);
    }

    #[test]
    fn messages_policies_and_the_summary_are_read() {
        let line = r#"{"diagnosticEvent":{"prefix":"error: ","message":"no\n","color":"never","severity":"error"}}"#;
        let EngineEvent::Diagnostic(diagnostic) = parsed(line) else {
            panic!("another event");
        };
        assert_eq!(
            (diagnostic.severity, diagnostic.message.as_str()),
            (Severity::Error, "no")
        );
        let line = r#"{"policyEvent":{"message":"m","policyName":"p","policyPackName":"k","policyPackVersion":"1","enforcementLevel":"mandatory"}}"#;
        let EngineEvent::PolicyViolation(violation) = parsed(line) else {
            panic!("another event");
        };
        assert_eq!(violation.enforcement, EnforcementLevel::Mandatory);
        let line = r#"{"summaryEvent":{"maybeCorrupt":false,"durationSeconds":4,"resourceChanges":{"create":3,"same":1},"PolicyPacks":{},"isPreview":false,"result":"succeeded"}}"#;
        let EngineEvent::Summary(summary) = parsed(line) else {
            panic!("another event");
        };
        assert_eq!(summary.changes[&StepOp::Create], 3);
        assert!(summary.succeeded && !summary.is_preview);
    }

    #[test]
    fn what_is_not_ours_to_know_is_passed_over() {
        for line in [
            "",
            "{",
            r#"{"sequence":1,"newEvent":{}}"#,
            r#"{"diagnosticEvent":{"message":"x","severity":"debug"}}"#,
            r#"{"resourcePreEvent":{"metadata":{"op":"unheard-of","urn":"urn:pulumi:a::b::c:d:E::f"}}}"#,
        ] {
            assert!(matches!(parse(line), Logged::Other), "{line}");
        }
        assert!(matches!(
            parse(r#"{"sequence":9,"cancelEvent":{}}"#),
            Logged::End
        ));
    }
}
