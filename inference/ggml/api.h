// The part of ggml's C API that Daisy uses, declared by ourselves: the linked
// source comes without headers that cgo could include. header_test.go compiles
// this file together with the real headers, so a drift fails there: prototypes
// must be compatible, and the constants and structs below must agree.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Constants as X(name, value).
#define DAISY_GGML_TYPES(X)                                                    \
  X(GGML_TYPE_F32, 0)                                                          \
  X(GGML_TYPE_F16, 1)                                                          \
  X(GGML_TYPE_Q4_0, 2)                                                         \
  X(GGML_TYPE_Q8_0, 8)                                                         \
  X(GGML_TYPE_I32, 26)                                                         \
  X(GGML_TYPE_I64, 27)
#define DAISY_GGML_STATUS(X)                                                   \
  X(GGML_STATUS_ALLOC_FAILED, -2)                                              \
  X(GGML_STATUS_FAILED, -1)                                                    \
  X(GGML_STATUS_SUCCESS, 0)                                                    \
  X(GGML_STATUS_ABORTED, 1)
#define DAISY_GGML_DEVICES(X)                                                  \
  X(GGML_BACKEND_DEVICE_TYPE_CPU, 0)                                           \
  X(GGML_BACKEND_DEVICE_TYPE_GPU, 1)
#define DAISY_GGML_USAGE(X)                                                    \
  X(GGML_BACKEND_BUFFER_USAGE_ANY, 0)                                          \
  X(GGML_BACKEND_BUFFER_USAGE_WEIGHTS, 1)                                      \
  X(GGML_BACKEND_BUFFER_USAGE_COMPUTE, 2)

// Structs that cross the boundary by value or are filled by ggml.
#define DAISY_GGML_INIT_PARAMS(name)                                           \
  struct name {                                                                \
    size_t mem_size;                                                           \
    void *mem_buffer;                                                          \
    bool no_alloc;                                                             \
  }
#define DAISY_GGML_THREADPOOL_PARAMS(name)                                     \
  struct name {                                                                \
    bool cpumask[512];                                                         \
    int n_threads;                                                             \
    int prio;                                                                  \
    uint32_t poll;                                                             \
    bool strict_cpu;                                                           \
    bool paused;                                                               \
  }

#ifndef DAISY_GGML_CHECK
#define DAISY_ENUMERATOR(name, value) name = value,
enum ggml_type { DAISY_GGML_TYPES(DAISY_ENUMERATOR) };
enum ggml_status { DAISY_GGML_STATUS(DAISY_ENUMERATOR) };
enum ggml_backend_dev_type { DAISY_GGML_DEVICES(DAISY_ENUMERATOR) };
enum ggml_backend_buffer_usage { DAISY_GGML_USAGE(DAISY_ENUMERATOR) };
DAISY_GGML_INIT_PARAMS(ggml_init_params);
DAISY_GGML_THREADPOOL_PARAMS(ggml_threadpool_params);
#endif

struct ggml_context;
struct ggml_tensor;
struct ggml_cgraph;
struct ggml_threadpool;
struct ggml_gallocr;
struct ggml_backend;
struct ggml_backend_buffer;
struct ggml_backend_buffer_type;
struct ggml_backend_device;
struct ggml_backend_reg;

#define CTX struct ggml_context *
#define TENSOR struct ggml_tensor *
#define CONST_TENSOR const struct ggml_tensor *

// Contexts, tensors, graphs.
CTX ggml_init(struct ggml_init_params params);
void ggml_free(CTX ctx);
size_t ggml_tensor_overhead(void);
size_t ggml_graph_overhead_custom(size_t size, bool grads);
TENSOR ggml_new_tensor(CTX ctx, enum ggml_type type, int n_dims, const int64_t *ne);
void *ggml_get_data(CONST_TENSOR tensor);
size_t ggml_nbytes(CONST_TENSOR tensor);
size_t ggml_row_size(enum ggml_type type, int64_t ne);
int64_t ggml_blck_size(enum ggml_type type);
size_t ggml_quantize_chunk(enum ggml_type type, const float *src, void *dst, int64_t start, int64_t nrows,
                           int64_t n_per_row, const float *imatrix);
