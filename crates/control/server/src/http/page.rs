//! Plain pages until the console exists.

use axum::response::Html;

const HOME: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Nimbus</title>\
<h1>Nimbus</h1><p>The control plane runs. Its API is at <code>/api/v1</code>.</p></html>\n";

const SETUP: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Nimbus: first run</title>\
<h1>First run</h1><p>Send the token of this page's address with the first administrator's name to \
<code>POST /api/v1/setup/complete</code>.</p></html>\n";

pub(crate) async fn home() -> Html<&'static str> {
    Html(HOME)
}

pub(crate) async fn setup() -> Html<&'static str> {
    Html(SETUP)
}
