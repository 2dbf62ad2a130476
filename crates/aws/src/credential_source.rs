//! Where credentials come from: deciding, without asking anybody.
//!
//! The order is that of every AWS tool: keys in variables, a web identity in variables, then the
//! profile. Metadata services of instances and containers are not asked.

use crate::credentials::AwsCredentials;
use crate::error::AwsError;
use crate::profile::{AwsProfile, AwsProfiles};
use crate::settings::AwsVariables;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum CredentialSource {
    Keys(AwsCredentials),
    /// A token in a file is exchanged for keys of a role.
    WebIdentity {
        role: String,
        session: String,
        token_file: String,
    },
    /// Keys are exchanged for keys of a role.
    Role {
        role: String,
        session: String,
        external_id: Option<String>,
        from: Box<CredentialSource>,
    },
    /// A program prints keys.
    Process {
        command: String,
    },
}

const SESSION: &str = "nimbus";

impl CredentialSource {
    /// In words, for people.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Keys(credentials) => credentials.place.clone(),
            Self::WebIdentity { role, .. } => format!("web identity for {role}"),
            Self::Role { role, from, .. } => format!("{role} by way of {}", from.describe()),
            Self::Process { .. } => "a credential process".to_owned(),
        }
    }
}

pub(super) fn profile_name(variables: &AwsVariables) -> &str {
    variables
        .get("AWS_PROFILE")
        .or_else(|| variables.get("AWS_DEFAULT_PROFILE"))
        .unwrap_or("default")
}

