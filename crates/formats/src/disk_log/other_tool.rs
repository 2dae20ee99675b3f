//! Recognizes output of tools that cannot be read.

use super::stamp::raw_date;

/// A tool whose output cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherTool {
    /// Command of the tool, such as `sar -d`.
    pub name: &'static str,
    /// Command to use in its place, as the end of a sentence.
    pub instead: &'static str,
}

/// Signature by which a line of a tool's output is recognized.
struct ToolSign {
    tool: OtherTool,
    /// Words that the line contains, in this order, among others.
    words: &'static [&'static str],
}

impl ToolSign {
    /// True if a line of these words matches the signature.
    fn is_in(&self, line: &[&str]) -> bool {
        let mut words = line.iter();
        self.words.iter().all(|wanted| {
            let wanted = wanted.trim_start_matches('%');
            let is_begin = wanted.starts_with('"');
            words.any(|word| *word == wanted || (is_begin && word.starts_with(wanted)))
        })
    }
}

/// Words of a line, separated by white space and these characters.
fn split_words<'a>(line: &'a str, signs: &str) -> Vec<&'a str> {
    let words = line.split(|c: char| c.is_whitespace() || signs.contains(c));
    words.filter(|word| !word.is_empty()).collect()
}

const RUN_IOSTAT: &str = "use the output of iostat -xt 1";
const RUN_SAR: &str = "use the output of sar -d, sadf -d or iostat -xt 1";
const NO_TIME_BELOW_HEADER: &str =
    "no row with its time is below the header: use all that sar prints";
const ONLY_LINUX: &str = "only that of Linux (sysstat) is read";

const fn sign(
    name: &'static str,
    instead: &'static str,
    words: &'static [&'static str],
) -> ToolSign {
    ToolSign {
        tool: OtherTool { name, instead },
        words,
    }
}

