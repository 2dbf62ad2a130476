//! `nimbus sandbox audit`: look before trusting.
//!
//! Nimbus itself is started in the sandbox that the command would get, and says what it finds there.
//! The command is not run.

use std::path::{Path, PathBuf};
use std::process::Command;

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_sandbox::{
    Helper, Interpreter, Observation, ObservedPlace, Primitive, Probe, Sandbox, SandboxError,
    SandboxSettings,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::program::SandboxArgs;
use crate::context::{CommandContext, is_chosen};
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct SandboxAuditArgs {
    /// The folder of the project
    #[arg(long, default_value = ".")]
    dir: PathBuf,

    #[command(flatten)]
    pub(super) sandbox: SandboxArgs,

    /// What would be run, such as `node index.js` or `venv/bin/python`
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(crate) async fn run(
    args: SandboxAuditArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let settings = args.sandbox.settings(context)?.ok_or_else(|| {
        let message = "there is no sandbox to look at: engine.sandbox is off";
        Error::new(ErrorCode::USAGE, message).with_help("add --sandbox strict")
    })?;
    let directory = context.directory.join(&args.dir);
    let command = args.command;
    let audited = tokio::task::spawn_blocking(move || audit(settings, &directory, command));
    let mut report = audited.await.map_err(|error| {
        Error::new(ErrorCode::INTERNAL, "nobody looked around").with_source(error)
    })??;
    report.chosen = chosen(context)?;
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

/// Who said what the sandbox is like.
fn chosen(context: &CommandContext) -> Result<Vec<AuditSetting>> {
    let entries = context.settings()?.settings.entries().into_iter();
    let of_sandbox =
        |path: &str| path.starts_with("engine.sandbox") || path == "engine.allow_weak_isolation";
    Ok(entries
        .filter(|entry| of_sandbox(entry.path) && is_chosen(&entry.origin))
        .map(|entry| AuditSetting {
            setting: entry.path,
            origin: entry.origin.to_string(),
        })
        .collect())
}

fn audit(
    settings: SandboxSettings,
    directory: &Path,
    words: Vec<String>,
) -> Result<SandboxAuditReport> {
    let prepare = |what| move |source| SandboxError::Prepare { what, source };
    let helper = Helper::this_program().map_err(prepare("our own program"))?;
    let root = directory
        .canonicalize()
        .map_err(prepare("the project's folder"))?;
    let files = settings.files_of(&root)?;
    let probe = Probe::run(&helper);
    let limits = settings.limits;
    let sandbox = Sandbox::new(helper, &probe, settings)?;
    let first = words.first().map(String::as_str).unwrap_or_default();
    let named = root.join(first);
    // A name with a slash is the project's; any other is looked for on the operator's search path.
    let found = match first.contains('/') {
        true => named,
        false => which::which(first).unwrap_or_else(|_| PathBuf::from(first)),
    };
    let interpreter = match files.symlink_metadata(&found) {
        Ok(_) => Interpreter::Projects(&found),
        Err(_) => Interpreter::Operators(&found),
    };
    let readable = sandbox.view(&files, &root, &root, interpreter)?;
    let mut command = Command::new(&found);
    command.current_dir(&root);
    // Of what Nimbus has, the sandbox lets through what is on its list; launchers add the configuration.
    command.envs(std::env::vars_os());
    for name in ["PULUMI_CONFIG", "PULUMI_CONFIG_SECRET_KEYS"] {
        command.env(name, "");
    }
    let observed = sandbox.open()?.observe(&command, &readable)?;
    let counted = match (probe.has(Primitive::Cgroup), sandbox.is_strict()) {
        (true, _) => "the kernel, in a control group",
        (false, true) => "the sandbox; memory that it could not see is not given",
        (false, false) => "the sandbox, as far as it sees it",
    };
    let limit = |what, most, setting| AuditLimit {
        what,
        most,
        setting,
    };
    Ok(SandboxAuditReport {
        program: found,
        command: words,
        memory_counted_by: counted,
        limits: vec![
            limit(
                "bytes of memory",
                limits.memory_bytes,
                "engine.sandbox_memory_mib",
            ),
            limit(
                "processes and threads",
                limits.processes,
                "engine.sandbox_processes",
            ),
            limit(
                "open files of a process",
                limits.open_files,
                "engine.sandbox_open_files",
            ),
            limit(
                "bytes of temporary space",
                limits.temporary_bytes,
                "engine.sandbox_temporary_mib",
            ),
            limit(
                "temporary files",
                limits.temporary_files,
                "engine.sandbox_temporary_files",
            ),
            limit(
                "bytes of output",
                limits.output_bytes,
                "engine.sandbox_output_mib",
            ),
            limit(
                "bytes that the engine holds for it",
                limits.request_bytes,
                "engine.sandbox_requests_mib",
            ),
        ],
        missing: probe.missing().into_iter().map(Primitive::id).collect(),
        sees: places(&observed, false),
        writes: places(&observed, true),
        settings: observed.settings,
        starts: observed
            .programs
            .into_iter()
            .map(|(folder, programs)| AuditFolder { folder, programs })
            .collect(),
        processes: observed.processes,
        interfaces: observed.interfaces,
        variables: observed.variables,
        chosen: Vec::new(),
        user: observed.user,
        privileges: observed.privileges,
        no_new_privileges: observed.no_new_privileges,
        system_calls_filtered: observed.filtered,
    })
}

fn places(observed: &Observation, writable: bool) -> Vec<AuditPlace> {
    // What the kernel itself shows is not a place of files: said once, and that nothing is kept there.
    let kernel = |place: &&ObservedPlace| place.path.starts_with("/proc");
    let places = observed.places.iter().filter(|place| match kernel(place) {
        true => !writable && place.path == Path::new("/proc"),
        false => place.writable == writable,
    });
    places
        .map(|place| AuditPlace {
            path: place.path.clone(),
            bytes: place.bytes,
        })
        .collect()
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct SandboxAuditReport {
    /// What would be run; it was not.
    command: Vec<String>,
    program: PathBuf,
    /// What it sees and cannot change.
    sees: Vec<AuditPlace>,
    /// What it can change.
    writes: Vec<AuditPlace>,
    /// What it sees in `/etc`.
    settings: Vec<String>,
    /// Programs that it can start, by folder of the search path.
    starts: Vec<AuditFolder>,
    /// Processes that it sees, itself among them.
    processes: usize,
    interfaces: Vec<String>,
    /// Names of its variables: those of Nimbus that are let through, and those of its configuration.
    variables: Vec<String>,
    /// Settings of the sandbox that somebody chose, and where.
    chosen: Vec<AuditSetting>,
    user: u32,
    /// Sets of privileges that are not empty.
    privileges: Vec<String>,
    no_new_privileges: bool,
    system_calls_filtered: bool,
    /// Who counts its memory.
    memory_counted_by: &'static str,
    limits: Vec<AuditLimit>,
    /// What this machine lacks for complete isolation.
    missing: Vec<&'static str>,
}

#[derive(JsonSchema, Serialize)]
struct AuditPlace {
    path: PathBuf,
    /// What it can hold; null for places of files.
    bytes: Option<u64>,
}

#[derive(JsonSchema, Serialize)]
struct AuditSetting {
    setting: &'static str,
    /// Flag, variable or line of a file.
    origin: String,
}

#[derive(JsonSchema, Serialize)]
struct AuditFolder {
    folder: PathBuf,
    programs: usize,
}

#[derive(JsonSchema, Serialize)]
struct AuditLimit {
    what: &'static str,
    most: u64,
    setting: &'static str,
}

impl Report for SandboxAuditReport {
    const SCHEMA: &'static str = "nimbus/sandbox-audit/1";

    fn text(&self, terminal: Terminal) -> String {
        let heading = |text: &str| terminal.paint(TextStyle::Heading, text);
        let mut lines = vec![format!("{} (not run)", self.program.display())];
        lines.push(heading("Sees, read-only"));
        lines.extend(self.sees.iter().map(AuditPlace::line));
        lines.push(format!("  /etc: {}", self.settings.join(" ")));
        lines.push(heading("Can write"));
        lines.extend(self.writes.iter().map(AuditPlace::line));
        lines.push(heading("Can start"));
        for AuditFolder { folder, programs } in &self.starts {
            lines.push(format!("  {}: {programs} programs", folder.display()));
        }
        lines.push(heading("Is"));
        let privileges = match self.privileges.is_empty() {
            true => "no privileges".to_owned(),
            false => format!("PRIVILEGES {}", self.privileges.join(" ")),
        };
        lines.push(format!("  user {}, {privileges}", self.user));
        lines.push(format!("  among {} processes", self.processes));
        lines.push(format!("  network: {}", self.interfaces.join(" ")));
        lines.push(format!("  variables: {}", self.variables.join(" ")));
        if !self.chosen.is_empty() {
            lines.push(heading("Because of"));
        }
        for AuditSetting { setting, origin } in &self.chosen {
            lines.push(format!("  {setting} from {origin}"));
        }
        lines.push(heading("Can use up"));
        for AuditLimit {
            what,
            most,
            setting,
        } in &self.limits
        {
            lines.push(format!("  {most} {what} ({setting})"));
        }
        lines.push(format!("  memory is counted by {}", self.memory_counted_by));
        if !self.missing.is_empty() {
            let missing = self.missing.join(", ");
            lines.push(format!("This machine lacks {missing}: see `nimbus doctor`"));
        }
        // Names of folders are the project's, and so is what follows a line end in one.
        let mut page = ReportPage::default();
        lines.iter().for_each(|line| page.line(line));
        page.into_text()
    }
}

impl AuditPlace {
    fn line(&self) -> String {
        match self.bytes {
            Some(bytes) => format!("  {} ({bytes} bytes)", self.path.display()),
            None => format!("  {}", self.path.display()),
        }
    }
}
