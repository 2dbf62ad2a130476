//! Where plugins are found, and which one is taken.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nimbus_engine_plugin::{Located, PluginKind, PluginLookupError, PluginSearch, ProjectPlugin};
use semver::Version;
use tempfile::TempDir;

fn program(folder: &Path, name: &str) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join(format!("pulumi-resource-{name}"));
    fs::write(&path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A home with these versions of package `aws` installed.
fn home(versions: &[&str]) -> TempDir {
    let home = TempDir::new().unwrap();
    for version in versions {
        program(
            &home.path().join(format!("plugins/resource-aws-v{version}")),
            "aws",
        );
    }
    home
}

fn search(home: &TempDir) -> PluginSearch {
    PluginSearch {
        installed: Some(home.path().join("plugins")),
        ..PluginSearch::default()
    }
}

/// The version of the installed plugin that is taken.
fn taken(search: &PluginSearch, version: Option<&str>) -> Option<String> {
    let version = version.map(|version| version.parse::<Version>().unwrap());
    match search.locate(PluginKind::Resource, "aws", version.as_ref()) {
        Ok(Located::Program { path }) => {
            let folder = path
                .parent()
                .unwrap()
                .file_name()
                .unwrap()
                .to_str()
                .unwrap();
            Some(folder.strip_prefix("resource-aws-v").unwrap().to_owned())
        }
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    }
}

#[test]
fn a_version_is_taken_exactly_and_the_newest_release_without_one() {
    let home = home(&["6.9.0", "6.10.0", "7.0.0-alpha.1", "5.0.0+build"]);
    let search = search(&home);
    assert_eq!(taken(&search, None).as_deref(), Some("6.10.0"));
    assert_eq!(taken(&search, Some("6.9.0")).as_deref(), Some("6.9.0"));
    assert_eq!(
        taken(&search, Some("7.0.0-alpha.1")).as_deref(),
        Some("7.0.0-alpha.1")
    );
    assert_eq!(
        taken(&search, Some("5.0.0")).as_deref(),
        Some("5.0.0+build")
    );
    assert_eq!(
        taken(&search, Some("6.8.0")),
        None,
        "a newer one will not do"
    );
}

#[test]
fn a_pre_release_is_taken_when_there_is_nothing_else() {
    let home = home(&["7.0.0-alpha.1", "7.0.0-alpha.2"]);
    assert_eq!(
        taken(&search(&home), None).as_deref(),
        Some("7.0.0-alpha.2")
    );
}

#[test]
fn plugins_that_are_being_installed_and_other_files_are_passed_over() {
    let home = home(&["1.0.0", "2.0.0", "3.0.0.tmp123"]);
    let plugins = home.path().join("plugins");
    fs::write(plugins.join("resource-aws-v2.0.0.partial"), "").unwrap();
    fs::write(plugins.join("resource-aws-v9.0.0"), "a file").unwrap();
    program(&plugins.join("resource-aws-native-v8.0.0"), "aws-native");
    program(&plugins.join("analyzer-aws-v8.0.0"), "aws");
    assert_eq!(taken(&search(&home), None).as_deref(), Some("1.0.0"));
}

#[test]
fn what_is_missing_is_said_with_the_places_and_the_versions_that_are_there() {
    let home = home(&["1.0.0", "2.0.0"]);
    let mut search = search(&home);
    search.path = Some("/nonexistent".into());
    let wanted = Version::new(3, 0, 0);
    let error = search
        .locate(PluginKind::Resource, "aws", Some(&wanted))
        .unwrap_err()
        .to_string();
    assert!(error.contains("$PATH for pulumi-resource-aws"), "{error}");
    assert!(error.contains("resource-aws-v3.0.0"), "{error}");
    assert!(
        error.ends_with("installed are only the versions 1.0.0, 2.0.0"),
        "{error}"
    );
}

#[test]
fn the_project_goes_before_the_path_and_the_path_before_what_is_installed() {
    let home = home(&["1.0.0"]);
    let path_folder = TempDir::new().unwrap();
    let on_path = program(path_folder.path(), "aws");
    let project_folder = TempDir::new().unwrap();
    let in_project = program(project_folder.path(), "aws");
    let locate = |search: &PluginSearch, version: &str| {
        search
            .locate(PluginKind::Resource, "aws", Some(&version.parse().unwrap()))
            .unwrap()
    };

    let mut search = search(&home);
    search.path = Some(path_folder.path().into());
    assert_eq!(
        locate(&search, "1.0.0"),
        Located::Program {
            path: on_path.clone()
        }
    );
    search.project = vec![ProjectPlugin {
        kind: PluginKind::Resource,
        name: "aws".into(),
        version: Some(Version::new(1, 0, 0)),
        folder: project_folder.path().to_owned(),
    }];
    assert_eq!(
        locate(&search, "1.0.0"),
        Located::Program { path: in_project }
    );
    assert_eq!(
        locate(&search, "2.0.0"),
        Located::Program { path: on_path },
        "another version"
    );
    search.running = [("aws".to_owned(), 4711.try_into().unwrap())].into();
    assert_eq!(
        locate(&search, "1.0.0"),
        Located::Running {
            port: 4711.try_into().unwrap()
        }
    );
}

#[test]
fn a_folder_with_a_manifest_is_source_and_one_without_anything_is_an_error() {
    let folder = TempDir::new().unwrap();
    let search = PluginSearch {
        project: vec![ProjectPlugin {
            kind: PluginKind::Resource,
            name: "aws".into(),
            version: None,
            folder: folder.path().to_owned(),
        }],
        ..PluginSearch::default()
    };
    let locate = || search.locate(PluginKind::Resource, "aws", None);
    let error = locate().unwrap_err().to_string();
    assert!(
        error.ends_with("has neither pulumi-resource-aws nor PulumiPlugin.yaml"),
        "{error}"
    );
    fs::write(folder.path().join("PulumiPlugin.yaml"), "runtime: nodejs\n").unwrap();
    assert_eq!(
        locate(),
        Ok(Located::Source {
            folder: folder.path().to_owned()
        })
    );
    let path = folder.path().to_owned();
    drop(folder);
    let error = search
        .locate(PluginKind::Resource, "aws", None)
        .unwrap_err();
    assert_eq!(
        error,
        PluginLookupError::Folder {
            folder: path,
            reason: "does not exist".into()
        }
    );
}

#[test]
fn the_environment_says_where_to_look() {
    let from = |variables: &[(&str, &str)]| {
        let environment: BTreeMap<OsString, OsString> = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        PluginSearch::from_environment(&environment, Vec::new())
    };
    let search = from(&[("HOME", "/h"), ("PATH", "/bin")]).unwrap();
    assert_eq!(search.installed, Some("/h/.pulumi/plugins".into()));
    assert_eq!(search.path, Some("/bin".into()));

    let search = from(&[
        ("HOME", "/h"),
        ("PULUMI_HOME", "/p"),
        ("PATH", "/bin"),
        ("PULUMI_IGNORE_AMBIENT_PLUGINS", "1"),
        ("PULUMI_DEBUG_PROVIDERS", "aws:12345,gcp:678"),
    ])
    .unwrap();
    assert_eq!(search.installed, Some("/p/plugins".into()));
    assert_eq!(search.path, None);
    assert_eq!(search.running.len(), 2);
    assert_eq!(search.running["gcp"].get(), 678);

    for text in ["aws", "aws:", "aws:zero", "aws:0", "aws:99999"] {
        let error = from(&[("PULUMI_DEBUG_PROVIDERS", text)]).unwrap_err();
        assert_eq!(
            error,
            PluginLookupError::DebugProviders { entry: text.into() }
        );
    }
}