struct ggml_cgraph *ggml_new_graph_custom(CTX ctx, size_t size, bool grads);
void ggml_build_forward_expand(struct ggml_cgraph *graph, TENSOR tensor);
const char *ggml_op_desc(CONST_TENSOR tensor);
int ggml_graph_n_nodes(struct ggml_cgraph *graph);
TENSOR ggml_graph_node(struct ggml_cgraph *graph, int i);

// Operations.
TENSOR ggml_add(CTX ctx, TENSOR a, TENSOR b);
TENSOR ggml_mul(CTX ctx, TENSOR a, TENSOR b);
TENSOR ggml_scale(CTX ctx, TENSOR a, float s);
TENSOR ggml_mul_mat(CTX ctx, TENSOR a, TENSOR b);
TENSOR ggml_rms_norm(CTX ctx, TENSOR a, float eps);
TENSOR ggml_swiglu_split(CTX ctx, TENSOR a, TENSOR b);
TENSOR ggml_swiglu_oai(CTX ctx, TENSOR a, TENSOR b, float alpha, float limit);
TENSOR ggml_mul_mat_id(CTX ctx, TENSOR as, TENSOR b, TENSOR ids);
TENSOR ggml_add_id(CTX ctx, TENSOR a, TENSOR b, TENSOR ids);
TENSOR ggml_soft_max(CTX ctx, TENSOR a);
TENSOR ggml_sigmoid(CTX ctx, TENSOR a);
TENSOR ggml_argsort_top_k(CTX ctx, TENSOR a, int k);
TENSOR ggml_sum_rows(CTX ctx, TENSOR a);
TENSOR ggml_div(CTX ctx, TENSOR a, TENSOR b);
TENSOR ggml_clamp(CTX ctx, TENSOR a, float min, float max);
TENSOR ggml_fill(CTX ctx, TENSOR a, float c);
TENSOR ggml_cont_2d(CTX ctx, TENSOR a, int64_t ne0, int64_t ne1);
TENSOR ggml_repeat_4d(CTX ctx, TENSOR a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);
TENSOR ggml_reshape_4d(CTX ctx, TENSOR a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);
TENSOR ggml_geglu_split(CTX ctx, TENSOR a, TENSOR b);
TENSOR ggml_tanh(CTX ctx, TENSOR a);
TENSOR ggml_get_rows(CTX ctx, TENSOR a, TENSOR b);
TENSOR ggml_set_rows(CTX ctx, TENSOR a, TENSOR b, TENSOR c);
TENSOR ggml_concat(CTX ctx, TENSOR a, TENSOR b, int dim);
TENSOR ggml_permute(CTX ctx, TENSOR a, int axis0, int axis1, int axis2, int axis3);
TENSOR ggml_reshape_2d(CTX ctx, TENSOR a, int64_t ne0, int64_t ne1);
TENSOR ggml_reshape_3d(CTX ctx, TENSOR a, int64_t ne0, int64_t ne1, int64_t ne2);
TENSOR ggml_view_1d(CTX ctx, TENSOR a, int64_t ne0, size_t offset);
TENSOR ggml_view_2d(CTX ctx, TENSOR a, int64_t ne0, int64_t ne1, size_t nb1, size_t offset);
TENSOR ggml_view_3d(CTX ctx, TENSOR a, int64_t ne0, int64_t ne1, int64_t ne2, size_t nb1, size_t nb2,
                    size_t offset);
TENSOR ggml_view_4d(CTX ctx, TENSOR a, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, size_t nb1, size_t nb2,
                    size_t nb3, size_t offset);
TENSOR ggml_rope_ext(CTX ctx, TENSOR a, TENSOR b, TENSOR c, int n_dims, int mode, int n_ctx_orig, float freq_base,
                     float freq_scale, float ext_factor, float attn_factor, float beta_fast, float beta_slow);
