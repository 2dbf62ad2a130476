//! Plugins from a folder: for machines without any network.

use std::fs;

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_install::{DownloadSource, InstallOutcome, Order, Proof};

use crate::support::{InstallSite, PROGRAM, archive, archive_name, checksums, order};

#[tokio::test]
async fn archives_in_a_folder_are_checked_like_downloads() {
    let place = InstallSite::new();
    let folder = place.path().join("archives");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join(archive_name()), archive()).expect("a file");
    fs::write(
        folder.join("pulumi-thing_1.2.3_checksums.txt"),
        checksums(b"another"),
    )
    .expect("a file");
    let source = DownloadSource::Folder(folder.clone());
    let error = place
        .install(source.clone())
        .await
        .expect_err("it is another");
    assert_eq!(Error::from(error).code(), ErrorCode::PLUGIN_CHECKSUM);
    assert!(
        folder.join(archive_name()).is_file(),
        "the user's file stays"
    );

    fs::write(
        folder.join("pulumi-thing_1.2.3_checksums.txt"),
        checksums(&archive()),
    )
    .expect("a file");
    let installed = place.install(source).await.expect("it is the one");
    assert_eq!(
        installed.outcome,
        InstallOutcome::Installed(Proof::Published)
    );
    assert!(
        folder.join(archive_name()).is_file(),
        "the user's file stays"
    );
}

#[tokio::test]
async fn everything_in_a_folder_can_be_installed_and_the_newest_is_found() {
    let place = InstallSite::new();
    let folder = place.path().join("unpacked");
    for version in ["1.0.0", "1.10.0", "2.0.0-rc.1"] {
        let plugin = folder.join(format!("resource-thing-v{version}"));
        fs::create_dir_all(&plugin).expect("a folder");
        fs::write(plugin.join(PROGRAM), version).expect("a file");
    }
    let half = folder.join("resource-half-v1.0.0");
    fs::create_dir_all(&half).expect("a folder");
    fs::write(folder.join("resource-half-v1.0.0.partial"), "").expect("a file");

    let installer = place.installer();
    let source = DownloadSource::Folder(folder.clone());
    let newest = Order {
        version: None,
        ..order(source)
    };
    let installed = installer.install(&newest).await.expect("there are some");
    assert_eq!(
        installed.version.to_string(),
        "1.10.0",
        "a release goes before a pre-release"
    );

    let orders = installer.orders_of(&folder).expect("it is readable");
    assert_eq!(orders.len(), 3, "what is not complete is left out");
    for order in &orders {
        installer.install(order).await.expect("they are complete");
    }
    let listed = place.store().list().expect("a store");
    let versions: Vec<_> = listed
        .iter()
        .map(|entry| entry.version.to_string())
        .collect();
    assert_eq!(versions, ["1.0.0", "1.10.0", "2.0.0-rc.1"]);
    assert!(listed.iter().all(|entry| entry.size > 0));
}

#[tokio::test]
async fn removing_takes_everything_that_belongs_to_a_plugin() {
    let place = InstallSite::new();
    let folder = place.path().join("archives");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join(archive_name()), archive()).expect("a file");
    place
        .install(DownloadSource::Folder(folder))
        .await
        .expect("it is there");
    let store = place.store();
    let listed = store.list().expect("a store");
    store.remove(&listed[0]).await.expect("it can be removed");
    assert_eq!(store.list().expect("a store"), []);
    let left: Vec<_> = fs::read_dir(store.folder())
        .expect("a folder")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "only our own folder: {left:?}");
}
