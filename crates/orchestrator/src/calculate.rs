//! The calculations of `{{RUNTIME:calculate:…}}`.
//!
//! `subnets` is a function of its parameters. `timestamp`, `password` and `uuid` are made once for
//! a unit and remembered by the caller, so that a second run asks for the same infrastructure. Equal
//! texts mean equal values; a name as the last parameter tells two of them apart:
//! `password:32:admin` and `password:32:reader`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

/// Where time and chance come from.
pub trait Entropy {
    /// ISO 8601, UTC.
    fn timestamp(&mut self) -> String;
    fn fill(&mut self, bytes: &mut [u8]);
}

/// A value and whether nobody may see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Calculated {
    pub value: Value,
    pub secret: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalculateError {
    #[error(
        "there is no calculation `{function}`; there are subnets, timestamp, password and uuid"
    )]
    Unknown { function: String },
    #[error("{function} takes {takes}")]
    Parameters {
        function: &'static str,
        takes: &'static str,
    },
    #[error("`{text}` is not a network such as 10.0.0.0/16 or 2001:db8::/48")]
    NotANetwork { text: String },
    #[error("{network} has no room for {count} networks of /{prefix}")]
    NoRoom {
        network: String,
        prefix: u8,
        count: u64,
    },
}

/// Refuses what [`calculate`] would refuse, without making anything.
pub fn check(function: &str, parameters: &[String]) -> Result<(), CalculateError> {
    struct Nothing;
    impl Entropy for Nothing {
        fn timestamp(&mut self) -> String {
            String::new()
        }
        fn fill(&mut self, _: &mut [u8]) {}
    }
    calculate(function, parameters, &mut Nothing).map(|_| ())
}

/// Whether the result must be remembered to stay the same.
pub fn is_remembered(function: &str) -> bool {
    matches!(function, "timestamp" | "password" | "uuid")
}

pub fn calculate(
    function: &str,
    parameters: &[String],
    entropy: &mut dyn Entropy,
) -> Result<Calculated, CalculateError> {
    let open = |value| {
        Ok(Calculated {
            value,
            secret: false,
        })
    };
    match (function, parameters) {
        ("subnets", [network, prefix, count]) => {
            let takes = CalculateError::Parameters {
                function: "subnets",
                takes: "a network, a prefix length and a count: subnets:10.0.0.0/16:24:3",
            };
            let (Ok(prefix), Ok(count)) = (prefix.parse(), count.parse()) else {
                return Err(takes);
            };
            open(json!(subnets(network, prefix, count)?))
        }
        ("subnets", _) => Err(CalculateError::Parameters {
            function: "subnets",
            takes: "a network, a prefix length and a count: subnets:10.0.0.0/16:24:3",
        }),
        ("timestamp", [] | [_]) => open(json!(entropy.timestamp())),
        ("timestamp", _) => Err(CalculateError::Parameters {
            function: "timestamp",
            takes: "nothing, or a name that tells one from another",
        }),
        ("uuid", [] | [_]) => open(json!(uuid(entropy))),
        ("uuid", _) => Err(CalculateError::Parameters {
            function: "uuid",
            takes: "nothing, or a name that tells one from another",
        }),
        ("password", rest) => {
            let takes = CalculateError::Parameters {
                function: "password",
                takes: "a length from 8 to 256, or nothing for 32, and then a name that tells one from another",
            };
            let length = match rest {
                [] => 32,
                [length] | [length, _] => length.parse().map_err(|_| takes.clone())?,
                _ => return Err(takes),
            };
            if !(8..=256).contains(&length) {
                return Err(takes);
            }
            Ok(Calculated {
                value: json!(password(length, entropy)),
                secret: true,
            })
        }
        _ => Err(CalculateError::Unknown {
            function: function.to_owned(),
        }),
    }
}

