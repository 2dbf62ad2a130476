//! Processes that several operations share: who shares which, what reaches whom, and their end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nimbus_engine_model::{Asset, PackageDescriptor, PropertyValue, Urn};
use nimbus_engine_monitor::{EngineEndpoint, Listen};
use nimbus_engine_plugin::{
    EngineDoor, EngineDoors, HostOptions, KeepWarm, PluginHost, PluginKind, PluginSearch,
    ProjectPlugin, ProviderPool, SharedPlugins,
};
use nimbus_engine_ports::{
    CheckRequest, ConfigureRequest, CreateRequest, EventSink, Provider, ProviderError,
    ProviderHost, ReadRequest, Severity,
};
use nimbus_engine_proto as proto;
use tempfile::TempDir;
use tokio::sync::{Notify, Semaphore};

use crate::process::{FOLDER, ROLE, eventually, is_running, role};
use crate::support::*;

struct Ports;

#[async_trait]
impl EngineDoors for Ports {
    async fn open(&self, audience: Arc<dyn EventSink>) -> std::io::Result<EngineDoor> {
        let endpoint = EngineEndpoint::start(&Listen::Loopback, audience).await?;
        Ok(EngineDoor {
            address: endpoint.address().to_owned(),
            server: Box::new(endpoint),
        })
    }
}

const WARM: KeepWarm = KeepWarm {
    idle: None,
    age: Duration::MAX,
    only_reviewed: false,
    most: 4,
};

/// A machine with installed plugins and a pool.
struct Machine {
    installed: TempDir,
    pool: Arc<ProviderPool>,
}

impl Machine {
    fn new(keep: KeepWarm, script: &str) -> Self {
        let installed = TempDir::new().unwrap();
        let machine = Self {
            pool: ProviderPool::new(keep, LIMITS, Arc::new(Ports)),
            installed,
        };
        machine.install("1.0.0", script);
        machine
    }

    /// A plugin whose processes are counted, and which is served in this one.
    fn with(keep: KeepWarm, running: &Running) -> Self {
        let port = running.port;
        Self::new(keep, &format!("sleep 0.2; echo {port}; exec sleep 600"))
    }

    fn install(&self, version: &str, script: &str) -> PathBuf {
        let folder = self
            .installed
            .path()
            .join(format!("resource-fake-v{version}"));
        fs::create_dir_all(&folder).unwrap();
        self.write(&folder.join("pulumi-resource-fake"), script)
    }

