/* Finds processes started by a program that left its process group (setsid), even if their parent
 * has ended, by an environment variable inherited from the program. A process started with a
 * cleared environment is not found. */
#ifndef TARE_VERIFIERS_LEFT_H
#define TARE_VERIFIERS_LEFT_H

/* Kills every process with the entry `mark` (NAME=VALUE) in its environment, including processes
 * that they start meanwhile. */
void left_end(const char *mark);

#endif
