//! When a workflow is started by the clock.

use std::str::FromStr as _;
use std::time::Duration;

use croner::Cron;
use jiff::{Timestamp, tz::TimeZone};
use nimbus_core::{Error, ErrorCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::FlowId;

/// A workflow that is started again and again. A start that comes while the one before still runs is
/// left out; of the starts that were missed while nothing ran, the last one is made up for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSchedule {
    /// Its name, and the beginning of the names of its workflows.
    pub name: String,
    pub when: When,
    pub flow: String,
    pub input: Value,
    pub paused: bool,
}

/// When it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Five fields as cron has them, in a time zone such as `Europe/Vienna`.
    Cron { fields: String, time_zone: String },
    /// At every multiple of this since 1970.
    Every(Duration),
}

impl When {
    /// In UTC.
    pub fn cron(fields: &str) -> Self {
        Self::Cron {
            fields: fields.to_owned(),
            time_zone: "UTC".to_owned(),
        }
    }

    fn next_after(&self, time: Timestamp) -> Result<Timestamp, String> {
        let (fields, time_zone) = match self {
            Self::Cron { fields, time_zone } => (fields, time_zone),
            Self::Every(interval) => {
                let step = i64::try_from(interval.as_secs()).map_err(|error| error.to_string())?;
                if step == 0 {
                    return Err("an interval is a second at least".to_owned());
                }
                let next = (time.as_second().div_euclid(step) + 1).saturating_mul(step);
                return Timestamp::from_second(next).map_err(|error| error.to_string());
            }
        };
        if fields.split_whitespace().count() != 5 {
            return Err("a cron expression has five fields".to_owned());
        }
        let cron = Cron::from_str(fields).map_err(|error| error.to_string())?;
        let zone = TimeZone::get(time_zone).map_err(|error| error.to_string())?;
        let next = cron
            .find_next_occurrence(&time.to_zoned(zone), false)
            .map_err(|error| error.to_string())?;
        Ok(next.timestamp())
    }
}

/// A schedule and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleView {
    pub schedule: FlowSchedule,
    /// When it starts next; nothing while it is paused.
    pub next: Option<Timestamp>,
    /// What it started last.
    pub last: Option<FlowId>,
}

impl FlowSchedule {
    /// A schedule that is not paused.
    pub fn new(name: &str, when: When, flow: &str, input: Value) -> Self {
        Self {
            name: name.to_owned(),
            when,
            flow: flow.to_owned(),
            input,
            paused: false,
        }
    }

    /// Refuses what could never start.
    pub fn check(&self) -> Result<(), Error> {
        self.id_at(Timestamp::UNIX_EPOCH)?;
        self.next_after(Timestamp::UNIX_EPOCH).map(|_| ())
    }

    /// The first start after a time.
    pub fn next_after(&self, time: Timestamp) -> Result<Timestamp, Error> {
        self.when.next_after(time).map_err(|what| {
            Error::new(
                ErrorCode::WORKFLOW_INVALID,
                format!("the schedule {} is not understood: {what}", self.name),
            )
        })
    }

    /// The name of the workflow that starts at a time: two processes that both start it start one.
    pub fn id_at(&self, time: Timestamp) -> Result<FlowId, Error> {
        FlowId::new(format!(
            "{}{}",
            self.id_prefix(),
            time.strftime("%Y%m%dT%H%M%SZ")
        ))
    }

    /// What the names of its workflows begin with: its history is a list by this.
    pub fn id_prefix(&self) -> String {
        format!("schedule:{}:", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_zone(name: &str, fields: &str, zone: &str) -> FlowSchedule {
        let when = When::Cron {
            fields: fields.to_owned(),
            time_zone: zone.to_owned(),
        };
        FlowSchedule::new(name, when, "f", Value::Null)
    }

    #[test]
    fn the_next_start_is_found_in_the_zone_of_the_schedule() {
        for (cron, zone, after, expected) in [
            (
                "*/15 * * * *",
                "UTC",
                "2026-11-16T10:00:00Z",
                "2026-11-16T10:15:00Z",
            ),
            (
                "0 2 * * *",
                "UTC",
                "2026-11-16T10:00:00Z",
                "2026-11-17T02:00:00Z",
            ),
            (
                "0 8 * * *",
                "Europe/Vienna",
                "2026-11-16T10:00:00Z",
                "2026-11-17T07:00:00Z",
            ),
            (
                "0 */6 * * *",
                "UTC",
                "2026-11-16T18:00:00Z",
                "2026-11-17T00:00:00Z",
            ),
        ] {
            let next = in_zone("s", cron, zone).next_after(after.parse().unwrap());
            assert_eq!(next.unwrap().to_string(), expected, "{cron} {zone}");
        }
        let every = When::Every(Duration::from_secs(20));
        let schedule = FlowSchedule::new("s", every, "f", Value::Null);
        let next = schedule.next_after("2026-11-16T10:00:20Z".parse().unwrap());
        assert_eq!(next.unwrap().to_string(), "2026-11-16T10:00:40Z");
    }

    #[test]
    fn wrong_schedules_are_refused() {
        assert!(in_zone("nightly", "0 2 * * *", "UTC").check().is_ok());
        let never = When::Every(Duration::from_millis(10));
        assert!(
            FlowSchedule::new("s", never, "f", Value::Null)
                .check()
                .is_err()
        );
        for (name, cron, zone) in [
            ("nightly", "0 2 * *", "UTC"),
            ("nightly", "0 25 * * *", "UTC"),
            ("nightly", "* * * * * *", "UTC"),
            ("nightly", "0 2 30 2 *", "UTC"),
            ("nightly", "0 2 * * *", "Mars/Olympus"),
            ("a/b", "0 2 * * *", "UTC"),
            ("", "", ""),
        ] {
            let schedule = in_zone(name, cron, zone);
            assert!(schedule.check().is_err(), "{name} {cron} {zone}");
        }
    }

    #[test]
    fn a_start_has_one_name() {
        let schedule = in_zone("nightly", "0 2 * * *", "UTC");
        let time: Timestamp = "2026-11-17T02:00:00Z".parse().unwrap();
        let id = schedule.id_at(time).unwrap();
        assert_eq!(id.to_string(), "schedule:nightly:20261117T020000Z");
    }
}
