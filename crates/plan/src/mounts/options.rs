//! Options of a mount: those of mount(8) and those that the specification adds, in one
//! table. What is not in it is data for the file system.

use pipkin_op::{MountAttr, attr, ms};

/// What an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Sets an attribute of the mount: its `MOUNT_ATTR_*` and its `MS_*`.
    Set(u64, u64),
    /// Clears one.
    Clear(u64, u64),
    /// Says how access times are kept.
    Atime(u64, u64),
    /// Sets, clears, or says for all mounts below.
    SetAll(u64),
    ClearAll(u64),
    AtimeAll(u64),
    /// A flag of the file system.
    Super(u64),
    /// Takes such a flag back.
    NotSuper(u64),
    /// `MS_*` propagation, and whether for all mounts below.
    Propagation(u64, bool),
    /// A bind mount, and whether with the mounts below.
    Bind(bool),
    CopyUp,
    Idmap(bool),
    SourceNofollow,
    DestinationNofollow,
    /// Says something to mount(8) or to a person, nothing to the kernel.
    Nothing,
}

macro_rules! options {
    ($($name:literal => $effect:expr,)*) => {
        const TABLE: &[(&str, Effect)] = &[$(($name, $effect)),*];

        /// The names of all options, for `features`.
        pub const OPTIONS: &[&str] = &[$($name),*];
    };
}

use Effect::{
    Atime, AtimeAll, Bind, Clear, ClearAll, CopyUp, DestinationNofollow, Idmap, NotSuper, Nothing,
    Propagation, Set, SetAll, SourceNofollow, Super,
};

options! {
    "acl" => Super(ms::POSIXACL),
    "async" => NotSuper(ms::SYNCHRONOUS),
    "atime" => Clear(attr::ATIME, ms::NOATIME),
    "auto" => Nothing,
    "bind" => Bind(false),
    "defaults" => Nothing,
    "dest-nofollow" => DestinationNofollow,
    "dev" => Clear(attr::NODEV, ms::NODEV),
    "diratime" => Clear(attr::NODIRATIME, ms::NODIRATIME),
    "dirsync" => Super(ms::DIRSYNC),
    "exec" => Clear(attr::NOEXEC, ms::NOEXEC),
    "idmap" => Idmap(false),
    "iversion" => Super(ms::I_VERSION),
    "lazytime" => Super(ms::LAZYTIME),
    "loud" => NotSuper(ms::SILENT),
    "mand" => Super(ms::MANDLOCK),
    "noacl" => NotSuper(ms::POSIXACL),
    "noatime" => Atime(attr::NOATIME, ms::NOATIME),
    "noauto" => Nothing,
    "nodev" => Set(attr::NODEV, ms::NODEV),
    "nodiratime" => Set(attr::NODIRATIME, ms::NODIRATIME),
    "noexec" => Set(attr::NOEXEC, ms::NOEXEC),
    "nofail" => Nothing,
    "noiversion" => NotSuper(ms::I_VERSION),
    "nolazytime" => NotSuper(ms::LAZYTIME),
    "nomand" => NotSuper(ms::MANDLOCK),
    "norelatime" => Clear(attr::ATIME, ms::RELATIME),
    "nostrictatime" => Clear(attr::ATIME, ms::STRICTATIME),
    "nosuid" => Set(attr::NOSUID, ms::NOSUID),
    "nosymfollow" => Set(attr::NOSYMFOLLOW, ms::NOSYMFOLLOW),
    "private" => Propagation(ms::PRIVATE, false),
    "ratime" => ClearAll(attr::ATIME),
    "rbind" => Bind(true),
    "rdev" => ClearAll(attr::NODEV),
    "rdiratime" => ClearAll(attr::NODIRATIME),
    "relatime" => Atime(0, ms::RELATIME),
    "remount" => Super(ms::REMOUNT),
    "rexec" => ClearAll(attr::NOEXEC),
    "ridmap" => Idmap(true),
    "rnoatime" => AtimeAll(attr::NOATIME),
    "rnodev" => SetAll(attr::NODEV),
    "rnodiratime" => SetAll(attr::NODIRATIME),
    "rnoexec" => SetAll(attr::NOEXEC),
    "rnorelatime" => ClearAll(attr::ATIME),
    "rnostrictatime" => ClearAll(attr::ATIME),
    "rnosuid" => SetAll(attr::NOSUID),
    "rnosymfollow" => SetAll(attr::NOSYMFOLLOW),
    "ro" => Set(attr::RDONLY, ms::RDONLY),
    "rprivate" => Propagation(ms::PRIVATE, true),
    "rrelatime" => AtimeAll(0),
    "rro" => SetAll(attr::RDONLY),
    "rrw" => ClearAll(attr::RDONLY),
    "rshared" => Propagation(ms::SHARED, true),
    "rslave" => Propagation(ms::SLAVE, true),
    "rstrictatime" => AtimeAll(attr::STRICTATIME),
    "rsuid" => ClearAll(attr::NOSUID),
    "rsymfollow" => ClearAll(attr::NOSYMFOLLOW),
    "runbindable" => Propagation(ms::UNBINDABLE, true),
    "rw" => Clear(attr::RDONLY, ms::RDONLY),
    "shared" => Propagation(ms::SHARED, false),
    "silent" => Super(ms::SILENT),
    "slave" => Propagation(ms::SLAVE, false),
    "src-nofollow" => SourceNofollow,
    "strictatime" => Atime(attr::STRICTATIME, ms::STRICTATIME),
    "suid" => Clear(attr::NOSUID, ms::NOSUID),
    "symfollow" => Clear(attr::NOSYMFOLLOW, ms::NOSYMFOLLOW),
    "sync" => Super(ms::SYNCHRONOUS),
    "tmpcopyup" => CopyUp,
    "unbindable" => Propagation(ms::UNBINDABLE, false),
}

