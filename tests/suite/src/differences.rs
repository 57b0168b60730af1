//! Where pipkin differs from both runc and crun on purpose.

/// One difference. An entry that no longer matches anything fails the comparison.
#[derive(Debug, Clone, Copy)]
pub struct Difference {
    /// The case of the comparison; `*` stands for any text.
    pub case: &'static str,
    /// The JSON pointer into the probe's document; `*` stands for any text.
    pub path: &'static str,
    /// Why it is so.
    pub reason: &'static str,
}

/// All of them.
pub const ALL: &[Difference] = &[];
