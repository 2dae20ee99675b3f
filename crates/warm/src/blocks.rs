//! The list of blocks that a snapshot holds, as `aws ebs list-snapshot-blocks` prints it: objects
//! with `Blocks`, each of them with a `BlockIndex`, and a `BlockSize` in bytes (Amazon EBS direct
//! APIs, ListSnapshotBlocks). One response has at most 10,000 blocks, so a list is several objects, one after the other
//! or in arrays.

use std::io::Read;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, anyhow, bail, ensure};
use linux::aws::{self, RunProgram};
use record::{Bytes, Ranges};
use serde::Deserialize;

/// Requests the list of a snapshot's blocks from `aws`, page by page: a page has at most 10,000 blocks, and botocore
/// does not request the next page itself (it has no paginators for ebs). `report` is called with the number of blocks
/// received so far.
///
/// # Errors
/// When `aws` fails, or its output is not such a list.
pub(crate) fn request(
    snapshot: &str,
    interrupt: &AtomicBool,
    run: RunProgram<'_>,
    report: &mut dyn FnMut(usize),
) -> anyhow::Result<SnapshotBlocks> {
    let program = aws::command(&["ebs", "list-snapshot-blocks", "--snapshot-id", snapshot])
        .args(["--max-results", MAX_RESULTS]);
    let mut seen = ScannedPages::default();
    let mut count = 0;
    let mut wrong = None;
    aws::pages(
        &program,
        "--next-token",
        interrupt,
        run,
        |answer: Response| {
            let page = answer.0?;
            let next = page.next_token.clone();
            count += page.blocks.len();
            report(count);
            match seen.add(page) {
                Ok(()) => next,
                Err(error) => {
                    wrong = Some(error);
                    None
                }
            }
        },
    )?;
    match wrong {
        Some(error) => Err(error),
        None => seen.into_blocks(),
    }
}

/// Maximum number of blocks in a page (Amazon EBS API Reference, ListSnapshotBlocks).
const MAX_RESULTS: &str = "10000";

/// Output of `aws`; `None` where it wrote nothing.
#[derive(Default, Deserialize)]
struct Response(Option<Page>);

/// A page of the list. Its other keys (the blocks' tokens, the time when they expire) are not read.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    blocks: Vec<Block>,
    #[serde(default)]
    block_size: Option<u64>,
    /// Size of the volume, in GiB.
    #[serde(default)]
    volume_size: Option<u64>,
    /// Token by which the next page is requested, where there is one.
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

/// Blocks that a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotBlocks {
    /// Ranges of bytes that the blocks cover.
    pub ranges: Ranges,
    /// Size of the volume that the snapshot was taken of; `None` where the list does not state it.
    pub volume: Option<Bytes>,
}

impl SnapshotBlocks {
    /// Checks that a volume of this size can have been restored from this snapshot.
    ///
    /// # Errors
    /// The reason why it cannot have been.
    pub(crate) fn check(&self, size: Bytes) -> anyhow::Result<()> {
        if let Some(own) = self.volume.filter(|own| *own > size) {
            bail!(
                "it lists a volume of {}, and this one has {}, though a restored volume is never \
                 smaller: it is the list of another snapshot",
                own.exact(),
                size.exact()
            );
        }
        ensure!(
            !self.ranges.intersect(&Ranges::all(size)).is_empty(),
            "none of its blocks lies on the volume: nothing would be read"
        );
        Ok(())
    }
}

/// Reads a list of blocks. One page, or one array of pages, is in memory at a time: the list of a large snapshot may be
/// larger than the memory.
///
/// # Errors
/// When the list cannot be read, is not a list of blocks, or is incomplete.
pub(crate) fn parse(list: impl Read) -> anyhow::Result<SnapshotBlocks> {
    let mut seen = ScannedPages::default();
    for answer in serde_json::Deserializer::from_reader(list).into_iter::<Pages>() {
        let answer = answer.context(
            "it is not what 'aws ebs list-snapshot-blocks --output json' prints, one page or \
             several one after the other",
        )?;
        match answer {
            Pages::One(page) => seen.add(page)?,
            Pages::Several(several) => several.into_iter().try_for_each(|page| seen.add(page))?,
        }
    }
    seen.into_blocks()
}

/// The pages so far.
#[derive(Default)]
struct ScannedPages {
    /// Indices of blocks; adjacent blocks are one range.
    blocks: Vec<Range<u64>>,
    /// Size of a block, in bytes.
    block: Option<u64>,
    /// Size of the volume, in GiB.
    volume: Option<u64>,
    /// True if the last page names a next page.
    has_next_page: bool,
}

impl ScannedPages {
    fn add(&mut self, page: Page) -> anyhow::Result<()> {
        self.has_next_page = page.next_token.is_some_and(|token| !token.is_empty());
        check_same(&mut self.block, page.block_size, "have blocks of", "bytes")?;
        check_same(
            &mut self.volume,
            page.volume_size,
            "are of volumes of",
            "GiB",
        )?;
        for Block { block_index: index } in page.blocks {
            let end = index.checked_add(1).ok_or_else(|| too_far(index))?;
            match self.blocks.last_mut() {
                Some(last) if last.end == index => last.end = end,
                _ => self.blocks.push(index..end),
            }
        }
        Ok(())
    }

