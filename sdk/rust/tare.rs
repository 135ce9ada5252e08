//! The tare plugin ABI, major 1, for Rust: the structs of the C headers, and traits that keep
//! unsafe code and panics in this file. Not part of the ABI: the C headers are the contract
//! (shapes, ownership, the functions that may change the state). Needs no crates; Rust 1.63.
//!
//!     mod tare;
//!     struct Mine { scale: f64 }
//!     impl tare::Estimator for Mine { ... }
//!     static PARAMS: [tare::Param; 1] =
//!         [tare::Param::float(c!("scale"), c!("1"), c!("scales advantages"), 0.0, 0.0, 0)];
//!     tare_plugin!(tare::estimator::<Mine>(
//!         tare::About::new(c!("mine"), c!("0.1.0"), c!("a summary"), c!("Apache-2.0")), &PARAMS));
//!
//! An Err that a function returns, and a panic, reach the user as an error that begins with the
//! plugin's name.
#![allow(dead_code)]

use std::ffi::{c_void, CStr};
use std::os::raw::c_char; // std::ffi has it since Rust 1.64; Debian 12 has 1.63
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A text that ends with NUL, for the tables.
#[macro_export]
macro_rules! c {
    ($text:expr) => {
        concat!($text, "\0").as_ptr() as *const std::os::raw::c_char
    };
}

/// The entry point of a file with one plugin. since: the oldest minor version of a host that can run
/// it (1 with RECORDS).
#[macro_export]
macro_rules! tare_plugin {
    ($descriptor:expr) => {
        tare_plugin!($descriptor, since = 0);
    };
    ($descriptor:expr, since = $minor:expr) => {
        static TARE_DESCRIPTOR: tare::Descriptor = $descriptor;
        static TARE_DESCRIPTORS: tare::Shared<[&'static tare::Descriptor; 1]> = tare::Shared([&TARE_DESCRIPTOR]);
        static TARE_PLUGIN: tare::Plugin = tare::Plugin {
            struct_size: std::mem::size_of::<tare::Plugin>() as u32,
            abi_minor_built: tare::ABI_MINOR,
            abi_minor_needed: $minor,
            n_descriptors: 1,
            descriptors: TARE_DESCRIPTORS.0.as_ptr() as *const *const tare::Descriptor,
        };
        #[no_mangle]
        pub extern "C" fn tare_plugin_v1(_host: *const tare::Host, _error: *mut tare::ErrorBuffer) -> *const tare::Plugin {
            &TARE_PLUGIN
        }
    };
}

pub const ABI_MAJOR: u32 = 1;
pub const ABI_MINOR: u32 = 3;

pub type Status = i32;
pub const OK: Status = 0;
pub const E_GENERIC: Status = 1;
pub const E_INVALID: Status = 10;
pub const E_RANGE: Status = 11;
pub const E_CONFIG: Status = 12;
pub const E_SHAPE: Status = 13;
pub const E_NOMEM: Status = 20;
pub const E_IO: Status = 30;
pub const E_CORRUPT: Status = 31;
pub const E_VERSION: Status = 32;
pub const E_UNSUPPORTED: Status = 40;
pub const E_NOT_FOUND: Status = 41;
pub const E_TIMEOUT: Status = 50;
pub const E_CANCELLED: Status = 51;
pub const E_STATE: Status = 60;
pub const E_NOT_FINITE: Status = 61;
pub const E_COMM: Status = 70;
pub const E_DEVICE: Status = 71;
pub const E_PLUGIN: Status = 80;

pub const BOOL: i32 = 1;
pub const INT: i32 = 2;
pub const FLOAT: i32 = 3;
pub const STRING: i32 = 4;
pub const CHOICE: i32 = 5;
pub const PATH: i32 = 6;

pub const REQUIRED: u32 = 1;
pub const ABOVE_MIN: u32 = 2;
pub const BELOW_MAX: u32 = 4;
pub const LOG_SCALE: u32 = 8;
pub const SWEEPABLE: u32 = 16;
pub const LOCKED_ON_RESUME: u32 = 32;

pub const NEED_ENTROPY: u32 = 1;
pub const NEED_LOGPROB: u32 = 2;
pub const NEED_REF_LOGPROB: u32 = 4;
pub const NEED_COMPONENTS: u32 = 8;
pub const NEED_CLUSTER: u32 = 16;
pub const GIVES_TOKENS: u32 = 32;
pub const WANTS_LOGPROB: u32 = 64;
/// Since minor 2: a plugin that needs one of these sets since = 2.
pub const NEED_FINISH: u32 = 128;
pub const NEED_ROW: u32 = 256;
pub const NEED_COMPLETION: u32 = 512;
pub const NEED_TOKEN_ID: u32 = 1024;
pub const NEED_VERDICTS: u32 = 2048;
pub const NEED_OFF_POLICY: u32 = 4096;
pub const NEED_POLICY_VERSION: u32 = 8192;
pub const NEED_SEGMENTS: u32 = 16384;

pub const FINISH_STOP: u8 = 0;
pub const FINISH_LENGTH: u8 = 1;

pub const OBJECTIVE_PASS: u32 = 1;
pub const OBJECTIVE_REFERENCE: u32 = 2;
pub const OBJECTIVE_SAMPLER: u32 = 4;
pub const OBJECTIVE_KL: u32 = 8;
pub const OBJECTIVE_TRACES: u32 = 16;
pub const OBJECTIVE_OWN_CLIP: u32 = 1; // tare_objective.flags
pub const OBJECTIVE_OWN_DUAL_CLIP: u32 = 2;

pub const CURRICULUM_WEIGHTS: u32 = 1;
pub const ROLLOUT_KEPT: u8 = 0;
pub const ROLLOUT_LEFT_OUT: u8 = 1;
pub const ROLLOUT_COUNTED: u8 = 2;

pub const LOG_DEBUG: i32 = 0;
pub const LOG_INFO: i32 = 1;
pub const LOG_WARN: i32 = 2;
pub const LOG_ERROR: i32 = 3;

pub const ESTIMATOR: i32 = 1;
pub const VERIFIER: i32 = 2;
pub const ENCODER: i32 = 3;
pub const CODEBOOK: i32 = 4;
pub const OBJECTIVE: i32 = 5;
pub const CURRICULUM: i32 = 6;

pub const SINGLE_THREAD: u32 = 0;
pub const INSTANCE_PER_THREAD: u32 = 1;
pub const REENTRANT: u32 = 2;

pub const CORRECT: i32 = 1;
pub const WRONG: i32 = 2;
pub const NO_ANSWER: i32 = 3;
pub const UNPARSABLE: i32 = 4;
pub const TIMED_OUT: i32 = 5;
/// Set by the host, never by a plugin.
pub const CRASHED: i32 = 6;
pub const PARTIAL: i32 = 7;
pub const JUDGES_TOGETHER: u32 = 1; // tare_verifier.flags
pub const GIVES_SEGMENTS: u32 = 2;
/// Bits that Verifier::uses returns. Since minor 3.
pub const USES_ANSWER: u32 = 1;
pub const MAY_USE_ANSWER: u32 = 2;
pub const REFUSES_ROWS: u32 = 4;
pub const TICKET_OPEN: u8 = 0;
pub const TICKET_JUDGED: u8 = 1;
pub const TICKET_FAILED: u8 = 2;

// ---------------------------------------------------------------- structs of the C headers

#[repr(C)]
pub struct ErrorBuffer {
    pub struct_size: u32,
    pub code: Status,
    pub message: [u8; 504],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    data: *const u8,
    size: i64,
}

#[repr(C)]
pub struct Param {
    pub key: *const c_char,
    pub fallback: *const c_char,
    pub doc: *const c_char,
    pub unit: *const c_char,
    pub choices: *const *const c_char,
    pub min: f64,
    pub max: f64,
    pub kind: i32,
    pub flags: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union Value {
    i: i64,
    f: f64,
    s: *const c_char,
}

#[repr(C)]
pub struct Stream {
    struct_size: u32,
    flags: u32,
    ctx: *mut c_void,
    write: Option<unsafe extern "C" fn(*mut c_void, *const c_void, i64) -> Status>,
    read: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, i64) -> Status>,
    version: *const c_char,
}

#[repr(C)]
pub struct Host {
    struct_size: u32,
    abi_minor: u32,
    ctx: *mut c_void,
    log: Option<unsafe extern "C" fn(*mut c_void, i32, *const c_char)>,
    alloc: Option<unsafe extern "C" fn(*mut c_void, i64, i64) -> *mut c_void>,
    release: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    random: Option<unsafe extern "C" fn(*mut c_void, u64, u64, *mut u32, i64) -> Status>,
    metric: Option<unsafe extern "C" fn(*mut c_void, *const c_char, f64)>,
    cancelled: Option<unsafe extern "C" fn(*mut c_void) -> i32>,
    extension: Option<unsafe extern "C" fn(*mut c_void, *const c_char) -> *const c_void>,
}

/// Extension "tare.embed/1".
#[repr(C)]
pub struct EmbedExtension {
    struct_size: u32,
    flags: u32,
    ctx: *mut c_void,
    dim: Option<unsafe extern "C" fn(*mut c_void) -> i64>,
    identity: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, i64) -> Status>,
    embed: Option<unsafe extern "C" fn(*mut c_void, *const Text, i64, *mut f32, *mut ErrorBuffer) -> Status>,
}

