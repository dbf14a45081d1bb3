"""The C interface as ctypes sees it: the structures, enumerations and functions of include/mica/*.h that the package uses.

The names and the order of fields are those of the headers. tests/python/test_abi.py compares all of it with the headers through a
compiler, so a change of a header that this file does not follow fails there. Nothing here decides anything.
"""
import ctypes as c
from typing import Any, List, Tuple, Type

P = c.c_void_p


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("position", c.c_int64), ("message", c.c_char * 488)]


ON_PROGRESS = c.CFUNCTYPE(c.c_int, P, c.c_double)
ON_WARNING = c.CFUNCTYPE(None, P, c.c_char_p)


class ModelOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("kernels", c.c_char_p), ("chat_template", c.c_char_p), ("on_progress", ON_PROGRESS),
                ("on_warning", ON_WARNING), ("user", P), ("lock", c.c_bool)]


class ModelInfo(c.Structure):
    _fields_ = [("architecture", c.c_char_p), ("name", c.c_char_p), ("kernels", c.c_char_p), ("n_params", c.c_int64),
                ("weight_bytes", c.c_int64), ("file_bytes", c.c_int64), ("n_layers", c.c_int32), ("n_embd", c.c_int32),
                ("n_heads", c.c_int32), ("n_kv_heads", c.c_int32), ("head_dim", c.c_int32), ("n_ff", c.c_int32),
                ("n_vocab", c.c_int32), ("n_ctx_train", c.c_int32), ("sliding_window", c.c_int32), ("bos_token", c.c_int32),
                ("eos_token", c.c_int32), ("eot_token", c.c_int32), ("pad_token", c.c_int32), ("add_bos", c.c_bool),
                ("has_chat_template", c.c_bool), ("chat_template", c.c_char_p), ("load_ms", c.c_double), ("locked", c.c_bool)]


class ContextEvent(c.Structure):
    _fields_ = [("policy", c.c_int), ("dropped_from", c.c_int32), ("dropped_count", c.c_int32), ("inserted_count", c.c_int32)]


ON_SUMMARISE = c.CFUNCTYPE(c.c_int32, P, c.POINTER(c.c_int32), c.c_int32, c.POINTER(c.c_int32), c.c_int32)
ON_CONTEXT_EVENT = c.CFUNCTYPE(None, P, c.POINTER(ContextEvent))
ON_PREFILL = c.CFUNCTYPE(c.c_int, P, c.c_int32, c.c_int32)


class SessionOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("n_ctx", c.c_int32), ("n_threads", c.c_int32), ("cpus", c.POINTER(c.c_int32)),
                ("prefill_chunk", c.c_int32), ("workspace_limit", c.c_int64), ("memory_limit", c.c_int64), ("full_policy", c.c_int),
                ("keep_first", c.c_int32), ("on_summarise", ON_SUMMARISE), ("on_context_event", ON_CONTEXT_EVENT),
                ("on_prefill", ON_PREFILL), ("user", P), ("sysroot", c.c_char_p), ("draft_max", c.c_int32), ("draft_model", P),
                ("kv_k", c.c_int), ("kv_v", c.c_int), ("memory_budget", c.c_int64), ("app_limit", c.c_int64),
                ("constrained", c.c_bool), ("governor", P)]


class MemoryPlan(c.Structure):
    _fields_ = [("n_ctx", c.c_int32), ("prefill_chunk", c.c_int32), ("n_threads", c.c_int32), ("window_ctx", c.c_int32),
                ("weights_bytes", c.c_int64), ("kv_bytes", c.c_int64), ("workspace_bytes", c.c_int64), ("total_bytes", c.c_int64),
                ("touched_bytes", c.c_int64), ("fixed_bytes", c.c_int64), ("guide_bytes", c.c_int64), ("peak_bytes", c.c_int64)]


class ConstraintOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("kind", c.c_int), ("text", c.c_char_p), ("length", c.c_size_t), ("lenient", c.c_bool),
                ("whitespace", c.c_bool), ("on_warning", ON_WARNING), ("user", P)]


class LogitBias(c.Structure):
    _fields_ = [("token", c.c_int32), ("bias", c.c_float)]


class Sampling(c.Structure):
    _fields_ = [("temperature", c.c_float), ("top_k", c.c_int32), ("top_p", c.c_float), ("min_p", c.c_float),
                ("typical_p", c.c_float), ("repeat_penalty", c.c_float), ("frequency_penalty", c.c_float),
                ("presence_penalty", c.c_float), ("penalty_last_n", c.c_int32), ("dry_multiplier", c.c_float),
                ("dry_base", c.c_float), ("dry_allowed_length", c.c_int32), ("dry_last_n", c.c_int32), ("seed", c.c_int64),
                ("logit_bias", c.POINTER(LogitBias)), ("n_logit_bias", c.c_size_t)]


