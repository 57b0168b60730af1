//! `linux.seccomp`: a generator of classic BPF.
