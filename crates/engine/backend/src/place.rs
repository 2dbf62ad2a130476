//! The two kinds of place that state can be in. They differ in how a writer is kept alone and how
//! a journal is appended to; everything else goes through [`Storage`].

use std::sync::Arc;

use crate::environment::Environment;
use crate::store::{Address, LocalStorage, RemoteStorage, Storage, StoreError};

#[derive(Clone, Debug)]
pub(crate) enum Place {
    Local(LocalStorage),
    Remote(Arc<dyn Storage>),
}

impl Place {
    pub(crate) fn open(address: &Address, environment: &Environment) -> Result<Self, StoreError> {
        Ok(match address {
            Address::Local(root) => Self::Local(LocalStorage::new(root)),
            Address::S3(s3) => Self::Remote(Arc::new(RemoteStorage::s3(s3, environment)?)),
        })
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        match self {
            Self::Local(storage) => storage,
            Self::Remote(storage) => storage.as_ref(),
        }
    }
}
