//! Prices of volumes, from a text file of the user with a field in each line and `#` before comments:
//!
//! ```text
//! # Eight volumes of 6,000 IOPS each; 3,000 of them and 125 MiB/s are in the price.
//! currency     USD
//! gib-month    0.08
//! iops         6000
//! iops-free    3000
//! iops-month   0.005
//! mibps        250
//! mibps-free   125
//! mibps-month  0.04
//! ```
//!
//! | field | meaning |
//! | --- | --- |
//! | `type` | a volume type of the table, such as `gp3`, whose prices stand where the file gives none |
//! | `currency` | the word behind a price; `$` where it is missing |
//! | `gib-month` | a GiB for a month |
//! | `volume-month` | a volume for a month, whatever its size |
//! | `iops` | IOPS provisioned on each volume |
//! | `iops-free` | how many of these are in the price of the volume |
//! | `iops-month` | one IOPS beyond them for a month |
//! | `mibps`, `mibps-free`, `mibps-month` | the same for MiB a second |
//! | `million-io` | a million I/O on the volumes |
//! | `io-month` | how many million I/O a month the database is expected to make |
//! | `write-share` | the share of these that write, 0 to 1; 0.3 where it is missing, as in `page-mixed` |

use domain::volume_type::{TABLE, VolumeType};
use record::Bytes;
use serde::{Deserialize, Serialize};

use super::layout::Layout;

/// The share of writes of the suite's phase `page-mixed`.
const WRITE_SHARE: f64 = 0.3;

/// The prices of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Prices {
    /// Currency, shown after a price.
    pub currency: Option<String>,
    /// Price of a GiB for a month.
    pub gib_month: f64,
    /// Price of a volume for a month, whatever its size.
    pub volume_month: f64,
    /// Price of provisioned IOPS on each volume.
    pub iops: Provisioned,
    /// Price of provisioned MiB a second on each volume.
    pub mibps: Provisioned,
    /// Price of a million I/O on the volumes.
    pub million_io: f64,
    /// Expected I/O of the application, in millions a month.
    pub io_month: Option<f64>,
    /// The share of writes in it, 0 to 1.
    pub write_share: Option<f64>,
}

/// A provisioned rate of each volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Provisioned {
    /// Provisioned rate of each volume.
    pub rate: Option<f64>,
    /// Rate included in the price of the volume.
    pub free: f64,
    /// Price of each further unit for a month.
    pub month: f64,
}

/// Cost of a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    /// Cost of a month, in the currency of the prices.
    pub per_month: f64,
    /// The objective's rate divided by the cost of a month; `None` if the objective is not a rate.
    pub rate_per_dollar: Option<f64>,
}

impl Provisioned {
    fn per_month(self) -> f64 {
        (self.rate.unwrap_or(0.0) - self.free).max(0.0) * self.month
    }
}

