//! The cluster that the tests of one process share.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nimbus_control_postgres::{Binaries, Cluster, ClusterOptions, DataDir, Durability};
use nimbus_control_store::Roles;

const PREFIX: &str = "nimbus-test-";

/// A role that the cluster lets in and that no database has: a test may make it what it likes.
pub const SPARE_ROLE: &str = "spare";

/// Role names of every test database.
pub(crate) fn roles() -> Roles {
    Roles::for_database("nimbus")
}

/// The socket folder of the cluster, started on the first call.
///
/// # Panics
/// If the cluster does not start.
pub fn shared_cluster(binaries: &Path) -> &'static Path {
    static SOCKET: OnceLock<PathBuf> = OnceLock::new();
    SOCKET.get_or_init(|| start(binaries.to_owned()))
}

/// Folders of clusters whose processes are gone: a process that ends cannot remove its own. A new
/// one is not claimed from the beginning, and the processes of an old one take a moment to end.
fn sweep() {
    let long = Duration::from_secs(60);
    let folders = std::fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten();
    for folder in folders.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let old = folder
            .metadata()
            .and_then(|found| found.modified())
            .is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > long));
        if old && DataDir::claim(&folder.path()).is_ok() {
            // Somebody else may sweep at the same time.
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
}

/// The runtime of a test ends with the test, so the cluster has one of its own that never ends.
fn start(binaries: PathBuf) -> PathBuf {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime for the test cluster");
        sweep();
        runtime.block_on(async move {
            let folder = tempfile::Builder::new()
                .prefix(PREFIX)
                .tempdir()
                .expect("a folder");
            let data = DataDir::claim(folder.path()).expect("the folder is new");
            let roles = roles();
            let mut options = ClusterOptions::new(
                data.path().join("postgres"),
                [
                    roles.owner,
                    roles.app,
                    roles.readonly,
                    SPARE_ROLE.to_owned(),
                ],
            );
            options.durability = Durability::Careless;
            options.max_connections = 300;
            options.binaries = Binaries::at(&binaries);
            let mut cluster = Cluster::start(&options)
                .await
                .expect("the test cluster starts");
            send.send(cluster.socket().to_owned())
                .expect("somebody waits");
            cluster.ended().await;
        });
    });
    receive.recv().expect("the test cluster starts")
}
