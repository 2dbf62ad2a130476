//! X2: programs that use up what there is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nimbus_engine_sandbox::{ExceededLimit, Intervention, ResourceLimits, SandboxSettings};

use crate::support::*;

fn limited(change: impl Fn(&mut ResourceLimits)) -> SandboxSettings {
    let mut settings = strict();
    change(&mut settings.limits);
    settings
}

/// Runs a greedy program and sees that it is stopped for that reason.
#[track_caller]
fn assert_stopped(
    test: &str,
    settings: SandboxSettings,
    node: &str,
    python: &str,
    expected: ExceededLimit,
) {
    in_each_language(test, |language, interpreter| {
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        let start = Instant::now();
        let outcome = program.run(settings.clone());
        let expected = Some(Intervention::Stopped(expected));
        assert_eq!(outcome.intervention, expected, "{language:?} {outcome:#?}");
        assert_eq!(outcome.signal, Some(9), "{language:?} {outcome:#?}");
        assert!(start.elapsed() < Duration::from_secs(120));
    });
}

const MIB: u64 = 1 << 20;

#[test]
fn a_fork_bomb_is_stopped() {
    let node = r#"
        const bomb = () => {
            const child = child_process.spawn("sleep", ["1000"]);
            child.on("error", () => {});
            setImmediate(bomb);
        };
        bomb();
    "#;
    let python = r#"
while True:
    try:
        os.fork()
    except OSError:
        pass
"#;
    // A child that has not begun its own program counts with its parent's memory, so a hundred of them
    // on a busy machine could reach that limit first.
    let settings = limited(|limits| {
        limits.processes = 100;
        limits.memory_bytes = 16384 * MIB;
    });
    let count = 100;
    assert_stopped(
        "fork bomb",
        settings,
        node,
        python,
        ExceededLimit::Processes { count },
    );
}

#[test]
fn endless_memory_is_stopped() {
    let node = r#"
        const kept = [];
        const more = () => { kept.push(Buffer.alloc(8 << 20, 1)); setImmediate(more); };
        more();
    "#;
    let python = r#"
kept = []
while True:
    kept.append(bytearray(os.urandom(1 << 20)) * 8)
"#;
    let settings = limited(|limits| limits.memory_bytes = 400 * MIB);
    let bytes = 400 * MIB;
    assert_stopped(
        "memory",
        settings,
        node,
        python,
        ExceededLimit::Memory { bytes },
    );
}

#[test]
fn memory_of_many_processes_is_counted_together() {
    let node = r#"
        const hog = "x='" + "y".repeat(100) + "'; const b = Buffer.alloc(120 << 20, 1); setInterval(() => b, 1000)";
        for (let n = 0; n < 6; n++) child_process.spawn(process.execPath, ["-e", hog]);
        setInterval(() => {}, 1000);
    "#;
    let python = r#"
for n in range(6):
    if os.fork() == 0:
        kept = bytearray(os.urandom(1 << 20)) * 120
        while True:
            import time
            time.sleep(1)
while True:
    import time
    time.sleep(1)
"#;
    let settings = limited(|limits| limits.memory_bytes = 500 * MIB);
    let bytes = 500 * MIB;
    assert_stopped(
        "memory of many",
        settings,
        node,
        python,
        ExceededLimit::Memory { bytes },
    );
}

#[test]
fn a_hundred_gigabytes_at_once_are_not_given() {
    in_each_language("a hundred gigabytes", |language, interpreter| {
        let node = r#"
            const kept = [];
            try {
                for (let n = 0; n < 100; n++) kept.push(new ArrayBuffer(1024 ** 3));
                report("all of it", "ALLOWED");
            } catch (error) { report("all of it", why(error)); }
        "#;
        let python = "attempt('all of it', lambda: len(bytearray(100 << 30)))";
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        program.run(strict()).assert_refused(&["all of it"]);
    });
}

#[test]
fn a_disk_filler_is_stopped() {
    let node = r#"
        const block = Buffer.alloc(1 << 20);
        const file = fs.openSync(path.join(process.env.TMPDIR, "big"), "w");
        const more = () => { try { fs.writeSync(file, block); } catch {} setImmediate(more); };
        more();
    "#;
    let python = r#"
file = open(os.environ["TMPDIR"] + "/big", "wb", buffering=0)
while True:
    try:
        file.write(bytes(1 << 20))
    except OSError:
        pass
"#;
    let settings = limited(|limits| limits.temporary_bytes = 32 * MIB);
    let bytes = 32 * MIB;
    assert_stopped(
        "disk",
        settings,
        node,
        python,
        ExceededLimit::TemporarySpace { bytes },
    );
}