/// Extension "tare.logprob/1".
#[repr(C)]
pub struct LogprobExtension {
    struct_size: u32,
    flags: u32,
    ctx: *mut c_void,
    logprob: Option<unsafe extern "C" fn(*mut c_void, i64, *mut f32, *mut ErrorBuffer) -> Status>,
}

#[repr(C)]
pub struct Batch {
    struct_size: u32,
    flags: u32,
    pub step: i64,
    n_groups: i64,
    n_rollouts: i64,
    n_tokens: i64,
    n_components: i64,
    pub n_clusters: i64,
    group_begin: *const i64,
    prompt_uid: *const u64,
    cluster: *const i32,
    reward: *const f64,
    component: *const f64,
    verdict: *const i32,
    token_begin: *const i64,
    token_entropy: *const f32,
    token_logprob: *const f32,
    token_ref_logprob: *const f32,
    finish: *const u8,
    row: *const Text,
    completion: *const Text,
    token_id: *const i32,
    component_verdict: *const i32,
    off_policy: *const u8,
    policy_version: *const i64,
    segment: *const i32,
    segment_reward: *const f64,
    n_columns: i64,
    column_name: *const *const c_char,
    column: *const f64,
}

#[repr(C)]
pub struct AdvantageBuffers {
    struct_size: u32,
    flags: u32,
    advantage: *mut f64,
    rollout_weight: *mut f64,
    baseline: *mut f64,
    scale: *mut f64,
    confidence: *mut f64,
    token_advantage: *mut f32,
    refill_groups: i64,
}

type Create = unsafe extern "C" fn(*const Host, *const Value, *mut *mut c_void, *mut ErrorBuffer) -> Status;
type Save = unsafe extern "C" fn(*const c_void, *const Stream, *mut ErrorBuffer) -> Status;
type Load = unsafe extern "C" fn(*mut c_void, *const Stream, *mut ErrorBuffer) -> Status;
type Number = unsafe extern "C" fn(*const c_void) -> i64;
type Group = unsafe extern "C" fn(*const c_void, *const Batch, i64, *mut f64, *mut ErrorBuffer) -> Status;

#[repr(C)]
pub struct EstimatorTable {
    struct_size: u32,
    flags: u32,
    create: unsafe extern "C" fn(*const Host, *const Value, i64, *mut *mut c_void, *mut ErrorBuffer) -> Status,
    destroy: unsafe extern "C" fn(*mut c_void),
    save: Option<Save>,
    load: Option<Load>,
    prepare_size: Option<Number>,
    collect_size: Option<Number>,
    prepare: Option<Group>,
    compute: unsafe extern "C" fn(*const c_void, *const Batch, *const f64, *mut AdvantageBuffers, *mut ErrorBuffer) -> Status,
    collect: Option<Group>,
    apply: Option<unsafe extern "C" fn(*mut c_void, i64, *const f64, *mut ErrorBuffer) -> Status>,
    describe: Option<Save>,
    record_size: Option<Number>,
    record: Option<Group>,
    apply_records: Option<unsafe extern "C" fn(*mut c_void, i64, *const f64, *const u64, *const f64, i64, *mut ErrorBuffer) -> Status>,
    columns: Option<unsafe extern "C" fn(*const c_void) -> *const *const c_char>,
}

#[repr(C)]
pub struct AnswerView {
    struct_size: u32,
    flags: u32,
    prompt: Text,
    completion: Text,
    answer: Text,
    row: Text,
    deadline_ns: i64,
    prompt_uid: u64,
    group: i64,
    sample: i64,
    n_tokens: i64,
    finish: i32,
    off_policy: i32,
}

#[repr(C)]
pub struct VerdictBuffer {
    struct_size: u32,
    code: i32,
    reward: f64,
    extracted: *mut u8,
    capacity: i64,
    size: i64,
    reason: *const c_char,
    segment: *mut Segment,
    segment_capacity: i64,
    n_segments: i64,
}

/// A segment of a completion with a separate reward: from the end of the previous one (0 for the
/// first) to byte `end`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Segment {
    pub end: i64,
    pub reward: f64,
}

#[repr(C)]
pub struct Waiting {
    struct_size: u32,
    flags: u32,
    n: i64,
    ticket: *const i64,
    verdict: *const *mut VerdictBuffer,
    done: *mut u8,
    wait_ns: i64,
}

#[repr(C)]
pub struct VerifierTable {
    struct_size: u32,
    flags: u32,
    create: Create,
    destroy: unsafe extern "C" fn(*mut c_void),
    verify: unsafe extern "C" fn(*mut c_void, *const *const AnswerView, *const *mut VerdictBuffer, i64, *mut ErrorBuffer) -> Status,
    explain: Option<unsafe extern "C" fn(*mut c_void, *const AnswerView, *const Stream, *mut ErrorBuffer) -> Status>,
    submit: Option<unsafe extern "C" fn(*mut c_void, *const AnswerView, i64, *mut ErrorBuffer) -> Status>,
    poll: Option<unsafe extern "C" fn(*mut c_void, *const Waiting, *mut ErrorBuffer) -> Status>,
    cancel: Option<unsafe extern "C" fn(*mut c_void, i64)>,
    uses: Option<unsafe extern "C" fn(*const Value) -> u32>,
}

type Fit = unsafe extern "C" fn(*mut c_void, *const Text, i64, *mut ErrorBuffer) -> Status;
type Identity = unsafe extern "C" fn(*const c_void, *mut c_char, i64, *mut ErrorBuffer) -> Status;

#[repr(C)]
pub struct EncoderTable {
    struct_size: u32,
    flags: u32,
    create: Create,
    destroy: unsafe extern "C" fn(*mut c_void),
    dim: Number,
    encode: unsafe extern "C" fn(*mut c_void, *const Text, i64, *mut f32, *mut ErrorBuffer) -> Status,
    fit: Option<Fit>,
    save: Option<Save>,
    load: Option<Load>,
    identity: Option<Identity>,
}

#[repr(C)]
pub struct CodebookTable {
    struct_size: u32,
    flags: u32,
    create: Create,
    destroy: unsafe extern "C" fn(*mut c_void),
    size: Number,
    dim: Number,
    assign: unsafe extern "C" fn(*const c_void, *const f32, *const Text, i64, *mut i32, *mut f32, *mut ErrorBuffer) -> Status,
    fit: Option<Fit>,
    save: Option<Save>,
    load: Option<Load>,
    encoder_identity: Option<Identity>,
    encoder_state: Option<unsafe extern "C" fn(*const c_void) -> Text>,
    cluster_name: Option<unsafe extern "C" fn(*const c_void, i64) -> Text>,
}

/// The values of [loss].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Loss {
    struct_size: u32,
    flags: u32,
    pub clip: f64,
    pub clip_high: f64,
    pub dual_clip: f64,
    pub kl_coef: f64,
    pub entropy_coef: f64,
    pub shaping: f64,
}

#[repr(C)]
pub struct Tokens {
    struct_size: u32,
    flags: u32,
    pub step: i64,
    n: i64,
    logprob: *const f32,
    detached: *const f32,
    old_logprob: *const f32,
    sampler_logprob: *const f32,
    ref_logprob: *const f32,
    kl: *const f32,
    entropy: *const f32,
    advantage: *const f64,
    weight: *const f64,
    off_policy: *const u8,
    prepared: *const f64,
    n_sequences: i64,
    n_groups: i64,
    sequence_begin: *const i64,
    group_begin: *const i64,
}

#[repr(C)]
pub struct TokenLossBuffers {
    struct_size: u32,
    flags: u32,
    value: *mut f64,
    dlogprob: *mut f64,
    dentropy: *mut f64,
    dkl: *mut f64,
    clipped: *mut u8,
}

#[repr(C)]
pub struct ObjectiveTable {
    struct_size: u32,
    flags: u32,
    create: unsafe extern "C" fn(*const Host, *const Value, *const Loss, *mut *mut c_void, *mut ErrorBuffer) -> Status,
    destroy: unsafe extern "C" fn(*mut c_void),
    save: Option<Save>,
    load: Option<Load>,
    prepare_size: Option<Number>,
    collect_size: Option<Number>,
    prepare: Option<unsafe extern "C" fn(*const c_void, *const Tokens, *mut f64, *mut ErrorBuffer) -> Status>,
    compute: unsafe extern "C" fn(*const c_void, *const Tokens, *mut TokenLossBuffers, *mut ErrorBuffer) -> Status,
    collect: Option<unsafe extern "C" fn(*const c_void, *const Tokens, *const TokenLossBuffers, *mut f64, *mut ErrorBuffer) -> Status>,
    apply: Option<unsafe extern "C" fn(*mut c_void, i64, *const f64, *mut ErrorBuffer) -> Status>,
}

/// The training rows. They live as long as the instance.
#[repr(C)]
pub struct Rows {
    struct_size: u32,
    flags: u32,
    n: i64,
    n_sources: i64,
    pub prompts: i64,
    pub group_size: i64,
    prompt_uid: *const u64,
    source: *const i32,
    weight: *const f64,
    level: *const f64,
}

/// The input of next.
#[repr(C)]
pub struct Draw {
    struct_size: u32,
    flags: u32,
    pub step: i64,
    n: i64,
    pub cursor: i64,
    ordered: *const i64,
    drawn: *const i64,
    n_drawn: i64,
}

