//! JSON as the official engine writes it, byte for byte.
//!
//! Everything that a generic serialiser would choose differently is decided here: which characters
//! are escaped, how floats look, how nesting is indented. Callers bring the order of keys.

use std::fmt::Write as _;

use serde_json::Value;

const INDENT: &[u8] = b"    ";

/// How the text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Layout {
    /// One line without blanks, as in a state file.
    #[default]
    Compact,
    /// Four spaces and a final newline, as in an export.
    Indented,
}

/// Writes one document. The caller keeps begins and ends balanced and writes a key before each
/// value of an object.
pub(crate) struct GoJsonWriter {
    out: Vec<u8>,
    layout: Layout,
    /// `<`, `>` and `&` as escapes: the official engine does so inside secrets only.
    escape_html: bool,
    depth: usize,
    /// Nothing was written yet since the innermost bracket.
    first: bool,
    /// A key was written and its value is due.
    after_key: bool,
}

impl GoJsonWriter {
    pub(crate) fn new(layout: Layout) -> Self {
        Self {
            out: Vec::new(),
            layout,
            escape_html: false,
            depth: 0,
            first: true,
            after_key: false,
        }
    }

    /// A compact writer that escapes what is special in HTML.
    pub(crate) fn html_safe() -> Self {
        Self {
            escape_html: true,
            ..Self::new(Layout::Compact)
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.layout == Layout::Indented {
            self.out.push(b'\n');
        }
        self.out
    }

    pub(crate) fn finish_text(self) -> String {
        String::from_utf8(self.finish()).expect("only text was written")
    }

    pub(crate) fn begin_object(&mut self) {
        self.open(b'{');
    }

    pub(crate) fn end_object(&mut self) {
        self.close(b'}');
    }

    pub(crate) fn begin_array(&mut self) {
        self.open(b'[');
    }

    pub(crate) fn end_array(&mut self) {
        self.close(b']');
    }

    pub(crate) fn key(&mut self, key: &str) {
        self.separate();
        self.quote(key);
        self.out.push(b':');
        if self.layout == Layout::Indented {
            self.out.push(b' ');
        }
        self.after_key = true;
    }

    pub(crate) fn null(&mut self) {
        self.scalar(b"null");
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.scalar(if value { b"true" } else { b"false" });
    }

    pub(crate) fn integer(&mut self, value: u64) {
        self.scalar(value.to_string().as_bytes());
    }

    /// `value` must be finite: JSON has no others.
    pub(crate) fn number(&mut self, value: f64) {
        self.scalar(float(value).as_bytes());
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.separate();
        self.quote(text);
    }

    /// Any JSON value. `order` ranks keys; keys without a rank follow, sorted.
    pub(crate) fn json(&mut self, value: &Value, order: &[&str]) {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::Number(number) if number.is_f64() => {
                self.number(number.as_f64().expect("it is a float"));
            }
            Value::Number(number) => self.scalar(number.to_string().as_bytes()),
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.begin_array();
                items.iter().for_each(|item| self.json(item, order));
                self.end_array();
            }
            Value::Object(map) => {
                self.begin_object();
                let rank = |key: &str| order.iter().position(|k| *k == key).unwrap_or(order.len());
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(key, _)| (rank(key), *key));
                for (key, value) in entries {
                    self.key(key);
                    self.json(value, order);
                }
                self.end_object();
            }
        }
    }

    fn open(&mut self, bracket: u8) {
        self.separate();
        self.out.push(bracket);
        self.depth += 1;
        self.first = true;
    }

    fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        if !self.first {
            self.newline();
        }
        self.out.push(bracket);
        self.first = false;
    }

    fn scalar(&mut self, text: &[u8]) {
        self.separate();
        self.out.extend_from_slice(text);
    }

    /// What must stand before the next key or element.
    fn separate(&mut self) {
        if std::mem::take(&mut self.after_key) || self.depth == 0 {
            return;
        }
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.newline();
    }

    fn newline(&mut self) {
        if self.layout == Layout::Indented {
            self.out.push(b'\n');
            for _ in 0..self.depth {
                self.out.extend_from_slice(INDENT);
            }
        }
    }

    fn quote(&mut self, text: &str) {
        self.out.push(b'"');
        let bytes = text.as_bytes();
        let (mut written, mut at) = (0, 0);
        while let Some(&byte) = bytes.get(at) {
            // Most bytes of a state are plain; only these can begin something to escape.
            if byte >= b' ' && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2) {
                at += 1;
                continue;
            }
            let Some((escape, length)) = self.escape(&text[at..]) else {
                at += 1;
                // Not a boundary inside a longer character; the next plain byte is.
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                continue;
            };
            self.out.extend_from_slice(&bytes[written..at]);
            self.out.extend_from_slice(escape.as_bytes());
            at += length;
            written = at;
        }
        self.out.extend_from_slice(&bytes[written..]);
        self.out.push(b'"');
    }

    /// The escape for the first character of `text`, if it needs one, and that character's length.
    fn escape(&self, text: &str) -> Option<(String, usize)> {
        let char = text.chars().next()?;
        let short = match char {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            // Line separators break JavaScript, so they are escaped everywhere.
            '\u{2028}' => "\\u2028",
            '\u{2029}' => "\\u2029",
            '<' | '>' | '&' if self.escape_html => return Some((unicode_escape(char), 1)),
            control if control < ' ' => return Some((unicode_escape(control), 1)),
            _ => return None,
        };
        Some((short.to_owned(), char.len_utf8()))
    }
}

