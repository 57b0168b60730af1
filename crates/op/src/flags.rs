//! Flags of mounts, as the kernel numbers them.

/// `MS_*` of `linux/mount.h`.
pub mod ms {
    /// Read-only.
    pub const RDONLY: u64 = 1;
    /// Ignore set-user-id bits.
    pub const NOSUID: u64 = 1 << 1;
    /// No access to devices.
    pub const NODEV: u64 = 1 << 2;
    /// No execution.
    pub const NOEXEC: u64 = 1 << 3;
    /// Write at once.
    pub const SYNCHRONOUS: u64 = 1 << 4;
    /// Change an existing mount.
    pub const REMOUNT: u64 = 1 << 5;
    /// Mandatory locks.
    pub const MANDLOCK: u64 = 1 << 6;
    /// Directories are written at once.
    pub const DIRSYNC: u64 = 1 << 7;
    /// Symbolic links are not followed.
    pub const NOSYMFOLLOW: u64 = 1 << 8;
    /// Access times are not kept.
    pub const NOATIME: u64 = 1 << 10;
    /// Nor those of directories.
    pub const NODIRATIME: u64 = 1 << 11;
    /// Bind.
    pub const BIND: u64 = 1 << 12;
    /// Move.
    pub const MOVE: u64 = 1 << 13;
    /// With the mounts below.
    pub const REC: u64 = 1 << 14;
    /// Quiet.
    pub const SILENT: u64 = 1 << 15;
    /// Access control lists.
    pub const POSIXACL: u64 = 1 << 16;
    /// Cannot be bound.
    pub const UNBINDABLE: u64 = 1 << 17;
    /// Neither receives nor sends.
    pub const PRIVATE: u64 = 1 << 18;
    /// Receives.
    pub const SLAVE: u64 = 1 << 19;
    /// Receives and sends.
    pub const SHARED: u64 = 1 << 20;
    /// Access times relative to modification times.
    pub const RELATIME: u64 = 1 << 21;
    /// Version number of inodes.
    pub const I_VERSION: u64 = 1 << 23;
    /// Every access time is kept.
    pub const STRICTATIME: u64 = 1 << 24;
    /// Times are written late.
    pub const LAZYTIME: u64 = 1 << 25;
}

/// `MOUNT_ATTR_*` of `linux/mount.h`.
pub mod attr {
    /// Read-only.
    pub const RDONLY: u64 = 0x01;
    /// Ignore set-user-id bits.
    pub const NOSUID: u64 = 0x02;
    /// No access to devices.
    pub const NODEV: u64 = 0x04;
    /// No execution.
    pub const NOEXEC: u64 = 0x08;
    /// The bits that say how access times are kept; 0 is relatime.
    pub const ATIME: u64 = 0x70;
    /// Not kept.
    pub const NOATIME: u64 = 0x10;
    /// Always kept.
    pub const STRICTATIME: u64 = 0x20;
    /// Those of directories are not kept.
    pub const NODIRATIME: u64 = 0x80;
    /// Owners are mapped.
    pub const IDMAP: u64 = 0x10_0000;
    /// Symbolic links are not followed.
    pub const NOSYMFOLLOW: u64 = 0x20_0000;
}
