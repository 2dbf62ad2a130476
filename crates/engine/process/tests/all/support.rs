//! Scripts, and a line on which they can be heard.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nimbus_engine_process::{ChildProcess, CodeOrigin, Started};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::time::timeout;

/// Far longer than anything here takes, however busy the machine is.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn shell(script: &str, directory: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).current_dir(directory);
    command
}

pub(crate) async fn start(script: &str, directory: &Path) -> Started {
    ChildProcess::start(shell(script, directory), CodeOrigin::Operators)
        .await
        .expect("a shell")
}

/// A pipe that scripts hold open as `alive`; it ends when the last holder does.
pub(crate) fn life_line(directory: &Path) -> pipe::Receiver {
    let path = directory.join("alive");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    pipe::OpenOptions::new()
        .open_receiver(path)
        .expect("our side of the pipe")
}

pub(crate) async fn hear(line: &mut pipe::Receiver, word: &[u8]) {
    let mut heard = vec![0; word.len()];
    let read = async {
        line.readable().await.expect("our side of the pipe");
        line.read_exact(&mut heard).await
    };
    timeout(LIMIT, read)
        .await
        .expect("it speaks")
        .expect("a word");
    assert_eq!(heard, word);
}

pub(crate) async fn silence(mut line: pipe::Receiver) {
    let mut rest = Vec::new();
    let read = timeout(LIMIT, line.read_to_end(&mut rest)).await;
    read.expect("nothing may be left behind")
        .expect("our side of the pipe");
}
