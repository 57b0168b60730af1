//! What the command line adds to the configuration.

/// How far a start goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Until {
    /// `create`: the container's process waits for `start`.
    #[default]
    Created,
    /// `run`: it goes on to execute its program.
    Running,
}

/// What the command line adds to the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The container's id.
    pub id: String,
    /// Absolute path of the bundle.
    pub bundle: String,
    /// How far it goes.
    pub until: Until,
    /// Where the process's id is written.
    pub pid_file: Option<String>,
    /// Socket that receives the terminal.
    pub console_socket: Option<String>,
    /// `--no-pivot`.
    pub no_pivot: bool,
    /// `--no-new-keyring`.
    pub no_new_keyring: bool,
    /// How many descriptors after standard error the process keeps, `listen_fds` included.
    pub preserve_fds: u32,
    /// How many of them are sockets that it shall listen on, sd_listen_fds(3).
    pub listen_fds: u32,
    /// Path of the container's cgroup, for what is printed; empty without one.
    pub cgroup: String,
}
