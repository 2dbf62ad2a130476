//! `Pulumi.<stack>.yaml`: how secrets are encrypted, and the stack's configuration.

use std::path::{Path, PathBuf};

use nimbus_core::{ErrorCode, Result};
use nimbus_document::{Document, Node, NodeKind, View};
use nimbus_engine_files::ProjectFiles;

use super::config::ConfigMap;
use super::key::ConfigKey;
use super::value::ConfigValue;
use crate::secrets::{CloudKey, DeclaredSecrets};

#[derive(Clone, Debug)]
pub struct StackSettings {
    pub path: PathBuf,
    pub secrets_provider: Option<String>,
    pub encrypted_key: Option<String>,
    pub encryption_salt: Option<String>,
    pub config: ConfigMap,
    pub(super) project: String,
    /// The file's text; empty when there is no file yet.
    pub(super) text: String,
    pub(super) document: Option<Document>,
    /// Where it may be read and written.
    pub(super) files: ProjectFiles,
}

impl StackSettings {
    /// Reads a stack's settings; a file that is not there means none.
    pub fn read(path: &Path, project: &str) -> Result<Self> {
        Self::read_with(&ProjectFiles::UNRESTRICTED, path, project)
    }

    /// The same through the reader of the project's files. They are written too, and so never in a root that
    /// others share.
    pub fn read_with(files: &ProjectFiles, path: &Path, project: &str) -> Result<Self> {
        let files = files.own();
        let read = match files.read_to_string(path) {
            Ok(text) => Self::parse(path, project, text)?,
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                Self::empty(path, project)
            }
            Err(source) => return Err(super::file::unreadable(path, source)),
        };
        Ok(Self { files, ..read })
    }

    /// The settings that a text says, as if it were in the file at `path`.
    pub fn parse(path: &Path, project: &str, text: String) -> Result<Self> {
        let document = Document::parse(&path.display().to_string(), &text)?;
        let mut settings = Self::empty(path, project);
        settings.text = text;
        // A file with nothing but comments.
        if !document.root().is_null() {
            let root = document.view();
            let text = |key: &str| -> Result<Option<String>> {
                let value = root.optional(key)?;
                let text = value
                    .map(|value| value.str().map(str::to_owned))
                    .transpose()?;
                Ok(text.filter(|text| !text.is_empty()))
            };
            settings.secrets_provider = text("secretsprovider")?;
            settings.encrypted_key = text("encryptedkey")?;
            settings.encryption_salt = text("encryptionsalt")?;
            if let Some(view) = root.optional("config")? {
                settings.config = config(&view, project)?;
            }
        }
        settings.document = Some(document);
        Ok(settings)
    }

    fn empty(path: &Path, project: &str) -> Self {
        Self {
            path: path.to_owned(),
            secrets_provider: None,
            encrypted_key: None,
            encryption_salt: None,
            config: ConfigMap::default(),
            project: project.to_owned(),
            text: String::new(),
            document: None,
            files: ProjectFiles::UNRESTRICTED,
        }
    }

    /// Whoever is about to run the program asks this first: values from Pulumi ESC would be
    /// missing, and nobody would notice.
    pub fn refuse_environments(&self) -> Result<()> {
        let Some(document) = &self.document else {
            return Ok(());
        };
        let asked = document
            .root()
            .get("environment")
            .filter(|node| !is_empty(node));
        asked.map_or(Ok(()), |node| {
            let message = "the stack imports environments of Pulumi ESC, which Nimbus cannot reach";
            let label = "this needs Pulumi Cloud";
            let error = document.error(
                ErrorCode::ENVIRONMENTS_UNSUPPORTED,
                node.span,
                message,
                label,
            );
            Err(error.with_help("put the values under `config` and remove this section"))
        })
    }

    /// The service that the file says is asked about the stack's secrets.
    pub fn secrets_service(&self) -> Option<&str> {
        let named = self.secrets_provider.as_deref();
        named.filter(|name| !matches!(*name, "passphrase" | "default"))
    }

    /// How this stack's secrets are encrypted, as far as the file says.
    pub fn secrets(&self) -> Result<DeclaredSecrets> {
        match self.secrets_service() {
            None => {
                let salt = self.encryption_salt.as_deref();
                Ok(salt.map(DeclaredSecrets::salt).unwrap_or_default())
            }
            Some(url) => match &self.encrypted_key {
                Some(key) => {
                    let key = CloudKey::written(url, key)?;
                    Ok(DeclaredSecrets::Provider(key.provider()))
                }
                None => Ok(DeclaredSecrets::Service(url.to_owned())),
            },
        }
    }
}

fn config(view: &View<'_>, project: &str) -> Result<ConfigMap> {
    let mut config = ConfigMap::default();
    for (text, value) in view.entries()? {
        let wrong = |message: String| {
            let document = view.document();
            let span = view.node().as_mapping().and_then(|m| m.entry(text));
            let span = span.map_or_else(|| value.span(), |entry| entry.key_span);
            document.error(ErrorCode::CONFIG_KEY, span, message, "this key")
        };
        let key = ConfigKey::parse_in(text, project).map_err(|error| wrong(error.to_string()))?;
        if config.get(&key, &[]).is_some() {
            return Err(wrong(format!("`{key}` is given twice, in two spellings")));
        }
        let new = ConfigValue::from_node(value.node());
        config
            .set(&key, &[], new)
            .map_err(|error| wrong(error.to_string()))?;
    }
    Ok(config)
}

fn is_empty(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Null => true,
        NodeKind::Sequence(items) => items.is_empty(),
        NodeKind::Mapping(mapping) => mapping.is_empty(),
        NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::String(_) => false,
    }
}
