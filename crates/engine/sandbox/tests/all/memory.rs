//! X2: memory is all memory, under whichever name.

use std::fs;

use nimbus_engine_sandbox::{
    ExceededLimit, Intervention, Primitive, ResourceLimits, SandboxSettings,
};
use nimbus_test_tools::record_skip;

use crate::support::*;

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 300 * MIB;

fn limited() -> SandboxSettings {
    let mut settings = strict();
    settings.limits = ResourceLimits {
        memory_bytes: LIMIT,
        ..ResourceLimits::default()
    };
    settings
}

#[track_caller]
fn assert_stopped_for_memory(test: &str, node: &str, python: &str) {
    in_each_language(test, |language, interpreter| {
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        let outcome = program.run(limited());
        let expected = Some(Intervention::Stopped(ExceededLimit::Memory {
            bytes: LIMIT,
        }));
        assert_eq!(outcome.intervention, expected, "{language:?} {outcome:#?}");
    });
}

/// Neither of the two is too much.
#[test]
fn temporary_files_are_memory() {
    let node = r#"
        const kept = Buffer.alloc(160 << 20, 1);
        for (let n = 0; n < 160; n++) {
            fs.appendFileSync(path.join(process.env.TMPDIR, "big"), Buffer.alloc(1 << 20, 1));
        }
        setInterval(() => kept, 1000);
    "#;
    let python = r#"
import time
kept = bytearray(os.urandom(1 << 20)) * 160
with open(os.environ["TMPDIR"] + "/big", "wb") as file:
    for n in range(160):
        file.write(bytes(1 << 20))
while True:
    time.sleep(1)
"#;
    assert_stopped_for_memory("temporary files", node, python);
}

/// The same for the folder of shared memory, and for a file that has no name any more.
#[test]
fn shared_memory_and_nameless_files_are_memory() {
    let node = r#"
        const kept = Buffer.alloc(220 << 20, 1);
        const file = fs.openSync("/dev/shm/big", "w");
        fs.unlinkSync("/dev/shm/big");
        for (let n = 0; n < 100; n++) fs.writeSync(file, Buffer.alloc(1 << 20, 1));
        setInterval(() => kept, 1000);
    "#;
    let python = r#"
import time
kept = bytearray(os.urandom(1 << 20)) * 220
file = open("/dev/shm/big", "wb")
os.unlink("/dev/shm/big")
for n in range(100):
    file.write(bytes(1 << 20))
file.flush()
while True:
    time.sleep(1)
"#;
    assert_stopped_for_memory("shared memory", node, python);
}

/// What waits in sockets belongs to nobody's process.
#[test]
fn what_waits_in_sockets_is_memory() {
    let node = r#"
        const place = path.join(process.env.TMPDIR, "socket");
        const kept = [];
        const server = net.createServer((socket) => { socket.pause(); kept.push(socket); });
        server.listen(place, () => {
            const more = () => {
                const socket = net.connect(place, () => {
                    socket.write(Buffer.alloc(1 << 20, 1));
                    kept.push(socket);
                    setImmediate(more);
                });
                socket.on("error", () => {});
            };
            more();
        });
    "#;
    let python = r#"
kept = []
while True:
    try:
        one, other = socket.socketpair()
        one.setblocking(False)
        kept += [one, other]
        one.send(bytes(1 << 20))
    except OSError:
        pass
"#;
    assert_stopped_for_memory("sockets", node, python);
}

/// Where only the sandbox counts, memory that it could not see is not given.
#[test]
fn memory_without_a_name_is_not_given() {
    let test = "memory without a name";
    if probe().has(Primitive::Cgroup) {
        record_skip("the kernel's control groups count it", test);
        return;
    }
    const ATTEMPTS: [&str; 8] = [
        "a file in memory",
        "a secret file in memory",
        "System V memory",
        "System V messages",
        "System V semaphores",
        "shared memory without a file",
        "the device of zeros",
        "a socket that holds more",
    ];
    let node = r#"
        const call = (number, ...args) => () =>
            run("perl", "-e", `exit(syscall(${[number, ...args].join(",")}) == -1 ? $!+0 : 0)`);
        attempt("a file in memory", call(319, '"x"', 0));
        attempt("a secret file in memory", call(447, 0));
        attempt("System V memory", call(29, 0, 1 << 30, 0o1600));
        attempt("System V messages", call(68, 0, 0o1600));
        attempt("System V semaphores", call(64, 0, 30000, 0o1600));
        attempt("shared memory without a file", call(9, 0, 1 << 20, 3, 0x21, -1, 0));
        attempt("the device of zeros", () => fs.openSync("/dev/zero", "r+"));
        const larger = "socketpair(A, B, AF_UNIX, SOCK_STREAM, 0); $was = getsockopt(A, SOL_SOCKET, SO_SNDBUF);" +
            "setsockopt(A, SOL_SOCKET, SO_SNDBUF, 4194304); exit($was eq getsockopt(A, SOL_SOCKET, SO_SNDBUF) ? 1 : 0)";
        attempt("a socket that holds more", () => run("perl", "-MSocket", "-e", larger));
    "#;
    let python = r#"
import mmap
attempt("a file in memory", lambda: os.memfd_create("x"))
attempt("a secret file in memory", lambda: syscall(447, 0))
attempt("System V memory", lambda: syscall(29, 0, 1 << 30, 0o1600))
attempt("System V messages", lambda: syscall(68, 0, 0o1600))
attempt("System V semaphores", lambda: syscall(64, 0, 30000, 0o1600))
attempt("shared memory without a file", lambda: mmap.mmap(-1, 1 << 20))
attempt("the device of zeros", lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), 1 << 20))
def larger():
    one, other = socket.socketpair()
    was = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    if one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == was:
        raise OSError("it holds what it held")
