//! `nimbus user`: users, service accounts and their sessions.

use nimbus_core::Result;
use serde_json::json;

use super::AdminReport;
use super::server::{Connection, ServerArgs, read_password};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct UserArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(Debug, clap::Subcommand)]
enum UserCommand {
    /// List users and service accounts
    List,
    /// Make a user; the password is asked for
    Create {
        /// E-mail address
        email: String,
        /// Name for people
        #[arg(long)]
        name: Option<String>,
        /// Role to give at once
        #[arg(long)]
        role: Option<String>,
        /// Read the password from standard input instead of asking for it on the terminal
        #[arg(long)]
        password_stdin: bool,
    },
    /// Make a service account, which has keys instead of a password
    CreateService {
        /// Name
        name: String,
        /// Role to give at once
        #[arg(long)]
        role: Option<String>,
    },
    /// Set a user's password; all sessions of the user end
    Password {
        /// E-mail address or id
        user: String,
        /// Read the password from standard input instead of asking for it on the terminal
        #[arg(long)]
        password_stdin: bool,
    },
    /// Keep a user from signing in; all sessions of the user end
    Disable {
        /// E-mail address or id
        user: String,
    },
    /// Let a user sign in again
    Enable {
        /// E-mail address or id
        user: String,
    },
    /// Delete a user
    Delete {
        /// E-mail address or id
        user: String,
    },
    /// List the sessions of a user
    Sessions {
        /// E-mail address or id
        user: String,
    },
    /// End one session of a user
    EndSession {
        /// E-mail address or id
        user: String,
        /// Id, from `user sessions`
        session: String,
    },
    /// End all sessions of a user
    EndSessions {
        /// E-mail address or id
        user: String,
    },
}

const FIELDS: &[&str] = &[
    "email",
    "display_name",
    "kind",
    "id",
    "disabled",
    "last_login",
];

pub(crate) async fn run(args: UserArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let tenant = server.tenant().await?;
    let report = match args.command {
        UserCommand::List => AdminReport::list(
            server.client.list(&format!("{tenant}/users")).await?,
            &[
                "email",
                "display_name",
                "kind",
                "disabled",
                "last_login",
                "id",
            ],
        ),
        UserCommand::Create {
            email,
            name,
            role,
            password_stdin,
        } => {
            let password = read_password(&format!("New password of {email}: "), password_stdin)?;
            let body = json!({"email": email, "display_name": name.unwrap_or_default(), "password": password});
            create(&mut server, &tenant, &body, role).await?
        }
        UserCommand::CreateService { name, role } => {
            let body = json!({"email": name, "service_account": true});
            create(&mut server, &tenant, &body, role).await?
        }
        UserCommand::Password {
            user,
            password_stdin,
        } => {
            let password = read_password(&format!("New password of {user}: "), password_stdin)?;
            change(&mut server, &tenant, &user, json!({"password": password})).await?
        }
        UserCommand::Disable { user } => {
            change(&mut server, &tenant, &user, json!({"disabled": true})).await?
        }
        UserCommand::Enable { user } => {
            change(&mut server, &tenant, &user, json!({"disabled": false})).await?
        }
        UserCommand::Delete { user } => {
            let id = server.find_user(&tenant, &user).await?;
            server
                .client
                .delete(&format!("{tenant}/users/{id}"))
                .await?;
            AdminReport::done(json!({"deleted": id}), format!("deleted user {user}"))
        }
        UserCommand::Sessions { user } => {
            let id = server.find_user(&tenant, &user).await?;
            let sessions = server
                .client
                .list(&format!("{tenant}/users/{id}/sessions"))
                .await?;
            AdminReport::list(
                sessions,
                &["id", "ip_address", "user_agent", "created_at", "expires_at"],
            )
        }
        UserCommand::EndSession { user, session } => {
            let id = server.find_user(&tenant, &user).await?;
            let path = format!("{tenant}/users/{id}/sessions/{session}");
            server.client.delete(&path).await?;
            AdminReport::done(json!({"ended": session}), "the session ended")
        }
        UserCommand::EndSessions { user } => {
            let id = server.find_user(&tenant, &user).await?;
            let ended = server
                .client
                .delete(&format!("{tenant}/users/{id}/sessions"))
                .await?;
            let text = format!("ended {} sessions of {user}", ended["ended"]);
            AdminReport::done(ended, text)
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

async fn create(
    server: &mut Connection,
    tenant: &str,
    body: &serde_json::Value,
    role: Option<String>,
) -> Result<AdminReport> {
    let user = server.client.post(&format!("{tenant}/users"), body).await?;
    if let Some(role) = role {
        let assignment = json!({"role": role, "user_id": user["id"]});
        server
            .client
            .post(&format!("{tenant}/role-assignments"), &assignment)
            .await?;
    }
    Ok(AdminReport::item(user, FIELDS))
}

async fn change(
    server: &mut Connection,
    tenant: &str,
    user: &str,
    body: serde_json::Value,
) -> Result<AdminReport> {
    let id = server.find_user(tenant, user).await?;
    let changed = server
        .client
        .patch(&format!("{tenant}/users/{id}"), &body)
        .await?;
    Ok(AdminReport::item(changed, FIELDS))
}
