/* `tare data show`: the prompts of a configuration's rows, as the model reads them. */
#ifndef TARE_CLI_DATA_SHOW_H
#define TARE_CLI_DATA_SHOW_H

#include "base/err.h"

/* CONFIG [rows=N] [set=train|eval] [section.key=value ...]. TARE_E_INVALID without a message: they are not of this form. */
tare_status data_show(int argc, char **argv, struct err *e);

#endif
