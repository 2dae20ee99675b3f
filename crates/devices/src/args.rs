//! The arguments of `devices`.

use clap::Args;

/// Arguments of `devices`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith devices
  disksmith devices --ec2")]
pub struct DevicesArgs {
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Also list loop and RAM devices that are not in use
    #[arg(long)]
    pub all: bool,
    /// Also show the EBS volumes behind the disks, as 'aws ec2 describe-volumes' has them: type, provisioned IOPS and
    /// throughput, tags
    #[arg(long)]
    pub ec2: bool,
}
