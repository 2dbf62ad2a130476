//! How this machine is set up for AWS: variables and profile files, as every AWS tool reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use url::Url;

use crate::error::AwsError;
use crate::profile::{AwsProfile, AwsProfiles};
use crate::transport::AwsService;

/// Variables of an environment: the process's own, or fixed ones.
#[derive(Clone, Default)]
pub struct AwsVariables {
    variables: BTreeMap<String, String>,
    /// Whether the metadata services around this process are meant too.
    with_metadata: bool,
}

impl AwsVariables {
    /// Those of this process that can matter here.
    pub fn process() -> Self {
        let ours = |name: &str| name.starts_with("AWS_") || name == "HOME" || name == "USERPROFILE";
        Self {
            variables: std::env::vars().filter(|(name, _)| ours(name)).collect(),
            with_metadata: true,
        }
    }

    /// These and nothing else. Metadata services are not asked: whoever runs this process may be
    /// somebody else than whoever the variables belong to.
    pub fn fixed<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self {
            variables: variables.into_iter().map(own).collect(),
            with_metadata: false,
        }
    }

    /// These, and the metadata services around this process.
    pub fn with_metadata(self) -> Self {
        Self {
            with_metadata: true,
            ..self
        }
    }

    /// A variable without a value counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// As the credential chain is to see them.
    pub(super) fn for_chain(&self) -> BTreeMap<String, String> {
        let mut variables = self.variables.clone();
        variables.retain(|_, value| !value.is_empty());
        // An old name of the same thing, which the library does not know.
        if let Some(profile) = variables.remove("AWS_DEFAULT_PROFILE") {
            variables.entry("AWS_PROFILE".to_owned()).or_insert(profile);
        }
        if !self.with_metadata {
            variables.insert("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned());
            variables.retain(|name, _| !name.starts_with("AWS_CONTAINER_"));
        }
        variables
    }
}

/// Everything that decides who asks, and whom.
#[derive(Clone)]
pub struct AwsSettings {
    variables: AwsVariables,
    profiles: AwsProfiles,
}

impl AwsSettings {
    /// Reads the profile files. One that does not exist is empty; one that cannot be read is an
    /// error, because ignoring it could mean asking another account.
    pub fn load(variables: AwsVariables) -> Result<Self, AwsError> {
        let home = variables
            .get("HOME")
            .or_else(|| variables.get("USERPROFILE"))
            .map(PathBuf::from);
        let file = |variable: &str, name: &str| {
            let given = variables.get(variable).map(PathBuf::from);
            given.or_else(|| home.as_ref().map(|home| home.join(".aws").join(name)))
        };
        let config = read(file("AWS_CONFIG_FILE", "config"))?;
        let credentials = read(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"))?;
        Ok(Self {
            profiles: AwsProfiles::read(&config, &credentials),
            variables,
        })
    }

    /// The region that is set, if any.
    pub(super) fn region(&self) -> Option<String> {
        let variables = ["AWS_REGION", "AWS_DEFAULT_REGION"];
        let given = variables.iter().find_map(|name| self.variables.get(name));
        given
            .or_else(|| self.profile()?.get("region"))
            .map(str::to_owned)
    }

    pub(super) fn variables(&self) -> &AwsVariables {
        &self.variables
    }

    /// Whether somebody chose a profile.
    pub(super) fn names_profile(&self) -> bool {
        self.chosen_profile().is_some()
    }

    pub(super) fn profile_name(&self) -> &str {
        self.chosen_profile().unwrap_or("default")
    }

    fn chosen_profile(&self) -> Option<&str> {
        let variables = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"];
        variables.iter().find_map(|name| self.variables.get(name))
    }

    /// The profile that counts, if there is one.
    pub(super) fn profile(&self) -> Option<&AwsProfile> {
        self.profiles.get(self.profile_name())
    }

    /// Where a service is asked: an endpoint that somebody set, else AWS itself.
    pub(super) fn endpoint(&self, service: AwsService, region: &str) -> Result<Url, AwsError> {
        let unusable = |place: String, problem: &dyn std::fmt::Display| AwsError::Unusable {
            place,
            problem: problem.to_string(),
        };
        if let Some((place, text)) = self.given_endpoint(service) {
            let url: Url = text
                .parse()
                .map_err(|error: url::ParseError| unusable(place.clone(), &error))?;
            return match url.host_str() {
                Some(_) if matches!(url.scheme(), "http" | "https") => Ok(url),
                _ => Err(unusable(place, &"it is not an http or https address")),
            };
        }
        // A region becomes part of a host name, so it must look like one.
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if region.is_empty() || !region.chars().all(plain) {
            return Err(unusable(
                format!("the region `{region}`"),
                &"it is not the name of a region",
            ));
        }
        let domain = if region.starts_with("cn-") {
            "amazonaws.com.cn"
        } else {
            "amazonaws.com"
        };
        let text = format!("https://{}.{region}.{domain}/", service.name());
        text.parse()
            .map_err(|error: url::ParseError| unusable(format!("the region `{region}`"), &error))
    }

    fn given_endpoint(&self, service: AwsService) -> Option<(String, &str)> {
        let ignored = self.variables.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
        if ignored.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        let own = format!("AWS_ENDPOINT_URL_{}", service.variable());
        for name in [own.as_str(), "AWS_ENDPOINT_URL"] {
            if let Some(text) = self.variables.get(name) {
                return Some((name.to_owned(), text));
            }
        }
        let text = self.profile()?.get("endpoint_url")?;
        Some(("endpoint_url of the AWS profile".to_owned(), text))
    }

    /// How often a request is sent before it counts as failed.
    pub(super) fn attempts(&self) -> u32 {
        let given = self.variables.get("AWS_MAX_ATTEMPTS");
        given
            .and_then(|text| text.parse().ok())
            .unwrap_or(4)
            .clamp(1, 20)
    }
}

fn read(path: Option<PathBuf>) -> Result<String, AwsError> {
    let Some(path) = path else {
        return Ok(String::new());
    };
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(AwsError::Unusable {
            place: path.display().to_string(),
            problem: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)], config: &str) -> AwsSettings {
        AwsSettings {
            variables: AwsVariables::fixed(variables.iter().copied()),
            profiles: AwsProfiles::read(config, ""),
        }
    }

