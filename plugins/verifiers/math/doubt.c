/* Boxes that are reported, imagined or asked about, and answers that a later sentence takes back. */
#include "prose.h"
#include "scan.h"

#include <string.h>

enum { FAR = 320, WORDS = 64 };

static int64_t sentence_begin(tare_text t, int64_t i)
{
    const int64_t far = i > FAR ? i - FAR : 0;
    while (i > far && !(t.data[i - 1] == '\n' && (i < 2 || t.data[i - 2] == '\n')) &&
           !(text_is_space(t.data[i - 1]) && i > 1 && strchr(".?!", t.data[i - 2])))
        i--;
    return i;
}

static int64_t sentence_stop(tare_text t, int64_t i)
{
    const int64_t far = i + FAR < t.size ? i + FAR : t.size;
    while (i < far && t.data[i] != '\n' && !(strchr(".?!", t.data[i]) && (i + 1 == t.size || !(text_is_digit(t.data[i + 1]))))) i++;
    return i;
}

/* Cuts t into lower-case-able words and commas, the last WORDS of them. */
static int cut_words(tare_text t, tare_text *word)
{
    int n = 0;
    for (int64_t i = 0; i < t.size;) {
        int64_t k = i;
        while (k < t.size && (text_is_letter(t.data[k]) || (k > i && t.data[k] == '\''))) k++;
        const bool command = i > 0 && t.data[i - 1] == '\\';
        if ((k > i && !command) || strchr(",;:", t.data[i])) {
            if (n == WORDS) memmove(word, word + 1, (WORDS - 1) * sizeof *word), n--;
            word[n++] = text_slice(t, i, k > i ? k : i + 1);
        }
        i = k > i ? k : i + 1;
    }
    return n;
}

/* What a word does in a report. */
enum {
    ALONE = 1,    /* tempting */
    REJECTED = 2, /* wrong, common: in front of a result */
    RESULT = 4,   /* answer, mistake */
    MIGHT = 8,    /* might, in front of a verb of thinking */
    THINK = 16,
    PERSON = 32,
    TOLD = 64, /* wrote, after the speaker */
    SPEAKER = 128,
    CLAIMS = 256, /* claims that */
    OBJECT = 512,
    IMAGINE = 1024,
    RESUME = 2048, /* ends a report */
    THEN = 4096,   /* ends a hypothesis */
    REPLACE = 8192,
    BEGINS = 16384,    /* a word before "suppose" that leaves it an imperative */
    SAY = 32768,       /* people say */
    CONDITION = 65536, /* if, in front of UNREAL */
    UNREAL = 131072,
    SLIP = 262144 /* a report that ends at a comma: "I misread it, the answer is 5" */
};

struct entry {
    const char *word;
    unsigned kind;
};

