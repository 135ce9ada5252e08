static void ref_digest(const struct kctx *c, const struct op_digest *o)
{
    (void)c;
    const int64_t n = (o->bytes + 3) / 4;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = 0;
        memcpy(&word, (const char *)o->data + 4 * i, (size_t)(o->bytes - 4 * i < 4 ? o->bytes - 4 * i : 4));
        *o->out += digest_word(word, (uint64_t)(o->first + i));
    }
}
