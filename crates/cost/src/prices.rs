//! Prices and limits from the user's own file, TOML (`[[volume]]` tables) or CSV (a line of keys, then a volume a
//! line).
//!
//! `region`, `type`, `as_of`, `source`, `currency` and `gib_month` are required; [`KEYS`] has the optional keys too.
//! For a volume type of the built-in table, limits that the file does not give are those of the table.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use domain::price::PriceTier;
use domain::volume_type::{BaselineIops, BaselineThroughput, Provision};
use jiff::civil::Date;
use record::{Bytes, Nanos};
use serde::Deserialize;

use crate::offer::{Offer, table};

/// Keys of a volume in a file of prices.
const KEYS: [&str; 19] = [
    "region",
    "type",
    "as_of",
    "source",
    "currency",
    "gib_month",
    "iops_free",
    "iops_month",
    "mibps_free",
    "mibps_month",
    "least_gib",
    "most_gib",
    "least_iops",
    "most_iops",
    "iops_per_gib",
    "most_mibps",
    "mibps_per_iops",
    "merge_kib",
    "latency_us",
];

type Row = BTreeMap<String, String>;

/// The offers of a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Offer>> {
    let text =
        fs::read_to_string(path).map_err(|error| anyhow!(linux::remedy::unread(path, &error)))?;
    let is_csv = path
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    parse(&text, is_csv).with_context(|| format!("the price file {}", path.display()))
}

fn parse(text: &str, is_csv: bool) -> anyhow::Result<Vec<Offer>> {
    let rows = match is_csv {
        true => csv(text)?,
        false => toml(text)?,
    };
    if rows.is_empty() {
        bail!(
            "it has no volume; write a [[volume]] with at least type, region, as_of, source, currency and gib_month"
        );
    }
    let known = table();
    let mut offers = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let named = row.get("type").map_or("", String::as_str);
        let offer = offer(row, &known).with_context(|| format!("volume {} ({named})", at + 1))?;
        offers.push(offer);
    }
    Ok(offers)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    volume: Vec<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Whole(i64),
    Number(f64),
}

fn toml(text: &str) -> anyhow::Result<Vec<Row>> {
    let document: Document = basic_toml::from_str(text)?;
    let text = |value: Value| match value {
        Value::Text(text) => text,
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
    };
    let row = |table: BTreeMap<String, Value>| {
        table
            .into_iter()
            .map(|(key, value)| (key, text(value)))
            .collect()
    };
    Ok(document.volume.into_iter().map(row).collect())
}

fn csv(text: &str) -> anyhow::Result<Vec<Row>> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let Some((_, keys)) = lines.next() else {
        return Ok(Vec::new());
    };
    let keys: Vec<&str> = keys.split(',').map(str::trim).collect();
    let mut rows = Vec::new();
    for (at, line) in lines {
        if line.contains('"') {
            bail!(
                "line {}: quotes are not read; leave commas out of values",
                at + 1
            );
        }
        let values: Vec<&str> = line.split(',').map(str::trim).collect();
        if values.len() != keys.len() {
            bail!(
                "line {} has {} values, and the first line {} keys",
                at + 1,
                values.len(),
                keys.len()
            );
        }
        let pairs = keys
            .iter()
            .zip(values)
            .filter(|(_, value)| !value.is_empty());
        rows.push(
            pairs
                .map(|(key, value)| ((*key).to_owned(), value.to_owned()))
                .collect(),
        );
    }
    Ok(rows)
}

