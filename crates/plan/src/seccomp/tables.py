#!/usr/bin/env python3
"""Writes tables.rs: the system call numbers of every architecture.

usage: tables.py LINUX > tables.rs

LINUX is an unpacked kernel source tree of 6.11 or later; tables.rs was made from
that of Linux 6.12 (Debian: apt-get install linux-source-6.12). Names and numbers
are read from its syscall.tbl files, with the ABIs that each architecture's
Makefile.syscalls selects. What later kernels added stands in LATER: since number
424 a new call has the same number everywhere.
"""

import re
import sys

# number, name, first kernel. On s390, the 31-bit table is closed since 6.19.
LATER = [
    (463, "setxattrat", "6.13"),
    (464, "getxattrat", "6.13"),
    (465, "listxattrat", "6.13"),
    (466, "removexattrat", "6.13"),
    (467, "open_tree_attr", "6.15"),
    (468, "file_getattr", "6.17"),
    (469, "file_setattr", "6.17"),
    (470, "listns", "6.19"),
    (471, "rseq_slice_yield", "7.0"),
]
LATER_X86_64 = [(336, "uprobe", "6.18")]
CLOSED = {"S390": 470}

GENERIC = "scripts/syscall.tbl"
COLUMNS = [
    ("X86", "arch/x86/entry/syscalls/syscall_32.tbl", "i386"),
    ("X86_64", "arch/x86/entry/syscalls/syscall_64.tbl", "common 64"),
    ("X32", "arch/x86/entry/syscalls/syscall_64.tbl", "common x32"),
    ("ARM", "arch/arm/tools/syscall.tbl", "common"),
    ("AARCH64", GENERIC, "common 64 renameat rlimit memfd_secret"),
    # set_mempolicy_home_node is "common" there by an oversight.
    ("MIPS", "arch/mips/kernel/syscalls/syscall_o32.tbl", "o32 common"),
    ("MIPS64", "arch/mips/kernel/syscalls/syscall_n64.tbl", "n64 common"),
    ("MIPS64N32", "arch/mips/kernel/syscalls/syscall_n32.tbl", "n32 common"),
    ("PPC", "arch/powerpc/kernel/syscalls/syscall.tbl", "common 32 nospu"),
    ("PPC64", "arch/powerpc/kernel/syscalls/syscall.tbl", "common 64 nospu"),
    ("S390", "arch/s390/kernel/syscalls/syscall.tbl", "common 32"),
    ("S390X", "arch/s390/kernel/syscalls/syscall.tbl", "common 64"),
    ("PARISC", "arch/parisc/kernel/syscalls/syscall.tbl", "common 32"),
    ("PARISC64", "arch/parisc/kernel/syscalls/syscall.tbl", "common 64"),
    ("RISCV64", GENERIC, "common 64 riscv rlimit memfd_secret"),
    ("LOONGARCH64", GENERIC, "common 64"),
    ("M68K", "arch/m68k/kernel/syscalls/syscall.tbl", "common"),
    ("SH", "arch/sh/kernel/syscalls/syscall.tbl", "common"),
]

# arch/arm/include/uapi/asm/unistd.h: __ARM_NR_BASE (0xf0000) plus 1, 2, ...
ARM_PRIVATE = ["breakpoint", "cacheflush", "usr26", "usr32", "set_tls", "get_tls"]
PRIVATE = 0x8000
ABSENT = 0xFFFF

# include/uapi/linux/net.h and include/uapi/linux/ipc.h: SYS_SOCKET is 1, ...
SOCKETCALL = """socket bind connect listen accept getsockname getpeername socketpair send recv
    sendto recvfrom shutdown setsockopt getsockopt sendmsg recvmsg accept4 recvmmsg
    sendmmsg""".split()
IPC = {
    "semop": 1, "semget": 2, "semctl": 3, "semtimedop": 4,
    "msgsnd": 11, "msgrcv": 12, "msgget": 13, "msgctl": 14,
    "shmat": 21, "shmdt": 22, "shmget": 23, "shmctl": 24,
}
IPC_BIT = 0x80


def read(linux, path, abis):
    numbers = {}
    with open(f"{linux}/{path}") as table:
        for line in table:
            fields = line.split("#")[0].split()
            if len(fields) < 3 or not fields[0].isdigit() or fields[1] not in abis.split():
                continue
            if not re.fullmatch(r"(unused|reserved)\d+", fields[2]):
                numbers[fields[2]] = int(fields[0])
    return numbers


def columns(linux):
    table = {}
    for arch, path, abis in COLUMNS:
        numbers = read(linux, path, abis)
        later = LATER + (LATER_X86_64 if arch in ("X86_64", "X32") else [])
        for number, name, _ in later:
            if number < CLOSED.get(arch, ABSENT):
                assert numbers.setdefault(name, number) == number, (arch, name)
        assert len(set(numbers.values())) == len(numbers), arch
        table[arch] = numbers
    for n, name in enumerate(ARM_PRIVATE, 1):
        assert name not in table["ARM"]
        table["ARM"][name] = PRIVATE | n
    return table


def main():
    table = columns(sys.argv[1])
    names = sorted({name for numbers in table.values() for name in numbers} | set(SOCKETCALL) | set(IPC))
    widest = max(n for numbers in table.values() for n in numbers.values() if n < PRIVATE)
    mux = [
        SOCKETCALL.index(n) + 1 if n in SOCKETCALL else IPC_BIT | IPC[n] if n in IPC else 0 for n in names
    ]

    print("//! System call numbers: facts from the kernel's syscall.tbl files. Written by tables.py.")
    print("//!")
    print("//! Constants only: what the program carries is laid out from them in syscalls.rs.")
    print()
    print("/// How many names there are.")
    print(f"pub(super) const COUNT: usize = {len(names)};")
    print("/// How many columns of numbers there are.")
    print(f"pub(super) const COLUMNS: usize = {len(table)};")
    print("/// The largest number in a column, private ones aside.")
    print(f"pub(super) const LARGEST: usize = {widest};")
    print("/// In a column: the architecture lacks the call.")
    print(f"pub(super) const ABSENT: u16 = {ABSENT:#x};")
    print("/// In a column: a private call of ARM, its number less 0xf0000 in the low bits.")
    print(f"pub(super) const PRIVATE: u16 = {PRIVATE:#x};")
    print("/// How many private calls there are, 1 to this.")
    print(f"pub(super) const PRIVATE_COUNT: usize = {len(ARM_PRIVATE)};")
    print("/// In a row: a call of ipc(2), not of socketcall(2).")
    print(f"pub(super) const IPC: u8 = {IPC_BIT:#x};")
    for i, arch in enumerate(table):
        print(f"pub(super) const {arch}: usize = {i};")
    print()
    print("const NO: u16 = ABSENT;")
    print()
    print("/// Name, first argument by which socketcall(2) or ipc(2) reaches the call or 0, and")
    print("/// its number on: " + ", ".join(list(table)[:9]) + ",")
    print("/// " + ", ".join(list(table)[9:]) + ".")
    print("#[rustfmt::skip]")
    print('#[allow(clippy::large_const_arrays, reason = "for the compiler; a static would be carried")]')
    print("pub(super) const ROWS: [(&str, u8, [u16; COLUMNS]); COUNT] = [")
    for name, call in zip(names, mux):
        row = [table[arch].get(name, ABSENT) for arch in table]
        text = ", ".join("NO" if n == ABSENT else str(n) for n in row)
        print(f'    ("{name}", {call}, [{text}]),')
    print("];")


main()
