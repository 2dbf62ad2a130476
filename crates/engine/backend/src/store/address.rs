//! Where a backend is: `file:///dir`, a plain path, or `s3://bucket/prefix?…`.
//!
//! The same addresses work with the official command line, query parameters included.

use std::fmt;
use std::path::{Path, PathBuf};

use url::Url;

use super::StorageError;
use crate::environment::EnvironmentVariables;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageAddress {
    Local(PathBuf),
    S3(S3Address),
    /// The storage that the environment brings along.
    Given,
}

/// The address of the storage that an environment brings along.
pub const GIVEN: &str = "given://";

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct S3Address {
    pub bucket: String,
    /// Without slashes at either end; empty for the bucket's root.
    pub prefix: String,
    pub region: Option<String>,
    /// With its scheme.
    pub endpoint: Option<String>,
    pub profile: Option<String>,
    /// `endpoint/bucket/key` instead of `bucket.endpoint/key`; `None` decides by the endpoint.
    pub path_style: Option<bool>,
    pub kms_key: Option<String>,
}

/// Parameters that change nothing here: they steer the Go client.
const WITHOUT_MEANING: [&str; 5] = [
    "awssdk",
    "hostname_immutable",
    "rate_limiter_capacity",
    "request_checksum_calculation",
    "response_checksum_validation",
];

impl StorageAddress {
    /// Reads an address. `directory` is what relative paths are relative to.
    pub fn parse(
        text: &str,
        directory: &Path,
        environment: &EnvironmentVariables,
    ) -> Result<Self, StorageError> {
        match text.split_once("://") {
            None => local(text, text, directory, environment),
            Some(("file", rest)) => {
                let path = rest.split(['?', '#']).next().unwrap_or(rest);
                let path =
                    percent_decoded(path).ok_or_else(|| wrong(text, "a %-escape is broken"))?;
                local(text, &path, directory, environment)
            }
            Some(("s3", _)) => s3(text).map(Self::S3),
            Some(("given", "")) if environment.storage().is_some() => Ok(Self::Given),
            Some((scheme, _)) => Err(StorageError::Unsupported {
                scheme: format!("{scheme}://"),
            }),
        }
    }
}

/// Never shows credentials: an address has none.
impl fmt::Display for StorageAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => write!(f, "file://{}", path.display()),
            Self::S3(s3) if s3.prefix.is_empty() => write!(f, "s3://{}", s3.bucket),
            Self::S3(s3) => write!(f, "s3://{}/{}", s3.bucket, s3.prefix),
            Self::Given => f.write_str(GIVEN),
        }
    }
}

fn local(
    text: &str,
    path: &str,
    directory: &Path,
    environment: &EnvironmentVariables,
) -> Result<StorageAddress, StorageError> {
    if path.is_empty() {
        return Err(wrong(text, "it names no folder"));
    }
    if path.contains('\0') {
        return Err(wrong(text, "a path cannot contain NUL"));
    }
    let path = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = environment
                .non_empty("HOME")
                .map(PathBuf::from)
                .or_else(|| etcetera::home_dir().ok())
                .ok_or_else(|| wrong(text, "this user has no home folder"))?;
            home.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(path),
    };
    Ok(StorageAddress::Local(normalised(&directory.join(path))))
}

/// Without `.`, doubled slashes and a slash at the end. `..` stays: only the file system knows
/// what it means behind a link.
fn normalised(path: &Path) -> PathBuf {
    path.components().collect()
}

