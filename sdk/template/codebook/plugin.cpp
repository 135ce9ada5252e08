/* @NAME@: a row's cluster is a hash of its text, modulo K.
 *
 * Replace this with your assignment. A codebook that takes embeddings returns their width from dim;
 * one that takes rows returns 0. The cluster of a row may not depend on the other rows in the call
 * (see tare/clusterer.h). */
#include <tare/sdk.hpp>

namespace
{

enum { P_CLUSTERS, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    {"clusters", "8", "K, how many clusters", nullptr, nullptr, 1, 1000000, TARE_INT, TARE_LOCKED_ON_RESUME},
};

class codebook
{
public:
    codebook(const tare_host *, const tare_value *values) : clusters_(values[P_CLUSTERS].i)
    {
    }

    int64_t size() const
    {
        return clusters_;
    }

    int64_t dim() const
    {
        return 0; // rows, not embeddings
    }

    void assign(const float *, const tare_text *rows, int64_t n, int32_t *cluster, float *distance) const
    {
        for (int64_t i = 0; i < n; i++) {
            uint64_t hash = 14695981039346656037u; // FNV-1a
            for (int64_t j = 0; j < rows[i].size; j++) hash = (hash ^ static_cast<unsigned char>(rows[i].data[j])) * 1099511628211u;
            cluster[i] = int32_t(hash % uint64_t(clusters_));
            if (distance) distance[i] = 0;
        }
    }

private:
    int64_t clusters_;
};

constexpr tare_descriptor DESCRIPTOR = tare::codebook<codebook>(
    {"@NAME@", "0.1.0", "a hash of the row, modulo K", "Apache-2.0", nullptr, 0, TARE_REENTRANT}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(DESCRIPTOR)
