//! How many processes run or wait for a disk (proc_loadavg(5)).

use crate::root::{Root, attribute};

/// The load over the last 1, 5 and 15 minutes: processes that run, could run, or wait for a disk.
/// `None` where the kernel does not say.
pub fn read(root: &Root) -> Option<[f64; 3]> {
    let text = attribute(&root.proc.join("loadavg"))?;
    let mut words = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let mut next = || words.next().flatten().filter(|load| load.is_finite());
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_loads_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let root = Root::under(folder.path());
        assert_eq!(read(&root), None);
        std::fs::write(root.proc.join("loadavg"), "0.50 1.25 2.00 1/345 6789\n").unwrap();
        assert_eq!(read(&root), Some([0.5, 1.25, 2.0]));
        std::fs::write(root.proc.join("loadavg"), "0.50 x 2.00\n").unwrap();
        assert_eq!(read(&root), None);
    }
}
