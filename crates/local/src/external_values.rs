//! What values can come from on this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_aws::{Aws, AwsError, AwsSettings, AwsValue, AwsVariables};
use nimbus_core::{EnvironmentName, Error};
use nimbus_disk::FolderFiles;
use nimbus_engine_backend::{KeyServices, Keyring, StackSecrets};
use nimbus_engine_model::secrets::Crypter;
use nimbus_engine_operations::{Allowances, SandboxSettings};
use nimbus_orchestrator::calculate::{Calculated, Entropy, calculate, is_remembered};
use nimbus_orchestrator::{LookupValue, UnitMemory, ValueLookupError};
use nimbus_runs::ports::ExternalValues;
use tokio::sync::OnceCell;

use crate::passphrase::environment;
use crate::secret_file::SecretFile;

/// The process's environment, this machine's chance, and the AWS account of its credentials.
pub(crate) struct MachineValues {
    rehearsing: bool,
    /// What strangers' manifests may ask for; `None` for one's own, which may ask for everything.
    allowances: Option<Allowances>,
    served: bool,
    /// The deployment whose secrets are asked for.
    secrets: Option<(PathBuf, FolderFiles)>,
    variables: AwsVariables,
    /// Set up when the first value comes from there: most deployments never ask.
    aws: OnceCell<Aws>,
    /// Remembered secrets are kept under the passphrase of the units.
    keyring: Arc<Keyring>,
}

impl MachineValues {
    /// In a rehearsal, queries to AWS have believable answers and nobody is asked.
    pub(crate) fn new(rehearsing: bool) -> Self {
        Self::with_variables(rehearsing, AwsVariables::process())
    }

    /// With keys that the engine uses too: deriving one is slow.
    pub(crate) fn with_keys(mut self, keyring: Arc<Keyring>) -> Self {
        self.keyring = keyring;
        self
    }

    /// For manifests of strangers, if programs are strangers': variables and credentials are the operator's.
    pub(crate) fn sandboxed(mut self, sandbox: Option<&SandboxSettings>) -> Self {
        let strict = sandbox.filter(|sandbox| sandbox.is_strict());
        self.allowances = strict.map(|strict| strict.allowances.clone());
        self
    }

    /// With the secrets of the deployment in this directory.
    pub(crate) fn with_secrets(mut self, deployment: &Path, files: &FolderFiles) -> Self {
        self.secrets = Some((deployment.to_owned(), files.clone()));
        self
    }

    /// For somebody else's deployment: neither the machine's variables nor its credentials are theirs
    /// to read.
    pub(crate) fn served(mut self) -> Self {
        self.served = true;
        self
    }

    /// With AWS set up by these variables instead of the process's own.
    pub(crate) fn with_variables(rehearsing: bool, variables: AwsVariables) -> Self {
        Self {
            rehearsing,
            allowances: None,
            served: false,
            secrets: None,
            variables,
            aws: OnceCell::new(),
            keyring: Keyring::new(environment(rehearsing), KeyServices::Only(BTreeSet::new())),
        }
    }

    async fn ask_aws(
        &self,
        region: &str,
        query: &str,
        parameters: &[String],
    ) -> Result<LookupValue, AwsError> {
        let set_up = || async { Aws::new(AwsSettings::load(self.variables.clone())?) };
        let aws = self.aws.get_or_try_init(set_up).await?;
        Ok(match aws.lookup(region, query, parameters).await? {
            AwsValue::Value(value) => LookupValue::open(value),
            AwsValue::Secret(value) => LookupValue::Known {
                value,
                secret: true,
            },
            AwsValue::Absent => LookupValue::Absent,
        })
    }

    /// The keys that remembered secrets are kept under.
    pub(crate) fn keyring(&self) -> Arc<Keyring> {
        Arc::clone(&self.keyring)
    }

    fn seal(&self, text: &str) -> Result<String, ValueLookupError> {
        seal_secret(&self.keyring, text)
    }

    fn open(&self, kept: &str) -> Result<String, ValueLookupError> {
        open_secret(&self.keyring, kept)
    }
}

/// `<salt>|<ciphertext>`.
pub(crate) fn seal_secret(keyring: &Arc<Keyring>, text: &str) -> Result<String, ValueLookupError> {
    let secrets = StackSecrets::new(keyring, None);
    let ciphertext = secrets.encrypt(text).map_err(unreadable)?;
    let salt = secrets.created_salt().unwrap_or_default();
    Ok(format!("{salt}|{ciphertext}"))
}

