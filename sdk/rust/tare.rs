//! The tare plugin ABI, major 1, for Rust: the structs of the C headers, and traits that keep
//! unsafe code and panics in this file. Not part of the ABI: the C headers are the contract
//! (shapes, ownership, the functions that may change the state). Needs no crates; Rust 1.63.
//!
//!     #[macro_use]
//!     mod tare;
//!     struct Mine { scale: f64 }
//!     impl tare::Plugin for Mine {
//!         const PARAMS: &'static [tare::Param] = &[tare::Param::float(c!("scale"), c!("1"), c!("scales advantages"))];
//!         fn new(setup: &tare::Setup) -> tare::Result<Mine> { Ok(Mine { scale: setup.values.float(0) }) }
//!     }
//!     impl tare::Estimator for Mine { ... }
//!     tare_plugin!(tare::estimator::<Mine>(
//!         tare::About::new(c!("mine"), c!("0.1.0"), c!("a summary"), c!("Apache-2.0"))));
//!
//! An Err that a function returns, and a panic, reach the user as an error that begins with the
//! plugin's name. Constants of the traits say which optional functions a plugin has; a function
//! without such a constant is always offered and does nothing by default.
#![allow(dead_code)]

use std::ffi::{c_void, CStr};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::Range;
use std::os::raw::c_char; // std::ffi has it since Rust 1.64; Debian 12 has 1.63
use std::panic::{catch_unwind, AssertUnwindSafe};

#[cfg(panic = "abort")]
compile_error!("a plugin must not end the program that loads it: build it with panic = \"unwind\"");

/// A text that ends with NUL, for the tables.
#[macro_export]
macro_rules! c {
    ($text:expr) => {
        concat!($text, "\0").as_ptr() as *const std::os::raw::c_char
    };
}

/// Texts for Param::choice and About::pairs: list!["low", "high"].
#[macro_export]
macro_rules! list {
    ($($text:expr),+ $(,)?) => {
        tare::List(&[$(c!($text)),+, std::ptr::null()])
    };
}

/// The entry point of a file with these plugins.
#[macro_export]
macro_rules! tare_plugin {
    ($($descriptor:expr),+ $(,)?) => {
        const TARE_COUNT: usize = [$(stringify!($descriptor)),+].len();
        static TARE_DESCRIPTORS: [tare::Descriptor; TARE_COUNT] = [$($descriptor),+];
        static TARE_POINTERS: tare::Shared<[*const tare::Descriptor; TARE_COUNT]> = tare::Shared(tare::pointers(&TARE_DESCRIPTORS));
        static TARE_PLUGIN: tare::PluginFile = tare::PluginFile::new(&TARE_POINTERS.0);
        #[no_mangle]
        pub extern "C" fn tare_plugin_v1(_host: *const std::os::raw::c_void, _error: *mut std::os::raw::c_void) -> *const tare::PluginFile {
            &TARE_PLUGIN
        }
    };
}

pub const ABI_MAJOR: u32 = 1;
pub const ABI_MINOR: u32 = 0;

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

pub const PARAM_BOOL: i32 = 1;
pub const PARAM_INT: i32 = 2;
pub const PARAM_FLOAT: i32 = 3;
pub const PARAM_STRING: i32 = 4;
pub const PARAM_CHOICE: i32 = 5;
pub const PARAM_PATH: i32 = 6;

pub const PARAM_REQUIRED: u32 = 1;
pub const PARAM_MIN: u32 = 2;
pub const PARAM_MAX: u32 = 4;
pub const PARAM_ABOVE_MIN: u32 = 8;
pub const PARAM_BELOW_MAX: u32 = 16;
pub const PARAM_LOG_SCALE: u32 = 32;
pub const PARAM_SWEEPABLE: u32 = 64;
pub const PARAM_LOCKED_ON_RESUME: u32 = 128;
pub const PARAM_SECRET: u32 = 256;
pub const PARAM_DEPRECATED: u32 = 512;
pub const PARAM_EXPERT: u32 = 1024;
pub const PARAM_RUN_FILE: u32 = 2048;

pub const AXIS_ONE: i32 = 0;
pub const AXIS_ROW: i32 = 1;
pub const AXIS_GROUP: i32 = 2;
pub const AXIS_ROLLOUT: i32 = 3;
pub const AXIS_TURN: i32 = 4;
pub const AXIS_TOKEN: i32 = 5;

pub const U8: i32 = 1;
pub const I32: i32 = 2;
pub const I64: i32 = 3;
pub const U64: i32 = 4;
pub const F32: i32 = 5;
pub const F64: i32 = 6;
pub const TEXT: i32 = 7;

pub const WANT_OPTIONAL: u32 = 1;

pub const LOG_DEBUG: i32 = 0;
pub const LOG_INFO: i32 = 1;
pub const LOG_WARN: i32 = 2;
pub const LOG_ERROR: i32 = 3;

pub const METRIC_LAST: i32 = 0;
pub const METRIC_SUM: i32 = 1;
pub const METRIC_MEAN: i32 = 2;
pub const METRIC_MIN: i32 = 3;
pub const METRIC_MAX: i32 = 4;

pub const KIND_ESTIMATOR: i32 = 1;
pub const KIND_VERIFIER: i32 = 2;
pub const KIND_ENCODER: i32 = 3;
pub const KIND_CODEBOOK: i32 = 4;
pub const KIND_OBJECTIVE: i32 = 5;
pub const KIND_CURRICULUM: i32 = 6;
pub const KIND_ENVIRONMENT: i32 = 7;

pub const CALLS_SERIAL: u32 = 0;
pub const CALLS_INSTANCE_PER_THREAD: u32 = 1;
pub const CALLS_CONCURRENT: u32 = 2;

pub const FINISH_NONE: u8 = 0;
pub const FINISH_STOP: u8 = 1;
pub const FINISH_LENGTH: u8 = 2;
pub const FINISH_ENDED: u8 = 3;

pub const VERDICT_NONE: i32 = 0;
pub const VERDICT_CORRECT: i32 = 1;
pub const VERDICT_WRONG: i32 = 2;
pub const VERDICT_NO_ANSWER: i32 = 3;
pub const VERDICT_UNPARSABLE: i32 = 4;
pub const VERDICT_TIMED_OUT: i32 = 5;
/// Set by the host, never by a plugin.
pub const VERDICT_CRASHED: i32 = 6;
pub const VERDICT_PARTIAL: i32 = 7;

pub const FATE_KEPT: u8 = 0;
pub const FATE_LEFT_OUT: u8 = 1;
pub const FATE_COUNTED: u8 = 2;

// Values of Plugin::FLAGS.
pub const ESTIMATOR_GIVES_TOKENS: u32 = 1;
pub const VERIFIER_TOGETHER: u32 = 1;
pub const VERIFIER_GIVES_SEGMENTS: u32 = 2;
pub const VERIFIER_REPEATS: u32 = 4;
pub const OBJECTIVE_OWN_CLIP: u32 = 1;
pub const OBJECTIVE_OWN_DUAL_CLIP: u32 = 2;
pub const OBJECTIVE_LOOKS_AHEAD: u32 = 4;
pub const OBJECTIVE_TREATS_OFF_POLICY: u32 = 8;
pub const OBJECTIVE_GIVES_DKL: u32 = 16;
pub const OBJECTIVE_ZERO_AT_ZERO: u32 = 32;
pub const CURRICULUM_READS_WEIGHTS: u32 = 1;
pub const ENVIRONMENT_TOGETHER: u32 = 1;
pub const ENVIRONMENT_REPEATS: u32 = 4;

/// Bits that Verifier::uses and Environment::uses return.
pub const USES_ANSWER: u32 = 1;
pub const USES_MAYBE_ANSWER: u32 = 2;
pub const USES_ROW: u32 = 4;

pub const TICKET_OPEN: u8 = 0;
pub const TICKET_DONE: u8 = 1;

pub const ROLE_SYSTEM: i32 = 1;
pub const ROLE_USER: i32 = 2;
pub const ROLE_TOOL: i32 = 3;

pub const EPISODE_RUNNING: i32 = 0;
pub const EPISODE_DONE: i32 = 1;
pub const EPISODE_TRUNCATED: i32 = 2;

pub const LIMIT_DESCRIPTORS: usize = 64;
pub const LIMIT_PARAMS: usize = 256;
pub const LIMIT_WANTS: usize = 64;
pub const LIMIT_CHOICES: usize = 256;
pub const LIMIT_OLD_KEYS: usize = 32;
pub const LIMIT_ABOUT: usize = 32;
pub const LIMIT_NAME: usize = 63;
pub const LIMIT_METRIC: usize = 63;
pub const LIMIT_VERIFIERS: usize = 16;
pub const LIMIT_SEGMENTS: usize = 256;
pub const LIMIT_EXTRACTED: usize = 512;
pub const LIMIT_NOTE: usize = 512;

// ---------------------------------------------------------------- structs of the C headers

type Void = c_void;
type Me = *const Void;
type MeMut = *mut Void;
type Fail = *mut ErrorBuffer;

#[repr(C)]
pub struct ErrorBuffer {
    struct_size: u32,
    code: Status,
    message: [u8; 504],
}

