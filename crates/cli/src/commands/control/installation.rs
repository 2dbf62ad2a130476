//! Which installation a command is about.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;
use nimbus_config::{Isolation as Configured, Secret, Settings};
use nimbus_control_server::{DatabaseLocation, DatabaseOptions, GivenKeys, InstallationKeys};
use nimbus_control_store::{Credentials, DatabaseAddress, Host, Isolation, StoreConfig, Tls};
use nimbus_core::{Error, ErrorCode, Result};
use zeroize::Zeroizing;

use crate::context::CommandContext;

#[derive(clap::Args, Debug)]
pub(crate) struct InstallationArgs {
    /// Where the installation keeps its data; made if it does not exist
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// A PostgreSQL of your own instead of a private one: postgres://user:password@host/database
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
}

impl InstallationArgs {
    /// Whether somebody said on the command line which installation is meant.
    pub(crate) fn is_chosen(&self) -> bool {
        self.data_dir.is_some() || self.database_url.is_some()
    }

    pub(crate) fn options(&self, context: &CommandContext) -> Result<DatabaseOptions> {
        let settings = &context.settings()?.settings;
        let data_dir = match &self.data_dir {
            Some(folder) => context.directory.join(folder),
            None => default_data_dir()?,
        };
        let place = match (&self.database_url, &settings.db.host.value) {
            (Some(url), _) => {
                nimbus_telemetry::register_secret(url);
                DatabaseLocation::External(StoreConfig::from_url(url)?)
            }
            (None, Some(host)) => DatabaseLocation::External(configured(settings, host)?),
            (None, None) => DatabaseLocation::Private {
                // What was fetched made the data, so it goes before what the system has since.
                binaries: match &settings.db.binaries.value {
                    Some(folder) => Some(PathBuf::from(folder)),
                    None => nimbus_control_server::fetched(&data_dir),
                },
            },
        };
        Ok(DatabaseOptions {
            data_dir,
            place,
            isolation: match settings.tenancy.isolation.value {
                Configured::SchemaWithRls => Isolation::SchemaWithRls,
                Configured::Shared => Isolation::Shared,
            },
            pool_size: settings.db.pool_size.value,
        })
    }
}

fn configured(settings: &Settings, host: &str) -> Result<StoreConfig> {
    let db = &settings.db;
    let host = if host.starts_with('/') {
        Host::Socket(host.into())
    } else {
        Host::Tcp(host.to_owned())
    };
    let tls = match &db.sslmode.value {
        None => Tls::for_host(&host),
        Some(name) => Tls::parse(name).ok_or_else(|| {
            let names = Tls::NAMES.map(|(name, _)| name).join(", ");
            Error::new(
                ErrorCode::CONFIG_BAD_VALUE,
                format!("db.sslmode is one of {names}"),
            )
        })?,
    };
    let address = DatabaseAddress {
        host,
        port: db.port.value,
        database: db.name.value.clone(),
        tls,
    };
    let administrator = Credentials {
        user: db.user.value.clone(),
        password: db
            .password
            .value
            .as_ref()
            .map(|password| password.expose().into()),
    };
    let mut config = StoreConfig::new(address, administrator);
    config.tls_authorities = db.sslrootcert.value.as_ref().map(PathBuf::from);
    Ok(config)
}

/// The keys of the installation that a command is about, as `nimbus up` would find them.
pub(super) fn installation_keys(
    context: &CommandContext,
    options: &DatabaseOptions,
    folder: Option<PathBuf>,
) -> Result<InstallationKeys> {
    let settings = &context.settings()?.settings;
    let secret = |setting: &Option<Secret>| {
        setting
            .as_ref()
            .map(|secret| Zeroizing::new(secret.expose().to_owned()))
    };
    Ok(InstallationKeys {
        data_dir: options.data_dir.clone(),
        folder: folder.map(|folder| context.directory.join(folder)),
        given: GivenKeys {
            token_secret: secret(&settings.auth.jwt_secret.value),
            previous_token_secret: secret(&settings.auth.jwt_previous_secret.value),
            secret_key: secret(&settings.app.secret_key.value),
        },
    })
}

/// Where the system keeps the data of services, or the user's own data.
pub(crate) fn default_data_dir() -> Result<PathBuf> {
    if nix::unistd::Uid::effective().is_root() {
        return Ok("/var/lib/nimbus".into());
    }
    let base = etcetera::choose_base_strategy().map_err(|error| {
        Error::new(ErrorCode::DATA_DIR_UNUSABLE, "there is no home directory")
            .with_help("give --data-dir")
            .with_source(error)
    })?;
    Ok(base.data_dir().join("nimbus"))
}
