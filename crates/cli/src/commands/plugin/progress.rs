//! How an install is followed: a bar on a terminal, plain lines elsewhere, nothing for programs.

use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nimbus_engine_install::{InstallProgress, InstallWatcher, PluginName};
use semver::Version;

use crate::output::CommandOutput;

pub(super) struct InstallObserver {
    shown: Arc<InstallProgressView>,
}

struct InstallProgressView {
    output: CommandOutput,
    /// `None` where nobody sees a bar.
    bar: Option<ProgressBar>,
    line: Mutex<ProgressLine>,
}

/// What was said of the plugin that is being installed.
#[derive(Default)]
struct ProgressLine {
    plugin: String,
    /// The last tenth that was told.
    tenth: u64,
}

impl InstallObserver {
    pub(super) fn new(output: CommandOutput) -> Self {
        let silent = output.is_json() || output.is_quiet();
        let bar = (output.stderr_terminal().interactive && !silent).then(bar);
        let line = Mutex::default();
        Self {
            shown: Arc::new(InstallProgressView { output, bar, line }),
        }
    }

    pub(super) fn begin(&self, name: &PluginName, version: Option<&Version>) {
        let version = version.map_or_else(|| "newest".to_owned(), Version::to_string);
        let mut line = self.shown.line();
        *line = ProgressLine {
            plugin: format!("{name} {version}"),
            tenth: 0,
        };
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.shown.bar {
            bar.finish_and_clear();
            bar.reset();
        }
    }

    pub(super) fn watcher(&self) -> InstallWatcher {
        let shown = Arc::clone(&self.shown);
        Arc::new(move |progress| shown.show(progress))
    }
}

impl InstallProgressView {
    fn show(&self, progress: InstallProgress) {
        let mut line = self.line();
        match (&self.bar, progress) {
            (bar, InstallProgress::Waiting) => {
                let text = format!("{}: another process is installing it, waiting", line.plugin);
                self.tell(bar.as_ref(), &text);
            }
            (None, InstallProgress::Downloading { from }) => {
                self.output.progress(&format!("{}: {from}", line.plugin));
            }
            (Some(bar), InstallProgress::Downloading { .. }) => {
                bar.set_message(line.plugin.clone());
            }
            (Some(bar), InstallProgress::Arrived { bytes, total }) => {
                if let Some(total) = total {
                    bar.set_length(total);
                }
                bar.set_position(bytes);
            }
            (
                None,
                InstallProgress::Arrived {
                    bytes,
                    total: Some(total),
                },
            ) if total > 0 => {
                let tenth = bytes * 10 / total;
                if tenth > line.tenth {
                    line.tenth = tenth;
                    let text = format!("{}: {} % of {total} bytes", line.plugin, tenth * 10);
                    self.output.progress(&text);
                }
            }
            (None, InstallProgress::Arrived { .. }) => {}
            (bar, InstallProgress::Unpacking) => {
                self.tell(bar.as_ref(), &format!("{}: unpacking", line.plugin));
            }
        }
    }

    fn tell(&self, bar: Option<&ProgressBar>, text: &str) {
        match bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => self.output.progress(text),
        }
    }

    fn line(&self) -> std::sync::MutexGuard<'_, ProgressLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
    );
    let style = style.expect("the template is ours").progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style);
    bar
}
