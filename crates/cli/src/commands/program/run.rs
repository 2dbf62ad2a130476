//! The way of every verb that runs an operation: preview, question, act.

use nimbus_core::{Error, ErrorCode, Result, StackOperation};
use nimbus_engine_display::DisplaySubject;
use nimbus_engine_operations::{
    Cancellation, OperationOptions, OperationReport, OperationRequest, SandboxSettings,
    StackLocation, find_project,
};
use nimbus_engine_ports::{Diagnostic, EngineEvent, Severity};
use nimbus_rehearsal::Observer;

use super::args::{ConsentArgs, ShowArgs};
use super::confirm::{ConfirmAnswer, confirm, confirm_or_details, is_attended};
use super::event_sinks::{Complaints, OperationPage, OperationSinks};
use super::forecast::foretelling;
use super::rehearse::RehearsalArgs;
use super::signals;
use crate::actions::ActionsJob;
use crate::commands::deployment::run::{PreviewFormat, changes_text};
use crate::commands::plugin::install_missing;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::markdown::{PAGE_LIMIT, fenced, folded, inline};
use crate::text_page::TextPage;

/// What a verb asks for.
pub(super) struct ProgramRequest<'a> {
    pub(super) location: StackLocation,
    pub(super) operation: StackOperation,
    pub(super) options: OperationOptions,
    pub(super) show: ShowArgs,
    pub(super) rehearsal: &'a RehearsalArgs,
    /// What the last operation complained about.
    pub(super) complaints: Complaints,
}

impl ProgramRequest<'_> {
    /// Shows what would happen.
    pub(super) async fn preview(
        &self,
        format: PreviewFormat,
        context: &CommandContext,
    ) -> Result<OperationReport> {
        let text = TextPage::default();
        let page = match format {
            PreviewFormat::Markdown => OperationPage::Instead(text.clone()),
            PreviewFormat::Text => page_of_job(&text, context),
        };
        let report = self
            .look_ahead(context, &Cancellation::new(), &page)
            .await?;
        self.tell_page(&page, &report, true, context)?;
        Ok(report)
    }

    /// Shows what would happen, asks, and does it.
    pub(super) async fn apply(
        mut self,
        context: &CommandContext,
        consent: &ConsentArgs,
    ) -> Result<CommandOutcome> {
        consent.apply(&mut self.options);
        let cancellation = Cancellation::new();
        // A plan that somebody saved and handed on is an answer already.
        let mut agreed = consent.yes || self.options.plan.is_some();
        let differences = TextPage::default();
        if self.previews_first(context, consent) {
            let page = match !agreed && is_attended(context) {
                true => OperationPage::Beside(differences.clone()),
                false => OperationPage::None,
            };
            let preview = self.look_ahead(context, &cancellation, &page).await?;
            if let Err(error) = preview.result {
                return self.ended(context, Err(error), true);
            }
            // With nothing to change, only the record is brought up to date.
            agreed |= !preview.has_changes();
        }
        if !agreed {
            self.ask(&differences, context).await?;
            // Whoever answered has read the warnings above.
            self.options.allow_unknown = true;
        }
        let page = page_of_job(&TextPage::default(), context);
        let report = self.operate(context, false, &cancellation, &page).await?;
        self.tell_page(&page, &report, false, context)?;
        self.ended(context, report.result, true)
    }

    /// In JSON the last line is the summary, which says how it went; the exit code says it too. What the summary cannot know
    /// is still an error of its own. `shown` says whether somebody has seen what the operation complained about: then it
    /// is not said twice.
    pub(super) fn ended(
        &self,
        context: &CommandContext,
        result: std::result::Result<(), Error>,
        shown: bool,
    ) -> Result<CommandOutcome> {
        let error = match result {
            Ok(()) => return Ok(CommandOutcome::Done),
            Err(error) => error,
        };
        if context.output.is_json() && is_summarised(&error) {
            return Ok(CommandOutcome::Reported(error.kind()));
        }
        // An annotation stands alone.
        let shown = shown && ActionsJob::current(context.output).is_none();
        let told = self.complaints.list();
        match shown && told.iter().any(|one| error.message().ends_with(one.trim())) {
            true => Err(told_above(&error)),
            false => Err(error),
        }
    }

    /// A preview; if a plugin is missing that may be installed, it is, and the preview is made again.
    /// A simulated cloud needs no plugins, and the official command line gets its own.
    async fn look_ahead(
        &self,
        context: &CommandContext,
        cancellation: &Cancellation,
        page: &OperationPage,
    ) -> Result<OperationReport> {
        let report = self.operate(context, true, cancellation, page).await;
        let failed = report.as_ref().is_ok_and(|report| report.result.is_err());
        if !failed || self.rehearsal.rehearse || self.rehearsal.is_official() {
            return report;
        }
        let complaints = self.complaints.list();
        match install_missing(&complaints, &self.location.directory, context).await? {
            true => self.operate(context, true, cancellation, page).await,
            false => report,
        }
    }

    /// Asks until there is a yes or a no; `details` shows every property that differs.
    async fn ask(&self, differences: &TextPage, context: &CommandContext) -> Result<()> {
        let question = self.question();
        let details = differences.text();
        if details.is_empty() {
            return confirm(context, &question).await;
        }
        while confirm_or_details(context, &question).await? == ConfirmAnswer::Details {
            context.output.complain(&format!("{details}\n"));
        }
        Ok(())
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
        dry_run: bool,
        cancellation: &Cancellation,
        page: &OperationPage,
    ) -> Result<OperationReport> {
        let options = OperationOptions {
            dry_run,
            ..self.options.clone()
        };
        let location = self.location.clone();
        let observer = Observer::default();
        let stage = self.rehearsal.engine(location, context, &observer);
        let (location, engine) = stage.await?;
        let watchers = OperationSinks::open(
            context,
            self.subject(dry_run, &location, options.sandbox.as_ref()),
            self.show,
            page,
        );
        if self.rehearsal.rehearse && context.output.is_json() {
            watchers.sink().emit(rehearsal_note());
        }
        let request = OperationRequest {
            location,
            operation: self.operation,
            options,
        };
        let foretells = !self.rehearsal.is_official();
        let steps = foretells.then(|| request.options.steps_at_once());
        let audience = self.complaints.heard_by(watchers.sink());
        let audience = foretelling(&observer, steps, audience);
        let _last_resort = signals::LastResort::arm();
        let run = engine.run(&request, audience, cancellation);
        tokio::select! {
            report = run => report,
            never = signals::pass_on(cancellation, || watchers.stopping()) => match never {},
        }
    }

    /// The page as the result, or as a part of the summary of a job.
    fn tell_page(
        &self,
        page: &OperationPage,
        report: &OperationReport,
        dry_run: bool,
        context: &CommandContext,
    ) -> Result<()> {
        let (OperationPage::Beside(text) | OperationPage::Instead(text)) = page else {
            return Ok(());
        };
        let stack = self.location.stack.as_str();
        let heading = format!("{}{}", self.mark(), title(self.operation, dry_run));
        let shown = report
            .changes
            .iter()
            .map(|(op, count)| (op.to_string(), *count as u64));
        let markdown = operation_page(
            &heading,
            stack,
            &changes_text(&shown.collect()),
            &text.text(),
        );
        if matches!(page, OperationPage::Instead(_)) {
            context.output.raw(&nimbus_telemetry::redact(&markdown))?;
        }
        if let Some(job) = ActionsJob::current(context.output) {
            job.summarize(&markdown);
        }
        Ok(())
    }

    fn subject(
        &self,
        dry_run: bool,
        location: &StackLocation,
        sandbox: Option<&SandboxSettings>,
    ) -> DisplaySubject {
        let stack = location.stack.rsplit('/').next().unwrap_or_default();
        DisplaySubject {
            title: format!("{}{}", self.mark(), title(self.operation, dry_run)),
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
        let stack = self.location.stack.as_str();
        let question = match self.operation {
            StackOperation::Update => format!("Update {stack}?"),
            StackOperation::Destroy => format!("Delete what is listed above from {stack}?"),
            StackOperation::Refresh => format!("Record what was found in the state of {stack}?"),
            StackOperation::Restore => format!("Bring {stack} back to the recorded state?"),
            StackOperation::Import => {
                let count = self.options.imports.len();
                format!("Import {count} resources into {stack}?")
            }
        };
        format!("{}{question}", self.mark())
    }
}

