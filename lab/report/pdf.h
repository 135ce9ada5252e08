/* A figure as a PDF of one page, with letters and lines, not pixels. Internal to lab/report. */
#ifndef TARE_LAB_REPORT_PDF_H
#define TARE_LAB_REPORT_PDF_H

#include "lab/report/svg.h"

/* svg: as export.c writes it; colours [SVG_COLOURS]: "#rrggbb". Nothing of the fonts is in the file: they are among the 14 that every reader has. */
tare_status pdf_print(const char *svg, const char *const *colours, struct str *out, struct err *e);

#endif
