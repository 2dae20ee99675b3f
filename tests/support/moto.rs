//! An AWS of this machine: moto's, asked by the real `aws`. Both are of PyPI: `make pypi`.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{TIMEOUT, has_program, skipped};

pub(crate) struct Moto {
    endpoint: String,
    server: Child,
}

impl Moto {
    /// `None`, with a note, where one of them is not installed.
    pub(crate) fn start() -> Option<Moto> {
        for program in ["moto_server", "aws"] {
            if !has_program(program) {
                skipped(&format!(
                    "{program} is not installed (moto and awscli of PyPI)"
                ));
                return None;
            }
        }
        let began = Instant::now();
        // Another program may take the port before moto does; then moto ends, and another port is tried.
        loop {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port().to_string();
            drop(free);
            let mut command = Command::new("moto_server");
            command.args(["-H", "127.0.0.1", "-p", &port]);
            command.stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut moto = Moto {
                endpoint: format!("http://127.0.0.1:{port}"),
                server: command.spawn().unwrap(),
            };
            while moto.server.try_wait().unwrap().is_none() {
                if moto.aws(&["ec2", "describe-vpcs"]).is_some() {
                    return Some(moto);
                }
                assert!(began.elapsed() < TIMEOUT, "moto does not answer");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }

    /// Environment by which a program reaches it.
    pub(crate) fn ask<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
    }

    /// Answer of a command; `None` where it fails.
    pub(crate) fn aws(&self, words: &[&str]) -> Option<Value> {
        let mut command = Command::new("aws");
        command.args(words).args(["--output", "json"]);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let output = self.ask(&mut command).output().unwrap();
        let is_well = output.status.success();
        is_well.then(|| serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