/// Signatures of tools: their headers, from their manuals and sources. More specific ones come first.
const SIGNS: [ToolSign; 45] = [
    sign(
        "sadf -d",
        "use that of sadf -d FILE -- -d, in which devices have rows of their own",
        &["hostname", "interval", "timestamp"],
    ),
    sign(
        "sadf -j",
        "use that of sadf -j FILE -- -d",
        &["\"sysdata-version\":"],
    ),
    // Present versions of sadf -j do not print the version of the data.
    sign(
        "sadf -j",
        "use that of sadf -j FILE -- -d",
        &["\"file-utc-time\":"],
    ),
    sign(
        "sadf -p",
        "use that of sadf -p FILE -- -d",
        &["UTC", "all", "%user"],
    ),
    sign("vmstat -D", RUN_IOSTAT, &["total", "reads"]),
    sign("sar -d", NO_TIME_BELOW_HEADER, &["DEV", "tps"]),
    sign("sar -d", NO_TIME_BELOW_HEADER, &["tps", "DEV"]),
    sign(
        "sar -d of Solaris, AIX or HP-UX",
        ONLY_LINUX,
        &["device", "%busy", "avque", "r+w/s"],
    ),
    sign(
        "sar -d of macOS",
        ONLY_LINUX,
        &["device", "r+w/s", "blks/s"],
    ),
    sign("pidstat", RUN_IOSTAT, &["UID", "PID", "Command"]),
    sign(
        "sar -u",
        RUN_SAR,
        &["CPU", "%user", "%nice", "%system", "%iowait"],
    ),
    sign(
        "mpstat or sar -u",
        RUN_SAR,
        &["CPU", "%usr", "%nice", "%sys", "%iowait"],
    ),
    sign(
        "sar -u of macOS",
        ONLY_LINUX,
        &["%usr", "%nice", "%sys", "%idle"],
    ),
    sign("sar -b", RUN_SAR, &["tps", "rtps", "wtps"]),
    sign("sar -r", RUN_SAR, &["kbmemfree", "kbmemused"]),
    sign("sar -n DEV", RUN_SAR, &["IFACE", "rxpck/s", "txpck/s"]),
    sign(
        "vmstat -d",
        "it has totals since boot; use that of vmstat -d 1, whose reports show what happened between them",
        &["disk-", "------------reads------------"],
    ),
    sign(
        "vmstat -p",
        RUN_IOSTAT,
        &["reads", "read", "sectors", "writes", "requested"],
    ),
    sign("vmstat", RUN_IOSTAT, &["r", "b", "swpd", "free"]),
    sign(
        "vmstat of Solaris",
        ONLY_LINUX,
        &["r", "b", "w", "swap", "free", "re"],
    ),
    sign(
        "vmstat of a BSD",
        ONLY_LINUX,
        &["r", "b", "w", "avm", "fre"],
    ),
    sign("vmstat of AIX", ONLY_LINUX, &["r", "b", "avm", "fre"]),
    sign("dstat", RUN_IOSTAT, &["usr", "sys", "idl", "wai"]),
    sign("dstat", RUN_IOSTAT, &["read", "writ"]),
    sign("dstat", RUN_IOSTAT, &["\"Dstat"]),
    sign("dstat", RUN_IOSTAT, &["\"pcp-dstat"]),
    sign("top", RUN_IOSTAT, &["PID", "USER", "PR", "NI", "VIRT"]),
    sign("top", RUN_IOSTAT, &["top", "-", "up", "load", "average:"]),
    sign("iotop", RUN_IOSTAT, &["Total", "DISK", "READ"]),
    sign("atop", RUN_IOSTAT, &["ATOP", "-"]),
    sign("nmon", RUN_IOSTAT, &["AAA,progname,nmon"]),
    sign("collectl", RUN_IOSTAT, &["#cpu", "sys", "inter", "ctxsw"]),
    sign(
        "zpool iostat",
        RUN_IOSTAT,
        &["pool", "alloc", "free", "read", "write"],
    ),
    sign("cifsiostat", RUN_IOSTAT, &["rops/s", "wops/s"]),
    sign("tapestat", RUN_IOSTAT, &["Tape:", "r/s", "w/s"]),
    sign("nfsiostat", RUN_IOSTAT, &["ops/s", "rpc", "bklog"]),
    sign(
        "iostat of Solaris",
        ONLY_LINUX,
        &["r/s", "w/s", "kr/s", "kw/s", "wait", "actv"],
    ),
    sign(
        "iostat of FreeBSD",
        ONLY_LINUX,
        &["device", "r/s", "w/s", "kr/s", "kw/s"],
    ),
    sign("iostat of Solaris", ONLY_LINUX, &["kps", "tps", "serv"]),
    sign(
        "iostat of macOS",
        ONLY_LINUX,
        &["KB/t", "tps", "MB/s", "us", "sy", "id", "1m"],
    ),
    sign("iostat of a BSD", ONLY_LINUX, &["KB/t", "tps", "MB/s"]),
    sign("iostat of a BSD", ONLY_LINUX, &["KB/t", "t/s", "MB/s"]),
    sign("iostat of AIX", ONLY_LINUX, &["tm_act", "Kbps", "tps"]),
    sign(
        "iostat of HP-UX",
        ONLY_LINUX,
        &["device", "bps", "sps", "msps"],
    ),
    sign(
        "typeperf of Windows",
        "only iostat of Linux is read",
        &["\"(PDH-CSV"],
    ),
];

/// Systems with a sar of their own, as named in its first line, and the name of that tool.
const SYSTEMS: [(&str, &str); 4] = [
    ("SunOS", "sar of Solaris"),
    ("AIX", "sar of AIX"),
    ("HP-UX", "sar of HP-UX"),
    ("Darwin", "sar of macOS"),
];

/// Maximum length of a line that is examined.
const MAX_LINE_BYTES: usize = 1024;

/// The tool that prints such a line; `None` if it is not recognized.
pub(crate) fn tool(line: &str) -> Option<OtherTool> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let named = |name| OtherTool {
        name,
        instead: RUN_IOSTAT,
    };
    if is_diskstats(line) {
        return Some(named("/proc/diskstats"));
    }
    if let Some(name) = sar_of_other_system(line) {
        return Some(OtherTool {
            name,
            instead: ONLY_LINUX,
        });
    }
    // Names in CSV may be quoted.
    let bare = split_words(line, "|%;\",");
    let quoted = match line.contains(['"', ',']) {
        true => split_words(line, "|%;"),
        false => Vec::new(),
    };
    let has = |sign: &&ToolSign| sign.is_in(&bare) || sign.is_in(&quoted);
    let known = SIGNS.iter().find(has).map(|sign| sign.tool);
    known.or_else(|| is_timed_header(line).then(|| named("sar or another tool of sysstat")))
}

