/* Helpers for plugins in C++17: a class becomes a plugin, and no exception leaves it. Header-only,
 * and not part of the ABI.
 *
 *   class mine {
 *   public:
 *       // may throw: create then fails with the exception's message
 *       mine(const tare_host *host, const tare_value *values, int64_t n_clusters);
 *       void compute(const tare_batch &batch, const double *prepared, tare_advantages &out) const;
 *   };
 *   static constexpr tare_descriptor DESCRIPTOR =
 *       tare::estimator<mine>({"mine", "0.1.0", "what it does", "Apache-2.0"}, PARAMS);
 *   TARE_PLUGIN_ENTRY(DESCRIPTOR)
 *
 * Each member function of the class becomes the table's function of the same name; functions that
 * the class lacks are NULL in the table (with `class mine : public tare::estimator_base` and
 * `override` a misspelt one does not compile). They take the C function's arguments without self
 * and error, structs by reference, and report errors by throwing: tare::error with its own status,
 * std::bad_alloc as TARE_E_NOMEM, any other exception as TARE_E_PLUGIN with what(). All other rules
 * (shapes, ownership, the functions that may change the state) are those of the C headers. */
#ifndef TARE_SDK_HPP
#define TARE_SDK_HPP

#include "sdk.h"

#include <cstring>
#include <exception>
#include <new>
#include <type_traits>

namespace tare
{

/* Throws an error: throw tare::error(TARE_E_RANGE, "group %lld: no rollouts", m); */
class error : public std::exception
{
  public:
    __attribute__((format(printf, 3, 4))) error(tare_status code, const char *format, ...) noexcept : code_(code)
    {
        va_list args;
        va_start(args, format);
        tare_format(message_, sizeof message_, format, args);
        va_end(args);
    }
    tare_status code() const noexcept { return code_; }
    const char *what() const noexcept override { return message_; }

  private:
    tare_status code_;
    char message_[500];
};

/* Runs f and turns an exception into a status and a message. Also for functions written by hand. */
template <class F> tare_status guard(tare_error *out, F f) noexcept
{
    try {
        f();
        return TARE_OK;
    } catch (const error &e) {
        return tare_fail(out, e.code() ? e.code() : TARE_E_GENERIC, "%s", e.what());
    } catch (const std::bad_alloc &) {
        return tare_fail(out, TARE_E_NOMEM, "no memory");
    } catch (const std::exception &e) {
        return tare_fail(out, TARE_E_PLUGIN, "%s", e.what());
    } catch (...) {
        return tare_fail(out, TARE_E_PLUGIN, "it threw an object that is not a std::exception");
    }
}

/* Reads and writes saved state, number by number. */
inline void put(const tare_stream &out, const void *data, int64_t size)
{
    if (const tare_status s = out.write(out.ctx, data, size)) throw error(s, "the state cannot be written");
}
template <class T> void put(const tare_stream &out, const T &value)
{
    static_assert(std::is_trivially_copyable<T>::value, "only plain data can be saved byte by byte");
    put(out, &value, int64_t(sizeof value));
}
inline void get(const tare_stream &in, void *data, int64_t size)
{
    if (const tare_status s = in.read(in.ctx, data, size)) throw error(s, "the state is cut short");
}
template <class T> T get(const tare_stream &in)
{
    static_assert(std::is_trivially_copyable<T>::value, "only plain data can be loaded byte by byte");
    T value;
    get(in, &value, int64_t(sizeof value));
    return value;
}

/* Copies text into the verdict's buffer, cut to its capacity and not inside a character. */
inline void extract(tare_verdict &v, const char *data, int64_t size)
{
    int64_t n = size < v.capacity ? size : v.capacity;
    while (n > 0 && n < size && (static_cast<unsigned char>(data[n]) & 0xc0) == 0x80) n--;
    if (n > 0) std::memcpy(v.extracted, data, size_t(n));
    v.size = n;
}

/* Appends a segment to the verdict of a verifier whose table has TARE_GIVES_SEGMENTS. Returns false
 * if the host does not collect segments or the buffer is full. */
inline bool add_segment(tare_verdict &v, int64_t end, double reward)
{
    return tare_add_segment(&v, end, reward) != 0;
}

/* A plugin may inherit from the base of its kind and mark its functions `override`: a misspelt
 * function, or one with other parameters, then does not compile. Functions that are not overridden
 * are NULL in the table, as without the base. */
class estimator_base
{
  public:
    virtual ~estimator_base() = default;
    virtual void compute(const tare_batch &batch, const double *prepared, tare_advantages &out) const = 0;
    virtual void save(const tare_stream &) const {}
    virtual void load(const tare_stream &) {}
    virtual int64_t prepare_size() const { return 0; }
    virtual void prepare(const tare_batch &, int64_t, double *) const {}
    virtual int64_t collect_size() const { return 0; }
    virtual void collect(const tare_batch &, int64_t, double *) const {}
    virtual void apply(int64_t, const double *) {}
    virtual void describe(const tare_stream &) const {}
    virtual int64_t record_size() const { return 0; }
    virtual void record(const tare_batch &, int64_t, double *) const {}
    virtual void apply_records(int64_t, const double *, const uint64_t *, const double *, int64_t) {}
    virtual const char *const *columns() const { return nullptr; }
};

class verifier_base
{
  public:
    virtual ~verifier_base() = default;
    virtual void verify(const tare_answer &answer, tare_verdict &verdict) = 0;
    virtual void explain(const tare_answer &, const tare_stream &) {}
    virtual void submit(const tare_answer &, int64_t) {}
    virtual void poll(const tare_waiting &) {}
    virtual void cancel(int64_t) {}
};

namespace detail
{

/* The class that a member belongs to: the base where a plugin did not write its own. */
template <class M> struct owner;
template <class F, class C> struct owner<F C::*> {
    using type = C;
};
template <class M>
inline constexpr bool of_base =
    std::is_same<typename owner<M>::type, estimator_base>::value || std::is_same<typename owner<M>::type, verifier_base>::value;

/* has_NAME: true if the plugin has the function. A member of that name that cannot be called,
 * because it is private or overloaded, does not compile: the name is ambiguous in a class that
 * inherits it twice, regardless of access. */
#define TARE_HAS_MEMBER(NAME)                                                                                                      \
    struct other_##NAME {                                                                                                          \
        int NAME;                                                                                                                  \
    };                                                                                                                             \
    template <class T> struct both_##NAME : T, other_##NAME {                                                                      \
    };                                                                                                                             \
    template <class T, class = void> struct named_##NAME : std::true_type {                                                        \
    };                                                                                                                             \
    template <class T> struct named_##NAME<T, std::void_t<decltype(&both_##NAME<T>::NAME)>> : std::false_type {                    \
    };                                                                                                                             \
    template <class T, class = void> struct has_##NAME : std::false_type {                                                         \
        static_assert(std::is_final<T>::value || !named_##NAME<T>::value,                                                          \
                      #NAME " of this plugin cannot be called: make it public, and the only function of that name");               \
    };                                                                                                                             \
    template <class T> struct has_##NAME<T, std::void_t<decltype(&T::NAME)>> : std::bool_constant<!of_base<decltype(&T::NAME)>> {  \
    };
