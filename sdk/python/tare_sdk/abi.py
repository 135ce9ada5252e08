"""The structs of tare/base.h, estimator.h, verifier.h and plugin.h as ctypes. Comments on members are in those headers."""

import ctypes as c

ABI_MINOR = 3
ESTIMATOR, VERIFIER, ENCODER, CODEBOOK = 1, 2, 3, 4
KINDS = {ESTIMATOR: "estimator", VERIFIER: "verifier", ENCODER: "encoder", CODEBOOK: "codebook"}
BOOL, INT, FLOAT, STRING, CHOICE, PATH = 1, 2, 3, 4, 5, 6
REQUIRED, ABOVE_MIN, BELOW_MAX, LOCKED_ON_RESUME = 1, 2, 4, 32
NEED_ENTROPY, NEED_LOGPROB, NEED_REF_LOGPROB, NEED_COMPONENTS, NEED_CLUSTER, GIVES_TOKENS, WANTS_LOGPROB = 1, 2, 4, 8, 16, 32, 64
NEED_FINISH, NEED_ROW, NEED_COMPLETION, NEED_TOKEN_ID, NEED_VERDICTS, NEED_OFF_POLICY, NEED_POLICY_VERSION = 128, 256, 512, 1024, 2048, 4096, 8192
NEED_SEGMENTS = 16384
JUDGES_TOGETHER, GIVES_SEGMENTS = 1, 2
USES_ANSWER, MAY_USE_ANSWER, REFUSES_ROWS = 1, 2, 4
TICKET_OPEN, TICKET_JUDGED, TICKET_FAILED = 0, 1, 2
KNOWN_NEEDS = 32767
FINISH = {"stop": 0, "length": 1}
VERDICTS = {1: "correct", 2: "wrong", 3: "no_answer", 4: "unparsable", 5: "timeout", 7: "partial"}
E_CORRUPT = 31

Status = c.c_int32
f64, f32, i64, i32, u32, u64, u8 = c.c_double, c.c_float, c.c_int64, c.c_int32, c.c_uint32, c.c_uint64, c.c_uint8


class Error(c.Structure):
    _fields_ = [("struct_size", u32), ("code", Status), ("message", c.c_char * 504)]


class Text(c.Structure):
    _fields_ = [("data", c.c_char_p), ("size", i64)]


class Param(c.Structure):
    _fields_ = [("key", c.c_char_p), ("fallback", c.c_char_p), ("doc", c.c_char_p), ("unit", c.c_char_p),
                ("choices", c.POINTER(c.c_char_p)), ("min", f64), ("max", f64), ("type", i32), ("flags", u32)]


class Value(c.Union):
    _fields_ = [("i", i64), ("f", f64), ("s", c.c_char_p)]


WRITE = c.CFUNCTYPE(Status, c.c_void_p, c.c_void_p, i64)
READ = c.CFUNCTYPE(Status, c.c_void_p, c.c_void_p, i64)


class Stream(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("ctx", c.c_void_p), ("write", WRITE), ("read", READ),
                ("version", c.c_char_p)]


LOG = c.CFUNCTYPE(None, c.c_void_p, i32, c.c_char_p)
ALLOC = c.CFUNCTYPE(c.c_void_p, c.c_void_p, i64, i64)
RELEASE = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)
RANDOM = c.CFUNCTYPE(Status, c.c_void_p, u64, u64, c.POINTER(u32), i64)
METRIC = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, f64)
CANCELLED = c.CFUNCTYPE(i32, c.c_void_p)
EXTENSION = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)


class Host(c.Structure):
    _fields_ = [("struct_size", u32), ("abi_minor", u32), ("ctx", c.c_void_p), ("log", LOG), ("alloc", ALLOC), ("release", RELEASE),
                ("random", RANDOM), ("metric", METRIC), ("cancelled", CANCELLED), ("extension", EXTENSION)]


class Batch(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("step", i64), ("n_groups", i64), ("n_rollouts", i64), ("n_tokens", i64),
                ("n_components", i64), ("n_clusters", i64), ("group_begin", c.POINTER(i64)), ("prompt_uid", c.POINTER(u64)),
                ("cluster", c.POINTER(i32)), ("reward", c.POINTER(f64)), ("component", c.POINTER(f64)), ("verdict", c.POINTER(i32)),
                ("token_begin", c.POINTER(i64)), ("token_entropy", c.POINTER(f32)), ("token_logprob", c.POINTER(f32)),
                ("token_ref_logprob", c.POINTER(f32)), ("finish", c.POINTER(u8)), ("row", c.POINTER(Text)), ("completion", c.POINTER(Text)),
                ("token_id", c.POINTER(i32)), ("component_verdict", c.POINTER(i32)), ("off_policy", c.POINTER(u8)),
                ("policy_version", c.POINTER(i64)), ("segment", c.POINTER(i32)), ("segment_reward", c.POINTER(f64)),
                ("n_columns", i64), ("column_name", c.POINTER(c.c_char_p)), ("column", c.POINTER(f64))]


