//! From the configuration to [`super::Limits`]: what comes as a list or a map.

use std::collections::BTreeMap;

use pipkin_spec::resources as spec;

use super::{Block, BlockDevice, Hugepage, Max, Network, Rdma, Throttle, Unified, Weight};
use crate::Invalid;

/// Files of the unified hierarchy that say which processes are in the group and whether
/// they run: the runtime's own business.
const OWN_FILES: [&str; 5] = [
    "cgroup.procs",
    "cgroup.threads",
    "cgroup.kill",
    "cgroup.freeze",
    "cgroup.subtree_control",
];

pub(super) fn block(b: &spec::BlockIo) -> Result<Block, Invalid> {
    const AT: &str = "/linux/resources/blockIO";
    let mut devices = Vec::new();
    for (index, w) in b.weight_device.iter().enumerate() {
        let at = format!("{AT}/weightDevice/{index}");
        let entry = Weight {
            device: device(w.major, w.minor, &at)?,
            weight: weight(w.weight, || format!("{at}/weight"))?,
            leaf_weight: weight(w.leaf_weight, || format!("{at}/leafWeight"))?,
            index,
        };
        if entry.weight.is_some() || entry.leaf_weight.is_some() {
            devices.push(entry);
        }
    }
    let mut throttle = Vec::new();
    rates(
        &mut throttle,
        &b.throttle_read_bps_device,
        "throttleReadBpsDevice",
        |t| &mut t.read_bps,
    )?;
    rates(
        &mut throttle,
        &b.throttle_write_bps_device,
        "throttleWriteBpsDevice",
        |t| &mut t.write_bps,
    )?;
    rates(
        &mut throttle,
        &b.throttle_read_iops_device,
        "throttleReadIOPSDevice",
        |t| &mut t.read_iops,
    )?;
    rates(
        &mut throttle,
        &b.throttle_write_iops_device,
        "throttleWriteIOPSDevice",
        |t| &mut t.write_iops,
    )?;
    Ok(Block {
        weight: weight(b.weight, || format!("{AT}/weight"))?,
        leaf_weight: weight(b.leaf_weight, || format!("{AT}/leafWeight"))?,
        devices,
        throttle,
    })
}

/// 0 and absent: not set.
fn weight(value: Option<u16>, pointer: impl Fn() -> String) -> Result<Option<u16>, Invalid> {
    match value {
        None | Some(0) => Ok(None),
        Some(w @ 10..=1000) => Ok(Some(w)),
        Some(w) => Err(Invalid::new(pointer(), format!("{w} is not a weight"))
            .hint("10 to 1000; 0 is the same as absent")),
    }
}

fn device(major: i64, minor: i64, at: &str) -> Result<BlockDevice, Invalid> {
    let number = |n: i64, name: &str| {
        u32::try_from(n).map_err(|_| {
            Invalid::new(
                format!("{at}/{name}"),
                format!("{n} is not a device number"),
            )
            .hint("the number of one block device; there are no wildcards here")
        })
    };
    Ok(BlockDevice {
        major: number(major, "major")?,
        minor: number(minor, "minor")?,
    })
}

/// Adds one list of rates; a rate of 0 is no limit, as in v1 files. The later of two
/// entries of one device holds, as when written one after the other.
fn rates(
    all: &mut Vec<Throttle>,
    list: &[spec::ThrottleDevice],
    name: &str,
    field: fn(&mut Throttle) -> &mut Option<(Max, String)>,
) -> Result<(), Invalid> {
    for (index, entry) in list.iter().enumerate() {
        let at = format!("/linux/resources/blockIO/{name}/{index}");
        let device = device(entry.major, entry.minor, &at)?;
        let rate = match entry.rate {
            0 => Max::Unlimited,
            n => Max::At(n),
        };
        let value = Some((rate, format!("{at}/rate")));
        match all.iter_mut().find(|t| t.device == device) {
            Some(throttle) => *field(throttle) = value,
            None => {
                let mut throttle = Throttle {
                    device,
                    read_bps: None,
                    write_bps: None,
                    read_iops: None,
                    write_iops: None,
                };
                *field(&mut throttle) = value;
                all.push(throttle);
            }
        }
    }
    Ok(())
}

