/* The control path of the fake verbs library: libibverbs's functions with the
 * rules of Apple's provider. Objects are plain memory of the calling process;
 * limits are counted in the fabric, for all processes together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "objects.h"

struct device { struct port *port; };
static struct device devices[MAX_DEVICES];

static void *none(int error)
{
	errno = error;
	return NULL;
}

struct device **ibv_get_device_list(int *n)
{
	struct device **list = calloc(MAX_DEVICES + 1, sizeof *list);
	int found = 0;
	if (!list)
		return NULL;
	if (attach_from_environment() == 0) {
		for (int i = 0; i < MAX_DEVICES; i++) {
			struct port *p = &fabric->ports[i];
			if (atomic_load(&p->used) == 2 && !strcmp(p->node, node_name())) {
				devices[i].port = p;
				list[found++] = &devices[i];
			}
		}
	}
	if (n)
		*n = found;
	return list;
}

void ibv_free_device_list(struct device **list) { free(list); }
const char *ibv_get_device_name(struct device *d) { return d->port->name; }

struct context *ibv_open_device(struct device *d)
{
	int e = injected(d->port, C_OPEN);
	struct context *c = e ? NULL : calloc(1, sizeof *c);
	if (!c)
		return none(e ? e : E_NOMEM);
	c->port = d->port;
	c->head.device = d;
	c->head.ops[FV_POLL_CQ] = (void *)fv_poll_cq;
	c->head.ops[FV_POST_SEND] = (void *)fv_post_send;
	c->head.ops[FV_POST_RECV] = (void *)fv_post_recv;
	return c;
}

int ibv_close_device(struct context *c)
{
	int e = injected(c->port, C_CLOSE);
	if (e)
		return e;
	if (c->children)
		return E_BUSY;
	free(c);
	return 0;
}

int ibv_query_device(struct context *c, struct fv_device_attr *a)
{
	int e = injected(c->port, C_QUERY_DEVICE);
	if (e)
		return e;
	memset(a, 0, sizeof *a);
	a->max_mr_size = 0xfa0000;
	a->max_qp = a->max_pd = a->max_cq = 11;
	a->max_qp_wr = MAX_WR;
	a->max_cqe = 4096;
	a->max_sge = 1;
	a->max_mr = MAX_MR;
	a->phys_port_cnt = 1;
	return 0;
}

static int active(struct port *p) { return atomic_load(&p->peer) != 0; }

int ibv_query_port(struct context *c, uint8_t number, struct fv_port_attr *a)
{
	int e = injected(c->port, C_QUERY_PORT);
	if (e)
		return e;
	if (number != 1)
		return E_INVAL;
	memset(a, 0, sizeof *a);
	a->state = active(c->port) ? 4 : 1;
	a->max_mtu = a->active_mtu = 5;
	a->gid_tbl_len = GID_TABLE;
	a->max_msg_sz = 0x1000000;
	a->lid = 1;
	a->pkey_tbl_len = 1;
	a->link_layer = 100;
	return 0;
}

int ibv_query_gid(struct context *c, uint8_t number, int index, struct fv_gid *gid)
{
	int e = injected(c->port, C_QUERY_GID);
	if (e || number != 1 || index < 0 || index >= GID_TABLE) {
		errno = e ? e : E_INVAL;
		return -1;
	}
	*gid = c->port->gids[index];
	return 0;
}

struct pd *ibv_alloc_pd(struct context *c)
{
	int e = injected(c->port, C_ALLOC_PD);
	if (e)
		return none(e);
	if (!active(c->port))
		return NULL; /* and nothing else tells that the port is down */
	int slot = take(c->port->pds, MAX_PD);
	if (slot < 0)
		return none(E_NOMEM);
	struct pd *p = calloc(1, sizeof *p);
	if (!p) {
		atomic_store(&c->port->pds[slot], 0);
		return none(E_NOMEM);
	}
	p->context = c;
	p->slot = slot;
	c->children++;
	return p;
}

int ibv_dealloc_pd(struct pd *p)
{
	int e = injected(p->context->port, C_DEALLOC_PD);
	if (e)
		return e;
	if (p->children)
		return E_BUSY;
	atomic_store(&p->context->port->pds[p->slot], 0);
	p->context->children--;
	free(p);
	return 0;
}

