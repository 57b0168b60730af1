//! Classic BPF as seccomp runs it, and the kernel's checks of a program: for tests.

/// `struct seccomp_data` of linux/seccomp.h, in words.
pub type Data = [u32; 16];

/// The data that a filter is shown.
pub fn data(number: u32, audit: u32, args: [u64; 6], big_endian: bool) -> Data {
    let mut words = [0; 16];
    words[0] = number;
    words[1] = audit;
    // The instruction pointer: no filter of ours should care.
    words[2] = 0xdead_beef;
    words[3] = 0x0bad_cafe;
    for (i, arg) in args.into_iter().enumerate() {
        let (high, low) = ((arg >> 32) as u32, arg as u32);
        let (first, second) = if big_endian { (high, low) } else { (low, high) };
        words[4 + 2 * i] = first;
        words[5 + 2 * i] = second;
    }
    words
}

/// An instruction: code, jt, jf, k.
pub type Raw = (u16, u8, u8, u32);

/// Runs `program`; the verdict and how many instructions it took.
pub fn run(program: &[Raw], data: &Data) -> (u32, usize) {
    let (mut a, mut at, mut steps) = (0u32, 0usize, 0);
    loop {
        let (code, jt, jf, k) = program[at];
        at += 1;
        steps += 1;
        let jump = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            0x20 => a = data[k as usize / 4],
            0x54 => a &= k,
            0x05 => at += k as usize,
            0x15 => at += jump(a == k),
            0x25 => at += jump(a > k),
            0x35 => at += jump(a >= k),
            0x45 => at += jump(a & k != 0),
            0x06 => return (k, steps),
            _ => panic!("instruction {code:#x}"),
        }
    }
}

/// What bpf_check_classic() and seccomp_check_filter() would refuse, as far as a filter
/// of ours or libseccomp's could get there, and code that nothing reaches.
pub fn check(program: &[Raw]) -> Result<(), String> {
    if program.is_empty() || program.len() > 4096 {
        return Err(format!("{} instructions", program.len()));
    }
    let mut reached = vec![false; program.len()];
    reached[0] = true;
    for (at, (code, jt, jf, k)) in program.iter().copied().enumerate() {
        let fault = |what: &str| Err(format!("instruction {at}: {what}"));
        if !reached[at] {
            return fault("not reached");
        }
        let next = at + 1;
        let targets: &[usize] = match code {
            0x20 if k % 4 == 0 && k < 64 => &[next],
            0x20 => return fault("bad offset"),
            0x54 => &[next],
            0x05 => &[next + k as usize],
            0x15 | 0x25 | 0x35 | 0x45 => &[next + usize::from(jt), next + usize::from(jf)],
            0x06 => &[],
            _ => return fault("unknown code"),
        };
        for target in targets {
            match reached.get_mut(*target) {
                Some(reached) => *reached = true,
                None => return fault("leaves the program"),
            }
        }
    }
    Ok(())
}
