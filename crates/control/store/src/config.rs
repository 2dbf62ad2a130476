//! Where the database is and with which roles it is used.

use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::Url;

use crate::StoreError;

/// A database on a server.
#[derive(Clone, Debug)]
pub struct DatabaseAddress {
    pub host: Host,
    pub port: u16,
    pub database: String,
    pub tls: Tls,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// The folder of a unix socket.
    Socket(PathBuf),
    Tcp(String),
}

/// How a connection over the network is protected, by the names that PostgreSQL's own programs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    Disable,
    /// In clear unless the server wants it otherwise.
    Allow,
    /// Encrypted if the server can; the certificate is not checked.
    Prefer,
    /// Encrypted; the certificate is not checked.
    Require,
    /// Encrypted, by a server whose certificate an authority signed that is trusted.
    VerifyCa,
    /// The same, and the server proves its name.
    VerifyFull,
}

impl Tls {
    pub const NAMES: [(&str, Self); 6] = [
        ("disable", Self::Disable),
        ("allow", Self::Allow),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, tls)| *tls)
    }

    /// What is used when nobody says: a server on another machine proves who it is.
    pub fn for_host(host: &Host) -> Self {
        match host {
            Host::Socket(_) => Self::Disable,
            Host::Tcp(name) if is_this_machine(name) => Self::Prefer,
            Host::Tcp(_) => Self::VerifyFull,
        }
    }
}

fn is_this_machine(name: &str) -> bool {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// A role and its password, if it has one.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub user: String,
    pub password: Option<SecretString>,
}

/// The names of the three roles. They belong to a whole server, so two installations on one server
/// have different ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Owns and migrates; never used for a request's queries.
    pub owner: String,
    /// Serves requests: owns nothing and cannot go around row-level security.
    pub app: String,
    /// For reports and people with a database tool.
    pub readonly: String,
}

impl Roles {
    pub fn for_database(database: &str) -> Self {
        Self {
            owner: format!("{database}_owner"),
            app: format!("{database}_app"),
            readonly: format!("{database}_readonly"),
        }
    }
}

/// How tenants are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// A schema per tenant and row-level security.
    #[default]
    SchemaWithRls,
    /// One schema with the same row-level security, for very many tenants.
    Shared,
}

impl Isolation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SchemaWithRls => "schema_with_rls",
            Self::Shared => "shared",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::SchemaWithRls, Self::Shared]
            .into_iter()
            .find(|isolation| isolation.as_str() == text)
    }
}

/// Everything that is needed to open the store.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    pub address: DatabaseAddress,
    /// Who creates the roles and the database, if they are missing.
    pub administrator: Credentials,
    pub roles: Roles,
    pub isolation: Isolation,
    /// File with the authorities that sign the server's certificate; without it those of the system.
    pub tls_authorities: Option<PathBuf>,
    /// Connections for requests.
    pub pool_size: u32,
    /// How long a request waits for a connection before it is told that the database is away.
    pub acquire_timeout: Duration,
}

impl StoreConfig {
    pub fn new(address: DatabaseAddress, administrator: Credentials) -> Self {
        let roles = Roles::for_database(&address.database);
        Self {
            address,
            administrator,
            roles,
            isolation: Isolation::default(),
            tls_authorities: None,
            pool_size: 20,
            acquire_timeout: Duration::from_secs(3),
        }
    }

