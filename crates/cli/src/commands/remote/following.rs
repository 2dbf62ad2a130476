//! A run of a server, watched to its end as if it ran here.

use nimbus_control_client::{RemoteDeployments, RunUpdate, follow_run};
use nimbus_control_wire::{NumberedEvent, Run};
use nimbus_core::{EnvironmentName, Error, ErrorCode, ErrorKind, Result};
use nimbus_orchestrator::{
    DiagnosticLevel, GraphUnit, Manifest, PlanSubject, PlanText, PlannedEvent, RunAction, RunEvent,
    RunResult, RunTally, UnitGraph, naming,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::deployment::run::{
    PreviewEndingArgs, RunAddress, RunSummary, RunTitle, RunView, next_step, outcome,
};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

/// What is watched.
pub(super) struct FollowedRun<'a> {
    pub(super) remote: &'a RemoteDeployments,
    pub(super) manifest: &'a Manifest,
    pub(super) action: RunAction,
    pub(super) environment: EnvironmentName,
    pub(super) rehearsal: bool,
    /// How a preview ends.
    pub(super) ending: PreviewEndingArgs,
    /// Whether it is somebody else's run, which Ctrl-C does not stop.
    pub(super) only_watching: bool,
}

impl FollowedRun<'_> {
    fn place(&self) -> RunAddress<'_> {
        RunAddress {
            deployment: self.manifest.metadata.id.as_str(),
            environment: self.environment,
            rehearsal: self.rehearsal,
            backend: None,
        }
    }

    /// Shows a run from what follows event `since`, which is where an earlier attempt ended, and tells how it ended.
    pub(super) async fn to_its_end(
        &self,
        run: Run,
        since: i64,
        context: &CommandContext,
    ) -> Result<CommandOutcome> {
        let mut tally = RunTally::default();
        self.hear_earlier(&run, since, &mut tally).await?;
        let mut watch = RemoteWatch {
            followed: self,
            view: None,
            tally,
            queue: None,
            approval: None,
            // Whoever goes on with a run has seen its plan.
            shows_plan: since == 0,
            context,
        };
        let ended = watch.follow(run, since).await;
        if let Some(view) = &mut watch.view {
            view.end();
        }
        match ended? {
            WatchEnd::Over(run) => self.tell_end(&run, &watch.tally, context),
            WatchEnd::Left => {
                let note = match self.only_watching {
                    true => "the run goes on; `nimbus run cancel` asks the server to stop it",
                    false => "the run stops on the server by itself",
                };
                context.output.note(note);
                Ok(CommandOutcome::Reported(ErrorKind::Cancelled))
            }
            WatchEnd::Paused => {
                let resume = next_step(RunResult::Interrupted, false, self.place(), context);
                let resume = resume.unwrap_or_default();
                context
                    .output
                    .note(&format!("the run was paused; {resume}"));
                Ok(CommandOutcome::Reported(ErrorKind::Cancelled))
            }
        }
    }

    /// Where units stand after what was told before.
    async fn hear_earlier(&self, run: &Run, to: i64, tally: &mut RunTally) -> Result<()> {
        let mut after = 0;
        while after < to {
            let page = self.remote.events(&run.id, after).await?;
            let Some(last) = page.items.last() else {
                return Ok(());
            };
            after = last.seq;
            let earlier = page.items.iter().filter(|item| item.seq <= to);
            for event in earlier.filter_map(known) {
                tally.hear(&event);
            }
        }
        Ok(())
    }

    fn tell_end(
        &self,
        run: &Run,
        tally: &RunTally,
        context: &CommandContext,
    ) -> Result<CommandOutcome> {
        if let Some(problem) = &run.problem {
            let code = ErrorCode::parse(&problem.code).unwrap_or(ErrorCode::SERVER_ANSWER);
            let error = Error::new(code, problem.message.clone());
            return Err(match &problem.help {
                // The server names commands as they are typed where the deployment is; whoever reads this is not there.
                Some(help) => {
                    let gate = format!("`nimbus --server {} gate ", self.remote.server());
                    error.with_help(help.replacen("`nimbus gate ", &gate, 1))
                }
                None => error,
            });
        }
        let result = match run.result.as_deref() {
            Some("succeeded") => RunResult::Succeeded,
            Some("interrupted" | "cancelled") => RunResult::Interrupted,
            Some("rolled_back") => RunResult::RolledBack,
            Some("needs_attention") => RunResult::NeedsAttention,
            _ => RunResult::Failed,
        };
        // A run that never began cannot be gone on with.
        let next = match run.result.as_deref() {
            Some("cancelled") => None,
            _ if self.action == RunAction::Preview => None,
            _ => {
                let open = tally.leaves_creates_open();
                next_step(result, open, self.place(), context)
            }
        };
        let summary = RunSummary::of_tally(tally, self.action, self.place(), result, next);
        summary.tell(self.ending.format, &[], context)?;
        match self.action {
            RunAction::Preview => self.ending.outcome(outcome(result), summary.has_changes()),
            _ => Ok(outcome(result)),
        }
    }
}

/// An event that this version knows; layers are told by servers only.
fn known(item: &NumberedEvent) -> Option<RunEvent> {
    serde_json::from_value(item.event.clone()).ok()
}

enum WatchEnd {
    Over(Box<Run>),
    /// Whoever watched did not want to wait.
    Left,
    Paused,
}

struct RemoteWatch<'a> {
    followed: &'a FollowedRun<'a>,
    view: Option<RunView>,
    tally: RunTally,
    /// How many runs come first, as it was last told.
    queue: Option<i64>,
    /// The approval that was said to be waited for.
    approval: Option<String>,
    shows_plan: bool,
    context: &'a CommandContext,
}

