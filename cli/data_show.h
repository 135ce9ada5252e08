/* `tare data show`: prints the prompts of a configuration's rows, as the model reads them. */
#ifndef TARE_CLI_DATA_SHOW_H
#define TARE_CLI_DATA_SHOW_H

#include "base/err.h"

/* argv: CONFIG [rows=N] [set=train|eval] [section.key=value ...]. TARE_E_INVALID without a message:
 * invalid arguments. */
tare_status data_show(int argc, char **argv, struct err *e);

#endif
