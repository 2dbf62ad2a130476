//! The keys to a stack's secrets.
//!
//! A passphrase comes from the environment and is asked for only when there is something to
//! encrypt or decrypt: a stack without secrets needs none. Deriving a key is slow on purpose, so
//! each is derived once and kept in a [`Keyring`]. So are the data keys that a key management
//! service opens.

mod cloud;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use nimbus_aws::AwsError;
use nimbus_engine_model::SecretsProvider;
use nimbus_engine_model::secrets::{
    Base64Crypter, CryptError, Crypter, PassphraseManager, SymmetricCrypter,
};
use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::environment::EnvironmentVariables;

pub(crate) use cloud::CloudKey;

pub const PASSPHRASE: &str = "PULUMI_CONFIG_PASSPHRASE";
pub const PASSPHRASE_FILE: &str = "PULUMI_CONFIG_PASSPHRASE_FILE";

#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    #[error("neither {PASSPHRASE} nor {PASSPHRASE_FILE} is set")]
    PassphraseMissing,
    #[error("{PASSPHRASE_FILE} names {}, which cannot be read", path.display())]
    PassphraseFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the secrets provider `{kind}` is not supported")]
    Unsupported { kind: String },
    #[error("the secrets provider `{url}` cannot be used: {problem}")]
    Address { url: String, problem: &'static str },
    #[error("secrets are encrypted with {url}, which is not for a stranger's files to say")]
    Untrusted { url: String },
    #[error("the key of `{url}` cannot be had: {error}")]
    KeyService { url: String, error: AwsError },
    #[error(transparent)]
    Crypt(#[from] CryptError),
}

/// Which key management services may be asked for keys. Their addresses come from a settings file, a state, secrets
/// beside a manifest or a journal; all of these are files of a stranger where programs are, and services are asked with
/// the operator's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyServices {
    /// Whatever the files say: they are one's own.
    Any,
    /// These, by their whole address, and no others.
    Only(BTreeSet<String>),
}

impl KeyServices {
    fn permits(&self, url: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(named) => named.contains(url),
        }
    }
}

/// The passphrase from the environment. It may be empty, but it must be set.
pub fn passphrase(environment: &EnvironmentVariables) -> Result<Zeroizing<String>, SecretsError> {
    if let Some(passphrase) = environment.get(PASSPHRASE) {
        return Ok(Zeroizing::new(passphrase));
    }
    let path = environment
        .non_empty(PASSPHRASE_FILE)
        .map(PathBuf::from)
        .ok_or(SecretsError::PassphraseMissing)?;
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let text = Zeroizing::new(text);
            Ok(Zeroizing::new(text.trim().to_owned()))
        }
        Err(source) => Err(SecretsError::PassphraseFile { path, source }),
    }
}

/// Keys that were derived already, for stacks of one owner: they all open with one passphrase.
pub struct Keyring {
    environment: EnvironmentVariables,
    services: KeyServices,
    managers: Mutex<BTreeMap<String, Arc<PassphraseManager>>>,
    data_keys: Mutex<BTreeMap<CloudKey, Arc<SymmetricCrypter>>>,
}

impl Keyring {
    /// Whose files name services is for the caller to know; no default would be right.
    pub fn new(environment: EnvironmentVariables, services: KeyServices) -> Arc<Self> {
        Arc::new(Self {
            environment,
            services,
            managers: Mutex::default(),
            data_keys: Mutex::default(),
        })
    }

    /// The variables that the passphrase comes from.
    pub fn environment(&self) -> &EnvironmentVariables {
        &self.environment
    }

    /// What encrypts and decrypts under a provider that a state or a settings file names.
    pub fn open(&self, provider: &SecretsProvider) -> Result<Arc<dyn Crypter>, SecretsError> {
        match provider.kind.as_str() {
            PassphraseManager::KIND => {
                let salt = PassphraseManager::salt_of(provider)?;
                Ok(self.manager(salt)?)
            }
            CloudKey::KIND => Ok(self.data_key(CloudKey::of(provider)?)?),
            Base64Crypter::KIND => Ok(Arc::new(Base64Crypter)),
            kind => Err(SecretsError::Unsupported {
                kind: kind.to_owned(),
            }),
        }
    }

