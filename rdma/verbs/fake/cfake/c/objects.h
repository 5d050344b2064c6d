/* What a process holds of the library: each begins with what callers look at. */
#ifndef FAKEVERBS_OBJECTS_H
#define FAKEVERBS_OBJECTS_H
#include <errno.h>
#include "fabric.h"

enum { RESET, INIT, RTR, RTS, ERR = 6 };

struct context {
	struct fv_context head;
	struct port *port;
	struct mr *mrs[MAX_MR];
	uint32_t keys;
	int children;
};

struct pd {
	struct context *context;
	int slot, children, poisoned;
	uint32_t steps; /* orders registrations and steps to RTR */
};

struct mr {
	struct fv_mr_head head;
	struct pd *pd;
	int slot;
	uint32_t since;
};

struct cq {
	struct fv_cq_head head;
	struct context *context;
	int slot, depth, overrun, count, first;
	atomic_flag busy; /* guards qps and count, between polling and making or destroying queue pairs */
	struct qp *qps[MAX_QP];
};

struct qp {
	struct fv_qp_head head;
	struct queue_pair *shared;
	struct pd *pd;
	struct context *context;
	struct port *port, *other;
	struct queue_pair *peer; /* found when first needed */
	struct cq *send_cq, *recv_cq;
	struct fv_qp_cap cap;
	int signal_all;
	uint32_t since;
};

/* How calls that make something fail. */
static inline void *none(int error)
{
	errno = error;
	return NULL;
}

#pragma GCC visibility push(hidden)
int fv_poll_cq(struct cq *c, int n, struct fv_wc *out);
int fv_post_send(struct qp *q, struct fv_send_wr *wr, struct fv_send_wr **bad);
int fv_post_recv(struct qp *q, struct fv_recv_wr *wr, struct fv_recv_wr **bad);
#pragma GCC visibility pop

static inline void lock(atomic_flag *f)
{
	while (atomic_flag_test_and_set_explicit(f, memory_order_acquire))
		;
}
static inline void unlock(atomic_flag *f) { atomic_flag_clear_explicit(f, memory_order_release); }
#endif
