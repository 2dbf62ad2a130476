//! What a program prints, as diagnostics.
//!
//! Both streams are information: plenty of programs and their libraries write harmless notes to
//! standard error. The last lines from there are kept, because when a program ends badly without a
//! word to the engine they are the only explanation.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use nimbus_engine_process::{OutputLines, Tail};
use tokio::io::AsyncBufRead;
use tokio_util::sync::CancellationToken;

use super::echo::LateReports;

/// How many of the last lines explain a failure.
const EXPLAINING_LINES: usize = 20;

/// Far from the numbers that SDKs choose for their own streams.
static NEXT_STREAM: AtomicI32 = AtomicI32::new(1_000_000);

pub(super) struct ProgramOutput {
    pumps: [OutputLines; 2],
    errors: Arc<Tail>,
    flooded: CancellationToken,
}

/// How much a program may still print. What comes after that is not passed on.
struct Allowance {
    left: AtomicU64,
    flooded: CancellationToken,
}

impl Allowance {
    fn allows(&self, line: &str) -> bool {
        // The end of the line counts too, or empty lines would be free.
        let cost = line.len() as u64 + 1;
        let take = |left: u64| left.checked_sub(cost);
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if taken.is_err() {
            self.flooded.cancel();
        }
        taken.is_ok()
    }
}

impl ProgramOutput {
    pub(super) fn forward(
        stdout: impl AsyncBufRead + Send + Unpin + 'static,
        stderr: impl AsyncBufRead + Send + Unpin + 'static,
        events: &Arc<dyn EventSink>,
        most_bytes: u64,
    ) -> Self {
        let errors = Arc::<Tail>::default();
        let flooded = CancellationToken::new();
        let allowance = Arc::new(Allowance {
            left: AtomicU64::new(most_bytes),
            flooded: flooded.clone(),
        });
        let show_error = shower(events, &allowance);
        let kept = Arc::clone(&errors);
        let mut reports = LateReports::default();
        let show_and_keep = move |line: String| {
            for line in reports.pass(line) {
                kept.push(line.clone());
                show_error(line);
            }
        };
        Self {
            pumps: [
                OutputLines::start(stdout, shower(events, &allowance)),
                OutputLines::start(stderr, show_and_keep),
            ],
            errors,
            flooded,
        }
    }

    /// Set when the program has printed more than it may.
    pub(super) fn flooded(&self) -> &CancellationToken {
        &self.flooded
    }

    /// Passes on what is still in the pipes.
    pub(super) async fn drain(&mut self, limit: Duration) {
        for pump in &mut self.pumps {
            pump.drain(limit).await;
        }
    }

    pub(super) fn last_errors(&self) -> Vec<String> {
        self.errors.last(EXPLAINING_LINES)
    }
}

fn shower(
    events: &Arc<dyn EventSink>,
    allowance: &Arc<Allowance>,
) -> impl Fn(String) + Send + use<> {
    let events = Arc::clone(events);
    let allowance = Arc::clone(allowance);
    let stream_id = NEXT_STREAM.fetch_add(1, Ordering::Relaxed);
    move |message| {
        if !allowance.allows(&message) {
            return;
        }
        events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Info,
            urn: None,
            message,
            stream_id,
            ephemeral: false,
        }));
    }
}