attempt("a socket that holds more", larger)
"#;
    in_each_language(test, |language, interpreter| {
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        program.run(strict()).assert_refused(&ATTEMPTS);
    });
}

/// Nor memory that the kernel holds on to for somebody: pages in pipes and sockets, filters, rules, tables.
#[test]
fn memory_of_the_kernel_is_not_given() {
    let test = "memory of the kernel";
    if probe().has(Primitive::Cgroup) {
        record_skip("the kernel's control groups count it", test);
        return;
    }
    const ATTEMPTS: [&str; 11] = [
        "pages of a process in a pipe",
        "pages of one pipe in another",
        "a second end of a pipe's pages",
        "a table of futexes",
        "huge pages",
        "huge pages again",
        "rules of landlock",
        "filters of system calls without an end",
        "a filter of a socket",
        "a socket with many ways",
        "a socket with half a checksum",
    ];
    let node = r#"
        const perl = (text) => run("perl", "-MSocket", "-e", text);
        const call = (...args) => () => perl(`exit(syscall(${args.join(",")}) == -1 ? $!+0 : 0)`);
        const pipes = "pipe(R, W); pipe(S, X); syswrite(W, 'abc');";
        const ends = (body) => () => perl(`${pipes} exit((${body}) == -1 ? $!+0 : 0)`);
        attempt("pages of a process in a pipe", ends(
            "$b = 'x' x 4096, $v = pack('QQ', unpack('Q', pack('P', $b)), 4096), syscall(278, fileno(W), $v, 1, 0)"));
        attempt("pages of one pipe in another", ends("syscall(275, fileno(R), 0, fileno(X), 0, 1, 0)"));
        attempt("a second end of a pipe's pages", ends("syscall(276, fileno(R), fileno(X), 1, 0)"));
        attempt("a table of futexes", call(157, 78, 1, 16, 0, 0));
        attempt("huge pages", () => {
            const status = fs.readFileSync("/proc/self/status", "utf8");
            if (/^THP_enabled:\s*0$/m.test(status)) throw new Error("none");
        });
        attempt("huge pages again", call(157, 41, 0, 0, 0, 0));
        attempt("rules of landlock", call(444, 0, 0, 1));
        attempt("filters of system calls without an end", () => perl("syscall(157, 38, 1, 0, 0, 0);" +
            "$c = pack('SCCL', 6, 0, 0, 0x7fff0000) x 4096; $p = pack('Sx6P', 4096, $c);" +
            "for (1..64) { exit($!+0) if syscall(317, 1, 0, $p) == -1 } exit(0)"));
        attempt("a filter of a socket", () => perl("socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0);" +
            "$p = pack('SCCL', 6, 0, 0, 65535); exit(setsockopt(A, SOL_SOCKET, 26, pack('Sx6P', 1, $p)) ? 0 : 1)"));
        attempt("a socket with many ways", call(41, 2, 1, 262));
        attempt("a socket with half a checksum", call(41, 2, 2, 136));
    "#;
    let python = r#"
import ctypes, struct
def pipes():
    r, w = os.pipe()
    s, x = os.pipe()
    os.write(w, b"abc")
    return r, w, s, x
def pages():
    r, w, s, x = pipes()
    page = ctypes.create_string_buffer(4096)
    vector = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(page), 4096))
    syscall(278, w, vector, 1, 0)
def spliced():
    r, w, s, x = pipes()
    syscall(275, r, 0, x, 0, 1, 0)
