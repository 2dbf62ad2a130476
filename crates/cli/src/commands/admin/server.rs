//! Which server is meant, which tenant, and who asks.

use std::env;
use std::path::PathBuf;

use etcetera::BaseStrategy as _;
use nimbus_control_client::{Client, Profiles, RemoteDeployments, encoded};
use nimbus_core::{Error, ErrorCode, Result};
use serde_json::Value;

use crate::context::CommandContext;

/// Options of every command that asks a server.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ServerArgs {
    /// Profile of an earlier `login`; without it the one that was used last; also NIMBUS_PROFILE
    #[arg(long, value_name = "NAME", global = true)]
    profile: Option<String>,

    /// Tenant to work in: its id or its slug; without it the one that you signed in to
    #[arg(long, value_name = "TENANT", global = true)]
    tenant: Option<String>,
}

impl ServerArgs {
    /// An option that was given and means something only where a server is asked.
    pub(crate) fn given(&self) -> Option<&'static str> {
        match (&self.profile, &self.tenant) {
            (Some(_), _) => Some("--profile"),
            (None, Some(_)) => Some("--tenant"),
            (None, None) => None,
        }
    }

    fn profile_name(&self) -> Option<String> {
        let variable = || env::var("NIMBUS_PROFILE").ok();
        let name = self.profile.clone().or_else(variable);
        name.filter(|name| !name.is_empty())
    }
}

/// A server that knows who asks.
pub(crate) struct Connection {
    pub(super) client: Client,
    home: String,
    wanted: Option<String>,
}

impl Connection {
    /// The server that was named, with NIMBUS_TOKEN or the sign-in of a profile; else the profile's server.
    pub(crate) async fn open(args: &ServerArgs, context: &CommandContext) -> Result<Self> {
        let token = env::var("NIMBUS_TOKEN").ok().filter(|one| !one.is_empty());
        if let (Some(server), Some(token)) = (&context.server, token) {
            nimbus_telemetry::register_secret(&token);
            let mut client = Client::with_token(&server.url, token)?;
            let me = client.get("/api/v1/auth/me").await?;
            return Ok(Self {
                client,
                home: text(&me["tenant"], "id")?,
                wanted: args.tenant.clone(),
            });
        }
        let profiles = profiles()?;
        let named = args.profile_name();
        let (name, profile) = match &context.server {
            Some(server) => profiles.at_server(&server.url, named.as_deref())?,
            None => profiles.get(named.as_deref())?,
        };
        Ok(Self {
            client: Client::of_profile(&profiles, &name, &profile)?,
            home: profile.tenant_id,
            wanted: args.tenant.clone(),
        })
    }

    /// What the tenant that is meant has on the server.
    pub(crate) fn deployments(self) -> RemoteDeployments {
        RemoteDeployments::new(self.client, self.wanted)
    }

    /// A path whose query names the tenant, for resources that are found so.
    pub(super) fn path(&self, path: &str, query: &[(&str, &str)]) -> String {
        let tenant = self.wanted.iter().map(|tenant| ("tenant", tenant.as_str()));
        let parts: Vec<String> = query
            .iter()
            .copied()
            .chain(tenant)
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect();
        match parts.is_empty() {
            true => format!("/api/v1/{path}"),
            false => format!("/api/v1/{path}?{}", parts.join("&")),
        }
    }

    /// The path of the tenant that is meant, such as `/api/v1/tenants/<id>`.
    pub(super) async fn tenant(&mut self) -> Result<String> {
        let id = match self.wanted.clone() {
            None => self.home.clone(),
            Some(wanted) => self.find_tenant(&wanted).await?,
        };
        Ok(format!("/api/v1/tenants/{id}"))
    }

    /// The id of a tenant that was named by its id or its slug.
    pub(super) async fn find_tenant(&mut self, wanted: &str) -> Result<String> {
        self.find("/api/v1/tenants", wanted, "slug", "tenant").await
    }

