//! Names become addresses once, and only addresses that may be called.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::AddressRules;

/// What a name stands for.
#[async_trait]
pub trait NameResolver: Send + Sync {
    /// Every address of a name.
    async fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// As the machine resolves names.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl NameResolver for SystemResolver {
    async fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Gives a connection only addresses that were checked. The connection is made to them, so that a name which stands for
/// something else a moment later changes nothing.
pub(crate) struct CheckedResolver {
    pub(crate) rules: Arc<AddressRules>,
    pub(crate) names: Arc<dyn NameResolver>,
}

/// Why a name was not resolved; found again among the causes of what the client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResolveRefusal {
    #[error("the name leads inwards")]
    Inwards,
    #[error("the name is not known")]
    Unknown,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (rules, names) = (Arc::clone(&self.rules), Arc::clone(&self.names));
        Box::pin(async move {
            // A resolver that fails lets nothing through.
            let found = names.addresses(name.as_str()).await;
            let found = found.map_err(|_| ResolveRefusal::Unknown)?;
            if found.is_empty() {
                return Err(ResolveRefusal::Unknown.into());
            }
            // All of them: which one is used is decided later, and by somebody else.
            if !found.iter().all(|address| rules.allows(*address)) {
                return Err(ResolveRefusal::Inwards.into());
            }
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}
