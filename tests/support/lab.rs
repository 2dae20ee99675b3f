//! The lab's machine, for the tests that need a kernel of their own: real md, volumes that fail, power
//! cuts. It needs QEMU and Debian's packages.

use super::{Place, ProgramOutput, Words, skipped};

/// `lab run` with these arguments; `None`, with a note, where there is no machine to be had.
pub(crate) fn lab_run(place: &Place, arguments: &(impl Words + ?Sized)) -> Option<ProgramOutput> {
    let said = place.run(&[vec!["lab", "run"], arguments.words()].concat());
    let wanting = ["is not installed; install", "cannot be fetched"];
    if said.status == Some(2) && wanting.iter().any(|words| said.err.contains(words)) {
        skipped(&said.err);
        return None;
    }
    Some(said)
}

/// Runs a script in a machine with these options, of which `--volumes` are one.
pub(crate) fn in_lab(
    place: &Place,
    options: &(impl Words + ?Sized),
    script: &str,
) -> Option<ProgramOutput> {
    lab_run(
        place,
        &[options.words(), vec!["--", "sh", "-c", script]].concat(),
    )
}
