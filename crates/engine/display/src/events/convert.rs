//! From the engine's events to public ones.

use nimbus_engine_model::ResourceState;
use nimbus_engine_ports::{
    Diagnostic, EnforcementLevel, EngineEvent, PolicyViolation, Severity, StepEvent, Summary,
};

use super::schema::{
    DiagnosticEvent, DiffMetadata, FAILED, FailedStep, Payload, PolicyEvent,
    PolicyRemediationEvent, PreludeEvent, SUCCEEDED, StateMetadata, StepEnvelope, StepMetadata,
    SummaryEvent,
};
use super::values::blinded_map;
use crate::state::is_default_provider;
use crate::text::clean;

/// Messages carry no colour marks of their own.
const COLOR: &str = "never";

/// `None` for events that are nobody's business, such as those of default providers.
pub(super) fn payload(event: &EngineEvent) -> Option<Payload> {
    Some(match event {
        EngineEvent::Prelude { config } => Payload::Prelude(PreludeEvent {
            config: config.clone(),
        }),
        EngineEvent::ResourcePre { step, planning } => {
            Payload::ResourcePre(envelope(step, *planning)?)
        }
        EngineEvent::ResourceOutputs { step, planning } => {
            Payload::ResourceOutputs(envelope(step, *planning)?)
        }
        EngineEvent::ResourceFailed { step, .. } => Payload::ResourceFailed(FailedStep {
            metadata: metadata(step),
            status: 0,
            steps: 0,
        }),
        EngineEvent::Diagnostic(diagnostic) => Payload::Diagnostic(message(diagnostic)?),
        EngineEvent::PolicyViolation(violation) => Payload::Policy(policy(violation)),
        EngineEvent::PolicyRemediation {
            urn,
            policy,
            pack,
            pack_version,
            before,
            after,
        } => Payload::PolicyRemediation(PolicyRemediationEvent {
            resource_urn: urn.to_string(),
            color: COLOR,
            policy_name: policy.clone(),
            policy_pack_name: pack.clone(),
            policy_pack_version: pack_version.clone(),
            policy_pack_version_tag: pack_version.clone(),
            before: blinded_map(before),
            after: blinded_map(after),
        }),
        EngineEvent::PolicyLoaded { .. } => Payload::PolicyLoad {},
        EngineEvent::Summary(value) => Payload::Summary(summary(value)),
        EngineEvent::Cancelled => Payload::Cancel {},
    })
}

fn envelope(step: &StepEvent, planning: bool) -> Option<StepEnvelope> {
    (!is_default_provider(&step.urn)).then(|| StepEnvelope {
        metadata: metadata(step),
        planning,
    })
}

fn metadata(step: &StepEvent) -> StepMetadata {
    let detailed_diff = step.detailed_diff.as_ref().map(|diffs| {
        let entry = |(path, diff): (&String, &nimbus_engine_ports::PropertyDiff)| {
            let kind = DiffMetadata {
                diff_kind: diff.kind.as_str(),
                input_diff: diff.input_diff,
            };
            (path.clone(), kind)
        };
        diffs.iter().map(entry).collect()
    });
    StepMetadata {
        op: step.op.as_str(),
        urn: step.urn.to_string(),
        type_: step.type_.clone(),
        old: step.old.as_deref().map(state),
        new: step.new.as_deref().map(state),
        keys: step.replace_keys.clone(),
        diffs: step.changed_keys.clone(),
        detailed_diff,
        logical: step.logical,
        provider: step.provider.clone(),
    }
}

fn state(state: &ResourceState) -> StateMetadata {
    StateMetadata {
        type_: state.type_.clone(),
        urn: state.urn.to_string(),
        custom: state.custom,
        delete: state.delete,
        id: state.id.clone().unwrap_or_default(),
        parent: state
            .parent
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        protect: state.protect,
        taint: state.taint,
        external: state.external,
        retain_on_delete: state.retain_on_delete,
        inputs: blinded_map(&state.inputs),
        outputs: blinded_map(&state.outputs),
        provider: state.provider.clone(),
        init_errors: state.init_errors.clone(),
        hide_diffs: state.hide_diff.clone(),
    }
}

/// What SDKs say about their inner life is not part of the public stream.
fn message(diagnostic: &Diagnostic) -> Option<DiagnosticEvent> {
    let (prefix, severity) = match diagnostic.severity {
        Severity::Debug => return None,
        Severity::Info | Severity::Notice => ("", "info"),
        Severity::Warning => ("warning: ", "warning"),
        Severity::Error => ("error: ", "error"),
    };
    let mut message = clean(&diagnostic.message);
    if !message.ends_with('\n') {
        message.push('\n');
    }
    Some(DiagnosticEvent {
        urn: diagnostic
            .urn
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        prefix,
        message,
        color: COLOR,
        severity,
        stream_id: diagnostic.stream_id,
        ephemeral: diagnostic.ephemeral,
    })
}

fn policy(violation: &PolicyViolation) -> PolicyEvent {
    PolicyEvent {
        resource_urn: violation
            .urn
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        message: clean(&violation.message),
        color: COLOR,
        policy_name: violation.policy.clone(),
        policy_pack_name: violation.pack.clone(),
        policy_pack_version: violation.pack_version.clone(),
        policy_pack_version_tag: violation.pack_version.clone(),
        enforcement_level: match violation.enforcement {
            EnforcementLevel::Advisory => "advisory",
            EnforcementLevel::Mandatory => "mandatory",
            EnforcementLevel::Remediate => "remediate",
            EnforcementLevel::Disabled => "disabled",
        },
    }
}

fn summary(summary: &Summary) -> SummaryEvent {
    // Parts of a second count as a whole one, so that nothing took no time at all.
    let duration_seconds =
        summary.duration.as_secs() + u64::from(summary.duration.subsec_nanos() > 0);
    SummaryEvent {
        maybe_corrupt: summary.maybe_corrupt,
        duration_seconds,
        resource_changes: summary
            .changes
            .iter()
            .map(|(op, count)| (op.as_str(), *count))
            .collect(),
        policy_packs: summary.policy_packs.clone(),
        is_preview: summary.is_preview,
        result: if summary.succeeded { SUCCEEDED } else { FAILED },
    }
}
