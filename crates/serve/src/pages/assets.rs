//! Style sheets, scripts and icon of the pages. The path of each has the hash of its content, so that browsers can
//! cache it without limit.

use std::io::Write as _;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use ui::format::hex;

/// A file with its content's hash in its path.
pub(crate) struct Asset {
    /// Path of the file.
    pub(crate) path: String,
    /// Media type of the file.
    pub(crate) content_type: &'static str,
    /// Content of the file.
    pub(crate) bytes: Vec<u8>,
    /// Content of the file, compressed with gzip.
    pub(crate) gzip: Vec<u8>,
}

impl Asset {
    fn new(name: &str, extension: &str, content_type: &'static str, content: &str) -> Asset {
        let hash = Sha256::digest(content);
        let hash = hex(&hash[..6]);
        let bytes = content.as_bytes().to_vec();
        Asset {
            path: format!("/assets/{name}.{hash}.{extension}"),
            content_type,
            gzip: compressed(&bytes),
            bytes,
        }
    }
}

/// The bytes compressed with gzip. Writing to memory does not fail.
fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// The files.
pub(super) struct Assets {
    pub(super) style: Asset,
    pub(super) library: Asset,
    pub(super) charts: Asset,
    pub(super) script: Asset,
    pub(super) icon: Asset,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Icon of the site: three bars above a disk.
const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><path fill=\"#0072b2\" d=\"M1 3h4v8H1z\"/>\
    <path fill=\"#d55e00\" d=\"M6 6h4v5H6z\"/><path fill=\"#008a63\" d=\"M11 1h4v10h-4z\"/><path fill=\"#5a5f66\" d=\"M1 13h14v2H1z\"/></svg>";

pub(super) static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    style: Asset::new(
        "serve",
        "css",
        "text/css; charset=utf-8",
        &[page::STYLE, include_str!("assets/serve.css")].concat(),
    ),
    library: Asset::new("uplot", "js", SCRIPT, page::LIBRARY),
    charts: Asset::new("charts", "js", SCRIPT, include_str!("assets/charts.js")),
    script: Asset::new("serve", "js", SCRIPT, include_str!("assets/serve.js")),
    icon: Asset::new("icon", "svg", "image/svg+xml", ICON),
});

/// The file at a path; `None` if no file has this name and hash.
pub(crate) fn asset(path: &str) -> Option<&'static Asset> {
    let all = [
        &ASSETS.style,
        &ASSETS.library,
        &ASSETS.charts,
        &ASSETS.script,
        &ASSETS.icon,
    ];
    all.into_iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_by_its_hash_alone() {
        let path = ASSETS.style.path.as_str();
        assert!(asset(path).is_some());
        let (name, rest) = path.split_once('.').unwrap();
        let other = format!("{name}.0{}", &rest[1..]);
        assert!(asset(&other).is_none() || other == path);
        assert!(asset("/assets/serve.css").is_none());
    }
}
