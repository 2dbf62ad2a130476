//! The reference page of all settings, as Markdown.

use std::fmt::Write as _;

use serde_json::Value;

use crate::load::{CONFIG_VARIABLE, DEFAULT_FILE};
use crate::settings::{REGISTRY, SECTIONS, Settings};

/// `docs/reference/configuration.md`.
pub fn reference_page() -> String {
    let mut page = format!(
        "# Configuration\n\n\
         Generated from the code; `cargo xtask tidy` checks that it is current.\n\n\
         A setting is taken from the first of these that has it: a flag, a variable of the \
         environment, the file, the default. The file is `{DEFAULT_FILE}` below the working \
         directory, or the one named by `--config` or `{CONFIG_VARIABLE}`. An empty variable \
         counts as unset. Unknown keys and bad values are refused.\n\n\
         `nimbus config show --origin` prints what is in force and where it came from. Editors \
         check the file with [the schema](nimbus.schema.json): put \
         `# yaml-language-server: $schema=…` on its first line.\n"
    );
    let defaults = Settings::default().entries();
    for (section, doc) in SECTIONS {
        let doc: Vec<_> = doc.iter().map(|line| line.trim()).collect();
        let _ = write!(page, "\n## `{section}`\n\n{}\n\n", doc.join(" "));
        page.push_str("| key | variable | default | meaning |\n|---|---|---|---|\n");
        for (descriptor, entry) in REGISTRY.iter().zip(&defaults) {
            let in_section = descriptor
                .path
                .rsplit_once('.')
                .is_some_and(|(s, _)| s == *section);
            if !in_section {
                continue;
            }
            let default = match &entry.value {
                Value::Null if descriptor.secret => "secret, not set".to_owned(),
                Value::Null => "not set".to_owned(),
                Value::String(text) => format!("`{text}`"),
                value => format!("`{value}`"),
            };
            let _ = writeln!(
                page,
                "| `{}` | `{}` | {default} | {} |",
                descriptor.path,
                descriptor.variable,
                descriptor.doc()
            );
        }
    }
    page
}
