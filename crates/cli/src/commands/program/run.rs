//! The way of every verb that runs an operation: preview, question, act.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_display::DisplaySubject;
use nimbus_engine_operations::{
    Cancellation, OperationAction, OperationMode, OperationReport, OperationRequest, RunOptions,
    SandboxSettings, StackLocation, find_project,
};
use nimbus_engine_ports::{Diagnostic, EngineEvent, Severity};
use nimbus_rehearsal::Observer;

use super::args::{ConsentArgs, LocationArgs, ShowArgs};
use super::confirm::confirm;
use super::event_sinks::OperationSinks;
use super::forecast::foretelling;
use super::rehearse::RehearsalArgs;
use super::signals;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

/// What a verb asks for.
pub(super) struct ProgramRequest<'a> {
    pub(super) location: &'a LocationArgs,
    pub(super) action: OperationAction,
    pub(super) options: RunOptions,
    pub(super) show: ShowArgs,
    pub(super) rehearsal: &'a RehearsalArgs,
}

impl ProgramRequest<'_> {
    /// Shows what would happen.
    pub(super) async fn preview(&self, context: &CommandContext) -> Result<OperationReport> {
        let options = self.options.clone();
        self.operate(
            context,
            OperationMode::Preview,
            options,
            &Cancellation::new(),
        )
        .await
    }

    /// Shows what would happen, asks, and does it.
    pub(super) async fn apply(
        mut self,
        context: &CommandContext,
        consent: &ConsentArgs,
    ) -> Result<CommandOutcome> {
        consent.apply(&mut self.options);
        let cancellation = Cancellation::new();
        let mut agreed = consent.yes;
        if self.previews_first(context, consent) {
            let options = self.options.clone();
            let preview = self
                .operate(context, OperationMode::Preview, options, &cancellation)
                .await?;
            if let Err(error) = preview.result {
                return ended(context, Err(error));
            }
            // With nothing to change, only the record is brought up to date.
            agreed |= !preview.has_changes();
        }
        if !agreed {
            confirm(context, &self.question()).await?;
            // Whoever answered has read the warnings above.
            self.options.allow_unknown = true;
        }
        let options = self.options.clone();
        let report = self
            .operate(context, OperationMode::Apply, options, &cancellation)
            .await?;
        ended(context, report.result)
    }

    /// Nobody reads a preview in JSON, but policies must be heard before anything changes, unless
    /// somebody asked for no preview: then they judge each resource on its way, and a mandatory
    /// violation stops what comes after it.
    fn previews_first(&self, context: &CommandContext, consent: &ConsentArgs) -> bool {
        let has_policies = !self.options.policy_packs.is_empty();
        !consent.skip_preview && (has_policies || !context.output.is_json())
    }

    async fn operate(
        &self,
        context: &CommandContext,
        mode: OperationMode,
        options: RunOptions,
        cancellation: &Cancellation,
    ) -> Result<OperationReport> {
        let location = self.location.location(context);
        let observer = Observer::default();
        let stage = self.rehearsal.engine(location, context, &observer);
        let (location, engine) = stage.await?;
        let watchers = OperationSinks::open(
            context,
            self.subject(mode, &location, options.sandbox.as_ref()),
            self.show,
        );
        if self.rehearsal.rehearse && context.output.is_json() {
            watchers.sink().emit(rehearsal_note());
        }
        let request = OperationRequest {
            location,
            action: self.action.clone(),
            mode,
            options,
        };
        let foretells = !self.rehearsal.is_official();
        let steps = foretells.then(|| request.options.steps_at_once());
        let audience = foretelling(&observer, steps, watchers.sink());
        let _last_resort = signals::LastResort::arm();
        let run = engine.run(&request, audience, cancellation);
        tokio::select! {
            report = run => report,
            never = signals::pass_on(cancellation, || watchers.stopping()) => match never {},
        }
    }

    fn subject(
        &self,
        mode: OperationMode,
        location: &StackLocation,
        sandbox: Option<&SandboxSettings>,
    ) -> DisplaySubject {
        let stack = location.stack.rsplit('/').next().unwrap_or_default();
        DisplaySubject {
            title: format!("{}{}", self.mark(), title(&self.action, mode)),
            stack: stack.to_owned(),
            project: project_name(location, sandbox),
        }
    }

    /// What every screen of a rehearsal begins with.
    fn mark(&self) -> &'static str {
        if self.rehearsal.rehearse {
            "REHEARSAL "
        } else {
            ""
        }
    }

    fn question(&self) -> String {
        let stack = self.location.stack();
        let question = match &self.action {
            OperationAction::Update => format!("Update {stack}?"),
            OperationAction::Destroy => format!("Delete what is listed above from {stack}?"),
            OperationAction::Refresh => format!("Record what was found in the state of {stack}?"),
            OperationAction::Restore(_) => format!("Bring {stack} back to the recorded state?"),
            OperationAction::Import(items) => {
                format!("Import {} resources into {stack}?", items.len())
            }
        };
        format!("{}{question}", self.mark())
    }
}

/// Whoever reads events learns it too.
fn rehearsal_note() -> EngineEvent {
    EngineEvent::Diagnostic(Diagnostic {
        severity: Severity::Info,
        urn: None,
        message: "REHEARSAL: a simulated cloud; nothing real is touched".to_owned(),
        stream_id: 0,
        ephemeral: false,
    })
}

/// The project that resources are shown under. What is wrong with it is told by the operation.
fn project_name(location: &StackLocation, sandbox: Option<&SandboxSettings>) -> String {
    let named = location.stack.split('/').collect::<Vec<_>>();
    if let [_, project, _] = named[..] {
        return project.to_owned();
    }
    find_project(&location.directory, sandbox)
        .map(|(project, _)| project.name)
        .unwrap_or_default()
}

fn title(action: &OperationAction, mode: OperationMode) -> &'static str {
    match (action, mode) {
        (OperationAction::Update, OperationMode::Preview) => "Previewing update",
        (OperationAction::Update, OperationMode::Apply) => "Updating",
        (OperationAction::Destroy, OperationMode::Preview) => "Previewing destroy",
        (OperationAction::Destroy, OperationMode::Apply) => "Destroying",
        (OperationAction::Refresh, OperationMode::Preview) => "Previewing refresh",
        (OperationAction::Refresh, OperationMode::Apply) => "Refreshing",
        (OperationAction::Import(_), OperationMode::Preview) => "Previewing import",
        (OperationAction::Import(_), OperationMode::Apply) => "Importing",
        (OperationAction::Restore(_), OperationMode::Preview) => "Previewing restore",
        (OperationAction::Restore(_), OperationMode::Apply) => "Restoring",
    }
}

/// In JSON the last line is the summary, which says how it went; the exit code says it too. What
/// the summary cannot know is still an error of its own.
pub(super) fn ended(
    context: &CommandContext,
    result: std::result::Result<(), Error>,
) -> Result<CommandOutcome> {
    match result {
        Ok(()) => Ok(CommandOutcome::Done),
        Err(error) if context.output.is_json() && is_summarised(&error) => {
            Ok(CommandOutcome::Reported(error.kind()))
        }
        Err(error) => Err(error),
    }
}

fn is_summarised(error: &Error) -> bool {
    !matches!(
        error.code(),
        ErrorCode::STATE_NOT_SAVED | ErrorCode::CANCELLED | ErrorCode::LEASE_LOST
    )
}
