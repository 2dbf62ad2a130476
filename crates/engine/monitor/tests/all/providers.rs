//! Which provider serves a resource, and how default providers come to be.

use std::sync::Arc;

use nimbus_engine_model::{PackageDescriptor, Parameterization, PropertyValue};
use nimbus_engine_monitor::{MonitorSettings, RegisteredPackage, Registration, ResourceOptions};
use nimbus_engine_ports::RegisterStatus;
use nimbus_engine_testing::RegistrationAnswer;

use crate::support::{
    Rig, component, custom, props, provider_ref, registrar, rig, rig_with, settings, with,
};

fn versioned(name: &str, version: &str) -> Registration {
    let options = ResourceOptions {
        version: version.to_owned(),
        ..ResourceOptions::default()
    };
    with(options, custom(name))
}

fn default_providers(rig: &Rig) -> Vec<String> {
    let goals = rig.registrar.goals().into_iter();
    goals
        .filter(|goal| goal.type_.starts_with("pulumi:providers:"))
        .map(|goal| goal.name)
        .collect()
}

fn configured(entries: &[(&str, &str)], secret: &[&str]) -> MonitorSettings {
    let mut settings = settings();
    let entries = entries.iter();
    settings.context.config = entries
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    settings.context.config_secret_keys = secret.iter().map(|key| (*key).to_owned()).collect();
    settings
}

#[tokio::test]
async fn a_default_provider_is_made_once_per_version() {
    let rig = rig();
    rig.register(versioned("a", "7.1.0")).await;
    rig.register(versioned("b", "7.1.0")).await;
    rig.register(versioned("c", "6.0.0")).await;
    rig.register(custom("d")).await;
    assert_eq!(
        default_providers(&rig),
        ["default_7_1_0", "default_6_0_0", "default"]
    );
    assert_eq!(
        rig.goal("a").provider,
        "urn:pulumi:dev::shop::pulumi:providers:aws::default_7_1_0::default_7_1_0-id"
    );
    assert_eq!(rig.goal("a").provider, rig.goal("b").provider);
}

#[tokio::test]
async fn many_who_ask_at_once_share_one_default_provider() {
    let rig = rig();
    let monitor = &rig.monitor;
    let all = (0..50).map(|n| monitor.register(custom(&format!("r{n}"))));
    for registered in futures::future::join_all(all).await {
        assert!(registered.is_ok());
    }
    assert_eq!(default_providers(&rig), ["default"]);
}

#[tokio::test]
async fn a_default_provider_gets_the_packages_configuration_and_nothing_else() {
    let settings = configured(
        &[("aws:region", "eu"), ("aws:key", "k"), ("gcp:zone", "z")],
        &["aws:key"],
    );
    let rig = rig_with(registrar(), settings);
    rig.register(versioned("a", "7.1.0")).await;
    let provider = rig.goal("default_7_1_0");
    assert_eq!(
        provider.properties,
        props(&[
            ("__internal", PropertyValue::Object(props(&[]))),
            ("key", PropertyValue::secret("k".into())),
            ("region", "eu".into()),
            ("version", "7.1.0".into()),
        ])
    );
    assert_eq!(provider.parent, None);
    assert!(provider.custom);
}

#[tokio::test]
async fn what_a_request_leaves_open_comes_from_the_installed_package() {
    let mut settings = settings();
    let installed = PackageDescriptor {
        name: "aws".to_owned(),
        version: Some(semver::Version::new(7, 48, 0)),
        download_url: "https://plugins.example.com/".to_owned(),
        ..PackageDescriptor::default()
    };
    settings.packages.insert("aws".to_owned(), installed);
    let rig = rig_with(registrar(), settings);
    rig.register(custom("open")).await;
    rig.register(versioned("told", "6.0.0")).await;
    let goals = rig.registrar.goals();
    let versions: Vec<_> = goals
        .iter()
        .filter(|goal| goal.type_ == "pulumi:providers:aws")
        .map(|goal| goal.properties["version"].clone())
        .collect();
    assert_eq!(versions, ["7.48.0".into(), "6.0.0".into()]);
    let internal = props(&[("pluginDownloadURL", "https://plugins.example.com".into())]);
    assert_eq!(goals[0].properties["__internal"], internal.into());
}

