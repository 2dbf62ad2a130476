//! What arrives, from whom, and what happens when it does not.

use nimbus_core::{Error, ErrorCode};
use nimbus_engine_install::{
    Checksum, DownloadSource, DownloadTokens, InstallError, InstallOutcome, Installer, Order,
    Overrides, Proof, UnpackLimits,
};

use crate::server::{Served, Server};
use crate::support::{InstallSite, PROGRAM, Pack, archive, archive_name, checksums, digest, order};

fn code(error: InstallError) -> ErrorCode {
    Error::from(error).code()
}

/// A server with the layout of get.pulumi.com.
async fn publisher(archive: &[u8]) -> (Server, DownloadSource) {
    let server = Server::start().await;
    serve(&server, Served::file(archive));
    server.serve(
        "/plugins/pulumi-thing_1.2.3_checksums.txt",
        Served::file(checksums(archive)),
    );
    let source = DownloadSource::parse(&server.url("/plugins")).expect("an address");
    (server, source)
}

fn serve(server: &Server, served: Served) {
    server.serve(&format!("/plugins/{}", archive_name()), served);
}

#[tokio::test]
async fn a_plugin_is_downloaded_checked_and_put_where_it_is_found() {
    let (_server, source) = publisher(&archive()).await;
    let place = InstallSite::new();
    let installed = place.install(source.clone()).await.expect("it is offered");
    assert_eq!(
        installed.outcome,
        InstallOutcome::Installed(Proof::Published)
    );
    assert_eq!(installed.folder, place.plugin());
    assert_eq!(place.stored(), ["resource-thing-v1.2.3"]);
    assert_eq!(place.under_way(), [""; 0], "nothing is left behind");
    let said = std::process::Command::new(place.plugin().join(PROGRAM)).output();
    assert_eq!(said.expect("it runs").stdout, b"1.2.3\n");

    let again = place.install(source).await.expect("it is there");
    assert_eq!(again.outcome, InstallOutcome::WasThere);
}

#[tokio::test]
async fn a_tampered_archive_is_refused_and_forgotten() {
    let (server, source) = publisher(&archive()).await;
    let mut tampered = archive();
    let last = tampered.len() - 1;
    tampered[last] ^= 1;
    serve(&server, Served::file(tampered));
    let place = InstallSite::new();
    let error = place
        .install(source.clone())
        .await
        .expect_err("it is another");
    assert_eq!(code(error), ErrorCode::PLUGIN_CHECKSUM);
    assert_eq!(place.stored(), [""; 0]);
    assert_eq!(place.under_way(), [""; 0], "it is not kept to go on with");

    serve(&server, Served::file(archive()));
    let installed = place.install(source).await.expect("now it is the one");
    assert_eq!(
        installed.outcome,
        InstallOutcome::Installed(Proof::Published)
    );
}

#[tokio::test]
async fn a_checksum_of_the_callers_own_goes_over_the_published_one() {
    let (_server, source) = publisher(&archive()).await;
    let place = InstallSite::new();
    let with = |text: &str| Order {
        checksum: Some(Checksum::parse(text).expect("a checksum")),
        ..order(source.clone())
    };
    let wrong = place.installer().install(&with(&"0".repeat(64))).await;
    assert_eq!(
        code(wrong.expect_err("it is another")),
        ErrorCode::PLUGIN_CHECKSUM
    );
    let right = place.installer().install(&with(&digest(&archive()))).await;
    assert_eq!(
        right.expect("it is the one").outcome,
        InstallOutcome::Installed(Proof::Given)
    );
}

#[tokio::test]
async fn without_a_published_checksum_the_report_says_so_or_the_install_is_refused() {
    let server = Server::start().await;
    serve(&server, Served::file(archive()));
    let source = DownloadSource::parse(&server.url("/plugins")).expect("an address");
    let place = InstallSite::new();
    let strict = Order {
        require_checksum: true,
        ..order(source.clone())
    };
    let error = place
        .installer()
        .install(&strict)
        .await
        .expect_err("nobody says");
    assert_eq!(code(error), ErrorCode::PLUGIN_CHECKSUM);
    let installed = place.install(source).await.expect("it is offered");
    assert_eq!(installed.outcome, InstallOutcome::Installed(Proof::None));
}

