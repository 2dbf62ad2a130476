//! Environment variables, injected.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where settings such as credentials and passphrases are looked up. Tests bring a fixed map, so
/// that they can run side by side.
#[derive(Clone)]
pub struct Environment(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Environment {
    /// The variables of this process. A value that is not text counts as absent.
    pub fn process() -> Self {
        Self(Arc::new(|name| std::env::var(name).ok()))
    }

    pub fn fixed<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let variables: BTreeMap<String, String> = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Self(Arc::new(move |name| variables.get(name).cloned()))
    }

    /// These variables, but for one that has this value.
    pub fn with(self, fixed: &'static str, value: &'static str) -> Self {
        Self(Arc::new(move |name| {
            if name == fixed {
                return Some(value.to_owned());
            }
            self.get(name)
        }))
    }

    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }

    /// A variable that is set and not empty.
    pub fn non_empty(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| !value.is_empty())
    }
}

/// Says nothing of the values: they may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment(..)")
    }
}
