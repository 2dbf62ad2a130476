//! Programs that are written against the parser end with their reader, in time, and nothing else does.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use nimbus_catalog::{ProgramLanguage, SourceProblem, SurfaceReader as _};
use nimbus_catalog_programs::{EnclosedReader, ProgramReader, ReadingLimits};

fn reader(program: &str, time: Duration) -> EnclosedReader {
    let limits = ReadingLimits {
        time,
        ..ReadingLimits::default()
    };
    EnclosedReader::new(Path::new(program).to_owned(), limits)
}

fn ours(time: Duration) -> EnclosedReader {
    reader(env!("CARGO_BIN_EXE_nimbus-surface-reader"), time)
}

fn program(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("src/index.ts".to_owned(), text.to_owned())])
}

/// Readers that this thread started and that are still there.
fn children() -> String {
    // Where the kernel does not tell, there is nothing to look at.
    std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default()
}

#[test]
fn a_process_reads_what_a_thread_reads() {
    let files = program(
        "import * as pulumi from '@pulumi/pulumi';\nexport const id = new pulumi.Config().require('size');\n",
    );
    let read = ours(Duration::from_secs(60)).read(ProgramLanguage::TypeScript, &files);
    assert!(
        read.as_ref()
            .is_ok_and(|found| found.outputs.contains("id"))
    );
    assert_eq!(
        read,
        ProgramReader.read(ProgramLanguage::TypeScript, &files)
    );
    let wrong = program("export const a = ;");
    let refused = ours(Duration::from_secs(60)).read(ProgramLanguage::TypeScript, &wrong);
    assert!(refused.is_err());
    assert_eq!(
        refused,
        ProgramReader.read(ProgramLanguage::TypeScript, &wrong)
    );
    let python = BTreeMap::from([(
        "src/__main__.py".to_owned(),
        "import pulumi\npulumi.export('id', 1)\n".to_owned(),
    )]);
    let read = ours(Duration::from_secs(60)).read(ProgramLanguage::Python, &python);
    assert!(read.is_ok_and(|found| found.outputs.contains("id")));
}

#[test]
fn programs_against_the_parser_end_in_time_and_leave_nothing_running() {
    let time = Duration::from_secs(3);
    for bomb in [
        format!("{};", "a:".repeat(9_000)),
        format!("{}b", "a<".repeat(9_500)),
        "<a>".repeat(6_000),
        format!("const a = {}1;", "`${".repeat(5_000)),
        format!("const a = {}1;", "await ".repeat(9_000)),
        format!("type A = {}1;", "a extends b ? c : ".repeat(2_500)),
    ] {
        let began = Instant::now();
        let read = ours(time).read(ProgramLanguage::TypeScript, &program(&bomb));
        let took = began.elapsed();
        // Read or refused: what matters is that it is over, here and in the process.
        assert!(took < Duration::from_secs(20), "{took:?}: {read:?}");
        assert_eq!(children(), "", "a reader is left behind");
    }
}

#[test]
fn what_takes_too_much_is_told_as_the_programs_problem() {
    let labels = program(&format!("{};", "a:".repeat(9_000)));
    let refused = ours(Duration::from_secs(3)).read(ProgramLanguage::TypeScript, &labels);
    let told = |problems: Vec<SourceProblem>| problems[0].message.clone();
    assert!(told(refused.expect_err("it takes gigabytes")).contains("takes more than"));
    // And a program that is no reader, or is not there, is not taken for an answer.
    let fine = program("export const a = 1;");
    let time = Duration::from_secs(3);
    for other in ["/bin/true", "/nowhere/at/all"] {
        assert!(
            reader(other, time)
                .read(ProgramLanguage::TypeScript, &fine)
                .is_err()
        );
    }
}