    /// The id of a group that was named by id or name.
    pub(super) async fn find_group(&mut self, tenant: &str, wanted: &str) -> Result<String> {
        let path = format!("{tenant}/groups");
        self.find(&path, wanted, "name", "group").await
    }

    /// The id of a user that was named by id or address.
    pub(super) async fn find_user(&mut self, tenant: &str, wanted: &str) -> Result<String> {
        let path = format!("{tenant}/users");
        self.find(&path, wanted, "email", "user").await
    }

    /// The id of the one item that has this id or this name. The server looks it up, however long the list.
    pub(super) async fn find(
        &mut self,
        path: &str,
        wanted: &str,
        field: &str,
        kind: &str,
    ) -> Result<String> {
        if is_id(wanted) {
            return Ok(wanted.to_owned());
        }
        let found = self
            .client
            .list(&format!("{path}?{field}={}", encoded(wanted)))
            .await?;
        only(&found, wanted, field, kind)
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 36
        && text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

fn only(list: &Value, wanted: &str, field: &str, kind: &str) -> Result<String> {
    let items = list["items"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    match items {
        [one] => text(one, "id"),
        [] => Err(missing(kind, wanted)),
        _ => Err(Error::new(
            ErrorCode::INPUT_INVALID,
            format!("`{wanted}` is the {field} of more than one {kind}"),
        )
        .with_help("give its id")),
    }
}

fn missing(kind: &str, wanted: &str) -> Error {
    Error::new(
        ErrorCode::RESOURCE_NOT_FOUND,
        format!("there is no {kind} `{wanted}` that you may see"),
    )
}

/// A field that the server always sends.
pub(super) fn text(value: &Value, field: &str) -> Result<String> {
    value[field].as_str().map(str::to_owned).ok_or_else(|| {
        Error::new(
            ErrorCode::SERVER_ANSWER,
            format!("the server's answer has no `{field}`"),
        )
    })
}

/// The files in the user's configuration folder.
pub(super) fn profiles() -> Result<Profiles> {
    if let Some(folder) = env::var_os("NIMBUS_CONFIG_HOME") {
        return Ok(Profiles::in_folder(PathBuf::from(folder)));
    }
    let strategy = etcetera::choose_base_strategy().map_err(|error| {
        Error::new(
            ErrorCode::PROFILE_UNUSABLE,
            "there is no home folder to keep a sign-in in",
        )
        .with_source(error)
    })?;
    Ok(Profiles::in_folder(strategy.config_dir().join("nimbus")))
}

/// A password: from standard input when asked, otherwise from the terminal, without an echo.
pub(crate) fn read_password(question: &str, from_stdin: bool) -> Result<String> {
    let unreadable = |error: std::io::Error| {
        Error::new(
            ErrorCode::FILE_UNREADABLE,
            format!("the password cannot be read: {error}"),
        )
        .with_help("give it on standard input with --password-stdin")
    };
    let password = if from_stdin {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(unreadable)?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    } else {
        let terminal = console::Term::stderr();
        if !terminal.is_term() {
            let message = "there is no terminal to ask for the password on";
            return Err(Error::new(ErrorCode::USAGE, message)
                .with_help("give it on standard input with --password-stdin"));
        }
        terminal.write_str(question).map_err(unreadable)?;
        terminal.read_secure_line().map_err(unreadable)?
    };
    nimbus_telemetry::register_secret(&password);
    Ok(password)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_of_several_things_is_not_guessed() {
        let list = |items: Value| json!({ "items": items });
        let one = list(json!([{"id": "1"}]));
        assert_eq!(only(&one, "a", "slug", "tenant").unwrap(), "1");
        let two = list(json!([{"id": "1"}, {"id": "2"}]));
        assert!(only(&two, "a", "slug", "tenant").is_err());
        assert!(only(&list(json!([])), "a", "slug", "tenant").is_err());
    }
}
