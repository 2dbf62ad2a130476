//! Runs as people look at them: in detail, live, and their logs.

use std::collections::HashMap;

use jiff::Timestamp;
use nimbus_control_auth::access::Resource;
use nimbus_control_auth::operation::{self, Need, Operation};
use nimbus_control_events::NoticeTopic;
use nimbus_control_store::{LogCursor, RunLogFilter, StoredEvent, StoredRun, TenantTx};
use nimbus_control_wire::{
    NumberedEvent, ProgressFrame, ResourceCounts, Run, RunDetail, RunLinks, RunLogLine, RunLogPage,
    UnitResources,
};
use nimbus_core::{ErrorCode, TenantId};
use nimbus_orchestrator::{RunEvent, RunId};
use serde::Deserialize as _;
use uuid::Uuid;

use crate::app::App;
use crate::call::{Call, RequestContext};
use crate::failure::{Failure, Result};
use crate::run_fold::RunFold;
use crate::runs::QueuedRun;
use crate::topic_watchers::TopicWatch;

/// Events that are read at once.
const EVENTS_AT_ONCE: u32 = 1000;
/// Events of one message.
const EVENTS_OF_FRAME: u32 = 500;
/// Whoever is further behind than this gets a snapshot instead of what they missed.
const MOST_BEHIND: i64 = 10_000;

/// Which run: by its id, or the newest of a deployment, or one of it by its number.
#[derive(Clone, Debug)]
pub enum RunChoice {
    Id(Uuid),
    Newest { deployment: String },
    Number { deployment: String, run: RunId },
}

/// What is asked of a log.
#[derive(Clone, Debug)]
pub struct LogQuestion {
    pub unit: Option<String>,
    /// That level and worse.
    pub level: Option<String>,
    pub before: Option<i64>,
    pub after: Option<i64>,
    pub limit: u32,
}

/// A time as answers have it.
fn time(at: impl Into<Timestamp>) -> String {
    let at: Timestamp = at.into();
    at.to_string()
}

/// A run as answers have it.
pub fn describe_run(queued: QueuedRun) -> Run {
    let QueuedRun { run: row, position } = queued;
    let this = format!("/api/v1/runs/{}", row.id);
    Run {
        links: RunLinks {
            detail: format!("{this}/detail"),
            events: format!("{this}/events"),
            progress: format!("{this}/progress"),
            log: format!("{this}/log"),
            cancel: format!("{this}/cancel"),
            deployment: format!("/api/v1/deployments/{}", row.deployment),
            this,
        },
        id: row.id.to_string(),
        number: format!("R{:04}", row.number),
        deployment: row.deployment,
        environment: row.environment,
        action: row.action,
        rehearsal: row.rehearsal,
        status: row.status,
        position,
        result: row.result,
        // A row that another version wrote says less, and not something wrong.
        problem: row
            .problem
            .and_then(|problem| serde_json::from_value(problem).ok()),
        wish: row.wish,
        requested_by: row.requested_by.to_string(),
        user: row.request["user"].as_str().map(str::to_owned),
        message: row.request["options"]["message"]
            .as_str()
            .map(str::to_owned),
        plan: row.plan.map(|plan| plan.to_string()),
        approval: row.approval.map(|approval| approval.to_string()),
        on_failure: row.request["options"]["on_failure"]
            .as_str()
            .map(str::to_owned),
        skip_gate: row.request["options"]["skip_gate"]
            .as_str()
            .map(str::to_owned),
        queued_at: time(row.queued_at),
        began_at: row.began_at.map(time),
        ended_at: row.ended_at.map(time),
        last_seq: row.last_seq,
    }
}

/// What became of a run's resources so far.
pub(crate) async fn resource_counts(tx: &mut TenantTx, run: &StoredRun) -> Result<ResourceCounts> {
    let fold = folded(tx, run).await?;
    Ok(RunFold::totals(&fold.units(), &fold).resources)
}

