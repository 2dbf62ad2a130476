//! Processes that several operations share: a machine with installed plugins, and units on it.

mod calls;
mod lifetime;
mod rules;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_engine_model::{PackageDescriptor, Urn};
use nimbus_engine_monitor::{EngineEndpoint, Listen};
use nimbus_engine_plugin::{
    CallbackServer, CallbackServers, HostOptions, KeepWarm, PluginHost, PluginSearch, ProviderPool,
    SharedPlugins,
};
use nimbus_engine_ports::{
    CheckRequest, ConfigureRequest, CreateRequest, EventSink, Provider, ProviderHost,
};
use nimbus_engine_proto as proto;
use tempfile::TempDir;
use tokio::sync::{Notify, Semaphore};

use crate::process::is_running;
use crate::support::*;

pub(crate) use lifetime::keep_warm_for_ever;
struct Ports;

#[async_trait]
impl CallbackServers for Ports {
    async fn open(&self, audience: Arc<dyn EventSink>) -> std::io::Result<CallbackServer> {
        let endpoint = EngineEndpoint::start(&Listen::Loopback, audience, None).await?;
        Ok(CallbackServer {
            address: endpoint.address().to_owned(),
            server: Box::new(endpoint),
        })
    }

    async fn open_at(
        &self,
        socket: PathBuf,
        audience: Arc<dyn EventSink>,
        _most_bytes: u64,
    ) -> std::io::Result<CallbackServer> {
        let listen = Listen::UnixSocket(socket);
        let endpoint = EngineEndpoint::start(&listen, audience, None).await?;
        Ok(CallbackServer {
            address: endpoint.address().to_owned(),
            server: Box::new(endpoint),
        })
    }
}

pub(crate) const WARM: KeepWarm = KeepWarm {
    idle: None,
    age: Duration::MAX,
    only_reviewed: false,
    most: 4,
};

/// A machine with installed plugins and a pool.
pub(crate) struct Machine {
    pub(crate) installed: TempDir,
    pub(crate) pool: Arc<ProviderPool>,
}

impl Machine {
    pub(crate) fn new(keep: KeepWarm, script: &str) -> Self {
        let installed = TempDir::new().unwrap();
        let machine = Self {
            pool: ProviderPool::new(keep, LIMITS, Arc::new(Ports)),
            installed,
        };
        machine.install("1.0.0", script);
        machine
    }

    /// A plugin whose processes are counted, and which is served in this one.
    pub(crate) fn with(keep: KeepWarm, running: &Running) -> Self {
        let port = running.port;
        Self::new(keep, &format!("sleep 0.2; echo {port}; exec sleep 600"))
    }

    pub(crate) fn install(&self, version: &str, script: &str) -> PathBuf {
        let folder = self
            .installed
            .path()
            .join(format!("resource-fake-v{version}"));
        fs::create_dir_all(&folder).unwrap();
        self.write(&folder.join("pulumi-resource-fake"), script)
    }

    /// A script that counts itself. It is put into place as a whole, as installers do.
    pub(crate) fn write(&self, path: &Path, script: &str) -> PathBuf {
        let list = self.list();
        let new = path.with_extension("new");
        let text = format!("#!/bin/sh\necho $$ >> '{}'\n{script}\n", list.display());
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&new, path).unwrap();
        path.to_owned()
    }

    pub(crate) fn list(&self) -> PathBuf {
        self.installed.path().join("processes")
    }

    pub(crate) fn processes(&self) -> Vec<i32> {
        let list = fs::read_to_string(self.list()).unwrap_or_default();
        list.lines().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Processes that were started, and those of them that still run.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let started = self.processes();
        let running = started.iter().filter(|pid| is_running(**pid)).count();
        (started.len(), running)
    }

    pub(crate) fn unit(&self, name: &str) -> Unit {
        self.unit_with(name, |_| {})
    }

    pub(crate) fn unit_with(&self, name: &str, change: impl FnOnce(&mut HostOptions)) -> Unit {
        let folder = TempDir::new().unwrap();
        let audience = Arc::new(Audience::default());
        let mut options = options(&audience, folder.path());
        options.project = name.to_owned();
        options.search = PluginSearch {
            installed: Some(self.installed.path().to_owned()),
            ..PluginSearch::default()
        };
        options.shared = Some(SharedPlugins {
            pool: Arc::clone(&self.pool),
            owner: "me".to_owned(),
            everywhere: Arc::new(["fake".to_owned()].into()),
        });
        change(&mut options);
        Unit {
            name: name.to_owned(),
            host: PluginHost::new(options),
            folder,
            audience,
        }
    }
}

