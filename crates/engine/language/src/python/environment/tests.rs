use serde_json::json;

use super::*;

const OWN: ProjectTrust = ProjectTrust::Own;

fn make_virtualenv(path: &Path) {
    std::fs::create_dir_all(path.join("bin")).expect("a directory");
    std::fs::write(path.join("bin/python"), "").expect("a file");
}

fn options(entries: &[(&str, &str)]) -> RuntimeOptions {
    let entries = entries.iter();
    RuntimeOptions::new(entries.map(|(key, value)| ((*key).to_owned(), json!(value))))
}

struct Project {
    _keep: tempfile::TempDir,
    root: PathBuf,
    program: PathBuf,
}

fn project() -> Project {
    let keep = tempfile::tempdir().expect("a temporary directory");
    let root = keep.path().to_owned();
    let program = root.join("infra");
    std::fs::create_dir(&program).expect("a directory");
    Project {
        _keep: keep,
        root,
        program,
    }
}

impl Project {
    async fn find(&self, entries: &[(&str, &str)]) -> Result<PythonEnvironment, LaunchError> {
        python_environment(&self.root, &self.program, &options(entries), &OWN).await
    }
}

#[tokio::test]
async fn a_named_virtual_environment_is_below_the_project_root() {
    let project = project();
    let missing = project
        .find(&[("virtualenv", "env")])
        .await
        .expect_err("not there yet");
    assert!(
        missing.help().contains("python3 -m venv"),
        "{}",
        missing.help()
    );
    make_virtualenv(&project.root.join("env"));
    let found = project
        .find(&[("virtualenv", "env")])
        .await
        .expect("now it is");
    assert_eq!(found.interpreter(), project.root.join("env/bin/python"));
}

#[tokio::test]
async fn without_options_the_nearest_virtual_environment_is_used() {
    let project = project();
    let ambient = project.find(&[]).await.expect("some python");
    assert_eq!(ambient.virtualenv(), None);
    make_virtualenv(&project.root.join("venv"));
    let found = project.find(&[]).await.expect("the root's");
    assert_eq!(
        found.virtualenv(),
        Some(project.root.join("venv").as_path())
    );
    make_virtualenv(&project.program.join(".venv"));
    let found = project.find(&[]).await.expect("the program's");
    assert_eq!(
        found.virtualenv(),
        Some(project.program.join(".venv").as_path())
    );
}

#[test]
fn only_an_environment_that_is_named_and_missing_is_made() {
    let project = project();
    let missing = |entries: &[(&str, &str)]| {
        missing_environment(&project.root, &project.program, &options(entries))
            .expect("sensible options")
    };
    let named = [("virtualenv", "venv")];
    assert_eq!(missing(&named), Missing::Nothing, "there is no list");
    let requirements = project.root.join("requirements.txt");
    std::fs::write(&requirements, "pulumi").expect("a file");
    assert_eq!(missing(&[]), Missing::Nothing, "none is named");
    let environment = project.root.join("venv");
    let expected = Missing::Pip {
        environment: environment.clone(),
        requirements,
    };
    assert_eq!(missing(&named), expected);
    make_virtualenv(&environment);
    assert_eq!(missing(&named), Missing::Nothing);
    std::fs::write(project.root.join("uv.lock"), "").expect("a file");
    let expected = Missing::Uv {
        project: project.root.clone(),
    };
    assert_eq!(missing(&[]), expected);
}

#[tokio::test]
async fn uv_keeps_its_environment_beside_its_lock_file() {
    let project = project();
    std::fs::write(project.root.join("uv.lock"), "").expect("a file");
    let missing = project.find(&[]).await.expect_err("not there yet");
    assert_eq!(
        missing.help(),
        format!("run: cd {} && uv sync", project.root.display())
    );
    make_virtualenv(&project.root.join(".venv"));
    let found = project
        .find(&[("toolchain", "uv")])
        .await
        .expect("now it is");
    assert_eq!(
        found.virtualenv(),
        Some(project.root.join(".venv").as_path())
    );
}

#[tokio::test]
async fn poetry_projects_may_keep_their_environment_inside() {
    let project = project();
    std::fs::write(project.program.join("pyproject.toml"), "").expect("a file");
    make_virtualenv(&project.program.join(".venv"));
    let found = project
        .find(&[("toolchain", "poetry")])
        .await
        .expect("inside");
    assert_eq!(
        found.virtualenv(),
        Some(project.program.join(".venv").as_path())
    );
}

#[tokio::test]
async fn options_that_make_no_sense_are_named() {
    let project = project();
    let error = project
        .find(&[("toolchain", "conda")])
        .await
        .expect_err("unknown");
    assert!(error.to_string().contains("toolchain"));
    let number = RuntimeOptions::new([("virtualenv".to_owned(), json!(1))]);
    let error = python_environment(&project.root, &project.program, &number, &OWN).await;
    assert!(
        error
            .expect_err("not a string")
            .to_string()
            .contains("virtualenv")
    );
}

#[tokio::test]
async fn an_environment_without_the_sdk_is_refused_with_the_command_to_run() {
    let project = project();
    make_virtualenv(&project.root.join("venv"));
    let found = project.find(&[]).await.expect("the root's");
    let error = found
        .require_sdk(&project.root, &project.program, &OWN)
        .await
        .expect_err("no SDK");
    assert!(
        error.help().ends_with("bin/pip install pulumi"),
        "{}",
        error.help()
    );
    let packages = project
        .root
        .join("venv/lib/python3.11/site-packages/pulumi");
    std::fs::create_dir_all(&packages).expect("directories");
    std::fs::write(packages.join("__init__.py"), "").expect("a file");
    let required = found.require_sdk(&project.root, &project.program, &OWN);
    assert!(required.await.is_ok());
}
