//! Rules that send downloads elsewhere: `PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES`.
//!
//! `pattern=address,pattern=address`: the first pattern that matches a source's address replaces
//! it. `$0`, `$1` and `${name}` in the new address stand for what the pattern matched.

use regex::Regex;

use crate::error::InstallError;
use crate::source::DownloadSource;

#[derive(Clone, Debug, Default)]
pub struct Overrides(Vec<(Regex, String)>);

impl Overrides {
    pub const VARIABLE: &str = "PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES";

    pub fn parse(text: &str) -> Result<Self, InstallError> {
        let malformed = || InstallError::Malformed {
            text: text.to_owned(),
            expected: "a list of pattern=address for PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES",
        };
        if text.is_empty() {
            return Ok(Self::default());
        }
        let rule = |pair: &str| {
            let (pattern, address) = pair.split_once('=')?;
            let complete = !pattern.is_empty() && !address.is_empty() && !address.contains('=');
            let pattern = Regex::new(pattern).ok().filter(|_| complete)?;
            Some((pattern, address.to_owned()))
        };
        let rules = text.split(',').map(rule).collect::<Option<Vec<_>>>();
        rules.map(Self).ok_or_else(malformed)
    }

    /// Whether a rule says this host in so many words, and not by way of what a pattern matched.
    pub(crate) fn leads_to(&self, source: &DownloadSource) -> bool {
        let (DownloadSource::Github { host, .. } | DownloadSource::Gitlab { host, .. }) = source
        else {
            return false;
        };
        let said = |address: &String| {
            let rest = address.split_once("://").map_or("", |(_, rest)| rest);
            rest.split('/').next() == Some(host)
        };
        self.0.iter().any(|(_, address)| said(address))
    }

    /// Where to go instead.
    pub(crate) fn find(&self, address: &str) -> Option<String> {
        self.0.iter().find_map(|(pattern, replacement)| {
            let found = pattern.captures(address)?;
            let mut result = replacement.clone();
            for (number, name) in pattern.capture_names().enumerate() {
                let matched = found.get(number).map_or("", |part| part.as_str());
                result = result.replace(&format!("${number}"), matched);
                if let Some(name) = name {
                    result = result.replace(&format!("${{{name}}}"), matched);
                }
            }
            Some(result)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_match_replaces_the_address() {
        let text = "^github://api.github.com/(?P<org>[^/]+)/(.+)$=https://mirror/${org}/$2,.*=https://rest";
        let overrides = Overrides::parse(text).expect("rules");
        let found = overrides.find("github://api.github.com/pulumi/pulumi-aws");
        assert_eq!(found.as_deref(), Some("https://mirror/pulumi/pulumi-aws"));
        assert_eq!(overrides.find("https://x").as_deref(), Some("https://rest"));
        assert_eq!(Overrides::default().find("https://x"), None);
    }

    #[test]
    fn rules_that_are_none_are_refused() {
        for text in ["a", "a=", "=b", "a=b,", "(=b", "a=b=c"] {
            assert!(Overrides::parse(text).is_err(), "{text}");
        }
        assert!(Overrides::parse("").is_ok());
    }
}
