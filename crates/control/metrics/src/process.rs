//! What the system says about this process. Where it says nothing, nothing is told.

use std::fs;

/// Ticks of `/proc/self/stat` in a second; the same on every Linux that Nimbus runs on.
const TICKS: f64 = 100.0;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessFigures {
    pub(crate) resident_bytes: i64,
    pub(crate) cpu_seconds: f64,
    pub(crate) open_files: i64,
    pub(crate) threads: i64,
}

pub(crate) fn figures() -> ProcessFigures {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let open_files = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count());
    ProcessFigures {
        open_files: i64::try_from(open_files).unwrap_or(i64::MAX),
        resident_bytes: of_status(&status, "VmRSS:") * 1024,
        threads: of_status(&status, "Threads:"),
        cpu_seconds: cpu_seconds(&stat),
    }
}

/// The number in a line such as `VmRSS:    1234 kB`.
fn of_status(status: &str, field: &str) -> i64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

/// The program's name is in brackets and may have anything in it, so fields are counted after the last one.
fn cpu_seconds(stat: &str) -> f64 {
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().collect())
        .unwrap_or_default();
    let number = |index: usize| -> i64 {
        fields
            .get(index)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    };
    (number(11) + number(12)) as f64 / TICKS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_moves_no_field() {
        let stat = "42 (a) b (c) S 1 1 1 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 100 1000 256 18446744073709551615";
        assert!((cpu_seconds(stat) - 2.0).abs() < 0.001);
        let status = "Name:\tnimbus\nVmRSS:\t    2048 kB\nThreads:\t9\n";
        assert_eq!(of_status(status, "VmRSS:"), 2048);
        assert_eq!(of_status(status, "Threads:"), 9);
        assert_eq!(of_status(status, "VmSwap:"), 0);
    }
}
