//! Pools of addresses and what is answered from them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::address::{AddressBlock, AddressFamily};
use crate::config::IpamConfig;
use crate::definition::ResolverKind;
use crate::error::ResolverError;
use crate::question::ResolverQuestion;
use crate::space::FreeSpace;

/// What is taken from a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolPurpose {
    /// Blocks, for networks.
    #[default]
    Blocks,
    /// Single addresses of one network; its own address, its gateway and its broadcast are never given.
    Addresses,
}

impl PoolPurpose {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Addresses => "addresses",
        }
    }
}

/// A pool. A child is a block of its parent, which gives it to nobody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolDefinition {
    pub name: String,
    pub cidr: AddressBlock,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(default)]
    pub purpose: PoolPurpose,
    /// Of a pool of addresses; its first address when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<std::net::IpAddr>,
    /// Blocks that are never given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<AddressBlock>,
}

/// What a question wants of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpamRequest {
    pub pool: String,
    pub purpose: PoolPurpose,
    /// Of a block; an address has all of its bits.
    prefix: Option<u8>,
}

impl IpamRequest {
    /// What is asked for, with the configured pool where none is named.
    pub fn read(
        question: &ResolverQuestion,
        config: &IpamConfig,
        scope: &str,
    ) -> Result<Self, ResolverError> {
        let purpose = match question.text("allocation_type") {
            Some("address") => PoolPurpose::Addresses,
            _ => PoolPurpose::Blocks,
        };
        let prefix = question
            .number("prefix_length")
            .and_then(|n| u8::try_from(n).ok());
        let (key, configured) = match purpose {
            PoolPurpose::Blocks => ("pool", &config.pool),
            PoolPurpose::Addresses => ("address_pool", &config.address_pool),
        };
        match (purpose, prefix) {
            (PoolPurpose::Blocks, None) if config.prefix_length.is_none() => {
                let problem = "it is required for a block";
                return Err(ResolverError::input(
                    ResolverKind::Ipam,
                    "prefix_length",
                    problem,
                ));
            }
            (PoolPurpose::Addresses, Some(_)) => {
                let problem = "an address has none; leave it out";
                return Err(ResolverError::input(
                    ResolverKind::Ipam,
                    "prefix_length",
                    problem,
                ));
            }
            _ => {}
        }
        let pool = question.text("parent_scope").or(configured.as_deref());
        let pool = pool.ok_or_else(|| ResolverError::NotConfigured {
            resolver: ResolverKind::Ipam.to_string(),
            key: key.to_owned(),
            scope: scope.to_owned(),
        })?;
        Ok(Self {
            pool: pool.to_owned(),
            purpose,
            prefix: match purpose {
                PoolPurpose::Blocks => prefix.or(config.prefix_length),
                PoolPurpose::Addresses => None,
            },
        })
    }

    /// The prefix to take from this pool, refused when the pool is for something else.
    pub fn prefix(&self, pool: &PoolDefinition) -> Result<u8, ResolverError> {
        if self.purpose != pool.purpose {
            let problem = format!(
                "the pool {} gives {}, not {}",
                pool.name,
                pool.purpose.as_str(),
                self.purpose.as_str()
            );
            return Err(ResolverError::input(
                ResolverKind::Ipam,
                "allocation_type",
                problem,
            ));
        }
        let bits = pool.cidr.family().bits();
        let prefix = self.prefix.unwrap_or(bits);
        if (pool.cidr.prefix()..=bits).contains(&prefix) {
            return Ok(prefix);
        }
        let problem = format!(
            "the pool {} ({}) has blocks from /{} to /{bits}",
            pool.name,
            pool.cidr,
            pool.cidr.prefix()
        );
        Err(ResolverError::input(
            ResolverKind::Ipam,
            "prefix_length",
            problem,
        ))
    }
}

