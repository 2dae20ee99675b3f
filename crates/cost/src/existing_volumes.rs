//! The argument of `--have`: volumes that are paid for now.

use std::str::FromStr;

use domain::values::Size;
use record::Bytes;

/// Volumes that are paid for now.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedVolumes {
    pub(crate) name: String,
    pub(crate) gib: u64,
    pub(crate) iops: Option<f64>,
    pub(crate) mibps: Option<f64>,
    pub(crate) count: u32,
}

impl FromStr for OwnedVolumes {
    type Err = String;

    fn from_str(text: &str) -> Result<OwnedVolumes, String> {
        let wrong = || {
            format!(
                "'{text}' is not a list of volumes; write TYPE,SIZE[,IOPS[,MIBPS[,COUNT]]], as in \
                 gp3,500GiB,6000,250,2"
            )
        };
        let mut words = text.split(',').map(str::trim);
        let name = words
            .next()
            .filter(|name| !name.is_empty())
            .ok_or_else(wrong)?;
        let size: Size = words.next().ok_or_else(wrong)?.parse()?;
        let mut number = || -> Result<Option<f64>, String> {
            let Some(word) = words.next() else {
                return Ok(None);
            };
            let value = word
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite() && *value > 0.0);
            value.map(Some).ok_or_else(wrong)
        };
        let (iops, mibps, count) = (number()?, number()?, number()?.unwrap_or(1.0));
        if words.next().is_some() || count.fract() != 0.0 || count > 128.0 {
            return Err(wrong());
        }
        Ok(OwnedVolumes {
            name: name.to_owned(),
            gib: size.0.0.div_ceil(Bytes::GIB.0),
            iops,
            mibps,
            count: count as u32,
        })
    }
}
