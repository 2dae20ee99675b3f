//! The list of blocks that a snapshot holds, as `aws ebs list-snapshot-blocks` prints it: objects
//! with `Blocks`, each of them with a `BlockIndex`, and a `BlockSize` in bytes (Amazon EBS direct
//! APIs, ListSnapshotBlocks). One answer has at most 10,000 blocks, so a list is several objects,
//! which are taken one after the other, or in arrays.

use anyhow::{Context as _, anyhow, bail, ensure};
use record::{Bytes, Ranges};
use serde::Deserialize;

/// One page of the answer. What else stands in it (the blocks' tokens, the time when they expire) is
/// not needed.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    blocks: Vec<Block>,
    #[serde(default)]
    block_size: Option<u64>,
    /// In GiB.
    #[serde(default)]
    volume_size: Option<u64>,
    /// Where another page follows, what to ask for it with.
    #[serde(default)]
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Block {
    block_index: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Pages {
    One(Page),
    Several(Vec<Page>),
}

/// What a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The bytes that its blocks cover.
    pub ranges: Ranges,
    /// The size of the volume that it is of, where the list says that.
    pub volume: Option<Bytes>,
}

impl Held {
    /// Makes sure that this can be the snapshot that a volume of this size was restored from.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub(crate) fn check(&self, size: Bytes) -> anyhow::Result<()> {
        if let Some(own) = self.volume.filter(|own| *own > size) {
            bail!(
                "it is of a volume of {own}, and this one has {size}, though a restored volume is \
                 never smaller: it is the list of another snapshot"
            );
        }
        ensure!(
            !self.ranges.intersect(&Ranges::all(size)).is_empty(),
            "none of its blocks lies on the volume, of which nothing would be read"
        );
        Ok(())
    }
}

/// What the blocks of a list cover.
///
/// # Errors
/// When it is no such list, or not all of it.
pub(crate) fn parse(text: &[u8]) -> anyhow::Result<Held> {
    let mut pages = Vec::new();
    for answer in serde_json::Deserializer::from_slice(text).into_iter::<Pages>() {
        let answer = answer.context(
            "it is not what 'aws ebs list-snapshot-blocks --output json' prints, one page or \
             several one after the other",
        )?;
        match answer {
            Pages::One(page) => pages.push(page),
            Pages::Several(several) => pages.extend(several),
        }
    }
    let size = common_size(&pages)?;
    let token = pages.last().and_then(|page| page.next_token.as_deref());
    ensure!(
        token.unwrap_or_default().is_empty(),
        "its last page names a next one (NextToken), so that it is not all of the list: ask for that \
         with 'aws ebs list-snapshot-blocks --next-token', until a page names none, and append them all"
    );
    let blocks = pages.iter().flat_map(|page| &page.blocks);
    let ranges: anyhow::Result<Ranges> = blocks
        .map(|block| {
            let index = block.block_index;
            let start = index.checked_mul(size.0);
            let range = start.and_then(|start| Some(start..start.checked_add(size.0)?));
            range.ok_or_else(|| anyhow!("its block {index} lies where no volume reaches"))
        })
        .collect();
    Ok(Held {
        ranges: ranges?,
        volume: common_volume(&pages)?,
    })
}

/// The size of the volume, on which all pages agree that name one.
fn common_volume(pages: &[Page]) -> anyhow::Result<Option<Bytes>> {
    let mut sizes = pages.iter().filter_map(|page| page.volume_size);
    let Some(first) = sizes.next() else {
        return Ok(None);
    };
    if let Some(other) = sizes.find(|size| *size != first) {
        bail!(
            "its pages are of volumes of {first} and of {other} GiB: they are of different snapshots"
        );
    }
    Ok(Some(Bytes(first.saturating_mul(Bytes::gib(1).0))))
}

fn common_size(pages: &[Page]) -> anyhow::Result<Bytes> {
    let mut sizes = pages.iter().filter_map(|page| page.block_size);
    let first = sizes.next().unwrap_or(0);
    ensure!(
        first > 0,
        "no page of it says how large a block is (BlockSize)"
    );
    if let Some(other) = sizes.find(|size| *size != first) {
        bail!(
            "its pages have blocks of {first} and of {other} bytes: they are of different snapshots"
        );
    }
    Ok(Bytes(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"{"Blocks":[{"BlockIndex":0,"BlockToken":"AAAB"},{"BlockIndex":2,
        "BlockToken":"x"}],"ExpiryTime":"2026-11-22T00:00:00Z","VolumeSize":8,"BlockSize":524288,
        "NextToken":"y"}"#;
    const NEXT: &str = r#"{"Blocks":[{"BlockIndex":3}],"BlockSize":524288}"#;

    #[test]
    fn pages_come_one_after_the_other_or_in_an_array() {
        let block = 512 << 10;
        let wanted: Ranges = [0..block, 2 * block..4 * block].into_iter().collect();
        for text in [format!("{PAGE}\n{NEXT}"), format!("[{PAGE},{NEXT}]")] {
            let held = parse(text.as_bytes()).unwrap();
            assert_eq!(
                (held.ranges, held.volume),
                (wanted.clone(), Some(Bytes::gib(8)))
            );
        }
        let last = NEXT.replace("}]", r#"}],"NextToken":"""#);
        assert_eq!(parse(last.as_bytes()).unwrap().ranges.total(), Bytes(block));
    }

    #[test]
    fn a_list_of_another_volume_is_refused() {
        let block = 512 << 10;
        let held = |ranges: Ranges, gib: Option<u64>| Held {
            ranges,
            volume: gib.map(Bytes::gib),
        };
        let some = Ranges::from(0..block);
        assert!(held(some.clone(), Some(8)).check(Bytes::gib(8)).is_ok());
        assert!(held(some.clone(), None).check(Bytes::gib(9)).is_ok());
        let error = held(some, Some(8)).check(Bytes::gib(7)).unwrap_err();
        assert!(error.to_string().contains("another snapshot"), "{error}");
        let far = Ranges::from(Bytes::gib(8).0..Bytes::gib(9).0);
        for none in [far, Ranges::new()] {
            let error = held(none, None).check(Bytes::gib(8)).unwrap_err();
            assert!(error.to_string().contains("none of its blocks"), "{error}");
        }
    }

    #[test]
    fn what_is_no_such_list_is_refused_with_a_reason() {
        let far = format!(
            r#"{{"Blocks":[{{"BlockIndex":{}}}],"BlockSize":524288}}"#,
            u64::MAX
        );
        for (text, words) in [
            ("", "how large a block is"),
            ("BlockIndex 5", "not what 'aws ebs"),
            ("{}", "not what 'aws ebs"),
            (
                r#"{"Blocks":[{"BlockIndex":-1}],"BlockSize":524288}"#,
                "not what",
            ),
            (r#"{"Blocks":[]}"#, "how large a block is"),
            (r#"{"Blocks":[],"BlockSize":0}"#, "how large a block is"),
            (
                r#"{"Blocks":[],"BlockSize":524288}{"Blocks":[],"BlockSize":4096}"#,
                "different snapshots",
            ),
            (
                r#"{"Blocks":[],"BlockSize":512,"VolumeSize":1}{"Blocks":[],"VolumeSize":2}"#,
                "different snapshots",
            ),
            (PAGE, "names a next one (NextToken)"),
            (&far, "no volume reaches"),
            (&PAGE[..60], "not what"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