impl PoolDefinition {
    /// Refuses a pool that contradicts itself.
    pub fn check(&self) -> Result<(), ResolverError> {
        let refused = |key: &str, problem: String| {
            Err(ResolverError::config(
                ResolverKind::Ipam,
                format!("pools.{}.{key}", self.name),
                problem,
            ))
        };
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > 63 || !self.name.chars().all(word) {
            let problem = "it has small letters, digits and `-`, at most 63".to_owned();
            return refused("name", problem);
        }
        if self.parent.as_deref() == Some(self.name.as_str()) {
            return refused("parent", "a pool is not its own parent".to_owned());
        }
        if let Some(outside) = self.reserved.iter().find(|one| !self.cidr.contains(**one)) {
            return Err(ResolverError::OutsideParent {
                cidr: outside.to_string(),
                parent: self.name.clone(),
                parent_cidr: self.cidr.to_string(),
                owner: "this configuration".to_owned(),
            });
        }
        match (self.purpose, self.gateway) {
            (PoolPurpose::Blocks, Some(_)) => {
                refused("gateway", "only a pool of addresses has one".to_owned())
            }
            (PoolPurpose::Addresses, Some(gateway)) => {
                let own = format!("{gateway}/{}", self.cidr.family().bits());
                match own.parse::<AddressBlock>() {
                    Ok(host) if self.cidr.contains(host) => Ok(()),
                    _ => refused("gateway", format!("{gateway} is not one of {}", self.cidr)),
                }
            }
            (_, None) => Ok(()),
        }
    }

    /// The gateway of a pool of addresses; networks of one or two addresses have none.
    fn gateway(&self) -> Option<AddressBlock> {
        match self.gateway {
            Some(gateway) => format!("{gateway}/{}", self.cidr.family().bits())
                .parse()
                .ok(),
            None => first_host(self.cidr),
        }
    }

    /// What is never given, as the fewest blocks that say so.
    pub fn withheld(&self) -> Vec<AddressBlock> {
        let mut withheld = self.reserved.clone();
        if self.purpose == PoolPurpose::Addresses && has_network_address(self.cidr) {
            withheld.extend(self.cidr.host(0));
            withheld.extend(self.gateway());
            // Only IPv4 has a broadcast.
            if self.cidr.family() == AddressFamily::V4 {
                withheld.push(self.cidr.end());
            }
        }
        withheld.sort();
        withheld.dedup();
        // One inside another is withheld with it.
        let all = withheld.clone();
        withheld.retain(|one| !all.iter().any(|other| other != one && other.contains(*one)));
        withheld
    }

    /// What is free of a pool of which nothing was given yet.
    pub fn free(&self) -> FreeSpace {
        let mut space = FreeSpace::new(self.cidr);
        for block in self.withheld() {
            space.take_exactly(block);
        }
        space
    }

    /// The answer of a block of this pool. `id` is the lease's.
    pub fn outputs(&self, block: AddressBlock, id: Uuid, pool_id: &str) -> Map<String, Value> {
        let (cidr, gateway, subnet) = match self.purpose {
            PoolPurpose::Blocks => (block.to_string(), first_host(block), id.to_string()),
            PoolPurpose::Addresses => {
                let cidr = format!("{}/{}", block.address(), self.cidr.prefix());
                (cidr, self.gateway(), pool_id.to_owned())
            }
        };
        let gateway = gateway.map_or(Value::Null, |host| host.address().to_string().into());
        Map::from_iter([
            ("cidr".to_owned(), cidr.into()),
            ("address".to_owned(), block.address().to_string().into()),
            ("gateway".to_owned(), gateway),
            ("subnet_id".to_owned(), subnet.into()),
            ("pool".to_owned(), self.name.clone().into()),
        ])
    }

    /// That nothing is left for a request.
    pub fn exhausted(&self, prefix: u8, owner: &str) -> ResolverError {
        ResolverError::PoolExhausted {
            pool: self.name.clone(),
            cidr: self.cidr.to_string(),
            owner: owner.to_owned(),
            wanted: match self.purpose {
                PoolPurpose::Blocks => format!("block of /{prefix}"),
                PoolPurpose::Addresses => "address".to_owned(),
            },
        }
    }
}

fn has_network_address(block: AddressBlock) -> bool {
    block.prefix() + 2 <= block.family().bits()
}

fn first_host(block: AddressBlock) -> Option<AddressBlock> {
    has_network_address(block).then(|| block.host(1)).flatten()
}

