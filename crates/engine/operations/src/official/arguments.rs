//! A request as arguments of the official command line. No secret is ever among them.

use std::path::Path;

use nimbus_core::{Error, ErrorCode, Result, StackOperation};

use crate::request::{OperationOptions, OperationRequest, PolicyPackRequest, ResourceSelection};

/// Where the command line works.
pub(super) struct CliLocation<'a> {
    pub(super) directory: &'a Path,
    /// `organization/<project>/<stack>`.
    pub(super) stack: &'a str,
    /// The stack's settings, if they are not in their usual place.
    pub(super) config: Option<&'a Path>,
    pub(super) log: &'a Path,
}

pub(super) fn arguments(
    request: &OperationRequest,
    place: &CliLocation<'_>,
) -> Result<Vec<String>> {
    refuse_unsupported(request)?;
    let options = &request.options;
    let mut list = CliArguments::default();
    list.verb(request.operation, options.dry_run)?;
    list.value("--cwd", &place.directory.display().to_string());
    list.value("--stack", place.stack);
    list.flag("--non-interactive");
    list.value("--color", "never");
    list.value("--event-log", &place.log.display().to_string());
    if let Some(config) = place.config {
        list.value("--config-file", &config.display().to_string());
    }
    if let Some(parallel) = options.parallel {
        list.value("--parallel", &parallel.to_string());
    }
    if !options.message.is_empty() {
        list.value("--message", &options.message);
    }
    list.choice("--target", &options.targets);
    list.choice("--exclude", &options.excludes);
    match request.operation {
        StackOperation::Update => list.update(options),
        StackOperation::Destroy => {
            list.given("--refresh", options.refresh);
            list.given("--run-program", options.run_program);
        }
        StackOperation::Refresh => {
            list.given("--run-program", options.run_program);
            list.given("--clear-pending-creates", options.clear_pending_creates);
        }
        StackOperation::Import | StackOperation::Restore => {}
    }
    let goes_on = matches!(
        request.operation,
        StackOperation::Update | StackOperation::Destroy
    );
    list.given(
        "--continue-on-error",
        options.continue_on_error && goes_on && !options.dry_run,
    );
    Ok(list.0)
}

/// What the official command line cannot do, or would do differently from what was asked.
fn refuse_unsupported(request: &OperationRequest) -> Result<()> {
    let options = &request.options;
    let clears = options.clear_pending_creates && request.operation != StackOperation::Refresh;
    let configs = options
        .policy_packs
        .iter()
        .filter(|pack| pack.config.is_some());
    let configs = configs.count();
    let refused = [
        (
            matches!(request.operation, StackOperation::Import),
            "import resources this way",
        ),
        (
            matches!(request.operation, StackOperation::Restore),
            "bring a recorded state back",
        ),
        (
            options.plan.is_some() || options.save_plan.is_some(),
            "keep plans of Nimbus",
        ),
        (options.sandbox.is_some(), "run programs in the sandbox"),
        (
            !options.program_arguments.is_empty(),
            "give arguments to a program",
        ),
        (clears, "forget pending creates but in a refresh"),
        (
            configs > 0 && configs < options.policy_packs.len(),
            "configure some policy packs and not others",
        ),
    ];
    let Some((_, what)) = refused.iter().find(|(asked, _)| *asked) else {
        return Ok(());
    };
    let message = format!("the official command line cannot {what}");
    Err(Error::new(ErrorCode::OFFICIAL_CLI_UNSUPPORTED, message)
        .with_help("leave the option out, or use `--engine embedded`"))
}

#[derive(Default)]
struct CliArguments(Vec<String>);

impl CliArguments {
    fn verb(&mut self, operation: StackOperation, dry_run: bool) -> Result<()> {
        let words: &[&str] = match (operation, dry_run) {
            (StackOperation::Update, true) => &["preview"],
            (StackOperation::Update, false) => &["up", "--yes", "--skip-preview"],
            (StackOperation::Destroy, true) => &["destroy", "--preview-only"],
            (StackOperation::Destroy, false) => &["destroy", "--yes", "--skip-preview"],
            (StackOperation::Refresh, true) => &["refresh", "--preview-only"],
            (StackOperation::Refresh, false) => &["refresh", "--yes", "--skip-preview"],
            (StackOperation::Import | StackOperation::Restore, _) => {
                let message = "the official command line has no such operation";
                return Err(Error::new(ErrorCode::OFFICIAL_CLI_UNSUPPORTED, message));
            }
        };
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
        Ok(())
    }

