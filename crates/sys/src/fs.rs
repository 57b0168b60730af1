//! Files and directories.

use core::ffi::CStr;

use crate::{Errno, Fd, Result, as_fd, call, fd};

/// `O_*` of `asm-generic/fcntl.h`, those whose value differs between architectures apart.
pub mod oflag {
    /// Read only.
    pub const RDONLY: u32 = 0;
    /// Write only.
    pub const WRONLY: u32 = 1;
    /// Read and write.
    pub const RDWR: u32 = 2;
    /// Make the file.
    pub const CREAT: u32 = 0o100;
    /// Fail where it exists.
    pub const EXCL: u32 = 0o200;
    /// Do not make it the controlling terminal.
    pub const NOCTTY: u32 = 0o400;
    /// Cut it to length 0.
    pub const TRUNC: u32 = 0o1000;
    /// Do not wait.
    pub const NONBLOCK: u32 = 0o4000;
    /// Fail where it is not a directory.
    #[cfg(target_arch = "x86_64")]
    pub const DIRECTORY: u32 = 0o200_000;
    /// Fail where it is not a directory.
    #[cfg(target_arch = "aarch64")]
    pub const DIRECTORY: u32 = 0o40_000;
    /// Fail on a symbolic link.
    #[cfg(target_arch = "x86_64")]
    pub const NOFOLLOW: u32 = 0o400_000;
    /// Fail on a symbolic link.
    #[cfg(target_arch = "aarch64")]
    pub const NOFOLLOW: u32 = 0o100_000;
    /// Close at execve(2).
    pub const CLOEXEC: u32 = 0o2_000_000;
    /// A place, not its content.
    pub const PATH: u32 = 0o10_000_000;
}

/// `RESOLVE_*` of openat2(2).
pub mod resolve {
    /// Magic links of /proc are not followed.
    pub const NO_MAGICLINKS: u64 = 0x02;
    /// Symbolic links are not followed.
    pub const NO_SYMLINKS: u64 = 0x04;
    /// The walk stays below the directory.
    pub const BENEATH: u64 = 0x08;
    /// The directory is the root of the walk.
    pub const IN_ROOT: u64 = 0x10;
}

/// Types in a mode, `S_IFMT` of inode(7).
pub mod mode {
    /// The bits that hold the type.
    pub const TYPE: u32 = 0o170_000;
    /// Directory.
    pub const DIRECTORY: u32 = 0o040_000;
    /// Character device.
    pub const CHARACTER: u32 = 0o020_000;
    /// Block device.
    pub const BLOCK: u32 = 0o060_000;
    /// Regular file.
    pub const REGULAR: u32 = 0o100_000;
    /// FIFO.
    pub const FIFO: u32 = 0o010_000;
    /// Symbolic link.
    pub const SYMLINK: u32 = 0o120_000;
}

/// What statx(2) tells of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stat {
    /// Type and permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Inode.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Device that this file is: major and minor.
    pub rdev: (u32, u32),
    /// Device that this file is on: major and minor.
    pub dev: (u32, u32),
}

impl Stat {
    /// Whether it is of this type, one of [`mode`].
    #[must_use]
    pub const fn is(&self, kind: u32) -> bool {
        self.mode & mode::TYPE == kind
    }
}

/// `struct statx`, `linux/stat.h`.
#[repr(C)]
#[derive(Default)]
struct Statx {
    mask: u32,
    block_size: u32,
    attributes: u64,
    links: u32,
    uid: u32,
    gid: u32,
    mode: u16,
    pad: u16,
    inode: u64,
    size: u64,
    blocks: u64,
    attributes_mask: u64,
    times: [u64; 8],
    rdev_major: u32,
    rdev_minor: u32,
    dev_major: u32,
    dev_minor: u32,
    rest: [u64; 14],
}

const AT_EMPTY_PATH: usize = 0x1000;
const AT_SYMLINK_NOFOLLOW: usize = 0x100;
const STATX_BASIC_STATS: usize = 0x7ff;

fn statx(dir: Fd, path: &CStr, flags: usize) -> Result<Stat> {
    let mut out = Statx::default();
    // SAFETY: `path` ends with a NUL and `out` is a `struct statx` that the kernel fills.
    unsafe {
        call!(
            STATX,
            fd(dir),
            path.as_ptr() as usize,
            flags,
            STATX_BASIC_STATS,
            &raw mut out as usize
        )?;
    }
    Ok(Stat {
        mode: u32::from(out.mode),
        uid: out.uid,
        gid: out.gid,
        inode: out.inode,
        size: out.size,
        rdev: (out.rdev_major, out.rdev_minor),
        dev: (out.dev_major, out.dev_minor),
    })
}

