//! What the two processes tell each other: one small message of fixed
//! size.

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MessageKind {
    /// To the container: the runtime's steps before this one are done.
    Go = 1,
    /// To the runtime: this step was reached.
    Reached = 2,
    /// To the runtime: this step failed, with an errno in `value`.
    Failed = 3,
    /// To the container, from `start`.
    Start = 4,
}

/// Which part of a step failed, where the errno does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Detail {
    /// Nothing to add.
    None = 0,
    /// The executable is not in PATH.
    NotInPath = 1,
    /// The executable does not exist.
    NoExecutable = 2,
    /// The executable may not be executed.
    NotExecutable = 3,
    /// The executable exists, what it names as its interpreter does not.
    NoInterpreter = 4,
    /// The working directory is outside the root.
    OutsideRoot = 5,
    /// A hook ended with a status; `errno` is the status.
    HookStatus = 6,
    /// A hook was ended by a signal; `errno` is the signal.
    HookSignal = 7,
    /// A hook took longer than its timeout.
    HookTimeout = 8,
    /// A device node exists and is another one.
    OtherDevice = 9,
    /// A `/proc` or `/sys` of the image is not a directory.
    NotDirectory = 10,
    /// The fault was asked for.
    Injected = 11,
    /// The plan is not well formed.
    Malformed = 12,
    /// A file of the image is larger than is read of it.
    TooLarge = 13,
    /// The kernel took the limit for another value.
    Unmapped = 14,
}

impl Detail {
    /// The detail of this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        match number {
            1 => Self::NotInPath,
            2 => Self::NoExecutable,
            3 => Self::NotExecutable,
            4 => Self::NoInterpreter,
            5 => Self::OutsideRoot,
            6 => Self::HookStatus,
            7 => Self::HookSignal,
            8 => Self::HookTimeout,
            9 => Self::OtherDevice,
            10 => Self::NotDirectory,
            11 => Self::Injected,
            12 => Self::Malformed,
            13 => Self::TooLarge,
            14 => Self::Unmapped,
            _ => Self::None,
        }
    }
}

/// A short name that a message carries; a longer one is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name([u8; Self::LENGTH]);

impl Name {
    const LENGTH: usize = 64;

    /// No name.
    pub const EMPTY: Self = Self([0; Self::LENGTH]);

    /// The first bytes of a name.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut name = Self::EMPTY;
        for (place, byte) in name.0.iter_mut().zip(bytes) {
            *place = *byte;
        }
        name
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub kind: MessageKind,
    /// The number of a step, from 1.
    pub step: u32,
    /// An errno.
    pub value: i32,
    /// Which part of a step failed.
    pub detail: Detail,
    /// What of the image a detail is about.
    pub name: Name,
}

impl Message {
    /// Length of an encoded message in bytes.
    pub const LENGTH: usize = 16 + Name::LENGTH;

    /// A message that is not about a failure.
    #[must_use]
    pub const fn new(kind: MessageKind, step: u32) -> Self {
        Self {
            kind,
            step,
            value: 0,
            detail: Detail::None,
            name: Name::EMPTY,
        }
    }

    /// The bytes that are sent.
    #[must_use]
    pub fn encode(self) -> [u8; Self::LENGTH] {
        let words = [
            self.kind as u32,
            self.step,
            u32::from_le_bytes(self.value.to_le_bytes()),
            self.detail as u32,
        ];
        let mut out = [0; Self::LENGTH];
        for (place, byte) in out.iter_mut().skip(16).zip(self.name.0) {
            *place = byte;
        }
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// The message in these bytes; `None` where there is none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = crate::wire::Reader::new(bytes.get(..Self::LENGTH)?);
        let mut word = || <u32 as crate::wire::Decode>::decode(&mut reader);
        let kind = match word()? {
            1 => MessageKind::Go,
            2 => MessageKind::Reached,
            3 => MessageKind::Failed,
            4 => MessageKind::Start,
            _ => return None,
        };
        let step = word()?;
        let value = i32::from_le_bytes(word()?.to_le_bytes());
        Some(Self {
            kind,
            step,
            value,
            detail: Detail::new(word()?),
            name: Name::new(bytes.get(16..)?),
        })
    }
}
