//! Profiles and tokens in the user's configuration folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nimbus_disk::FileMode;
use serde::{Deserialize, Serialize};

use crate::ClientError;

/// Where a server is, and who signed in there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProfile {
    pub server: String,
    /// Slugs joined by `/`; empty for the operator's own.
    #[serde(default)]
    pub tenant: String,
    /// The tenant's id, as the server told it.
    #[serde(default)]
    pub tenant_id: String,
    #[serde(default)]
    pub email: String,
}

/// The tokens of one profile.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileTokens {
    pub access: String,
    pub refresh: String,
}

impl std::fmt::Debug for ProfileTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

#[derive(Default, Serialize, Deserialize)]
struct ProfilesFile {
    current: Option<String>,
    #[serde(default)]
    profiles: BTreeMap<String, ServerProfile>,
}

/// The two files: `profiles.toml`, and `tokens.json` that only the user can read.
#[derive(Clone, Debug)]
pub struct Profiles {
    folder: PathBuf,
}

impl Profiles {
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn profiles_path(&self) -> PathBuf {
        self.folder.join("profiles.toml")
    }

    fn tokens_path(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    fn read_profiles(&self) -> Result<ProfilesFile, ClientError> {
        let path = self.profiles_path();
        let Some(text) = read(&path)? else {
            return Ok(ProfilesFile::default());
        };
        toml::from_str(&text).map_err(|error| unusable(&path, &error))
    }

    fn read_tokens(&self) -> Result<BTreeMap<String, ProfileTokens>, ClientError> {
        let path = self.tokens_path();
        refuse_open_file(&path)?;
        let Some(text) = read(&path)? else {
            return Ok(BTreeMap::new());
        };
        // The parser's own words could quote a token.
        serde_json::from_str(&text).map_err(|_| unusable(&path, &"it is not what was written"))
    }

    /// The profile of a name, or the one that was used last.
    pub fn get(&self, name: Option<&str>) -> Result<(String, ServerProfile), ClientError> {
        let mut file = self.read_profiles()?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => file.current.unwrap_or_else(|| "default".to_owned()),
        };
        match file.profiles.remove(&name) {
            Some(profile) => Ok((name, profile)),
            None => Err(ClientError::NoProfile { name }),
        }
    }

    /// The profile of a sign-in at a server: the named one, or the one that was used last if it is of that server, or the
    /// only one that is.
    pub fn at_server(
        &self,
        server: &str,
        name: Option<&str>,
    ) -> Result<(String, ServerProfile), ClientError> {
        let is_there = |profile: &ServerProfile| same_server(&profile.server, server);
        if let Some(name) = name {
            let (name, profile) = self.get(Some(name))?;
            return match is_there(&profile) {
                true => Ok((name, profile)),
                false => Err(ClientError::OtherServer {
                    name,
                    of: profile.server,
                    server: server.to_owned(),
                }),
            };
        }
        let file = self.read_profiles()?;
        let current = file.current.unwrap_or_default();
        let mut there: Vec<_> = file
            .profiles
            .into_iter()
            .filter(|(_, profile)| is_there(profile))
            .collect();
        if let Some(place) = there.iter().position(|(name, _)| *name == current) {
            return Ok(there.swap_remove(place));
        }
        match there.len() {
            1 => Ok(there.swap_remove(0)),
            0 => Err(ClientError::NotSignedIn {
                server: server.to_owned(),
            }),
            _ => Err(ClientError::SeveralProfiles {
                server: server.to_owned(),
                names: there.into_iter().map(|(name, _)| name).collect(),
            }),
        }
    }

    pub fn tokens(&self, name: &str) -> Result<Option<ProfileTokens>, ClientError> {
        Ok(self.read_tokens()?.remove(name))
    }

    /// Stores a profile and makes it the current one; the one that was current, if it was another.
    pub fn put(&self, name: &str, profile: &ServerProfile) -> Result<Option<String>, ClientError> {
        let mut file = self.read_profiles()?;
        let before = file.current.replace(name.to_owned());
        file.profiles.insert(name.to_owned(), profile.clone());
        let path = self.profiles_path();
        let text = toml::to_string(&file).map_err(|error| unusable(&path, &error))?;
        write_private(&path, &text)?;
        Ok(before.filter(|before| before != name))
    }

    /// Stores a profile's tokens, or forgets them.
    pub fn put_tokens(
        &self,
        name: &str,
        tokens: Option<&ProfileTokens>,
    ) -> Result<(), ClientError> {
        let mut all = self.read_tokens()?;
        match tokens {
            Some(tokens) => all.insert(name.to_owned(), tokens.clone()),
            None => all.remove(name),
        };
        let path = self.tokens_path();
        let text = serde_json::to_string(&all).map_err(|error| unusable(&path, &error))?;
        write_private(&path, &text)
    }
}