TENSOR ggml_flash_attn_ext(CTX ctx, TENSOR q, TENSOR k, TENSOR v, TENSOR mask, float scale, float max_bias,
                           float logit_softcap);
void ggml_flash_attn_ext_add_sinks(TENSOR a, TENSOR sinks);
typedef void (*ggml_custom_op_t)(TENSOR dst, int ith, int nth, void *userdata);
TENSOR ggml_custom_4d(CTX ctx, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, TENSOR *args,
                      int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata);
void ggml_cpu_fp16_to_fp32(const uint16_t *x, float *y, int64_t n);

// Backends, buffers, allocation.
struct ggml_backend *ggml_backend_cpu_init(void);
struct ggml_backend *ggml_backend_init_by_type(enum ggml_backend_dev_type type, const char *params);
void ggml_backend_free(struct ggml_backend *backend);
const char *ggml_backend_name(struct ggml_backend *backend);
enum ggml_status ggml_backend_graph_compute(struct ggml_backend *backend, struct ggml_cgraph *graph);
void ggml_backend_cpu_set_n_threads(struct ggml_backend *backend, int n_threads);
void ggml_backend_cpu_set_threadpool(struct ggml_backend *backend, struct ggml_threadpool *pool);
void ggml_threadpool_params_init(struct ggml_threadpool_params *p, int n_threads);
struct ggml_threadpool *ggml_threadpool_new(struct ggml_threadpool_params *p);
void ggml_threadpool_free(struct ggml_threadpool *pool);
const char *ggml_status_to_string(enum ggml_status status);

struct ggml_backend_device *ggml_backend_get_device(struct ggml_backend *backend);
struct ggml_backend_reg *ggml_backend_dev_backend_reg(struct ggml_backend_device *device);
void *ggml_backend_reg_get_proc_address(struct ggml_backend_reg *reg, const char *name);
bool ggml_backend_dev_supports_op(struct ggml_backend_device *device, CONST_TENSOR op);

struct ggml_backend_buffer_type *ggml_backend_get_default_buffer_type(struct ggml_backend *backend);
const char *ggml_backend_buft_name(struct ggml_backend_buffer_type *type);
size_t ggml_backend_buft_get_alignment(struct ggml_backend_buffer_type *type);
size_t ggml_backend_buft_get_alloc_size(struct ggml_backend_buffer_type *type, CONST_TENSOR tensor);
bool ggml_backend_buft_is_host(struct ggml_backend_buffer_type *type);
struct ggml_backend_buffer *ggml_backend_buft_alloc_buffer(struct ggml_backend_buffer_type *type, size_t size);
struct ggml_backend_buffer *ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size);
void ggml_backend_buffer_free(struct ggml_backend_buffer *buffer);
void *ggml_backend_buffer_get_base(struct ggml_backend_buffer *buffer);
void ggml_backend_buffer_clear(struct ggml_backend_buffer *buffer, uint8_t value);
void ggml_backend_buffer_set_usage(struct ggml_backend_buffer *buffer, enum ggml_backend_buffer_usage usage);
enum ggml_status ggml_backend_tensor_alloc(struct ggml_backend_buffer *buffer, TENSOR tensor, void *addr);
void ggml_backend_tensor_set(TENSOR tensor, const void *data, size_t offset, size_t size);
void ggml_backend_tensor_get(CONST_TENSOR tensor, void *data, size_t offset, size_t size);

struct ggml_gallocr *ggml_gallocr_new(struct ggml_backend_buffer_type *type);
void ggml_gallocr_free(struct ggml_gallocr *alloc);
bool ggml_gallocr_reserve(struct ggml_gallocr *alloc, struct ggml_cgraph *graph);
bool ggml_gallocr_alloc_graph(struct ggml_gallocr *alloc, struct ggml_cgraph *graph);
size_t ggml_gallocr_get_buffer_size(struct ggml_gallocr *alloc, int buffer_id);

#undef CTX
#undef TENSOR
#undef CONST_TENSOR
