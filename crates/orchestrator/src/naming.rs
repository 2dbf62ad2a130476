//! Names that follow from a deployment: its directory and its Pulumi project.

use nimbus_core::DeploymentId;

/// `<id>-<organisation>-<project>`: case is kept, anything but letters and digits becomes `-`.
pub fn directory(id: &DeploymentId, organization: &str, project: &str) -> String {
    format!("{id}-{}-{}", sanitize(organization), sanitize(project))
}

/// Whether a directory belongs to a deployment. Lookups ignore case.
pub fn belongs_to(directory: &str, id: &str) -> bool {
    let (Some(head), rest) = (directory.get(..id.len()), directory.get(id.len()..)) else {
        return false;
    };
    head.eq_ignore_ascii_case(id) && rest.is_some_and(|rest| rest.starts_with('-'))
}

/// Letters and digits stay; runs of anything else become one `-`; none at the ends.
pub fn sanitize(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(name.trim_end_matches('-').len());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> DeploymentId {
        text.parse().unwrap()
    }

    #[test]
    fn directories_keep_case_and_lose_everything_odd() {
        assert_eq!(
            directory(&id("D1BRV40"), "CompanyA", "ecommerce"),
            "D1BRV40-CompanyA-ecommerce"
        );
        assert_eq!(
            directory(&id("D1"), "A & B  Ltd.", "../x/ü"),
            "D1-A-B-Ltd-x"
        );
    }

    #[test]
    fn a_directory_is_found_by_the_whole_id_in_any_case() {
        assert!(belongs_to("D1BRV40-CompanyA-ecommerce", "d1brv40"));
        assert!(!belongs_to("D1BRV40-CompanyA-ecommerce", "D1BRV4"));
        assert!(!belongs_to("D1", "D1BRV40"));
        assert!(!belongs_to("ü", "D"));
    }
}