def twice():
    r, w, s, x = pipes()
    syscall(276, r, x, 1, 0)
def huge():
    if any(line.split() == ["THP_enabled:", "0"] for line in open("/proc/self/status")):
        raise OSError("none")
def filtered():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 65535))
    one.setsockopt(socket.SOL_SOCKET, 26, struct.pack("H6xQ", 1, ctypes.addressof(code)))
def filters():
    code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000) * 4096)
    program = ctypes.create_string_buffer(struct.pack("H6xQ", 4096, ctypes.addressof(code)))
    for _ in range(64):
        syscall(317, 1, 0, program)
attempt("pages of a process in a pipe", pages)
attempt("pages of one pipe in another", spliced)
attempt("a second end of a pipe's pages", twice)
attempt("a table of futexes", lambda: syscall(157, 78, 1, 16, 0, 0))
attempt("huge pages", huge)
attempt("huge pages again", lambda: syscall(157, 41, 0, 0, 0, 0))
attempt("rules of landlock", lambda: syscall(444, 0, 0, 1))
attempt("a filter of a socket", filtered)
attempt("a socket with many ways", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt("a socket with half a checksum", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136))
# Every filter that was taken slows down what follows.
attempt("filters of system calls without an end", filters)
"#;
    in_each_language(test, |language, interpreter| {
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        program.run(strict()).assert_refused(&ATTEMPTS);
    });
}

/// No privilege over files is left, nor a way to get one.
#[test]
fn no_privilege_survives() {
    let node = r#"
        const status = fs.readFileSync("/proc/self/status", "utf8");
        for (const line of status.split("\n").filter((line) => line.startsWith("Cap"))) report("set", line);
        attempt("somebody's file", () => fs.readFileSync(path.join(__dirname, "closed")));
    "#;
    let python = r#"
for line in open("/proc/self/status"):
    if line.startswith("Cap"):
        report("set", line.strip())
attempt("somebody's file", lambda: read(os.path.join(os.path.dirname(__file__), "closed")))
"#;
    in_each_language("privileges", |language, interpreter| {
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        let closed = program.directory.path().join("closed");
        fs::write(&closed, "of somebody else").unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o600)).unwrap();
        // Only the superuser can give a file away; everybody else's closed files are their own.
        let given = nix::unistd::chown(&closed, Some(12345.into()), Some(12345.into())).is_ok();
        let outcome = program.run(strict());
        let sets: Vec<_> = outcome
            .stdout
            .lines()
            .filter(|line| line.starts_with("set: "))
            .collect();
        assert_eq!(sets.len(), 5, "{outcome:#?}");
        for set in sets {
            let bits = set.rsplit(['\t', ' ']).next().unwrap();
            assert!(bits.trim_matches('0').is_empty(), "{set}");
        }
        match given {
            true => outcome.assert_refused(&["somebody's file"]),
            false => record_skip("not the superuser", "closed files of others"),
        }
    });
}

/// Of the system's settings only what a client of TLS and a resolver of names need.
#[test]
fn no_key_of_the_system_is_seen() {
    const ATTEMPTS: [&str; 6] = [
        "/etc/ssl/private",
        "/etc/pki/tls/private",
        "/etc/ssh",
        "/etc/shadow",
        "/etc/machine-id",
        "/etc/fstab",
    ];
    let node = format!(
        "for (const p of {ATTEMPTS:?}) attempt(p, () => fs.statSync(p));\n\
         let names = ''; try {{ names = fs.readdirSync('/etc').sort().join(' '); }} catch (_) {{}}\n\
         report('folders', names);"
    );
    let python = format!(
        "for p in {ATTEMPTS:?}:\n    attempt(p, lambda: os.stat(p))\n\
         try:\n    names = ' '.join(sorted(os.listdir('/etc')))\nexcept OSError:\n    names = ''\n\
         report('folders', names)\n"
    );
    in_each_language("keys", |language, interpreter| {
        let program = Hostile::new(language, interpreter, &source(language, &node, &python));
        let outcome = program.run(strict());
        outcome.assert_refused(&ATTEMPTS);
        let known = [
            "alternatives",
            "ca-certificates",
            "crypto-policies",
            "group",
            "hosts",
            "ld.so.cache",
            "localtime",
            "nsswitch.conf",
            "passwd",
            "pki",
            "ssl",
        ];
        // Where the folder cannot even be listed there is nothing to see.
        let folders = outcome.attempts()["folders"];
        for name in folders.split(' ').filter(|name| !name.is_empty()) {
            assert!(known.contains(&name), "{name} of /etc is seen");
        }
    });
}
