//! What a plain YAML scalar means.
//!
//! The rules are those of Go's `yaml.v3`, since Pulumi's own tools read the same files: the words
//! of the core schema, integers in four bases with `_` between digits, a leading `0` for octal,
//! and everything else text. `yes`, `on` and dates stay text.

use crate::node::{NodeKind, Number};

/// Resolves an unquoted scalar without a tag.
pub(crate) fn resolve_plain(text: &str) -> NodeKind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeKind::Null,
        "true" | "True" | "TRUE" => NodeKind::Bool(true),
        "false" | "False" | "FALSE" => NodeKind::Bool(false),
        _ => match number(text) {
            Some(number) => NodeKind::Number(number),
            None => NodeKind::String(text.to_owned()),
        },
    }
}

/// Resolves a scalar that carries a tag of the core schema; `None` when it does not fit its tag.
pub(crate) fn resolve_tagged(suffix: &str, text: &str) -> Option<NodeKind> {
    let kind = resolve_plain(text);
    let fits = match suffix {
        "null" => matches!(kind, NodeKind::Null),
        "bool" => matches!(kind, NodeKind::Bool(_)),
        "int" => matches!(kind, NodeKind::Number(Number::Int(_) | Number::UInt(_))),
        "float" => {
            return match kind {
                NodeKind::Number(number) => Some(NodeKind::Number(Number::Float(number.as_f64()))),
                _ => None,
            };
        }
        // Bytes have no place in this tree, and undecoded they would be something else.
        "binary" => false,
        _ => return Some(NodeKind::String(text.to_owned())),
    };
    fits.then_some(kind)
}

fn number(text: &str) -> Option<Number> {
    match text {
        ".nan" | ".NaN" | ".NAN" => return Some(Number::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Some(Number::Float(f64::INFINITY));
        }
        "-.inf" | "-.Inf" | "-.INF" => return Some(Number::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    let first = text.bytes().next()?;
    if first == b'.' {
        // Stricter than after a digit or a sign: here `_` must stand between two digits.
        return well_separated(text)
            .then(|| float(&text.replace('_', "")))
            .flatten();
    }
    if !(first.is_ascii_digit() || first == b'+' || first == b'-') {
        return None;
    }
    let digits = text.replace('_', "");
    integer(&digits).or_else(|| float(&digits))
}

fn well_separated(text: &str) -> bool {
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    (1..bytes.len())
        .filter(|at| bytes[*at] == b'_')
        .all(|at| digit(bytes.get(at - 1)) && digit(bytes.get(at + 1)))
}

fn integer(text: &str) -> Option<Number> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None; // from_str_radix takes a second sign
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        let value = 0i64.checked_sub_unsigned(magnitude)?;
        return Some(Number::Int(value));
    }
    Some(i64::try_from(magnitude).map_or(Number::UInt(magnitude), Number::Int))
}

/// Digits with an optional sign, point and exponent, and at least one digit before the exponent.
/// Rust's own parser also takes `inf`, `nan` and friends, which are words here.
fn float(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let plausible = unsigned
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_digit() || b == b'.')
        && unsigned
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !plausible {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Number::Float(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn int(value: i64) -> NodeKind {
        NodeKind::Number(Number::Int(value))
    }

    fn float(value: f64) -> NodeKind {
        NodeKind::Number(Number::Float(value))
    }

    #[test]
    fn plain_scalars_mean_what_pulumi_reads() {
        for (text, expected) in [
            ("", NodeKind::Null),
            ("~", NodeKind::Null),
            ("Null", NodeKind::Null),
            ("true", NodeKind::Bool(true)),
            ("FALSE", NodeKind::Bool(false)),
            ("0", int(0)),
            ("-0", int(0)),
            ("42", int(42)),
            ("+42", int(42)),
            ("-42", int(-42)),
            ("1_000", int(1000)),
            ("0x1F", int(31)),
            ("-0x1f", int(-31)),
            ("0b101", int(5)),
            ("0o17", int(15)),
            ("017", int(15)),
            ("9223372036854775807", int(i64::MAX)),
            ("-9223372036854775808", int(i64::MIN)),
            (
                "9223372036854775808",
                NodeKind::Number(Number::UInt(1 << 63)),
            ),
            ("18446744073709551616", float(18446744073709551616.0)),
            // Not octal after all, so only a float is left.
            ("08", float(8.0)),
            ("1.5", float(1.5)),
            (".5", float(0.5)),
            (".5_0", float(0.5)),
            ("-._5", float(-0.5)),
            ("+.5_", float(0.5)),
            (".5e3", float(500.0)),
            ("1_2e1_0", float(1.2e11)),
            ("1_", int(1)),
            ("+_1", int(1)),
            ("0x_1", int(1)),
            ("0_x1F", int(31)),
            ("00", int(0)),
            ("0_8", float(8.0)),
            ("-9223372036854775809", float(-9223372036854775809.0)),
            ("1.", float(1.0)),
            ("-1e3", float(-1000.0)),
            (".inf", float(f64::INFINITY)),
            ("-.INF", float(f64::NEG_INFINITY)),
        ] {
            assert_eq!(resolve_plain(text), expected, "{text}");
        }
    }

    #[test]
    fn words_dates_and_near_numbers_stay_text() {
        for text in [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "tRue",
            "nil",
            "2024-01-31",
            "1.2.3",
            "10.0.0.0/16",
            "1e",
            "e1",
            "0x",
            "0xg",
            "+",
            "-",
            ".",
            "..",
            "inf",
            "nan",
            "infinity",
            "-inf",
            "1e999",
            "--1",
            "+-1",
            "0x-1",
            "- 1",
            "1 000",
            "._5",
            ".5_",
            ".e3",
            ".5.5",
            "-_",
            "+e1",
            "1.5.",
            "0b",
            "-0x",
            "0x1p-2",
            "1:30",
            "1e0x1",
            "nULL",
            "_1",
            "12ab",
            "0o8",
            "a",
            "D1ABC",
        ] {
            assert_eq!(
                resolve_plain(text),
                NodeKind::String(text.to_owned()),
                "{text}"
            );
        }
        assert!(matches!(resolve_plain(".nan"), NodeKind::Number(Number::Float(f)) if f.is_nan()));
    }

    #[test]
    fn tags_of_the_core_schema_decide_or_refuse() {
        assert_eq!(
            resolve_tagged("str", "42"),
            Some(NodeKind::String("42".into()))
        );
        assert_eq!(resolve_tagged("int", "42"), Some(int(42)));
        assert_eq!(resolve_tagged("float", "42"), Some(float(42.0)));
        assert_eq!(resolve_tagged("int", "x"), None);
        assert_eq!(resolve_tagged("bool", "yes"), None);
        assert_eq!(resolve_tagged("null", "0"), None);
    }

    proptest! {
        #[test]
        fn every_integer_reads_back(value: i64) {
            prop_assert_eq!(resolve_plain(&value.to_string()), int(value));
        }

        #[test]
        fn every_finite_float_reads_back(value in proptest::num::f64::NORMAL) {
            prop_assert_eq!(resolve_plain(&format!("{value:?}")), float(value));
        }

        #[test]
        fn no_text_breaks_the_rules(text in "\\PC{0,12}") {
            let _ = resolve_plain(&text);
        }
    }
}