fn s3(text: &str) -> Result<S3Address, StorageError> {
    let url = Url::parse(text).map_err(|error| wrong(text, &error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        let reason = "credentials do not belong in an address; set AWS_ACCESS_KEY_ID and \
                      AWS_SECRET_ACCESS_KEY";
        return Err(wrong(&without_credentials(&url), reason));
    }
    let prefix = percent_decoded(url.path().trim_matches('/'))
        .ok_or_else(|| wrong(text, "a %-escape is broken"))?;
    let mut address = S3Address {
        bucket: url.host_str().unwrap_or_default().to_owned(),
        prefix,
        ..S3Address::default()
    };
    if address.bucket.is_empty() {
        return Err(wrong(text, "it names no bucket"));
    }
    let mut plain_http = false;
    for (name, value) in url.query_pairs() {
        let flag = || match &*value {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(wrong(text, &format!("`{name}` must be true or false"))),
        };
        match &*name {
            "region" => address.region = Some(value.into_owned()),
            "endpoint" => address.endpoint = Some(value.into_owned()),
            "profile" => address.profile = Some(value.into_owned()),
            "s3ForcePathStyle" | "use_path_style" => address.path_style = Some(flag()?),
            "disableSSL" | "disable_https" => plain_http = flag()?,
            "kmskeyid" => address.kms_key = Some(value.into_owned()),
            "ssetype" if value == "aws:kms" => {}
            known if WITHOUT_MEANING.contains(&known) => {}
            unknown => return Err(wrong(text, &format!("`{unknown}` is not supported"))),
        }
    }
    address.endpoint = address
        .endpoint
        .map(|endpoint| with_scheme(endpoint, plain_http));
    Ok(address)
}

fn with_scheme(endpoint: String, plain_http: bool) -> String {
    if endpoint.contains("://") {
        endpoint
    } else if plain_http {
        format!("http://{endpoint}")
    } else {
        format!("https://{endpoint}")
    }
}

fn without_credentials(url: &Url) -> String {
    let mut shown = url.clone();
    // Fails only for addresses that cannot have credentials.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.into()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

fn wrong(address: &str, reason: &str) -> StorageError {
    StorageError::Address {
        address: address.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<StorageAddress, StorageError> {
        let environment = EnvironmentVariables::fixed([("HOME", "/home/ada")]);
        StorageAddress::parse(text, Path::new("/current"), &environment)
    }

    fn parse_s3(text: &str) -> S3Address {
        match parse(text).unwrap() {
            StorageAddress::S3(address) => address,
            StorageAddress::Local(path) => panic!("{path:?}"),
            StorageAddress::Given => panic!("given by somebody"),
        }
    }

    #[test]
    fn folders_are_written_in_many_ways() {
        for (text, path) in [
            ("file:///var/state", "/var/state"),
            ("file:///var/state/?no_tmp_dir=true", "/var/state"),
            ("file:///with%20space", "/with space"),
            ("file://~", "/home/ada"),
            ("file://~/state", "/home/ada/state"),
            ("file://.", "/current"),
            ("file://./state", "/current/state"),
            ("/var//state", "/var/state"),
            ("state", "/current/state"),
            ("~/state", "/home/ada/state"),
            ("~other", "/current/~other"),
        ] {
            let parsed = parse(text).unwrap();
            assert_eq!(parsed, StorageAddress::Local(path.into()), "{text}");
        }
        assert_eq!(parse("state").unwrap().to_string(), "file:///current/state");
    }

    #[test]
    fn buckets_carry_their_parameters() {
        let address = parse_s3(
            "s3://states/team%20a/prod/?region=eu-west-1&endpoint=minio:9000&disableSSL=true\
             &awssdk=v2&s3ForcePathStyle=true&profile=ops",
        );
        assert_eq!(
            address,
            S3Address {
                bucket: "states".into(),
                prefix: "team a/prod".into(),
                region: Some("eu-west-1".into()),
                endpoint: Some("http://minio:9000".into()),
                profile: Some("ops".into()),
                path_style: Some(true),
                kms_key: None,
            }
        );
        assert_eq!(
            StorageAddress::S3(address).to_string(),
            "s3://states/team a/prod"
        );
        assert_eq!(
            parse_s3("s3://b?endpoint=minio:9000").endpoint.as_deref(),
            Some("https://minio:9000")
        );
    }

    #[test]
    fn what_is_not_an_address_is_refused_with_the_reason() {
        let reason = |text: &str| parse(text).unwrap_err().to_string();
        assert!(reason("").contains("no folder"));
        assert!(reason("file://").contains("no folder"));
        assert!(reason("file:///a%2").contains("%-escape"));
        assert!(reason("s3://").contains("bucket"));
        assert!(reason("s3://b?fips=true").contains("`fips`"));
        assert!(reason("s3://b?use_path_style=perhaps").contains("true or false"));
        assert!(reason("gs://bucket").contains("gs://"));
        assert!(reason("https://api.pulumi.com").contains("https://"));
        let secret = reason("s3://key:hunter2@b");
        assert!(
            secret.contains("credentials") && !secret.contains("hunter2"),
            "{secret}"
        );
    }
}
