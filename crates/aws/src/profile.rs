//! The profile files that every AWS tool shares.
//!
//! Two files of sections: in the credentials file a section is a profile, in the configuration file
//! it is `profile NAME` or `default`. What both say of a profile is one profile; the credentials
//! file wins.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AwsProfiles {
    profiles: BTreeMap<String, AwsProfile>,
}

#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct AwsProfile {
    settings: BTreeMap<String, String>,
}

impl std::fmt::Debug for AwsProfile {
    /// Names only: values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.settings.keys()).finish()
    }
}

impl AwsProfile {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }
}

impl AwsProfiles {
    pub(super) fn read(config: &str, credentials: &str) -> Self {
        let mut profiles = Self::default();
        profiles.add(config, |section| match section {
            "default" => Some("default"),
            other => other.strip_prefix("profile ").map(str::trim),
        });
        profiles.add(credentials, Some);
        profiles
    }

    pub(super) fn get(&self, name: &str) -> Option<&AwsProfile> {
        self.profiles.get(name)
    }

    fn add<'a>(&mut self, text: &'a str, name_of: impl Fn(&'a str) -> Option<&'a str>) {
        let mut current: Option<&'a str> = None;
        for line in text.lines() {
            let nested = line.starts_with([' ', '\t']);
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(section) = line.strip_prefix('[') {
                let section = section.split(']').next().unwrap_or_default().trim();
                current = name_of(section);
                if let Some(name) = current {
                    self.profiles.entry(name.to_owned()).or_default();
                }
                continue;
            }
            // Indented lines belong to the setting above them, and none of those is ours.
            if let (Some(name), Some((key, value)), false) = (current, line.split_once('='), nested)
            {
                let profile = self.profiles.entry(name.to_owned()).or_default();
                profile
                    .settings
                    .insert(key.trim().to_ascii_lowercase(), without_comment(value));
            }
        }
    }
}

/// A comment after a value starts with a blank and a sign.
fn without_comment(value: &str) -> String {
    let value = value.trim();
    let end = [" #", " ;", "\t#", "\t;"]
        .iter()
        .filter_map(|sign| value.find(sign))
        .min()
        .unwrap_or(value.len());
    value[..end].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_make_one_profile_and_credentials_win() {
        let profiles = AwsProfiles::read(
            "[default]\nregion = eu-west-1\n\n[profile shop]\n# a remark\nregion=us-east-2 ; near\n\
             aws_access_key_id = from-config\ns3 =\n  region = nested\n[sso-session x]\nregion = no\n",
            "[shop]\naws_access_key_id = from-credentials\nAWS_SECRET_ACCESS_KEY = a#b=c\n",
        );
        let shop = profiles.get("shop").unwrap();
        assert_eq!(shop.get("region"), Some("us-east-2"));
        assert_eq!(shop.get("aws_access_key_id"), Some("from-credentials"));
        assert_eq!(shop.get("aws_secret_access_key"), Some("a#b=c"));
        assert_eq!(
            profiles.get("default").unwrap().get("region"),
            Some("eu-west-1")
        );
        assert_eq!(profiles.get("sso-session x"), None);
        assert!(!format!("{shop:?}").contains("a#b=c"));
    }
}
