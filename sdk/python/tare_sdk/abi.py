"""The structs of sdk/include/tare as ctypes. Comments on members are in those headers."""

import ctypes as c

ABI_MINOR = 0
KIND_ESTIMATOR, KIND_VERIFIER, KIND_ENCODER, KIND_CODEBOOK, KIND_OBJECTIVE, KIND_CURRICULUM, KIND_ENVIRONMENT = range(1, 8)
KINDS = {1: "estimator", 2: "verifier", 3: "encoder", 4: "codebook", 5: "objective", 6: "curriculum", 7: "environment"}
E_CORRUPT = 31

PARAM_BOOL, PARAM_INT, PARAM_FLOAT, PARAM_STRING, PARAM_CHOICE, PARAM_PATH = range(1, 7)
PARAM_REQUIRED, PARAM_MIN, PARAM_MAX, PARAM_ABOVE_MIN, PARAM_BELOW_MAX, PARAM_LOG_SCALE, PARAM_SWEEPABLE = 1, 2, 4, 8, 16, 32, 64
PARAM_LOCKED_ON_RESUME, PARAM_SECRET, PARAM_DEPRECATED, PARAM_EXPERT, PARAM_RUN_FILE = 128, 256, 512, 1024, 2048
PARAM_FLAGS = 4095
CALLS = 0, 1, 2

AXIS_ONE, AXIS_ROW, AXIS_GROUP, AXIS_ROLLOUT, AXIS_TURN, AXIS_TOKEN = range(6)
AXES = "step", "row", "group", "rollout", "turn", "token"
U8, I32, I64, U64, F32, F64, TEXT = range(1, 8)
WANT_OPTIONAL = 1

METRIC_LAST, METRIC_SUM, METRIC_MEAN, METRIC_MIN, METRIC_MAX = range(5)
FINISH = {"none": 0, "stop": 1, "length": 2, "ended": 3}
VERDICTS = {1: "correct", 2: "wrong", 3: "no_answer", 4: "unparsable", 5: "timeout", 7: "partial"}  # a plugin's; 6: crashed, the host's
FATES = "kept", "left_out", "counted"
TICKET_OPEN, TICKET_DONE = 0, 1
ROLES = {1: "system", 2: "user", 3: "tool"}
EPISODE_ENDS = "running", "done", "truncated"
USES_ANSWER, USES_MAYBE_ANSWER, USES_ROW = 1, 2, 4
USES = 7

ESTIMATOR_GIVES_TOKENS = 1
VERIFIER_TOGETHER, VERIFIER_GIVES_SEGMENTS, VERIFIER_REPEATS = 1, 2, 4
OBJECTIVE_LOOKS_AHEAD, OBJECTIVE_GIVES_DKL = 4, 16
TABLE_FLAGS = {KIND_ESTIMATOR: 1, KIND_VERIFIER: 7, KIND_ENCODER: 0, KIND_CODEBOOK: 0, KIND_OBJECTIVE: 63, KIND_CURRICULUM: 1,
               KIND_ENVIRONMENT: 5}  # the bits that have a meaning

LIMIT_DESCRIPTORS, LIMIT_PARAMS, LIMIT_WANTS, LIMIT_SEGMENTS, LIMIT_EXTRACTED, LIMIT_NOTE = 64, 256, 64, 256, 512, 512

Status = c.c_int32
f64, f32, i64, i32, u32, u64, u8 = c.c_double, c.c_float, c.c_int64, c.c_int32, c.c_uint32, c.c_uint64, c.c_uint8
P = c.POINTER


def function(result, *arguments):
    return c.CFUNCTYPE(result, *arguments)


def sized(type_, **members):
    """Makes a struct of the host with its size."""
    return type_(struct_size=c.sizeof(type_), **members)


def knows(struct, member):
    """True if the allocator of the struct knows the member (TARE_KNOWS)."""
    field = getattr(type(struct), member)
    return struct.struct_size >= field.offset + field.size


def copied(type_, address, size):
    """Copies a plugin's struct of `size` bytes in this build's layout: members that its build did
    not have are 0, those that this one does not have are left out.
    """
    struct = type_()
    c.memmove(c.addressof(struct), address, min(size, c.sizeof(type_)))
    return struct