TARE_HAS_MEMBER(save)
TARE_HAS_MEMBER(load)
TARE_HAS_MEMBER(prepare_size)
TARE_HAS_MEMBER(prepare)
TARE_HAS_MEMBER(collect_size)
TARE_HAS_MEMBER(collect)
TARE_HAS_MEMBER(apply)
TARE_HAS_MEMBER(describe)
TARE_HAS_MEMBER(record_size)
TARE_HAS_MEMBER(record)
TARE_HAS_MEMBER(apply_records)
TARE_HAS_MEMBER(columns)
TARE_HAS_MEMBER(explain)
TARE_HAS_MEMBER(submit)
TARE_HAS_MEMBER(poll)
TARE_HAS_MEMBER(cancel)
TARE_HAS_MEMBER(fit)
TARE_HAS_MEMBER(identity)
TARE_HAS_MEMBER(encoder_identity)
TARE_HAS_MEMBER(encoder_state)
TARE_HAS_MEMBER(cluster_name)
TARE_HAS_MEMBER(next)
TARE_HAS_MEMBER(keep)
#undef TARE_HAS_MEMBER
/* uses is a static function, since it is called before there is an instance. */
template <class T, class = void> struct has_uses : std::false_type {
};
template <class T> struct has_uses<T, std::void_t<decltype(&T::uses)>> : std::true_type {
};

/* Members that the tables of several kinds share. After an exception, a function that returns a
 * number returns -1, which the host refuses. */
