//! A second process that puts the knobs back if the first is killed.
//!
//! It holds the reading end of a pipe, and reads until its end. As long as the first process lives,
//! it has the writing end; when it is killed, the kernel closes that. Before it ends by itself it says so,
//! and there is nothing to do. Signals of the terminal do not reach the guard, which is in a process
//! group of its own.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::Root;
use linux::block::{DevNum, Devices};
use linux::md::sync::Sync;
use serde::{Deserialize, Serialize};

use super::lock;
use super::old::Old;

/// What the first process says when it has put all back itself.
const DONE: u8 = b'.';
/// So long a later start waits for a guard at work.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);

/// What the guard is told.
#[derive(Debug, Serialize, Deserialize)]
struct Charge {
    /// The array's number, as `9:127`.
    number: String,
    /// Its id.
    uuid: String,
    old: Old,
}

/// A guard that watches this process.
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    /// Starts one for an array.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(number: DevNum, uuid: &str, old: &Old) -> io::Result<Guard> {
        let charge = serde_json::to_string(&Charge {
            number: number.to_string(),
            uuid: uuid.to_owned(),
            old: old.clone(),
        })?;
        // By this name it is found also after the program's file was replaced.
        let mut child = Command::new("/proc/self/exe")
            .arg0("disksmith")
            .args(["scrub", "--guard"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let told = child.stdin.as_mut().map(|pipe| {
            pipe.write_all(charge.as_bytes())
                .and_then(|()| pipe.write_all(b"\n"))
                .and_then(|()| pipe.flush())
        });
        match told {
            Some(Ok(())) => Ok(Guard { child }),
            Some(Err(error)) => Err(error),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// All is back: it may go.
    pub(crate) fn dismiss(mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // One that is gone already needs not be told.
            let _ = pipe.write_all(&[DONE]);
        }
        let _ = self.child.wait();
    }
}

/// Waits until no guard is at work on an array: it would put the knobs back under a new scrub.
///
/// # Errors
/// When one is at work for too long.
pub(crate) fn wait_for_others(number: DevNum) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    while lock::bind(&name(number)).is_err() {
        if Instant::now() >= until {
            return Err(
                "the guard of a scrub that was killed is still putting its knobs back; try again in a \
                 moment"
                    .to_owned(),
            );
        }
        sleep(LOOK);
    }
    Ok(())
}

fn name(number: DevNum) -> String {
    format!("disksmith-scrub-guard-{number}")
}

/// What the guard does.
///
/// # Errors
/// When it was told nothing that it understands.
pub(crate) fn guard(root: &Root) -> anyhow::Result<()> {
    let mut told = Vec::new();
    let mut byte = [0];
    while io::stdin().read(&mut byte)? == 1 && byte != [b'\n'] {
        told.extend(byte);
    }
    let charge: Charge = serde_json::from_slice(&told)?;
    let number: DevNum = charge.number.parse()?;
    // Whoever starts next waits as long as this is held.
    let _lock = lock::bind(&name(number));
    let mut rest = Vec::new();
    io::stdin().read_to_end(&mut rest)?;
    if rest.contains(&DONE) {
        return Ok(());
    }
    let devices = Devices::read(root)?;
    if let Some(array) = devices.get(number) {
        let sync = Sync::of(root, array);
        // Another array may have got the number.
        if sync.uuid().is_none_or(|uuid| uuid == charge.uuid) {
            charge.old.put_back(&sync, None);
        }
    }
    Ok(())
}
