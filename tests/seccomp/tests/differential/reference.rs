//! libseccomp's filter for a profile, made as crun 1.8 and runc 1.1 make it.
//!
//! In a process of its own: for some profiles libseccomp 2.5.4 never comes back.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pipkin_plan::seccomp::Arch;
use pipkin_seccomp_diff::Raw;
use pipkin_seccomp_diff::meaning::{big_endian, verdict};
use pipkin_spec::Seccomp;
use pipkin_spec::seccomp::{Arg, Rule};
use serde_json::{Value, json};

/// The argument that makes the test program what this file is about.
pub const FILTER: &str = "--libseccomp-filter";
/// The same for the numbers of names.
pub const NUMBERS: &str = "--libseccomp-numbers";

/// How long libseccomp may take: a hundred times what it does.
const PATIENCE: Duration = Duration::from_secs(3);

/// What libseccomp made of a profile.
pub enum Answer {
    Program(Vec<Raw>),
    /// It refuses one of the rules for one of its calls.
    Refused {
        rule: usize,
        name: String,
    },
    /// It did not come back, or died.
    Lost,
}

/// Has a process ask libseccomp.
pub fn filter(native: Arch, profile: &Value) -> Answer {
    let question = json!({ "native": native.name(), "profile": profile });
    let Some(answer) = ask(FILTER, &question.to_string()) else {
        return Answer::Lost;
    };
    match answer.split_first() {
        Some((b'P', program)) => {
            let big = big_endian(native) != cfg!(target_endian = "big");
            Answer::Program(program.chunks_exact(8).map(|c| insn(c, big)).collect())
        }
        Some((b'R', refusal)) => {
            let refusal: (usize, String) = serde_json::from_slice(refusal).expect("a refusal");
            Answer::Refused {
                rule: refusal.0,
                name: refusal.1,
            }
        }
        _ => Answer::Lost,
    }
}

fn insn(bytes: &[u8], swap: bool) -> Raw {
    const RETURN: u16 = 0x06;
    let code = u16::from_ne_bytes([bytes[0], bytes[1]]);
    let k = u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    match (swap, code.swap_bytes()) {
        // Where a verdict is far, libseccomp repeats it, and in doing so swaps it again.
        (true, RETURN) if is_verdict(k) => (RETURN, bytes[2], bytes[3], k),
        (true, code) => (code, bytes[2], bytes[3], k.swap_bytes()),
        (false, _) => (code, bytes[2], bytes[3], k),
    }
}

/// No verdict is one with its bytes swapped but that of all zeros.
fn is_verdict(k: u32) -> bool {
    let data = k & 0xffff;
    match k & 0xffff_0000 {
        0x0005_0000 | 0x7ff0_0000 => data <= 0xff,
        0 | 0x8000_0000 | 0x0003_0000 | 0x7fc0_0000 | 0x7ffc_0000 | 0x7fff_0000 => data == 0,
        _ => false,
    }
}

/// libseccomp's number for each of `names`, and for each name that it knows itself, on
/// each architecture that it knows; negative where the architecture lacks the call or
/// libseccomp the name.
pub fn numbers(names: &[&str]) -> Vec<(Arch, Vec<(String, i32)>)> {
    let answer = ask(NUMBERS, &json!(names).to_string()).expect("numbers");
    let answer: Vec<(String, Vec<_>)> = serde_json::from_slice(&answer).expect("numbers");
    let named = |(arch, numbers): (String, _)| (Arch::find(&arch).expect("a name"), numbers);
    answer.into_iter().map(named).collect()
}

fn ask(what: &str, question: &str) -> Option<Vec<u8>> {
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .arg(what)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("own program");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(question.as_bytes()).expect("a reader");
    drop(stdin);
    let mut stdout = child.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut answer = Vec::new();
        stdout.read_to_end(&mut answer).map(|_| answer)
    });
    let ended = wait(&mut child);
    let answer = reader.join().expect("reader").ok()?;
    ended.then_some(answer)
}