#[tokio::test]
async fn a_download_that_breaks_off_goes_on_where_it_stopped() {
    let (server, source) = publisher(&archive()).await;
    let third = archive().len() / 3 + 1;
    serve(
        &server,
        Served {
            cut_after: Some(third),
            ..Served::file(archive())
        },
    );
    let place = InstallSite::new();
    place
        .install(source)
        .await
        .expect("three pieces are the whole");
    let path = format!("/plugins/{}", archive_name());
    let ranges: Vec<_> = server
        .asked()
        .into_iter()
        .filter(|asked| asked.path == path)
        .collect();
    let ranges: Vec<_> = ranges.into_iter().map(|asked| asked.range).collect();
    let from = |from: usize| Some(format!("bytes={from}-"));
    assert_eq!(ranges, [None, from(third), from(2 * third)]);
}

/// A command that gets the first bytes and then nothing more.
async fn give_up_after(
    server: &Server,
    source: &DownloadSource,
    place: &InstallSite,
    bytes: usize,
) {
    let broken = Served {
        cut_after: Some(bytes),
        fails_then: vec![503; 40],
        ..Served::file(archive())
    };
    serve(server, broken);
    let ended = place.install(source.clone()).await;
    let error = ended.expect_err("the server is out of order");
    assert_eq!(code(error), ErrorCode::PLUGIN_NOT_DOWNLOADED);
    assert_eq!(place.stored(), [""; 0]);
    let kept = place.under_way();
    assert!(kept.iter().any(|name| name.ends_with(".part")), "{kept:?}");
}

/// Which parts of the archive were asked for, from the nth request on.
fn ranges(server: &Server, from: usize) -> Vec<Option<String>> {
    let asked = server.asked().into_iter().skip(from);
    let archive = asked.filter(|asked| asked.path.ends_with(".tar.gz"));
    archive.map(|asked| asked.range).collect()
}

#[tokio::test]
async fn what_a_failed_command_downloaded_is_used_by_the_next() {
    let (server, source) = publisher(&archive()).await;
    let place = InstallSite::new();
    give_up_after(&server, &source, &place, 1000).await;
    let before = server.asked().len();
    serve(&server, Served::file(archive()));
    place.install(source).await.expect("it goes on");
    assert_eq!(ranges(&server, before), [Some("bytes=1000-".to_owned())]);
}

#[tokio::test]
async fn a_file_that_changed_meanwhile_is_fetched_from_the_start() {
    let server = Server::start().await;
    let source = DownloadSource::parse(&server.url("/plugins")).expect("an address");
    let place = InstallSite::new();
    give_up_after(&server, &source, &place, 1000).await;
    let other = Pack::new()
        .file(PROGRAM, 0o755, b"#!/bin/sh\necho other\n")
        .done();
    let changed = Served {
        etag: Some("\"two\"".to_owned()),
        ..Served::file(other.clone())
    };
    serve(&server, changed);
    let list = "/plugins/pulumi-thing_1.2.3_checksums.txt";
    server.serve(list, Served::file(checksums(&other)));
    let installed = place.install(source).await.expect("the new one is whole");
    assert_eq!(
        installed.outcome,
        InstallOutcome::Installed(Proof::Published)
    );
}

#[tokio::test]
async fn pieces_that_do_not_fit_together_are_fetched_once_more_from_the_start() {
    let (server, source) = publisher(&archive()).await;
    let place = InstallSite::new();
    give_up_after(&server, &source, &place, 1000).await;
    for name in place
        .under_way()
        .iter()
        .filter(|name| name.ends_with(".part"))
    {
        let part = place.store().folder().join(".nimbus").join(name);
        std::fs::write(part, [0; 1000]).expect("a file");
    }
    let before = server.asked().len();
    serve(&server, Served::file(archive()));
    place.install(source).await.expect("the whole is right");
    assert_eq!(
        ranges(&server, before),
        [Some("bytes=1000-".to_owned()), None]
    );
}

#[tokio::test]
async fn a_server_that_cannot_tell_files_apart_is_asked_for_the_whole_again() {
    let (server, source) = publisher(&archive()).await;
    let served = Served {
        etag: None,
        ..Served::file(archive())
    };
    serve(
        &server,
        Served {
            fails: vec![500],
            ..served
        },
    );
    let place = InstallSite::new();
    place.install(source).await.expect("a passing failure");
    assert!(server.asked().iter().all(|asked| asked.range.is_none()));
}

