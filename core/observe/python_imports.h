/* Finds the Python files that a Python file imports from its folder, by reading import statements.
 *
 * Every statement counts, wherever it is (in a function, in a branch that is never taken, in a
 * string), so that the result depends on the files alone. Not found are imports by importlib or
 * through sys.path, compiled modules, and files read as data. */
#ifndef TARE_CORE_OBSERVE_PYTHON_IMPORTS_H
#define TARE_CORE_OBSERVE_PYTHON_IMPORTS_H

#include "base/json.h"

/* Appends `name` to the array `names`, then each file in `folder` that it imports, directly or
 * through other files, once: "rewards.py", "helpers.py", "package/__init__.py". A file that cannot
 * be read imports nothing. */
tare_status python_imports(const char *folder, const char *name, json_t *names, struct err *e);

#endif
