//! A tenant's own templates and programs as one workspace: listed, sent and fetched.
//!
//! Contents are stored first, in as many requests as it takes, and mean nothing yet. One change then names them by path,
//! all at once, and is refused as a whole if the workspace would not be one afterwards.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nimbus_control_auth::operation;
use nimbus_control_store::{ListPage, TenantTx, WorkspaceFile};
use nimbus_control_wire::{
    WorkspaceChange, WorkspaceContents, WorkspaceEntry, WorkspaceFiles, WorkspaceTag,
};
use nimbus_core::{ComponentName, Error, ErrorCode, TenantId, name_collision};
use nimbus_document::Document;
use nimbus_orchestrator::ManifestTemplate;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::app::{App, EVERY_ENVIRONMENT};
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::kept_paths::check_path;
use crate::library::{CUSTOM, SHIPPED, STACK_TEMPLATES, read_tenant_template, refuse_in_use};

/// The largest file.
const MOST_FILE_BYTES: usize = 512 * 1024;
/// A workspace has at most so many files.
const MOST_FILES: usize = 5000;
/// All contents of a tenant together, those of earlier hours included.
const MOST_BYTES: i64 = 256 * 1024 * 1024;
/// So much is given in one answer, unless it is a single content.
const MOST_ANSWERED: usize = 2 * 1024 * 1024;
/// So many contents are asked for at once.
const MOST_ASKED: usize = 100;
/// What programs and templates are below; nothing else of a workspace is kept.
const PROGRAMS: &str = "stacks/";

