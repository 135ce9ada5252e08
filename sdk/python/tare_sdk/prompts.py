"""Identifies prompts: trainers other than the engine number their prompts again in every step, but
a state by prompt must recognise them.
"""

import hashlib
import json


def prompt_uid(prompt):
    """Returns 64 bits that are equal for a prompt in every step, process and run. prompt: text,
    bytes, a list of token ids, or any value that JSON can represent.
    """
    data = prompt if isinstance(prompt, bytes) else json.dumps(prompt, sort_keys=True, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