def copied_sized(type_, address):
    return copied(type_, address, u32.from_address(address).value)


class Error(c.Structure):
    _fields_ = [("struct_size", u32), ("code", Status), ("message", c.c_char * 504)]


class Text(c.Structure):
    _fields_ = [("data", c.c_char_p), ("size", i64)]

    def read(self):
        """Returns the bytes, which may contain NUL."""
        return c.string_at(c.c_void_p.from_buffer(self).value, self.size) if self.size > 0 else b""


def text(value):
    """A tare_text of a str or bytes; None: none."""
    if value is None:
        return Text()
    data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return Text(data, len(data))


class Param(c.Structure):
    _fields_ = [("key", c.c_char_p), ("fallback", c.c_char_p), ("doc", c.c_char_p), ("unit", c.c_char_p), ("choices", P(c.c_char_p)),
                ("min", f64), ("max", f64), ("type", i32), ("flags", u32), ("group", c.c_char_p), ("choice_docs", P(c.c_char_p)),
                ("old_keys", P(c.c_char_p))]


class Value(c.Union):
    _fields_ = [("i", i64), ("f", f64), ("s", c.c_char_p)]


class Want(c.Structure):
    _fields_ = [("name", c.c_char_p), ("axis", i32), ("type", i32), ("flags", u32), ("width", u32)]


class Column(c.Structure):
    _fields_ = [("data", c.c_void_p), ("n", i64), ("width", i64)]


WRITE = function(Status, c.c_void_p, c.c_void_p, i64)
READ = function(Status, c.c_void_p, c.c_void_p, i64)


class Stream(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("ctx", c.c_void_p), ("write", WRITE), ("read", READ), ("size", i64),
                ("state_version", u32), ("reserved", u32)]


LOG = function(None, c.c_void_p, i32, c.c_char_p)
ALLOC = function(c.c_void_p, c.c_void_p, i64, i64)
RELEASE = function(None, c.c_void_p, c.c_void_p)
RANDOM = function(Status, c.c_void_p, u64, u64, P(u32), i64)
METRIC = function(None, c.c_void_p, c.c_char_p, f64, i32)
CANCELLED = function(i32, c.c_void_p)
NOW = function(i64, c.c_void_p)
EXTENSION = function(c.c_void_p, c.c_void_p, c.c_char_p)


class Host(c.Structure):
    _fields_ = [("struct_size", u32), ("abi_minor", u32), ("ctx", c.c_void_p), ("name", c.c_char_p), ("version", c.c_char_p), ("log", LOG),
                ("alloc", ALLOC), ("release", RELEASE), ("random", RANDOM), ("metric", METRIC), ("cancelled", CANCELLED), ("now_ns", NOW),
                ("extension", EXTENSION)]


class Loss(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("clip", f64), ("clip_high", f64), ("dual_clip", f64), ("kl_coef", f64),
                ("entropy_coef", f64), ("shaping", f64)]


class Dataset(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("n_rows", i64), ("n_sources", i64), ("prompts_per_step", i64), ("group_size", i64),
                ("prompt_uid", P(u64)), ("source", P(i32)), ("source_weight", P(f64)), ("column", P(Column))]


class Setup(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("host", P(Host)), ("values", P(Value)), ("instance", c.c_char_p), ("n_clusters", i64),
                ("loss", P(Loss)), ("dataset", P(Dataset))]


class Sizes(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("prepare", i64), ("collect", i64), ("record", i64), ("dim", i64), ("clusters", i64)]


class Update(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("step", i64), ("updates", i64), ("skipped", i64), ("collected", P(f64)), ("n_groups", i64),
                ("prompt_uid", P(u64)), ("record", P(f64))]


SELF, ERROR = c.c_void_p, P(Error)
STREAM = function(Status, SELF, P(Stream), ERROR)
SIZES = function(Status, SELF, P(Sizes), ERROR)
HEAD = [("struct_size", u32), ("flags", u32), ("create", function(Status, P(Setup), P(SELF), ERROR)), ("destroy", function(None, SELF)),
        ("save", STREAM), ("load", STREAM), ("describe", STREAM), ("identity", STREAM), ("select", function(Status, P(Value), P(u8), ERROR))]

