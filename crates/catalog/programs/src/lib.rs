//! Reads components' programs without running them: what they export, what they need and what they import.
//!
//! TypeScript is parsed. Python is cut into its texts, brackets and names, which is enough for what a contract says;
//! whether it is right in every line only Python knows.
//!
//! [`ProgramReader`] reads where it is called, which is for programs that are known to be harmless. A server has
//! [`EnclosedReader`], which reads in a process that has limits.

mod enclosed;
mod python;
mod typescript;

use std::collections::BTreeMap;

pub use enclosed::{EnclosedReader, ReadingLimits, read_if_asked};
use nimbus_catalog::{ProgramLanguage, ProgramSurface, SourceProblem, SurfaceReader};

/// Reads programs of both languages.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramReader;

impl SurfaceReader for ProgramReader {
    fn read(
        &self,
        language: ProgramLanguage,
        files: &BTreeMap<String, String>,
    ) -> Result<ProgramSurface, Vec<SourceProblem>> {
        match language {
            ProgramLanguage::TypeScript => typescript::read(files),
            ProgramLanguage::Python => python::read(files),
        }
    }
}

fn missing(file: &str) -> Vec<SourceProblem> {
    vec![SourceProblem {
        file: file.to_owned(),
        line: None,
        message: "the program begins there, and it is not there".to_owned(),
    }]
}