/// Sampled groups with their verdicts.
#[repr(C)]
pub struct Groups {
    struct_size: u32,
    flags: u32,
    pub step: i64,
    n_groups: i64,
    n_rollouts: i64,
    row: *const i64,
    group_begin: *const i64,
    reward: *const f64,
    verdict: *const i32,
    length: *const i64,
    finish: *const u8,
    fate: *const u8,
    /// In keep: number of groups sampled earlier in this step.
    pub n_before: i64,
}

#[repr(C)]
pub struct CurriculumTable {
    struct_size: u32,
    flags: u32,
    create: unsafe extern "C" fn(*const Host, *const Value, *const Rows, *mut *mut c_void, *mut ErrorBuffer) -> Status,
    destroy: unsafe extern "C" fn(*mut c_void),
    save: Option<Save>,
    load: Option<Load>,
    next: Option<unsafe extern "C" fn(*const c_void, *const Draw, *mut i64, *mut i64, *mut ErrorBuffer) -> Status>,
    keep: Option<unsafe extern "C" fn(*const c_void, *const Groups, *mut u8, *mut i64, *mut ErrorBuffer) -> Status>,
    apply: Option<unsafe extern "C" fn(*mut c_void, *const Groups, *mut ErrorBuffer) -> Status>,
    describe: Option<Save>,
}

#[repr(C)]
pub struct Descriptor {
    struct_size: u32,
    kind: i32,
    name: *const c_char,
    version: *const c_char,
    summary: *const c_char,
    license: *const c_char,
    source: *const c_char,
    params: *const Param,
    n_params: u32,
    param_size: u32,
    needs: u32,
    threading: u32,
    functions: *const c_void,
}

#[repr(C)]
pub struct Plugin {
    pub struct_size: u32,
    pub abi_minor_built: u32,
    pub abi_minor_needed: u32,
    pub n_descriptors: u32,
    pub descriptors: *const *const Descriptor,
}

/// For statics that hold pointers to other statics.
pub struct Shared<T>(pub T);
unsafe impl<T> Sync for Shared<T> {}
unsafe impl Sync for Plugin {}
unsafe impl Sync for Descriptor {}
unsafe impl Sync for Param {}
// The host's functions may be called from any thread (base.h), so an instance may keep them.
unsafe impl Sync for Host {}
unsafe impl Sync for EmbedExtension {}
unsafe impl Sync for LogprobExtension {}

// Checks the layout of the headers: an error in the structs above does not compile.
const _: () = {
    assert!(std::mem::size_of::<ErrorBuffer>() == 512 && std::mem::size_of::<Text>() == 16 && std::mem::size_of::<Param>() == 64);
    assert!(std::mem::size_of::<Value>() == 8 && std::mem::size_of::<Stream>() == 40 && std::mem::size_of::<Host>() == 72);
    assert!(std::mem::size_of::<Batch>() == 232 && std::mem::size_of::<AdvantageBuffers>() == 64);
    assert!(std::mem::size_of::<EstimatorTable>() == 128 && std::mem::size_of::<VerifierTable>() == 72);
    assert!(std::mem::size_of::<AnswerView>() == 120 && std::mem::size_of::<VerdictBuffer>() == 72);
    assert!(std::mem::size_of::<EncoderTable>() == 72 && std::mem::size_of::<CodebookTable>() == 96);
    assert!(std::mem::size_of::<Loss>() == 56 && std::mem::size_of::<Tokens>() == 144);
    assert!(std::mem::size_of::<TokenLossBuffers>() == 48 && std::mem::size_of::<ObjectiveTable>() == 88);
    assert!(std::mem::size_of::<Rows>() == 72 && std::mem::size_of::<Draw>() == 56 && std::mem::size_of::<Groups>() == 96);
    assert!(std::mem::size_of::<CurriculumTable>() == 72);
    assert!(std::mem::size_of::<Descriptor>() == 80 && std::mem::size_of::<Plugin>() == 24);
};

// ---------------------------------------------------------------- errors

pub struct Error {
    pub code: Status,
    pub message: String,
}
pub type Result<T> = std::result::Result<T, Error>;

pub fn fail<T>(code: Status, message: impl Into<String>) -> Result<T> {
    Err(Error { code, message: message.into() })
}

unsafe fn report(out: *mut ErrorBuffer, e: Error) -> Status {
    if let Some(buffer) = out.as_mut() {
        let mut n = e.message.len().min(buffer.message.len() - 1);
        while !e.message.is_char_boundary(n) {
            n -= 1;
        }
        buffer.code = e.code;
        buffer.message[..n].copy_from_slice(&e.message.as_bytes()[..n]);
        buffer.message[n] = 0;
    }
    e.code
}

/// A panic may not cross the boundary. Its message becomes part of the error in the host's log and
/// is not written to stderr.
fn quietly<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result,
        Err(panic) => {
            let what = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
            fail(E_PLUGIN, format!("panicked: {}", what.unwrap_or_default()))
        }
    }
}

unsafe fn guard(out: *mut ErrorBuffer, f: impl FnOnce() -> Result<()>) -> Status {
    match quietly(f) {
        Ok(()) => OK,
        Err(e) => report(out, e),
    }
}

/// Returns -1, which the host refuses, when f fails.
fn number(f: impl FnOnce() -> i64) -> i64 {
    quietly(|| Ok(f())).unwrap_or(-1)
}

// ---------------------------------------------------------------- views

unsafe fn slice<'a, T>(data: *const T, n: i64) -> &'a [T] {
    if n <= 0 || data.is_null() { &[] } else { std::slice::from_raw_parts(data, n as usize) }
}

unsafe fn slice_mut<'a, T>(data: *mut T, n: i64) -> &'a mut [T] {
    if n <= 0 || data.is_null() { &mut [] } else { std::slice::from_raw_parts_mut(data, n as usize) }
}

impl Text {
    /// The bytes; not always valid UTF-8.
    pub fn bytes(&self) -> &[u8] {
        unsafe { slice(self.data, self.size) }
    }
}

/// The checked parameters in the order of the table.
pub struct Values(*const Value);
impl Values {
    /// Value of a bool or an int, or the index of a choice.
    pub fn int(&self, i: usize) -> i64 {
        unsafe { (*self.0.add(i)).i }
    }
    pub fn float(&self, i: usize) -> f64 {
        unsafe { (*self.0.add(i)).f }
    }
    pub fn text(&self, i: usize) -> String {
        unsafe { CStr::from_ptr((*self.0.add(i)).s) }.to_string_lossy().into_owned()
    }
}

impl Host {
    /// level: 0 debug, 1 info, 2 warning, 3 error.
    pub fn log(&self, level: i32, message: &str) {
        let text: Vec<u8> = message.bytes().filter(|b| *b != 0).chain([0]).collect();
        if let Some(log) = self.log {
            unsafe { log(self.ctx, level, text.as_ptr() as *const c_char) }
        }
    }
}

impl Host {
    /// Records a value as KIND/name with the step's metrics.
    pub fn metric(&self, name: &str, value: f64) {
        let text: Vec<u8> = name.bytes().filter(|b| *b != 0).chain([0]).collect();
        if let Some(metric) = self.metric {
            unsafe { metric(self.ctx, text.as_ptr() as *const c_char, value) }
        }
    }
    /// Random words for (run seed, plugin, stream, counter): equal on every rank and thread.
    pub fn random(&self, stream: u64, counter: u64, out: &mut [u32]) -> Result<()> {
        match self.random.map(|random| unsafe { random(self.ctx, stream, counter, out.as_mut_ptr(), out.len() as i64) }) {
            Some(OK) => Ok(()),
            _ => fail(E_UNSUPPORTED, "the host gives no random numbers"),
        }
    }
    /// True when the run is stopping.
    pub fn cancelled(&self) -> bool {
        self.cancelled.map_or(false, |cancelled| unsafe { cancelled(self.ctx) } != 0)
    }
    /// "tare.embed/1": an EmbedExtension; "tare.logprob/1": a LogprobExtension; None: not offered.
    /// It lives until the instance is dropped.
    pub fn embed(&self) -> Option<&'static EmbedExtension> {
        unsafe { (self.extension?(self.ctx, c!("tare.embed/1")) as *const EmbedExtension).as_ref() }
    }
    pub fn logprob(&self) -> Option<&'static LogprobExtension> {
        unsafe { (self.extension?(self.ctx, c!("tare.logprob/1")) as *const LogprobExtension).as_ref() }
    }
}

unsafe fn take(status: Status, e: &ErrorBuffer) -> Result<()> {
    if status == OK {
        return Ok(());
    }
    let n = e.message.iter().position(|b| *b == 0).unwrap_or(0);
    fail(status, String::from_utf8_lossy(&e.message[..n]))
}

impl EmbedExtension {
    pub fn dim(&self) -> i64 {
        self.dim.map_or(0, |dim| unsafe { dim(self.ctx) })
    }
    /// out: [texts, dim]
    pub fn embed(&self, texts: &[Text], out: &mut [f32]) -> Result<()> {
        let mut e = ErrorBuffer::new();
        match self.embed {
            Some(embed) => unsafe { take(embed(self.ctx, texts.as_ptr(), texts.len() as i64, out.as_mut_ptr(), &mut e), &e) },
            None => fail(E_UNSUPPORTED, "tare.embed/1 has no embed"),
        }
    }
}

