//! `linux.resources`: runtime-spec, config-linux.md, "Control groups".

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::nullable;

/// Limits on what a container may use.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// Device rules, applied in order.
    #[serde(deserialize_with = "nullable")]
    pub devices: Vec<DeviceRule>,
    /// Memory.
    pub memory: Option<Memory>,
    /// Processor time.
    pub cpu: Option<Cpu>,
    /// Number of tasks.
    pub pids: Option<Pids>,
    /// Block devices.
    #[serde(rename = "blockIO")]
    pub block_io: Option<BlockIo>,
    /// Huge pages.
    #[serde(deserialize_with = "nullable")]
    pub hugepage_limits: Vec<HugepageLimit>,
    /// Network class and priorities (v1).
    pub network: Option<Network>,
    /// RDMA, by device name.
    #[serde(deserialize_with = "nullable")]
    pub rdma: BTreeMap<String, Rdma>,
    /// v2 files and what is written into them.
    #[serde(deserialize_with = "nullable")]
    pub unified: BTreeMap<String, String>,
}

/// One device rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct DeviceRule {
    /// Whether it allows or denies.
    pub allow: bool,
    /// `a`, `c` or `b`; absent means `a`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Absent or -1 means all.
    pub major: Option<i64>,
    /// Absent or -1 means all.
    pub minor: Option<i64>,
    /// Letters of `rwm`; absent means all three.
    pub access: Option<String>,
}

/// Memory limits, bytes; -1 means none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// Hard limit.
    pub limit: Option<i64>,
    /// Soft limit.
    pub reservation: Option<i64>,
    /// Memory plus swap.
    pub swap: Option<i64>,
    /// Kernel memory (deprecated).
    pub kernel: Option<i64>,
    /// Kernel memory of TCP buffers.
    #[serde(rename = "kernelTCP")]
    pub kernel_tcp: Option<i64>,
    /// 0 to 100.
    pub swappiness: Option<u64>,
    /// No OOM killer.
    #[serde(rename = "disableOOMKiller")]
    pub disable_oom_killer: Option<bool>,
    /// Hierarchical accounting (deprecated).
    pub use_hierarchy: Option<bool>,
    /// Fail when a new limit is below the current use.
    pub check_before_update: Option<bool>,
}

/// Processor limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cpu {
    /// Relative weight, 2 to 262144.
    pub shares: Option<u64>,
    /// Microseconds of a period; -1 means no limit.
    pub quota: Option<i64>,
    /// Microseconds.
    pub burst: Option<u64>,
    /// Microseconds.
    pub period: Option<u64>,
    /// Microseconds.
    pub realtime_runtime: Option<i64>,
    /// Microseconds.
    pub realtime_period: Option<u64>,
    /// List of CPUs.
    pub cpus: Option<String>,
    /// List of memory nodes.
    pub mems: Option<String>,
    /// `cpu.idle`.
    pub idle: Option<i64>,
}

/// Limit on tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pids {
    /// How many; -1 means no limit.
    pub limit: Option<i64>,
}

/// Limits on block devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlockIo {
    /// 10 to 1000.
    pub weight: Option<u16>,
    /// 10 to 1000.
    pub leaf_weight: Option<u16>,
    /// A device each.
    #[serde(deserialize_with = "nullable")]
    pub weight_device: Vec<WeightDevice>,
    /// Bytes a second.
    #[serde(deserialize_with = "nullable")]
    pub throttle_read_bps_device: Vec<ThrottleDevice>,
    /// Bytes a second.
    #[serde(deserialize_with = "nullable")]
    pub throttle_write_bps_device: Vec<ThrottleDevice>,
    /// Operations a second.
    #[serde(rename = "throttleReadIOPSDevice", deserialize_with = "nullable")]
    pub throttle_read_iops_device: Vec<ThrottleDevice>,
    /// Operations a second.
    #[serde(rename = "throttleWriteIOPSDevice", deserialize_with = "nullable")]
    pub throttle_write_iops_device: Vec<ThrottleDevice>,
}

/// Weight of one block device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightDevice {
    /// Major number.
    pub major: i64,
    /// Minor number.
    pub minor: i64,
    /// 10 to 1000.
    pub weight: Option<u16>,
    /// 10 to 1000.
    pub leaf_weight: Option<u16>,
}

/// Rate of one block device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ThrottleDevice {
    /// Major number.
    pub major: i64,
    /// Minor number.
    pub minor: i64,
    /// Bytes or operations a second.
    pub rate: u64,
}

/// Limit on huge pages of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HugepageLimit {
    /// `2MB` and so on.
    pub page_size: String,
    /// Bytes.
    pub limit: u64,
}

/// v1 network controllers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Network {
    /// `net_cls.classid`.
    #[serde(rename = "classID")]
    pub class_id: Option<u32>,
    /// `net_prio.ifpriomap`.
    #[serde(deserialize_with = "nullable")]
    pub priorities: Vec<InterfacePriority>,
}

/// Priority of one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct InterfacePriority {
    /// Interface.
    pub name: String,
    /// Priority.
    pub priority: u32,
}

/// RDMA limits of one device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rdma {
    /// Handles.
    pub hca_handles: Option<u32>,
    /// Objects.
    pub hca_objects: Option<u32>,
}