    fn manager(&self, salt: &str) -> Result<Arc<PassphraseManager>, SecretsError> {
        // Held while deriving: a second asker is better off waiting than deriving again.
        let mut managers = self.managers.lock();
        if let Some(manager) = managers.get(salt) {
            return Ok(Arc::clone(manager));
        }
        let manager = Arc::new(PassphraseManager::open(
            &passphrase(&self.environment)?,
            salt,
        )?);
        managers.insert(salt.to_owned(), Arc::clone(&manager));
        Ok(manager)
    }

    fn data_key(&self, key: CloudKey) -> Result<Arc<SymmetricCrypter>, SecretsError> {
        let mut keys = self.data_keys.lock();
        if let Some(opened) = keys.get(&key) {
            return Ok(Arc::clone(opened));
        }
        self.require_service(key.url())?;
        let opened = Arc::new(key.open(&self.environment)?);
        keys.insert(key, Arc::clone(&opened));
        Ok(opened)
    }

    fn require_service(&self, url: &str) -> Result<(), SecretsError> {
        if self.services.permits(url) {
            return Ok(());
        }
        let url = url.to_owned();
        Err(SecretsError::Untrusted { url })
    }

    /// A data key for a stack that has none yet.
    fn create_data_key(
        &self,
        url: &str,
    ) -> Result<(SecretsProvider, Arc<dyn Crypter>), SecretsError> {
        self.require_service(url)?;
        let (key, crypter) = CloudKey::create(url, &self.environment)?;
        let (provider, crypter) = (key.provider(), Arc::new(crypter));
        self.data_keys.lock().insert(key, Arc::clone(&crypter));
        Ok((provider, crypter))
    }

    /// A key for a stack that has none. Stacks that get theirs from one keyring share one, so that
    /// a deployment of many stacks derives a key once and not once per stack.
    fn create(&self) -> Result<Arc<PassphraseManager>, SecretsError> {
        let mut managers = self.managers.lock();
        if let Some(manager) = managers.values().next() {
            return Ok(Arc::clone(manager));
        }
        let manager = Arc::new(PassphraseManager::create(&passphrase(&self.environment)?)?);
        managers.insert(manager.salt().to_owned(), Arc::clone(&manager));
        Ok(manager)
    }
}

/// Says nothing of the keys.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring(..)")
    }
}

/// What a stack's settings say about its secrets.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DeclaredSecrets {
    /// Nothing: the state says it, or else the first secret brings a passphrase.
    #[default]
    Nothing,
    Provider(SecretsProvider),
    /// The address of a key management service under which there is no data key yet.
    Service(String),
}

impl DeclaredSecrets {
    pub(crate) fn salt(salt: &str) -> Self {
        Self::Provider(SecretsProvider {
            kind: PassphraseManager::KIND.to_owned(),
            state: serde_json::json!({ "salt": salt }),
        })
    }
}

/// The secrets of one stack. A stack that has had none gets its provider with the first one.
#[derive(Debug)]
pub struct StackSecrets {
    keyring: Arc<Keyring>,
    provider: Mutex<ActiveSecretsProvider>,
}

#[derive(Clone, Debug)]
enum ActiveSecretsProvider {
    /// None yet, and the address of the service that a data key comes from, if it does.
    None(Option<String>),
    Known(SecretsProvider),
    /// Made by us; nobody has written it down yet.
    Created(SecretsProvider),
}

impl StackSecrets {
    pub fn new(keyring: &Arc<Keyring>, provider: Option<SecretsProvider>) -> Self {
        Self {
            keyring: Arc::clone(keyring),
            provider: Mutex::new(provider.map_or(
                ActiveSecretsProvider::None(None),
                ActiveSecretsProvider::Known,
            )),
        }
    }

    /// What settings declare rules; `recorded` is the provider of the state.
    pub fn declared(
        keyring: &Arc<Keyring>,
        declared: &DeclaredSecrets,
        recorded: Option<SecretsProvider>,
    ) -> Self {
        let provider = match declared {
            DeclaredSecrets::Nothing => return Self::new(keyring, recorded),
            DeclaredSecrets::Provider(provider) => ActiveSecretsProvider::Known(provider.clone()),
            DeclaredSecrets::Service(url) => match recorded {
                Some(recorded) if CloudKey::of(&recorded).is_ok_and(|key| key.url() == url) => {
                    ActiveSecretsProvider::Known(recorded)
                }
                _ => ActiveSecretsProvider::None(Some(url.clone())),
            },
        };
        Self {
            keyring: Arc::clone(keyring),
            provider: Mutex::new(provider),
        }
    }

