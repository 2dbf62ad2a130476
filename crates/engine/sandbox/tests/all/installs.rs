//! X5: packages run code when they are installed. In the sandbox it reaches nothing.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use nimbus_engine_sandbox::Sandbox;

use crate::support::*;

/// Installs in a sandbox in which only the project's own directory can be written.
fn install(project: &Path, interpreter: &Path, command: &Command, packages: &[PathBuf]) -> Outcome {
    let sandbox = Sandbox::new(helper(), probe(), strict()).unwrap();
    let mut room = sandbox.open().unwrap();
    let mut read_only = readable(packages[0].as_path(), interpreter);
    read_only.named.retain(|path| !path.starts_with(project));
    let mut command = room
        .enclose(command, &read_only, &[project.to_owned()])
        .unwrap();
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    finish(command.spawn().unwrap(), &room)
}

struct Scene {
    project: tempfile::TempDir,
    package: tempfile::TempDir,
    outside: tempfile::TempDir,
    service: TcpListener,
}

impl Scene {
    fn new() -> Self {
        let scene = Self {
            project: tempfile::tempdir().unwrap(),
            package: tempfile::tempdir().unwrap(),
            outside: tempfile::tempdir().unwrap(),
            service: TcpListener::bind("127.0.0.1:0").unwrap(),
        };
        fs::write(scene.outside.path().join("secret"), "secret").unwrap();
        scene
    }

    /// Source text with this scene's places.
    fn fill(&self, text: &str) -> String {
        let port = self.service.local_addr().unwrap().port().to_string();
        text.replace("OUTSIDE", &self.outside.path().display().to_string())
            .replace("PROJECT", &self.project.path().display().to_string())
            .replace("PORT", &port)
    }

    /// What the package's code wrote down about its attempts.
    #[track_caller]
    fn assert_refused(&self, outcome: &Outcome) {
        let log = fs::read_to_string(self.project.path().join("log"));
        let log = log.unwrap_or_else(|_| panic!("the package's code did not run: {outcome:#?}"));
        for name in ["secret", "write", "service"] {
            let refused = log
                .lines()
                .any(|line| line.starts_with(&format!("{name}: refused")));
            assert!(refused, "{name} in {log} {outcome:#?}");
        }
        assert!(!self.outside.path().join("new").exists());
    }
}

#[test]
fn a_package_of_npm_that_attacks_while_it_is_installed_reaches_nothing() {
    let test = "npm";
    if !complete_sandbox_or_skip(test) {
        return;
    }
    let Some(node) = Language::Node.interpreter(test) else {
        return;
    };
    let scene = Scene::new();
    let postinstall = scene.fill(
        r#"
        const log = [];
        const old = console.log;
        console.log = (line) => { log.push(line); require("fs").writeFileSync("PROJECT/log", log.join("\n")); };
        attempt("secret", () => fs.readFileSync("OUTSIDE/secret"));
        attempt("write", () => fs.writeFileSync("OUTSIDE/new", "x"));
        connect("service", { host: "127.0.0.1", port: PORT });
        "#,
    );
    let postinstall = source(Language::Node, &postinstall, "");
    fs::write(scene.package.path().join("attack.js"), postinstall).unwrap();
    let manifest =
        r#"{"name":"evil","version":"1.0.0","scripts":{"postinstall":"node attack.js"}}"#;
    fs::write(scene.package.path().join("package.json"), manifest).unwrap();
    fs::write(
        scene.project.path().join("package.json"),
        r#"{"name":"app"}"#,
    )
    .unwrap();
    let mut command = Command::new("npm");
    command
        .args([
            "install",
            "--install-links",
            "--no-audit",
            "--no-fund",
            "--offline",
            "--foreground-scripts",
        ])
        .arg(scene.package.path())
        .current_dir(scene.project.path())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let packages = [scene.package.path().to_owned()];
    let outcome = install(scene.project.path(), &node, &command, &packages);
    scene.assert_refused(&outcome);
}

#[test]
fn a_package_of_pip_that_attacks_while_it_is_installed_reaches_nothing() {
    let test = "pip";
    if !complete_sandbox_or_skip(test) {
        return;
    }
    let Some(python) = Language::Python.interpreter(test) else {
        return;
    };
    let scene = Scene::new();
    let attack = scene.fill(
        r#"
log = open("PROJECT/log", "w")
report = lambda name, result: print(f"{name}: {result}", file=log, flush=True)
attempt("secret", lambda: read("OUTSIDE/secret"))
attempt("write", lambda: write("OUTSIDE/new"))
connect("service", socket.AF_INET, ("127.0.0.1", PORT))
"#,
    );
    // An attack that needs no build tool: pip runs the backend that a package names.
    let backend = source(Language::Python, "", &attack);
    fs::write(scene.package.path().join("backend.py"), backend).unwrap();
    let project = "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n\
                   [project]\nname = \"evil\"\nversion = \"1.0.0\"\n";
    fs::write(scene.package.path().join("pyproject.toml"), project).unwrap();
    let mut command = Command::new(&python);
    command
        .args([
            "-m",
            "pip",
            "install",
            "--no-index",
            "--no-build-isolation",
            "--target",
        ])
        .arg(scene.project.path().join("packages"))
        .arg(scene.package.path())
        .current_dir(scene.project.path())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let packages = [scene.package.path().to_owned()];
    let outcome = install(scene.project.path(), &python, &command, &packages);
    scene.assert_refused(&outcome);
}
