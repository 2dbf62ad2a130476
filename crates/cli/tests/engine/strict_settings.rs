//! Settings and folders that a stranger's project brings along, and `--sandbox strict`.

use std::fs;
use std::os::unix::fs::symlink;

use crate::sandbox::{STRICT, said, sites, up};

/// Settings are looked for where a command works, and that is the stranger's folder.
#[test]
fn a_project_does_not_bring_the_operators_settings() {
    let typescript = "import '@pulumi/pulumi'; export const x = 1;";
    let python = "import pulumi\npulumi.export('x', 1)\n";
    for site in sites("settings in a project", typescript, python) {
        let hostile = [
            ("allow_weak_isolation", "true"),
            ("sandbox_network", "full"),
            ("sandbox_references", "other"),
            ("sandbox_providers", "command"),
            ("sandbox_env", "AWS_SECRET_ACCESS_KEY"),
            ("sandbox_memory_mib", "1000000"),
        ];
        let audit = ["sandbox", "audit", "--sandbox", "strict", "--", "sh"];
        for (key, value) in hostile {
            let text = format!("engine:\n  sandbox: off\n  {key}: {value}\n");
            site.write("program/config/nimbus.yaml", &text);
            for ran in [up(&site, &STRICT), site.run(&audit)] {
                assert_ne!(ran.code, 0, "{}", said(&ran));
                for words in ["NIM-0412", key, "nimbus.yaml:3", "--config"] {
                    assert!(said(&ran).contains(words), "{words}: {}", said(&ran));
                }
            }
        }
        // Nor is anything sent where it says.
        let collector = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        collector.set_nonblocking(true).unwrap();
        let address = collector.local_addr().unwrap();
        let text = format!("telemetry:\n  otlp_endpoint: http://{address}\n");
        site.write("program/config/nimbus.yaml", &text);
        assert!(said(&up(&site, &STRICT)).contains("NIM-0412"));
        assert!(collector.accept().is_err(), "traces were sent");
        // The operator's own file is named, and counts.
        let named = "engine:\n  sandbox_memory_mib: 2048\n";
        site.write("operators.yaml", named);
        site.write("program/config/nimbus.yaml", "logging:\n  level: warn\n");
        let file = site.path("operators.yaml").display().to_string();
        up(&site, &[&STRICT[..], &["--config", &file]].concat()).ok();
        up(&site, &STRICT).ok();
    }
}

/// A rehearsal keeps its state beside the program, and reads answers from there.
#[test]
fn a_rehearsal_writes_through_no_link() {
    let typescript = "import '@pulumi/pulumi'; export const x = 1;";
    let python = "import pulumi\npulumi.export('x', 1)\n";
    for site in sites("links of rehearsals", typescript, python) {
        let flags = [&STRICT[..], &["--rehearse"]].concat();
        for name in [".nimbus", "rehearsal"] {
            site.write("elsewhere/invokes.yaml", "hunter2: [");
            let link = site.path("program").join(name);
            symlink(site.path("elsewhere"), &link).unwrap();
            let ran = up(&site, &flags);
            assert_ne!(ran.code, 0, "{}", said(&ran));
            assert!(said(&ran).contains("NIM-0407"), "{}", said(&ran));
            assert!(!said(&ran).contains("hunter2"), "{}", said(&ran));
            assert_eq!(fs::read_dir(site.path("elsewhere")).unwrap().count(), 1);
            fs::remove_file(link).unwrap();
        }
        up(&site, &flags).ok();
    }
}