    fn into_blocks(self) -> anyhow::Result<SnapshotBlocks> {
        let size = self.block.unwrap_or(0);
        ensure!(
            size > 0,
            "no page of it has the size of a block (BlockSize)"
        );
        ensure!(
            !self.has_next_page,
            "its last page names a next one (NextToken), so the list is incomplete: request the \
             following pages with 'aws ebs list-snapshot-blocks --next-token' until a page has no \
             NextToken, and append them all"
        );
        let bytes = |range: &Range<u64>| {
            let end = range.end.checked_mul(size);
            let end = end.ok_or_else(|| too_far(range.end - 1))?;
            Ok(range.start * size..end)
        };
        let ranges: anyhow::Result<Ranges> = self.blocks.iter().map(bytes).collect();
        Ok(SnapshotBlocks {
            ranges: ranges?,
            volume: self
                .volume
                .map(|gib| Bytes(gib.saturating_mul(Bytes::gib(1).0))),
        })
    }
}

fn too_far(index: u64) -> anyhow::Error {
    anyhow!("its block {index} lies beyond the end of any volume")
}

/// Stores a value that a page states in `known`, or checks that it is equal to the value of earlier pages.
fn check_same(
    known: &mut Option<u64>,
    found: Option<u64>,
    what: &str,
    unit: &str,
) -> anyhow::Result<()> {
    if let (Some(first), Some(other)) = (*known, found)
        && first != other
    {
        bail!("its pages {what} {first} and of {other} {unit}: they are of different snapshots");
    }
    *known = known.or(found);
    Ok(())
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

    fn query(
        answers: &[Result<&str, &str>],
    ) -> (anyhow::Result<SnapshotBlocks>, Vec<String>, Vec<usize>) {
        let (mut lines, mut counts) = (Vec::new(), Vec::new());
        let mut answers = answers.iter();
        let held = request(
            "snap-1",
            &AtomicBool::new(false),
            &mut |program| {
                lines.push(program.line());
                match answers.next() {
                    Some(Ok(text)) => Ok(text.as_bytes().to_vec()),
                    Some(Err(text)) => Err(aws::Error::of(text, &["ebs", "list-snapshot-blocks"])),
                    None => panic!("one page more is asked for"),
                }
            },
            &mut |count| counts.push(count),
        );
        (held, lines, counts)
    }

    #[test]
    fn all_pages_are_requested_of_aws() {
        let block = 512 << 10;
        let (held, lines, counts) = query(&[Ok(PAGE), Ok(NEXT)]);
        let held = held.unwrap();
        let wanted: Ranges = [0..block, 2 * block..4 * block].into_iter().collect();
        assert_eq!((held.ranges, held.volume), (wanted, Some(Bytes::gib(8))));
        let first =
            "aws ebs list-snapshot-blocks --snapshot-id snap-1 --output json --max-results 10000";
        assert_eq!(lines, [first.to_owned(), format!("{first} --next-token y")]);
        assert_eq!(counts, [2, 3]);
    }

    #[test]
    fn an_answer_that_is_no_list_or_an_error_is_reported() {
        let other = PAGE.replace("524288", "4096");
        for (answers, words) in [
            (vec![Ok("")], "the size of a block"),
            (vec![Ok("{}")], "not the JSON"),
            (vec![Ok(PAGE), Ok(other.as_str())], "different snapshots"),
            (
                vec![Err(
                    "An error occurred (ExpiredTokenException) when calling x",
                )],
                "aws sso login",
            ),
            (
                vec![
                    Ok(PAGE),
                    Err("An error occurred (AccessDeniedException) when calling x"),
                ],
                "ebs:ListSnapshotBlocks",
            ),
        ] {
            let error = format!("{:#}", query(&answers).0.unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_list_of_another_volume_is_refused() {
        let block = 512 << 10;
        let held = |ranges: Ranges, gib: Option<u64>| SnapshotBlocks {
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
    fn other_documents_are_refused_with_the_reason() {
        let far = format!(
            r#"{{"Blocks":[{{"BlockIndex":{}}}],"BlockSize":524288}}"#,
            u64::MAX
        );
        for (text, words) in [
            ("", "the size of a block"),
            ("BlockIndex 5", "not what 'aws ebs"),
            ("{}", "not what 'aws ebs"),
            (
                r#"{"Blocks":[{"BlockIndex":-1}],"BlockSize":524288}"#,
                "not what",
            ),
            (r#"{"Blocks":[]}"#, "the size of a block"),
            (r#"{"Blocks":[],"BlockSize":0}"#, "the size of a block"),
            (
                r#"{"Blocks":[],"BlockSize":524288}{"Blocks":[],"BlockSize":4096}"#,
                "different snapshots",
            ),
            (
                r#"{"Blocks":[],"BlockSize":512,"VolumeSize":1}{"Blocks":[],"VolumeSize":2}"#,
                "different snapshots",
            ),
            (PAGE, "names a next one (NextToken)"),
            (&far, "beyond the end of any volume"),
            (&PAGE[..60], "not what"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