impl LogprobExtension {
    /// Logprobs of this rank's rollout after the policy step. out: [tokens of the rollout].
    pub fn logprob(&self, rollout: usize, out: &mut [f32]) -> Result<()> {
        let mut e = ErrorBuffer::new();
        match self.logprob {
            Some(logprob) => unsafe { take(logprob(self.ctx, rollout as i64, out.as_mut_ptr(), &mut e), &e) },
            None => fail(E_UNSUPPORTED, "tare.logprob/1 has no logprob"),
        }
    }
}

impl ErrorBuffer {
    fn new() -> ErrorBuffer {
        ErrorBuffer { struct_size: std::mem::size_of::<ErrorBuffer>() as u32, code: OK, message: [0; 504] }
    }
}

impl Stream {
    /// The version of the plugin that wrote the state (ABI 1.2); None: unknown.
    pub fn version(&self) -> Option<&str> {
        if (self.struct_size as usize) < std::mem::size_of::<Stream>() || self.version.is_null() {
            return None;
        }
        unsafe { CStr::from_ptr(self.version) }.to_str().ok()
    }
    pub fn put(&self, data: &[u8]) -> Result<()> {
        match self.write.map(|write| unsafe { write(self.ctx, data.as_ptr() as *const c_void, data.len() as i64) }) {
            Some(OK) => Ok(()),
            _ => fail(E_IO, "the state cannot be written"),
        }
    }
    pub fn get<const N: usize>(&self) -> Result<[u8; N]> {
        let mut data = [0u8; N];
        match self.read.map(|read| unsafe { read(self.ctx, data.as_mut_ptr() as *mut c_void, N as i64) }) {
            Some(OK) => Ok(data),
            _ => fail(E_CORRUPT, "the state is cut short"),
        }
    }
}

impl Batch {
    pub fn groups(&self) -> usize {
        self.n_groups as usize
    }
    /// The rollouts of group m.
    pub fn group(&self, m: usize) -> std::ops::Range<usize> {
        let begin = unsafe { slice(self.group_begin, self.n_groups + 1) };
        begin[m] as usize..begin[m + 1] as usize
    }
    pub fn reward(&self) -> &[f64] {
        unsafe { slice(self.reward, self.n_rollouts) }
    }
    /// [groups], -1: none
    pub fn cluster(&self) -> &[i32] {
        unsafe { slice(self.cluster, self.n_groups) }
    }
    pub fn prompt_uid(&self) -> &[u64] {
        unsafe { slice(self.prompt_uid, self.n_groups) }
    }
    pub fn verdict(&self) -> &[i32] {
        unsafe { slice(self.verdict, self.n_rollouts) }
    }
    /// The tokens of the completion of rollout i, as a range of the token columns.
    pub fn tokens(&self, i: usize) -> std::ops::Range<usize> {
        let begin = unsafe { slice(self.token_begin, self.n_rollouts + 1) };
        begin[i] as usize..begin[i + 1] as usize
    }
    /// Empty unless needed, like the next two.
    pub fn token_entropy(&self) -> &[f32] {
        unsafe { slice(self.token_entropy, self.n_tokens) }
    }
    pub fn token_logprob(&self) -> &[f32] {
        unsafe { slice(self.token_logprob, self.n_tokens) }
    }
    pub fn token_ref_logprob(&self) -> &[f32] {
        unsafe { slice(self.token_ref_logprob, self.n_tokens) }
    }
    /// The reward's components of rollout i; empty unless needed.
    pub fn component(&self, i: usize) -> &[f64] {
        unsafe { &slice(self.component, self.n_rollouts * self.n_components)[self.components_of(i, self.component.is_null())] }
    }
    fn components_of(&self, i: usize, none: bool) -> std::ops::Range<usize> {
        let c = if none { 0 } else { self.n_components as usize };
        i * c..(i + 1) * c
    }
    /// A host of an earlier minor version does not have the columns from here on. They are then
    /// then empty, like columns that the plugin does not need.
    unsafe fn later<T>(&self, column: *const *const T, n: i64) -> &[T] {
        let end = column as usize + std::mem::size_of::<*const T>() - self as *const Batch as usize;
        if end > self.struct_size as usize { &[] } else { slice(*column, n) }
    }
    /// [rollouts] FINISH_STOP or FINISH_LENGTH
    pub fn finish(&self) -> &[u8] {
        unsafe { self.later(std::ptr::addr_of!(self.finish), self.n_rollouts) }
    }
    /// [groups] the data set's row as a JSON object
    pub fn row(&self) -> &[Text] {
        unsafe { self.later(std::ptr::addr_of!(self.row), self.n_groups) }
    }
    /// [rollouts]
    pub fn completion(&self) -> &[Text] {
        unsafe { self.later(std::ptr::addr_of!(self.completion), self.n_rollouts) }
    }
    /// [tokens]
    pub fn token_id(&self) -> &[i32] {
        unsafe { self.later(std::ptr::addr_of!(self.token_id), self.n_tokens) }
    }
    /// The verdict of each component of rollout i; 0: a component without a verifier.
    pub fn component_verdict(&self, i: usize) -> &[i32] {
        unsafe {
            let all = self.later(std::ptr::addr_of!(self.component_verdict), self.n_rollouts * self.n_components);
            &all[self.components_of(i, all.is_empty())]
        }
    }
    /// [rollouts] 1: the row's own completion, not a sample
    pub fn off_policy(&self) -> &[u8] {
        unsafe { self.later(std::ptr::addr_of!(self.off_policy), self.n_rollouts) }
    }
    /// [rollouts] policy steps before it was sampled; -1: not sampled by this run's policy
    pub fn policy_version(&self) -> &[i64] {
        unsafe { self.later(std::ptr::addr_of!(self.policy_version), self.n_rollouts) }
    }
    /// [tokens] index, from 1, of the verifier's segment in which the token begins; 0: none
    pub fn segment(&self) -> &[i32] {
        unsafe { self.later(std::ptr::addr_of!(self.segment), self.n_tokens) }
    }
    /// [tokens] sum of the weighted rewards of the segments that end in the token
    pub fn segment_reward(&self) -> &[f64] {
        unsafe { self.later(std::ptr::addr_of!(self.segment_reward), self.n_tokens) }
    }
    /// The fields of the row of group m that COLUMNS names, in that order; NaN: the row lacks the
    /// field. Empty without COLUMNS.
    pub fn column(&self, m: usize) -> &[f64] {
        unsafe {
            if (self.struct_size as usize) < std::mem::size_of::<Batch>() {
                return &[];
            }
            let n = if self.column.is_null() { 0 } else { self.n_columns as usize };
            &slice(self.column, self.n_groups * self.n_columns)[m * n..(m + 1) * n]
        }
    }
}

impl Tokens {
    pub fn len(&self) -> usize {
        self.n as usize
    }
    /// log pi(token) of the current weights; empty in prepare without OBJECTIVE_PASS.
    pub fn logprob(&self) -> &[f32] {
        unsafe { self.column(self.logprob) }
    }
    /// Equal to logprob, without a gradient.
    pub fn detached(&self) -> &[f32] {
        unsafe { self.column(self.detached) }
    }
    pub fn old_logprob(&self) -> &[f32] {
        unsafe { self.column(self.old_logprob) }
    }
    /// Empty unless needed, like the next two.
    pub fn sampler_logprob(&self) -> &[f32] {
        unsafe { self.column(self.sampler_logprob) }
    }
    pub fn ref_logprob(&self) -> &[f32] {
        unsafe { self.column(self.ref_logprob) }
    }
    pub fn kl(&self) -> &[f32] {
        unsafe { self.column(self.kl) }
    }
    pub fn entropy(&self) -> &[f32] {
        unsafe { self.column(self.entropy) }
    }
    pub fn advantage(&self) -> &[f64] {
        unsafe { self.column(self.advantage) }
    }
    pub fn weight(&self) -> &[f64] {
        unsafe { self.column(self.weight) }
    }
    /// 1: a token of an off-policy trace; empty: no such token.
    pub fn off_policy(&self) -> &[u8] {
        unsafe { self.column(self.off_policy) }
    }
    /// The output of prepare, size numbers for each token.
    pub fn prepared(&self, size: usize) -> &[f64] {
        unsafe { slice(self.prepared, self.n * size as i64) }
    }
    /// In prepare: the number of sequences, and the tokens of one.
    pub fn sequences(&self) -> usize {
        self.n_sequences as usize
    }
    pub fn sequence(&self, i: usize) -> std::ops::Range<usize> {
        let begin = unsafe { slice(self.sequence_begin, self.n_sequences + 1) };
        begin[i] as usize..begin[i + 1] as usize
    }
    /// In prepare: the number of groups, and the sequences of one.
    pub fn groups(&self) -> usize {
        self.n_groups as usize
    }
    pub fn group(&self, m: usize) -> std::ops::Range<usize> {
        let begin = unsafe { slice(self.group_begin, self.n_groups + 1) };
        begin[m] as usize..begin[m + 1] as usize
    }
    unsafe fn column<T>(&self, data: *const T) -> &[T] {
        slice(data, self.n)
    }
}