fn unicode_escape(char: char) -> String {
    format!("\\u{:04x}", u32::from(char))
}

/// A float as in JavaScript: integers without a point, exponents only below 1e-6 and from 1e21.
fn float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !exponent.starts_with('-') => {
            let mut signed = mantissa.to_owned();
            write!(signed, "e+{exponent}").expect("writing to a String does not fail");
            signed
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(layout: Layout, value: &Value) -> String {
        let mut writer = GoJsonWriter::new(layout);
        writer.json(value, &["type", "name"]);
        writer.finish_text()
    }

    #[test]
    fn floats_look_like_those_of_go() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-3.5, "-3.5"),
            (0.000_001, "0.000001"),
            (0.000_000_9, "9e-7"),
            (1.5e-10, "1.5e-10"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.25e300, "-1.25e+300"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn strings_are_escaped_like_those_of_go() {
        let text = "q\" b\\ \n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f} <&> \u{2028}\u{2029} é😀\u{fffd}";
        assert_eq!(
            written(Layout::Compact, &json!(text)),
            "\"q\\\" b\\\\ \\n\\r\\t\\b\\f\\u0000\\u001f\u{7f} <&> \\u2028\\u2029 é😀\u{fffd}\""
        );
        let mut safe = GoJsonWriter::html_safe();
        safe.string("<&>");
        assert_eq!(safe.finish_text(), r#""\u003c\u0026\u003e""#);
    }

    #[test]
    fn both_layouts_keep_the_order_that_was_asked_for() {
        let value = json!({"b": [], "a": {}, "type": [1, {"x": null}], "name": 2.5, "c": true});
        assert_eq!(
            written(Layout::Compact, &value),
            r#"{"type":[1,{"x":null}],"name":2.5,"a":{},"b":[],"c":true}"#
        );
        let indented = r#"{
    "type": [
        1,
        {
            "x": null
        }
    ],
    "name": 2.5,
    "a": {},
    "b": [],
    "c": true
}
"#;
        assert_eq!(written(Layout::Indented, &value), indented);
    }

    proptest! {
        #[test]
        fn floats_read_back_exactly(value in any::<f64>()) {
            prop_assert_eq!(float(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
        }

        #[test]
        fn strings_read_back_exactly(text in any::<String>(), html in any::<bool>()) {
            let mut writer = if html { GoJsonWriter::html_safe() } else { GoJsonWriter::new(Layout::Compact) };
            writer.string(&text);
            prop_assert_eq!(serde_json::from_slice::<String>(&writer.finish()).unwrap(), text);
        }
    }
}