class TokenEvent(c.Structure):
    _fields_ = [("token", c.c_int32), ("index", c.c_int32), ("logprob", c.c_float), ("n_top", c.c_int32),
                ("top_tokens", c.POINTER(c.c_int32)), ("top_logprobs", c.POINTER(c.c_float)), ("time_ns", c.c_int64)]


class Result(c.Structure):
    _fields_ = [("stop_reason", c.c_char_p), ("prompt_n", c.c_int32), ("cached_n", c.c_int32), ("gen_n", c.c_int32),
                ("dropped_n", c.c_int32), ("needed_n", c.c_int32), ("load_ms", c.c_double), ("ttft_ms", c.c_double),
                ("tpot_ms", c.c_double), ("tpot_p50_ms", c.c_double), ("tpot_p95_ms", c.c_double), ("prefill_ms", c.c_double),
                ("prefill_tps", c.c_double), ("decode_tps", c.c_double), ("peak_rss_bytes", c.c_int64), ("seed", c.c_int64),
                ("kernels", c.c_char_p), ("n_threads", c.c_int32), ("drafted_n", c.c_int32), ("accepted_n", c.c_int32),
                ("forced_n", c.c_int32)]


# c_void_p and not c_char_p: the text has a length, and ctypes would cut a c_char_p at a NUL.
ON_TEXT = c.CFUNCTYPE(c.c_int, P, P, c.c_size_t)
ON_TOKEN = c.CFUNCTYPE(c.c_int, P, c.POINTER(TokenEvent))
ON_DONE = c.CFUNCTYPE(None, P, c.c_int, c.POINTER(Result), c.POINTER(Error))
ON_LOGITS = c.CFUNCTYPE(c.c_int, P, c.c_size_t, P)


class GenerateOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("max_tokens", c.c_int32), ("sampling", Sampling), ("stop", c.POINTER(c.c_char_p)),
                ("n_stop", c.c_size_t), ("stop_tokens", c.POINTER(c.c_int32)), ("n_stop_tokens", c.c_size_t),
                ("ignore_eos", c.c_bool), ("top_logprobs", c.c_int32), ("on_text", ON_TEXT), ("on_token", ON_TOKEN), ("user", P),
                ("speculate", c.c_int), ("draft_n", c.c_int32), ("on_done", ON_DONE), ("constraint", P), ("close", c.c_bool),
                ("token_healing", c.c_bool), ("from_nothing", c.c_bool)]


class BatchOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("max_sessions", c.c_int32), ("n_ctx", c.c_int32), ("step_tokens", c.c_int32),
                ("n_threads", c.c_int32), ("cpus", c.POINTER(c.c_int32)), ("workspace_limit", c.c_int64),
                ("memory_limit", c.c_int64), ("sysroot", c.c_char_p), ("kv_k", c.c_int), ("kv_v", c.c_int), ("kv_tokens", c.c_int32),
                ("memory_budget", c.c_int64), ("app_limit", c.c_int64), ("constrained", c.c_bool), ("governor", P)]


class ToolsOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("choice", c.c_int), ("name", c.c_char_p), ("parallel", c.c_bool),
                ("lenient", c.c_bool), ("chat_template", c.c_char_p), ("on_warning", ON_WARNING), ("user", P)]


class ChatOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("tools", P), ("flags", c.c_uint), ("now_unix", c.c_int64)]


class ToolEvent(c.Structure):
    _fields_ = [("kind", c.c_int), ("index", c.c_int32), ("id", c.c_char_p), ("name", c.c_char_p), ("text", P),
                ("length", c.c_size_t), ("message", c.c_char_p)]


ON_TOOL_EVENT = c.CFUNCTYPE(c.c_int, P, c.POINTER(ToolEvent))


class DeviceOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("sysroot", c.c_char_p), ("min_interval_ms", c.c_int32)]