impl RemoteWatch<'_> {
    async fn follow(&mut self, run: Run, since: i64) -> Result<WatchEnd> {
        let remote = self.followed.remote;
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut terminate = listen(SignalKind::terminate())?;
        let mut news = follow_run(remote.clone(), run.id.clone(), since);
        let mut stopping = false;
        self.show_queue(&run);
        loop {
            let told = tokio::select! {
                told = news.recv() => told,
                _ = interrupt.recv() => None,
                _ = terminate.recv() => None,
            };
            let Some(told) = told else {
                if stopping || self.followed.only_watching {
                    return Ok(WatchEnd::Left);
                }
                stopping = true;
                self.stop(&run).await;
                continue;
            };
            match told.map_err(|error| goes_on(error.into()))? {
                RunUpdate::Events(items) => {
                    for event in items.iter().filter_map(known) {
                        self.hear(&event);
                    }
                }
                RunUpdate::Run(run) if run.status == "paused" => return Ok(WatchEnd::Paused),
                RunUpdate::Run(run) => self.show_queue(&run),
                RunUpdate::Away { reason } => {
                    let note = format!("{reason}; the run goes on, and so does asking for it");
                    self.context.output.note(&note);
                }
                RunUpdate::Back => self.context.output.note("the server answers again"),
                RunUpdate::Complete(run) => return Ok(WatchEnd::Over(run)),
            }
        }
    }

    /// Asks the server to stop the run; what is under way finishes.
    async fn stop(&mut self, run: &Run) {
        let asked = self.followed.remote.signal(&run.id, "cancel").await;
        let message = match asked {
            Ok(_) => "stopping: running steps finish, nothing starts; once more stops watching"
                .to_owned(),
            Err(error) => format!("the run cannot be stopped: {error}; once more stops watching"),
        };
        self.hear(&RunEvent::Diagnostic {
            at: jiff::Timestamp::now().to_string(),
            unit: None,
            level: DiagnosticLevel::Warning,
            message,
        });
    }

    fn hear(&mut self, event: &RunEvent) {
        self.tally.hear(event);
        // A preview of this machine is no run.
        if self.followed.action == RunAction::Preview && matches!(event, RunEvent::Run { .. }) {
            return;
        }
        if let RunEvent::Plan { layers, .. } = event
            && self.shows_plan
            && self.is_worth_showing(layers)
        {
            self.context.output.progress(&self.plan_text(layers));
        }
        if self.view.is_none() {
            self.begin(event);
        }
        if let Some(view) = &mut self.view {
            view.event(event);
        }
    }

    /// The picture begins with the plan, or with the first unit where there is none.
    fn begin(&mut self, event: &RunEvent) {
        let output = self.context.output;
        let graph = match event {
            RunEvent::Plan { layers, .. } => graph_of(layers),
            // Programs read every event.
            RunEvent::Run { .. } if !output.is_json() => return,
            _ => UnitGraph::new([]).ok(),
        };
        if let Some(graph) = graph {
            let title = RunTitle::new(self.followed.action, self.followed.place());
            self.view = Some(RunView::open(output, title, &graph));
        }
    }

    /// A deploy that has nothing to do says so at its end, and shows no plan, as on this machine.
    fn is_worth_showing(&self, layers: &[Vec<PlannedEvent>]) -> bool {
        let mut units = layers.iter().flatten();
        self.followed.action == RunAction::Preview || units.any(|unit| !unit.is_skipped())
    }

    fn plan_text(&self, layers: &[Vec<PlannedEvent>]) -> String {
        let metadata = &self.followed.manifest.metadata;
        let subject = match self.followed.rehearsal {
            true => PlanSubject::Rehearsal(metadata.id.clone()),
            false => PlanSubject::Directory(naming::directory(
                &metadata.id,
                &metadata.organization,
                &metadata.project,
            )),
        };
        let text = PlanText {
            subject: &subject,
            environment: self.followed.environment,
            layers,
        };
        text.to_string()
    }

    /// Says that people have to agree, or that others come first, once for each place.
    fn show_queue(&mut self, run: &Run) {
        if run.approval != self.approval
            && let Some(approval) = &run.approval
        {
            let note = format!(
                "{} waits for approval {approval}: `nimbus approve show {approval}`",
                run.number
            );
            self.context.output.note(&note);
        }
        self.approval.clone_from(&run.approval);
        let before = run.position.filter(|place| *place > 0);
        if before != self.queue
            && let Some(count) = before
        {
            let runs = if count == 1 { "run comes" } else { "runs come" };
            let note = format!("{} is queued: {count} {runs} first", run.number);
            self.context.output.note(&note);
        }
        self.queue = before;
    }
}

fn listen(kind: SignalKind) -> Result<Signal> {
    signal(kind).map_err(|error| {
        Error::new(ErrorCode::INTERNAL, "signals cannot be listened to").with_source(error)
    })
}

/// Whoever cannot watch a run any more has not stopped it.
fn goes_on(error: Error) -> Error {
    match error.code() {
        ErrorCode::SERVER_UNREACHABLE => error.with_help(
            "the run goes on at the server; look at it later with `nimbus status` and `nimbus logs`",
        ),
        _ => error,
    }
}

fn graph_of(layers: &[Vec<PlannedEvent>]) -> Option<UnitGraph> {
    let unit = |planned: &PlannedEvent| GraphUnit {
        name: planned.unit.clone(),
        priority: planned.priority,
        needs: planned.needs.iter().cloned().collect(),
    };
    UnitGraph::new(layers.iter().flatten().map(unit)).ok()
}
