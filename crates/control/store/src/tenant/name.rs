//! What a tenant may be called.
//!
//! A schema's name never comes from a tenant's, so a strange name cannot reach SQL. The rules keep
//! slugs usable in addresses and apart from each other.

use crate::StoreError;

const LONGEST_SLUG: usize = 40;
const LONGEST_NAME: usize = 200;

/// Words that would be mistaken for something of the installation or of PostgreSQL.
const RESERVED: &[&str] = &[
    "admin", "api", "console", "nimbus", "operator", "platform", "public", "shared", "system",
];

pub(super) fn check_slug(slug: &str) -> Result<(), StoreError> {
    let refuse = |why: &str| {
        Err(StoreError::Invalid {
            what: format!("the slug `{}`", slug.escape_debug()),
            why: why.to_owned(),
        })
    };
    if slug.is_empty() || slug.len() > LONGEST_SLUG {
        return refuse("must have 1 to 40 characters");
    }
    let words_of_letters = slug.split('-').all(|word| {
        !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    });
    if !words_of_letters || !slug.starts_with(|first: char| first.is_ascii_lowercase()) {
        return refuse(
            "must be lower-case letters and digits with single dashes between, a letter first",
        );
    }
    if RESERVED.contains(&slug) || slug == "pg" || slug.starts_with("pg-") {
        return refuse("is reserved");
    }
    Ok(())
}

pub(super) fn check_name(name: &str) -> Result<(), StoreError> {
    let length = name.chars().count();
    if name.trim().is_empty() || length > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(StoreError::Invalid {
            what: "the name".to_owned(),
            why: "must have 1 to 200 characters and no control characters".to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_slugs_are_accepted() {
        for slug in ["a", "acme", "acme-2", "a-b-c", &"a".repeat(40)] {
            assert!(check_slug(slug).is_ok(), "{slug}");
        }
    }

    #[test]
    fn slugs_that_could_be_mistaken_are_refused() {
        let long = "a".repeat(64);
        for slug in [
            "", "public", "pg_x", "pg-x", "\"; drop", "a b", "Acme", "ACME", "ünï", "аcme", "-a",
            "a-", "a--b", "1a", "a_b", "a\0b", "nimbus", &long,
        ] {
            assert!(check_slug(slug).is_err(), "{slug:?}");
        }
    }

    #[test]
    fn names_are_free_but_have_no_control_characters() {
        assert!(check_name("Müller & Söhne \"GmbH\"; drop table x").is_ok());
        for name in ["", "  ", "a\u{1b}[2J", "a\nb", &"x".repeat(201)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
