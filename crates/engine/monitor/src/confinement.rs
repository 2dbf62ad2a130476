//! What the engine does not do for a program that is not trusted.
//!
//! A program in a sandbox cannot read a stranger's file or connect to a stranger's service, but it
//! could ask the engine to: by naming a file as an asset, or an address to be called back at. So
//! files must be the program's own, links followed, and calls back go to the program and nobody
//! else.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_files::{ProjectFiles, is_outside};
use nimbus_engine_model::{Archive, Asset, PropertyMap, PropertyValue};
use tokio::net::TcpStream;

use crate::error::MonitorError;
use crate::monitor::Monitor;
use crate::options::ResourceOptions;
use crate::requests::Registration;

/// Makes connections to a program that is alone in its network.
#[async_trait]
pub trait Dial: fmt::Debug + Send + Sync {
    /// A connection to a port of the program's own loopback.
    async fn dial(&self, port: u16) -> io::Result<TcpStream>;
}

/// Where a program is confined to.
#[derive(Clone, Debug)]
pub struct Confinement {
    /// Opens files that are its own, and no others.
    pub files: ProjectFiles,
    /// How it is reached; `None` if its loopback is this machine's.
    pub dial: Option<Arc<dyn Dial>>,
    /// What it may make the engine hold.
    pub requests: RequestLimits,
}

/// What a program may make the engine hold for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Connections at a time.
    pub connections: usize,
    /// Requests that wait for their answer at a time, over all connections.
    pub requests: usize,
    /// The same over one connection. A client that keeps to the protocol holds more back by itself, so that
    /// a program with many resources notices nothing.
    pub streams: u32,
    /// The largest message. What is read takes many times as much as what was sent.
    pub message_bytes: u64,
    /// Functions of one kind that are called for every resource, and addresses to call them at.
    pub functions: usize,
    /// Everything that it sends and is answered in one run, as the engine holds it.
    pub total_bytes: u64,
}

impl RequestLimits {
    /// The same with another sum, from which the rest follows.
    pub fn of_total(total_bytes: u64) -> Self {
        Self {
            total_bytes,
            ..Self::default()
        }
    }

    /// What may be under way at a time: requests that are read, and answers that are not taken yet.
    pub fn under_way_bytes(&self) -> u64 {
        self.total_bytes / 8
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            requests: 16_384,
            streams: 1_024,
            message_bytes: 32 << 20,
            functions: 1_000,
            total_bytes: 4 << 30,
        }
    }
}

impl Confinement {
    /// The port at which the program says it can be called back, if it is on its own loopback.
    pub(crate) fn port_of(target: &str) -> Option<u16> {
        let (host, port) = target.rsplit_once(':')?;
        let own = match host.parse::<IpAddr>() {
            Ok(address) => SocketAddr::from((address, 0)).ip().is_loopback(),
            Err(_) => host == "localhost",
        };
        own.then(|| port.parse().ok()).flatten()
    }

    fn check(&self, path: &Path) -> Result<(), MonitorError> {
        check_own(&self.files, path)
    }
}

/// Refuses a file that is not the program's own, or that leads to one that is not.
pub(crate) fn check_own(files: &ProjectFiles, path: &Path) -> Result<(), MonitorError> {
    files
        .check_links(path)
        .map_err(|error| MonitorError::Asset {
            path: path.display().to_string(),
            reason: match is_outside(&error) {
                true => format!(
                    "the program runs in a sandbox and may use only files of its own folder: {error}"
                ),
                false => error.to_string(),
            },
        })
}

/// How long a list of one resource's options may be. What is said of one resource is compared with
/// what is recorded, and much of that with each other.
pub(crate) const MOST_OPTIONS: usize = 1_000;
/// For how many properties, times resources that each depends on, an SDK may not tell them apart.
pub(crate) const MOST_UNTOLD_DEPENDENCIES: usize = 1_000_000;

impl Monitor {
    /// Refuses lists of a stranger's that only somebody with bad intentions makes so long.
    pub(crate) fn refuse_long_lists(
        &self,
        resource: &str,
        options: &ResourceOptions,
    ) -> Result<(), MonitorError> {
        if self.settings.confinement.is_none() {
            return Ok(());
        }
        let hooks = options.hooks.values().map(Vec::len).sum();
        let lists = [
            (options.aliases.len(), "aliases"),
            (options.ignore_changes.len(), "ignoreChanges"),
            (options.replace_on_changes.len(), "replaceOnChanges"),
            (
                options.additional_secret_outputs.len(),
                "additionalSecretOutputs",
            ),
            (options.hide_diff.len(), "hideDiffs"),
            (options.replace_with.len(), "replaceWith"),
            (options.providers.len(), "providers"),
            (hooks, "hooks"),
        ];
        match lists.into_iter().find(|(length, _)| *length > MOST_OPTIONS) {
            Some((_, what)) => Err(MonitorError::TooManyOptions {
                resource: resource.to_owned(),
                what,
                count: MOST_OPTIONS,
            }),
            None => Ok(()),
        }
    }

    /// Refuses a product that is far larger than what was sent.
    pub(crate) fn refuse_untold_dependencies(
        &self,
        request: &Registration,
    ) -> Result<(), MonitorError> {
        let untold = request.property_dependencies.is_none() && !request.remote;
        let (properties, each) = (request.properties.len(), request.options.depends_on.len());
        let product = properties.saturating_mul(each);
        if self.settings.confinement.is_none() || !untold || product <= MOST_UNTOLD_DEPENDENCIES {
            return Ok(());
        }
        Err(MonitorError::TooManyOptions {
            resource: request.name.clone(),
            what: "dependencies of its properties",
            count: MOST_UNTOLD_DEPENDENCIES,
        })
    }

