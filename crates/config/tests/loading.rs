//! The layers, the names, and what is said about mistakes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use nimbus_config::{
    DirectoryOwner, FlagValue, Isolation, LoadedSettings, LogFormat, LogLevel, SettingOrigin,
    Sources, json_schema, load, reference_page,
};
use nimbus_core::{Error, ErrorCode, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Case {
    directory: TempDir,
    sources: Sources,
}

impl Case {
    fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let sources = Sources {
            directory: directory.path().to_owned(),
            ..Sources::default()
        };
        Self { directory, sources }
    }

    fn file(self, text: &str) -> Self {
        let folder = self.directory.path().join("config");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("nimbus.yaml"), text).expect("a file");
        self
    }

    fn env(mut self, variable: &str, value: &str) -> Self {
        self.sources
            .environment
            .insert(variable.into(), value.into());
        self
    }

    fn flag(mut self, path: &'static str, flag: &'static str, value: &str) -> Self {
        self.sources.flags.push(FlagValue {
            path,
            flag,
            value: value.into(),
        });
        self
    }

    fn load(&self) -> Result<LoadedSettings> {
        load(&self.sources)
    }
}

#[test]
fn flags_win_over_variables_over_the_file_over_defaults() {
    let case = Case::new();
    let level = |case: &Case| case.load().unwrap().settings.logging.level;
    assert_eq!(
        (level(&case).value, level(&case).origin),
        (LogLevel::Info, SettingOrigin::Default)
    );

    let case = case.file("app:\n  name: X\nlogging:\n  level: error\n");
    let origin = SettingOrigin::File {
        name: "config/nimbus.yaml".into(),
        line: 4,
    };
    assert_eq!(
        (level(&case).value, level(&case).origin),
        (LogLevel::Error, origin)
    );

    let case = case.env("NIMBUS_LOGGING_LEVEL", "warn");
    let origin = SettingOrigin::Environment {
        variable: "NIMBUS_LOGGING_LEVEL",
    };
    assert_eq!(
        (level(&case).value, level(&case).origin),
        (LogLevel::Warn, origin)
    );

    let case = case.flag("logging.level", "--log-level", "debug");
    let origin = SettingOrigin::Flag {
        flag: "--log-level",
    };
    assert_eq!(
        (level(&case).value, level(&case).origin),
        (LogLevel::Debug, origin)
    );

    let settings = case.load().unwrap().settings;
    assert_eq!(settings.app.name.value, "X", "other keys of the file stay");
    assert_eq!(
        settings.logging.format.value,
        LogFormat::Json,
        "other defaults stay"
    );
}

/// What a stranger's project could say for the operator: each setting but those that only change how
/// things look.
#[test]
fn a_settings_file_that_is_found_says_nothing_for_the_operator_with_strict() {
    let hostile = [
        ("sandbox_roots", "/"),
        ("allow_weak_isolation", "true"),
        ("sandbox_network", "full"),
        ("sandbox_references", "other"),
        ("sandbox_projects", "other"),
        ("sandbox_providers", "command"),
        ("sandbox_env", "AWS_SECRET_ACCESS_KEY"),
        ("sandbox_memory_mib", "100000"),
        ("plugin_mirror_url", "http://evil.example"),
        ("install_plugins", "always"),
        ("shared_providers", "command"),
    ]
    .map(|(key, value)| format!("engine:\n  {key}: {value}\n"));
    let others = [
        "telemetry:\n  otlp_endpoint: http://evil.example\n".to_owned(),
        "s3:\n  endpoint: http://evil.example\n".to_owned(),
        "logging:\n  level: error\nauth:\n  jwt_secret: x\n".to_owned(),
    ];
    for text in hostile.iter().chain(&others) {
        let strict = || {
            Case::new()
                .file(text)
                .env("NIMBUS_ENGINE_SANDBOX", "strict")
        };
        let refused = strict().load().unwrap_err();
        assert_eq!(refused.code(), ErrorCode::FOUND_SETTINGS, "{text}");
        assert!(refused.help().is_some_and(|help| help.contains("--config")));
        let flag = Case::new()
            .file(text)
            .flag("engine.sandbox", "--sandbox", "strict");
        assert_eq!(
            flag.load().unwrap_err().code(),
            ErrorCode::FOUND_SETTINGS,
            "{text}"
        );
        let from_itself = text.replacen("engine:\n", "engine:\n  sandbox: strict\n", 1);
        if from_itself != *text {
            let refused = Case::new().file(&from_itself).load().unwrap_err();
            assert_eq!(refused.code(), ErrorCode::FOUND_SETTINGS, "{text}");
        }
        // One's own project, a file that was named, and a server's folder.
        Case::new().file(text).load().unwrap();
        strict()
            .env("NIMBUS_CONFIG", "config/nimbus.yaml")
            .load()
            .unwrap();
        let mut named = strict();
        named.sources.file = Some("config/nimbus.yaml".into());
        named.load().unwrap();
        let mut server = strict();
        server.sources.owner = DirectoryOwner::Operator;
        server.load().unwrap();
    }
    let harmless = "engine:\n  sandbox: strict\nlogging:\n  level: error\n";
    Case::new().file(harmless).load().unwrap();
    // What the operator says as well is the operator's.
    let said_twice = Case::new()
        .file("engine:\n  sandbox_memory_mib: 9999\n")
        .env("NIMBUS_ENGINE_SANDBOX", "strict")
        .env("NIMBUS_ENGINE_SANDBOX_MEMORY_MIB", "512");
    let loaded = said_twice.load().unwrap().settings;
    assert_eq!(loaded.engine.sandbox_memory_mib.value, 512);
}

