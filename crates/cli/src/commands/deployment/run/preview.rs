//! `nimbus preview`: the whole environment, each unit with the outputs that units before it would
//! have. Nothing is locked or changed.

use std::collections::BTreeMap;
use std::io::{self, Write};
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
use crate::commands::deployment::local::{RunArgs, find_place};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Save the plan, for `deploy --plan FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Stacks at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) parallel: usize,
    /// Show every difference
    #[arg(long)]
    pub(crate) diff: bool,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
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
        trace: TraceArgs::default(),
    };
    run(args, components, context).await
}

async fn run(
    args: PreviewArgs,
    components: Option<Vec<ComponentName>>,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let run = &args.run;
    let place = find_place(&run.id, run.how.rehearse, context)?;
    let choices = run.how.choices(context)?;
    let pages = DiffPages::default();
    let listener = args.diff.then(|| pages.listener(context));
    let runner = LocalRunner::open(place, run.environment, choices, listener, context)?;
    let request = PreviewRequest {
        environment: run.environment,
        rehearsal: run.how.rehearse,
        components,
        parallel: args.parallel,
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
    if args.diff && !context.output.is_json() {
        context.output.raw(&pages.text(&report.graph))?;
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
    let changes = summary.has_changes();
    context.output.result(&summary)?;
    Ok(match outcome(report.result) {
        CommandOutcome::Done if changes => CommandOutcome::WouldChange,
        other => other,
    })
}

fn save_plan(plan: &SealedPlan, path: &Path) -> Result<()> {
    nimbus_disk::replace(path, &plan.to_bytes(), FileMode::Private).map_err(|error| {
        let message = format!("cannot write the plan {}: {error}", path.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
    })
}

/// What units would change, unit by unit.
#[derive(Clone, Default)]
struct DiffPages(Arc<Mutex<BTreeMap<ComponentName, DiffPage>>>);

/// What is written of one unit.
#[derive(Clone, Default)]
struct DiffPage(Arc<Mutex<Vec<u8>>>);

impl Write for DiffPage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiffPages {
    fn listener(&self, context: &CommandContext) -> UnitEvents {
        let pages = self.clone();
        let paint = if context.output.stdout_terminal().color {
            Paint::Colour
        } else {
            Paint::Plain
        };
        Arc::new(move |component: &ComponentName| {
            let page = DiffPage::default();
            pages.0.lock().insert(component.clone(), page.clone());
            let title = Titled {
                title: "Previewing".to_owned(),
                stack: component.to_string(),
                project: String::new(),
            };
            let style = LineStyle::Diff(StepDetail::Short);
            Arc::new(DisplayThread::open(LineViewer::new(
                title, style, paint, page,
            ))) as _
        })
    }

    /// In the order in which the units would run.
    fn text(&self, graph: &UnitGraph) -> String {
        let pages = self.0.lock();
        let names = graph.layers().into_iter().flatten();
        let found = names.filter_map(|name| pages.get(name));
        found
            .map(|page| {
                let bytes = page.0.lock();
                format!("{}\n", String::from_utf8_lossy(&bytes).trim_end())
            })
            .collect()
    }
}
