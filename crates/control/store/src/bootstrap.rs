//! Roles and database, if they are missing.
//!
//! The administrator may be a superuser, somebody who may create roles and databases, or somebody
//! who may do neither when all is there already. Running it again changes nothing.

use secrecy::ExposeSecret as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use tracing::{info, warn};

use crate::store::run_script;
use crate::{StoreConfig, StoreError};

/// Keys for the locks that are held while something is set up for the whole server or database.
pub(crate) const SETUP_LOCK: i64 = 0x006e_696d_6275_7301;

/// `NULLS NOT DISTINCT` and sane rights on `public` came with it.
const OLDEST_SERVER: i32 = 150_000;

pub(crate) async fn prepare(config: &StoreConfig) -> Result<(), StoreError> {
    let mut connection = match PgConnection::connect_with(&config.administrator_options()).await {
        Ok(connection) => connection,
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("3D000") => {
            create_database(config).await?;
            PgConnection::connect_with(&config.administrator_options()).await?
        }
        // The administrator's password was changed and the settings were not: what Nimbus needs every day
        // are its own roles, whose passwords are as they were.
        Err(error) if is_refused(&error) && roles_log_in(config).await => {
            warn!(
                "the database's administrator cannot log in with the given password; going on without"
            );
            return Ok(());
        }
        Err(error) => return Err(connecting(error)),
    };
    check_version(&mut connection).await?;
    ensure_roles(&mut connection, config).await?;
    claim_database(&mut connection, config).await?;
    renew_passwords(&mut connection, config).await?;
    connection.close().await?;
    Ok(())
}

/// Whether a log-in failed for its user or password.
fn is_refused(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("28P01" | "28000"))
}

async fn logs_in(config: &StoreConfig, role: &str) -> Result<(), sqlx::Error> {
    let options = config.options(&config.role_credentials(role));
    PgConnection::connect_with(&options).await?.close().await
}

async fn roles_log_in(config: &StoreConfig) -> bool {
    logs_in(config, &config.roles.owner).await.is_ok()
        && logs_in(config, &config.roles.app).await.is_ok()
}

/// The roles' passwords follow from the administrator's, so a new one of the administrator's would lock them
/// out: whoever may log in as the administrator gives them their new ones.
async fn renew_passwords(
    connection: &mut PgConnection,
    config: &StoreConfig,
) -> Result<(), StoreError> {
    for role in [&config.roles.owner, &config.roles.app] {
        let Some(password) = config.role_credentials(role).password else {
            continue;
        };
        match logs_in(config, role).await {
            Err(error) if is_refused(&error) => {}
            _ => continue,
        }
        let renew = format!(
            "ALTER ROLE {} PASSWORD {}",
            quoted(role),
            literal(password.expose_secret())
        );
        run_script(connection, renew)
            .await
            .map_err(|source| StoreError::Bootstrap {
                what: format!("the role {role} cannot be given its new password"),
                source,
            })?;
        info!(
            role,
            "the role was given a new password, after the administrator's was changed"
        );
    }
    Ok(())
}

/// A refused log-in is a mistake in the settings, not a database that is away.
fn connecting(error: sqlx::Error) -> StoreError {
    match StoreError::from(error) {
        StoreError::Database(source) => StoreError::Bootstrap {
            what: "the administrator cannot log in".to_owned(),
            source,
        },
        other => other,
    }
}

async fn check_version(connection: &mut PgConnection) -> Result<(), StoreError> {
    let (number, found): (i32, String) = sqlx::query_as(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version')",
    )
    .fetch_one(connection)
    .await?;
    if number < OLDEST_SERVER {
        Err(StoreError::ServerTooOld { found })
    } else {
        Ok(())
    }
}

async fn create_database(config: &StoreConfig) -> Result<(), StoreError> {
    let options: PgConnectOptions = config.administrator_options().database("postgres");
    let mut connection = PgConnection::connect_with(&options)
        .await
        .map_err(connecting)?;
    check_version(&mut connection).await?;
    let create = format!(
        "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'",
        quoted(&config.address.database)
    );
    match run_script(&mut connection, create).await {
        Ok(()) => {}
        // Another process was faster; a unique violation is how PostgreSQL says so for catalogs.
        Err(sqlx::Error::Database(error))
            if matches!(error.code().as_deref(), Some("42P04" | "23505")) => {}
        Err(source) => {
            return Err(StoreError::Bootstrap {
                what: "the database cannot be created".to_owned(),
                source,
            });
        }
    }
    connection.close().await?;
    Ok(())
}