/// What a descriptor refers to, statx(2) with `AT_EMPTY_PATH`.
pub fn stat_fd(file: Fd) -> Result<Stat> {
    statx(file, c"", AT_EMPTY_PATH)
}

/// What a name in a directory refers to; a symbolic link is not followed.
pub fn stat_at(dir: Fd, path: &CStr) -> Result<Stat> {
    statx(dir, path, AT_SYMLINK_NOFOLLOW)
}

/// What a path refers to.
pub fn stat_path(dir: Fd, path: &CStr) -> Result<Stat> {
    statx(dir, path, 0)
}

/// openat(2); always close-on-exec.
pub fn openat(dir: Fd, path: &CStr, flags: u32, mode: u32) -> Result<Fd> {
    // SAFETY: `path` ends with a NUL.
    unsafe {
        call!(
            OPENAT,
            fd(dir),
            path.as_ptr() as usize,
            (flags | oflag::CLOEXEC) as usize,
            mode as usize
        )
        .map(as_fd)
    }
}

/// openat2(2); always close-on-exec. Tried again when the walk was disturbed (`EAGAIN`,
/// which `RESOLVE_IN_ROOT` gives when something was renamed meanwhile), at most 128 times.
pub fn openat2(dir: Fd, path: &CStr, flags: u32, mode: u32, resolve: u64) -> Result<Fd> {
    let how = [u64::from(flags | oflag::CLOEXEC), u64::from(mode), resolve];
    let mut tries = 0;
    loop {
        // SAFETY: `path` ends with a NUL; `how` is a `struct open_how` of 24 bytes.
        let result = unsafe {
            call!(
                OPENAT2,
                fd(dir),
                path.as_ptr() as usize,
                how.as_ptr() as usize,
                size_of_val(&how)
            )
        };
        tries += 1;
        match result {
            Err(Errno::EAGAIN) if tries < 128 => {}
            other => return other.map(as_fd),
        }
    }
}

/// close(2). Its errors say nothing that could be acted on.
pub fn close(file: Fd) {
    // SAFETY: no memory is passed.
    let _ = unsafe { call!(CLOSE, fd(file)) };
}

/// read(2), again after a signal.
pub fn read(file: Fd, buffer: &mut [u8]) -> Result<usize> {
    loop {
        // SAFETY: the kernel writes at most the length of `buffer` into it.
        let result = unsafe { call!(READ, fd(file), buffer.as_mut_ptr() as usize, buffer.len()) };
        if result != Err(Errno::EINTR) {
            return result;
        }
    }
}

/// write(2), again after a signal.
pub fn write(file: Fd, bytes: &[u8]) -> Result<usize> {
    loop {
        // SAFETY: the kernel reads at most the length of `bytes` from it.
        let result = unsafe { call!(WRITE, fd(file), bytes.as_ptr() as usize, bytes.len()) };
        if result != Err(Errno::EINTR) {
            return result;
        }
    }
}

/// mkdirat(2).
pub fn mkdirat(dir: Fd, path: &CStr, mode: u32) -> Result<()> {
    // SAFETY: `path` ends with a NUL.
    unsafe { call!(MKDIRAT, fd(dir), path.as_ptr() as usize, mode as usize).map(drop) }
}

/// A device number as mknodat(2) takes it, `new_encode_dev` of the kernel.
const fn encode_dev(major: u32, minor: u32) -> usize {
    ((minor & 0xff) | ((major & 0xfff) << 8) | ((minor & !0xff) << 12)) as usize
}

/// mknodat(2).
pub fn mknodat(dir: Fd, path: &CStr, mode: u32, major: u32, minor: u32) -> Result<()> {
    // SAFETY: `path` ends with a NUL.
    unsafe {
        call!(
            MKNODAT,
            fd(dir),
            path.as_ptr() as usize,
            mode as usize,
            encode_dev(major, minor)
        )
        .map(drop)
    }
}

/// symlinkat(2).
pub fn symlinkat(target: &CStr, dir: Fd, path: &CStr) -> Result<()> {
    // SAFETY: both strings end with a NUL.
    unsafe {
        call!(
            SYMLINKAT,
            target.as_ptr() as usize,
            fd(dir),
            path.as_ptr() as usize
        )
        .map(drop)
    }
}

