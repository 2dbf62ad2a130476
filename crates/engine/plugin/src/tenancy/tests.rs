use super::*;

const SEVERAL: Tenancy = Tenancy::Several { providers: None };

fn package(name: &str) -> PackageDescriptor {
    PackageDescriptor {
        name: name.to_owned(),
        ..PackageDescriptor::default()
    }
}

#[test]
fn what_hands_out_the_machine_has_to_be_named() {
    assert_eq!(SEVERAL.refuses(&package("random")), None);
    assert!(SEVERAL.refuses(&package("command")).is_some());
    let named = Tenancy::Several {
        providers: Some(["command".to_owned()].into()),
    };
    assert_eq!(named.refuses(&package("command")), None);
    assert!(named.refuses(&package("random")).is_some());
    assert_eq!(Tenancy::Single.refuses(&package("command")), None);
}

#[test]
fn a_program_does_not_choose_among_the_operators_credentials() {
    let inputs = |name: &str| PropertyMap::from([(name.to_owned(), "x".into())]);
    for name in ["profile", "sharedConfigFiles"] {
        assert!(SEVERAL.refuses_inputs("aws", &inputs(name)).is_some());
        assert_eq!(Tenancy::Single.refuses_inputs("aws", &inputs(name)), None);
    }
    assert_eq!(SEVERAL.refuses_inputs("aws", &inputs("region")), None);
}

