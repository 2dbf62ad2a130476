//! How long a real run would take, told at the end of a rehearsal.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_ports::{Diagnostic, EngineEvent, EventSink, Severity};
use nimbus_rehearsal::{Forecast, Observer};

/// There is one unit: the program.
const UNIT: &str = "program";

/// Hears an operation and says, before its summary, how long a real one would take.
pub(super) fn foretelling(
    observer: &Observer,
    steps: Option<usize>,
    audience: Arc<dyn EventSink>,
) -> Arc<dyn EventSink> {
    let teller = ForecastSink {
        observer: observer.clone(),
        steps,
        audience,
    };
    observer.listen(UNIT, Arc::new(teller))
}

struct ForecastSink {
    observer: Observer,
    /// At once; unknown of an engine that does not tell what resources depend on.
    steps: Option<usize>,
    audience: Arc<dyn EventSink>,
}

impl EventSink for ForecastSink {
    fn emit(&self, event: EngineEvent) {
        if let EngineEvent::Summary(summary) = &event
            && summary.succeeded
            && !summary.is_preview
            && let Some(steps) = self.steps
            && let Some(forecast) = self.observer.forecast(UNIT, steps)
        {
            self.audience.emit(EngineEvent::Diagnostic(Diagnostic {
                severity: Severity::Info,
                urn: None,
                message: format!("REHEARSAL: {}", sentence(&forecast)),
                stream_id: 0,
                ephemeral: false,
            }));
        }
        self.audience.emit(event);
    }
}

/// `predicted duration of a real run: 14 min 20 s (critical path: network 3 min → …)`
pub(crate) fn sentence(forecast: &Forecast) -> String {
    let mut text = format!(
        "predicted duration of a real run: {}",
        spoken(forecast.took)
    );
    let legs: Vec<String> = forecast
        .path
        .iter()
        .map(|leg| format!("{} {}", leg.name, spoken(leg.took)))
        .collect();
    if !legs.is_empty() {
        // A string takes everything that is written to it.
        let _ = write!(text, " (critical path: {})", legs.join(" → "));
    }
    text
}

/// `2 h 5 min`, `14 min 20 s`, `3.4 s`: no more than anybody can foretell.
pub(crate) fn spoken(time: Duration) -> String {
    let tenths = (time.as_secs_f64() * 10.0).round() / 10.0;
    if tenths < 10.0 {
        return format!("{tenths} s");
    }
    let seconds = tenths.round() as u64;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let parts = match (hours, minutes) {
        (0, 0) => [(rest, "s"), (0, "")],
        (0, _) => [(minutes, "min"), (rest, "s")],
        _ => [(hours, "h"), (minutes, "min")],
    };
    let shown = parts.iter().filter(|(count, _)| *count > 0);
    let shown: Vec<String> = shown
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use nimbus_rehearsal::CriticalStep;

    use super::*;

    #[test]
    fn times_are_spoken_as_exactly_as_anybody_can_foretell() {
        for (milliseconds, text) in [
            (0, "0 s"),
            (1_234, "1.2 s"),
            (9_960, "10 s"),
            (42_400, "42 s"),
            (59_700, "1 min"),
            (180_000, "3 min"),
            (860_200, "14 min 20 s"),
            (7_500_000, "2 h 5 min"),
        ] {
            assert_eq!(spoken(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn a_forecast_names_what_it_waits_for() {
        let leg = |name: &str, minutes: u64| CriticalStep {
            name: name.to_owned(),
            type_: None,
            took: Duration::from_secs(60 * minutes),
        };
        let forecast = Forecast {
            took: Duration::from_secs(860),
            path: vec![leg("network", 3), leg("database", 9), leg("app", 2)],
        };
        insta::assert_snapshot!(
            sentence(&forecast),
            @"predicted duration of a real run: 14 min 20 s (critical path: network 3 min → database 9 min → app 2 min)"
        );
    }
}
