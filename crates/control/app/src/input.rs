//! Rules that several inputs share.

use jiff::{SignedDuration, Timestamp};
use nimbus_control_auth::password::{self, PasswordContext};
use nimbus_core::{Error, ErrorCode};
use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};
use unicode_script::{Script, UnicodeScript as _};
use unicode_security::{GeneralSecurityProfile as _, MixedScript as _};

use crate::failure::{Failure, Result};

/// The longest that anything with an end lasts.
const MOST_DAYS: u32 = 3650;

/// An address that mail could be sent to, in the form in which it is stored. Letters beyond ASCII would let
/// one address look like another; domains that have them are written in their ASCII form.
pub(crate) fn email(field: &'static str, text: &str) -> Result<String> {
    let text = text.trim().to_lowercase();
    let valid = text.len() <= 254
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && text.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty()
                && domain.contains('.')
                && !domain.starts_with('.')
                && !domain.ends_with('.')
        })
        && text.matches('@').count() == 1;
    if valid {
        Ok(text)
    } else {
        Err(Failure::field(
            field,
            "this is not an e-mail address in ASCII letters",
        ))
    }
}

/// What a service account is called: never an address, and nothing that looks like another name.
pub(crate) fn service_name(field: &'static str, text: &str) -> Result<String> {
    let text = text.trim().to_lowercase();
    let valid = (1..=100).contains(&text.len())
        && text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte)
        })
        && text.starts_with(|first: char| first.is_ascii_alphanumeric());
    if valid {
        Ok(text)
    } else {
        Err(Failure::field(
            field,
            "a service account's name has 1 to 100 letters, digits, `.`, `_` and `-`",
        ))
    }
}

/// A name for people, normalised: something on one line that looks like what it is.
pub(crate) fn name(field: &'static str, text: &str, longest: usize) -> Result<String> {
    let text = line(field, text, longest)?;
    if text.is_empty() {
        return Err(Failure::field(
            field,
            format!("a name has 1 to {longest} characters on one line"),
        ));
    }
    Ok(text)
}

/// A name that may be left out.
pub(crate) fn optional_name(field: &'static str, text: &str, longest: usize) -> Result<String> {
    line(field, text, longest)
}

fn line(field: &'static str, text: &str, longest: usize) -> Result<String> {
    let text: String = text.nfkc().collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > longest {
        return Err(Failure::field(
            field,
            format!("it has more than {longest} characters"),
        ));
    }
    let invisible = |letter: char| {
        matches!(
            letter.general_category(),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::Surrogate
                | GeneralCategory::PrivateUse
                | GeneralCategory::Unassigned
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
        ) || letter.is_alphanumeric() && !letter.identifier_allowed()
    };
    if text.chars().any(invisible) {
        return Err(Failure::field(
            field,
            "it has a character that cannot be seen or is not for names",
        ));
    }
    if mixes_scripts(&text) {
        return Err(Failure::field(
            field,
            "it mixes letters of scripts that look alike",
        ));
    }
    Ok(text)
}

/// Letters of one script, or of Latin beside Chinese, Japanese or Korean, which nobody mistakes.
fn mixes_scripts(text: &str) -> bool {
    let letters: String = text
        .chars()
        .filter(|letter| letter.is_alphabetic())
        .collect();
    if letters.is_single_script() {
        return false;
    }
    let others: String = letters
        .chars()
        .filter(|letter| letter.script() != Script::Latin)
        .collect();
    let scripts = others.as_str().resolve_script_set();
    !(scripts.hanb || scripts.jpan || scripts.kore)
}

/// The same for names that look the same.
pub(crate) fn looks_like(name: &str) -> String {
    unicode_security::skeleton(&name.to_lowercase())
        .filter(|letter| !letter.is_whitespace())
        .collect()
}

/// Text of several lines, whole or not at all.
pub(crate) fn text(field: &'static str, text: &str, longest: usize) -> Result<String> {
    if text.chars().count() > longest {
        return Err(Failure::field(
            field,
            format!("it has more than {longest} characters"),
        ));
    }
    Ok(text.to_owned())
}

/// When something ends that lasts so many days.
pub(crate) fn days(field: &'static str, days: u32, now: Timestamp) -> Result<Timestamp> {
    if !(1..=MOST_DAYS).contains(&days) {
        return Err(Failure::field(field, format!("give 1 to {MOST_DAYS} days")));
    }
    now.checked_add(SignedDuration::from_hours(24 * i64::from(days)))
        .map_err(|_| Failure::field(field, "it ends too late"))
}

/// When something ends.
pub(crate) fn end(field: &'static str, at: Timestamp, now: Timestamp) -> Result<Timestamp> {
    if at <= now || at > days(field, MOST_DAYS, now)? {
        return Err(Failure::field(
            field,
            format!("it ends after now and within {MOST_DAYS} days"),
        ));
    }
    Ok(at)
}

/// Settings of a tenant go into every answer about it and into the audit trail.
const MOST_SETTINGS: usize = 200;
const MOST_SETTINGS_BYTES: usize = 32 * 1024;
const DEEPEST_SETTING: usize = 8;

