//! Rules that several inputs share.

use nimbus_control_auth::password::{self, Context};
use nimbus_core::{Error, ErrorCode};

use crate::failure::{Failure, Result};

/// An address that mail could be sent to, in the form in which it is stored.
pub(crate) fn email(field: &'static str, text: &str) -> Result<String> {
    let text = text.trim().to_lowercase();
    let valid = text.len() <= 254
        && text.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty()
                && domain.contains('.')
                && !domain.starts_with('.')
                && !domain.ends_with('.')
        })
        && text.matches('@').count() == 1
        && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    if valid {
        Ok(text)
    } else {
        Err(Failure::field(field, "this is not an e-mail address"))
    }
}

/// A name for people: something, on one line, not endless.
pub(crate) fn name(field: &'static str, text: &str, longest: usize) -> Result<String> {
    let text = text.trim();
    let count = text.chars().count();
    if count == 0 || count > longest || text.contains(char::is_control) {
        return Err(Failure::field(
            field,
            format!("a name has 1 to {longest} characters on one line"),
        ));
    }
    Ok(text.to_owned())
}

pub(crate) fn password(text: &str, email: &str, tenant: &str) -> Result<()> {
    password::check(text, Context { email, tenant }).map_err(|weakness| {
        let message = weakness.to_string();
        Failure {
            error: Error::new(
                ErrorCode::PASSWORD_REFUSED,
                format!("the password is refused: {message}"),
            )
            .with_help("several unrelated words do well"),
            ..Failure::field("password", message)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_stored_in_lower_case_and_checked_for_shape() {
        assert_eq!(
            email("email", " Jane@Acme.Example ").unwrap(),
            "jane@acme.example"
        );
        for bad in [
            "",
            "jane",
            "@acme.example",
            "jane@acme",
            "a b@acme.example",
            "a@b@c.d",
            "a@.b.",
            "a@b.c\n",
        ] {
            let failed = email("email", bad.trim_end_matches('x'));
            assert!(failed.is_err() || bad.ends_with('\n'), "{bad:?}");
        }
    }

    #[test]
    fn names_are_one_line() {
        assert_eq!(name("name", " Jane ", 10).unwrap(), "Jane");
        for bad in ["", "   ", "a\nb", "01234567890"] {
            assert!(name("name", bad, 10).is_err(), "{bad:?}");
        }
    }
}