impl App {
    /// Files of a tenant's workspace, by path. What is shipped is not among them.
    pub async fn workspace_list(
        &self,
        call: &Call,
        tenant: TenantId,
        page: ListPage<String>,
    ) -> Result<WorkspaceFiles> {
        let permit = self.permit(call, operation::LIST_WORKSPACE, tenant).await?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let index = tx.workspace_index().await?;
                let sizes: BTreeMap<_, _> = tx.blob_sizes().await?.into_iter().collect();
                self.audit(tx, &call.context, permit.record()).await?;
                let tag = tag(&index);
                let after = page.after.unwrap_or_default();
                let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
                let rest = index.into_iter().filter(|file| file.path > after);
                let items: Vec<_> = rest
                    .take(limit)
                    .map(|file| WorkspaceEntry {
                        size: sizes.get(&file.digest).copied().unwrap_or(0).unsigned_abs(),
                        digest: hex::encode(&file.digest),
                        path: file.path,
                    })
                    .collect();
                let full = items.len() >= limit;
                let next = items.last().filter(|_| full).map(|last| last.path.clone());
                Ok(WorkspaceFiles { items, next, tag })
            })
            .await
    }

    /// Contents of files of the tenant's workspace.
    pub async fn contents_read(
        &self,
        call: &Call,
        tenant: TenantId,
        digests: &[String],
    ) -> Result<WorkspaceContents> {
        let permit = self.permit(call, operation::READ_CONTENTS, tenant).await?;
        if digests.len() > MOST_ASKED {
            let words = format!("ask for at most {MOST_ASKED} at once");
            return Err(Failure::field("digests", words));
        }
        let digests = digests.iter().map(|text| digest_of("digests", text));
        let digests = digests.collect::<Result<Vec<_>>>()?;
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                let mut contents = BTreeMap::new();
                let mut total = 0;
                for digest in &digests {
                    let found = tx.blob_get(digest).await?;
                    let content = found.ok_or_else(Failure::not_found)?;
                    total += content.len();
                    if total > MOST_ANSWERED && !contents.is_empty() {
                        return Err(Failure::field(
                            "digests",
                            "their contents are too large for one answer",
                        ));
                    }
                    contents.insert(hex::encode(digest), BASE64.encode(content));
                }
                self.audit(tx, &call.context, permit.record()).await?;
                Ok(WorkspaceContents { contents })
            })
            .await
    }

    /// Stores contents for a change that follows within the hour.
    pub async fn contents_store(
        &self,
        call: &Call,
        tenant: TenantId,
        given: WorkspaceContents,
    ) -> Result<()> {
        let permit = self.permit(call, operation::STORE_CONTENTS, tenant).await?;
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        let mut contents = Vec::new();
        for (name, text) in &given.contents {
            let digest = digest_of("contents", name)?;
            let content = BASE64
                .decode(text)
                .map_err(|_| Failure::field("contents", "this is not base64"))?;
            if content.len() > MOST_FILE_BYTES {
                let message = format!("a file has at most {MOST_FILE_BYTES} bytes");
                return Err(Failure::new(ErrorCode::WORKSPACE_FILE_INVALID, message));
            }
            if Sha256::digest(&content).as_slice() != digest {
                let words = format!("the content is not the one of {name}");
                return Err(Failure::field("contents", words));
            }
            contents.push((digest, content));
        }
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.workspace_lock().await?;
                tx.blobs_forget_unused().await?;
                let bytes: usize = contents.iter().map(|(_, content)| content.len()).sum();
                let more = i64::try_from(bytes).unwrap_or(i64::MAX);
                if tx.blobs_size().await?.saturating_add(more) > MOST_BYTES {
                    let message = format!("the workspace has more than {} MiB", MOST_BYTES >> 20);
                    return Err(Error::new(ErrorCode::WORKSPACE_FILE_INVALID, message)
                        .with_help("leave out what programs do not need")
                        .into());
                }
                for (digest, content) in &contents {
                    tx.blob_put(digest, content).await?;
                }
                let record = permit
                    .record()
                    .after(json!({"contents": contents.len(), "bytes": bytes}));
                self.audit(tx, &call.context, record).await?;
                Ok(())
            })
            .await
    }

    /// Names contents by path and takes paths away: all of it or nothing.
    pub async fn workspace_change(
        &self,
        call: &Call,
        tenant: TenantId,
        change: WorkspaceChange,
    ) -> Result<WorkspaceTag> {
        let permit = self
            .permit(call, operation::CHANGE_WORKSPACE, tenant)
            .await?;
        // A program is the same in every environment that it is deployed to.
        self.ensure_in(call, &permit, EVERY_ENVIRONMENT)?;
        let mut put = BTreeMap::new();
        for (path, digest) in &change.put {
            ensure_kept(path)?;
            put.insert(path.clone(), digest_of("put", digest)?);
        }
        let template = |path: &String| path.starts_with(CUSTOM) || path.starts_with(SHIPPED);
        let key = "template:definition:manage";
        if put.keys().chain(&change.remove).any(template) && !self.has(call, key, &permit.resource)
        {
            let message = format!("templates need the permission {key}");
            return Err(Failure::new(ErrorCode::NOT_PERMITTED, message));
        }
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                tx.workspace_lock().await?;
                let before = tag(&tx.workspace_index().await?);
                if change.tag.as_ref().is_some_and(|seen| *seen != before) {
                    let message = "the workspace was changed by somebody else meanwhile";
                    return Err(Error::new(ErrorCode::RESOURCE_CHANGED, message)
                        .with_help("look at what is there now, and do it again")
                        .into());
                }
                for path in &change.remove {
                    if let Some(stack) = stack_of(path).filter(|_| !put.contains_key(path)) {
                        refuse_in_use(tx, &stack).await?;
                    }
                    tx.workspace_unlink(path).await?;
                }
                refuse_unknown(tx, &put).await?;
                for (path, digest) in &put {
                    tx.workspace_link(path, digest).await?;
                }
                let index = tx.workspace_index().await?;
                refuse_odd(&index)?;
                self.refuse_broken_templates(tx, &put).await?;
                tx.blobs_forget_unused().await?;
                let after = tag(&index);
                let record = permit.record().before(json!({"tag": before})).after(json!({
                    "tag": after,
                    "put": put.len(),
                    "removed": change.remove.len(),
                    "of": touched(put.keys().chain(&change.remove)),
                }));
                self.audit(tx, &call.context, record).await?;
                Ok(WorkspaceTag {
                    tag: after,
                    files: index.len() as u64,
                })
            })
            .await
    }

    /// A template that cannot be read would keep every deployment of the tenant from running.
    async fn refuse_broken_templates(
        &self,
        tx: &mut TenantTx,
        put: &BTreeMap<String, Vec<u8>>,
    ) -> Result<()> {
        for (path, digest) in put {
            let Some(stem) = template_name(path) else {
                continue;
            };
            let content = tx.blob_get(digest).await?.ok_or_else(Failure::not_found)?;
            let document = Document::parse_bytes(path, &content)?;
            let name = if path.starts_with(STACK_TEMPLATES) {
                read_tenant_template(&document)?.name.to_string()
            } else {
                ManifestTemplate::read(&document)?.name
            };
            if name != stem {
                let message = format!("{path} has the name `{name}`; it must be `{stem}`");
                return Err(Failure::new(ErrorCode::WORKSPACE_FILE_INVALID, message));
            }
        }
        self.library_in(tx).await.map(drop)
    }
}

