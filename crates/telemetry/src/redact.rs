//! Secrets removed by value.
//!
//! A secret is recognised wherever it turns up, not where it is expected: as it is, escaped as in
//! JSON and as Node.js and Python show texts in objects, percent-encoded, in hexadecimal, and in base64 at any alignment, which is how passwords
//! hide in `Authorization` headers and Kubernetes secrets. Texts shorter than
//! [`SHORTEST`] are not registered: removing every `a` would tell more than it hides.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{OnceLock, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use nimbus_core::percent_encoded;

/// What stands in place of a secret.
pub const REDACTED: &str = "[secret]";

/// Length in bytes below which a text is not treated as a secret.
const SHORTEST: usize = 3;

/// A line of a multi-line secret, such as a private key, is a secret of its own from this length.
const SHORTEST_LINE: usize = 16;

/// A piece of base64 must be this long to be taken for a secret's.
const SHORTEST_BASE64: usize = 6;

/// The secrets of this process. One for all, because a secret must be hidden from every log line,
/// whichever part of the program learned it.
static KNOWN: RwLock<KnownSecrets> = RwLock::new(KnownSecrets::new());

/// Makes a secret known to the whole process for the rest of its life.
pub fn register_secret(secret: &str) {
    KNOWN
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .add(secret);
}

/// The text without any known secret.
pub fn redact(text: &str) -> Cow<'_, str> {
    KNOWN
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .redact(text)
}

/// Finds some secrets in texts, in every form in which [`redact`] does. Unlike the secrets of the
/// process these are somebody's own: nobody learns through them what others keep.
pub struct SecretFinder {
    matcher: Option<AhoCorasick>,
    empty: bool,
}

impl SecretFinder {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns = BTreeSet::new();
        for secret in secrets {
            add_encodings(&mut patterns, secret);
        }
        Self {
            empty: patterns.is_empty(),
            matcher: build(&patterns),
        }
    }

    /// Whether one of the secrets is in the text.
    pub fn finds_in(&self, text: &str) -> bool {
        // Patterns that fit into no automaton are taken to be everywhere.
        !self.empty
            && self
                .matcher
                .as_ref()
                .is_none_or(|matcher| matcher.is_match(text))
    }
}

/// Says nothing of the secrets.
impl std::fmt::Debug for SecretFinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretFinder(..)")
    }
}

/// Secrets of one piece of work, removed like those of the process. They end with it, and nobody else's texts are
/// held against them.
#[derive(Default)]
pub struct SecretSet {
    known: RwLock<KnownSecrets>,
}

impl SecretSet {
    /// Whether it was not among them before.
    pub fn add(&self, secret: &str) -> bool {
        let known = || self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known().patterns.contains(secret) {
            return false;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.add(secret);
        true
    }

    /// The text without any of them, and without any that the process knows.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match known.redact(text) {
            Cow::Borrowed(text) => redact(text),
            Cow::Owned(text) => Cow::Owned(redact(&text).into_owned()),
        }
    }
}

/// Says nothing of the secrets.
impl std::fmt::Debug for SecretSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretSet(..)")
    }
}

struct KnownSecrets {
    patterns: BTreeSet<String>,
    /// Built when it is needed: many secrets are registered in a row.
    matcher: OnceLock<Option<AhoCorasick>>,
}

impl Default for KnownSecrets {
    fn default() -> Self {
        Self::new()
    }
}

impl KnownSecrets {
    const fn new() -> Self {
        Self {
            patterns: BTreeSet::new(),
            matcher: OnceLock::new(),
        }
    }

    fn add(&mut self, secret: &str) {
        let before = self.patterns.len();
        add_encodings(&mut self.patterns, secret);
        if self.patterns.len() != before {
            self.matcher = OnceLock::new();
        }
    }

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.patterns.is_empty() {
            return Cow::Borrowed(text);
        }
        let Some(matcher) = self.matcher.get_or_init(|| build(&self.patterns)) else {
            return Cow::Borrowed(REDACTED);
        };
        if !matcher.is_match(text) {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        matcher.replace_all_with(text, &mut clean, |_, _, clean| {
            clean.push_str(REDACTED);
            true
        });
        Cow::Owned(clean)
    }
}