/// Whether two addresses are of one server.
fn same_server(one: &str, other: &str) -> bool {
    match (one.parse::<url::Url>(), other.parse::<url::Url>()) {
        (Ok(one), Ok(other)) => {
            let path = |url: &url::Url| url.path().trim_end_matches('/').to_owned();
            one.origin() == other.origin() && path(&one) == path(&other)
        }
        _ => false,
    }
}

fn unusable(path: &Path, reason: &dyn std::fmt::Display) -> ClientError {
    ClientError::File {
        path: path.display().to_string(),
        reason: reason.to_string(),
    }
}

fn read(path: &Path) -> Result<Option<String>, ClientError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path, &error)),
    }
}

/// Written beside and renamed, so that nobody ever sees half of it; a new file is private from its
/// first byte.
fn write_private(path: &Path, text: &str) -> Result<(), ClientError> {
    nimbus_disk::replace(path, text.as_bytes(), FileMode::Private)
        .map_err(|error| unusable(path, &error))
}

#[cfg(unix)]
fn refuse_open_file(path: &Path) -> Result<(), ClientError> {
    use std::os::unix::fs::MetadataExt as _;
    match fs::metadata(path) {
        Ok(metadata) if metadata.mode() & 0o077 != 0 => Err(unusable(
            path,
            &"other users can read it; its tokens may be known",
        )),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn refuse_open_file(_path: &Path) -> Result<(), ClientError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(server: &str) -> ServerProfile {
        ServerProfile {
            server: server.to_owned(),
            tenant: "acme".to_owned(),
            tenant_id: "7".to_owned(),
            email: "jane@acme.example".to_owned(),
        }
    }

    fn tokens(text: &str) -> ProfileTokens {
        ProfileTokens {
            access: text.to_owned(),
            refresh: text.to_owned(),
        }
    }

    #[test]
    fn the_profile_that_was_used_last_is_the_current_one() {
        let folder = tempfile::tempdir().unwrap();
        let profiles = Profiles::in_folder(folder.path().join("new"));
        assert!(matches!(
            profiles.get(None),
            Err(ClientError::NoProfile { .. })
        ));
        let put = |name: &str, server: &str| profiles.put(name, &profile(server)).unwrap();
        assert_eq!(put("one", "http://one"), None);
        assert_eq!(put("two", "http://two"), Some("one".to_owned()));
        assert_eq!(put("two", "http://two"), None);
        assert_eq!(profiles.get(None).unwrap().0, "two");
        assert_eq!(profiles.get(Some("one")).unwrap().1, profile("http://one"));
    }

    #[test]
    fn a_server_finds_its_own_profile_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let profiles = Profiles::in_folder(folder.path().to_owned());
        assert!(matches!(
            profiles.at_server("http://one", None),
            Err(ClientError::NotSignedIn { .. })
        ));
        profiles.put("a", &profile("http://one/")).unwrap();
        profiles.put("b", &profile("http://two")).unwrap();
        assert_eq!(profiles.at_server("http://ONE", None).unwrap().0, "a");
        assert!(matches!(
            profiles.at_server("http://one", Some("b")),
            Err(ClientError::OtherServer { .. })
        ));
        profiles.put("c", &profile("http://one:80")).unwrap();
        assert_eq!(profiles.at_server("http://one", None).unwrap().0, "c");
        profiles.put("b", &profile("http://two")).unwrap();
        assert!(matches!(
            profiles.at_server("http://one", None),
            Err(ClientError::SeveralProfiles { .. })
        ));
    }

    #[test]
    fn tokens_are_kept_per_profile_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let profiles = Profiles::in_folder(folder.path().to_owned());
        profiles.put_tokens("one", Some(&tokens("a"))).unwrap();
        profiles.put_tokens("two", Some(&tokens("b"))).unwrap();
        assert_eq!(profiles.tokens("one").unwrap(), Some(tokens("a")));
        profiles.put_tokens("one", None).unwrap();
        assert_eq!(profiles.tokens("one").unwrap(), None);
        assert_eq!(profiles.tokens("two").unwrap(), Some(tokens("b")));
        assert!(!format!("{:?}", tokens("canary")).contains("canary"));
    }

    #[cfg(unix)]
    #[test]
    fn tokens_are_private_and_a_file_that_is_not_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let profiles = Profiles::in_folder(folder.path().to_owned());
        profiles.put_tokens("one", Some(&tokens("a"))).unwrap();
        let path = folder.path().join("tokens.json");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(profiles.tokens("one").is_err());
    }

    #[test]
    fn a_damaged_file_is_named_and_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let profiles = Profiles::in_folder(folder.path().to_owned());
        profiles.put_tokens("one", Some(&tokens("a"))).unwrap();
        let path = folder.path().join("tokens.json");
        fs::write(&path, "{\"one\": canary").unwrap();
        let error = profiles.tokens("one").unwrap_err().to_string();
        assert!(
            error.contains("tokens.json") && !error.contains("canary"),
            "{error}"
        );
    }
}