    /// A script that counts itself. It is put into place as a whole, as installers do.
    fn write(&self, path: &Path, script: &str) -> PathBuf {
        let list = self.list();
        let new = path.with_extension("new");
        let text = format!("#!/bin/sh\necho $$ >> '{}'\n{script}\n", list.display());
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&new, path).unwrap();
        path.to_owned()
    }

    fn list(&self) -> PathBuf {
        self.installed.path().join("processes")
    }

    fn processes(&self) -> Vec<i32> {
        let list = fs::read_to_string(self.list()).unwrap_or_default();
        list.lines().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Processes that were started, and those of them that still run.
    fn counts(&self) -> (usize, usize) {
        let started = self.processes();
        let running = started.iter().filter(|pid| is_running(**pid)).count();
        (started.len(), running)
    }

    fn unit(&self, name: &str) -> Unit {
        self.unit_with(name, |_| {})
    }

    fn unit_with(&self, name: &str, change: impl FnOnce(&mut HostOptions)) -> Unit {
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
struct Unit {
    name: String,
    host: PluginHost,
    folder: TempDir,
    audience: Arc<Audience>,
}

impl Unit {
    fn urn(&self, type_: &str, name: &str) -> Urn {
        Urn::new("dev", &self.name, None, type_, name)
    }

    fn configuration(&self, region: &str) -> ConfigureRequest {
        ConfigureRequest {
            urn: Some(self.urn("pulumi:providers:fake", "default")),
            id: Some(format!("id-of-{}", self.name)),
            ..configuration([("region", region.into()), ("token", secret("t"))])
        }
    }

    async fn load(&self) -> Arc<dyn Provider> {
        self.load_package(&package("fake")).await
    }

    async fn load_package(&self, package: &PackageDescriptor) -> Arc<dyn Provider> {
        self.host.load(package).await.unwrap()
    }

    /// As a deployment does it: loaded, checked, configured.
    async fn provider(&self, region: &str) -> Arc<dyn Provider> {
        let provider = self.load().await;
        self.configure(&provider, region).await;
        provider
    }

    async fn configure(&self, provider: &Arc<dyn Provider>, region: &str) {
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

    fn create(&self, name: &str) -> CreateRequest {
        CreateRequest {
            urn: Some(self.urn("fake:index:Thing", name)),
            name: name.to_owned(),
            type_: "fake:index:Thing".to_owned(),
            ..CreateRequest::default()
        }
    }
}

fn creates() -> Fake {
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

#[tokio::test]
async fn sixteen_units_with_one_configuration_share_one_process() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let units: Vec<_> = (0..16)
        .map(|number| machine.unit(&format!("unit-{number}")))
        .collect();
    let work = units.iter().map(|unit| async {
        let provider = unit.provider("eu").await;
        provider.create(unit.create("thing")).await.unwrap();
        provider.close().await;
        unit.host.shutdown().await;
    });
    futures::future::join_all(work).await;
    assert_eq!(machine.counts(), (1, 1), "it waits for the next");
    let calls = running.calls();
    let count = |method| calls.iter().filter(|call| **call == method).count();
    assert_eq!((count("configure"), count("create")), (1, 16));
    assert_eq!(count("cancel"), 0, "whoever is done stops nobody");

    machine.pool.close().await;
    assert_eq!(machine.counts(), (1, 0));
}

#[tokio::test]
async fn a_shared_process_is_told_of_no_unit_and_a_unit_of_its_own() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let configured = Arc::clone(&seen);
    let running = Running::start(Fake {
        configure: answer(move |request: proto::ConfigureRequest| {
            configured.lock().unwrap().push((request.urn, request.id));
            Ok(proto::ConfigureResponse::default())
        }),
        ..modern()
    })
    .await;
    let environment = "env > \"${0%/*}/environment\"; pwd > \"${0%/*}/directory\"";
    let script = format!("{environment}; echo {}; exec sleep 600", running.port);
    let machine = Machine::new(WARM, &script);
    let unit = machine.unit("shop");
    unit.provider("eu").await;
    let plugin = machine.installed.path().join("resource-fake-v1.0.0");
    let read = |name: &str| fs::read_to_string(plugin.join(name)).unwrap();
    assert!(!read("environment").contains("PULUMI_PROJECT"));
    let directory = PathBuf::from(read("directory").trim());
    assert_eq!(directory, plugin.canonicalize().unwrap());

    let narrow = machine.unit_with("shop", only_in_folders);
    narrow.provider("eu").await;
    assert!(read("environment").contains("PULUMI_PROJECT=shop"));
    let directory = PathBuf::from(read("directory").trim());
    assert_eq!(directory, narrow.folder.path().canonicalize().unwrap());
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], (None, None));
    assert_eq!(seen[1].1.as_deref(), Some("id-of-shop"));
}

fn only_in_folders(options: &mut HostOptions) {
    let shared = options.shared.as_mut().unwrap();
    shared.everywhere = Arc::default();
}

