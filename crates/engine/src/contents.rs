//! Data of writes that partly compresses or repeats.

use record::Contents;

use crate::random::{Random, derive_seed};

/// Generator of the data of a worker's writes.
pub(crate) struct DataGenerator {
    /// Number of bytes of a chunk that do not compress.
    dense: usize,
    chunk: usize,
    pattern: Vec<u8>,
    /// Threshold of random numbers: below it data is repeated.
    repeats_below: u64,
    working_set: u64,
    /// Seed of the working set.
    set_seed: u64,
    /// Seed of the last data.
    last: u64,
    random: Random,
}

impl DataGenerator {
    /// The generator of a worker with this seed; workers of one `set_seed` share a working set.
    pub(crate) fn new(contents: &Contents, seed: u64, set_seed: u64) -> DataGenerator {
        let chunk = match contents.chunk.0 as usize {
            0 => 512,
            chunk => chunk,
        };
        let dense = chunk as f64 * (1.0 - contents.compressible.clamp(0.0, 1.0));
        let mut random = Random::new(seed ^ 0x436f_6e74_656e_7473);
        DataGenerator {
            dense: dense.round() as usize,
            chunk,
            pattern: contents.pattern.clone(),
            repeats_below: (contents.repeated.clamp(0.0, 1.0) * u64::MAX as f64) as u64,
            working_set: contents.working_set,
            set_seed: if contents.shared { 0 } else { set_seed },
            last: random.next(),
            random,
        }
    }

    /// Fills the data of the next write.
    pub(crate) fn fill(&mut self, data: &mut [u8]) {
        let seed = self.next_seed();
        self.last = seed;
        let mut random = Random::new(seed);
        for chunk in data.chunks_mut(self.chunk) {
            let (dense, rest) = chunk.split_at_mut(self.dense.min(chunk.len()));
            for word in dense.chunks_mut(8) {
                let bytes = random.next().to_le_bytes();
                word.copy_from_slice(&bytes[..word.len()]);
            }
            if self.pattern.is_empty() {
                rest.fill(0);
            } else {
                for part in rest.chunks_mut(self.pattern.len()) {
                    part.copy_from_slice(&self.pattern[..part.len()]);
                }
            }
        }
    }

    fn next_seed(&mut self) -> u64 {
        if self.repeats_below == 0 || self.random.next() >= self.repeats_below {
            return self.random.next();
        }
        match self.working_set {
            0 => self.last,
            set => derive_seed(self.set_seed, self.random.below(set)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use record::Bytes;

    fn contents() -> Contents {
        Contents {
            compressible: 0.5,
            chunk: Bytes(512),
            ..Contents::default()
        }
    }

    #[test]
    fn each_chunk_compresses_by_its_share() {
        let mut data = vec![9; 4096];
        DataGenerator::new(&contents(), 1, 2).fill(&mut data);
        for chunk in data.chunks(512) {
            assert!(chunk[256..].iter().all(|byte| *byte == 0));
            assert!(chunk[..256].iter().filter(|byte| **byte == 0).count() < 16);
        }
        let mut patterned = contents();
        (patterned.compressible, patterned.pattern) = (1.0, b"xy".to_vec());
        DataGenerator::new(&patterned, 1, 2).fill(&mut data);
        assert!(data.chunks(2).all(|pair| pair == b"xy"));
    }

    /// Counts of different data among 4,000 writes.
    fn counts(contents: &Contents) -> Vec<u32> {
        let mut filler = DataGenerator::new(contents, 1, 2);
        let mut seen: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        let mut data = vec![0; 64];
        for _ in 0..4000 {
            filler.fill(&mut data);
            *seen.entry(data.clone()).or_default() += 1;
        }
        seen.into_values().collect()
    }

    #[test]
    fn the_share_of_repeated_writes_is_kept() {
        let mut repeated = contents();
        assert_eq!(counts(&repeated).len(), 4000);
        repeated.repeated = 0.25;
        // Binomial: a standard deviation of 27.
        let last = counts(&repeated).len();
        assert!(last.abs_diff(3000) < 150, "{last}");
        repeated.working_set = 10;
        let set = counts(&repeated);
        let often = set.iter().filter(|count| **count > 50).count();
        assert_eq!(often, 10, "{set:?}");
        assert!(set.len().abs_diff(3010) < 150, "{}", set.len());
    }
}