async fn ensure_roles(
    connection: &mut PgConnection,
    config: &StoreConfig,
) -> Result<(), StoreError> {
    let mut tx = connection.begin().await?;
    lock(&mut tx, SETUP_LOCK).await?;
    for role in [
        &config.roles.owner,
        &config.roles.app,
        &config.roles.readonly,
    ] {
        let exists: bool =
            sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)")
                .bind(role)
                .fetch_one(&mut *tx)
                .await?;
        if exists {
            continue;
        }
        let login = if *role == config.roles.readonly {
            "NOLOGIN"
        } else {
            "LOGIN"
        };
        let password = config
            .role_credentials(role)
            .password
            .map_or_else(String::new, |password| {
                format!(" PASSWORD {}", literal(password.expose_secret()))
            });
        // Locks belong to one database and roles to the whole server: another installation may be faster.
        let create = format!(
            "DO $nimbus$ BEGIN
                 CREATE ROLE {} {login} NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOREPLICATION{password};
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
             END $nimbus$",
            quoted(role)
        );
        run_script(&mut tx, create)
            .await
            .map_err(|source| StoreError::Bootstrap {
                what: format!("the role {role} cannot be created"),
                source,
            })?;
    }
    tx.commit().await?;
    Ok(())
}

/// The database belongs to the owner role, and nobody else may make anything in it.
async fn claim_database(
    connection: &mut PgConnection,
    config: &StoreConfig,
) -> Result<(), StoreError> {
    let claimed: bool = sqlx::query_scalar(
        "SELECT has_database_privilege($1, current_database(), 'CREATE')
            AND NOT has_database_privilege($2, current_database(), 'TEMP')
            AND NOT has_schema_privilege($2, 'public', 'CREATE')
            AND has_database_privilege($2, current_database(), 'CONNECT')",
    )
    .bind(&config.roles.owner)
    .bind(&config.roles.app)
    .fetch_one(&mut *connection)
    .await?;
    if claimed {
        return Ok(());
    }
    let database = quoted(&config.address.database);
    let (owner, app, readonly) = (
        quoted(&config.roles.owner),
        quoted(&config.roles.app),
        quoted(&config.roles.readonly),
    );
    let mut tx = connection.begin().await?;
    lock(&mut tx, SETUP_LOCK).await?;
    let claim = format!(
        "REVOKE ALL ON DATABASE {database} FROM PUBLIC;
         GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {database} TO {owner};
         GRANT CONNECT ON DATABASE {database} TO {app}, {readonly};
         REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
    );
    run_script(&mut tx, claim)
        .await
        .map_err(|source| StoreError::Bootstrap {
            what: "the rights on the database cannot be set".to_owned(),
            source,
        })?;
    tx.commit().await?;
    Ok(())
}

/// Holds a lock until the transaction ends; other processes wait for it.
pub(crate) async fn lock(connection: &mut PgConnection, key: i64) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(key)
        .execute(connection)
        .await?;
    Ok(())
}

/// A name as SQL writes it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL writes it. No backslash is special: `standard_conforming_strings` is the default.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl crate::Store {
    /// Makes a database that begins as a copy of another one on the same server, which nobody uses at
    /// the time. Much faster than migrating a new one.
    pub async fn clone_database(config: &StoreConfig, template: &str) -> Result<(), StoreError> {
        let options = config.administrator_options().database("postgres");
        let mut connection = PgConnection::connect_with(&options).await?;
        let database = quoted(&config.address.database);
        let create = format!(
            "CREATE DATABASE {database} TEMPLATE {} STRATEGY file_copy",
            quoted(template)
        );
        run_script(&mut connection, create).await?;
        // Rights on a database are not part of what is copied.
        let mut copy = PgConnection::connect_with(&config.administrator_options()).await?;
        claim_database(&mut copy, config).await?;
        copy.close().await?;
        connection.close().await?;
        Ok(())
    }
}
