//! The reference documents that are made from the code: commands, settings, exit codes and the
//! schemas of JSON output.

use std::fmt::Write as _;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::commands::{
    AllReport, AwsReport, BackupReport, CancelReport, ChangeReport, ConfigListReport,
    ConfigValueReport, DeployedReport, DeploymentsReport, DiffReport, DoctorReport,
    EnvironmentsReport, ErrorCodesReport, ExplainReport, ExportStateReport, GROUPED, GraphReport,
    HistoryReport, ImportReport, InitReport, LatenciesReport, ListedStacksReport, LocksReport,
    MigrateReport, NamingMigrationReport, NewReport, NewStackReport, OutputsReport, PulumiReport,
    RepairReport, ResourceReport, RestoreReport, RotateReport, RunSummary, SandboxAuditReport,
    ShowReport, StackReport, StateResourcesReport, StateStacksReport, StatusReport, TemplateReport,
    TemplatesReport, UnlockReport, UnlockedReport, UpReport, ValidTemplate, ValidateReport,
    VersionsReport, WhyReport,
};
use crate::diagnostic::ErrorDocument;
use crate::exit::{MEANINGS, WOULD_CHANGE, exit_code, kind_word};
use crate::output::Report;
use crate::{args, manifest_page};

/// Name and text of every document.
pub(crate) fn documents() -> Vec<(String, String)> {
    let mut documents = vec![
        ("cli.md".to_owned(), command_page()),
        (
            "configuration.md".to_owned(),
            nimbus_config::reference_page(),
        ),
        (
            "nimbus.schema.json".to_owned(),
            pretty(&nimbus_config::json_schema()),
        ),
        (
            "openapi.json".to_owned(),
            pretty(&nimbus_control_server::openapi()),
        ),
        (
            "schema.graphql".to_owned(),
            nimbus_control_server::graphql_schema(),
        ),
        ("exit-codes.md".to_owned(), exit_code_page()),
        (
            "json-output.md".to_owned(),
            include_str!("pages/json-output.md").to_owned(),
        ),
        (
            "json/error.schema.json".to_owned(),
            pretty(&schema_of::<ErrorDocument>(None)),
        ),
    ];
    documents.extend(manifest_page::documents());
    documents.extend([
        report_schema::<crate::commands::AdminReport>(),
        report_schema::<DeploymentsReport>(),
        report_schema::<StackReport>(),
        report_schema::<AllReport>(),
        report_schema::<NewStackReport>(),
        report_schema::<TemplateReport>(),
        report_schema::<DeployedReport>(),
        report_schema::<NamingMigrationReport>(),
        report_schema::<RotateReport>(),
        report_schema::<AwsReport>(),
        report_schema::<PulumiReport>(),
        report_schema::<EnvironmentsReport>(),
        report_schema::<GraphReport>(),
        report_schema::<UpReport>(),
        report_schema::<MigrateReport>(),
        report_schema::<BackupReport>(),
        report_schema::<RestoreReport>(),
        report_schema::<crate::commands::RecoverReport>(),
        report_schema::<InitReport>(),
        report_schema::<crate::commands::AdoptReport>(),
        report_schema::<crate::commands::UndoneReport>(),
        report_schema::<crate::commands::SecretChangeReport>(),
        report_schema::<crate::commands::SecretsReport>(),
        report_schema::<NewReport>(),
        report_schema::<RunSummary>(),
        report_schema::<VersionsReport>(),
        report_schema::<StatusReport>(),
        report_schema::<ExportStateReport>(),
        report_schema::<LocksReport>(),
        report_schema::<UnlockedReport>(),
        report_schema::<crate::commands::DecommissionReport>(),
        report_schema::<crate::commands::GateReport>(),
        report_schema::<crate::commands::WorkspaceBackupReport>(),
        report_schema::<crate::commands::WorkspaceRestoreReport>(),
        report_schema::<crate::commands::PushReport>(),
        report_schema::<crate::commands::PullReport>(),
        report_schema::<crate::commands::RunsReport>(),
        report_schema::<crate::commands::RunViewReport>(),
        report_schema::<WhyReport>(),
        report_schema::<LatenciesReport>(),
        report_schema::<ListedStacksReport>(),
        report_schema::<TemplatesReport>(),
        report_schema::<ValidTemplate>(),
        report_schema::<ValidateReport>(),
        report_schema::<crate::commands::InstallReport>(),
        report_schema::<crate::commands::PluginsReport>(),
        report_schema::<crate::commands::RemoveReport>(),
        report_schema::<OutputsReport>(),
        report_schema::<CancelReport>(),
        report_schema::<StateResourcesReport>(),
        report_schema::<StateStacksReport>(),
        report_schema::<ResourceReport>(),
        report_schema::<ImportReport>(),
        report_schema::<HistoryReport>(),
        report_schema::<DiffReport>(),
        report_schema::<RepairReport>(),
        report_schema::<UnlockReport>(),
        report_schema::<crate::commands::StateEditReport>(),
        report_schema::<crate::commands::StateMoveReport>(),
        report_schema::<crate::commands::ProjectStacksReport>(),
        report_schema::<crate::commands::StackChangeReport>(),
        report_schema::<ChangeReport>(),
        report_schema::<ConfigValueReport>(),
        report_schema::<ConfigListReport>(),
        report_schema::<DoctorReport>(),
        report_schema::<SandboxAuditReport>(),
        report_schema::<ShowReport>(),
        report_schema::<crate::commands::ConfigurationReport>(),
        report_schema::<ExplainReport>(),
        report_schema::<ErrorCodesReport>(),
    ]);
    documents
}

