//! However it ends, nothing is left running and nothing is lost.

use nimbus_test_tools::{Tool, short_or_long, tool_or_skip};

use crate::support::{Site, is_alive, wait_for};

#[test]
fn a_server_that_is_killed_takes_its_database_along_and_starts_again_with_everything() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres));
    let mut server = site.up();
    site.set_up(&server);
    for round in 0..short_or_long(2, 50) {
        let slug = format!("tenant-{round}");
        site.ask(&["tenant", "create", &slug]);
        let database = site.postmaster().unwrap();
        assert!(is_alive(database));
        server.process.kill().unwrap();
        server.process.wait().unwrap();
        wait_for("PostgreSQL ends with its server", || !is_alive(database));
        server = site.up();
        assert!(server.report["setup_link"].is_null(), "the set-up was kept");
        // The sign-in of before is still good, but the server has another port.
        let address = server.report["address"].as_str().unwrap();
        let arguments = ["login", "--server", address, "--password-stdin", "--json"];
        site.run_with(&arguments, &format!("{}\n", crate::support::PASSWORD))
            .ok();
        let tenants = site.ask(&["tenant", "list"]).to_string();
        for earlier in 0..=round {
            assert!(tenants.contains(&format!("tenant-{earlier}")), "{tenants}");
        }
    }
    let verdict = site.ask(&["audit", "verify"]);
    assert!(verdict.to_string().contains("\"intact\":true"), "{verdict}");
    let database = site.postmaster().unwrap();
    assert_eq!(server.stop(), 0);
    assert!(!is_alive(database), "a clean stop waits for PostgreSQL");
}

#[test]
fn a_second_server_on_the_same_folder_is_refused_and_the_first_goes_on() {
    let site = Site::new(&tool_or_skip!(Tool::Postgres));
    let server = site.up();
    // Its own logs, so that the first one's stay.
    let refused = site.run_with(
        &[
            "up",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            &site.data().display().to_string(),
        ],
        "",
    );
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("NIM-0813"), "{}", refused.stderr);
    site.set_up(&server);
    assert_eq!(server.stop(), 0);
}
