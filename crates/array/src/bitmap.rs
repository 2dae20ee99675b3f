//! The write-intent bitmap (md(4), BITMAP WRITE-INTENT LOGGING).

use clap::ValueEnum;

/// Kind of bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Bitmap {
    /// On the members, beside the superblock
    Internal,
    /// None: after a crash the whole array is resynchronized
    None,
    /// On the members, without a lock on the path of writes: mdadm 4.6 and Linux 6.18, where it is experimental
    Lockless,
}

impl Bitmap {
    /// The word that mdadm takes.
    pub fn name(self) -> &'static str {
        match self {
            Bitmap::Internal => "internal",
            Bitmap::None => "none",
            Bitmap::Lockless => "lockless",
        }
    }
}
