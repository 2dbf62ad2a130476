//! What this machine offers to keep programs apart, as found by the sandbox itself.
//!
//! The judgements are pure functions of what was found, so that every kernel can be played in a
//! test; only `check_all` touches the machine.

use nimbus_engine_sandbox::{Helper, Primitive, Probe, ResourceLimits};

use super::{CheckGroup, CheckState, DoctorCheck};

pub(super) async fn check_all() -> Vec<DoctorCheck> {
    if !cfg!(target_os = "linux") {
        let check = DoctorCheck::ok("sandbox", CheckGroup::Sandbox, "Sandbox", "only on Linux");
        let advice = "run programs of strangers on a Linux machine";
        return vec![check.state(CheckState::NotUsed, advice)];
    }
    let found = tokio::task::spawn_blocking(|| {
        let helper = Helper::this_program();
        helper.map(|helper| Probe::run(&helper))
    });
    match found.await {
        Ok(Ok(probe)) => checks(&probe, |path| std::fs::read_to_string(path).ok()),
        _ => vec![
            DoctorCheck::ok(
                "isolation",
                CheckGroup::Sandbox,
                "Isolation",
                "cannot be tried",
            )
            .state(
                CheckState::Failed,
                "run Nimbus from a file that exists, with /proc mounted",
            ),
        ],
    }
}

fn checks(probe: &Probe, read: impl Fn(&str) -> Option<String>) -> Vec<DoctorCheck> {
    let primitives = Primitive::ALL
        .into_iter()
        .map(|primitive| check(primitive, probe, &read));
    [isolation(probe)]
        .into_iter()
        .chain(primitives)
        .chain([resource_limits(&read)])
        .collect()
}

/// What the kernel limits for each process. A program never gets more than Nimbus itself may have.
fn resource_limits(read: &impl Fn(&str) -> Option<String>) -> DoctorCheck {
    let check = |detail: String| {
        DoctorCheck::ok(
            "resource_limits",
            CheckGroup::Sandbox,
            "Resource limits",
            detail,
        )
    };
    let table = read("/proc/self/limits").unwrap_or_default();
    let wanted = ResourceLimits::default();
    let lower: Vec<String> = [
        ("Max open files", "open files", wanted.open_files),
        ("Max processes", "processes", wanted.processes),
        ("Max data size", "bytes of memory", wanted.memory_bytes),
    ]
    .into_iter()
    .filter_map(|(line, what, wanted)| {
        let limit = hard_limit(&table, line)?;
        (limit < wanted).then(|| format!("{limit} {what} instead of {wanted}"))
    })
    .collect();
    if table.is_empty() {
        let check = check("cannot be read".to_owned());
        return check.state(CheckState::Warning, "mount /proc");
    }
    if lower.is_empty() {
        return check("memory, processes, open files and file sizes can be limited".to_owned());
    }
    let check = check(format!("programs get {}", lower.join(", ")));
    let advice = "raise the hard limits of Nimbus: ulimit -H, or LimitNOFILE, LimitNPROC and \
                  LimitDATA of its service";
    check.state(CheckState::Warning, advice)
}

/// A hard limit from the kernel's table; `None` when there is none.
fn hard_limit(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What it all comes to.
fn isolation(probe: &Probe) -> DoctorCheck {
    let check =
        |detail: &str| DoctorCheck::ok("isolation", CheckGroup::Sandbox, "Isolation", detail);
    let missing = probe.missing();
    if missing.is_empty() {
        return check("complete: programs of strangers can be run (engine.sandbox: strict)");
    }
    let names: Vec<_> = missing.iter().map(|primitive| primitive.title()).collect();
    let detail = format!(
        "weak, for want of {}: engine.sandbox: strict refuses to run programs",
        names.join(", ")
    );
    check(&detail).state(
        CheckState::Warning,
        "see below; engine.allow_weak_isolation runs them nevertheless",
    )
}

fn check(
    primitive: Primitive,
    probe: &Probe,
    read: &impl Fn(&str) -> Option<String>,
) -> DoctorCheck {
    let (id, title) = (primitive.id(), title(primitive));
    match probe.state(primitive) {
        Ok(_) if primitive == Primitive::Landlock && probe.landlock_abi() < 6 => {
            let detail = format!("ABI {}, files only", probe.landlock_abi());
            DoctorCheck::ok(id, CheckGroup::Sandbox, title, detail).state(
                CheckState::Warning,
                "use Linux 6.12 or newer to restrict network, signals and sockets as well",
            )
        }
        Ok(detail) => DoctorCheck::ok(id, CheckGroup::Sandbox, title, detail),
        Err(why) => {
            let state = match primitive.is_required() {
                true => CheckState::Missing,
                false => CheckState::Warning,
            };
            DoctorCheck::ok(id, CheckGroup::Sandbox, title, why).state(state, fix(primitive, read))
        }
    }
}

fn title(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::UserNamespaces => "User namespaces",
        Primitive::PrivateView => "Mount namespaces",
        Primitive::PrivateProcesses => "Process namespaces",
        Primitive::PrivateNetwork => "Network namespaces",
        Primitive::Landlock => "Landlock",
        Primitive::Seccomp => "seccomp",
        Primitive::NoNewPrivs => "no_new_privs",
        Primitive::Cgroup => "cgroup v2",
    }
}

