//! Labels of a tag.

/// Writes a tag and its labels, sorted by name, into a buffer. Separators within a label are replaced by `_`.
pub(super) fn tag_with_labels(tag: &[u8], labels: &mut [(&[u8], &[u8])], into: &mut Vec<u8>) {
    labels.sort_unstable();
    into.clear();
    into.extend_from_slice(tag);
    for (name, value) in labels {
        into.push(b';');
        into.extend(name.iter().map(|byte| {
            if matches!(byte, b';' | b'=') {
                b'_'
            } else {
                *byte
            }
        }));
        into.push(b'=');
        into.extend(
            value
                .iter()
                .map(|byte| if *byte == b';' { b'_' } else { *byte }),
        );
    }
}
