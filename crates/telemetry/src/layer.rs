//! Log lines.
//!
//! The fields of a JSON line are fixed by the specification (002 §11.2): timestamp, level, logger,
//! message, trace_id, tenant_id, user_id, resource_id, duration_ms. Any other field of an event
//! stands below `fields`. Ids that a span carries hold for every event inside it.

use std::fmt::{Debug, Write as _};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use nimbus_core::TraceId;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::redact::redact;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLineFormat {
    /// One JSON object per line.
    Json,
    /// For people: time, level, logger, message, `key=value`.
    Plain { color: bool },
}

/// Fields with a place of their own at the top of a JSON line, in this order.
const NAMED: [&str; 5] = [
    "trace_id",
    "tenant_id",
    "user_id",
    "resource_id",
    "duration_ms",
];

pub(crate) struct LogLayer {
    format: LogLineFormat,
    trace_id: TraceId,
    writer: Mutex<Box<dyn Write + Send>>,
}

/// What a span or an event says about itself.
#[derive(Clone, Default)]
pub(crate) struct SpanFields(Map<String, Value>);

impl SpanFields {
    pub(crate) fn into_map(self) -> Map<String, Value> {
        self.0
    }
}

impl LogLayer {
    pub(crate) fn new(
        format: LogLineFormat,
        trace_id: TraceId,
        writer: Box<dyn Write + Send>,
    ) -> Self {
        Self {
            format,
            trace_id,
            writer: Mutex::new(writer),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for LogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<SpanFields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = SpanFields::default();
        fields
            .0
            .insert("trace_id".into(), self.trace_id.to_string().into());
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(inherited) = span.extensions().get::<SpanFields>() {
                fields.0.extend(inherited.0.clone());
            }
        }
        event.record(&mut fields);
        let message = match fields.0.remove("message") {
            Some(Value::String(message)) => message,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let line = LogLine {
            level: *event.metadata().level(),
            logger: logger(event.metadata().target()),
            message,
            fields: fields.0,
        };
        let text = match self.format {
            LogLineFormat::Json => line.json(Timestamp::now()),
            LogLineFormat::Plain { color } => line.plain(Timestamp::now(), color),
        };
        let clean = redact(&text);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // There is nowhere left to report that the log cannot be written.
        let _ = writer
            .write_all(clean.as_bytes())
            .and_then(|()| writer.flush());
    }
}

struct LogLine {
    level: Level,
    logger: String,
    message: String,
    fields: Map<String, Value>,
}

impl LogLine {
    fn json(mut self, now: Timestamp) -> String {
        let mut pairs: Vec<(&str, Value)> = vec![
            ("timestamp", timestamp(now).into()),
            ("level", self.level.as_str().into()),
            ("logger", self.logger.into()),
            ("message", self.message.into()),
        ];
        for name in NAMED {
            if let Some(value) = self.fields.remove(name) {
                pairs.push((name, value));
            }
        }
        if !self.fields.is_empty() {
            pairs.push(("fields", Value::Object(self.fields)));
        }
        // Written by hand because a map would put the keys in alphabetical order.
        let mut text = String::from("{");
        for (index, (key, value)) in pairs.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(text, "{comma}\"{key}\":{value}");
        }
        text.push_str("}\n");
        text
    }

    fn plain(self, now: Timestamp, color: bool) -> String {
        let level = self.level.as_str();
        let (on, off) = match (color, self.level) {
            (false, _) => ("", ""),
            (true, Level::ERROR) => ("\x1b[31m", "\x1b[0m"),
            (true, Level::WARN) => ("\x1b[33m", "\x1b[0m"),
            (true, _) => ("\x1b[2m", "\x1b[0m"),
        };
        let time = now.strftime("%H:%M:%S%.3f");
        let mut text = format!("{time} {on}{level:5}{off} {}: ", self.logger);
        push_visible(&mut text, &self.message);
        for (key, value) in &self.fields {
            // One command has one trace id; on a terminal it would only be noise.
            if key == "trace_id" {
                continue;
            }
            let _ = write!(text, " {key}=");
            match value {
                Value::String(value) => push_visible(&mut text, value),
                value => push_visible(&mut text, &value.to_string()),
            }
        }
        text.push('\n');
        text
    }
}

/// Control characters are shown, not sent: a log line must not move anybody's cursor.
fn push_visible(text: &mut String, part: &str) {
    for c in part.chars() {
        if c.is_control() {
            text.extend(c.escape_default());
        } else {
            text.push(c);
        }
    }
}

fn timestamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// `nimbus_engine_deploy::step::create` is logged as `nimbus.engine.deploy.step.create`.
fn logger(target: &str) -> String {
    let (krate, modules) = target.split_once("::").unwrap_or((target, ""));
    let mut logger = krate.replace('_', ".");
    if !modules.is_empty() {
        logger.push('.');
        logger.push_str(&modules.replace("::", "."));
    }
    logger
}

impl Visit for SpanFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0
            .insert(field.name().into(), format!("{value:?}").into());
    }
}
