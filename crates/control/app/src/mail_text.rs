//! What mails say.

use std::fmt::Write as _;

use serde::Deserialize;

#[derive(Deserialize)]
struct ToldText {
    title: String,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct DigestText {
    period: String,
    part: usize,
    parts: usize,
    items: Vec<DigestLine>,
}

#[derive(Deserialize)]
struct DigestLine {
    title: String,
    #[serde(default)]
    text: String,
    created_at: String,
}

/// Subject and text of a mail, unless what was kept of it cannot be read.
pub(crate) fn mail_of(kind: &str, payload: &str, url: Option<&str>) -> Option<(String, String)> {
    let (subject, mut text) = match kind {
        "digest" => digest_of(payload)?,
        _ => {
            let told: ToldText = serde_json::from_str(payload).ok()?;
            let text = match told.text.is_empty() {
                true => format!("{}\n", told.title),
                false => format!("{}\n\n{}\n", told.title, told.text),
            };
            (told.title, text)
        }
    };
    let _ = write!(text, "\n-- \nNimbus");
    if let Some(url) = url {
        let _ = write!(text, ", {url}");
    }
    text.push_str("\nWhat you are sent is yours to choose: nimbus notification preferences\n");
    Some((subject, text))
}

fn digest_of(payload: &str) -> Option<(String, String)> {
    let digest: DigestText = serde_json::from_str(payload).ok()?;
    let period = match digest.period.as_str() {
        "weekly" => "week",
        _ => "day",
    };
    let part = match digest.parts {
        0 | 1 => String::new(),
        parts => format!(" ({} of {parts})", digest.part),
    };
    let subject = format!(
        "Your {period} in Nimbus: {} notifications{part}",
        digest.items.len()
    );
    let mut text = String::new();
    for item in &digest.items {
        let _ = writeln!(text, "{}  {}", item.created_at, item.title);
        for line in item.text.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    Some((subject, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_says_what_the_notification_says_and_a_digest_says_all_of_them() {
        let told = r#"{"title": "D1 waits for your decision", "text": "step owners"}"#;
        let (subject, text) =
            mail_of("approval_required", told, Some("https://n.example")).unwrap();
        assert_eq!(subject, "D1 waits for your decision");
        assert!(text.starts_with("D1 waits for your decision\n\nstep owners\n"));
        assert!(text.contains("https://n.example"));
        let digest = r#"{"period": "weekly", "part": 2, "parts": 2, "items": [
            {"kind": "run_failed", "title": "D1 failed", "text": "a\nb", "created_at": "2026-01-01T00:00:00Z"},
            {"kind": "run_failed", "title": "D2 failed", "created_at": "2026-01-02T00:00:00Z"}]}"#;
        let (subject, text) = mail_of("digest", digest, None).unwrap();
        assert_eq!(subject, "Your week in Nimbus: 2 notifications (2 of 2)");
        assert!(text.contains("D1 failed\n    a\n    b\n"), "{text}");
        assert!(text.contains("D2 failed\n"), "{text}");
        assert_eq!(mail_of("run_failed", "nothing", None), None);
    }
}