template <class T> struct common {
    static T &of(void *self) { return *static_cast<T *>(self); }
    static const T &of(const void *self) { return *static_cast<const T *>(self); }
    template <class F> static int64_t number(F f) noexcept
    {
        int64_t n = -1;
        return guard(nullptr, [&] { n = f(); }) ? -1 : n;
    }
    static tare_status create(const tare_host *host, const tare_value *values, void **self, tare_error *error) noexcept
    {
        return guard(error, [&] { *self = new T(host, values); });
    }
    static void destroy(void *self) noexcept { delete static_cast<T *>(self); }
    static tare_status save(const void *self, const tare_stream *out, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).save(*out); });
    }
    static tare_status load(void *self, const tare_stream *in, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).load(*in); });
    }
    static int64_t dim(const void *self) noexcept
    {
        return number([&] { return of(self).dim(); });
    }
    static tare_status fit(void *self, const tare_text *items, int64_t n, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).fit(items, n); });
    }
    template <class Table> static constexpr void fill(Table &t)
    {
        static_assert(has_save<T>::value == has_load<T>::value,
                      "save and load require each other: define both, or check the spelling");
        t.struct_size = sizeof t;
        t.destroy = destroy;
        if constexpr (has_save<T>::value) t.save = save;
        if constexpr (has_load<T>::value) t.load = load;
    }
};

template <class T> struct estimator_functions : common<T> {
    using common<T>::of;
    static tare_status create(const tare_host *host, const tare_value *values, int64_t n_clusters, void **self,
                              tare_error *error) noexcept
    {
        return guard(error, [&] { *self = new T(host, values, n_clusters); });
    }
    static int64_t prepare_size(const void *self) noexcept
    {
        return common<T>::number([&] { return of(self).prepare_size(); });
    }
    static int64_t collect_size(const void *self) noexcept
    {
        return common<T>::number([&] { return of(self).collect_size(); });
    }
    static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).prepare(*batch, group, sum); });
    }
    static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                               tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).compute(*batch, prepared, *out); });
    }
    static tare_status collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).collect(*batch, group, sum); });
    }
    static tare_status apply(void *self, int64_t step, const double *collected, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).apply(step, collected); });
    }
    static tare_status describe(const void *self, const tare_stream *out, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).describe(*out); });
    }
    static int64_t record_size(const void *self) noexcept
    {
        return common<T>::number([&] { return of(self).record_size(); });
    }
    static tare_status record(const void *self, const tare_batch *batch, int64_t group, double *record, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).record(*batch, group, record); });
    }
    static tare_status apply_records(void *self, int64_t step, const double *collected, const uint64_t *prompt_uid,
                                     const double *record, int64_t n_groups, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).apply_records(step, collected, prompt_uid, record, n_groups); });
    }
    static const char *const *columns(const void *self) noexcept
    {
        const char *const *names = nullptr;
        guard(nullptr, [&] { names = of(self).columns(); });
        return names;
    }
    static constexpr tare_estimator table()
    {
        static_assert(has_prepare<T>::value == has_prepare_size<T>::value,
                      "prepare and prepare_size require each other: define both, or check the spelling");
        static_assert(has_collect<T>::value == has_collect_size<T>::value,
                      "collect and collect_size require each other: define both, or check the spelling");
        static_assert(!has_collect<T>::value || has_apply<T>::value || has_apply_records<T>::value,
                      "collect requires apply or apply_records: define one of them, or check the spelling");
        static_assert(has_record<T>::value == has_record_size<T>::value && has_record<T>::value == has_apply_records<T>::value,
                      "record, record_size and apply_records require each other: define all three, or check the spelling");
        tare_estimator t{};
        common<T>::fill(t);
        t.create = create;
        t.compute = compute;
        if constexpr (has_prepare_size<T>::value) t.prepare_size = prepare_size;
        if constexpr (has_prepare<T>::value) t.prepare = prepare;
        if constexpr (has_collect_size<T>::value) t.collect_size = collect_size;
        if constexpr (has_collect<T>::value) t.collect = collect;
        if constexpr (has_apply<T>::value) t.apply = apply;
        if constexpr (has_describe<T>::value) t.describe = describe;
        if constexpr (has_record_size<T>::value) t.record_size = record_size;
        if constexpr (has_record<T>::value) t.record = record;
        if constexpr (has_apply_records<T>::value) t.apply_records = apply_records;
        if constexpr (has_columns<T>::value) t.columns = columns;
        return t;
    }
};
template <class T> inline constexpr tare_estimator ESTIMATOR = estimator_functions<T>::table();

