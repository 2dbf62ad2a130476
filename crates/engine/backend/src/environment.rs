//! Environment variables, injected; and the storage of a server, for which there is no address that
//! others understand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use nimbus_aws::AwsVariables;

use crate::store::Storage;

const AWS_VARIABLES: [&str; 29] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_DEFAULT_PROFILE",
    "AWS_DEFAULT_REGION",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_KMS",
    "AWS_ENDPOINT_URL_SSO",
    "AWS_ENDPOINT_URL_SSO_OIDC",
    "AWS_ENDPOINT_URL_STS",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_MAX_ATTEMPTS",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_STS_REGIONAL_ENDPOINTS",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "HOME",
    "USERPROFILE",
];

/// Where settings such as credentials and passphrases are looked up. Tests bring a fixed map, so
/// that they can run side by side.
#[derive(Clone)]
pub struct EnvironmentVariables {
    variables: Arc<Lookup>,
    storage: Option<Arc<dyn Storage>>,
    reach: Reach,
}

/// Whoever else on this machine may be asked for credentials.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Its metadata services and profile files.
    Machine,
    /// The profile files that variables name.
    Files,
    /// Nobody: the variables are part of the machine's, for work of somebody else.
    Nobody,
}

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl EnvironmentVariables {
    /// The variables of this process. A value that is not text counts as absent.
    pub fn process() -> Self {
        Self {
            reach: Reach::Machine,
            ..Self::of(|name| std::env::var(name).ok())
        }
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
            reach: Reach::Files,
        }
    }

    /// These variables, but for one that has this value.
    pub fn with(self, fixed: &'static str, value: impl Into<String>) -> Self {
        let (value, storage) = (value.into(), self.storage.clone());
        let reach = self.reach;
        let variables = move |name: &str| {
            if name == fixed {
                return Some(value.clone());
            }
            self.get(name)
        };
        Self {
            storage,
            reach,
            ..Self::of(variables)
        }
    }

    /// These variables and no others, and nobody else who gives credentials on this machine.
    pub fn only(self, names: &'static [&'static str]) -> Self {
        let storage = self.storage.clone();
        let variables = move |name: &str| names.contains(&name).then(|| self.get(name)).flatten();
        Self {
            storage,
            reach: Reach::Nobody,
            ..Self::of(variables)
        }
    }

    /// With storage that is meant by the address [`GIVEN`](crate::store::GIVEN).
    pub fn storing_in(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Those that decide who asks AWS, and where it is.
    pub(crate) fn aws(&self, profile: Option<&str>) -> AwsVariables {
        let is_home = |name: &str| matches!(name, "HOME" | "USERPROFILE");
        let own = AWS_VARIABLES
            .iter()
            .filter(|name| **name != "AWS_PROFILE" || profile.is_none())
            .filter(|name| self.reach != Reach::Nobody || !is_home(name))
            .filter_map(|name| Some((*name, self.get(name)?)))
            .chain(profile.map(|name| ("AWS_PROFILE", name.to_owned())));
        let own: Vec<(&str, String)> = own.collect();
        let variables = AwsVariables::fixed(own.iter().map(|(name, value)| (*name, &**value)));
        match self.reach {
            Reach::Machine => variables.with_metadata(),
            Reach::Files | Reach::Nobody => variables,
        }
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
impl fmt::Debug for EnvironmentVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnvironmentVariables(..)")
    }
}