    fn update(&mut self, options: &OperationOptions) {
        self.given("--refresh", options.refresh);
        for urn in &options.replace {
            self.value("--replace", urn);
        }
        for PolicyPackRequest { folder, config } in &options.policy_packs {
            self.value("--policy-pack", &folder.display().to_string());
            if let Some(config) = config {
                self.value("--policy-pack-config", &config.display().to_string());
            }
        }
    }

    fn choice(&mut self, flag: &str, choice: &ResourceSelection) {
        for pattern in &choice.patterns {
            self.value(flag, pattern);
        }
        self.given(&format!("{flag}-dependents"), choice.dependents);
    }

    fn given(&mut self, flag: &str, given: bool) {
        if given {
            self.flag(flag);
        }
    }

    fn flag(&mut self, flag: &str) {
        self.0.push(flag.to_owned());
    }

    /// In one word, so that a value cannot be taken for a flag.
    fn value(&mut self, flag: &str, value: &str) {
        self.0.push(format!("{flag}={value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::StackLocation;

    fn words(operation: StackOperation, options: OperationOptions) -> Result<String> {
        let request = OperationRequest {
            location: StackLocation::default(),
            operation,
            options,
        };
        let place = CliLocation {
            directory: Path::new("/program"),
            stack: "organization/p/dev",
            config: None,
            log: Path::new("/log"),
        };
        arguments(&request, &place).map(|words| words.join(" "))
    }

    const COMMON: &str = "--cwd=/program --stack=organization/p/dev --non-interactive --color=never --event-log=/log";

    #[test]
    fn every_operation_has_its_command() {
        for (operation, dry_run, start) in [
            (StackOperation::Update, true, "preview"),
            (StackOperation::Update, false, "up --yes --skip-preview"),
            (StackOperation::Destroy, true, "destroy --preview-only"),
            (
                StackOperation::Destroy,
                false,
                "destroy --yes --skip-preview",
            ),
            (StackOperation::Refresh, true, "refresh --preview-only"),
            (
                StackOperation::Refresh,
                false,
                "refresh --yes --skip-preview",
            ),
        ] {
            let options = OperationOptions {
                dry_run,
                ..OperationOptions::default()
            };
            let words = words(operation, options).expect("supported");
            assert_eq!(words, format!("{start} {COMMON}"));
        }
    }

    #[test]
    fn options_are_passed_on_and_values_cannot_become_flags() {
        let options = OperationOptions {
            parallel: Some(3),
            continue_on_error: true,
            refresh: true,
            message: "--yes".to_owned(),
            targets: ResourceSelection {
                patterns: vec!["**a".to_owned()],
                dependents: true,
            },
            replace: vec!["urn:x".to_owned()],
            ..OperationOptions::default()
        };
        let words = words(StackOperation::Update, options).expect("supported");
        let rest = "--parallel=3 --message=--yes --target=**a --target-dependents --refresh \
                    --replace=urn:x --continue-on-error";
        assert_eq!(words, format!("up --yes --skip-preview {COMMON} {rest}"));
    }

    #[test]
    fn what_would_silently_be_left_out_is_refused() {
        let plan = OperationOptions {
            plan: Some("plan.json".into()),
            ..OperationOptions::default()
        };
        let arguments = OperationOptions {
            program_arguments: vec!["x".to_owned()],
            ..OperationOptions::default()
        };
        let clears = OperationOptions {
            clear_pending_creates: true,
            ..OperationOptions::default()
        };
        for options in [plan, arguments, clears] {
            let error = words(StackOperation::Update, options).expect_err("refused");
            assert_eq!(error.code(), ErrorCode::OFFICIAL_CLI_UNSUPPORTED);
        }
        let import = words(StackOperation::Import, OperationOptions::default());
        assert!(import.is_err());
    }
}
