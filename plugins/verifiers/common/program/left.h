/* Processes that a program has started and that left its process group (setsid), also where their parent has ended: known by an entry of the
 * environment that they have from the program. One that was started with an environment of its own is not found. */
#ifndef TARE_VERIFIERS_LEFT_H
#define TARE_VERIFIERS_LEFT_H

/* Kills every process with the entry `mark` (NAME=VALUE) in its environment, those that these start meanwhile too. */
void left_end(const char *mark);

#endif
