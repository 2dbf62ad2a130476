//! X1, X6 and X8: what a program can read, see and connect to.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use nimbus_engine_sandbox::{ProgramNetwork, Sandbox};

use crate::support::*;

/// What lies around on a machine that runs programs of several tenants.
struct Neighbourhood {
    place: tempfile::TempDir,
    _sockets: Vec<UnixListener>,
    /// Stands for databases, workflow servers and whatever else listens on a machine.
    service: TcpListener,
    _service_v6: Option<TcpListener>,
}

impl Neighbourhood {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let file = |path: &str| {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "secret").unwrap();
        };
        for path in [
            "home/.ssh/id_rsa",
            "config/nimbus.yaml",
            "runs/other/state.json",
        ] {
            file(path);
        }
        let mut sockets = ["docker.sock", "runs/other/engine"]
            .map(|path| UnixListener::bind(place.path().join(path)).unwrap())
            .into_iter()
            .collect::<Vec<_>>();
        // Desktops and containers have sockets that no file system knows.
        let name = place.path().as_os_str().as_encoded_bytes();
        let unnamed = SocketAddr::from_abstract_name(name).unwrap();
        sockets.push(UnixListener::bind_addr(&unnamed).unwrap());
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = service.local_addr().unwrap().port();
        Self {
            _sockets: sockets,
            _service_v6: TcpListener::bind(("::1", port)).ok(),
            service,
            place,
        }
    }

    fn port(&self) -> String {
        self.service.local_addr().unwrap().port().to_string()
    }
}

const FILES: [&str; 8] = [
    "environment of the first process",
    "environment of the engine",
    "memory of the engine",
    "ssh key",
    "server configuration",
    "other run",
    "shadow passwords",
    "machine id",
];

const NODE_FILES: &str = r#"
const [place, port, engine] = process.argv.slice(2);
attempt("environment of the first process", () => fs.readFileSync("/proc/1/environ"));
attempt("environment of the engine", () => fs.readFileSync(`/proc/${engine}/environ`));
attempt("memory of the engine", () => fs.readFileSync(`/proc/${engine}/mem`));
attempt("ssh key", () => fs.readFileSync(`${place}/home/.ssh/id_rsa`));
attempt("server configuration", () => fs.readFileSync(`${place}/config/nimbus.yaml`));
attempt("other run", () => fs.readdirSync(`${place}/runs/other`));
attempt("shadow passwords", () => fs.readFileSync("/etc/shadow"));
attempt("machine id", () => fs.readFileSync("/etc/machine-id"));
report("processes", fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).length);
"#;

const PYTHON_FILES: &str = r#"
place, port, engine = sys.argv[1:4]
attempt("environment of the first process", lambda: read("/proc/1/environ"))
attempt("environment of the engine", lambda: read(f"/proc/{engine}/environ"))
PTRACE_ATTACH = 16
attempt("memory of the engine", lambda: syscall(101, PTRACE_ATTACH, int(engine), 0, 0))
attempt("ssh key", lambda: read(f"{place}/home/.ssh/id_rsa"))
attempt("server configuration", lambda: read(f"{place}/config/nimbus.yaml"))
attempt("other run", lambda: os.listdir(f"{place}/runs/other"))
attempt("shadow passwords", lambda: read("/etc/shadow"))
attempt("machine id", lambda: read("/etc/machine-id"))
report("processes", len([name for name in os.listdir("/proc") if name.isdigit()]))
"#;

#[test]
fn files_and_processes_of_others_are_not_there() {
    in_each_language("files of others", |language, interpreter| {
        let neighbours = Neighbourhood::new();
        let program = source(language, NODE_FILES, PYTHON_FILES);
        let program = Hostile::new(language, interpreter, &program)
            .argument(neighbours.place.path())
            .argument(neighbours.port())
            .argument(std::process::id().to_string());
        let outcome = program.run(strict());
        outcome.assert_refused(&FILES);
        // The program and nobody else; the first process cannot be seen.
        assert_eq!(outcome.attempts()["processes"], "1");
    });
}

/// Everything by which a program could tell which machine this is, who runs it there and where.
const NODE_MACHINE: &str = r#"
const os = require("os");
for (const name of ["cmdline", "environ", "status", "stat", "comm", "mountinfo", "cgroup", "uid_map"])
    attempt(`${name} of the first process`, () => fs.readFileSync(`/proc/1/${name}`));
