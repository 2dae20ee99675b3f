//! Parities of RAID 5 and 6, byte by byte. It is a crate of its own, since each byte of an array passes through it:
//! unlike the rest of `scrub`, it is compiled for speed.
//!
//! The second parity is computed in GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 and the generator 2 (linux,
//! lib/raid6; H. P. Anvin, "The mathematics of RAID-6").

/// The polynomial without its highest term.
const POLYNOMIAL: u8 = 0x1d;

/// Twice a byte.
const fn double(byte: u8) -> u8 {
    (byte << 1) ^ (if byte & 0x80 == 0 { 0 } else { POLYNOMIAL })
}

/// Logarithm of each byte to the base of the generator; that of 0 is undefined, and 0 here.
const LOGS: [u8; 256] = {
    let mut logs = [0; 256];
    let mut power = 1;
    let mut exponent = 0;
    while exponent < 255 {
        logs[power as usize] = exponent;
        power = double(power);
        exponent += 1;
    }
    logs
};

/// Syndromes of a stripe, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Syndromes {
    /// The first parity minus that of the data: zeros where they agree.
    pub p: Vec<u8>,
    /// The second parity minus that of the data: zeros where they agree.
    pub q: Vec<u8>,
}

impl Syndromes {
    /// Syndromes of parts of a stripe of equal length: the data in the order of the second parity, and the parities as
    /// read from the members.
    pub fn of(data: &[&[u8]], p: &[u8], q: &[u8]) -> Syndromes {
        let mut sums = Syndromes {
            p: p.to_vec(),
            q: vec![0; q.len()],
        };
        // Horner's rule: from the highest power down.
        for part in data.iter().rev() {
            for (sum, byte) in sums.q.iter_mut().zip(*part) {
                *sum = double(*sum) ^ byte;
            }
            xor_into(&mut sums.p, part);
        }
        xor_into(&mut sums.q, q);
        sums
    }

    /// The single wrong part that explains all syndromes, if there is one.
    pub fn odd(&self) -> WrongPart {
        let mut odd = WrongPart::None;
        for (p, q) in self.p.iter().zip(&self.q) {
            let one = match (p, q) {
                (0, 0) => continue,
                (_, 0) => WrongPart::P,
                (0, _) => WrongPart::Q,
                // Only data is in both: an error in part z is multiplied by the generator's power z in Q.
                (p, q) => {
                    let log = |byte: &u8| u16::from(LOGS[usize::from(*byte)]);
                    WrongPart::Data(usize::from((log(q) + 255 - log(p)) % 255))
                }
            };
            if odd != WrongPart::None && odd != one {
                return WrongPart::Several;
            }
            odd = one;
        }
        odd
    }
}

/// Part of a stripe that does not fit the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongPart {
    /// None.
    None,
    /// The first parity.
    P,
    /// The second parity.
    Q,
    /// The data part with this index, in the order of the second parity. An index beyond the last part means that
    /// several parts are wrong.
    Data(usize),
    /// More than one.
    Several,
}

/// Adds bytes to others, which in this field is the same as to subtract them.
pub fn xor_into(sum: &mut [u8], bytes: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(bytes) {
        *sum ^= byte;
    }
}

/// Keeps in `sum` the bits that are set in it or in `bytes`.
pub fn or_into(sum: &mut [u8], bytes: &[u8]) {
    for (sum, byte) in sum.iter_mut().zip(bytes) {
        *sum |= byte;
    }
}

/// True if all bytes are 0.
pub fn is_zero(bytes: &[u8]) -> bool {
    // Without a branch for each byte, so that the compiler uses vector instructions.
    bytes.iter().fold(0, |all, byte| all | byte) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The product in the field, by the textbook method, bit by bit.
    fn product(mut a: u8, b: u8) -> u8 {
        let mut sum = 0;
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                sum ^= a;
            }
            let carry = a & 0x80 != 0;
            a <<= 1;
            if carry {
                a ^= 0x1d;
            }
        }
        sum
    }

    fn parities(data: &[Vec<u8>]) -> (Vec<u8>, Vec<u8>) {
        let length = data[0].len();
        let (mut p, mut q) = (vec![0; length], vec![0; length]);
        let mut power = 1;
        for part in data {
            for at in 0..length {
                p[at] ^= part[at];
                q[at] ^= product(power, part[at]);
            }
            power = product(power, 2);
        }
        (p, q)
    }

    proptest! {
        #[test]
        fn the_part_that_was_changed_is_named(
            data in prop::collection::vec(prop::collection::vec(any::<u8>(), 16), 1..20),
            which: prop::sample::Index,
            at in 0_usize..16,
            change in 1_u8..,
        ) {
            let (mut p, mut q) = parities(&data);
            let mut data = data;
            let odd = |data: &[Vec<u8>], p: &[u8], q: &[u8]| {
                let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
                Syndromes::of(&data, p, q).odd()
            };
            prop_assert_eq!(odd(&data, &p, &q), WrongPart::None);
            let which = which.index(data.len() + 2);
            let wanted = match which.checked_sub(data.len()) {
                None => { data[which][at] ^= change; WrongPart::Data(which) }
                Some(0) => { p[at] ^= change; WrongPart::P }
                Some(_) => { q[at] ^= change; WrongPart::Q }
            };
            prop_assert_eq!(odd(&data, &p, &q), wanted);
            // Another byte of another part speaks against it.
            let other = (at + 1) % 16;
            if wanted == WrongPart::P { q[other] ^= change } else { p[other] ^= change }
            prop_assert_eq!(odd(&data, &p, &q), WrongPart::Several);
        }
    }
}
