//! A volatile write cache: the writes that a power cut may undo.
//!
//! The file of a volume always contains the last writes, so that reads need not consider the cache. Here the
//! information to undo the writes that are not durable yet is kept: for each block that they touched, its contents
//! before each of them. When the power is cut, each block independently gets the contents before one of these writes,
//! or stays as it is, by the seed: a cache writes its blocks in any order.
//!
//! A write is durable when a flush arrives after it was answered, when the write itself requested that (FUA), or when
//! the cache was full and it was the oldest: `doc/proto.md` of the NetworkBlockDevice project, `NBD_CMD_FLUSH` and
//! `NBD_CMD_FLAG_FUA`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::model::Random;
use crate::spec::Span;

/// Unit that survives or is lost as a whole: the size of a volume is a multiple of it, and drives write it atomically.
pub(super) const BLOCK: u64 = 4096;

/// Maximum number of kept block contents: 64 MiB, about the cache size of a drive. Older writes are durable.
const MAX_CACHED_BLOCKS: usize = 64 << 20 >> 12;

/// Zeros and discards longer than this, in bytes, bypass the cache and are durable at once, since undoing them would
/// need all of it. Writes of clients are never that long (the protocol's largest payload is 32 MiB).
const MAX_CACHED_BYTES: u64 = 32 << 20;

/// The writes of a volume that a power cut may undo.
#[derive(Debug)]
pub(super) struct WriteCache {
    /// Writes by block number; for each block the oldest first, and at least one.
    blocks: BTreeMap<u64, Vec<Undo>>,
    /// The same writes, the oldest first: number of the write, and number of the block.
    order: BTreeSet<(u64, u64)>,
    /// Number of writes.
    writes: u64,
    most: usize,
    chances: Random,
}

/// Information to undo a write to a block.
#[derive(Debug)]
struct Undo {
    /// The number of the write.
    write: u64,
    /// True if the client knows that the write is complete, so that the next flush must cover it.
    answered: bool,
    /// Contents of the block before the write.
    before: Box<[u8]>,
}

impl WriteCache {
    pub(super) fn new(seed: u64) -> WriteCache {
        WriteCache::of(MAX_CACHED_BLOCKS, seed)
    }

    fn of(most: usize, seed: u64) -> WriteCache {
        WriteCache {
            blocks: BTreeMap::new(),
            order: BTreeSet::new(),
            writes: 0,
            most,
            chances: Random::of(seed, u64::MAX - 4),
        }
    }

    /// Saves the contents of these bytes, just before they are written. Returns the number of the write; `None` if it
    /// is durable at once.
    ///
    /// # Errors
    /// When the file cannot be read; nothing is saved then.
    pub(super) fn note(&mut self, file: &File, place: Span) -> io::Result<Option<u64>> {
        if place.length > MAX_CACHED_BYTES {
            self.persist(place);
            return Ok(None);
        }
        let blocks = blocks(place);
        let start = blocks.start * BLOCK;
        let mut contents = vec![0; (blocks.end * BLOCK - start) as usize];
        file.read_exact_at(&mut contents, start)?;
        self.writes += 1;
        for (block, before) in blocks.zip(contents.chunks_exact(BLOCK as usize)) {
            self.order.insert((self.writes, block));
            self.blocks.entry(block).or_default().push(Undo {
                write: self.writes,
                answered: false,
                before: before.into(),
            });
        }
        while self.order.len() > self.most
            && let Some(&(write, block)) = self.order.first()
        {
            self.make_durable(block, write);
        }
        Ok(Some(self.writes))
    }

    /// Records that a write is being answered.
    pub(super) fn note_answered(&mut self, write: u64, place: Span) {
        for (_, undos) in self.blocks.range_mut(blocks(place)) {
            for undo in undos.iter_mut().filter(|undo| undo.write == write) {
                undo.answered = true;
            }
        }
    }

    /// Makes these bytes durable, with the rest of their blocks.
    pub(super) fn persist(&mut self, place: Span) {
        let within: Vec<u64> = self.blocks.range(blocks(place)).map(|(b, _)| *b).collect();
        for block in within {
            self.make_durable(block, u64::MAX);
        }
    }

    /// Makes all answered writes durable.
    pub(super) fn flush(&mut self) {
        let answered = |(block, undos): (&u64, &Vec<Undo>)| {
            let last = undos.iter().rev().find(|undo| undo.answered)?;
            Some((*block, last.write))
        };
        let covered: Vec<(u64, u64)> = self.blocks.iter().filter_map(answered).collect();
        for (block, write) in covered {
            self.make_durable(block, write);
        }
    }

