//! Networks of addresses, as operators write them.

use std::net::IpAddr;
use std::str::FromStr;

/// An address and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// Says what a network looks like.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network such as 10.0.0.0/8")]
pub struct NotANetwork(String);

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let malformed = || NotANetwork(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|bits| *bits <= most)
                .ok_or_else(malformed)?,
        };
        Ok(Self { address, bits })
    }
}

impl Network {
    /// Whether an address is inside. An IPv4 address that came over IPv6 is an IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.bits);
                u32::from(own).checked_shr(shift) == u32::from(other).checked_shr(shift)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.bits);
                u128::from(own).checked_shr(shift) == u128::from(other).checked_shr(shift)
            }
            _ => false,
        }
    }
}

impl Network {
    /// Whether every address of this network is in the other one.
    pub fn within(&self, other: &Self) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4()
            && other.bits <= self.bits
            && other.contains(self.address)
    }

    /// The network by which callers are counted: an address of IPv4, and the /64 that one household or
    /// machine of IPv6 has to itself.
    pub fn of_caller(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self {
                address: address.into(),
                bits: 32,
            },
            IpAddr::V6(address) => Self {
                address: std::net::Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))
                    .into(),
                bits: 64,
            },
        }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_inside_or_outside() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "10.255.1.2", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "fe80::1", true),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert_eq!(
                parsed.contains(address.parse().unwrap()),
                inside,
                "{address} in {network}"
            );
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/-1",
            "host",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn callers_are_counted_by_the_network_that_is_theirs() {
        let counted = |text: &str| Network::of_caller(text.parse().unwrap()).to_string();
        assert_eq!(counted("10.1.2.3"), "10.1.2.3/32");
        assert_eq!(counted("::ffff:10.1.2.3"), "10.1.2.3/32");
        assert_eq!(counted("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(counted("2001:db8:1:2::9"), counted("2001:db8:1:2:ffff::1"));
    }

    #[test]
    fn a_network_is_within_those_that_contain_all_of_it() {
        let within = |own: &str, other: &str| {
            let (own, other): (Network, Network) = (own.parse().unwrap(), other.parse().unwrap());
            own.within(&other)
        };
        assert!(within("10.1.0.0/16", "10.0.0.0/8") && within("10.0.0.0/8", "0.0.0.0/0"));
        assert!(!within("10.0.0.0/8", "10.1.0.0/16") && !within("10.0.0.0/8", "::/0"));
        assert!(within("2001:db8::/48", "2001:db8::/32"));
    }
}
