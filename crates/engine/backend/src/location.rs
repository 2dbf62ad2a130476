//! The two kinds of place that state can be in. They differ in how a writer is kept alone and how
//! a journal is appended to; everything else goes through [`Storage`].

use std::sync::Arc;

use nimbus_disk::FolderFiles;

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

    /// As [`open`](Self::open), of a place in a stranger's folder, if it is a folder.
    pub(crate) fn open_beneath(
        address: &StorageAddress,
        files: &FolderFiles,
        environment: &EnvironmentVariables,
    ) -> Result<Self, StorageError> {
        match address {
            StorageAddress::Local(root) => Ok(Self::Local(LocalStorage::beneath(root, files))),
            StorageAddress::Given | StorageAddress::S3(_) => Self::open(address, environment),
        }
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        match self {
            Self::Local(storage) => storage,
            Self::Remote(storage) => storage.as_ref(),
        }
    }
}