/// The host does not change the rows while the instance lives.
unsafe impl Sync for Rows {}
impl Rows {
    /// Number of rows, and of files.
    pub fn len(&self) -> usize {
        self.n as usize
    }
    pub fn sources(&self) -> usize {
        self.n_sources as usize
    }
    /// By row: its prompt, its file, its level (NaN: none). By file: its weight.
    pub fn prompt_uid(&self) -> &[u64] {
        unsafe { slice(self.prompt_uid, self.n) }
    }
    pub fn source(&self) -> &[i32] {
        unsafe { slice(self.source, self.n) }
    }
    pub fn level(&self) -> &[f64] {
        unsafe { slice(self.level, self.n) }
    }
    pub fn weight(&self) -> &[f64] {
        unsafe { slice(self.weight, self.n_sources) }
    }
}

impl Draw {
    /// Number of rows to choose.
    pub fn len(&self) -> usize {
        self.n as usize
    }
    /// The next rows of the plain order, and the rows chosen earlier in this step.
    pub fn ordered(&self) -> &[i64] {
        unsafe { slice(self.ordered, self.n) }
    }
    pub fn drawn(&self) -> &[i64] {
        unsafe { slice(self.drawn, self.n_drawn) }
    }
}

impl Groups {
    pub fn groups(&self) -> usize {
        self.n_groups as usize
    }
    /// The rollouts of group m.
    pub fn group(&self, m: usize) -> std::ops::Range<usize> {
        let begin = unsafe { slice(self.group_begin, self.n_groups + 1) };
        begin[m] as usize..begin[m + 1] as usize
    }
    /// By group: index into the rows.
    pub fn row(&self) -> &[i64] {
        unsafe { slice(self.row, self.n_groups) }
    }
    /// By rollout. fate is empty in keep.
    pub fn reward(&self) -> &[f64] {
        unsafe { slice(self.reward, self.n_rollouts) }
    }
    pub fn verdict(&self) -> &[i32] {
        unsafe { slice(self.verdict, self.n_rollouts) }
    }
    pub fn length(&self) -> &[i64] {
        unsafe { slice(self.length, self.n_rollouts) }
    }
    pub fn finish(&self) -> &[u8] {
        unsafe { slice(self.finish, self.n_rollouts) }
    }
    pub fn fate(&self) -> &[u8] {
        unsafe { slice(self.fate, self.n_rollouts) }
    }
}

/// The host's output buffers, one entry for each token; dkl is empty without OBJECTIVE_KL.
pub struct TokenLoss<'a> {
    pub value: &'a mut [f64],
    pub dlogprob: &'a mut [f64],
    pub dentropy: &'a mut [f64],
    pub dkl: &'a mut [f64],
    pub clipped: &'a mut [u8],
}

impl TokenLossBuffers {
    unsafe fn view(&self, n: i64) -> TokenLoss<'_> {
        TokenLoss {
            value: slice_mut(self.value, n),
            dlogprob: slice_mut(self.dlogprob, n),
            dentropy: slice_mut(self.dentropy, n),
            dkl: slice_mut(self.dkl, n),
            clipped: slice_mut(self.clipped, n),
        }
    }
}

/// The host's output buffers: [rollouts] advantage and rollout_weight, [groups] baseline, scale and
/// confidence.
pub struct Advantages<'a> {
    pub advantage: &'a mut [f64],
    pub rollout_weight: &'a mut [f64],
    pub baseline: &'a mut [f64],
    pub scale: &'a mut [f64],
    pub confidence: &'a mut [f64],
    pub token_advantage: &'a mut [f32],
    pub refill_groups: &'a mut i64,
}

pub struct Answer<'a> {
    pub prompt: &'a [u8],
    pub completion: &'a [u8],
    pub answer: &'a [u8],
    pub row: &'a [u8],
    pub deadline_ns: i64,
}

/// reason: a static text that ends with NUL, made by c!, or null.
pub struct Verdict {
    pub code: i32,
    pub reward: f64,
    pub extracted: Vec<u8>,
    pub reason: *const c_char,
}

// ---------------------------------------------------------------- what a plugin implements

