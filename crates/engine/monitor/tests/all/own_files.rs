//! What providers are told of the files of a stranger's project, wherever the values come from.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_files::ProjectFiles;
use nimbus_engine_model::{Asset, PackageDescriptor, PropertyValue};
use nimbus_engine_monitor::{OwnFiles, OwnFilesHost};
use nimbus_engine_ports::{InvokeRequest, InvokeResponse, LoadError, Provider, ProviderHost};
use nimbus_engine_testing::{AnsweringProvider, Rig, ScriptedProgram, ScriptedResource};
use parking_lot::Mutex;

struct Host(Arc<AnsweringProvider>);

#[async_trait]
impl ProviderHost for Host {
    async fn load(&self, _: &PackageDescriptor) -> Result<Arc<dyn Provider>, LoadError> {
        Ok(Arc::clone(&self.0) as _)
    }
}

/// A stranger's project beside a secret, and everything that its providers are asked.
struct Scene {
    root: tempfile::TempDir,
    rig: Rig,
    host: OwnFilesHost,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(root.path().join("own/program")).expect("folders");
        fs::write(root.path().join("own/mine"), "mine").expect("a file");
        fs::write(root.path().join("secret"), "secret").expect("a file");
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let provider = AnsweringProvider::default().on_invoke(|request| {
            Ok(InvokeResponse {
                properties: request.args,
                failures: Vec::new(),
            })
        });
        macro_rules! write_down {
            ($($method:ident),*) => {{
                let mut replies = provider.replies.lock();
                $(let log = Arc::clone(&asked);
                replies.$method = Some(Box::new(move |request| {
                    log.lock().push(format!("{request:?}"));
                    None
                }));)*
            }};
        }
        write_down!(check, diff, create, read, update, delete);
        let provider = Arc::new(provider);
        let host = || {
            let folder = root.path().join("own");
            let own = OwnFiles {
                files: ProjectFiles::beneath(&folder, &[]).expect("a kernel with openat2"),
                folders: vec![folder.clone(), folder.join("program")],
                reaches_out: false,
            };
            OwnFilesHost::new(Arc::new(Host(Arc::clone(&provider))), own)
        };
        Self {
            rig: Rig::with_host(Arc::new(host())),
            host: host(),
            root,
            asked,
        }
    }

    fn asset(&self, path: &str) -> PropertyValue {
        let path = self.root.path().join(path).display().to_string();
        let hash = "0".repeat(64);
        PropertyValue::Asset(Asset::Path { hash, path })
    }

    /// Records an asset that no registration of today would get past the monitor.
    fn record(&mut self, name: &str, value: PropertyValue) {
        self.rig.edit(name, |state| {
            state.inputs.insert("file".to_owned(), value.clone());
            state.outputs.insert("file".to_owned(), value);
        });
    }

    fn was_told(&self, text: &str) -> bool {
        self.asked.lock().iter().any(|asked| asked.contains(text))
    }
}

fn thing(value: PropertyValue) -> ScriptedResource {
    ScriptedResource::custom("pkg:m:T", "thing").prop("file", value)
}

fn ignoring(value: PropertyValue) -> ScriptedProgram {
    let kept = |goal: &mut nimbus_engine_model::Goal| goal.ignore_changes.push("file".to_owned());
    ScriptedProgram::new([thing(value).option(kept)])
}

#[tokio::test]
async fn a_recorded_file_of_others_does_not_come_back_as_an_input() {
    let mut scene = Scene::new();
    let mine = scene.asset("own/mine");
    let program = ScriptedProgram::new([thing(mine.clone())]);
    scene.rig.up(&program).await.ok();
    scene.record("thing", scene.asset("secret"));
    for previewed in [true, false] {
        let run = match previewed {
            true => scene.rig.preview(&ignoring(mine.clone())).await,
            false => scene.rig.up(&ignoring(mine.clone())).await,
        };
        assert!(!run.succeeded());
        assert!(run.says("may use only files of its own folder"));
    }
    assert!(!scene.was_told("/secret"));
}

#[tokio::test]
async fn a_link_that_was_swapped_between_runs_leads_nowhere() {
    let mut scene = Scene::new();
    let swap = scene.root.path().join("own/swap");
    fs::write(&swap, "mine").expect("a file");
    let value = scene.asset("own/swap");
    let program = ScriptedProgram::new([thing(value.clone())]);
    scene.rig.up(&program).await.ok();
    assert!(scene.was_told("own/swap"));
    scene.asked.lock().clear();
    fs::remove_file(&swap).expect("it is there");
    symlink(scene.root.path().join("secret"), &swap).expect("a link");
    let run = scene.rig.up(&ignoring(value)).await;
    assert!(!run.succeeded());
    // What is recorded can be refreshed and deleted; its path is not told.
    scene.rig.refresh().await.ok();
    scene.rig.destroy().await.ok();
    assert!(scene.was_told("DeleteRequest"));
    assert!(!scene.was_told("own/swap"));
}

#[tokio::test]
async fn what_a_stack_has_is_deleted_though_its_file_is_elsewhere() {
    let mut scene = Scene::new();
    let program = ScriptedProgram::new([thing(scene.asset("own/mine"))]);
    scene.rig.up(&program).await.ok();
    scene.record("thing", scene.asset("secret"));
    scene.rig.refresh().await.ok();
    scene.record("thing", scene.asset("secret"));
    scene.rig.destroy().await.ok();
    assert!(scene.was_told("DeleteRequest") && scene.was_told("ReadRequest"));
    assert!(scene.was_told(&"0".repeat(64)));
    assert!(!scene.was_told("/secret"));
}

#[tokio::test]
async fn functions_are_not_told_of_files_of_others() {
    let scene = Scene::new();
    let provider = scene.host.load(&PackageDescriptor::default()).await;
    let provider = provider.expect("a provider");
    let invoke = |value: PropertyValue| {
        provider.invoke(InvokeRequest {
            args: [("x".to_owned(), PropertyValue::Array(vec![value]))].into(),
            ..InvokeRequest::default()
        })
    };
    let at = |path: &str| {
        let (hash, path) = (String::new(), path.to_owned());
        PropertyValue::Asset(Asset::Path { hash, path })
    };
    let uri = |uri: &str| {
        let (hash, uri) = (String::new(), uri.to_owned());
        PropertyValue::Asset(Asset::Uri { hash, uri })
    };
    assert!(invoke(scene.asset("own/mine")).await.is_ok());
    assert!(invoke(at("mine")).await.is_ok());
    // Relative to the program this is the project's own, and to the provider it is not.
    for refused in [
        at("../mine"),
        at("/etc/passwd"),
        at("missing"),
        uri("file:///etc/passwd"),
        uri("http://169.254.169.254/"),
        uri("/etc/passwd"),
        scene.asset("secret"),
    ] {
        assert!(invoke(refused.clone()).await.is_err(), "{refused:?}");
    }
}
