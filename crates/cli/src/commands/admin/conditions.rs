//! Conditions under which a role counts, as options of a command.

use nimbus_core::{Error, ErrorCode, Result};
use serde_json::{Map, Value, json};

#[derive(clap::Args, Debug)]
pub(super) struct ConditionArgs {
    /// Only from these networks, such as 10.0.0.0/8
    #[arg(long, value_name = "NETWORK")]
    ip: Vec<String>,
    /// Only at these hours, such as 08:00-18:00
    #[arg(long, value_name = "FROM-TO")]
    hours: Option<String>,
    /// Only on these days of the week: 1 is Monday; needs --hours
    #[arg(long, value_name = "DAY", requires = "hours")]
    weekday: Vec<i8>,
    /// Time zone of --hours
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    zone: String,
    /// Only in these places, as the server's settings name them
    #[arg(long, value_name = "PLACE")]
    location: Vec<String>,
    /// Only on things that have this tag
    #[arg(long, value_name = "KEY=VALUE")]
    tag: Vec<String>,
}

impl ConditionArgs {
    pub(super) fn conditions(&self) -> Result<Value> {
        let mut conditions = Map::new();
        if !self.ip.is_empty() {
            conditions.insert("ip".to_owned(), json!(self.ip));
        }
        if let Some(hours) = &self.hours {
            let (from, to) = hours.split_once('-').ok_or_else(|| {
                let message = format!("`{hours}` are not hours such as 08:00-18:00");
                Error::new(ErrorCode::USAGE, message)
            })?;
            let window =
                json!({"from": from, "to": to, "weekdays": self.weekday, "zone": self.zone});
            conditions.insert("time".to_owned(), window);
        }
        if !self.location.is_empty() {
            conditions.insert("location".to_owned(), json!(self.location));
        }
        if !self.tag.is_empty() {
            conditions.insert("tags".to_owned(), Value::Object(tags(&self.tag)?));
        }
        Ok(Value::Object(conditions))
    }
}

/// `KEY=VALUE` pairs.
pub(super) fn tags(pairs: &[String]) -> Result<Map<String, Value>> {
    pairs
        .iter()
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                let message = format!("`{pair}` is not a tag such as team=blue");
                Error::new(ErrorCode::USAGE, message)
            })?;
            Ok((key.to_owned(), json!(value)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_conditions() {
        let args = ConditionArgs {
            ip: vec!["10.0.0.0/8".to_owned()],
            hours: Some("08:00-18:00".to_owned()),
            weekday: vec![1, 5],
            zone: "Europe/Berlin".to_owned(),
            location: vec!["office".to_owned()],
            tag: vec!["team=blue".to_owned()],
        };
        assert_eq!(
            args.conditions().unwrap(),
            json!({
                "ip": ["10.0.0.0/8"],
                "time": {"from": "08:00", "to": "18:00", "weekdays": [1, 5], "zone": "Europe/Berlin"},
                "location": ["office"],
                "tags": {"team": "blue"},
            })
        );
        let none = ConditionArgs {
            ip: Vec::new(),
            hours: None,
            weekday: Vec::new(),
            zone: "UTC".to_owned(),
            location: Vec::new(),
            tag: Vec::new(),
        };
        assert_eq!(none.conditions().unwrap(), json!({}));
        assert!(tags(&["team".to_owned()]).is_err());
    }
}