/// The name that a template of this path must have.
fn template_name(path: &str) -> Option<&str> {
    [STACK_TEMPLATES, SHIPPED, CUSTOM]
        .into_iter()
        .find_map(|folder| path.strip_prefix(folder)?.strip_suffix(".yaml"))
}

/// Programs and templates are kept, and nothing else of a workspace.
fn ensure_kept(path: &str) -> Result<()> {
    check_path(path)?;
    let kept =
        path.starts_with(PROGRAMS) || template_name(path).is_some_and(|name| !name.contains('/'));
    if kept {
        return Ok(());
    }
    let message = format!("`{path}` is neither a program nor a template");
    Err(Error::new(ErrorCode::WORKSPACE_FILE_INVALID, message)
        .with_help("programs are below stacks/, templates in the folders of tools/templates/")
        .into())
}

fn digest_of(field: &'static str, text: &str) -> Result<Vec<u8>> {
    hex::decode(text)
        .ok()
        .filter(|digest| digest.len() == 32)
        .ok_or_else(|| Failure::field(field, "a digest is SHA-256, in hexadecimal digits"))
}

/// Names all files and their contents at once.
fn tag(index: &[WorkspaceFile]) -> String {
    let mut whole = Sha256::new();
    for file in index {
        whole.update(file.path.as_bytes());
        whole.update([0]);
        whole.update(&file.digest);
    }
    hex::encode(whole.finalize())
}

/// Contents have to be there before files are named after them.
async fn refuse_unknown(tx: &mut TenantTx, put: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let digests: Vec<_> = put.values().cloned().collect();
    let known: BTreeSet<_> = tx.blobs_known(&digests).await?.into_iter().collect();
    match put.iter().find(|(_, digest)| !known.contains(*digest)) {
        None => Ok(()),
        Some((path, _)) => {
            let words = format!("the content of {path} was not stored");
            Err(Failure::field("put", words))
        }
    }
}

/// A workspace that could not be written out: too many files, one where another one has a folder, or two that are one where
/// letters have no case.
fn refuse_odd(index: &[WorkspaceFile]) -> Result<()> {
    if index.len() > MOST_FILES {
        let message = format!("a workspace has at most {MOST_FILES} files");
        return Err(Failure::new(ErrorCode::WORKSPACE_FILE_INVALID, message));
    }
    let shipped = nimbus_library::files().iter().map(|(path, _)| *path);
    let all: BTreeSet<&str> = index
        .iter()
        .map(|file| file.path.as_str())
        .chain(shipped)
        .collect();
    match name_collision(all.into_iter()) {
        None => Ok(()),
        Some(collision) => {
            let message = collision.to_string();
            Err(Failure::new(ErrorCode::WORKSPACE_FILE_INVALID, message))
        }
    }
}

/// Programs and templates that a change is about, for the audit trail.
fn touched<'a>(paths: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    paths
        .map(|path| {
            let parts: Vec<&str> = path.splitn(3, '/').take(2).collect();
            match template_name(path) {
                Some(_) => path.clone(),
                None => parts.join("/"),
            }
        })
        .collect()
}

/// The stack whose template a path is.
fn stack_of(path: &str) -> Option<ComponentName> {
    let name = path.strip_prefix(STACK_TEMPLATES)?.strip_suffix(".yaml")?;
    name.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_and_templates_are_kept() {
        for path in [
            "stacks/network/src/index.ts",
            "stacks/tsconfig.json",
            "tools/templates/config/network.yaml",
            "tools/templates/custom/pair.yaml",
        ] {
            ensure_kept(path).unwrap();
        }
        for path in [
            "",
            "/stacks/a",
            "stacks",
            "stacks/",
            "stacks/../deploy/x",
            "stacks/a/../../x",
            "stacks/./a",
            "stacks/a//b",
            "stacks/a\\..\\b",
            "stacks/a/node_modules/x.js",
            "deploy/D1/Deployment_Manifest.yaml",
            ".nimbus/key",
            "tools/templates/custom/deep/pair.yaml",
            "tools/templates/custom/pair.txt",
            "tools/docs/a.yaml",
        ] {
            assert!(ensure_kept(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_file_where_another_one_has_a_folder_is_refused() {
        let file = |path: &str| WorkspaceFile {
            path: path.to_owned(),
            digest: vec![0; 32],
            updated_at: nimbus_control_store::Timestamp(jiff::Timestamp::UNIX_EPOCH),
        };
        refuse_odd(&[file("stacks/a/x"), file("stacks/b")]).unwrap();
        assert!(refuse_odd(&[file("stacks/a"), file("stacks/a/x")]).is_err());
        assert!(refuse_odd(&[file("stacks/network")]).is_err(), "shipped");
    }
}