/// The first `count` networks of the given size inside another.
pub fn subnets(network: &str, prefix: u8, count: u64) -> Result<Vec<String>, CalculateError> {
    let not_a_network = || CalculateError::NotANetwork {
        text: network.to_owned(),
    };
    let (address, length) = network.split_once('/').ok_or_else(not_a_network)?;
    let address: IpAddr = address.parse().map_err(|_| not_a_network())?;
    let length: u8 = length.parse().map_err(|_| not_a_network())?;
    let (bits, width) = match address {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    if length > width {
        return Err(not_a_network());
    }
    let no_room = CalculateError::NoRoom {
        network: network.to_owned(),
        prefix,
        count,
    };
    if prefix < length || prefix > width {
        return Err(no_room);
    }
    let free = u32::from(prefix - length);
    if free < 64 && count > 1 << free {
        return Err(no_room);
    }
    // A list in a configuration has tens of entries, not millions.
    if count > 4096 {
        return Err(no_room);
    }
    let base = mask(bits, width, length);
    let step = u32::from(width - prefix);
    let nth = |n: u64| base | u128::from(n).checked_shl(step).unwrap_or(0);
    Ok((0..count)
        .map(|n| match address {
            IpAddr::V4(_) => format!("{}/{prefix}", Ipv4Addr::from(nth(n) as u32)),
            IpAddr::V6(_) => format!("{}/{prefix}", Ipv6Addr::from(nth(n))),
        })
        .collect())
}

/// The address with everything behind the prefix cleared.
fn mask(bits: u128, width: u8, prefix: u8) -> u128 {
    let host = u32::from(width - prefix);
    bits.checked_shr(host)
        .unwrap_or(0)
        .checked_shl(host)
        .unwrap_or(0)
}

fn uuid(entropy: &mut dyn Entropy) -> String {
    let mut bytes = [0; 16];
    entropy.fill(&mut bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = hex::encode(bytes);
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Characters that every service takes in a password and that need no escape in a URL or a shell.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn password(length: usize, entropy: &mut dyn Entropy) -> String {
    let mut bytes = vec![0; length];
    entropy.fill(&mut bytes);
    // Sixty-four characters: six bits of each byte, without bias.
    bytes
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte & 63)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Fixed;

    impl Entropy for Fixed {
        fn timestamp(&mut self) -> String {
            "2026-01-02T03:04:05Z".to_owned()
        }

        fn fill(&mut self, bytes: &mut [u8]) {
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = at as u8;
            }
        }
    }

    fn run(function: &str, parameters: &[&str]) -> Result<Calculated, CalculateError> {
        let parameters: Vec<_> = parameters.iter().map(|p| (*p).to_owned()).collect();
        calculate(function, &parameters, &mut Fixed)
    }

    #[test]
    fn subnets_of_both_families() {
        assert_eq!(
            subnets("10.0.0.0/16", 24, 3).unwrap(),
            ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]
        );
        assert_eq!(
            subnets("2001:db8::/48", 64, 2).unwrap(),
            ["2001:db8::/64", "2001:db8:0:1::/64"]
        );
        assert_eq!(
            subnets("10.1.2.3/16", 17, 2).unwrap(),
            ["10.1.0.0/17", "10.1.128.0/17"]
        );
        assert_eq!(subnets("::/0", 1, 2).unwrap(), ["::/1", "8000::/1"]);
        assert_eq!(subnets("10.0.0.0/24", 24, 1).unwrap(), ["10.0.0.0/24"]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (network, prefix, count) in [
            ("10.0.0.0/24", 25, 3),
            ("10.0.0.0/24", 16, 1),
            ("10.0.0.0/8", 33, 1),
            ("::/0", 64, 9999),
        ] {
            assert!(matches!(
                subnets(network, prefix, count),
                Err(CalculateError::NoRoom { .. })
            ));
        }
        for network in ["10.0.0.0", "10.0.0.0/33", "x/8", "::/129", "10.0.0/8"] {
            assert!(matches!(
                subnets(network, 24, 1),
                Err(CalculateError::NotANetwork { .. })
            ));
        }
    }

    #[test]
    fn passwords_are_secret_and_the_others_are_not() {
        let password = run("password", &["12"]).unwrap();
        assert_eq!(
            password,
            Calculated {
                value: json!("ABCDEFGHIJKL"),
                secret: true
            }
        );
        assert_eq!(
            run("timestamp", &[]).unwrap().value,
            json!("2026-01-02T03:04:05Z")
        );
        let uuid = run("uuid", &[]).unwrap();
        assert_eq!(uuid.value, json!("00010203-0405-4607-8809-0a0b0c0d0e0f"));
        assert!(!uuid.secret);
    }

    #[test]
    fn wrong_parameters_say_what_is_taken() {
        for (function, parameters) in [
            ("subnets", &["10.0.0.0/16"][..]),
            ("subnets", &["10.0.0.0/16", "x", "1"]),
            ("password", &["3"]),
            ("password", &["1", "2"]),
            ("password", &["12", "admin", "x"]),
            ("uuid", &["a", "b"]),
            ("timestamp", &["a", "b"]),
            ("median", &[]),
        ] {
            assert!(
                run(function, parameters).is_err(),
                "{function} {parameters:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn subnets_lie_inside_and_never_overlap(address: u32, length in 0..=24_u8, more in 0..=8_u8, count in 1..=20_u64) {
            let prefix = length + more;
            let network = format!("{}/{length}", Ipv4Addr::from(address));
            let Ok(list) = subnets(&network, prefix, count) else {
                prop_assert!(count > 1 << more);
                return Ok(());
            };
            let range = |cidr: &str| {
                let (address, prefix) = cidr.split_once('/').unwrap();
                let start = u64::from(u32::from(address.parse::<Ipv4Addr>().unwrap()));
                let size = 1_u64 << (32 - prefix.parse::<u32>().unwrap());
                (start, start + size)
            };
            let whole = range(&format!("{}/{length}", Ipv4Addr::from(mask(u128::from(address), 32, length) as u32)));
            let mut end = whole.0;
            for cidr in &list {
                let (from, to) = range(cidr);
                prop_assert!(from >= end && to <= whole.1, "{cidr} in {network}");
                end = to;
            }
        }
    }
}
