//! Whose a project is, and what that means for those who look at it.

use nimbus_engine_files::ProjectFiles;
use nimbus_engine_sandbox::{Sandbox, SandboxError, SandboxSettings};

/// Whether a project is one's own or a stranger's.
#[derive(Clone, Debug)]
pub enum ProjectTrust {
    /// Its tools are run and its links followed, as any tool does.
    Own,
    /// What it says is read from its own folder, and what has to be asked is asked in its sandbox.
    Stranger {
        files: ProjectFiles,
        sandbox: Box<Sandbox>,
    },
}

impl ProjectTrust {
    /// As the settings of the sandbox say, for the project in this folder.
    pub fn of(
        settings: Option<&SandboxSettings>,
        sandbox: Option<&Sandbox>,
        root: &std::path::Path,
    ) -> Result<Self, SandboxError> {
        let (Some(settings), Some(sandbox)) = (settings, sandbox) else {
            return Ok(Self::Own);
        };
        let files = settings.files_of(root)?;
        Ok(match files.is_restricted() {
            true => Self::Stranger {
                files,
                // Questions need nobody to talk to.
                sandbox: Box::new(sandbox.without_network()),
            },
            false => Self::Own,
        })
    }

    pub fn files(&self) -> &ProjectFiles {
        const OWN: &ProjectFiles = &ProjectFiles::UNRESTRICTED;
        match self {
            Self::Own => OWN,
            Self::Stranger { files, .. } => files,
        }
    }
}
