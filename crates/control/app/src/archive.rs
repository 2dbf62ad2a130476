//! Object storage for older parts of the audit trail.
//!
//! A part is an object named after the tenant and its first entry, so a part that is written again after
//! a crash replaces itself. Nothing here decides what is archived, or judges what was.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use nimbus_control_audit::{AuditEntry, from_archive_line};
use nimbus_core::{Error, ErrorCode, Result, TenantId};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig};
use url::Url;
use zeroize::Zeroizing;

/// Where the archive is.
#[derive(Clone)]
pub struct ArchiveAddress {
    /// `file:///folder` or `s3://bucket/prefix`.
    pub url: String,
    /// For stores other than Amazon's.
    pub s3_endpoint: Option<String>,
    pub s3_access_key: Option<Zeroizing<String>>,
    pub s3_secret_key: Option<Zeroizing<String>>,
}

impl fmt::Debug for ArchiveAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveAddress")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AuditArchive {
    store: Arc<dyn ObjectStore>,
}

/// A part of a tenant's trail.
#[derive(Clone, Debug)]
pub(crate) struct AuditSegment {
    path: Path,
    /// Number of its first entry.
    pub(crate) first: u64,
}

impl AuditArchive {
    /// Connects to nothing yet.
    pub(crate) fn open(address: &ArchiveAddress) -> Result<Self> {
        let store = open_objects(address).map_err(|reason| unusable(&address.url, reason))?;
        Ok(Self { store })
    }

    /// The parts of a tenant, oldest first.
    pub(crate) async fn parts(&self, tenant: TenantId) -> Result<Vec<AuditSegment>> {
        let folder = Path::from(tenant.to_string());
        let objects: Vec<_> = self
            .store
            .list(Some(&folder))
            .try_collect()
            .await
            .map_err(failed)?;
        let mut parts: Vec<AuditSegment> = objects
            .into_iter()
            .filter_map(|object| {
                let name = object.location.filename()?.strip_suffix(".jsonl")?;
                let first = name.parse().ok()?;
                Some(AuditSegment {
                    path: object.location,
                    first,
                })
            })
            .collect();
        parts.sort_by_key(|part| part.first);
        Ok(parts)
    }

    /// Those that begin with or before an entry. A part that begins later is what a crash left behind.
    pub(crate) async fn parts_until(
        &self,
        tenant: TenantId,
        last: u64,
    ) -> Result<Vec<AuditSegment>> {
        let mut parts = self.parts(tenant).await?;
        parts.retain(|part| part.first <= last);
        Ok(parts)
    }

    /// The entries of a part; none for a line that is not one.
    pub(crate) async fn entries(&self, part: &AuditSegment) -> Result<Vec<Option<AuditEntry>>> {
        let bytes = self.read(part).await?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().map(from_archive_line).collect())
    }

    async fn read(&self, part: &AuditSegment) -> Result<Vec<u8>> {
        let found = self.store.get(&part.path).await.map_err(failed)?;
        Ok(found.bytes().await.map_err(failed)?.to_vec())
    }

    /// Writes a part and reads it again: what leaves the database has to be there.
    pub(crate) async fn write(&self, tenant: TenantId, first: u64, text: String) -> Result<()> {
        let part = AuditSegment {
            path: Path::from(format!("{tenant}/{first:020}.jsonl")),
            first,
        };
        let payload = PutPayload::from(text.clone());
        self.store.put(&part.path, payload).await.map_err(failed)?;
        if self.read(&part).await? == text.as_bytes() {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::AUDIT_ARCHIVE,
            "the archive gave back something else than what was written",
        ))
    }

    /// Everything of a tenant that is gone for good.
    pub(crate) async fn remove(&self, tenant: TenantId) -> Result<()> {
        for part in self.parts(tenant).await? {
            self.store.delete(&part.path).await.map_err(failed)?;
        }
        Ok(())
    }
}

