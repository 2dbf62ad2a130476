//! Text in percent form, for addresses and forms.

use std::fmt::Write as _;

/// Everything but letters, digits and four signs in percent form: the strictest reading, which every
/// server understands.
pub fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Nothing can go wrong when text is written to text.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_mean_something_else_is_encoded_byte_by_byte() {
        assert_eq!(percent_encoded("a b&c=\u{e9}/"), "a%20b%26c%3D%C3%A9%2F");
        assert_eq!(percent_encoded("Az09-._~"), "Az09-._~");
        assert_eq!(percent_encoded("+%"), "%2B%25");
        assert_eq!(percent_encoded(""), "");
    }
}
