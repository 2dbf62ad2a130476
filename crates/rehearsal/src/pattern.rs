//! Types as orders name them: one, or all that fit a pattern with `*`.

/// `aws:rds/instance:Instance`, or `aws:rds/*`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern(String);

impl Pattern {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn fits(&self, type_: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = type_.strip_prefix(first) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            return rest.is_empty();
        };
        for part in parts {
            let Some(at) = rest.find(part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }

    /// How much a pattern says: one type says more than any pattern, a longer pattern more than a
    /// shorter one.
    pub(crate) fn weight(&self) -> (bool, usize) {
        (!self.0.contains('*'), self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_the_rest_for_itself() {
        for (pattern, type_, fits) in [
            ("a:b:C", "a:b:C", true),
            ("a:b:C", "a:b:CD", false),
            ("a:b:C", "a:b:", false),
            ("aws:rds/*", "aws:rds/instance:Instance", true),
            ("aws:rds/*", "aws:ec2/vpc:Vpc", false),
            ("*:Role", "aws:iam/role:Role", true),
            ("*:Role", "aws:iam/role:RolePolicy", false),
            ("aws:*/role:*", "aws:iam/role:Role", true),
            ("aws:*role*Policy", "aws:iam/role:RolePolicy", true),
            ("ab*ba", "aba", false),
            ("*", "", true),
        ] {
            assert_eq!(Pattern::new(pattern).fits(type_), fits, "{pattern} {type_}");
        }
        assert!(Pattern::new("a:b:C").weight() > Pattern::new("a:b:C:long*").weight());
        assert!(Pattern::new("a:b*").weight() > Pattern::new("a*").weight());
    }
}
