/* Helpers for plugins in C++17: a class becomes a plugin, and no exception leaves it. Header-only,
 * and not part of the ABI.
 *
 *   class mine : public tare::estimator_base
 *   {
 *     public:
 *       explicit mine(const tare_setup &setup) : scale_(setup.values[P_SCALE].f) {}
 *       void compute(const tare_batch &batch, const double *prepared, tare_advantages &out) const override;
 *   };
 *   static constexpr tare_descriptor DESCRIPTOR =
 *       tare::estimator<mine>({"mine", "0.1.0", "what it does", "Apache-2.0"}, PARAMS, WANTS);
 *   TARE_PLUGIN_ENTRY(&DESCRIPTOR)
 *
 * Each public member function of the class becomes the table's function of the same name; functions
 * that the class lacks are NULL in the table. They take the C function's arguments without self and
 * error, structs by reference, and report errors by throwing: tare::error with its own status,
 * std::bad_alloc as TARE_E_NOMEM, any other exception as TARE_E_PLUGIN with what(). The constructor
 * may throw as well. select, uses and card are static, since there is no instance yet. All other
 * rules (shapes, ownership, the functions that may change the state) are those of the C headers.
 *
 * The base is optional. With it and `override`, a misspelt function does not compile.
 *
 * Constants of the class, each static constexpr uint32_t and each optional: flags (of the table),
 * calls (TARE_CALLS_..., SERIAL by default), state_version and state_oldest (1 with save and load),
 * minor_needed. */
#ifndef TARE_SDK_HPP
#define TARE_SDK_HPP

#include "sdk.h"

#include <exception>
#include <new>
#include <string_view>
#include <type_traits>

namespace tare
{

/* ---------------------------------------------------------------- errors */

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
        return tare_fail(out, TARE_E_NOMEM, "out of memory");
    } catch (const std::exception &e) {
        return tare_fail(out, TARE_E_PLUGIN, "%s", e.what());
    } catch (...) {
        return tare_fail(out, TARE_E_PLUGIN, "it threw an object that is not a std::exception");
    }
}

/* Throws if the status of a function of the host is an error. */
inline void check(tare_status status, const char *message)
{
    if (status) throw error(status, "%s", message);
}

/* ---------------------------------------------------------------- text, state and columns */

inline std::string_view view(tare_text text)
{
    return {text.size > 0 ? text.data : "", text.size > 0 ? size_t(text.size) : 0};
}
inline tare_text text(std::string_view view)
{
    return {view.data(), int64_t(view.size())};
}

/* Writes a text; does nothing for a NULL stream, which is one that the host does not want. */
inline void say(const tare_stream *out, std::string_view text)
{
    check(tare_put(out, text.data(), int64_t(text.size())), "the text cannot be written");
}

/* Write and read saved state, number by number. */
inline void put(const tare_stream &out, const void *data, int64_t size)
{
    check(out.write(out.ctx, data, size), "the state cannot be written");
}
template <class T> void put(const tare_stream &out, const T &value)
{
    static_assert(std::is_trivially_copyable<T>::value, "only plain data can be saved byte by byte");
    put(out, &value, int64_t(sizeof value));
}
inline void get(const tare_stream &in, void *data, int64_t size)
{
    check(in.read(in.ctx, data, size), "the state is cut short");
}
template <class T> T get(const tare_stream &in)
{
    static_assert(std::is_trivially_copyable<T>::value, "only plain data can be loaded byte by byte");
    T value;
    get(in, &value, int64_t(sizeof value));
    return value;
}

/* The data of a wanted column, of a batch, tokens or a data set; T is the want's type:
 *     const float *entropy = tare::column<float>(batch, W_ENTROPY);
 * Null for an optional column that is absent. */
template <class T, class From> const T *column(const From &from, int want)
{
    return static_cast<const T *>(from.column[want].data);
}

/* ---------------------------------------------------------------- outputs */

/* Gives the verdict: code and reward, the answer that was found, and the reason for people. */
inline void judge(tare_verdict &out, int32_t code, double reward, std::string_view extracted = {}, std::string_view note = {})
{
    out.code = code;
    out.reward = reward;
    if (!extracted.empty()) say(out.extracted, extracted);
    if (!note.empty()) say(out.note, note);
}

