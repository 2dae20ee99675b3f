//! The rewrite of some blocks, while writes to them are suspended.

use std::io;
use std::ops::Range;

use reader::Buffer;

use super::super::locate::{
    BLOCK, Geometry, MemberOffset, RelatedParts, WrongMember, judge, restored,
};
use super::super::repair::BlockResult;

/// Number of attempts to evict md's cached stripes.
const EVICTION_ATTEMPTS: u32 = 4;

/// Access of a rewrite to the array.
pub(crate) trait RewriteAccess {
    /// Suspends writes to these positions, and waits for those in flight.
    fn suspend(&mut self, positions: &Range<u64>) -> Result<(), String>;

    /// Lets writes continue, and restores all other changed tunables.
    fn release(&mut self) -> Result<(), String>;

    /// Evicts md's cached stripes of these positions.
    fn forget(&mut self, positions: &Range<u64>) -> Result<(), String>;

    /// Number of blocks that differ at these positions by md's count; `None` where md has no cache that could differ
    /// from the members.
    fn counted(&mut self, positions: &Range<u64>) -> Result<Option<u64>, String>;

    /// Reads a member itself, with direct I/O.
    fn read(&mut self, place: MemberOffset, into: &mut [u8]) -> io::Result<()>;

    /// Writes to a member itself. The bytes are durable when this returns.
    fn write(&mut self, place: MemberOffset, bytes: &[u8]) -> io::Result<()>;
}

/// A block of a member that is wrong by all other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The position of the check, a multiple of [`BLOCK`].
    pub position: u64,
    /// The member's slot.
    pub slot: u32,
}

/// Blocks that are rewritten together while writes to their positions are suspended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Positions, in whole units of the array's geometry.
    pub positions: Range<u64>,
    /// Blocks in order; at least one.
    pub blocks: Vec<Block>,
}

/// The outcome for a window.
#[derive(Debug)]
pub(crate) struct WindowResult {
    /// Result of each of its blocks.
    pub results: Vec<BlockResult>,
    /// A problem that needs attention before anything else is written.
    pub trouble: Option<String>,
}

/// Rewrites the blocks of a window.
pub(crate) fn rewrite(
    access: &mut dyn RewriteAccess,
    geometry: &Geometry,
    window: &Window,
) -> WindowResult {
    let ready = access
        .suspend(&window.positions)
        // Evicted before anything is written: after a kill from here on, md reads the members themselves.
        .and_then(|()| access.forget(&window.positions));
    let mut buffer = Buffer::new(geometry.disks() as usize + 1, BLOCK as usize);
    let (mut results, mut trouble) = (Vec::new(), None);
    for block in &window.blocks {
        results.push(match (&ready, &trouble) {
            (Err(why), _) | (Ok(()), Some(why)) => BlockResult::Refused(why.clone()),
            (Ok(()), None) => one(access, geometry, *block, &mut buffer),
        });
        if let Some(BlockResult::Failed(why)) = results.last() {
            trouble = Some(why.clone());
        }
    }
    if results.contains(&BlockResult::Restored)
        && let Err(why) = drop_cached_stripes(access, geometry, &window.positions, &mut buffer)
    {
        trouble.get_or_insert(why);
    }
    if let Err(why) = access.release() {
        trouble.get_or_insert(why);
    }
    WindowResult { results, trouble }
}

/// Rewrites one block.
fn one(
    access: &mut dyn RewriteAccess,
    geometry: &Geometry,
    block: Block,
    buffer: &mut Buffer,
) -> BlockResult {
    let Some(group) = group(geometry, block.position) else {
        return BlockResult::Agrees;
    };
    let places = group.places();
    let length = group.length as usize;
    if let Err(why) = read(access, &group, buffer) {
        return BlockResult::Refused(why);
    }
    let parts = || 0..places.len();
    let read_parts: Vec<&[u8]> = parts().map(|index| buffer.part(index)).collect();
    match judge(&group.relation, &read_parts) {
        None => return BlockResult::Agrees,
        Some(WrongMember::Member(slot)) if slot == block.slot => {}
        Some(_) => return BlockResult::Ambiguous,
    }
    let Some((index, bytes)) = restored(&group.relation, &read_parts) else {
        return BlockResult::Ambiguous;
    };
    let with = |at: usize| match at == index {
        true => bytes.as_slice(),
        false => read_parts[at],
    };
    let mended: Vec<&[u8]> = parts().map(with).collect();
    if judge(&group.relation, &mended).is_some() {
        return BlockResult::Ambiguous;
    }
    // In the buffer after the members' parts, which is aligned for direct I/O.
    let spare = places.len();
    buffer.set(spare + 1, length);
    buffer.part_mut(spare).copy_from_slice(&bytes);
    if let Err(error) = access.write(places[index], buffer.part(spare)) {
        return BlockResult::Failed(format!("the write to the member failed: {error}"));
    }
    if let Err(why) = read(access, &group, buffer) {
        return BlockResult::Failed(format!("after the write, {why}"));
    }
    let read_parts: Vec<&[u8]> = parts().map(|index| buffer.part(index)).collect();
    match judge(&group.relation, &read_parts) {
        None if read_parts[index] == bytes => BlockResult::Restored,
        _ => BlockResult::Failed(
            "after the write, the member reads back as something else".to_owned(),
        ),
    }
}

/// Evicts md's cached stripes until md counts as many differing blocks as the members have. Outdated cached bytes would
/// return to the members with the next write to the stripe.
fn drop_cached_stripes(
    access: &mut dyn RewriteAccess,
    geometry: &Geometry,
    positions: &Range<u64>,
    buffer: &mut Buffer,
) -> Result<(), String> {
    let mut counted = access.counted(positions)?;
    if counted.is_none() {
        return Ok(());
    }
    let differing = differing(access, geometry, positions, buffer)?;
    for _ in 0..EVICTION_ATTEMPTS {
        if counted == Some(differing) {
            return Ok(());
        }
        access.forget(positions)?;
        counted = access.counted(positions)?;
    }
    if counted == Some(differing) {
        return Ok(());
    }
    Err(format!(
        "what was written agrees on the members, but md still counts {} blocks of 4 KiB there that differ, of \
         {differing}: it keeps what was there before in memory. Stop the array and assemble it again before \
         anything is written there",
        counted.unwrap_or(0)
    ))
}

/// Number of blocks that differ on the members.
fn differing(
    access: &mut dyn RewriteAccess,
    geometry: &Geometry,
    positions: &Range<u64>,
    buffer: &mut Buffer,
) -> Result<u64, String> {
    let mut count = 0;
    for position in (positions.start..positions.end).step_by(BLOCK as usize) {
        let Some(group) = group(geometry, position) else {
            break;
        };
        read(access, &group, buffer)?;
        let places = group.places().len();
        let parts: Vec<&[u8]> = (0..places).map(|index| buffer.part(index)).collect();
        count += u64::from(judge(&group.relation, &parts).is_some());
    }
    Ok(count)
}

/// The block of all members at a position.
fn group(geometry: &Geometry, position: u64) -> Option<RelatedParts> {
    let mut group = geometry.group(position)?;
    group.length = group.length.min(BLOCK);
    Some(group)
}

/// Reads a block of all members.
fn read(
    access: &mut dyn RewriteAccess,
    group: &RelatedParts,
    buffer: &mut Buffer,
) -> Result<(), String> {
    let places = group.places();
    buffer.reserve(places.len(), group.length as usize);
    for (index, place) in places.iter().enumerate() {
        access
            .read(*place, buffer.part_mut(index))
            .map_err(|error| {
                format!("the member in slot {} cannot be read: {error}", place.slot)
            })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
