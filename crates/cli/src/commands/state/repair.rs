//! `nimbus state repair`: mend a state that contradicts itself.
//!
//! The work is done on a copy and shown as a diff; `--write` accepts it. Only what loses nothing is
//! mended. A journal that an interrupted operation left is described; it is settled by the next
//! operation, unless it no longer fits, in which case a person decides.

use std::sync::Arc;

use nimbus_core::{ErrorKind, Result};
use nimbus_engine_backend::{
    BackendError, EnvironmentVariables, ImportOptions, Keyring, Owner, Stack, Unverified,
};
use nimbus_engine_display::{Paint, StepDetail, StyledLine, snapshot_diff_lines};
use nimbus_engine_model::Snapshot;
use nimbus_engine_model::format::{Layout, SecretsMode, write_export};
use nimbus_engine_model::integrity::{Repair, repair};
use nimbus_engine_model::secrets::{CiphertextCache, SealedText};
use nimbus_engine_operations::{StackAccess, describe_interruption, unknown_outcomes_help};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::program::{LocationArgs, confirm};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct StateRepairArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// Make the mended copy the state of the stack
    #[arg(long)]
    write: bool,

    /// Put the journal of an interrupted operation away without applying it
    #[arg(long)]
    discard_journal: bool,

    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: StateRepairArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let location = args.location.location(context)?;
    let access = StackAccess::open(
        &location,
        &EnvironmentVariables::process(),
        &context.key_services()?,
    )
    .await?;
    let stack = access.stack();
    let journal = journal(&stack, &access.keyring).await?;
    let (journal, journal_unfit) =
        journal.map_or((None, false), |(text, unfit)| (Some(text), unfit));
    let state = stack.load_unverified().await?;
    let before = state.snapshot.clone().unwrap_or_default();
    let mended = repair(&before);
    let lines = snapshot_diff_lines(&before, &mended.snapshot, StepDetail::Short);
    let mut report = RepairReport {
        stack: access.name.to_string(),
        problems: state.findings.iter().map(ToString::to_string).collect(),
        actions: mended.actions.iter().map(ToString::to_string).collect(),
        remaining: mended.remaining.iter().map(ToString::to_string).collect(),
        unknown: unknown_outcomes(&before),
        settle: (!before.pending_operations.is_empty()).then(|| unknown_outcomes_help(&before)),
        journal,
        journal_unfit,
        journal_kept_as: None,
        diff: lines.iter().map(StyledLine::plain).collect(),
        written: false,
        lines,
    };
    if args.discard_journal && report.journal.is_some() {
        ask(
            &args,
            context,
            &report,
            "Put the journal away without applying it?",
        )
        .await?;
        let owner = Owner::current("nimbus state repair");
        report.journal_kept_as = stack.set_journal_aside(owner).await?;
    }
    if args.write && !mended.actions.is_empty() {
        ask(&args, context, &report, "Make this the state of the stack?").await?;
        write(&access, &stack, &state, &mended).await?;
        report.written = true;
    }
    context.output.result(&report)?;
    Ok(report.outcome())
}

fn unknown_outcomes(snapshot: &Snapshot) -> Vec<String> {
    let pending = snapshot.pending_operations.iter();
    pending
        .map(|operation| format!("{} {}", operation.kind, operation.resource.urn))
        .collect()
}

/// What an interrupted operation has left, in words, and whether the next one cannot settle it.
async fn journal(stack: &Stack, keyring: &Arc<Keyring>) -> Result<Option<(String, bool)>> {
    let told = match stack.interrupted().await {
        Ok(None) => return Ok(None),
        Ok(Some(report)) => describe_interruption(&report),
        // A journal that cannot be read is what people come here for.
        Err(error @ (BackendError::Journal(_) | BackendError::Replay { .. })) => {
            return Ok(Some((error.to_string(), true)));
        }
        Err(error) => return Err(error.into()),
    };
    match stack.try_journal(keyring).await {
        Err(
            error @ (BackendError::Journal(_)
            | BackendError::Replay { .. }
            | BackendError::JournalBase { .. }),
        ) => Ok(Some((format!("{told}\n{error}"), true))),
        // Without its keys or its state it cannot be tried, and the next operation will say so.
        Ok(()) | Err(_) => Ok(Some((told, false))),
    }
}

async fn ask(
    args: &StateRepairArgs,
    context: &CommandContext,
    report: &RepairReport,
    question: &str,
) -> Result<()> {
    if args.yes {
        return Ok(());
    }
    if !context.output.is_json() {
        context
            .output
            .raw(&report.text(context.output.stdout_terminal()))?;
    }
    confirm(context, question).await
}