attempt("the first process", () => { if (!fs.readdirSync("/proc").includes("1")) throw new Error("none"); });
const filled = (file) => () => { if (fs.readFileSync(file).length === 0) throw new Error("empty"); };
for (const name of ["cmdline", "version", "keys", "modules", "partitions", "diskstats", "interrupts", "swaps"])
    attempt(`/proc/${name}`, filled(`/proc/${name}`));
for (const name of ["kernel/random/boot_id", "kernel/version", "kernel/core_pattern", "vm/swappiness", "fs/file-nr"])
    attempt(`/proc/sys/${name}`, filled(`/proc/sys/${name}`));
for (const folder of ["bus", "fs", "irq", "tty", "driver"])
    attempt(`/proc/${folder}`, () => { if (fs.readdirSync(`/proc/${folder}`).length === 0) throw new Error("empty"); });
attempt("/sys", () => fs.readdirSync("/sys"));
report("uid", process.getuid());
report("gid", process.getgid());
report("groups", process.getgroups().join());
report("uid_map", fs.readFileSync("/proc/self/uid_map", "utf8").trim().split(/\s+/).join());
report("gid_map", fs.readFileSync("/proc/self/gid_map", "utf8").trim().split(/\s+/).join());
report("cgroup", fs.readFileSync("/proc/self/cgroup", "utf8").trim().split("\n").map((l) => l.split(":")[2]).join());
report("host", os.hostname());
report("numbers in mounts", fs.readFileSync("/proc/self/mountinfo", "utf8").split("\n").filter((line) => line.includes(" - tmpfs ") && /[ug]id=/.test(line)).length);
report("domain", fs.readFileSync("/proc/sys/kernel/domainname", "utf8").trim());
report("interfaces", fs.readFileSync("/proc/net/dev", "utf8").split("\n").slice(2).filter(Boolean).map((l) => l.split(":")[0].trim()).join());
const owners = ["/", "/usr", "/tmp", "/proc/self", __filename].map((file) => fs.statSync(file).uid);
report("owners", [...new Set(owners)].sort().join());
"#;

const PYTHON_MACHINE: &str = r#"
for name in ["cmdline", "environ", "status", "stat", "comm", "mountinfo", "cgroup", "uid_map"]:
    attempt(f"{name} of the first process", lambda: read(f"/proc/1/{name}"))

def holds(true):
    assert true, "none"

attempt("the first process", lambda: holds("1" in os.listdir("/proc")))
for name in ["cmdline", "version", "keys", "modules", "partitions", "diskstats", "interrupts", "swaps"]:
    attempt(f"/proc/{name}", lambda: holds(read(f"/proc/{name}")))
for name in ["kernel/random/boot_id", "kernel/version", "kernel/core_pattern", "vm/swappiness", "fs/file-nr"]:
    attempt(f"/proc/sys/{name}", lambda: holds(read(f"/proc/sys/{name}")))
for folder in ["bus", "fs", "irq", "tty", "driver"]:
    attempt(f"/proc/{folder}", lambda: holds(os.listdir(f"/proc/{folder}")))
attempt("/sys", lambda: os.listdir("/sys"))
text = lambda path: open(path).read().strip()
report("uid", os.getuid())
report("gid", os.getgid())
report("groups", ",".join(map(str, os.getgroups())))
report("uid_map", ",".join(text("/proc/self/uid_map").split()))
report("gid_map", ",".join(text("/proc/self/gid_map").split()))
report("cgroup", ",".join(line.split(":")[2] for line in text("/proc/self/cgroup").splitlines()))
report("host", os.uname().nodename)
report("numbers in mounts", sum(" - tmpfs " in line and ("uid=" in line or "gid=" in line) for line in text("/proc/self/mountinfo").splitlines()))
report("domain", text("/proc/sys/kernel/domainname"))
report("interfaces", ",".join(line.split(":")[0].strip() for line in text("/proc/net/dev").splitlines()[2:]))
owners = {os.stat(file).st_uid for file in ["/", "/usr", "/tmp", "/proc/self", __file__]}
report("owners", ",".join(map(str, sorted(owners))))
"#;