/// Refuses pools of one owner that overlap, lie outside of their parents or have none.
pub fn check_pools(pools: &[PoolDefinition], owner: &str) -> Result<(), ResolverError> {
    for (at, pool) in pools.iter().enumerate() {
        pool.check()?;
        if let Some(parent) = &pool.parent {
            let found = pools.iter().find(|one| one.name == *parent);
            let parent = found.ok_or_else(|| ResolverError::PoolUnknown {
                pool: parent.clone(),
                scope: format!("the parent of {}", pool.name),
            })?;
            inside(pool, parent, owner)?;
        }
        for other in &pools[..at] {
            if other.name == pool.name {
                let problem = "there are two of this name".to_owned();
                return Err(ResolverError::config(
                    ResolverKind::Ipam,
                    format!("pools.{}", pool.name),
                    problem,
                ));
            }
            apart(pool, other, owner)?;
        }
    }
    Ok(())
}

/// Refuses a child that is not a part of its parent, or that the parent withholds.
pub fn inside(
    child: &PoolDefinition,
    parent: &PoolDefinition,
    owner: &str,
) -> Result<(), ResolverError> {
    if parent.purpose == PoolPurpose::Addresses {
        let problem = format!("the pool {} gives addresses, and has no parts", parent.name);
        return Err(ResolverError::config(
            ResolverKind::Ipam,
            format!("pools.{}.parent", child.name),
            problem,
        ));
    }
    if parent.cidr.contains(child.cidr) {
        return Ok(());
    }
    Err(ResolverError::OutsideParent {
        cidr: child.cidr.to_string(),
        parent: parent.name.clone(),
        parent_cidr: parent.cidr.to_string(),
        owner: owner.to_owned(),
    })
}

