#include "common/words/anchors.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ISO 639 codes */
enum language {
    EN,
    DE,
    FR,
    ES,
    PT,
    IT,
    NL,
    PL,
    CS,
    HU,
    RO,
    SV,
    FI,
    TR,
    ID,
    VI,
    TL,
    SW,
    CA,
    HR,
    RU,
    UK,
    BG,
    SR,
    EL,
    AR,
    FA,
    UR,
    HE,
    HI,
    BN,
    TA,
    TE,
    MR,
    TH,
    ZH,
    JA,
    KO
};

/* One row per language and kind; words are separated by |. Words are in lower case. */
static const struct {
    enum language language;
    enum anchor_kind kind;
    const char *words;
} TABLE[] = {
    {EN, ANCHOR_NOUN, "answer|ans|answers"},
    {EN, ANCHOR_OPTION, "option|choice|alternative|letter"},
    {EN, ANCHOR_LINK, "is|was|equals|should be|must be|has to be|would be|will be|comes out to|comes to"},
    {EN, ANCHOR_DENIAL, "not|never|wrong|incorrect|false|isn't|cannot|can't|neither|none"},
    {EN, ANCHOR_PICK, "pick|choose|select|chose|picked|selected"},
    {EN, ANCHOR_RIGHT, "correct|right"},
    {EN, ANCHOR_SO, "so|thus|hence|therefore"},
    {DE, ANCHOR_NOUN, "antwort|lösung|ergebnis|endergebnis|endantwort|resultat"},
    {DE, ANCHOR_OPTION, "option|möglichkeit|antwortmöglichkeit|buchstabe|variante"},
    {DE, ANCHOR_LINK, "ist|lautet|wäre|beträgt|heißt|sind"},
    {DE, ANCHOR_DENIAL, "nicht|kein|keine|falsch|falsche|weder"},
    {DE, ANCHOR_MAYBE, "vielleicht|möglicherweise|eventuell|könnte|könnten|weiß nicht|nicht sicher"},
    {DE, ANCHOR_BOUND, "mehr als|weniger als|mindestens|höchstens|über|unter|fast|zwischen"},
    {DE, ANCHOR_OR, "und|oder"},
    {DE, ANCHOR_PICK, "wähle|nehme|wählen"},
    {DE, ANCHOR_RIGHT, "richtig|korrekt|richtige|korrekte"},
    {DE, ANCHOR_SO, "also|daher|somit|folglich|deshalb"},
    {FR, ANCHOR_NOUN, "réponse|reponse|résultat|la solution|solution finale"},
    {FR, ANCHOR_OPTION, "option|choix|lettre|proposition"},
    {FR, ANCHOR_LINK, "est|était|serait|vaut|donc"},
    {FR, ANCHOR_DENIAL, "pas|jamais|faux|fausse|incorrecte|incorrect|aucune|n'est"},
    {FR, ANCHOR_MAYBE, "peut-être|pourrait|possiblement|ne sais pas|pas sûr"},
    {FR, ANCHOR_BOUND, "plus de|moins de|au moins|au plus|entre|presque"},
    {FR, ANCHOR_OR, "et|ou"},
    {FR, ANCHOR_PICK, "choisis|choisirais|sélectionne"},
    {FR, ANCHOR_RIGHT, "correct|correcte|bonne|juste|exacte"},
    {FR, ANCHOR_SO, "donc|alors|ainsi"},
    {ES, ANCHOR_NOUN, "respuesta|resultado|solución|solucion|rpta|resp"},
    {ES, ANCHOR_OPTION, "opción|opcion|alternativa|letra|inciso|literal"},
    {ES, ANCHOR_LINK, "es|sería|seria|son|debe ser"},
    {ES, ANCHOR_DENIAL, "no|nunca|incorrecta|incorrecto|falsa|falso|ninguna"},
    {ES, ANCHOR_MAYBE, "quizás|quizá|podría|posiblemente|tal vez|no sé|no estoy seguro"},
    {ES, ANCHOR_BOUND, "más de|mas de|menos de|al menos|como máximo|como mínimo|entre|casi"},
    {ES, ANCHOR_OR, "y|o|u"},
    {ES, ANCHOR_PICK, "elijo|escojo|selecciono|elegiría"},
    {ES, ANCHOR_RIGHT, "correcta|correcto"},
    {ES, ANCHOR_SO, "luego|entonces|por lo tanto|por tanto|así que"},
    {PT, ANCHOR_NOUN, "resposta|resultado|solução|gabarito"},
    {PT, ANCHOR_OPTION, "opção|opçao|alternativa|letra"},
    {PT, ANCHOR_LINK, "é|seria|são|deve ser"},
    {PT, ANCHOR_DENIAL, "não|nunca|incorreta|errada|errado|nenhuma"},
    {PT, ANCHOR_MAYBE, "talvez|poderia|possivelmente"},
    {PT, ANCHOR_BOUND, "mais de|menos de|pelo menos|no máximo|entre|quase"},
    {PT, ANCHOR_OR, "e|ou"},
    {PT, ANCHOR_PICK, "escolho|seleciono"},
    {PT, ANCHOR_RIGHT, "correta|correto|certa"},
    {PT, ANCHOR_SO, "portanto|logo|então|assim"},
    {IT, ANCHOR_NOUN, "risposta|soluzione|risultato"},
    {IT, ANCHOR_OPTION, "opzione|lettera|alternativa|scelta"},
    {IT, ANCHOR_LINK, "è|e'|sarebbe|sono"},
    {IT, ANCHOR_DENIAL, "non|mai|sbagliata|errata|falsa|nessuna"},
    {IT, ANCHOR_MAYBE, "forse|potrebbe|possibilmente"},
    {IT, ANCHOR_BOUND, "più di|meno di|almeno|al massimo|tra|quasi"},
    {IT, ANCHOR_OR, "e|o"},
    {IT, ANCHOR_PICK, "scelgo|sceglierei"},
    {IT, ANCHOR_RIGHT, "corretta|corretto|giusta|esatta"},
    {IT, ANCHOR_SO, "quindi|dunque|pertanto|perciò"},
    {NL, ANCHOR_NOUN, "antwoord|oplossing|eindantwoord|uitkomst"},
    {NL, ANCHOR_OPTION, "optie|keuze|letter"},
    {NL, ANCHOR_LINK, "is|luidt|zou"},
    {NL, ANCHOR_DENIAL, "niet|geen|nooit|fout|onjuist"},
    {NL, ANCHOR_MAYBE, "misschien|mogelijk|kan zijn"},
    {NL, ANCHOR_BOUND, "meer dan|minder dan|minstens|hoogstens|tussen"},
    {NL, ANCHOR_OR, "en|of"},
    {NL, ANCHOR_PICK, "kies"},
    {NL, ANCHOR_RIGHT, "juist|correct|juiste|correcte|goed"},
    {NL, ANCHOR_SO, "dus|daarom"},
    {PL, ANCHOR_NOUN, "odpowiedź|odpowiedzią|odpowiedz|odp|wynik|rozwiązanie"},
    {PL, ANCHOR_OPTION, "opcja|wariant|litera"},
    {PL, ANCHOR_LINK, "to|jest|brzmi|wynosi"},
    {PL, ANCHOR_DENIAL, "nie|błędna|niepoprawna|żadna"},
    {PL, ANCHOR_MAYBE, "może|możliwe"},
    {PL, ANCHOR_OR, "i|lub|albo"},
    {PL, ANCHOR_PICK, "wybieram"},
    {PL, ANCHOR_RIGHT, "poprawna|prawidłowa|poprawną"},
    {PL, ANCHOR_SO, "więc|zatem"},
    {CS, ANCHOR_NOUN, "odpověď|odpoveď|výsledek|výsledok|řešení"},
    {CS, ANCHOR_OPTION, "možnost|možnosť|varianta"},
    {CS, ANCHOR_LINK, "je"},
    {CS, ANCHOR_DENIAL, "není|nie|nikoli"},
    {CS, ANCHOR_RIGHT, "správná|správně|správna"},
    {CS, ANCHOR_SO, "tedy|proto|takže"},
    {HU, ANCHOR_NOUN, "válasz|megoldás|eredmény|végeredmény"},
    {HU, ANCHOR_DENIAL, "nem"},
    {RO, ANCHOR_NOUN, "răspuns|răspunsul|raspuns|raspunsul|rezultatul"},
    {RO, ANCHOR_OPTION, "varianta|opțiunea|opţiunea"},
    {RO, ANCHOR_LINK, "este|e"},
    {RO, ANCHOR_DENIAL, "nu"},
    {RO, ANCHOR_RIGHT, "corect|corectă"},
    {SV, ANCHOR_NOUN, "svar|svaret|lösning|resultatet"},
    {SV, ANCHOR_OPTION, "alternativ|alternativet"},
    {SV, ANCHOR_LINK, "är|er|blir|lyder"},
    {SV, ANCHOR_DENIAL, "inte|ikke|fel|feil|forkert"},
    {SV, ANCHOR_RIGHT, "rätt|riktig|rigtigt|korrekt|riktige|rigtige"},
    {FI, ANCHOR_NOUN, "vastaus|ratkaisu|tulos"},
    {FI, ANCHOR_OPTION, "vaihtoehto"},
    {FI, ANCHOR_LINK, "on"},
    {FI, ANCHOR_DENIAL, "ei|väärin"},
    {FI, ANCHOR_RIGHT, "oikea|oikein"},
    {TR, ANCHOR_NOUN, "cevap|cevabı|cevabım|yanıt|yanıtı|sonuç|cevabi"},
    {TR, ANCHOR_OPTION, "şık|şıkkı|seçenek|seçeneği"},
    {TR, ANCHOR_DENIAL, "değil|değildir|yanlış"},
    {TR, ANCHOR_RIGHT, "doğru|doğrudur"},
    {ID, ANCHOR_NOUN, "jawaban|jawapan|jawabannya|jawab|hasil|hasilnya"},
    {ID, ANCHOR_OPTION, "opsi|pilihan"},
    {ID, ANCHOR_LINK, "adalah|ialah|yaitu"},
    {ID, ANCHOR_DENIAL, "bukan|tidak|salah"},
    {ID, ANCHOR_PICK, "memilih|pilih"},
    {ID, ANCHOR_RIGHT, "benar|tepat"},
    {ID, ANCHOR_SO, "jadi|maka"},
    {VI, ANCHOR_NOUN, "đáp án|đáp số|câu trả lời|trả lời|kết quả"},
    {VI, ANCHOR_OPTION, "lựa chọn|phương án"},
    {VI, ANCHOR_LINK, "là"},
    {VI, ANCHOR_DENIAL, "không|sai"},
    {VI, ANCHOR_PICK, "chọn"},
    {VI, ANCHOR_RIGHT, "đúng"},
    {VI, ANCHOR_SO, "vậy|do đó"},
    {TL, ANCHOR_NOUN, "sagot"},
    {SW, ANCHOR_NOUN, "jibu"},
    {CA, ANCHOR_NOUN, "resposta|solució"},
    {HR, ANCHOR_NOUN, "odgovor|rješenje|rešenje|točan odgovor"},
    {HR, ANCHOR_DENIAL, "nije"},
    {RU, ANCHOR_NOUN, "ответ|ответом|решение|результат|итог"},
    {RU, ANCHOR_OPTION, "вариант|буква|опция"},
    {RU, ANCHOR_LINK, "это|является|будет|равен|равно|есть"},
    {RU, ANCHOR_DENIAL, "не|неверный|неправильный|неверно|неправильно"},
    {RU, ANCHOR_MAYBE, "возможно|может|наверное"},
    {RU, ANCHOR_BOUND, "более|менее|больше|меньше|минимум|максимум"},
    {RU, ANCHOR_OR, "и|или"},
    {RU, ANCHOR_PICK, "выбираю|выберу"},
    {RU, ANCHOR_RIGHT, "правильный|верный|правильно|верно|верен"},
    {RU, ANCHOR_SO, "значит|следовательно|поэтому|итак"},
    {UK, ANCHOR_NOUN, "відповідь|відповіддю|розв'язок"},
    {UK, ANCHOR_OPTION, "варіант"},
    {UK, ANCHOR_LINK, "це|є"},
    {UK, ANCHOR_DENIAL, "не|неправильна"},
    {BG, ANCHOR_NOUN, "отговор|отговорът|отговора"},
    {BG, ANCHOR_LINK, "е"},
    {SR, ANCHOR_NOUN, "одговор"},
    {EL, ANCHOR_NOUN, "απάντηση|απαντηση|λύση"},
    {EL, ANCHOR_OPTION, "επιλογή"},
    {EL, ANCHOR_LINK, "είναι"},
    {EL, ANCHOR_DENIAL, "δεν|λάθος"},
    {EL, ANCHOR_RIGHT, "σωστή|σωστό"},
    {AR, ANCHOR_NOUN, "الإجابة|الاجابة|إجابة|الجواب|جواب|الحل|الناتج"},
    {AR, ANCHOR_OPTION, "الخيار|الاختيار"},
    {AR, ANCHOR_LINK, "هي|هو"},
    {AR, ANCHOR_DENIAL, "ليس|ليست|خطأ|خاطئة"},
    {AR, ANCHOR_RIGHT, "الصحيحة|الصحيح|صحيح|صحيحة"},
    {FA, ANCHOR_NOUN, "پاسخ|جواب"},
    {FA, ANCHOR_OPTION, "گزینه"},
    {FA, ANCHOR_DENIAL, "نیست"},
    {UR, ANCHOR_NOUN, "جواب"},
    {HE, ANCHOR_NOUN, "תשובה|התשובה|פתרון"},
    {HE, ANCHOR_OPTION, "אפשרות"},
    {HE, ANCHOR_LINK, "היא|הוא"},
    {HE, ANCHOR_DENIAL, "לא|אינה|אינו"},
    {HI, ANCHOR_NOUN, "उत्तर|जवाब|हल"},
    {HI, ANCHOR_OPTION, "विकल्प"},
    {HI, ANCHOR_LINK, "है"},
    {HI, ANCHOR_DENIAL, "नहीं|गलत"},
    {HI, ANCHOR_RIGHT, "सही"},
    {BN, ANCHOR_NOUN, "উত্তর"},
    {BN, ANCHOR_OPTION, "বিকল্প"},
    {BN, ANCHOR_DENIAL, "নয়|ভুল"},
    {BN, ANCHOR_RIGHT, "সঠিক"},
    {TA, ANCHOR_NOUN, "பதில்|விடை"},
    {TE, ANCHOR_NOUN, "సమాధానం|జవాబు"},
    {MR, ANCHOR_NOUN, "उत्तर"},
    {TH, ANCHOR_NOUN, "คำตอบ|ตอบ|เฉลย"},
    {TH, ANCHOR_OPTION, "ตัวเลือก|ข้อ"},
    {TH, ANCHOR_LINK, "คือ|เป็น"},
    {TH, ANCHOR_DENIAL, "ไม่|ผิด"},
    {TH, ANCHOR_PICK, "เลือก"},
    {TH, ANCHOR_RIGHT, "ถูกต้อง"},
    {ZH, ANCHOR_NOUN, "答案|正确答案|最终答案|回答|答"},
    {ZH, ANCHOR_OPTION, "选项|選項"},
    {ZH, ANCHOR_LINK, "是|为|為|应为|應為|应该是|應該是|等于"},
    {ZH, ANCHOR_DENIAL,
     "不是|不为|不為|并非|並非|不等于|不选|不選|不应选|不应该选|不該選|不该选|不能选|不要选|不正确|不正確|错误|錯誤|不对"},
    {ZH, ANCHOR_MAYBE, "可能是|可能为|可能為|也许|也許|或许|或許|不确定|不確定|不太确定|不知道"},
    {ZH, ANCHOR_BOUND, "超过|超過|大于|小于|少于|多于|不到|至少|至多|最多|最少"},
    {ZH, ANCHOR_OR, "或者|或|还是|還是|以及|和|与|與"},
    {ZH, ANCHOR_PICK, "选|選|选择|選擇"},
    {ZH, ANCHOR_RIGHT, "正确|正確|对的|對的|符合"},
    {ZH, ANCHOR_SO, "所以|因此|故|综上"},
    {JA, ANCHOR_NOUN, "答え|こたえ|解答|正解|答|回答"},
    {JA, ANCHOR_OPTION, "選択肢|肢"},
    {JA, ANCHOR_LINK, "は|が|です"},
    {JA, ANCHOR_DENIAL, "ではない|ではありません|じゃない|誤り|間違い|不正解"},
    {JA, ANCHOR_MAYBE, "かもしれ|おそらく"},
    {JA, ANCHOR_OR, "または|あるいは|と"},
    {JA, ANCHOR_PICK, "選ぶ|選びます"},
    {JA, ANCHOR_RIGHT, "正しい|正解|適切"},
    {JA, ANCHOR_SO, "よって|したがって|従って|ゆえに"},
    {KO, ANCHOR_NOUN, "정답|답안|해답|답"},
    {KO, ANCHOR_OPTION, "보기|선택지|옵션"},
    {KO, ANCHOR_LINK, "은|는|이|가"},
    {KO, ANCHOR_DENIAL, "아니다|아닙니다|아니라|틀렸|오답"},
    {KO, ANCHOR_MAYBE, "아마|수도"},
    {KO, ANCHOR_OR, "또는|혹은"},
    {KO, ANCHOR_PICK, "선택"},
    {KO, ANCHOR_RIGHT, "맞습니다|맞다|정확|옳"},
    {KO, ANCHOR_SO, "따라서|그러므로"},
};