#[test]
fn neither_the_machine_nor_its_user_nor_the_helper_can_be_told() {
    in_each_language("the machine", |language, interpreter| {
        let program = source(language, NODE_MACHINE, PYTHON_MACHINE);
        let outcome = Hostile::new(language, interpreter, &program).run(strict());
        let first = [
            "cmdline",
            "environ",
            "status",
            "stat",
            "comm",
            "mountinfo",
            "cgroup",
            "uid_map",
        ];
        let first = first.map(|name| format!("{name} of the first process"));
        let tables = [
            "the first process",
            "/proc/cmdline",
            "/proc/version",
            "/proc/keys",
            "/proc/modules",
            "/proc/partitions",
            "/proc/diskstats",
            "/proc/interrupts",
            "/proc/swaps",
            "/proc/sys/kernel/random/boot_id",
            "/proc/sys/kernel/version",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/vm/swappiness",
            "/proc/sys/fs/file-nr",
            "/proc/bus",
            "/proc/fs",
            "/proc/irq",
            "/proc/tty",
            "/proc/driver",
            "/sys",
        ];
        let refused: Vec<&str> = first.iter().map(String::as_str).chain(tables).collect();
        outcome.assert_refused(&refused);
        let told = outcome.attempts();
        for (fact, expected) in [
            ("uid", "100000"),
            ("gid", "100000"),
            ("uid_map", "100000,100000,1"),
            ("gid_map", "100000,100000,1"),
            ("host", "sandbox"),
            ("domain", "(none)"),
            ("interfaces", "lo"),
        ] {
            assert_eq!(told[fact], expected, "{fact}: {outcome:#?}");
        }
        // The kernel says whose a file system in memory is, unless it is the superuser's.
        if nix::unistd::geteuid().is_root() {
            assert_eq!(told["numbers in mounts"], "0", "{outcome:#?}");
        }
        // Of the groups that the engine's user is in, nothing but that they are nobody's.
        let nobodys = |list: &str| {
            list.split(',')
                .all(|one| ["", "65534", "100000"].contains(&one))
        };
        assert!(
            nobodys(told["groups"]) && nobodys(told["owners"]),
            "{outcome:#?}"
        );
        // A group of its own is the root of what it sees.
        assert!(
            told["cgroup"].split(',').all(|group| group == "/"),
            "{outcome:#?}"
        );
    });
}

const DESTINATIONS: [&str; 9] = [
    "service on this machine",
    "service under its name",
    "service on every address",
    "service over version 6",
    "metadata service",
    "the internet",
    "docker",
    "socket without a file",
    "engine of another run",
];

const NODE_CONNECTIONS: &str = r#"
const [place, port] = process.argv.slice(2);
(async () => {
    await connect("service on this machine", { host: "127.0.0.1", port });
    await connect("service under its name", { host: "localhost", port });
    await connect("service on every address", { host: "0.0.0.0", port });
    await connect("service over version 6", { host: "::1", port });
    await connect("metadata service", { host: "169.254.169.254", port: 80 });
    await connect("the internet", { host: "1.1.1.1", port: 443 });
    await connect("docker", { path: `${place}/docker.sock` });
    await connect("socket without a file", { path: `\0${place}` });
    await connect("engine of another run", { path: `${place}/runs/other/engine` });
})();
"#;

const PYTHON_CONNECTIONS: &str = r#"
place, port = sys.argv[1], int(sys.argv[2])
connect("service on this machine", socket.AF_INET, ("127.0.0.1", port))
connect("service under its name", socket.AF_INET, ("localhost", port))
connect("service on every address", socket.AF_INET, ("0.0.0.0", port))
connect("service over version 6", socket.AF_INET6, ("::1", port))
connect("metadata service", socket.AF_INET, ("169.254.169.254", 80))
connect("the internet", socket.AF_INET, ("1.1.1.1", 443))
connect("docker", socket.AF_UNIX, f"{place}/docker.sock")
connect("socket without a file", socket.AF_UNIX, f"\0{place}")
connect("engine of another run", socket.AF_UNIX, f"{place}/runs/other/engine")
"#;

#[test]
fn nothing_can_be_connected_to_without_a_network() {
    in_each_language("connections", |language, interpreter| {
        let neighbours = Neighbourhood::new();
        let program = source(language, NODE_CONNECTIONS, PYTHON_CONNECTIONS);
        let program = Hostile::new(language, interpreter, &program)
            .argument(neighbours.place.path())
            .argument(neighbours.port());
        program.run(strict()).assert_refused(&DESTINATIONS);
    });
}

