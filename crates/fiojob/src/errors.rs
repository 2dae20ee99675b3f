//! Non-fatal errors, after which a job continues: `continue_on_error=` and `ignore_error=`.

use crate::pair::PerDirection;

/// Names of errors that fio knows, in the order of their numbers from 1 on. Other errors are given by number.
const NAMES: [&str; 34] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV",
    "ENOTDIR", "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC",
    "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE",
];
const EIO: i32 = 5;
/// Number of the error for data that differs from what was written. As in fio it is an error of verify, also where a read
/// found it.
const EILSEQ: i32 = 84;

/// Policy for the errors of one kind of request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ErrorPolicy {
    /// True if the job continues after the listed errors; where none is listed, after EIO and EILSEQ as in fio.
    continues: bool,
    /// Numbers of the errors that `ignore_error=` lists.
    listed: Vec<i32>,
}

impl ErrorPolicy {
    /// True if the job continues after the error with this number.
    fn has(&self, number: i32) -> bool {
        let is_listed = match self.listed.is_empty() {
            true => [EIO, EILSEQ].contains(&number),
            false => self.listed.contains(&number),
        };
        self.continues && is_listed
    }
}

/// Errors after which a job continues; by default it continues after none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonFatal {
    /// Policy for reads.
    reads: ErrorPolicy,
    /// Policy for all other requests.
    writes: ErrorPolicy,
    /// Policy for data that differs from what was written.
    verify: ErrorPolicy,
}

impl NonFatal {
    /// Numbers of the non-fatal errors of reads, and of those of all other requests.
    pub fn numbers(&self) -> PerDirection<Vec<i32>> {
        let of = |policy: &ErrorPolicy| {
            let own = policy.listed.iter().copied().chain([EIO]);
            let mut numbers: Vec<i32> = own
                .filter(|number| *number != EILSEQ && policy.has(*number))
                .collect();
            numbers.extend(self.verify.has(EILSEQ).then_some(EILSEQ));
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        PerDirection {
            read: of(&self.reads),
            write: of(&self.writes),
        }
    }

    /// Sets the kinds of requests after whose errors the job continues, by the value of `continue_on_error=`.
    pub(crate) fn continue_on(&mut self, value: &str) -> Result<(), String> {
        let (reads, writes, verify) = match value {
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
        self.reads.continues = reads;
        self.writes.continues = writes;
        self.verify.continues = verify;
        Ok(())
    }

    /// Sets the listed errors, by the value of `ignore_error=`: a list for reads, one for writes and one for verify,
    /// separated by commas, of errors separated by colons. As in fio the job continues after the listed errors only.
    pub(crate) fn ignore(&mut self, value: &str) -> Result<(), String> {
        let mut lists = value.split(',');
        for policy in [&mut self.reads, &mut self.writes, &mut self.verify] {
            let list = lists.next().unwrap_or_default().trim();
            let listed = list.split(':').filter(|name| !name.is_empty()).map(number);
            let listed: Vec<i32> = listed.collect::<Result<_, _>>()?;
            if !listed.is_empty() {
                *policy = ErrorPolicy {
                    continues: true,
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

/// Number of an error, given by name, in decimal, or in hexadecimal with `0x`.
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
    fn the_job_continues_after_errors_of_the_named_kinds_of_requests() {
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
