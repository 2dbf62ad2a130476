//! What values can come from on this machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use nimbus_engine_backend::Environment;
use nimbus_engine_model::secrets::{Crypter, PassphraseManager};
use nimbus_orchestrator::calculate::{Calculated, Entropy, calculate, is_remembered};
use nimbus_orchestrator::memory::Memory;
use nimbus_orchestrator::resolve::{Answer, LookupError};
use nimbus_orchestrator::unit::Outside;

/// The process's environment and this machine's chance. AWS is not asked: those placeholders are
/// answered in a rehearsal only.
pub struct LocalOutside {
    rehearsing: bool,
    /// Keys by salt: making one from a passphrase takes a moment, by design.
    keys: Mutex<BTreeMap<String, Arc<PassphraseManager>>>,
}

impl LocalOutside {
    /// In a rehearsal, queries to AWS have believable answers.
    pub fn new(rehearsing: bool) -> Self {
        Self {
            rehearsing,
            keys: Mutex::default(),
        }
    }

    /// `<salt>|<ciphertext>`.
    fn seal(&self, text: &str) -> Result<String, LookupError> {
        let known = self.keys().values().next().cloned();
        let key = match known {
            Some(key) => key,
            None => {
                let key = PassphraseManager::create(&passphrase()?).map_err(unreadable)?;
                self.remember(key)
            }
        };
        let ciphertext = key.encrypt(text).map_err(unreadable)?;
        Ok(format!("{}|{ciphertext}", key.salt()))
    }

    fn open(&self, kept: &str) -> Result<String, LookupError> {
        let (salt, ciphertext) = kept.split_once('|').ok_or_else(|| LookupError {
            message: "a remembered value is not what Nimbus wrote".to_owned(),
        })?;
        let known = self.keys().get(salt).cloned();
        let key = match known {
            Some(key) => key,
            None => {
                self.remember(PassphraseManager::open(&passphrase()?, salt).map_err(unreadable)?)
            }
        };
        Ok(key.decrypt(ciphertext).map_err(unreadable)?.to_string())
    }

    fn remember(&self, key: PassphraseManager) -> Arc<PassphraseManager> {
        let key = Arc::new(key);
        self.keys().insert(key.salt().to_owned(), Arc::clone(&key));
        key
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<String, Arc<PassphraseManager>>> {
        // A panic elsewhere leaves the keys as good as they were.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn passphrase() -> Result<impl std::ops::Deref<Target = String>, LookupError> {
    nimbus_engine_backend::passphrase(&Environment::process()).map_err(|error| LookupError {
        message: error.to_string(),
    })
}

fn unreadable(error: impl std::fmt::Display) -> LookupError {
    LookupError {
        message: format!("a remembered secret cannot be opened: {error}"),
    }
}

#[async_trait]
impl Outside for LocalOutside {
    async fn aws(
        &self,
        region: &str,
        query: &str,
        parameters: &[String],
    ) -> Result<Answer, LookupError> {
        if !self.rehearsing {
            let message =
                format!("queries to AWS ({query}) are not possible yet; give a default after `|`");
            return Err(LookupError { message });
        }
        let first = parameters.first().map_or("", String::as_str);
        Ok(match query {
            "latestAmiId" => Answer::open("ami-0rehearsal00000001"),
            "availabilityZones" => Answer::open(
                ["a", "b", "c"]
                    .map(|zone| format!("{region}{zone}"))
                    .to_vec(),
            ),
            "ssmParameter" => Answer::open(format!("rehearsal:{first}")),
            "secret" => Answer::Known {
                value: format!("rehearsal:{first}").into(),
                secret: true,
            },
            _ => Answer::Absent,
        })
    }

    async fn env(&self, variable: &str) -> Result<Answer, LookupError> {
        Ok(std::env::var(variable).map_or(Answer::Absent, Answer::open))
    }

    async fn calculate(
        &self,
        function: &str,
        parameters: &[String],
        memory: &mut Memory,
    ) -> Result<Answer, LookupError> {
        let name = format!("{function}:{}", parameters.join(":"));
        let secret = function == "password";
        if let Some(kept) = memory.made.get(&name) {
            let text = if secret {
                self.open(kept)?
            } else {
                kept.clone()
            };
            return Ok(Answer::Known {
                value: text.into(),
                secret,
            });
        }
        let calculated = calculate(function, parameters, &mut Machine);
        let Calculated { value, secret } = calculated.map_err(|error| LookupError {
            message: error.to_string(),
        })?;
        if is_remembered(function)
            && let Some(text) = value.as_str()
        {
            let kept = if secret {
                self.seal(text)?
            } else {
                text.to_owned()
            };
            memory.made.insert(name, kept);
        }
        Ok(Answer::Known { value, secret })
    }
}

struct Machine;

impl Entropy for Machine {
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
