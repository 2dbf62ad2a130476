//! What a program prints, as diagnostics.
//!
//! Both streams are information: plenty of programs and their libraries write harmless notes to
//! standard error. The last lines from there are kept, because when a program ends badly without a
//! word to the engine they are the only explanation.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use nimbus_engine_process::{Pump, Tail};
use tokio::io::AsyncBufRead;

/// How many of the last lines explain a failure.
const EXPLAINING_LINES: usize = 20;

/// Far from the numbers that SDKs choose for their own streams.
static NEXT_STREAM: AtomicI32 = AtomicI32::new(1_000_000);

pub(super) struct Output {
    pumps: [Pump; 2],
    errors: Arc<Tail>,
}

impl Output {
    pub(super) fn forward(
        stdout: impl AsyncBufRead + Send + Unpin + 'static,
        stderr: impl AsyncBufRead + Send + Unpin + 'static,
        events: &Arc<dyn EventSink>,
    ) -> Self {
        let errors = Arc::<Tail>::default();
        let show_error = shower(events);
        let kept = Arc::clone(&errors);
        let show_and_keep = move |line: String| {
            kept.push(line.clone());
            show_error(line);
        };
        Self {
            pumps: [
                Pump::start(stdout, shower(events)),
                Pump::start(stderr, show_and_keep),
            ],
            errors,
        }
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

fn shower(events: &Arc<dyn EventSink>) -> impl Fn(String) + Send + use<> {
    let events = Arc::clone(events);
    let stream_id = NEXT_STREAM.fetch_add(1, Ordering::Relaxed);
    move |message| {
        events.emit(EngineEvent::Diagnostic(Diagnostic {
            severity: Severity::Info,
            urn: None,
            message,
            stream_id,
            ephemeral: false,
        }));
    }
}
