//! eBPF programs of the type BPF_PROG_TYPE_CGROUP_DEVICE.
