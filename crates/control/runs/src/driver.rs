//! Workers of a server: they take runs, tenant by tenant, a limited number at once.
//!
//! Tenants have turns, and inside a tenant the oldest run goes first whose environment is free. No customer has
//! all places, and no run has one for ever. A worker gives signs of life, and hears with them what somebody wants
//! of its run. When the server stops, runs stop between two steps and go on after its next start.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nimbus_control_store::{RunEnd, Store};
use nimbus_core::{Error, ErrorCode, Result, TenantId};
use nimbus_disk::FileMode;
use nimbus_engine_operations::Cancellation;
use nimbus_orchestrator::RunResult;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use uuid::Uuid;

use crate::carrier::{RunCarrier, RunVerdict};
use crate::queue::{DatabaseQueue, RunQueue, RunSign, TakenRun};

/// How often workers look for runs that nobody rang for: those of other servers that died.
const LOOK: Duration = Duration::from_secs(2);
/// How often a worker gives a sign of life.
const HEARTBEAT: Duration = Duration::from_millis(1000);
/// How long runs may take to stop between two steps when the server stops.
const PATIENCE: Duration = Duration::from_secs(20);

/// What runs may take of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// So many at once, of all tenants together.
    pub at_once: usize,
    /// So many of them of one customer: a tenant below the operator's, with all that is below it. Without it
    /// all but one, so that another customer finds a place.
    pub per_tenant: Option<usize>,
    /// A run is stopped after so long.
    pub time: Duration,
}

impl RunLimits {
    /// None where others carry runs out.
    fn places(&self) -> usize {
        self.at_once
    }

    fn share(&self) -> usize {
        let most = self.places();
        let share = self.per_tenant.unwrap_or_else(|| most.saturating_sub(1));
        share.clamp(most.min(1), most)
    }

    /// Places on this server, and how many of them one customer may have.
    pub fn shares(&self) -> (usize, usize) {
        (self.places(), self.share())
    }

    /// How long a run that is stopped may take to end between two steps, before it is ended anyhow.
    fn grace(&self) -> Duration {
        (self.time / 10).clamp(Duration::from_secs(1), Duration::from_secs(300))
    }
}

/// How runs are carried out on this server.
#[derive(Clone, Copy, Debug)]
pub struct DriverSettings {
    /// Names this server; an earlier process of the same name is gone.
    pub server: Uuid,
    pub limits: RunLimits,
}

impl DriverSettings {
    /// The name of the server whose data directory this is, made when there is none.
    ///
    /// # Errors
    ///
    /// When it can be neither read nor written.
    pub fn of_folder(folder: &Path, limits: RunLimits) -> Result<Self> {
        let path = folder.join("server-id");
        let unusable = |error: std::io::Error| {
            let message = format!("cannot use {}: {error}", path.display());
            Error::new(ErrorCode::FILE_UNWRITABLE, message)
        };
        fs::create_dir_all(folder).map_err(unusable)?;
        // Programs of tenants and what their rehearsals made are nobody else's on this machine.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let own = fs::Permissions::from_mode(0o700);
            fs::set_permissions(folder, own).map_err(unusable)?;
        }
        let server = match fs::read_to_string(&path).map(|text| text.trim().parse()) {
            Ok(Ok(server)) => server,
            Ok(Err(_)) | Err(_) => {
                let made = Uuid::new_v4();
                // Whole or not at all: under half a name the runs of this server would be nobody's.
                let text = made.to_string();
                nimbus_disk::replace(&path, text.as_bytes(), FileMode::Private)
                    .map_err(unusable)?;
                made
            }
        };
        Ok(Self { server, limits })
    }
}

/// The workers of this server.
pub struct RunDriver {
    draining: CancellationToken,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

/// How long a question that is under way when the server stops may still take.
const LAST_LOOK: Duration = Duration::from_millis(500);

struct Shared {
    queue: Arc<dyn RunQueue>,
    carrier: Arc<dyn RunCarrier>,
    limits: RunLimits,
    wakeup: Arc<Notify>,
    /// Nothing more is taken; what runs goes on.
    draining: CancellationToken,
    stop: CancellationToken,
    /// Places that customers have.
    taken: Arc<Mutex<HashMap<TenantId, usize>>>,
}

/// A place of a customer, until the run is over.
struct RunSlot {
    customer: TenantId,
    taken: Arc<Mutex<HashMap<TenantId, usize>>>,
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        let left = taken.get(&self.customer).copied().unwrap_or_default();
        if left <= 1 {
            taken.remove(&self.customer);
        } else {
            taken.insert(self.customer, left - 1);
        }
    }
}

impl RunDriver {
    /// Goes on with what an earlier process of this server left, and takes what comes. `wakeup` is notified when
    /// there may be a run.
    pub fn start(
        store: Store,
        carrier: Arc<dyn RunCarrier>,
        settings: DriverSettings,
        wakeup: Arc<Notify>,
    ) -> Self {
        let queue = DatabaseQueue::new(store, Arc::clone(&carrier), settings.server);
        Self::start_on(Arc::new(queue), carrier, settings.limits, wakeup)
    }