/// A folder or a bucket, or why the address is none. Connects to nothing yet.
pub(crate) fn open_objects(
    address: &ArchiveAddress,
) -> std::result::Result<Arc<dyn ObjectStore>, String> {
    let url = Url::parse(&address.url).map_err(|error| error.to_string())?;
    match url.scheme() {
        "file" => {
            let folder = url
                .to_file_path()
                .map_err(|()| "this is no folder of this machine".to_owned())?;
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            let files =
                LocalFileSystem::new_with_prefix(&folder).map_err(|error| error.to_string())?;
            Ok(Arc::new(files.with_fsync(true)))
        }
        "s3" => Ok(Arc::new(PrefixStore::new(
            bucket(address, &url)?,
            url.path(),
        ))),
        _ => Err("it begins with neither file: nor s3:".to_owned()),
    }
}

fn bucket(
    address: &ArchiveAddress,
    url: &Url,
) -> std::result::Result<object_store::aws::AmazonS3, String> {
    let name = url.host_str().ok_or("it names no bucket")?;
    // Archiving is tried again later anyway, and whoever verifies waits.
    let retry = RetryConfig {
        max_retries: 3,
        retry_timeout: Duration::from_secs(15),
        ..RetryConfig::default()
    };
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(name)
        .with_retry(retry);
    if let Some(endpoint) = &address.s3_endpoint {
        // Stores other than Amazon's rarely have a host name per bucket.
        builder = builder
            .with_endpoint(endpoint)
            .with_allow_http(endpoint.starts_with("http://"))
            .with_virtual_hosted_style_request(false);
    }
    if let Some(key) = &address.s3_access_key {
        builder = builder.with_access_key_id(key.as_str());
    }
    if let Some(key) = &address.s3_secret_key {
        builder = builder.with_secret_access_key(key.as_str());
    }
    builder.build().map_err(|error| error.to_string())
}

fn unusable(url: &str, reason: impl fmt::Display) -> Error {
    Error::new(
        ErrorCode::AUDIT_ARCHIVE,
        format!("`{url}` cannot be the archive of the audit trail: {reason}"),
    )
    .with_help("give audit.archive as file:///folder or s3://bucket/prefix")
}

fn failed(error: object_store::Error) -> Error {
    Error::new(
        ErrorCode::AUDIT_ARCHIVE,
        "the archive of the audit trail does not answer",
    )
    .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> ArchiveAddress {
        ArchiveAddress {
            url: url.to_owned(),
            s3_endpoint: None,
            s3_access_key: None,
            s3_secret_key: None,
        }
    }

    #[tokio::test]
    async fn parts_come_back_in_order_and_a_second_writing_replaces_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}/archive", folder.path().display());
        let archive = AuditArchive::open(&address(&url)).unwrap();
        let (tenant, other) = (TenantId::random(), TenantId::random());
        for first in [101, 1, 21] {
            archive
                .write(tenant, first, format!("part {first}\n"))
                .await
                .unwrap();
        }
        archive
            .write(tenant, 21, "again\n".to_owned())
            .await
            .unwrap();
        archive.write(other, 1, "other\n".to_owned()).await.unwrap();
        let parts = archive.parts(tenant).await.unwrap();
        let numbers: Vec<_> = parts.iter().map(|part| part.first).collect();
        assert_eq!(numbers, [1, 21, 101]);
        assert_eq!(archive.read(&parts[1]).await.unwrap(), b"again\n");
        archive.remove(tenant).await.unwrap();
        assert!(archive.parts(tenant).await.unwrap().is_empty());
        assert_eq!(archive.parts(other).await.unwrap().len(), 1);
    }

    #[test]
    fn addresses_that_lead_nowhere_are_refused() {
        for url in ["", "archive", "http://somewhere", "file://host/folder"] {
            let refused = AuditArchive::open(&address(url)).unwrap_err();
            assert_eq!(refused.code(), ErrorCode::AUDIT_ARCHIVE, "{url}");
        }
    }
}