/// An object of settings, of a size that can be kept.
pub(crate) fn settings(field: &'static str, value: Option<Value>) -> Result<Value> {
    let value = value.unwrap_or_else(|| Value::Object(Map::new()));
    let Value::Object(entries) = &value else {
        return Err(Failure::field(field, "this is not an object"));
    };
    let named = |key: &String| !key.is_empty() && key.chars().count() <= 100;
    if entries.len() > MOST_SETTINGS || !entries.keys().all(named) {
        return Err(Failure::field(
            field,
            format!("give at most {MOST_SETTINGS}, with names of 1 to 100 characters"),
        ));
    }
    if depth(&value) > DEEPEST_SETTING || value.to_string().len() > MOST_SETTINGS_BYTES {
        return Err(Failure::field(
            field,
            format!(
                "they are deeper than {DEEPEST_SETTING} or larger than {MOST_SETTINGS_BYTES} bytes"
            ),
        ));
    }
    Ok(value)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

pub(crate) fn password(text: &str, email: &str, tenant: &str) -> Result<()> {
    password::check(text, PasswordContext { email, tenant }).map_err(|weakness| {
        let message = weakness.to_string();
        Failure {
            error: Error::new(
                ErrorCode::PASSWORD_REFUSED,
                format!("the password is refused: {message}"),
            )
            .with_help("several unrelated words do well"),
            ..Failure::field("password", message)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_stored_in_lower_case_and_checked_for_shape() {
        assert_eq!(
            email("email", " Jane@Acme.Example ").unwrap(),
            "jane@acme.example"
        );
        for bad in [
            "",
            "jane",
            "@acme.example",
            "jane@acme",
            "a b@acme.example",
            "a@b@c.d",
            "a@.b.",
            "a@b.c\n",
        ] {
            let failed = email("email", bad.trim_end_matches('x'));
            assert!(failed.is_err() || bad.ends_with('\n'), "{bad:?}");
        }
    }

    #[test]
    fn names_are_normalised() {
        for (given, kept) in [
            (" Jane ", "Jane"),
            ("a\n b", "a b"),
            ("Ｊａｎｅ", "Jane"),
            ("Müller & Söhne", "Müller & Söhne"),
            ("u\u{308}ber", "über"),
            ("東京 Team", "東京 Team"),
            ("Команда", "Команда"),
        ] {
            assert_eq!(name("name", given, 20).unwrap(), kept);
        }
        assert_eq!(optional_name("name", "", 10).unwrap(), "");
    }

    #[test]
    fn names_that_are_not_what_they_seem_are_refused() {
        for bad in [
            "",
            "   ",
            "0123456789012345678901",
            "ad\u{200b}mins",
            "ad\u{2060}mins",
            "\u{202e}snimda",
            "ad\u{ad}mins",
            "\u{feff}admins",
            "\u{3164}",
            "аdmins",
            "αdmins",
            "a\u{0}b",
            "a\u{1b}[2J",
            "a\u{e000}b",
        ] {
            assert!(name("name", bad, 20).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_of_one_script_that_look_like_another_are_told_apart_by_their_looks() {
        assert_eq!(looks_like("Admins"), looks_like("admins"));
        assert_eq!(looks_like("scope"), looks_like("ѕсоре"));
        assert_eq!(looks_like("on call"), looks_like("oncall"));
        assert_ne!(looks_like("dev"), looks_like("prod"));
    }

    #[test]
    fn addresses_and_accounts_are_ascii() {
        for bad in [
            "jаne@acme.example",
            "jane@acmе.example",
            "ja\u{200b}ne@acme.example",
        ] {
            assert!(email("email", bad).is_err(), "{bad:?}");
        }
        assert_eq!(service_name("email", "CI-robot_1").unwrap(), "ci-robot_1");
        for bad in [
            "",
            "-a",
            "a b",
            "rоbot",
            "a@b",
            "a\u{200b}",
            &"a".repeat(101),
        ] {
            assert!(service_name("email", bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_ends_ends_in_time() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        for bad in [0, 3651, u32::MAX] {
            assert!(days("days", bad, now).is_err(), "{bad}");
        }
        let year = days("days", 365, now).unwrap();
        assert_eq!(end("at", year, now).unwrap(), year);
        for bad in [now, Timestamp::MIN, Timestamp::MAX] {
            assert!(end("at", bad, now).is_err());
        }
    }

    #[test]
    fn settings_have_a_size() {
        let json = |text: &str| Some(serde_json::from_str::<Value>(text).unwrap());
        assert!(settings("settings", json(r#"{"a": {"b": [1]}}"#)).is_ok());
        assert!(settings("settings", json("[]")).is_err());
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(9), "]".repeat(9));
        assert!(settings("settings", json(&deep)).is_err());
        let wide = format!("{{\"a\": \"{}\"}}", "x".repeat(40_000));
        assert!(settings("settings", json(&wide)).is_err());
    }
}