/// The sar of another system, by its first line: system, host, release and more, and a date, as in `SunOS db1 5.10
/// Generic_141445-09 i86pc 04/19/2011`.
fn sar_of_other_system(line: &str) -> Option<&'static str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [system, _, release, .., date] = words[..] else {
        return None;
    };
    let (_, tool) = SYSTEMS.into_iter().find(|(known, _)| *known == system)?;
    let has_number = release.contains(|c: char| c.is_ascii_digit());
    (has_number && raw_date(date).is_some()).then_some(tool)
}

/// True if a line is a header that begins with the time, as those of sar, mpstat and pidstat do and those of iostat do
/// not.
fn is_timed_header(line: &str) -> bool {
    let mut words = line.split_whitespace().peekable();
    let is_time = words.next().is_some_and(|word| {
        let parts: Vec<&str> = word.split(':').collect();
        let is_part = |part: &&str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        parts.len() == 3 && parts.iter().all(is_part)
    });
    words.next_if(|word| matches!(*word, "AM" | "PM"));
    let names: Vec<&str> = words.collect();
    is_time && is_sysstats(&names)
}

/// True if these are the column names of a sysstat report that is not one of iostat.
pub(crate) fn is_sysstats(names: &[&str]) -> bool {
    let is_name = |word: &&str| word.parse::<f64>().is_err();
    let is_sized = |word: &&str| {
        word.starts_with('%')
            || word.ends_with("/s")
            || word.ends_with("-sz")
            || word.starts_with("kb")
    };
    let is_iostats = names
        .iter()
        .any(|name| name.starts_with("Device") || *name == "avg-cpu:");
    !is_iostats && names.iter().all(is_name) && names.iter().any(is_sized)
}

