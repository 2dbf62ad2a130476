//! What an operation looks like at this moment, built from its events.
//!
//! [`DisplayState::apply`] is the only way in; rendering reads it and changes nothing. Times are
//! durations since the operation started, given by the caller, so everything here is pure.

use std::collections::BTreeMap;
use std::time::Duration;

use indexmap::IndexMap;
use nimbus_engine_model::{PropertyMap, ROOT_STACK_TYPE, StepOp, Urn, provider_package};
use nimbus_engine_ports::{Diagnostic, EngineEvent, PolicyViolation, Severity, StepEvent, Summary};

use crate::line::StyledLine;
use crate::ops;
use crate::step::{Basis, key_summary};
use crate::text::clean_line;

/// What the display is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplaySubject {
    /// Such as `Previewing update`.
    pub title: String,
    pub stack: String,
    pub project: String,
}

/// One resource's line.
#[derive(Clone, Debug)]
pub(crate) struct ResourceRow {
    pub(crate) type_: String,
    pub(crate) name: String,
    pub(crate) parent: Option<Urn>,
    pub(crate) op: StepOp,
    pub(crate) planning: bool,
    pub(crate) phase: RowPhase,
    /// Some step of a replacement was seen; the row is about the whole replacement.
    pub(crate) replacing: bool,
    /// The first step was a refresh: what the following outcome shows was found, not wanted.
    pub(crate) refreshing: bool,
    pub(crate) changed_keys: StyledLine,
    /// The last outcome was told before: a component ends twice, with its step and its outputs.
    pub(crate) told: bool,
    /// Last progress text of a running step.
    pub(crate) progress: Option<String>,
    pub(crate) messages: Messages,
    /// Hidden unless something goes wrong.
    pub(crate) default_provider: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowPhase {
    Running { since: Duration },
    Done { took: Duration },
    Failed { took: Duration },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Messages {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
    pub(crate) infos: usize,
}

/// Outputs of the stack, before and after.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackOutputs {
    pub(crate) old: PropertyMap,
    pub(crate) new: PropertyMap,
}

#[derive(Clone, Debug)]
pub struct DisplayState {
    pub(crate) subject: DisplaySubject,
    pub(crate) root: Urn,
    pub(crate) rows: IndexMap<Urn, ResourceRow>,
    pub(crate) diagnostics: IndexMap<Option<Urn>, Vec<Diagnostic>>,
    pub(crate) violations: Vec<PolicyViolation>,
    pub(crate) remediations: Vec<(Urn, String, String)>,
    pub(crate) policy_packs: BTreeMap<String, String>,
    pub(crate) outputs: Option<StackOutputs>,
    pub(crate) summary: Option<Summary>,
    pub(crate) cancelling: bool,
}

impl DisplayState {
    pub fn new(subject: DisplaySubject) -> Self {
        Self {
            root: Urn::root_stack(&subject.stack, &subject.project),
            subject,
            rows: IndexMap::new(),
            diagnostics: IndexMap::new(),
            violations: Vec::new(),
            remediations: Vec::new(),
            policy_packs: BTreeMap::new(),
            outputs: None,
            summary: None,
            cancelling: false,
        }
    }

    pub fn apply(&mut self, event: &EngineEvent, now: Duration) {
        match event {
            EngineEvent::Prelude { .. } => {}
            EngineEvent::ResourcePre { step, planning } => self.started(step, *planning, now),
            EngineEvent::ResourceOutputs { step, planning } => self.ended(step, *planning, now),
            EngineEvent::ResourceFailed { step, planning, .. } => {
                let row = self.row(step, *planning, now);
                row.phase = RowPhase::Failed {
                    took: row.elapsed(now),
                };
            }
            EngineEvent::Diagnostic(diagnostic) => self.diagnostic(diagnostic),
            EngineEvent::PolicyViolation(violation) => self.violations.push(violation.clone()),
            EngineEvent::PolicyRemediation {
                urn, policy, pack, ..
            } => self
                .remediations
                .push((urn.clone(), pack.clone(), policy.clone())),
            EngineEvent::PolicyLoaded { pack, version } => {
                self.policy_packs.insert(pack.clone(), version.clone());
            }
            EngineEvent::Summary(summary) => self.summary = Some(summary.clone()),
            EngineEvent::Cancelled => self.cancelling = true,
        }
    }