    /// Makes the contents of this block after this write durable.
    fn make_durable(&mut self, block: u64, write: u64) {
        let Some(undos) = self.blocks.get_mut(&block) else {
            return;
        };
        let durable = undos.partition_point(|undo| undo.write <= write);
        for undo in undos.drain(..durable) {
            self.order.remove(&(undo.write, block));
        }
        if undos.is_empty() {
            self.blocks.remove(&block);
        }
    }

    /// Number of blocks with contents that are not durable.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Loses writes as in a power cut, and is empty afterwards. Returns the number of blocks that got earlier
    /// contents.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn drop_unflushed(&mut self, file: &File) -> io::Result<u64> {
        self.order.clear();
        let mut lost = 0;
        for (block, undos) in std::mem::take(&mut self.blocks) {
            let outcome = self.chances.below(undos.len() as u64 + 1) as usize;
            // The entry after the last write is the current contents of the block.
            if let Some(undo) = undos.get(outcome) {
                file.write_all_at(&undo.before, block * BLOCK)?;
                lost += 1;
            }
        }
        Ok(lost)
    }
}

/// The blocks that these bytes touch.
fn blocks(place: Span) -> std::ops::Range<u64> {
    place.offset / BLOCK..place.end().div_ceil(BLOCK)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    const SECTOR: u64 = 512;
    const BLOCKS: usize = 4;
    const SECTORS: usize = BLOCKS * 8;

    /// A file with a cache in front of it.
    struct Cached {
        file: File,
        cache: WriteCache,
    }

    impl Cached {
        fn new(blocks: u64, most: usize, seed: u64) -> Cached {
            let file = File::from(memfd_create("cached", MemfdFlags::CLOEXEC).unwrap());
            file.set_len(blocks * BLOCK).unwrap();
            let cache = WriteCache::of(most, seed);
            Cached { file, cache }
        }

        fn write(&mut self, place: Span, value: u8) -> Option<u64> {
            let write = self.cache.note(&self.file, place).unwrap();
            let data = vec![value; place.length as usize];
            self.file.write_all_at(&data, place.offset).unwrap();
            write
        }

        fn write_answered(&mut self, block: u64, value: u8) {
            let write = self.write(whole(block), value).unwrap();
            self.cache.note_answered(write, whole(block));
        }

        fn value(&self, block: u64) -> u8 {
            let mut content = [0; BLOCK as usize];
            self.file
                .read_exact_at(&mut content, block * BLOCK)
                .unwrap();
            assert!(content.iter().all(|byte| *byte == content[0]), "torn");
            content[0]
        }
    }

    fn whole(block: u64) -> Span {
        Span {
            offset: block * BLOCK,
            length: BLOCK,
        }
    }

    #[test]
    fn about_half_of_what_was_not_flushed_is_lost_and_the_seed_repeats() {
        let survivors = |seed| {
            let mut cached = Cached::new(1000, 10_000, seed);
            for block in 0..1000 {
                cached.write_answered(block, 1);
            }
            assert_eq!(cached.cache.blocks(), 1000);
            let lost = cached.cache.drop_unflushed(&cached.file).unwrap();
            assert_eq!(cached.cache.blocks(), 0);
            let kept: Vec<u64> = (0..1000).filter(|b| cached.value(*b) == 1).collect();
            assert_eq!(lost, 1000 - kept.len() as u64);
            kept
        };
        let kept = survivors(1);
        // Binomial: 500 with a deviation of 16.
        assert!((400..600).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept, survivors(1));
        assert_ne!(kept, survivors(2));
    }

    #[test]
    fn a_block_that_was_written_often_goes_back_to_any_of_its_contents() {
        let mut seen = [0; 4];
        for seed in 0..400 {
            let mut cached = Cached::new(1, 100, seed);
            (1..4).for_each(|value| cached.write_answered(0, value));
            cached.cache.drop_unflushed(&cached.file).unwrap();
            seen[usize::from(cached.value(0))] += 1;
        }
        // Binomial: 100 each, with a deviation of 9.
        assert!(
            seen.iter().all(|count| (50..150).contains(count)),
            "{seen:?}"
        );
    }

    #[test]
    fn a_full_cache_has_made_its_oldest_writes_durable() {
        let mut cached = Cached::new(100, 10, 1);
        (0..100).for_each(|block| cached.write_answered(block, 1));
        assert_eq!(cached.cache.blocks(), 10);
        let lost = cached.cache.drop_unflushed(&cached.file).unwrap();
        assert!((0..90).all(|block| cached.value(block) == 1));
        let back = (90..100).filter(|block| cached.value(*block) == 0).count();
        assert_eq!(back as u64, lost);
    }

    #[test]
    fn a_long_discard_is_durable_at_once() {
        let mut cached = Cached::new(MAX_CACHED_BYTES / BLOCK + 1, MAX_CACHED_BLOCKS, 1);
        cached.write_answered(0, 1);
        let all = Span {
            offset: 0,
            length: MAX_CACHED_BYTES + BLOCK,
        };
        assert_eq!(cached.write(all, 2), None);
        assert_eq!(cached.cache.blocks(), 0);
    }

    /// Contents that a block may have after a power cut: every contents since the durable one, each with true if its
    /// write was answered.
    #[derive(Clone)]
    struct Allowed(Vec<(Vec<u8>, u64, bool)>);

    impl Allowed {
        fn durable_up_to(&mut self, at: usize) {
            self.0.drain(..at);
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write {
            from: usize,
            sectors: usize,
            fua: bool,
        },
        Answer {
            which: usize,
        },
        Flush,
        Cut,
    }

    fn step() -> impl proptest::strategy::Strategy<Value = Step> {
        use proptest::prelude::*;
        prop_oneof![
            6 => (0..SECTORS, 1..12_usize, proptest::bool::weighted(0.1)).prop_map(
                |(from, sectors, fua)| Step::Write { from, sectors: sectors.min(SECTORS - from), fua }
            ),
            4 => (0..8_usize).prop_map(|which| Step::Answer { which }),
            1 => Just(Step::Flush),
            1 => Just(Step::Cut),
        ]
    }

    proptest::proptest! {
        /// After a cut each block has one of its contents since it was last durable.
        #[test]
        fn only_what_was_not_made_durable_is_lost(
            steps in proptest::collection::vec(step(), 1..60),
            seed in proptest::num::u64::ANY,
        ) {
            let mut cached = Cached::new(BLOCKS as u64, 1000, seed);
            let mut allowed = vec![Allowed(vec![(vec![0; 8], 0, true)]); BLOCKS];
            let mut open: Vec<(u64, Span)> = Vec::new();
            for (value, step) in (1..).zip(steps.into_iter().chain([Step::Cut])) {
                match step {
                    Step::Write { from, sectors, fua } => {
                        let place = Span {
                            offset: from as u64 * SECTOR,
                            length: sectors as u64 * SECTOR,
                        };
                        let write = cached.write(place, value).unwrap();
                        for (number, block) in allowed.iter_mut().enumerate() {
                            let within = |sector: &usize| sector / 8 == number;
                            let mut hit = (from..from + sectors).filter(within).peekable();
                            if hit.peek().is_none() {
                                continue;
                            }
                            let mut content = block.0.last().unwrap().0.clone();
                            hit.for_each(|sector| content[sector % 8] = value);
                            block.0.push((content, write, false));
                            if fua {
                                block.durable_up_to(block.0.len() - 1);
                            }
                        }
                        match fua {
                            true => cached.cache.persist(place),
                            false => open.push((write, place)),
                        }
                    }
                    Step::Answer { which } => {
                        if which < open.len() {
                            let (write, place) = open.remove(which);
                            cached.cache.note_answered(write, place);
                            for (_, by, answered) in allowed.iter_mut().flat_map(|a| &mut a.0) {
                                *answered |= *by == write;
                            }
                        }
                    }
                    Step::Flush => {
                        cached.cache.flush();
                        for block in &mut allowed {
                            if let Some(at) = block.0.iter().rposition(|(_, _, done)| *done) {
                                block.durable_up_to(at);
                            }
                        }
                    }
                    Step::Cut => {
                        cached.cache.drop_unflushed(&cached.file).unwrap();
                        open.clear();
                        for (number, block) in allowed.iter_mut().enumerate() {
                            let mut bytes = [0; BLOCK as usize];
                            let at = number as u64 * BLOCK;
                            cached.file.read_exact_at(&mut bytes, at).unwrap();
                            let sectors = bytes.chunks_exact(SECTOR as usize);
                            let content: Vec<u8> = sectors.map(|sector| sector[0]).collect();
                            let may = block.0.iter().any(|(allowed, _, _)| *allowed == content);
                            assert!(may, "block {number} holds {content:?}");
                            block.0 = vec![(content, 0, true)];
                        }
                    }
                }
            }
            assert_eq!(cached.cache.order.len(), 0);
        }
    }
}
