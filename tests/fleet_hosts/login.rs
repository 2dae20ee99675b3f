//! A user who is not root.

use serde_json::Value;

use crate::net::{Disk, HostFault, HostSetup, Net};
use crate::support::output_of;
use crate::{host, why};

/// Becomes root for who is not, as `sudo -n` does where it needs no password: a shell that keeps the rights
/// of its file.
const SUDO: &str = r#"
mkdir /run/host/bin
cp "$(command -v dash)" /run/host/root-shell
chmod 4755 /run/host/root-shell
cat > /run/host/bin/sudo << 'END'
#!/bin/sh
[ "$1" = -n ] || exit 9
shift
exec /run/host/root-shell -p -c 'exec "$@"' sh "$@"
END
chmod 755 /run/host/bin/sudo
"#;

/// The same where it needs one.
const STERN: &str =
    "printf '#!/bin/sh\necho sudo: a password is required >&2; exit 1\n' > /run/host/bin/sudo";

#[test]
fn root_lets_a_user_in_who_asks_for_root_where_the_verb_needs_it() {
    let bare = HostSetup {
        disk: Disk::Bare(24),
        iops: None,
        more: &[],
        wrong: HostFault::Nothing,
    };
    let Some(net) = Net::new(&[bare]) else {
        return;
    };
    let run = |options: &[&str], words: &[&str]| -> Value {
        let options = [&["--user", "op", "--json"][..], options].concat();
        output_of(&mut net.fleet("run", &options, words)).json()
    };
    let devices = ["--", "devices"];
    let answer = run(&[], &devices);
    assert_eq!(host(&answer, "h1")["came"], "done", "{answer:#}");
    let bench = [
        "--",
        "bench",
        "/run/disk",
        "--phase",
        "page-read",
        "--seconds",
        "200ms",
    ];
    let denied = run(&[], &bench);
    assert_eq!(host(&denied, "h1")["came"], "refused", "{denied:#}");
    assert!(why(&denied, "h1").contains("ermission"), "{denied:#}");
    net.on("h1", SUDO);
    let done = run(&["--sudo"], &bench);
    assert_eq!(host(&done, "h1")["came"], "done", "{done:#}");
    assert_eq!(net.place.runs().len(), 1);
    net.on("h1", STERN);
    let stern = run(&["--sudo"], &devices);
    assert_eq!(host(&stern, "h1")["came"], "unfit", "{stern:#}");
    let reason = why(&stern, "h1");
    assert!(reason.contains("a password is required"), "{reason}");
    net.assert_nothing_left();
}
