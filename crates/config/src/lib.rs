//! Settings of the Nimbus binary: flags over environment over `config/nimbus.yaml` over defaults,
//! each with its origin.
//!
//! There is one list of settings, in [`mod@settings`]. The struct that code reads, the names in
//! the environment, the keys of the file, the JSON Schema, the reference page and what
//! `nimbus config show` prints all come from it; to add a setting, add a line there.
//!
//! Nothing is ignored silently: an unknown key or a bad value is an error that points at the line
//! and names the nearest valid key. Secrets never leave through `Debug` or [`Settings::entries`].

mod found;
mod load;
mod reference;
mod schema;
mod setting;
mod settings;
mod types;
mod unused;
mod value;

pub use load::{
    CONFIG_VARIABLE, DEFAULT_FILE, DirectoryOwner, FlagValue, LoadedSettings, Sources, load,
};
pub use reference::reference_page;
pub use schema::json_schema;
pub use setting::{Setting, SettingEntry, SettingOrigin};
pub use settings::{
    App, Audit, Auth, Database, EmailNotifications, Engine, Logging, MailServer, ObjectStore,
    RateLimiting, Server, Settings, Telemetry, Tenancy, Valkey, WebhookNotifications,
};
pub use types::{
    AddressList, Endpoint, FlowEngine, Folders, Isolation, LogFormat, LogLevel, MailProtection,
    NameList, PluginInstallation, Rate, RatePeriod, SandboxMode, SandboxNetwork, Secret,
};