impl Prices {
    /// Parses a file's text; `file` is its name, for errors.
    ///
    /// # Errors
    /// A sentence with the file, the line and the field.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Prices, String> {
        let mut prices = Prices::default();
        let mut seen: Vec<&str> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(field) = words.next() else { continue };
            let error = |why: String| format!("{file}, line {}: {why}", at + 1);
            let (Some(value), None) = (words.next(), words.next()) else {
                return Err(error(format!(
                    "{field} takes one value; write a field and its value, as in 'gib-month 0.08'"
                )));
            };
            if seen.contains(&field) {
                return Err(error(format!(
                    "{field} is given twice; leave one of them out"
                )));
            }
            prices.set(field, value).map_err(error)?;
            seen.push(field);
        }
        if prices.priced() {
            Ok(prices)
        } else {
            Err(format!(
                "{file} names no price; write at least one, as in 'gib-month 0.08'"
            ))
        }
    }

    fn set(&mut self, field: &str, value: &str) -> Result<(), String> {
        if field == "currency" {
            self.currency = Some(value.to_owned());
            return Ok(());
        }
        if field == "type" {
            return self.set_type(value);
        }
        // An unknown field is reported before its value is parsed.
        let number = value.parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        let given = number.unwrap_or_default();
        match field {
            "gib-month" => self.gib_month = given,
            "volume-month" => self.volume_month = given,
            "iops" => self.iops.rate = Some(given),
            "iops-free" => self.iops.free = given,
            "iops-month" => self.iops.month = given,
            "mibps" => self.mibps.rate = Some(given),
            "mibps-free" => self.mibps.free = given,
            "mibps-month" => self.mibps.month = given,
            "million-io" => self.million_io = given,
            "io-month" => self.io_month = Some(given),
            "write-share" => self.write_share = Some(given),
            _ => {
                return Err(format!(
                    "there is no field '{field}'; the fields are type, currency, gib-month, \
                     volume-month, iops, iops-free, iops-month, mibps, mibps-free, mibps-month, \
                     million-io, io-month and write-share"
                ));
            }
        }
        match number {
            None => Err(format!(
                "{field}: '{value}' is not a number of zero or more; write it plainly, such as 0.08"
            )),
            Some(share) if field == "write-share" && share > 1.0 => Err(format!(
                "{field}: '{value}' is not a share from 0 to 1; write it as 0.3"
            )),
            Some(_) => Ok(()),
        }
    }

    /// Sets the prices of a volume type.
    fn set_type(&mut self, name: &str) -> Result<(), String> {
        let Some(sold) = VolumeType::named(name) else {
            let names: Vec<&str> = TABLE.iter().map(|sold| sold.name).collect();
            return Err(format!(
                "type: there is no volume type '{name}'; there are {}",
                names.join(", ")
            ));
        };
        let price = sold.price;
        if *self != Prices::default() {
            return Err(
                "type: put it before the other fields, which then replace its prices".to_owned(),
            );
        }
        // Of a tiered price only the first tier counts.
        let iops_month = price.iops_tiers.first().map_or(0.0, |tier| tier.month);
        *self = Prices {
            currency: Some(price.currency.to_owned()),
            gib_month: price.gib_month,
            iops: Provisioned {
                rate: Some(sold.provision.map_or(0.0, |limits| limits.least_iops)),
                free: price.iops_free,
                month: iops_month,
            },
            mibps: Provisioned {
                rate: Some(price.mibps_free),
                free: price.mibps_free,
                month: price.mibps_month,
            },
            ..Prices::default()
        };
        Ok(())
    }

    /// True if at least one price is given.
    fn priced(&self) -> bool {
        let each = [
            self.gib_month,
            self.volume_month,
            self.iops.month,
            self.mibps.month,
            self.million_io,
        ];
        each.iter().any(|price| *price > 0.0)
    }

    /// Costs that the prices leave out, as sentences.
    pub(crate) fn costs_left_out(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.million_io > 0.0 && self.io_month.is_none() {
            remarks.push(
                "The price of a million I/O is left out of the costs: the price file does not give \
                 the expected number a month, in millions, with io-month."
                    .to_owned(),
            );
        }
        for (name, rate) in [("iops", self.iops), ("mibps", self.mibps)] {
            if rate.month > 0.0 && rate.rate.is_none() {
                remarks.push(format!(
                    "The price of {name}-month is left out of the costs: the price file does not \
                     give with {name} how much is provisioned for each volume."
                ));
            }
        }
        remarks
    }

    /// Cost of a layout: of its members, which are the first of the volumes with these sizes, and of the I/O on them.
    /// `rate` is the objective's, if it is a rate.
    pub(crate) fn cost(&self, layout: &Layout, sizes: &[Bytes], rate: Option<f64>) -> Cost {
        let members = sizes.get(..layout.members).unwrap_or(sizes);
        let gib: f64 = members.iter().map(|size| size.0 as f64).sum::<f64>() / Bytes::GIB.0 as f64;
        let each = self.volume_month + self.iops.per_month() + self.mibps.per_month();
        let writes = self.write_share.unwrap_or(WRITE_SHARE);
        let asked = self.io_month.unwrap_or(0.0);
        let millions = asked * (1.0 - writes + writes * write_io(layout));
        let per_month =
            gib * self.gib_month + members.len() as f64 * each + millions * self.million_io;
        Cost {
            per_month,
            rate_per_dollar: rate
                .filter(|_| per_month > 0.0)
                .map(|rate| rate / per_month),
        }
    }
}