/// Instances are created by one thread and called by others, so a plugin is Send. Where functions
/// take &self, several threads may call one instance, so it is Sync as well. A type that is not
/// (Rc, Cell, raw pointers) does not compile.
///
/// STATEFUL: save and load are offered. PREPARES, COLLECTS: the size functions give the number of
/// doubles that a group adds to. RECORDS (with STATEFUL): a record of each group, for a state by
/// prompt; apply_records is called instead of apply. COLUMNS (since = 2): fields of the data set's
/// rows that the estimator reads as numbers, `&[c!("level"), std::ptr::null()]`, with null at the
/// end.
pub trait Estimator: Sized + Send + Sync {
    const STATEFUL: bool = false;
    const PREPARES: bool = false;
    const COLLECTS: bool = false;
    const DESCRIBES: bool = false;
    const RECORDS: bool = false;
    const COLUMNS: &'static [*const c_char] = &[];
    fn new(host: &Host, values: &Values, n_clusters: i64) -> Result<Self>;
    fn compute(&self, batch: &Batch, prepared: &[f64], out: &mut Advantages) -> Result<()>;
    fn prepare_size(&self) -> i64 {
        0
    }
    fn prepare(&self, _batch: &Batch, _group: usize, _sum: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn collect_size(&self) -> i64 {
        0
    }
    fn collect(&self, _batch: &Batch, _group: usize, _sum: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn apply(&mut self, _step: i64, _collected: &[f64]) -> Result<()> {
        Ok(())
    }
    fn record_size(&self) -> i64 {
        0
    }
    fn record(&self, _batch: &Batch, _group: usize, _record: &mut [f64]) -> Result<()> {
        Ok(())
    }
    /// records: [prompt_uid.len(), record_size], of all groups of all ranks in global prompt order.
    fn apply_records(&mut self, _step: i64, _collected: &[f64], _prompt_uid: &[u64], _records: &[f64]) -> Result<()> {
        Ok(())
    }
    fn save(&self, _out: &Stream) -> Result<()> {
        Ok(())
    }
    fn load(&mut self, _in: &Stream) -> Result<()> {
        Ok(())
    }
    fn describe(&self, out: &Stream) -> Result<()> {
        out.put(b"{}")
    }
}

/// PREPARES: prepare is called for each minibatch. STATEFUL: collect, apply, save and load are
/// offered. FLAGS: OBJECTIVE_OWN_CLIP and OBJECTIVE_OWN_DUAL_CLIP for values of `[loss]` that the
/// objective does not read, so that the host can warn a user who sets them.
pub trait Objective: Sized + Send + Sync {
    const PREPARES: bool = false;
    const STATEFUL: bool = false;
    const FLAGS: u32 = 0;
    fn new(host: &Host, values: &Values, loss: &Loss) -> Result<Self>;
    fn compute(&self, tokens: &Tokens, out: &mut TokenLoss) -> Result<()>;
    /// Numbers for each token.
    fn prepare_size(&self) -> i64 {
        1
    }
    fn prepare(&self, _tokens: &Tokens, _prepared: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn collect_size(&self) -> i64 {
        0
    }
    fn collect(&self, _tokens: &Tokens, _loss: &TokenLoss, _sum: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn apply(&mut self, _step: i64, _collected: &[f64]) -> Result<()> {
        Ok(())
    }
    fn save(&self, _out: &Stream) -> Result<()> {
        Ok(())
    }
    fn load(&mut self, _in: &Stream) -> Result<()> {
        Ok(())
    }
}

/// CHOOSES: next is called. KEEPS: keep is called. STATEFUL: apply, save and load are offered.
pub trait Curriculum: Sized + Send {
    const CHOOSES: bool = false;
    const KEEPS: bool = false;
    const STATEFUL: bool = false;
    /// rows live as long as the instance.
    fn new(host: &Host, values: &Values, rows: &'static Rows) -> Result<Self>;
    fn next(&self, _draw: &Draw, _row: &mut [i64], _rollouts: &mut [i64]) -> Result<()> {
        Ok(())
    }
    /// Returns the number of groups to sample in addition.
    fn keep(&self, _groups: &Groups, _fate: &mut [u8]) -> Result<i64> {
        Ok(0)
    }
    fn apply(&mut self, _groups: &Groups) -> Result<()> {
        Ok(())
    }
    fn save(&self, _out: &Stream) -> Result<()> {
        Ok(())
    }
    fn load(&mut self, _in: &Stream) -> Result<()> {
        Ok(())
    }
}

/// EXPLAINS: explain is offered. GIVES_SEGMENTS: segments is called after verify, where the host
/// collects them. WAITS: submit, poll and cancel are offered.
pub trait Verifier: Sized + Send {
    const EXPLAINS: bool = false;
    const GIVES_SEGMENTS: bool = false;
    const WAITS: bool = false;
    fn new(host: &Host, values: &Values) -> Result<Self>;
    fn verify(&mut self, answer: &Answer) -> Result<Verdict>;
    /// # Safety
    /// me is an instance; for Shared instances several threads may have it.
    unsafe fn verify_at(me: *mut Self, answer: &Answer) -> Result<Verdict> {
        (*me).verify(answer)
    }
    /// Rewards of segments of the completion, in their order. A host takes the first ones when its
    /// buffer is full.
    fn segments(&mut self, _answer: &Answer) -> Result<Vec<Segment>> {
        Ok(Vec::new())
    }
    /// # Safety
    /// As verify_at.
    unsafe fn segments_at(me: *mut Self, answer: &Answer) -> Result<Vec<Segment>> {
        (*me).segments(answer)
    }
    /// Begins to verify, without waiting for the verdict.
    fn submit(&mut self, _answer: &Answer, _ticket: i64) -> Result<()> {
        Ok(())
    }
    /// Indices into `tickets` of those with a verdict; waits at most wait_ns for the first.
    fn poll(&mut self, _tickets: &[i64], _wait_ns: i64) -> Result<Vec<(usize, Verdict)>> {
        Ok(Vec::new())
    }
    /// Ends the work for a ticket, whose verdict is no longer needed.
    fn cancel(&mut self, _ticket: i64) {}
    /// The inputs that the verdicts depend on in addition to the completion, from the parameters
    /// alone; 0: no field of the row is required.
    fn uses(_values: &Values) -> u32 {
        USES_ANSWER
    }
    /// Explains the verdict, as one JSON object.
    fn explain(&mut self, _answer: &Answer, out: &Stream) -> Result<()> {
        out.put(b"{}")
    }
}

/// A verifier whose single instance is called by several threads at once (REENTRANT):
/// tare::shared_verifier::<Mine>(...).
pub trait SharedVerifier: Sized + Send + Sync {
    fn new(host: &Host, values: &Values) -> Result<Self>;
    fn verify(&self, answer: &Answer) -> Result<Verdict>;
    /// As Verifier::uses.
    fn uses(_values: &Values) -> u32 {
        USES_ANSWER
    }
}

/// The verifier that shared_verifier makes.
pub struct Concurrent<T>(T);
impl<T: SharedVerifier> Verifier for Concurrent<T> {
    fn new(host: &Host, values: &Values) -> Result<Self> {
        Ok(Concurrent(T::new(host, values)?))
    }
    fn verify(&mut self, answer: &Answer) -> Result<Verdict> {
        self.0.verify(answer)
    }
    unsafe fn verify_at(me: *mut Self, answer: &Answer) -> Result<Verdict> {
        (*(me as *const Self)).0.verify(answer)
    }
    fn uses(values: &Values) -> u32 {
        T::uses(values)
    }
}

/// FITS: fit, save and load are offered. IDENTIFIES: identity is offered.
pub trait Encoder: Sized + Send {
    const FITS: bool = false;
    const IDENTIFIES: bool = false;
    /// The data that determine the embedding in addition to name, version and parameters (the hash
    /// of a model's weights).
    fn identity(&self) -> Result<String> {
        Ok(String::new())
    }
    fn new(host: &Host, values: &Values) -> Result<Self>;
    fn dim(&self) -> i64;
    /// out: [texts, dim]
    fn encode(&mut self, texts: &[Text], out: &mut [f32]) -> Result<()>;
    fn fit(&mut self, _texts: &[Text]) -> Result<()> {
        Ok(())
    }
    fn save(&self, _out: &Stream) -> Result<()> {
        Ok(())
    }
    fn load(&mut self, _in: &Stream) -> Result<()> {
        Ok(())
    }
}

/// FITS: fit, save and load are offered. ENCODER: encoder_identity is offered; ENCODER_STATE:
/// encoder_state; NAMES: cluster_name.
pub trait Codebook: Sized + Send + Sync {
    const FITS: bool = false;
    const ENCODER: bool = false;
    const ENCODER_STATE: bool = false;
    const NAMES: bool = false;
    /// The identity of the encoder whose embeddings it takes; empty: any.
    fn encoder_identity(&self) -> Result<String> {
        Ok(String::new())
    }
    /// The encoder's fitted state from the codebook's file.
    fn encoder_state(&self) -> &[u8] {
        &[]
    }
    /// The name of a cluster for display.
    fn cluster_name(&self, _cluster: i64) -> &[u8] {
        &[]
    }
    fn new(host: &Host, values: &Values) -> Result<Self>;
    fn size(&self) -> i64;
    /// 0: takes rows
    fn dim(&self) -> i64;
    /// embedding: [cluster.len(), dim] or empty; rows: or empty; distance: or empty
    fn assign(&self, embedding: &[f32], rows: &[Text], cluster: &mut [i32], distance: &mut [f32]) -> Result<()>;
    fn fit(&mut self, _rows: &[Text]) -> Result<()> {
        Ok(())
    }
    fn save(&self, _out: &Stream) -> Result<()> {
        Ok(())
    }
    fn load(&mut self, _in: &Stream) -> Result<()> {
        Ok(())
    }
}

// ---------------------------------------------------------------- tables

unsafe extern "C" fn destroy<T>(me: *mut c_void) {
    let _ = quietly(|| {
        drop(Box::from_raw(me as *mut T));
        Ok(())
    });
}

unsafe fn keep<T>(me: *mut *mut c_void, made: Result<T>) -> Result<()> {
    *me = Box::into_raw(Box::new(made?)) as *mut c_void;
    Ok(())
}

/// Writes text with a NUL after it into the host's buffer.
unsafe fn copy_text(text: &str, out: *mut c_char, capacity: i64) -> Result<()> {
    if text.len() as i64 >= capacity {
        return fail(E_RANGE, format!("a text of {} bytes for a buffer of {}", text.len(), capacity));
    }
    std::ptr::copy_nonoverlapping(text.as_ptr(), out as *mut u8, text.len());
    *out.add(text.len()) = 0;
    Ok(())
}

/// Returns an empty text when f panics.
unsafe fn view_of<'a>(f: impl FnOnce() -> &'a [u8]) -> Text {
    let bytes = quietly(|| Ok(f())).unwrap_or(&[]);
    Text { data: bytes.as_ptr(), size: bytes.len() as i64 }
}

struct EstimatorOf<T>(PhantomData<T>);
impl<T: Estimator> EstimatorOf<T> {
    const TABLE: EstimatorTable = EstimatorTable {
        struct_size: std::mem::size_of::<EstimatorTable>() as u32,
        flags: 0,
        create: Self::create,
        destroy: destroy::<T>,
        save: if T::STATEFUL { Some(Self::save) } else { None },
        load: if T::STATEFUL { Some(Self::load) } else { None },
        prepare_size: if T::PREPARES { Some(Self::prepare_size) } else { None },
        collect_size: if T::COLLECTS { Some(Self::collect_size) } else { None },
        prepare: if T::PREPARES { Some(Self::prepare) } else { None },
        compute: Self::compute,
        collect: if T::COLLECTS { Some(Self::collect) } else { None },
        apply: if (T::COLLECTS || T::STATEFUL) && !T::RECORDS { Some(Self::apply) } else { None },
        describe: if T::DESCRIBES { Some(Self::describe) } else { None },
        record_size: if T::RECORDS { Some(Self::record_size) } else { None },
        record: if T::RECORDS { Some(Self::record) } else { None },
        apply_records: if T::RECORDS { Some(Self::apply_records) } else { None },
        columns: if T::COLUMNS.is_empty() { None } else { Some(Self::columns) },
    };
    unsafe extern "C" fn columns(_: *const c_void) -> *const *const c_char {
        T::COLUMNS.as_ptr()
    }
    unsafe fn of<'a>(me: *const c_void) -> &'a T {
        &*(me as *const T)
    }
    unsafe extern "C" fn create(host: *const Host, values: *const Value, clusters: i64, me: *mut *mut c_void, e: *mut ErrorBuffer) -> Status {
        guard(e, || keep(me, T::new(&*host, &Values(values), clusters)))
    }
    unsafe extern "C" fn save(me: *const c_void, out: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || Self::of(me).save(&*out))
    }
    unsafe extern "C" fn load(me: *mut c_void, from: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).load(&*from))
    }
    unsafe extern "C" fn prepare_size(me: *const c_void) -> i64 {
        number(|| Self::of(me).prepare_size())
    }
    unsafe extern "C" fn collect_size(me: *const c_void) -> i64 {
        number(|| Self::of(me).collect_size())
    }
    unsafe extern "C" fn prepare(me: *const c_void, batch: *const Batch, group: i64, sum: *mut f64, e: *mut ErrorBuffer) -> Status {
        guard(e, || Self::of(me).prepare(&*batch, group as usize, slice_mut(sum, Self::of(me).prepare_size())))
    }
    unsafe extern "C" fn compute(me: *const c_void, batch: *const Batch, prepared: *const f64, out: *mut AdvantageBuffers, e: *mut ErrorBuffer) -> Status {
        guard(e, || {
            let (b, o) = (&*batch, &mut *out);
            let mut advantages = Advantages {
                advantage: slice_mut(o.advantage, b.n_rollouts),
                rollout_weight: slice_mut(o.rollout_weight, b.n_rollouts),
                baseline: slice_mut(o.baseline, b.n_groups),
                scale: slice_mut(o.scale, b.n_groups),
                confidence: slice_mut(o.confidence, b.n_groups),
                token_advantage: slice_mut(o.token_advantage, b.n_tokens),
                refill_groups: &mut o.refill_groups,
            };
            let n = if T::PREPARES { Self::of(me).prepare_size() } else { 0 };
            Self::of(me).compute(b, slice(prepared, n), &mut advantages)
        })
    }
    unsafe extern "C" fn collect(me: *const c_void, batch: *const Batch, group: i64, sum: *mut f64, e: *mut ErrorBuffer) -> Status {
        guard(e, || Self::of(me).collect(&*batch, group as usize, slice_mut(sum, Self::of(me).collect_size())))
    }
    unsafe extern "C" fn apply(me: *mut c_void, step: i64, collected: *const f64, e: *mut ErrorBuffer) -> Status {
        guard(e, || {
            let n = if T::COLLECTS { Self::of(me).collect_size() } else { 0 };
            (*(me as *mut T)).apply(step, slice(collected, n))
        })
    }
    unsafe extern "C" fn describe(me: *const c_void, out: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || Self::of(me).describe(&*out))
    }
    unsafe extern "C" fn record_size(me: *const c_void) -> i64 {
        number(|| Self::of(me).record_size())
    }
    unsafe extern "C" fn record(me: *const c_void, batch: *const Batch, group: i64, record: *mut f64, e: *mut ErrorBuffer) -> Status {
        guard(e, || Self::of(me).record(&*batch, group as usize, slice_mut(record, Self::of(me).record_size())))
    }
    unsafe extern "C" fn apply_records(
        me: *mut c_void, step: i64, collected: *const f64, uid: *const u64, records: *const f64, n: i64, e: *mut ErrorBuffer,
    ) -> Status {
        guard(e, || {
            let size = if T::COLLECTS { Self::of(me).collect_size() } else { 0 };
            let each = Self::of(me).record_size();
            (*(me as *mut T)).apply_records(step, slice(collected, size), slice(uid, n), slice(records, n * each))
        })
    }
}