fn offer(row: &Row, known: &[Offer]) -> anyhow::Result<Offer> {
    if let Some(key) = row.keys().find(|key| !KEYS.contains(&key.as_str())) {
        bail!("there is no key '{key}'; the keys are {}", KEYS.join(", "));
    }
    let text = |key: &str| {
        row.get(key)
            .cloned()
            .ok_or_else(|| anyhow!("{key} is missing"))
    };
    let number = |key: &str| -> anyhow::Result<Option<f64>> {
        let Some(text) = row.get(key) else {
            return Ok(None);
        };
        let value = text
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite() && *value >= 0.0);
        value
            .map(Some)
            .ok_or_else(|| anyhow!("{key}: '{text}' is not a number of zero or more"))
    };
    let name = text("type")?;
    let as_of = text("as_of")?;
    as_of
        .parse::<Date>()
        .map_err(|_| anyhow!("as_of: '{as_of}' is not a date such as 2026-11-01"))?;
    let like = known.iter().find(|offer| offer.name == name);
    let need = |key: &str, of_known: Option<f64>| {
        number(key)?
            .or(of_known)
            .ok_or_else(|| anyhow!("{key} is missing, and '{name}' is no type of the table"))
    };
    let limits = like.and_then(|offer| offer.provision);
    let is_fixed = like.is_some() && limits.is_none();
    let mib = Bytes::mib(1).0 as f64;
    let least_iops = number("least_iops")?.or(limits.map(|it| it.least_iops));
    let iops_free = number("iops_free")?
        .or(like.map(|offer| offer.iops_free))
        .unwrap_or(0.0);
    let mibps_free = number("mibps_free")?
        .or(like.map(|offer| offer.mibps_free))
        .unwrap_or(0.0);
    let provision = match is_fixed {
        true => None,
        false => Some(Provision {
            least_iops: least_iops.unwrap_or(iops_free),
            most_iops: need("most_iops", limits.map(|it| it.most_iops))?,
            iops_per_gib: need("iops_per_gib", limits.map(|it| it.iops_per_gib))?,
            throughput: match (number("most_mibps")?, number("mibps_per_iops")?) {
                (Some(most), Some(each)) if each > 0.0 => {
                    Some((Bytes((most * mib) as u64), Bytes((each * mib) as u64)))
                }
                (None, None) if like.is_some() => limits.and_then(|it| it.throughput),
                _ => bail!("most_mibps and mibps_per_iops are needed, and above zero"),
            },
        }),
    };
    let (iops, throughput) = match like {
        Some(offer) => (offer.iops, offer.throughput),
        None => (
            BaselineIops {
                per_gib: 0.0,
                least: iops_free,
                most: iops_free,
            },
            BaselineThroughput::Constant(Bytes((mibps_free * mib) as u64)),
        ),
    };
    Ok(Offer {
        region: text("region")?,
        currency: text("currency")?,
        source: text("source")?,
        iops,
        throughput,
        provision,
        least_gib: need("least_gib", like.map(|offer| offer.least_gib as f64))?.max(1.0) as u64,
        most_gib: need("most_gib", like.map(|offer| offer.most_gib as f64))? as u64,
        merge: match number("merge_kib")? {
            Some(kib) => Bytes::kib(kib.max(1.0) as u64),
            None => like.map_or(Bytes::kib(256), |offer| offer.merge),
        },
        latency: match number("latency_us")? {
            Some(us) => Some(Nanos((us * 1e3) as u64)),
            None => like.and_then(|offer| offer.latency),
        },
        gib_month: number("gib_month")?.context("gib_month is missing")?,
        iops_free,
        iops_tiers: match row.get("iops_month") {
            Some(text) => tiers(text)?,
            None => Vec::new(),
        },
        mibps_free,
        mibps_month: number("mibps_month")?.unwrap_or(0.0),
        name,
        as_of,
    })
}

