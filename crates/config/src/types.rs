//! The types of settings that are more than a text, a number or a switch.

use std::fmt;
use std::path::PathBuf;

use nimbus_document::did_you_mean;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::value::SettingValue;

/// A setting with a few words to choose from; upper and lower case are the same.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            pub const WORDS: &[&str] = &[$($word),*];

            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl SettingValue for $name {
            fn parse(text: &str) -> Result<Self, String> {
                $(if text.eq_ignore_ascii_case($word) { return Ok(Self::$variant); })*
                let help = did_you_mean(text, Self::WORDS.iter().copied());
                Err(help.unwrap_or_default())
            }

            fn show(&self) -> serde_json::Value {
                self.word().into()
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "enum": Self::WORDS })
            }
        }
    )*};
}

choices! {
    LogLevel {
        Error = "ERROR",
        Warn = "WARN",
        Info = "INFO",
        Debug = "DEBUG",
        Trace = "TRACE",
    }

    LogFormat {
        /// One JSON object per line.
        Json = "json",
        /// For people.
        Plain = "plain",
    }

    /// Who runs durable workflows.
    FlowEngine {
        /// The server, in its database.
        Embedded = "embedded",
        Temporal = "temporal",
    }
    /// How tenants are kept apart. There is no weaker choice on purpose.
    Isolation {
        /// A schema per tenant and row-level security.
        SchemaWithRls = "schema_with_rls",
        /// One schema with the same row-level security, for very many tenants.
        Shared = "shared",
    }

    /// How the way to the mail relay is protected.
    MailProtection {
        /// Begins in the clear and goes on encrypted, or not at all.
        StartTls = "starttls",
        /// From the first byte.
        Tls = "tls",
        /// Never.
        None = "none",
    }

    /// Whether programs run in a sandbox.
    SandboxMode {
        /// As their user, among everything else.
        Off = "off",
        /// With whatever isolation the machine offers.
        BestEffort = "best-effort",
        /// With complete isolation, or not at all.
        Strict = "strict",
    }

    /// What programs in a sandbox can reach.
    SandboxNetwork {
        /// Nothing.
        None = "none",
        /// Whatever the machine can reach.
        Full = "full",
    }

    /// When plugins that a program needs are installed without being asked for.
    PluginInstallation {
        /// `nimbus plugin install` installs them.
        Never = "never",
        /// When somebody is at a terminal who sees it.
        Terminal = "terminal",
        /// Also in scripts.
        Always = "always",
    }
}

/// A value that is never shown.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl SettingValue for Secret {
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.into()))
    }

    fn show(&self) -> serde_json::Value {
        "[secret]".into()
    }

    fn expose(&self) -> Option<&str> {
        Some(self.expose())
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "writeOnly": true })
    }
}

/// The address of a service, with a scheme and a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    pub fn url(&self) -> &Url {
        &self.0
    }
}

impl SettingValue for Endpoint {
    fn parse(text: &str) -> Result<Self, String> {
        let wanted = "write an address such as http://localhost:9000";
        match Url::parse(text) {
            Ok(url) if url.has_host() => Ok(Self(url)),
            Ok(_) => Err(wanted.into()),
            Err(error) => Err(format!("{error}; {wanted}")),
        }
    }

    /// A password inside an address is a secret too.
    fn show(&self) -> serde_json::Value {
        if self.0.password().is_none() {
            return self.0.as_str().into();
        }
        let mut shown = self.0.clone();
        // Fails only for addresses without a host, which `parse` refuses.
        let _ = shown.set_password(Some("secret"));
        shown.as_str().into()
    }

    fn expose(&self) -> Option<&str> {
        self.0.password()
    }
}

impl JsonSchema for Endpoint {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Endpoint".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uri" })
    }
}

/// So many requests per period, written `100/minute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub requests: u32,
    pub period: RatePeriod,
}

choices! {
    RatePeriod {
        Second = "second",
        Minute = "minute",
        Hour = "hour",
        Day = "day",
    }
}

impl SettingValue for Rate {
    fn parse(text: &str) -> Result<Self, String> {
        let wanted = || "write a number and second, minute, hour or day, such as 100/minute";
        let (requests, period) = text.split_once('/').ok_or_else(wanted)?;
        let requests = u32::parse(requests.trim()).map_err(|_| wanted())?;
        let period = RatePeriod::parse(period.trim()).map_err(|_| wanted())?;
        Ok(Self { requests, period })
    }

    fn show(&self) -> serde_json::Value {
        format!("{}/{}", self.requests, self.period.word()).into()
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rate".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[1-9][0-9]*/(second|minute|hour|day)$" })
    }
}

