use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::{fs, thread};

use super::*;

/// Longer than [`LIMIT`], so that a busy machine does not fail a test that is not about time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Starts an HTTP server on the loopback. It gives the head of each request, in lower case, to `answer`, which returns
/// the whole response, or `None` to leave the request unanswered. Returns the server's URL, and a channel of the
/// requests.
fn server(answer: impl Fn(&str) -> Option<String> + Send + 'static) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    thread::spawn(move || {
        let mut hanging = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                request.push(byte[0]);
            }
            let request = String::from_utf8_lossy(&request).to_lowercase();
            let response = answer(&request);
            // Sent before the response: a client that has the response finds the request in the channel.
            if sender.send(request).is_err() {
                break;
            }
            match response {
                Some(response) => drop(stream.write_all(response.as_bytes())),
                None => hanging.push(stream),
            }
        }
    });
    (base, requests)
}

fn ok(body: &str) -> Option<String> {
    let len = body.len();
    Some(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{body}"
    ))
}

fn status(line: &str) -> Option<String> {
    Some(format!(
        "HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ))
}

fn cloud(provider: &str, kind: &str, zone: &str, id: &str) -> Option<Cloud> {
    Some(Cloud {
        provider: provider.into(),
        instance_type: Some(kind.into()),
        zone: Some(zone.into()),
        instance_id: Some(id.into()),
    })
}

/// The fields that are read, among others, as in the EC2 User Guide.
const IDENTITY: &str = r#"{
    "accountId": "123456789012", "architecture": "x86_64",
    "availabilityZone": "us-west-2b", "imageId": "ami-5fb8c835",
    "instanceId": "i-1234567890abcdef0", "instanceType": "i4i.large",
    "kernelId": null, "region": "us-west-2", "version": "2017-09-30" }"#;

fn aws_cloud() -> Option<Cloud> {
    cloud("aws", "i4i.large", "us-west-2b", "i-1234567890abcdef0")
}

#[test]
fn metadata_of_aws_is_requested_with_a_token() {
    let (base, requests) = server(|request| {
        if request.starts_with("put /latest/api/token ") {
            ok("AQAEAEcret==")
        } else if request.contains("x-aws-ec2-metadata-token: aqaeaecret==") {
            ok(IDENTITY)
        } else {
            status("401 Unauthorized")
        }
    });
    assert_eq!(ask(Provider::Aws, &base, TIMEOUT), aws_cloud());
    let first = requests.recv().unwrap();
    assert!(first.contains("x-aws-ec2-metadata-token-ttl-seconds: 60"));
}

#[test]
fn metadata_of_aws_without_tokens_is_requested_the_old_way() {
    let (base, _requests) = server(|request| {
        if request.starts_with("put ") {
            status("405 Method Not Allowed")
        } else {
            ok(IDENTITY)
        }
    });
    assert_eq!(ask(Provider::Aws, &base, TIMEOUT), aws_cloud());
}

#[test]
fn google_is_queried_for_type_zone_and_id_and_nothing_more() {
    let (base, requests) = server(|request| {
        if !request.contains("metadata-flavor: google") {
            return status("403 Forbidden");
        }
        match request.split(' ').nth(1).unwrap() {
            "/computemetadata/v1/instance/machine-type" => {
                ok("projects/88/machineTypes/n2-standard-4\n")
            }
            "/computemetadata/v1/instance/zone" => ok("projects/88/zones/europe-west1-b"),
            "/computemetadata/v1/instance/id" => ok("5241872349812347"),
            _ => status("404 Not Found"),
        }
    });
    assert_eq!(
        ask(Provider::Gcp, &base, TIMEOUT),
        cloud("gcp", "n2-standard-4", "europe-west1-b", "5241872349812347")
    );
    assert_eq!(requests.try_iter().count(), 3);
}

#[test]
fn metadata_of_azure_is_requested_once() {
    for (zone, expected) in [("2", "eastus-2"), ("", "eastus")] {
        let (base, _requests) = server(move |request| {
            if request.contains("metadata: true") && request.contains("api-version=") {
                ok(&format!(
                    r#"{{"location":"eastus","vmId":"02aab8a4-74ef","vmSize":"Standard_L8s_v3","zone":"{zone}"}}"#
                ))
            } else {
                status("400 Bad Request")
            }
        });
        assert_eq!(
            ask(Provider::Azure, &base, TIMEOUT),
            cloud("azure", "Standard_L8s_v3", expected, "02aab8a4-74ef")
        );
    }
}

const ALL: [Provider; 3] = [Provider::Aws, Provider::Gcp, Provider::Azure];

#[test]
fn garbage_and_refusals_are_no_answer() {
    let answers: [fn(&str) -> Option<String>; 7] = [
        |_| status("404 Not Found"),
        |_| status("500 Internal Server Error"),
        |_| {
            Some(
                "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: \
                  0\r\nConnection: close\r\n\r\n"
                    .into(),
            )
        },
        |_| Some("SSH-2.0-OpenSSH_9.2\r\n\r\n".into()),
        |_| Some(String::new()),
        |_| {
            Some(
                "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\nConnection: close\r\n\r\nx".into(),
            )
        },
        |_| ok("<html>Please log in</html>"),
    ];
    for (index, answer) in answers.into_iter().enumerate() {
        let (base, _requests) = server(answer);
        for provider in ALL {
            assert_eq!(ask(provider, &base, TIMEOUT), None, "answer {index}");
        }
    }
}

/// The time limit holds for a server that never answers, and for one that sends a byte every 20 ms.
#[test]
fn a_slow_server_is_given_up_in_time() {
    let (hangs, _requests) = server(|_| None);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let trickles = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let header = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n";
                let _ = stream.write_all(header);
                while stream.write_all(b" ").is_ok() {
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
    });
    for base in [hangs, trickles] {
        for provider in ALL {
            let start = Instant::now();
            assert_eq!(ask(provider, &base, LIMIT), None);
            // Slack for a busy machine; without a limit this would take twenty minutes or forever.
            assert!(start.elapsed() < LIMIT + Duration::from_secs(600), "{base}");
        }
    }
}

