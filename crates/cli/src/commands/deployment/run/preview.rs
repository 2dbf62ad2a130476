//! `nimbus preview`: the whole environment, each unit with the outputs that units before it would
//! have. Nothing is locked or changed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_display::{Audience, Detail, LineStyle, LineViewer, Paint, Subject as Titled};
use nimbus_engine_operations::Cancellation;
use nimbus_engine_ports::{EngineEvent, EventSink};
use nimbus_local::Recovery;
use nimbus_orchestrator::graph::{Graph, Name};
use nimbus_orchestrator::run::RunResult;
use nimbus_orchestrator::unit::Board;
use nimbus_rehearsal::Observer;

use super::crew::Crew;
use super::events::UnitEvents;
use super::hub::{Hub, now};
use super::seal::{SealedPlan, SealedUnit};
use super::session::{look, outcome};
use super::summary::{self, RunSummary};
use super::view::{Subject, View};
use super::{planning, rehearsal_note};
use crate::commands::deployment::local::{Hands, Place, RunArgs, allow, board};
use crate::context::Context;
use crate::exit::Outcome;

#[derive(clap::Args, Debug)]
pub(crate) struct PreviewArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Save the plan, for `deploy --plan FILE`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Stacks at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    parallel: usize,
    /// Show every difference
    #[arg(long)]
    diff: bool,
}

pub(crate) async fn preview(args: PreviewArgs, context: &Context) -> Result<Outcome> {
    run(args, None, context).await
}

pub(super) async fn preview_chosen(
    run_args: RunArgs,
    stacks: Option<Vec<Name>>,
    context: &Context,
) -> Result<Outcome> {
    let args = PreviewArgs {
        run: run_args,
        save: None,
        parallel: 4,
        diff: true,
    };
    run(args, stacks, context).await
}

async fn run(args: PreviewArgs, stacks: Option<Vec<Name>>, context: &Context) -> Result<Outcome> {
    let started = Instant::now();
    let run = &args.run;
    let place = Place::find(&run.id, run.rehearse, context)?;
    allow(&place.deployment, run.environment)?;
    let cancellation = Cancellation::new();
    // The picture needs the graph, and the graph needs the manifest only.
    let graph = place.deployment.manifest.graph(run.environment);
    let whole =
        graph.map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}")))?;
    let subject = Subject {
        title: format!("Previewing {} {}", run.id, run.environment),
        doing: "previewing",
        rehearsal: run.rehearse,
    };
    let hub = Arc::new(Hub::new(View::open(context.output, subject, &whole)));
    let diffs = Diffs::default();
    let hands = Hands {
        events: diffs.events(&hub, &args, context),
        keep: None,
        recovery: Recovery::default(),
        observer: Observer::default(),
    };
    let board = Arc::new(board(run, place, hands, context, &cancellation)?);
    let findings = planning::check(&board.workspace, &board.manifest, board.environment)?;
    let graph = planning::graph(&board, stacks.as_deref())?;
    rehearsal_note(run, context);
    let (report, crew) = look(graph.clone(), &board, &hub, &cancellation, args.parallel).await;
    let mut warnings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    warnings.extend(hub.close());
    drop(hub);
    if args.diff && !context.output.is_json() {
        context.output.raw(&diffs.text(&graph))?;
    }
    if let Some(file) = &args.save {
        if report.result != RunResult::Succeeded {
            warnings.push("no plan was saved: the preview did not succeed".to_owned());
        } else {
            let plan = sealed(&graph, &board, &crew, run).await?;
            plan.save(&context.directory.join(file))?;
        }
    }
    let units = summary::units(&report, &crew);
    let changes = summary::has_changes(&units);
    let summary = RunSummary {
        event: "summary",
        run: None,
        kind: "preview",
        deployment: board.id().to_string(),
        environment: run.environment.to_string(),
        rehearsal: run.rehearse,
        result: report.result.word(),
        changes,
        seconds: started.elapsed().as_secs(),
        trigger: None,
        version: None,
        units,
        checks: Vec::new(),
        attention: Vec::new(),
        warnings,
        prediction: None,
        next: None,
    };
    context.output.result(&summary)?;
    Ok(match outcome(report.result) {
        Outcome::Done if changes => Outcome::WouldChange,
        other => other,
    })
}

async fn sealed(graph: &Graph, board: &Board, crew: &Crew, run: &RunArgs) -> Result<SealedPlan> {
    let mut units = BTreeMap::new();
    for name in graph.names() {
        let note = crew.note(name).unwrap_or_default();
        let unit = SealedUnit {
            state: board.state_version(name).await?,
            inputs: note.fingerprint.unwrap_or_default(),
            needs: graph.needs(name).map(str::to_owned).collect(),
            steps: note.report.steps,
        };
        units.insert(name.to_owned(), unit);
    }
    Ok(SealedPlan::new(
        now(),
        board.id().to_string(),
        run.environment,
        run.rehearse,
        units,
    ))
}

/// What units would change, unit by unit.
#[derive(Clone, Default)]
struct Diffs(Arc<Mutex<BTreeMap<Name, Page>>>);

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        page.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Diffs {
    fn events(
        &self,
        hub: &Arc<Hub>,
        args: &PreviewArgs,
        context: &Context,
    ) -> nimbus_local::EventsOf {
        let (diffs, hub, wanted) = (self.clone(), Arc::clone(hub), args.diff);
        let paint = if context.output.stdout_terminal().color {
            Paint::Colour
        } else {
            Paint::Plain
        };
        Arc::new(move |unit: &str| {
            let page = Page::default();
            let mut pages = diffs.0.lock().unwrap_or_else(PoisonError::into_inner);
            pages.insert(unit.to_owned(), page.clone());
            let viewer = wanted.then(|| {
                let title = Titled {
                    title: "Previewing".to_owned(),
                    stack: unit.to_owned(),
                    project: String::new(),
                };
                let style = LineStyle::Diff(Detail::Short);
                Audience::open(LineViewer::new(title, style, paint, page))
            });
            Arc::new(Both {
                told: UnitEvents::new(unit, Arc::clone(&hub)),
                viewer,
            }) as _
        })
    }

    /// In the order in which the units would run.
    fn text(&self, graph: &Graph) -> String {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names = graph.layers().into_iter().flatten();
        let found = names.filter_map(|name| pages.get(name));
        found
            .map(|page| {
                let bytes = page.0.lock().unwrap_or_else(PoisonError::into_inner);
                format!("{}\n", String::from_utf8_lossy(&bytes).trim_end())
            })
            .collect()
    }
}

struct Both {
    told: UnitEvents,
    viewer: Option<Audience>,
}

impl EventSink for Both {
    fn emit(&self, event: EngineEvent) {
        if let Some(viewer) = &self.viewer {
            viewer.emit(event.clone());
        }
        self.told.emit(event);
    }
}