struct mr *ibv_reg_mr(struct pd *p, void *addr, size_t length, int access)
{
	struct port *port = p->context->port;
	uint64_t start = (uintptr_t)addr;
	int e = injected(port, C_REG_MR);
	if (e)
		return none(e);
	if (!length || start % (uint64_t)getpagesize() || !(access & 1))
		return none(E_INVAL);
	/* The real provider takes it, and then receives 4 GiB too low. */
	if (start >> 32 != (start + length - 1) >> 32)
		return none(E_INVAL);
	int slot = take(port->mrs, MAX_MR);
	if (slot < 0)
		return none(E_NOMEM);
	struct mr *m = calloc(1, sizeof *m);
	if (!m) {
		atomic_store(&port->mrs[slot], 0);
		return none(E_NOMEM);
	}
	m->head.context = &p->context->head;
	m->head.pd = p;
	m->head.addr = addr;
	m->head.length = length;
	m->head.lkey = (++p->context->keys << 8 | (uint32_t)slot) & 0xffffffu;
	m->pd = p;
	m->slot = slot;
	m->since = ++p->steps;
	p->context->mrs[slot] = m;
	p->children++;
	return m;
}

int ibv_dereg_mr(struct mr *m)
{
	struct pd *p = m->pd;
	int e = injected(p->context->port, C_DEREG_MR);
	if (e)
		return e;
	if (p->poisoned)
		return E_INVAL; /* a queue pair was moved to ERR: no unmap succeeds any more */
	p->context->mrs[m->slot] = NULL;
	atomic_store(&p->context->port->mrs[m->slot], 0);
	p->children--;
	free(m);
	return 0;
}

struct cq *ibv_create_cq(struct context *c, int depth, void *own, void *channel, int vector)
{
	(void)own;
	int e = injected(c->port, C_CREATE_CQ);
	if (e)
		return none(e);
	if (depth < 1 || depth > MAX_WR + 1 || channel || vector)
		return none(E_INVAL);
	int slot = take(c->port->cqs, MAX_CQ);
	if (slot < 0)
		return none(E_NOMEM);
	struct cq *q = calloc(1, sizeof *q);
	if (!q) {
		atomic_store(&c->port->cqs[slot], 0);
		return none(E_NOMEM);
	}
	q->head.context = &c->head;
	q->context = c;
	q->slot = slot;
	q->depth = depth;
	c->children++;
	return q;
}

int ibv_destroy_cq(struct cq *q)
{
	int e = injected(q->context->port, C_DESTROY_CQ);
	if (e)
		return e;
	if (q->count)
		return E_BUSY;
	atomic_store(&q->context->port->cqs[q->slot], 0);
	q->context->children--;
	free(q);
	return 0;
}

static void join_cq(struct cq *c, struct qp *q)
{
	lock(&c->busy);
	c->qps[c->count++] = q;
	unlock(&c->busy);
}

static void leave_cq(struct cq *c, struct qp *q)
{
	lock(&c->busy);
	for (int i = 0; i < c->count; i++)
		if (c->qps[i] == q) {
			c->qps[i] = c->qps[--c->count];
			break;
		}
	unlock(&c->busy);
}

/* Gives the frames that a queue pair still holds back to its port. */
static void release_frames(struct port *p, struct queue_pair *s)
{
	atomic_fetch_sub(&p->send_frames, atomic_exchange(&s->send_frames, 0));
	atomic_fetch_sub(&p->recv_frames, atomic_exchange(&s->recv_frames, 0));
}

static struct queue_pair *take_qp(struct port *p)
{
	for (int i = 0; i < MAX_QP; i++) {
		struct queue_pair *s = &p->qps[i];
		if (take(&s->owner, 1) < 0)
			continue;
		atomic_store(&s->num, 0); /* a process that is gone has left its own */
		release_frames(p, s);
		atomic_store(&s->state, 0);
		atomic_store(&s->sq_tail, 0);
		atomic_store(&s->sq_done, 0);
		atomic_store(&s->rq_tail, 0);
		atomic_store(&s->rq_done, 0);
		atomic_store(&s->writer, 0);
		s->stage_next = s->stage_first = s->dest = 0;
		return s;
	}
	return NULL;
}

