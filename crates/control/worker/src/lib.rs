//! A worker on another machine: it joins a server with a key, takes runs and carries them out with the same code that a
//! server's own workers have. It has no database and no key of any tenant; everything that a run reads or writes is a
//! call to the server, under the epoch that the run was taken with.
//!
//! Reading order: `server` (calls), `queue` (runs), `joined` (from joining to leaving).

mod joined;
mod queue;
mod server;

pub use joined::{JoinedWorker, WorkerOptions};
pub use nimbus_control_runs::{ProgramSettings, RunLimits, SandboxSettings, missing_isolation};
