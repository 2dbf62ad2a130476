//! What happened to the tests of a whole run.

use std::collections::BTreeMap;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// Switched off in the source. Tidy forbids these, so they are shown as what they are.
    pub(super) ignored: usize,
    /// How many tests were skipped for which reason.
    pub(super) skipped: BTreeMap<String, usize>,
}

impl Counts {
    /// Adds up the closing lines of test binaries:
    /// `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
    pub(super) fn read_line(&mut self, line: &str) {
        let Some((_, numbers)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in numbers.split(';') {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<usize>() else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// Reads lines `SKIPPED(no pulumi CLI): some::test`. A line of another form is counted under its
    /// own text: whatever it means, that test did not pass.
    pub(super) fn read_skips(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let reason = line
                .strip_prefix("SKIPPED(")
                .and_then(|rest| rest.split_once("): "))
                .map_or(line, |(reason, _)| reason);
            *self.skipped.entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// A skipped test returned early, so its binary counted it as passed.
    pub(super) fn closing_line(&self) -> String {
        let skipped: usize = self.skipped.values().sum();
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed.saturating_sub(skipped),
            self.failed,
            skipped + self.ignored
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_binaries_are_added_up() {
        let mut counts = Counts::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 9 filtered out",
        ] {
            counts.read_line(line);
        }
        assert_eq!((counts.passed, counts.failed, counts.ignored), (5, 1, 1));
    }

    #[test]
    fn skipped_tests_are_counted_by_reason_and_not_as_passed() {
        let mut counts = Counts {
            passed: 10,
            failed: 1,
            ..Counts::default()
        };
        counts.read_skips(
            "SKIPPED(no pulumi CLI): a::b\nSKIPPED(no S3 server): c\n\n\
             SKIPPED(no pulumi CLI): d\nin words of its own\n",
        );
        assert_eq!(counts.skipped["no pulumi CLI"], 2);
        assert_eq!(counts.skipped["in words of its own"], 1);
        assert_eq!(counts.closing_line(), "6 passed, 1 failed, 4 skipped");
    }
}
