//! Erasing the superblocks of members, with the user's consent.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use linux::Root;
use linux::consent::{Consent, DestroyTarget, open_for_destroying};
use linux::md;
use linux::signature::{self, Content, SignatureKind};

use super::host::ArrayHost;
use super::plan;

/// Reason to leave an array's metadata unchanged: another program maintains it (mdadm(8), container; mdmon(8)).
pub(super) fn foreign(array: &md::Array) -> Option<String> {
    let metadata = array.metadata.as_deref()?;
    metadata.starts_with("external:").then(|| {
        format!(
            "{} has metadata of another kind ({metadata}), which mdmon keeps; use mdadm itself",
            array.name
        )
    })
}

/// Reason not to erase the superblock of a member that is still in use: it is not named by a consent, or it has
/// contents that are not named.
pub(super) fn reason_against(root: &Root, path: &Path, consents: &[Consent]) -> Option<String> {
    let shown = path.display();
    let found = File::open(root.locate(path)).and_then(|file| Content::of(&file, &[]));
    let kinds = match found {
        Ok(content) => content.kinds(),
        Err(error) => return Some(format!("the superblock of {shown} cannot be read: {error}")),
    };
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let argument = format!("--destroy {shown}={}", names.join(","));
    let named: Vec<&Consent> = consents.iter().filter(|one| one.names(path)).collect();
    if named.is_empty() {
        return Some(format!(
            "the superblock of {shown} is erased only if that is named too: {argument}"
        ));
    }
    let is_named = |kind: &SignatureKind| named.iter().any(|one| one.signatures.contains(kind));
    let all_named = kinds.iter().all(is_named);
    (!all_named).then(|| {
        format!(
            "{shown} carries {}, and all of that must be named: {argument}",
            names.join(", ")
        )
    })
}

/// Claims a former member.
///
/// # Errors
/// When there is a reason against overwriting it.
pub(super) fn claim(
    host: &ArrayHost,
    path: &Path,
    consents: &[Consent],
) -> anyhow::Result<DestroyTarget> {
    open_for_destroying(&host.root, path, consents)
        .with_context(|| format!("{} is not erased", path.display()))
}

/// Erases the superblocks of claimed devices. The claims are held until then: udev would assemble the array again from
/// unclaimed members with superblocks. Returns the paths of the erased devices, also after a failure.
pub(super) fn erase(
    host: &mut ArrayHost,
    claims: &[DestroyTarget],
    erased: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    for claim in claims {
        host.run(&plan::wipe(&claim.path))?;
        let left = signature::probe(&claim.file)
            .with_context(|| format!("{} cannot be read", claim.path.display()))?;
        if let Some(left) = left.first() {
            bail!(
                "{} still carries {}",
                claim.path.display(),
                left.kind.name()
            );
        }
        erased.push(claim.path.clone());
    }
    Ok(())
}
