//! The two kinds of place that state can be in. They differ in how a writer is kept alone and how
//! a journal is appended to; everything else goes through [`Storage`].

use std::sync::Arc;

use crate::environment::EnvironmentVariables;
use crate::store::{GIVEN, LocalStorage, RemoteStorage, Storage, StorageAddress, StorageError};

#[derive(Clone, Debug)]
pub(crate) enum BackendLocation {
    Local(LocalStorage),
    Remote(Arc<dyn Storage>),
}

impl BackendLocation {
    pub(crate) fn open(
        address: &StorageAddress,
        environment: &EnvironmentVariables,
    ) -> Result<Self, StorageError> {
        Ok(match address {
            StorageAddress::Local(root) => Self::Local(LocalStorage::new(root)),
            StorageAddress::Given => match environment.storage() {
                Some(storage) => Self::Remote(Arc::clone(storage)),
                None => {
                    let scheme = GIVEN.to_owned();
                    return Err(StorageError::Unsupported { scheme });
                }
            },
            StorageAddress::S3(s3) => Self::Remote(Arc::new(RemoteStorage::s3(s3, environment)?)),
        })
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        match self {
            Self::Local(storage) => storage,
            Self::Remote(storage) => storage.as_ref(),
        }
    }
}