fn report_schema<R: Report + JsonSchema>() -> (String, String) {
    let name = R::SCHEMA.trim_start_matches("nimbus/").replace('/', "-v");
    (
        format!("json/{name}.schema.json"),
        pretty(&schema_of::<R>(Some(R::SCHEMA))),
    )
}

/// The schema of a document, with the `schema` member that output adds to every report.
fn schema_of<T: JsonSchema>(name: Option<&str>) -> Value {
    let mut schema = SchemaGenerator::default()
        .into_root_schema_for::<T>()
        .to_value();
    if let (Some(name), Some(object)) = (name, schema.as_object_mut()) {
        if let Some(Value::Object(properties)) = object.get_mut("properties") {
            properties.insert("schema".into(), serde_json::json!({ "const": name }));
        }
        if let Some(Value::Array(required)) = object.get_mut("required") {
            required.insert(0, "schema".into());
        }
    }
    schema
}

/// In order of the alphabet, whatever else is in the build.
fn pretty(value: &Value) -> String {
    let value = nimbus_orchestrator::schema::ordered(value.clone());
    format!("{value:#}\n")
}

fn command_page() -> String {
    let mut command = args::command("nimbus");
    command.build();
    let mut page = String::from(
        "# Command line\n\n\
         Generated from the code; `cargo xtask tidy` checks that it is current. The same text is \
         printed by `nimbus help COMMAND`. The program is also installed as `cloud`.\n",
    );
    describe(&mut page, &command, "nimbus", 2);
    page
}

fn describe(page: &mut String, command: &clap::Command, name: &str, level: usize) {
    let hashes = "#".repeat(level.min(4));
    let help = command
        .clone()
        .term_width(100)
        .render_long_help()
        .to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(
        page,
        "\n{hashes} `{name}`\n\n```text\n{}\n```\n",
        help.join("\n").trim_end()
    );
    if level != 3 || !GROUPED.contains(&command.get_name()) {
        describe_below(page, command, name, level);
    }
}

/// Groups whose verbs stand for other commands are not described twice.
fn describe_below(page: &mut String, command: &clap::Command, name: &str, level: usize) {
    for subcommand in command.get_subcommands() {
        if !subcommand.is_hide_set() && subcommand.get_name() != "help" {
            describe(
                page,
                subcommand,
                &format!("{name} {}", subcommand.get_name()),
                level + 1,
            );
        }
    }
}

fn exit_code_page() -> String {
    let mut page = String::from(
        "# Exit codes\n\n\
         Generated from the code; `cargo xtask tidy` checks that it is current. These numbers do \
         not change. `kind` is the word that `--json` errors carry.\n\n\
         | code | kind | meaning |\n|---|---|---|\n\
         | 0 | | Done. |\n",
    );
    for (kind, meaning) in MEANINGS {
        let _ = writeln!(
            page,
            "| {} | `{}` | {meaning} |",
            exit_code(*kind),
            kind_word(*kind)
        );
    }
    let _ = writeln!(
        page,
        "| {WOULD_CHANGE} | | `nimbus preview` went well and found something to change; 0 means \
         that nothing would change. |"
    );
    page.push_str(
        "\nA command that shows findings instead of failing, such as `nimbus doctor`, ends with the \
         code of what it found.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_documented_in_order_and_stay_what_they_are() {
        let codes: Vec<u8> = MEANINGS.iter().map(|(kind, _)| exit_code(*kind)).collect();
        assert_eq!(codes, [1, 2, 3, 4, 4, 5, 6, 7, 70, 130]);
    }

    #[test]
    fn every_document_has_a_name_of_its_own() {
        let mut names: Vec<_> = documents().into_iter().map(|(name, _)| name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
