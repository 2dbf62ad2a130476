//! An installation for one test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode, header};
use nimbus_control_api::{ApiLimits, ApiState, Front, router};
use nimbus_control_app::{App, AppKeys, AppSettings, LiveRelay};
use nimbus_control_audit::SigningKey;
use nimbus_control_auth::password::Cost;
use nimbus_control_auth::rate::Limit;
use nimbus_control_auth::{ServerKey, ServerKeys};
use nimbus_control_store::Isolation;
use nimbus_control_testing::TestDatabase;
use nimbus_control_vault::{KeyEncryptionKey, KeyRing};
use nimbus_core::TenantId;
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub(crate) const ORIGIN: &str = "https://nimbus.example";
pub(crate) const PASSWORD: &str = "glass lamp river 9";
const SETUP_TOKEN: &str = "the set-up token of the test";

/// What a request was answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The body of an answer that has to be a success.
    pub(crate) fn ok(self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text);
        if self.text.is_empty() {
            Value::Null
        } else {
            self.json()
        }
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Keys, as texts that can be read more than once.
#[derive(Clone)]
struct TestSecrets {
    tokens: Vec<u8>,
    audit: String,
    vault: String,
}

impl TestSecrets {
    fn new() -> Self {
        let vault = KeyEncryptionKey::generate().to_text().to_string();
        Self {
            tokens: vault.clone().into_bytes(),
            audit: SigningKey::generate().to_text().to_string(),
            vault,
        }
    }

    fn keys(&self) -> AppKeys {
        let vault = KeyEncryptionKey::from_text(&self.vault, "test").unwrap();
        AppKeys {
            tokens: ServerKeys::new(ServerKey::new(&self.tokens).unwrap(), Vec::new()),
            audit: SigningKey::from_text(&self.audit).unwrap(),
            vault: KeyRing::new(vault, Vec::new()),
        }
    }
}

pub(crate) struct Installation {
    pub(crate) database: TestDatabase,
    pub(crate) app: App,
    pub(crate) root: TenantId,
    pub(crate) checkpoints: PathBuf,
    pub(crate) router: Router,
    secrets: TestSecrets,
    pub(crate) folder: tempfile::TempDir,
}

impl Installation {
    pub(crate) async fn new(binaries: &Path) -> Self {
        Self::with(binaries, |_, _| ()).await
    }

    /// With other settings; the folder is the test's own.
    pub(crate) async fn with(
        binaries: &Path,
        adjust: impl FnOnce(&mut AppSettings, &Path),
    ) -> Self {
        let database = TestDatabase::new(binaries, Isolation::SchemaWithRls).await;
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = folder.path().join("checkpoints");
        let secrets = TestSecrets::new();
        Self::on(database, folder, checkpoints, secrets, adjust).await
    }

    /// A second server on the same database with the same keys, and files of its own.
    pub(crate) async fn another_server(&self, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = folder.path().join(name);
        let database = self.database.clone();
        Self::on(
            database,
            folder,
            checkpoints,
            self.secrets.clone(),
            |_, _| (),
        )
        .await
    }

    async fn on(
        database: TestDatabase,
        folder: tempfile::TempDir,
        checkpoints: PathBuf,
        secrets: TestSecrets,
        adjust: impl FnOnce(&mut AppSettings, &Path),
    ) -> Self {
        let keys = secrets.keys();
        let mut settings = AppSettings::new(ORIGIN, checkpoints.clone());
        settings.password_cost = Cost {
            memory_kib: 64,
            rounds: 1,
        };
        adjust(&mut settings, folder.path());
        let app = App::open(database.store.clone(), keys, settings)
            .await
            .unwrap();
        app.read_programs_with(std::sync::Arc::new(nimbus_catalog_programs::ProgramReader));
        let unlimited = Limit::per_second(1_000_000);
        let limits = ApiLimits::new(unlimited, unlimited, unlimited);
        // Requests of tests come from 10.1.2.3.
        let front = Front::parse("", "office=10.1.0.0/16").unwrap();
        let state = ApiState::new(app.clone(), vec![ORIGIN.to_owned()], limits).behind(front);
        Self {
            root: database.root,
            router: router(state),
            database,
            app,
            checkpoints,
            secrets,
            folder,
        }
    }

    /// Passes events on until it is dropped.
    pub(crate) fn relay(&self) -> LiveRelay {
        let notifications = self.database.store.notifications();
        self.app.start_live(std::sync::Arc::new(notifications))
    }

    pub(crate) async fn send(
        &self,
        request: axum::http::request::Builder,
        body: Option<&Value>,
    ) -> Answer {
        self.send_from("10.1.2.3:4567", request, body).await
    }

    /// From another address than usual.
    pub(crate) async fn send_from(
        &self,
        peer: &str,
        request: axum::http::request::Builder,
        body: Option<&Value>,
    ) -> Answer {
        let body = match body {
            Some(value) => Body::from(value.to_string()),
            None => Body::empty(),
        };
        let mut request: Request<Body> = request
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .unwrap();
        let peer: SocketAddr = peer.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 64 << 20).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: Option<Value>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        self.send(request, body.as_ref()).await
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Answer {
        self.call("GET", path, Some(token), None).await
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: Value) -> Answer {
        self.call("POST", path, Some(token), Some(body)).await
    }

    /// Finishes the first run; the access token of the administrator.
    pub(crate) async fn set_up(&self) -> String {
        assert!(self.database.store.setup_offer(SETUP_TOKEN).await.unwrap());
        let body = json!({
            "token": SETUP_TOKEN,
            "email": "owner@operator.example",
            "display_name": "Owner",
            "password": PASSWORD,
        });
        let answer = self
            .call("POST", "/api/v1/setup/complete", None, Some(body))
            .await
            .ok();
        text(&answer["access_token"])
    }

    /// A tenant below the operator's.
    pub(crate) async fn tenant(&self, token: &str, slug: &str) -> String {
        let path = format!("/api/v1/tenants/{}/tenants", self.root);
        let body = json!({"slug": slug, "name": format!("Tenant {slug}")});
        text(&self.post(&path, token, body).await.ok()["id"])
    }

    /// A user with a role; the id.
    pub(crate) async fn user(
        &self,
        token: &str,
        tenant: &str,
        email: &str,
        role: Option<&str>,
    ) -> String {
        let path = format!("/api/v1/tenants/{tenant}/users");
        let body = json!({"email": email, "display_name": "Somebody", "password": PASSWORD});
        let user = text(&self.post(&path, token, body).await.ok()["id"]);
        if let Some(role) = role {
            self.assign(token, tenant, &user, role).await.ok();
        }
        user
    }

    pub(crate) async fn assign(&self, token: &str, tenant: &str, user: &str, role: &str) -> Answer {
        let path = format!("/api/v1/tenants/{tenant}/role-assignments");
        self.post(&path, token, json!({"role": role, "user_id": user}))
            .await
    }

    pub(crate) async fn login(&self, tenant: &str, email: &str) -> Value {
        let body = json!({"tenant": tenant, "email": email, "password": PASSWORD});
        self.call("POST", "/api/v1/auth/login", None, Some(body))
            .await
            .ok()
    }

    pub(crate) async fn token(&self, tenant: &str, email: &str) -> String {
        text(&self.login(tenant, email).await["access_token"])
    }
}

pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is not text"))
        .to_owned()
}

/// An installation, or the end of the test where PostgreSQL is missing.
macro_rules! installation {
    () => {
        $crate::support::Installation::new(&nimbus_test_tools::tool_or_skip!(
            nimbus_test_tools::Tool::Postgres
        ))
        .await
    };
}
pub(crate) use installation;