/// True if a line comes from /proc/diskstats: two numbers, a name, and eleven numbers or more.
fn is_diskstats(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &&str| word.parse::<u64>().is_ok();
    words.len() >= 14
        && words[..2].iter().all(number)
        && !number(&words[2])
        && words[3..].iter().all(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_known_by_their_headers() {
        for (line, name) in [
            (
                "12:00:01 AM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await \
                     svctm     %util",
                "sar -d",
            ),
            (
                "11:21:05          tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await \
                     %util DEV",
                "sar -d",
            ),
            (
                "12:00:01        CPU     %user     %nice   %system   %iowait    %steal     %idle",
                "sar -u",
            ),
            (
                "12:00:01 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  \
                 %gnice   %idle",
                "mpstat or sar -u",
            ),
            (
                "12:00:01     tps      rtps      wtps   bread/s   bwrtn/s",
                "sar -b",
            ),
            (
                "disk- ------------reads------------ ------------writes----------- -----IO------",
                "vmstat -d",
            ),
            (
                " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st",
                "vmstat",
            ),
            (
                "usr sys idl wai hiq siq| read  writ| recv  send|  in   out | int   csw ",
                "dstat",
            ),
            (" read  writ| read  writ", "dstat"),
            ("\"Dstat 0.7.4 CSV output\"", "dstat"),
            ("\"pcp-dstat 5.3.6 CSV Output\"", "dstat"),
            (
                "\"usr\",\"sys\",\"idl\",\"wai\",\"stl\",\"read\",\"writ\"",
                "dstat",
            ),
            ("\"time\",\"read\",\"writ\"", "dstat"),
            (
                "top - 17:52:17 up 42 days,  7:10,  1 user,  load average: 0.02, 0.02, 0.05",
                "top",
            ),
            (
                "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND",
                "top",
            ),
            (
                "10:15:51 PM   UID       PID    %usr %system  %guest    %CPU   CPU  Command",
                "pidstat",
            ),
            (
                "device       r/s     w/s     kr/s     kw/s  ms/r  ms/w  ms/o  ms/t qlen  %b  ",
                "iostat of FreeBSD",
            ),
            (
                "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device",
                "iostat of Solaris",
            ),
            (
                "device    r/s    w/s   kr/s   kw/s wait actv  svc_t  %w  %b ",
                "iostat of Solaris",
            ),
            (
                "device     r/s   w/s    kr/s    kw/s qlen svc_t  %b  ",
                "iostat of FreeBSD",
            ),
            (
                " r b w   swap  free  re  mf pi po fr de sr f0 s0 s1 --   in   sy   cs us sy id",
                "vmstat of Solaris",
            ),
            (
                " r b w      avm     fre   flt  re  pi  po    fr   sr ad0 cd0   in   sy   cs us sy id",
                "vmstat of a BSD",
            ),
            (
                " r  b   avm   fre  re  pi  po  fr   sr  cy  in   sy  cs us sy id wa",
                "vmstat of AIX",
            ),
            (
                "SunOS db1 5.10 Generic_141445-09 i86pc    04/19/2011",
                "sar of Solaris",
            ),
            ("AIX db1 1 6 00C6ADA14C00    11/22/26", "sar of AIX"),
            (
                "10:26:25   device        %busy   avque   r+w/s  blks/s  avwait  avserv",
                "sar -d of Solaris, AIX or HP-UX",
            ),
            ("10:26:25   device    r+w/s    blks/s", "sar -d of macOS"),
            ("10:26:25  %usr   %nice   %sys   %idle", "sar -u of macOS"),
            (
                "    KB/t  tps  MB/s  us sy id   1m   5m   15m",
                "iostat of macOS",
            ),
            (
                " tin  tout  KB/t tps  MB/s  us ni sy in id",
                "iostat of a BSD",
            ),
            (
                "Disks:        % tm_act     Kbps      tps    Kb_read   Kb_wrtn",
                "iostat of AIX",
            ),
            (
                "pool        alloc   free   read  write   read  write",
                "zpool iostat",
            ),
            (
                "Total DISK READ :       0.00 B/s | Total DISK WRITE :       0.00 B/s",
                "iotop",
            ),
            (
                "Tape:     r/s     w/s   kB_read/s   kB_wrtn/s  %Rd  %Wr  %Oa    Rs/s    Ot/s",
                "tapestat",
            ),
            (
                "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s",
                "sadf -d",
            ),
            ("\t\t\t\"file-utc-time\": \"17:08:11\",", "sadf -j"),
            (
                "vm\t1\t2026-11-29 17:08:12 UTC\tall\t%user\t92.46",
                "sadf -p",
            ),
            (
                "12:00:01 AM   runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked",
                "sar or another tool of sysstat",
            ),
            ("10:41:48       proc/s", "sar or another tool of sysstat"),
            (
                "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11",
                "/proc/diskstats",
            ),
        ] {
            assert_eq!(tool(line).map(|tool| tool.name), Some(name), "{line}");
        }
    }

    #[test]
    fn lines_of_iostat_are_of_no_other_tool() {
        for line in [
            "avg-cpu:  %user   %nice %system %iowait  %steal   %idle",
            "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   \
             await  svctm  %util",
            "Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn   \
              kB_dscd",
            "     tps      kB/s    rqm/s   await  areq-sz  aqu-sz  %util Device",
            "Linux 6.1.0 (host) 11/22/26 _x86_64_ (2 CPU)",
            "sda 0.00 0.00 0.00 0.00 0.00 0.00 0.00 7.00 0.00 0.00 100.00",
            "12:01:05 Device r/s w/s rkB/s wkB/s await %util",
            "12:01:05 avg-cpu:  %user   %nice %system %iowait  %steal   %idle",
            "12:01:05 sda 1.00 2.00 3.00",
            "12:01:05 the disk is slow",
            "what I read in the paper",
            "SunOS db1 was no better",
            "AIX and Solaris were, by 11/22/26",
            "",
        ] {
            assert_eq!(tool(line), None, "{line}");
        }
    }
}
