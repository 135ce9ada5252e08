/* Parts of the HTML page. Internal to lab/report. */
#ifndef TARE_LAB_REPORT_PAGE_H
#define TARE_LAB_REPORT_PAGE_H

#include "lab/report/report.h"
#include "lab/report/svg.h"

enum { GROUPS_MOST = 24, PLANS_MOST = 16 };

struct curves { /* drawn as one line: a run, or all seeds of a sweep's row */
    const char *label;
    const struct run_data **runs; /* [n] */
    int64_t n;
    int64_t fork; /* last step copied from the run that this one is a fork of; 0: none */
};

struct page {
    struct arena arena;
    struct curves groups[GROUPS_MOST];
    int64_t n_groups, left_out; /* left_out: groups beyond GROUPS_MOST */
    struct sweep_plan plans[PLANS_MOST];
    struct sweep_table tables[PLANS_MOST];
    int64_t n_plans;
    const char *title;
};

/* Reads the runs and sweeps in the paths; page_close frees the page. */
tare_status page_open(const char *const *paths, int64_t n, struct page **out, struct err *e);
void page_close(struct page *p);
void page_close_at(struct page **p);
tare_status page_print(struct page *p, struct str *out, struct err *e);

/* ---- curves.c */
struct chart_spec {
    const char *metric, *title, *note;
    bool share, zero, may_log;
};
/* Makes the line of a group's mean at each step, with a band of one standard deviation (no band for
 * a single run). *n = 0 if no run has the metric. */
tare_status curves_line(struct page *p, const struct curves *g, const char *metric, struct svg_line *out, struct err *e);
/* Prints one chart with a line for each group. */
tare_status curves_chart(struct page *p, const struct chart_spec *spec, struct str *out, struct err *e);
/* Prints colours and labels of the groups; nothing for one group. */
tare_status curves_key(const struct page *p, struct str *out, struct err *e);
/* Evaluation by subject, verdicts, time by stage: charts for one group, tables for several. */
tare_status curves_subjects(struct page *p, struct str *out, struct err *e);
/* One chart for each component of the reward, reward/NAME; nothing for a single component. */
tare_status curves_components(struct page *p, struct str *out, struct err *e);
/* True for the metric of a component: reward/NAME that is not one of the reward's own. */
bool curves_is_component(const char *metric);
tare_status curves_verdicts(struct page *p, struct str *out, struct err *e);
tare_status curves_stages(struct page *p, struct str *out, struct err *e);
/* The history of each cluster: cluster/NAME/... */
tare_status curves_clusters(struct page *p, struct str *out, struct err *e);

/* ---- rollouts.c */
/* Prints sample completions, and baseline and scale against the group's own, from RUN/rollouts. */
tare_status rollouts_section(struct page *p, const char *run_dir, struct str *out, struct err *e);
/* ---- evaluations.c */
/* Prints the results of `tare eval` in RUN/eval, with difficulty buckets by checkpoint. */
tare_status page_evals_section(struct page *p, const struct run_data *run, struct str *out, struct err *e);
/* ---- sweep.c */
/* Prints the table and the heat maps of a sweep. */
tare_status sweep_section(struct page *p, const struct sweep_table *t, struct str *out, struct err *e);

/* ---- studies.c */
/* Prints several sweeps side by side and together; nothing for a single one. */
tare_status studies_section(struct page *p, struct str *out, struct err *e);

/* ---- style.c */
extern const char REPORT_STYLE[], REPORT_SCRIPT[], REPORT_SCRIPT_SHA256[], REPORT_STYLE_SHA256[];
/* A page's beginning, with its title as heading, and its end. */
tare_status page_head(const char *title, struct str *out, struct err *e);
tare_status page_foot(struct str *out, struct err *e);

#endif