/* Appends a segment to the verdict of a verifier with TARE_VERIFIER_GIVES_SEGMENTS. Returns false if
 * the host does not want segments or the buffer is full. */
inline bool add_segment(tare_verdict &out, int64_t end, double reward)
{
    return tare_add_segment(&out, end, reward) != 0;
}

/* Adds a message of the environment to an observation. */
inline void message(tare_observation &out, int32_t role, std::string_view text, const tare_call *call = nullptr)
{
    tare_message m{};
    m.struct_size = sizeof m;
    m.role = role;
    if (call) {
        m.call_id = call->id;
        m.name = call->name;
    }
    m.text = tare::text(text);
    check(out.say(out.ctx, &m), "the message cannot be added");
}

/* ---------------------------------------------------------------- bases */

class plugin_base
{
  public:
    virtual ~plugin_base() = default;
    virtual void save(const tare_stream &) const {}
    virtual void load(const tare_stream &) {}
    virtual void describe(const tare_stream &) const {}
    virtual void identity(const tare_stream &) const {}
};

class estimator_base : public plugin_base
{
  public:
    virtual void sizes(tare_sizes &) const {}
    virtual void prepare(const tare_batch &, int64_t, double *) const {}
    virtual void compute(const tare_batch &batch, const double *prepared, tare_advantages &out) const = 0;
    virtual void collect(const tare_batch &, int64_t, double *) const {}
    virtual void record(const tare_batch &, int64_t, double *) const {}
    virtual void apply(const tare_update &) {}
};

class objective_base : public plugin_base
{
  public:
    virtual void sizes(tare_sizes &) const {}
    virtual void annotate(const tare_tokens &, double *) const {}
    virtual void compute(const tare_tokens &tokens, tare_token_loss &out) const = 0;
    virtual void collect(const tare_tokens &, const tare_token_loss &, double *) const {}
    virtual void apply(const tare_update &) {}
};

class curriculum_base : public plugin_base
{
  public:
    virtual void next(const tare_draw &, tare_choice &) const {}
    virtual void keep(const tare_batch &, tare_kept &) const {}
    virtual void apply(const tare_batch &) {}
};

/* verify takes one completion. A verifier with the flag TARE_VERIFIER_TOGETHER has verify_all
 * instead, which takes n. */
class verifier_base : public plugin_base
{
  public:
    virtual void verify(const tare_completion &, tare_verdict &) {}
    virtual void verify_all(const tare_completion *const *, tare_verdict *const *, int64_t) {}
    virtual void explain(const tare_completion &, const tare_stream &) {}
    virtual void submit(const tare_completion &, int64_t) {}
    virtual void poll(const tare_waiting &) {}
    virtual void take(int64_t, tare_verdict &) {}
    virtual void cancel(int64_t) {}
};

class encoder_base : public plugin_base
{
  public:
    virtual void sizes(tare_sizes &out) const = 0;
    virtual void encode(const tare_text *texts, int64_t n, float *out) = 0;
    virtual void fit(const tare_text *, int64_t) {}
};

class codebook_base : public plugin_base
{
  public:
    virtual void sizes(tare_sizes &out) const = 0;
    virtual void assign(const tare_prompts &prompts, tare_assignment &out) const = 0;
    virtual void fit(const tare_prompts &) {}
    virtual void encoder_identity(const tare_stream &) const {}
    virtual void encoder_state(const tare_stream &) const {}
    virtual void cluster_name(int64_t, const tare_stream &) const {}
};

/* An environment has a type `session`, with a constructor without arguments, that holds what one
 * episode needs. step takes one turn. */
template <class Session> class environment_base : public plugin_base
{
  public:
    using session = Session;
    virtual void reset(session &s, const tare_episode &episode, tare_observation &out) = 0;
    virtual void step(session &s, const tare_act &act, tare_observation &out) = 0;
    virtual void save_session(const session &, const tare_stream &) {}
    virtual void load_session(session &, const tare_stream &) {}
    virtual void suggest(const session &, const uint64_t *, const tare_stream &) {}
};