template <class T> struct verifier_functions : common<T> {
    using common<T>::of;
    static tare_status verify(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                              tare_error *error) noexcept
    {
        return guard(error, [&] {
            for (int64_t i = 0; i < n; i++) of(self).verify(*answers[i], *verdicts[i]);
        });
    }
    static tare_status explain(void *self, const tare_answer *answer, const tare_stream *out, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).explain(*answer, *out); });
    }
    static tare_status submit(void *self, const tare_answer *answer, int64_t ticket, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).submit(*answer, ticket); });
    }
    static tare_status poll(void *self, const tare_waiting *waiting, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).poll(*waiting); });
    }
    static void cancel(void *self, int64_t ticket) noexcept
    {
        guard(nullptr, [&] { of(self).cancel(ticket); });
    }
    /* After an exception all bits are set, which the host refuses. */
    static uint32_t uses(const tare_value *values) noexcept
    {
        uint32_t bits = ~0u;
        guard(nullptr, [&] { bits = T::uses(values); });
        return bits;
    }
    static constexpr tare_verifier table()
    {
        tare_verifier t{};
        t.struct_size = sizeof t;
        t.create = common<T>::create;
        t.destroy = common<T>::destroy;
        t.verify = verify;
        static_assert(has_submit<T>::value == has_poll<T>::value && has_submit<T>::value == has_cancel<T>::value,
                      "submit requires poll and cancel: define all three, or check the spelling");
        if constexpr (has_explain<T>::value) t.explain = explain;
        if constexpr (has_submit<T>::value) t.submit = submit;
        if constexpr (has_poll<T>::value) t.poll = poll;
        if constexpr (has_cancel<T>::value) t.cancel = cancel;
        if constexpr (has_uses<T>::value) t.uses = uses;
        return t;
    }
};
template <class T> inline constexpr tare_verifier VERIFIER = verifier_functions<T>::table();
/* The table of a verifier that calls add_segment. */
template <class T> constexpr tare_verifier verifier_with_segments()
{
    tare_verifier t = verifier_functions<T>::table();
    t.flags |= TARE_GIVES_SEGMENTS;
    return t;
}
template <class T> inline constexpr tare_verifier SEGMENT_VERIFIER = verifier_with_segments<T>();

template <class T> struct encoder_functions : common<T> {
    using common<T>::of;
    static tare_status encode(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).encode(texts, n, out); });
    }
    static tare_status identity(const void *self, char *text, int64_t capacity, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).identity(text, capacity); });
    }
    static constexpr tare_encoder table()
    {
        tare_encoder t{};
        common<T>::fill(t);
        t.create = common<T>::create;
        t.dim = common<T>::dim;
        t.encode = encode;
        if constexpr (has_fit<T>::value) t.fit = common<T>::fit;
        if constexpr (has_identity<T>::value) t.identity = identity;
        return t;
    }
};
template <class T> inline constexpr tare_encoder ENCODER = encoder_functions<T>::table();

template <class T> struct codebook_functions : common<T> {
    using common<T>::of;
    static int64_t size(const void *self) noexcept
    {
        return common<T>::number([&] { return of(self).size(); });
    }
    static tare_status assign(const void *self, const float *embedding, const tare_text *rows, int64_t n, int32_t *cluster,
                              float *distance, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).assign(embedding, rows, n, cluster, distance); });
    }
    static tare_status encoder_identity(const void *self, char *text, int64_t capacity, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).encoder_identity(text, capacity); });
    }
    static tare_text encoder_state(const void *self) noexcept { return of(self).encoder_state(); }
    static tare_text cluster_name(const void *self, int64_t k) noexcept { return of(self).cluster_name(k); }
    static constexpr tare_codebook table()
    {
        tare_codebook t{};
        common<T>::fill(t);
        t.create = common<T>::create;
        t.size = size;
        t.dim = common<T>::dim;
        t.assign = assign;
        if constexpr (has_fit<T>::value) t.fit = common<T>::fit;
        if constexpr (has_encoder_identity<T>::value) t.encoder_identity = encoder_identity;
        if constexpr (has_encoder_state<T>::value) t.encoder_state = encoder_state;
        if constexpr (has_cluster_name<T>::value) t.cluster_name = cluster_name;
        return t;
    }
};
template <class T> inline constexpr tare_codebook CODEBOOK = codebook_functions<T>::table();

/* Flags of an objective's table: static constexpr uint32_t flags of its class, if it has that
 * member. */
