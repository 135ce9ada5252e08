/* @NAME@: counts of bytes, hashed into D buckets, scaled to length one.
 *
 *   e[d] = #{bytes b of the text: b mod D = d},   E(q) = e / |e|    zero for the empty text
 *
 * Replace this with your encoder. A text's embedding may not depend on the other texts in the
 * call. An encoder that learns from a corpus adds fit, save and load; one whose weights come from
 * a file adds identity (see tare/encoder.h). */
#include <cmath>
#include <tare/sdk.hpp>

namespace
{

enum { P_DIM, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    tare::int_param("dim", "32", "number of buckets D", 1, 4096),
};

class encoder : public tare::encoder_base
{
  public:
    static constexpr uint32_t calls = TARE_CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    explicit encoder(const tare_setup &setup) : dim_(setup.values[P_DIM].i) {}

    void sizes(tare_sizes &out) const override { out.dim = dim_; }

    void encode(const tare_text *texts, int64_t n, float *out) override
    {
        for (int64_t i = 0; i < n; i++) {
            float *e = out + i * dim_;
            double square = 0;
            for (int64_t d = 0; d < dim_; d++) e[d] = 0;
            for (const char c : tare::view(texts[i])) e[static_cast<unsigned char>(c) % dim_] += 1;
            for (int64_t d = 0; d < dim_; d++) square += double(e[d]) * double(e[d]);
            for (int64_t d = 0; d < dim_ && square > 0; d++) e[d] = float(double(e[d]) / std::sqrt(square));
        }
    }

  private:
    int64_t dim_;
};

constexpr tare_descriptor DESCRIPTOR =
    tare::encoder<encoder>({"@NAME@", "0.1.0", "counts of bytes in buckets", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