/// readlinkat(2).
pub fn readlinkat<'b>(dir: Fd, path: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
    // SAFETY: `path` ends with a NUL; the kernel writes at most the length of `buffer`.
    let length = unsafe {
        call!(
            READLINKAT,
            fd(dir),
            path.as_ptr() as usize,
            buffer.as_mut_ptr() as usize,
            buffer.len()
        )?
    };
    buffer.get(..length).ok_or(Errno::ENAMETOOLONG)
}

/// fchmod(2).
pub fn fchmod(file: Fd, mode: u32) -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(FCHMOD, fd(file), mode as usize).map(drop) }
}

/// fchmodat(2), which follows a symbolic link.
pub fn fchmodat(dir: Fd, path: &CStr, mode: u32) -> Result<()> {
    // SAFETY: `path` ends with a NUL.
    unsafe { call!(FCHMODAT, fd(dir), path.as_ptr() as usize, mode as usize).map(drop) }
}

/// fchownat(2); a symbolic link is not followed, an empty path is the descriptor itself.
pub fn fchownat(dir: Fd, path: &CStr, uid: u32, gid: u32) -> Result<()> {
    // SAFETY: `path` ends with a NUL.
    unsafe {
        call!(
            FCHOWNAT,
            fd(dir),
            path.as_ptr() as usize,
            uid as usize,
            gid as usize,
            AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH
        )
        .map(drop)
    }
}

/// What fstatfs(2) tells of the file system, and of the mount, that a descriptor is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    /// Its magic number, `linux/magic.h`.
    pub magic: u64,
    /// `ST_*` of statfs(2): flags of the mount, and `ST_RDONLY` also where the file system
    /// itself is read-only.
    pub flags: u64,
}

/// `PROC_SUPER_MAGIC` of `linux/magic.h`.
pub const PROC_MAGIC: u64 = 0x9fa0;

/// fstatfs(2).
pub fn statfs(file: Fd) -> Result<FileSystem> {
    let mut out = [0u64; 16];
    // SAFETY: `struct statfs` has 120 bytes on 64-bit machines; the kernel fills them.
    unsafe { call!(FSTATFS, fd(file), out.as_mut_ptr() as usize)? };
    Ok(FileSystem {
        magic: out[0],
        flags: out[10],
    })
}

/// fstatfs(2): the magic number of the file system, `linux/magic.h`.
pub fn filesystem(file: Fd) -> Result<u64> {
    statfs(file).map(|is| is.magic)
}

/// Whether the file may be executed with the effective ids, faccessat2(2) with `AT_EACCESS`;
/// before Linux 5.8, or where a seccomp filter hides that (ENOSYS or EPERM), with the real ones,
/// faccessat(2).
pub fn may_execute(dir: Fd, path: &CStr) -> Result<()> {
    const X_OK: usize = 1;
    const AT_EACCESS: usize = 0x200;
    // SAFETY: `path` ends with a NUL.
    let result = unsafe {
        call!(
            FACCESSAT2,
            fd(dir),
            path.as_ptr() as usize,
            X_OK,
            AT_EACCESS
        )
    };
    match result {
        // SAFETY: `path` ends with a NUL.
        Err(Errno::ENOSYS | Errno::EPERM) => unsafe {
            call!(FACCESSAT, fd(dir), path.as_ptr() as usize, X_OK).map(drop)
        },
        other => other.map(drop),
    }
}

/// umask(2).
pub fn umask(mask: u32) -> u32 {
    // SAFETY: no memory is passed.
    unsafe { call!(UMASK, mask as usize) }.map_or(0, |old| old as u32)
}

/// chdir(2).
pub fn chdir(path: &CStr) -> Result<()> {
    // SAFETY: `path` ends with a NUL.
    unsafe { call!(CHDIR, path.as_ptr() as usize).map(drop) }
}

/// fchdir(2).
pub fn fchdir(dir: Fd) -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(FCHDIR, fd(dir)).map(drop) }
}

/// Whether the current directory lies below the root directory: the path that
/// getcwd(2) gives then begins with a slash, else with `(unreachable)`.
pub fn cwd_is_inside() -> Result<bool> {
    let mut buffer = [0u8; 4096];
    // SAFETY: the kernel writes at most the length of `buffer`.
    unsafe { call!(GETCWD, buffer.as_mut_ptr() as usize, buffer.len())? };
    Ok(buffer[0] == b'/')
}

/// dup3(2); `to` is not close-on-exec.
pub fn dup3(from: Fd, to: Fd) -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(DUP3, fd(from), fd(to), 0).map(drop) }
}

