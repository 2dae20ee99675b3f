//! Guard: a second process that restores the tunables if the first one is killed.
//!
//! The guard reads a pipe until its end. The first process holds the writing end; when it is killed, the kernel closes
//! it. Before the first process ends by itself, it writes that the tunables are restored; then the guard has nothing to
//! do, or only restores tunables that md does not accept before it has recovered.
//!
//! The first process may also be alive and blocked: stopped by Ctrl-Z, or waiting for a terminal that does not accept
//! output. While md only checks, this is harmless: the check waits at `sync_max`. When a member fails, of this array or
//! of one that shares a disk with it, the guard raises the limits, so that they do not delay the recovery.
//!
//! Signals of the terminal do not reach the guard, which has its own process group.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::Root;
use linux::block::{DeviceNumber, Devices};
use linux::md::sync::Sync;
use record::sample::SyncAction;
use serde::{Deserialize, Serialize};

use super::drive::{PendingWorkDetector, makes_whole};
use super::lock;
use super::saved_tunables::{RestoreResult, RestoredBy, SavedTunables, is_held};

/// Byte that the first process writes when all tunables are restored.
const RESTORED_BYTE: u8 = b'.';
/// Byte that the first process writes before it writes to a member.
const WRITE_BEGINS_BYTE: u8 = b'w';
/// Byte that the first process writes when a write to a member is durable.
const WRITE_ENDS_BYTE: u8 = b'd';
/// Maximum time for which writes to a part of an array wait for the first process.
const HELD_WRITE_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum time for which a later start waits for a guard that is restoring tunables.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between two polls.
const POLL: Duration = Duration::from_millis(50);
/// Interval between two polls for a recovery that the tunables delay.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Number of polls with a delayed recovery after which the guard acts. The first process acts within a tenth of a
/// second.
const MAX_HELD_POLLS: u32 = 3;

/// Instructions to a guard.
#[derive(Debug, Serialize, Deserialize)]
struct GuardOrders {
    /// The array's device number, such as `9:127`.
    number: String,
    /// UUID of the array.
    uuid: String,
    old: SavedTunables,
    /// True if the first process writes to a member while other writes to that part of the array wait.
    #[serde(default)]
    rewrites: bool,
}