/// One operation, in a folder of its own.
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) host: PluginHost,
    pub(crate) folder: TempDir,
    pub(crate) audience: Arc<Audience>,
}

impl Unit {
    pub(crate) fn urn(&self, type_: &str, name: &str) -> Urn {
        Urn::new("dev", &self.name, None, type_, name)
    }

    pub(crate) fn configuration(&self, region: &str) -> ConfigureRequest {
        ConfigureRequest {
            urn: Some(self.urn("pulumi:providers:fake", "default")),
            id: Some(format!("id-of-{}", self.name)),
            ..configuration([("region", region.into()), ("token", secret("t"))])
        }
    }

    pub(crate) async fn load(&self) -> Arc<dyn Provider> {
        self.load_package(&package("fake")).await
    }

    pub(crate) async fn load_package(&self, package: &PackageDescriptor) -> Arc<dyn Provider> {
        self.host.load(package).await.unwrap()
    }

    /// As a deployment does it: loaded, checked, configured.
    pub(crate) async fn provider(&self, region: &str) -> Arc<dyn Provider> {
        let provider = self.load().await;
        self.configure(&provider, region).await;
        provider
    }

    pub(crate) async fn configure(&self, provider: &Arc<dyn Provider>, region: &str) {
        let request = self.configuration(region);
        let check = CheckRequest {
            urn: request.urn.clone(),
            name: request.name.clone(),
            type_: request.type_.clone(),
            news: request.inputs.clone(),
            ..CheckRequest::default()
        };
        provider.check_config(check).await.unwrap();
        provider.configure(request).await.unwrap();
    }

    pub(crate) fn create(&self, name: &str) -> CreateRequest {
        CreateRequest {
            urn: Some(self.urn("fake:index:Thing", name)),
            name: name.to_owned(),
            type_: "fake:index:Thing".to_owned(),
            ..CreateRequest::default()
        }
    }
}

pub(crate) fn creates() -> Fake {
    Fake {
        create: answer(|request: proto::CreateRequest| {
            Ok(proto::CreateResponse {
                id: "thing".to_owned(),
                properties: request.properties,
                ..Default::default()
            })
        }),
        ..modern()
    }
}

pub(crate) fn only_in_folders(options: &mut HostOptions) {
    let shared = options.shared.as_mut().unwrap();
    shared.everywhere = Arc::default();
}

/// A provider whose creates and checks wait until they are let go.
pub(crate) fn waiting() -> (Fake, Arc<Notify>, Arc<Semaphore>) {
    let (entered, gate) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
    let (enter, pass) = (Arc::clone(&entered), Arc::clone(&gate));
    let checking = Arc::clone(&entered);
    let fake = Fake {
        create: Some(Box::new(move |_| {
            let (enter, pass) = (Arc::clone(&enter), Arc::clone(&pass));
            Box::pin(async move {
                enter.notify_one();
                pass.acquire().await.unwrap().forget();
                Ok(proto::CreateResponse {
                    id: "thing".to_owned(),
                    ..Default::default()
                })
            })
        })),
        check: Some(Box::new(move |_| {
            let enter = Arc::clone(&checking);
            Box::pin(async move {
                enter.notify_one();
                std::future::pending().await
            })
        })),
        cancel: answer(|()| Ok(())),
        ..modern()
    };
    (fake, entered, gate)
}
