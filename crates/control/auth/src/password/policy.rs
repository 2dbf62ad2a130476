//! Which passwords are refused: too short, too long, or among the first that an attacker tries.
//!
//! There are no rules about kinds of characters and no forced changes: they make passwords worse.

use super::common;
use super::hash::MAX_BYTES;

/// Shorter ones are guessed, whatever they are made of.
pub const MIN_CHARACTERS: usize = 12;

/// Words that belong to the person or the place, which an attacker knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct PasswordContext<'a> {
    pub email: &'a str,
    pub tenant: &'a str,
}

/// Why a password is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordWeakness {
    #[error("it needs at least {MIN_CHARACTERS} characters")]
    Short,
    #[error("it has more than {MAX_BYTES} bytes")]
    Long,
    #[error("it is among the passwords that attackers try first")]
    Common,
    #[error("it repeats a few characters")]
    Repetitive,
    #[error("it is made of your name or your organisation's")]
    Personal,
}

/// Whether a new password may be used.
pub fn check(password: &str, context: PasswordContext<'_>) -> Result<(), PasswordWeakness> {
    if password.len() > MAX_BYTES {
        return Err(PasswordWeakness::Long);
    }
    if password.chars().count() < MIN_CHARACTERS {
        return Err(PasswordWeakness::Short);
    }
    let lower = password.to_lowercase();
    if distinct(&lower) < 5 || is_repeated(&lower) {
        return Err(PasswordWeakness::Repetitive);
    }
    if common::is_common(&lower) {
        return Err(PasswordWeakness::Common);
    }
    if is_personal(&lower, context) {
        return Err(PasswordWeakness::Personal);
    }
    Ok(())
}

fn distinct(text: &str) -> usize {
    let mut letters: Vec<char> = text.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    letters.len()
}

/// Whether the text is one short piece, several times.
fn is_repeated(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    (1..=letters.len() / 3).any(|length| {
        letters
            .iter()
            .enumerate()
            .all(|(position, letter)| *letter == letters[position % length])
    })
}

/// Whether little is left when the names are taken out.
fn is_personal(lower: &str, context: PasswordContext<'_>) -> bool {
    let email = context.email.to_lowercase();
    let tenant = context.tenant.to_lowercase();
    let mut rest = lower.to_owned();
    let words = email
        .split(['@', '.', '-', '_', '+'])
        .chain(tenant.split(|letter: char| !letter.is_alphanumeric()));
    let mut found = false;
    for word in words.filter(|word| word.chars().count() >= 3) {
        found |= rest.contains(word);
        rest = rest.replace(word, "");
    }
    let left = rest.chars().filter(|letter| letter.is_alphabetic()).count();
    found && left < 6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(password: &str) -> Result<(), PasswordWeakness> {
        let context = PasswordContext {
            email: "jane.miller@acme-corp.example",
            tenant: "Acme Corp",
        };
        check(password, context)
    }

    #[test]
    fn good_passwords_of_every_kind_are_accepted() {
        for password in [
            "correct horse battery staple",
            "glass lamp river 9",
            "zq7Vw2mKx9Lp",
            "ein ungewöhnlicher satz",
            "пароль из пяти слов тут",
            "only lower case letters here",
        ] {
            assert_eq!(verdict(password), Ok(()), "{password}");
        }
    }

    #[test]
    fn length_is_counted_in_characters() {
        assert_eq!(verdict("zq7Vw2mKx9L"), Err(PasswordWeakness::Short));
        assert_eq!(verdict("日本語のとても長い合言葉です"), Ok(()));
        assert_eq!(
            verdict(&"a long phrase ".repeat(100)),
            Err(PasswordWeakness::Long)
        );
    }

    #[test]
    fn what_attackers_try_first_is_refused_in_its_usual_disguises() {
        for password in [
            "password1234",
            "Password2024!",
            "P@ssw0rd!!!!",
            "passwordpassword",
            "qwertyuiop123",
            "1qaz2wsx3edc",
            "123456789012",
            "abcdefghijkl",
            "welcome12345",
            "administrator1",
            "iloveyou2023!",
            "letmein!!!!!",
            "summer2025!!",
            "nimbus123456",
            "changeme1234",
        ] {
            let verdict = verdict(password);
            assert!(
                matches!(
                    verdict,
                    Err(PasswordWeakness::Common | PasswordWeakness::Repetitive)
                ),
                "{password}: {verdict:?}"
            );
        }
    }

    #[test]
    fn repetition_is_refused() {
        for password in [
            "aaaaaaaaaaaaaa",
            "abababababab",
            "xyzxyzxyzxyz",
            "112112112112",
        ] {
            assert_eq!(
                verdict(password),
                Err(PasswordWeakness::Repetitive),
                "{password}"
            );
        }
    }

    #[test]
    fn ones_own_name_is_refused() {
        for password in ["JaneMiller2025", "acmecorp-2025-x", "miller.jane.77"] {
            assert_eq!(
                verdict(password),
                Err(PasswordWeakness::Personal),
                "{password}"
            );
        }
        assert_eq!(verdict("jane rides a purple bicycle"), Ok(()));
    }
}