    /// The secrets of a stack whose settings file has this salt.
    pub fn with_salt(keyring: &Arc<Keyring>, salt: Option<&str>) -> Self {
        let declared = salt.map(DeclaredSecrets::salt).unwrap_or_default();
        Self::declared(keyring, &declared, None)
    }

    /// As it is written to a state; `None` while there has been no need.
    pub fn provider(&self) -> Option<SecretsProvider> {
        match &*self.provider.lock() {
            ActiveSecretsProvider::None(_) => None,
            ActiveSecretsProvider::Known(provider) | ActiveSecretsProvider::Created(provider) => {
                Some(provider.clone())
            }
        }
    }

    /// The provider that was made here and belongs into the stack's settings file.
    pub fn created(&self) -> Option<SecretsProvider> {
        match &*self.provider.lock() {
            ActiveSecretsProvider::Created(provider) => Some(provider.clone()),
            ActiveSecretsProvider::None(_) | ActiveSecretsProvider::Known(_) => None,
        }
    }

    /// The salt that was made here.
    pub fn created_salt(&self) -> Option<String> {
        let provider = self.created()?;
        PassphraseManager::salt_of(&provider)
            .ok()
            .map(str::to_owned)
    }

    /// What encrypts. Fails with its own words where a [`Crypter`] has none.
    pub fn crypter(&self) -> Result<Arc<dyn Crypter>, SecretsError> {
        let mut provider = self.provider.lock();
        match &*provider {
            ActiveSecretsProvider::Known(known) | ActiveSecretsProvider::Created(known) => {
                self.keyring.open(known)
            }
            ActiveSecretsProvider::None(None) => {
                let manager = self.keyring.create()?;
                *provider = ActiveSecretsProvider::Created(manager.provider());
                Ok(manager)
            }
            ActiveSecretsProvider::None(Some(url)) => {
                let (created, crypter) = self.keyring.create_data_key(url)?;
                *provider = ActiveSecretsProvider::Created(created);
                Ok(crypter)
            }
        }
    }
}

impl Crypter for StackSecrets {
    fn encrypt(&self, plaintext: &str) -> Result<String, CryptError> {
        self.crypter().map_err(unavailable)?.encrypt(plaintext)
    }

    fn decrypt(&self, ciphertext: &str) -> Result<Zeroizing<String>, CryptError> {
        let Some(provider) = self.provider() else {
            return Err(CryptError::NoProvider);
        };
        let crypter = self.keyring.open(&provider).map_err(unavailable)?;
        crypter.decrypt(ciphertext)
    }
}