struct VerifierOf<T>(PhantomData<T>);
impl<T: Verifier> VerifierOf<T> {
    const TABLE: VerifierTable = VerifierTable {
        struct_size: std::mem::size_of::<VerifierTable>() as u32,
        flags: if T::GIVES_SEGMENTS { GIVES_SEGMENTS } else { 0 },
        create: Self::create,
        destroy: destroy::<T>,
        verify: Self::verify,
        explain: if T::EXPLAINS { Some(Self::explain) } else { None },
        submit: if T::WAITS { Some(Self::submit) } else { None },
        poll: if T::WAITS { Some(Self::poll) } else { None },
        cancel: if T::WAITS { Some(Self::cancel) } else { None },
        uses: Some(Self::uses),
    };
    /// After a panic all bits are set, which the host refuses.
    unsafe extern "C" fn uses(values: *const Value) -> u32 {
        quietly(|| Ok(T::uses(&Values(values)))).unwrap_or(u32::MAX)
    }
    unsafe extern "C" fn submit(me: *mut c_void, answer: *const AnswerView, ticket: i64, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).submit(&Self::answer(&*answer), ticket))
    }
    unsafe extern "C" fn poll(me: *mut c_void, waiting: *const Waiting, e: *mut ErrorBuffer) -> Status {
        guard(e, || {
            let w = &*waiting;
            let done = slice_mut(w.done, w.n);
            for (i, verdict) in (*(me as *mut T)).poll(slice(w.ticket, w.n), w.wait_ns)? {
                Self::write(&mut **w.verdict.add(i), &verdict);
                done[i] = TICKET_JUDGED;
            }
            Ok(())
        })
    }
    unsafe extern "C" fn cancel(me: *mut c_void, ticket: i64) {
        let _ = quietly(|| {
            (*(me as *mut T)).cancel(ticket);
            Ok(())
        });
    }
    unsafe fn write(v: &mut VerdictBuffer, verdict: &Verdict) {
        let (mut size, all) = (verdict.extracted.len().min(v.capacity as usize), &verdict.extracted);
        while size > 0 && size < all.len() && all[size] & 0xc0 == 0x80 {
            size -= 1; // not inside a character
        }
        slice_mut(v.extracted, size as i64).copy_from_slice(&all[..size]);
        v.size = size as i64;
        v.code = verdict.code;
        v.reward = verdict.reward;
        v.reason = verdict.reason;
    }
    unsafe fn answer<'a>(a: &'a AnswerView) -> Answer<'a> {
        Answer {
            prompt: a.prompt.bytes(),
            completion: a.completion.bytes(),
            answer: a.answer.bytes(),
            row: a.row.bytes(),
            deadline_ns: a.deadline_ns,
        }
    }
    unsafe extern "C" fn explain(me: *mut c_void, answer: *const AnswerView, out: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).explain(&Self::answer(&*answer), &*out))
    }
    unsafe extern "C" fn create(host: *const Host, values: *const Value, me: *mut *mut c_void, e: *mut ErrorBuffer) -> Status {
        guard(e, || keep(me, T::new(&*host, &Values(values))))
    }
    unsafe extern "C" fn verify(
        me: *mut c_void, answers: *const *const AnswerView, verdicts: *const *mut VerdictBuffer, n: i64, e: *mut ErrorBuffer,
    ) -> Status {
        guard(e, || {
            for i in 0..n as usize {
                let (a, v) = (&**answers.add(i), &mut **verdicts.add(i));
                let verdict = T::verify_at(me as *mut T, &Self::answer(a))?;
                Self::write(v, &verdict);
                if T::GIVES_SEGMENTS && v.struct_size as usize >= std::mem::size_of::<VerdictBuffer>() && !v.segment.is_null() {
                    let segments = T::segments_at(me as *mut T, &Self::answer(a))?;
                    let n = segments.len().min(v.segment_capacity as usize);
                    slice_mut(v.segment, n as i64).copy_from_slice(&segments[..n]);
                    v.n_segments = n as i64;
                }
            }
            Ok(())
        })
    }
}

struct ObjectiveOf<T>(PhantomData<T>);
impl<T: Objective> ObjectiveOf<T> {
    const TABLE: ObjectiveTable = ObjectiveTable {
        struct_size: std::mem::size_of::<ObjectiveTable>() as u32,
        flags: T::FLAGS,
        create: Self::create,
        destroy: destroy::<T>,
        save: if T::STATEFUL { Some(Self::save) } else { None },
        load: if T::STATEFUL { Some(Self::load) } else { None },
        prepare_size: if T::PREPARES { Some(Self::prepare_size) } else { None },
        collect_size: if T::STATEFUL { Some(Self::collect_size) } else { None },
        prepare: if T::PREPARES { Some(Self::prepare) } else { None },
        compute: Self::compute,
        collect: if T::STATEFUL { Some(Self::collect) } else { None },
        apply: if T::STATEFUL { Some(Self::apply) } else { None },
    };
    unsafe extern "C" fn create(
        host: *const Host, values: *const Value, loss: *const Loss, me: *mut *mut c_void, e: *mut ErrorBuffer,
    ) -> Status {
        guard(e, || keep(me, T::new(&*host, &Values(values), &*loss)))
    }
    unsafe extern "C" fn prepare_size(me: *const c_void) -> i64 {
        number(|| (*(me as *const T)).prepare_size())
    }
    unsafe extern "C" fn collect_size(me: *const c_void) -> i64 {
        number(|| (*(me as *const T)).collect_size())
    }
    unsafe extern "C" fn prepare(me: *const c_void, tokens: *const Tokens, prepared: *mut f64, e: *mut ErrorBuffer) -> Status {
        guard(e, || {
            let (me, tokens) = (&*(me as *const T), &*tokens);
            me.prepare(tokens, slice_mut(prepared, tokens.n * me.prepare_size()))
        })
    }
    unsafe extern "C" fn compute(me: *const c_void, tokens: *const Tokens, out: *mut TokenLossBuffers, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *const T)).compute(&*tokens, &mut (*out).view((*tokens).n)))
    }
    unsafe extern "C" fn collect(
        me: *const c_void, tokens: *const Tokens, loss: *const TokenLossBuffers, sum: *mut f64, e: *mut ErrorBuffer,
    ) -> Status {
        guard(e, || {
            let me = &*(me as *const T);
            me.collect(&*tokens, &(*loss).view((*tokens).n), slice_mut(sum, me.collect_size()))
        })
    }
    unsafe extern "C" fn apply(me: *mut c_void, step: i64, collected: *const f64, e: *mut ErrorBuffer) -> Status {
        guard(e, || {
            let me = &mut *(me as *mut T);
            let n = me.collect_size();
            me.apply(step, slice(collected, n))
        })
    }
    unsafe extern "C" fn save(me: *const c_void, out: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *const T)).save(&*out))
    }
    unsafe extern "C" fn load(me: *mut c_void, from: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).load(&*from))
    }
}

struct CurriculumOf<T>(PhantomData<T>);
impl<T: Curriculum> CurriculumOf<T> {
    const TABLE: CurriculumTable = CurriculumTable {
        struct_size: std::mem::size_of::<CurriculumTable>() as u32,
        flags: 0,
        create: Self::create,
        destroy: destroy::<T>,
        save: if T::STATEFUL { Some(Self::save) } else { None },
        load: if T::STATEFUL { Some(Self::load) } else { None },
        next: if T::CHOOSES { Some(Self::next) } else { None },
        keep: if T::KEEPS { Some(Self::keep) } else { None },
        apply: if T::STATEFUL { Some(Self::apply) } else { None },
        describe: None,
    };
    unsafe extern "C" fn create(
        host: *const Host, values: *const Value, rows: *const Rows, me: *mut *mut c_void, e: *mut ErrorBuffer,
    ) -> Status {
        guard(e, || keep(me, T::new(&*host, &Values(values), &*rows)))
    }
    unsafe extern "C" fn next(me: *const c_void, draw: *const Draw, row: *mut i64, rollouts: *mut i64, e: *mut ErrorBuffer) -> Status {
        guard(e, || {
            let n = (*draw).n;
            (*(me as *const T)).next(&*draw, slice_mut(row, n), slice_mut(rollouts, n))
        })
    }
    unsafe extern "C" fn keep(
        me: *const c_void, groups: *const Groups, fate: *mut u8, replace: *mut i64, e: *mut ErrorBuffer,
    ) -> Status {
        guard(e, || {
            *replace = (*(me as *const T)).keep(&*groups, slice_mut(fate, (*groups).n_rollouts))?;
            Ok(())
        })
    }
    unsafe extern "C" fn apply(me: *mut c_void, groups: *const Groups, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).apply(&*groups))
    }
    unsafe extern "C" fn save(me: *const c_void, out: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *const T)).save(&*out))
    }
    unsafe extern "C" fn load(me: *mut c_void, from: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).load(&*from))
    }
}