    fn endpoint(variables: &[(&str, &str)], region: &str) -> Result<String, AwsError> {
        let config = "[default]\nendpoint_url = http://profile:1\n";
        settings(variables, config)
            .endpoint(AwsService::SecretsManager, region)
            .map(|url| url.to_string())
    }

    #[test]
    fn the_nearest_endpoint_wins() {
        let general = ("AWS_ENDPOINT_URL", "http://general:1");
        let own = ("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://own:1");
        assert_eq!(endpoint(&[general, own], "x").unwrap(), "http://own:1/");
        assert_eq!(endpoint(&[general], "x").unwrap(), "http://general:1/");
        assert_eq!(endpoint(&[], "x").unwrap(), "http://profile:1/");
        let ignored = ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
        assert_eq!(
            endpoint(&[general, ignored], "eu-west-1").unwrap(),
            "https://secretsmanager.eu-west-1.amazonaws.com/"
        );
        assert_eq!(
            endpoint(&[ignored], "cn-north-1").unwrap(),
            "https://secretsmanager.cn-north-1.amazonaws.com.cn/"
        );
    }

    #[test]
    fn bad_endpoints_and_regions_are_refused_with_their_place() {
        let error = endpoint(&[("AWS_ENDPOINT_URL", "nowhere")], "x").unwrap_err();
        assert!(
            error.to_string().starts_with("AWS_ENDPOINT_URL "),
            "{error}"
        );
        let ignored = ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
        for region in ["", "evil.example/", "a@b"] {
            assert!(endpoint(&[ignored], region).is_err(), "{region}");
        }
    }

    #[test]
    fn the_region_comes_from_variables_before_the_profile() {
        let config = "[default]\nregion = eu-west-1\n[profile shop]\nregion = us-east-2\n";
        let region = |variables: &[(&str, &str)]| settings(variables, config).region();
        assert_eq!(region(&[]).as_deref(), Some("eu-west-1"));
        assert_eq!(
            region(&[("AWS_PROFILE", "shop")]).as_deref(),
            Some("us-east-2")
        );
        let both = [("AWS_REGION", "a"), ("AWS_DEFAULT_REGION", "b")];
        assert_eq!(region(&both).as_deref(), Some("a"));
    }
}