namespace detail
{

/* ---------------------------------------------------------------- members of a class */

template <class T> inline constexpr bool is_base = false;
template <> inline constexpr bool is_base<plugin_base> = true;
template <> inline constexpr bool is_base<estimator_base> = true;
template <> inline constexpr bool is_base<objective_base> = true;
template <> inline constexpr bool is_base<curriculum_base> = true;
template <> inline constexpr bool is_base<verifier_base> = true;
template <> inline constexpr bool is_base<encoder_base> = true;
template <> inline constexpr bool is_base<codebook_base> = true;
template <class Session> inline constexpr bool is_base<environment_base<Session>> = true;

/* The class that a member belongs to: the base where a plugin did not write its own. */
template <class M> struct owner {
    using type = void; /* a static function */
};
template <class F, class C> struct owner<F C::*> {
    using type = C;
};

/* has_NAME<T>: true if the plugin has the function. A member of that name that cannot be called,
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
    template <class T, class = void> struct find_##NAME : std::false_type {                                                        \
        static_assert(std::disjunction<std::is_final<T>, std::negation<named_##NAME<T>>>::value,                                   \
                      #NAME " of this plugin cannot be called: make it public, and the only function of that name");               \
    };                                                                                                                             \
    template <class T>                                                                                                             \
    struct find_##NAME<T, std::void_t<decltype(&T::NAME)>>                                                                         \
        : std::bool_constant<!is_base<typename owner<decltype(&T::NAME)>::type>> {                                                 \
    };                                                                                                                             \
    template <class T> inline constexpr bool has_##NAME = find_##NAME<T>::value;
TARE_HAS_MEMBER(save)
TARE_HAS_MEMBER(load)
TARE_HAS_MEMBER(describe)
TARE_HAS_MEMBER(identity)
TARE_HAS_MEMBER(select)
TARE_HAS_MEMBER(sizes)
TARE_HAS_MEMBER(prepare)
TARE_HAS_MEMBER(annotate)
TARE_HAS_MEMBER(collect)
TARE_HAS_MEMBER(record)
TARE_HAS_MEMBER(apply)
TARE_HAS_MEMBER(next)
TARE_HAS_MEMBER(keep)
TARE_HAS_MEMBER(uses)
TARE_HAS_MEMBER(verify)
TARE_HAS_MEMBER(verify_all)
TARE_HAS_MEMBER(explain)
TARE_HAS_MEMBER(submit)
TARE_HAS_MEMBER(poll)
TARE_HAS_MEMBER(take)
TARE_HAS_MEMBER(cancel)
TARE_HAS_MEMBER(fit)
TARE_HAS_MEMBER(encoder_identity)
TARE_HAS_MEMBER(encoder_state)
TARE_HAS_MEMBER(cluster_name)
TARE_HAS_MEMBER(card)
TARE_HAS_MEMBER(save_session)
TARE_HAS_MEMBER(load_session)
TARE_HAS_MEMBER(suggest)
#undef TARE_HAS_MEMBER

/* NAME_of<T>: the class's constant, or the default. */
#define TARE_CLASS_CONSTANT(NAME, DEFAULT)                                                                                         \
    template <class T, class = void> inline constexpr uint32_t NAME##_of = DEFAULT;                                                \
    template <class T> inline constexpr uint32_t NAME##_of<T, std::void_t<decltype(T::NAME)>> = T::NAME;
TARE_CLASS_CONSTANT(flags, 0)
TARE_CLASS_CONSTANT(calls, TARE_CALLS_SERIAL)
TARE_CLASS_CONSTANT(state_version, has_save<T>)
TARE_CLASS_CONSTANT(state_oldest, has_save<T>)
TARE_CLASS_CONSTANT(minor_needed, 0)
#undef TARE_CLASS_CONSTANT

/* ---------------------------------------------------------------- tables */

template <class T> T &of(void *self)
{
    return *static_cast<T *>(self);
}
template <class T> const T &of(const void *self)
{
    return *static_cast<const T *>(self);
}

/* Fills the head of a table. */
template <class T, class Table> constexpr void fill_head(Table &t)
{
    static_assert(std::is_constructible<T, const tare_setup &>::value,
                  "a plugin needs a public constructor that takes const tare_setup &");
    static_assert(has_save<T> == has_load<T>, "save and load require each other: define both, or check the spelling");
    t.struct_size = sizeof t;
    t.flags = flags_of<T>;
    t.create = [](const tare_setup *setup, void **self, tare_error *e) noexcept {
        return guard(e, [&] { *self = new T(*setup); });
    };
    t.destroy = [](void *self) noexcept { guard(nullptr, [&] { delete static_cast<T *>(self); }); };
    if constexpr (has_save<T>) {
        t.save = [](const void *self, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).save(*out); });
        };
        t.load = [](void *self, const tare_stream *in, tare_error *e) noexcept { return guard(e, [&] { of<T>(self).load(*in); }); };
    }
    if constexpr (has_describe<T>)
        t.describe = [](const void *self, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).describe(*out); });
        };
    if constexpr (has_identity<T>)
        t.identity = [](const void *self, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).identity(*out); });
        };
    if constexpr (has_select<T>)
        t.select = [](const tare_value *values, uint8_t *wanted, tare_error *e) noexcept {
            return guard(e, [&] { T::select(values, wanted); });
        };
}