impl App {
    /// Where a run stands.
    pub async fn run_detail(&self, call: &Call, tenant: TenantId, run: Uuid) -> Result<RunDetail> {
        let permit = self.permit(call, operation::RUN_DETAIL, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let row = self.run_seen(tx, call, &permit, run).await?;
                let detail = self.detail_of(tx, row).await?;
                self.audit(tx, &call.context, permit.record().on(run))
                    .await?;
                Ok(detail)
            })
            .await
    }

    /// Resources of one unit of a run.
    pub async fn run_unit(
        &self,
        call: &Call,
        tenant: TenantId,
        run: Uuid,
        unit: &str,
        after: u64,
        limit: u32,
    ) -> Result<UnitResources> {
        let permit = self.permit(call, operation::RUN_UNIT, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let row = self.run_seen(tx, call, &permit, run).await?;
                let fold = folded(tx, &row).await?;
                self.audit(tx, &call.context, permit.record().on(run))
                    .await?;
                let found = fold.unit(unit).ok_or_else(Failure::not_found)?;
                let skipped = usize::try_from(after).unwrap_or(usize::MAX);
                let taken = usize::try_from(limit).unwrap_or(usize::MAX);
                let resources: Vec<_> = fold
                    .resources(unit)
                    .skip(skipped)
                    .take(taken)
                    .cloned()
                    .collect();
                let end = after.saturating_add(u64::try_from(resources.len()).unwrap_or(u64::MAX));
                Ok(UnitResources {
                    seq: fold.seq,
                    next: (end < found.resources.total).then_some(end),
                    unit: found,
                    resources,
                })
            })
            .await
    }

    /// Lines of a run's log.
    pub async fn run_log(
        &self,
        call: &Call,
        tenant: TenantId,
        run: Uuid,
        question: LogQuestion,
    ) -> Result<RunLogPage> {
        let filter = filter_of(question)?;
        let permit = self.permit(call, operation::RUN_LOG, tenant).await?;
        let (found, more) = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let row = self.run_seen(tx, call, &permit, run).await?;
                let lines = tx.log_lines(&row, &filter).await?;
                self.audit(tx, &call.context, permit.record().on(run))
                    .await?;
                Ok::<_, Failure>(lines)
            })
            .await?;
        Ok(RunLogPage {
            first: found.first().map(|line| line.seq),
            last: found.last().map(|line| line.seq),
            lines: found.into_iter().map(line_of).collect(),
            more,
        })
    }

    async fn detail_of(&self, tx: &mut TenantTx, row: StoredRun) -> Result<RunDetail> {
        let fold = folded(tx, &row).await?;
        let (usual, units) = tx.usual_durations(&row).await?;
        let usual_of: HashMap<String, u64> = units
            .into_iter()
            .map(|usual| (usual.unit, usual.seconds.unsigned_abs()))
            .collect();
        let mut units = fold.units();
        for unit in &mut units {
            unit.usual_seconds = usual_of.get(&unit.name).copied();
        }
        let position = self.position(tx, &row).await?;
        let name = tx.user_get(row.requested_by.into()).await.ok();
        Ok(RunDetail {
            seq: fold.seq,
            server_time: time(Timestamp::now()),
            requested_by_name: name.map(|user| user.email),
            planned_minutes: fold.planned_minutes,
            usual_seconds: usual.map(i64::unsigned_abs),
            attempts: fold.attempts,
            undoing: fold.undoing,
            trigger: fold.trigger.clone(),
            message: fold.message.clone(),
            layers: fold.layers.clone(),
            checks: fold.checks(),
            totals: RunFold::totals(&units, &fold),
            cause: fold.cause.clone(),
            attention: fold.attention(),
            units,
            run: describe_run(QueuedRun { run: row, position }),
        })
    }

    /// Begins to watch a run: after an event, or from where it stands.
    pub async fn run_watch(
        &self,
        call: &Call,
        operation: Operation,
        tenant: TenantId,
        choice: RunChoice,
        since: Option<i64>,
    ) -> Result<RunFeed> {
        let permit = self.permit(call, operation, tenant).await?;
        let run = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let row = match choice {
                    RunChoice::Id(id) => tx.run_find(id).await?,
                    RunChoice::Newest { deployment } => tx.run_newest(&deployment).await?,
                    RunChoice::Number { deployment, run } => {
                        tx.run_get(&deployment, run.0.cast_signed()).await?
                    }
                };
                let row = self.seen(call, &permit, row)?;
                self.audit(tx, &call.context, permit.record().on(row.id))
                    .await?;
                Ok::<_, Failure>(row)
            })
            .await?;
        let (environment, run) = (run.environment, run.id);
        Ok(RunFeed {
            app: self.clone(),
            tenant,
            run,
            environment,
            operation,
            cursor: FeedCursor::Unsent(since),
            shown: None,
            watch: self.inner.watchers.join(NoticeTopic::Run(run)),
        })
    }
}

