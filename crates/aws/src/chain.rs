//! Where credentials come from: the chain of AWS' own library, fed with our variables.
//!
//! The library knows keys in variables, profiles with keys, roles, processes and single sign-on, web
//! identities, and the metadata services of containers and instances. Two things are looked at here
//! before it is asked, because it would take the next source where somebody meant this one, and that
//! one may be another account: half of a pair of variables, and a profile that does not exist. For the
//! same reason credentials are refused that come from elsewhere than the profile that says where from.

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use aws_credential_types::credential_feature::AwsCredentialFeature;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_credential_types::provider::error::CredentialsError;
use aws_types::os_shim_internal::Env;
use jiff::Timestamp;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use crate::credentials::AwsCredentials;
use crate::error::AwsError;
use crate::http::PlainHttp;
use crate::settings::AwsSettings;

/// Asks whoever the settings name.
pub(super) async fn find(settings: &AwsSettings, region: &str) -> Result<AwsCredentials, AwsError> {
    refuse_halves(settings)?;
    let variables = settings.variables().for_chain();
    let pairs: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let config = aws_config::defaults(BehaviorVersion::latest())
        .env(Env::from_slice(&pairs))
        .http_client(PlainHttp)
        .region(Region::new(region.to_owned()))
        .load()
        .await;
    let provider = config
        .credentials_provider()
        .ok_or_else(|| none("the library has no provider"))?;
    // It logs what it returns besides, and at its finest level more than a log may have.
    let provided = provider.provide_credentials();
    match provided.with_subscriber(NoSubscriber::new()).await {
        Ok(credentials)
            if !is_of(&credentials, AwsCredentialFeature::CredentialsProfile)
                && profile_names_source(settings) =>
        {
            let problem = "its credentials cannot be had, and others would be taken instead";
            Err(profile_fails(settings, problem))
        }
        Ok(credentials) => Ok(keys(&credentials, settings)),
        Err(error) => Err(failure(&error, settings)),
    }
}

fn refuse_halves(settings: &AwsSettings) -> Result<(), AwsError> {
    let get = |name: &str| settings.variables().get(name);
    let pairs = [
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
    ];
    for (given, missing) in pairs {
        if get(given).is_some() && get(missing).is_none() {
            return Err(AwsError::Unusable {
                place: given.to_owned(),
                problem: format!("{missing} is not set"),
            });
        }
    }
    let asked_for = get("AWS_ACCESS_KEY_ID").is_none() && settings.names_profile();
    if asked_for && settings.profile().is_none() {
        return Err(AwsError::AwsProfile {
            profile: settings.profile_name().to_owned(),
            problem: "is in neither of the profile files".to_owned(),
        });
    }
    Ok(())
}

fn keys(credentials: &Credentials, settings: &AwsSettings) -> AwsCredentials {
    let mut keys = AwsCredentials::new(
        credentials.access_key_id(),
        credentials.secret_access_key(),
        credentials.session_token(),
        place(credentials, settings),
    );
    keys.expires = credentials
        .expiry()
        .and_then(|end| Timestamp::try_from(end).ok());
    keys
}

/// In words, for people.
fn place(credentials: &Credentials, settings: &AwsSettings) -> String {
    use AwsCredentialFeature as From;
    let came_by = |feature: From| is_of(credentials, feature);
    let profile = settings.profile_name();
    let of_profile = |key: &str| settings.profile().and_then(|profile| profile.get(key));
    let base = if came_by(From::CredentialsSso) {
        format!("single sign-on of profile {profile}")
    } else if came_by(From::CredentialsImds) {
        "the metadata service of this instance".to_owned()
    } else if came_by(From::CredentialsHttp) {
        "the credential service of this container".to_owned()
    } else if came_by(From::CredentialsProcess) {
        format!("the credential process of profile {profile}")
    } else if came_by(From::CredentialsProfileStsWebIdToken) {
        let role = of_profile("role_arn").or_else(|| settings.variables().get("AWS_ROLE_ARN"));
        return format!("web identity for {}", role.unwrap_or("a role"));
    } else if came_by(From::CredentialsEnvVars) {
        "the environment".to_owned()
    } else {
        format!("profile {profile}")
    };
    match of_profile("role_arn").filter(|_| came_by(From::CredentialsProfile)) {
        Some(role) => format!("{role} by way of {base}"),
        None => base,
    }
}

fn none(looked: &str) -> AwsError {
    AwsError::NoCredentials {
        looked: looked.to_owned(),
    }
}

fn failure(error: &CredentialsError, settings: &AwsSettings) -> AwsError {
    // Whoever set nothing up asked for no metadata service either: there may be none that answers, or one
    // that is not meant for them.
    let named = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    ];
    let given = |name: &&str| settings.variables().get(name).is_some();
    let set_up = named.iter().any(given) || settings.profile().is_some();
    if !set_up || matches!(error, CredentialsError::CredentialsNotLoaded(_)) {
        return none("not in the environment, not in a profile, and no metadata service has any");
    }
    let causes = nimbus_core::causes(error).map(ToString::to_string);
    let causes: Vec<String> = causes.collect();
    let problem = if causes.is_empty() {
        error.to_string()
    } else {
        causes.join(": ")
    };
    match profile_names_source(settings) {
        true => profile_fails(settings, &problem),
        false => AwsError::Unusable {
            place: "what gives AWS credentials".to_owned(),
            problem,
        },
    }
}

/// Whether the profile that counts says where its credentials come from.
fn profile_names_source(settings: &AwsSettings) -> bool {
    let sources = [
        "aws_access_key_id",
        "credential_process",
        "role_arn",
        "sso_session",
        "sso_start_url",
    ];
    let keys_are_given = settings.variables().get("AWS_ACCESS_KEY_ID").is_some();
    let profile = settings.profile().filter(|_| !keys_are_given);
    profile.is_some_and(|profile| sources.iter().any(|key| profile.get(key).is_some()))
}

fn profile_fails(settings: &AwsSettings, problem: &str) -> AwsError {
    AwsError::AwsProfile {
        profile: settings.profile_name().to_owned(),
        problem: format!("gives no credentials: {problem}"),
    }
}

fn is_of(credentials: &Credentials, feature: AwsCredentialFeature) -> bool {
    let features = credentials.get_property::<Vec<AwsCredentialFeature>>();
    features.is_some_and(|features| features.contains(&feature))
}
