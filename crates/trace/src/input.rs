//! Input of a reader: a file of any size, plain or compressed with gzip or zstd.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use ui::context::notice;

/// Size of the buffers on both sides of a decoder.
const BUFFER: usize = 256 << 10;

/// Decompressed bytes of an input.
pub(crate) type Input = Box<dyn BufRead + Send>;

/// Opens a file, which may be a pipe.
pub(crate) fn open(path: &Path) -> io::Result<Input> {
    unpack(BufReader::with_capacity(BUFFER, File::open(path)?), path)
}

/// Decompresses a source that begins like a compressed file; `path` is its name in notices.
fn unpack(source: impl BufRead + Send + 'static, path: &Path) -> io::Result<Input> {
    let (start, source) = peek(source, 4)?;
    Ok(match start[..] {
        [0x1f, 0x8b, ..] => buffered(Gzip::new(source, path)),
        [0x28, 0xb5, 0x2f, 0xfd] => buffered(Zstd::new(source)),
        // A skippable frame, with which the output of parallel zstd begins.
        [0x50..=0x5f, 0x2a, 0x4d, 0x18] => buffered(Zstd::new(source)),
        _ => Box::new(source),
    })
}

/// A source whose first bytes were read, with these bytes prepended.
pub(crate) type Peeked<R> = io::Chain<Cursor<Vec<u8>>, R>;

/// The first `most` bytes of a source, or fewer if it is shorter, and the source with these bytes prepended.
pub(crate) fn peek<R: BufRead>(mut source: R, most: usize) -> io::Result<(Vec<u8>, Peeked<R>)> {
    let mut start = Vec::new();
    source.by_ref().take(most as u64).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(source)))
}

fn buffered(source: impl Read + Send + 'static) -> Input {
    Box::new(BufReader::with_capacity(BUFFER, source))
}

/// Reads consecutive gzip members, up to data that is not one.
struct Gzip<R> {
    member: Option<GzDecoder<Peeked<R>>>,
    path: PathBuf,
}

impl<R: BufRead> Gzip<R> {
    fn new(source: Peeked<R>, path: &Path) -> Gzip<R> {
        Gzip {
            member: Some(GzDecoder::new(source)),
            path: path.to_path_buf(),
        }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(ended) = self.member.take() else {
                break;
            };
            // The peeked bytes were all read.
            let (_, source) = ended.into_inner().into_inner();
            let (start, source) = peek(source, 2)?;
            match start[..] {
                [0x1f, 0x8b] => self.member = Some(GzDecoder::new(source)),
                [] => {}
                // Ignored, as by gzip(1): some programs pad their files.
                _ => notice(&format!(
                    "{}: what follows the gzip data is not gzip, and was ignored",
                    self.path.display()
                )),
            }
        }
        Ok(0)
    }
}

/// Reads consecutive zstd frames.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Zstd<R> {
        Zstd {
            source,
            decoder: FrameDecoder::new(),
            in_frame: false,
        }
    }

    /// Advances to the next frame with data; false at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = self.source.by_ref().take(u64::from(length));
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(damaged(&error)),
            }
        }
    }
}

fn damaged(error: &FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {error}"))
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame {
                self.in_frame = self.next_frame()?;
                if !self.in_frame {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|error| damaged(&error))?;
            }
            match self.decoder.read(buffer)? {
                0 => self.in_frame = false,
                read => return Ok(read),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        unpack(Cursor::new(bytes), Path::new("t"))?.read_to_end(&mut out)?;
        Ok(out)
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn frames_of_zstd_follow_each_other_and_others_are_skipped() {
        let text = b"one line\n".repeat(40_000);
        let skipped = [&[0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let packed = [&skipped[..], &zstd(&text), &skipped, &zstd(b"end")].concat();
        assert_eq!(unpacked(packed).unwrap(), [&text[..], b"end"].concat());
    }

    #[test]
    fn members_of_gzip_follow_each_other() {
        let member = |bytes: &[u8]| {
            let mut packed = Vec::new();
            flate2::read::GzEncoder::new(bytes, flate2::Compression::fast())
                .read_to_end(&mut packed)
                .unwrap();
            packed
        };
        let packed = [member(b"a"), member(b"b")].concat();
        assert_eq!(unpacked(packed.clone()).unwrap(), b"ab");
        for rest in [&[0; 600][..], b"junk", b"\x1fjunk", b"\x1f"] {
            assert_eq!(unpacked([&packed, rest].concat()).unwrap(), b"ab");
        }
        // A truncated member is an error.
        assert!(unpacked(packed[..packed.len() - 1].to_vec()).is_err());
    }

    #[test]
    fn a_cut_is_an_error_and_what_is_plain_passes() {
        let mut packed = zstd(&b"one line\n".repeat(40_000));
        packed.truncate(packed.len() / 2);
        assert!(unpacked(packed).is_err());
        for plain in [&b""[..], b"1", b"plain"] {
            assert_eq!(unpacked(plain.to_vec()).unwrap(), plain);
        }
    }
}
