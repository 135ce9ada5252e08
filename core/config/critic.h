/* PPO with a critic, asked for in other trainers' words. There is none here, and the refusal says what takes its place. */
#ifndef TARE_CORE_CONFIG_CRITIC_H
#define TARE_CORE_CONFIG_CRITIC_H

#include <stdbool.h>

/* Whether "section.key" sets something of a critic, or of the advantages that are made with one (GAE). section may be empty. */
bool critic_has_key(const char *section, const char *key);
/* Whether an estimator of that name takes a critic's values. */
bool critic_has_estimator(const char *name);
/* What is said of such a key or estimator, after its name. */
extern const char CRITIC_MISSING[];

#endif