    /// How the operation ended, if it has.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    fn started(&mut self, step: &StepEvent, planning: bool, now: Duration) {
        let row = self.row(step, planning, now);
        row.op = step.op;
        row.phase = RowPhase::Running { since: now };
        row.replacing |= ops::is_part_of_replacement(step.op);
        row.refreshing = step.op == StepOp::Refresh;
        let keys = key_summary(step, Basis::Program);
        if !keys.is_empty() {
            row.changed_keys = keys;
        }
    }

    fn ended(&mut self, step: &StepEvent, planning: bool, now: Duration) {
        let row = self.row(step, planning, now);
        row.told = matches!(row.phase, RowPhase::Done { .. }) && row.op == step.op;
        row.phase = RowPhase::Done {
            took: row.elapsed(now),
        };
        row.op = step.op;
        row.progress = None;
        if row.refreshing {
            row.changed_keys = key_summary(step, Basis::Refresh);
        }
        if step.type_ == ROOT_STACK_TYPE
            && let Some(new) = &step.new
        {
            self.outputs = Some(StackOutputs {
                old: step
                    .old
                    .as_ref()
                    .map(|old| old.outputs.clone())
                    .unwrap_or_default(),
                new: new.outputs.clone(),
            });
        }
    }

    fn row(&mut self, step: &StepEvent, planning: bool, now: Duration) -> &mut ResourceRow {
        let row = self
            .rows
            .entry(step.urn.clone())
            .or_insert_with(|| ResourceRow::new(step, now));
        row.planning = planning;
        row
    }

    fn diagnostic(&mut self, diagnostic: &Diagnostic) {
        let row = diagnostic
            .urn
            .as_ref()
            .and_then(|urn| self.rows.get_mut(urn));
        if diagnostic.ephemeral {
            if let Some(row) = row {
                row.progress = Some(clean_line(&diagnostic.message));
            }
            return;
        }
        if diagnostic.severity == Severity::Debug {
            return;
        }
        if let Some(row) = row {
            match diagnostic.severity {
                Severity::Error => row.messages.errors += 1,
                Severity::Warning => row.messages.warnings += 1,
                Severity::Info | Severity::Notice | Severity::Debug => row.messages.infos += 1,
            }
            row.progress = Some(clean_line(&diagnostic.message));
        }
        self.diagnostics
            .entry(diagnostic.urn.clone())
            .or_default()
            .push(diagnostic.clone());
    }
}

impl ResourceRow {
    fn new(step: &StepEvent, now: Duration) -> Self {
        let state = step.new.as_ref().or(step.old.as_ref());
        Self {
            type_: step.type_.clone(),
            name: step.urn.name().to_owned(),
            parent: state.and_then(|state| state.parent.clone()),
            op: step.op,
            planning: false,
            phase: RowPhase::Running { since: now },
            replacing: false,
            refreshing: false,
            changed_keys: StyledLine::new(),
            told: false,
            progress: None,
            messages: Messages::default(),
            default_provider: is_default_provider(&step.urn),
        }
    }

    /// Time since the running step began, or that the last one took.
    pub(crate) fn elapsed(&self, now: Duration) -> Duration {
        match self.phase {
            RowPhase::Running { since } => now.saturating_sub(since),
            RowPhase::Done { took } | RowPhase::Failed { took } => took,
        }
    }

    /// The kind of change that the row stands for now that its step ended.
    pub(crate) fn settled_op(&self) -> StepOp {
        match self.phase {
            RowPhase::Done { .. } if self.replacing => StepOp::Replace,
            RowPhase::Running { .. } if self.replacing && self.planning => StepOp::Replace,
            RowPhase::Running { .. } | RowPhase::Done { .. } | RowPhase::Failed { .. } => self.op,
        }
    }

    /// Whether people want to see it.
    pub(crate) fn is_interesting(&self) -> bool {
        let failed = matches!(self.phase, RowPhase::Failed { .. });
        if failed || self.messages.errors + self.messages.warnings > 0 {
            return true;
        }
        !self.default_provider && self.settled_op() != StepOp::Same
    }
}

/// Providers that nobody wrote down in a program.
pub(crate) fn is_default_provider(urn: &Urn) -> bool {
    provider_package(urn.type_()).is_some() && urn.name().starts_with("default")
}
