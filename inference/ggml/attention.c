#include "attention.h"
#include "api.h"

#include <string.h>

// A tile is ROWS rows by KEYS positions. A row is one query of one head; it is one
// lane of a vector, so that sums, maxima and exponentials go over whole rows at
// once. LANES floats fill one vector register.
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define ROWS (2 * LANES)
#define KEYS 64
#define STEP 8 // positions, or value elements, computed together: 2 * STEP registers

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4)));

#define HIDDEN -1e30f // score of a position that a row does not see
#define NOTHING -1e20f // largest score before any was seen

static inline vec splat(float x) { return x - (vec){0}; }
static inline ints splat_int(int32_t x) { return x - (ints){0}; }
static inline vec select(ints which, vec a, vec b) { return (vec)(((ints)a & which) | ((ints)b & ~which)); }

// exponential computes e^x for x <= 0, and 0 below -87: 2^n times a polynomial for
// e^r with |r| <= ln 2 / 2, as in Cephes' expf (relative error about 1e-7).
static inline vec exponential(vec x) {
  const vec magic = splat(12582912.0f); // 1.5 * 2^23: adding it rounds to integers
  vec n = (x * 1.44269504088896341f + magic) - magic;
  vec r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  vec p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  ints power = (__builtin_convertvector(n, ints) + 127) << 23;
  return select(x < -87.0f, splat(0), p * (vec)power);
}

// work is what one thread needs for a tile: transposed queries and results, rows in
// lanes, and a tile of keys and values as floats.
struct work {
  vec q[DAISY_MAX_HEAD][2], out[DAISY_MAX_HEAD][2], scores[KEYS][2];
  float keys[KEYS][DAISY_MAX_HEAD];
};

// visible finds the one range of positions that a row of a mask shows.
static void visible(const uint16_t *mask, int n, int32_t *lo, int32_t *hi) {
  int a = 0, b = n;
  while (a < n && mask[a] != 0) a++;
  while (b > a && mask[b - 1] != 0) b--;
  *lo = a;
  *hi = b;
}

static void load(float (*to)[DAISY_MAX_HEAD], const char *from, size_t stride, int n, int width) {
  for (int j = 0; j < n; j++) ggml_cpu_fp16_to_fp32((const uint16_t *)(from + j * stride), to[j], width);
  for (int j = n; j < KEYS; j++) memset(to[j], 0, sizeof(float) * width);
}

// multiply_keys computes scores = keys x queries.
static void multiply_keys(struct work *w, int width) {
  for (int j = 0; j < KEYS; j += STEP) {
    vec sum[STEP][2] = {{{0}}};
    for (int i = 0; i < width; i++) {
      vec a = w->q[i][0], b = w->q[i][1];
      for (int s = 0; s < STEP; s++) {
        float k = w->keys[j + s][i];
        sum[s][0] += a * k;
        sum[s][1] += b * k;
      }
    }
    for (int s = 0; s < STEP; s++) {
      w->scores[j + s][0] = sum[s][0];
      w->scores[j + s][1] = sum[s][1];
    }
  }
}

// add_values adds the values, weighted with the scores, to out * keep.
static void add_values(struct work *w, int width, const vec keep[2]) {
  for (int i = 0; i < width; i += STEP) {
    vec sum[STEP][2];
    for (int s = 0; s < STEP; s++) {
      sum[s][0] = w->out[i + s][0] * keep[0];
      sum[s][1] = w->out[i + s][1] * keep[1];
    }
    for (int j = 0; j < KEYS; j++) {
      vec a = w->scores[j][0], b = w->scores[j][1];
      for (int s = 0; s < STEP; s++) {
        float v = w->keys[j][i + s];
        sum[s][0] += a * v;
        sum[s][1] += b * v;
      }
    }
    for (int s = 0; s < STEP; s++) {
      w->out[i + s][0] = sum[s][0];
      w->out[i + s][1] = sum[s][1];
    }
  }
}

