use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;
use crate::exit::sentence;

/// Formats with a marker.
const FORMATS: [OutputFormat; 4] = [
    OutputFormat::Page,
    OutputFormat::Json,
    OutputFormat::HostList,
    OutputFormat::ManPage,
];

/// An earlier output of a format.
fn earlier(format: OutputFormat) -> String {
    match format {
        OutputFormat::Page => {
            "<!doctype html>\n<head>\n<meta name=\"generator\" content=\"disksmith\">\n".to_owned()
        }
        OutputFormat::Json => format!("{{\"generator\": \"{}\", \"schema\": 1}}\n", generator()),
        OutputFormat::HostList => format!("{HOST_LIST_MARK}1\nhost\n"),
        OutputFormat::ManPage => format!("{MAN_PAGE_MARK}\n.TH x\n"),
        // They have no marker: only an empty file is replaced unasked.
        OutputFormat::FioLog | OutputFormat::Trace => String::new(),
    }
}

/// A folder of its own for trying outputs, with files that must not change.
struct State {
    folder: TempDir,
}

const PRECIOUS: &str = "the only copy";

impl State {
    fn new() -> State {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("precious"), PRECIOUS).unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        State { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn check(&self, name: &str, format: OutputFormat, force: bool) -> Result<OutputFile, String> {
        OutputFile::check(&self.at(name), format, force)
            .map_err(|failure| sentence(&failure.error()))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Everything visible of a place, without following a link from it to a device: names, content, target of a link.
fn seen(state: &State, place: &Path) -> (Vec<String>, Option<Vec<u8>>, Option<PathBuf>) {
    let is_file = fs::metadata(place).is_ok_and(|facts| facts.is_file());
    let content = is_file.then(|| fs::read(place).unwrap());
    (state.names(), content, fs::read_link(place).ok())
}

/// A thing at the place of an output, the check's answer (`None`: it may be replaced), and the same with
/// --force.
type Case = (
    &'static str,
    fn(&State, &Path, OutputFormat),
    Option<&'static str>,
    Option<&'static str>,
);

const CASES: [Case; 15] = [
    ("nothing", |_, _, _| {}, None, None),
    (
        "an empty file",
        |_, at, _| fs::write(at, "").unwrap(),
        None,
        None,
    ),
    (
        "an earlier output",
        |_, at, format| fs::write(at, earlier(format)).unwrap(),
        None,
        None,
    ),
    (
        "text",
        |_, at, _| fs::write(at, PRECIOUS).unwrap(),
        Some("--force"),
        None,
    ),
    (
        "a page of others",
        |_, at, _| {
            fs::write(
                at,
                "<!doctype html><html><head><meta name=\"generator\" content=\"Hugo\">",
            )
            .unwrap()
        },
        Some("--force"),
        None,
    ),
    (
        "a document of others",
        |_, at, _| fs::write(at, "{\"generator\": \"fio\", \"command\": \"lab\"}").unwrap(),
        Some("--force"),
        None,
    ),
    (
        "the name far behind",
        |_, at, _| {
            fs::write(
                at,
                format!("{}{}", "x".repeat(5000), earlier(OutputFormat::Page)),
            )
            .unwrap()
        },
        Some("--force"),
        None,
    ),
    (
        "a hard link of text",
        |state, at, _| fs::hard_link(state.at("precious"), at).unwrap(),
        Some("--force"),
        None,
    ),
    (
        "a link to text",
        |state, at, _| symlink(state.at("precious"), at).unwrap(),
        Some("symbolic link"),
        None,
    ),
    (
        "a link to an earlier output",
        |state, at, format| {
            fs::write(state.at("earlier"), earlier(format)).unwrap();
            symlink("earlier", at).unwrap();
        },
        Some("symbolic link"),
        None,
    ),
    (
        "a link to nothing",
        |_, at, _| symlink("nowhere", at).unwrap(),
        Some("symbolic link"),
        None,
    ),
    (
        "a link to a device",
        |_, at, _| symlink("/dev/full", at).unwrap(),
        Some("symbolic link"),
        None,
    ),
    (
        "a folder",
        |_, at, _| fs::create_dir(at).unwrap(),
        Some("is a folder"),
        Some("is a folder"),
    ),
    (
        "a link to a folder",
        |_, at, _| symlink("folder", at).unwrap(),
        Some("is a folder"),
        Some("is a folder"),
    ),
    (
        "a socket",
        |_, at, _| drop(UnixListener::bind(at).unwrap()),
        Some("socket"),
        Some("socket"),
    ),
];

#[test]
fn foreign_files_are_replaced_only_by_force_and_targets_of_links_never() {
    for format in FORMATS {
        for (what, make, refused, refused_by_force) in &CASES {
            // Only an earlier output differs between formats, and each write waits for the disk.
            if format != OutputFormat::Page && !what.contains("earlier") {
                continue;
            }
            for (force, refused) in [(false, refused), (true, refused_by_force)] {
                let state = State::new();
                let place = state.at("place");
                make(&state, &place, format);
                let before = seen(&state, &place);
                let checked = state.check("place", format, force);
                let after = seen(&state, &place);
                assert_eq!(before, after, "{what} is changed by a look at it");
                match (checked, refused) {
                    (Ok(output), None) => {
                        output.write(b"new").unwrap();
                        assert_eq!(fs::read(&place).unwrap(), b"new", "{what}");
                        assert!(fs::symlink_metadata(&place).unwrap().is_file(), "{what}");
                    }
                    (Err(error), Some(words)) => assert!(error.contains(words), "{what}: {error}"),
                    (checked, _) => panic!("{what}, {format:?}, force {force}: {checked:?}"),
                }
                // Neither by a link, a hard link, nor next to it.
                assert_eq!(
                    fs::read_to_string(state.at("precious")).unwrap(),
                    PRECIOUS,
                    "{what}"
                );
                assert!(!state.at("nowhere").exists(), "{what}");
                let ours = |name: &&String| name.starts_with(".disksmith");
                assert_eq!(state.names().iter().find(ours), None, "{what}");
            }
        }
    }
}

#[test]
fn an_output_of_another_format_is_not_replaced() {
    for there in FORMATS {
        for format in FORMATS {
            let state = State::new();
            fs::write(state.at("place"), earlier(there)).unwrap();
            let checked = state.check("place", format, false);
            assert_eq!(
                checked.is_ok(),
                there == format,
                "{format:?} over {there:?}"
            );
        }
    }
}

#[test]
fn devices_are_refused_also_by_force_and_are_not_opened() {
    let devices = fs::read_dir("/dev")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    for path in devices {
        let Ok(facts) = fs::symlink_metadata(&path) else {
            continue;
        };
        let is_device = [FileType::BlockDevice, FileType::CharacterDevice]
            .contains(&FileType::from_raw_mode(facts.mode()));
        if is_device && path != Path::new("/dev/null") {
            for force in [false, true] {
                let checked = OutputFile::check(&path, OutputFormat::Page, force);
                let error = sentence(&checked.expect_err(&path.to_string_lossy()).error());
                assert!(error.contains("device"), "{error}");
            }
        }
    }
    let null = OutputFile::check(Path::new("/dev/null"), OutputFormat::Page, false).unwrap();
    null.write(b"page").unwrap();
    // One of a test's own, in case /dev has few.
    let state = State::new();
    for (name, kind, number) in [
        ("disk", FileType::BlockDevice, rustix::fs::makedev(7, 4095)),
        ("full", FileType::CharacterDevice, rustix::fs::makedev(1, 7)),
    ] {
        if mknodat(CWD, state.at(name), kind, Mode::RUSR | Mode::WUSR, number).is_ok() {
            assert!(
                state.check(name, OutputFormat::Page, true).is_err(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_pipe_is_written_to_and_stays_one() {
    let state = State::new();
    let pipe = state.at("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let output = state.check("pipe", OutputFormat::Page, false).unwrap();
    let from = pipe.clone();
    let reader = std::thread::spawn(move || fs::read(from).unwrap());
    output.write(b"page").unwrap();
    assert_eq!(reader.join().unwrap(), b"page");
    assert!(FileType::from_raw_mode(fs::symlink_metadata(&pipe).unwrap().mode()).is_fifo());
}

#[test]
fn a_descriptor_is_written_to_where_it_stands_unless_it_is_a_device() {
    use std::os::fd::AsRawFd as _;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"before ").unwrap();
    let own = PathBuf::from(format!("/dev/fd/{}", file.as_file().as_raw_fd()));
    let output = OutputFile::check(&own, OutputFormat::Page, false).unwrap();
    output.write(b"page").unwrap();
    assert_eq!(fs::read(file.path()).unwrap(), b"before page");
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let own = PathBuf::from(format!("/proc/self/fd/{}", full.as_raw_fd()));
    assert!(OutputFile::check(&own, OutputFormat::Page, true).is_err());
    assert!(OutputFile::check(Path::new("/dev/fd/99999"), OutputFormat::Page, true).is_err());
}

#[test]
fn a_trace_is_written_in_parts_replaced_by_force_and_no_stream() {
    let state = State::new();
    for force in [false, true] {
        let output = state.check("place", OutputFormat::Trace, force).unwrap();
        let mut new = output.begin().unwrap();
        for part in [b"tr", b"ace"] as [&[u8]; 2] {
            new.file.write_all(part).unwrap();
        }
        output.put(new).unwrap();
        assert_eq!(fs::read(state.at("place")).unwrap(), b"trace");
        let error = state.check("place", OutputFormat::Trace, false);
        assert!(error.unwrap_err().contains("there is a file already"));
    }
    let stream = OutputFile::check(Path::new("/dev/null"), OutputFormat::Trace, true);
    let error = sentence(&stream.unwrap_err().error());
    assert!(error.contains("no regular file"), "{error}");
}

#[test]
fn the_message_is_about_what_was_named() {
    let state = State::new();
    for (name, words) in [
        ("folder", "folder is a folder; name a file in it"),
        ("folder/", "folder/ is a folder; name a file in it"),
        ("new/", "new/ names a folder"),
        ("none/page.html", "none does not exist; create it first"),
        ("precious/page.html", "precious is not a folder"),
        ("..", ".. is a folder"),
    ] {
        let error = state.check(name, OutputFormat::Page, true).unwrap_err();
        assert!(error.contains(words), "{name}: {error}");
        assert!(error.starts_with("the report "), "{error}");
    }
    let error = OutputFile::check(Path::new(""), OutputFormat::Page, true).unwrap_err();
    assert!(sentence(&error.error()).contains("names no file"));
}

#[test]
fn a_file_that_comes_to_the_place_meanwhile_stays() {
    type Change = fn(&State, &Path);
    let changes: [(Change, &str); 3] = [
        (|_, at| fs::write(at, PRECIOUS).unwrap(), "--force"),
        (
            |state, at| symlink(state.at("precious"), at).unwrap(),
            "symbolic link",
        ),
        (|_, at| fs::create_dir(at).unwrap(), "folder"),
    ];
    for (change, words) in changes {
        let state = State::new();
        let output = state.check("place", OutputFormat::Page, false).unwrap();
        let prepared = output.prepare(b"page").unwrap();
        change(&state, &state.at("place"));
        let before = state.names();
        let error = sentence(&prepared.put().unwrap_err());
        assert!(
            error.contains("could not be written") && error.contains(words),
            "{error}"
        );
        assert_eq!(fs::read_to_string(state.at("precious")).unwrap(), PRECIOUS);
        let left: Vec<String> = before
            .into_iter()
            .filter(|name| !name.starts_with('.'))
            .collect();
        assert_eq!(state.names(), left);
    }
}

#[test]
fn the_target_is_not_replaced_even_by_force_nor_under_another_name() {
    let state = State::new();
    fs::hard_link(state.at("precious"), state.at("other name")).unwrap();
    for name in ["precious", "other name"] {
        let output = state.check(name, OutputFormat::Page, true).unwrap();
        assert!(output.is_not(&state.at("precious")).is_err(), "{name}");
    }
    let output = state.check("new", OutputFormat::Page, true).unwrap();
    output.is_not(&state.at("precious")).unwrap();
    output.is_not(&state.at("new")).unwrap();
}

#[test]
fn permissions_of_the_earlier_output_are_kept() {
    let state = State::new();
    fs::write(state.at("place"), earlier(OutputFormat::Page)).unwrap();
    fs::set_permissions(state.at("place"), Permissions::from_mode(0o640)).unwrap();
    state
        .check("place", OutputFormat::Page, false)
        .unwrap()
        .write(b"page")
        .unwrap();
    assert_eq!(
        fs::metadata(state.at("place")).unwrap().mode() & 0o7777,
        0o640
    );
}
