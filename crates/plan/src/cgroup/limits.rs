//! Limits in one form, whatever they are written as.

/// A ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Max {
    /// None: -1 in the configuration, `-1` in v1 files, `max` in v2 files.
    Unlimited,
    /// This much.
    At(u64),
}

/// All of `linux.resources` but the devices; `None` is "leave it as it is".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory.
    pub memory: Memory,
    /// Processor time, processors and memory nodes.
    pub cpu: Cpu,
    /// Number of tasks.
    pub pids: Option<Max>,
    /// Block devices.
    pub block: Block,
    /// Huge pages, one entry a page size.
    pub hugepages: Vec<Hugepage>,
    /// Network class and priorities.
    pub network: Network,
    /// RDMA, one entry a device.
    pub rdma: Vec<Rdma>,
    /// v2 files by name, in the order of their names.
    pub unified: Vec<Unified>,
}

/// Memory, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Hard limit.
    pub limit: Option<Max>,
    /// Soft limit on v1, guaranteed minimum under pressure (`memory.low`) on v2.
    pub reservation: Option<Max>,
    /// Memory plus swap; never below `limit`.
    pub swap: Option<Max>,
    /// Kernel memory; v1 only, and kernels since 5.16 take it without effect.
    pub kernel: Option<Max>,
    /// Kernel memory of TCP buffers; v1 only.
    pub kernel_tcp: Option<Max>,
    /// 0 to 100; v1 only.
    pub swappiness: Option<u8>,
    /// Tasks wait instead of being killed; v1 only.
    pub disable_oom_killer: bool,
    /// Whether sub-groups are accounted to it; v2 and newer v1 kernels always do.
    pub use_hierarchy: Option<bool>,
    /// Refuse a limit that is below what is used.
    pub check_before_update: bool,
}

/// Processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpu {
    /// v1 shares, 2 to 262,144 (the kernel's bounds; values outside are moved to them).
    pub shares: Option<u64>,
    /// Microseconds of each period, at least 1,000.
    pub quota: Option<Max>,
    /// Microseconds, 1,000 to 1,000,000.
    pub period: Option<u64>,
    /// Microseconds that may be saved up.
    pub burst: Option<u64>,
    /// Realtime microseconds of each realtime period; v1 only.
    pub realtime_runtime: Option<Max>,
    /// Microseconds; v1 only.
    pub realtime_period: Option<u64>,
    /// Processors, in the kernel's list format.
    pub cpus: Option<String>,
    /// Memory nodes, in the kernel's list format.
    pub mems: Option<String>,
    /// Whether its tasks run only when nothing else does.
    pub idle: Option<bool>,
}

/// Numbers of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockDevice {
    /// Major.
    pub major: u32,
    /// Minor.
    pub minor: u32,
}

/// Block devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// 10 to 1,000.
    pub weight: Option<u16>,
    /// 10 to 1,000; v1 before Linux 5.0 only.
    pub leaf_weight: Option<u16>,
    /// Weights by device.
    pub devices: Vec<Weight>,
    /// Rates by device, one entry a device.
    pub throttle: Vec<Throttle>,
}

/// Weights of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// Which.
    pub device: BlockDevice,
    /// 10 to 1,000.
    pub weight: Option<u16>,
    /// 10 to 1,000; v1 before Linux 5.0 only.
    pub leaf_weight: Option<u16>,
    /// Position in `weightDevice`.
    pub index: usize,
}

/// Rates of one device, each with its JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throttle {
    /// Which.
    pub device: BlockDevice,
    /// Bytes read a second.
    pub read_bps: Option<(Max, String)>,
    /// Bytes written a second.
    pub write_bps: Option<(Max, String)>,
    /// Reads a second.
    pub read_iops: Option<(Max, String)>,
    /// Writes a second.
    pub write_iops: Option<(Max, String)>,
}

/// Huge pages of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hugepage {
    /// As in the kernel's file names: `2MB`, `1GB`.
    pub page_size: String,
    /// Bytes.
    pub limit: u64,
    /// Position in `hugepageLimits`.
    pub index: usize,
}

/// Network; v1 only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Class of its packets.
    pub class_id: Option<u32>,
    /// Interface and priority.
    pub priorities: Vec<(String, u32)>,
}

/// RDMA of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rdma {
    /// Device name.
    pub device: String,
    /// Handles.
    pub handles: Option<u32>,
    /// Objects.
    pub objects: Option<u32>,
}

/// A v2 file and what is written into it, a line a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unified {
    /// File name.
    pub file: String,
    /// Its text, without white space around it.
    pub value: String,
}