pub(super) fn hugepages(list: &[spec::HugepageLimit]) -> Result<Vec<Hugepage>, Invalid> {
    list.iter()
        .enumerate()
        .map(|(index, entry)| {
            if !is_page_size(&entry.page_size) {
                return Err(Invalid::new(
                    format!("/linux/resources/hugepageLimits/{index}/pageSize"),
                    format!("{:?} is not a page size", entry.page_size),
                )
                .hint("a number and KB, MB or GB, as the kernel names them: 2MB, 1GB"));
            }
            Ok(Hugepage {
                page_size: entry.page_size.clone(),
                limit: entry.limit,
                index,
            })
        })
        .collect()
}

fn is_page_size(text: &str) -> bool {
    let number = ["KB", "MB", "GB"]
        .iter()
        .find_map(|unit| text.strip_suffix(unit));
    number.is_some_and(|n| {
        (1..=4).contains(&n.len()) && !n.starts_with('0') && n.bytes().all(|b| b.is_ascii_digit())
    })
}

pub(super) fn network(n: &spec::Network) -> Result<Network, Invalid> {
    let mut priorities = Vec::new();
    for (index, entry) in n.priorities.iter().enumerate() {
        if !is_word(&entry.name) {
            return Err(Invalid::new(
                format!("/linux/resources/network/priorities/{index}/name"),
                format!("{:?} is not a network interface's name", entry.name),
            )
            .hint("a name without white space or slashes"));
        }
        priorities.push((entry.name.clone(), entry.priority));
    }
    Ok(Network {
        class_id: n.class_id.filter(|id| *id != 0),
        priorities,
    })
}

pub(super) fn rdma(map: &BTreeMap<String, spec::Rdma>) -> Result<Vec<Rdma>, Invalid> {
    let mut all = Vec::new();
    for (name, limits) in map {
        let at = || format!("/linux/resources/rdma/{}", escape(name));
        if !is_word(name) {
            return Err(
                Invalid::new(at(), format!("{name:?} is not a device's name"))
                    .hint("a name without white space or slashes, such as mlx5_0"),
            );
        }
        if limits.hca_handles.is_none() && limits.hca_objects.is_none() {
            return Err(
                Invalid::new(at(), "no limit is given").hint("hcaHandles, hcaObjects or both")
            );
        }
        all.push(Rdma {
            device: name.clone(),
            handles: limits.hca_handles,
            objects: limits.hca_objects,
        });
    }
    Ok(all)
}

pub(super) fn unified(map: &BTreeMap<String, String>) -> Result<Vec<Unified>, Invalid> {
    let mut all = Vec::new();
    for (file, value) in map {
        let wrong = |message: String, hint: &str| {
            let at = format!("/linux/resources/unified/{}", escape(file));
            Err(Invalid::new(at, message).hint(hint))
        };
        if file.is_empty() || file.contains(['/', '\0']) || file.starts_with('.') {
            return wrong(
                format!("{file:?} is not the name of a file in a cgroup"),
                "a name such as memory.high, without slashes",
            );
        }
        if !file.contains('.') {
            return wrong(
                format!("{file:?} names no controller"),
                "the controller, a dot and the rest: memory.high",
            );
        }
        if OWN_FILES.contains(&file.as_str()) {
            return wrong(
                format!("{file} says which processes are in the group or whether they run"),
                "the runtime writes this file itself; leave it out",
            );
        }
        if value.contains('\0') {
            return wrong("the text holds a NUL character".to_owned(), "remove it");
        }
        all.push(Unified {
            file: file.clone(),
            value: value.trim().to_owned(),
        });
    }
    Ok(all)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '/' || c.is_control())
}

/// A member's name inside a JSON pointer (RFC 6901).
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