fn filter_of(question: LogQuestion) -> Result<RunLogFilter> {
    let place = match (question.before, question.after) {
        (None, None) => LogCursor::End,
        (Some(seq), None) => LogCursor::Before(seq),
        (None, Some(seq)) => LogCursor::After(seq),
        (Some(_), Some(_)) => {
            return Err(Failure::field("before", "give `before` or `after`"));
        }
    };
    let words = ["debug", "info", "warning", "error"];
    let levels = match question.level {
        None => None,
        Some(level) => {
            let at = words.iter().position(|word| *word == level);
            let at =
                at.ok_or_else(|| Failure::field("level", "give debug, info, warning or error"))?;
            Some(words[at..].iter().map(|word| (*word).to_owned()).collect())
        }
    };
    Ok(RunLogFilter {
        unit: question.unit,
        levels,
        place,
        limit: question.limit,
    })
}

fn line_of(stored: StoredEvent) -> RunLogLine {
    let text = |name: &str| stored.event[name].as_str().map(str::to_owned);
    RunLogLine {
        seq: stored.seq,
        at: text("at").unwrap_or_default(),
        // A check is nobody's unit; its name says more than nothing.
        unit: text("unit").or_else(|| text("check")),
        level: text("level").unwrap_or_else(|| "info".to_owned()),
        message: text("message").unwrap_or_default(),
    }
}

/// Every event of a run, folded.
pub(crate) async fn folded(tx: &mut TenantTx, row: &StoredRun) -> Result<RunFold> {
    let mut fold = RunFold::default();
    loop {
        let page = tx
            .events_after(&row.deployment, row.number, fold.seq, EVENTS_AT_ONCE)
            .await?;
        if page.is_empty() {
            return Ok(fold);
        }
        for stored in page {
            // Layers are not of the run core, and nothing follows from them.
            match RunEvent::deserialize(&stored.event) {
                Ok(event) => fold.apply(stored.seq, &event),
                Err(_) => fold.seq = stored.seq,
            }
        }
    }
}

/// A run that somebody watches. Nothing is kept for them: what comes next is read when they are ready for it, so
/// whoever is slow costs no memory.
#[derive(Debug)]
pub struct RunFeed {
    app: App,
    tenant: TenantId,
    run: Uuid,
    environment: String,
    operation: Operation,
    cursor: FeedCursor,
    /// What was last said about the run itself.
    shown: Option<Run>,
    watch: TopicWatch,
}

#[derive(Clone, Copy, Debug)]
enum FeedCursor {
    /// Nothing was sent; whoever watches has everything up to here, or nothing.
    Unsent(Option<i64>),
    At(i64),
}

/// What comes next.
#[derive(Debug)]
pub struct FeedPart {
    pub frames: Vec<ProgressFrame>,
    /// There is more at once.
    pub more: bool,
    /// The run is over and everything was sent.
    pub complete: bool,
}

