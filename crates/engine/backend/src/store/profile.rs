//! Static credentials from the files that the AWS tools share.
//!
//! Only keys and regions are read. A profile that asks for anything else, such as single sign-on
//! or a helper process, is refused rather than half understood.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::StorageError;
use crate::environment::Environment;

#[derive(Default)]
pub(super) struct AwsProfileSettings {
    pub(super) access_key: Option<String>,
    pub(super) secret_key: Option<String>,
    pub(super) session_token: Option<String>,
    pub(super) region: Option<String>,
}

type Sections = BTreeMap<String, BTreeMap<String, String>>;

/// The named profile, or the default one, which may be absent.
pub(super) fn load(
    name: Option<&str>,
    environment: &Environment,
) -> Result<Option<AwsProfileSettings>, StorageError> {
    let wanted = name
        .map(str::to_owned)
        .or_else(|| environment.non_empty("AWS_PROFILE"));
    let name = wanted.as_deref().unwrap_or("default");
    let credentials = read("AWS_SHARED_CREDENTIALS_FILE", "credentials", environment)?;
    let config = read("AWS_CONFIG_FILE", "config", environment)?;
    let config_section = config
        .get(&format!("profile {name}"))
        .or_else(|| config.get(name));
    let sections: Vec<_> = credentials
        .get(name)
        .into_iter()
        .chain(config_section)
        .collect();
    if sections.is_empty() {
        return match wanted {
            None => Ok(None),
            Some(name) => Err(wrong(&name, "no such profile")),
        };
    }
    let find = |key: &str| {
        sections
            .iter()
            .find_map(|section| section.get(key).cloned())
    };
    let profile = AwsProfileSettings {
        access_key: find("aws_access_key_id"),
        secret_key: find("aws_secret_access_key"),
        session_token: find("aws_session_token"),
        region: find("region"),
    };
    if profile.access_key.is_none() && wanted.is_some() {
        let reason = "it has no aws_access_key_id; other kinds of profile are not supported, put \
                      temporary keys into the environment instead";
        return Err(wrong(name, reason));
    }
    Ok(Some(profile))
}

fn read(variable: &str, file: &str, environment: &Environment) -> Result<Sections, StorageError> {
    let path = match environment.non_empty(variable) {
        Some(path) => PathBuf::from(path),
        None => match environment.non_empty("HOME") {
            Some(home) => PathBuf::from(home).join(".aws").join(file),
            None => return Ok(Sections::new()),
        },
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(sections(&text)),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(Sections::new()),
        Err(source) => Err(StorageError::io(super::StorageAct::Read, &path, source)),
    }
}

fn sections(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut current = String::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            current = name.split_whitespace().collect::<Vec<_>>().join(" ");
        } else if let Some((key, value)) = line.split_once('=') {
            let section = sections.entry(current.clone()).or_default();
            section.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    sections
}

fn wrong(name: &str, reason: &str) -> StorageError {
    StorageError::Address {
        address: format!("profile {name}"),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# keys\n[default]\naws_access_key_id = AK\n\
        aws_secret_access_key=SK\n\n[ops]\naws_access_key_id=OPS\naws_secret_access_key=S2\n\
        aws_session_token=T\n";
    const CONFIG: &str = "[default]\nregion=eu-west-1\n[profile  ops]\nregion = eu-north-1\n[profile sso]\nsso_session=x\n";

    fn environment(folder: &tempfile::TempDir) -> Environment {
        let aws = folder.path().join(".aws");
        std::fs::create_dir(&aws).unwrap();
        std::fs::write(aws.join("credentials"), CREDENTIALS).unwrap();
        std::fs::write(aws.join("config"), CONFIG).unwrap();
        Environment::fixed([("HOME", folder.path().to_str().unwrap())])
    }

    #[test]
    fn keys_and_region_come_from_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(&folder);
        let default = load(None, &environment).unwrap().unwrap();
        assert_eq!(default.access_key.as_deref(), Some("AK"));
        assert_eq!(default.region.as_deref(), Some("eu-west-1"));
        let ops = load(Some("ops"), &environment).unwrap().unwrap();
        assert_eq!(ops.secret_key.as_deref(), Some("S2"));
        assert_eq!(ops.session_token.as_deref(), Some("T"));
        assert_eq!(ops.region.as_deref(), Some("eu-north-1"));
    }

    #[test]
    fn a_profile_that_was_asked_for_must_be_usable() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(&folder);
        for name in ["absent", "sso"] {
            assert!(load(Some(name), &environment).is_err(), "{name}");
        }
        let empty = tempfile::tempdir().unwrap();
        let nothing = Environment::fixed([("HOME", empty.path().to_str().unwrap())]);
        assert!(load(None, &nothing).unwrap().is_none());
    }
}
