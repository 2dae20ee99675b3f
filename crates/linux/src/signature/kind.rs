//! The kinds of signatures, and their names.

use std::fmt;
use std::str::FromStr;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*,)+) => {
        /// Kind of content.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum SignatureKind {
            $($(#[$doc])* $variant,)+
        }

        impl SignatureKind {
            /// Every kind that [`Content`](super::Content) can report.
            pub const ALL: &[SignatureKind] = &[$(SignatureKind::$variant,)+];

            /// Its name in blkid(8), as TYPE or PTTYPE.
            pub const fn name(self) -> &'static str {
                match self {
                    $(SignatureKind::$variant => $word,)+
                }
            }

            /// Other common names.
            const fn aliases(self) -> &'static [&'static str] {
                match self {
                    $(SignatureKind::$variant => &[$($alias),*],)+
                }
            }
        }
    };
}

kinds! {
    /// The ext2 file system.
    Ext2 = "ext2",
    /// The ext3 file system.
    Ext3 = "ext3",
    /// The ext4 file system.
    Ext4 = "ext4",
    /// An external journal of ext3 or ext4.
    Jbd = "jbd",
    /// The XFS file system.
    Xfs = "xfs",
    /// The Btrfs file system.
    Btrfs = "btrfs",
    /// The bcachefs file system.
    Bcachefs = "bcachefs",
    /// The F2FS file system.
    F2fs = "f2fs",
    /// The ReiserFS file system.
    Reiserfs = "reiserfs",
    /// The JFS file system.
    Jfs = "jfs",
    /// The NILFS2 file system.
    Nilfs2 = "nilfs2",
    /// The OCFS2 cluster file system.
    Ocfs2 = "ocfs2",
    /// The GFS2 cluster file system.
    Gfs2 = "gfs2",
    /// The FAT file system.
    Vfat = "vfat" | "fat" | "fat32" | "msdos",
    /// The exFAT file system.
    Exfat = "exfat",
    /// The NTFS file system.
    Ntfs = "ntfs",
    /// The ISO 9660 file system.
    Iso9660 = "iso9660",
    /// The UDF file system.
    Udf = "udf",
    /// The SquashFS file system.
    Squashfs = "squashfs" | "squashfs3",
    /// The EROFS file system.
    Erofs = "erofs",
    /// A swap area.
    Swap = "swap",
    /// A swap area that holds a hibernated machine.
    Swsuspend = "swsuspend",
    /// A GPT partition table: a header, its backup, or the protective MBR.
    Gpt = "gpt",
    /// An MBR partition table.
    Dos = "dos" | "mbr",
    /// A member of a Linux software RAID array.
    LinuxRaidMember = "linux_raid_member" | "mdraid" | "md",
    /// A member of an Intel RAID array (IMSM).
    IswRaidMember = "isw_raid_member" | "imsm" | "isw",
    /// A member of a RAID array in the SNIA DDF format.
    DdfRaidMember = "ddf_raid_member" | "ddf",
    /// An LVM physical volume.
    Lvm2Member = "LVM2_member" | "lvm2" | "lvm",
    /// A LUKS encrypted volume.
    CryptoLuks = "crypto_LUKS" | "luks",
    /// A BitLocker encrypted volume.
    Bitlocker = "BitLocker",
    /// A member of a ZFS pool.
    ZfsMember = "zfs_member" | "zfs",
    /// A bcache device, backing or cache.
    Bcache = "bcache",
    /// A member of a Stratis pool.
    Stratis = "stratis",
    /// A VDO volume.
    Vdo = "vdo",
    /// A DRBD device with internal metadata.
    Drbd = "drbd",
    /// The hash tree of dm-verity.
    DmVerity = "DM_verity_hash" | "DM_verity" | "verity",
    /// A dm-integrity device.
    DmIntegrity = "DM_integrity" | "integrity",
    /// A Ceph BlueStore device.
    CephBluestore = "ceph_bluestore" | "ceph",
    /// An Oracle ASM disk.
    OracleAsm = "oracleasm",
    /// An extent of a VMware VMFS volume.
    VmfsVolumeMember = "VMFS_volume_member",
    /// The VMware VMFS file system.
    Vmfs = "VMFS",
    /// Data that matches no known format.
    Unknown = "unknown",
}

impl SignatureKind {
    /// The kind with a name: blkid's or another common one, in any case.
    pub fn from_name(word: &str) -> Option<SignatureKind> {
        SignatureKind::ALL.iter().copied().find(|kind| {
            kind.name().eq_ignore_ascii_case(word)
                || kind
                    .aliases()
                    .iter()
                    .any(|alias| alias.eq_ignore_ascii_case(word))
        })
    }
}

impl fmt::Display for SignatureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is not the name of a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a kind of signature that disksmith knows; write the word that `disksmith devices` shows, such as ext4 or linux_raid_member"
)]
pub struct UnknownSignature(pub String);

impl FromStr for SignatureKind {
    type Err = UnknownSignature;

    fn from_str(word: &str) -> Result<SignatureKind, UnknownSignature> {
        SignatureKind::from_name(word).ok_or_else(|| UnknownSignature(word.to_owned()))
    }
}

/// A signature of a format on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature {
    /// Position, in bytes from the start.
    pub offset: u64,
    /// Kind of content that the signature is of, such as a file system.
    pub kind: SignatureKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_and_alias_names_exactly_its_own_kind() {
        for &kind in SignatureKind::ALL {
            assert_eq!(SignatureKind::from_name(kind.name()), Some(kind));
            for alias in kind.aliases() {
                assert_eq!(SignatureKind::from_name(alias), Some(kind), "{alias}");
            }
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
    }

    #[test]
    fn words_are_read_in_any_case() {
        assert_eq!(
            SignatureKind::from_name("lvm2_MEMBER"),
            Some(SignatureKind::Lvm2Member)
        );
        assert_eq!(
            SignatureKind::from_name("LUKS"),
            Some(SignatureKind::CryptoLuks)
        );
    }

    #[test]
    fn an_unknown_word_is_named_in_the_error() {
        let error = "ext5".parse::<SignatureKind>().unwrap_err();
        assert!(error.to_string().contains("'ext5'"));
    }
}