/* ---------------------------------------------------------------- characters */

/* Decodes the character at i and returns its size; an invalid byte is one character, -1. */
static int64_t decode_at(tare_text t, int64_t i, int32_t *c)
{
    const unsigned char *p = (const unsigned char *)t.data + i;
    const int n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    *c = -1;
    if (!n || n > t.size - i) return 1;
    int32_t code = n == 1 ? p[0] : p[0] & (0xFF >> (n + 1));
    for (int k = 1; k < n; k++) {
        if ((p[k] & 0xC0) != 0x80) return 1;
        code = code << 6 | (p[k] & 0x3F);
    }
    *c = code;
    return n;
}

/* Returns the first byte of the character before i. */
static int64_t before(tare_text t, int64_t i)
{
    const int64_t end = i;
    for (i--; i > 0 && end - i < 4 && ((unsigned char)t.data[i] & 0xC0) == 0x80;) i--;
    return i;
}

/* Lower case of Latin, Greek and Cyrillic letters. */
static int32_t fold(int32_t c)
{
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    if ((c >= 0xC0 && c <= 0xDE && c != 0xD7) || (c >= 0x391 && c <= 0x3A9) || (c >= 0x410 && c <= 0x42F)) return c + 32;
    if ((c >= 0x100 && c <= 0x137) || (c >= 0x14A && c <= 0x177) || (c >= 0x218 && c <= 0x21B) || (c >= 0x1EA0 && c <= 0x1EF9))
        return c | 1;
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E)) return c + (c & 1);
    if (c == 0x386) return 0x3AC;
    if (c >= 0x388 && c <= 0x38A) return c + 37;
    if (c == 0x38C) return 0x3CC;
    return c >= 0x400 && c <= 0x40F ? c + 80 : c;
}

