//! Hashes and unique values that identify deliveries.

use ui::format::hex;

/// A hash of 128 bits that is the same in every version: FNV-1a. It is not safe against forged collisions.
pub(crate) fn fingerprint(bytes: &[u8]) -> [u8; 16] {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in bytes {
        hash ^= u128::from(*byte);
        hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    hash.to_be_bytes()
}

/// 16 bytes that differ in every call and every process.
pub(crate) fn unique() -> [u8; 16] {
    use std::hash::{BuildHasher as _, RandomState};
    let random = [
        RandomState::new().hash_one(1),
        RandomState::new().hash_one(2),
    ];
    let now = jiff::Timestamp::now().as_nanosecond();
    fingerprint(format!("{random:?} {now} {}", std::process::id()).as_bytes())
}

/// [`unique`] as hexadecimal digits.
pub(crate) fn unique_name() -> String {
    hex(&unique())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the test vectors of the IETF's draft: of "" and of "a".
        assert_eq!(
            u128::from_be_bytes(fingerprint(b"")),
            0x6c62_272e_07bb_0142_62b8_2175_6295_c58d
        );
        assert_eq!(
            u128::from_be_bytes(fingerprint(b"a")),
            0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964
        );
    }
}