#[test]
fn a_program_names_no_file_of_the_machine_to_a_provider() {
    let refused = |package: &str, name: &str, value: PropertyValue| {
        let inputs = PropertyMap::from([(name.to_owned(), value)]);
        assert_eq!(Tenancy::Single.refuses_inputs(package, &inputs), None);
        SEVERAL.refuses_inputs(package, &inputs).is_some()
    };
    let identity = "assumeRoleWithWebIdentity";
    let token = |name: &str| PropertyMap::from([(name.to_owned(), "/etc/shadow".into())]);
    let file = PropertyValue::from(token("webIdentityTokenFile"));
    assert!(refused("aws", identity, file.clone()));
    assert!(refused("aws", identity, PropertyValue::secret(file)));
    assert!(refused(
        "aws",
        identity,
        r#"{"webIdentity\u0054okenFile":"/x"}"#.into()
    ));
    assert!(!refused("aws", identity, token("webIdentityToken").into()));
    assert!(refused("aws", "customCaBundle", "/etc/shadow".into()));
    assert!(refused("azure-native", "oidcTokenFilePath", "/x".into()));
    assert!(refused("azure", "clientCertificatePath", "/x".into()));
    assert!(!refused("azure", "clientSecret", "x".into()));
    for credentials in ["/etc/shadow", r#"{"type":"external_account"}"#, "{}"] {
        assert!(refused("gcp", "credentials", credentials.into()));
    }
    let key = PropertyValue::secret(r#"{"type":"service_account"}"#.into());
    assert!(!refused("gcp", "credentials", key));
}

fn kept(package: &str, tenancy: &Tenancy) -> Vec<String> {
    let all = [
        "AWS_SECRET_ACCESS_KEY",
        "ARM_CLIENT_SECRET",
        "CLOUDFLARE_API_TOKEN",
        "GOOGLE_CREDENTIALS",
        "KUBECONFIG",
        "NIMBUS_JWT_SECRET",
        "PATH",
        "PULUMI_CONFIG_PASSPHRASE",
    ];
    let all = all.map(|name| (OsString::from(name), OsString::from("x")));
    let kept = environment(&all.into(), package, tenancy).into_keys();
    kept.map(|name| name.into_string().expect("text")).collect()
}

#[test]
fn a_provider_gets_its_own_credentials_and_no_others() {
    let several = |package| kept(package, &SEVERAL);
    assert_eq!(several("aws"), ["AWS_SECRET_ACCESS_KEY", "PATH"]);
    assert_eq!(several("azure-native"), ["ARM_CLIENT_SECRET", "PATH"]);
    assert_eq!(several("gcp"), ["GOOGLE_CREDENTIALS", "PATH"]);
    assert_eq!(several("cloudflare"), ["CLOUDFLARE_API_TOKEN", "PATH"]);
    assert_eq!(several("kubernetes"), ["KUBECONFIG", "PATH"]);
    assert_eq!(several("random"), ["PATH"]);
}

#[test]
fn nobody_gets_what_is_nimbus_own() {
    for package in ["nimbus", "pulumi", "random"] {
        let kept = kept(package, &SEVERAL);
        assert!(!kept.contains(&"NIMBUS_JWT_SECRET".to_owned()), "{package}");
        assert!(!kept.contains(&"PULUMI_CONFIG_PASSPHRASE".to_owned()));
    }
}

#[test]
fn alone_everything_is_ones_own() {
    assert_eq!(kept("aws", &Tenancy::Single).len(), 8);
}

#[test]
fn only_the_operators_plugins_run_outside() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let root = tempfile::tempdir().expect("a temporary directory");
    let path = |path: &str| root.path().join(path);
    for plugin in [
        "plugins/resource-x-v1.0.0/p",
        "bin/p",
        "project/p",
        "evil/p",
    ] {
        fs::create_dir_all(path(plugin).parent().expect("a folder")).expect("folders");
        fs::write(path(plugin), "").expect("a file");
    }
    symlink(path("evil"), path("plugins/resource-y-v1.0.0")).expect("a link");
    let search = PluginSearch {
        installed: Some(path("plugins")),
        path: Some(std::env::join_paths([path("bin"), ".".into()]).expect("a path")),
        ..PluginSearch::default()
    };
    let project = path("project");
    let check = |plugin: &str| check_operators(&path(plugin), &search, &[&project]);
    assert_eq!(check("plugins/resource-x-v1.0.0/p"), Ok(()));
    assert_eq!(check("bin/p"), Ok(()));
    // The operator's own link into another folder is the operator's word.
    assert_eq!(check("plugins/resource-y-v1.0.0/p"), Ok(()));
    for refused in [
        "project/p",
        "evil/p",
        "absent",
        "bin/../evil/p",
        "bin/../project/p",
    ] {
        assert!(check(refused).is_err(), "{refused}");
    }
    fs::set_permissions(path("bin/p"), Permissions::from_mode(0o757)).expect("a mode");
    assert!(check("bin/p").expect_err("writable").contains("everybody"));
    fs::set_permissions(path("bin/p"), Permissions::from_mode(0o755)).expect("a mode");
    if nix::unistd::geteuid().is_root() {
        fs::set_permissions(path("bin/p"), Permissions::from_mode(0o775)).expect("a mode");
        nix::unistd::chown(&path("bin/p"), None, Some(100.into())).expect("a group");
        assert!(check("bin/p").expect_err("writable").contains("group 100"));
    }
    // Of source, every file counts.
    fs::write(path("plugins/resource-x-v1.0.0/index.js"), "").expect("a file");
    let mode = Permissions::from_mode(0o666);
    fs::set_permissions(path("plugins/resource-x-v1.0.0/index.js"), mode).expect("a mode");
    assert!(check("plugins/resource-x-v1.0.0").is_err());
    // Whoever can write to a folder far above can put another one in its place.
    fs::set_permissions(path("plugins"), Permissions::from_mode(0o777)).expect("a mode");
    let refused = check("plugins/resource-x-v1.0.0/p").expect_err("writable");
    assert!(refused.contains("everybody"), "{refused}");
}

#[test]
fn what_lies_in_the_project_was_brought_along() {
    let project = tempfile::tempdir().expect("a temporary directory");
    let inside = project.path().join("bin/pulumi-resource-evil");
    assert!(is_brought_along(&inside, &[project.path()]));
    assert!(!is_brought_along(
        Path::new("/usr/bin/x"),
        &[project.path()]
    ));
}
