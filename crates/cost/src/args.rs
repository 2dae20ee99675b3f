//! The arguments of `cost`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::existing_volumes::OwnedVolumes;
use domain::values::{Latency, Size};

/// Arguments of `cost`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith cost --workload last --phase page-mixed --size 500GiB
  disksmith cost --workload 3 --device nvme1n1 --size 2TiB --p99 5ms --instance r6i.2xlarge
  disksmith cost --workload 3 --size 1TiB --have gp3,1TiB,16000,1000
  disksmith cost --workload day.dst --device nvme1n1 --size 1TiB
  disksmith cost --workload last --size 1TiB --prices azure.toml --region eastus

Exit status 1 says that no volume type carries the workload.")]
pub struct CostArgs {
    /// The workload: a run ('last', 'last~1', an id), a recording of 'watch --record' by its number, or the
    /// file of a trace
    #[arg(long, value_name = "RUN|RECORDING|TRACE")]
    pub workload: String,
    /// Of a run: the phase that is the workload
    #[arg(long)]
    pub phase: Option<String>,
    /// Of a recording or trace: this device [default: all disks together]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Size of the data, which must fit
    #[arg(long, value_name = "SIZE", default_value = "100GiB")]
    pub size: Size,
    /// Latency target for 99 % of the I/O. With a recording, bursts may then wait this long
    #[arg(long, value_name = "DURATION")]
    pub p99: Option<Latency>,
    /// The instance whose limits apply
    #[arg(long, value_name = "TYPE")]
    pub instance: Option<String>,
    /// Output of 'aws ec2 describe-instance-types'; without it, aws is run
    #[arg(long, value_name = "FILE", requires = "instance")]
    pub instances: Option<PathBuf>,
    /// The region
    #[arg(long, default_value = "us-east-1")]
    pub region: String,
    /// Prices and limits from a file, TOML or CSV: they replace those of the same region and type
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Maximum number of volumes to stripe over
    #[arg(long, value_name = "COUNT", default_value = "8", value_parser = RangedU64ValueParser::<u32>::new().range(1..=128))]
    pub volumes: u32,
    /// Volumes that are paid for now, to find idle capacity: TYPE,SIZE[,IOPS[,MIBPS[,COUNT]]]
    #[arg(long, value_name = "VOLUMES")]
    pub have: Option<OwnedVolumes>,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}
