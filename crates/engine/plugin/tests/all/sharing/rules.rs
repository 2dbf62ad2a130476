//! Who shares a process with whom.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use nimbus_engine_plugin::{HostOptions, PluginKind, ProjectPlugin};
use nimbus_engine_proto as proto;
use tempfile::TempDir;

use super::*;

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
