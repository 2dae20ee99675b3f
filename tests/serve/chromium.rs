//! A headless Chromium that a test drives: DevTools' protocol over two named pipes.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::{TIMEOUT, skipped};

pub(crate) struct Chromium {
    child: Child,
    to: File,
    from: Receiver<Value>,
    session: Option<String>,
    calls: u64,
    events: Vec<Value>,
    /// Profile and pipes.
    _folder: TempDir,
}

/// Time in which it closes.
const CLOSING: Duration = Duration::from_secs(20);

const ARGUMENTS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    // A proxy that does not exist, so that no request leaves this machine.
    "--proxy-server=http://127.0.0.1:9",
];

impl Chromium {
    /// Starts one with an empty page; `None`, with a note, where there is none.
    pub(crate) fn start() -> Option<Chromium> {
        let Some(program) = page::browser::chromium() else {
            skipped("no Chromium found (set DISKSMITH_CHROMIUM to one)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let pipes = ["in", "out"].map(|name| folder.path().join(name));
        let made = Command::new("mkfifo").args(&pipes).status().unwrap();
        assert!(made.success());
        // DevTools reads from descriptor 3 and writes to 4.
        let child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<\"$0/in\" 4>\"$0/out\""])
            .arg(folder.path())
            .arg(program)
            .args(ARGUMENTS)
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(&pipes[0]).unwrap();
        let mut messages = BufReader::new(File::open(&pipes[1]).unwrap()).split(0);
        let (sender, from) = channel();
        std::thread::spawn(move || {
            while let Some(Ok(message)) = messages.next() {
                if sender
                    .send(serde_json::from_slice(&message).unwrap())
                    .is_err()
                {
                    return;
                }
            }
        });
        let mut chromium = Chromium {
            child,
            to,
            from,
            session: None,
            calls: 0,
            events: Vec::new(),
            _folder: folder,
        };
        let target = chromium.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = chromium.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        chromium.session = attached["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            chromium.call(&format!("{domain}.enable"), json!({}));
        }
        Some(chromium)
    }

    /// Calls a method of DevTools.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let mut answer = self.from.recv_timeout(TIMEOUT).unwrap();
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// The value of a script, which may be a promise.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let params = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].take()
    }

    /// Opens an address, and waits until the page and its scripts are there.
    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Waits until a script says true.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, script: &str) {
        let began = Instant::now();
        // Between two pages a script may have nothing to run in.
        while self.evaluate(&format!(
            "(() => {{ try {{ return Boolean({script}) }} catch {{ return false }} }})()"
        )) != true
        {
            assert!(
                began.elapsed() < TIMEOUT,
                "never: {script}; {:?}",
                self.problems("")
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Width of the window, and light or dark.
    pub(crate) fn emulate(&mut self, width: u32, scheme: &str) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false }),
        );
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [feature] }),
        );
    }

    /// Presses a key where the focus is.
    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call(
                "Input.dispatchKeyEvent",
                json!({ "type": kind, "key": key }),
            );
        }
    }

    /// Lines of the console, exceptions, and requests for addresses that do not begin with `origin`, since the
    /// last call.
    pub(crate) fn problems(&mut self, origin: &str) -> Vec<String> {
        let described = |event: Value| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.consoleAPICalled" => Some(format!("console: {}", params["args"])),
                "Runtime.exceptionThrown" => {
                    Some(format!("exception: {}", params["exceptionDetails"]))
                }
                "Log.entryAdded" => Some(format!("log: {}", params["entry"])),
                "Network.requestWillBeSent" => {
                    let address = params["request"]["url"].as_str()?;
                    let is_own = address.starts_with(origin) || address.starts_with("data:");
                    (!is_own).then(|| format!("request: {address}"))
                }
                _ => None,
            }
        };
        std::mem::take(&mut self.events)
            .into_iter()
            .filter_map(described)
            .collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It ends itself with all of its processes; what is killed leaves some that still write to the profile.
        let close = b"{\"id\":0,\"method\":\"Browser.close\"}\0";
        let began = Instant::now();
        if self.to.write_all(close).is_ok() {
            while began.elapsed() < CLOSING
                && self.child.try_wait().is_ok_and(|ended| ended.is_none())
            {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