pub(super) fn find(
    variables: &AwsVariables,
    profiles: &AwsProfiles,
) -> Result<CredentialSource, AwsError> {
    let get = |name: &str| variables.get(name);
    match (get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")) {
        (Some(key), Some(secret)) => {
            let token = get("AWS_SESSION_TOKEN");
            return Ok(CredentialSource::Keys(AwsCredentials::fixed(
                key,
                secret,
                token,
                "the environment",
            )));
        }
        (Some(_), None) => return Err(lacks("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
        (None, Some(_)) => return Err(lacks("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID")),
        (None, None) => {}
    }
    if let Some(token_file) = get("AWS_WEB_IDENTITY_TOKEN_FILE") {
        let role = get("AWS_ROLE_ARN")
            .ok_or_else(|| lacks("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"))?;
        return Ok(CredentialSource::WebIdentity {
            role: role.to_owned(),
            session: get("AWS_ROLE_SESSION_NAME").unwrap_or(SESSION).to_owned(),
            token_file: token_file.to_owned(),
        });
    }
    let name = profile_name(variables);
    if name == "default" && profiles.get(name).is_none() {
        return Err(AwsError::NoCredentials {
            looked: "none in the environment, and no default profile".to_owned(),
        });
    }
    of_profile(name, profiles, &mut Vec::new())
}

fn lacks(given: &str, missing: &str) -> AwsError {
    AwsError::Unusable {
        place: given.to_owned(),
        problem: format!("{missing} is not set"),
    }
}

/// `seen` are the profiles that led here.
fn of_profile(
    name: &str,
    profiles: &AwsProfiles,
    seen: &mut Vec<String>,
) -> Result<CredentialSource, AwsError> {
    let problem = |problem: &str| AwsError::AwsProfile {
        profile: name.to_owned(),
        problem: problem.to_owned(),
    };
    let profile = profiles
        .get(name)
        .ok_or_else(|| problem("is in neither of the profile files"))?;
    // A profile may name itself: its own keys take its own role.
    let again = seen.iter().any(|seen| seen == name);
    seen.push(name.to_owned());
    match profile.get("role_arn").filter(|_| !again) {
        Some(role) => by_role(role, profile, profiles, seen, problem),
        None => by_itself(name, profile, problem),
    }
}

fn by_role(
    role: &str,
    profile: &AwsProfile,
    profiles: &AwsProfiles,
    seen: &mut Vec<String>,
    problem: impl Fn(&str) -> AwsError,
) -> Result<CredentialSource, AwsError> {
    let session = profile.get("role_session_name").unwrap_or(SESSION);
    let (role, session) = (role.to_owned(), session.to_owned());
    if let Some(token_file) = profile.get("web_identity_token_file") {
        return Ok(CredentialSource::WebIdentity {
            role,
            session,
            token_file: token_file.to_owned(),
        });
    }
    let source = profile
        .get("source_profile")
        .ok_or_else(|| problem("has a role_arn but no source_profile"))?;
    let external_id = profile.get("external_id").map(str::to_owned);
    Ok(CredentialSource::Role {
        role,
        session,
        external_id,
        from: Box::new(of_profile(source, profiles, seen)?),
    })
}

fn by_itself(
    name: &str,
    profile: &AwsProfile,
    problem: impl Fn(&str) -> AwsError,
) -> Result<CredentialSource, AwsError> {
    match (
        profile.get("aws_access_key_id"),
        profile.get("aws_secret_access_key"),
    ) {
        (Some(key), Some(secret)) => Ok(CredentialSource::Keys(AwsCredentials::fixed(
            key,
            secret,
            profile.get("aws_session_token"),
            &format!("profile {name}"),
        ))),
        (None, None) => match profile.get("credential_process") {
            Some(command) => Ok(CredentialSource::Process {
                command: command.to_owned(),
            }),
            None if profile.get("sso_session").is_some()
                || profile.get("sso_start_url").is_some() =>
            {
                Err(problem(
                    "uses single sign-on; export its keys first: aws configure export-credentials --format env",
                ))
            }
            None => Err(problem("has no keys")),
        },
        _ => Err(problem("has one half of a key only")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)], config: &str) -> Result<String, AwsError> {
        let profiles = AwsProfiles::read(
            config,
            "[default]\naws_access_key_id=A\naws_secret_access_key=B\n",
        );
        find(&AwsVariables::fixed(variables.iter().copied()), &profiles)
            .map(|source| source.describe())
    }

    #[test]
    fn keys_in_the_environment_come_before_everything() {
        let keys = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let web = [
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "f"),
            ("AWS_ROLE_ARN", "arn:r"),
        ];
        assert_eq!(found(&[keys, web].concat(), "").unwrap(), "the environment");
        assert_eq!(found(&web, "").unwrap(), "web identity for arn:r");
        assert_eq!(found(&[], "").unwrap(), "profile default");
    }

    #[test]
    fn half_of_a_setting_is_refused_instead_of_taking_the_next_source() {
        for (variables, missing) in [
            ([("AWS_ACCESS_KEY_ID", "k")], "AWS_SECRET_ACCESS_KEY"),
            ([("AWS_SECRET_ACCESS_KEY", "s")], "AWS_ACCESS_KEY_ID"),
            ([("AWS_WEB_IDENTITY_TOKEN_FILE", "f")], "AWS_ROLE_ARN"),
        ] {
            let error = found(&variables, "").unwrap_err().to_string();
            assert!(error.contains(missing), "{error}");
        }
    }

    #[test]
    fn roles_are_taken_from_other_profiles_or_a_token() {
        let config = "[profile a]\nrole_arn=arn:a\nsource_profile=b\n\
                      [profile b]\nrole_arn=arn:b\nsource_profile=default\n\
                      [profile w]\nrole_arn=arn:w\nweb_identity_token_file=/t\n\
                      [profile p]\ncredential_process=vend\n";
        let of = |name| found(&[("AWS_PROFILE", name)], config).unwrap();
        assert_eq!(of("a"), "arn:a by way of arn:b by way of profile default");
        assert_eq!(of("w"), "web identity for arn:w");
        assert_eq!(of("p"), "a credential process");
    }

    #[test]
    fn profiles_that_cannot_work_say_why() {
        let config = "[profile loop]\nrole_arn=arn:a\nsource_profile=loop\n\
                      [profile sso]\nsso_start_url=https://x\n\
                      [profile role]\nrole_arn=arn:r\n\
                      [profile half]\naws_access_key_id=k\n";
        for (name, text) in [
            ("loop", "has no keys"),
            ("sso", "export-credentials"),
            ("role", "source_profile"),
            ("half", "one half"),
            ("nope", "neither of the profile files"),
        ] {
            let error = found(&[("AWS_PROFILE", name)], config)
                .unwrap_err()
                .to_string();
            assert!(error.contains(text) && error.contains(name), "{error}");
        }
        let none = find(&AwsVariables::default(), &AwsProfiles::default()).unwrap_err();
        assert!(matches!(none, AwsError::NoCredentials { .. }));
    }
}
