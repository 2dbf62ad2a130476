//! Structured logs, trace ids, secret redaction and OpenTelemetry export.
