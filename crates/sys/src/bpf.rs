//! bpf(2): device programs of cgroup v2.