fn unavailable(error: SecretsError) -> CryptError {
    match error {
        SecretsError::Crypt(error) => error,
        other => CryptError::Unavailable {
            message: other.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by the official command line with the passphrase `password`.
    const OFFICIAL: &str = "v1:fozI5u6B030=:v1:F+6ZduKKd8G0/V7L:PGMFeIzwobWRKmEAzUdaQHqC5mMRIQ==";

    #[test]
    fn the_passphrase_may_be_empty_but_must_be_set() {
        let set =
            |variables: [(&str, &str); 1]| passphrase(&EnvironmentVariables::fixed(variables));
        assert_eq!(*set([(PASSPHRASE, "")]).unwrap(), "");
        assert_eq!(*set([(PASSPHRASE, " p ")]).unwrap(), " p ");
        let missing = set([("OTHER", "")]).unwrap_err().to_string();
        assert!(missing.contains(PASSPHRASE) && missing.contains(PASSPHRASE_FILE));
        assert!(matches!(
            set([(PASSPHRASE_FILE, "")]),
            Err(SecretsError::PassphraseMissing)
        ));
        assert!(matches!(
            set([(PASSPHRASE_FILE, "/does/not/exist")]),
            Err(SecretsError::PassphraseFile { .. })
        ));
    }

    #[test]
    fn a_passphrase_file_is_read_without_its_line_break() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hunter2\n").unwrap();
        let path = file.path().to_str().unwrap();
        let environment = EnvironmentVariables::fixed([(PASSPHRASE_FILE, path)]);
        assert_eq!(*passphrase(&environment).unwrap(), "hunter2");
        let both = EnvironmentVariables::fixed([(PASSPHRASE_FILE, path), (PASSPHRASE, "first")]);
        assert_eq!(*passphrase(&both).unwrap(), "first");
    }

    #[test]
    fn an_official_salt_opens_and_a_wrong_passphrase_does_not() {
        let keyring = Keyring::new(
            EnvironmentVariables::fixed([(PASSPHRASE, "password")]),
            KeyServices::Any,
        );
        let secrets = StackSecrets::with_salt(&keyring, Some(OFFICIAL));
        let ciphertext = secrets.encrypt("x").unwrap();
        assert_eq!(*secrets.decrypt(&ciphertext).unwrap(), "x");
        assert_eq!(secrets.created_salt(), None);
        let wrong = Keyring::new(
            EnvironmentVariables::fixed([(PASSPHRASE, "other")]),
            KeyServices::Any,
        );
        let error = StackSecrets::with_salt(&wrong, Some(OFFICIAL))
            .crypter()
            .err();
        assert!(matches!(
            error,
            Some(SecretsError::Crypt(CryptError::WrongPassphrase))
        ));
    }

    #[test]
    fn a_stack_without_secrets_needs_no_passphrase_until_the_first_one() {
        let nobody = Keyring::new(EnvironmentVariables::fixed([]), KeyServices::Any);
        let secrets = StackSecrets::new(&nobody, None);
        assert_eq!(secrets.provider(), None);
        assert_eq!(secrets.decrypt("v1:x"), Err(CryptError::NoProvider));
        assert!(matches!(
            secrets.encrypt("x"),
            Err(CryptError::Unavailable { .. })
        ));
        assert_eq!(secrets.provider(), None);

        let keyring = Keyring::new(
            EnvironmentVariables::fixed([(PASSPHRASE, "p")]),
            KeyServices::Any,
        );
        let secrets = StackSecrets::new(&keyring, None);
        let ciphertext = secrets.encrypt("x").unwrap();
        let salt = secrets.created_salt().unwrap();
        let again = StackSecrets::with_salt(&keyring, Some(&salt));
        assert_eq!(*again.decrypt(&ciphertext).unwrap(), "x");
        assert_eq!(again.provider(), secrets.provider());
    }

    #[test]
    fn stacks_of_one_keyring_share_a_key() {
        let keyring = Keyring::new(
            EnvironmentVariables::fixed([(PASSPHRASE, "p")]),
            KeyServices::Any,
        );
        let [first, second] = [(); 2].map(|()| StackSecrets::new(&keyring, None));
        let ciphertext = first.encrypt("x").unwrap();
        second.encrypt("y").unwrap();
        assert_eq!(first.provider(), second.provider());
        assert_eq!(*second.decrypt(&ciphertext).unwrap(), "x");
        let stranger = Keyring::new(
            EnvironmentVariables::fixed([(PASSPHRASE, "p")]),
            KeyServices::Any,
        );
        let third = StackSecrets::new(&stranger, None);
        third.encrypt("z").unwrap();
        assert_ne!(third.provider(), first.provider());
    }

    #[test]
    fn a_service_is_trusted_by_its_whole_address() {
        let url = "awskms://alias/a?region=eu-west-1";
        let named = KeyServices::Only(BTreeSet::from([url.to_owned()]));
        assert!(KeyServices::Any.permits(url));
        assert!(named.permits(url));
        assert!(!named.permits(&format!("{url}&profile=b")));
        assert!(!KeyServices::Only(BTreeSet::new()).permits(url));
    }

    #[test]
    fn two_keyrings_of_one_process_are_asked_about_their_own_services() {
        let provider = SecretsProvider {
            kind: CloudKey::KIND.to_owned(),
            state: serde_json::json!({"url": "awskms://alias/a?region=eu-west-1", "encryptedkey": "AAAA"}),
        };
        // Nobody answers there; a service that may be asked is, and fails otherwise.
        let environment = || EnvironmentVariables::fixed([]);
        let strangers = Keyring::new(environment(), KeyServices::Only(BTreeSet::new()));
        let refused = strangers.open(&provider).err();
        assert!(matches!(refused, Some(SecretsError::Untrusted { .. })));
        let secrets = StackSecrets::declared(
            &strangers,
            &DeclaredSecrets::Service("awskms://alias/a".to_owned()),
            None,
        );
        assert!(matches!(
            secrets.crypter().err(),
            Some(SecretsError::Untrusted { .. })
        ));
    }

    #[test]
    fn other_providers_are_named_in_the_refusal() {
        let keyring = Keyring::new(EnvironmentVariables::fixed([]), KeyServices::Any);
        let provider = SecretsProvider {
            kind: "awskms".into(),
            state: serde_json::Value::Null,
        };
        let error = keyring.open(&provider).err().unwrap();
        assert!(error.to_string().contains("awskms"));
    }
}