#[test]
fn no_one_listening_is_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for provider in ALL {
        assert_eq!(ask(provider, &base, TIMEOUT), None);
    }
}

/// A captured tree with these attributes under `sys`.
fn machine(attributes: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in attributes {
        let path = folder.path().join("sys").join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }
    let root = Root::under(folder.path());
    (folder, root)
}

const NITRO: &[(&str, &str)] = &[
    ("class/dmi/id/sys_vendor", "Amazon EC2"),
    ("class/dmi/id/product_name", "i4i.large"),
    ("class/dmi/id/board_asset_tag", "i-1234567890abcdef0"),
];

#[test]
fn the_firmware_names_the_cloud() {
    let azure_tag = "7783-7084-3265-9085-8269-3286-77";
    for (attributes, expected) in [
        (NITRO, Some(Provider::Aws)),
        (&[("hypervisor/uuid", "ec2b1a2c-1234")], Some(Provider::Aws)),
        (&[("hypervisor/uuid", "EC2B1A2C-1234")], Some(Provider::Aws)),
        (
            &[("class/dmi/id/bios_version", "4.11.amazon")],
            Some(Provider::Aws),
        ),
        (
            &[("class/dmi/id/product_name", "Google Compute Engine")],
            Some(Provider::Gcp),
        ),
        (
            &[("class/dmi/id/chassis_asset_tag", azure_tag)],
            Some(Provider::Azure),
        ),
        // Hyper-V outside Azure, a server in a rack, a container without firmware tables.
        (
            &[("class/dmi/id/sys_vendor", "Microsoft Corporation")],
            None,
        ),
        (&[("class/dmi/id/sys_vendor", "Dell Inc.")], None),
        (&[], None),
    ] {
        let (_folder, root) = machine(attributes);
        assert_eq!(provider(&root), expected, "{attributes:?}");
    }
}

#[test]
fn without_a_named_cloud_no_metadata_is_requested() {
    let (base, requests) = server(|_| ok(IDENTITY));
    let (_folder, root) = machine(&[("class/dmi/id/sys_vendor", "QEMU")]);
    assert_eq!(detect_at(&root, &base, TIMEOUT), None);
    assert_eq!(requests.try_iter().count(), 0);
}

#[test]
fn where_the_service_answers_404_the_firmware_s_facts_are_taken() {
    let (base, _requests) = server(|_| status("404 Not Found"));
    let (_folder, root) = machine(NITRO);
    let found = detect_at(&root, &base, TIMEOUT).unwrap();
    assert_eq!(found.provider, "aws");
    assert_eq!(found.instance_type.as_deref(), Some("i4i.large"));
    assert_eq!(found.instance_id.as_deref(), Some("i-1234567890abcdef0"));
    assert_eq!(found.zone, None);

    // On Xen the product is "HVM domU", which is no type.
    let (_folder, root) = machine(&[
        ("hypervisor/uuid", "ec2b1a2c"),
        ("class/dmi/id/product_name", "HVM domU"),
    ]);
    let found = detect_at(&root, &base, TIMEOUT).unwrap();
    assert_eq!((found.instance_type, found.instance_id), (None, None));
}

#[test]
fn the_service_is_believed_before_the_firmware() {
    let (base, _requests) = server(|request| {
        if request.starts_with("put ") {
            ok("token")
        } else {
            ok(IDENTITY)
        }
    });
    let (_folder, root) = machine(NITRO);
    assert_eq!(detect_at(&root, &base, TIMEOUT), aws_cloud());
}
