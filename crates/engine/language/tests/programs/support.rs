//! What most tests start from.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nimbus_engine_language::{
    LanguageProgram, LaunchError, ProgramEnvironment, ProgramPorts, ProgramSpec, Runtime,
    RuntimeOptions,
};
use nimbus_engine_model::{Goal, PropertyMap, PropertyValue};
use nimbus_engine_monitor::{HookRegistry, Listen, NoRemoteAssets, RunningResources};
use nimbus_engine_ports::{
    DeploymentContext, Diagnostic, EngineEvent, EventSink, Program, ProgramError, Severity,
};
use nimbus_engine_testing::{FakeRegistrar, RegistrationAnswer};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// No test of a real program may take longer, hang or not.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn node_sdk(test: &str) -> Option<PathBuf> {
    required("NIMBUS_TEST_NODE_SDK", "no node SDK", test)
}

pub(crate) fn python(test: &str) -> Option<PathBuf> {
    required("NIMBUS_TEST_PYTHON", "no python SDK", test)
}

#[allow(clippy::print_stderr, reason = "a skipped test must be heard of")]
fn required(variable: &str, reason: &str, test: &str) -> Option<PathBuf> {
    if let Some(value) = std::env::var_os(variable) {
        return Some(value.into());
    }
    eprintln!("SKIPPED {test}: {reason} ({variable} is not set)");
    if let Some(list) = std::env::var_os("NIMBUS_TEST_SKIPS") {
        let mut list = OpenOptions::new()
            .create(true)
            .append(true)
            .open(list)
            .expect("the list of skipped tests can be written");
        writeln!(list, "{reason}\t{test}").expect("the list of skipped tests can be written");
    }
    None
}

/// An audience that can be waited for.
pub(crate) struct Audience {
    seen: watch::Sender<Vec<Diagnostic>>,
}

impl EventSink for Audience {
    fn emit(&self, event: EngineEvent) {
        if let EngineEvent::Diagnostic(diagnostic) = event {
            self.seen.send_modify(|seen| seen.push(diagnostic));
        }
    }
}

impl Audience {
    pub(crate) fn messages(&self, severity: Severity) -> Vec<String> {
        let seen = self.seen.borrow();
        let wanted = seen
            .iter()
            .filter(|diagnostic| diagnostic.severity == severity);
        wanted
            .map(|diagnostic| diagnostic.message.clone())
            .collect()
    }

    pub(crate) fn errors(&self) -> String {
        self.messages(Severity::Error).join("\n")
    }

    pub(crate) async fn heard(&self, text: &str) {
        let mut seen = self.seen.subscribe();
        let heard = seen.wait_for(|seen| seen.iter().any(|d| d.message.contains(text)));
        let heard = tokio::time::timeout(LIMIT, heard).await;
        assert!(heard.is_ok(), "never heard {text:?}");
    }
}

/// A program in a directory of its own.
pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    pub(crate) spec: ProgramSpec,
    pub(crate) registrar: FakeRegistrar,
}

/// A program that is ready to run, with its surroundings.
pub(crate) struct Ready {
    pub(crate) program: LanguageProgram,
    pub(crate) registrar: Arc<FakeRegistrar>,
    pub(crate) audience: Arc<Audience>,
    pub(crate) hooks: Arc<HookRegistry>,
    pub(crate) cancel: CancellationToken,
    /// Kept until the test ends.
    _directory: TempDir,
}

