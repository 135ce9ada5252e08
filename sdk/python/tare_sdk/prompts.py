"""What a prompt is called: trainers other than the engine number their prompts anew in every step, and a state by prompt has to find them again."""

import hashlib
import json


def prompt_uid(prompt):
    """64 bits that are the same for a prompt in every step, process and run. prompt: text, bytes, a list of token ids, or anything JSON can hold."""
    data = prompt if isinstance(prompt, bytes) else json.dumps(prompt, sort_keys=True, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
