//! Resource options, in the one form that requests bring, transforms change and goals are made of.

use std::collections::BTreeMap;

use nimbus_engine_model::{Alias, CustomTimeouts, HookKind, PropertyValue, Urn};

use crate::error::MonitorError;

/// What may be said about a resource beside its properties. Transforms may change all of it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ResourceOptions {
    pub depends_on: Vec<Urn>,
    pub protect: Option<bool>,
    pub ignore_changes: Vec<String>,
    pub replace_on_changes: Vec<String>,
    pub aliases: Vec<Alias>,
    /// A provider reference; empty when none was given.
    pub provider: String,
    /// Provider references by package, for the children of a component.
    pub providers: BTreeMap<String, String>,
    pub version: String,
    pub plugin_download_url: String,
    pub plugin_checksums: BTreeMap<String, Vec<u8>>,
    pub timeouts: Timeouts,
    pub retain_on_delete: Option<bool>,
    pub deleted_with: Option<Urn>,
    pub replace_with: Vec<Urn>,
    pub replacement_trigger: PropertyValue,
    pub delete_before_replace: Option<bool>,
    pub additional_secret_outputs: Vec<String>,
    pub hooks: BTreeMap<HookKind, Vec<String>>,
    /// Id of an existing object to take over; empty when there is none.
    pub import_id: String,
    pub hide_diff: Vec<String>,
}

/// What may be said about an invoke beside its arguments.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct InvokeOptions {
    pub provider: String,
    pub version: String,
    pub plugin_download_url: String,
    pub plugin_checksums: BTreeMap<String, Vec<u8>>,
}

/// Time limits as the program wrote them, so that a transform sees what its author wrote.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Timeouts {
    pub create: String,
    pub update: String,
    pub delete: String,
    pub read: String,
}

impl Timeouts {
    pub(crate) fn in_seconds(&self) -> Result<CustomTimeouts, MonitorError> {
        Ok(CustomTimeouts {
            create: seconds(&self.create)?,
            update: seconds(&self.update)?,
            delete: seconds(&self.delete)?,
            read: seconds(&self.read)?,
        })
    }
}

/// Reads durations such as `1h30m`, `1.5s` or `300ms`; empty is zero.
fn seconds(text: &str) -> Result<f64, MonitorError> {
    let bad = || MonitorError::BadDuration {
        text: text.to_owned(),
    };
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if text.is_empty() || rest == "0" {
        return Ok(0.0);
    }
    if rest.is_empty() {
        return Err(bad());
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, tail) = rest.split_at(digits.ok_or_else(bad)?);
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let number: f64 = number.parse().map_err(|_| bad())?;
        total += number * unit_in_seconds(unit).ok_or_else(bad)?;
        rest = tail;
    }
    Ok(sign * total)
}

fn unit_in_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" | "μs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_common_form() {
        for (text, expected) in [
            ("", 0.0),
            ("0", 0.0),
            ("30s", 30.0),
            ("5m", 300.0),
            ("1h30m", 5400.0),
            ("1.5h", 5400.0),
            ("300ms", 0.3),
            ("1h15m30.5s", 4530.5),
            ("-2s", -2.0),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["5", "m", "5 m", "5x", "1h-5m", "soon", "-", "+", "."] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
