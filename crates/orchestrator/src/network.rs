//! What a stack's program may reach while it runs in a sandbox.

use nimbus_core::Result;
use nimbus_document::View;

/// Providers do the talking; programs rarely need a network of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkAccess {
    /// Nothing.
    None,
    /// Whatever the machine reaches.
    Full,
}

impl NetworkAccess {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Full => "full",
        }
    }

    /// The key `network` of a stack; `None` leaves it to the settings of whoever runs it.
    pub(crate) fn read(view: &View<'_>) -> Result<Option<Self>> {
        let Some(said) = view.optional("network")? else {
            return Ok(None);
        };
        match said.str()? {
            "none" => Ok(Some(Self::None)),
            "full" => Ok(Some(Self::Full)),
            _ => Err(said.error("there is no such network", "one of none, full")),
        }
    }
}

#[cfg(test)]
mod tests {
    use nimbus_document::Document;

    use super::*;

    fn read(text: &str) -> Result<Option<NetworkAccess>> {
        let document = Document::parse("stack.yaml", text)?;
        NetworkAccess::read(&document.view())
    }

    #[test]
    fn a_stack_says_what_its_program_may_reach_or_nothing() {
        for access in [NetworkAccess::None, NetworkAccess::Full] {
            let text = format!("network: {}", access.as_str());
            assert_eq!(read(&text).ok(), Some(Some(access)));
        }
        assert_eq!(read("enabled: true").ok(), Some(None));
        let error = read("network: some").expect_err("there is no such network");
        assert!(error.to_string().contains("network"), "{error}");
    }
}