static bool is_unspaced(int32_t c)
{
    return (c >= 0xE00 && c <= 0xE7F) || (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x9FFF) ||
           (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3FFFF);
}

/* Returns whether the character would continue a word of a script with blanks. */
static bool continues(int32_t c)
{
    if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return !(c < 0xC0 || c == 0x60C || c == 0x61B || c == 0x61F || c == 0x964 || (c >= 0x2000 && c <= 0x2BFF) ||
             (c >= 0x3000 && c <= 0x303F) || (c >= 0xFE00 && c <= 0xFE0F) || (c >= 0xFF00 && c <= 0xFFEF) || c >= 0x1F000 ||
             is_unspaced(c));
}

bool anchor_unspaced(tare_text t, int64_t i)
{
    int32_t c;
    decode_at(t, i, &c);
    return is_unspaced(c);
}

/* ---------------------------------------------------------------- look-up */

/* Returns the size of the word at i of t, if it is there; 0: it is not. */
static int64_t match(tare_text t, int64_t i, tare_text word)
{
    const int64_t begin = i;
    int32_t have = 0, want = 0;
    for (int64_t k = 0; k < word.size;) {
        if (i >= t.size) return 0;
        i += decode_at(t, i, &have);
        k += decode_at(word, k, &want);
        if (fold(have) != want) return 0;
    }
    if (is_unspaced(want)) return i - begin;
    if (i < t.size && (decode_at(t, i, &have), continues(have))) return 0;
    return i - begin;
}

