//! Errors with which a job goes on: `continue_on_error=` and `ignore_error=`.

use crate::pair::PerDirection;

/// Names of the errors from 1 on, by which fio knows them; others are given by their numbers.
const NAMES: [&str; 34] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV",
    "ENOTDIR", "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC",
    "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE",
];
const EIO: i32 = 5;
/// Error number for data that differs from what was written. fio counts it with failed checks, whatever request found
/// it.
const EILSEQ: i32 = 84;

/// Errors of one kind of request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Kind {
    /// True if the job goes on with the listed errors, or with fio's default ones where none are listed.
    goes_on: bool,
    listed: Vec<i32>,
}

impl Kind {
    fn has(&self, number: i32) -> bool {
        let is_known = match self.listed.is_empty() {
            true => [EIO, EILSEQ].contains(&number),
            false => self.listed.contains(&number),
        };
        self.goes_on && is_known
    }
}

/// Errors with which a job goes on; by default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonFatal {
    reads: Kind,
    writes: Kind,
    checks: Kind,
}

impl NonFatal {
    /// Numbers of the errors with which reads, and with which all other requests do not end the job.
    pub fn numbers(&self) -> PerDirection<Vec<i32>> {
        let of = |kind: &Kind| {
            let own = kind.listed.iter().copied().chain([EIO]);
            let mut numbers: Vec<i32> = own
                .filter(|number| *number != EILSEQ && kind.has(*number))
                .collect();
            numbers.extend(self.checks.has(EILSEQ).then_some(EILSEQ));
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        PerDirection {
            read: of(&self.reads),
            write: of(&self.writes),
        }
    }

    /// `continue_on_error=`.
    pub(crate) fn continue_on(&mut self, value: &str) -> Result<(), String> {
        let (reads, writes, checks) = match value {
            "none" | "0" => (false, false, false),
            "read" => (true, false, false),
            "write" => (false, true, false),
            "io" => (true, true, false),
            "verify" => (false, false, true),
            "all" | "1" => (true, true, true),
            _ => {
                return Err(format!(
                    "'{value}' is not done; none, read, write, io, verify and all are"
                ));
            }
        };
        self.reads.goes_on = reads;
        self.writes.goes_on = writes;
        self.checks.goes_on = checks;
        Ok(())
    }

    /// `ignore_error=`: lists for reads, writes and checks, with the errors of each separated by colons. As in fio
    /// the job goes on with the listed errors, and with these only.
    pub(crate) fn ignore(&mut self, value: &str) -> Result<(), String> {
        let mut lists = value.split(',');
        for kind in [&mut self.reads, &mut self.writes, &mut self.checks] {
            let list = lists.next().unwrap_or_default().trim();
            let listed = list.split(':').filter(|name| !name.is_empty()).map(number);
            let listed: Vec<i32> = listed.collect::<Result<_, _>>()?;
            if !listed.is_empty() {
                *kind = Kind {
                    goes_on: true,
                    listed,
                };
            }
        }
        match lists.next() {
            None => Ok(()),
            Some(_) => Err("it has a list for reads, one for writes and one for checks".to_owned()),
        }
    }
}

/// The number of an error, which is given by its name or its number.
fn number(name: &str) -> Result<i32, String> {
    if let Some(place) = NAMES.iter().position(|known| *known == name) {
        return Ok(place as i32 + 1);
    }
    let parsed = match name.strip_prefix("0x").or(name.strip_prefix("0X")) {
        Some(hex) => i32::from_str_radix(hex, 16),
        None => name.parse(),
    };
    match parsed {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!(
            "'{name}' is no error that is known by name; give its number, as in errno(3)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(lines: &[(&str, &str)]) -> (Vec<i32>, Vec<i32>) {
        let mut errors = NonFatal::default();
        for (option, value) in lines {
            match *option {
                "continue" => errors.continue_on(value).unwrap(),
                _ => errors.ignore(value).unwrap(),
            }
        }
        let PerDirection { read, write } = errors.numbers();
        (read, write)
    }

    #[test]
    fn kinds_of_requests_go_on_with_their_errors() {
        let none = || Vec::<i32>::new();
        assert_eq!(numbers(&[]), (none(), none()));
        assert_eq!(numbers(&[("continue", "read")]), (vec![5], none()));
        assert_eq!(numbers(&[("continue", "io")]), (vec![5], vec![5]));
        assert_eq!(numbers(&[("continue", "verify")]), (vec![84], vec![84]));
        assert_eq!(numbers(&[("continue", "1")]), (vec![5, 84], vec![5, 84]));
        assert_eq!(
            numbers(&[("continue", "all"), ("continue", "none")]),
            (none(), none())
        );
    }

    #[test]
    fn a_list_takes_the_place_of_fio_s_errors() {
        let of = |list: &str| numbers(&[("ignore", list)]);
        assert_eq!(of("EAGAIN,ENOSPC:122"), (vec![11], vec![28, 122]));
        assert_eq!(of(",EIO"), (vec![], vec![5]));
        assert_eq!(of("5,0x1c,84"), (vec![5, 84], vec![28, 84]));
        // fio's example of a full file system: a failing disk still ends the job.
        let both = numbers(&[("continue", "write"), ("ignore", ",ENOSPC")]);
        assert_eq!(both, (vec![], vec![28]));
        let mut errors = NonFatal::default();
        for wrong in ["EWARP", "0", "-5", "1,2,3,4", "5:x"] {
            assert!(errors.ignore(wrong).is_err(), "{wrong}");
        }
        assert!(errors.continue_on("some").is_err());
    }
}