// weigh turns the scores of positions from first on into weights e^(score - most),
// updates the largest score and the sum of weights of each row, and returns in keep
// what earlier results must be multiplied with.
static void weigh(struct work *w, int first, const ints lo[2], const ints hi[2], int masked, vec most[2], vec sum[2],
                  vec keep[2]) {
  for (int h = 0; h < 2; h++) {
    vec top = most[h];
    for (int j = 0; j < KEYS; j++) {
      vec s = w->scores[j][h];
      if (masked) {
        ints at = splat_int(first + j);
        s = select((at >= lo[h]) & (at < hi[h]), s, splat(HIDDEN));
        w->scores[j][h] = s;
      }
      top = select(s > top, s, top);
    }
    keep[h] = exponential(most[h] - top);
    most[h] = top;
    vec total = sum[h] * keep[h];
    for (int j = 0; j < KEYS; j++) {
      vec e = exponential(w->scores[j][h] - top);
      w->scores[j][h] = e;
      total += e;
    }
    sum[h] = total;
  }
}

// tile computes rows from..from+ROWS-1 of one KV head: a row is a query and, as
// the faster index, a head that shares the KV head.
static void tile(const struct daisy_attention *a, struct work *w, char *dst, int batch, int kv_head, int from) {
  const int group = a->heads / a->kv_heads, rows = a->tokens * group - from;
  const char *q = (const char *)ggml_get_data(a->q) + batch * a->q_batch;
  const char *k = (const char *)ggml_get_data(a->k) + kv_head * a->k_head + batch * a->k_batch;
  const char *v = (const char *)ggml_get_data(a->v) + kv_head * a->v_head + batch * a->v_batch;
  const char *mask = (const char *)ggml_get_data(a->mask) + batch * a->mask_batch;
  int32_t lo[ROWS] = {0}, hi[ROWS] = {0}, first = a->positions, last = 0, all_lo = 0, all_hi = a->positions;

  memset(w->q, 0, sizeof(w->q));
  for (int r = 0; r < ROWS && r < rows; r++) {
    const int token = (from + r) / group, head = kv_head * group + (from + r) % group;
    const float *x = (const float *)(q + token * a->q_token + head * a->q_head);
    for (int i = 0; i < a->width; i++) ((float *)w->q[i])[r] = x[i] * a->scale;
    if (r > 0 && (from + r) % group != 0) {
      lo[r] = lo[r - 1], hi[r] = hi[r - 1];
    } else {
      visible((const uint16_t *)(mask + token * a->mask_token), a->positions, &lo[r], &hi[r]);
    }
    if (lo[r] < first) first = lo[r];
    if (hi[r] > last) last = hi[r];
    if (lo[r] > all_lo) all_lo = lo[r];
    if (hi[r] < all_hi) all_hi = hi[r];
  }
  ints los[2], his[2];
  memcpy(los, lo, sizeof(los));
  memcpy(his, hi, sizeof(his));
  vec most[2] = {splat(NOTHING), splat(NOTHING)}, sum[2] = {{0}}, keep[2];
  memset(w->out, 0, sizeof(w->out));
  for (int j = first / KEYS * KEYS; j < last; j += KEYS) {
    const int n = a->positions - j < KEYS ? a->positions - j : KEYS;
    load(w->keys, k + j * a->k_position, a->k_position, n, a->width);
    multiply_keys(w, a->width);
    weigh(w, j, los, his, j < all_lo || j + KEYS > all_hi, most, sum, keep);
    load(w->keys, v + j * a->v_position, a->v_position, n, a->value_width);
    add_values(w, a->value_width, keep);
  }
  for (int r = 0; r < ROWS && r < rows; r++) {
    const int token = (from + r) / group, head = kv_head * group + (from + r) % group;
    const float total = ((float *)sum)[r];
    float *x = (float *)dst + (((size_t)batch * a->tokens + token) * a->heads + head) * a->value_width;
    for (int i = 0; i < a->value_width; i++) x[i] = ((float *)w->out[i])[r] / total;
  }
}

void daisy_attention(struct ggml_tensor *dst, int ith, int nth, void *userdata) {
  const struct daisy_attention *a = userdata;
  struct work w;
  const int rows = a->tokens * (a->heads / a->kv_heads), tiles = (rows + ROWS - 1) / ROWS;
  for (int t = ith; t < tiles * a->kv_heads * a->batches; t += nth) {
    tile(a, &w, ggml_get_data(dst), t / (tiles * a->kv_heads), t / tiles % a->kv_heads, t % tiles * ROWS);
  }
}