    /// Refuses files that are not the program's own.
    pub(crate) async fn refuse_foreign_files(
        &self,
        properties: &PropertyMap,
    ) -> Result<(), MonitorError> {
        let Some(confinement) = self.settings.confinement.clone() else {
            return Ok(());
        };
        let (mut paths, mut addresses) = (Vec::new(), Vec::new());
        for value in properties.values() {
            collect(value, &mut paths, &mut addresses);
        }
        if let Some(address) = addresses.into_iter().next()
            && !self.ports.assets.reaches_out()
        {
            let reason = "assets at network addresses cannot be read here".to_owned();
            return Err(MonitorError::Asset {
                path: address,
                reason,
            });
        }
        if paths.is_empty() {
            return Ok(());
        }
        let directory = self.settings.program_dir.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let paths = paths.iter().map(|path| directory.join(path));
            paths
                .into_iter()
                .try_for_each(|path| confinement.check(&path))
        });
        checked.await.unwrap_or(Err(MonitorError::Ending))
    }
}

/// Every file that a value names, and every address that is no file's.
fn collect(value: &PropertyValue, paths: &mut Vec<PathBuf>, addresses: &mut Vec<String>) {
    match value {
        PropertyValue::Asset(Asset::Path { path, .. })
        | PropertyValue::Archive(Archive::Path { path, .. }) => paths.push(path.into()),
        PropertyValue::Asset(Asset::Uri { uri, .. })
        | PropertyValue::Archive(Archive::Uri { uri, .. }) => {
            let file = url::Url::parse(uri).ok();
            match file.and_then(|url| url.to_file_path().ok()) {
                Some(path) => paths.push(path),
                None => addresses.push(uri.clone()),
            }
        }
        other => other
            .parts()
            .for_each(|part| collect(part, paths, addresses)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn scene() -> (tempfile::TempDir, Confinement) {
        let root = tempfile::tempdir().expect("a temporary directory");
        for file in ["own/a", "own/folder/b", "stranger/secret"] {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().expect("a parent")).expect("directories");
            fs::write(file, "x").expect("a file");
        }
        let files = ProjectFiles::beneath(&root.path().join("own"), &[]);
        let confinement = Confinement {
            files: files.expect("a kernel with openat2"),
            dial: None,
            requests: RequestLimits::default(),
        };
        (root, confinement)
    }

    #[test]
    fn a_programs_own_files_are_its_own() {
        let (root, confinement) = scene();
        for path in ["own", "own/a", "own/folder", "own/folder/../a"] {
            assert!(confinement.check(&root.path().join(path)).is_ok(), "{path}");
        }
    }

    #[test]
    fn links_that_lead_in_a_circle_are_followed_once() {
        let (root, confinement) = scene();
        let path = |path: &str| root.path().join(path);
        symlink(".", path("own/here")).expect("a link");
        symlink("..", path("own/folder/up")).expect("a link");
        assert!(confinement.check(&path("own")).is_ok());
        symlink(path("stranger"), path("own/folder/away")).expect("a link");
        assert!(confinement.check(&path("own/here/here")).is_err());
    }

    #[test]
    fn files_of_others_are_refused_by_every_road() {
        let (root, confinement) = scene();
        let path = |path: &str| root.path().join(path);
        symlink(path("stranger/secret"), path("own/link")).expect("a link");
        fs::create_dir(path("own/deep")).expect("a directory");
        symlink(path("stranger"), path("own/deep/link")).expect("a link");
        for foreign in [
            "stranger/secret",
            "own/../stranger/secret",
            "own/link",
            "own/deep/link/secret",
            "own/deep",
            "own",
            "own/missing",
        ] {
            assert!(confinement.check(&path(foreign)).is_err(), "{foreign}");
        }
        assert!(confinement.check(Path::new("/etc/passwd")).is_err());
    }

    #[test]
    fn a_program_is_called_back_on_its_own_loopback_only() {
        assert_eq!(Confinement::port_of("127.0.0.1:4000"), Some(4000));
        assert_eq!(Confinement::port_of("localhost:4000"), Some(4000));
        for target in [
            "10.0.0.1:80",
            "169.254.169.254:80",
            "example.com:443",
            "unix:/run/docker.sock",
            "127.0.0.1",
            "127.0.0.1:x",
            "",
        ] {
            assert_eq!(Confinement::port_of(target), None, "{target}");
        }
    }

    #[test]
    fn every_file_in_a_value_is_found() {
        let path = |path: &str| {
            let (hash, path) = (String::new(), path.to_owned());
            PropertyValue::Asset(Asset::Path { hash, path })
        };
        let uri = PropertyValue::Asset(Asset::Uri {
            hash: "known".to_owned(),
            uri: "file:///b".to_owned(),
        });
        let archive = PropertyValue::Archive(Archive::Assets {
            hash: String::new(),
            assets: [("x".into(), path("/c"))].into_iter().collect(),
        });
        let value = PropertyValue::Array(vec![
            PropertyValue::Secret(Box::new(path("/a"))),
            uri,
            archive,
        ]);
        let (mut found, mut addresses) = (Vec::new(), Vec::new());
        collect(&value, &mut found, &mut addresses);
        assert_eq!(found, ["/a", "/b", "/c"].map(PathBuf::from));
        assert_eq!(addresses, Vec::<String>::new());
        let remote = PropertyValue::Asset(Asset::Uri {
            hash: "known".to_owned(),
            uri: "http://169.254.169.254/".to_owned(),
        });
        collect(&remote, &mut found, &mut addresses);
        assert_eq!(addresses, ["http://169.254.169.254/"]);
    }
}
