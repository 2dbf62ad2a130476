//! `nimbus preview`: the whole environment, each unit with the outputs that units before it would
//! have. Nothing is locked or changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nimbus_core::{ComponentName, Error, ErrorCode, Result};
use nimbus_disk::FileMode;
use nimbus_engine_display::{
    DisplaySubject as Titled, DisplayThread, LineStyle, LineViewer, Paint, StepDetail,
};
use nimbus_local::UnitEvents;
use nimbus_orchestrator::{RunAction, UnitGraph};
use nimbus_runs::{PreviewRequest, SealedPlan, preview as preview_environment};
use parking_lot::Mutex;

use super::TraceArgs;
use super::runner::{LocalRunner, outcome};
use super::summary::RunSummary;
use crate::actions::ActionsJob;
use crate::commands::deployment::local::{RunArgs, find_place};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::text_page::TextPage;

#[derive(clap::Args, Debug)]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Save the plan, for `deploy --plan FILE`
    #[arg(long, visible_alias = "save-plan", value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Stacks at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) parallel: usize,
    /// Show every difference
    #[arg(long)]
    pub(crate) diff: bool,
    #[command(flatten)]
    pub(crate) ending: PreviewEndingArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// How a preview is told, and which exit code it has.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct PreviewEndingArgs {
    /// Form of the result: text, or markdown for a comment on a change
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    pub(crate) format: PreviewFormat,
    /// Fail if anything would change
    #[arg(long)]
    pub(crate) expect_no_changes: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PreviewFormat {
    #[default]
    Text,
    Markdown,
}

impl PreviewFormat {
    /// Standard output carries one form.
    pub(crate) fn check(self, context: &CommandContext) -> Result<()> {
        if self == Self::Text || !context.output.is_json() {
            return Ok(());
        }
        let message = "--format markdown and --json are two forms of one result";
        Err(Error::new(ErrorCode::USAGE, message).with_help("give one of them"))
    }
}

impl PreviewEndingArgs {
    /// A preview that went well ends with a code of its own when it found changes; where none were
    /// expected that is an error, the same for a program, a deployment and a server.
    pub(crate) fn outcome(
        self,
        ended: CommandOutcome,
        has_changes: bool,
    ) -> Result<CommandOutcome> {
        match ended {
            CommandOutcome::Done if has_changes && self.expect_no_changes => Err(changes_found()),
            CommandOutcome::Done if has_changes => Ok(CommandOutcome::WouldChange),
            other => Ok(other),
        }
    }
}

pub(crate) fn changes_found() -> Error {
    let message = "the preview found changes, and none were expected";
    Error::new(ErrorCode::CHANGES_FOUND, message)
        .with_help("deploy them, or find who changed what: `nimbus why` and --diff say it")
}

impl PreviewArgs {
    pub(crate) fn trace_file(&self) -> Option<&Path> {
        self.trace.file()
    }
}

pub(crate) async fn preview(args: PreviewArgs, context: &CommandContext) -> Result<CommandOutcome> {
    run(args, None, context).await
}

pub(super) async fn preview_chosen(
    run_args: RunArgs,
    components: Option<Vec<ComponentName>>,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let args = PreviewArgs {
        run: run_args,
        save: None,
        parallel: 4,
        diff: true,
        ending: PreviewEndingArgs::default(),
        trace: TraceArgs::default(),
    };
    run(args, components, context).await
}

/// What a deploy would change, property by property, for somebody who was asked about it. What a
/// preview finds is no answer; that it cannot be made is one.
pub(super) async fn show_details(
    run_args: RunArgs,
    components: Option<Vec<ComponentName>>,
    context: &CommandContext,
) -> Result<()> {
    Box::pin(preview_chosen(run_args, components, context))
        .await
        .map(drop)
}

async fn run(
    args: PreviewArgs,
    components: Option<Vec<ComponentName>>,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    let format = args.ending.format;
    format.check(context)?;
    let place = find_place(&run.id, run.how.rehearse, context)?;
    let choices = run.how.choices(context)?;
    let as_text = args.diff && format == PreviewFormat::Text && !context.output.is_json();
    let pages = DiffPages::new(as_text, context);
    let wanted = args.diff
        || format == PreviewFormat::Markdown
        || ActionsJob::current(context.output).is_some();
    let listener = wanted.then(|| pages.listener());
    let engine = choices.engine;
    let runner = LocalRunner::open(place, run.environment, choices, listener, context)?;
    let request = PreviewRequest {
        environment: run.environment,
        rehearsal: run.how.rehearse,
        components,
        parallel: args.parallel,
        engine,
    };
    runner.rehearsal_note(context);
    let signals = runner.listen_to_signals();
    let mut watcher = None;
    let previewed = preview_environment(
        Arc::clone(&runner.ports),
        &request,
        Arc::clone(&runner.bus),
        runner.cancellation.stop_token().clone(),
        |graph| watcher = Some(runner.watch(RunAction::Preview, graph, context)),
    )
    .await;
    drop(signals);
    if let Some(watcher) = watcher {
        watcher.end();
    }
    let mut report = previewed?;
    let diffs = pages.of(&report.graph);
    if as_text {
        let text: String = diffs.iter().map(|(_, diff)| format!("{diff}\n")).collect();
        context.output.raw(&text)?;
    }
    if let Some(file) = &args.save {
        match &report.sealed {
            Some(plan) => save_plan(plan, &context.directory.join(file))?,
            None => {
                let warning = "no plan was saved: the preview did not succeed";
                report.warnings.push(warning.to_owned());
            }
        }
    }
    let id = runner.place.deployment.manifest.metadata.id.to_string();
    let summary = RunSummary::of_preview(&report, id, &request);
    summary.tell(format, &diffs, context)?;
    args.ending
        .outcome(outcome(report.result), summary.has_changes())
}

fn save_plan(plan: &SealedPlan, path: &Path) -> Result<()> {
    nimbus_disk::replace(path, &plan.to_bytes(), FileMode::Private).map_err(|error| {
        let message = format!("cannot write the plan {}: {error}", path.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
    })
}

/// What units would change, unit by unit.
#[derive(Clone)]
struct DiffPages {
    pages: Arc<Mutex<BTreeMap<ComponentName, TextPage>>>,
    paint: Paint,
}

impl DiffPages {
    /// Colours are for people at a terminal.
    fn new(for_people: bool, context: &CommandContext) -> Self {
        let coloured = for_people && context.output.stdout_terminal().color;
        Self {
            pages: Arc::default(),
            paint: if coloured {
                Paint::Colour
            } else {
                Paint::Plain
            },
        }
    }

    fn listener(&self) -> UnitEvents {
        let pages = self.clone();
        Arc::new(move |component: &ComponentName| {
            let page = TextPage::default();
            pages.pages.lock().insert(component.clone(), page.clone());
            let title = Titled {
                title: "Previewing".to_owned(),
                stack: component.to_string(),
                project: String::new(),
            };
            let style = LineStyle::Diff(StepDetail::Short);
            let viewer = LineViewer::new(title, style, pages.paint, page);
            Arc::new(DisplayThread::open(viewer)) as _
        })
    }

    /// In the order in which the units would run.
    fn of(&self, graph: &UnitGraph) -> Vec<(String, String)> {
        let pages = self.pages.lock();
        let names = graph.layers().into_iter().flatten();
        let found = names.filter_map(|name| Some((name, pages.get(name)?)));
        found
            .map(|(name, page)| (name.to_string(), page.text()))
            .collect()
    }
}