/// `None` only if the patterns do not fit into an automaton, some gigabytes of them. Then nothing
/// is written at all.
fn build(patterns: &BTreeSet<String>) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(patterns)
        .ok()
}

fn add_encodings(patterns: &mut BTreeSet<String>, secret: &str) {
    let trimmed = secret.trim();
    if trimmed.len() < SHORTEST {
        return;
    }
    for text in [secret, trimmed] {
        patterns.insert(text.to_owned());
        let escaped = json_escaped(text);
        // Text that was formatted for debugging is escaped once more on its way into a JSON line.
        patterns.insert(json_escaped(&escaped));
        patterns.insert(escaped);
        add_literals(patterns, text);
        patterns.insert(percent_encoded(text));
        add_hexadecimal(patterns, text);
        add_base64(patterns, text);
    }
    if trimmed.contains('\n') {
        let lines = trimmed
            .lines()
            .map(str::trim)
            .filter(|line| line.len() >= SHORTEST_LINE);
        for line in lines {
            patterns.insert(line.to_owned());
            add_literals(patterns, line);
        }
    }
}

/// As runtimes show a text inside of something else (`console.log` of an object, `repr`): they choose a quote that the
/// text does not have if there is one, and escape that quote, backslashes and characters that cannot be seen.
fn add_literals(patterns: &mut BTreeSet<String>, text: &str) {
    for quote in [None, Some('\''), Some('"'), Some('`')] {
        for capital in [false, true] {
            let literal = literal(text, quote, capital);
            patterns.insert(json_escaped(&literal));
            patterns.insert(literal);
        }
    }
}

fn literal(text: &str, quote: Option<char>, capital: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            c if Some(c) == quote => escaped.extend(['\\', c]),
            c if c.is_ascii_control() => {
                let number = hex::encode([c as u8]);
                escaped.push_str("\\x");
                match capital {
                    true => escaped.push_str(&number.to_ascii_uppercase()),
                    false => escaped.push_str(&number),
                }
            }
            c => escaped.push(c),
        }
    }
    escaped
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn add_hexadecimal(patterns: &mut BTreeSet<String>, text: &str) {
    let hexadecimal = hex::encode(text);
    patterns.insert(hexadecimal.to_ascii_uppercase());
    patterns.insert(hexadecimal);
}

