// Compiled by header_test.go against the headers of the ggml that is linked.
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"
#define DAISY_GGML_CHECK
#include "api.h"

#define SAME(name, value) _Static_assert((int)name == value, #name);
DAISY_GGML_TYPES(SAME)
DAISY_GGML_STATUS(SAME)
DAISY_GGML_DEVICES(SAME)
DAISY_GGML_USAGE(SAME)

DAISY_GGML_INIT_PARAMS(our_init_params);
DAISY_GGML_THREADPOOL_PARAMS(our_threadpool_params);
#define FIELD(s, f)                                                            \
  _Static_assert(offsetof(struct our_##s, f) == offsetof(struct ggml_##s, f), #s "." #f); \
  _Static_assert(sizeof(((struct our_##s *)0)->f) == sizeof(((struct ggml_##s *)0)->f), #s "." #f " size");
_Static_assert(sizeof(struct our_init_params) == sizeof(struct ggml_init_params), "init_params");
FIELD(init_params, mem_size)
FIELD(init_params, mem_buffer)
FIELD(init_params, no_alloc)
_Static_assert(sizeof(struct our_threadpool_params) == sizeof(struct ggml_threadpool_params), "threadpool_params");
FIELD(threadpool_params, cpumask)
FIELD(threadpool_params, n_threads)
FIELD(threadpool_params, prio)
FIELD(threadpool_params, poll)
FIELD(threadpool_params, strict_cpu)
FIELD(threadpool_params, paused)
