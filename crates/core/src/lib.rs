//! Typed ids, small values and the one error type that every part of Nimbus speaks.
//!
//! Nothing here does I/O and nothing here names a transport: the command line turns an [`Error`]
//! into a diagnostic, the API turns it into a response, and both keep the code.

mod causes;
mod codes;
mod error;
mod ids;
mod names;
mod operation;
mod percent;
mod portable_names;
mod printable;
mod shell;
mod values;

pub use causes::{causes, innermost, with_causes};
pub use codes::{ErrorCode, ErrorKind};
pub use error::{Error, InputSpan, Result, line_and_column};
pub use ids::{DeploymentId, TenantId, TraceId, UserId};
pub use names::{ComponentName, EnvironmentName, UnitName};
pub use operation::StackOperation;
pub use percent::percent_encoded;
pub use portable_names::{NameCollision, name_collision, unportable_name};
pub use printable::{is_deceptive, printable, printable_line, printable_page};
pub use shell::shell_word;
pub use values::{Epoch, Malformed, Name, Serial};
