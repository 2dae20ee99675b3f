//! Changes to the machine as steps that can be undone: an error or a signal undoes them in reverse order.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use ui::exit::sentence;

/// A step of the work on a host `H`.
pub trait BuildStep<H> {
    /// Name, as in "… failed": `making the array`.
    fn name(&self) -> String;

    /// Runs the step.
    ///
    /// # Errors
    /// Any failure of the step. It may then be incomplete; [`BuildStep::undo`] is called in any case.
    fn run(&mut self, host: &mut H) -> anyhow::Result<()>;

    /// Undoes the step, whether it was done in full, in part or not at all.
    fn undo(&mut self, host: &mut H) -> Vec<UndoResult>;
}

/// Result of undoing a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoResult {
    /// The change was undone, as a clause: `/dev/md0 was stopped`.
    Reverted(String),
    /// The change could not be undone, as a clause with advice.
    Leftover(String),
}

/// Work that failed, and what was undone.
#[derive(Debug)]
pub struct FailedBuild {
    /// The step that failed.
    step: String,
    /// Error with which that step failed.
    error: anyhow::Error,
    /// Results of undoing, in order.
    undone: Vec<UndoResult>,
}

impl fmt::Display for FailedBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = UndoResult::report(&self.undone);
        write!(
            f,
            "{} failed: {}\n{report}",
            self.step,
            sentence(&self.error)
        )
    }
}

impl std::error::Error for FailedBuild {}

impl UndoResult {
    /// Results of undoing all steps, in two lines.
    pub(crate) fn report(undone: &[UndoResult]) -> String {
        let reverted: Vec<&str> = undone.iter().filter_map(UndoResult::reverted).collect();
        let left: Vec<&str> = undone.iter().filter_map(UndoResult::left).collect();
        let undone = match &reverted[..] {
            [] => String::new(),
            reverted => format!("Undone: {}.\n", reverted.join("; ")),
        };
        match &left[..] {
            [] => format!("{undone}Nothing is left of it."),
            left => format!("{undone}Left: {}.", left.join("; ")),
        }
    }

    /// Description of an undone change; `None` for a leftover.
    pub fn reverted(&self) -> Option<&str> {
        match self {
            UndoResult::Reverted(what) => Some(what),
            UndoResult::Leftover(_) => None,
        }
    }

    /// Description of a change that could not be undone; `None` for others.
    pub fn left(&self) -> Option<&str> {
        match self {
            UndoResult::Leftover(what) => Some(what),
            UndoResult::Reverted(_) => None,
        }
    }
}

/// Runs the steps in order. When one fails, or `interrupt` turns true, it and those before it are undone, the last
/// first; `undoing` is called before.
///
/// # Errors
/// The failure, with what was undone and what is left.
pub fn run<H>(
    steps: &mut [Box<dyn BuildStep<H> + '_>],
    host: &mut H,
    interrupt: &AtomicBool,
    undoing: impl FnOnce(&mut H),
) -> Result<(), FailedBuild> {
    let interrupted = || anyhow::anyhow!("it was stopped by a signal");
    for at in 0..steps.len() {
        let Some(step) = steps.get_mut(at) else {
            break;
        };
        let outcome = if interrupt.load(Ordering::Relaxed) {
            Err(interrupted())
        } else {
            step.run(host).and_then(|()| {
                // Also after the last step: the user requested the end, not the array.
                if interrupt.load(Ordering::Relaxed) {
                    Err(interrupted())
                } else {
                    Ok(())
                }
            })
        };
        if let Err(error) = outcome {
            let step = step.name();
            undoing(host);
            let done = steps.iter_mut().take(at + 1).rev();
            let undone = done.flat_map(|step| step.undo(host)).collect();
            return Err(FailedBuild {
                step,
                error,
                undone,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    type Log = Vec<String>;

    struct Noted {
        name: &'static str,
        fails: bool,
        sticks: bool,
    }

    impl BuildStep<Log> for Noted {
        fn name(&self) -> String {
            format!("doing {}", self.name)
        }

        fn run(&mut self, log: &mut Log) -> anyhow::Result<()> {
            log.push(format!("do {}", self.name));
            anyhow::ensure!(!self.fails, "no luck");
            Ok(())
        }

        fn undo(&mut self, log: &mut Log) -> Vec<UndoResult> {
            log.push(format!("undo {}", self.name));
            vec![if self.sticks {
                UndoResult::Leftover(format!("{} is still there", self.name))
            } else {
                UndoResult::Reverted(format!("{} is gone", self.name))
            }]
        }
    }

    fn undoing(log: &mut Log) {
        log.push("undoing".to_owned());
    }

    fn noted(names: &[(&'static str, bool, bool)]) -> Vec<Box<dyn BuildStep<Log>>> {
        let step = |&(name, fails, sticks): &(&'static str, bool, bool)| {
            Box::new(Noted {
                name,
                fails,
                sticks,
            }) as Box<dyn BuildStep<Log>>
        };
        names.iter().map(step).collect()
    }

    #[test]
    fn a_failure_undoes_in_reverse_order_and_says_what_is_left() {
        let mut log = Log::new();
        let mut steps = noted(&[
            ("a", false, true),
            ("b", false, false),
            ("c", true, false),
            ("d", false, false),
        ]);
        let failed = run(&mut steps, &mut log, &AtomicBool::new(false), undoing).unwrap_err();
        assert_eq!(
            log,
            [
                "do a", "do b", "do c", "undoing", "undo c", "undo b", "undo a"
            ],
            "the step that failed is undone too, and those after it are not begun"
        );
        assert_eq!(
            failed.to_string(),
            "doing c failed: no luck\nUndone: c is gone; b is gone.\nLeft: a is still there."
        );
    }

    #[test]
    fn all_well_undoes_nothing() {
        let mut log = Log::new();
        let mut steps = noted(&[("a", false, false), ("b", false, false)]);
        run(&mut steps, &mut log, &AtomicBool::new(false), undoing).unwrap();
        assert_eq!(log, ["do a", "do b"]);
    }

    #[test]
    fn a_signal_undoes_what_was_done() {
        /// A step during which the signal comes.
        struct Rings(Arc<AtomicBool>);
        impl BuildStep<Log> for Rings {
            fn name(&self) -> String {
                "waiting".to_owned()
            }
            fn run(&mut self, _: &mut Log) -> anyhow::Result<()> {
                self.0.store(true, Ordering::Relaxed);
                Ok(())
            }
            fn undo(&mut self, _: &mut Log) -> Vec<UndoResult> {
                vec![UndoResult::Reverted("the wait is over".to_owned())]
            }
        }
        let (mut log, bell) = (Log::new(), Arc::new(AtomicBool::new(false)));
        let mut steps = noted(&[("a", false, false)]);
        steps.push(Box::new(Rings(Arc::clone(&bell))));
        steps.extend(noted(&[("b", false, false)]));
        let failed = run(&mut steps, &mut log, &bell, undoing).unwrap_err();
        assert_eq!(log, ["do a", "undoing", "undo a"]);
        assert_eq!(
            failed.to_string(),
            "waiting failed: it was stopped by a signal\nUndone: the wait is over; a is gone.\n\
             Nothing is left of it."
        );
    }
}