# ---------------------------------------------------------------- estimators and curricula


class Batch(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("step", i64), ("n_groups", i64), ("n_rollouts", i64), ("n_turns", i64), ("n_tokens", i64),
                ("n_before", i64), ("group_begin", P(i64)), ("turn_begin", P(i64)), ("token_begin", P(i64)), ("act_begin", P(i64)),
                ("act_end", P(i64)), ("sampled", P(u8)), ("length", P(i64)), ("prompt_uid", P(u64)), ("reward", P(f64)), ("column", P(Column))]


class Advantages(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("advantage", P(f64)), ("rollout_weight", P(f64)), ("token_advantage", P(f32)),
                ("baseline", P(f64)), ("scale", P(f64)), ("confidence", P(f64)), ("extra_groups", i64)]


GROUP = function(Status, SELF, P(Batch), i64, P(f64), ERROR)
APPLY = function(Status, SELF, P(Update), ERROR)


class EstimatorTable(c.Structure):
    _fields_ = HEAD + [("sizes", SIZES), ("prepare", GROUP), ("compute", function(Status, SELF, P(Batch), P(f64), P(Advantages), ERROR)),
                       ("collect", GROUP), ("record", GROUP), ("apply", APPLY)]


class Draw(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("step", i64), ("n", i64), ("cursor", i64), ("ordered", P(i64)), ("drawn", P(i64)),
                ("n_drawn", i64)]


class Choice(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("row", P(i64)), ("n_rollouts", P(i64))]


class Kept(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("fate", P(u8)), ("extra_groups", i64)]


class CurriculumTable(c.Structure):
    _fields_ = HEAD + [("next", function(Status, SELF, P(Draw), P(Choice), ERROR)), ("keep", function(Status, SELF, P(Batch), P(Kept), ERROR)),
                       ("apply", function(Status, SELF, P(Batch), ERROR))]


# ---------------------------------------------------------------- verifiers


class Segment(c.Structure):
    _fields_ = [("end", i64), ("reward", f64)]


class Completion(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("prompt", Text), ("text", Text), ("answer", Text), ("row", Text), ("messages", Text),
                ("prompt_uid", u64), ("group", i64), ("index", i64), ("n_turns", i64), ("n_tokens", i64), ("deadline_ns", i64), ("finish", i32),
                ("off_policy", i32)]


class Verdict(c.Structure):
    _fields_ = [("struct_size", u32), ("code", i32), ("reward", f64), ("extracted", P(Stream)), ("note", P(Stream)), ("segment", P(Segment)),
                ("segment_capacity", i64), ("n_segments", i64)]


class Waiting(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("n", i64), ("ticket", P(i64)), ("state", P(u8)), ("wait_ns", i64)]


class VerifierTable(c.Structure):
    _fields_ = HEAD + [("uses", function(u32, P(Value))), ("verify", function(Status, SELF, P(P(Completion)), P(P(Verdict)), i64, ERROR)),
                       ("explain", function(Status, SELF, P(Completion), P(Stream), ERROR)),
                       ("submit", function(Status, SELF, P(Completion), i64, ERROR)), ("poll", function(Status, SELF, P(Waiting), ERROR)),
                       ("take", function(Status, SELF, i64, P(Verdict), ERROR)), ("cancel", function(None, SELF, i64))]


# ---------------------------------------------------------------- objectives


class Tokens(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("step", i64), ("n", i64), ("logprob", P(f32)), ("detached", P(f32)), ("old_logprob", P(f32)),
                ("entropy", P(f32)), ("advantage", P(f64)), ("weight", P(f64)), ("annotated", P(f64)), ("n_rollouts", i64), ("n_groups", i64),
                ("token_begin", P(i64)), ("group_begin", P(i64)), ("column", P(Column))]


class TokenLoss(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("value", P(f64)), ("dlogprob", P(f64)), ("dentropy", P(f64)), ("dkl", P(f64)),
                ("clipped", P(u8))]


