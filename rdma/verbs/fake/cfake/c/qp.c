/* The control path of queue pairs: making them, and the steps to ready-to-send
 * with Apple's masks, addresses and errors. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "objects.h"

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