pub(crate) fn bench(runtime: Runtime, files: &[(&str, &str)]) -> Bench {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, content) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("directories");
        fs::write(path, content).expect("a file");
    }
    let spec = ProgramSpec {
        runtime,
        options: RuntimeOptions::default(),
        root: directory.path().to_owned(),
        main: None,
        context: DeploymentContext {
            project: "shop".to_owned(),
            stack: "dev".to_owned(),
            organization: "organization".to_owned(),
            parallel: 4,
            ..DeploymentContext::default()
        },
        args: Vec::new(),
        environment: ProgramEnvironment::Inherit(BTreeMap::new()),
        listen: Listen::Loopback,
        typescript_cache: Some(directory.path().join(".cache")),
        transpile_only: true,
        checker: None,
        warm: None,
        packages: BTreeMap::new(),
        sandbox: None,
        files: nimbus_engine_files::ProjectFiles::unrestricted(),
        readable: Vec::new(),
        grace: Duration::from_secs(20),
    };
    Bench {
        directory,
        spec,
        registrar: FakeRegistrar::new("shop", "dev"),
    }
}

/// A custom resource that needs no provider package.
pub(crate) const THING_TS: &str = r#"
import * as pulumi from "@pulumi/pulumi";
export class Thing extends pulumi.CustomResource {
    declare readonly value: pulumi.Output<any>;
    constructor(name: string, value?: any, opts?: pulumi.CustomResourceOptions) {
        super("test:index:Thing", name, { value }, opts);
    }
}
"#;

pub(crate) fn typescript(sdk: &Path, index: &str) -> Bench {
    let tsconfig =
        r#"{"compilerOptions": {"strict": true, "target": "es2022", "skipLibCheck": true}}"#;
    let bench = bench(
        Runtime::Node,
        &[
            ("package.json", r#"{"name": "shop"}"#),
            ("tsconfig.json", tsconfig),
            ("thing.ts", THING_TS),
            ("index.ts", index),
        ],
    );
    link_sdk(&bench, sdk);
    bench
}

pub(crate) fn esm(sdk: &Path, index: &str) -> Bench {
    let manifest = r#"{"name": "shop", "type": "module"}"#;
    let mut bench = bench(
        Runtime::Node,
        &[("package.json", manifest), ("index.js", index)],
    );
    bench.spec.options =
        RuntimeOptions::new([("typescript".to_owned(), serde_json::Value::Bool(false))]);
    link_sdk(&bench, sdk);
    bench
}

pub(crate) fn link_sdk(bench: &Bench, sdk: &Path) {
    let modules = bench.directory.path().join("node_modules");
    std::os::unix::fs::symlink(sdk.join("node_modules"), modules).expect("a link");
}

/// The interpreter of a virtual environment is used through that environment.
pub(crate) fn python_program(interpreter: &Path, main: &str) -> Bench {
    const THING: &str = r#"
import pulumi

class Thing(pulumi.CustomResource):
    value: pulumi.Output
    def __init__(self, name, value=None, opts=None):
        super().__init__("test:index:Thing", name, {"value": value}, opts)
"#;
    let mut bench = bench(
        Runtime::Python,
        &[("thing.py", THING), ("__main__.py", main)],
    );
    let virtualenv = interpreter.parent().and_then(Path::parent);
    let virtualenv = virtualenv.expect("the interpreter is in bin/ of a virtual environment");
    bench.spec.options = RuntimeOptions::new([(
        "virtualenv".to_owned(),
        virtualenv.display().to_string().into(),
    )]);
    bench
}

impl Bench {
    #[must_use]
    pub(crate) fn dry_run(mut self) -> Self {
        self.spec.context.dry_run = true;
        self.registrar = self.registrar.dry_run();
        self
    }

    #[must_use]
    pub(crate) fn answering(
        mut self,
        script: impl Fn(&Goal) -> RegistrationAnswer + Send + Sync + 'static,
    ) -> Self {
        self.registrar = self.registrar.answering(script);
        self
    }

    #[must_use]
    pub(crate) fn config(mut self, entries: &[(&str, &str)], secret: &[&str]) -> Self {
        let entries = entries.iter();
        self.spec.context.config = entries
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        self.spec.context.config_secret_keys = secret.iter().map(|k| (*k).to_owned()).collect();
        self
    }

    /// Ready to run, without giving the program's files away.
    pub(crate) async fn again(&self) -> Ready {
        let bench = Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
            spec: self.spec.clone(),
            registrar: FakeRegistrar::new("shop", "dev"),
        };
        bench.ready().await
    }

    pub(crate) async fn prepare(self) -> Result<Ready, LaunchError> {
        self.prepare_with(Arc::new(RunningResources::default()))
            .await
    }

    pub(crate) async fn prepare_with(
        self,
        resources: Arc<RunningResources>,
    ) -> Result<Ready, LaunchError> {
        let audience = Arc::new(Audience {
            seen: watch::Sender::default(),
        });
        let hooks = Arc::new(HookRegistry::new(audience.clone()));
        let cancel = CancellationToken::new();
        let ports = ProgramPorts {
            events: audience.clone(),
            hooks: Arc::clone(&hooks),
            assets: Arc::new(NoRemoteAssets),
            resources,
            cancel: cancel.clone(),
        };
        Ok(Ready {
            program: LanguageProgram::prepare(self.spec, ports).await?,
            registrar: Arc::new(self.registrar),
            audience,
            hooks,
            cancel,
            _directory: self.directory,
        })
    }

    pub(crate) async fn ready(self) -> Ready {
        self.prepare().await.expect("everything is installed")
    }
}

