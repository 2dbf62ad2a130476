//! What the Node SDK prints when the engine has turned it away already.
//!
//! A request that comes after the end of a deployment gets an answer that the SDK would like to report,
//! with a trace of its own code. By then it has closed its connection to the engine, so it prints the
//! report, and that it could not deliver it. The reason for the end was told before; this adds nothing.
//! Reports of anything else that it could not deliver are shown like every other line.

const BEGINS: &str = "failed to deliver log message.";
const ENDS: &str = "message severity:";
/// What the monitor answers to requests that come too late.
const TURNED_AWAY: &str = "the deployment is ending";
/// A report is not longer; what is would be held back for nothing.
const MOST_LINES: usize = 100;

/// Lines that may turn out to be such a report.
#[derive(Default)]
pub(super) struct LateReports {
    held: Vec<String>,
}

impl LateReports {
    /// The lines that are to be shown now.
    pub(super) fn pass(&mut self, line: String) -> Vec<String> {
        if self.held.is_empty() && !line.starts_with(BEGINS) {
            return vec![line];
        }
        let is_end = line.trim_start().starts_with(ENDS);
        self.held.push(line);
        if !is_end && self.held.len() < MOST_LINES {
            return Vec::new();
        }
        let report = std::mem::take(&mut self.held);
        let is_known = report.iter().any(|line| line.contains(TURNED_AWAY));
        if is_end && is_known {
            Vec::new()
        } else {
            report
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[&str]) -> Vec<String> {
        let mut reports = LateReports::default();
        let lines = lines.iter().map(|line| (*line).to_owned());
        lines.flat_map(|line| reports.pass(line)).collect()
    }

    #[test]
    fn a_report_about_being_turned_away_is_not_shown() {
        let lines = [
            "before",
            "failed to deliver log message. ",
            "error: Error: Channel has been shut down ",
            "original message: Error: 14 UNAVAILABLE: the deployment is ending",
            "    at callErrorFromStatus (call.ts:84:17)",
            " message severity: error",
            "after",
        ];
        assert_eq!(shown(&lines), ["before", "after"]);
    }

    #[test]
    fn another_message_that_was_not_delivered_is_shown_whole() {
        let lines = [
            "failed to deliver log message. ",
            "error: Error: Channel has been shut down ",
            "original message: what the program wanted to say",
            " message severity: error",
        ];
        assert_eq!(shown(&lines), lines);
    }

    #[test]
    fn lines_that_only_begin_like_one_are_not_held_for_ever() {
        let mut lines = vec!["failed to deliver log message. "];
        lines.resize(MOST_LINES + 1, "more");
        assert_eq!(shown(&lines).len(), MOST_LINES + 1);
    }
}
