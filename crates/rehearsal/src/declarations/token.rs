//! The words of a declaration file: names, texts, signs and documentation.

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Text(&'a str),
    Sign(char),
    /// A `/** … */` comment.
    Doc(&'a str),
}

pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            c if c.is_whitespace() => c.len_utf8(),
            '/' if rest.starts_with("/*") => {
                let end = rest.find("*/").map_or(rest.len(), |at| at + 2);
                if rest.starts_with("/**") {
                    tokens.push(Token::Doc(&rest[..end]));
                }
                end
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => {
                let end = rest[1..].find(first).map_or(rest.len(), |at| at + 2);
                let inner = rest.get(1..end.saturating_sub(1)).unwrap_or_default();
                tokens.push(Token::Text(inner));
                end
            }
            c if is_name(c) => {
                let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                tokens.push(Token::Name(&rest[..end]));
                end
            }
            sign => {
                tokens.push(Token::Sign(sign));
                sign.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    tokens
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}
