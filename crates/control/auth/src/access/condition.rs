//! Conditions on attributes: addresses, times, places and tags.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Time;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::network::Network;

/// All of what is given must hold; what is not given does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Conditions {
    /// Networks such as `10.0.0.0/8`; the caller's address is in one of them.
    pub ip: BTreeSet<String>,
    pub time: Option<TimeWindow>,
    /// Places as the server's settings name them; the caller is in one of them.
    pub location: BTreeSet<String>,
    /// Tags that the resource has, with their values.
    pub tags: BTreeMap<String, String>,
}

/// Hours of a day, in a time zone. `from` after `to` goes over midnight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeWindow {
    /// `08:00`
    pub from: String,
    /// `18:00`, not included.
    pub to: String,
    /// 1 is Monday; none means every day.
    #[serde(default)]
    pub weekdays: BTreeSet<i8>,
    /// An IANA name such as `Europe/Berlin`.
    #[serde(default = "utc")]
    pub zone: String,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// What is wrong with a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    #[error("`{0}` is not a network such as 10.0.0.0/8")]
    Network(String),
    #[error("`{0}` is not a time of day such as 08:30")]
    Time(String),
    #[error("`{0}` is not a day of the week: 1 is Monday, 7 is Sunday")]
    Weekday(i8),
    #[error("`{0}` is not a time zone such as Europe/Berlin")]
    Zone(String),
}

impl Conditions {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses what could never be evaluated.
    pub fn check(&self) -> Result<(), ConditionError> {
        for network in &self.ip {
            if network.parse::<Network>().is_err() {
                return Err(ConditionError::Network(network.clone()));
            }
        }
        self.time.as_ref().map_or(Ok(()), TimeWindow::check)
    }

    /// Whether these hold only when the others do too.
    pub fn within(&self, outer: &Self) -> bool {
        let networks = outer.ip.is_empty()
            || !self.ip.is_empty()
                && self
                    .ip
                    .iter()
                    .all(|own| outer.ip.iter().any(|other| is_within(own, other)));
        let time = match (&self.time, &outer.time) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(other)) => own.within(other),
        };
        let places = outer.location.is_empty()
            || !self.location.is_empty() && self.location.is_subset(&outer.location);
        let tags = outer
            .tags
            .iter()
            .all(|(tag, value)| self.tags.get(tag) == Some(value));
        networks && time && places && tags
    }

    /// The Cedar expression; `true` for no condition. Values are quoted, never pasted.
    pub(super) fn expression(&self) -> String {
        let mut all = Vec::new();
        if !self.ip.is_empty() {
            let any: Vec<_> = self
                .ip
                .iter()
                .map(|network| format!("context.ip.isInRange(ip({}))", quoted(network)))
                .collect();
            all.push(format!("(context has ip && ({}))", any.join(" || ")));
        }
        if let Some(window) = &self.time {
            all.push(window.expression());
        }
        if !self.location.is_empty() {
            let places: Vec<_> = self.location.iter().map(|place| quoted(place)).collect();
            all.push(format!(
                "(context has location && [{}].contains(context.location))",
                places.join(", ")
            ));
        }
        for (tag, value) in &self.tags {
            let (tag, value) = (quoted(tag), quoted(value));
            all.push(format!(
                "(resource.tags has {tag} && resource.tags[{tag}] == {value})"
            ));
        }
        if all.is_empty() {
            "true".to_owned()
        } else {
            all.join(" && ")
        }
    }
}

fn is_within(own: &str, other: &str) -> bool {
    matches!(
        (own.parse::<Network>(), other.parse::<Network>()),
        (Ok(own), Ok(other)) if own.within(&other)
    )
}

impl TimeWindow {
    /// Whether this window is open only while the other one is. Windows of different zones are not
    /// compared: their difference changes with the season.
    fn within(&self, outer: &Self) -> bool {
        let days = outer.weekdays.is_empty()
            || !self.weekdays.is_empty() && self.weekdays.is_subset(&outer.weekdays);
        let (Some(own), Some(other)) = (self.minutes(), outer.minutes()) else {
            return false;
        };
        self.zone == outer.zone && days && (0..DAY).all(|minute| !own(minute) || other(minute))
    }

    /// Whether a minute of the day is in the window, by the rule of its expression.
    fn minutes(&self) -> Option<impl Fn(i64) -> bool> {
        let (from, to) = (minute_of(&self.from)?, minute_of(&self.to)?);
        Some(move |minute| {
            if from <= to {
                from <= minute && minute < to
            } else {
                from <= minute || minute < to
            }
        })
    }

    fn check(&self) -> Result<(), ConditionError> {
        for time in [&self.from, &self.to] {
            minute_of(time).ok_or_else(|| ConditionError::Time(time.clone()))?;
        }
        if let Some(day) = self.weekdays.iter().find(|day| !(1..=7).contains(*day)) {
            return Err(ConditionError::Weekday(*day));
        }
        TimeZone::get(&self.zone)
            .map(drop)
            .map_err(|_| ConditionError::Zone(self.zone.clone()))
    }

    fn expression(&self) -> String {
        // A window that cannot be read permits nothing.
        let (Some(from), Some(to)) = (minute_of(&self.from), minute_of(&self.to)) else {
            return "false".to_owned();
        };
        let zone = quoted(&self.zone);
        let minute = format!("context.times[{zone}].minute");
        let joined = if from <= to { "&&" } else { "||" };
        let mut text =
            format!("(context.times has {zone} && ({minute} >= {from} {joined} {minute} < {to})");
        if !self.weekdays.is_empty() {
            let days: Vec<_> = self.weekdays.iter().map(ToString::to_string).collect();
            text.push_str(&format!(
                " && [{}].contains(context.times[{zone}].weekday)",
                days.join(", ")
            ));
        }
        text + ")"
    }
}

/// Minutes of a day.
const DAY: i64 = 24 * 60;

fn minute_of(text: &str) -> Option<i64> {
    if text == "24:00" {
        return Some(DAY);
    }
    let time = Time::strptime("%H:%M", text).ok()?;
    Some(i64::from(time.hour()) * 60 + i64::from(time.minute()))
}

/// A Cedar string literal.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                literal.push('\\');
                literal.push(letter);
            }
            letter if letter.is_ascii_graphic() || letter == ' ' => literal.push(letter),
            letter => literal.push_str(&format!("\\u{{{:x}}}", u32::from(letter))),
        }
    }
    literal.push('"');
    literal
}