/// Number of I/O on the members for a small write.
pub(super) fn write_io(layout: &Layout) -> f64 {
    layout
        .level
        .map_or(1.0, |level| level.small_write_io(layout.members) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::filesystem::Fs;
    use domain::raid::Level;
    use proptest::prelude::*;

    const ALL: &str = "# gp3\ncurrency EUR\ngib-month 0.08 # each\n\nvolume-month 1\niops 6000\n\
        iops-free 3000\niops-month 0.005\nmibps 250\nmibps-free 125\nmibps-month 0.04\n\
        million-io 0.05\nio-month 1000\nwrite-share 0.5\n";

    fn layout(level: Option<Level>, members: usize) -> Layout {
        Layout {
            level,
            members,
            copies: None,
            chunk: None,
            fs: Fs::Xfs,
            scheduler: None,
        }
    }

    fn per_month(text: &str, level: Option<Level>, members: usize) -> f64 {
        let prices = Prices::parse("prices", text).unwrap();
        let sizes = [Bytes::gib(100); 8];
        prices.cost(&layout(level, members), &sizes, None).per_month
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} and {b}");
    }

    #[test]
    fn a_cost_is_the_sum_over_the_members() {
        // 100 GiB x 0.08 = 8; 3,000 IOPS x 0.005 = 15; 125 MiB/s x 0.04 = 5; 1 for the volume: 29.
        // 1,000 million I/O, half of them writes: 500 x 0.05 = 25 to read, and as much for each
        // I/O that a write becomes.
        near(per_month(ALL, None, 1), 29.0 + 25.0 + 25.0);
        near(per_month(ALL, Some(Level::Zero), 4), 4.0 * 29.0 + 50.0);
        near(
            per_month(ALL, Some(Level::One), 3),
            3.0 * 29.0 + 25.0 + 75.0,
        );
        near(
            per_month(ALL, Some(Level::Ten), 8),
            8.0 * 29.0 + 25.0 + 50.0,
        );
        near(
            per_month(ALL, Some(Level::Five), 4),
            4.0 * 29.0 + 25.0 + 100.0,
        );
        near(
            per_month(ALL, Some(Level::Six), 6),
            6.0 * 29.0 + 25.0 + 150.0,
        );
        near(per_month("gib-month 0.1", Some(Level::Ten), 4), 40.0);
    }

    #[test]
    fn with_few_members_md_reads_less_than_the_old_data_and_parity() {
        let of = |level, members| write_io(&layout(Some(level), members));
        assert_eq!(
            [3, 4, 5, 9].map(|n| of(Level::Five, n)),
            [3.0, 4.0, 4.0, 4.0]
        );
        assert_eq!(
            [4, 5, 6, 9].map(|n| of(Level::Six, n)),
            [4.0, 5.0, 6.0, 6.0]
        );
    }

    #[test]
    fn a_rate_is_divided_by_the_dollars() {
        let prices = Prices::parse("prices", "gib-month 0.1").unwrap();
        let cost = prices.cost(&layout(None, 1), &[Bytes::gib(50)], Some(1000.0));
        near(cost.rate_per_dollar.unwrap(), 200.0);
        let free = prices.cost(&layout(None, 1), &[], Some(1000.0));
        assert_eq!(free.rate_per_dollar, None);
    }

    #[test]
    fn a_type_gives_its_prices_and_the_file_replaces_them() {
        near(per_month("type gp3", None, 1), 8.0);
        near(per_month("type gp3\niops 4000\nmibps 130", None, 1), 13.2);
        near(
            per_month("type io1\niops 300\ngib-month 0.2", None, 1),
            39.5,
        );
        let parse = |text| Prices::parse("prices", text).unwrap_err();
        assert!(parse("type gp9").contains("no volume type 'gp9'"));
        assert!(parse("gib-month 1\ntype gp3").contains("before the other fields"));
    }

    #[test]
    fn costs_that_are_left_out_are_reported() {
        let remarks = |text| Prices::parse("prices", text).unwrap().costs_left_out();
        assert_eq!(remarks(ALL), Vec::<String>::new());
        assert!(remarks("million-io 0.05")[0].contains("io-month"));
        assert!(remarks("iops-month 0.005")[0].contains("iops-month"));
        near(per_month("million-io 0.05\ngib-month 0.1", None, 1), 10.0);
        // If less is provisioned than is included in the price, nothing is refunded.
        near(
            per_month(
                "gib-month 0.1\niops 100\niops-free 3000\niops-month 1",
                None,
                1,
            ),
            10.0,
        );
    }

    #[test]
    fn an_error_names_the_file_the_line_and_the_field() {
        for (text, expected) in [
            (
                "gib-month 0.08\ngib 5",
                "prices, line 2: there is no field 'gib'",
            ),
            ("gib-month", "prices, line 1: gib-month takes one value"),
            (
                "gib-month 0.08 USD",
                "prices, line 1: gib-month takes one value",
            ),
            ("#\ngib-month -1", "prices, line 2: gib-month: '-1'"),
            ("gib-month inf", "prices, line 1: gib-month: 'inf'"),
            ("write-share 2", "prices, line 1: write-share: '2'"),
            ("iops 1\niops 2", "prices, line 2: iops is given twice"),
            ("# nothing\niops 5", "prices names no price"),
        ] {
            let error = Prices::parse("prices", text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_any_text_does_not_panic(text in "([a-z-]{0,8}|gib-month|iops)[ \n#]?[0-9.e-]{0,4}.{0,20}") {
            let _ = Prices::parse("prices", &text);
        }
    }
}
