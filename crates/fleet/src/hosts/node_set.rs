//! Node sets in the notation of ClusterShell, pdsh and Slurm: `db[1-12,14]`, `r[1-2]n[01-16/2]`, `@web`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of hosts of a set; a larger one is assumed to be a mistake.
const MAX_HOSTS: usize = 100_000;

/// The hosts of an expression: node sets combined from left to right by a comma (union), `!` (difference), `&`
/// (intersection) or `^` (symmetric difference).
///
/// # Errors
/// A sentence, if it is invalid.
pub(crate) fn evaluate(expression: &str) -> Result<Vec<String>, String> {
    // Each host with its position in the order of the expression.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut next = 0;
    for (operator, set) in operands(expression) {
        // Adjacent numbers may produce the same name twice.
        let mut found = expand(set.trim())?;
        let mut names = BTreeSet::new();
        found.retain(|host| names.insert(host.clone()));
        if operator == '&' {
            places.retain(|host, _| names.contains(host));
            continue;
        }
        for host in found {
            let has = places.contains_key(&host);
            if has && operator != ',' {
                places.remove(&host);
            } else if !has && operator != '!' {
                places.insert(host, next);
                next += 1;
            }
        }
        if places.len() > MAX_HOSTS {
            return Err(too_many(expression));
        }
    }
    let mut hosts: Vec<(usize, String)> = places
        .into_iter()
        .map(|(host, place)| (place, host))
        .collect();
    hosts.sort_unstable();
    Ok(hosts.into_iter().map(|(_, host)| host).collect())
}

/// The parts of an expression, each with the operator before it.
fn operands(expression: &str) -> Vec<(char, &str)> {
    let mut parts = Vec::new();
    let (mut operator, mut begin, mut is_inside) = (',', 0, false);
    for (at, character) in expression.char_indices() {
        match character {
            '[' => is_inside = true,
            ']' => is_inside = false,
            ',' | '!' | '&' | '^' if !is_inside => {
                parts.push((operator, &expression[begin..at]));
                (operator, begin) = (character, at + 1);
            }
            _ => {}
        }
    }
    parts.push((operator, &expression[begin..]));
    parts
}

/// The hosts of one node set, with the last number varying fastest. A word without brackets, or an IPv6 address,
/// stands for itself; a word that begins with `@` is a group.
///
/// # Errors
/// A sentence, if its brackets do not contain numbers, or the group has no hosts.
pub(crate) fn expand(set: &str) -> Result<Vec<String>, String> {
    if set.is_empty() {
        return Err("a host's name cannot be empty".to_owned());
    }
    if set.starts_with('@') {
        return super::group::hosts(set);
    }
    if set.contains(':') {
        return Ok(vec![set.to_owned()]);
    }
    let mut hosts = vec![String::new()];
    let mut rest = set;
    while let Some((text, behind)) = rest.split_once('[') {
        let Some((list, behind)) = behind.split_once(']') else {
            return Err(format!("'{set}' has a '[' without a ']'"));
        };
        let numbers = numbers(list).map_err(|why| format!("'{set}': {why}"))?;
        if hosts.len().saturating_mul(numbers.len()) > MAX_HOSTS {
            return Err(too_many(set));
        }
        hosts = hosts
            .iter()
            .flat_map(|host| {
                numbers
                    .iter()
                    .map(move |number| format!("{host}{text}{number}"))
            })
            .collect();
        rest = behind;
    }
    if rest.contains(']') {
        return Err(format!("'{set}' has a ']' without a '['"));
    }
    for host in &mut hosts {
        host.push_str(rest);
    }
    Ok(hosts)
}

fn too_many(set: &str) -> String {
    format!("'{set}' names more than {MAX_HOSTS} hosts")
}

