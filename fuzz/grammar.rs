//! Text of a grammar, drawn from the fuzzer's bytes. Of bytes that are taken for text nearly all are refused at the
//! first word; of these most words are known ones with values of the right kind, and some are wrong, so that what
//! lies behind the first words is reached too. The same bytes give the same text.

#![allow(dead_code, reason = "each target uses its own part of this")]

use libfuzzer_sys::arbitrary::Unstructured;

/// The rest of the fuzzer's bytes. At their end every choice is the first.
pub struct Draw<'a>(Unstructured<'a>);

impl<'a> Draw<'a> {
    pub fn new(bytes: &'a [u8]) -> Draw<'a> {
        Draw(Unstructured::new(bytes))
    }

    /// True if bytes are left.
    pub fn goes_on(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or_default()
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u8) -> bool {
        self.byte() % n == n - 1
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        let number = u16::from_le_bytes([self.byte(), self.byte()]);
        choices[usize::from(number) % choices.len()]
    }

    /// A whole number: mostly small, at times at the edges of a type, or of any size.
    pub fn whole(&mut self) -> String {
        match self.byte() % 8 {
            0 => u64::from(self.byte() % 4).to_string(),
            1..5 => u64::from(self.byte()).to_string(),
            5 => (1_u64 << (self.byte() % 64)).to_string(),
            6 => self
                .of(&[
                    "4294967295",
                    "4294967296",
                    "9223372036854775807",
                    "18446744073709551615",
                    "99999999999999999999",
                ])
                .to_owned(),
            _ => self.0.arbitrary::<u32>().unwrap_or_default().to_string(),
        }
    }

    pub fn decimal(&mut self) -> String {
        match self.byte() % 6 {
            0..3 => format!("{}.{}", self.byte() % 100, self.byte()),
            3 => format!("0.{}", self.byte()),
            4 => self
                .of(&[
                    "0", "1", "-1", "nan", "inf", "1e300", "1e-300", ".5", "-0.0",
                ])
                .to_owned(),
            _ => self.whole(),
        }
    }

    pub fn size(&mut self) -> String {
        let unit = self.of(&[
            "", "k", "K", "m", "M", "g", "KiB", "MiB", "GiB", "TiB", "kb", "ki", "b", "s", "%",
        ]);
        match self.one_in(8) {
            true => self.decimal() + unit,
            false => self.whole() + unit,
        }
    }

    pub fn time(&mut self) -> String {
        let unit = self.of(&["s", "ms", "us", "ns", "m", "h", "d", "", "usec", "msec"]);
        match self.one_in(4) {
            true => self.decimal() + unit,
            false => self.whole() + unit,
        }
    }

    pub fn share(&mut self) -> String {
        let sign = self.of(&["", "%"]);
        self.decimal() + sign
    }

    /// Some letters, also such as no word has.
    pub fn word(&mut self) -> String {
        let letters = "ab-_.z09:;,=+$({[/\\\"' \tµ\u{1f4a5}\0";
        let letters: Vec<char> = letters.chars().collect();
        let length = self.byte() % 24;
        (0..length).map(|_| self.of(&letters)).collect()
    }

    /// A value of any kind.
    pub fn any(&mut self) -> String {
        match self.byte() % 6 {
            0 => self.whole(),
            1 => self.decimal(),
            2 => self.size(),
            3 => self.time(),
            4 => self.share(),
            _ => self.word(),
        }
    }
}