struct EncoderOf<T>(PhantomData<T>);
impl<T: Encoder> EncoderOf<T> {
    const TABLE: EncoderTable = EncoderTable {
        struct_size: std::mem::size_of::<EncoderTable>() as u32,
        flags: 0,
        create: Self::create,
        destroy: destroy::<T>,
        dim: Self::dim,
        encode: Self::encode,
        fit: if T::FITS { Some(Self::fit) } else { None },
        save: if T::FITS { Some(Self::save) } else { None },
        load: if T::FITS { Some(Self::load) } else { None },
        identity: if T::IDENTIFIES { Some(Self::identity) } else { None },
    };
    unsafe extern "C" fn identity(me: *const c_void, text: *mut c_char, capacity: i64, e: *mut ErrorBuffer) -> Status {
        guard(e, || copy_text(&(*(me as *const T)).identity()?, text, capacity))
    }
    unsafe extern "C" fn create(host: *const Host, values: *const Value, me: *mut *mut c_void, e: *mut ErrorBuffer) -> Status {
        guard(e, || keep(me, T::new(&*host, &Values(values))))
    }
    unsafe extern "C" fn dim(me: *const c_void) -> i64 {
        number(|| (*(me as *const T)).dim())
    }
    unsafe extern "C" fn encode(me: *mut c_void, texts: *const Text, n: i64, out: *mut f32, e: *mut ErrorBuffer) -> Status {
        guard(e, || {
            let me = &mut *(me as *mut T);
            let dim = me.dim();
            me.encode(slice(texts, n), slice_mut(out, n * dim))
        })
    }
    unsafe extern "C" fn fit(me: *mut c_void, texts: *const Text, n: i64, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).fit(slice(texts, n)))
    }
    unsafe extern "C" fn save(me: *const c_void, out: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *const T)).save(&*out))
    }
    unsafe extern "C" fn load(me: *mut c_void, from: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).load(&*from))
    }
}

struct CodebookOf<T>(PhantomData<T>);
impl<T: Codebook> CodebookOf<T> {
    const TABLE: CodebookTable = CodebookTable {
        struct_size: std::mem::size_of::<CodebookTable>() as u32,
        flags: 0,
        create: Self::create,
        destroy: destroy::<T>,
        size: Self::size,
        dim: Self::dim,
        assign: Self::assign,
        fit: if T::FITS { Some(Self::fit) } else { None },
        save: if T::FITS { Some(Self::save) } else { None },
        load: if T::FITS { Some(Self::load) } else { None },
        encoder_identity: if T::ENCODER { Some(Self::encoder_identity) } else { None },
        encoder_state: if T::ENCODER_STATE { Some(Self::encoder_state) } else { None },
        cluster_name: if T::NAMES { Some(Self::cluster_name) } else { None },
    };
    unsafe extern "C" fn encoder_identity(me: *const c_void, text: *mut c_char, capacity: i64, e: *mut ErrorBuffer) -> Status {
        guard(e, || copy_text(&(*(me as *const T)).encoder_identity()?, text, capacity))
    }
    unsafe extern "C" fn encoder_state(me: *const c_void) -> Text {
        view_of(|| (*(me as *const T)).encoder_state())
    }
    unsafe extern "C" fn cluster_name(me: *const c_void, k: i64) -> Text {
        view_of(|| (*(me as *const T)).cluster_name(k))
    }
    unsafe extern "C" fn create(host: *const Host, values: *const Value, me: *mut *mut c_void, e: *mut ErrorBuffer) -> Status {
        guard(e, || keep(me, T::new(&*host, &Values(values))))
    }
    unsafe extern "C" fn size(me: *const c_void) -> i64 {
        number(|| (*(me as *const T)).size())
    }
    unsafe extern "C" fn dim(me: *const c_void) -> i64 {
        number(|| (*(me as *const T)).dim())
    }
    unsafe extern "C" fn assign(
        me: *const c_void, embedding: *const f32, rows: *const Text, n: i64, cluster: *mut i32, distance: *mut f32, e: *mut ErrorBuffer,
    ) -> Status {
        guard(e, || {
            let me = &*(me as *const T);
            me.assign(slice(embedding, n * me.dim()), slice(rows, n), slice_mut(cluster, n), slice_mut(distance, n))
        })
    }
    unsafe extern "C" fn fit(me: *mut c_void, rows: *const Text, n: i64, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).fit(slice(rows, n)))
    }
    unsafe extern "C" fn save(me: *const c_void, out: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *const T)).save(&*out))
    }
    unsafe extern "C" fn load(me: *mut c_void, from: *const Stream, e: *mut ErrorBuffer) -> Status {
        guard(e, || (*(me as *mut T)).load(&*from))
    }
}

// ---------------------------------------------------------------- descriptors

impl Param {
    const fn of(kind: i32, key: *const c_char, fallback: *const c_char, doc: *const c_char, min: f64, max: f64, flags: u32) -> Param {
        Param { key, fallback, doc, unit: std::ptr::null(), choices: std::ptr::null(), min, max, kind, flags }
    }
    /// min == max == 0: any finite number
    pub const fn float(key: *const c_char, fallback: *const c_char, doc: *const c_char, min: f64, max: f64, flags: u32) -> Param {
        Param::of(FLOAT, key, fallback, doc, min, max, flags)
    }
    pub const fn int(key: *const c_char, fallback: *const c_char, doc: *const c_char, min: f64, max: f64, flags: u32) -> Param {
        Param::of(INT, key, fallback, doc, min, max, flags)
    }
    pub const fn flag(key: *const c_char, fallback: *const c_char, doc: *const c_char) -> Param {
        Param::of(BOOL, key, fallback, doc, 0.0, 0.0, 0)
    }
    pub const fn string(key: *const c_char, fallback: *const c_char, doc: *const c_char) -> Param {
        Param::of(STRING, key, fallback, doc, 0.0, 0.0, 0)
    }
}

/// The descriptor's own members; texts are made by c!.
pub struct About {
    pub name: *const c_char,
    pub version: *const c_char,
    pub summary: *const c_char,
    pub license: *const c_char,
    pub source: *const c_char,
    pub needs: u32,
    pub threading: u32,
}

impl About {
    pub const fn new(name: *const c_char, version: *const c_char, summary: *const c_char, license: *const c_char) -> About {
        About { name, version, summary, license, source: std::ptr::null(), needs: 0, threading: SINGLE_THREAD }
    }
}

const fn descriptor(kind: i32, a: About, params: &'static [Param], functions: *const c_void) -> Descriptor {
    Descriptor {
        struct_size: std::mem::size_of::<Descriptor>() as u32,
        kind,
        name: a.name,
        version: a.version,
        summary: a.summary,
        license: a.license,
        source: a.source,
        params: params.as_ptr(),
        n_params: params.len() as u32,
        param_size: std::mem::size_of::<Param>() as u32,
        needs: a.needs,
        threading: a.threading,
        functions,
    }
}

pub const fn estimator<T: Estimator>(a: About, params: &'static [Param]) -> Descriptor {
    descriptor(1, a, params, &EstimatorOf::<T>::TABLE as *const EstimatorTable as *const c_void)
}
pub const fn verifier<T: Verifier>(a: About, params: &'static [Param]) -> Descriptor {
    assert!(a.threading != REENTRANT, "a Verifier changes itself (&mut self), so one instance cannot serve several threads; use shared_verifier");
    descriptor(2, a, params, &VerifierOf::<T>::TABLE as *const VerifierTable as *const c_void)
}
/// threading is REENTRANT.
pub const fn shared_verifier<T: SharedVerifier>(a: About, params: &'static [Param]) -> Descriptor {
    let about = About { threading: REENTRANT, ..a };
    descriptor(2, about, params, &VerifierOf::<Concurrent<T>>::TABLE as *const VerifierTable as *const c_void)
}
pub const fn encoder<T: Encoder>(a: About, params: &'static [Param]) -> Descriptor {
    assert!(a.threading != REENTRANT, "an Encoder changes itself (&mut self), so one instance cannot serve several threads");
    descriptor(3, a, params, &EncoderOf::<T>::TABLE as *const EncoderTable as *const c_void)
}
pub const fn codebook<T: Codebook>(a: About, params: &'static [Param]) -> Descriptor {
    descriptor(4, a, params, &CodebookOf::<T>::TABLE as *const CodebookTable as *const c_void)
}
pub const fn objective<T: Objective>(a: About, params: &'static [Param]) -> Descriptor {
    descriptor(5, a, params, &ObjectiveOf::<T>::TABLE as *const ObjectiveTable as *const c_void)
}
pub const fn curriculum<T: Curriculum>(a: About, params: &'static [Param]) -> Descriptor {
    descriptor(6, a, params, &CurriculumOf::<T>::TABLE as *const CurriculumTable as *const c_void)
}