pub(crate) fn open_secret(keyring: &Arc<Keyring>, kept: &str) -> Result<String, ValueLookupError> {
    let (salt, ciphertext) = kept.split_once('|').ok_or_else(|| ValueLookupError {
        message: "a remembered value is not what Nimbus wrote".to_owned(),
    })?;
    let secrets = StackSecrets::with_salt(keyring, Some(salt));
    Ok(secrets.decrypt(ciphertext).map_err(unreadable)?.to_string())
}

/// Nothing is said about whether it exists.
fn not_allowed(what: &str, name: &str, setting: &str) -> ValueLookupError {
    ValueLookupError {
        message: format!(
            "{what} {name} is the operator's, and manifests of strangers get what {setting} names"
        ),
    }
}

fn unreadable(error: impl std::fmt::Display) -> ValueLookupError {
    ValueLookupError {
        message: format!("a remembered secret cannot be opened: {error}"),
    }
}

#[async_trait]
impl ExternalValues for MachineValues {
    async fn aws(
        &self,
        region: &str,
        query: &str,
        parameters: &[String],
    ) -> Result<LookupValue, ValueLookupError> {
        if let Some(allowances) = &self.allowances
            && !self.rehearsing
            && !allowances.lookups.contains(query)
        {
            return Err(not_allowed("the query", query, "engine.sandbox_lookups"));
        }
        let answer = if self.rehearsing {
            rehearsed(region, query, parameters)
        } else if self.served {
            return Err(ValueLookupError {
                message: "a server has no AWS account to ask for a tenant".to_owned(),
            });
        } else {
            self.ask_aws(region, query, parameters).await
        };
        answer.map_err(|error| ValueLookupError {
            message: format!("{error}; {}", error.help()),
        })
    }

    async fn env(&self, variable: &str) -> Result<LookupValue, ValueLookupError> {
        if let Some(allowances) = &self.allowances
            && !allowances.variables.contains(variable)
        {
            return Err(not_allowed("the variable", variable, "engine.sandbox_env"));
        }
        if self.served {
            return Err(ValueLookupError {
                message: format!("a server does not give `{variable}` of its environment away"),
            });
        }
        Ok(std::env::var(variable).map_or(LookupValue::Absent, LookupValue::open))
    }

    /// A rehearsal protects nothing real, so nobody is asked for the key: whether the secret exists is
    /// checked, and a text that says what it stands for takes its place.
    async fn secret(
        &self,
        environment: EnvironmentName,
        name: &str,
    ) -> Result<LookupValue, ValueLookupError> {
        let failed = |error: Error| ValueLookupError {
            message: match error.help() {
                Some(help) => format!("{}; {help}", error.message()),
                None => error.message().to_owned(),
            },
        };
        let Some((deployment, files)) = &self.secrets else {
            return Err(ValueLookupError {
                message: "no secrets of deployments are kept here".to_owned(),
            });
        };
        let file = SecretFile::load_with(files, deployment).map_err(failed)?;
        let text = if self.rehearsing {
            let stand_in = || format!("rehearsal:{name}");
            file.has(environment, name).then(stand_in)
        } else {
            let opened = file
                .open(environment, name, &self.keyring)
                .map_err(failed)?;
            opened.map(|text| text.to_string())
        };
        Ok(text.map_or(LookupValue::Absent, |text| LookupValue::Known {
            value: text.into(),
            secret: true,
        }))
    }

    async fn calculate(
        &self,
        function: &str,
        parameters: &[String],
        hidden: bool,
        memory: &mut UnitMemory,
    ) -> Result<LookupValue, ValueLookupError> {
        let name = format!("{function}:{}", parameters.join(":"));
        let secret = function == "password";
        if let Some(kept) = memory.made.get(&name) {
            // The others are kept open, unless the placeholder that had them made hides them. Neither a
            // time nor a UUID has the bar in it.
            let text = if secret || kept.contains('|') {
                self.open(kept)?
            } else {
                kept.clone()
            };
            return Ok(LookupValue::Known {
                value: text.into(),
                secret,
            });
        }
        let calculated = calculate(function, parameters, &mut MachineEntropy);
        let Calculated { value, secret } = calculated.map_err(|error| ValueLookupError {
            message: error.to_string(),
        })?;
        if is_remembered(function)
            && let Some(text) = value.as_str()
        {
            let kept = if secret || hidden {
                self.seal(text)?
            } else {
                text.to_owned()
            };
            memory.made.insert(name, kept);
        }
        Ok(LookupValue::Known { value, secret })
    }
}

