//! How the text of a setting becomes a value, whichever source it came from.

use schemars::JsonSchema;

/// A type that a setting can have.
///
/// All sources speak text: a variable is text, a flag is text, and a scalar of the file is taken
/// as it is spelled, so that `version: 1.10` stays `1.10`.
pub(crate) trait SettingValue: JsonSchema + Sized {
    /// Whether the value must never be shown.
    const SECRET: bool = false;

    /// The error says what to write instead.
    fn parse(text: &str) -> Result<Self, String>;

    /// The value for people and for JSON output; never called for secrets.
    fn show(&self) -> serde_json::Value;

    /// The secret itself, for redaction.
    fn expose(&self) -> Option<&str> {
        None
    }
}

impl SettingValue for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn show(&self) -> serde_json::Value {
        self.as_str().into()
    }
}

impl SettingValue for bool {
    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("write true or false".into()),
        }
    }

    fn show(&self) -> serde_json::Value {
        (*self).into()
    }
}

impl<T: SettingValue> SettingValue for Option<T> {
    const SECRET: bool = T::SECRET;

    fn parse(text: &str) -> Result<Self, String> {
        T::parse(text).map(Some)
    }

    fn show(&self) -> serde_json::Value {
        self.as_ref()
            .map_or(serde_json::Value::Null, SettingValue::show)
    }

    fn expose(&self) -> Option<&str> {
        self.as_ref().and_then(SettingValue::expose)
    }
}

macro_rules! positive_numbers {
    ($($type:ty),*) => {$(
        impl SettingValue for $type {
            fn parse(text: &str) -> Result<Self, String> {
                let accepted = format!("write a whole number from 1 to {}", <$type>::MAX);
                match text.parse() {
                    Ok(number) if number > 0 => Ok(number),
                    _ => Err(accepted),
                }
            }

            fn show(&self) -> serde_json::Value {
                (*self).into()
            }
        }
    )*};
}

positive_numbers!(u16, u32);