/// Price tiers from text such as `0.065 to 32000; 0.046 to 64000; 0.032`, or from a single number.
fn tiers(text: &str) -> anyhow::Result<Vec<PriceTier>> {
    let wrong = || {
        anyhow!(
            "iops_month: '{text}' is no price; write it as 0.005, or as '0.065 to 32000; 0.032'"
        )
    };
    let number = |text: &str| {
        text.trim()
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite() && *value >= 0.0)
    };
    let mut tiers: Vec<PriceTier> = Vec::new();
    let steps: Vec<&str> = text.split(';').collect();
    for (at, step) in steps.iter().enumerate() {
        let (month, up_to) = match step.split_once(" to ") {
            Some((month, up_to)) => (number(month), number(up_to)),
            None if at + 1 == steps.len() => (number(step), Some(f64::INFINITY)),
            None => return Err(wrong()),
        };
        let (Some(month), Some(up_to)) = (month, up_to) else {
            return Err(wrong());
        };
        if tiers.last().is_some_and(|before| before.up_to >= up_to) {
            return Err(wrong());
        }
        tiers.push(PriceTier { up_to, month });
    }
    Ok(tiers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offer::OfferedVolume;

    const AZURE: &str = include_str!("../../../docs/prices/azure-premium-ssd-v2.toml");
    const HYPERDISK: &str = include_str!("../../../docs/prices/gcp-hyperdisk.csv");

    #[test]
    fn the_examples_of_the_manual_are_read() {
        let azure = &parse(AZURE, false).unwrap()[0];
        // 3,000 IOPS and 125 MB/s are free; 500 IOPS for each GiB, at most 80,000.
        assert_eq!(azure.most_iops(10), 5_000.0);
        assert_eq!(azure.most_iops(160), 80_000.0);
        let small = azure.provisioned(100, 3_000.0, 100.0).unwrap();
        assert!((azure.month(&small) - 100.0 * azure.gib_month).abs() < 1e-9);
        let large = azure.provisioned(160, 80_000.0, 1_000.0).unwrap();
        let more =
            77_000.0 * azure.iops_tiers[0].month + (1_000.0 - azure.mibps_free) * azure.mibps_month;
        assert!((azure.month(&large) - 160.0 * azure.gib_month - more).abs() < 1e-9);
        let gcp = &parse(HYPERDISK, true).unwrap()[0];
        assert_eq!(
            (gcp.name.as_str(), gcp.iops_free, gcp.mibps_free),
            ("hyperdisk-balanced", 3_000.0, 140.0)
        );
    }

    /// Sums of infracost's compute_disk_test.golden and managed_disk_test.golden, which come from the providers' own
    /// prices.
    #[test]
    fn prices_of_other_clouds_are_those_of_worked_examples() {
        let text = "type,region,as_of,source,currency,gib_month,iops_month,mibps_month,least_gib,most_gib,most_iops,iops_per_gib,most_mibps,mibps_per_iops\n\
                    hyperdisk-extreme,x,2026-11-01,golden,USD,0.125,0.032,,1,65536,350000,1000,5000,0.25\n\
                    pd-extreme,x,2026-11-01,golden,USD,0.125,0.065,,1,65536,120000,1000,5000,0.25\n\
                    ultra,x,2026-11-01,golden,USD,0.11972,0.04964,0.3495,1,65536,400000,300,10000,0.25\n";
        let offers = parse(text, true).unwrap();
        for (at, gib, iops, mibps, month) in [
            (0, 1_000, 350_000.0, 0.0, 125.0 + 11_200.0),
            (0, 128, 20_000.0, 0.0, 16.0 + 640.0),
            (1, 1_000, 100_000.0, 0.0, 125.0 + 6_500.0),
            (1, 40, 5_000.0, 0.0, 5.0 + 325.0),
            (2, 2_048, 4_000.0, 20.0, 245.19 + 198.56 + 6.99),
        ] {
            let volume = OfferedVolume { gib, iops, mibps };
            let got = offers[at].month(&volume);
            assert!((got - month).abs() < 0.01, "{}: {got}", offers[at].name);
        }
    }

    #[test]
    fn a_type_of_the_table_keeps_its_limits() {
        let text = "type,region,as_of,source,currency,gib_month,iops_month,mibps_month\n\
                    io2,eu-west-1,2026-11-01,bill,EUR,0.2,0.1 to 32000; 0.05,\n";
        let io2 = &parse(text, true).unwrap()[0];
        assert_eq!((io2.most_iops(4), io2.iops_tiers.len()), (4_000.0, 2));
        let volume = io2.provisioned(100, 40_000.0, 1.0).unwrap();
        assert!((io2.month(&volume) - (20.0 + 3_200.0 + 400.0)).abs() < 1e-9);
    }

    #[test]
    fn an_error_says_what_is_wrong_where() {
        let head = "[[volume]]\ntype = \"gp3\"\nregion = \"x\"\nas_of = \"2026-01-01\"\nsource = \"y\"\ncurrency = \"USD\"\n";
        for (text, csv, why) in [
            (head.to_owned(), false, "gib_month is missing"),
            (
                format!("{head}gib_month = -1\n"),
                false,
                "'-1' is not a number",
            ),
            (
                format!("{head}gib_month = 1\nbogus = 1\n"),
                false,
                "there is no key 'bogus'",
            ),
            (
                format!("{head}gib_month = 1\niops_month = \"1; 2\"\n"),
                false,
                "iops_month: '1; 2'",
            ),
            (
                head.replace("gp3", "zz") + "gib_month = 1\n",
                false,
                "most_iops is missing",
            ),
            (
                head.replace("2026-01-01", "lately"),
                false,
                "'lately' is not a date",
            ),
            ("volume = 3".to_owned(), false, "volume"),
            ("# nothing\n".to_owned(), true, "it has no volume"),
            ("type,region\ngp3\n".to_owned(), true, "line 2 has 1 values"),
        ] {
            let error = format!("{:#}", parse(&text, csv).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }
}
