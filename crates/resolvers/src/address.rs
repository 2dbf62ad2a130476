//! Blocks of addresses: aligned, of a power of two, IPv4 and IPv6 alike.
//!
//! All arithmetic is on the address as a number. A block is always aligned to its size, so two blocks
//! are either one inside the other or apart; that is what makes splitting and joining simple and exact.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::ResolverError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressFamily {
    V4,
    V6,
}

impl AddressFamily {
    /// How many bits an address has.
    pub fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    fn address(self, number: u128) -> IpAddr {
        match self {
            // Only numbers below 2^32 are made for IPv4.
            Self::V4 => IpAddr::V4(Ipv4Addr::from_bits(number as u32)),
            Self::V6 => IpAddr::V6(Ipv6Addr::from_bits(number)),
        }
    }
}

/// An aligned block, ordered by where it begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddressBlock {
    family: AddressFamily,
    base: u128,
    prefix: u8,
}

impl AddressBlock {
    /// A block at this number, refused unless it is aligned to its prefix.
    pub fn new(family: AddressFamily, base: u128, prefix: u8) -> Option<Self> {
        let block = Self {
            family,
            base,
            prefix,
        };
        let fits = prefix <= family.bits()
            && base & block.mask() == 0
            && (family == AddressFamily::V6 || base <= u128::from(u32::MAX));
        fits.then_some(block)
    }

    pub fn family(self) -> AddressFamily {
        self.family
    }

    /// The first address as a number.
    pub fn base(self) -> u128 {
        self.base
    }

    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// How many addresses it has, or the largest number there is when they are all of IPv6.
    pub fn size(self) -> u128 {
        self.mask().saturating_add(1)
    }

    /// The bits below the prefix.
    fn mask(self) -> u128 {
        match self.family.bits() - self.prefix {
            128 => u128::MAX,
            bits => (1 << bits) - 1,
        }
    }

    fn last(self) -> u128 {
        self.base | self.mask()
    }

    pub fn contains(self, other: Self) -> bool {
        self.family == other.family && self.base <= other.base && other.last() <= self.last()
    }

    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// The block of this prefix at its beginning; `None` when it has no room for that.
    pub fn first(self, prefix: u8) -> Option<Self> {
        (prefix >= self.prefix && prefix <= self.family.bits()).then_some(Self { prefix, ..self })
    }

    /// The two halves; `None` for a single address.
    pub fn halves(self) -> Option<(Self, Self)> {
        let lower = self.first(self.prefix + 1)?;
        let upper = Self {
            base: lower.last() + 1,
            ..lower
        };
        Some((lower, upper))
    }

    /// The other half of the block that both are halves of; `None` for everything there is.
    pub fn buddy(self) -> Option<Self> {
        let (lower, upper) = self.joined()?.halves()?;
        Some(if lower == self { upper } else { lower })
    }

    /// The block that it is a half of.
    pub fn joined(self) -> Option<Self> {
        let prefix = self.prefix.checked_sub(1)?;
        let wide = Self { prefix, ..self };
        Some(Self {
            base: self.base & !wide.mask(),
            ..wide
        })
    }

    /// The address so many after its first; `None` outside of it.
    pub fn host(self, offset: u128) -> Option<Self> {
        let at = self.base.checked_add(offset)?;
        (at <= self.last()).then_some(Self {
            base: at,
            prefix: self.family.bits(),
            ..self
        })
    }

    /// Its last address.
    pub fn end(self) -> Self {
        Self {
            base: self.last(),
            prefix: self.family.bits(),
            ..self
        }
    }

    /// Its first address without the prefix.
    pub fn address(self) -> IpAddr {
        self.family.address(self.base)
    }

    pub fn is_single(self) -> bool {
        self.prefix == self.family.bits()
    }
}

impl fmt::Display for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address(), self.prefix)
    }
}

impl fmt::Debug for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AddressBlock {
    type Err = ResolverError;

    fn from_str(text: &str) -> Result<Self, ResolverError> {
        let refused = |problem: String| ResolverError::NotABlock {
            text: text.to_owned(),
            problem,
        };
        let (address, prefix) = text
            .split_once('/')
            .ok_or_else(|| refused("the length of its prefix is missing".to_owned()))?;
        let address: IpAddr = address
            .parse()
            .map_err(|_| refused("it does not begin with an address".to_owned()))?;
        let (family, base) = match address {
            IpAddr::V4(address) => (AddressFamily::V4, u128::from(address.to_bits())),
            IpAddr::V6(address) => (AddressFamily::V6, address.to_bits()),
        };
        // `+8` and `08` are numbers and no prefixes.
        let canonical = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix: u8 = prefix
            .parse()
            .ok()
            .filter(|prefix| canonical && *prefix <= family.bits())
            .ok_or_else(|| {
                refused(format!(
                    "the prefix is a number from 0 to {}",
                    family.bits()
                ))
            })?;
        Self::new(family, base, prefix).ok_or_else(|| {
            let wide = Self {
                family,
                base,
                prefix,
            };
            let aligned = Self {
                base: base & !wide.mask(),
                ..wide
            };
            refused(format!(
                "it has bits after its prefix; {aligned} begins there"
            ))
        })
    }
}

impl Serialize for AddressBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AddressBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> AddressBlock {
        text.parse().unwrap()
    }

    #[test]
    fn blocks_are_read_and_written_in_both_families() {
        for text in [
            "10.0.0.0/8",
            "0.0.0.0/0",
            "10.1.2.3/32",
            "fd00::/48",
            "::/0",
            "::1/128",
        ] {
            assert_eq!(block(text).to_string(), text);
        }
        for (wrong, says) in [
            ("10.0.0.0", "prefix is missing"),
            ("10.0.0/8", "begin with an address"),
            ("10.0.0.0/33", "from 0 to 32"),
            ("10.0.0.0/+8", "from 0 to 32"),
            ("10.0.0.0/", "from 0 to 32"),
            ("fd00::/129", "from 0 to 128"),
            ("10.0.0.1/8", "10.0.0.0/8 begins there"),
        ] {
            let error = wrong.parse::<AddressBlock>().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn halves_join_to_what_they_came_from() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "fd00::/64", "::/0"] {
            let whole = block(text);
            let (lower, upper) = whole.halves().unwrap();
            assert_eq!((lower.buddy(), upper.buddy()), (Some(upper), Some(lower)));
            assert_eq!((lower.joined(), upper.joined()), (Some(whole), Some(whole)));
            assert!(!lower.overlaps(upper) && whole.contains(upper));
        }
        assert_eq!(block("10.0.0.1/32").halves(), None);
        assert_eq!(block("::/0").buddy(), None);
        assert_eq!(block("::/0").size(), u128::MAX);
        assert!(!block("0.0.0.0/0").overlaps(block("::/0")));
    }

    #[test]
    fn hosts_are_inside() {
        let lan = block("192.168.1.0/24");
        assert_eq!(lan.host(1).unwrap().to_string(), "192.168.1.1/32");
        assert_eq!(lan.host(256), None);
        assert_eq!(lan.end().to_string(), "192.168.1.255/32");
        assert_eq!(block("::/0").host(u128::MAX).unwrap().base(), u128::MAX);
    }
}
