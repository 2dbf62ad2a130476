//! Secrets that are made by rules. What is made here is sealed by the caller; answers, lists and plans
//! have the reference.

use serde_json::{Map, Value};

use crate::config::SecretConfig;
use crate::question::ResolverQuestion;

const LOWER: &[u8] = b"abcdefghijkmnopqrstuvwxyz";
const UPPER: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZ";
const DIGITS: &[u8] = b"23456789";
/// None of them means anything to a shell, a URL or a quoted text.
const SYMBOLS: &[u8] = b"-_.+=";

/// What a secret has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretRules {
    pub length: usize,
    pub symbols: bool,
}

impl SecretRules {
    /// What the question says, or else the configuration.
    pub fn of(question: &ResolverQuestion, config: &SecretConfig) -> Self {
        let length = question
            .number("length")
            .and_then(|n| usize::try_from(n).ok());
        Self {
            length: length.unwrap_or(config.length),
            symbols: question.flag("symbols").unwrap_or(config.symbols),
        }
    }

    fn classes(self) -> Vec<&'static [u8]> {
        let mut classes = vec![LOWER, UPPER, DIGITS];
        if self.symbols {
            classes.push(SYMBOLS);
        }
        classes
    }

    /// A new secret with a character of every class. `fill` gives random bytes.
    pub fn generate(self, fill: &mut dyn FnMut(&mut [u8])) -> String {
        let classes = self.classes();
        let all: Vec<u8> = classes.concat();
        loop {
            let text: String = (0..self.length).map(|_| pick(&all, fill)).collect();
            // Drawn anew as a whole: putting missing classes in afterwards would favour some places.
            let whole = classes
                .iter()
                .all(|class| text.bytes().any(|byte| class.contains(&byte)));
            if whole || self.length < classes.len() {
                return text;
            }
        }
    }
}

/// One of them, each as likely as the others.
fn pick(from: &[u8], fill: &mut dyn FnMut(&mut [u8])) -> char {
    let count = from.len();
    let fair = 256 / count * count;
    loop {
        let mut byte = [0];
        fill(&mut byte);
        let at = usize::from(byte[0]);
        if at < fair {
            return char::from(from[at % count]);
        }
    }
}

/// What leaves: a name for the secret.
pub fn outputs(reference: &str) -> Map<String, Value> {
    Map::from_iter([("reference".to_owned(), reference.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_obeys_its_rules() {
        let mut seed = 1_u64;
        let mut fill = |bytes: &mut [u8]| {
            for byte in bytes {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (seed >> 40) as u8;
            }
        };
        for length in [8, 32, 256] {
            let rules = SecretRules {
                length,
                symbols: true,
            };
            let one = rules.generate(&mut fill);
            assert_eq!(one.len(), length);
            for class in rules.classes() {
                assert!(one.bytes().any(|byte| class.contains(&byte)), "{one}");
            }
            assert_ne!(one, rules.generate(&mut fill));
        }
        let plain = SecretRules {
            length: 200,
            symbols: false,
        };
        assert!(
            plain
                .generate(&mut fill)
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric())
        );
    }
}
