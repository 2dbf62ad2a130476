//! The list of settings.
//!
//! A line is: key, type, default, variable. The comment above it becomes the description in the
//! reference page and in the schema. Something reads every one of them, and `cargo xtask tidy` checks it; names
//! of the specification that nothing would read are in `unused.rs`. Names follow the specification (checklist
//! group CONF); keys that it does not name take `NIMBUS_`, the section and the key.

use crate::setting::{Descriptor, Setting, SettingOrigin, SettingSlot};
use crate::types::{
    AddressList, Endpoint, FlowEngine, Folders, Isolation, LogFormat, LogLevel, MailProtection,
    NameList, PluginInstallation, Rate, RatePeriod, SandboxMode, SandboxNetwork, Secret,
};
use crate::value::SettingValue as _;

macro_rules! settings {
    ($(
        $(#[doc = $section_doc:literal])*
        $section:ident: $Section:ident at $section_path:literal {
            $($(#[doc = $doc:literal])* $key:ident: $type:ty = $default:expr, $variable:literal;)*
        }
    )*) => {
        /// Every setting, typed, with its origin.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $section_doc])* pub $section: $Section,)*
        }

        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Debug)]
            pub struct $Section {
                $($(#[doc = $doc])* pub $key: Setting<$type>,)*
            }
        )*

        impl Default for Settings {
            fn default() -> Self {
                Self {$(
                    $section: $Section {
                        $($key: Setting { value: $default, origin: SettingOrigin::Default },)*
                    },
                )*}
            }
        }

        impl Settings {
            pub(crate) fn slots(&self) -> Vec<(&'static Descriptor, &dyn SettingSlot)> {
                let values = [$($(&self.$section.$key as &dyn SettingSlot,)*)*];
                REGISTRY.iter().zip(values).collect()
            }

            pub(crate) fn slots_mut(&mut self) -> Vec<(&'static Descriptor, &mut dyn SettingSlot)> {
                let values = [$($(&mut self.$section.$key as &mut dyn SettingSlot,)*)*];
                REGISTRY.iter().zip(values).collect()
            }
        }

        /// In the same order as the fields.
        pub(crate) static REGISTRY: &[Descriptor] = &[$($(
            Descriptor::new::<$type>(
                concat!($section_path, ".", stringify!($key)),
                $variable,
                &[$($doc),*],
            ),
        )*)*];

        /// Section paths with their descriptions.
        pub(crate) static SECTIONS: &[(&str, &[&str])] = &[
            $(($section_path, &[$($section_doc),*]),)*
        ];
    };
}

settings! {
    /// The installation.
    app: App at "app" {
        /// Name shown to users.
        name: String = "Nimbus".into(), "NIMBUS_APP_NAME";
        /// 32 random bytes in base64 that protect stored secrets. Without them the server makes a key
        /// file and keeps it beside its data.
        secret_key: Option<Secret> = None, "NIMBUS_SECRET_KEY";
    }

    /// PostgreSQL.
    db: Database at "db" {
        /// Host. Without one the server starts a private cluster in its data directory.
        host: Option<String> = None, "NIMBUS_DB_HOST";
        /// Port.
        port: u16 = 5432, "NIMBUS_DB_PORT";
        /// Database.
        name: String = "nimbus".into(), "NIMBUS_DB_NAME";
        /// User.
        user: String = "nimbus".into(), "NIMBUS_DB_USER";
        /// Password.
        password: Option<Secret> = None, "NIMBUS_DB_PASSWORD";
        /// How the connection is protected, by PostgreSQL's names: disable, allow, prefer, require, verify-ca or
        /// verify-full. Without it verify-full to another machine, and what is needed to this one.
        sslmode: Option<String> = None, "NIMBUS_DB_SSLMODE";
        /// File with the authorities that sign the server's certificate. Without one, those of the system.
        sslrootcert: Option<String> = None, "NIMBUS_DB_SSLROOTCERT";
        /// Connections per process.
        pool_size: u32 = 20, "NIMBUS_DB_POOL_SIZE";
        /// Folder with PostgreSQL's programs for the private cluster. Without one they are looked for.
        binaries: Option<String> = None, "NIMBUS_DB_BINARIES";
    }

    /// Valkey.
    valkey: Valkey at "valkey" {
        /// Address.
        url: Endpoint = endpoint("valkey://localhost:6379/0"), "NIMBUS_VALKEY_URL";
    }

    /// S3-compatible object store.
    s3: ObjectStore at "s3" {
        /// Address.
        endpoint: Endpoint = endpoint("http://localhost:9000"), "NIMBUS_S3_ENDPOINT";
        /// Access key.
        access_key: Option<Secret> = None, "NIMBUS_S3_ACCESS_KEY";
        /// Secret key.
        secret_key: Option<Secret> = None, "NIMBUS_S3_SECRET_KEY";
    }

    /// The relay that takes mail.
    smtp: MailServer at "smtp" {
        /// Host. Without one no mail is sent.
        host: Option<String> = None, "NIMBUS_SMTP_HOST";
        /// Port.
        port: u16 = 587, "NIMBUS_SMTP_PORT";
        /// User, if the relay asks for one.
        user: Option<String> = None, "NIMBUS_SMTP_USER";
        /// Password of the user.
        password: Option<Secret> = None, "NIMBUS_SMTP_PASSWORD";
        /// Whom mail is from, such as `Nimbus <nimbus@example.com>`. Needed with a host.
        from: Option<String> = None, "NIMBUS_SMTP_FROM";
        /// How the connection is protected: `starttls`, `tls` from the first byte, or `none` for a relay on the same
        /// machine.
        encryption: MailProtection = MailProtection::StartTls, "NIMBUS_SMTP_ENCRYPTION";
        /// File with authorities that sign the relay's certificate, besides those of the system.
        authorities: Option<String> = None, "NIMBUS_SMTP_AUTHORITIES";
    }

    /// Notifications by mail.
    email: EmailNotifications at "notifications.email" {
        /// Whether they are sent, where there is a relay.
        enabled: bool = true, "NIMBUS_NOTIFICATIONS_EMAIL_ENABLED";
    }

    /// Notifications by webhook.
    webhooks: WebhookNotifications at "notifications.webhooks" {
        /// Whether any is called.
        enabled: bool = true, "NIMBUS_NOTIFICATIONS_WEBHOOKS_ENABLED";
        /// Longest time of a call, in seconds.
        timeout: u32 = 30, "NIMBUS_NOTIFICATIONS_WEBHOOKS_TIMEOUT";
        /// Networks that are called although they are not public, separated by commas. Where clouds keep credentials is
        /// never called.
        networks: Option<String> = None, "NIMBUS_NOTIFICATIONS_WEBHOOKS_NETWORKS";
        /// Ports that are called besides 80 and 443, separated by commas.
        ports: Option<String> = None, "NIMBUS_NOTIFICATIONS_WEBHOOKS_PORTS";
        /// Call addresses without encryption too.
        plain: bool = false, "NIMBUS_NOTIFICATIONS_WEBHOOKS_PLAIN";
    }

    /// Sign-in.
    auth: Auth at "auth" {
        /// Secret that signs access tokens. Tokens signed with another one are refused.
        jwt_secret: Option<Secret> = None, "NIMBUS_JWT_SECRET";
        /// The secret before the present one, while tokens that it signed are still in use.
        jwt_previous_secret: Option<Secret> = None, "NIMBUS_JWT_PREVIOUS_SECRET";
        /// Life of an access token, in seconds.
        jwt_expiry: u32 = 3600, "NIMBUS_JWT_EXPIRY";
        /// Life of a refresh token, in seconds.
        refresh_token_expiry: u32 = 604_800, "NIMBUS_REFRESH_TOKEN_EXPIRY";
    }

    /// The server of the control plane.
    server: Server at "server" {
        /// Address under which people reach it, such as `https://nimbus.example`, when something in
        /// front of it ends TLS. Without one it is the address that it listens on.
        public_url: Option<Endpoint> = None, "NIMBUS_SERVER_PUBLIC_URL";
        /// Networks of proxies whose `X-Forwarded-For` is believed, separated by commas.
        trusted_proxies: Option<String> = None, "NIMBUS_SERVER_TRUSTED_PROXIES";
        /// Names for networks, for conditions on the location: `office=10.1.0.0/16,lab=10.2.0.0/16`.
        locations: Option<String> = None, "NIMBUS_SERVER_LOCATIONS";
        /// Networks that may read `/metrics`, separated by commas. Without them, this machine.
        metrics_networks: Option<String> = None, "NIMBUS_SERVER_METRICS_NETWORKS";
    }

    /// The audit trail.
    audit: Audit at "audit" {
        /// Where older entries go: `file:///folder` or `s3://bucket/prefix`. Without one they stay in
        /// the database.
        archive: Option<String> = None, "NIMBUS_AUDIT_ARCHIVE";
        /// Days that entries stay in the database; a tenant's setting `audit_retention_days` goes first.
        retention_days: u32 = 365, "NIMBUS_AUDIT_RETENTION_DAYS";
    }

    /// Copies of states.
    state: State at "state" {
        /// Where the states of all stacks are exported to, by the schedule `state-export`: `file:///folder` or
        /// `s3://bucket/prefix`. Without one they are not.
        export: Option<String> = None, "NIMBUS_STATE_EXPORT";
    }

    /// Durable workflows.
    workflows: Workflows at "workflows" {
        /// Who runs them: `embedded`, in the server's database, or `temporal`.
        engine: FlowEngine = FlowEngine::Embedded, "NIMBUS_WORKFLOWS_ENGINE";
    }

    /// The Temporal server, with `workflows.engine: temporal`.
    temporal: Temporal at "temporal" {
        /// Host.
        host: String = "localhost".into(), "NIMBUS_TEMPORAL_HOST";
        /// Port.
        port: u16 = 7233, "NIMBUS_TEMPORAL_PORT";
        /// Namespace, which exists.
        namespace: String = "nimbus".into(), "NIMBUS_TEMPORAL_NAMESPACE";
        /// Queue where work waits.
        task_queue: String = "nimbus-workflows".into(), "NIMBUS_TEMPORAL_TASK_QUEUE";
        /// Speak TLS.
        tls: bool = false, "NIMBUS_TEMPORAL_TLS";
        /// File with the authorities that sign the server's certificate. Without one, those of the system.
        authorities: Option<String> = None, "NIMBUS_TEMPORAL_AUTHORITIES";
        /// File with our certificate, for servers that ask who we are.
        certificate: Option<String> = None, "NIMBUS_TEMPORAL_CERTIFICATE";
        /// File with the key of our certificate.
        certificate_key: Option<String> = None, "NIMBUS_TEMPORAL_CERTIFICATE_KEY";
        /// API key, for servers that ask for one. Needs TLS.
        api_key: Option<Secret> = None, "NIMBUS_TEMPORAL_API_KEY";
    }

    /// Logs.
    logging: Logging at "logging" {
        /// Least severe level that is written. Commands for people show warnings and errors unless
        /// this is set.
        level: LogLevel = LogLevel::Info, "NIMBUS_LOGGING_LEVEL";
        /// One JSON object per line, or lines for people. Commands on a terminal write plain lines
        /// unless this is set.
        format: LogFormat = LogFormat::Json, "NIMBUS_LOGGING_FORMAT";
    }

    /// Traces.
    telemetry: Telemetry at "telemetry" {
        /// OpenTelemetry collector that takes traces over gRPC. Nothing is sent without one.
        otlp_endpoint: Option<Endpoint> = None, "NIMBUS_TELEMETRY_OTLP_ENDPOINT";
    }

    /// Limits on API requests.
    rate_limiting: RateLimiting at "rate_limiting" {
        /// Whether requests are limited.
        enabled: bool = true, "NIMBUS_RATE_LIMITING_ENABLED";
        /// Requests per period and caller.
        default_limit: Rate = Rate { requests: 100, period: RatePeriod::Minute },
            "NIMBUS_RATE_LIMITING_DEFAULT_LIMIT";
        /// Requests per period and tenant, of all its people and keys together.
        tenant_limit: Rate = Rate { requests: 6000, period: RatePeriod::Minute },
            "NIMBUS_RATE_LIMITING_TENANT_LIMIT";
    }

    /// How tenants are kept apart.
    tenancy: Tenancy at "tenancy" {
        /// A schema per tenant with row-level security, or one schema with the same row-level
        /// security for very many tenants. There is no weaker choice.
        isolation: Isolation = Isolation::SchemaWithRls, "NIMBUS_TENANCY_ISOLATION";
        /// Days during which a deleted tenant can be restored.
        grace_days: u32 = 30, "NIMBUS_TENANCY_GRACE_DAYS";
    }

    /// How programs are run.
    engine: Engine at "engine" {
        /// Whether programs run in a sandbox, and what happens on a machine that cannot isolate
        /// them: programs of one's own need none, programs of strangers `strict`.
        sandbox: SandboxMode = SandboxMode::Off, "NIMBUS_ENGINE_SANDBOX";
        /// What programs in a sandbox can reach. With `full` that includes everything that listens
        /// on this machine, which `strict` does not accept.
        sandbox_network: SandboxNetwork = SandboxNetwork::None, "NIMBUS_ENGINE_SANDBOX_NETWORK";
        /// Folders of the operator that strangers' projects may lead into, with `:` between them:
        /// packages that several projects share, installations of interpreters, the root of a
        /// workspace. With `strict` nothing else outside of a project's own folder is read for it.
        sandbox_roots: Option<Folders> = None, "NIMBUS_ENGINE_SANDBOX_ROOTS";
        /// Packages whose providers strangers' programs may use with `strict`, or `none`. One that is
        /// named here may also be given parameters, which can make it fetch and run anything. Not
        /// set: every plugin that is installed, without parameters, and none that hands out the
        /// machine it runs on (docs/sandbox.md lists them).
        sandbox_providers: Option<NameList> = None, "NIMBUS_ENGINE_SANDBOX_PROVIDERS";
        /// Variables of the engine that placeholders (`RUNTIME:env`) in strangers' manifests may read
        /// with `strict`.
        sandbox_env: Option<NameList> = None, "NIMBUS_ENGINE_SANDBOX_ENV";
        /// Queries that placeholders (`RUNTIME:aws`) in strangers' manifests may ask with `strict`, which
        /// are answered with the operator's credentials: names such as `latestAmiId`.
        sandbox_lookups: Option<NameList> = None, "NIMBUS_ENGINE_SANDBOX_LOOKUPS";
        /// Projects whose stacks a stranger's manifest may work on with `strict` in a backend that is given with
        /// `--backend`, where others keep their states too. Without `--backend` it needs none.
        sandbox_projects: Option<NameList> = None, "NIMBUS_ENGINE_SANDBOX_PROJECTS";
        /// Projects whose stacks a stranger's program may read through a stack reference with
        /// `strict`, beside its own project's.
        sandbox_references: Option<NameList> = None, "NIMBUS_ENGINE_SANDBOX_REFERENCES";
        /// Key management services that the secrets of strangers' stacks may be encrypted with under
        /// `strict` (`secretsprovider` in the file of a stack), as they are written there, with spaces
        /// between them. They are asked with the operator's credentials.
        sandbox_secrets: Option<AddressList> = None, "NIMBUS_ENGINE_SANDBOX_SECRETS";
        /// Memory that a program in a sandbox may use, all its processes together, in MiB.
        sandbox_memory_mib: u32 = 4096, "NIMBUS_ENGINE_SANDBOX_MEMORY_MIB";
        /// Processes and threads that a program in a sandbox may have at a time.
        sandbox_processes: u32 = 512, "NIMBUS_ENGINE_SANDBOX_PROCESSES";
        /// Files that each process in a sandbox may have open.
        sandbox_open_files: u32 = 4096, "NIMBUS_ENGINE_SANDBOX_OPEN_FILES";
        /// Temporary space of a program in a sandbox, in MiB.
        sandbox_temporary_mib: u32 = 512, "NIMBUS_ENGINE_SANDBOX_TEMPORARY_MIB";
        /// Temporary files that a program in a sandbox may have.
        sandbox_temporary_files: u32 = 50_000, "NIMBUS_ENGINE_SANDBOX_TEMPORARY_FILES";
        /// What a program in a sandbox may print in one run, in MiB.
        sandbox_output_mib: u32 = 64, "NIMBUS_ENGINE_SANDBOX_OUTPUT_MIB";
        /// What the engine holds for a program in a sandbox in one run, in MiB: everything that the
        /// program asks for and is answered, each request with 4 KiB at least. An eighth of it may be
        /// under way at a time.
        sandbox_requests_mib: u32 = 4096, "NIMBUS_ENGINE_SANDBOX_REQUESTS_MIB";
        /// Run programs with `strict` although this machine cannot isolate them completely.
        allow_weak_isolation: bool = false, "NIMBUS_ENGINE_ALLOW_WEAK_ISOLATION";
        /// Where plugins are downloaded from instead of their publishers, in closed networks: a
        /// server with a flat folder of archives.
        plugin_mirror_url: Option<Endpoint> = None, "NIMBUS_ENGINE_PLUGIN_MIRROR_URL";
        /// Whether `nimbus program` installs plugins that a program needs and this machine lacks. Never
        /// with `strict`, for plugins run outside of the sandbox.
        install_plugins: PluginInstallation = PluginInstallation::Terminal, "NIMBUS_ENGINE_INSTALL_PLUGINS";
        /// Packages whose provider processes are shared by programs in different folders, instead of
        /// those that were reviewed for it (docs/plugins.md lists them), or `none`.
        shared_providers: Option<NameList> = None, "NIMBUS_ENGINE_SHARED_PROVIDERS";
    }

    /// Runs that a server carries out for its tenants.
    runs: Runs at "runs" {
        /// Runs at once, of all tenants together.
        at_once: u32 = 4, "NIMBUS_RUNS_AT_ONCE";
        /// Runs at once of one tenant below the operator's, with all that are below it; all but one
        /// of those above when it is not set.
        per_tenant: Option<u32> = None, "NIMBUS_RUNS_PER_TENANT";
        /// Longest time that a run is carried out, in seconds. Then it is stopped between two steps, and
        /// ended if it does not stop.
        time_limit: u32 = 14_400, "NIMBUS_RUNS_TIME_LIMIT";
        /// Folder with packages of Node.js (`node_modules`) that programs of tenants find.
        node_modules: Option<String> = None, "NIMBUS_RUNS_NODE_MODULES";
    }
}

impl Settings {
    /// Every setting as it may be shown, in the order of the reference.
    pub fn entries(&self) -> Vec<crate::setting::SettingEntry> {
        self.slots()
            .into_iter()
            .map(|(descriptor, slot)| slot.entry(descriptor))
            .collect()
    }

    /// The secrets in force, so that logs can be cleaned of them.
    pub fn secrets(&self) -> Vec<&str> {
        self.slots()
            .into_iter()
            .filter_map(|(_, slot)| slot.expose())
            .collect()
    }
}

fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text).expect("defaults are valid")
}