static const struct entry *const BY_LETTER[26] = {
    ['a' - 'a'] = (const struct entry[]){{"answer", RESULT | THINK | SAY},
                                         {"answers", RESULT},
                                         {"attempt", RESULT},
                                         {"assume", IMAGINE},
                                         {"assuming", IMAGINE},
                                         {"actually", RESUME},
                                         {"actual", RESUME},
                                         {0}},
    ['b' - 'a'] = (const struct entry[]){{"be", THINK}, {"believe", THINK | SAY}, {"but", RESUME}, {0}},
    ['c' - 'a'] = (const struct entry[]){{"common", REJECTED},
                                         {"claimed", REJECTED | CLAIMS},
                                         {"classic", REJECTED},
                                         {"could", MIGHT},
                                         {"conclude", THINK},
                                         {"claim", SAY},
                                         {"claims", CLAIMS},
                                         {"correct", RESUME},
                                         {"corrected", RESUME},
                                         {0}},
    ['e' - 'a'] = (const struct entry[]){{"erroneously", ALONE},
                                         {"erroneous", REJECTED},
                                         {"earlier", REJECTED},
                                         {"estimate", RESULT},
                                         {"error", RESULT},
                                         {"expect", THINK},
                                         {0}},
    ['f' - 'a'] = (const struct entry[]){{"frequent", REJECTED}, {"former", REJECTED}, {"first", REJECTED | SPEAKER | BEGINS}, {0}},
    ['g' - 'a'] = (const struct entry[]){{"guess", RESULT | THINK}, {"guessed", TOLD}, {0}},
    ['h' - 'a'] = (const struct entry[]){{"however", RESUME}, {"hence", RESUME}, {0}},
    ['i' - 'a'] = (const struct entry[]){{"incorrectly", ALONE},
                                         {"incorrect", REJECTED},
                                         {"initial", REJECTED},
                                         {"i", SPEAKER},
                                         {"initially", SPEAKER},
                                         {"imagine", IMAGINE},
                                         {"if", CONDITION},
                                         {"instead", RESUME},
                                         {"it", OBJECT},
                                         {"its", OBJECT},
                                         {0}},
    ['m' - 'a'] = (const struct entry[]){{"mistakenly", ALONE},
                                         {"misconception", ALONE},
                                         {"mistake", RESULT},
                                         {"might", MIGHT},
                                         {"may", MIGHT},
                                         {"many", PERSON},
                                         {"misread", TOLD | SLIP},
                                         {0}},
    ['n' - 'a'] = (const struct entry[]){{"naive", ALONE}, {"naively", ALONE}, {"now", BEGINS}, {0}},
    ['o' - 'a'] = (const struct entry[]){{"old", REJECTED}, {"original", REJECTED}, {"one", PERSON}, {"originally", SPEAKER}, {0}},
    ['p' - 'a'] =
        (const struct entry[]){
            {"previous", REJECTED}, {"pitfall", RESULT}, {"people", PERSON}, {"pretend", IMAGINE}, {"please", REPLACE}, {0}},
    ['r' - 'a'] = (const struct entry[]){{"replace", REPLACE}, {"right", RESUME}, {0}},
    ['s' - 'a'] = (const struct entry[]){{"solution", RESULT},
                                         {"say", THINK | SAY},
                                         {"someone", PERSON},
                                         {"some", PERSON},
                                         {"students", PERSON},
                                         {"says", CLAIMS},
                                         {"said", CLAIMS},
                                         {"suppose", IMAGINE},
                                         {"supposing", IMAGINE},
                                         {"so", THEN},
                                         {0}},
    ['t' - 'a'] = (const struct entry[]){{"tempting", ALONE | REJECTED},
                                         {"tempted", ALONE},
                                         {"typical", REJECTED},
                                         {"trap", RESULT},
                                         {"think", THINK | SAY},
                                         {"they", PERSON},
                                         {"thought", TOLD},
                                         {"thinks", CLAIMS},
                                         {"that", OBJECT},
                                         {"the", OBJECT},
                                         {"therefore", RESUME},
                                         {"thus", RESUME},
                                         {"true", RESUME},
                                         {"then", THEN},
                                         {0}},
    ['u' - 'a'] = (const struct entry[]){{"us", BEGINS}, {0}},
    ['w' - 'a'] = (const struct entry[]){{"wrongly", ALONE},
                                         {"were", UNREAL},
                                         {"wrong", REJECTED},
                                         {"would", MIGHT},
                                         {"wrote", TOLD},
                                         {"we", SPEAKER | BEGINS},
                                         {0}},
    ['y' - 'a'] = (const struct entry[]){{"you", PERSON}, {0}},
};

static unsigned kind_of(tare_text w)
{
    const char c = text_lower(w.data[0]);
    if (strchr(",;:", c)) return THEN;
    if (c < 'a' || c > 'z' || !BY_LETTER[c - 'a']) return 0;
    for (const struct entry *e = BY_LETTER[c - 'a']; e->word; e++)
        if (text_equal(w, text_of(e->word), true)) return e->kind;
    return 0;
}

/* Returns whether the words at k report a wrong value: "a common mistake", "the naive count". before, next: the words around it. */
static bool is_report(unsigned before, unsigned word, unsigned next, bool first)
{
    if (word & ALONE || (first && word & REPLACE)) return true;
    if ((word & REJECTED && next & RESULT) || (word & TOLD && before & SPEAKER && !(next & THEN))) return true;
    if (word & MIGHT && before & PERSON && next & THINK) return true;
    return (word & PERSON && next & SAY) || (!first && word & CLAIMS && next & OBJECT);
}

