//! Limits of an instance to its EBS volumes, as `aws ec2 describe-instance-types` prints them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use linux::aws;
use serde::{Deserialize, Serialize};

use crate::workload::Demand;
use ui::exit::{ExitClass as _, Failure};
use ui::format::number;

/// Limits of an instance type for its EBS volumes (Amazon EC2 API Reference, EbsOptimizedInfo; a MB is 10^6 bytes).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct InstanceLimits {
    /// Instance type, such as `i4i.large`.
    #[serde(rename = "type")]
    pub(crate) name: String,
    /// IOPS that the instance sustains.
    pub(crate) baseline_iops: f64,
    /// Throughput that the instance sustains, in MB/s.
    pub(crate) baseline_mb_per_s: f64,
    /// IOPS in a burst.
    pub(crate) maximum_iops: f64,
    /// Throughput in a burst, in MB/s.
    pub(crate) maximum_mb_per_s: f64,
}

/// Instance types in one of three forms: the whole output of `aws`, the list that `--query InstanceTypes` prints, or a
/// map by name, as AWS ParallelCluster stores them.
#[derive(Deserialize)]
#[serde(untagged)]
enum TypesDocument {
    Whole {
        #[serde(rename = "InstanceTypes")]
        types: Vec<InstanceType>,
    },
    List(Vec<InstanceType>),
    ByName(BTreeMap<String, InstanceType>),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct InstanceType {
    instance_type: String,
    ebs_info: Option<EbsInfo>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EbsInfo {
    ebs_optimized_info: Option<EbsOptimizedInfo>,
}

#[derive(Deserialize)]
struct EbsOptimizedInfo {
    #[serde(rename = "BaselineIops")]
    baseline_iops: f64,
    #[serde(rename = "BaselineThroughputInMBps")]
    baseline_throughput: f64,
    #[serde(rename = "MaximumIops")]
    maximum_iops: f64,
    #[serde(rename = "MaximumThroughputInMBps")]
    maximum_throughput: f64,
}

impl InstanceLimits {
    /// The limits of a type, from a file or from the user's own `aws`.
    pub(crate) fn find(name: &str, file: Option<&Path>) -> Result<InstanceLimits, Failure> {
        let text = match file {
            Some(path) => fs::read_to_string(path)
                .map_err(|error| Failure::refused(linux::remedy::unread(path, &error)))?,
            None => {
                let program = aws::command(&["ec2", "describe-instance-types"])
                    .args(["--instance-types", name]);
                let answer = aws::run(&program).context(
                    "the limits of the instance are not known; give what 'aws ec2 \
                     describe-instance-types' printed with --instances FILE",
                );
                String::from_utf8_lossy(&answer.refused()?).into_owned()
            }
        };
        let origin = file.map_or("aws".to_owned(), |path| path.display().to_string());
        InstanceLimits::parse(name, &text)
            .map_err(|why| Failure::refused(format!("{origin}: {why}")))
    }

    fn parse(name: &str, text: &str) -> Result<InstanceLimits, String> {
        let answer: TypesDocument = serde_json::from_str(text).map_err(|why| {
            format!("it is not what 'aws ec2 describe-instance-types --output json' prints: {why}")
        })?;
        let types = match answer {
            TypesDocument::Whole { types } | TypesDocument::List(types) => types,
            TypesDocument::ByName(types) => types.into_values().collect(),
        };
        let found = types
            .into_iter()
            .find(|one| one.instance_type == name)
            .ok_or_else(|| format!("there is no instance type '{name}'"))?;
        let info = found.ebs_info.and_then(|info| info.ebs_optimized_info);
        let info = info.ok_or_else(|| format!("'{name}' has no EbsOptimizedInfo"))?;
        Ok(InstanceLimits {
            name: found.instance_type,
            baseline_iops: info.baseline_iops,
            baseline_mb_per_s: info.baseline_throughput,
            maximum_iops: info.maximum_iops,
            maximum_mb_per_s: info.maximum_throughput,
        })
    }

    /// Checks that the instance carries a demand.
    ///
    /// # Errors
    /// The limit that the demand exceeds, as a sentence.
    pub(crate) fn carry(&self, demand: Demand) -> Result<(), String> {
        let limits = [
            (demand.iops, self.baseline_iops, self.maximum_iops, "IOPS"),
            (
                demand.bytes_per_s / 1e6,
                self.baseline_mb_per_s,
                self.maximum_mb_per_s,
                "MB/s",
            ),
        ];
        for (needed, baseline, maximum, unit) in limits {
            if needed > maximum {
                return Err(format!(
                    "instance cap: {} {unit} are needed, and {} has at most {}",
                    number(needed),
                    self.name,
                    number(maximum)
                ));
            }
            if needed > baseline {
                return Err(format!(
                    "instance baseline: {} {unit} are needed, and {} sustains {}; {} only in a burst",
                    number(needed),
                    self.name,
                    number(baseline),
                    number(maximum)
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"InstanceTypes": [{"InstanceType": "a.large", "EbsInfo": {"EbsOptimizedInfo":
        {"BaselineBandwidthInMbps": 1150, "BaselineThroughputInMBps": 143.75, "BaselineIops": 6000,
         "MaximumBandwidthInMbps": 4750, "MaximumThroughputInMBps": 593.75, "MaximumIops": 20000}}},
        {"InstanceType": "old", "EbsInfo": {}}]}"#;

    #[test]
    fn limits_are_read_and_kept() {
        let limits = InstanceLimits::parse("a.large", ANSWER).unwrap();
        let of = |iops, mb: f64| {
            limits.carry(Demand {
                iops,
                bytes_per_s: mb * 1e6,
            })
        };
        assert_eq!(of(6_000.0, 143.0), Ok(()));
        assert!(
            of(6_001.0, 1.0)
                .unwrap_err()
                .starts_with("instance baseline: 6,001 IOPS")
        );
        assert!(
            of(20_001.0, 1.0)
                .unwrap_err()
                .starts_with("instance cap: 20,001 IOPS")
        );
        assert!(
            of(1.0, 600.0)
                .unwrap_err()
                .starts_with("instance cap: 600 MB/s")
        );
        let list = ANSWER
            .split_once(": ")
            .unwrap()
            .1
            .strip_suffix('}')
            .unwrap();
        let by_name = format!(
            r#"{{"a.large": {}}}"#,
            &list[1..list.find("},\n").unwrap() + 1]
        );
        for form in [list, &by_name] {
            assert_eq!(
                InstanceLimits::parse("a.large", form).unwrap(),
                limits,
                "{form}"
            );
        }
        for (name, text, why) in [
            ("b", ANSWER, "no instance type 'b'"),
            ("old", ANSWER, "no EbsOptimizedInfo"),
            ("b", "[]", "no instance type 'b'"),
            ("b", "[1]", "it is not what"),
        ] {
            assert!(InstanceLimits::parse(name, text).unwrap_err().contains(why));
        }
    }
}