/// The numbers of a list such as `1-3,08-10/2`, with their leading zeros, without duplicates.
fn numbers(list: &str) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    let mut seen = BTreeSet::new();
    for range in list.split(',') {
        let wrong = || format!("'{range}' is no range of numbers, such as 3, 1-12 or 01-16/2");
        let (ends, step) = range.split_once('/').unwrap_or((range, "1"));
        let (first, last) = ends.split_once('-').unwrap_or((ends, ends));
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<usize>().ok().filter(|_| is_number)
        };
        let (Some(from), Some(to), Some(step)) = (number(first), number(last), number(step)) else {
            return Err(wrong());
        };
        if from > to || step == 0 {
            return Err(wrong());
        }
        if (to - from) / step >= MAX_HOSTS {
            return Err(format!("'{range}' has more than {MAX_HOSTS} numbers"));
        }
        let is_padded = |text: &str| text.len() > 1 && text.starts_with('0');
        let width = if is_padded(first) { first.len() } else { 0 };
        if (width > 0 || is_padded(last)) && first.len() != last.len() {
            return Err(format!(
                "'{range}' has numbers of different lengths, where leading zeros fill them up"
            ));
        }
        for number in (from..=to).step_by(step) {
            let text = format!("{number:0width$}");
            if seen.insert(text.clone()) {
                numbers.push(text);
            }
        }
    }
    Ok(numbers)
}

/// The node sets of some hosts, separated by commas: `db[1-12,14]`.
pub(crate) fn fold<'a>(hosts: impl IntoIterator<Item = &'a str>) -> String {
    let mut kinds: BTreeMap<Vec<&str>, BTreeSet<Vec<&str>>> = BTreeMap::new();
    for host in hosts {
        let (texts, numbers) = parts(host);
        kinds.entry(texts).or_default().insert(numbers);
    }
    let sets = kinds.into_iter().flat_map(|(texts, hosts)| {
        let blocks = blocks(hosts);
        blocks.into_iter().map(move |block| written(&texts, &block))
    });
    sets.collect::<Vec<_>>().join(",")
}

/// Splits a host's name into its numbers and the texts around them. A name that contains characters of node sets
/// counts as having no numbers.
fn parts(host: &str) -> (Vec<&str>, Vec<&str>) {
    if host.contains(['[', ']', ':', ',', '(']) {
        return (vec![host], Vec::new());
    }
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    let mut rest = host;
    while let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) {
        let (text, behind) = rest.split_at(begin);
        let end = behind
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(behind.len());
        texts.push(text);
        numbers.push(&behind[..end]);
        rest = &behind[end..];
    }
    texts.push(rest);
    (texts, numbers)
}

/// For each position in a name the numbers there; all combinations are hosts.
type Block<'a> = Vec<BTreeSet<&'a str>>;

/// A number, ordered by its length with leading zeros, then by its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number<'a> {
    /// Number of digits, if numbers of this length have leading zeros; otherwise 0.
    width: usize,
    /// Number of digits without leading zeros.
    length: usize,
    text: &'a str,
}

/// The smallest set of blocks that is found by joining blocks which differ in one position.
fn blocks<'a>(hosts: BTreeSet<Vec<&'a str>>) -> Vec<Block<'a>> {
    let places = hosts.first().map_or(0, Vec::len);
    let single = |host: Vec<&'a str>| {
        host.into_iter()
            .map(|text| BTreeSet::from([text]))
            .collect()
    };
    let mut blocks: Vec<Block<'a>> = hosts.into_iter().map(single).collect();
    for place in (0..places).rev() {
        let mut joined: BTreeMap<Block<'a>, BTreeSet<&'a str>> = BTreeMap::new();
        for mut block in blocks {
            let numbers = std::mem::take(&mut block[place]);
            joined.entry(block).or_default().extend(numbers);
        }
        let whole = |(mut block, numbers): (Block<'a>, BTreeSet<&'a str>)| {
            block[place] = numbers;
            block
        };
        blocks = joined.into_iter().map(whole).collect();
    }
    blocks.sort_by_cached_key(rank);
    blocks
}

/// Order of blocks, as in ClusterShell: blocks with more hosts first, then for each position: more numbers first, then
/// the first and the last number, as text.
fn rank<'a>(block: &Block<'a>) -> impl Ord + use<'a> {
    let hosts: usize = block.iter().map(BTreeSet::len).product();
    let place = |numbers: &BTreeSet<&'a str>| {
        let numbers = ordered(numbers);
        let text = |number: Option<&Number<'a>>| number.map(|number| number.text);
        (
            Reverse(numbers.len()),
            text(numbers.first()),
            text(numbers.last()),
        )
    };
    (Reverse(hosts), block.iter().map(place).collect::<Vec<_>>())
}

