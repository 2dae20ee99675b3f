//! CRC-32C (Castagnoli), eight bytes at a time by tables (Kounavis and Berry, 2005).

/// The polynomial, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// Continues a checksum: `before` is that of the bytes before `data`, 0 if there are none.
pub fn crc32c(before: u32, data: &[u8]) -> u32 {
    let mut sum = !before;
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let low = sum.to_le_bytes();
        let mut next = 0;
        for (at, byte) in word.iter().enumerate() {
            let byte = if at < 4 { byte ^ low[at] } else { *byte };
            next ^= TABLES[7 - at][byte as usize];
        }
        sum = next;
    }
    for byte in words.remainder() {
        sum = (sum >> 8) ^ TABLES[0][((sum as u8) ^ byte) as usize];
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, section B.4, and the check value of the catalogue of CRCs.
    #[test]
    fn published_checksums() {
        assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(0, &[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(0, &rising), 0x46dd_794e);
        assert_eq!(crc32c(crc32c(0, b"1234"), b"56789"), 0xe306_9283);
    }
}