template <class T, class = void> struct objective_flags {
    static constexpr uint32_t value = 0;
};
template <class T> struct objective_flags<T, std::void_t<decltype(T::flags)>> {
    static constexpr uint32_t value = T::flags;
};
template <class T> struct objective_functions : common<T> {
    using common<T>::of;
    static tare_status create(const tare_host *host, const tare_value *values, const tare_loss *loss, void **self,
                              tare_error *error) noexcept
    {
        return guard(error, [&] { *self = new T(host, values, *loss); });
    }
    static int64_t prepare_size(const void *self) noexcept
    {
        return common<T>::number([&] { return of(self).prepare_size(); });
    }
    static int64_t collect_size(const void *self) noexcept
    {
        return common<T>::number([&] { return of(self).collect_size(); });
    }
    static tare_status prepare(const void *self, const tare_tokens *tokens, double *prepared, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).prepare(*tokens, prepared); });
    }
    static tare_status compute(const void *self, const tare_tokens *tokens, tare_token_loss *out, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).compute(*tokens, *out); });
    }
    static tare_status collect(const void *self, const tare_tokens *tokens, const tare_token_loss *loss, double *sum,
                               tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).collect(*tokens, *loss, sum); });
    }
    static tare_status apply(void *self, int64_t step, const double *collected, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).apply(step, collected); });
    }
    static constexpr tare_objective table()
    {
        tare_objective t{};
        common<T>::fill(t);
        t.flags = objective_flags<T>::value;
        t.create = create;
        t.compute = compute;
        if constexpr (has_prepare_size<T>::value) t.prepare_size = prepare_size;
        if constexpr (has_prepare<T>::value) t.prepare = prepare;
        if constexpr (has_collect_size<T>::value) t.collect_size = collect_size;
        if constexpr (has_collect<T>::value) t.collect = collect;
        if constexpr (has_apply<T>::value) t.apply = apply;
        return t;
    }
};
template <class T> inline constexpr tare_objective OBJECTIVE = objective_functions<T>::table();

template <class T> struct curriculum_functions : common<T> {
    using common<T>::of;
    static tare_status create(const tare_host *host, const tare_value *values, const tare_rows *rows, void **self,
                              tare_error *error) noexcept
    {
        return guard(error, [&] { *self = new T(host, values, *rows); });
    }
    static tare_status next(const void *self, const tare_draw *draw, int64_t *row, int64_t *rollouts, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).next(*draw, row, rollouts); });
    }
    static tare_status keep(const void *self, const tare_groups *groups, uint8_t *fate, int64_t *replace,
                            tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).keep(*groups, fate, *replace); });
    }
    static tare_status apply(void *self, const tare_groups *groups, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).apply(*groups); });
    }
    static tare_status describe(const void *self, const tare_stream *out, tare_error *error) noexcept
    {
        return guard(error, [&] { of(self).describe(*out); });
    }
    static constexpr tare_curriculum table()
    {
        static_assert(!has_apply<T>::value || has_save<T>::value,
                      "apply requires save and load: define all three, or check the spelling");
        tare_curriculum t{};
        common<T>::fill(t);
        t.create = create;
        if constexpr (has_next<T>::value) t.next = next;
        if constexpr (has_keep<T>::value) t.keep = keep;
        if constexpr (has_apply<T>::value) t.apply = apply;
        if constexpr (has_describe<T>::value) t.describe = describe;
        return t;
    }
};
template <class T> inline constexpr tare_curriculum CURRICULUM = curriculum_functions<T>::table();

} // namespace detail

/* The descriptor's own members; see tare_descriptor. */
struct about {
    const char *name, *version, *summary, *license;
    const char *source = nullptr;
    uint32_t needs = 0, threading = TARE_SINGLE_THREAD;
};

constexpr tare_descriptor descriptor(int32_t kind, const about &a, const tare_param *params, uint32_t n, const void *functions)
{
    return {sizeof(tare_descriptor), kind,    a.name,      a.version, a.summary, a.license, a.source, params, n,
            sizeof(tare_param),      a.needs, a.threading, functions};
}

#define TARE_KIND(NAME, KIND, TABLE)                                                                                               \
    template <class T, uint32_t N> constexpr tare_descriptor NAME(const about &a, const tare_param(&params)[N])                    \
    {                                                                                                                              \
        return descriptor(KIND, a, params, N, &detail::TABLE<T>);                                                                  \
    }                                                                                                                              \
    template <class T> constexpr tare_descriptor NAME(const about &a)                                                              \
    {                                                                                                                              \
        return descriptor(KIND, a, nullptr, 0, &detail::TABLE<T>);                                                                 \
    }
TARE_KIND(estimator, TARE_ESTIMATOR, ESTIMATOR)
TARE_KIND(verifier, TARE_VERIFIER, VERIFIER)
TARE_KIND(encoder, TARE_ENCODER, ENCODER)
TARE_KIND(codebook, TARE_CODEBOOK, CODEBOOK)
TARE_KIND(objective, TARE_OBJECTIVE, OBJECTIVE)
TARE_KIND(curriculum, TARE_CURRICULUM, CURRICULUM)
#undef TARE_KIND

} // namespace tare

#endif