/// The options of one mount, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `MS_*` for mount(2): attributes and flags of the file system.
    pub flags: u64,
    /// Attributes of the mount alone.
    pub attr: MountAttr,
    /// Attributes of the mount and those below it.
    pub attr_all: MountAttr,
    /// Changes of propagation, in order: `MS_*`, and whether for the mounts below.
    pub propagation: Vec<(u64, bool)>,
    /// A bind mount, and whether with the mounts below.
    pub bind: Option<bool>,
    /// Begins with what it covers.
    pub copy_up: bool,
    /// Id-mapped, and whether with the mounts below.
    pub idmap: Option<bool>,
    /// The source's last component is not followed.
    pub source_nofollow: bool,
    /// The destination's last component is not followed.
    pub destination_nofollow: bool,
    /// What the file system reads.
    pub data: Vec<String>,
}

impl Options {
    /// Reads a list of options.
    pub fn new(options: &[String]) -> Self {
        let mut read = Self::default();
        for option in options {
            match TABLE.binary_search_by_key(&option.as_str(), |(name, _)| name) {
                Ok(at) => {
                    if let Some(&(_, effect)) = TABLE.get(at) {
                        read.apply(effect);
                    }
                }
                Err(_) if option.is_empty() => {}
                Err(_) => read.data.push(option.clone()),
            }
        }
        read
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Set(attr, flags) => {
                set(&mut self.attr, attr);
                self.flags |= flags;
            }
            Clear(attr, flags) => {
                clear(&mut self.attr, attr);
                self.flags &= !flags;
            }
            Atime(attr, flags) => {
                set_atime(&mut self.attr, attr);
                self.flags &= !(ms::NOATIME | ms::RELATIME | ms::STRICTATIME);
                self.flags |= flags;
            }
            SetAll(attr) => set(&mut self.attr_all, attr),
            ClearAll(attr) => clear(&mut self.attr_all, attr),
            AtimeAll(attr) => set_atime(&mut self.attr_all, attr),
            Super(flags) => self.flags |= flags,
            NotSuper(flags) => self.flags &= !flags,
            Propagation(flags, all) => self.propagation.push((flags, all)),
            Bind(all) => self.bind = Some(all || self.bind == Some(true)),
            CopyUp => self.copy_up = true,
            Idmap(all) => self.idmap = Some(all),
            SourceNofollow => self.source_nofollow = true,
            DestinationNofollow => self.destination_nofollow = true,
            Nothing => {}
        }
        self.attr_all.recursive = true;
    }
}

fn set(attr: &mut MountAttr, bits: u64) {
    attr.set |= bits;
    attr.clear &= !bits;
}

fn clear(attr: &mut MountAttr, bits: u64) {
    attr.clear |= bits;
    attr.set &= !bits;
}

/// The kernel wants all bits that say how access times are kept cleared when one is set.
fn set_atime(attr: &mut MountAttr, bits: u64) {
    attr.set = attr.set & !attr::ATIME | bits;
    attr.clear |= attr::ATIME;
}

/// The `MOUNT_ATTR_*` that a new mount gets from `MS_*`.
pub fn attributes(flags: u64) -> u64 {
    const PAIRS: [(u64, u64); 8] = [
        (ms::RDONLY, attr::RDONLY),
        (ms::NOSUID, attr::NOSUID),
        (ms::NODEV, attr::NODEV),
        (ms::NOEXEC, attr::NOEXEC),
        (ms::NOATIME, attr::NOATIME),
        (ms::STRICTATIME, attr::STRICTATIME),
        (ms::NODIRATIME, attr::NODIRATIME),
        (ms::NOSYMFOLLOW, attr::NOSYMFOLLOW),
    ];
    PAIRS
        .iter()
        .filter(|(ms, _)| flags & ms != 0)
        .map(|(_, attr)| attr)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[&str]) -> Options {
        Options::new(
            &options
                .iter()
                .map(|&option| option.to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by_key(|(name, _)| name));
    }

    #[test]
    fn flags_and_attributes_agree() {
        let options = read(&["ro", "nosuid", "nodev", "noexec", "strictatime", "mode=755"]);
        assert_eq!(options.flags, 1 | 2 | 4 | 8 | 1 << 24);
        assert_eq!(options.attr.set, 0x01 | 0x02 | 0x04 | 0x08 | 0x20);
        assert_eq!(options.attr.clear, 0x70);
        assert_eq!(attributes(options.flags), options.attr.set);
        assert_eq!(options.data, ["mode=755"]);
    }

    #[test]
    fn the_last_of_two_opposites_wins() {
        assert_eq!(read(&["ro", "rw"]).flags, 0);
        assert_eq!(read(&["rw", "ro"]).attr.set, 1);
        assert_eq!(read(&["noatime", "relatime"]).attr.set, 0);
        assert_eq!(read(&["noatime", "strictatime"]).attr.set, 0x20);
        assert_eq!(read(&["bind", "rbind"]).bind, Some(true));
    }

    #[test]
    fn recursive_attributes_stand_apart() {
        let options = read(&["rro", "rnoexec", "rsuid", "nodev"]);
        assert_eq!(options.attr_all.set, 0x01 | 0x08);
        assert_eq!(options.attr_all.clear, 0x02);
        assert!(options.attr_all.recursive);
        assert_eq!(options.attr.set, 0x04);
    }
}
