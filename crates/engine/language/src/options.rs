//! Options of a runtime, as `Pulumi.yaml` has them under `runtime.options`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::LaunchError;

#[derive(Clone, Debug, PartialEq, Default)]
pub struct RuntimeOptions(BTreeMap<String, Value>);

impl RuntimeOptions {
    pub fn new(options: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self(options.into_iter().collect())
    }

    pub(crate) fn text(&self, option: &'static str) -> Result<Option<&str>, LaunchError> {
        match self.0.get(option) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(LaunchError::BadOption {
                option,
                expected: "a string",
            }),
        }
    }

    pub(crate) fn flag(&self, option: &'static str) -> Result<Option<bool>, LaunchError> {
        match self.0.get(option) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(LaunchError::BadOption {
                option,
                expected: "true or false",
            }),
        }
    }
}
