//! The cloud of this machine, if it is an instance, and its metadata.
//!
//! The firmware's tables (DMI) name the cloud. The metadata service is only queried if they do: other hosts send
//! nothing.

use std::time::{Duration, Instant};

use record::Cloud;
use serde_json::Value;
use ureq::Agent;

use crate::root::{Root, attribute};

/// Address of the metadata service of AWS, Google Cloud and Azure, which is link-local. A number, to save the time of
/// a name lookup.
pub const LINK_LOCAL: &str = "http://169.254.169.254";

/// Maximum total wait for the metadata service, over all requests.
pub const LIMIT: Duration = Duration::from_millis(200);

/// Maximum length of an answer; a longer one is invalid. The longest valid one, AWS's identity document, has about 500
/// bytes.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// A cloud whose instances are recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Amazon EC2.
    Aws,
    /// Google Compute Engine.
    Gcp,
    /// Microsoft Azure.
    Azure,
}

impl Provider {
    /// The name in the record of a run.
    pub const fn name(self) -> &'static str {
        match self {
            Provider::Aws => "aws",
            Provider::Gcp => "gcp",
            Provider::Azure => "azure",
        }
    }
}

/// The cloud that the firmware names; `None` without one.
///
/// EC2: "Amazon EC2" as vendor of the system (Nitro) or the firmware, or, on Xen, an id that begins
/// with `ec2` or firmware that is called amazon (EC2 User Guide, "Determine whether your instance is
/// an EC2 instance"). Google: the product is "Google Compute Engine" (Compute Engine, "Detect if a
/// VM is running in Compute Engine"). Azure: a fixed chassis asset tag, since the vendor is the
/// same on any Hyper-V (systemd, src/basic/virt.c; cloud-init, DataSourceAzure).
pub fn provider(root: &Root) -> Option<Provider> {
    let dmi = |name: &str| attribute(&root.sys.join("class/dmi/id").join(name)).unwrap_or_default();
    let xen_id = attribute(&root.sys.join("hypervisor/uuid")).unwrap_or_default();
    let is_ec2_id = |id: &str| id.get(..3).is_some_and(|at| at.eq_ignore_ascii_case("ec2"));

    if dmi("sys_vendor") == "Amazon EC2"
        || dmi("bios_vendor") == "Amazon EC2"
        || dmi("bios_version").to_ascii_lowercase().contains("amazon")
        || is_ec2_id(&xen_id)
    {
        Some(Provider::Aws)
    } else if dmi("product_name") == "Google Compute Engine" {
        Some(Provider::Gcp)
    } else if dmi("chassis_asset_tag") == "7783-7084-3265-9085-8269-3286-77" {
        Some(Provider::Azure)
    } else {
        None
    }
}

/// Facts about the instance: from the metadata service of the cloud that the firmware names, within [`LIMIT`], or, if
/// it does not answer, from the firmware. `None` on a host that is not a known cloud's instance.
///
/// A metadata service is often unreachable from a container: EC2's answers have a hop limit of one unless the instance
/// is configured otherwise.
pub fn detect(root: &Root) -> Option<Cloud> {
    detect_at(root, LINK_LOCAL, LIMIT)
}

/// [`detect`] with another address of the metadata service and another limit.
pub fn detect_at(root: &Root, base: &str, limit: Duration) -> Option<Cloud> {
    let provider = provider(root)?;
    ask(provider, base, limit).or_else(|| Some(from_firmware(root, provider)))
}

/// Facts about the instance from the firmware. EC2's Nitro has the type as the product's name and the
/// instance's id as the board's asset tag.
fn from_firmware(root: &Root, provider: Provider) -> Cloud {
    let dmi = |name: &str| attribute(&root.sys.join("class/dmi/id").join(name)).and_then(word);
    let is_nitro = provider == Provider::Aws;
    Cloud {
        provider: provider.name().to_owned(),
        instance_type: dmi("product_name").filter(|name| is_nitro && name.contains('.')),
        zone: None,
        instance_id: dmi("board_asset_tag").filter(|tag| is_nitro && tag.starts_with("i-")),
    }
}

/// Facts about the instance from the metadata service at `base`. `None` if it does not answer within `limit`, refuses,
/// or gives an unexpected answer.
pub fn ask(provider: Provider, base: &str, limit: Duration) -> Option<Cloud> {
    let service = Service::new(base, limit);
    let cloud = match provider {
        Provider::Aws => aws(&service),
        Provider::Gcp => gcp(&service),
        Provider::Azure => azure(&service),
    }?;
    let says_something =
        cloud.instance_type.is_some() || cloud.zone.is_some() || cloud.instance_id.is_some();
    says_something.then_some(cloud)
}

