/* Print the table of a sweep for a paper: a tabular with the rules of booktabs. */
#include "lab/report/page.h"

#include <ctype.h>
#include <string.h>

static tare_status add_escaped(const char *text, struct str *out, struct err *e)
{
    for (; *text; text++) {
        const char *as = NULL;
        if (*text == '\\') as = "\\textbackslash{}";
        if (*text == '~') as = "\\textasciitilde{}";
        if (*text == '^') as = "\\textasciicircum{}";
        if (as)
            TRY(str_add(out, as, -1, e));
        else
            TRY(str_addf(out, e, "%s%c", strchr("_%&#${}", *text) ? "\\" : "", *text));
    }
    return TARE_OK;
}

static bool is_number(const char *text)
{
    return isdigit((unsigned char)text[*text == '-' || *text == '+']);
}

/* Print numbers in math mode for their signs: "-0.1 to 0.2" becomes $-0.1$ to $0.2$. */
static tare_status add_latex_cell(const char *text, struct str *out, struct err *e)
{
    const char *to = strstr(text, " to ");
    TRY(str_add(out, " & ", -1, e));
    if (!is_number(text) || strstr(text, " of ")) return add_escaped(text, out, e);
    if (!to) return str_addf(out, e, "$%s$", text);
    return str_addf(out, e, "$%.*s$ to $%s$", (int)(to - text), text, to + 4);
}

tare_status sweep_table_latex(const struct sweep_table *t, struct str *out, struct err *e)
{
    const bool compared = t->baseline[0] != 0;
    TRY(str_addf(out, e, "%% %s: %s. \\usepackage{booktabs}\n", t->plan->name, t->metric));
    TRY(sweep_table_note(t, "% ", out, e));
    TRY(str_add(out, "\\begingroup\\footnotesize\\setlength{\\tabcolsep}{2pt}%\n", -1,
                e)); /* small enough for a page of one column */
    TRY(str_addf(out, e, "\\begin{tabular}{lrrrr%s}\n\\toprule\nvariant & seeds & mean & s.d. & 95\\,\\%% interval",
                 compared ? "rrrrr" : ""));
    if (compared) TRY(str_add(out, " & difference & 95\\,\\% interval & pairs & $p$ & $p$ (Holm)", -1, e));
    TRY(str_add(out, " \\\\\n\\midrule\n", -1, e));
    for (int64_t i = 0; i < t->n_rows; i++) {
        char cells[SWEEP_CELLS][SWEEP_CELL];
        const int n = sweep_table_cells(t, i, cells);
        TRY(add_escaped(t->rows[i].label, out, e));
        for (int k = 0; k < n; k++) TRY(add_latex_cell(cells[k], out, e));
        TRY(str_add(out, " \\\\\n", -1, e));
    }
    return str_add(out, "\\bottomrule\n\\end{tabular}%\n\\endgroup\n", -1, e);
}