/// A view of bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    data: *const u8,
    size: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Param {
    key: *const c_char,
    fallback: *const c_char,
    doc: *const c_char,
    unit: *const c_char,
    choices: *const *const c_char,
    min: f64,
    max: f64,
    kind: i32,
    flags: u32,
    group: *const c_char,
    choice_docs: *const *const c_char,
    old_keys: *const *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
union Value {
    i: i64,
    f: f64,
    s: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Want {
    name: *const c_char,
    axis: i32,
    kind: i32,
    flags: u32,
    width: u32,
}

#[repr(C)]
struct RawColumn {
    data: *const Void,
    n: i64,
    width: i64,
}

#[repr(C)]
pub struct Stream {
    struct_size: u32,
    flags: u32,
    ctx: *mut Void,
    write: Option<unsafe extern "C" fn(*mut Void, *const Void, i64) -> Status>,
    read: Option<unsafe extern "C" fn(*mut Void, *mut Void, i64) -> Status>,
    /// When reading: all bytes that there are.
    pub size: i64,
    /// In load: the writer's Plugin::STATE_VERSION.
    pub state_version: u32,
    reserved: u32,
}

#[repr(C)]
struct RawHost {
    struct_size: u32,
    abi_minor: u32,
    ctx: *mut Void,
    name: *const c_char,
    version: *const c_char,
    log: unsafe extern "C" fn(*mut Void, i32, *const c_char),
    alloc: unsafe extern "C" fn(*mut Void, i64, i64) -> *mut Void,
    release: unsafe extern "C" fn(*mut Void, *mut Void),
    random: unsafe extern "C" fn(*mut Void, u64, u64, *mut u32, i64) -> Status,
    metric: unsafe extern "C" fn(*mut Void, *const c_char, f64, i32),
    cancelled: unsafe extern "C" fn(*mut Void) -> i32,
    now_ns: unsafe extern "C" fn(*mut Void) -> i64,
    extension: unsafe extern "C" fn(*mut Void, *const c_char) -> *const Void,
}

/// Extension "tare.embed/1".
#[repr(C)]
pub struct EmbedExtension {
    struct_size: u32,
    flags: u32,
    ctx: *mut Void,
    dim: unsafe extern "C" fn(*mut Void) -> i64,
    identity: unsafe extern "C" fn(*mut Void, *const Stream, Fail) -> Status,
    embed: unsafe extern "C" fn(*mut Void, *const Text, i64, *mut f32, Fail) -> Status,
}

/// Extension "tare.progress/1".
#[repr(C)]
pub struct ProgressExtension {
    struct_size: u32,
    flags: u32,
    ctx: *mut Void,
    finished: unsafe extern "C" fn(*mut Void) -> i64,
    steps: i64,
}

#[repr(C)]
struct RawSetup {
    struct_size: u32,
    flags: u32,
    host: *const RawHost,
    values: *const Value,
    instance: *const c_char,
    n_clusters: i64,
    loss: *const Loss,
    dataset: *const RawDataset,
}

#[repr(C)]
struct RawSizes {
    struct_size: u32,
    flags: u32,
    prepare: i64,
    collect: i64,
    record: i64,
    dim: i64,
    clusters: i64,
}

#[repr(C)]
struct RawUpdate {
    struct_size: u32,
    flags: u32,
    step: i64,
    updates: i64,
    skipped: i64,
    collected: *const f64,
    n_groups: i64,
    prompt_uid: *const u64,
    record: *const f64,
}

#[repr(C)]
struct Head {
    struct_size: u32,
    flags: u32,
    create: unsafe extern "C" fn(*const RawSetup, *mut MeMut, Fail) -> Status,
    destroy: unsafe extern "C" fn(MeMut),
    save: Option<unsafe extern "C" fn(Me, *const Stream, Fail) -> Status>,
    load: Option<unsafe extern "C" fn(MeMut, *const Stream, Fail) -> Status>,
    describe: Option<unsafe extern "C" fn(Me, *const Stream, Fail) -> Status>,
    identity: Option<unsafe extern "C" fn(Me, *const Stream, Fail) -> Status>,
    select: Option<unsafe extern "C" fn(*const Value, *mut u8, Fail) -> Status>,
}

type SizesFn = unsafe extern "C" fn(Me, *mut RawSizes, Fail) -> Status;
type GroupFn = unsafe extern "C" fn(Me, *const RawBatch, i64, *mut f64, Fail) -> Status;
type UpdateFn = unsafe extern "C" fn(MeMut, *const RawUpdate, Fail) -> Status;
type StreamFn = unsafe extern "C" fn(Me, *const Stream, Fail) -> Status;
type UsesFn = unsafe extern "C" fn(*const Value) -> u32;

#[repr(C)]
struct RawBatch {
    struct_size: u32,
    flags: u32,
    step: i64,
    n_groups: i64,
    n_rollouts: i64,
    n_turns: i64,
    n_tokens: i64,
    n_before: i64,
    group_begin: *const i64,
    turn_begin: *const i64,
    token_begin: *const i64,
    act_begin: *const i64,
    act_end: *const i64,
    sampled: *const u8,
    length: *const i64,
    prompt_uid: *const u64,
    reward: *const f64,
    column: *const RawColumn,
}

#[repr(C)]
struct RawAdvantages {
    struct_size: u32,
    flags: u32,
    advantage: *mut f64,
    rollout_weight: *mut f64,
    token_advantage: *mut f32,
    baseline: *mut f64,
    scale: *mut f64,
    confidence: *mut f64,
    extra_groups: i64,
}

#[repr(C)]
struct EstimatorTable {
    head: Head,
    sizes: Option<SizesFn>,
    prepare: Option<GroupFn>,
    compute: unsafe extern "C" fn(Me, *const RawBatch, *const f64, *mut RawAdvantages, Fail) -> Status,
    collect: Option<GroupFn>,
    record: Option<GroupFn>,
    apply: Option<UpdateFn>,
}

#[repr(C)]
struct RawCompletion {
    struct_size: u32,
    flags: u32,
    prompt: Text,
    text: Text,
    answer: Text,
    row: Text,
    messages: Text,
    prompt_uid: u64,
    group: i64,
    index: i64,
    n_turns: i64,
    n_tokens: i64,
    deadline_ns: i64,
    finish: i32,
    off_policy: i32,
}

#[repr(C)]
struct RawVerdict {
    struct_size: u32,
    code: i32,
    reward: f64,
    extracted: *const Stream,
    note: *const Stream,
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
struct RawWaiting {
    struct_size: u32,
    flags: u32,
    n: i64,
    ticket: *const i64,
    state: *mut u8,
    wait_ns: i64,
}

#[repr(C)]
struct VerifierTable {
    head: Head,
    uses: Option<UsesFn>,
    verify: unsafe extern "C" fn(MeMut, *const *const RawCompletion, *const *mut RawVerdict, i64, Fail) -> Status,
    explain: Option<unsafe extern "C" fn(MeMut, *const RawCompletion, *const Stream, Fail) -> Status>,
    submit: Option<unsafe extern "C" fn(MeMut, *const RawCompletion, i64, Fail) -> Status>,
    poll: Option<unsafe extern "C" fn(MeMut, *const RawWaiting, Fail) -> Status>,
    take: Option<unsafe extern "C" fn(MeMut, i64, *mut RawVerdict, Fail) -> Status>,
    cancel: Option<unsafe extern "C" fn(MeMut, i64)>,
}

#[repr(C)]
struct EncoderTable {
    head: Head,
    sizes: SizesFn,
    encode: unsafe extern "C" fn(MeMut, *const Text, i64, *mut f32, Fail) -> Status,
    fit: Option<unsafe extern "C" fn(MeMut, *const Text, i64, Fail) -> Status>,
}

#[repr(C)]
struct RawPrompts {
    struct_size: u32,
    flags: u32,
    n: i64,
    embedding: *const f32,
    row: *const Text,
}

#[repr(C)]
struct RawAssignment {
    struct_size: u32,
    flags: u32,
    cluster: *mut i32,
    distance: *mut f32,
}

#[repr(C)]
struct CodebookTable {
    head: Head,
    sizes: SizesFn,
    assign: unsafe extern "C" fn(Me, *const RawPrompts, *mut RawAssignment, Fail) -> Status,
    fit: Option<unsafe extern "C" fn(MeMut, *const RawPrompts, Fail) -> Status>,
    encoder_identity: Option<StreamFn>,
    encoder_state: Option<StreamFn>,
    cluster_name: Option<unsafe extern "C" fn(Me, i64, *const Stream, Fail) -> Status>,
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
struct RawTokens {
    struct_size: u32,
    flags: u32,
    step: i64,
    n: i64,
    logprob: *const f32,
    detached: *const f32,
    old_logprob: *const f32,
    entropy: *const f32,
    advantage: *const f64,
    weight: *const f64,
    annotated: *const f64,
    n_rollouts: i64,
    n_groups: i64,
    token_begin: *const i64,
    group_begin: *const i64,
    column: *const RawColumn,
}

#[repr(C)]
struct RawTokenLoss {
    struct_size: u32,
    flags: u32,
    value: *mut f64,
    dlogprob: *mut f64,
    dentropy: *mut f64,
    dkl: *mut f64,
    clipped: *mut u8,
}

#[repr(C)]
struct ObjectiveTable {
    head: Head,
    sizes: Option<SizesFn>,
    annotate: Option<unsafe extern "C" fn(Me, *const RawTokens, *mut f64, Fail) -> Status>,
    compute: unsafe extern "C" fn(Me, *const RawTokens, *mut RawTokenLoss, Fail) -> Status,
    collect: Option<unsafe extern "C" fn(Me, *const RawTokens, *const RawTokenLoss, *mut f64, Fail) -> Status>,
    apply: Option<UpdateFn>,
}

#[repr(C)]
struct RawDataset {
    struct_size: u32,
    flags: u32,
    n_rows: i64,
    n_sources: i64,
    prompts_per_step: i64,
    group_size: i64,
    prompt_uid: *const u64,
    source: *const i32,
    source_weight: *const f64,
    column: *const RawColumn,
}

#[repr(C)]
struct RawDraw {
    struct_size: u32,
    flags: u32,
    step: i64,
    n: i64,
    cursor: i64,
    ordered: *const i64,
    drawn: *const i64,
    n_drawn: i64,
}

#[repr(C)]
struct RawChoice {
    struct_size: u32,
    flags: u32,
    row: *mut i64,
    n_rollouts: *mut i64,
}

#[repr(C)]
struct RawKept {
    struct_size: u32,
    flags: u32,
    fate: *mut u8,
    extra_groups: i64,
}

#[repr(C)]
struct CurriculumTable {
    head: Head,
    next: Option<unsafe extern "C" fn(Me, *const RawDraw, *mut RawChoice, Fail) -> Status>,
    keep: Option<unsafe extern "C" fn(Me, *const RawBatch, *mut RawKept, Fail) -> Status>,
    apply: Option<unsafe extern "C" fn(MeMut, *const RawBatch, Fail) -> Status>,
}

#[repr(C)]
struct RawMessage {
    struct_size: u32,
    role: i32,
    call_id: Text,
    name: Text,
    text: Text,
    parts: Text,
}

/// A tool call that the policy made; arguments: a JSON object.
#[repr(C)]
pub struct Call {
    struct_size: u32,
    flags: u32,
    pub id: Text,
    pub name: Text,
    pub arguments: Text,
}

#[repr(C)]
struct RawEpisode {
    struct_size: u32,
    flags: u32,
    row: Text,
    messages: Text,
    prompt_uid: u64,
    group: i64,
    index: i64,
    seed: [u64; 2],
    noise: [u64; 2],
    max_turns: i64,
    max_tokens: i64,
    deadline_ns: i64,
}

#[repr(C)]
struct RawAct {
    struct_size: u32,
    flags: u32,
    turn: i64,
    text: Text,
    call: *const *const Call,
    n_calls: i64,
    n_unparsed: i64,
    token: *const i32,
    n_tokens: i64,
    deadline_ns: i64,
    finish: i32,
    reserved: i32,
}

/// The answer of reset and step; on entry EPISODE_RUNNING, reward 0, no verdict.
#[repr(C)]
pub struct Observation {
    struct_size: u32,
    /// EPISODE_...
    pub end: i32,
    /// Of this turn, finite.
    pub reward: f64,
    /// VERDICT_... of the episode, when it ends.
    pub verdict: i32,
    flags: u32,
    ctx: *mut Void,
    say: unsafe extern "C" fn(*mut Void, *const RawMessage) -> Status,
    state_key: *const Stream,
    tools: *const Stream,
    stop: *const Stream,
    note: *const Stream,
}

#[repr(C)]
struct EnvironmentTable {
    head: Head,
    uses: Option<UsesFn>,
    card: Option<unsafe extern "C" fn(*const Value, *const Stream, Fail) -> Status>,
    open: unsafe extern "C" fn(MeMut, *mut MeMut, Fail) -> Status,
    close: unsafe extern "C" fn(MeMut, MeMut),
    reset: unsafe extern "C" fn(MeMut, MeMut, *const RawEpisode, *mut Observation, Fail) -> Status,
    step: unsafe extern "C" fn(MeMut, *const MeMut, *const *const RawAct, *const *mut Observation, i64, Fail) -> Status,
    save_session: Option<unsafe extern "C" fn(MeMut, Me, *const Stream, Fail) -> Status>,
    load_session: Option<unsafe extern "C" fn(MeMut, MeMut, *const Stream, Fail) -> Status>,
    suggest: Option<unsafe extern "C" fn(MeMut, Me, *const u64, *const Stream, Fail) -> Status>,
}

#[repr(C)]
pub struct Descriptor {
    struct_size: u32,
    kind: i32,
    name: *const c_char,
    version: *const c_char,
    summary: *const c_char,
    license: *const c_char,
    about: *const *const c_char,
    params: *const Param,
    wants: *const Want,
    n_params: u32,
    param_size: u32,
    n_wants: u32,
    want_size: u32,
    calls: u32,
    flags: u32,
    minor_needed: u32,
    state_version: u32,
    state_oldest: u32,
    reserved: u32,
    functions: *const Void,
    extension: Option<unsafe extern "C" fn(*const c_char) -> *const Void>,
}

/// The tare_plugin of a file.
#[repr(C)]
pub struct PluginFile {
    struct_size: u32,
    flags: u32,
    minor_built: u32,
    n_descriptors: u32,
    descriptors: *const *const Descriptor,
    build: *const c_char,
}

/// Texts with null at the end, made by list!.
pub struct List(pub &'static [*const c_char]);

/// For statics that hold pointers to other statics.
pub struct Shared<T>(pub T);
unsafe impl<T> Sync for Shared<T> {}
unsafe impl Sync for PluginFile {}
unsafe impl Sync for Descriptor {}
// The host's functions may be called from any thread (base.h), so an instance may keep them; the
// data set does not change while an instance lives.
unsafe impl Sync for RawHost {}
unsafe impl Sync for EmbedExtension {}
unsafe impl Sync for ProgressExtension {}
unsafe impl Sync for RawDataset {}

// Checks the layout of the headers: an error in the structs above does not compile.
const _: () = {
    assert!(size_of::<ErrorBuffer>() == 512 && size_of::<Text>() == 16 && size_of::<Param>() == 88);
    assert!(size_of::<Value>() == 8 && size_of::<Want>() == 24 && size_of::<RawColumn>() == 24);
    assert!(size_of::<Stream>() == 48 && size_of::<RawHost>() == 96 && size_of::<EmbedExtension>() == 40);
    assert!(size_of::<ProgressExtension>() == 32);
    assert!(size_of::<RawSetup>() == 56 && size_of::<RawSizes>() == 48 && size_of::<RawUpdate>() == 64);
    assert!(size_of::<Head>() == 64 && size_of::<RawBatch>() == 136 && size_of::<RawAdvantages>() == 64);
    assert!(size_of::<EstimatorTable>() == 112 && size_of::<VerifierTable>() == 120);
    assert!(size_of::<RawCompletion>() == 144 && size_of::<RawVerdict>() == 56 && size_of::<Segment>() == 16);
    assert!(size_of::<RawWaiting>() == 40 && size_of::<EncoderTable>() == 88 && size_of::<CodebookTable>() == 112);
    assert!(size_of::<RawPrompts>() == 32 && size_of::<RawAssignment>() == 24 && size_of::<Loss>() == 56);
    assert!(size_of::<RawTokens>() == 120 && size_of::<RawTokenLoss>() == 48 && size_of::<ObjectiveTable>() == 104);
    assert!(size_of::<RawDataset>() == 72 && size_of::<RawDraw>() == 56 && size_of::<RawChoice>() == 24);
    assert!(size_of::<RawKept>() == 24 && size_of::<CurriculumTable>() == 88);
    assert!(size_of::<RawMessage>() == 72 && size_of::<Call>() == 56 && size_of::<RawEpisode>() == 120);
    assert!(size_of::<RawAct>() == 88 && size_of::<Observation>() == 72 && size_of::<EnvironmentTable>() == 136);
    assert!(size_of::<Descriptor>() == 120 && size_of::<PluginFile>() == 32);
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

fn check(status: Status, message: &str) -> Result<()> {
    if status == OK { Ok(()) } else { fail(status, message) }
}

impl ErrorBuffer {
    fn new() -> ErrorBuffer {
        ErrorBuffer { struct_size: size_of::<ErrorBuffer>() as u32, code: OK, message: [0; 504] }
    }
    fn result(&self, status: Status) -> Result<()> {
        let n = self.message.iter().position(|b| *b == 0).unwrap_or(0);
        check(status, &String::from_utf8_lossy(&self.message[..n]))
    }
}

unsafe fn report(out: Fail, e: Error) -> Status {
    let code = if e.code == OK { E_GENERIC } else { e.code };
    if let Some(buffer) = out.as_mut() {
        let mut n = e.message.len().min(buffer.message.len() - 1);
        while !e.message.is_char_boundary(n) {
            n -= 1;
        }
        buffer.code = code;
        buffer.message[..n].copy_from_slice(&e.message.as_bytes()[..n]);
        buffer.message[n] = 0;
    }
    code
}

/// A panic may not cross the boundary. Its message becomes part of the error in the host's log and
/// is not written to stderr.
fn quietly<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let said = match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(panic) => {
                let said = panic.downcast_ref::<&str>().map(|s| s.to_string());
                std::mem::forget(panic); // its destructor may panic as well, which would end the process
                said.unwrap_or_default()
            }
        };
        fail(E_PLUGIN, format!("panicked: {}", said))
    })
}

unsafe fn guard(out: Fail, f: impl FnOnce() -> Result<()>) -> Status {
    match quietly(f) {
        Ok(()) => OK,
        Err(e) => report(out, e),
    }
}

// ---------------------------------------------------------------- views

unsafe fn slice<'a, T>(data: *const T, n: i64) -> &'a [T] {
    if n <= 0 || data.is_null() { &[] } else { std::slice::from_raw_parts(data, n as usize) }
}

unsafe fn slice_mut<'a, T>(data: *mut T, n: i64) -> &'a mut [T] {
    if n <= 0 || data.is_null() { &mut [] } else { std::slice::from_raw_parts_mut(data, n as usize) }
}

fn range(begin: &[i64], i: usize) -> Range<usize> {
    begin[i] as usize..begin[i + 1] as usize
}

unsafe fn optional<'a>(stream: *const Stream) -> Option<&'a Stream> {
    stream.as_ref()
}

impl Text {
    /// The bytes; not always valid UTF-8.
    pub fn bytes(&self) -> &[u8] {
        unsafe { slice(self.data, self.size) }
    }
    fn of(bytes: &[u8]) -> Text {
        Text { data: bytes.as_ptr(), size: bytes.len() as i64 }
    }
}

/// The checked parameters in the order of Plugin::PARAMS.
pub struct Values {
    data: *const Value,
    params: &'static [Param],
}

impl Values {
    fn of<T: Plugin>(data: *const Value) -> Values {
        Values { data, params: T::PARAMS }
    }
    fn at(&self, i: usize, kinds: &[i32]) -> Value {
        assert!(kinds.contains(&self.params[i].kind), "parameter {} has another type", i);
        unsafe { *self.data.add(i) }
    }
    /// Value of a bool or an int, or the index of a choice.
    pub fn int(&self, i: usize) -> i64 {
        unsafe { self.at(i, &[PARAM_BOOL, PARAM_INT, PARAM_CHOICE]).i }
    }
    pub fn float(&self, i: usize) -> f64 {
        unsafe { self.at(i, &[PARAM_FLOAT]).f }
    }
    pub fn text(&self, i: usize) -> String {
        unsafe { CStr::from_ptr(self.at(i, &[PARAM_STRING, PARAM_PATH]).s) }.to_string_lossy().into_owned()
    }
}

/// Services of the host. An instance may keep it and call it from any thread.
#[derive(Clone, Copy)]
pub struct Host(&'static RawHost);

fn terminated(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| *b != 0).chain([0]).collect()
}

impl Host {
    /// level: LOG_...
    pub fn log(&self, level: i32, message: &str) {
        unsafe { (self.0.log)(self.0.ctx, level, terminated(message).as_ptr() as *const c_char) }
    }
    /// Records a value as KIND/name with the step's metrics. how: METRIC_...
    pub fn metric(&self, name: &str, value: f64, how: i32) {
        unsafe { (self.0.metric)(self.0.ctx, terminated(name).as_ptr() as *const c_char, value, how) }
    }
    /// Random words for (run seed, plugin, stream, counter): equal on every rank and thread.
    pub fn random(&self, stream: u64, counter: u64, out: &mut [u32]) -> Result<()> {
        let status = unsafe { (self.0.random)(self.0.ctx, stream, counter, out.as_mut_ptr(), out.len() as i64) };
        check(status, "the host gives no random numbers")
    }
    /// True when the run is stopping.
    pub fn cancelled(&self) -> bool {
        unsafe { (self.0.cancelled)(self.0.ctx) != 0 }
    }
    /// The clock of deadlines.
    pub fn now_ns(&self) -> i64 {
        unsafe { (self.0.now_ns)(self.0.ctx) }
    }
    /// Extension "tare.embed/1"; None: not offered. It lives until the instance is dropped.
    pub fn embed(&self) -> Option<&'static EmbedExtension> {
        unsafe { ((self.0.extension)(self.0.ctx, c!("tare.embed/1")) as *const EmbedExtension).as_ref() }
    }
    /// Extension "tare.progress/1"; None: not offered. It lives until the instance is dropped.
    pub fn progress(&self) -> Option<&'static ProgressExtension> {
        unsafe { ((self.0.extension)(self.0.ctx, c!("tare.progress/1")) as *const ProgressExtension).as_ref() }
    }
}