    /// Reads `postgres://user:password@host:port/database?sslmode=…`.
    pub fn from_url(text: &str) -> Result<Self, StoreError> {
        let bad = |why: &'static str| StoreError::BadAddress { why };
        let url = Url::parse(text).map_err(|_| bad("it is not a URL"))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(bad("it must begin with postgres://"));
        }
        let decoded = |part: &str| {
            percent_decoded(part).ok_or_else(|| bad("it has bytes that are not UTF-8"))
        };
        let database = decoded(url.path().trim_start_matches('/'))?;
        let user = decoded(url.username())?;
        if database.is_empty() || user.is_empty() {
            return Err(bad("it must name a user and a database"));
        }
        let query = |name: &str| {
            url.query_pairs()
                .find(|(key, _)| key == name)
                .map(|pair| pair.1)
        };
        let host = match (
            query("host"),
            url.host_str().filter(|host| !host.is_empty()),
        ) {
            (Some(folder), _) if folder.starts_with('/') => Host::Socket(folder.as_ref().into()),
            (_, Some(host)) => Host::Tcp(decoded(host)?),
            _ => return Err(bad("it names no host")),
        };
        let tls = match query("sslmode").as_deref() {
            None => Tls::for_host(&host),
            Some(name) => {
                Tls::parse(name).ok_or_else(|| bad("sslmode is not one that PostgreSQL knows"))?
            }
        };
        let password = url
            .password()
            .map(decoded)
            .transpose()?
            .map(SecretString::from);
        let address = DatabaseAddress {
            host,
            port: url.port().unwrap_or(5432),
            database,
            tls,
        };
        let mut config = Self::new(address, Credentials { user, password });
        config.tls_authorities = query("sslrootcert").map(|path| path.as_ref().into());
        Ok(config)
    }

    pub(crate) fn administrator_options(&self) -> PgConnectOptions {
        self.options(&self.administrator)
    }

    /// The owner and the app role log in with passwords that follow from the administrator's, so
    /// that every process finds the same ones and nothing has to be stored. Where the administrator
    /// needs none (a private socket), they need none.
    pub(crate) fn role_credentials(&self, role: &str) -> Credentials {
        if role == self.administrator.user {
            return self.administrator.clone();
        }
        let derive = |password: &SecretString| {
            let key = password.expose_secret().as_bytes();
            let mut mac =
                Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
            mac.update(b"nimbus database role ");
            mac.update(role.as_bytes());
            SecretString::from(URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
        };
        Credentials {
            user: role.to_owned(),
            password: self.administrator.password.as_ref().map(derive),
        }
    }

    /// The same as [`options`](Self::options), as text, for a library that takes nothing else.
    pub(crate) fn url(&self, credentials: &Credentials) -> SecretString {
        choose_cryptography();
        let mut url = Url::parse("postgres://localhost/").expect("this is a URL");
        // Errors are of URLs that cannot have these parts, and this one can.
        let _ = url.set_username(&credentials.user);
        let password = credentials.password.as_ref();
        let _ = url.set_password(password.map(|password| password.expose_secret()));
        let _ = url.set_port(Some(self.address.port));
        let tls = self.address.tls;
        let sslmode = Tls::NAMES.iter().find(|(_, known)| *known == tls);
        {
            let mut query = url.query_pairs_mut();
            match &self.address.host {
                Host::Socket(folder) => query.append_pair("host", &folder.to_string_lossy()),
                Host::Tcp(host) => query.append_pair("host", host),
            };
            // Not as the path, from which the library would make a database that is missing.
            query.append_pair("dbname", &self.address.database);
            query.append_pair("sslmode", sslmode.map_or("verify-full", |(name, _)| name));
            if let Some(file) = &self.tls_authorities {
                query.append_pair("sslrootcert", &file.to_string_lossy());
            }
        }
        SecretString::from(String::from(url))
    }

    pub(crate) fn options(&self, credentials: &Credentials) -> PgConnectOptions {
        choose_cryptography();
        let mut options = PgConnectOptions::new_without_pgpass()
            .port(self.address.port)
            .database(&self.address.database)
            .username(&credentials.user)
            .application_name("nimbus")
            // Requests that are slow have a line of their own, and times of statements are metrics. A statement's text
            // in the log helps nobody, least of all a migration's.
            .disable_statement_logging()
            .ssl_mode(match self.address.tls {
                Tls::Disable => PgSslMode::Disable,
                Tls::Allow => PgSslMode::Allow,
                Tls::Prefer => PgSslMode::Prefer,
                Tls::Require => PgSslMode::Require,
                Tls::VerifyCa => PgSslMode::VerifyCa,
                Tls::VerifyFull => PgSslMode::VerifyFull,
            });
        if let Some(file) = &self.tls_authorities {
            options = options.ssl_root_cert(file);
        }
        options = match &self.address.host {
            Host::Socket(folder) => options.socket(folder),
            Host::Tcp(host) => options.host(host),
        };
        match &credentials.password {
            Some(password) => options.password(password.expose_secret()),
            None => options,
        }
    }
}