template <class T, class Table> constexpr void fill_sizes(Table &t)
{
    if constexpr (has_sizes<T>)
        t.sizes = [](const void *self, tare_sizes *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).sizes(*out); });
        };
}

/* After an exception all bits are set, which the host refuses. */
template <class T, class Table> constexpr void fill_uses(Table &t)
{
    if constexpr (has_uses<T>)
        t.uses = [](const tare_value *values) noexcept {
            uint32_t bits = ~0u;
            guard(nullptr, [&] { bits = T::uses(values); });
            return bits;
        };
}

template <class T, class Table> constexpr void fill_update(Table &t)
{
    if constexpr (has_apply<T>)
        t.apply = [](void *self, const tare_update *update, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).apply(*update); });
        };
}

template <class T> constexpr tare_estimator estimator_table()
{
    static_assert(has_sizes<T> == (has_prepare<T> || has_collect<T> || has_record<T>),
                  "sizes and at least one of prepare, collect and record require each other: define both, or check the spelling");
    static_assert(has_apply<T> || !(has_collect<T> || has_record<T>),
                  "collect and record require apply: define it, or check the spelling");
    tare_estimator t{};
    fill_head<T>(t);
    fill_sizes<T>(t);
    fill_update<T>(t);
    t.compute = [](const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                   tare_error *e) noexcept { return guard(e, [&] { of<T>(self).compute(*batch, prepared, *out); }); };
    if constexpr (has_prepare<T>)
        t.prepare = [](const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).prepare(*batch, group, sum); });
        };
    if constexpr (has_collect<T>)
        t.collect = [](const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).collect(*batch, group, sum); });
        };
    if constexpr (has_record<T>)
        t.record = [](const void *self, const tare_batch *batch, int64_t group, double *record, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).record(*batch, group, record); });
        };
    return t;
}

template <class T> constexpr tare_objective objective_table()
{
    static_assert(has_sizes<T> == (has_annotate<T> || has_collect<T>),
                  "sizes and at least one of annotate and collect require each other: define both, or check the spelling");
    static_assert(has_apply<T> || !has_collect<T>, "collect requires apply: define it, or check the spelling");
    tare_objective t{};
    fill_head<T>(t);
    fill_sizes<T>(t);
    fill_update<T>(t);
    t.compute = [](const void *self, const tare_tokens *tokens, tare_token_loss *out, tare_error *e) noexcept {
        return guard(e, [&] { of<T>(self).compute(*tokens, *out); });
    };
    if constexpr (has_annotate<T>)
        t.annotate = [](const void *self, const tare_tokens *minibatch, double *annotated, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).annotate(*minibatch, annotated); });
        };
    if constexpr (has_collect<T>)
        t.collect = [](const void *self, const tare_tokens *tokens, const tare_token_loss *loss, double *sum,
                       tare_error *e) noexcept { return guard(e, [&] { of<T>(self).collect(*tokens, *loss, sum); }); };
    return t;
}