/// Whether the child came to a good end in time.
fn wait(child: &mut Child) -> bool {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match child.try_wait().expect("a child") {
            Some(status) => return status.success(),
            None if start.elapsed() > PATIENCE => {
                child.kill().expect("a child");
                child.wait().expect("a child");
                return false;
            }
            None => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Answers `filter`, in the child.
pub fn answer_filter() {
    let question: Value = serde_json::from_reader(std::io::stdin()).expect("a question");
    let native = Arch::find(question["native"].as_str().expect("a name")).expect("native");
    let profile = pipkin_seccomp_diff::parse(&question["profile"]);
    let mut answer = Vec::new();
    match Context::new(native, &profile).fill(&profile) {
        Ok(context) => {
            answer.push(b'P');
            answer.extend(context.export());
        }
        Err(refused) => {
            answer.push(b'R');
            answer.extend(serde_json::to_vec(&refused).expect("a refusal"));
        }
    }
    std::io::stdout().write_all(&answer).expect("a reader");
}

/// Answers `numbers`, in the child.
pub fn answer_numbers() {
    let mut names: BTreeSet<String> = serde_json::from_reader(std::io::stdin()).expect("names");
    let tokens: Vec<_> = Arch::ALL
        .iter()
        .filter_map(|a| Some((*a, token(*a)?)))
        .collect();
    for (arch, token) in &tokens {
        let base = arch.number("read").expect("read") & !0xfff;
        names.extend(
            (base..base + 7000)
                .chain(0xf_0000..0xf_0010)
                .filter_map(|n| name(*token, n)),
        );
    }
    let mut answer = Vec::new();
    for (arch, token) in tokens {
        let number = |name: &String| {
            let text = CString::new(name.as_str()).expect("a name");
            // SAFETY: the name is a C string, which the function reads and does not keep.
            let number = unsafe { seccomp_syscall_resolve_name_arch(token, text.as_ptr()) };
            (name.clone(), number)
        };
        answer.push((arch.name(), names.iter().map(number).collect::<Vec<_>>()));
    }
    serde_json::to_writer(std::io::stdout(), &answer).expect("a reader");
}

/// libseccomp's name for a number.
fn name(token: u32, number: u32) -> Option<String> {
    // SAFETY: takes numbers, and gives NULL or a C string that is the caller's.
    let name = unsafe { seccomp_syscall_resolve_num_arch(token, number as c_int) };
    if name.is_null() {
        return None;
    }
    // SAFETY: not NULL, so a C string; it lives until it is freed below.
    let text = unsafe { CStr::from_ptr(name) }
        .to_str()
        .expect("a name")
        .to_owned();
    // SAFETY: the string came from malloc(3), and nothing refers to it any more.
    unsafe { free(name.cast()) };
    Some(text)
}

/// libseccomp's token for an architecture, if this libseccomp has it.
fn token(arch: Arch) -> Option<u32> {
    let name = arch.name().trim_start_matches("SCMP_ARCH_").to_lowercase();
    let name = CString::new(name).expect("a name");
    // SAFETY: the name is a C string, which the function reads and does not keep.
    let token = unsafe { seccomp_arch_resolve_name(name.as_ptr()) };
    (token != 0).then_some(token)
}

/// `scmp_filter_ctx`.
struct Context(*mut c_void);

impl Context {
    fn new(native: Arch, profile: &Seccomp) -> Self {
        let default = verdict(&profile.default_action, profile.default_errno_ret);
        // SAFETY: takes a number and gives a context of its own or NULL.
        let context = unsafe { seccomp_init(default) };
        assert!(!context.is_null(), "seccomp_init");
        let native = token(native).expect("libseccomp has the architecture");
        // SAFETY: the context is live; removing its only architecture is allowed, and
        // makes room for one of the other byte order.
        let result = unsafe {
            seccomp_arch_remove(context, seccomp_arch_native());
            seccomp_arch_add(context, native)
        };
        assert_eq!(result, 0, "seccomp_arch_add");
        for name in &profile.architectures {
            let token = token(Arch::find(name).expect("a name")).expect("libseccomp has it");
            // SAFETY: the context is live.
            let result = unsafe { seccomp_arch_add(context, token) };
            // It was there before.
            assert!(
                result == 0 || result == -17,
                "seccomp_arch_add {name}: {result}"
            );
        }
        Self(context)
    }

    fn fill(self, profile: &Seccomp) -> Result<Self, (usize, String)> {
        let default = verdict(&profile.default_action, profile.default_errno_ret);
        for (i, rule) in profile.syscalls.iter().enumerate() {
            let verdict = verdict(&rule.action, rule.errno_ret);
            if verdict == default {
                continue;
            }
            for name in &rule.names {
                self.add(rule, verdict, name)
                    .map_err(|()| (i, name.clone()))?;
            }
        }
        Ok(self)
    }

    fn add(&self, rule: &Rule, verdict: u32, name: &str) -> Result<(), ()> {
        let name = CString::new(name).expect("a name");
        // SAFETY: the name is a C string, which the function reads and does not keep.
        let number = unsafe { seccomp_syscall_resolve_name(name.as_ptr()) };
        // __NR_SCMP_ERROR.
        if number == -1 {
            return Ok(());
        }
        let args: Vec<Compare> = rule.args.iter().map(Compare::new).collect();
        let repeats = |c: &Compare| args.iter().filter(|o| o.arg == c.arg).count() > 1;
        let rules: Vec<&[Compare]> = match args.iter().any(repeats) {
            true => args.chunks(1).collect(),
            false => vec![&args],
        };
        for args in rules {
            // SAFETY: the context is live, and there are as many comparisons as said.
            let result = unsafe {
                let count = args.len() as c_uint;
                seccomp_rule_add_array(self.0, verdict, number, count, args.as_ptr())
            };
            if result != 0 {
                return Err(());
            }
        }
        Ok(())
    }

    fn export(&self) -> Vec<u8> {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let reader = std::thread::spawn(move || {
            let mut program = Vec::new();
            reader.read_to_end(&mut program).expect("a program");
            program
        });
        let fd = std::os::fd::AsRawFd::as_raw_fd(&writer);
        // SAFETY: the context is live, and the descriptor is open until after the call.
        let result = unsafe { seccomp_export_bpf(self.0, fd) };
        assert_eq!(result, 0, "seccomp_export_bpf");
        drop(writer);
        reader.join().expect("a program")
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is live, and nobody uses it after this.
        unsafe { seccomp_release(self.0) }
    }
}

/// `struct scmp_arg_cmp`.
#[repr(C)]
struct Compare {
    arg: c_uint,
    op: c_int,
    a: u64,
    b: u64,
}

impl Compare {
    fn new(arg: &Arg) -> Self {
        let op = match arg.op.as_str() {
            "SCMP_CMP_NE" => 1,
            "SCMP_CMP_LT" => 2,
            "SCMP_CMP_LE" => 3,
            "SCMP_CMP_EQ" => 4,
            "SCMP_CMP_GE" => 5,
            "SCMP_CMP_GT" => 6,
            "SCMP_CMP_MASKED_EQ" => 7,
            other => panic!("{other}"),
        };
        Self {
            arg: arg.index,
            op,
            a: arg.value,
            b: arg.value_two,
        }
    }
}

// seccomp.h of libseccomp 2.5.
#[link(name = "seccomp")]
unsafe extern "C" {
    fn seccomp_init(default: u32) -> *mut c_void;
    fn seccomp_release(context: *mut c_void);
    fn seccomp_arch_native() -> u32;
    fn seccomp_arch_resolve_name(name: *const c_char) -> u32;
    fn seccomp_arch_add(context: *mut c_void, token: u32) -> c_int;
    fn seccomp_arch_remove(context: *mut c_void, token: u32) -> c_int;
    fn seccomp_syscall_resolve_name(name: *const c_char) -> c_int;
    fn seccomp_syscall_resolve_name_arch(token: u32, name: *const c_char) -> c_int;
    fn seccomp_syscall_resolve_num_arch(token: u32, number: c_int) -> *mut c_char;
    fn seccomp_rule_add_array(
        context: *mut c_void,
        action: u32,
        syscall: c_int,
        count: c_uint,
        args: *const Compare,
    ) -> c_int;
    fn seccomp_export_bpf(context: *mut c_void, fd: c_int) -> c_int;
}

unsafe extern "C" {
    fn free(memory: *mut c_void);
}