/// Names with commas between them, or the word `none`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameList(Vec<String>);

impl NameList {
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

impl SettingValue for NameList {
    fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str = "write names with commas between them, or `none`";
        if text.trim() == "none" {
            return Ok(Self(Vec::new()));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name = |name: &str| {
            let name = name.trim();
            let valid = !name.is_empty() && name.chars().all(allowed);
            valid.then(|| name.to_owned())
        };
        let names: Option<Vec<_>> = text.split(',').map(name).collect();
        names.map(Self).ok_or_else(|| WANTED.to_owned())
    }

    fn show(&self) -> serde_json::Value {
        if self.0.is_empty() {
            return "none".into();
        }
        self.0.join(",").into()
    }
}

impl JsonSchema for NameList {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NameList".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^\\s*[\\w-]+\\s*(,\\s*[\\w-]+\\s*)*$" })
    }
}

/// Addresses of services, with spaces between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressList(Vec<String>);

impl AddressList {
    pub fn addresses(&self) -> &[String] {
        &self.0
    }
}

impl SettingValue for AddressList {
    fn parse(text: &str) -> Result<Self, String> {
        let addresses: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let valid = |address: &String| {
            let scheme = address.split_once("://").map(|(scheme, _)| scheme);
            scheme.is_some_and(|scheme| !scheme.is_empty())
        };
        match !addresses.is_empty() && addresses.iter().all(valid) {
            true => Ok(Self(addresses)),
            false => {
                Err("write addresses such as awskms://alias/name, with spaces between".to_owned())
            }
        }
    }

    fn show(&self) -> serde_json::Value {
        self.0.join(" ").into()
    }
}

impl JsonSchema for AddressList {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AddressList".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^\\s*\\S+://\\S+(\\s+\\S+://\\S+)*\\s*$" })
    }
}

/// Folders of this machine, with colons between them as in `PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders(Vec<PathBuf>);

impl Folders {
    pub fn paths(&self) -> &[PathBuf] {
        &self.0
    }
}

impl SettingValue for Folders {
    fn parse(text: &str) -> Result<Self, String> {
        let folders: Vec<PathBuf> = text.split(':').map(str::trim).map(PathBuf::from).collect();
        match folders.iter().all(|folder| folder.is_absolute()) {
            true => Ok(Self(folders)),
            false => Err("write absolute paths of folders with `:` between them".to_owned()),
        }
    }

    fn show(&self) -> serde_json::Value {
        let folders = self.0.iter().map(|folder| folder.display().to_string());
        folders.collect::<Vec<_>>().join(":").into()
    }
}

impl JsonSchema for Folders {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Folders".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^/[^:]*(:/[^:]*)*$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_absolute() {
        let folders = Folders::parse("/srv/a:/srv/b").expect("two folders");
        assert_eq!(folders.paths().len(), 2);
        assert_eq!(folders.show(), "/srv/a:/srv/b");
        for text in ["", "a", "/a:", "/a:b", "~/x"] {
            assert!(Folders::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_name_a_number_and_a_period() {
        let rate = Rate {
            requests: 100,
            period: RatePeriod::Minute,
        };
        assert_eq!(Rate::parse("100/minute"), Ok(rate));
        assert_eq!(rate.show(), "100/minute");
        for text in [
            "",
            "100",
            "/minute",
            "0/minute",
            "-1/minute",
            "100/week",
            "1.5/hour",
        ] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn packages_are_names_with_commas_between_them_or_none() {
        let packages = NameList::parse(" aws, azure-native ,gcp").unwrap();
        assert_eq!(packages.names(), ["aws", "azure-native", "gcp"]);
        assert_eq!(packages.show(), "aws,azure-native,gcp");
        let none = NameList::parse("none").unwrap();
        assert!(none.names().is_empty());
        assert_eq!(none.show(), "none");
        for text in ["", "aws,", "aws gcp", "aws;gcp"] {
            assert!(NameList::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        let endpoint = Endpoint::parse("valkey://u:hunter2@cache:6379/0").unwrap();
        assert!(!endpoint.show().to_string().contains("hunter2"));
        assert_eq!(SettingValue::expose(&endpoint), Some("hunter2"));
        assert!(Endpoint::parse("localhost:9000").is_err());
        assert!(Endpoint::parse("data:text").is_err());
    }

    #[test]
    fn choices_ignore_case_and_suggest() {
        assert_eq!(LogLevel::parse("info"), Ok(LogLevel::Info));
        assert_eq!(LogLevel::parse("INFOO"), Err("did you mean `INFO`?".into()));
        assert_eq!(
            Isolation::parse("none"),
            Err("valid ones are `schema_with_rls`, `shared`".into())
        );
    }
}