class DeviceState(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("time_ns", c.c_int64), ("reported_ns", c.c_int64), ("temp_max_mc", c.c_int32),
                ("temp_soc_mc", c.c_int32), ("temp_skin_mc", c.c_int32), ("temp_battery_mc", c.c_int32), ("thermal", c.c_int),
                ("headroom", c.c_double), ("cooling", c.c_double), ("clock", c.c_double), ("clock_limit", c.c_double),
                ("throttle", c.c_uint), ("battery_level", c.c_double), ("battery_w", c.c_double), ("battery", c.c_int),
                ("on_mains", c.c_int), ("power_save", c.c_int), ("foreground", c.c_int), ("energy_j", c.c_double),
                ("energy_error", c.c_double), ("energy_step_j", c.c_double), ("energy_source", c.c_char_p),
                ("energy_reason", c.c_char * 160), ("energy_epoch", c.c_int32), ("memory_total", c.c_int64),
                ("memory_available", c.c_int64), ("memory_limit", c.c_int64), ("trim", c.c_int), ("psi_memory_some10", c.c_double),
                ("psi_memory_full10", c.c_double), ("psi_cpu_some10", c.c_double), ("psi_io_some10", c.c_double),
                ("cpu_quota", c.c_double)]


class AppReport(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("thermal", c.c_int), ("headroom", c.c_double), ("power_save", c.c_int),
                ("foreground", c.c_int), ("trim", c.c_int), ("battery_level", c.c_double), ("battery", c.c_int),
                ("on_mains", c.c_int)]


# The structures by their names in C.
STRUCTURES: List[Tuple[str, Type[c.Structure]]] = [
    ("mica_error", Error), ("mica_model_options", ModelOptions), ("mica_model_info", ModelInfo),
    ("mica_context_event", ContextEvent), ("mica_session_options", SessionOptions), ("mica_memory_plan", MemoryPlan),
    ("mica_constraint_options", ConstraintOptions), ("mica_logit_bias", LogitBias), ("mica_sampling", Sampling),
    ("mica_token_event", TokenEvent), ("mica_result", Result), ("mica_generate_options", GenerateOptions),
    ("mica_batch_options", BatchOptions), ("mica_tools_options", ToolsOptions), ("mica_chat_options", ChatOptions),
    ("mica_tool_event", ToolEvent), ("mica_device_options", DeviceOptions), ("mica_device_state", DeviceState),
    ("mica_app_report", AppReport),
]

_error, _out = c.POINTER(Error), c.POINTER(P)
_tokens = c.POINTER(c.c_int32)
_bytes_out, _size_out = c.POINTER(P), c.POINTER(c.c_size_t)