/// A guard that watches this process.
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    /// Starts a guard for an array.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(
        number: DeviceNumber,
        uuid: &str,
        old: &SavedTunables,
    ) -> io::Result<Guard> {
        Guard::spawn(&GuardOrders {
            number: number.to_string(),
            uuid: uuid.to_owned(),
            old: old.clone(),
            rewrites: false,
        })
    }

    /// Starts a guard for a part of an array to which writes are suspended. It kills this process if the suspension
    /// lasts for three minutes, for example because this process was stopped: it would then write outdated data.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start_rewrite(
        number: DeviceNumber,
        uuid: &str,
        old: &SavedTunables,
    ) -> io::Result<Guard> {
        Guard::spawn(&GuardOrders {
            number: number.to_string(),
            uuid: uuid.to_owned(),
            old: old.clone(),
            rewrites: true,
        })
    }

    /// Tells the guard that a write to a member begins, or is durable.
    ///
    /// # Errors
    /// When the guard has ended.
    pub(crate) fn report_write(&mut self, begins: bool) -> io::Result<()> {
        let pipe = self.child.stdin.as_mut();
        let pipe = pipe.ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all(&[if begins {
            WRITE_BEGINS_BYTE
        } else {
            WRITE_ENDS_BYTE
        }])
    }

    fn spawn(charge: &GuardOrders) -> io::Result<Guard> {
        let charge = serde_json::to_string(charge)?;
        // This path works also after the program's file was replaced.
        let mut child = Command::new("/proc/self/exe")
            .arg0("disksmith")
            .args(["scrub", "--guard"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let sent = child.stdin.as_mut().map(|pipe| {
            pipe.write_all(charge.as_bytes())
                .and_then(|()| pipe.write_all(b"\n"))
                .and_then(|()| pipe.flush())
        });
        match sent {
            Some(Ok(())) => Ok(Guard { child }),
            Some(Err(error)) => Err(error),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Ends the guard. If some tunables can be restored only later, leaves it running until then.
    pub(crate) fn dismiss(mut self, back: &RestoreResult) {
        // A guard that has ended needs no message.
        let Some(mut pipe) = self.child.stdin.take() else {
            return;
        };
        if let Some(later) = &back.later {
            let _ = serde_json::to_writer(pipe, later);
            return;
        }
        let _ = pipe.write_all(&[RESTORED_BYTE]);
        drop(pipe);
        let _ = self.child.wait();
    }
}

/// Waits until no guard of an earlier scrub is active for an array: it would restore the tunables during a new scrub.
///
/// # Errors
/// When a guard is active for too long.
pub(crate) fn wait_for_others(number: DeviceNumber) -> Result<(), String> {
    let until = Instant::now() + TIMEOUT;
    while let Err(error) = lock::hold(Path::new(lock::LOCK_FOLDER), &name(number)) {
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(format!(
                "it is not known whether the guard of a killed scrub is still active, since its lock cannot be taken: {error}"
            ));
        }
        if Instant::now() >= until {
            return Err(
                "the guard of a killed scrub is still restoring its tunables; try again in a \
                 moment"
                    .to_owned(),
            );
        }
        sleep(POLL);
    }
    Ok(())
}

fn name(number: DeviceNumber) -> String {
    format!("scrub-guard-{number}")
}

/// Path of the file that marks the tunables of an array as restored, whatever the ledger records.
fn mark(uuid: &str) -> PathBuf {
    Path::new(lock::LOCK_FOLDER).join(format!("scrub-back-{uuid}"))
}

/// Marks the tunables of an array as restored. If the file cannot be written, a later start compares the tunables
/// themselves.
pub(crate) fn note_restored(uuid: &str) {
    let _ = fs::write(mark(uuid), "");
}

/// Notes that the tunables of an array are about to be changed.
pub(crate) fn note_turned(uuid: &str) {
    let _ = fs::remove_file(mark(uuid));
}

/// True if the tunables of an array are marked as restored since their last change.
pub(crate) fn are_back(uuid: &str) -> bool {
    mark(uuid).exists()
}

/// Runs the guard process: restores the tunables when the scrub has ended without restoring them.
///
/// # Errors
/// When its instructions are invalid.
pub(crate) fn guard(root: &Root) -> anyhow::Result<()> {
    let mut sent = Vec::new();
    let mut byte = [0];
    while io::stdin().read(&mut byte)? == 1 && byte != [b'\n'] {
        sent.extend(byte);
    }
    let charge: GuardOrders = serde_json::from_slice(&sent)?;
    let number: DeviceNumber = charge.number.parse()?;
    // The next start waits for this lock.
    let lock = lock::hold(Path::new(lock::LOCK_FOLDER), &name(number));
    let devices = Devices::read(root)?;
    let Some(array) = devices.get(number) else {
        return Ok(());
    };
    let sync = Sync::of(root, array);
    let message = match charge.rewrites {
        true => watch_writes()?,
        false => watch(&sync, &charge.old)?,
    };
    // Another array may have the same number by now.
    let is_same = || sync.uuid().is_none_or(|uuid| uuid == charge.uuid);
    let back = match message.as_slice() {
        [RESTORED_BYTE] => return Ok(()),
        _ if !is_same() => return Ok(()),
        later => match serde_json::from_slice(later) {
            Ok(later) => RestoreResult {
                later: Some(later),
                ..RestoreResult::default()
            },
            Err(_) => charge.old.put_back(&sync, RestoredBy::Another),
        },
    };
    drop(lock);
    let back = restore_when_possible(&sync, back, is_same);
    if back.is_all() {
        note_restored(&charge.uuid);
    }
    Ok(())
}

/// Waits until the first process has ended, and returns what it wrote. Meanwhile, raises limits that delay a recovery.
fn watch(sync: &Sync, old: &SavedTunables) -> io::Result<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::Builder::new().spawn(move || {
        let mut message = Vec::new();
        // Bytes that were read before an error count.
        let _ = io::stdin().read_to_end(&mut message);
        let _ = sender.send(message);
    })?;
    Ok(watch_until(sync, old, &receiver, POLL_INTERVAL))
}

/// Waits until the first process has ended, or can no longer write to a member. Returns its last byte, if that was
/// [`RESTORED_BYTE`].
fn watch_writes() -> io::Result<Vec<u8>> {
    let first = rustix::process::getppid();
    let (sender, receiver) = channel();
    std::thread::Builder::new().spawn(move || {
        let mut byte = [0];
        while matches!(io::stdin().read(&mut byte), Ok(1)) && sender.send(byte[0]).is_ok() {}
    })?;
    let kill = || {
        // If the first process has already ended, another process may have its id.
        if let Some(first) = first.filter(|first| rustix::process::getppid() == Some(*first)) {
            let _ = rustix::process::kill_process(first, rustix::process::Signal::KILL);
        }
    };
    Ok(watch_writes_until(
        &receiver,
        HELD_WRITE_TIMEOUT,
        POLL_INTERVAL,
        kill,
    ))
}

fn watch_writes_until(
    receiver: &Receiver<u8>,
    held: Duration,
    turn: Duration,
    kill: impl Fn(),
) -> Vec<u8> {
    let began = Instant::now();
    let (mut last, mut killed) = (WRITE_ENDS_BYTE, false);
    loop {
        match receiver.recv_timeout(turn) {
            Ok(byte) => last = byte,
            Err(RecvTimeoutError::Disconnected) if last == RESTORED_BYTE => {
                return vec![RESTORED_BYTE];
            }
            Err(RecvTimeoutError::Disconnected) => return Vec::new(),
            // A killed process begins no other write; a write in flight is waited for.
            Err(RecvTimeoutError::Timeout) if killed && last != WRITE_BEGINS_BYTE => {
                return Vec::new();
            }
            Err(RecvTimeoutError::Timeout) if !killed && began.elapsed() >= held => {
                kill();
                killed = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn watch_until(
    sync: &Sync,
    old: &SavedTunables,
    receiver: &Receiver<Vec<u8>>,
    turn: Duration,
) -> Vec<u8> {
    // The check begins after its guard has started, and md has begun other possible work by then.
    let waiting = PendingWorkDetector::before(sync);
    let mut stood = 0;
    loop {
        match receiver.recv_timeout(turn) {
            Ok(message) => return message,
            Err(RecvTimeoutError::Disconnected) => return Vec::new(),
            Err(RecvTimeoutError::Timeout) => {}
        }
        stood = if hinders_recovery(sync, &waiting) {
            stood + 1
        } else {
            0
        };
        if stood >= MAX_HELD_POLLS {
            old.put_back(sync, RestoredBy::Another);
            stood = 0;
        }
    }
}

/// True if `sync_max` or a speed limit keeps md from recovering the array, or another array on the same disks. While a
/// check waits at `sync_max`, md does not begin to recover; and under the limit that stops a check, a recovery would
/// take years.
fn hinders_recovery(sync: &Sync, waiting: &PendingWorkDetector) -> bool {
    let Ok(state) = sync.state() else {
        return false;
    };
    let checks = matches!(state.action, SyncAction::Check | SyncAction::Repair);
    is_held(sync)
        && (state.degraded > 0 || makes_whole(state.action) || checks && waiting.now().is_some())
}

/// Waits until the remaining tunables can be restored, and restores them, as long as it is the same array.
fn restore_when_possible(
    sync: &Sync,
    mut back: RestoreResult,
    is_same: impl Fn() -> bool,
) -> RestoreResult {
    while let Some(later) = back.later.clone() {
        sleep(POLL_INTERVAL);
        if !sync.is_there() || !is_same() {
            return back;
        }
        let idle = sync
            .state()
            .is_ok_and(|state| state.action == SyncAction::Idle);
        if idle {
            back = later.put_back(sync, RestoredBy::Another);
        }
    }
    back
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;

    use super::super::drive::PendingWork;
    use super::super::saved_tunables::tests::{TURNED, Tunables};
    use super::*;

    /// Tunables after the guard has watched an array with these changes for some polls.
    fn watched(changes: &[(&str, &str)], beside: &[(&str, &str)]) -> Tunables {
        watched_while(changes, beside, |_| sleep(Duration::from_millis(500)))
    }

    /// Watches beside these changes, and another array on the disk of one of its members, until the guard has made
    /// tunables begin so.
    fn watched_until(changes: &[(&str, &str)], beside: &[(&str, &str)], made: &[(&str, &str)]) {
        watched_while(changes, beside, |tunables| {
            let began = Instant::now();
            let is_made = |(file, text): &(&str, &str)| tunables.shown(file).starts_with(text);
            while !made.iter().all(is_made) {
                assert!(began.elapsed() < Duration::from_secs(600), "{made:?}");
                sleep(Duration::from_millis(5));
            }
        });
    }

    fn watched_while(
        changes: &[(&str, &str)],
        beside: &[(&str, &str)],
        wait: impl Fn(&Tunables),
    ) -> Tunables {
        let old = SavedTunables::read(&Tunables::new(&[]).sync, false).unwrap();
        let tunables = Tunables::new(&TURNED);
        tunables.write(&[("degraded", "0")]);
        tunables.write(changes);
        tunables.beside(beside);
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            let sync = &tunables.sync;
            let watch =
                scope.spawn(move || watch_until(sync, &old, &receiver, Duration::from_millis(20)));
            wait(&tunables);
            sender.send(vec![RESTORED_BYTE]).unwrap();
            assert_eq!(watch.join().unwrap(), [RESTORED_BYTE]);
        });
        tunables
    }

    #[test]
    fn a_recovery_is_let_go_and_a_check_that_stands_is_left() {
        let tunables = watched(&[], &[]);
        for (file, text) in TURNED {
            tunables.is_untouched(file, text);
        }
        let back = [("sync_max", "max"), ("sync_speed_max", "system")];
        watched_until(&[("sync_action", "recover")], &[], &back);
    }

    #[test]
    fn a_recovery_of_an_array_on_the_same_disk_is_let_go() {
        let tunables = watched(&[], &[("sync_action", "idle")]);
        tunables.is_untouched("sync_max", "128");
        let back = [("sync_action", "idle"), ("sync_max", "max")];
        watched_until(&[], &[("sync_action", "recover")], &back);
    }

    #[test]
    fn a_member_that_is_to_be_replaced_is() {
        let tunables = Tunables::new(&TURNED);
        tunables.write(&[("degraded", "0")]);
        let member = |name: &str, slot: &str, state: &str| {
            tunables.member(name, &[("slot", slot), ("state", state)]);
        };
        member("vda", "0", "in_sync");
        member("vdb", "none", "spare");
        let before = PendingWorkDetector::before(&tunables.sync);
        assert!(!hinders_recovery(&tunables.sync, &before));
        member("vda", "0", "in_sync,want_replacement");
        assert!(hinders_recovery(&tunables.sync, &before));
        assert_eq!(before.now(), Some(PendingWork::Replacement));
        // md was idle, and has not begun to replace the member.
        let left = PendingWorkDetector::before(&tunables.sync);
        assert!(!hinders_recovery(&tunables.sync, &left));
    }

    /// Time at which a simulated first process ends.
    #[derive(Clone, Copy, PartialEq)]
    enum FirstEnds {
        AtOnce,
        AfterKill,
        Never,
    }

    /// Two results for a first process that wrote these bytes: true if it counts as killed, and true if it
    /// was given up before its end was seen.
    fn held_with(bytes: &[u8], ends: FirstEnds) -> (bool, bool) {
        let (sender, receiver) = channel();
        bytes.iter().for_each(|byte| sender.send(*byte).unwrap());
        let [killed, ended] = [false, ends == FirstEnds::AtOnce].map(AtomicBool::new);
        let sender = std::sync::Mutex::new((ends != FirstEnds::AtOnce).then_some(sender));
        let (held, turn) = (Duration::from_millis(200), Duration::from_millis(20));
        std::thread::scope(|scope| {
            if ends == FirstEnds::AfterKill {
                // Long after that, at last.
                scope.spawn(|| {
                    while !killed.load(SeqCst) {
                        sleep(Duration::from_millis(5));
                    }
                    sleep(Duration::from_millis(500));
                    ended.store(true, SeqCst);
                    drop(sender.lock().unwrap().take());
                });
            }
            watch_writes_until(&receiver, held, turn, || killed.store(true, SeqCst));
            (killed.load(SeqCst), !ended.load(SeqCst))
        })
    }

    #[test]
    fn a_process_that_holds_writes_up_for_too_long_is_ended_and_a_write_under_way_is_waited_for() {
        use FirstEnds::{AfterKill, AtOnce, Never};
        assert_eq!(
            held_with(&[WRITE_BEGINS_BYTE, WRITE_ENDS_BYTE, RESTORED_BYTE], AtOnce),
            (false, false)
        );
        assert_eq!(
            held_with(&[WRITE_BEGINS_BYTE], AtOnce),
            (false, false),
            "it was killed"
        );
        assert_eq!(
            held_with(&[WRITE_BEGINS_BYTE, WRITE_ENDS_BYTE], Never),
            (true, true)
        );
        assert_eq!(held_with(&[WRITE_BEGINS_BYTE], AfterKill), (true, false));
    }

    #[test]
    fn a_recovery_is_not_left_at_the_speed_that_stops_a_check() {
        let stopped = [
            ("sync_action", "recover"),
            ("sync_max", "max"),
            ("sync_speed_max", "1 (local)"),
        ];
        watched_until(&stopped, &[], &[("sync_speed_max", "system")]);
    }
}