/// Whether a descriptor survives execve(2), fcntl(2) `F_SETFD`.
pub fn set_cloexec(file: Fd, cloexec: bool) -> Result<()> {
    const F_SETFD: usize = 2;
    // SAFETY: no memory is passed.
    unsafe { call!(FCNTL, fd(file), F_SETFD, usize::from(cloexec)).map(drop) }
}

/// Whether a descriptor is closed by execve(2), fcntl(2) `F_GETFD`; EBADF where none is open.
pub fn is_cloexec(file: Fd) -> Result<bool> {
    const F_GETFD: usize = 1;
    // SAFETY: no memory is passed.
    unsafe { call!(FCNTL, fd(file), F_GETFD).map(|flags| flags & 1 != 0) }
}

/// The largest descriptor that a process may have by default, and one more.
const DEFAULT_LIMIT: u32 = 65536;

/// close_range(2) with `CLOSE_RANGE_CLOEXEC`: marks every descriptor from `first` on. Before
/// Linux 5.11, or where a seccomp filter hides it (ENOSYS or EPERM), each that /proc/self/fd
/// lists, which must be the host's; without that, each up to the largest that a process may
/// have by default.
pub fn cloexec_from(first: u32) -> Result<()> {
    const CLOSE_RANGE_CLOEXEC: usize = 4;
    // SAFETY: no memory is passed.
    let result = unsafe {
        call!(
            CLOSE_RANGE,
            first as usize,
            u32::MAX as usize,
            CLOSE_RANGE_CLOEXEC
        )
    };
    match result {
        Err(Errno::ENOSYS | Errno::EINVAL | Errno::EPERM) => {}
        other => return other.map(drop),
    }
    if cloexec_listed(first).is_err() {
        for file in first..DEFAULT_LIMIT {
            let _ = set_cloexec(as_fd(file as usize), true);
        }
    }
    Ok(())
}

/// Marks every descriptor from `first` on that /proc/self/fd lists.
fn cloexec_listed(first: u32) -> Result<()> {
    let flags = oflag::PATH | oflag::DIRECTORY;
    let proc = openat(crate::AT_FDCWD, c"/proc", flags, 0)?;
    let marked = each_listed(proc, |file| {
        if file >= first {
            set_cloexec(as_fd(file as usize), true)?;
        }
        Ok(())
    });
    close(proc);
    marked
}

/// Calls `with` for each descriptor that `self/fd` below `proc` lists, a directory of a procfs
/// that is to be trusted.
fn each_listed(proc: Fd, with: impl FnMut(u32) -> Result<()>) -> Result<()> {
    let list = openat(proc, c"self/fd", oflag::RDONLY | oflag::DIRECTORY, 0)?;
    let done = each_of(list, with);
    close(list);
    done
}

fn each_of(list: Fd, mut with: impl FnMut(u32) -> Result<()>) -> Result<()> {
    if filesystem(list)? != PROC_MAGIC {
        return Err(Errno::ENODEV);
    }
    let mut buffer = [0u8; 1024];
    loop {
        let length = getdents(list, &mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        for name in entries(buffer.get(..length).unwrap_or_default()) {
            let number = name.to_str().ok().and_then(|name| name.parse::<u32>().ok());
            let number = number.ok_or(Errno::EINVAL)?;
            if as_fd(number as usize) != list {
                with(number)?;
            }
        }
    }
}

/// close_range(2): closes every descriptor from `first` to `last`. ENOSYS before Linux 5.9; a
/// seccomp filter that hides it may also say EPERM.
pub fn close_range(first: u32, last: u32) -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(CLOSE_RANGE, first as usize, last as usize, 0).map(drop) }
}

/// Without close_range(2), closes every descriptor from `first` on but those to `keep`: each that
/// `proc`, a directory of a procfs that is to be trusted, lists, or else each by itself up to the
/// largest that a process may have by default, which takes milliseconds.
pub fn close_each(first: u32, proc: Option<Fd>, keep: impl Fn(Fd) -> bool) {
    let close_one = |file: u32| {
        let number = as_fd(file as usize);
        if file >= first && !keep(number) {
            close(number);
        }
        Ok(())
    };
    let listed = proc.map(|proc| each_listed(proc, close_one));
    if listed != Some(Ok(())) {
        for file in first..DEFAULT_LIMIT {
            let _ = close_one(file);
        }
    }
}