/// Libraries of this program bring two implementations of cryptography, and a connection that is to be
/// encrypted panics as long as nobody has chosen one of them.
fn choose_cryptography() {
    static CHOSEN: Once = Once::new();
    CHOSEN.call_once(|| {
        // An error is an earlier choice, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escape = (first == b'%').then(|| tail.get(..2)).flatten();
        let value = escape
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match value {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let config = StoreConfig::from_url(
            "postgres://ad%40min:p%2Fw@db.example:6000/nimbus?sslmode=verify-full",
        )
        .unwrap();
        assert_eq!(config.address.host, Host::Tcp("db.example".into()));
        assert_eq!(config.address.port, 6000);
        assert_eq!(config.address.tls, Tls::VerifyFull);
        assert_eq!(config.administrator.user, "ad@min");
        assert_eq!(
            config.administrator.password.unwrap().expose_secret(),
            "p/w"
        );
        assert_eq!(config.roles, Roles::for_database("nimbus"));
    }

    #[test]
    fn the_text_form_of_a_log_in_says_what_the_options_say() {
        for (text, sslmode) in [
            (
                "postgres://a%40b:p%2Fw%3A%40%23@db.example:6000/nim%20bus",
                "verify-full",
            ),
            (
                "postgres://ad@localhost/nimbus?sslmode=disable&host=/run/pg",
                "disable",
            ),
            (
                "postgres://ad:x@[::1]:6000/nimbus?sslrootcert=/etc/ca.pem",
                "prefer",
            ),
        ] {
            let config = StoreConfig::from_url(text).unwrap();
            let role = config.role_credentials("nimbus_owner");
            let url = config.url(&role).expose_secret().to_owned();
            assert!(url.contains(sslmode), "{url}");
            let read: PgConnectOptions = url.parse().unwrap();
            let options = config.options(&role);
            assert_eq!(read.get_host(), options.get_host(), "{url}");
            assert_eq!(read.get_socket(), options.get_socket(), "{url}");
            assert_eq!(read.get_database(), options.get_database(), "{url}");
            assert_eq!(read.get_username(), "nimbus_owner", "{url}");
            assert_eq!(read.get_port(), options.get_port(), "{url}");
        }
    }

    #[test]
    fn a_server_on_another_machine_proves_who_it_is_unless_told_otherwise() {
        let tls = |text: &str| {
            let url = format!("postgres://u@{text}");
            StoreConfig::from_url(&url).unwrap().address.tls
        };
        assert_eq!(tls("db.example/n"), Tls::VerifyFull);
        assert_eq!(tls("192.0.2.1/n"), Tls::VerifyFull);
        for here in ["localhost/n", "127.0.0.1/n", "[::1]/n"] {
            assert_eq!(tls(here), Tls::Prefer, "{here}");
        }
        assert_eq!(tls("x/n?host=/run/pg"), Tls::Disable);
        for (name, mode) in Tls::NAMES {
            assert_eq!(tls(&format!("db.example/n?sslmode={name}")), mode);
        }
        let own = StoreConfig::from_url("postgres://u@h/n?sslrootcert=/etc/own.pem").unwrap();
        assert_eq!(own.tls_authorities, Some("/etc/own.pem".into()));
    }

    #[test]
    fn a_socket_is_given_as_host() {
        let config = StoreConfig::from_url("postgresql://u@localhost/n?host=/run/pg").unwrap();
        assert_eq!(config.address.host, Host::Socket("/run/pg".into()));
    }

    #[test]
    fn a_url_that_is_not_one_is_refused_without_being_repeated() {
        for url in [
            "",
            "mysql://u@h/d",
            "postgres://h/d",
            "postgres://u:secret@h",
            "postgres://u:secret@h/d?sslmode=maybe",
        ] {
            let error = StoreConfig::from_url(url).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn role_passwords_follow_from_the_administrators_and_differ() {
        let config = StoreConfig::from_url("postgres://admin:pw@h/nimbus").unwrap();
        let password = |role: &str| {
            config
                .role_credentials(role)
                .password
                .unwrap()
                .expose_secret()
                .to_owned()
        };
        assert_eq!(password("nimbus_app"), password("nimbus_app"));
        assert_ne!(password("nimbus_app"), password("nimbus_owner"));
        assert_eq!(password("admin"), "pw");
    }
}
