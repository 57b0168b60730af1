//! What stands before the command, and the choice of the command.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use pipkin_runtime::caller;
use pipkin_runtime::log::{Format, Level, Log};
use pipkin_runtime::request::{CgroupManager, Global, Rootless};
use pipkin_runtime::{Error, Result};

use super::scan::{Scan, Token};
use super::{Command, container, help, tools};
use crate::output::describe;

/// What holds for every command, as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GlobalArgs {
    pub root: Option<PathBuf>,
    pub log: Option<PathBuf>,
    pub log_format: Format,
    pub log_level: Option<Level>,
    pub rootless: Rootless,
    pub cgroup_manager: CgroupManager,
    pub inject_fault: Option<usize>,
}

impl GlobalArgs {
    /// Opens the log: records are added at its end.
    pub fn open_log(&self) -> Result<Log> {
        let open = |path: &PathBuf| {
            File::options()
                .append(true)
                .create(true)
                .open(path)
                .map_err(|error| Error {
                    errno: error.raw_os_error(),
                    ..Error::new(format!("--log {}: {}", path.display(), describe(&error)))
                })
        };
        Ok(Log {
            format: self.log_format,
            level: self.log_level.unwrap_or(Level::Warning),
            file: self.log.as_ref().map(open).transpose()?,
        })
    }

    /// What the library is told.
    pub fn resolve(self, log: Log) -> Global {
        Global {
            root: self
                .root
                .unwrap_or_else(|| caller::state_root(self.rootless)),
            rootless: self.rootless,
            cgroup_manager: self.cgroup_manager,
            inject_fault: self.inject_fault,
            log,
        }
    }
}

/// Reads the whole line. What was read before a mistake stays in `to`.
pub fn parse(scan: &mut Scan, to: &mut GlobalArgs) -> Result<Command> {
    while let Some(token) = scan.token()? {
        match token {
            Token::Option(option) => {
                if let Some(text) = global_option(scan, &option, to)? {
                    return Ok(Command::Print(text));
                }
            }
            Token::Value(name) => return command(scan, name),
        }
    }
    Err(scan.wrong("a command is missing".into()))
}

/// Reads one option; a text where the option asks for one.
fn global_option(scan: &mut Scan, option: &str, to: &mut GlobalArgs) -> Result<Option<String>> {
    match option {
        "--root" => to.root = Some(scan.value(option, "a directory")?.into()),
        "--log" => to.log = Some(log_file(scan, option)?),
        "--log-format" => to.log_format = log_format(scan, option)?,
        "--log-level" => to.log_level = Some(log_level(scan, option)?),
        "--debug" => {
            if scan.switch(option)? {
                to.log_level = Some(Level::Debug);
            }
        }
        "--rootless" => to.rootless = rootless(scan, option)?,
        "--systemd-cgroup" => {
            if scan.switch(option)? {
                return Err(no_systemd(scan, option));
            }
        }
        "--cgroup-manager" => to.cgroup_manager = cgroup_manager(scan, option)?,
        "--inject-fault" => {
            to.inject_fault = Some(scan.number(option, 1..=u32::MAX)? as usize);
        }
        "-v" | "-V" | "--version" => return Ok(Some(help::version())),
        "-h" | "-?" | "--help" | "--usage" => return Ok(Some(help::GLOBAL.into())),
        _ => return Err(scan.unknown(option)),
    }
    Ok(None)
}

/// crun's spelling of a file is accepted; its other kinds of log are not there yet.
fn log_file(scan: &mut Scan, option: &str) -> Result<PathBuf> {
    let value = scan.value(option, "a file")?;
    let Some(text) = value.to_str() else {
        return Ok(value.into());
    };
    for kind in ["journald:", "syslog:"] {
        if text.starts_with(kind) {
            return Err(scan.wrong(format!(
                "{option} {kind} is not implemented yet; name a file"
            )));
        }
    }
    let path = text.strip_prefix("file:").unwrap_or(text);
    if path.is_empty() {
        Err(scan.bad_value(option, text, "a file"))
    } else {
        Ok(path.into())
    }
}

fn log_format(scan: &mut Scan, option: &str) -> Result<Format> {
    match scan.text(option, "text or json")?.as_str() {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        other => Err(scan.bad_value(option, other, "text or json")),
    }
}

fn log_level(scan: &mut Scan, option: &str) -> Result<Level> {
    const RIGHT: &str = "error, warning, info or debug";
    match scan.text(option, RIGHT)?.as_str() {
        "error" => Ok(Level::Error),
        "warning" | "warn" => Ok(Level::Warning),
        "info" => Ok(Level::Info),
        "debug" => Ok(Level::Debug),
        other => Err(scan.bad_value(option, other, RIGHT)),
    }
}

/// runc wants a value, crun takes it with `=`; alone it means yes.
fn rootless(scan: &mut Scan, option: &str) -> Result<Rootless> {
    let value = scan.optional_word(&["auto", "true", "false"]);
    match value
        .as_ref()
        .map(|value| value.to_string_lossy())
        .as_deref()
    {
        None | Some("true") => Ok(Rootless::True),
        Some("false") => Ok(Rootless::False),
        Some("auto") => Ok(Rootless::Auto),
        Some(other) => Err(scan.bad_value(option, other, "auto, true or false")),
    }
}

fn cgroup_manager(scan: &mut Scan, option: &str) -> Result<CgroupManager> {
    const RIGHT: &str = "cgroupfs, systemd or disabled";
    match scan.text(option, RIGHT)?.as_str() {
        "cgroupfs" => Ok(CgroupManager::Cgroupfs),
        "disabled" => Ok(CgroupManager::Disabled),
        "systemd" => Err(no_systemd(scan, "--cgroup-manager systemd")),
        other => Err(scan.bad_value(option, other, RIGHT)),
    }
}

fn no_systemd(scan: &Scan, option: &str) -> Error {
    let error = scan.wrong(format!(
        "{option}: the systemd cgroup manager is not implemented yet"
    ));
    error.with_hint(
        "tell the engine to use the cgroupfs manager \
         (podman: --cgroup-manager cgroupfs, docker: --exec-opt native.cgroupdriver=cgroupfs)",
    )
}

fn command(scan: &mut Scan, name: OsString) -> Result<Command> {
    let name = name.to_string_lossy();
    let Some(name) = help::COMMANDS.iter().copied().find(|known| *known == name) else {
        return Err(scan.wrong(format!("unknown command \"{name}\"")));
    };
    scan.enter(name);
    match name {
        "create" => container::create(scan),
        "run" => container::run(scan),
        "plan" => container::plan(scan),
        "start" => container::start(scan),
        "state" => container::state(scan),
        "kill" => container::kill(scan),
        "delete" => container::delete(scan),
        "list" => tools::list(scan),
        "spec" => tools::spec(scan),
        "features" => tools::features(scan),
        "try" => tools::attempt(scan),
        "help" => tools::help(scan),
        _ => Err(Error::new(format!("{name} is not implemented yet"))),
    }
}