/// pipe2(2), close-on-exec: the end to read from and the one to write to.
pub fn pipe() -> Result<(Fd, Fd)> {
    let mut ends = [0 as Fd; 2];
    // SAFETY: the kernel writes two descriptors.
    unsafe { call!(PIPE2, ends.as_mut_ptr() as usize, oflag::CLOEXEC as usize)? };
    Ok((ends[0], ends[1]))
}

/// getdents64(2): fills `buffer` with entries of a directory, for [`entries`].
pub fn getdents(dir: Fd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes at most the length of `buffer`.
    unsafe {
        call!(
            GETDENTS64,
            fd(dir),
            buffer.as_mut_ptr() as usize,
            buffer.len()
        )
    }
}

/// The names in what [`getdents`] gave, without `.` and `..`.
pub fn entries(buffer: &[u8]) -> impl Iterator<Item = &CStr> {
    const NAME: usize = 19;
    let mut rest = buffer;
    core::iter::from_fn(move || {
        loop {
            let length = u16::from_ne_bytes(rest.get(16..18)?.try_into().ok()?);
            let (entry, after) = rest.split_at_checked(usize::from(length))?;
            rest = after;
            let name = CStr::from_bytes_until_nul(entry.get(NAME..)?).ok()?;
            if name != c"." && name != c".." {
                return Some(name);
            }
        }
    })
}

/// sendfile(2): copies up to `count` bytes from where `from` stands.
pub fn sendfile(to: Fd, from: Fd, count: usize) -> Result<usize> {
    // SAFETY: a null offset means the file's own.
    unsafe { call!(SENDFILE, fd(to), fd(from), 0, count) }
}

/// memfd_create(2), close-on-exec: a file without a name. `seals` lets it be sealed, `exec`
/// asks for one that may be executed where the kernel makes a difference (Linux 6.3).
pub fn memfd(name: &CStr, seals: bool, exec: bool) -> Result<Fd> {
    const MFD_CLOEXEC: usize = 1;
    const MFD_ALLOW_SEALING: usize = 2;
    const MFD_EXEC: usize = 0x10;
    let mut flags = MFD_CLOEXEC;
    if seals {
        flags |= MFD_ALLOW_SEALING;
    }
    let create = |flags| {
        // SAFETY: `name` ends with a NUL.
        unsafe { call!(MEMFD_CREATE, name.as_ptr() as usize, flags).map(as_fd) }
    };
    match create(if exec { flags | MFD_EXEC } else { flags }) {
        Err(Errno::EINVAL) if exec => create(flags),
        other => other,
    }
}

/// lseek(2) to the beginning.
pub fn rewind(file: Fd) -> Result<()> {
    // SAFETY: no memory is passed.
    unsafe { call!(LSEEK, fd(file), 0, 0).map(drop) }
}

/// Writes all of `bytes`.
pub fn write_all(file: Fd, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let written = write(file, bytes)?;
        bytes = bytes.get(written.max(1)..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_open(file: Fd) -> bool {
        set_cloexec(file, true).is_ok()
    }

    /// Also those that only name a place, which ppoll(2), for one, takes for closed.
    #[test]
    fn what_is_listed_is_closed() {
        let open = |path, flags| openat(crate::AT_FDCWD, path, flags, 0).unwrap();
        let null = open(c"/dev/null", oflag::RDONLY);
        let place = open(c"/", oflag::PATH);
        let proc = open(c"/proc", oflag::PATH | oflag::DIRECTORY);
        for trusted in [Some(proc), Some(place), None] {
            for (file, at) in [(null, 700), (null, 850), (place, 899), (null, 900)] {
                dup3(file, at).unwrap();
            }
            // The test beside this one has the number 901.
            close_each(700, trusted, |file| file == 850 || file > 900);
            assert_eq!(
                [700, 850, 899, 900].map(is_open),
                [false, true, false, false]
            );
            close(850);
        }
        for file in [null, place, proc] {
            close(file);
        }
    }

    #[test]
    fn what_is_listed_is_marked() {
        let file = openat(crate::AT_FDCWD, c"/dev/null", oflag::RDONLY, 0).unwrap();
        dup3(file, 901).unwrap();
        const F_GETFD: usize = 1;
        // SAFETY: no memory is passed.
        let flags = || unsafe { call!(FCNTL, 901, F_GETFD) };
        assert_eq!(flags(), Ok(0));
        cloexec_listed(901).unwrap();
        assert_eq!(flags(), Ok(1));
        close(901);
        close(file);
    }
}