template <class T> constexpr tare_curriculum curriculum_table()
{
    static_assert(!has_apply<T> || has_save<T>, "apply requires save and load: define all three, or check the spelling");
    tare_curriculum t{};
    fill_head<T>(t);
    if constexpr (has_next<T>)
        t.next = [](const void *self, const tare_draw *draw, tare_choice *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).next(*draw, *out); });
        };
    if constexpr (has_keep<T>)
        t.keep = [](const void *self, const tare_batch *groups, tare_kept *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).keep(*groups, *out); });
        };
    if constexpr (has_apply<T>)
        t.apply = [](void *self, const tare_batch *groups, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).apply(*groups); });
        };
    return t;
}

template <class T> constexpr void fill_tickets(tare_verifier &t)
{
    t.submit = [](void *self, const tare_completion *completion, int64_t ticket, tare_error *e) noexcept {
        return guard(e, [&] { of<T>(self).submit(*completion, ticket); });
    };
    t.poll = [](void *self, const tare_waiting *waiting, tare_error *e) noexcept {
        return guard(e, [&] { of<T>(self).poll(*waiting); });
    };
    t.take = [](void *self, int64_t ticket, tare_verdict *out, tare_error *e) noexcept {
        return guard(e, [&] { of<T>(self).take(ticket, *out); });
    };
    t.cancel = [](void *self, int64_t ticket) noexcept { guard(nullptr, [&] { of<T>(self).cancel(ticket); }); };
}

template <class T> constexpr tare_verifier verifier_table()
{
    constexpr bool together = (flags_of<T> & TARE_VERIFIER_TOGETHER) != 0;
    static_assert(together ? has_verify_all<T> : has_verify<T>,
                  "a verifier needs verify, or verify_all with the flag TARE_VERIFIER_TOGETHER: define it, or check the spelling");
    static_assert(has_submit<T> == has_poll<T> && has_submit<T> == has_take<T> && has_submit<T> == has_cancel<T>,
                  "submit, poll, take and cancel require each other: define all four, or check the spelling");
    tare_verifier t{};
    fill_head<T>(t);
    fill_uses<T>(t);
    t.verify = [](void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                  tare_error *e) noexcept {
        return guard(e, [&] {
            if constexpr (together)
                of<T>(self).verify_all(completion, out, n);
            else
                for (int64_t i = 0; i < n; i++) of<T>(self).verify(*completion[i], *out[i]);
        });
    };
    if constexpr (has_explain<T>)
        t.explain = [](void *self, const tare_completion *completion, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).explain(*completion, *out); });
        };
    if constexpr (has_submit<T>) fill_tickets<T>(t);
    return t;
}

template <class T> constexpr tare_encoder encoder_table()
{
    static_assert(!has_fit<T> || has_save<T>, "fit requires save and load: define all three, or check the spelling");
    tare_encoder t{};
    fill_head<T>(t);
    fill_sizes<T>(t);
    t.encode = [](void *self, const tare_text *texts, int64_t n, float *out, tare_error *e) noexcept {
        return guard(e, [&] { of<T>(self).encode(texts, n, out); });
    };
    if constexpr (has_fit<T>)
        t.fit = [](void *self, const tare_text *texts, int64_t n, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).fit(texts, n); });
        };
    return t;
}

template <class T> constexpr tare_codebook codebook_table()
{
    static_assert(!has_fit<T> || has_save<T>, "fit requires save and load: define all three, or check the spelling");
    tare_codebook t{};
    fill_head<T>(t);
    fill_sizes<T>(t);
    t.assign = [](const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *e) noexcept {
        return guard(e, [&] { of<T>(self).assign(*prompts, *out); });
    };
    if constexpr (has_fit<T>)
        t.fit = [](void *self, const tare_prompts *prompts, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).fit(*prompts); });
        };
    if constexpr (has_encoder_identity<T>)
        t.encoder_identity = [](const void *self, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).encoder_identity(*out); });
        };
    if constexpr (has_encoder_state<T>)
        t.encoder_state = [](const void *self, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).encoder_state(*out); });
        };
    if constexpr (has_cluster_name<T>)
        t.cluster_name = [](const void *self, int64_t k, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).cluster_name(k, *out); });
        };
    return t;
}