/// Refuses two siblings that have addresses in common.
pub fn apart(
    pool: &PoolDefinition,
    other: &PoolDefinition,
    owner: &str,
) -> Result<(), ResolverError> {
    // Only siblings are compared: a child is a part of its parent, and is apart from whatever that is
    // apart from.
    if pool.parent != other.parent {
        return Ok(());
    }
    if !pool.cidr.overlaps(other.cidr) {
        return Ok(());
    }
    Err(ResolverError::PoolOverlap {
        pool: pool.name.clone(),
        cidr: pool.cidr.to_string(),
        other: other.name.clone(),
        other_cidr: other.cidr.to_string(),
        owner: owner.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(value: Value) -> PoolDefinition {
        serde_json::from_value(value).unwrap()
    }

    fn ask(inputs: Value) -> ResolverQuestion {
        let inputs = inputs.as_object().unwrap().clone();
        ResolverQuestion::new(ResolverKind::Ipam, inputs).unwrap()
    }

    #[test]
    fn pools_that_overlap_or_leave_their_parent_are_refused_with_their_owner() {
        let root = json!({"name": "corp", "cidr": "10.0.0.0/8"});
        let check = |list: &[Value]| {
            let pools: Vec<_> = list.iter().cloned().map(pool).collect();
            check_pools(&pools, "operator").map_err(|error| error.to_string())
        };
        let inner = json!({"name": "lan", "cidr": "10.1.0.0/16", "parent": "corp"});
        assert_eq!(check(&[root.clone(), inner.clone()]), Ok(()));
        for (more, says) in [
            (
                json!({"name": "other", "cidr": "10.9.0.0/16"}),
                "overlaps the pool corp",
            ),
            (
                json!({"name": "lan", "cidr": "11.0.0.0/16"}),
                "two of this name",
            ),
            (
                json!({"name": "out", "cidr": "11.0.0.0/16", "parent": "corp"}),
                "outside of the pool corp",
            ),
            (
                json!({"name": "six", "cidr": "fd00::/48", "parent": "corp"}),
                "outside of the pool corp",
            ),
            (
                json!({"name": "lost", "cidr": "11.0.0.0/16", "parent": "none"}),
                "no pool `none`",
            ),
            (
                json!({"name": "lan2", "cidr": "10.1.128.0/17", "parent": "corp"}),
                "overlaps the pool lan",
            ),
            (
                json!({"name": "Big", "cidr": "11.0.0.0/16"}),
                "small letters",
            ),
            (
                json!({"name": "gw", "cidr": "11.0.0.0/24", "gateway": "11.0.0.1"}),
                "only a pool of addresses",
            ),
            (
                json!({"name": "gw", "cidr": "11.0.0.0/24", "purpose": "addresses", "gateway": "11.0.1.1"}),
                "not one of",
            ),
            (
                json!({"name": "re", "cidr": "11.0.0.0/24", "reserved": ["12.0.0.0/30"]}),
                "outside of the pool re",
            ),
        ] {
            let error = check(&[root.clone(), inner.clone(), more]).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let error = check(&[root, json!({"name": "b", "cidr": "10.0.0.0/9"})]).unwrap_err();
        assert!(error.contains("of operator"), "{error}");
    }

    #[test]
    fn a_pool_of_addresses_never_gives_what_belongs_to_the_network() {
        let hosts = pool(json!({"name": "h", "cidr": "192.168.1.0/29", "purpose": "addresses"}));
        let mut free = hosts.free();
        let mut given = Vec::new();
        while let Some(one) = free.take(32) {
            given.push(one.address().to_string());
        }
        let expected: Vec<_> = (2..7).map(|last| format!("192.168.1.{last}")).collect();
        assert_eq!(given, expected);
        let outputs = hosts.outputs("192.168.1.2/32".parse().unwrap(), Uuid::nil(), "net-1");
        assert_eq!(
            Value::from(outputs),
            json!({"cidr": "192.168.1.2/29", "address": "192.168.1.2", "gateway": "192.168.1.1",
                "subnet_id": "net-1", "pool": "h"})
        );
        let six = pool(json!({"name": "s", "cidr": "fd00::/64", "purpose": "addresses"}));
        assert_eq!(six.free().take(128).unwrap().to_string(), "fd00::2/128");
        let pair = pool(json!({"name": "p", "cidr": "10.0.0.0/31", "purpose": "addresses"}));
        assert_eq!(pair.free().take(32).unwrap().to_string(), "10.0.0.0/32");
    }

    #[test]
    fn a_block_has_its_gateway_and_its_lease() {
        let corp = pool(json!({"name": "corp", "cidr": "10.0.0.0/8"}));
        let outputs = corp.outputs("10.0.4.0/24".parse().unwrap(), Uuid::nil(), "x");
        assert_eq!(outputs["gateway"], "10.0.4.1");
        assert_eq!(outputs["subnet_id"], Uuid::nil().to_string());
        let single = corp.outputs("10.0.4.7/32".parse().unwrap(), Uuid::nil(), "x");
        assert_eq!(single["gateway"], Value::Null);
    }

    #[test]
    fn a_request_takes_the_configured_pool_and_says_what_is_missing() {
        let config = IpamConfig {
            pool: Some("corp".to_owned()),
            address_pool: None,
            prefix_length: None,
        };
        let read = |inputs: Value, config: &IpamConfig| {
            IpamRequest::read(&ask(inputs), config, "acme, prod").map_err(|error| error.to_string())
        };
        let request = read(json!({"prefix_length": 24}), &config).unwrap();
        assert_eq!(request.pool, "corp");
        let corp = pool(json!({"name": "corp", "cidr": "10.0.0.0/8"}));
        assert_eq!(request.prefix(&corp), Ok(24));
        let error = read(json!({}), &config).unwrap_err();
        assert!(error.contains("required for a block"), "{error}");
        let error = read(json!({"allocation_type": "address"}), &config).unwrap_err();
        assert!(error.contains("`address_pool` for acme, prod"), "{error}");
        let wide = read(json!({"prefix_length": 7}), &config).unwrap();
        let error = wide.prefix(&corp).unwrap_err().to_string();
        assert!(error.contains("from /8 to /32"), "{error}");
        let address = json!({"allocation_type": "address", "parent_scope": "corp"});
        let error = read(address, &config)
            .unwrap()
            .prefix(&corp)
            .unwrap_err()
            .to_string();
        assert!(error.contains("gives blocks, not addresses"), "{error}");
    }
}