/// The numbers in ascending order.
fn ordered<'a>(numbers: &BTreeSet<&'a str>) -> Vec<Number<'a>> {
    let is_padded = |text: &&&str| text.len() > 1 && text.starts_with('0');
    let widths: BTreeSet<usize> = numbers
        .iter()
        .filter(is_padded)
        .map(|text| text.len())
        .collect();
    let number = |text: &&'a str| Number {
        width: widths.get(&text.len()).copied().unwrap_or(0),
        length: text.trim_start_matches('0').len(),
        text,
    };
    let mut numbers: Vec<Number<'a>> = numbers.iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

fn written(texts: &[&str], block: &Block<'_>) -> String {
    let mut set = String::new();
    for (at, text) in texts.iter().enumerate() {
        set.push_str(text);
        let Some(numbers) = block.get(at) else {
            continue;
        };
        let ranges = ranges(numbers);
        match numbers.len() {
            1 => set.push_str(&ranges),
            _ => set.push_str(&format!("[{ranges}]")),
        }
    }
    set
}

/// Numbers as ranges: `1-3,7`.
fn ranges(numbers: &BTreeSet<&str>) -> String {
    let value = |number: &Number<'_>| number.text.parse::<u128>().ok();
    let mut runs: Vec<(Number<'_>, Number<'_>)> = Vec::new();
    for number in ordered(numbers) {
        match runs.last_mut() {
            Some((first, last))
                if first.width == number.width
                    && value(last).and_then(|last| last.checked_add(1)) == value(&number)
                    && value(&number).is_some() =>
            {
                *last = number;
            }
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): &(Number<'_>, Number<'_>)| match first == last {
        true => first.text.to_owned(),
        false => format!("{}-{}", first.text, last.text),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sets_are_expanded_as_clustershell_does() {
        for (set, hosts) in [
            ("db1", "db1"),
            ("db[1-3]", "db1 db2 db3"),
            ("db[08-11]", "db08 db09 db10 db11"),
            ("db[1-10/3]", "db1 db4 db7 db10"),
            ("db[1,3-4,9]-ib", "db1-ib db3-ib db4-ib db9-ib"),
            ("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"),
            ("10.0.[0-1].[1-2]", "10.0.0.1 10.0.0.2 10.0.1.1 10.0.1.2"),
            ("db[1,1,2]", "db1 db2"),
            ("db[01,1]", "db01 db1"),
            ("admin@db[1-2].eu", "admin@db1.eu admin@db2.eu"),
            ("db[1-3],x[1-2]", "db1 db2 db3 x1 x2"),
            ("db[1-3]!db2", "db1 db3"),
            ("db[1-5]&db[2-9]", "db2 db3 db4 db5"),
            ("db[1-5]^db[4-7]", "db1 db2 db3 db6 db7"),
            ("db[1-5]!db[2-4],db3", "db1 db5 db3"),
            ("x^a[1,11][1,11]", "x a11 a111 a1111"),
            ("[2001:db8::5]", "[2001:db8::5]"),
        ] {
            assert_eq!(evaluate(set).unwrap().join(" "), hosts, "{set}");
        }
        for wrong in [
            "",
            "db[9-7]",
            "db[]",
            "db[1-",
            "db1]",
            "db[001-3]",
            "db[0-010]",
            "db[1-3/0]",
            "db[1-2-3]",
            "db[a]",
            "db[1-100000000]",
            "a[1-1000]b[1-1000]",
            "a,",
            "a,,b",
        ] {
            assert!(evaluate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_are_folded_as_clustershell_does() {
        let nodeset = |words: &str| -> Option<String> {
            let mut command = std::process::Command::new("nodeset");
            let output = command.args(words.split(' ')).output().ok()?;
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let is_installed = nodeset("--version").is_some();
        if !is_installed {
            skip::skipped("nodeset is not installed (clustershell)");
        }
        for (hosts, set) in [
            ("db1", "db1"),
            ("db14 db1 db2 db3 db12 db11", "db[1-3,11-12,14]"),
            ("db08 db09 db10 db11", "db[08-11]"),
            ("r1n1 r1n2 r2n1 r2n2", "r[1-2]n[1-2]"),
            ("r1n1 r1n2 r2n1", "r1n[1-2],r2n1"),
            ("a b web", "a,b,web"),
            ("10.0.0.1 10.0.0.2 10.0.0.4", "10.0.0.[1-2,4]"),
            ("db1-ib db2-ib x1", "db[1-2]-ib,x1"),
            ("db1 db01", "db[1,01]"),
            ("::1 [fe80::1]", "::1,[fe80::1]"),
        ] {
            assert_eq!(fold(hosts.split(' ')), set, "{hosts}");
            // ClusterShell only accepts numbers in brackets, not addresses.
            if !hosts.contains(':') && is_installed {
                let printed = nodeset(&format!("--fold {hosts}")).unwrap();
                assert_eq!(printed, format!("{set}\n"), "{hosts}");
            }
        }
        assert_eq!(fold([]), "");
    }

    /// Random expressions: their hosts, and the folded sets, equal those of the real ClusterShell.
    #[test]
    #[ignore = "a proof: a thousand sets against ClusterShell"]
    fn clustershell_expands_and_folds_the_same() {
        let program = "import sys\nfrom ClusterShell.NodeSet import NodeSet\nfor line in sys.stdin:\n \
                       s = NodeSet(line.strip())\n print(' '.join(sorted(s)) + '\\t' + str(s))";
        let python = |code: &str| {
            // Debian's Python, for which the package is installed.
            let mut command = std::process::Command::new("/usr/bin/python3");
            command.args(["-c", code]);
            command
        };
        if !python("import ClusterShell")
            .status()
            .is_ok_and(|status| status.success())
        {
            return skip::skipped("ClusterShell is not installed");
        }
        let mut random = record::random::SplitMix64::new(0x5eed_0024);
        let mut below = |end: u64| random.below(end) as usize;
        let mut sets = Vec::new();
        for _ in 0..1000 {
            let mut set = String::new();
            for part in 0..=below(3) {
                set.push_str(["", ",", "!", "&", "^"][if part == 0 { 0 } else { 1 + below(4) }]);
                for _ in 0..=below(2) {
                    let (from, more, width) = (below(30), below(12), [1, 1, 2, 3][below(4)]);
                    let step = ["", "", "/2", "/3"][below(4)];
                    let (text, to) = (["db", "r", "n-"][below(3)], from + more);
                    set.push_str(&format!("{text}[{from:0width$}-{to:0width$}{step},7]"));
                }
            }
            sets.push(set);
        }
        // A set without hosts has no line to compare.
        let sets: Vec<String> = sets
            .into_iter()
            .filter(|set| evaluate(set).is_ok_and(|hosts| !hosts.is_empty()))
            .collect();
        let mut child = python(program)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let lines = sets.join("\n");
        let writer =
            std::thread::spawn(move || std::io::Write::write_all(&mut input, lines.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.lines().count(), sets.len());
        for (set, printed) in sets.iter().zip(printed.lines()) {
            let mut hosts = evaluate(set).unwrap();
            hosts.sort();
            let folded = fold(hosts.iter().map(String::as_str));
            assert_eq!(format!("{}\t{folded}", hosts.join(" ")), printed, "{set}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "[a-c0-9,!&^/\\[\\]-]{0,20}") {
            let _ = evaluate(&text);
        }

        #[test]
        fn folding_keeps_the_hosts(
            hosts in prop::collection::btree_set("[ab]{0,1}(n[0-9]{1,3}){0,2}[xy]{1,2}[0-9]{0,2}", 1..40)
        ) {
            let set = fold(hosts.iter().map(String::as_str));
            let found: BTreeSet<String> = evaluate(&set).unwrap().into_iter().collect();
            prop_assert_eq!(found, hosts, "{}", set);
        }
    }
}
