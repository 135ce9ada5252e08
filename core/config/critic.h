/* Refuses PPO with a critic, under the names that other trainers use, and says what replaces it. */
#ifndef TARE_CORE_CONFIG_CRITIC_H
#define TARE_CORE_CONFIG_CRITIC_H

#include <stdbool.h>

/* Returns true if "section.key" configures a critic or advantages based on one (GAE). section may
 * be empty. */
bool critic_has_key(const char *section, const char *key);
/* Returns true if an estimator of that name uses a critic's values. */
bool critic_has_estimator(const char *name);
/* The message for such a key or estimator, to follow its name. */
extern const char CRITIC_MISSING[];

#endif
