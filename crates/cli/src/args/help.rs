//! What `--help` and `--version` print.

use super::Command;

/// What `--version` prints, in runc's form: engines read the first line, docker also
/// that of the commit.
pub fn version() -> String {
    let commit = match env!("PIPKIN_COMMIT") {
        "" => String::new(),
        commit => format!("commit: {commit}\n"),
    };
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "pipkin version {version}\n{commit}spec: {}\n",
        pipkin_spec::OCI_VERSION
    )
}

/// All commands by name.
pub const COMMANDS: [&str; 20] = [
    "create",
    "start",
    "run",
    "state",
    "kill",
    "delete",
    "list",
    "spec",
    "features",
    "plan",
    "try",
    "help",
    "exec",
    "ps",
    "pause",
    "resume",
    "update",
    "events",
    "checkpoint",
    "restore",
];

pub const GLOBAL: &str = "\
pipkin makes a running, isolated process of an OCI bundle.

Usage: pipkin [OPTION...] COMMAND [OPTION...] [ARGUMENT...]

The life of a container:
  create      make a container; its process waits
  start       let the process of a created container execute
  run         create, start, wait, delete
  state       print the state of a container as JSON
  kill        send a signal to a container
  delete      remove what a stopped container left
  list        list the containers

Without a container:
  try         run a command in a throwaway copy of this system
  plan        print the steps that a create would take
  spec        write a config.json to begin with
  features    print what this runtime can do as JSON
  help        explain a command

Not there yet:
  exec, ps, pause, resume, update, events, checkpoint, restore

Options before the command:
  --root DIR              where the state of containers is kept
                          (/run/pipkin; $XDG_RUNTIME_DIR/pipkin unless root)
  --log FILE              add log records to FILE as well
  --log-format FORM       text (default) or json
  --log-level LEVEL       error, warning (default), info or debug
  --debug                 the same as --log-level debug
  --rootless[=WHETHER]    do without privileges: auto (default), true or false
  --cgroup-manager NAME   cgroupfs (default) or disabled; systemd is not there yet
  --systemd-cgroup        not there yet
  -v, --version           print the version
  -h, --help              print this

pipkin COMMAND --help explains a command.
";

const CREATE: &str = "\
Makes a container from a bundle. Its process exists afterwards, in its namespaces and
with its limits, and waits for `start` to execute what the configuration says.

Usage: pipkin create [OPTION...] CONTAINER

  -b, --bundle DIR        directory with config.json (the current one)
  -f, --config FILE       configuration to read instead of config.json
  --pid-file FILE         write the pid of the container's process to FILE
  --console-socket PATH   send the terminal's descriptor to the socket at PATH
  --no-pivot              do not use pivot_root(2), as on a ramdisk
  --no-new-keyring        stay in the session keyring of the caller
  --preserve-fds N        pass N descriptors from 3 on, besides those of LISTEN_FDS
";

const RUN: &str = "\
Makes a container, starts it, waits for its process, deletes it and exits with the
status of that process (128 and the signal's number where a signal ended it). Signals
are passed on.

Usage: pipkin run [OPTION...] CONTAINER

  -d, --detach            return as soon as the process executes; delete nothing
  --keep                  keep the container when its process has ended
  -b, --bundle DIR        directory with config.json (the current one)
  -f, --config FILE       configuration to read instead of config.json
  --pid-file FILE         write the pid of the container's process to FILE
  --console-socket PATH   send the terminal's descriptor to the socket at PATH
  --no-pivot              do not use pivot_root(2), as on a ramdisk
  --no-new-keyring        stay in the session keyring of the caller
  --preserve-fds N        pass N descriptors from 3 on, besides those of LISTEN_FDS
";

const PLAN: &str = "\
Prints the steps that `create` would take, in their order, and takes none of them.

Usage: pipkin plan [OPTION...] [CONTAINER]

The options are those of `create`.
";

const START: &str = "\
Lets the process of a created container execute.

Usage: pipkin start CONTAINER
";

const STATE: &str = "\
Prints the state of a container as the JSON of the OCI runtime specification.

Usage: pipkin state CONTAINER
";

const KILL: &str = "\
Sends a signal to the first process of a container.

Usage: pipkin kill [OPTION...] CONTAINER [SIGNAL]

SIGNAL is a name (TERM, SIGTERM, RTMIN+1) or a number; without it, TERM is sent.

  -a, --all               signal every process of the container
  -r, --regex             CONTAINER is a regular expression: signal all that match
";

const DELETE: &str = "\
Removes what a stopped container left: its control group and its state.

Usage: pipkin delete [OPTION...] CONTAINER

  -f, --force             kill what still runs; that nothing is there is no error
  -r, --regex             CONTAINER is a regular expression: delete all that match
";

const LIST: &str = "\
Lists the containers.

Usage: pipkin list [OPTION...]

  -f, --format FORM       table (default) or json
  -q, --quiet             print names only
";

const SPEC: &str = "\
Writes a config.json to begin with: a shell in a read-only root file system `rootfs`.
An existing config.json is left alone.

Usage: pipkin spec [OPTION...]

  -b, --bundle DIR        directory to write to (the current one)
  --rootless              for a user who is not root
";

const FEATURES: &str = "\
Prints what this runtime can do as the JSON of the OCI runtime specification.

Usage: pipkin features
";

const TRY: &str = "\
Runs a command (a shell, if none is given) in a throwaway container. It sees all files
of this system; what it writes is gone afterwards, and it has no network.

Usage: pipkin try [OPTION...] [--] [COMMAND [ARGUMENT...]]

  --net                   use the network of this system
";

const HELP: &str = "\
Explains a command.

Usage: pipkin help [COMMAND]
";

/// Whether this option asks for help.
pub fn asked(option: &str) -> bool {
    matches!(option, "-h" | "-?" | "--help" | "--usage")
}

/// The command that prints the help of this one.
pub fn of(command: &str) -> Command {
    let text = match command {
        "create" => CREATE,
        "run" => RUN,
        "plan" => PLAN,
        "start" => START,
        "state" => STATE,
        "kill" => KILL,
        "delete" => DELETE,
        "list" => LIST,
        "spec" => SPEC,
        "features" => FEATURES,
        "try" => TRY,
        "help" => HELP,
        other => return Command::Print(format!("{other} is not implemented yet.\n")),
    };
    Command::Print(text.into())
}