async fn write(
    access: &StackAccess,
    stack: &Stack,
    looked_at: &Unverified,
    mended: &Repair,
) -> Result<()> {
    let bytes = export(&mended.snapshot)?;
    let options = ImportOptions {
        accept_older: true,
        // What could not be mended was there before.
        accept_broken: !mended.remaining.is_empty(),
        accept_other_stack: false,
        made_of: Some(looked_at.version),
    };
    let owner = Owner::current("nimbus state repair");
    stack
        .import(&bytes, options, owner, &access.keyring)
        .await?;
    Ok(())
}

fn export(snapshot: &Snapshot) -> Result<Vec<u8>> {
    let secrets = SecretsMode::Encrypt {
        crypter: &SealedText,
        cache: &mut CiphertextCache::default(),
    };
    Ok(write_export(Some(snapshot), secrets, Layout::Compact)?)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct RepairReport {
    /// `organization/<project>/<stack>`.
    stack: String,
    /// Rules that the state breaks.
    problems: Vec<String>,
    /// What was mended on the copy.
    actions: Vec<String>,
    /// What is still wrong and needs a person.
    remaining: Vec<String>,
    /// Acts that were begun and whose outcome nobody knows.
    unknown: Vec<String>,
    /// The commands that settle them.
    settle: Option<String>,
    /// What an interrupted operation has left.
    journal: Option<String>,
    /// Whether the next operation cannot settle it.
    journal_unfit: bool,
    /// Where its journal was put away.
    journal_kept_as: Option<String>,
    /// Lines as people read them; secrets are `[secret]`.
    diff: Vec<String>,
    /// Whether the mended copy is the state now.
    written: bool,
    #[serde(skip)]
    #[schemars(skip)]
    lines: Vec<StyledLine>,
}

impl RepairReport {
    /// Whether no operation can begin for the journal that is there.
    fn is_blocked(&self) -> bool {
        self.journal_unfit && self.journal_kept_as.is_none()
    }

    /// A state that is still broken is told by the exit code too.
    fn outcome(&self) -> CommandOutcome {
        let waiting = (!self.actions.is_empty() && !self.written) || self.is_blocked();
        if waiting || !self.remaining.is_empty() || !self.unknown.is_empty() {
            CommandOutcome::Reported(ErrorKind::Refused)
        } else {
            CommandOutcome::Done
        }
    }
}

impl Report for RepairReport {
    const SCHEMA: &'static str = "nimbus/state-repair/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut page = ReportPage::default();
        let mut section = |tone: TextStyle, title: &str, entries: &[String]| {
            if !entries.is_empty() {
                page.line(terminal.paint(tone, title));
                for entry in entries {
                    page.line(format!("  {entry}"));
                }
            }
        };
        section(TextStyle::Bad, "What is wrong:", &self.problems);
        section(TextStyle::Good, "What was mended on a copy:", &self.actions);
        section(TextStyle::Warning, "What needs a person:", &self.remaining);
        section(
            TextStyle::Warning,
            "Nobody knows what became of:",
            &self.unknown,
        );
        section(
            TextStyle::Warning,
            "An operation did not finish:",
            self.journal.as_slice(),
        );
        if !self.lines.is_empty() {
            let paint = if terminal.color {
                Paint::Colour
            } else {
                Paint::Plain
            };
            page.line(terminal.paint(TextStyle::Heading, "Difference:"));
            page.append(&paint.lines(&self.lines));
        }
        if let Some(kept) = &self.journal_kept_as {
            page.line(format!("The journal is kept as {kept}"));
        } else if self.is_blocked() {
            page.line(
                "The journal cannot be settled, and no operation begins while it is there. Look for what it \
                 made, then put it away with --discard-journal; refresh or import afterwards",
            );
        } else if self.journal.is_some() {
            page.line("The next operation settles the journal");
        }
        if let Some(settle) = &self.settle {
            page.line(format!("To settle it: {settle}"));
        }
        page.line(match (self.written, self.actions.is_empty()) {
            (true, _) => "The mended copy is the state of the stack now",
            (false, false) => "Nothing was written; --write accepts the mended copy",
            (false, true) if !self.unknown.is_empty() => {
                "The record does not contradict itself, but updates are refused until it is settled"
            }
            (false, true) if self.problems.is_empty() && self.is_blocked() => {
                "The state itself does not contradict itself; what the journal knows is not in it"
            }
            (false, true) if self.problems.is_empty() => "The state is sound",
            (false, true) => "Nothing can be mended without guessing",
        });
        page.into_text()
    }
}
