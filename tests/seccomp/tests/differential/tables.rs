//! Numbers of system calls against libseccomp's.

use pipkin_plan::seccomp::Arch;
use pipkin_seccomp_diff::meaning::{IPC, SOCKETCALL, multiplexes};

use crate::reference;

/// Where libseccomp 2.5.4 is not followed: the kernel has no such call there (its tables
/// of 6.12, and libseccomp itself from 2.6 on).
const NOT_FOLLOWED: [(Arch, &str); 1] = [(Arch::Parisc64, "_llseek")];

/// libseccomp 2.5.4 is of Linux 5.17; what an architecture got after that, it lacks.
const ADDED: [(Arch, &str); 7] = [
    (Arch::Parisc, "cacheflush"),
    (Arch::Parisc64, "cacheflush"),
    (Arch::Riscv64, "memfd_secret"),
    (Arch::S390, "memfd_secret"),
    (Arch::S390x, "memfd_secret"),
    (Arch::X86_64, "set_mempolicy_home_node"),
    (Arch::X86_64, "riscv_hwprobe"),
];

/// Every name that either side knows.
pub fn agree_with_libseccomp() -> String {
    let names: Vec<&str> = pipkin_seccomp_diff::names().collect();
    let (mut same, mut newer) = (0, 0);
    for (arch, numbers) in reference::numbers(&names) {
        for (name, theirs) in numbers {
            let name = name.as_str();
            let ours = arch.number(name);
            let multiplexed =
                SOCKETCALL.contains(&name) || IPC.iter().any(|(call, _)| *call == name);
            match u32::try_from(theirs) {
                // libseccomp hides the direct number behind the multiplexer's.
                Err(_) if multiplexed && multiplexes(arch) => {}
                Ok(number) if ours == Some(number) => same += 1,
                Ok(_) if NOT_FOLLOWED.contains(&(arch, name)) => assert_eq!(ours, None),
                Ok(number) => panic!("{arch:?} {name}: {ours:?}, libseccomp {number}"),
                Err(_) => match ours {
                    None => same += 1,
                    Some(number) => {
                        // All that came after 5.17, in the common range or listed.
                        let common = Arch::Aarch64.number(name).is_some_and(|n| n >= 450);
                        let listed = ADDED.contains(&(arch, name));
                        let recent = ["uretprobe", "uprobe", "riscv_hwprobe"].contains(&name);
                        assert!(common || listed || recent, "{arch:?} {name}: {number}");
                        newer += 1;
                    }
                },
            }
        }
    }
    assert!(same > 7000, "{same}");
    format!("{same} numbers agree, {newer} are newer than libseccomp")
}