#[tokio::test]
async fn whatever_makes_a_process_different_makes_another() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let mut kept = vec![machine.unit("a").provider("eu").await];
    kept.push(machine.unit("b").provider("eu").await);
    assert_eq!(machine.counts().0, 1);

    kept.push(machine.unit("c").provider("us").await);
    assert_eq!(machine.counts().0, 2, "a configuration");

    let unit = machine.unit("d");
    let mut request = unit.configuration("eu");
    request.inputs.insert("token".to_owned(), secret("other"));
    let provider = unit.load().await;
    provider.configure(request).await.unwrap();
    kept.push(provider);
    assert_eq!(machine.counts().0, 3, "a secret");

    let environment = |options: &mut HostOptions| {
        options.environment.insert("KEY".into(), "new".into());
    };
    kept.push(machine.unit_with("e", environment).provider("eu").await);
    assert_eq!(machine.counts().0, 4, "an environment");

    let stranger = |options: &mut HostOptions| {
        options.shared.as_mut().unwrap().owner = "somebody else".to_owned();
    };
    kept.push(machine.unit_with("f", stranger).provider("eu").await);
    assert_eq!(machine.counts().0, 5, "an owner");

    let script = format!("echo {}; exec sleep 600", running.port);
    machine.install("1.0.1", &script);
    kept.push(machine.unit("g").provider("eu").await);
    assert_eq!(machine.counts().0, 6, "a version");

    machine.install("1.0.1", &format!("true; {script}"));
    kept.push(machine.unit("h").provider("eu").await);
    assert_eq!(machine.counts().0, 7, "a file");

    let mut renamed = package("fake");
    renamed.download_url = "https://example.com".to_owned();
    let unit = machine.unit("i");
    let provider = unit.load_package(&renamed).await;
    unit.configure(&provider, "eu").await;
    kept.push(provider);
    assert_eq!(machine.counts(), (8, 8), "an origin");

    kept.push(machine.unit("j").provider("eu").await);
    assert_eq!(machine.counts(), (8, 8), "and the same is the same");
}

#[tokio::test]
async fn credentials_in_a_file_count_as_they_are_now() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let file = machine.installed.path().join("credentials");
    let named = |options: &mut HostOptions| {
        let value = file.clone().into_os_string();
        options.environment.insert("CREDENTIALS".into(), value);
    };
    fs::write(&file, "old").unwrap();
    machine.unit_with("a", named).provider("eu").await;
    machine.unit_with("b", named).provider("eu").await;
    assert_eq!(machine.counts().0, 1);
    fs::write(&file, "renewed").unwrap();
    machine.unit_with("c", named).provider("eu").await;
    assert_eq!(machine.counts().0, 2);
}

#[tokio::test]
async fn a_package_that_nobody_reviewed_is_shared_in_one_folder_only() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let one = machine.unit_with("shop", only_in_folders);
    let _first = one.provider("eu").await;
    let _other = machine
        .unit_with("shop", only_in_folders)
        .provider("eu")
        .await;
    assert_eq!(machine.counts().0, 2);
    let again = machine.unit_with("shop", |options| {
        only_in_folders(options);
        options.directory = one.folder.path().to_owned();
        options.program_folder = one.folder.path().to_owned();
    });
    let _again = again.provider("eu").await;
    assert_eq!(machine.counts().0, 2, "the next run in the folder");
}

#[tokio::test]
async fn what_belongs_to_a_project_stays_with_its_operation() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let script = format!("echo {}; exec sleep 600", running.port);
    let folder = TempDir::new().unwrap();

    let program = machine.write(&folder.path().join("pulumi-resource-fake"), &script);
    let own = |options: &mut HostOptions| {
        options.search.project = vec![ProjectPlugin {
            kind: PluginKind::Resource,
            name: "fake".to_owned(),
            version: None,
            folder: folder.path().to_owned(),
        }];
    };
    let inside = |options: &mut HostOptions| {
        options.directory = folder.path().to_owned();
        options.search.path = Some(folder.path().into());
    };
    let python = machine.write(&folder.path().join("python"), &script);
    let dynamic = |options: &mut HostOptions| options.python = Some(python.clone());
    let attached = |options: &mut HostOptions| {
        options.search.running = [("fake".to_owned(), running.port)].into();
    };
    type Change<'a> = &'a dyn Fn(&mut HostOptions);
    let cases: [(&str, &str, Change<'_>, usize); 4] = [
        ("named by the project", "fake", &own, 2),
        ("inside of the project", "fake", &inside, 2),
        ("dynamic", "pulumi-python", &dynamic, 2),
        ("attached", "fake", &attached, 0),
    ];
    assert!(program.exists());
    for (case, name, change, processes) in cases {
        let before = machine.counts().0;
        for _ in 0..2 {
            let unit = machine.unit_with("shop", |options| {
                let shared = options.shared.as_mut().unwrap();
                shared.everywhere = Arc::new([name.to_owned()].into());
                change(options);
            });
            let provider = unit.load_package(&package(name)).await;
            unit.configure(&provider, "eu").await;
            provider.close().await;
        }
        assert_eq!(machine.counts(), (before + processes, 0), "{case}");
        assert!(machine.pool.is_empty(), "{case}");
    }
}