impl ProgressExtension {
    /// The number of finished steps.
    pub fn finished(&self) -> i64 {
        unsafe { (self.finished)(self.ctx) }
    }
    /// All steps of the run.
    pub fn steps(&self) -> i64 {
        self.steps
    }
}

impl EmbedExtension {
    pub fn dim(&self) -> i64 {
        unsafe { (self.dim)(self.ctx) }
    }
    /// Writes a hash of the weights.
    pub fn identity(&self, out: &Stream) -> Result<()> {
        let mut e = ErrorBuffer::new();
        let status = unsafe { (self.identity)(self.ctx, out, &mut e) };
        e.result(status)
    }
    /// out: [texts, dim]
    pub fn embed(&self, texts: &[Text], out: &mut [f32]) -> Result<()> {
        assert!(out.len() as i64 >= texts.len() as i64 * self.dim(), "the buffer of embed is too short");
        let mut e = ErrorBuffer::new();
        let status = unsafe { (self.embed)(self.ctx, texts.as_ptr(), texts.len() as i64, out.as_mut_ptr(), &mut e) };
        e.result(status)
    }
}

impl Stream {
    pub fn put(&self, data: &[u8]) -> Result<()> {
        match self.write {
            Some(write) => check(
                unsafe { write(self.ctx, data.as_ptr() as *const Void, data.len() as i64) },
                "the bytes cannot be written",
            ),
            None => fail(E_STATE, "the stream is only read"),
        }
    }
    pub fn get<const N: usize>(&self) -> Result<[u8; N]> {
        let mut data = [0u8; N];
        match self.read {
            Some(read) => check(unsafe { read(self.ctx, data.as_mut_ptr() as *mut Void, N as i64) }, "the state is cut short")?,
            None => fail(E_STATE, "the stream is only written")?,
        }
        Ok(data)
    }
}

