//! What most tests start from.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{PropertyMap, PropertyValue, Urn};
use nimbus_engine_monitor::{
    Ending, Monitor, MonitorError, MonitorSettings, Registration, RegistrationResult,
    ResourceOptions, ResourceTransform, TransformedResource,
};
use nimbus_engine_ports::{DeploymentContext, Severity};
use nimbus_engine_testing::{FakeRegistrar, MonitorRig, RecordingSink};
use parking_lot::Mutex;

pub(crate) struct Rig {
    pub(crate) registrar: Arc<FakeRegistrar>,
    pub(crate) events: Arc<RecordingSink>,
    pub(crate) monitor: Arc<Monitor>,
}

pub(crate) fn rig() -> Rig {
    rig_with(registrar(), settings())
}

pub(crate) fn registrar() -> FakeRegistrar {
    FakeRegistrar::new("shop", "dev")
}

pub(crate) fn settings() -> MonitorSettings {
    MonitorSettings {
        context: DeploymentContext {
            project: "shop".to_owned(),
            stack: "dev".to_owned(),
            organization: "organization".to_owned(),
            parallel: 4,
            ..DeploymentContext::default()
        },
        project_root: "/project".into(),
        program_dir: "/project".into(),
        ..MonitorSettings::default()
    }
}

pub(crate) fn rig_with(registrar: FakeRegistrar, settings: MonitorSettings) -> Rig {
    let stage = MonitorRig::new(registrar);
    let monitor = Arc::new(stage.monitor(settings));
    Rig {
        registrar: stage.registrar,
        events: stage.events,
        monitor,
    }
}

impl Rig {
    pub(crate) async fn register(&self, request: Registration) -> RegistrationResult {
        match self.monitor.register(request).await {
            Ok(registered) => registered,
            Err(Ending) => unreachable!("turned away: {:?}", self.errors()),
        }
    }

    pub(crate) fn errors(&self) -> Vec<String> {
        self.events.messages(Severity::Error)
    }

    pub(crate) fn goal(&self, name: &str) -> nimbus_engine_model::Goal {
        self.registrar.goal(name).expect("it was asked for")
    }
}

pub(crate) fn custom(name: &str) -> Registration {
    Registration {
        type_: "aws:s3:Bucket".to_owned(),
        name: name.to_owned(),
        custom: true,
        takes_failures: true,
        takes_partial_values: true,
        ..Registration::default()
    }
}

pub(crate) fn component(name: &str) -> Registration {
    Registration {
        type_: "my:mod:Component".to_owned(),
        name: name.to_owned(),
        takes_failures: true,
        takes_partial_values: true,
        ..Registration::default()
    }
}

pub(crate) fn remote(name: &str) -> Registration {
    Registration {
        type_: "comp:index:Remote".to_owned(),
        remote: true,
        ..component(name)
    }
}

pub(crate) fn under(parent: &RegistrationResult, child: Registration) -> Registration {
    Registration {
        parent: Some(parent.urn.clone()),
        ..child
    }
}

pub(crate) fn with(options: ResourceOptions, request: Registration) -> Registration {
    Registration { options, ..request }
}

pub(crate) fn props(entries: &[(&str, PropertyValue)]) -> PropertyMap {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

pub(crate) fn urn(name: &str) -> Urn {
    Urn::new("dev", "shop", None, "aws:s3:Bucket", name)
}

/// A reference to an explicit provider of a package.
pub(crate) fn provider_ref(package: &str, name: &str) -> String {
    let type_ = format!("pulumi:providers:{package}");
    format!("{}::{name}-id", Urn::new("dev", "shop", None, &type_, name))
}

type Change = dyn Fn(&TransformedResource, &mut PropertyMap, &mut ResourceOptions) + Send + Sync;

/// A transform made of a function, which keeps a log of whom it was applied to.
pub(crate) struct FnTransform {
    label: String,
    log: Arc<Mutex<Vec<String>>>,
    change: Box<Change>,
}

#[async_trait]
impl ResourceTransform for FnTransform {
    async fn transform(
        &self,
        subject: &TransformedResource,
        mut properties: PropertyMap,
        mut options: ResourceOptions,
    ) -> Result<(PropertyMap, ResourceOptions), MonitorError> {
        self.log
            .lock()
            .push(format!("{} on {}", self.label, subject.name));
        (self.change)(subject, &mut properties, &mut options);
        Ok((properties, options))
    }
}

/// Writes down in which order transforms run.
#[derive(Clone, Default)]
pub(crate) struct TransformLog(Arc<Mutex<Vec<String>>>);

impl TransformLog {
    pub(crate) fn entries(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    pub(crate) fn transform(
        &self,
        label: &str,
        change: impl Fn(&TransformedResource, &mut PropertyMap, &mut ResourceOptions)
        + Send
        + Sync
        + 'static,
    ) -> Arc<dyn ResourceTransform> {
        Arc::new(FnTransform {
            label: label.to_owned(),
            log: Arc::clone(&self.0),
            change: Box::new(change),
        })
    }

    pub(crate) fn idle(&self, label: &str) -> Arc<dyn ResourceTransform> {
        self.transform(label, |_, _, _| {})
    }
}