impl Ready {
    pub(crate) async fn run(&self) -> Result<(), ProgramError> {
        let run = self.program.run(self.registrar.clone());
        tokio::time::timeout(LIMIT, run)
            .await
            .expect("no program may hang")
    }

    /// Runs until the event and cancels then.
    pub(crate) async fn cancelled_at(&self, event: impl Future<Output = ()>) {
        let mut run = Box::pin(self.run());
        tokio::select! {
            ended = &mut run => unreachable!("{ended:?}: {}", self.audience.errors()),
            () = event => self.cancel.cancel(),
        }
        let ended = run.await;
        assert!(matches!(ended, Err(ProgramError::Cancelled)), "{ended:?}");
    }

    pub(crate) async fn finish(&self) -> Result<(), ProgramError> {
        tokio::time::timeout(LIMIT, self.program.finish())
            .await
            .expect("no program may hang")
    }

    /// Runs the program to both its ends.
    pub(crate) async fn succeed(&self) {
        let run = self.run().await;
        assert!(run.is_ok(), "{run:?}: {}", self.audience.errors());
        let finish = self.finish().await;
        assert!(finish.is_ok(), "{finish:?}: {}", self.audience.errors());
    }

    pub(crate) fn goal(&self, name: &str) -> Goal {
        self.registrar.goal(name).expect("it was asked for")
    }

    pub(crate) fn stack_outputs(&self) -> PropertyMap {
        self.registrar
            .outputs("shop-dev")
            .expect("the stack has outputs")
    }
}

pub(crate) fn secret(value: &str) -> PropertyValue {
    PropertyValue::secret(value.into())
}

/// A pipe that a program and its children hold open; it ends when the last of them does.
pub(crate) struct LifeLine {
    path: PathBuf,
}

impl LifeLine {
    pub(crate) fn new(directory: &Path) -> Self {
        let path = directory.join("alive");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        Self { path }
    }

    /// To be called before anybody opens the other side.
    pub(crate) fn open(&self) -> tokio::net::unix::pipe::Receiver {
        tokio::net::unix::pipe::OpenOptions::new()
            .open_receiver(&self.path)
            .expect("our side of the pipe")
    }
}

/// Returns when nobody holds the other side any more.
pub(crate) async fn all_gone(mut line: tokio::net::unix::pipe::Receiver) {
    use tokio::io::AsyncReadExt as _;
    let mut rest = Vec::new();
    tokio::time::timeout(LIMIT, line.read_to_end(&mut rest))
        .await
        .expect("nothing may be left behind")
        .expect("our side of the pipe can be read");
}
