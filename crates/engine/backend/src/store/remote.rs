//! Objects in an S3-compatible bucket.
//!
//! A conditional write that a retry has sent twice can be refused on account of its own first
//! attempt. Content of conditional writes is therefore unique to its writer, and a refusal is
//! checked against what is stored before it is believed.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use nimbus_aws::{Aws, AwsSettings};
use object_store::aws::{AmazonS3Builder, AwsCredential};
use object_store::path::Path;
use object_store::{
    CredentialProvider, Error, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload,
    UpdateVersion,
};
use secrecy::ExposeSecret as _;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::{
    ListedObject, Put, S3Address, Storage, StorageAct, StorageError, StoredObject, Tag,
    WriteCondition,
};
use crate::environment::EnvironmentVariables;
use crate::layout::SCRATCH;

#[derive(Clone, Debug)]
pub struct RemoteStorage {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    /// Set once the bucket was seen to honour conditions.
    conditional: Arc<OnceCell<()>>,
}

impl RemoteStorage {
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self {
            store,
            prefix: prefix.trim_matches('/').to_owned(),
            conditional: Arc::default(),
        }
    }

    /// Connects to nothing yet. What the address says goes before `NIMBUS_S3_*`, that before
    /// `AWS_*`, and that before the shared profile files.
    pub fn s3(
        address: &S3Address,
        environment: &EnvironmentVariables,
    ) -> Result<Self, StorageError> {
        let wrong = |reason: String| StorageError::Address {
            address: format!("s3://{}", address.bucket),
            reason,
        };
        let own = |name: &str| environment.non_empty(name);
        let mut builder = AmazonS3Builder::new().with_bucket_name(&address.bucket);
        let settings = AwsSettings::load(environment.aws(address.profile.as_deref()))
            .and_then(Aws::new)
            .map_err(|error| wrong(error.to_string()))?;
        let region = address.region.clone().or_else(|| own("NIMBUS_S3_REGION"));
        let region = region.or_else(|| settings.region());
        builder = match (own("NIMBUS_S3_ACCESS_KEY"), own("NIMBUS_S3_SECRET_KEY")) {
            (Some(key), Some(secret)) => builder
                .with_access_key_id(key)
                .with_secret_access_key(secret),
            (None, None) => builder.with_credentials(Arc::new(FoundCredentials {
                aws: settings,
                region: region.clone().unwrap_or_else(|| "us-east-1".to_owned()),
            })),
            (Some(_), None) => return Err(wrong("NIMBUS_S3_SECRET_KEY is not set".to_owned())),
            (None, Some(_)) => return Err(wrong("NIMBUS_S3_ACCESS_KEY is not set".to_owned())),
        };
        if let Some(region) = region {
            builder = builder.with_region(region);
        }
        if let Some(key) = &address.kms_key {
            builder = builder.with_sse_kms_encryption(key);
        }
        let endpoint = address.endpoint.clone().or_else(|| {
            [
                "NIMBUS_S3_ENDPOINT",
                "AWS_ENDPOINT_URL_S3",
                "AWS_ENDPOINT_URL",
            ]
            .into_iter()
            .find_map(own)
        });
        // Stores other than Amazon's rarely have a host name per bucket.
        let path_style = address.path_style.unwrap_or_else(|| endpoint.is_some());
        builder = builder.with_virtual_hosted_style_request(!path_style);
        if let Some(endpoint) = endpoint {
            builder = builder
                .with_allow_http(endpoint.starts_with("http://"))
                .with_endpoint(endpoint);
        }
        let store = builder.build().map_err(|error| wrong(error.to_string()))?;
        Ok(Self::new(Arc::new(store), &address.prefix))
    }

    fn path(&self, key: &str) -> Result<Path, StorageError> {
        let full = if self.prefix.is_empty() {
            key.to_owned()
        } else {
            format!("{}/{key}", self.prefix)
        };
        Path::parse(&full).map_err(|error| StorageError::Address {
            address: full,
            reason: error.to_string(),
        })
    }

    async fn head(&self, key: &str) -> Result<ObjectMeta, StorageError> {
        let path = self.path(key)?;
        self.store
            .head(&path)
            .await
            .map_err(failed(StorageAct::Read, key))
    }

    async fn put_mode(
        &self,
        key: &str,
        bytes: &Bytes,
        mode: PutMode,
    ) -> Result<Option<String>, Error> {
        let path = self.path(key).map_err(|error| Error::Generic {
            store: "S3",
            source: error.into(),
        })?;
        let payload = PutPayload::from_bytes(bytes.clone());
        let result = self.store.put_opts(&path, payload, mode.into()).await?;
        Ok(result.e_tag)
    }

    /// Asks the bucket, once, whether it honours conditions: many that speak S3 take them and write anyway,
    /// and then two writers both believe that they are the only one.
    async fn ensure_conditional(&self) -> Result<(), StorageError> {
        self.conditional
            .get_or_try_init(|| async {
                let key = format!("{SCRATCH}/conditions-{}", Uuid::new_v4());
                let asked = self.ask_conditional(&key).await;
                let deleted = self.delete(&key).await;
                asked.and(deleted)
            })
            .await
            .copied()
    }

    async fn ask_conditional(&self, key: &str) -> Result<(), StorageError> {
        let write = async |content: &'static str, mode: PutMode| {
            let bytes = Bytes::from_static(content.as_bytes());
            match self.put_mode(key, &bytes, mode).await {
                Ok(etag) => Ok(Some(etag)),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(None),
                Err(source @ (Error::NotImplemented { .. } | Error::NotSupported { .. })) => {
                    Err(StorageError::Unconditional {
                        reason: source.to_string(),
                    })
                }
                Err(source) => Err(failed(StorageAct::Write, key)(source)),
            }
        };
        let ignored = |condition: &str| {
            Err(StorageError::Unconditional {
                reason: format!("it wrote although {condition}"),
            })
        };
        let first = write("first", PutMode::Create).await?.flatten();
        if write("again", PutMode::Create).await?.is_some() {
            return ignored("the object was there (If-None-Match)");
        }
        let Some(first) = first else {
            return Err(StorageError::Unconditional {
                reason: "it gives no tags".to_owned(),
            });
        };
        write("second", PutMode::Overwrite).await?;
        let stale = PutMode::Update(UpdateVersion {
            e_tag: Some(first),
            version: None,
        });
        if write("third", stale).await?.is_some() {
            return ignored("the object was another one by then (If-Match)");
        }
        Ok(())
    }

    /// A write that was refused, unless what is stored is what was to be written.
    async fn refused_or_ours(&self, key: &str, bytes: &Bytes) -> Result<Put, StorageError> {
        Ok(match self.get(key).await? {
            Some(object) if object.bytes == bytes => Put::Stored(object.tag),
            _ => Put::Refused,
        })
    }

    /// The tag of an object that was just written, after a look at what arrived.
    async fn confirmed(
        &self,
        key: &str,
        bytes: &Bytes,
        etag: Option<String>,
    ) -> Result<Put, StorageError> {
        let stored = self.head(key).await?;
        let not_stored = |detail: String| StorageError::NotStored {
            key: key.to_owned(),
            detail,
        };
        if stored.size != bytes.len() as u64 {
            let detail = format!("{} bytes were sent, {} are there", bytes.len(), stored.size);
            return Err(not_stored(detail));
        }
        match (etag, stored.e_tag) {
            (Some(sent), Some(found)) if sent != found => {
                Err(not_stored(format!("its tag is {found} instead of {sent}")))
            }
            (Some(tag), _) | (None, Some(tag)) => Ok(Put::Stored(Tag::Entity(tag))),
            (None, None) => Err(not_stored("the bucket gives no tags".to_owned())),
        }
    }
}