template <class T> constexpr tare_environment environment_table()
{
    using session = typename T::session;
    static_assert(has_save_session<T> == has_load_session<T>,
                  "save_session and load_session require each other: define both, or check the spelling");
    tare_environment t{};
    fill_head<T>(t);
    fill_uses<T>(t);
    if constexpr (has_card<T>)
        t.card = [](const tare_value *values, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { T::card(values, *out); });
        };
    t.open = [](void *, void **s, tare_error *e) noexcept { return guard(e, [&] { *s = new session(); }); };
    t.close = [](void *, void *s) noexcept { guard(nullptr, [&] { delete static_cast<session *>(s); }); };
    t.reset = [](void *self, void *s, const tare_episode *episode, tare_observation *out, tare_error *e) noexcept {
        return guard(e, [&] { of<T>(self).reset(of<session>(s), *episode, *out); });
    };
    t.step = [](void *self, void *const *s, const tare_act *const *act, tare_observation *const *out, int64_t n,
                tare_error *e) noexcept {
        return guard(e, [&] {
            for (int64_t i = 0; i < n; i++) of<T>(self).step(of<session>(s[i]), *act[i], *out[i]);
        });
    };
    if constexpr (has_save_session<T>) {
        t.save_session = [](void *self, const void *s, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).save_session(of<session>(s), *out); });
        };
        t.load_session = [](void *self, void *s, const tare_stream *in, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).load_session(of<session>(s), *in); });
        };
    }
    if constexpr (has_suggest<T>)
        t.suggest = [](void *self, const void *s, const uint64_t *draw, const tare_stream *out, tare_error *e) noexcept {
            return guard(e, [&] { of<T>(self).suggest(of<session>(s), draw, *out); });
        };
    return t;
}

} // namespace detail

/* ---------------------------------------------------------------- parameters and descriptors */

/* Rows of a parameter table; the macros of sdk.h need C. fallback: the default, a text as in an INI
 * file. min, max: TARE_NO_MIN, TARE_NO_MAX for no bound. flags: further TARE_PARAM_... bits. */
constexpr tare_param param(int32_t type, const char *key, const char *fallback, const char *doc, uint32_t flags,
                           const char *const *choices = nullptr)
{
    tare_param p{};
    p.key = key;
    p.fallback = fallback;
    p.doc = doc;
    p.type = type;
    p.flags = flags;
    p.choices = choices;
    return p;
}
constexpr tare_param number_param(int32_t type, const char *key, const char *fallback, const char *doc, double min, double max,
                                  uint32_t flags)
{
    tare_param p = param(type, key, fallback, doc, flags);
    if (min > TARE_NO_MIN) {
        p.min = min;
        p.flags |= TARE_PARAM_MIN;
    }
    if (max < TARE_NO_MAX) {
        p.max = max;
        p.flags |= TARE_PARAM_MAX;
    }
    return p;
}
constexpr tare_param float_param(const char *key, const char *fallback, const char *doc, double min, double max, uint32_t flags = 0)
{
    return number_param(TARE_PARAM_FLOAT, key, fallback, doc, min, max, flags);
}
constexpr tare_param int_param(const char *key, const char *fallback, const char *doc, double min, double max, uint32_t flags = 0)
{
    return number_param(TARE_PARAM_INT, key, fallback, doc, min, max, flags);
}
constexpr tare_param bool_param(const char *key, const char *fallback, const char *doc, uint32_t flags = 0)
{
    return param(TARE_PARAM_BOOL, key, fallback, doc, flags);
}
constexpr tare_param string_param(const char *key, const char *fallback, const char *doc, uint32_t flags = 0)
{
    return param(TARE_PARAM_STRING, key, fallback, doc, flags);
}
constexpr tare_param path_param(const char *key, const char *fallback, const char *doc, uint32_t flags = 0)
{
    return param(TARE_PARAM_PATH, key, fallback, doc, flags);
}
constexpr tare_param choice_param(const char *key, const char *fallback, const char *doc, const char *const *choices,
                                  uint32_t flags = 0)
{
    return param(TARE_PARAM_CHOICE, key, fallback, doc, flags, choices);
}

