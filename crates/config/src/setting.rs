//! One setting: its value, where the value came from, and what the registry knows about it.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::value::SettingValue;

/// A value in force and its origin.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    pub value: T,
    pub origin: SettingOrigin,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    Default,
    File { name: String, line: usize },
    Environment { variable: &'static str },
    Flag { flag: &'static str },
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Environment { variable } => f.write_str(variable),
            Self::Flag { flag } => f.write_str(flag),
        }
    }
}

/// What the registry knows about a setting, apart from its value.
pub(crate) struct Descriptor {
    /// Key in the file, with dots.
    pub(crate) path: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) doc: &'static [&'static str],
    pub(crate) secret: bool,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Descriptor {
    pub(crate) const fn new<T: SettingValue>(
        path: &'static str,
        variable: &'static str,
        doc: &'static [&'static str],
    ) -> Self {
        Self {
            path,
            variable,
            doc,
            secret: T::SECRET,
            schema: <T as JsonSchema>::json_schema,
        }
    }

    pub(crate) fn doc(&self) -> String {
        self.doc
            .iter()
            .map(|line| line.trim())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A setting without its type, for code that treats all alike.
pub(crate) trait SettingSlot {
    fn set(&mut self, text: &str, origin: SettingOrigin) -> Result<(), String>;
    fn entry(&self, descriptor: &'static Descriptor) -> SettingEntry;
    fn expose(&self) -> Option<&str>;
}

impl<T: SettingValue> SettingSlot for Setting<T> {
    fn set(&mut self, text: &str, origin: SettingOrigin) -> Result<(), String> {
        self.value = T::parse(text)?;
        self.origin = origin;
        Ok(())
    }

    fn entry(&self, descriptor: &'static Descriptor) -> SettingEntry {
        SettingEntry {
            path: descriptor.path,
            variable: descriptor.variable,
            value: self.value.show(),
            secret: descriptor.secret,
            origin: self.origin.clone(),
        }
    }

    fn expose(&self) -> Option<&str> {
        self.value.expose()
    }
}

/// A setting as it is shown: a secret's value is a placeholder, an unset one is null.
#[derive(Clone, Debug)]
pub struct SettingEntry {
    pub path: &'static str,
    pub variable: &'static str,
    pub value: serde_json::Value,
    pub secret: bool,
    pub origin: SettingOrigin,
}