#[tokio::test]
async fn a_missing_plugin_is_an_error_that_names_every_place() {
    let server = Server::start().await;
    let source = DownloadSource::parse(&server.url("/plugins")).expect("an address");
    let place = InstallSite::new();
    let error = Error::from(place.install(source).await.expect_err("there is none"));
    assert_eq!(error.code(), ErrorCode::PLUGIN_NOT_OFFERED);
    assert!(
        error.message().contains(&server.url("/plugins")),
        "{}",
        error.message()
    );
    assert!(error.message().contains(&archive_name()));
    assert_eq!(place.under_way(), [""; 0]);
}

#[tokio::test]
async fn refusals_are_not_tried_again() {
    let (server, source) = publisher(&archive()).await;
    serve(
        &server,
        Served {
            fails: vec![403; 9],
            ..Served::file(archive())
        },
    );
    let place = InstallSite::new();
    let error = place.install(source).await.expect_err("forbidden");
    assert_eq!(code(error), ErrorCode::PLUGIN_NOT_DOWNLOADED);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn an_archive_larger_than_any_plugin_is_not_downloaded() {
    let (_server, source) = publisher(&archive()).await;
    let place = InstallSite::new();
    let limits = UnpackLimits {
        archive: 1000,
        ..UnpackLimits::default()
    };
    let installer = Installer::new(place.store(), limits).expect("an installer");
    let error = installer
        .install(&order(source))
        .await
        .expect_err("too large");
    assert!(error.to_string().contains("far too large"), "{error}");
}

/// A project on a host with the interface of GitHub.
fn github(server: &Server, asset: &str) {
    let release = serde_json::json!({"assets": [
        {"name": archive_name(), "url": server.url(asset)},
        {"name": "pulumi-thing_1.2.3_checksums.txt", "url": server.url("/assets/2")},
    ]});
    server.serve(
        "/repos/me/pulumi-thing/releases/tags/v1.2.3",
        Served::file(release.to_string()),
    );
    server.serve(
        "/repos/me/pulumi-thing/releases/latest",
        Served::file(r#"{"tag_name": "v1.2.3"}"#),
    );
    server.serve("/assets/2", Served::file(checksums(&archive())));
}

#[tokio::test]
async fn the_newest_release_of_a_github_project_is_found_with_a_token() {
    let (server, elsewhere) = (Server::start().await, Server::start().await);
    github(&server, "/assets/1");
    let redirect = Served {
        redirect: Some(elsewhere.url("/blob").replace("127.0.0.1", "localhost")),
        ..Served::file("")
    };
    server.serve("/assets/1", redirect);
    elsewhere.serve("/blob", Served::file(archive()));
    let place = InstallSite::new();
    let source =
        DownloadSource::parse(&format!("github://{}/me", server.host())).expect("a project");
    let tokens = DownloadTokens::new(Some("hush".to_owned()), None).trusting(&source);
    let installer = place.installer().with_tokens(tokens).over_plain_http();
    let newest = Order {
        version: None,
        ..order(source)
    };
    let installed = installer.install(&newest).await.expect("it is released");
    assert_eq!(installed.version, semver::Version::new(1, 2, 3));
    assert_eq!(
        installed.outcome,
        InstallOutcome::Installed(Proof::Published)
    );
    let with_token = |asked: &crate::server::Asked| asked.authorization.is_some();
    assert!(server.asked().iter().all(with_token));
    assert!(
        !elsewhere.asked().iter().any(with_token),
        "the token stays with its host"
    );
}

#[tokio::test]
async fn a_plain_server_cannot_say_what_is_newest() {
    let (_server, source) = publisher(&archive()).await;
    let place = InstallSite::new();
    let newest = Order {
        version: None,
        ..order(source)
    };
    let error = Error::from(
        place
            .installer()
            .install(&newest)
            .await
            .expect_err("unknown"),
    );
    assert_eq!(error.code(), ErrorCode::PLUGIN_NOT_OFFERED);
    assert!(
        error
            .help()
            .is_some_and(|help| help.contains("name a version"))
    );
}

#[tokio::test]
async fn overrides_send_every_download_to_a_mirror() {
    let (server, _) = publisher(&archive()).await;
    let place = InstallSite::new();
    let rule = format!(
        "^github://api.github.com/pulumi/.*={}",
        server.url("/plugins")
    );
    let overrides = Overrides::parse(&rule).expect("a rule");
    let installer = place.installer().with_overrides(overrides);
    installer
        .install(&order(DownloadSource::Public))
        .await
        .expect("the mirror has it");
}
