//! `nimbus program import`: take existing objects under management, one by one or from a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nimbus_core::{Error, ErrorCode, Result, StackOperation};
use nimbus_engine_model::Urn;
use nimbus_engine_operations::{ImportItem, OperationOptions};
use serde::Deserialize;

use super::args::{ConsentArgs, EffortArgs, LocationArgs, ShowArgs};
use super::event_sinks::Complaints;
use super::rehearse::RehearsalArgs;
use super::run::ProgramRequest;
use super::sandbox::SandboxArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct ProgramImportArgs {
    #[command(flatten)]
    location: LocationArgs,

    /// Type of the object, such as aws:s3/bucket:Bucket
    #[arg(value_name = "TYPE", required_unless_present = "file", requires_all = ["name", "id"])]
    type_: Option<String>,

    /// Name that the program will give it
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// The provider's id of the object
    #[arg(value_name = "ID")]
    id: Option<String>,

    /// URN of its parent
    #[arg(long, value_name = "URN", conflicts_with = "file")]
    parent: Option<String>,

    /// URN of the provider that reads it; without one, the package's default provider
    #[arg(long, value_name = "URN", conflicts_with = "file")]
    provider: Option<String>,

    /// JSON file that lists the objects, in the official command line's form
    #[arg(long, value_name = "FILE", conflicts_with_all = ["type_", "name", "id"])]
    file: Option<PathBuf>,

    /// Do not protect what is imported against being deleted
    #[arg(long)]
    no_protect: bool,

    #[command(flatten)]
    pub(super) effort: EffortArgs,
    #[command(flatten)]
    pub(super) sandbox: SandboxArgs,
    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    rehearsal: RehearsalArgs,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) async fn run(
    args: ProgramImportArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let mut items = match &args.file {
        Some(file) => read(&context.directory.join(file))?,
        None => vec![single(&args)?],
    };
    for item in &mut items {
        item.protect = !args.no_protect && !item.component;
    }
    let mut options = OperationOptions {
        imports: items,
        ..OperationOptions::default()
    };
    args.effort.apply(&mut options);
    // Without the program there is still its code: dynamic providers that the state names.
    options.sandbox = args.sandbox.settings(context)?;
    let asked = ProgramRequest {
        location: args.location.location(context)?,
        operation: StackOperation::Import,
        options,
        show: args.show,
        rehearsal: &args.rehearsal,
        complaints: Complaints::default(),
    };
    asked.apply(context, &args.consent).await
}

fn single(args: &ProgramImportArgs) -> Result<ImportItem> {
    let mut names = BTreeMap::new();
    if let Some(parent) = &args.parent {
        names.insert(parent.clone(), urn(parent)?);
    }
    Ok(ImportItem {
        type_: args.type_.clone().unwrap_or_default(),
        name: args.name.clone().unwrap_or_default(),
        id: args.id.clone().unwrap_or_default(),
        parent: args.parent.clone(),
        provider: args.provider.clone(),
        names,
        ..ImportItem::default()
    })
}

/// The file's form. Fields that say how code would be written are read over.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImportFile {
    #[serde(default)]
    name_table: BTreeMap<String, String>,
    resources: Vec<ImportEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImportEntry {
    #[serde(rename = "type")]
    type_: String,
    name: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    parent: String,
    #[serde(default)]
    provider: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    plugin_download_url: String,
    #[serde(default)]
    logical_name: String,
    #[serde(default)]
    properties: Vec<String>,
    #[serde(default)]
    component: bool,
}

fn read(path: &Path) -> Result<Vec<ImportItem>> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|error| {
        Error::new(
            ErrorCode::FILE_UNREADABLE,
            format!("cannot read {shown}: {error}"),
        )
        .with_source(error)
    })?;
    let file: ImportFile = serde_json::from_slice(&text).map_err(|error| {
        Error::new(
            ErrorCode::IMPORT_INVALID,
            format!("{shown} is not an import file: {error}"),
        )
    })?;
    let names: BTreeMap<String, Urn> = file
        .name_table
        .iter()
        .map(|(name, text)| Ok((name.clone(), urn(text)?)))
        .collect::<Result<_>>()?;
    file.resources
        .into_iter()
        .map(|entry| item(entry, &names))
        .collect()
}

fn item(entry: ImportEntry, names: &BTreeMap<String, Urn>) -> Result<ImportItem> {
    let version = match entry.version.trim_start_matches('v') {
        "" => None,
        text => Some(semver::Version::parse(text).map_err(|error| {
            let message = format!("the version of {} is not one: {error}", entry.name);
            Error::new(ErrorCode::IMPORT_INVALID, message)
        })?),
    };
    let given = |text: String| (!text.is_empty()).then_some(text);
    Ok(ImportItem {
        type_: entry.type_,
        // The name in the code may differ from the name of the resource.
        name: given(entry.logical_name).unwrap_or(entry.name),
        id: entry.id,
        parent: given(entry.parent),
        provider: given(entry.provider),
        version,
        plugin_download_url: entry.plugin_download_url,
        component: entry.component,
        properties: entry.properties,
        protect: true,
        names: names.clone(),
    })
}

fn urn(text: &str) -> Result<Urn> {
    Urn::parse(text).map_err(|error| Error::new(ErrorCode::IMPORT_INVALID, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<ImportItem>> {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("it can be written");
        read(file.path())
    }

    #[test]
    fn the_official_form_is_read() {
        let items = read_text(
            r#"{
                "nameTable": {"p": "urn:pulumi:s::p::a:b:C::p"},
                "resources": [
                    {"type": "aws:s3/bucket:Bucket", "name": "logs", "id": "b-1", "parent": "p",
                     "version": "v7.1.0", "properties": ["acl"]},
                    {"type": "my:web:Site", "name": "x", "logicalName": "site", "component": true}
                ]
            }"#,
        )
        .unwrap();
        assert_eq!(items[0].parent.as_deref(), Some("p"));
        assert!(items[0].names.contains_key("p"));
        assert_eq!(items[0].version, Some(semver::Version::new(7, 1, 0)));
        assert_eq!(items[1].name, "site");
        assert!(items[1].component);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("", "import file"),
            (r#"{"resources": [{"name": "x"}]}"#, "type"),
            (
                r#"{"nameTable": {"p": "nonsense"}, "resources": []}"#,
                "URN",
            ),
            (
                r#"{"resources": [{"type": "a:b:C", "name": "x", "version": "one"}]}"#,
                "version",
            ),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.message().contains(part), "{}", error.message());
        }
    }
}