class Advantages(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("advantage", c.POINTER(f64)), ("rollout_weight", c.POINTER(f64)),
                ("baseline", c.POINTER(f64)), ("scale", c.POINTER(f64)), ("confidence", c.POINTER(f64)),
                ("token_advantage", c.POINTER(f32)), ("refill_groups", i64)]


SELF, ERROR = c.c_void_p, c.POINTER(Error)
DESTROY = c.CFUNCTYPE(None, SELF)
SAVE = c.CFUNCTYPE(Status, SELF, c.POINTER(Stream), ERROR)
NUMBER = c.CFUNCTYPE(i64, SELF)
GROUP = c.CFUNCTYPE(Status, SELF, c.POINTER(Batch), i64, c.POINTER(f64), ERROR)


class EstimatorTable(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32),
                ("create", c.CFUNCTYPE(Status, c.POINTER(Host), c.POINTER(Value), i64, c.POINTER(SELF), ERROR)), ("destroy", DESTROY),
                ("save", SAVE), ("load", SAVE), ("prepare_size", NUMBER), ("collect_size", NUMBER), ("prepare", GROUP),
                ("compute", c.CFUNCTYPE(Status, SELF, c.POINTER(Batch), c.POINTER(f64), c.POINTER(Advantages), ERROR)),
                ("collect", GROUP), ("apply", c.CFUNCTYPE(Status, SELF, i64, c.POINTER(f64), ERROR)), ("describe", SAVE), ("record_size", NUMBER),
                ("record", GROUP),
                ("apply_records", c.CFUNCTYPE(Status, SELF, i64, c.POINTER(f64), c.POINTER(u64), c.POINTER(f64), i64, ERROR)),
                ("columns", c.CFUNCTYPE(c.c_void_p, SELF))]


class Answer(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("prompt", Text), ("completion", Text), ("answer", Text), ("row", Text),
                ("deadline_ns", i64), ("prompt_uid", u64), ("group", i64), ("sample", i64), ("n_tokens", i64), ("finish", i32),
                ("off_policy", i32)]


class Segment(c.Structure):
    _fields_ = [("end", i64), ("reward", f64)]


class Verdict(c.Structure):
    _fields_ = [("struct_size", u32), ("code", i32), ("reward", f64), ("extracted", c.c_void_p), ("capacity", i64), ("size", i64),
                ("reason", c.c_char_p), ("segment", c.POINTER(Segment)), ("segment_capacity", i64), ("n_segments", i64)]


class Waiting(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("n", i64), ("ticket", c.POINTER(i64)), ("verdict", c.POINTER(c.POINTER(Verdict))),
                ("done", c.POINTER(u8)), ("wait_ns", i64)]


class VerifierTable(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32),
                ("create", c.CFUNCTYPE(Status, c.POINTER(Host), c.POINTER(Value), c.POINTER(SELF), ERROR)), ("destroy", DESTROY),
                ("verify", c.CFUNCTYPE(Status, SELF, c.POINTER(c.POINTER(Answer)), c.POINTER(c.POINTER(Verdict)), i64, ERROR)),
                ("explain", c.CFUNCTYPE(Status, SELF, c.POINTER(Answer), c.POINTER(Stream), ERROR)),
                ("submit", c.CFUNCTYPE(Status, SELF, c.POINTER(Answer), i64, ERROR)),
                ("poll", c.CFUNCTYPE(Status, SELF, c.POINTER(Waiting), ERROR)), ("cancel", c.CFUNCTYPE(None, SELF, i64)),
                ("uses", c.CFUNCTYPE(u32, c.POINTER(Value)))]


class Descriptor(c.Structure):
    _fields_ = [("struct_size", u32), ("kind", i32), ("name", c.c_char_p), ("version", c.c_char_p), ("summary", c.c_char_p),
                ("license", c.c_char_p), ("source", c.c_char_p), ("params", c.c_void_p), ("n_params", u32), ("param_size", u32),
                ("needs", u32), ("threading", u32), ("functions", c.c_void_p)]


class Plugin(c.Structure):
    _fields_ = [("struct_size", u32), ("abi_minor_built", u32), ("abi_minor_needed", u32), ("n_descriptors", u32),
                ("descriptors", c.POINTER(c.POINTER(Descriptor)))]