/// Base64 works on groups of three bytes, so the same secret looks different at each of three
/// alignments, and its first and last characters depend on its neighbours. What is left between
/// them is the pattern.
fn add_base64(patterns: &mut BTreeSet<String>, text: &str) {
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        for before in 0..3 {
            let mut bytes = vec![0; before];
            bytes.extend_from_slice(text.as_bytes());
            let encoded = engine.encode(&bytes);
            // Characters that carry bits of what stands before, and of what may follow.
            let start = (before * 8).div_ceil(6);
            let end = bytes.len() * 8 / 6;
            let piece = &encoded[start..end];
            if piece.len() >= SHORTEST_BASE64 {
                patterns.insert(piece.to_owned());
            }
        }
        // Alone, the last character belongs to it too.
        let alone = engine.encode(text);
        if alone.len() >= SHORTEST_BASE64 {
            patterns.insert(alone);
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    fn knowing(secrets: &[&str]) -> KnownSecrets {
        let mut known = KnownSecrets::new();
        secrets.iter().for_each(|secret| known.add(secret));
        known
    }

    #[test]
    fn a_secret_is_removed_in_every_usual_encoding() {
        let secret = "k9\"Zq/+\\ü hunter";
        let known = knowing(&[secret]);
        let json = serde_json::json!({ "password": secret }).to_string();
        for text in [
            format!("password={secret}."),
            json.clone(),
            serde_json::json!({ "inner": json }).to_string(),
            serde_json::json!({ "debug": format!("{secret:?}") }).to_string(),
            format!("https://x/?p={}", percent_encoded(secret)),
            format!(
                "Authorization: Basic {}",
                STANDARD.encode(format!("user:{secret}"))
            ),
            format!(
                "Authorization: Basic {}",
                STANDARD.encode(format!("us:{secret}"))
            ),
            format!("data: {}", URL_SAFE.encode(format!("{secret}\n"))),
            format!("data: {}", STANDARD.encode(secret)),
        ] {
            let clean = known.redact(&text);
            assert!(clean.contains(REDACTED), "{text} -> {clean}");
            for tell in ["hunter", "Zq/", "Zq%2F"] {
                assert!(!clean.contains(tell), "{text} -> {clean}");
            }
        }
    }

    /// What `console.log({a: secret})` and `repr(secret)` print.
    #[test]
    fn a_secret_is_removed_as_runtimes_quote_it() {
        let known = knowing(&[
            "p4\"ss\\word-LEAKME2",
            "it's \"a\\b\" LEAKME3",
            "x\u{1b}LEAKME4",
        ]);
        for text in [
            r#"{ b: 'p4"ss\\word-LEAKME2' }"#,
            r#"{ b: `it's "a\\b" LEAKME3` }"#,
            r#"'it\'s "a\\b" LEAKME3'"#,
            r"'x\x1bLEAKME4'",
            r"'x\x1BLEAKME4'",
        ] {
            let clean = known.redact(text);
            assert!(!clean.contains("LEAKME"), "{text} -> {clean}");
            let line = serde_json::json!({ "message": text }).to_string();
            assert!(!known.redact(&line).contains("LEAKME"), "{line}");
        }
    }

    #[test]
    fn lines_of_a_key_are_removed_one_by_one() {
        let known =
            knowing(&["-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nshort\n-----END KEY-----\n"]);
        assert_eq!(known.redact("x MIIEvQIBADANBgkqhkiG9w0 y"), "x [secret] y");
        assert_eq!(known.redact("a short line"), "a short line");
    }

    #[test]
    fn very_short_texts_and_spaces_are_not_secrets() {
        let known = knowing(&["", "q", "qj", "   ", " q "]);
        assert_eq!(known.redact("q qj    q"), "q qj    q");
    }

    #[test]
    fn the_longest_secret_wins_where_two_overlap() {
        let known = knowing(&["overlap-one", "overlap-one-and-more"]);
        assert_eq!(known.redact("<overlap-one-and-more>"), "<[secret]>");
    }

    #[test]
    fn what_one_part_registers_no_other_part_writes() {
        register_secret("registered-somewhere");
        register_secret("registered-later");
        assert_eq!(
            redact("registered-somewhere registered-later"),
            "[secret] [secret]"
        );
    }

    #[test]
    fn secrets_of_one_piece_of_work_are_not_those_of_another() {
        let (one, other) = (SecretSet::default(), SecretSet::default());
        assert!(one.add("only-of-the-first") && !one.add("only-of-the-first"));
        assert_eq!(one.redact("<only-of-the-first>"), "<[secret]>");
        assert_eq!(other.redact("<only-of-the-first>"), "<only-of-the-first>");
        assert_eq!(redact("<only-of-the-first>"), "<only-of-the-first>");
    }

    #[test]
    fn text_without_secrets_is_not_copied() {
        let known = knowing(&["never-in-this-text"]);
        assert!(matches!(known.redact("nothing here"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn no_registered_secret_survives(
            secret in "[!-~é]{3,40}",
            before in "[a-z ]{0,9}",
            after in "[a-z ]{0,9}",
        ) {
            let known = knowing(&[&secret]);
            let text = format!("{before}{secret}{after}");
            prop_assert!(!known.redact(&text).contains(&secret) || REDACTED.contains(&secret));
            // Long enough that some characters depend on the secret alone.
            if secret.len() >= 8 {
                let encoded = STANDARD.encode(&text);
                prop_assert!(known.redact(&encoded).contains(REDACTED), "{}", encoded);
            }
        }
    }
}
