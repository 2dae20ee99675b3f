//! The list of blocks that a snapshot holds, as `aws ebs list-snapshot-blocks` prints it: objects
//! with `Blocks`, each of them with a `BlockIndex`, and a `BlockSize` in bytes (Amazon EBS direct
//! APIs, ListSnapshotBlocks). One answer has at most 10,000 blocks, so a list is several objects,
//! which are taken one after the other, or in arrays.

use anyhow::{Context as _, anyhow, bail, ensure};
use record::{Bytes, Ranges};
use serde::Deserialize;

/// One page of the answer. What else stands in it (tokens, the time when they expire, the volume's
/// size) is not needed.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    blocks: Vec<Block>,
    #[serde(default)]
    block_size: Option<u64>,
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

/// The bytes that the blocks of a list cover.
///
/// # Errors
/// When it is no such list.
pub(crate) fn parse(text: &[u8]) -> anyhow::Result<Ranges> {
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
    let blocks = pages.iter().flat_map(|page| &page.blocks);
    blocks
        .map(|block| {
            let index = block.block_index;
            let start = index.checked_mul(size.0);
            let range = start.and_then(|start| Some(start..start.checked_add(size.0)?));
            range.ok_or_else(|| anyhow!("its block {index} lies where no volume reaches"))
        })
        .collect()
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
            assert_eq!(parse(text.as_bytes()).unwrap(), wanted);
        }
        let only = parse(PAGE.as_bytes()).unwrap();
        assert_eq!(only.total(), Bytes(2 * block));
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
            (&far, "no volume reaches"),
            (&PAGE[..60], "not what"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