/// Kept for the summary of the job that runs this, if one does.
fn page_of_job(text: &TextPage, context: &CommandContext) -> OperationPage {
    match ActionsJob::current(context.output) {
        Some(_) => OperationPage::Beside(text.clone()),
        None => OperationPage::None,
    }
}

/// `### Previewing update of dev: 3 create`, and what differs. A text that is too long for a comment
/// is cut at a line, and said to be.
fn operation_page(heading: &str, stack: &str, changes: &str, text: &str) -> String {
    let kept = match text.char_indices().nth(PAGE_LIMIT) {
        None => text,
        Some((limit, _)) => text[..limit].rsplit_once('\n').map_or("", |(kept, _)| kept),
    };
    let cut = text.lines().count() - kept.lines().count();
    let mut page = format!(
        "<!-- nimbus program {stack} -->\n### {} of {}: {changes}\n\n{}",
        inline(heading),
        inline(stack),
        folded("Differences", &fenced("diff", kept)),
    );
    if cut > 0 {
        page.push_str(&format!(
            "\n{cut} lines are left out, because a comment has a limit; `nimbus program preview --diff` \
             shows them.\n"
        ));
    }
    page
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

fn title(operation: StackOperation, dry_run: bool) -> &'static str {
    match (operation, dry_run) {
        (StackOperation::Update, true) => "Previewing update",
        (StackOperation::Update, false) => "Updating",
        (StackOperation::Destroy, true) => "Previewing destroy",
        (StackOperation::Destroy, false) => "Destroying",
        (StackOperation::Refresh, true) => "Previewing refresh",
        (StackOperation::Refresh, false) => "Refreshing",
        (StackOperation::Import, true) => "Previewing import",
        (StackOperation::Import, false) => "Importing",
        (StackOperation::Restore, true) => "Previewing restore",
        (StackOperation::Restore, false) => "Restoring",
    }
}

/// The same error, for whoever has read the reason already.
fn told_above(error: &Error) -> Error {
    let short = Error::new(error.code(), "it failed for the reason above");
    match error.help() {
        Some(help) => short.with_help(help),
        None => short,
    }
}

fn is_summarised(error: &Error) -> bool {
    !matches!(
        error.code(),
        ErrorCode::STATE_NOT_SAVED | ErrorCode::CANCELLED | ErrorCode::LEASE_LOST
    )
}
