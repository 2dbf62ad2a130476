//! Why an error happened: the chain of its causes, walked in one place.

use std::error::Error;
use std::iter;

/// The causes of an error, from the nearest to the innermost.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(error.source(), next)
}

fn next<'a>(cause: &&'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    (*cause).source()
}

/// The cause at the end of the chain, or the error itself. Outer ones often say only that there was
/// one, or repeat an address, password and all.
pub fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    causes(error).last().unwrap_or(error)
}

/// The error and all of its causes as one text: `a: b: c`.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let texts = causes(error).map(ToString::to_string);
    texts.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Link(&'static str, #[source] Option<Box<Link>>);

    #[test]
    fn a_chain_is_walked_to_its_end() {
        let inner = Link("c", None);
        let chain = Link("a", Some(Box::new(Link("b", Some(Box::new(inner))))));
        assert_eq!(with_causes(&chain), "a: b: c");
        assert_eq!(innermost(&chain).to_string(), "c");
        assert_eq!(causes(&chain).count(), 2);
        let alone = Link("a", None);
        assert_eq!(with_causes(&alone), "a");
        assert_eq!(innermost(&alone).to_string(), "a");
    }
}