#[tokio::test]
async fn default_providers_can_be_forbidden() {
    let settings = configured(&[("pulumi:disable-default-providers", r#"["aws"]"#)], &[]);
    let rig = rig_with(registrar(), settings);
    let options = ResourceOptions {
        provider: provider_ref("aws", "mine"),
        ..ResourceOptions::default()
    };
    rig.register(with(options, custom("explicit"))).await;
    assert!(rig.monitor.register(custom("implicit")).await.is_err());
    assert_eq!(rig.errors().len(), 1);
    assert!(
        rig.errors()[0].contains("disable-default-providers"),
        "{:?}",
        rig.errors()
    );
    assert!(rig.registrar.goal("implicit").is_none());
}

#[tokio::test]
async fn a_default_provider_that_fails_ends_the_deployment() {
    let answering = registrar().answering(|goal| {
        if goal.type_.starts_with("pulumi:providers:") {
            RegistrationAnswer::Status(RegisterStatus::Failed)
        } else {
            RegistrationAnswer::Usual
        }
    });
    let rig = rig_with(answering, settings());
    assert!(rig.monitor.register(custom("bucket")).await.is_err());
    assert!(rig.registrar.goal("bucket").is_none());
}

#[tokio::test]
async fn components_and_providers_have_no_provider() {
    let rig = rig();
    rig.register(component("component")).await;
    let provider = Registration {
        type_: "pulumi:providers:aws".to_owned(),
        ..custom("explicit")
    };
    rig.register(provider).await;
    assert_eq!(rig.goal("component").provider, "");
    assert_eq!(rig.goal("explicit").provider, "");
    assert_eq!(rig.registrar.goals().len(), 2);
}

#[tokio::test]
async fn an_explicit_provider_says_in_its_inputs_which_plugin_serves_it() {
    let rig = rig();
    let options = ResourceOptions {
        version: "7.1.0".to_owned(),
        plugin_download_url: "https://x".to_owned(),
        ..ResourceOptions::default()
    };
    let request = Registration {
        type_: "pulumi:providers:aws".to_owned(),
        properties: props(&[("region", "eu".into())]),
        env_var_mappings: [("NEW".to_owned(), "OLD".to_owned())].into(),
        ..with(options, custom("explicit"))
    };
    rig.register(request).await;
    let internal = props(&[
        ("envVarMappings", props(&[("NEW", "OLD".into())]).into()),
        ("pluginDownloadURL", "https://x".into()),
    ]);
    assert_eq!(
        rig.goal("explicit").properties,
        props(&[
            ("__internal", internal.into()),
            ("region", "eu".into()),
            ("version", "7.1.0".into()),
        ])
    );
}

#[tokio::test]
async fn environment_mappings_belong_to_providers() {
    let rig = rig();
    let request = Registration {
        env_var_mappings: [("NEW".to_owned(), "OLD".to_owned())].into(),
        ..custom("bucket")
    };
    assert!(rig.monitor.register(request).await.is_err());
}

#[tokio::test]
async fn a_registered_package_stands_for_its_parameters() {
    let rig = rig();
    let package = PackageDescriptor {
        name: "terraform-provider".to_owned(),
        version: Some(semver::Version::new(1, 0, 0)),
        parameterization: Some(Parameterization {
            name: "netlify".to_owned(),
            version: semver::Version::new(0, 9, 0),
            value: b"n".to_vec(),
        }),
        ..PackageDescriptor::default()
    };
    let reference = rig
        .monitor
        .register_package(RegisteredPackage {
            plugin: package,
            extension: None,
        })
        .expect("a named package");
    let request = Registration {
        type_: "netlify:index:Site".to_owned(),
        package_reference: reference,
        ..custom("site")
    };
    rig.register(request).await;
    let provider = rig.goal("default_0_9_0");
    assert_eq!(provider.type_, "pulumi:providers:netlify");
    let PropertyValue::Object(internal) = &provider.properties["__internal"] else {
        panic!("{provider:?}");
    };
    assert_eq!(internal["name"], "terraform-provider".into());
    assert!(
        rig.goal("site")
            .provider
            .contains("pulumi:providers:netlify::default_0_9_0")
    );
}

#[tokio::test]
async fn an_explicit_provider_of_a_parameterised_package_has_the_version_of_its_plugin() {
    let package = PackageDescriptor {
        name: "terraform-provider".to_owned(),
        version: Some(semver::Version::new(1, 0, 0)),
        parameterization: Some(Parameterization {
            name: "netlify".to_owned(),
            version: semver::Version::new(0, 9, 0),
            value: b"n".to_vec(),
        }),
        ..PackageDescriptor::default()
    };
    let mut settings = settings();
    settings
        .packages
        .insert("netlify".to_owned(), package.clone());
    let rig = rig_with(registrar(), settings);
    let package = RegisteredPackage {
        plugin: package,
        extension: None,
    };
    let package_reference = rig.monitor.register_package(package).unwrap();
    for (name, version, recorded) in [("open", "", "1.0.0"), ("fixed", "0.9.0", "0.9.0")] {
        let options = ResourceOptions {
            version: version.to_owned(),
            ..ResourceOptions::default()
        };
        rig.register(Registration {
            type_: "pulumi:providers:netlify".to_owned(),
            package_reference: package_reference.clone(),
            ..with(options, custom(name))
        })
        .await;
        let inputs = rig.goal(name).properties;
        assert_eq!(inputs["version"], recorded.into(), "{name}");
        let PropertyValue::Object(internal) = &inputs["__internal"] else {
            panic!("{inputs:?}");
        };
        assert_eq!(internal["version"], "1.0.0".into(), "{name}");
    }
}

#[tokio::test]
async fn a_waiter_that_goes_away_leaves_the_default_provider_to_others() {
    let rig = rig();
    let monitor = Arc::clone(&rig.monitor);
    let mut first = Box::pin(monitor.register(custom("first")));
    // Polled once: the default provider is asked for, and then nobody waits any more.
    assert!(futures::poll!(&mut first).is_pending());
    drop(first);
    rig.register(custom("second")).await;
    assert_eq!(default_providers(&rig), ["default"]);
}