/// The identity document has everything in one answer. Version 2 of the service requires a token, which version 1 does
/// not know (EC2 User Guide, "Use the Instance Metadata Service" and "Instance identity documents").
fn aws(service: &Service) -> Option<Cloud> {
    const TOKEN: &str = "/latest/api/token";
    const DOCUMENT: &str = "/latest/dynamic/instance-identity/document";

    let token = service.put(TOKEN, ("X-aws-ec2-metadata-token-ttl-seconds", "60"))?;
    let answer = match token {
        MetadataReply::Text(token) => {
            let token = token.trim();
            service.get(DOCUMENT, Some(("X-aws-ec2-metadata-token", token)))?
        }
        MetadataReply::Refused => service.get(DOCUMENT, None)?,
    };
    let document = answer.json()?;
    Some(Cloud {
        provider: Provider::Aws.name().to_owned(),
        instance_type: text(&document, "instanceType"),
        zone: text(&document, "availabilityZone"),
        instance_id: text(&document, "instanceId"),
    })
}

/// Three small requests, since the one with everything includes the start-up scripts and any secrets in them. Type and
/// zone are the last part of a path (Compute Engine, "Predefined VM metadata keys").
fn gcp(service: &Service) -> Option<Cloud> {
    let ask = |what: &str| {
        let path = format!("/computeMetadata/v1/instance/{what}");
        let answer = service.get(&path, Some(("Metadata-Flavor", "Google")))?;
        Some(answer.text().and_then(|text| {
            let last = text.trim().rsplit('/').next()?;
            word(last.to_owned())
        }))
    };
    Some(Cloud {
        provider: Provider::Gcp.name().to_owned(),
        instance_type: ask("machine-type")?,
        zone: ask("zone")?,
        instance_id: ask("id")?,
    })
}

/// Only the compute part, in a version of 2021 (Azure, "Azure Instance Metadata Service"). A zone is a number within
/// the region; without a zone the region is used.
fn azure(service: &Service) -> Option<Cloud> {
    let path = "/metadata/instance/compute?api-version=2021-02-01&format=json";
    let answer = service.get(path, Some(("Metadata", "true")))?.json()?;
    let zone = match (text(&answer, "location"), text(&answer, "zone")) {
        (Some(region), Some(number)) => Some(format!("{region}-{number}")),
        (region, _) => region,
    };
    Some(Cloud {
        provider: Provider::Azure.name().to_owned(),
        instance_type: text(&answer, "vmSize"),
        zone,
        instance_id: text(&answer, "vmId"),
    })
}

fn text(object: &Value, key: &str) -> Option<String> {
    word(object.get(key)?.as_str()?.to_owned())
}

/// A name or id in the form that clouds use; `None` for anything else, such as the page of a captive portal.
fn word(text: String) -> Option<String> {
    let fits = (1..=128).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    fits.then_some(text)
}

/// An answer of the metadata service.
enum MetadataReply {
    /// Status 200.
    Text(String),
    /// A status of 400 to 499.
    Refused,
}

impl MetadataReply {
    fn text(self) -> Option<String> {
        match self {
            MetadataReply::Text(text) => Some(text),
            MetadataReply::Refused => None,
        }
    }

    fn json(self) -> Option<Value> {
        serde_json::from_str(&self.text()?).ok()
    }
}

/// The metadata service, and the deadline.
struct Service<'a> {
    agent: Agent,
    base: &'a str,
    deadline: Instant,
}

impl<'a> Service<'a> {
    fn new(base: &'a str, limit: Duration) -> Service<'a> {
        let config = Agent::config_builder()
            // A proxy from the environment would return its own host's metadata.
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .build();
        Service {
            agent: config.new_agent(),
            base,
            deadline: Instant::now() + limit,
        }
    }

    /// The time until the deadline; `None` after it, so that no further connection is tried.
    fn left(&self) -> Option<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    fn get(&self, path: &str, header: Option<(&str, &str)>) -> Option<MetadataReply> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(Some(self.left()?)).build();
        read(request.call().ok()?)
    }

    fn put(&self, path: &str, (name, value): (&str, &str)) -> Option<MetadataReply> {
        let request = self.agent.put(format!("{}{path}", self.base));
        let request = request.header(name, value).config();
        let request = request.timeout_global(Some(self.left()?)).build();
        read(request.send_empty().ok()?)
    }
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> Option<MetadataReply> {
    match response.status().as_u16() {
        200 => {
            let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES);
            Some(MetadataReply::Text(body.read_to_string().ok()?))
        }
        400..=499 => Some(MetadataReply::Refused),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