/// What it leads to would be shown in a complaint about its text.
#[cfg(unix)]
#[test]
fn a_settings_file_that_is_a_link_is_not_read_with_strict() {
    let case = Case::new().env("NIMBUS_ENGINE_SANDBOX", "strict");
    let root = case.directory.path();
    fs::write(root.join("secret"), "hunter2: [").unwrap();
    fs::create_dir(root.join("config")).unwrap();
    std::os::unix::fs::symlink(root.join("secret"), root.join("config/nimbus.yaml")).unwrap();
    let refused = case.load().unwrap_err();
    assert_eq!(refused.code(), ErrorCode::FOUND_SETTINGS);
    assert!(!format!("{refused:?}").contains("hunter2"));
    fs::remove_dir_all(root.join("config")).unwrap();
    fs::create_dir(root.join("elsewhere")).unwrap();
    fs::write(root.join("elsewhere/nimbus.yaml"), "hunter2: [").unwrap();
    std::os::unix::fs::symlink(root.join("elsewhere"), root.join("config")).unwrap();
    let refused = case.load().unwrap_err();
    assert_eq!(refused.code(), ErrorCode::FOUND_SETTINGS);
}

/// The names and defaults of the specification, all of them.
#[test]
fn every_named_setting_exists_with_its_default() {
    let expected: BTreeMap<&str, (&str, Value)> = [
        ("NIMBUS_SECRET_KEY", ("app.secret_key", json!(null))),
        ("NIMBUS_DB_BINARIES", ("db.binaries", json!(null))),
        ("NIMBUS_DB_HOST", ("db.host", json!(null))),
        ("NIMBUS_DB_PORT", ("db.port", json!(5432))),
        ("NIMBUS_DB_SSLMODE", ("db.sslmode", json!(null))),
        ("NIMBUS_DB_SSLROOTCERT", ("db.sslrootcert", json!(null))),
        ("NIMBUS_DB_NAME", ("db.name", json!("nimbus"))),
        ("NIMBUS_DB_USER", ("db.user", json!("nimbus"))),
        ("NIMBUS_DB_PASSWORD", ("db.password", json!(null))),
        ("NIMBUS_DB_POOL_SIZE", ("db.pool_size", json!(20))),
        (
            "NIMBUS_VALKEY_URL",
            ("valkey.url", json!("valkey://localhost:6379/0")),
        ),
        (
            "NIMBUS_S3_ENDPOINT",
            ("s3.endpoint", json!("http://localhost:9000/")),
        ),
        ("NIMBUS_S3_ACCESS_KEY", ("s3.access_key", json!(null))),
        ("NIMBUS_S3_SECRET_KEY", ("s3.secret_key", json!(null))),
        ("NIMBUS_STATE_EXPORT", ("state.export", json!(null))),
        (
            "NIMBUS_WORKFLOWS_ENGINE",
            ("workflows.engine", json!("embedded")),
        ),
        (
            "NIMBUS_TEMPORAL_HOST",
            ("temporal.host", json!("localhost")),
        ),
        ("NIMBUS_TEMPORAL_PORT", ("temporal.port", json!(7233))),
        (
            "NIMBUS_TEMPORAL_NAMESPACE",
            ("temporal.namespace", json!("nimbus")),
        ),
        (
            "NIMBUS_TEMPORAL_TASK_QUEUE",
            ("temporal.task_queue", json!("nimbus-workflows")),
        ),
        ("NIMBUS_TEMPORAL_TLS", ("temporal.tls", json!(false))),
        (
            "NIMBUS_TEMPORAL_AUTHORITIES",
            ("temporal.authorities", json!(null)),
        ),
        (
            "NIMBUS_TEMPORAL_CERTIFICATE",
            ("temporal.certificate", json!(null)),
        ),
        (
            "NIMBUS_TEMPORAL_CERTIFICATE_KEY",
            ("temporal.certificate_key", json!(null)),
        ),
        ("NIMBUS_TEMPORAL_API_KEY", ("temporal.api_key", json!(null))),
        ("NIMBUS_SMTP_HOST", ("smtp.host", json!(null))),
        ("NIMBUS_SMTP_PORT", ("smtp.port", json!(587))),
        ("NIMBUS_SMTP_USER", ("smtp.user", json!(null))),
        ("NIMBUS_SMTP_PASSWORD", ("smtp.password", json!(null))),
        ("NIMBUS_SMTP_FROM", ("smtp.from", json!(null))),
        (
            "NIMBUS_SMTP_ENCRYPTION",
            ("smtp.encryption", json!("starttls")),
        ),
        ("NIMBUS_SMTP_AUTHORITIES", ("smtp.authorities", json!(null))),
        (
            "NIMBUS_NOTIFICATIONS_EMAIL_ENABLED",
            ("notifications.email.enabled", json!(true)),
        ),
        (
            "NIMBUS_NOTIFICATIONS_WEBHOOKS_ENABLED",
            ("notifications.webhooks.enabled", json!(true)),
        ),
        (
            "NIMBUS_NOTIFICATIONS_WEBHOOKS_TIMEOUT",
            ("notifications.webhooks.timeout", json!(30)),
        ),
        (
            "NIMBUS_NOTIFICATIONS_WEBHOOKS_NETWORKS",
            ("notifications.webhooks.networks", json!(null)),
        ),
        (
            "NIMBUS_NOTIFICATIONS_WEBHOOKS_PORTS",
            ("notifications.webhooks.ports", json!(null)),
        ),
        (
            "NIMBUS_NOTIFICATIONS_WEBHOOKS_PLAIN",
            ("notifications.webhooks.plain", json!(false)),
        ),
        ("NIMBUS_JWT_SECRET", ("auth.jwt_secret", json!(null))),
        (
            "NIMBUS_JWT_PREVIOUS_SECRET",
            ("auth.jwt_previous_secret", json!(null)),
        ),
        (
            "NIMBUS_SERVER_PUBLIC_URL",
            ("server.public_url", json!(null)),
        ),
        (
            "NIMBUS_SERVER_TRUSTED_PROXIES",
            ("server.trusted_proxies", json!(null)),
        ),
        ("NIMBUS_SERVER_LOCATIONS", ("server.locations", json!(null))),
        (
            "NIMBUS_SERVER_METRICS_NETWORKS",
            ("server.metrics_networks", json!(null)),
        ),
        ("NIMBUS_AUDIT_ARCHIVE", ("audit.archive", json!(null))),
        (
            "NIMBUS_AUDIT_RETENTION_DAYS",
            ("audit.retention_days", json!(365)),
        ),
        (
            "NIMBUS_TENANCY_GRACE_DAYS",
            ("tenancy.grace_days", json!(30)),
        ),
        ("NIMBUS_JWT_EXPIRY", ("auth.jwt_expiry", json!(3600))),
        ("NIMBUS_RUNS_AT_ONCE", ("runs.at_once", json!(4))),
        ("NIMBUS_RUNS_PER_TENANT", ("runs.per_tenant", Value::Null)),
        ("NIMBUS_RUNS_TIME_LIMIT", ("runs.time_limit", json!(14_400))),
        (
            "NIMBUS_RUNS_NODE_MODULES",
            ("runs.node_modules", Value::Null),
        ),
        (
            "NIMBUS_REFRESH_TOKEN_EXPIRY",
            ("auth.refresh_token_expiry", json!(604_800)),
        ),
        ("NIMBUS_APP_NAME", ("app.name", json!("Nimbus"))),
        ("NIMBUS_LOGGING_LEVEL", ("logging.level", json!("INFO"))),
        ("NIMBUS_LOGGING_FORMAT", ("logging.format", json!("json"))),
        (
            "NIMBUS_TELEMETRY_OTLP_ENDPOINT",
            ("telemetry.otlp_endpoint", json!(null)),
        ),
        (
            "NIMBUS_RATE_LIMITING_ENABLED",
            ("rate_limiting.enabled", json!(true)),
        ),
        (
            "NIMBUS_RATE_LIMITING_DEFAULT_LIMIT",
            ("rate_limiting.default_limit", json!("100/minute")),
        ),
        (
            "NIMBUS_RATE_LIMITING_TENANT_LIMIT",
            ("rate_limiting.tenant_limit", json!("6000/minute")),
        ),
        (
            "NIMBUS_TENANCY_ISOLATION",
            ("tenancy.isolation", json!("schema_with_rls")),
        ),
        ("NIMBUS_ENGINE_SANDBOX", ("engine.sandbox", json!("off"))),
        (
            "NIMBUS_ENGINE_SANDBOX_NETWORK",
            ("engine.sandbox_network", json!("none")),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_MEMORY_MIB",
            ("engine.sandbox_memory_mib", json!(4096)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_ROOTS",
            ("engine.sandbox_roots", json!(null)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_PROVIDERS",
            ("engine.sandbox_providers", json!(null)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_ENV",
            ("engine.sandbox_env", json!(null)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_LOOKUPS",
            ("engine.sandbox_lookups", json!(null)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_PROJECTS",
            ("engine.sandbox_projects", json!(null)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_REFERENCES",
            ("engine.sandbox_references", json!(null)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_SECRETS",
            ("engine.sandbox_secrets", json!(null)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_PROCESSES",
            ("engine.sandbox_processes", json!(512)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_OPEN_FILES",
            ("engine.sandbox_open_files", json!(4096)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_TEMPORARY_MIB",
            ("engine.sandbox_temporary_mib", json!(512)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_TEMPORARY_FILES",
            ("engine.sandbox_temporary_files", json!(50_000)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_OUTPUT_MIB",
            ("engine.sandbox_output_mib", json!(64)),
        ),
        (
            "NIMBUS_ENGINE_SANDBOX_REQUESTS_MIB",
            ("engine.sandbox_requests_mib", json!(4096)),
        ),
        (
            "NIMBUS_ENGINE_ALLOW_WEAK_ISOLATION",
            ("engine.allow_weak_isolation", json!(false)),
        ),
        (
            "NIMBUS_ENGINE_PLUGIN_MIRROR_URL",
            ("engine.plugin_mirror_url", json!(null)),
        ),
        (
            "NIMBUS_ENGINE_INSTALL_PLUGINS",
            ("engine.install_plugins", json!("terminal")),
        ),
        (
            "NIMBUS_ENGINE_SHARED_PROVIDERS",
            ("engine.shared_providers", json!(null)),
        ),
    ]
    .into();
    let entries = Case::new().load().unwrap().settings.entries();
    let actual: BTreeMap<&str, (&str, Value)> = entries
        .iter()
        .map(|entry| (entry.variable, (entry.path, entry.value.clone())))
        .collect();
    assert_eq!(actual, expected);
}

#[test]
fn every_setting_is_taken_from_its_variable_and_from_the_file() {
    for entry in Case::new().load().unwrap().settings.entries() {
        let (text, shown) = match (entry.secret, &entry.value) {
            (true, _) => ("hush", json!("[secret]")),
            (_, Value::Bool(true)) => ("false", json!(false)),
            (_, Value::Bool(false)) => ("true", json!(true)),
            (_, Value::Number(_)) => ("17", json!(17)),
            _ => match entry.path {
                "runs.per_tenant" => ("17", json!(17)),
                "logging.level" => ("trace", json!("TRACE")),
                "logging.format" => ("plain", json!("plain")),
                "tenancy.isolation" => ("shared", json!("shared")),
                "smtp.encryption" => ("TLS", json!("tls")),
                "workflows.engine" => ("temporal", json!("temporal")),
                "engine.sandbox" => ("strict", json!("strict")),
                "engine.sandbox_roots" => ("/srv/shared", json!("/srv/shared")),
                "engine.sandbox_network" => ("full", json!("full")),
                "engine.install_plugins" => ("always", json!("always")),
                "engine.sandbox_secrets" => ("awskms://alias/a", json!("awskms://alias/a")),
                "rate_limiting.default_limit" | "rate_limiting.tenant_limit" => {
                    ("5/second", json!("5/second"))
                }
                path if path.ends_with("endpoint") || path.ends_with("url") => {
                    ("http://elsewhere:1/", json!("http://elsewhere:1/"))
                }
                _ => ("elsewhere", json!("elsewhere")),
            },
        };
        let mut nested = String::new();
        for (depth, key) in entry.path.split('.').enumerate() {
            write!(nested, "\n{}{key}:", "  ".repeat(depth)).unwrap();
        }
        writeln!(nested, " {text}").unwrap();
        for case in [
            Case::new().env(entry.variable, text),
            Case::new().file(nested.trim_start()),
        ] {
            let loaded = case.load().unwrap();
            let set = loaded
                .settings
                .entries()
                .into_iter()
                .find(|e| e.path == entry.path)
                .unwrap();
            assert_eq!(set.value, shown, "{}", entry.path);
            assert_ne!(set.origin, SettingOrigin::Default);
            let others = loaded.settings.entries();
            let changed = others
                .iter()
                .filter(|e| e.origin != SettingOrigin::Default)
                .count();
            assert_eq!(changed, 1, "{} moved something else too", entry.path);
            assert!(loaded.unknown_variables.is_empty());
        }
    }
}

#[test]
fn secrets_are_known_to_the_redactor_and_to_nobody_else() {
    let case = Case::new()
        .env("NIMBUS_DB_PASSWORD", "hunter2")
        .env("NIMBUS_VALKEY_URL", "valkey://u:in-url@cache:6379/0");
    let settings = case.load().unwrap().settings;
    assert_eq!(settings.secrets(), ["hunter2", "in-url"]);
    let everything = format!("{settings:?} {:?}", settings.entries());
    assert!(!everything.contains("hunter2"), "{everything}");
    let shown: Vec<_> = settings
        .entries()
        .into_iter()
        .map(|e| e.value.to_string())
        .collect();
    assert!(!shown.join(" ").contains("in-url"));
}

#[test]
fn only_the_two_strong_isolations_are_accepted() {
    let isolation = |text: &str| Case::new().env("NIMBUS_TENANCY_ISOLATION", text).load();
    let accepted = isolation("shared")
        .unwrap()
        .settings
        .tenancy
        .isolation
        .value;
    assert_eq!(accepted, Isolation::Shared);
    assert!(isolation("schema_with_rls").is_ok());
    for weak in ["none", "schema", "rls", "database"] {
        assert_eq!(
            isolation(weak).unwrap_err().code(),
            ErrorCode::CONFIG_BAD_VALUE,
            "{weak}"
        );
    }
}

fn told(error: &Error) -> String {
    let place = error.spans().first().map_or_else(String::new, |span| {
        let (line, column) = span.line_and_column();
        format!(" at {}:{line}:{column}", span.name)
    });
    let help = error
        .help()
        .map_or_else(String::new, |help| format!("\n    → {help}"));
    format!("{}{place} {}{help}", error.code(), error.message())
}

#[test]
fn mistakes_in_the_file_are_explained() {
    let mut all = String::new();
    for text in [
        "loging:\n  level: INFO\n",
        "logging:\n  levle: INFO\n",
        "level: INFO\n",
        "notifications:\n  email:\n    provider: smtp\n",
        "app:\n  version: 2\n",
        "completely_different: 1\n",
        "logging:\n  level: LOUD\n",
        "logging:\n  level: [INFO]\n",
        "logging: INFO\n",
        "rate_limiting:\n  enabled: yes\n",
        "rate_limiting:\n  default_limit: 100 per minute\n",
        "tenancy:\n  isolation: none\n",
        "runs:\n  at_once: -1\n",
        "db:\n  port: 70000\n",
        "telemetry:\n  otlp_endpoint: collector:4317\n",
        "- a\n",
        "app:\n\tname: x\n",
    ] {
        let error = Case::new().file(text).load().unwrap_err();
        writeln!(all, "{text}  {}\n", told(&error)).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn an_empty_file_and_empty_sections_change_nothing() {
    for text in ["", "# nothing yet\n", "app:\nlogging:\n  level:\n"] {
        let settings = Case::new().file(text).load().unwrap().settings;
        assert!(
            settings
                .entries()
                .iter()
                .all(|entry| entry.origin == SettingOrigin::Default),
            "{text}"
        );
    }
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let settings = Case::new()
        .env("NIMBUS_DB_PORT", "")
        .load()
        .unwrap()
        .settings;
    assert_eq!(settings.db.port.origin, SettingOrigin::Default);
}

#[test]
fn a_bad_variable_or_flag_names_itself_and_not_its_value() {
    let error = Case::new()
        .env("NIMBUS_DB_PORT", "hunter2")
        .load()
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::CONFIG_BAD_VALUE);
    assert!(error.message().contains("NIMBUS_DB_PORT"), "{error}");
    assert!(!error.message().contains("hunter2"), "{error}");
    let error = Case::new()
        .flag("logging.level", "--log-level", "x")
        .load()
        .unwrap_err();
    assert!(error.message().contains("--log-level"), "{error}");
}

#[test]
fn a_file_that_was_asked_for_must_exist_and_the_default_one_need_not() {
    let mut case = Case::new();
    assert!(case.load().unwrap().file.is_none());
    case.sources.file = Some("absent.yaml".into());
    let error = case.load().unwrap_err();
    assert_eq!(error.code(), ErrorCode::FILE_UNREADABLE);
    assert!(error.message().contains("absent.yaml"), "{error}");

    let case = Case::new().env("NIMBUS_CONFIG", "also-absent.yaml");
    assert!(
        case.load()
            .unwrap_err()
            .message()
            .contains("also-absent.yaml")
    );
}

#[test]
fn a_misspelled_variable_is_noticed_with_the_nearest_name() {
    let case = Case::new()
        .env("NIMBUS_DB_PASWORD", "x")
        .env("NIMBUS_QUITE_ELSE", "x")
        .env("NIMBUS_TEST_NODE_SDK", "x")
        .env("HOME", "/");
    assert_eq!(
        case.load().unwrap().unknown_variables,
        [
            ("NIMBUS_DB_PASWORD".to_owned(), Some("NIMBUS_DB_PASSWORD")),
            ("NIMBUS_QUITE_ELSE".to_owned(), None),
        ]
    );
}

#[test]
fn a_variable_that_nothing_reads_is_noticed_and_not_called_unknown() {
    let case = Case::new()
        .env("NIMBUS_S3_BUCKET", "states")
        .env("NIMBUS_DEBUG", "")
        .env("NIMBUS_ENV", "development");
    let loaded = case.load().unwrap();
    assert_eq!(loaded.unused_variables, ["NIMBUS_ENV", "NIMBUS_S3_BUCKET"]);
    assert!(loaded.unknown_variables.is_empty());
}

#[test]
fn the_schema_agrees_with_loading() {
    let schema = json_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (text, valid) in [
        (json!({}), true),
        (json!({"app": {"name": "X"}, "logging": null}), true),
        (
            json!({"logging": {"level": "DEBUG", "format": "plain"}}),
            true,
        ),
        (
            json!({"notifications": {"email": {"provider": "ses"}}}),
            false,
        ),
        (json!({"tenancy": {"isolation": "shared"}}), true),
        (json!({"loging": {}}), false),
        (json!({"logging": {"levle": "INFO"}}), false),
        (json!({"logging": {"format": "xml"}}), false),
        (json!({"tenancy": {"isolation": "none"}}), false),
        (json!({"db": {"port": 70000}}), false),
        (json!({"db": {"port": 0}}), false),
        (json!({"rate_limiting": {"default_limit": "lots"}}), false),
    ] {
        assert_eq!(validator.is_valid(&text), valid, "{text}");
        let loaded = Case::new().file(&text.to_string()).load();
        assert_eq!(loaded.is_ok(), valid, "{text}: {loaded:?}");
    }
}

#[test]
fn the_reference_page_names_every_setting() {
    let page = reference_page();
    for entry in Case::new().load().unwrap().settings.entries() {
        assert!(page.contains(&format!("| `{}` | `{}` |", entry.path, entry.variable)));
    }
}