/* The words of the table by their first character, built once. */
enum { MAX_ANCHORS = 1024 };
static struct entry {
    int32_t first;
    int16_t row, size;
    const char *word;
} entries[MAX_ANCHORS];
static int n_entries;

static int by_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first) : (x->word > y->word) - (x->word < y->word);
}

static void build_entries(void)
{
    for (size_t r = 0; r < sizeof TABLE / sizeof *TABLE; r++)
        for (const char *w = TABLE[r].words; *w && n_entries < MAX_ANCHORS;) {
            const size_t n = strcspn(w, "|");
            struct entry *e = &entries[n_entries++];
            *e = (struct entry){.row = (int16_t)r, .size = (int16_t)n, .word = w};
            decode_at((tare_text){w, (int64_t)n}, 0, &e->first);
            w += n + (w[n] != 0);
        }
    qsort(entries, (size_t)n_entries, sizeof *entries, by_first);
}

/* Returns the number of the first entry whose word begins with c or a later character. */
static int find_entry(int32_t c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build_entries);
    int low = 0, high = n_entries;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (entries[middle].first < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t anchor_at(tare_text t, int64_t i, enum anchor_kind kind, uint64_t *languages)
{
    int64_t longest = 0;
    uint64_t found = 0;
    int32_t first, have;
    if (i >= t.size) return 0;
    decode_at(t, i, &first);
    first = fold(first);
    if (first < 0 || (first < 0x80 && !(first >= 'a' && first <= 'z'))) return 0;
    if (i && !is_unspaced(first) && (decode_at(t, before(t, i), &have), continues(have))) return 0;
    for (int k = find_entry(first); k < n_entries && entries[k].first == first; k++) {
        const struct entry *e = &entries[k];
        const uint64_t language = UINT64_C(1) << TABLE[e->row].language;
        if (TABLE[e->row].kind != kind || !(*languages & language)) continue;
        const int64_t size = match(t, i, (tare_text){e->word, e->size});
        if (size > longest) {
            longest = size;
            found = 0;
        }
        if (size && size == longest) found |= language;
    }
    if (longest) *languages = found;
    return longest;
}

bool anchor_in(tare_text t, enum anchor_kind kind, uint64_t *languages)
{
    const uint64_t wanted = *languages;
    bool found = false;
    for (int64_t i = 0; i < t.size;) {
        uint64_t some = wanted;
        int32_t c;
        if ((unsigned char)t.data[i] < 0x80 &&
            (!continues(t.data[i]) || (i && (unsigned char)t.data[i - 1] < 0x80 && continues(t.data[i - 1])))) {
            i++; /* no word begins here */
            continue;
        }
        const int64_t n = anchor_at(t, i, kind, &some);
        if (n) {
            found = true;
            *languages = some;
        }
        i += n ? n : decode_at(t, i, &c);
    }
    return found;
}
