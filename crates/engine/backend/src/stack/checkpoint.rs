//! The file that holds a stack's state: finding it, unpacking it, replacing it.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use nimbus_engine_model::format::check_checkpoint;

use super::Stack;
use crate::digest::Digest;
use crate::error::BackendError;
use crate::layout::Compression;
use crate::lease::Lease;
use crate::store::{Put, Tag, WriteCondition, overwrite};
use crate::version::{Ledger, StateVersion};

/// A checkpoint as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) key: String,
    pub(crate) compression: Compression,
    pub(crate) tag: Tag,
    /// Unpacked.
    pub(crate) bytes: Bytes,
    pub(crate) digest: Digest,
}

impl Stack {
    /// The current checkpoint. Of several with different compression the newest counts.
    pub(crate) async fn find(&self) -> Result<Option<Stored>, BackendError> {
        let storage = self.backend.storage();
        let mut newest: Option<(Timestamp, Compression, crate::store::StoredObject)> = None;
        for compression in Compression::ALL {
            let key = self.keys.checkpoint(compression);
            if let Some(object) = storage.get(&key).await?
                && newest
                    .as_ref()
                    .is_none_or(|(at, ..)| *at <= object.modified)
            {
                newest = Some((object.modified, compression, object));
            }
        }
        let Some((_, compression, object)) = newest else {
            return Ok(None);
        };
        let key = self.keys.checkpoint(compression);
        let bytes = unpack(&object.bytes, compression).map_err(|source| BackendError::Packed {
            key: key.clone(),
            source,
        })?;
        let digest = Digest::of(&bytes);
        Ok(Some(Stored {
            key,
            compression,
            tag: object.tag,
            bytes,
            digest,
        }))
    }

    pub(crate) async fn must_find(&self) -> Result<Stored, BackendError> {
        self.find().await?.ok_or_else(|| self.not_found())
    }

    /// Replaces the checkpoint. The previous one is kept beside it first, and is what everybody
    /// sees until the new one is there as a whole.
    pub(crate) async fn save(
        &self,
        lease: &Lease,
        previous: Option<&Stored>,
        bytes: Vec<u8>,
    ) -> Result<(Stored, StateVersion), BackendError> {
        // Nothing of the last good state is touched before the new one has passed.
        check_checkpoint(&bytes).map_err(|source| BackendError::Defect {
            stack: self.stack.clone(),
            source,
        })?;
        lease.check().await?;
        let storage = self.backend.storage();
        // Zstandard is only read: the plain file that takes its place is newer and counts.
        let compression = match previous.map(|stored| stored.compression) {
            Some(Compression::Gzip) => Compression::Gzip,
            _ => Compression::None,
        };
        if let Some(previous) = previous {
            let kept = self.keys.previous_checkpoint(previous.compression);
            storage.copy(&previous.key, &kept).await?;
        }
        let key = self.keys.checkpoint(compression);
        let expect = match previous {
            Some(stored) if stored.key == key => WriteCondition::Unchanged(stored.tag.clone()),
            _ => WriteCondition::Absent,
        };
        let digest = Digest::of(&bytes);
        let bytes = Bytes::from(bytes);
        let packed = pack(&bytes, compression);
        let Put::Stored(tag) = storage.put(&key, packed, expect).await? else {
            return Err(self.changed(previous).await?);
        };
        if let Some(previous) = previous.filter(|previous| previous.key != key) {
            storage.delete(&previous.key).await?;
        }
        let version = self.note(digest).await?;
        let stored = Stored {
            key,
            compression,
            tag,
            bytes,
            digest,
        };
        Ok((stored, version))
    }

    /// The version that content with this digest is.
    pub(crate) async fn version_of(&self, digest: Digest) -> Result<StateVersion, BackendError> {
        Ok(self.ledger().await?.current(digest))
    }

    pub(crate) async fn ledger(&self) -> Result<Ledger, BackendError> {
        let object = self.backend.storage().get(&self.keys.ledger()).await?;
        Ok(object.map_or_else(Ledger::default, |object| Ledger::from_bytes(&object.bytes)))
    }

    async fn note(&self, digest: Digest) -> Result<StateVersion, BackendError> {
        let mut ledger = self.ledger().await?;
        let version = ledger.note(digest, self.backend.clock().now());
        overwrite(
            self.backend.storage(),
            &self.keys.ledger(),
            ledger.to_bytes(),
        )
        .await?;
        Ok(version)
    }

    async fn changed(&self, previous: Option<&Stored>) -> Result<BackendError, BackendError> {
        let stack = self.stack.clone();
        Ok(match previous {
            Some(stored) => {
                let expected = self.version_of(stored.digest).await?;
                BackendError::Changed { stack, expected }
            }
            None => BackendError::Exists { stack },
        })
    }
}

pub(super) fn unpack(bytes: &Bytes, compression: Compression) -> std::io::Result<Bytes> {
    let mut plain = Vec::new();
    match compression {
        Compression::None => return Ok(bytes.clone()),
        Compression::Gzip => {
            GzDecoder::new(bytes.as_ref()).read_to_end(&mut plain)?;
        }
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(bytes.as_ref());
            let mut decoder = decoder.map_err(std::io::Error::other)?;
            decoder.read_to_end(&mut plain)?;
        }
    }
    Ok(plain.into())
}

fn pack(bytes: &Bytes, compression: Compression) -> Bytes {
    match compression {
        Compression::None | Compression::Zstd => bytes.clone(),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
            packed.expect("memory takes everything").into()
        }
    }
}