bool is_reported(tare_text t, int64_t begin, int64_t end)
{
    static const char *const counts[] = {"double", "overcounts", "undercounts", "overcount", "overestimates", NULL};
    tare_text word[WORDS];
    const int64_t stop = sentence_stop(t, end);
    int n = cut_words(text_slice(t, sentence_begin(t, begin), begin), word);
    bool report = false, hypothesis = false, condition = false, slip = false;
    unsigned before = 0, next = n ? kind_of(word[0]) : 0;
    for (int k = 0; k < n; k++) {
        const unsigned kind = next;
        next = k + 1 < n ? kind_of(word[k + 1]) : 0;
        if (kind & RESUME) report = hypothesis = false;
        if (kind & THEN) hypothesis = condition = false;
        if (kind & THEN && slip) report = slip = false;
        slip |= kind & SLIP;
        condition |= kind & CONDITION;
        hypothesis |= condition && kind & UNREAL;
        report |= is_report(before, kind, next, !k);
        hypothesis |= kind & IMAGINE && (!k || before & (THEN | BEGINS));
        before = kind;
    }
    if (report || hypothesis) return true;
    if (stop < t.size && t.data[stop] == '?' && sentence_stop(t, end) - end < 4) return true;
    n = cut_words(text_slice(t, end, stop), word);
    for (int k = 0; k < n && k < 4; k++)
        if (text_one_of(word[k], counts) &&
            !(text_equal(word[k], text_of("double"), true) && !(k + 1 < n && text_starts(word[k + 1], 0, "count", true))))
            return true;
    return false;
}

/* Moves behind the marks and blanks before the next sentence. */
static int64_t next_sentence(tare_text t, int64_t i)
{
    i = sentence_stop(t, i);
    while (i < t.size && (text_is_space(t.data[i]) || strchr(".?!$*)\"}]", t.data[i]))) i++;
    return i;
}

bool is_regretted(tare_text t, int64_t i)
{
    static const char *const phrases[] = {"double counts",
                                          "double-counts",
                                          "overcounts",
                                          "double counted",
                                          "counted twice",
                                          "i made a",
                                          "i made an",
                                          "made an arithmetic",
                                          "made a mistake",
                                          "made an error",
                                          "arithmetic error",
                                          "i'm not sure",
                                          "i am not sure",
                                          "recheck",
                                          "re-check",
                                          "miscounted",
                                          "i forgot",
                                          "misread",
                                          "that can't be",
                                          "that cannot be",
                                          "it may be ",
                                          "it might be ",
                                          "double-check that again",
                                          NULL};
    for (int n = 0; n < 2 && i < t.size; n++) {
        i = next_sentence(t, i);
        const int64_t stop = sentence_stop(t, i);
        for (int64_t k = i; k < stop; k++) {
            const char c = text_lower(t.data[k]);
            if ((k > i && text_is_letter(t.data[k - 1])) || !strchr("docimart", c)) continue;
            for (const char *const *p = phrases; *p; p++)
                if (c == **p && text_starts(t, k, *p, true)) return true;
        }
    }
    return false;
}

int64_t correction_at(tare_text t, int64_t i)
{
    static const char *const openings[] = {"actually", "hmm", "however",           "correction", "corrected",    "oops", "sorry",
                                           "wait",     "no,", "on second thought", "but wait",   "but actually", NULL};
    for (int n = 0; n < 8 && i < t.size; n++) {
        i = next_sentence(t, i);
        if (i >= t.size || !strchr("ahcoswnb", text_lower(t.data[i]))) continue;
        for (const char *const *w = openings; *w && i < t.size; w++)
            if (text_lower(t.data[i]) == **w && text_starts(t, i, *w, true)) return i;
    }
    return -1;
}

bool is_restated(tare_text t, tare_text part)
{
    static const char *const verbs[] = {"is", "be", "equals", NULL};
    static const char *const nouns[] = {"it",     "that",   "this", "answer",  "value", "count",       "total", "number",
                                        "result", "should", "must", "correct", "sum",   "probability", NULL};
    tare_text word[WORDS];
    int64_t at = part.data - t.data;
    while (at > 0 && strchr("$*({ ", t.data[at - 1])) at--;
    const int n = cut_words(text_slice(t, sentence_begin(t, at), at), word);
    if (n < 2 || !text_one_of(word[n - 1], verbs)) return false;
    static const char *const unsure[] = {"if", "would", "could", "might", "may", "not", NULL};
    bool stated = false;
    for (int k = n - 2; k >= 0 && k > n - 12; k--) {
        if (text_one_of(word[k], unsure)) return false;
        stated |= text_one_of(word[k], nouns);
    }
    return stated;
}