    /// The same, with runs from wherever they come.
    pub fn start_on(
        queue: Arc<dyn RunQueue>,
        carrier: Arc<dyn RunCarrier>,
        limits: RunLimits,
        wakeup: Arc<Notify>,
    ) -> Self {
        let (draining, stop) = (CancellationToken::new(), CancellationToken::new());
        let shared = Arc::new(Shared {
            queue,
            carrier,
            limits,
            wakeup,
            draining: draining.clone(),
            stop: stop.clone(),
            taken: Arc::default(),
        });
        let task = tokio::spawn(work(shared));
        Self {
            draining,
            stop,
            task,
        }
    }

    /// Takes no more runs, and returns when those under way have ended by themselves.
    pub async fn drain(&mut self) {
        self.draining.cancel();
        if let Err(error) = (&mut self.task).await {
            error!(%error, "the workers ended by themselves");
        }
    }

    /// Takes no more runs, stops those under way between two steps, and waits for them.
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.drain().await;
    }
}

impl fmt::Debug for RunDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunDriver(..)")
    }
}

async fn work(shared: Arc<Shared>) {
    let taken_back = shared
        .unless_stopped(Box::pin(shared.queue.take_back()))
        .await;
    if let Some(Err(error)) = taken_back {
        warn!(error = %error.log_text(), "runs of an earlier process were not looked for");
    }
    let slots = Arc::new(Semaphore::new(shared.limits.places()));
    let mut running = JoinSet::new();
    while !shared.draining.is_cancelled() && !shared.stop.is_cancelled() {
        while !shared.draining.is_cancelled()
            && !shared.stop.is_cancelled()
            && let Ok(slot) = Arc::clone(&slots).try_acquire_owned()
        {
            let full = shared.full();
            let asked = Box::pin(shared.queue.take(&full, &shared.stop));
            let Some(taken) = shared.unless_stopped(asked).await else {
                break;
            };
            match taken {
                Ok(Some(taken)) => {
                    let place = shared.place(taken.customer);
                    let shared = Arc::clone(&shared);
                    running.spawn(async move {
                        shared.carry(taken).await;
                        drop((slot, place));
                        shared.wakeup.notify_one();
                    });
                }
                Ok(None) => break,
                Err(error) => {
                    warn!(error = %error.log_text(), "no run could be taken");
                    break;
                }
            }
        }
        while running.try_join_next().is_some() {}
        tokio::select! {
            () = shared.stop.cancelled() => {}
            () = shared.draining.cancelled() => {}
            () = shared.wakeup.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    let all = async { while running.join_next().await.is_some() {} };
    let late = async {
        shared.stop.cancelled().await;
        tokio::time::sleep(PATIENCE * 2).await;
    };
    tokio::select! {
        () = all => {}
        () = late => warn!("runs that did not stop in time were left; they go on after the next start"),
    }
}

impl Shared {
    /// What the database answers, unless the server stops and it does not answer soon. A run that was taken and not
    /// begun is this server's, and found by its next start.
    async fn unless_stopped<T>(&self, asked: impl Future<Output = T>) -> Option<T> {
        let stopped = async {
            self.stop.cancelled().await;
            tokio::time::sleep(LAST_LOOK).await;
        };
        tokio::select! {
            answer = asked => Some(answer),
            () = stopped => None,
        }
    }

    /// Customers that have all that they may have here.
    fn full(&self) -> BTreeSet<TenantId> {
        let share = self.limits.share();
        let taken = self.taken.lock();
        let full = taken.iter().filter(|(_, count)| **count >= share);
        full.map(|(customer, _)| *customer).collect()
    }

    /// A place for a run of a customer.
    fn place(&self, customer: TenantId) -> RunSlot {
        *self.taken.lock().entry(customer).or_default() += 1;
        RunSlot {
            customer,
            taken: Arc::clone(&self.taken),
        }
    }

    async fn carry(&self, mut taken: TakenRun) {
        self.carry_taken(&mut taken).await;
        self.queue.ended(&taken);
    }

    async fn carry_taken(&self, taken: &mut TakenRun) {
        let metrics = self.queue.metrics();
        let _carried_out = metrics.run_begins();
        let begun = Instant::now();
        let cancellation = Cancellation::new();
        let paused = AtomicBool::new(false);
        let lost = AtomicBool::new(false);
        let late = AtomicBool::new(false);
        let verdict = if let Some(error) = taken.unwanted.take() {
            RunVerdict::Refused(error)
        } else {
            let carried = self.carrier.carry(taken.tenant, &taken.run, &cancellation);
            let looked_after = self.look_after(taken, &cancellation, &paused, &lost);
            tokio::select! {
                verdict = carried => verdict,
                never = looked_after => match never {},
                () = self.limit(&cancellation, &late) => RunVerdict::Ended(RunResult::Interrupted),
            }
        };
        let (tenant, run) = (taken.tenant, &taken.run);
        // The row belongs to whoever has it now, and a word of ours would be refused.
        if lost.load(Ordering::Relaxed) {
            warn!(%tenant, run = %run.id, "a run was lost to another worker");
            return;
        }
        let stopped = self.stop.is_cancelled();
        let mut end = self.end_of(&verdict, paused.load(Ordering::Relaxed), stopped);
        if late.load(Ordering::Relaxed) && !is_done(&verdict) && end.status != "running" {
            let error = self.too_late();
            info!(%tenant, run = %run.id, error = %error.log_text(), "a run was stopped");
            metrics.error(error.code().to_string());
            end.status = "ended";
            end.problem = Some(self.carrier.problem(&error));
        } else if let RunVerdict::Refused(error) = &verdict {
            info!(%tenant, run = %run.id, error = %error.log_text(), "a run could not go on");
            metrics.error(error.code().to_string());
        }
        let unheard = AtomicBool::new(false);
        let given_back = tokio::select! {
            biased;
            given_back = self.queue.give_back(taken, &end, begun.elapsed()) => given_back,
            // Many states take a while to read, and the run is ours meanwhile.
            never = self.look_after(taken, &cancellation, &unheard, &lost) => match never {},
        };
        if let Err(error) = given_back
            && !lost.load(Ordering::Relaxed)
        {
            warn!(%tenant, run = %run.id, error = %error.log_text(), "a run was not given back");
        }
    }

    /// How a run's row is left.
    fn end_of(&self, verdict: &RunVerdict, paused: bool, stopped: bool) -> RunEnd {
        match verdict {
            // Nobody asked for this, so nobody has to ask that it goes on.
            RunVerdict::Ended(RunResult::Interrupted) if stopped => RunEnd {
                status: "running",
                wish: Some("resume"),
                result: None,
                problem: None,
            },
            RunVerdict::Ended(result) => RunEnd {
                status: match result {
                    RunResult::Interrupted if paused => "paused",
                    _ => "ended",
                },
                wish: None,
                result: Some(result.word().to_owned()),
                problem: None,
            },
            RunVerdict::Refused(error) => RunEnd {
                status: "ended",
                wish: None,
                result: Some(RunResult::Failed.word().to_owned()),
                problem: Some(self.carrier.problem(error)),
            },
        }
    }

    /// Stops a run that takes too long: between two steps at first, then whatever it does. Returns when it
    /// does not even end then.
    async fn limit(&self, cancellation: &Cancellation, late: &AtomicBool) {
        let limits = self.limits;
        tokio::time::sleep(limits.time).await;
        late.store(true, Ordering::Relaxed);
        if !cancellation.is_stopping() {
            cancellation.request();
        }
        tokio::time::sleep(limits.grace()).await;
        cancellation.request();
        tokio::time::sleep(limits.grace()).await;
    }

    fn too_late(&self) -> Error {
        let time = self.limits.time.as_secs();
        let message =
            format!("the run took longer than {time} s, the longest that this server allows");
        Error::new(ErrorCode::RUN_TIME_LIMIT, message)
            .with_help("see that its programs end, then go on with it; `NIMBUS_RUNS_TIME_LIMIT` is the operator's")
    }

    /// Gives signs of life and passes on what somebody wants, until the run is over.
    async fn look_after(
        &self,
        taken: &TakenRun,
        cancellation: &Cancellation,
        paused: &AtomicBool,
        lost: &AtomicBool,
    ) -> std::convert::Infallible {
        let tenant = taken.tenant;
        let mut stopping = false;
        // From when it was asked, not from when it was answered: the lease began somewhere in between.
        let mut heard = Instant::now();
        loop {
            tokio::select! {
                () = self.stop.cancelled(), if !stopping => {
                    stopping = true;
                    cancellation.request();
                }
                () = tokio::time::sleep(HEARTBEAT) => {}
            }
            let asked = Instant::now();
            match self.queue.renew(taken).await {
                Ok(RunSign::Ours(wish)) => {
                    heard = asked;
                    if let Some(wish) = wish.filter(|wish| wish != "resume")
                        && !cancellation.is_stopping()
                    {
                        paused.store(wish == "pause", Ordering::Relaxed);
                        cancellation.request();
                    }
                }
                Ok(RunSign::Lost) => give_up(cancellation, lost),
                Err(error) => {
                    warn!(%tenant, error = %error.log_text(), "no sign of life was given");
                    let patience = self.queue.patience();
                    if patience.is_some_and(|patience| heard.elapsed() >= patience) {
                        give_up(cancellation, lost);
                    }
                }
            }
        }
    }
}

/// Somebody else has the run, or may have: nothing of ours may go on. Asked twice, which ends even what runs; its
/// outcome is looked up by whoever has the run.
fn give_up(cancellation: &Cancellation, lost: &AtomicBool) {
    lost.store(true, Ordering::Relaxed);
    cancellation.request();
    cancellation.request();
}

/// Whether a run came to its own end.
fn is_done(verdict: &RunVerdict) -> bool {
    match verdict {
        RunVerdict::Ended(RunResult::Interrupted) | RunVerdict::Refused(_) => false,
        RunVerdict::Ended(_) => true,
    }
}
