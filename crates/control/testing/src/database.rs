//! A database of its own for every test.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use nimbus_control_postgres::{ADMINISTRATOR, PORT};
use nimbus_control_store::{
    Credentials, DatabaseAddress, Host, Isolation, Store, StoreConfig, Tls,
};
use nimbus_core::TenantId;
use tokio::sync::OnceCell;

use crate::cluster::{roles, shared_cluster};

/// A migrated database with an operator, nobody else's. It goes with the cluster.
#[derive(Clone, Debug)]
pub struct TestDatabase {
    pub store: Store,
    pub config: StoreConfig,
    /// The operator's own tenant.
    pub root: TenantId,
}

impl TestDatabase {
    /// A new database; `binaries` is what `tool_or_skip!(Tool::Postgres)` found.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn new(binaries: &Path, isolation: Isolation) -> Self {
        static BY_SCHEMA: OnceCell<TenantId> = OnceCell::const_new();
        static SHARED: OnceCell<TenantId> = OnceCell::const_new();
        let socket = shared_cluster(binaries).to_owned();
        let (template, root) = match isolation {
            Isolation::SchemaWithRls => ("template_schema", &BY_SCHEMA),
            Isolation::Shared => ("template_shared", &SHARED),
        };
        let prepare = || async {
            let config = config(&socket, template, isolation);
            let (store, _) = Store::open(config).await.expect("the template is set up");
            let root = store
                .operator_ensure("Operator")
                .await
                .expect("the operator is created");
            store.close().await;
            root
        };
        let root = *root.get_or_init(prepare).await;
        let name = unused_name();
        let config = config(&socket, &name, isolation);
        Store::clone_database(&config, template)
            .await
            .expect("the template is cloned");
        Self {
            store: Store::connect(config.clone()),
            config,
            root,
        }
    }

    /// Where a database that does not exist yet would be.
    pub fn vacant(binaries: &Path, isolation: Isolation) -> StoreConfig {
        config(shared_cluster(binaries), &unused_name(), isolation)
    }
}

fn unused_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn config(socket: &Path, database: &str, isolation: Isolation) -> StoreConfig {
    let address = DatabaseAddress {
        host: Host::Socket(socket.to_owned()),
        port: PORT,
        database: database.to_owned(),
        tls: Tls::Disable,
    };
    let administrator = Credentials {
        user: ADMINISTRATOR.to_owned(),
        password: None,
    };
    let mut config = StoreConfig::new(address, administrator);
    config.roles = roles();
    config.isolation = isolation;
    config.pool_size = 5;
    // A loaded machine is slow, not away.
    config.acquire_timeout = std::time::Duration::from_secs(60);
    config
}
