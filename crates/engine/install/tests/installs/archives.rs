//! Archives that were made to do harm, or are none.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_install::{DownloadSource, InstallError, Installed, Installer, UnpackLimits};
use tar::EntryType;

use crate::support::{InstallSite, PROGRAM, Pack, archive, archive_name, order};

async fn unpack(
    place: &InstallSite,
    archive: &[u8],
    limits: UnpackLimits,
) -> Result<Installed, InstallError> {
    let folder = place.path().join("archives");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(archive_name()), archive).expect("a file");
    let installer = Installer::new(place.store(), limits).expect("an installer");
    installer
        .install(&order(DownloadSource::Folder(folder)))
        .await
}

async fn refused(archive: &[u8], why: &str) {
    let place = InstallSite::new();
    let ended = unpack(&place, archive, UnpackLimits::default()).await;
    let error = Error::from(ended.expect_err(why));
    assert_eq!(
        error.code(),
        ErrorCode::PLUGIN_ARCHIVE,
        "{}",
        error.message()
    );
    assert!(error.message().contains(why), "{}", error.message());
    assert_eq!(place.stored(), [""; 0]);
    assert_eq!(place.under_way(), [""; 0]);
    let beside = fs::read_dir(place.path()).expect("a folder").count();
    assert_eq!(beside, 2, "only the store and the archives");
}

fn plugin() -> Pack {
    Pack::new().file(PROGRAM, 0o755, b"#!/bin/sh\n")
}

#[tokio::test]
async fn paths_that_lead_out_are_refused() {
    for name in [
        "../escaped",
        "/nimbus-escaped",
        "a/../../escaped",
        "a/../..",
    ] {
        refused(&plugin().file(name, 0o644, b"x").done(), "outside").await;
    }
}

#[tokio::test]
async fn links_that_lead_out_are_refused() {
    for target in ["/etc/passwd", "../escaped", "a/../../escaped"] {
        let archive = plugin().link("link", EntryType::Symlink, target).done();
        refused(&archive, "out of the plugin's folder").await;
    }
    let twice = plugin()
        .link("a/b/x", EntryType::Symlink, "../..")
        .link("y", EntryType::Symlink, "a/b/x/../..")
        .done();
    refused(&twice, "out of the plugin's folder").await;
}

#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let archive = plugin()
        .file("folder/inner", 0o644, b"x")
        .link("door", EntryType::Symlink, "folder")
        .file("door/file", 0o644, b"x")
        .done();
    let place = InstallSite::new();
    let ended = unpack(&place, &archive, UnpackLimits::default()).await;
    assert!(ended.is_err(), "a file and a link want the same name");
    assert_eq!(place.stored(), [""; 0]);
}

#[tokio::test]
async fn links_inside_are_kept() {
    let archive = plugin()
        .file("lib/tool.js", 0o644, b"x")
        .link("bin/tool", EntryType::Symlink, "../lib/tool.js")
        .done();
    let place = InstallSite::new();
    let installed = unpack(&place, &archive, UnpackLimits::default())
        .await
        .expect("it is safe");
    let link = installed.folder.join("bin/tool");
    assert_eq!(fs::read(link).expect("it leads there"), b"x");
}

#[tokio::test]
async fn whatever_is_neither_file_nor_folder_is_refused() {
    for kind in [
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
    ] {
        let archive = plugin().link("odd", kind, PROGRAM).done();
        refused(&archive, "neither a file nor a folder").await;
    }
}

#[tokio::test]
async fn bombs_are_stopped() {
    let place = InstallSite::new();
    let large = plugin().file("zeros", 0o644, &[0; 1 << 20]).done();
    let limits = UnpackLimits {
        unpacked: 1 << 16,
        ..UnpackLimits::default()
    };
    let error = unpack(&place, &large, limits).await.expect_err("too much");
    assert!(
        error
            .to_string()
            .contains("unpacks to more than 65536 bytes"),
        "{error}"
    );

    let many = (0..50).fold(plugin(), |pack, number| {
        pack.file(&format!("file{number}"), 0o644, b"")
    });
    let limits = UnpackLimits {
        entries: 20,
        ..UnpackLimits::default()
    };
    let error = unpack(&place, &many.done(), limits)
        .await
        .expect_err("too many");
    assert!(error.to_string().contains("20 files"), "{error}");
    assert_eq!(place.under_way(), [""; 0]);
}

#[tokio::test]
async fn what_is_cut_off_or_no_archive_is_refused() {
    let whole = archive();
    refused(&whole[..whole.len() / 2], "damaged").await;
    refused(b"<html>not found</html>", "damaged").await;
    refused(b"", "damaged").await;
}

#[tokio::test]
async fn an_archive_of_something_else_is_refused() {
    let archive = Pack::new().file("README.md", 0o644, b"x").done();
    refused(&archive, "there is no pulumi-resource-thing in it").await;
}

#[tokio::test]
async fn only_the_right_to_run_survives_of_a_files_mode() {
    let archive = Pack::new()
        .file(PROGRAM, 0o6755, b"#!/bin/sh\n")
        .file("data", 0o666, b"x")
        .done();
    let place = InstallSite::new();
    let installed = unpack(&place, &archive, UnpackLimits::default())
        .await
        .expect("it is safe");
    let mode = |name: &str| {
        let metadata = fs::metadata(installed.folder.join(name)).expect("a file");
        metadata.permissions().mode() & 0o7777
    };
    assert_eq!(mode(PROGRAM) & 0o7000, 0);
    assert_ne!(mode(PROGRAM) & 0o100, 0);
    assert_eq!(mode("data") & 0o022, 0, "not writable for others");
}