#[test]
fn a_tree_of_a_million_files_is_stopped() {
    let node = r#"
        for (let n = 0; n < 1e6; n++) {
            try { fs.writeFileSync(path.join(process.env.TMPDIR, String(n)), ""); } catch {}
        }
    "#;
    let python = r#"
for n in range(10 ** 9):
    try:
        open(f"{os.environ['TMPDIR']}/{n}", "w").close()
    except OSError:
        pass
"#;
    let settings = limited(|limits| limits.temporary_files = 2000);
    let count = 2000;
    assert_stopped(
        "files",
        settings,
        node,
        python,
        ExceededLimit::TemporaryFiles { count },
    );
}

#[test]
fn a_collector_of_open_files_is_stopped() {
    let node = r#"
        const kept = [];
        const more = () => { try { kept.push(fs.openSync("/dev/null")); } catch {} setImmediate(more); };
        more();
    "#;
    let python = r#"
kept = []
while True:
    try:
        kept.append(open("/dev/null"))
    except OSError:
        pass
"#;
    let settings = limited(|limits| limits.open_files = 200);
    let count = 200;
    assert_stopped(
        "open files",
        settings,
        node,
        python,
        ExceededLimit::OpenFiles { count },
    );
}

/// What nineteen of twenty stay below.
fn p95(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() * 95 / 100 - 1]
}

/// How often both are measured, in turns, so that whatever else the machine does happens to both.
fn rounds() -> usize {
    let long = std::env::var_os("NIMBUS_TEST_LONG").is_some();
    if long { 20 } else { 4 }
}

const RUNS_PER_ROUND: usize = 5;
/// Others use the machine too, and nobody can tell their load from ours in one measurement.
const MEASUREMENTS: usize = 3;

/// While programs explode one after another, others do their work: nothing is counted against them,
/// and what they take at most doubles.
#[test]
fn neighbours_of_exploding_programs_work_on() {
    in_each_language("neighbours", |language, interpreter| {
        let bombs = [
            (
                "for (;;) child_process.spawnSync('sh', ['-c', 'sleep 1000 &'], { stdio: 'ignore' });",
                "while True:\n    os.system('sleep 1000 &')",
                ExceededLimit::Processes { count: 60 },
            ),
            (
                "const kept = []; const more = () => { kept.push(Buffer.alloc(8 << 20, 1)); setImmediate(more); }; more();",
                "kept = []\nwhile True:\n    kept.append(bytearray(os.urandom(1 << 20)) * 8)",
                ExceededLimit::Memory { bytes: 400 * MIB },
            ),
        ];
        let settings = limited(|limits| {
            limits.processes = 60;
            limits.memory_bytes = 400 * MIB;
        });
        let honest = source(
            language,
            "attempt('work', () => run('echo', 'hi'))",
            "attempt('work', lambda: run('echo', 'hi'))",
        );
        let honest = Hostile::new(language, interpreter.clone(), &honest);
        let work = || {
            let start = Instant::now();
            let outcome = honest.run(settings.clone());
            assert_eq!(outcome.intervention, None);
            let worked = outcome.attempts()["work"].starts_with("ALLOWED");
            assert!(worked, "{outcome:?}");
            start.elapsed()
        };
        let explode = |done: &AtomicBool| {
            let mut exploded = 0;
            // Each of them at least once, however fast the neighbours are.
            while exploded < bombs.len() || !done.load(Ordering::Relaxed) {
                let (node, python, cause) = bombs[exploded % bombs.len()];
                let bomb = source(language, node, python);
                let bomb = Hostile::new(language, interpreter.clone(), &bomb);
                let outcome = bomb.run(settings.clone());
                let expected = Some(Intervention::Stopped(cause));
                assert_eq!(outcome.intervention, expected, "{outcome:?}");
                exploded += 1;
            }
        };
        let measure = || {
            let (mut alone, mut beside) = (Vec::new(), Vec::new());
            for _ in 0..rounds() {
                alone.extend((0..RUNS_PER_ROUND).map(|_| work()));
                let done = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    let exploding = scope.spawn(|| explode(&done));
                    beside.extend((0..RUNS_PER_ROUND).map(|_| work()));
                    done.store(true, Ordering::Relaxed);
                    exploding.join().unwrap();
                });
            }
            let (alone, beside) = (p95(alone), p95(beside));
            println!("{language:?}: p95 {alone:?} alone, {beside:?} beside exploding programs");
            (alone, beside)
        };
        let mut measured = Vec::new();
        let doubles = |(alone, beside): &(Duration, Duration)| *beside <= *alone * 2;
        while measured.len() < MEASUREMENTS && !measured.last().is_some_and(doubles) {
            measured.push(measure());
        }
        assert!(measured.last().is_some_and(doubles), "{measured:?}");
    });
}