class ObjectiveTable(c.Structure):
    _fields_ = HEAD + [("sizes", SIZES), ("annotate", function(Status, SELF, P(Tokens), P(f64), ERROR)),
                       ("compute", function(Status, SELF, P(Tokens), P(TokenLoss), ERROR)),
                       ("collect", function(Status, SELF, P(Tokens), P(TokenLoss), P(f64), ERROR)), ("apply", APPLY)]


# ---------------------------------------------------------------- encoders and codebooks


class Prompts(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("n", i64), ("embedding", P(f32)), ("row", P(Text))]


class Assignment(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("cluster", P(i32)), ("distance", P(f32))]


class EncoderTable(c.Structure):
    _fields_ = HEAD + [("sizes", SIZES), ("encode", function(Status, SELF, P(Text), i64, P(f32), ERROR)),
                       ("fit", function(Status, SELF, P(Text), i64, ERROR))]


class CodebookTable(c.Structure):
    _fields_ = HEAD + [("sizes", SIZES), ("assign", function(Status, SELF, P(Prompts), P(Assignment), ERROR)),
                       ("fit", function(Status, SELF, P(Prompts), ERROR)), ("encoder_identity", STREAM), ("encoder_state", STREAM),
                       ("cluster_name", function(Status, SELF, i64, P(Stream), ERROR))]


# ---------------------------------------------------------------- environments (draft)


class Message(c.Structure):
    _fields_ = [("struct_size", u32), ("role", i32), ("call_id", Text), ("name", Text), ("text", Text), ("parts", Text)]


class Call(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("id", Text), ("name", Text), ("arguments", Text)]


class Episode(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("row", Text), ("messages", Text), ("prompt_uid", u64), ("group", i64), ("index", i64),
                ("seed", u64 * 2), ("noise", u64 * 2), ("max_turns", i64), ("max_tokens", i64), ("deadline_ns", i64)]


class Act(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("turn", i64), ("text", Text), ("call", P(P(Call))), ("n_calls", i64), ("n_unparsed", i64),
                ("token", P(i32)), ("n_tokens", i64), ("deadline_ns", i64), ("finish", i32), ("reserved", i32)]


SAY = function(Status, c.c_void_p, c.c_void_p)


class Observation(c.Structure):
    _fields_ = [("struct_size", u32), ("end", i32), ("reward", f64), ("verdict", i32), ("flags", u32), ("ctx", c.c_void_p), ("say", SAY),
                ("state_key", P(Stream)), ("tools", P(Stream)), ("stop", P(Stream)), ("note", P(Stream))]


class EnvironmentTable(c.Structure):
    _fields_ = HEAD + [("uses", function(u32, P(Value))), ("card", function(Status, P(Value), P(Stream), ERROR)),
                       ("open", function(Status, SELF, P(SELF), ERROR)), ("close", function(None, SELF, SELF)),
                       ("reset", function(Status, SELF, SELF, P(Episode), P(Observation), ERROR)),
                       ("step", function(Status, SELF, P(SELF), P(P(Act)), P(P(Observation)), i64, ERROR)),
                       ("save_session", function(Status, SELF, SELF, P(Stream), ERROR)),
                       ("load_session", function(Status, SELF, SELF, P(Stream), ERROR)),
                       ("suggest", function(Status, SELF, SELF, P(u64), P(Stream), ERROR))]


# ---------------------------------------------------------------- files


class Descriptor(c.Structure):
    _fields_ = [("struct_size", u32), ("kind", i32), ("name", c.c_char_p), ("version", c.c_char_p), ("summary", c.c_char_p),
                ("license", c.c_char_p), ("about", P(c.c_char_p)), ("params", c.c_void_p), ("wants", c.c_void_p), ("n_params", u32),
                ("param_size", u32), ("n_wants", u32), ("want_size", u32), ("calls", u32), ("flags", u32), ("minor_needed", u32),
                ("state_version", u32), ("state_oldest", u32), ("reserved", u32), ("functions", c.c_void_p),
                ("extension", function(c.c_void_p, c.c_char_p))]


class Plugin(c.Structure):
    _fields_ = [("struct_size", u32), ("flags", u32), ("minor_built", u32), ("n_descriptors", u32), ("descriptors", P(c.c_void_p)),
                ("build", c.c_char_p)]