#[test]
fn a_program_with_a_network_still_reaches_no_socket_of_others() {
    in_each_language("sockets with a network", |language, interpreter| {
        let neighbours = Neighbourhood::new();
        let program = source(language, NODE_CONNECTIONS, PYTHON_CONNECTIONS);
        let program = Hostile::new(language, interpreter, &program)
            .argument(neighbours.place.path())
            .argument(neighbours.port());
        let mut settings = strict();
        settings.mode = nimbus_engine_sandbox::IsolationMode::Strict { allow_weak: true };
        settings.network = ProgramNetwork::Full;
        let outcome = program.run(settings);
        outcome.assert_refused(&["docker", "engine of another run"]);
        // The difference between the two kinds of network is real.
        assert!(outcome.attempts()["service on this machine"].starts_with("ALLOWED"));
    });
}

/// X8: one run's engine is there for its program and for nobody else.
#[test]
fn a_program_reaches_its_own_engine_and_no_other() {
    in_each_language("engines of two runs", |language, interpreter| {
        let sandbox = Sandbox::new(helper(), probe(), strict()).unwrap();
        let mut rooms = [sandbox.open().unwrap(), sandbox.open().unwrap()];
        let _engines = [0, 1].map(|n| UnixListener::bind(rooms[n].socket()).unwrap());
        let node = r#"
            const [own, other] = process.argv.slice(2);
            connect("own", { path: own }).then(() => connect("other", { path: other }));
        "#;
        let python = r#"
connect("own", socket.AF_UNIX, sys.argv[1])
connect("other", socket.AF_UNIX, sys.argv[2])
"#;
        let program = Hostile::new(language, interpreter, &source(language, node, python))
            .argument(rooms[0].socket())
            .argument(rooms[1].socket());
        let child = program.start(&mut rooms[0]);
        let outcome = finish(child, &rooms[0]);
        outcome.assert_refused(&["other"]);
        assert!(
            outcome.attempts()["own"].starts_with("ALLOWED"),
            "{outcome:?}"
        );
    });
}

/// X6: credentials of whomever started the engine, and of other tenants, are not in the environment.
#[test]
fn no_variable_comes_through_that_is_not_on_the_list() {
    in_each_language("environment", |language, interpreter| {
        let node = "for (const name of Object.keys(process.env)) report(name, \"there\");";
        let python = "for name in os.environ: report(name, 'there')";
        let mut program = Hostile::new(language, interpreter, &source(language, node, python));
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "PULUMI_ACCESS_TOKEN",
            "PULUMI_CONFIG_PASSPHRASE",
            "TENANT_B_TOKEN",
            "PULUMI_CONFIG",
            "OPERATOR_ALLOWS",
        ] {
            program.variables.insert(name.to_owned(), "x".to_owned());
        }
        let mut settings = strict();
        settings.environment = vec!["OPERATOR_ALLOWS".to_owned()];
        let outcome = program.run(settings);
        let mut names: Vec<_> = outcome.attempts().into_keys().collect();
        // Python adds this one by itself.
        names.retain(|name| *name != "LC_CTYPE");
        let expected = ["HOME", "OPERATOR_ALLOWS", "PATH", "PULUMI_CONFIG", "TMPDIR"];
        assert_eq!(names, expected, "{outcome:?}");
    });
}

/// Descriptors that the engine's own parent left open are not for the program.
#[test]
fn nothing_is_open_but_the_three_streams() {
    in_each_language("descriptors", |language, interpreter| {
        let node = r#"
            for (let fd = 3; fd < 64; fd++) {
                attempt(`fd ${fd}`, () => {
                    const target = fs.readlinkSync(`/proc/self/fd/${fd}`);
                    if (/anon_inode|pipe|\/dev\/null|socket/.test(target)) throw new Error("own");
                    return target;
                });
            }
        "#;
        let python = r#"
for fd in range(3, 64):
    attempt(f"fd {fd}", lambda: os.fstat(fd))
"#;
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        let secret = program.directory.path().join("secret");
        fs::write(&secret, "x").unwrap();
        let sandbox = Sandbox::new(helper(), probe(), strict()).unwrap();
        let mut room = sandbox.open().unwrap();
        let own = program.directory.path();
        let read_only = readable(own, &program.interpreter);
        let command = room.enclose(&program.command(), &read_only, &[]).unwrap();
        // A shell that leaves a file open for whatever it starts.
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", "exec 9<\"$0\"; exec \"$@\""])
            .arg(&secret)
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let outcome = finish(shell.spawn().unwrap(), &room);
        outcome.assert_refused(&["fd 9"]);
    });
}
