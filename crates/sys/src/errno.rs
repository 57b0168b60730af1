//! Error numbers, with the kernel's own words for them.

/// An error number, `asm-generic/errno.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(u16);

impl Errno {
    /// The largest number that the kernel returns.
    const MAX: usize = 4095;

    /// The error of this number; a number that the kernel never returns becomes 0.
    #[must_use]
    pub const fn new(number: i32) -> Self {
        if number > 0 && number as usize <= Self::MAX {
            Self(number as u16)
        } else {
            Self(0)
        }
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0 as i32
    }

    /// Tells the result of a system call from an error.
    pub(crate) const fn check(result: usize) -> Result<usize, Self> {
        let negated = result.wrapping_neg();
        if negated != 0 && negated <= Self::MAX {
            Err(Self(negated as u16))
        } else {
            Ok(result)
        }
    }
}

macro_rules! errors {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        #[allow(missing_docs)]
        impl Errno {
            $(pub const $name: Self = Self($number);)*

            /// The symbol, such as `ENOENT`; empty for one that is not listed.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 { $($number => stringify!($name),)* _ => "" }
            }

            /// The words of strerror(3), which engines match on.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self.0 { $($number => $text,)* _ => "Unknown error" }
            }
        }
    };
}

errors! {
    EPERM = 1, "Operation not permitted";
    ENOENT = 2, "No such file or directory";
    ESRCH = 3, "No such process";
    EINTR = 4, "Interrupted system call";
    EIO = 5, "Input/output error";
    ENXIO = 6, "No such device or address";
    E2BIG = 7, "Argument list too long";
    ENOEXEC = 8, "Exec format error";
    EBADF = 9, "Bad file descriptor";
    ECHILD = 10, "No child processes";
    EAGAIN = 11, "Resource temporarily unavailable";
    ENOMEM = 12, "Cannot allocate memory";
    EACCES = 13, "Permission denied";
    EFAULT = 14, "Bad address";
    ENOTBLK = 15, "Block device required";
    EBUSY = 16, "Device or resource busy";
    EEXIST = 17, "File exists";
    EXDEV = 18, "Invalid cross-device link";
    ENODEV = 19, "No such device";
    ENOTDIR = 20, "Not a directory";
    EISDIR = 21, "Is a directory";
    EINVAL = 22, "Invalid argument";
    ENFILE = 23, "Too many open files in system";
    EMFILE = 24, "Too many open files";
    ENOTTY = 25, "Inappropriate ioctl for device";
    ETXTBSY = 26, "Text file busy";
    EFBIG = 27, "File too large";
    ENOSPC = 28, "No space left on device";
    ESPIPE = 29, "Illegal seek";
    EROFS = 30, "Read-only file system";
    EMLINK = 31, "Too many links";
    EPIPE = 32, "Broken pipe";
    EDOM = 33, "Numerical argument out of domain";
    ERANGE = 34, "Numerical result out of range";
    EDEADLK = 35, "Resource deadlock avoided";
    ENAMETOOLONG = 36, "File name too long";
    ENOSYS = 38, "Function not implemented";
    ENOTEMPTY = 39, "Directory not empty";
    ELOOP = 40, "Too many levels of symbolic links";
    ENODATA = 61, "No data available";
    ETIME = 62, "Timer expired";
    ENOPKG = 65, "Package not installed";
    EPROTO = 71, "Protocol error";
    EBADMSG = 74, "Bad message";
    EOVERFLOW = 75, "Value too large for defined data type";
    ELIBBAD = 80, "Accessing a corrupted shared library";
    EUSERS = 87, "Too many users";
    ENOTSOCK = 88, "Socket operation on non-socket";
    EOPNOTSUPP = 95, "Operation not supported";
    EADDRINUSE = 98, "Address already in use";
    ECONNRESET = 104, "Connection reset by peer";
    ETIMEDOUT = 110, "Connection timed out";
    ECONNREFUSED = 111, "Connection refused";
    EHOSTDOWN = 112, "Host is down";
    EALREADY = 114, "Operation already in progress";
    ESTALE = 116, "Stale file handle";
    EDQUOT = 122, "Disk quota exceeded";
    ENOKEY = 126, "Required key not available";
    EKEYREVOKED = 128, "Key has been revoked";
}

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            "" => write!(f, "Unknown error {}", self.0),
            _ => f.write_str(self.text()),
        }
    }
}

impl core::error::Error for Errno {}
