//! Resources of packages that extend their provider's.

use std::sync::Arc;

use nimbus_engine_model::Parameterization;
use nimbus_engine_testing::{EXTENSION, Rig, ScriptedResource};

use crate::{A, assert_ok, assert_steps, program};

const EXTENDED: &str = "ext:m:E";

fn extension(version: u64) -> Arc<Parameterization> {
    Arc::new(Parameterization {
        name: EXTENSION.to_owned(),
        version: semver::Version::new(version, 0, 0),
        value: b"value".to_vec(),
    })
}

fn extended(name: &str, version: u64) -> ScriptedResource {
    ScriptedResource::custom(EXTENDED, name)
        .option(|goal| goal.extension = Some(extension(version)))
}

#[tokio::test]
async fn the_provider_is_told_of_an_extension_in_every_operation() {
    let mut rig = Rig::new();
    let both = program([ScriptedResource::custom(A, "a"), extended("e", 1)]);
    assert_ok(&rig.preview(&both).await);
    assert_ok(&rig.up(&both).await);
    let reference = extension(1).reference();
    assert_eq!(rig.snapshot.extensions[&reference], extension(1));
    assert_steps(&rig.up(&both).await, &[]);
    assert_ok(&rig.refresh().await);
    assert_eq!(rig.snapshot.extensions.len(), 1);
    // Nothing but the record knows of the extension when the program no longer does.
    let run = rig.up(&program([ScriptedResource::custom(A, "a")])).await;
    assert_ok(&run);
    assert_steps(&run, &["delete e"]);
    assert!(rig.snapshot.extensions.is_empty());
    assert_ok(&rig.up(&both).await);
    assert_ok(&rig.destroy().await);
    assert!(rig.cloud.ids().is_empty());
}

#[tokio::test]
async fn a_resource_moves_to_another_version_of_its_extension() {
    let mut rig = Rig::new();
    assert_ok(&rig.up(&program([extended("e", 1)])).await);
    let run = rig.up(&program([extended("e", 2)])).await;
    assert_ok(&run);
    assert_steps(&run, &[]);
    let references: Vec<_> = rig.snapshot.extensions.keys().cloned().collect();
    assert_eq!(references, [extension(2).reference()]);
    assert_ok(&rig.destroy().await);
}

#[tokio::test]
async fn a_record_without_its_extension_is_refused_in_words() {
    let mut rig = Rig::new();
    assert_ok(&rig.up(&program([extended("e", 1)])).await);
    rig.snapshot.extensions.clear();
    let run = rig.destroy().await;
    let said = format!("{:?} {:?}", run.outcome.result, run.events);
    assert!(!run.succeeded(), "{said}");
    assert!(said.contains("has no package extension"), "{said}");
}