/// An entry of a column: u8, i32, i64, u64, f32, f64 or Text.
pub trait Entry {
    const KIND: i32;
}
macro_rules! entries {
    ($($entry:ty = $kind:expr),*) => { $(impl Entry for $entry { const KIND: i32 = $kind; })* };
}
entries!(u8 = U8, i32 = I32, i64 = I64, u64 = U64, f32 = F32, f64 = F64, Text = TEXT);

/// The columns of a view, in the order of Plugin::WANTS.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    data: &'a [RawColumn],
    wants: &'static [Want],
}

impl<'a> Columns<'a> {
    unsafe fn of<T: Plugin>(data: *const RawColumn) -> Columns<'a> {
        Columns { data: slice(data, T::WANTS.len() as i64), wants: T::WANTS }
    }
    /// All entries of want i, width(i) numbers for each; empty for an optional column that is
    /// absent.
    pub fn get<E: Entry>(&self, i: usize) -> &'a [E] {
        assert!(self.wants[i].kind == E::KIND, "want {} has another type", i);
        self.data.get(i).map_or(&[], |c| unsafe { slice(c.data as *const E, c.n * c.width) })
    }
    pub fn width(&self, i: usize) -> usize {
        self.data.get(i).map_or(0, |c| c.width as usize)
    }
}

/// Numbers of an instance. Estimators: prepare, collect and record are the doubles of a group's
/// vectors. Objectives: prepare is the annotated doubles of a token, collect those of the vector.
/// Encoders and codebooks: dim is D, clusters K.
#[derive(Clone, Copy, Default)]
pub struct Sizes {
    pub prepare: i64,
    pub collect: i64,
    pub record: i64,
    pub dim: i64,
    pub clusters: i64,
}

/// What an instance is created from.
pub struct Setup {
    pub values: Values,
    pub host: Host,
    /// Its name in the run.
    pub instance: String,
    /// Estimators: K of the run's codebook; 0: none.
    pub n_clusters: i64,
    /// Objectives.
    pub loss: Option<&'static Loss>,
    /// Curricula.
    pub dataset: Option<Dataset>,
}

impl Setup {
    unsafe fn of<T: Plugin>(s: &RawSetup) -> Setup {
        Setup {
            values: Values::of::<T>(s.values),
            host: Host(&*s.host),
            instance: if s.instance.is_null() { String::new() } else { CStr::from_ptr(s.instance).to_string_lossy().into_owned() },
            n_clusters: s.n_clusters,
            loss: s.loss.as_ref(),
            dataset: s.dataset.as_ref().map(|raw| Dataset { raw, columns: Columns::of::<T>(raw.column) }),
        }
    }
}

/// The training rows; an instance may keep it.
#[derive(Clone, Copy)]
pub struct Dataset {
    raw: &'static RawDataset,
    pub columns: Columns<'static>,
}
unsafe impl Send for Dataset {}
unsafe impl Sync for Dataset {}

impl Dataset {
    pub fn rows(&self) -> usize {
        self.raw.n_rows as usize
    }
    pub fn sources(&self) -> usize {
        self.raw.n_sources as usize
    }
    pub fn prompts_per_step(&self) -> i64 {
        self.raw.prompts_per_step
    }
    pub fn group_size(&self) -> i64 {
        self.raw.group_size
    }
    /// [rows]
    pub fn prompt_uid(&self) -> &'static [u64] {
        unsafe { slice(self.raw.prompt_uid, self.raw.n_rows) }
    }
    /// [rows] the index of the file
    pub fn source(&self) -> &'static [i32] {
        unsafe { slice(self.raw.source, self.raw.n_rows) }
    }
    /// [sources]
    pub fn source_weight(&self) -> &'static [f64] {
        unsafe { slice(self.raw.source_weight, self.raw.n_sources) }
    }
}

/// Rollouts in groups; see tare/batch.h.
pub struct Batch<'a> {
    pub step: i64,
    /// Curricula, in keep: groups sampled earlier in this step.
    pub n_before: i64,
    group_begin: &'a [i64],
    turn_begin: &'a [i64],
    token_begin: &'a [i64],
    act_begin: &'a [i64],
    act_end: &'a [i64],
    /// [tokens] 1: sampled from the policy; 0: context
    pub sampled: &'a [u8],
    /// [rollouts] sampled tokens
    pub length: &'a [i64],
    /// [groups]
    pub prompt_uid: &'a [u64],
    /// [rollouts]
    pub reward: &'a [f64],
    pub columns: Columns<'a>,
}

impl<'a> Batch<'a> {
    unsafe fn of<T: Plugin>(b: &'a RawBatch) -> Batch<'a> {
        Batch {
            step: b.step,
            n_before: b.n_before,
            group_begin: slice(b.group_begin, b.n_groups + 1),
            turn_begin: slice(b.turn_begin, b.n_rollouts + 1),
            token_begin: slice(b.token_begin, b.n_rollouts + 1),
            act_begin: slice(b.act_begin, b.n_turns),
            act_end: slice(b.act_end, b.n_turns),
            sampled: slice(b.sampled, b.n_tokens),
            length: slice(b.length, b.n_rollouts),
            prompt_uid: slice(b.prompt_uid, b.n_groups),
            reward: slice(b.reward, b.n_rollouts),
            columns: Columns::of::<T>(b.column),
        }
    }
    pub fn groups(&self) -> usize {
        self.prompt_uid.len()
    }
    /// The rollouts of group m.
    pub fn group(&self, m: usize) -> Range<usize> {
        range(self.group_begin, m)
    }
    /// The turns of rollout i.
    pub fn turns(&self, i: usize) -> Range<usize> {
        range(self.turn_begin, i)
    }
    /// The tokens of rollout i, context included.
    pub fn tokens(&self, i: usize) -> Range<usize> {
        range(self.token_begin, i)
    }
    /// The sampled tokens of turn u.
    pub fn act(&self, u: usize) -> Range<usize> {
        self.act_begin[u] as usize..self.act_end[u] as usize
    }
}

/// The host's output buffers: [rollouts] advantage and rollout_weight, [groups] baseline, scale and
/// confidence, which are NaN on entry and may stay so; token_advantage is empty without
/// ESTIMATOR_GIVES_TOKENS.
pub struct Advantages<'a> {
    pub advantage: &'a mut [f64],
    pub rollout_weight: &'a mut [f64],
    pub token_advantage: &'a mut [f32],
    pub baseline: &'a mut [f64],
    pub scale: &'a mut [f64],
    pub confidence: &'a mut [f64],
    pub extra_groups: &'a mut i64,
}

/// The step's update. record: [prompt_uid.len(), Sizes::record]
pub struct Update<'a> {
    pub step: i64,
    pub updates: i64,
    pub skipped: i64,
    pub collected: &'a [f64],
    pub prompt_uid: &'a [u64],
    pub record: &'a [f64],
}

impl<'a> Update<'a> {
    unsafe fn of(u: &'a RawUpdate, sizes: Sizes) -> Update<'a> {
        Update {
            step: u.step,
            updates: u.updates,
            skipped: u.skipped,
            collected: slice(u.collected, sizes.collect),
            prompt_uid: slice(u.prompt_uid, u.n_groups),
            record: slice(u.record, u.n_groups * sizes.record),
        }
    }
}

/// Tokens in the loss; see tare/objective.h. logprob and entropy are empty in annotate without
/// OBJECTIVE_LOOKS_AHEAD.
pub struct Tokens<'a> {
    pub step: i64,
    n: usize,
    pub logprob: &'a [f32],
    /// Equal to logprob, without a gradient.
    pub detached: &'a [f32],
    pub old_logprob: &'a [f32],
    pub entropy: &'a [f32],
    pub advantage: &'a [f64],
    pub weight: &'a [f64],
    /// [tokens, Sizes::prepare] the output of annotate
    pub annotated: &'a [f64],
    token_begin: &'a [i64],
    group_begin: &'a [i64],
    pub columns: Columns<'a>,
}

