//! Several installs at once, and what others left unfinished.

use std::fs;

use nimbus_engine_install::{DownloadSource, InstallOutcome, Order, Proof};

use crate::server::{Served, Server};
use crate::support::{InstallSite, PROGRAM, archive, archive_name, order};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn installs_at_the_same_time_download_once_and_agree() {
    let server = Server::start().await;
    server.serve(&format!("/{}", archive_name()), Served::file(archive()));
    let source = DownloadSource::parse(&server.url("")).expect("an address");
    let place = InstallSite::new();
    let running: Vec<_> = (0..8)
        .map(|_| {
            let installer = place.installer();
            let order = order(source.clone());
            tokio::spawn(async move { installer.install(&order).await })
        })
        .collect();
    let mut outcomes = Vec::new();
    for install in running {
        let installed = install.await.expect("no panic").expect("all succeed");
        outcomes.push(installed.outcome);
    }
    let made = outcomes
        .iter()
        .filter(|outcome| **outcome == InstallOutcome::Installed(Proof::None));
    assert_eq!(made.count(), 1);
    let archives = server
        .asked()
        .into_iter()
        .filter(|asked| asked.path.ends_with(".tar.gz"));
    assert_eq!(archives.count(), 1);
    assert_eq!(place.stored(), ["resource-thing-v1.2.3"]);
}

#[tokio::test]
async fn an_install_that_somebody_did_not_finish_is_done_again() {
    let place = InstallSite::new();
    fs::create_dir_all(place.plugin()).expect("a folder");
    fs::write(place.plugin().join("half"), "").expect("a file");
    fs::write(place.plugin().with_extension("3.partial"), "").expect("a file");
    let folder = place.path().join("archives");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join(archive_name()), archive()).expect("a file");
    assert_eq!(place.store().list().expect("a store"), []);

    place
        .install(DownloadSource::Folder(folder))
        .await
        .expect("it is there");
    assert_eq!(
        place.stored(),
        ["resource-thing-v1.2.3"],
        "the mark is gone"
    );
    assert!(place.plugin().join(PROGRAM).is_file());
    assert!(!place.plugin().join("half").exists());
}

#[tokio::test]
async fn a_plugin_that_is_there_is_replaced_only_on_request() {
    let place = InstallSite::new();
    let folder = place.path().join("archives");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join(archive_name()), archive()).expect("a file");
    let source = DownloadSource::Folder(folder);
    place.install(source.clone()).await.expect("it is there");
    fs::write(place.plugin().join("mark"), "").expect("a file");
    place.install(source.clone()).await.expect("nothing to do");
    assert!(place.plugin().join("mark").exists());
    let again = Order {
        reinstall: true,
        ..order(source)
    };
    place
        .installer()
        .install(&again)
        .await
        .expect("it is replaced");
    assert!(!place.plugin().join("mark").exists());
}