fn fix(primitive: Primitive, read: &impl Fn(&str) -> Option<String>) -> String {
    match primitive {
        Primitive::UserNamespaces => switched_off(read).unwrap_or_else(|| {
            "run the container with a seccomp profile that allows unshare, or outside of one"
                .to_owned()
        }),
        Primitive::PrivateView | Primitive::PrivateNetwork => {
            "needs user namespaces; a container must not forbid mount and unshare".to_owned()
        }
        Primitive::PrivateProcesses => {
            "needs user namespaces, and /proc without masks (in containers: an unmasked /proc)"
                .to_owned()
        }
        Primitive::Landlock => {
            "use Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK and landlock in lsm=".to_owned()
        }
        Primitive::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER".to_owned(),
        Primitive::NoNewPrivs => "use Linux 4.10 or newer, with /proc mounted".to_owned(),
        Primitive::Cgroup => {
            "run Nimbus as a service with Delegate=yes and memory and pids switched on for its \
             children; without it the sandbox counts by itself, ten times a second"
                .to_owned()
        }
    }
}

/// The switch that forbids user namespaces, with the command that allows them.
fn switched_off(read: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let switches = [
        (
            "/proc/sys/user/max_user_namespaces",
            "0",
            "sysctl -w user.max_user_namespaces=15000",
        ),
        (
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ];
    let is_off = |path: &str, off: &str| read(path).is_some_and(|value| value.trim() == off);
    let switch = switches.iter().find(|(path, off, _)| is_off(path, off));
    switch.map(|(_, _, command)| format!("sudo {command}"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// This machine as far as can be told without a helper: nothing that needs trying works.
    fn helpless() -> Probe {
        Probe::run(&Helper::at("/no/such/helper"))
    }

    fn files<'a>(files: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |path| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| (*text).to_owned())
        }
    }

    fn by_id(checks: &[DoctorCheck], id: &str) -> DoctorCheck {
        let found = checks.iter().find(|check| check.id == id);
        found.cloned().expect("every primitive has a check")
    }

    #[test]
    fn every_primitive_has_a_line_and_what_is_missing_a_fix() {
        let checks = checks(&helpless(), files(&[]));
        // One for each, one for all of them, one for the limits that every kernel has.
        assert_eq!(checks.len(), Primitive::ALL.len() + 2);
        for id in ["user_namespaces", "landlock", "network_namespaces"] {
            let check = by_id(&checks, id);
            assert_eq!(check.state, CheckState::Missing);
            assert!(check.fix.is_some(), "{id}");
        }
        let isolation = by_id(&checks, "isolation");
        assert_eq!(isolation.state, CheckState::Warning);
        assert!(isolation.detail.contains("user namespaces"));
    }

    /// Each primitive alone: its own line says that it is missing and what to do, the summary names
    /// it, and nothing else changes.
    #[test]
    fn each_missing_primitive_is_named_with_a_fix() {
        let whole = || Probe::complete();
        let everything = checks(&whole(), files(&[]));
        assert_eq!(by_id(&everything, "isolation").state, CheckState::Ok);
        for primitive in Primitive::ALL {
            let checks = checks(&whole().without(primitive), files(&[]));
            let own = by_id(&checks, primitive.id());
            assert!(own.fix.is_some(), "{primitive:?}");
            let isolation = by_id(&checks, "isolation");
            let told = isolation.detail.contains(primitive.title());
            if primitive.is_required() {
                assert_eq!(own.state, CheckState::Missing, "{primitive:?}");
                assert_eq!(isolation.state, CheckState::Warning);
                assert!(told, "{}", isolation.detail);
            } else {
                assert_eq!(own.state, CheckState::Warning, "{primitive:?}");
                assert_eq!(isolation.state, CheckState::Ok);
            }
            let others = checks
                .iter()
                .zip(&everything)
                .filter(|(check, before)| check.state != before.state && check.id != "isolation");
            assert_eq!(others.count(), 1, "{primitive:?}");
        }
    }

    #[test]
    fn limits_below_what_programs_get_are_told() {
        let table = "Limit Soft Limit Hard Limit Units\n\
                     Max data size             unlimited            unlimited            bytes\n\
                     Max processes             100                  unlimited            processes\n\
                     Max open files            256                  1024                 files\n";
        let low = [("/proc/self/limits", table)];
        let check = resource_limits(&files(&low));
        assert_eq!(check.state, CheckState::Warning);
        assert_eq!(check.detail, "programs get 1024 open files instead of 4096");
        let enough = table.replace("1024", "1048576");
        let check = resource_limits(&files(&[("/proc/self/limits", &enough)]));
        assert_eq!(check.state, CheckState::Ok);
    }

    #[test]
    fn a_switched_off_namespace_names_its_switch() {
        let off = [("/proc/sys/kernel/unprivileged_userns_clone", "0\n")];
        let check = check(Primitive::UserNamespaces, &helpless(), &files(&off));
        assert_eq!(
            check.fix.as_deref(),
            Some("sudo sysctl -w kernel.unprivileged_userns_clone=1")
        );
        let restricted = [(
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
        )];
        assert!(
            fix(Primitive::UserNamespaces, &files(&restricted)).contains("apparmor"),
            "the switch of the newest Ubuntu"
        );
    }
}