impl<'a> Tokens<'a> {
    unsafe fn of<T: Plugin>(t: &'a RawTokens, annotated: i64) -> Tokens<'a> {
        Tokens {
            step: t.step,
            n: t.n as usize,
            logprob: slice(t.logprob, t.n),
            detached: slice(t.detached, t.n),
            old_logprob: slice(t.old_logprob, t.n),
            entropy: slice(t.entropy, t.n),
            advantage: slice(t.advantage, t.n),
            weight: slice(t.weight, t.n),
            annotated: slice(t.annotated, t.n * annotated),
            token_begin: slice(t.token_begin, t.n_rollouts + 1),
            group_begin: slice(t.group_begin, t.n_groups + 1),
            columns: Columns::of::<T>(t.column),
        }
    }
    pub fn len(&self) -> usize {
        self.n
    }
    /// In annotate: the number of rollouts, and the tokens of one.
    pub fn rollouts(&self) -> usize {
        self.token_begin.len().saturating_sub(1)
    }
    pub fn rollout(&self, i: usize) -> Range<usize> {
        range(self.token_begin, i)
    }
    /// In annotate: the number of groups, and the rollouts of one.
    pub fn groups(&self) -> usize {
        self.group_begin.len().saturating_sub(1)
    }
    pub fn group(&self, m: usize) -> Range<usize> {
        range(self.group_begin, m)
    }
}

/// The host's output buffers, one entry for each token; dkl is empty without OBJECTIVE_GIVES_DKL.
pub struct TokenLoss<'a> {
    pub value: &'a mut [f64],
    pub dlogprob: &'a mut [f64],
    pub dentropy: &'a mut [f64],
    pub dkl: &'a mut [f64],
    pub clipped: &'a mut [u8],
}

impl RawTokenLoss {
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

/// The input of next. ordered: the next rows of the plain order, as many as are to be chosen.
pub struct Draw<'a> {
    pub step: i64,
    pub cursor: i64,
    pub ordered: &'a [i64],
    pub drawn: &'a [i64],
}

/// One completion to verify; see tare_completion.
pub struct Completion<'a> {
    pub prompt: &'a [u8],
    pub text: &'a [u8],
    pub answer: &'a [u8],
    pub row: &'a [u8],
    pub messages: &'a [u8],
    pub prompt_uid: u64,
    pub group: i64,
    pub index: i64,
    pub n_turns: i64,
    pub n_tokens: i64,
    pub deadline_ns: i64,
    pub finish: i32,
    pub off_policy: bool,
}

impl<'a> Completion<'a> {
    fn of(c: &'a RawCompletion) -> Completion<'a> {
        Completion {
            prompt: c.prompt.bytes(),
            text: c.text.bytes(),
            answer: c.answer.bytes(),
            row: c.row.bytes(),
            messages: c.messages.bytes(),
            prompt_uid: c.prompt_uid,
            group: c.group,
            index: c.index,
            n_turns: c.n_turns,
            n_tokens: c.n_tokens,
            deadline_ns: c.deadline_ns,
            finish: c.finish,
            off_policy: c.off_policy != 0,
        }
    }
}

/// Verdict::new(tare::VERDICT_CORRECT, 1.0).extracted(b"42").note("equal")
pub struct Verdict {
    pub code: i32,
    pub reward: f64,
    pub extracted: Vec<u8>,
    pub note: String,
    /// Taken with VERIFIER_GIVES_SEGMENTS; a host takes the first ones when its buffer is full.
    pub segments: Vec<Segment>,
}

impl Verdict {
    pub fn new(code: i32, reward: f64) -> Verdict {
        Verdict { code, reward, extracted: Vec::new(), note: String::new(), segments: Vec::new() }
    }
    /// The text taken as the answer.
    pub fn extracted(self, text: &[u8]) -> Verdict {
        Verdict { extracted: text.to_vec(), ..self }
    }
    /// The reason, for people.
    pub fn note(self, text: impl Into<String>) -> Verdict {
        Verdict { note: text.into(), ..self }
    }
    unsafe fn write<T: Plugin>(&self, out: &mut RawVerdict) -> Result<()> {
        out.code = self.code;
        out.reward = self.reward;
        for (stream, text) in [(out.extracted, self.extracted.as_slice()), (out.note, self.note.as_bytes())] {
            if let (Some(stream), false) = (optional(stream), text.is_empty()) {
                stream.put(text)?;
            }
        }
        if T::FLAGS & VERIFIER_GIVES_SEGMENTS != 0 && !out.segment.is_null() {
            let n = self.segments.len().min(out.segment_capacity.max(0) as usize);
            slice_mut(out.segment, n as i64).copy_from_slice(&self.segments[..n]);
            out.n_segments = n as i64;
        }
        Ok(())
    }
}

/// An episode to begin; see tare_episode.
pub struct Episode<'a> {
    pub row: &'a [u8],
    pub messages: &'a [u8],
    pub prompt_uid: u64,
    pub group: i64,
    pub index: i64,
    pub seed: [u64; 2],
    pub noise: [u64; 2],
    pub max_turns: i64,
    pub max_tokens: i64,
    pub deadline_ns: i64,
}

/// A turn of the policy; see tare_act.
pub struct Act<'a> {
    pub turn: i64,
    pub text: &'a [u8],
    pub calls: Vec<&'a Call>,
    pub n_unparsed: i64,
    pub tokens: &'a [i32],
    pub deadline_ns: i64,
    pub finish: i32,
}

impl Observation {
    fn add(&mut self, role: i32, call: Option<&Call>, text: &str) -> Result<()> {
        let none = Text::of(&[]);
        let message = RawMessage {
            struct_size: size_of::<RawMessage>() as u32,
            role,
            call_id: call.map_or(none, |c| c.id),
            name: call.map_or(none, |c| c.name),
            text: Text::of(text.as_bytes()),
            parts: none,
        };
        check(unsafe { (self.say)(self.ctx, &message) }, "the message cannot be added")
    }
    /// Adds a message. role: ROLE_...
    pub fn say(&mut self, role: i32, text: &str) -> Result<()> {
        self.add(role, None, text)
    }
    /// Adds a tool's answer to a call.
    pub fn answer(&mut self, call: &Call, text: &str) -> Result<()> {
        self.add(ROLE_TOOL, Some(call), text)
    }
    fn write(stream: *const Stream, text: &str) -> Result<()> {
        unsafe { optional(stream) }.map_or(Ok(()), |s| s.put(text.as_bytes()))
    }
    /// Text that names the state, equal for equal states.
    pub fn state_key(&mut self, text: &str) -> Result<()> {
        Self::write(self.state_key, text)
    }
    /// In reset: the tools as a JSON list of schemas.
    pub fn tools(&mut self, json: &str) -> Result<()> {
        Self::write(self.tools, json)
    }
    /// In reset: one stop text a line.
    pub fn stop(&mut self, lines: &str) -> Result<()> {
        Self::write(self.stop, lines)
    }
    /// A line for people.
    pub fn note(&mut self, text: &str) -> Result<()> {
        Self::write(self.note, text)
    }
}

/// Prompts to assign or to learn from. embedding: [n, dim], or empty; rows: [n], or empty.
pub struct Prompts<'a> {
    pub n: usize,
    pub embedding: &'a [f32],
    pub rows: &'a [Text],
}

// ---------------------------------------------------------------- what a plugin implements

/// What every plugin has. Instances are created by one thread and called by others, and functions
/// that take &self may run at the same time (CALLS), so a plugin is Send and Sync: a type that is
/// not (Rc, Cell, raw pointers) does not compile. A Mutex holds what worker functions change.
pub trait Plugin: Sized + Send + Sync + 'static {
    const PARAMS: &'static [Param] = &[];
    const WANTS: &'static [Want] = &[];
    /// Of the kind's table: ESTIMATOR_..., VERIFIER_..., ...
    const FLAGS: u32 = 0;
    const CALLS: u32 = CALLS_SERIAL;
    /// The oldest minor version of a host that gives right results.
    const MINOR_NEEDED: u32 = 0;
    /// save and load are offered.
    const STATEFUL: bool = false;
    /// With STATEFUL: the format of the state, and the oldest one that load reads.
    const STATE_VERSION: u32 = 1;
    const STATE_OLDEST: u32 = 1;
    fn new(setup: &Setup) -> Result<Self>;
    /// Estimators, objectives, encoders and codebooks.
    fn sizes(&self) -> Sizes {
        Sizes::default()
    }
    fn save(&self, _out: &Stream) -> Result<()> {
        Ok(())
    }
    fn load(&mut self, _in: &Stream) -> Result<()> {
        Ok(())
    }
    /// Writes the state as one JSON object for people.
    fn describe(&self, out: &Stream) -> Result<()> {
        out.put(b"{}")
    }
    /// Writes what results depend on beside name, version and parameters.
    fn identity(&self, _out: &Stream) -> Result<()> {
        Ok(())
    }
    /// Turns off wants that these values do not need: sets their entries to 0.
    fn select(_values: &Values, _wanted: &mut [u8]) -> Result<()> {
        Ok(())
    }
}