/* The descriptor's own texts; see tare_descriptor. */
struct about {
    const char *name, *version, *summary, *license;
    const char *const *pairs = nullptr; /* tare_descriptor.about */
};

/* A static table of parameters or wants; {} is an empty one. */
template <class Row> struct rows {
    const Row *data = nullptr;
    size_t n = 0;
    constexpr rows() = default;
    template <size_t N> constexpr rows(const Row (&table)[N]) : data(table), n(N) {}
};

template <class T>
constexpr tare_descriptor descriptor(int32_t kind, const about &a, rows<tare_param> params, rows<tare_want> wants,
                                     const void *functions)
{
    tare_descriptor d{};
    d.struct_size = sizeof d;
    d.kind = kind;
    d.name = a.name;
    d.version = a.version;
    d.summary = a.summary;
    d.license = a.license;
    d.about = a.pairs;
    d.params = params.data;
    d.wants = wants.data;
    d.n_params = uint32_t(params.n);
    d.param_size = sizeof(tare_param);
    d.n_wants = uint32_t(wants.n);
    d.want_size = sizeof(tare_want);
    d.calls = detail::calls_of<T>;
    d.minor_needed = detail::minor_needed_of<T>;
    d.state_version = detail::state_version_of<T>;
    d.state_oldest = detail::state_oldest_of<T>;
    d.functions = functions;
    return d;
}

/* tare::estimator<T>(about, params, wants), and so on for each kind. */
#define TARE_KIND(NAME, KIND)                                                                                                      \
    namespace detail                                                                                                               \
    {                                                                                                                              \
    template <class T> inline constexpr tare_##NAME NAME##_functions = NAME##_table<T>();                                          \
    }                                                                                                                              \
    template <class T> constexpr tare_descriptor NAME(const about &a, rows<tare_param> params = {}, rows<tare_want> wants = {})    \
    {                                                                                                                              \
        return descriptor<T>(KIND, a, params, wants, &detail::NAME##_functions<T>);                                                \
    }
TARE_KIND(estimator, TARE_KIND_ESTIMATOR)
TARE_KIND(verifier, TARE_KIND_VERIFIER)
TARE_KIND(encoder, TARE_KIND_ENCODER)
TARE_KIND(codebook, TARE_KIND_CODEBOOK)
TARE_KIND(objective, TARE_KIND_OBJECTIVE)
TARE_KIND(curriculum, TARE_KIND_CURRICULUM)
TARE_KIND(environment, TARE_KIND_ENVIRONMENT)
#undef TARE_KIND

} // namespace tare

/* ---------------------------------------------------------------- the entry point */

/* The macro of sdk.h without what C++17 lacks. */
#undef TARE_PLUGIN_ENTRY
#define TARE_PLUGIN_ENTRY(...)                                                                                                     \
    const tare_plugin *tare_plugin_v1(const tare_host *, tare_error *)                                                             \
    {                                                                                                                              \
        static constexpr const tare_descriptor *descriptors[] = {__VA_ARGS__};                                                     \
        static constexpr tare_plugin plugin = {                                                                                    \
            sizeof(tare_plugin),                                                                                                   \
            0,                                                                                                                     \
            TARE_ABI_MINOR,                                                                                                        \
            sizeof descriptors / sizeof *descriptors,                                                                              \
            descriptors,                                                                                                           \
            "tare-sdk " TARE_TEXT_OF(TARE_ABI_MAJOR) "." TARE_TEXT_OF(TARE_ABI_MINOR) ".0, "                                       \
                                                                                      "c++, " TARE_COMPILER};                      \
        return &plugin;                                                                                                            \
    }

#endif
