//! Which providers share a process, and when it ends.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use nimbus_engine_plugin::PluginHost;
use nimbus_engine_ports::{CheckRequest, Provider, ProviderHost};
use nimbus_engine_proto as proto;
use tempfile::TempDir;

use crate::process::script;
use crate::support::*;

/// A host whose plugin leaves a line per process.
struct Processes {
    _running: Running,
    folder: TempDir,
    host: PluginHost,
}

impl Processes {
    async fn new() -> Self {
        let running = Running::start(Fake {
            check: answer(|request: proto::CheckRequest| {
                Ok(proto::CheckResponse {
                    inputs: request.news,
                    failures: vec![],
                })
            }),
            ..simple()
        })
        .await;
        let audience = Arc::new(Audience::default());
        let text = format!(
            "echo $$ >> processes; echo {}; exec sleep 600",
            running.port
        );
        let (folder, options) = script(&audience, &text);
        Self {
            _running: running,
            folder,
            host: PluginHost::new(options),
        }
    }

    async fn load(&self) -> Arc<dyn Provider> {
        self.host.load(&package("fake")).await.unwrap()
    }

    /// Processes that were started, and those of them that still run.
    fn counts(&self) -> (usize, usize) {
        let started = fs::read_to_string(self.folder.path().join("processes")).unwrap();
        let runs = |pid: &&str| Path::new("/proc").join(pid).exists();
        (
            started.lines().count(),
            started.lines().filter(runs).count(),
        )
    }
}

async fn works(provider: &Arc<dyn Provider>) -> bool {
    provider.check(CheckRequest::default()).await.is_ok()
}

#[tokio::test]
async fn the_same_configuration_shares_a_process_until_its_last_user_is_gone() {
    let processes = Processes::new().await;
    let (one, two) = (processes.load().await, processes.load().await);
    let three = processes.load().await;
    for provider in [&one, &two, &three] {
        provider
            .configure(configuration([("a", "x".into())]))
            .await
            .unwrap();
    }
    assert_eq!(processes.counts(), (1, 1));

    one.close().await;
    assert!(!works(&one).await && works(&two).await && works(&three).await);
    two.close().await;
    assert!(works(&three).await);
    three.close().await;
    assert_eq!(processes.counts(), (1, 0));
}

#[tokio::test]
async fn different_configurations_never_share_a_process() {
    let processes = Processes::new().await;
    let mut providers = Vec::new();
    for value in ["x", "y"] {
        let provider = processes.load().await;
        provider
            .configure(configuration([("a", value.into())]))
            .await
            .unwrap();
        providers.push(provider);
    }
    let renamed = processes.load().await;
    let mut request = configuration([("a", "x".into())]);
    request.name = "other".into();
    renamed.configure(request).await.unwrap();
    assert_eq!(processes.counts(), (3, 3));
    processes.host.shutdown().await;
    assert_eq!(processes.counts(), (3, 0));
}

#[tokio::test]
async fn configuring_again_takes_another_process() {
    let processes = Processes::new().await;
    let provider = processes.load().await;
    provider
        .configure(configuration([("a", "x".into())]))
        .await
        .unwrap();
    provider
        .configure(configuration([("a", "y".into())]))
        .await
        .unwrap();
    assert!(works(&provider).await);
    assert_eq!(processes.counts().0, 2);
    processes.host.shutdown().await;
    assert_eq!(processes.counts(), (2, 0));
}

#[tokio::test]
async fn two_packages_never_share_a_process() {
    let processes = Processes::new().await;
    let one = processes.load().await;
    one.configure(configuration([])).await.unwrap();
    let version = Some(semver::Version::new(1, 0, 0));
    let other = nimbus_engine_model::PackageDescriptor {
        version,
        ..package("fake")
    };
    let two = processes.host.load(&other).await.unwrap();
    two.configure(configuration([])).await.unwrap();
    assert_eq!(processes.counts(), (2, 2));
    processes.host.shutdown().await;
}
