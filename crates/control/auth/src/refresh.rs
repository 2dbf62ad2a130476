//! Refresh tokens: one family per session, a new token at every use, and an alarm at every reuse.
//!
//! A token is the session, a generation number and a code over both. Nothing secret has to be
//! stored: the session's row holds the current generation and a random seed, and the server's key
//! makes the code. That is also why two uses of the same token at the same moment, by two tabs of
//! one browser, get the very same successor.
//!
//! The rule, as a pure state machine: the current generation is exchanged for the next; the one
//! before it is answered with the same next one for a short grace; anything older, or later, is
//! a stolen token, and the whole family ends.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nimbus_core::TenantId;
use uuid::Uuid;

use crate::secret::{self, ServerKeys};

const PURPOSE: &str = "nimbus/auth/refresh-token/1";
const PREFIX: &str = "nbr_";
/// How long the previous token still gives the same successor.
pub const GRACE_SECONDS: i64 = 10;

/// What a presented token claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    pub tenant: TenantId,
    pub session: Uuid,
    pub generation: u32,
    key_id: String,
    code: [u8; 32],
}

/// What the session's row remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    pub seed: Uuid,
    pub generation: u32,
    /// When the current generation was made.
    pub rotated_at: i64,
    pub expires_at: i64,
    pub revoked: bool,
}

/// What to do with a presented token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshDecision {
    /// Store this generation and hand out its token.
    Rotate { next: u32 },
    /// A second use of the same moment: hand out the current token again, store nothing.
    Repeat { current: u32 },
    /// Somebody has a token that was used up: end the family and tell the audit trail.
    Reuse,
    /// The family ended or expired, or the token is not ours.
    Refuse,
}

/// Makes and reads refresh tokens.
#[derive(Clone, Debug)]
pub struct RefreshTokens {
    keys: ServerKeys,
}

impl RefreshTokens {
    pub fn new(keys: ServerKeys) -> Self {
        Self { keys }
    }

    /// The token of one generation.
    pub fn token(&self, tenant: TenantId, session: Uuid, seed: Uuid, generation: u32) -> String {
        let key = self.keys.active();
        let code = key.authenticate(PURPOSE, &message(tenant, session, seed, generation));
        let text = format!("{tenant}/{session}/{generation}/{}", key.id());
        format!(
            "{PREFIX}{}.{}",
            URL_SAFE_NO_PAD.encode(text),
            URL_SAFE_NO_PAD.encode(code)
        )
    }

    /// Takes a token apart. What it claims is not believed until [`RefreshTokens::decide`] said so.
    pub fn parse(token: &str) -> Option<Presented> {
        let rest = token.strip_prefix(PREFIX).filter(|rest| rest.len() < 512)?;
        let (text, code) = rest.split_once('.')?;
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let mut parts = text.split('/');
        let presented = Presented {
            tenant: parts.next()?.parse().ok()?,
            session: parts.next()?.parse().ok()?,
            generation: parts.next()?.parse().ok()?,
            key_id: parts.next()?.to_owned(),
            code: URL_SAFE_NO_PAD.decode(code).ok()?.try_into().ok()?,
        };
        parts.next().is_none().then_some(presented)
    }

    /// The rule of this module.
    pub fn decide(&self, family: &Family, presented: &Presented, now: i64) -> RefreshDecision {
        if !self.is_genuine(family, presented) || family.revoked || now >= family.expires_at {
            return RefreshDecision::Refuse;
        }
        let current = family.generation;
        if presented.generation == current {
            return match current.checked_add(1) {
                Some(next) => RefreshDecision::Rotate { next },
                None => RefreshDecision::Refuse,
            };
        }
        let previous = presented.generation.checked_add(1) == Some(current);
        if previous && now - family.rotated_at <= GRACE_SECONDS {
            return RefreshDecision::Repeat { current };
        }
        RefreshDecision::Reuse
    }

    fn is_genuine(&self, family: &Family, presented: &Presented) -> bool {
        let Some(key) = self.keys.find(&presented.key_id) else {
            return false;
        };
        let message = message(
            presented.tenant,
            presented.session,
            family.seed,
            presented.generation,
        );
        secret::equal(&presented.code, &key.authenticate(PURPOSE, &message))
    }
}

