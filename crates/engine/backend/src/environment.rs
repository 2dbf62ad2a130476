//! Environment variables, injected; and the storage of a server, for which there is no address that
//! others understand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::store::Storage;

/// Where settings such as credentials and passphrases are looked up. Tests bring a fixed map, so
/// that they can run side by side.
#[derive(Clone)]
pub struct Environment {
    variables: Arc<Lookup>,
    storage: Option<Arc<dyn Storage>>,
}

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Environment {
    /// The variables of this process. A value that is not text counts as absent.
    pub fn process() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    pub fn fixed<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let variables: BTreeMap<String, String> = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Self::of(move |name| variables.get(name).cloned())
    }

    fn of(variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            variables: Arc::new(variables),
            storage: None,
        }
    }

    /// These variables, but for one that has this value.
    pub fn with(self, fixed: &'static str, value: impl Into<String>) -> Self {
        let (value, storage) = (value.into(), self.storage.clone());
        let variables = move |name: &str| {
            if name == fixed {
                return Some(value.clone());
            }
            self.get(name)
        };
        Self {
            storage,
            ..Self::of(variables)
        }
    }

    /// These variables and no others.
    pub fn only(self, names: &'static [&'static str]) -> Self {
        let storage = self.storage.clone();
        let variables = move |name: &str| names.contains(&name).then(|| self.get(name)).flatten();
        Self {
            storage,
            ..Self::of(variables)
        }
    }

    /// With storage that is meant by the address [`GIVEN`](crate::store::GIVEN).
    pub fn storing_in(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    pub(crate) fn storage(&self) -> Option<&Arc<dyn Storage>> {
        self.storage.as_ref()
    }

    pub fn get(&self, name: &str) -> Option<String> {
        (self.variables)(name)
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