/// A provider whose creates and checks wait until they are let go.
fn waiting() -> (Fake, Arc<Notify>, Arc<Semaphore>) {
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

#[tokio::test]
async fn stopping_one_of_two_leaves_the_other_alone_and_loses_no_outcome() {
    let (fake, entered, gate) = waiting();
    let running = Running::start(fake).await;
    let machine = Machine::with(WARM, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    assert_eq!(machine.counts().0, 1);

    let spawn = |provider: &Arc<dyn Provider>, request| {
        let provider = Arc::clone(provider);
        tokio::spawn(async move { provider.create(request).await })
    };
    let theirs = spawn(&first, one.create("theirs"));
    entered.notified().await;
    let ours = spawn(&second, two.create("ours"));
    entered.notified().await;
    let checking = Arc::clone(&second);
    let check = tokio::spawn(async move { checking.check(CheckRequest::default()).await });
    entered.notified().await;

    second.cancel().await.unwrap();
    let checked = check.await.unwrap();
    assert!(
        matches!(checked, Err(ProviderError::Cancelled)),
        "{checked:?}"
    );
    assert!(!running.calls().contains(&"cancel"));
    gate.add_permits(2);
    assert_eq!(
        ours.await.unwrap().unwrap().id,
        "thing",
        "what acts is seen to its end"
    );
    assert_eq!(theirs.await.unwrap().unwrap().id, "thing");

    first.cancel().await.unwrap();
    assert!(
        running.calls().contains(&"cancel"),
        "nobody is left to disturb"
    );
    first.close().await;
    second.close().await;
    assert_eq!(
        machine.counts(),
        (1, 0),
        "what was told to stop is of no more use"
    );
}

#[tokio::test]
async fn the_plugin_is_told_to_stop_when_only_those_are_left_who_want_to() {
    let (fake, entered, gate) = waiting();
    let running = Running::start(fake).await;
    let machine = Machine::with(WARM, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    let creating = Arc::clone(&second);
    let request = two.create("ours");
    let ours = tokio::spawn(async move { creating.create(request).await });
    entered.notified().await;
    second.cancel().await.unwrap();
    assert!(!running.calls().contains(&"cancel"));
    first.close().await;
    eventually("the request to stop", || {
        running.calls().contains(&"cancel").then_some(())
    })
    .await;
    gate.add_permits(1);
    ours.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_process_that_was_left_in_the_middle_of_something_gets_no_new_users() {
    let (fake, entered, gate) = waiting();
    let running = Running::start(fake).await;
    let machine = Machine::with(WARM, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    let creating = Arc::clone(&second);
    let request = two.create("ours");
    let ours = tokio::spawn(async move { creating.create(request).await });
    entered.notified().await;
    ours.abort();
    assert!(ours.await.unwrap_err().is_cancelled());
    drop((second, two));

    let third = machine.unit("three").provider("eu").await;
    assert_eq!(machine.counts(), (2, 2));
    gate.add_permits(2);
    first.create(one.create("theirs")).await.unwrap();
    first.close().await;
    assert_eq!(machine.counts(), (2, 1));
    drop(third);
}

#[tokio::test]
async fn a_crash_fails_the_calls_of_all_and_the_next_gets_a_new_process() {
    let machine = Machine::new(WARM, &role("dies"));
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    assert_eq!(machine.counts(), (1, 1));
    let reading = Arc::clone(&second);
    let read = tokio::spawn(async move { reading.read(ReadRequest::default()).await });
    let created = first.create(one.create("thing")).await;
    let Err(ProviderError::Unknown { message }) = created else {
        panic!("{created:?}")
    };
    assert_eq!(message, "the plugin fake ended (exit code 7) during Create");
    let read = read.await.unwrap();
    assert!(
        matches!(
            read,
            Err(ProviderError::Unknown { .. } | ProviderError::Failed { .. })
        ),
        "{read:?}"
    );
    for unit in [&one, &two] {
        eventually("the news", || {
            let told = unit.audience.told(Severity::Error);
            told.iter()
                .any(|line| line.contains("ended by itself"))
                .then_some(())
        })
        .await;
    }
    let third = machine.unit("three").provider("eu").await;
    assert_eq!(machine.counts(), (2, 1));
    drop(third);
}

/// Not a test of its own: an engine that keeps a plugin warm until somebody kills it.
pub(crate) async fn keep_warm_for_ever(folder: &Path) {
    let machine = Machine {
        installed: TempDir::new().unwrap(),
        pool: ProviderPool::new(WARM, LIMITS, Arc::new(Ports)),
    };
    let unit = machine.unit_with("one", |options| {
        options.search.installed = Some(folder.to_owned());
    });
    unit.provider("eu").await.close().await;
    assert_eq!(machine.pool.len(), 1);
    fs::write(folder.join("warm"), "").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_warm_process_does_not_outlive_an_engine_that_is_killed() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let mut engine = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::acts_as_another_program"])
        .env(ROLE, "warm engine")
        .env(FOLDER, machine.installed.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the plugin to be warm", || {
        machine.installed.path().join("warm").exists().then_some(())
    })
    .await;
    assert_eq!(machine.counts(), (1, 1));
    engine.kill().unwrap();
    engine.wait().unwrap();
    eventually("its end", || (machine.counts() == (1, 0)).then_some(())).await;
}

/// A provider that says at the engine's address what it is doing.
fn talking() -> Fake {
    let address = Arc::new(std::sync::Mutex::new(String::new()));
    let told = Arc::clone(&address);
    Fake {
        handshake: answer(move |request: proto::ProviderHandshakeRequest| {
            *told.lock().unwrap() = request.engine_address;
            Ok(proto::ProviderHandshakeResponse::default())
        }),
        create: Some(Box::new(move |request: proto::CreateRequest| {
            let address = address.lock().unwrap().clone();
            Box::pin(async move {
                say(&address, &request.urn, &format!("making {}", request.name)).await;
                say(&address, "", &format!("busy with {}", request.name)).await;
                let elsewhere = request.urn.replace("::shop-", "::gone-");
                say(&address, &elsewhere, "for nobody here").await;
                Ok(proto::CreateResponse {
                    id: "thing".to_owned(),
                    ..Default::default()
                })
            })
        })),
        ..simple()
    }
}

async fn say(address: &str, urn: &str, message: &str) {
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}"))
        .unwrap()
        .connect()
        .await
        .unwrap();
    let request = proto::LogRequest {
        severity: proto::LogSeverity::Warning.into(),
        message: message.to_owned(),
        urn: urn.to_owned(),
        ..Default::default()
    };
    let mut engine = proto::engine_client::EngineClient::new(channel);
    engine.log(request).await.unwrap();
}

#[tokio::test]
async fn what_a_plugin_says_reaches_the_unit_that_it_is_about() {
    let running = Running::start(talking()).await;
    let machine = Machine::with(WARM, &running);
    let (one, two) = (machine.unit("shop-one"), machine.unit("shop-two"));
    let (first, second) = (one.provider("eu").await, two.provider("eu").await);
    assert_eq!(machine.counts().0, 1);
    first.create(one.create("a")).await.unwrap();
    assert_eq!(
        one.audience.told(Severity::Warning),
        ["making a", "busy with a"]
    );
    assert_eq!(two.audience.told(Severity::Warning), ["busy with a"]);
    first.close().await;
    second.create(two.create("b")).await.unwrap();
    let told = two.audience.told(Severity::Warning);
    assert_eq!(told, ["busy with a", "making b", "busy with b"]);
    let told = one.audience.told(Severity::Warning);
    assert_eq!(told, ["making a", "busy with a"], "it has left");
}

/// Reads the file that it is given, as a provider of a cloud does.
fn uploading() -> Fake {
    Fake {
        create: answer(|request: proto::CreateRequest| {
            let mut properties = request.properties.unwrap();
            let Some(proto::Kind::StructValue(asset)) = &properties.fields["source"].kind else {
                return Err(tonic::Status::invalid_argument("no asset"));
            };
            let Some(proto::Kind::StringValue(path)) = &asset.fields["path"].kind else {
                return Err(tonic::Status::invalid_argument("no path"));
            };
            let content = fs::read_to_string(path);
            let content = content.map_err(|error| tonic::Status::not_found(error.to_string()))?;
            properties.fields.insert("content".to_owned(), s(&content));
            Ok(proto::CreateResponse {
                id: "object".to_owned(),
                properties: Some(properties),
                ..Default::default()
            })
        }),
        ..modern()
    }
}

#[tokio::test]
async fn files_are_found_in_the_folder_of_each_unit_and_recorded_as_written() {
    let running = Running::start(uploading()).await;
    let machine = Machine::with(WARM, &running);
    for name in ["one", "two"] {
        let unit = machine.unit(name);
        fs::write(
            unit.folder.path().join("page.html"),
            format!("page of {name}"),
        )
        .unwrap();
        let provider = unit.provider("eu").await;
        let source = PropertyValue::Asset(Asset::Path {
            hash: "h".to_owned(),
            path: "page.html".to_owned(),
        });
        let request = CreateRequest {
            properties: map([("source", source.clone())]),
            ..unit.create("page")
        };
        let created = provider.create(request).await.unwrap().properties;
        assert_eq!(
            created["content"],
            format!("page of {name}").as_str().into()
        );
        assert_eq!(created["source"], source);
    }
    assert_eq!(machine.counts().0, 1);
}

#[tokio::test]
async fn a_text_that_may_be_a_path_is_given_to_a_process_in_the_folder() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let unit = machine.unit("one");
    fs::write(unit.folder.path().join("canary.zip"), "").unwrap();
    let provider = unit.provider("eu").await;
    let request = |text: &str| CreateRequest {
        properties: map([("zipFile", text.into())]),
        ..unit.create("canary")
    };
    provider.create(request("a-name")).await.unwrap();
    assert_eq!(machine.counts().0, 1);
    provider.create(request("canary.zip")).await.unwrap();
    provider.create(request("canary.zip")).await.unwrap();
    assert_eq!(machine.counts().0, 2, "one that runs where the file is");

    let other = machine.unit("two");
    fs::write(other.folder.path().join("key.json"), "").unwrap();
    let configured = other.load().await;
    let mut request = other.configuration("eu");
    let key = ("credentials".to_owned(), "./key.json".into());
    request.inputs.extend([key]);
    configured.configure(request).await.unwrap();
    assert_eq!(machine.counts().0, 3, "a configuration may name a file too");
}

#[tokio::test]
async fn a_process_that_nobody_uses_ends_after_a_while() {
    let running = Running::start(creates()).await;
    let keep = KeepWarm {
        idle: Some(Duration::from_millis(100)),
        ..WARM
    };
    let machine = Machine::with(keep, &running);
    let provider = machine.unit("one").provider("eu").await;
    let again = machine.unit("two").provider("eu").await;
    provider.close().await;
    assert_eq!(machine.counts(), (1, 1));
    again.close().await;
    eventually("its end", || (machine.counts() == (1, 0)).then_some(())).await;
    assert!(running.calls().contains(&"cancel"), "it was asked first");
    machine.unit("three").provider("eu").await;
    assert_eq!(machine.counts().0, 2);
}

#[tokio::test]
async fn of_too_many_that_wait_the_one_that_has_waited_longest_ends() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(KeepWarm { most: 1, ..WARM }, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let (first, second) = (one.provider("eu").await, two.provider("us").await);
    first.close().await;
    assert_eq!(machine.counts(), (2, 2));
    second.close().await;
    eventually("the end of one", || {
        (machine.counts() == (2, 1)).then_some(())
    })
    .await;
    machine.unit("three").provider("us").await;
    assert_eq!(machine.counts().0, 2, "the younger one is still there");
}

#[tokio::test]
async fn a_process_takes_new_users_only_while_its_credentials_are_fresh() {
    let running = Running::start(creates()).await;
    let keep = KeepWarm {
        age: Duration::ZERO,
        ..WARM
    };
    let machine = Machine::with(keep, &running);
    let (one, two) = (machine.unit("one"), machine.unit("two"));
    let first = one.provider("eu").await;
    assert_eq!(machine.counts().0, 1);
    let second = two.provider("eu").await;
    assert_eq!(machine.counts(), (2, 2));
    first.create(one.create("thing")).await.unwrap();
    for provider in [first, second] {
        provider.close().await;
    }
    assert_eq!(machine.counts(), (2, 0), "and does not wait for any");
}

#[tokio::test]
async fn where_nobody_would_end_it_properly_only_a_reviewed_plugin_waits() {
    let running = Running::start(creates()).await;
    let keep = KeepWarm {
        only_reviewed: true,
        ..WARM
    };
    let machine = Machine::with(keep, &running);
    machine.unit("one").provider("eu").await.close().await;
    assert_eq!(machine.counts(), (1, 1));
    let unreviewed = machine.unit_with("two", only_in_folders);
    unreviewed.provider("eu").await.close().await;
    assert_eq!(machine.counts(), (2, 1));
    assert!(running.calls().contains(&"cancel"), "it was asked to end");
}

#[tokio::test]
async fn a_start_that_fails_fails_for_all_who_wait_and_is_tried_again_by_the_next() {
    let machine = Machine::new(WARM, "sleep 0.3; echo 'no licence' >&2; exit 3");
    let units: Vec<_> = ["one", "two", "three"]
        .map(|name| machine.unit(name))
        .into();
    let fake = package("fake");
    let loads = units.iter().map(|unit| unit.host.load(&fake));
    for loaded in futures::future::join_all(loads).await {
        let error = loaded.err().unwrap().to_string();
        assert!(error.contains("no licence"), "{error}");
    }
    assert_eq!(machine.counts(), (1, 0));
    assert!(units[0].host.load(&fake).await.is_err());
    assert_eq!(machine.counts().0, 2);
}

#[tokio::test]
async fn a_configuration_that_is_refused_is_refused_once_for_all_who_wait() {
    let running = Running::start(Fake {
        configure: answer(|_| Err(tonic::Status::unknown("bad credentials"))),
        ..modern()
    })
    .await;
    let machine = Machine::with(WARM, &running);
    let units: Vec<_> = ["one", "two", "three"]
        .map(|name| machine.unit(name))
        .into();
    let configure = units.iter().map(|unit| async {
        let provider = unit.load().await;
        let configured = provider.configure(unit.configuration("eu")).await;
        (provider, configured)
    });
    let ended = futures::future::join_all(configure).await;
    for (_, configured) in &ended {
        let error = configured.as_ref().unwrap_err().to_string();
        assert!(error.contains("bad credentials"), "{error}");
    }
    let calls = running.calls();
    assert_eq!(calls.iter().filter(|call| **call == "configure").count(), 1);
    assert_eq!(machine.counts(), (1, 0));
}

#[tokio::test]
async fn dropping_the_pool_leaves_no_process_behind() {
    let running = Running::start(creates()).await;
    let machine = Machine::with(WARM, &running);
    let unit = machine.unit("one");
    unit.provider("eu").await;
    let pids = machine.processes();
    assert_eq!(machine.counts(), (1, 1), "it is warm");
    drop(unit);
    let Machine { installed, pool } = machine;
    drop(pool);
    for pid in pids {
        eventually("its death", || (!is_running(pid)).then_some(())).await;
    }
    drop(installed);
}

#[tokio::test]
async fn different_configurations_of_a_unit_are_asked_about_in_processes_of_their_own() {
    let asked = Arc::new(std::sync::Mutex::new(BTreeMap::<String, usize>::new()));
    let count = Arc::clone(&asked);
    let running = Running::start(Fake {
        check_config: answer(move |request: proto::CheckRequest| {
            let region = format!("{:?}", request.news.as_ref().unwrap().fields["region"]);
            *count.lock().unwrap().entry(region).or_default() += 1;
            Ok(proto::CheckResponse {
                inputs: request.news,
                failures: vec![],
            })
        }),
        ..creates()
    })
    .await;
    let machine = Machine::with(WARM, &running);
    let unit = machine.unit("one");
    let (eu, us) = (unit.load().await, unit.load().await);
    assert_eq!(machine.counts().0, 1, "nobody knows yet what they will be");
    unit.configure(&eu, "eu").await;
    unit.configure(&us, "us").await;
    assert_eq!(machine.counts(), (2, 2));
    assert_eq!(asked.lock().unwrap().len(), 2);
}