# name, what it returns, its arguments.
FUNCTIONS: List[Tuple[str, Any, List[Any]]] = [
    ("mica_version", c.c_char_p, []),
    ("mica_numerics_version", c.c_int, []),
    ("mica_status_name", c.c_char_p, [c.c_int]),
    ("mica_free", None, [P]),
    ("mica_model_options_default", ModelOptions, []),
    ("mica_model_open", c.c_int, [c.c_char_p, c.POINTER(ModelOptions), _out, _error]),
    ("mica_model_close", None, [P]),
    ("mica_model_get_info", None, [P, c.POINTER(ModelInfo)]),
    ("mica_model_metadata_count", c.c_size_t, [P]),
    ("mica_model_metadata", c.c_int, [P, c.c_size_t, _bytes_out, _bytes_out, _error]),
    ("mica_model_explain_kernels", c.c_int, [P, _bytes_out, _error]),
    ("mica_model_tokenize", c.c_int, [P, c.c_char_p, c.c_size_t, c.c_uint, c.POINTER(_tokens), _size_out, _error]),
    ("mica_model_detokenize", c.c_int, [P, _tokens, c.c_size_t, c.c_bool, _bytes_out, _size_out, _error]),
    ("mica_model_chat_render", c.c_int, [P, c.c_char_p, c.c_size_t, c.c_int64, _bytes_out, _size_out, _error]),
    ("mica_session_options_default", SessionOptions, []),
    ("mica_session_plan", c.c_int, [P, c.POINTER(SessionOptions), c.POINTER(MemoryPlan), _error]),
    ("mica_session_new", c.c_int, [P, c.POINTER(SessionOptions), _out, _error]),
    ("mica_session_free", None, [P]),
    ("mica_session_sync", c.c_int, [P, _tokens, c.c_size_t, _error]),
    ("mica_session_logits", P, [P]),
    ("mica_session_score", c.c_int, [P, _tokens, c.c_size_t, c.c_size_t, ON_LOGITS, P, _error]),
    ("mica_session_embed", c.c_int, [P, _tokens, c.c_size_t, c.c_int, c.c_bool, c.POINTER(c.c_float), _error]),
    ("mica_session_reset", c.c_int, [P, _error]),
    ("mica_session_tokens", _tokens, [P, _size_out]),
    ("mica_session_set_threads", c.c_int, [P, c.c_int32, c.POINTER(c.c_int32), _error]),
    ("mica_session_cancel", None, [P]),
    ("mica_session_snapshot", c.c_int, [P, _bytes_out, _size_out, _error]),
    ("mica_session_restore_memory", c.c_int, [P, c.c_char_p, c.c_size_t, _error]),
    ("mica_session_save", c.c_int, [P, c.c_char_p, _error]),
    ("mica_session_restore", c.c_int, [P, c.c_char_p, _error]),
    ("mica_constraint_options_default", ConstraintOptions, []),
    ("mica_constraint_new", c.c_int, [P, c.POINTER(ConstraintOptions), _out, _error]),
    ("mica_constraint_free", None, [P]),
    ("mica_constraint_match", c.c_int, [P, c.c_char_p, c.c_size_t, c.POINTER(c.c_bool), _size_out, _error]),
    ("mica_generate_options_default", GenerateOptions, []),
    ("mica_session_generate", c.c_int, [P, c.POINTER(GenerateOptions), c.POINTER(Result), _error]),
    ("mica_batch_options_default", BatchOptions, []),
    ("mica_batch_new", c.c_int, [P, c.POINTER(BatchOptions), _out, _error]),
    ("mica_batch_free", None, [P]),
    ("mica_batch_session_new", c.c_int, [P, c.POINTER(SessionOptions), _out, _error]),
    ("mica_batch_submit", c.c_int, [P, _tokens, c.c_size_t, c.POINTER(GenerateOptions), _error]),
    ("mica_batch_step", c.c_int32, [P]),
    ("mica_tools_options_default", ToolsOptions, []),
    ("mica_tools_new", c.c_int, [P, c.c_char_p, c.c_size_t, c.POINTER(ToolsOptions), _out, _error]),
    ("mica_tools_free", None, [P]),
    ("mica_tools_format", c.c_char_p, [P]),
    ("mica_tools_constraint", P, [P]),
    ("mica_chat_options_default", ChatOptions, []),
    ("mica_chat_tokenize", c.c_int, [P, c.c_char_p, c.c_size_t, c.POINTER(ChatOptions), c.POINTER(_tokens), _size_out, _bytes_out,
                                     _size_out, _error]),
    ("mica_tool_parser_new", c.c_int, [P, c.c_int64, ON_TOOL_EVENT, P, _out, _error]),
    ("mica_tool_parser_free", None, [P]),
    ("mica_tool_parser_feed", c.c_int, [P, P, c.c_size_t, _error]),
    ("mica_tool_parser_finish", c.c_int, [P, _error]),
    ("mica_device_options_default", DeviceOptions, []),
    ("mica_device_open", c.c_int, [c.POINTER(DeviceOptions), _out, _error]),
    ("mica_device_close", None, [P]),
    ("mica_device_read", c.c_int, [P, c.POINTER(DeviceState), _error]),
    ("mica_app_report_default", AppReport, []),
    ("mica_device_report", c.c_int, [P, c.POINTER(AppReport), _error]),
]

# The constants, by their names in C.
CONSTANTS = {
    "MICA_TOKENIZE_ADD_BOS": 1, "MICA_TOKENIZE_PARSE_SPECIAL": 2, "MICA_FULL_ERROR": 0, "MICA_FULL_STOP": 1, "MICA_FULL_SHIFT": 2,
    "MICA_KV_F16": 0, "MICA_KV_Q8_0": 1, "MICA_KV_Q4_0": 2, "MICA_POOLING_MEAN": 0, "MICA_POOLING_LAST": 1,
    "MICA_CONSTRAINT_JSON_SCHEMA": 0, "MICA_CONSTRAINT_JSON": 1, "MICA_CONSTRAINT_GBNF": 2, "MICA_CONSTRAINT_REGEX": 3,
    "MICA_CONSTRAINT_CHOICES": 4, "MICA_SPECULATE_OFF": 0, "MICA_SPECULATE_LOOKUP": 1, "MICA_SPECULATE_MODEL": 2,
    "MICA_SPECULATE_BOTH": 3, "MICA_TOOL_AUTO": 0, "MICA_TOOL_NONE": 1, "MICA_TOOL_REQUIRED": 2, "MICA_TOOL_NAMED": 3,
    "MICA_TOOL_TEXT": 0, "MICA_TOOL_CALL_BEGIN": 1, "MICA_TOOL_ARGUMENTS": 2, "MICA_TOOL_CALL_END": 3, "MICA_TOOL_ERROR": 4,
}
