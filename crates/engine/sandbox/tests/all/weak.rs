//! Machines that offer less: what still holds there, and X7.

use std::fs;

use nimbus_core::ErrorCode;
use nimbus_engine_sandbox::{
    Intervention, IsolationMode, Primitive, Sandbox, SandboxError, SandboxSettings,
};
use nimbus_test_tools::record_skip;

use crate::support::*;

/// X7: code of strangers is not run on a machine that cannot hold it, unless somebody says so.
#[test]
fn strict_mode_refuses_a_machine_without_a_primitive() {
    for primitive in Primitive::ALL.into_iter().filter(|p| p.is_required()) {
        let weaker = probe().clone().without(primitive);
        let refused = Sandbox::new(helper(), &weaker, strict()).unwrap_err();
        let SandboxError::Weak { missing } = &refused else {
            panic!("{refused:?}");
        };
        assert!(missing.contains(&primitive));
        let error = nimbus_core::Error::from(refused);
        assert_eq!(error.code(), ErrorCode::ISOLATION_WEAK);
        assert!(
            error.message().contains(primitive.title()),
            "{}",
            error.message()
        );
        let accepted = SandboxSettings {
            mode: IsolationMode::Strict { allow_weak: true },
            ..strict()
        };
        assert!(Sandbox::new(helper(), &weaker, accepted).is_ok());
    }
}

/// Containers often have no namespaces; landlock and seccomp need nobody's permission.
#[test]
fn without_namespaces_files_and_network_are_still_refused() {
    if probe().landlock_abi() < 4 || !probe().has(Primitive::Seccomp) {
        record_skip("no landlock with network rules", "without namespaces");
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    for language in LANGUAGES {
        let Some(interpreter) = language.interpreter("without namespaces") else {
            continue;
        };
        let node = r#"
            const [secret, port, engine] = process.argv.slice(2);
            attempt("secret", () => fs.readFileSync(secret));
            attempt("shadow", () => fs.readFileSync("/etc/shadow"));
            attempt("engine", () => fs.readFileSync(`/proc/${engine}/environ`));
            attempt("own code", () => fs.writeFileSync(__filename, "x"));
            attempt("namespaces", () => run("unshare", "-U", "true"));
            attempt("kill the engine", () => process.kill(Number(engine), 0));
            fs.writeFileSync(path.join(process.env.TMPDIR, "x"), "x");
            connect("service", { host: "127.0.0.1", port });
            const udp = (() => { try { return require("dgram").createSocket("udp4"); } catch (e) { return e; } })();
            if (udp instanceof Error) report("datagrams", why(udp));
            else { udp.on("error", (e) => report("datagrams", why(e)));
                   udp.send("x", 53, "127.0.0.1", (e) => { report("datagrams", e ? why(e) : "ALLOWED"); udp.close(); }); }
        "#;
        let python = r#"
secret, port, engine = sys.argv[1:4]
attempt("secret", lambda: read(secret))
attempt("shadow", lambda: read("/etc/shadow"))
attempt("engine", lambda: read(f"/proc/{engine}/environ"))
attempt("own code", lambda: write(__file__))
attempt("namespaces", lambda: syscall(272, 0x10000000))
attempt("kill the engine", lambda: os.kill(int(engine), 0))
write(os.path.join(os.environ["TMPDIR"], "x"))
connect("service", socket.AF_INET, ("127.0.0.1", int(port)))
attempt("datagrams", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
"#;
        let program = Hostile::new(language, interpreter, &source(language, node, python))
            .argument(&secret)
            .argument(&port)
            .argument(std::process::id().to_string());
        let settings = SandboxSettings {
            mode: IsolationMode::BestEffort,
            ..strict()
        };
        let sandbox = Sandbox::new(helper(), &without_namespaces(), settings).unwrap();
        let outcome = program.run_in(&sandbox);
        outcome.assert_refused(&[
            "secret",
            "shadow",
            "engine",
            "own code",
            "namespaces",
            "service",
            "datagrams",
        ]);
        if probe().landlock_abi() >= 6 {
            outcome.assert_refused(&["kill the engine"]);
        }
    }
}

/// What cannot be set up is not run, and the reason is told.
#[test]
fn a_sandbox_that_cannot_be_closed_runs_nothing() {
    in_each_language("not closed", |language, interpreter| {
        let node = "require('fs').writeFileSync('/tmp/ran', '')";
        let program = Hostile::new(language, interpreter, node);
        let sandbox = Sandbox::new(helper(), probe(), strict()).unwrap();
        let mut room = sandbox.open().unwrap();
        let missing = program.directory.path().join("missing");
        let mut command = room
            .enclose(
                &program.command(),
                &nimbus_engine_sandbox::Readable::default().and([missing]),
                &[],
            )
            .unwrap();
        let outcome = finish(command.spawn().unwrap(), &room);
        assert_eq!(outcome.code, Some(125), "{outcome:?}");
        let Some(Intervention::NotRun { step, .. }) = outcome.intervention else {
            panic!("{outcome:?}");
        };
        assert!(step.contains("missing"), "{step}");
    });
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    if !complete_sandbox_or_skip("missing program") {
        return;
    }
    let sandbox = Sandbox::new(helper(), probe(), strict()).unwrap();
    let mut room = sandbox.open().unwrap();
    let command = std::process::Command::new("/usr/bin/no-such-program");
    let mut command = room
        .enclose(&command, &nimbus_engine_sandbox::Readable::default(), &[])
        .unwrap();
    let outcome = finish(command.spawn().unwrap(), &room);
    let Some(Intervention::NotRun { step, .. }) = outcome.intervention else {
        panic!("{outcome:?}");
    };
    assert!(step.contains("no-such-program"), "{step}");
}