impl RunFeed {
    /// Everything there is to be sent now, a limited number of events at once.
    pub async fn read(&mut self) -> Result<FeedPart> {
        let (app, tenant, id) = (self.app.clone(), self.tenant, self.run);
        app.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let row = tx.run_find(id).await?;
                let position = app.position(tx, &row).await?;
                self.part(tx, QueuedRun { run: row, position }).await
            })
            .await
    }

    async fn part(&mut self, tx: &mut TenantTx, queued: QueuedRun) -> Result<FeedPart> {
        let row = queued.run.clone();
        let run = describe_run(queued);
        let mut frames = Vec::new();
        let (known, first) = match self.cursor {
            FeedCursor::At(seq) => (Some(seq), false),
            // A place that the run has not reached is somebody else's.
            FeedCursor::Unsent(since) => {
                (since.filter(|seq| (0..=row.last_seq).contains(seq)), true)
            }
        };
        let at = match known {
            Some(seq) if row.last_seq - seq <= MOST_BEHIND => {
                if first {
                    frames.push(ProgressFrame::Resumed {
                        seq,
                        run: Box::new(run.clone()),
                        server_time: time(Timestamp::now()),
                    });
                }
                seq
            }
            behind => {
                let detail = self.app.detail_of(tx, row.clone()).await?;
                let seq = detail.seq;
                if let Some(behind) = behind {
                    frames.push(ProgressFrame::Gap {
                        from: behind + 1,
                        to: seq,
                    });
                }
                frames.push(ProgressFrame::Snapshot {
                    seq,
                    detail: Box::new(detail),
                });
                seq
            }
        };
        if first || at != known.unwrap_or(at) {
            self.shown = Some(run.clone());
        }
        let found = tx
            .events_after(&row.deployment, row.number, at, EVENTS_OF_FRAME)
            .await?;
        let seq = found.last().map_or(at, |last| last.seq);
        if !found.is_empty() {
            let numbered = |stored: StoredEvent| NumberedEvent::new(stored.seq, stored.event);
            frames.push(ProgressFrame::Events {
                items: found.into_iter().map(numbered).collect(),
            });
        }
        if !self.shown.as_ref().is_some_and(|shown| same(shown, &run)) {
            self.shown = Some(run.clone());
            frames.push(ProgressFrame::Run {
                run: Box::new(run.clone()),
            });
        }
        self.cursor = FeedCursor::At(seq);
        let complete = row.status == "ended" && seq >= row.last_seq;
        if complete {
            frames.push(ProgressFrame::Complete {
                seq,
                run: Box::new(run),
            });
        }
        Ok(FeedPart {
            frames,
            more: seq < row.last_seq,
            complete,
        })
    }

    /// Returns when there is something new.
    pub async fn changed(&mut self) {
        self.watch.changed().await;
    }

    /// A sign of life for whoever watches.
    pub fn heartbeat(&self) -> ProgressFrame {
        let seq = match self.cursor {
            FeedCursor::At(seq) => seq,
            FeedCursor::Unsent(since) => since.unwrap_or_default(),
        };
        ProgressFrame::Heartbeat {
            seq,
            server_time: time(Timestamp::now()),
        }
    }

    /// What somebody who watches needs in order to go on, asked again now: a sign-in that is alive, and the permission.
    ///
    /// # Errors
    ///
    /// When they may not any more, or when it could not be found out.
    pub async fn ensure_allowed(&self, context: &RequestContext, credential: &str) -> Result<()> {
        let who = self.app.authenticate(context, credential).await?;
        let context = context.clone();
        let call = Call { who, context };
        let Need::Permission(key) = self.operation.need else {
            return Err(Failure::new(ErrorCode::INTERNAL, "nothing is needed"));
        };
        let path = self.app.path(&call, self.tenant).await?;
        let mut resource = Resource::in_tenant(&path, "runs").ok_or_else(Failure::not_found)?;
        resource.environment = Some(self.environment.clone());
        if self.app.has(&call, key, &resource) {
            Ok(())
        } else {
            Err(Failure::not_found())
        }
    }
}

/// Whether two answers say the same, apart from how many events there are.
fn same(one: &Run, other: &Run) -> bool {
    let counted = Run {
        last_seq: other.last_seq,
        ..one.clone()
    };
    counted == *other
}