#[async_trait]
impl Storage for RemoteStorage {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, StorageError> {
        let path = self.path(key)?;
        let result = match self.store.get(&path).await {
            Ok(result) => result,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(failed(StorageAct::Read, key)(source)),
        };
        let modified = timestamp(&result.meta);
        let tag = Tag::Entity(result.meta.e_tag.clone().unwrap_or_default());
        let bytes = result
            .bytes()
            .await
            .map_err(failed(StorageAct::Read, key))?;
        Ok(Some(StoredObject {
            bytes,
            tag,
            modified,
        }))
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        expect: WriteCondition,
    ) -> Result<Put, StorageError> {
        let mode = match &expect {
            WriteCondition::Anything => PutMode::Overwrite,
            WriteCondition::Absent => PutMode::Create,
            WriteCondition::Unchanged(Tag::Entity(tag)) => PutMode::Update(UpdateVersion {
                e_tag: Some(tag.clone()),
                version: None,
            }),
            // A tag of another kind of storage cannot be current here.
            WriteCondition::Unchanged(Tag::Digest(_)) => return Ok(Put::Refused),
        };
        if expect != WriteCondition::Anything {
            self.ensure_conditional().await?;
        }
        match self.put_mode(key, &bytes, mode).await {
            // A new object is a small record that nobody reads for its tag; what is replaced is
            // state, and worth a second look.
            Ok(Some(etag)) if expect == WriteCondition::Absent => {
                Ok(Put::Stored(Tag::Entity(etag)))
            }
            Ok(etag) => self.confirmed(key, &bytes, etag).await,
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. })
                if expect != WriteCondition::Anything =>
            {
                self.refused_or_ours(key, &bytes).await
            }
            Err(Error::NotFound { .. }) if matches!(expect, WriteCondition::Unchanged(_)) => {
                Ok(Put::Refused)
            }
            Err(source @ (Error::NotImplemented { .. } | Error::NotSupported { .. })) => {
                Err(StorageError::Unconditional {
                    reason: source.to_string(),
                })
            }
            Err(source) => Err(failed(StorageAct::Write, key)(source)),
        }
    }

    async fn copy(&self, from: &str, to: &str) -> Result<(), StorageError> {
        let (source, target) = (self.path(from)?, self.path(to)?);
        self.store
            .copy(&source, &target)
            .await
            .map_err(failed(StorageAct::Write, to))
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        match self.store.delete(&self.path(key)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(failed(StorageAct::Delete, key)(source)),
        }
    }

    async fn list(&self, folder: &str) -> Result<Vec<ListedObject>, StorageError> {
        let path = self.path(folder)?;
        let objects: Vec<ObjectMeta> = self
            .store
            .list(Some(&path))
            .try_collect()
            .await
            .map_err(failed(StorageAct::List, folder))?;
        let skip = if self.prefix.is_empty() {
            0
        } else {
            self.prefix.len() + 1
        };
        let mut listed: Vec<_> = objects
            .iter()
            .filter_map(|meta| {
                let key = meta.location.as_ref().get(skip..)?.to_owned();
                Some(ListedObject {
                    key,
                    size: meta.size,
                    modified: timestamp(meta),
                })
            })
            .collect();
        listed.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(listed)
    }

    /// Asks by writing: the answer to a write is dated by the clock that dates all objects.
    async fn time(&self) -> Result<Timestamp, StorageError> {
        let key = format!("{SCRATCH}/clock-{}", Uuid::new_v4());
        super::overwrite(self, &key, Bytes::from_static(b"what time is it")).await?;
        let time = timestamp(&self.head(&key).await?);
        self.delete(&key).await?;
        Ok(time)
    }
}

/// Credentials as every other question to AWS has them, asked for when the bucket is.
#[derive(Debug)]
struct FoundCredentials {
    aws: Aws,
    /// Where those are asked who lend keys.
    region: String,
}

#[async_trait]
impl CredentialProvider for FoundCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let found = self.aws.credentials(&self.region).await;
        let found = found.map_err(|error| Error::Unauthenticated {
            path: "AWS credentials".to_owned(),
            source: Box::new(error),
        })?;
        Ok(Arc::new(AwsCredential {
            key_id: found.access_key.clone(),
            secret_key: found.secret_key.expose_secret().to_owned(),
            token: found
                .token
                .as_ref()
                .map(|token| token.expose_secret().to_owned()),
        }))
    }
}

fn failed(act: StorageAct, key: &str) -> impl FnOnce(Error) -> StorageError {
    let key = key.to_owned();
    move |source| StorageError::Remote { act, key, source }
}

fn timestamp(meta: &ObjectMeta) -> Timestamp {
    let date = meta.last_modified;
    let nanos = i32::try_from(date.timestamp_subsec_nanos()).unwrap_or_default();
    Timestamp::new(date.timestamp(), nanos).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests;
