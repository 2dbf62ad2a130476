//! X4: ways out of a sandbox that others have found.

use std::fs;

use crate::support::*;

const NODE: &str = r#"
const [outside] = process.argv.slice(2);
const tmp = process.env.TMPDIR;
attempt("write to its own code", () => fs.writeFileSync(path.join(__dirname, "index.js"), "x"));
attempt("write beside its own code", () => fs.writeFileSync(path.join(__dirname, "new"), "x"));
attempt("write to the system", () => fs.writeFileSync("/usr/bin/evil", "x"));
attempt("link to the outside", () => {
    fs.symlinkSync(outside, path.join(tmp, "link"));
    return fs.readFileSync(path.join(tmp, "link"));
});
attempt("hard link to the outside", () => fs.linkSync(outside, path.join(tmp, "hard")));
attempt("hard link to the system", () => fs.linkSync("/usr/bin/env", path.join(tmp, "env")));
attempt("up and out", () => fs.readFileSync(path.join(__dirname, "../".repeat(20), outside)));
attempt("through the first process", () => fs.readFileSync("/proc/1/root" + outside));
attempt("change a setting of the kernel", () =>
    fs.writeFileSync("/proc/sys/kernel/core_pattern", "|/evil"));
attempt("become the superuser", () => process.setuid(0));
attempt("namespaces again", () => run("unshare", "-U", "true"));
attempt("mount", () => run("mount", "-t", "tmpfs", "none", tmp));
attempt("setuid", () => {
    const shell = path.join(tmp, "shell");
    fs.copyFileSync("/usr/bin/id", shell);
    fs.chmodSync(shell, 0o4755);
    if (run(shell, "-u").trim() !== "0") throw new Error("an ordinary user");
});
attempt("a device", () => run("mknod", path.join(tmp, "disk"), "b", "8", "0"));
const call = (number, ...args) => () =>
    run("perl", "-e", `exit(syscall(${[number, ...args].join(",")}) == -1 ? $!+0 : 0)`);
attempt("io_uring", call(425, 1, 0));
attempt("bpf", call(321, 0, 0, 0));
attempt("kexec", call(246, 0, 0, 0, 0));
attempt("keys", call(250, 0, -3, 0));
attempt("open by handle", call(304, 0, 0, 0));
attempt("a virtual machine's channel", call(41, 40, 1, 0));
"#;

const PYTHON: &str = r#"
outside = sys.argv[1]
tmp = os.environ["TMPDIR"]
own = os.path.dirname(os.path.abspath(__file__))
attempt("write to its own code", lambda: write(__file__))
attempt("write beside its own code", lambda: write(f"{own}/new"))
attempt("write to the system", lambda: write("/usr/bin/evil"))

def link():
    os.symlink(outside, f"{tmp}/link")
    return read(f"{tmp}/link")

attempt("link to the outside", link)
attempt("hard link to the outside", lambda: os.link(outside, f"{tmp}/hard"))
attempt("hard link to the system", lambda: os.link("/usr/bin/env", f"{tmp}/env"))
attempt("up and out", lambda: read(own + "/" + "../" * 20 + outside))
attempt("through the first process", lambda: read("/proc/1/root" + outside))
attempt("change a setting of the kernel", lambda: write("/proc/sys/kernel/core_pattern"))
attempt("become the superuser", lambda: os.setuid(0))
CLONE_NEWUSER = 0x10000000
attempt("namespaces again", lambda: syscall(272, CLONE_NEWUSER))
attempt("mount", lambda: syscall(165, b"none", tmp.encode(), b"tmpfs", 0, None))

def setuid():
    import shutil
    shell = f"{tmp}/shell"
    shutil.copy("/usr/bin/id", shell)
    os.chmod(shell, 0o4755)
    assert run(shell, "-u").strip() == "0", "an ordinary user"

attempt("setuid", setuid)
attempt("a device", lambda: os.mknod(f"{tmp}/disk", 0o060600, os.makedev(8, 0)))
attempt("io_uring", lambda: syscall(425, 1, ctypes.create_string_buffer(256)))
attempt("bpf", lambda: syscall(321, 0, 0, 0))
attempt("kexec", lambda: syscall(246, 0, 0, 0, 0))
attempt("keys", lambda: syscall(250, 0, -3, 0))
attempt("open by handle", lambda: syscall(304, 0, 0, 0))
attempt("a virtual machine's channel", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))

def clone_into_namespace():
    SIGCHLD = 17
    child = syscall(56, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)

attempt("namespaces by clone", clone_into_namespace)
"#;

const ATTEMPTS: [&str; 20] = [
    "write to its own code",
    "write beside its own code",
    "write to the system",
    "link to the outside",
    "hard link to the outside",
    "hard link to the system",
    "up and out",
    "through the first process",
    "change a setting of the kernel",
    "become the superuser",
    "namespaces again",
    "mount",
    "setuid",
    "a device",
    "io_uring",
    "bpf",
    "kexec",
    "keys",
    "open by handle",
    "a virtual machine's channel",
];

#[test]
fn every_known_way_out_is_closed() {
    in_each_language("ways out", |language, interpreter| {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let program = source(language, NODE, PYTHON);
        let program = Hostile::new(language, interpreter, &program).argument(&secret);
        let outcome = program.run(strict());
        outcome.assert_refused(&ATTEMPTS);
        if let Language::Python = language {
            outcome.assert_refused(&["namespaces by clone"]);
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        let code = fs::read_to_string(program.directory.path().join(language.file()));
        assert!(code.unwrap().len() > 1);
    });
}

/// What a program is supposed to do works.
#[test]
fn an_honest_program_notices_little() {
    in_each_language("honest program", |language, interpreter| {
        let node = r#"
            const os = require("os");
            attempt("read code", () => fs.readFileSync(__filename).length > 0);
            attempt("write temporary", () => fs.writeFileSync(path.join(os.tmpdir(), "x"), "x"));
            attempt("start a process", () => run("sh", "-c", "echo hi"));
            attempt("random", () => require("crypto").randomBytes(8).length);
            attempt("who", () => os.userInfo().username);
            attempt("cpus", () => { if (os.cpus().length === 0) throw new Error("none"); });
            const { Worker } = require("worker_threads");
            new Worker("1", { eval: true }).on("exit", () => report("worker", "ALLOWED"));
            const server = net.createServer().listen(0, "127.0.0.1", () => {
                connect("own service", { port: server.address().port }).then(() => server.close());
            });
        "#;
        let python = r#"
import getpass, tempfile, threading, secrets, multiprocessing
attempt("read code", lambda: read(__file__))
attempt("write temporary", lambda: write(os.path.join(tempfile.gettempdir(), "x")))
attempt("start a process", lambda: run("sh", "-c", "echo hi"))
attempt("random", lambda: secrets.token_bytes(8))
attempt("who", lambda: getpass.getuser())
attempt("cpus", lambda: 1 // os.cpu_count())
thread = threading.Thread(target=lambda: report("worker", "ALLOWED"))
thread.start()
thread.join()
attempt("semaphore", lambda: multiprocessing.Semaphore())
server = socket.create_server(("127.0.0.1", 0))
connect("own service", socket.AF_INET, server.getsockname())
"#;
        let program = Hostile::new(language, interpreter, &source(language, node, python));
        let outcome = program.run(strict());
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        let attempts = outcome.attempts();
        assert!(attempts.len() >= 8, "{outcome:#?}");
        for (name, result) in attempts {
            assert!(result.starts_with("ALLOWED"), "{name}: {outcome:#?}");
        }
    });
}
