//! Labels of a tag.

/// Puts a tag with its labels, in the order of their names, into a buffer. Labels cannot hold what separates them.
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
