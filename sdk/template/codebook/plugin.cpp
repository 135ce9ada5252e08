/* @NAME@: a row's cluster is a hash of its text, modulo K.
 *
 * Replace this with your assignment. A codebook of embeddings gives their width as dim; one of
 * rows leaves it 0. The cluster of a row may not depend on the other rows in the call. A codebook
 * that learns the values that occur adds fit, save and load (see tare/codebook.h). */
#include <tare/sdk.hpp>

namespace
{

enum { P_CLUSTERS, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    tare::int_param("clusters", "8", "number of clusters K", 1, 1000000, TARE_PARAM_LOCKED_ON_RESUME),
};

class codebook : public tare::codebook_base
{
  public:
    static constexpr uint32_t calls = TARE_CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    explicit codebook(const tare_setup &setup) : clusters_(setup.values[P_CLUSTERS].i) {}

    void sizes(tare_sizes &out) const override
    {
        out.clusters = clusters_; // dim stays 0: rows, not embeddings
    }

    void assign(const tare_prompts &prompts, tare_assignment &out) const override
    {
        if (prompts.n && !prompts.row) throw tare::error(TARE_E_INVALID, "the rows are missing");
        for (int64_t i = 0; i < prompts.n; i++) {
            uint64_t hash = 14695981039346656037u; // FNV-1a
            for (const char c : tare::view(prompts.row[i])) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
            out.cluster[i] = int32_t(hash % uint64_t(clusters_));
        }
    }

  private:
    int64_t clusters_;
};

constexpr tare_descriptor DESCRIPTOR =
    tare::codebook<codebook>({"@NAME@", "0.1.0", "a hash of the row, modulo K", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
