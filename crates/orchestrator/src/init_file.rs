//! Answers for a new deployment: from a file, and whether answers can be used at all.

use std::collections::BTreeMap;

use nimbus_core::{EnvironmentName, Error, ErrorCode, Result};
use nimbus_document::Document;

use crate::naming;
use crate::render::InitAnswers;
use crate::template::by_environment;

pub(crate) const KEYS: &[&str] = &[
    "id",
    "org",
    "project",
    "domain",
    "template",
    "region",
    "secondaryRegion",
    "description",
    "team",
    "costCenter",
    "accounts",
    "vpcCidr",
    "variables",
    "allStacks",
];

/// The variable of a network that is given without an environment; it goes to the first enabled one.
pub const VPC_CIDR: &str = "VPC_CIDR";

/// Longest organisation and project: both are parts of one directory's name.
const LONGEST: usize = 63;

/// An id, if the file gives one, and the answers.
pub fn read(document: &Document) -> Result<(Option<String>, InitAnswers)> {
    let view = document.view();
    view.only_keys(KEYS)?;
    let text = |key: &str| -> Result<Option<String>> {
        view.optional(key)?
            .map(|v| v.scalar_text().map(str::to_owned))
            .transpose()
    };
    let mut variables = BTreeMap::new();
    if let Some(list) = view.optional("variables")? {
        for (name, value) in list.entries()? {
            variables.insert(name.to_owned(), value.scalar_text()?.to_owned());
        }
    }
    for (key, name) in [
        ("region", "PRIMARY_REGION"),
        ("secondaryRegion", "SECONDARY_REGION"),
        ("team", "TEAM"),
        ("costCenter", "COST_CENTER"),
        ("vpcCidr", VPC_CIDR),
    ] {
        if let Some(value) = text(key)? {
            variables.insert(name.to_owned(), value);
        }
    }
    let all_stacks = view.optional("allStacks")?.map(|v| v.bool()).transpose()?;
    let answers = InitAnswers {
        organization: view.required("org")?.str()?.to_owned(),
        project: view.required("project")?.str()?.to_owned(),
        domain: text("domain")?.unwrap_or_default(),
        template: text("template")?.unwrap_or_else(|| "default".to_owned()),
        description: text("description")?,
        accounts: by_environment(&view, "accounts", |v| Ok(v.scalar_text()?.to_owned()))?,
        variables,
        all_stacks: all_stacks.unwrap_or(false),
        ..InitAnswers::default()
    };
    Ok((text("id")?, answers))
}

/// Refuses answers that would make a deployment nobody can use.
pub fn check(answers: &InitAnswers) -> Result<()> {
    for (what, name) in [
        ("organisation", &answers.organization),
        ("project", &answers.project),
    ] {
        if naming::sanitize(name).is_empty() || name.chars().count() > LONGEST {
            let shown: String = name.chars().take(60).collect();
            let message = format!("`{shown}` cannot be the name of the {what}");
            return Err(Error::new(ErrorCode::MALFORMED_ID, message).with_help(format!(
                "at most {LONGEST} characters, at least one of them a letter from a to z or a digit"
            )));
        }
    }
    for (environment, account) in &answers.accounts {
        check_account(*environment, account)?;
    }
    for (name, value) in &answers.variables {
        if name.starts_with(VPC_CIDR) && !is_network(value) {
            let message = format!("`{value}` is not a network such as 10.0.0.0/16");
            return Err(Error::new(ErrorCode::USAGE, message));
        }
    }
    Ok(())
}

fn check_account(environment: EnvironmentName, account: &str) -> Result<()> {
    if account.is_empty() || (account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit())) {
        return Ok(());
    }
    let message = format!("`{account}` is not an AWS account, for {environment}");
    Err(Error::new(ErrorCode::USAGE, message)
        .with_help("an account is 12 digits; in a file, put it in quotes"))
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let widest = match address.parse() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= widest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_can_be_in_the_file() {
        let text = "id: D1\norg: o\nproject: p\ndomain: x.example\ntemplate: minimal\nregion: eu-west-1\n\
                    secondaryRegion: eu-north-1\ndescription: d\nteam: t\ncostCenter: 42\naccounts: {dev: '111111111111'}\n\
                    vpcCidr: 10.9.0.0/16\nvariables: {AZ_COUNT_DEV: 3}\nallStacks: true\n";
        let (id, answers) = read(&Document::parse("init.yaml", text).unwrap()).unwrap();
        assert_eq!(id.as_deref(), Some("D1"));
        let variable = |name: &str| answers.variables[name].as_str();
        assert_eq!(variable("PRIMARY_REGION"), "eu-west-1");
        assert_eq!(variable("COST_CENTER"), "42");
        assert_eq!(variable("AZ_COUNT_DEV"), "3");
        assert_eq!(variable(VPC_CIDR), "10.9.0.0/16");
        assert_eq!(answers.accounts[&EnvironmentName::DEV], "111111111111");
        assert!(answers.all_stacks);
        check(&answers).unwrap();
    }

    #[test]
    fn unusable_answers_are_refused() {
        let good = InitAnswers {
            organization: "o".to_owned(),
            project: "p".to_owned(),
            ..InitAnswers::default()
        };
        check(&good).unwrap();
        for name in ["", "ü", "../..", &"x".repeat(300)] {
            let bad = InitAnswers {
                organization: name.to_owned(),
                ..good.clone()
            };
            assert_eq!(
                check(&bad).unwrap_err().code(),
                ErrorCode::MALFORMED_ID,
                "{name}"
            );
        }
        for account in ["12", "11111111111x", "１１１１"] {
            let accounts = BTreeMap::from([(EnvironmentName::PROD, account.to_owned())]);
            let bad = InitAnswers {
                accounts,
                ..good.clone()
            };
            assert_eq!(
                check(&bad).unwrap_err().code(),
                ErrorCode::USAGE,
                "{account}"
            );
        }
        for network in ["10.0.0.0", "10.0.0.0/33", "x/8", "::/129"] {
            let variables = BTreeMap::from([("VPC_CIDR_DEV".to_owned(), network.to_owned())]);
            let bad = InitAnswers {
                variables,
                ..good.clone()
            };
            assert!(check(&bad).is_err(), "{network}");
        }
    }
}