struct qp *ibv_create_qp(struct pd *p, struct fv_qp_init_attr *a)
{
	struct port *port = p->context->port;
	int e = injected(port, C_CREATE_QP);
	if (e)
		return none(e);
	if (a->qp_type != 3)
		return none(E_OPNOTSUPP);
	if (!a->send_cq || !a->recv_cq || a->srq || a->cap.max_send_wr > MAX_WR || a->cap.max_recv_wr > MAX_WR ||
	    a->cap.max_send_sge > 1 || a->cap.max_recv_sge > 1 || a->cap.max_inline_data)
		return none(E_INVAL);
	struct qp *q = calloc(1, sizeof *q);
	if (!q)
		return none(E_NOMEM);
	q->shared = take_qp(port);
	if (!q->shared) {
		free(q);
		return none(E_BUSY);
	}
	q->pd = p;
	q->port = port;
	q->context = p->context;
	q->cap = a->cap;
	q->signal_all = a->sq_sig_all;
	q->send_cq = (struct cq *)a->send_cq;
	q->recv_cq = (struct cq *)a->recv_cq;
	q->head.context = &p->context->head;
	q->head.qp_num = 0x100 + atomic_fetch_add(&fabric->next_qpn, 1);
	join_cq(q->send_cq, q);
	if (q->recv_cq != q->send_cq)
		join_cq(q->recv_cq, q);
	p->children++;
	atomic_store(&q->shared->num, q->head.qp_num);
	return q;
}

int ibv_destroy_qp(struct qp *q)
{
	int e = injected(q->port, C_DESTROY_QP);
	if (e)
		return e;
	leave_cq(q->send_cq, q);
	leave_cq(q->recv_cq, q);
	atomic_store(&q->shared->num, 0);
	while (atomic_load(&q->shared->writer) == self)
		; /* a peer in this process copies into our memory: not for long */
	release_frames(q->port, q->shared);
	atomic_store(&q->shared->owner, 0);
	q->pd->children--;
	free(q);
	return 0;
}

int ibv_query_qp(struct qp *q, struct fv_qp_attr *a, int mask, struct fv_qp_init_attr *init)
{
	(void)mask;
	int e = injected(q->port, C_QUERY_QP);
	if (e)
		return e;
	memset(a, 0, sizeof *a);
	memset(init, 0, sizeof *init);
	a->qp_state = atomic_load(&q->shared->state);
	a->cap = init->cap = q->cap;
	init->qp_type = 3;
	return 0;
}

static int zero(struct fv_gid *g)
{
	static const struct fv_gid empty;
	return !memcmp(g, &empty, sizeof *g);
}

static int to_rtr(struct qp *q, struct fv_qp_attr *a)
{
	struct port *p = q->port;
	struct fv_ah_attr *ah = &a->ah_attr;
	int peer = atomic_load(&p->peer);
	if (!ah->is_global || ah->port_num != 1 || a->path_mtu < 1 || a->path_mtu > 5)
		return E_INVAL;
	if (ah->grh.sgid_index != p->gid_index || zero(&ah->grh.dgid) || !memcmp(&ah->grh.dgid, &p->gids[p->gid_index], 16))
		return E_INVAL;
	if (!peer)
		return E_TIMEDOUT;
	struct port *other = &fabric->ports[peer - 1];
	if (memcmp(&ah->grh.dgid, &other->gids[other->gid_index], 16))
		return E_TIMEDOUT;
	q->shared->dest = a->dest_qp_num;
	q->shared->rq_psn = a->rq_psn;
	atomic_store(&q->shared->cable, atomic_load(&p->cable));
	q->since = ++q->pd->steps;
	q->other = other;
	return 0;
}

static void delay(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	while (ms && nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

int ibv_modify_qp(struct qp *q, struct fv_qp_attr *a, int mask)
{
	uint32_t now = atomic_load(&q->shared->state);
	int e;
	if (!(mask & 1))
		return E_INVAL;
	switch (a->qp_state) {
	case INIT:
		if ((e = injected(q->port, C_MODIFY_INIT)) != 0)
			return e;
		if (now != RESET || mask != 0x39 || a->port_num != 1 || a->pkey_index)
			return E_INVAL;
		break;
	case RTR:
		delay(injected(q->port, C_RTR_DELAY));
		if ((e = injected(q->port, C_MODIFY_RTR)) != 0)
			return e;
		if (now != INIT || mask != 0x101181)
			return E_INVAL;
		if ((e = to_rtr(q, a)) != 0)
			return e;
		break;
	case RTS:
		if ((e = injected(q->port, C_MODIFY_RTS)) != 0)
			return e;
		if (now != RTR || mask != 0x10001)
			return E_INVAL;
		q->shared->sq_psn = a->sq_psn;
		break;
	case ERR:
		q->pd->poisoned = 1;
		break;
	default:
		return E_INVAL;
	}
	atomic_store(&q->shared->state, a->qp_state);
	return 0;
}