fn message(tenant: TenantId, session: Uuid, seed: Uuid, generation: u32) -> Vec<u8> {
    format!("{tenant}/{session}/{seed}/{generation}").into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secret::ServerKey;

    const START: i64 = 1_800_000_000;

    struct Session {
        tokens: RefreshTokens,
        tenant: TenantId,
        id: Uuid,
        family: Family,
    }

    impl Session {
        fn new() -> Self {
            Self {
                tokens: RefreshTokens::new(ServerKeys::new(ServerKey::generate(), Vec::new())),
                tenant: TenantId::random(),
                id: Uuid::new_v4(),
                family: Family {
                    seed: Uuid::new_v4(),
                    generation: 0,
                    rotated_at: START,
                    expires_at: START + 604_800,
                    revoked: false,
                },
            }
        }

        fn token(&self, generation: u32) -> String {
            self.tokens
                .token(self.tenant, self.id, self.family.seed, generation)
        }

        /// What a server does with a token: the new token, if any.
        fn refresh(&mut self, token: &str, now: i64) -> Option<String> {
            let presented = RefreshTokens::parse(token)?;
            match self.tokens.decide(&self.family, &presented, now) {
                RefreshDecision::Rotate { next } => {
                    self.family.generation = next;
                    self.family.rotated_at = now;
                    Some(self.token(next))
                }
                RefreshDecision::Repeat { current } => Some(self.token(current)),
                RefreshDecision::Reuse => {
                    self.family.revoked = true;
                    None
                }
                RefreshDecision::Refuse => None,
            }
        }
    }

    #[test]
    fn every_use_gives_a_new_token() {
        let mut session = Session::new();
        let first = session.token(0);
        let second = session.refresh(&first, START + 100).unwrap();
        let third = session.refresh(&second, START + 200).unwrap();
        assert_ne!(first, second);
        assert_ne!(second, third);
    }

    #[test]
    fn two_uses_of_one_moment_get_the_same_child() {
        let mut session = Session::new();
        let token = session.token(0);
        let one = session.refresh(&token, START + 100).unwrap();
        let other = session.refresh(&token, START + 110).unwrap();
        assert_eq!(one, other);
        assert!(!session.family.revoked);
    }

    #[test]
    fn a_later_reuse_ends_the_family_for_everybody() {
        let mut session = Session::new();
        let stolen = session.token(0);
        let honest = session.refresh(&stolen, START + 100).unwrap();
        assert_eq!(session.refresh(&stolen, START + 111), None);
        assert!(session.family.revoked);
        assert_eq!(session.refresh(&honest, START + 112), None);
    }

    #[test]
    fn a_grandparent_ends_the_family_even_within_the_grace() {
        let mut session = Session::new();
        let first = session.token(0);
        let second = session.refresh(&first, START + 100).unwrap();
        session.refresh(&second, START + 101).unwrap();
        assert_eq!(session.refresh(&first, START + 102), None);
        assert!(session.family.revoked);
    }

    #[test]
    fn expired_and_revoked_families_refuse() {
        let mut session = Session::new();
        let token = session.token(0);
        assert_eq!(session.refresh(&token, session.family.expires_at), None);
        session.family.revoked = true;
        assert_eq!(session.refresh(&token, START + 1), None);
    }

    #[test]
    fn a_token_of_another_session_tenant_key_or_seed_is_refused_without_ending_the_family() {
        let mut session = Session::new();
        let tenant = session.tenant;
        let (id, seed) = (session.id, session.family.seed);
        let stranger = Session::new();
        for token in [
            session.tokens.token(TenantId::random(), id, seed, 0),
            session.tokens.token(tenant, Uuid::new_v4(), seed, 0),
            session.tokens.token(tenant, id, Uuid::new_v4(), 0),
            stranger.tokens.token(tenant, id, seed, 0),
        ] {
            let presented = RefreshTokens::parse(&token).unwrap();
            let presented = Presented {
                tenant,
                session: id,
                ..presented
            };
            let decision = session.tokens.decide(&session.family, &presented, START);
            assert_eq!(decision, RefreshDecision::Refuse);
        }
        assert_eq!(session.refresh("nbr_garbage", START), None);
        assert!(!session.family.revoked);
    }

    proptest! {
        /// Whatever is presented and when: at most one token is good at any time, apart from the
        /// grace, and once a used-up token came back nothing is good any more.
        #[test]
        fn a_thief_and_an_owner_never_both_go_on(
            uses in prop::collection::vec((0usize..6, 0i64..30), 1..40),
        ) {
            let mut session = Session::new();
            let mut seen = vec![session.token(0)];
            let mut now = START;
            for (choice, wait) in uses {
                now += wait;
                let token = seen[choice.min(seen.len() - 1)].clone();
                let before = session.family.clone();
                let generation = RefreshTokens::parse(&token).unwrap().generation;
                let answer = session.refresh(&token, now);
                match &answer {
                    Some(next) => {
                        prop_assert!(!before.revoked);
                        let lag = before.generation - generation;
                        prop_assert!(lag == 0 || (lag == 1 && now - before.rotated_at <= GRACE_SECONDS));
                        if !seen.contains(next) {
                            seen.push(next.clone());
                        }
                    }
                    None => prop_assert!(session.family.revoked),
                }
            }
        }

        #[test]
        fn text_of_any_kind_is_read_or_refused(text in ".*") {
            let _ = RefreshTokens::parse(&text);
            let _ = RefreshTokens::parse(&format!("{PREFIX}{text}"));
        }
    }
}