/// Believable answers; questions that AWS would not understand are refused here too.
fn rehearsed(region: &str, query: &str, parameters: &[String]) -> Result<LookupValue, AwsError> {
    nimbus_aws::check(query, parameters)?;
    let whole = parameters.join(":");
    Ok(match query {
        "latestAmiId" => LookupValue::open("ami-0rehearsal00000001"),
        "availabilityZones" => {
            let count = whole.parse().unwrap_or(3);
            let zones = ('a'..='z').take(count);
            LookupValue::open(
                zones
                    .map(|zone| format!("{region}{zone}"))
                    .collect::<Vec<_>>(),
            )
        }
        "secret" => LookupValue::Known {
            value: format!("rehearsal:{whole}").into(),
            secret: true,
        },
        _ => LookupValue::open(format!("rehearsal:{whole}")),
    })
}

struct MachineEntropy;

impl Entropy for MachineEntropy {
    fn timestamp(&mut self) -> String {
        Timestamp::now()
            .round(jiff::Unit::Second)
            .unwrap_or_default()
            .to_string()
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        rand::fill(bytes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn ask(
        outside: &MachineValues,
        query: &str,
        parameter: &str,
    ) -> Result<LookupValue, String> {
        let parameters = [parameter.to_owned()];
        let answer = outside.aws("eu-west-1", query, &parameters).await;
        answer.map_err(|error| error.message)
    }

    #[tokio::test]
    async fn a_rehearsal_answers_without_an_account_and_refuses_what_aws_would() {
        let outside = MachineValues::with_variables(true, AwsVariables::default());
        let zones = ask(&outside, "availabilityZones", "2").await.unwrap();
        assert_eq!(
            zones,
            LookupValue::open(json!(["eu-west-1a", "eu-west-1b"]))
        );
        let secret = ask(&outside, "secret", "shop/db").await.unwrap();
        assert!(matches!(secret, LookupValue::Known { secret: true, .. }));
        let error = ask(&outside, "weather", "today").await.unwrap_err();
        assert!(error.contains("there is no query `weather`"), "{error}");
    }

    #[tokio::test]
    async fn without_credentials_a_query_says_where_they_are_looked_for() {
        let outside = MachineValues::with_variables(false, AwsVariables::default());
        let error = ask(&outside, "secret", "shop/db").await.unwrap_err();
        assert!(error.contains("AWS_PROFILE"), "{error}");
    }

    #[tokio::test]
    async fn a_made_up_password_is_kept_sealed_and_opened_by_the_next_run() {
        let outside = MachineValues::with_variables(true, AwsVariables::default());
        let mut memory = UnitMemory::default();
        let length = ["16".to_owned()];
        let first = outside
            .calculate("password", &length, false, &mut memory)
            .await;
        let Ok(LookupValue::Known { value, secret }) = first else {
            panic!("{first:?}");
        };
        assert!(secret);
        let kept = memory.made.values().next().unwrap();
        assert!(!kept.contains(value.as_str().unwrap()), "{kept}");
        let next = MachineValues::with_variables(true, AwsVariables::default());
        let again = next
            .calculate("password", &length, false, &mut memory)
            .await;
        assert_eq!(
            again.unwrap(),
            LookupValue::Known {
                value,
                secret: true
            }
        );
    }

    #[tokio::test]
    async fn what_was_made_up_stays_the_same_until_it_is_forgotten() {
        let outside = MachineValues::with_variables(true, AwsVariables::default());
        let mut memory = UnitMemory::default();
        let make = async |memory: &mut UnitMemory| {
            outside.calculate("uuid", &[], false, memory).await.unwrap()
        };
        let first = make(&mut memory).await;
        assert_eq!(make(&mut memory).await, first);
        memory.made.clear();
        assert_ne!(make(&mut memory).await, first);
    }

    #[tokio::test]
    async fn what_a_placeholder_hides_is_kept_sealed_too() {
        let outside = MachineValues::with_variables(true, AwsVariables::default());
        let mut memory = UnitMemory::default();
        let made = outside.calculate("uuid", &[], true, &mut memory).await;
        let Ok(LookupValue::Known { value, .. }) = &made else {
            panic!("{made:?}");
        };
        let kept = memory.made["uuid:"].clone();
        assert!(!kept.contains(value.as_str().unwrap()), "{kept}");
        for hidden in [true, false] {
            let again = outside.calculate("uuid", &[], hidden, &mut memory).await;
            assert_eq!(again, made);
        }
    }
}
