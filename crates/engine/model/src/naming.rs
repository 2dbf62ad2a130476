//! Names that providers give to objects when a program gives none: the stack's own rules.
//!
//! The setting `pulumi:autonaming` has a rule for everything, rules for packages and rules for
//! types; the nearest counts. A rule is a mode or a pattern. Expressions that depend on the stack
//! are replaced when the setting is read, those that depend on the resource when a name is made.
//! The same seed makes the same name.

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::urn::Urn;

const DIGITS: &str = "0123456789";
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
const HEX: &str = "0123456789abcdef";
/// Longer names than any cloud takes are a mistake.
const LONGEST: usize = 256;

/// What a provider is told about the name of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// Empty when naming is disabled.
    pub proposed: String,
    pub mode: NamingMode,
    /// Somebody meant this very kind of object, so a provider that cannot follow is worth a word.
    pub deliberate: bool,
}

/// What a provider may do with a proposed name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamingMode {
    /// Use it or make another of it.
    Propose,
    /// Use it or refuse.
    Enforce,
    /// Refuse objects without a name.
    Disable,
}

/// The rules of one stack.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NamingRules {
    default: NamingRule,
    packages: BTreeMap<String, PackageRules>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct PackageRules {
    default: NamingRule,
    types: BTreeMap<String, NamingRule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
enum NamingRule {
    /// As the provider likes.
    #[default]
    Default,
    /// The name that the program gives to the resource.
    Verbatim,
    Disabled,
    Pattern {
        pattern: String,
        enforce: bool,
    },
}

/// What patterns may refer to.
#[derive(Clone, Copy, Debug)]
pub struct NamingScope<'a> {
    pub organization: &'a str,
    pub project: &'a str,
    pub stack: &'a str,
    /// Values by full key, such as `project:key`.
    pub config: &'a BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamingError {
    #[error("the setting does not have the form of one: {message}")]
    Shape { message: String },
    #[error("{place} has a mode as well as a pattern or `enforce`; give one of the two")]
    Both { place: String },
    #[error("{place} says `enforce` and has no pattern to enforce")]
    NoPattern { place: String },
    #[error("{place} has the mode {mode:?}; there are default, verbatim and disabled")]
    UnknownMode { place: String, mode: String },
    #[error("{place} has neither a mode nor a pattern")]
    Empty { place: String },
    #[error("{place} refers to ${{config.{key}}}, and the stack has no such value")]
    NoValue { place: String, key: String },
    #[error("{place} wants {count} characters at once, more than any name may have")]
    TooLong { place: String, count: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RootText {
    mode: Option<String>,
    pattern: Option<String>,
    enforce: Option<bool>,
    #[serde(default)]
    providers: BTreeMap<String, PackageText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageText {
    mode: Option<String>,
    pattern: Option<String>,
    enforce: Option<bool>,
    #[serde(default)]
    resources: BTreeMap<String, RuleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    mode: Option<String>,
    pattern: Option<String>,
    enforce: Option<bool>,
}

impl NamingRules {
    /// Reads the setting, a JSON object.
    pub fn parse(text: &str, scope: NamingScope<'_>) -> Result<Self, NamingError> {
        let root: RootText = serde_json::from_str(text).map_err(|error| NamingError::Shape {
            message: error.to_string(),
        })?;
        let own = RuleText {
            mode: root.mode,
            pattern: root.pattern,
            enforce: root.enforce,
        };
        let default = own.rule("the rule for everything", scope)?;
        let default = default.unwrap_or_default();
        let mut packages = BTreeMap::new();
        for (package, text) in root.providers {
            let rules = text.rules(&package, &default, scope)?;
            packages.insert(package, rules);
        }
        Ok(Self { default, packages })
    }

    /// What is said to the provider about this resource, and whether the name is always the same:
    /// then a replacement cannot exist beside what it replaces. `None`: nothing.
    pub fn for_resource(&self, urn: &Urn, seed: &[u8]) -> Option<(Naming, bool)> {
        let type_ = urn.type_();
        let package = type_.split(':').next().unwrap_or_default();
        let (rule, near) = match self.packages.get(package) {
            Some(rules) => (rules.types.get(type_).unwrap_or(&rules.default), true),
            None => (&self.default, false),
        };
        let naming = |proposed, mode, deliberate: bool| Naming {
            proposed,
            mode,
            deliberate: deliberate || near,
        };
        match rule {
            NamingRule::Default => None,
            NamingRule::Verbatim => {
                let name = urn.name().to_owned();
                Some((naming(name, NamingMode::Enforce, false), true))
            }
            NamingRule::Disabled => Some((naming(String::new(), NamingMode::Disable, false), true)),
            NamingRule::Pattern { pattern, enforce } => {
                let (name, random) = made(pattern, urn.name(), seed);
                let mode = match enforce {
                    true => NamingMode::Enforce,
                    false => NamingMode::Propose,
                };
                Some((naming(name, mode, *enforce), !random))
            }
        }
    }
}

impl PackageText {
    fn rules(
        self,
        package: &str,
        default: &NamingRule,
        scope: NamingScope<'_>,
    ) -> Result<PackageRules, NamingError> {
        let own = RuleText {
            mode: self.mode,
            pattern: self.pattern,
            enforce: self.enforce,
        };
        let own = own.rule(&format!("the rule for the provider {package}"), scope)?;
        let mut types = BTreeMap::new();
        for (type_, text) in self.resources {
            let place = format!("the rule for {type_}");
            let rule = text.rule(&place, scope)?;
            types.insert(type_, rule.ok_or(NamingError::Empty { place })?);
        }
        Ok(PackageRules {
            default: own.unwrap_or_else(|| default.clone()),
            types,
        })
    }
}

impl RuleText {
    /// `None` when nothing is said.
    fn rule(self, place: &str, scope: NamingScope<'_>) -> Result<Option<NamingRule>, NamingError> {
        let place = place.to_owned();
        match (self.mode, self.pattern, self.enforce) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => Err(NamingError::Both { place }),
            (None, None, Some(_)) => Err(NamingError::NoPattern { place }),
            (None, None, None) => Ok(None),
            (None, Some(pattern), enforce) => {
                let pattern = settled(&pattern, &place, scope)?;
                let enforce = enforce.unwrap_or(false);
                Ok(Some(NamingRule::Pattern { pattern, enforce }))
            }
            (Some(mode), None, None) => match mode.as_str() {
                "default" => Ok(Some(NamingRule::Default)),
                "verbatim" => Ok(Some(NamingRule::Verbatim)),
                "disabled" => Ok(Some(NamingRule::Disabled)),
                _ => Err(NamingError::UnknownMode { place, mode }),
            },
        }
    }
}

/// The pattern with what is the same for the whole stack.
fn settled(pattern: &str, place: &str, scope: NamingScope<'_>) -> Result<String, NamingError> {
    replaced(pattern, |expression| {
        Ok(match expression {
            "organization" => Some(scope.organization.to_owned()),
            "project" => Some(scope.project.to_owned()),
            "stack" => Some(scope.stack.to_owned()),
            _ => {
                if let Some((_, count)) = call(expression)
                    && count.parse::<usize>().map_or(true, |n| n > LONGEST)
                {
                    return Err(NamingError::TooLong {
                        place: place.to_owned(),
                        count: count.to_owned(),
                    });
                }
                match expression.strip_prefix("config.") {
                    Some(key) => Some(configured(key, place, scope)?),
                    None => None,
                }
            }
        })
    })
}

fn configured(key: &str, place: &str, scope: NamingScope<'_>) -> Result<String, NamingError> {
    let full = match key.contains(':') {
        true => key.to_owned(),
        false => format!("{}:{key}", scope.project),
    };
    scope
        .config
        .get(&full)
        .cloned()
        .ok_or_else(|| NamingError::NoValue {
            place: place.to_owned(),
            key: key.to_owned(),
        })
}

/// The name, and whether chance had a part in it.
fn made(pattern: &str, name: &str, seed: &[u8]) -> (String, bool) {
    let mut chance = Chance::new(seed);
    let mut random = false;
    let made = replaced::<std::convert::Infallible>(pattern, |expression| {
        if expression == "name" {
            return Ok(Some(name.to_owned()));
        }
        let text = match (expression, call(expression)) {
            ("uuid", _) => Some(chance.uuid()),
            (_, Some((kind, count))) => {
                let letters_and_digits = format!("{LETTERS}{DIGITS}");
                let alphabet = match kind {
                    "hex" => Some(HEX),
                    "alphanum" => Some(letters_and_digits.as_str()),
                    "string" => Some(LETTERS),
                    "num" => Some(DIGITS),
                    _ => None,
                };
                let count = count.parse().unwrap_or(0);
                alphabet.map(|alphabet| chance.text(alphabet, count))
            }
            _ => None,
        };
        random |= text.is_some();
        Ok(text)
    });
    match made {
        Ok(name) => (name, random),
        Err(never) => match never {},
    }
}

/// `kind(count)` in parts.
fn call(expression: &str) -> Option<(&str, &str)> {
    let (kind, rest) = expression.split_once('(')?;
    let count = rest.strip_suffix(')')?;
    let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    digits.then_some((kind, count))
}

/// Replaces `${…}` where `value` knows one; everything else stays as it is.
fn replaced<E>(
    pattern: &str,
    mut value: impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once("${") {
        text.push_str(before);
        let Some((expression, behind)) = after.split_once('}') else {
            rest = &rest[before.len()..];
            break;
        };
        match value(expression)? {
            Some(value) => text.push_str(&value),
            None => {
                text.push_str("${");
                text.push_str(expression);
                text.push('}');
            }
        }
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}

/// An endless stream of bytes that follows from a seed.
struct Chance {
    seed: [u8; 32],
    block: u64,
    left: Vec<u8>,
}

impl Chance {
    fn new(seed: &[u8]) -> Self {
        Self {
            seed: Sha256::digest(seed).into(),
            block: 0,
            left: Vec::new(),
        }
    }

    fn byte(&mut self) -> u8 {
        if let Some(byte) = self.left.pop() {
            return byte;
        }
        let mut digest = Sha256::new();
        digest.update(self.seed);
        digest.update(self.block.to_le_bytes());
        self.block += 1;
        self.left = digest.finalize().to_vec();
        self.left.pop().unwrap_or_default()
    }

    fn text(&mut self, alphabet: &str, count: usize) -> String {
        let alphabet = alphabet.as_bytes();
        // Bytes beyond the last whole round of the alphabet would favour its beginning.
        let fair = 256 / alphabet.len() * alphabet.len();
        let letter = |chance: &mut Self| {
            loop {
                let byte = usize::from(chance.byte());
                if byte < fair {
                    return char::from(alphabet[byte % alphabet.len()]);
                }
            }
        };
        (0..count).map(|_| letter(self)).collect()
    }

    fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12]
            .map(|count| self.text(HEX, count))
            .join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Result<NamingRules, NamingError> {
        let config = BTreeMap::from([("shop:team".to_owned(), "web".to_owned())]);
        let scope = NamingScope {
            organization: "acme",
            project: "shop",
            stack: "dev",
            config: &config,
        };
        NamingRules::parse(text, scope)
    }

    fn named(text: &str, type_: &str) -> Option<(Naming, bool)> {
        let urn = Urn::new("dev", "shop", None, type_, "cart");
        rules(text).unwrap().for_resource(&urn, &[7; 32])
    }

    #[test]
    fn modes_say_what_a_provider_may_do() {
        assert_eq!(named(r#"{"mode":"default"}"#, "a:b:C"), None);
        assert_eq!(named("{}", "a:b:C"), None);
        let (naming, fixed) = named(r#"{"mode":"verbatim"}"#, "a:b:C").unwrap();
        assert_eq!((naming.proposed.as_str(), fixed), ("cart", true));
        assert_eq!(
            (naming.mode, naming.deliberate),
            (NamingMode::Enforce, false)
        );
        let (naming, fixed) = named(r#"{"mode":"disabled"}"#, "a:b:C").unwrap();
        assert_eq!((naming.mode, fixed), (NamingMode::Disable, true));
        assert!(naming.proposed.is_empty());
    }

    #[test]
    fn a_pattern_is_filled_from_stack_resource_and_chance() {
        let text =
            r#"{"pattern":"${organization}.${project}.${stack}.${config.team}.${name}.${odd}"}"#;
        let (naming, fixed) = named(text, "a:b:C").unwrap();
        assert_eq!(naming.proposed, "acme.shop.dev.web.cart.${odd}");
        assert_eq!((naming.mode, fixed), (NamingMode::Propose, true));

        let text = r#"{"pattern":"${name}-${hex(5)}-${num(3)}-${string(4)}-${alphanum(6)}-${uuid}","enforce":true}"#;
        let (naming, fixed) = named(text, "a:b:C").unwrap();
        let parts: Vec<&str> = naming.proposed.splitn(6, '-').collect();
        let all = |part: &str, alphabet: &str| part.chars().all(|c| alphabet.contains(c));
        assert_eq!(parts[0], "cart");
        assert!(parts[1].len() == 5 && all(parts[1], HEX), "{parts:?}");
        assert!(parts[2].len() == 3 && all(parts[2], DIGITS), "{parts:?}");
        assert!(parts[3].len() == 4 && all(parts[3], LETTERS), "{parts:?}");
        assert_eq!((parts[4].len(), parts[5].len()), (6, 36), "{parts:?}");
        assert_eq!(
            (naming.mode, naming.deliberate),
            (NamingMode::Enforce, true)
        );
        assert!(!fixed);
        assert_eq!(named(text, "a:b:C"), Some((naming, false)), "same seed");
        let other = Urn::new("dev", "shop", None, "a:b:C", "cart");
        let other = rules(text).unwrap().for_resource(&other, &[8; 32]);
        assert_ne!(other, named(text, "a:b:C"));
    }

    #[test]
    fn the_nearest_rule_counts() {
        let text = r#"{"mode":"verbatim","providers":{
            "aws":{"pattern":"p-${name}","resources":{"aws:s3:Bucket":{"mode":"disabled"}}},
            "gcp":{}}}"#;
        let proposed = |type_: &str| named(text, type_).unwrap().0;
        assert_eq!(proposed("aws:ec2:Vpc").proposed, "p-cart");
        assert!(proposed("aws:ec2:Vpc").deliberate);
        assert_eq!(proposed("aws:s3:Bucket").mode, NamingMode::Disable);
        assert_eq!(proposed("gcp:a:B").proposed, "cart");
        assert!(!proposed("azure:a:B").deliberate);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, place) in [
            (r#"{"mode":"odd"}"#, "everything"),
            (r#"{"mode":"verbatim","pattern":"x"}"#, "everything"),
            (r#"{"enforce":true}"#, "everything"),
            (r#"{"pattern":"${config.none}"}"#, "config.none"),
            (r#"{"pattern":"${hex(99999)}"}"#, "99999"),
            (r#"{"providers":{"aws":{"mode":"odd"}}}"#, "provider aws"),
            (
                r#"{"providers":{"aws":{"resources":{"a:b:C":{}}}}}"#,
                "a:b:C",
            ),
            (r#"{"modus":"verbatim"}"#, "modus"),
            ("[]", "form"),
        ] {
            let message = rules(text).unwrap_err().to_string();
            assert!(message.contains(place), "{text}: {message}");
        }
    }
}