/// PREPARES, COLLECTS, RECORDS: the function is offered, and sizes gives its number of doubles.
pub trait Estimator: Plugin {
    const PREPARES: bool = false;
    const COLLECTS: bool = false;
    const RECORDS: bool = false;
    fn compute(&self, batch: &Batch, prepared: &[f64], out: &mut Advantages) -> Result<()>;
    fn prepare(&self, _batch: &Batch, _group: usize, _sum: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn collect(&self, _batch: &Batch, _group: usize, _sum: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn record(&self, _batch: &Batch, _group: usize, _record: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn apply(&mut self, _update: &Update) -> Result<()> {
        Ok(())
    }
}

/// ANNOTATES, COLLECTS: the function is offered, and sizes gives its number of doubles.
pub trait Objective: Plugin {
    const ANNOTATES: bool = false;
    const COLLECTS: bool = false;
    fn compute(&self, tokens: &Tokens, out: &mut TokenLoss) -> Result<()>;
    /// annotated: [tokens, Sizes::prepare]
    fn annotate(&self, _minibatch: &Tokens, _annotated: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn collect(&self, _tokens: &Tokens, _loss: &TokenLoss, _sum: &mut [f64]) -> Result<()> {
        Ok(())
    }
    fn apply(&mut self, _update: &Update) -> Result<()> {
        Ok(())
    }
}

/// CHOOSES: next is offered. KEEPS: keep is offered. apply is offered with STATEFUL.
pub trait Curriculum: Plugin {
    const CHOOSES: bool = false;
    const KEEPS: bool = false;
    /// row: -1 on entry, every entry must be written; n_rollouts: rollout.group_size on entry.
    fn next(&self, _draw: &Draw, _row: &mut [i64], _n_rollouts: &mut [i64]) -> Result<()> {
        Ok(())
    }
    /// Returns the number of groups to sample in addition. fate: FATE_KEPT on entry.
    fn keep(&self, _groups: &Batch, _fate: &mut [u8]) -> Result<i64> {
        Ok(0)
    }
    fn apply(&mut self, _groups: &Batch) -> Result<()> {
        Ok(())
    }
}

/// EXPLAINS: explain is offered. WAITS: submit, poll, take and cancel are offered.
pub trait Verifier: Plugin {
    const EXPLAINS: bool = false;
    const WAITS: bool = false;
    fn verify(&self, completion: &Completion) -> Result<Verdict>;
    /// One verdict for each completion; with VERIFIER_TOGETHER these are all that the host has.
    fn verify_all(&self, completions: &[Completion]) -> Result<Vec<Verdict>> {
        completions.iter().map(|c| self.verify(c)).collect()
    }
    /// What the verdicts depend on in addition to the completion.
    fn uses(_values: &Values) -> u32 {
        USES_ANSWER
    }
    /// Explains the verdict, as one JSON object.
    fn explain(&self, _completion: &Completion, out: &Stream) -> Result<()> {
        out.put(b"{}")
    }
    /// Begins to verify, without waiting for the verdict.
    fn submit(&self, _completion: &Completion, _ticket: i64) -> Result<()> {
        Ok(())
    }
    /// Sets the state of tickets that are done to TICKET_DONE; waits at most wait_ns for the first.
    fn poll(&self, _tickets: &[i64], _state: &mut [u8], _wait_ns: i64) -> Result<()> {
        Ok(())
    }
    /// Gives the verdict of a ticket that is done, or its error, and forgets it.
    fn take(&self, _ticket: i64) -> Result<Verdict> {
        fail(E_UNSUPPORTED, "take is missing")
    }
    /// Ends the work for a ticket, whose verdict is no longer needed.
    fn cancel(&self, _ticket: i64) {}
}

/// FITS (with STATEFUL): fit is offered. sizes gives dim.
pub trait Encoder: Plugin {
    const FITS: bool = false;
    /// out: [texts, dim]
    fn encode(&self, texts: &[Text], out: &mut [f32]) -> Result<()>;
    fn fit(&mut self, _texts: &[Text]) -> Result<()> {
        Ok(())
    }
}

/// FITS (with STATEFUL): fit is offered. sizes gives dim (0: it takes rows) and clusters.
pub trait Codebook: Plugin {
    const FITS: bool = false;
    /// cluster: -1 on entry; distance: NaN on entry, empty when it is not wanted.
    fn assign(&self, prompts: &Prompts, cluster: &mut [i32], distance: &mut [f32]) -> Result<()>;
    fn fit(&mut self, _prompts: &Prompts) -> Result<()> {
        Ok(())
    }
    /// The identity of the encoder whose embeddings it takes; nothing written: any.
    fn encoder_identity(&self, _out: &Stream) -> Result<()> {
        Ok(())
    }
    /// The encoder's state from the codebook's file; nothing written: none.
    fn encoder_state(&self, _out: &Stream) -> Result<()> {
        Ok(())
    }
    /// The name of a cluster for display; nothing written: none.
    fn cluster_name(&self, _cluster: i64, _out: &Stream) -> Result<()> {
        Ok(())
    }
}

/// A Session holds what one episode needs. SAVES_SESSIONS: save_session and load_session are
/// offered. HAS_CARD, SUGGESTS: card, suggest are offered. Draft, as the whole kind.
pub trait Environment: Plugin {
    const SAVES_SESSIONS: bool = false;
    const SUGGESTS: bool = false;
    const HAS_CARD: bool = false;
    type Session: Send;
    fn open(&self) -> Result<Self::Session>;
    fn reset(&self, session: &mut Self::Session, episode: &Episode, out: &mut Observation) -> Result<()>;
    fn step(&self, session: &mut Self::Session, act: &Act, out: &mut Observation) -> Result<()>;
    fn save_session(&self, _session: &Self::Session, _out: &Stream) -> Result<()> {
        Ok(())
    }
    fn load_session(&self, _session: &mut Self::Session, _in: &Stream) -> Result<()> {
        Ok(())
    }
    fn suggest(&self, _session: &Self::Session, _draw: [u64; 2], _out: &Stream) -> Result<()> {
        Ok(())
    }
    fn uses(_values: &Values) -> u32 {
        0
    }
    /// What the environment is, as one JSON object.
    fn card(_values: &Values, out: &Stream) -> Result<()> {
        out.put(b"{}")
    }
}

// ---------------------------------------------------------------- tables

unsafe fn of<'a, T>(me: Me) -> &'a T {
    &*(me as *const T)
}

unsafe fn of_mut<'a, T>(me: MeMut) -> &'a mut T {
    &mut *(me as *mut T)
}

unsafe fn keep<T>(me: *mut MeMut, made: Result<T>) -> Result<()> {
    *me = Box::into_raw(Box::new(made?)) as MeMut;
    Ok(())
}

unsafe extern "C" fn destroy<T>(me: MeMut) {
    let _ = quietly(|| {
        drop(Box::from_raw(me as *mut T));
        Ok(())
    });
}

unsafe extern "C" fn create<T: Plugin>(setup: *const RawSetup, me: *mut MeMut, e: Fail) -> Status {
    guard(e, || keep(me, T::new(&Setup::of::<T>(&*setup))))
}

unsafe extern "C" fn save<T: Plugin>(me: Me, out: *const Stream, e: Fail) -> Status {
    guard(e, || of::<T>(me).save(&*out))
}

unsafe extern "C" fn load<T: Plugin>(me: MeMut, from: *const Stream, e: Fail) -> Status {
    guard(e, || of_mut::<T>(me).load(&*from))
}

unsafe extern "C" fn describe<T: Plugin>(me: Me, out: *const Stream, e: Fail) -> Status {
    guard(e, || of::<T>(me).describe(&*out))
}

unsafe extern "C" fn identity<T: Plugin>(me: Me, out: *const Stream, e: Fail) -> Status {
    guard(e, || of::<T>(me).identity(&*out))
}

unsafe extern "C" fn select<T: Plugin>(values: *const Value, wanted: *mut u8, e: Fail) -> Status {
    guard(e, || T::select(&Values::of::<T>(values), slice_mut(wanted, T::WANTS.len() as i64)))
}

unsafe extern "C" fn sizes<T: Plugin>(me: Me, out: *mut RawSizes, e: Fail) -> Status {
    guard(e, || {
        let (out, sizes) = (&mut *out, of::<T>(me).sizes());
        out.prepare = sizes.prepare;
        out.collect = sizes.collect;
        out.record = sizes.record;
        out.dim = sizes.dim;
        out.clusters = sizes.clusters;
        Ok(())
    })
}

const fn head<T: Plugin>(size: usize) -> Head {
    Head {
        struct_size: size as u32,
        flags: T::FLAGS,
        create: create::<T>,
        destroy: destroy::<T>,
        save: if T::STATEFUL { Some(save::<T>) } else { None },
        load: if T::STATEFUL { Some(load::<T>) } else { None },
        describe: Some(describe::<T>),
        identity: Some(identity::<T>),
        select: Some(select::<T>),
    }
}

struct EstimatorOf<T>(PhantomData<T>);
impl<T: Estimator> EstimatorOf<T> {
    const TABLE: EstimatorTable = EstimatorTable {
        head: head::<T>(size_of::<EstimatorTable>()),
        sizes: Some(sizes::<T>),
        prepare: if T::PREPARES { Some(Self::prepare) } else { None },
        compute: Self::compute,
        collect: if T::COLLECTS { Some(Self::collect) } else { None },
        record: if T::RECORDS { Some(Self::record) } else { None },
        apply: if T::STATEFUL || T::COLLECTS || T::RECORDS { Some(Self::apply) } else { None },
    };
    unsafe extern "C" fn prepare(me: Me, batch: *const RawBatch, group: i64, sum: *mut f64, e: Fail) -> Status {
        guard(e, || {
            let me = of::<T>(me);
            me.prepare(&Batch::of::<T>(&*batch), group as usize, slice_mut(sum, me.sizes().prepare))
        })
    }
    unsafe extern "C" fn compute(me: Me, batch: *const RawBatch, prepared: *const f64, out: *mut RawAdvantages, e: Fail) -> Status {
        guard(e, || {
            let (me, b, o) = (of::<T>(me), &*batch, &mut *out);
            let mut advantages = Advantages {
                advantage: slice_mut(o.advantage, b.n_rollouts),
                rollout_weight: slice_mut(o.rollout_weight, b.n_rollouts),
                token_advantage: slice_mut(o.token_advantage, b.n_tokens),
                baseline: slice_mut(o.baseline, b.n_groups),
                scale: slice_mut(o.scale, b.n_groups),
                confidence: slice_mut(o.confidence, b.n_groups),
                extra_groups: &mut o.extra_groups,
            };
            me.compute(&Batch::of::<T>(b), slice(prepared, me.sizes().prepare), &mut advantages)
        })
    }
    unsafe extern "C" fn collect(me: Me, batch: *const RawBatch, group: i64, sum: *mut f64, e: Fail) -> Status {
        guard(e, || {
            let me = of::<T>(me);
            me.collect(&Batch::of::<T>(&*batch), group as usize, slice_mut(sum, me.sizes().collect))
        })
    }
    unsafe extern "C" fn record(me: Me, batch: *const RawBatch, group: i64, record: *mut f64, e: Fail) -> Status {
        guard(e, || {
            let me = of::<T>(me);
            me.record(&Batch::of::<T>(&*batch), group as usize, slice_mut(record, me.sizes().record))
        })
    }
    unsafe extern "C" fn apply(me: MeMut, update: *const RawUpdate, e: Fail) -> Status {
        guard(e, || {
            let me = of_mut::<T>(me);
            let sizes = me.sizes();
            me.apply(&Update::of(&*update, sizes))
        })
    }
}

struct ObjectiveOf<T>(PhantomData<T>);
impl<T: Objective> ObjectiveOf<T> {
    const TABLE: ObjectiveTable = ObjectiveTable {
        head: head::<T>(size_of::<ObjectiveTable>()),
        sizes: Some(sizes::<T>),
        annotate: if T::ANNOTATES { Some(Self::annotate) } else { None },
        compute: Self::compute,
        collect: if T::COLLECTS { Some(Self::collect) } else { None },
        apply: if T::STATEFUL || T::COLLECTS { Some(Self::apply) } else { None },
    };
    unsafe extern "C" fn annotate(me: Me, tokens: *const RawTokens, annotated: *mut f64, e: Fail) -> Status {
        guard(e, || {
            let (me, t) = (of::<T>(me), &*tokens);
            let n = me.sizes().prepare;
            me.annotate(&Tokens::of::<T>(t, n), slice_mut(annotated, t.n * n))
        })
    }
    unsafe extern "C" fn compute(me: Me, tokens: *const RawTokens, out: *mut RawTokenLoss, e: Fail) -> Status {
        guard(e, || {
            let (me, t) = (of::<T>(me), &*tokens);
            me.compute(&Tokens::of::<T>(t, me.sizes().prepare), &mut (*out).view(t.n))
        })
    }
    unsafe extern "C" fn collect(me: Me, tokens: *const RawTokens, loss: *const RawTokenLoss, sum: *mut f64, e: Fail) -> Status {
        guard(e, || {
            let (me, t) = (of::<T>(me), &*tokens);
            let sizes = me.sizes();
            me.collect(&Tokens::of::<T>(t, sizes.prepare), &(*loss).view(t.n), slice_mut(sum, sizes.collect))
        })
    }
    unsafe extern "C" fn apply(me: MeMut, update: *const RawUpdate, e: Fail) -> Status {
        guard(e, || {
            let me = of_mut::<T>(me);
            let sizes = me.sizes();
            me.apply(&Update::of(&*update, sizes))
        })
    }
}

struct CurriculumOf<T>(PhantomData<T>);
impl<T: Curriculum> CurriculumOf<T> {
    const TABLE: CurriculumTable = CurriculumTable {
        head: head::<T>(size_of::<CurriculumTable>()),
        next: if T::CHOOSES { Some(Self::next) } else { None },
        keep: if T::KEEPS { Some(Self::keep) } else { None },
        apply: if T::STATEFUL { Some(Self::apply) } else { None },
    };
    unsafe extern "C" fn next(me: Me, draw: *const RawDraw, out: *mut RawChoice, e: Fail) -> Status {
        guard(e, || {
            let (d, o) = (&*draw, &*out);
            let draw =
                Draw { step: d.step, cursor: d.cursor, ordered: slice(d.ordered, d.n), drawn: slice(d.drawn, d.n_drawn) };
            of::<T>(me).next(&draw, slice_mut(o.row, d.n), slice_mut(o.n_rollouts, d.n))
        })
    }
    unsafe extern "C" fn keep(me: Me, groups: *const RawBatch, out: *mut RawKept, e: Fail) -> Status {
        guard(e, || {
            let (groups, out) = (&*groups, &mut *out);
            out.extra_groups = of::<T>(me).keep(&Batch::of::<T>(groups), slice_mut(out.fate, groups.n_rollouts))?;
            Ok(())
        })
    }
    unsafe extern "C" fn apply(me: MeMut, groups: *const RawBatch, e: Fail) -> Status {
        guard(e, || of_mut::<T>(me).apply(&Batch::of::<T>(&*groups)))
    }
}

struct VerifierOf<T>(PhantomData<T>);
impl<T: Verifier> VerifierOf<T> {
    const TABLE: VerifierTable = VerifierTable {
        head: head::<T>(size_of::<VerifierTable>()),
        uses: Some(Self::uses),
        verify: Self::verify,
        explain: if T::EXPLAINS { Some(Self::explain) } else { None },
        submit: if T::WAITS { Some(Self::submit) } else { None },
        poll: if T::WAITS { Some(Self::poll) } else { None },
        take: if T::WAITS { Some(Self::take) } else { None },
        cancel: if T::WAITS { Some(Self::cancel) } else { None },
    };
    /// After a panic all bits are set, which the host refuses.
    unsafe extern "C" fn uses(values: *const Value) -> u32 {
        quietly(|| Ok(T::uses(&Values::of::<T>(values)))).unwrap_or(u32::MAX)
    }
    unsafe extern "C" fn verify(
        me: MeMut, completions: *const *const RawCompletion, out: *const *mut RawVerdict, n: i64, e: Fail,
    ) -> Status {
        guard(e, || {
            let completions: Vec<Completion> = slice(completions, n).iter().map(|c| Completion::of(&**c)).collect();
            let verdicts = of::<T>(me).verify_all(&completions)?;
            if verdicts.len() != completions.len() {
                return fail(E_PLUGIN, format!("{} verdicts on {} completions", verdicts.len(), completions.len()));
            }
            verdicts.iter().zip(slice(out, n)).try_for_each(|(verdict, out)| verdict.write::<T>(&mut **out))
        })
    }
    unsafe extern "C" fn explain(me: MeMut, completion: *const RawCompletion, out: *const Stream, e: Fail) -> Status {
        guard(e, || of::<T>(me).explain(&Completion::of(&*completion), &*out))
    }
    unsafe extern "C" fn submit(me: MeMut, completion: *const RawCompletion, ticket: i64, e: Fail) -> Status {
        guard(e, || of::<T>(me).submit(&Completion::of(&*completion), ticket))
    }
    unsafe extern "C" fn poll(me: MeMut, waiting: *const RawWaiting, e: Fail) -> Status {
        guard(e, || {
            let w = &*waiting;
            of::<T>(me).poll(slice(w.ticket, w.n), slice_mut(w.state, w.n), w.wait_ns)
        })
    }
    unsafe extern "C" fn take(me: MeMut, ticket: i64, out: *mut RawVerdict, e: Fail) -> Status {
        guard(e, || of::<T>(me).take(ticket)?.write::<T>(&mut *out))
    }
    unsafe extern "C" fn cancel(me: MeMut, ticket: i64) {
        let _ = quietly(|| {
            of::<T>(me).cancel(ticket);
            Ok(())
        });
    }
}

struct EncoderOf<T>(PhantomData<T>);
impl<T: Encoder> EncoderOf<T> {
    const TABLE: EncoderTable = EncoderTable {
        head: head::<T>(size_of::<EncoderTable>()),
        sizes: sizes::<T>,
        encode: Self::encode,
        fit: if T::FITS { Some(Self::fit) } else { None },
    };
    unsafe extern "C" fn encode(me: MeMut, texts: *const Text, n: i64, out: *mut f32, e: Fail) -> Status {
        guard(e, || {
            let me = of::<T>(me);
            me.encode(slice(texts, n), slice_mut(out, n * me.sizes().dim))
        })
    }
    unsafe extern "C" fn fit(me: MeMut, texts: *const Text, n: i64, e: Fail) -> Status {
        guard(e, || of_mut::<T>(me).fit(slice(texts, n)))
    }
}

struct CodebookOf<T>(PhantomData<T>);
impl<T: Codebook> CodebookOf<T> {
    const TABLE: CodebookTable = CodebookTable {
        head: head::<T>(size_of::<CodebookTable>()),
        sizes: sizes::<T>,
        assign: Self::assign,
        fit: if T::FITS { Some(Self::fit) } else { None },
        encoder_identity: Some(Self::encoder_identity),
        encoder_state: Some(Self::encoder_state),
        cluster_name: Some(Self::cluster_name),
    };
    unsafe fn prompts<'a>(p: &'a RawPrompts, dim: i64) -> Prompts<'a> {
        Prompts { n: p.n as usize, embedding: slice(p.embedding, p.n * dim), rows: slice(p.row, p.n) }
    }
    unsafe extern "C" fn assign(me: Me, prompts: *const RawPrompts, out: *mut RawAssignment, e: Fail) -> Status {
        guard(e, || {
            let (me, p, o) = (of::<T>(me), &*prompts, &*out);
            me.assign(&Self::prompts(p, me.sizes().dim), slice_mut(o.cluster, p.n), slice_mut(o.distance, p.n))
        })
    }
    unsafe extern "C" fn fit(me: MeMut, prompts: *const RawPrompts, e: Fail) -> Status {
        guard(e, || {
            let me = of_mut::<T>(me);
            let dim = me.sizes().dim;
            me.fit(&Self::prompts(&*prompts, dim))
        })
    }
    unsafe extern "C" fn encoder_identity(me: Me, out: *const Stream, e: Fail) -> Status {
        guard(e, || of::<T>(me).encoder_identity(&*out))
    }
    unsafe extern "C" fn encoder_state(me: Me, out: *const Stream, e: Fail) -> Status {
        guard(e, || of::<T>(me).encoder_state(&*out))
    }
    unsafe extern "C" fn cluster_name(me: Me, k: i64, out: *const Stream, e: Fail) -> Status {
        guard(e, || of::<T>(me).cluster_name(k, &*out))
    }
}

struct EnvironmentOf<T>(PhantomData<T>);
impl<T: Environment> EnvironmentOf<T> {
    const TABLE: EnvironmentTable = EnvironmentTable {
        head: head::<T>(size_of::<EnvironmentTable>()),
        uses: Some(Self::uses),
        card: if T::HAS_CARD { Some(Self::card) } else { None },
        open: Self::open,
        close: Self::close,
        reset: Self::reset,
        step: Self::step,
        save_session: if T::SAVES_SESSIONS { Some(Self::save_session) } else { None },
        load_session: if T::SAVES_SESSIONS { Some(Self::load_session) } else { None },
        suggest: if T::SUGGESTS { Some(Self::suggest) } else { None },
    };
    /// After a panic all bits are set, which the host refuses.
    unsafe extern "C" fn uses(values: *const Value) -> u32 {
        quietly(|| Ok(T::uses(&Values::of::<T>(values)))).unwrap_or(u32::MAX)
    }
    unsafe extern "C" fn card(values: *const Value, out: *const Stream, e: Fail) -> Status {
        guard(e, || T::card(&Values::of::<T>(values), &*out))
    }
    unsafe extern "C" fn open(me: MeMut, session: *mut MeMut, e: Fail) -> Status {
        guard(e, || keep(session, of::<T>(me).open()))
    }
    unsafe extern "C" fn close(_: MeMut, session: MeMut) {
        destroy::<T::Session>(session)
    }
    unsafe extern "C" fn reset(me: MeMut, session: MeMut, episode: *const RawEpisode, out: *mut Observation, e: Fail) -> Status {
        guard(e, || {
            let raw = &*episode;
            let episode = Episode {
                row: raw.row.bytes(),
                messages: raw.messages.bytes(),
                prompt_uid: raw.prompt_uid,
                group: raw.group,
                index: raw.index,
                seed: raw.seed,
                noise: raw.noise,
                max_turns: raw.max_turns,
                max_tokens: raw.max_tokens,
                deadline_ns: raw.deadline_ns,
            };
            of::<T>(me).reset(of_mut::<T::Session>(session), &episode, &mut *out)
        })
    }
    unsafe extern "C" fn step(
        me: MeMut, sessions: *const MeMut, acts: *const *const RawAct, out: *const *mut Observation, n: i64, e: Fail,
    ) -> Status {
        guard(e, || {
            for ((session, act), out) in slice(sessions, n).iter().zip(slice(acts, n)).zip(slice(out, n)) {
                let raw = &**act;
                let act = Act {
                    turn: raw.turn,
                    text: raw.text.bytes(),
                    calls: slice(raw.call, raw.n_calls).iter().map(|c| &**c).collect(),
                    n_unparsed: raw.n_unparsed,
                    tokens: slice(raw.token, raw.n_tokens),
                    deadline_ns: raw.deadline_ns,
                    finish: raw.finish,
                };
                of::<T>(me).step(of_mut::<T::Session>(*session), &act, &mut **out)?;
            }
            Ok(())
        })
    }
    unsafe extern "C" fn save_session(me: MeMut, session: Me, out: *const Stream, e: Fail) -> Status {
        guard(e, || of::<T>(me).save_session(of::<T::Session>(session), &*out))
    }
    unsafe extern "C" fn load_session(me: MeMut, session: MeMut, from: *const Stream, e: Fail) -> Status {
        guard(e, || of::<T>(me).load_session(of_mut::<T::Session>(session), &*from))
    }
    unsafe extern "C" fn suggest(me: MeMut, session: Me, draw: *const u64, out: *const Stream, e: Fail) -> Status {
        guard(e, || of::<T>(me).suggest(of::<T::Session>(session), [*draw, *draw.add(1)], &*out))
    }
}

// ---------------------------------------------------------------- parameters and descriptors

/// Param::float(c!("rate"), c!("0.1"), c!("weight of the newest batch")).above(0.0).max(1.0)
impl Param {
    const fn of(kind: i32, key: *const c_char, fallback: *const c_char, doc: *const c_char) -> Param {
        Param {
            key,
            fallback,
            doc,
            unit: std::ptr::null(),
            choices: std::ptr::null(),
            min: 0.0,
            max: 0.0,
            kind,
            flags: 0,
            group: std::ptr::null(),
            choice_docs: std::ptr::null(),
            old_keys: std::ptr::null(),
        }
    }
    pub const fn float(key: *const c_char, fallback: *const c_char, doc: *const c_char) -> Param {
        Param::of(PARAM_FLOAT, key, fallback, doc)
    }
    pub const fn int(key: *const c_char, fallback: *const c_char, doc: *const c_char) -> Param {
        Param::of(PARAM_INT, key, fallback, doc)
    }
    pub const fn flag(key: *const c_char, fallback: *const c_char, doc: *const c_char) -> Param {
        Param::of(PARAM_BOOL, key, fallback, doc)
    }
    pub const fn string(key: *const c_char, fallback: *const c_char, doc: *const c_char) -> Param {
        Param::of(PARAM_STRING, key, fallback, doc)
    }
    pub const fn path(key: *const c_char, fallback: *const c_char, doc: *const c_char) -> Param {
        Param::of(PARAM_PATH, key, fallback, doc)
    }
    pub const fn choice(key: *const c_char, fallback: *const c_char, doc: *const c_char, choices: List) -> Param {
        Param { choices: choices.0.as_ptr(), ..Param::of(PARAM_CHOICE, key, fallback, doc) }
    }
    /// The least and the greatest value.
    pub const fn min(self, min: f64) -> Param {
        Param { min, flags: self.flags | PARAM_MIN, ..self }
    }
    pub const fn max(self, max: f64) -> Param {
        Param { max, flags: self.flags | PARAM_MAX, ..self }
    }
    /// Bounds that are not allowed themselves.
    pub const fn above(self, min: f64) -> Param {
        Param { min, flags: self.flags | PARAM_MIN | PARAM_ABOVE_MIN, ..self }
    }
    pub const fn below(self, max: f64) -> Param {
        Param { max, flags: self.flags | PARAM_MAX | PARAM_BELOW_MAX, ..self }
    }
    pub const fn unit(self, unit: *const c_char) -> Param {
        Param { unit, ..self }
    }
    /// The heading in documents and forms.
    pub const fn group(self, group: *const c_char) -> Param {
        Param { group, ..self }
    }
    /// A sentence for each choice.
    pub const fn choice_docs(self, docs: List) -> Param {
        Param { choice_docs: docs.0.as_ptr(), ..self }
    }
    /// Earlier names, which stay accepted.
    pub const fn old_keys(self, keys: List) -> Param {
        Param { old_keys: keys.0.as_ptr(), ..self }
    }
    /// No default: the user must set it.
    pub const fn required(self) -> Param {
        Param { fallback: std::ptr::null(), flags: self.flags | PARAM_REQUIRED, ..self }
    }
    /// Further PARAM_... bits.
    pub const fn flags(self, flags: u32) -> Param {
        Param { flags: self.flags | flags, ..self }
    }
}

/// Want::new(c!("entropy"), tare::AXIS_TOKEN, tare::F32)
impl Want {
    pub const fn new(name: *const c_char, axis: i32, kind: i32) -> Want {
        Want { name, axis, kind, flags: 0, width: 1 }
    }
    pub const fn optional(self) -> Want {
        Want { flags: WANT_OPTIONAL, ..self }
    }
    /// Numbers of an entry; 0: as many as there are.
    pub const fn width(self, width: u32) -> Want {
        Want { width, ..self }
    }
}

/// The descriptor's own texts, made by c!.
pub struct About {
    name: *const c_char,
    version: *const c_char,
    summary: *const c_char,
    license: *const c_char,
    pairs: *const *const c_char,
}

impl About {
    pub const fn new(name: *const c_char, version: *const c_char, summary: *const c_char, license: *const c_char) -> About {
        About { name, version, summary, license, pairs: std::ptr::null() }
    }
    /// Key, value, key, value, ...: list!["paper", "arXiv 2402.03300"]
    pub const fn pairs(self, pairs: List) -> About {
        About { pairs: pairs.0.as_ptr(), ..self }
    }
}

const fn descriptor<T: Plugin>(kind: i32, a: About, functions: *const Void) -> Descriptor {
    Descriptor {
        struct_size: size_of::<Descriptor>() as u32,
        kind,
        name: a.name,
        version: a.version,
        summary: a.summary,
        license: a.license,
        about: a.pairs,
        params: T::PARAMS.as_ptr(),
        wants: T::WANTS.as_ptr(),
        n_params: T::PARAMS.len() as u32,
        param_size: size_of::<Param>() as u32,
        n_wants: T::WANTS.len() as u32,
        want_size: size_of::<Want>() as u32,
        calls: T::CALLS,
        flags: 0,
        minor_needed: T::MINOR_NEEDED,
        state_version: if T::STATEFUL { T::STATE_VERSION } else { 0 },
        state_oldest: if T::STATEFUL { T::STATE_OLDEST } else { 0 },
        reserved: 0,
        functions,
        extension: None,
    }
}

pub const fn estimator<T: Estimator>(a: About) -> Descriptor {
    descriptor::<T>(KIND_ESTIMATOR, a, &EstimatorOf::<T>::TABLE as *const EstimatorTable as *const Void)
}
pub const fn verifier<T: Verifier>(a: About) -> Descriptor {
    descriptor::<T>(KIND_VERIFIER, a, &VerifierOf::<T>::TABLE as *const VerifierTable as *const Void)
}
pub const fn encoder<T: Encoder>(a: About) -> Descriptor {
    assert!(!T::FITS || T::STATEFUL, "FITS requires STATEFUL");
    descriptor::<T>(KIND_ENCODER, a, &EncoderOf::<T>::TABLE as *const EncoderTable as *const Void)
}
pub const fn codebook<T: Codebook>(a: About) -> Descriptor {
    assert!(!T::FITS || T::STATEFUL, "FITS requires STATEFUL");
    descriptor::<T>(KIND_CODEBOOK, a, &CodebookOf::<T>::TABLE as *const CodebookTable as *const Void)
}
pub const fn objective<T: Objective>(a: About) -> Descriptor {
    descriptor::<T>(KIND_OBJECTIVE, a, &ObjectiveOf::<T>::TABLE as *const ObjectiveTable as *const Void)
}
pub const fn curriculum<T: Curriculum>(a: About) -> Descriptor {
    descriptor::<T>(KIND_CURRICULUM, a, &CurriculumOf::<T>::TABLE as *const CurriculumTable as *const Void)
}
pub const fn environment<T: Environment>(a: About) -> Descriptor {
    descriptor::<T>(KIND_ENVIRONMENT, a, &EnvironmentOf::<T>::TABLE as *const EnvironmentTable as *const Void)
}

pub const fn pointers<const N: usize>(descriptors: &'static [Descriptor; N]) -> [*const Descriptor; N] {
    let mut out = [std::ptr::null(); N];
    let mut i = 0;
    while i < N {
        out[i] = &descriptors[i] as *const Descriptor;
        i += 1;
    }
    out
}

impl PluginFile {
    pub const fn new(descriptors: &'static [*const Descriptor]) -> PluginFile {
        PluginFile {
            struct_size: size_of::<PluginFile>() as u32,
            flags: 0,
            minor_built: ABI_MINOR,
            n_descriptors: descriptors.len() as u32,
            descriptors: descriptors.as_ptr(),
            build: c!("tare-sdk 1.0.0, rust"),
        }
    }
}
