/* The data path: no locks but one flag around a completion queue's list, no
 * system calls.
 *
 * The i-th SEND of a queue pair meets the i-th RECV of its peer. A SEND whose
 * RECV is there and in the same process is copied once, straight into the
 * receiver's memory; any other goes through the sender's stage in the fabric,
 * from where the receiver's poll takes it. The sender completes as soon as the
 * RECV has been posted, the receiver when it polls: completion comes before
 * delivery, and what a destroyed sender had under way is lost. */
#include <string.h>
#include "objects.h"

enum { OK = 0, LENGTH = 1, FLUSHED = 5, WC_RECV = 128, SIGNALED = 2, INLINE = 8, WR_SEND = 2 };

#define GET(x) atomic_load_explicit(&(x), memory_order_acquire)
#define MINE(x) atomic_load_explicit(&(x), memory_order_relaxed)
#define PUT(x, v) atomic_store_explicit(&(x), v, memory_order_release)

static uint32_t frames_of(uint32_t bytes) { return bytes > FRAME ? (bytes + FRAME - 1) / FRAME : 1; }

/* The peer's queue pair while the cable that both became ready on is in, and
 * each means the other; else NULL, and nothing tells the caller more. */
static struct queue_pair *peer_of(struct qp *q)
{
	struct queue_pair *s = q->shared, *p = q->peer;
	if (!q->other || GET(q->port->cable) != MINE(s->cable) || GET(q->port->frozen) || GET(q->other->frozen))
		return NULL;
	if (!p || GET(p->num) != s->dest) {
		p = NULL;
		for (int i = 0; i < MAX_QP && !p; i++)
			if (GET(q->other->qps[i].num) == s->dest)
				p = &q->other->qps[i];
		q->peer = p;
		if (!p)
			return NULL;
	}
	uint32_t state = GET(p->state);
	if ((state != RTR && state != RTS) || p->dest != q->head.qp_num || GET(p->cable) != GET(q->other->cable))
		return NULL;
	return p;
}

static struct mr *find_mr(struct qp *q, struct fv_sge *g)
{
	uint32_t slot = g->lkey & 0xff;
	struct mr *m = slot < MAX_MR ? q->context->mrs[slot] : NULL;
	uint64_t start = m ? (uintptr_t)m->head.addr : 0;
	if (!m || m->head.lkey != g->lkey || m->pd != q->pd || m->since > q->since)
		return NULL;
	if (g->addr < start || g->addr - start > m->head.length || g->length > m->head.length - (g->addr - start))
		return NULL;
	return m;
}

/* What the fault of a pulled cable looks like from inside a process. */
static void doorbell(struct port *p)
{
	static volatile uintptr_t unmapped = 8;
	if (GET(p->faulting))
		*(volatile int *)unmapped = 1;
}

/* Reserves frames of a queue pair and of its port: 0 or an errno. */
static int reserve(uint32_t frames, uint32_t depth, int budget, _Atomic int *of_qp, _Atomic int *of_port)
{
	if ((uint32_t)MINE(*of_qp) + frames > depth)
		return E_NOMEM;
	if (atomic_fetch_add(of_port, (int)frames) + (int)frames > budget) {
		atomic_fetch_sub(of_port, (int)frames);
		return E_NOMEM;
	}
	atomic_fetch_add(of_qp, (int)frames);
	return 0;
}

static void give_back(uint32_t frames, _Atomic int *of_qp, _Atomic int *of_port)
{
	atomic_fetch_sub(of_qp, (int)frames);
	atomic_fetch_sub(of_port, (int)frames);
}

/* A place in the stage, or -1 while it is full. It is a ring that starts anew
 * whenever it is empty, so that a ping-pong stays in one place. */
static int64_t stage(struct queue_pair *s, uint32_t taken, uint32_t bytes)
{
	uint32_t tail = MINE(s->sq_tail);
	bytes = (bytes + 63u) & ~63u;
	while (s->stage_first != tail &&
	       ((int32_t)(taken - s->stage_first) > 0 || s->sq[s->stage_first % RING].placed))
		s->stage_first++;
	if (s->stage_first == tail)
		s->stage_next = 0;
	else {
		uint64_t oldest = s->sq[s->stage_first % RING].offset;
		if (s->stage_next > oldest && s->stage_next + bytes > STAGE)
			s->stage_next = 0;
		if (s->stage_next <= oldest && s->stage_next + bytes >= oldest)
			return -1;
	}
	if (s->stage_next + bytes > STAGE)
		return -1;
	s->stage_next += bytes;
	return s->stage_next - bytes;
}

/* Copies into the receiver's memory, if it is ours to reach. The flag keeps the
 * receiver from going away meanwhile. */
static void place(struct qp *q, struct queue_pair *p, uint32_t i, struct entry *e)
{
	atomic_store(&p->writer, self);
	if (atomic_load(&p->num) == q->shared->dest && atomic_load(&p->state) != ERR) {
		struct entry *r = &p->rq[i % RING];
		if (r->frames == e->frames && r->bytes >= e->bytes) {
			memcpy((void *)(uintptr_t)r->addr, (void *)(uintptr_t)e->addr, e->bytes);
			e->placed = 1;
		}
	}
	PUT(p->writer, 0);
}

static int send_one(struct qp *q, struct fv_send_wr *wr)
{
	struct queue_pair *s = q->shared, *p;
	int error = injected(q->port, C_POST_SEND);
	if (error)
		return error;
	doorbell(q->port);
	if (MINE(s->state) != RTS || wr->opcode != WR_SEND || wr->num_sge != 1 || wr->send_flags & INLINE)
		return E_INVAL;
	struct fv_sge *g = wr->sg_list;
	uint32_t frames = frames_of(g->length), i = MINE(s->sq_tail);
	if (frames > MAX_WR || !find_mr(q, g))
		return E_INVAL;
	if ((error = reserve(frames, q->cap.max_send_wr, q->port->budget, &s->send_frames, &q->port->send_frames)) != 0)
		return error;
	struct entry *e = &s->sq[i % RING];
	e->wr_id = wr->wr_id;
	e->addr = g->addr;
	e->bytes = g->length;
	e->frames = frames;
	e->signaled = (wr->send_flags & SIGNALED) || q->signal_all;
	e->placed = 0;
	p = peer_of(q);
	if (p && MINE(p->owner) == self && (int32_t)(GET(p->rq_tail) - i) > 0)
		place(q, p, i, e);
	if (!e->placed) {
		int64_t at = stage(s, p ? GET(p->rq_done) : s->stage_first, g->length);
		if (at < 0) {
			give_back(frames, &s->send_frames, &q->port->send_frames);
			return E_NOMEM;
		}
		e->offset = (uint64_t)at;
		memcpy(s->stage + at, (void *)(uintptr_t)g->addr, g->length);
	}
	PUT(s->sq_tail, i + 1);
	return 0;
}

static int recv_one(struct qp *q, struct fv_recv_wr *wr)
{
	struct queue_pair *s = q->shared;
	int error = injected(q->port, C_POST_RECV);
	if (error)
		return error;
	doorbell(q->port);
	if (MINE(s->state) != RTS || wr->num_sge != 1)
		return E_INVAL;
	struct fv_sge *g = wr->sg_list;
	uint32_t frames = frames_of(g->length), i = MINE(s->rq_tail);
	if (frames > MAX_WR || !find_mr(q, g))
		return E_INVAL;
	if ((error = reserve(frames, q->cap.max_recv_wr, q->port->budget, &s->recv_frames, &q->port->recv_frames)) != 0)
		return error;
	struct entry *r = &s->rq[i % RING];
	r->wr_id = wr->wr_id;
	r->addr = g->addr;
	r->bytes = g->length;
	r->frames = frames;
	PUT(s->rq_tail, i + 1);
	return 0;
}

/* Negative, and bad is left as it was: so does Apple's. */
int fv_post_send(struct qp *q, struct fv_send_wr *wr, struct fv_send_wr **bad)
{
	(void)bad;
	for (; wr; wr = wr->next) {
		int error = send_one(q, wr);
		if (error)
			return -error;
	}
	return 0;
}

int fv_post_recv(struct qp *q, struct fv_recv_wr *wr, struct fv_recv_wr **bad)
{
	(void)bad;
	for (; wr; wr = wr->next) {
		int error = recv_one(q, wr);
		if (error)
			return -error;
	}
	return 0;
}

static void completion(struct fv_wc *w, struct qp *q, struct entry *e, uint32_t opcode, uint32_t status, uint32_t bytes)
{
	memset(w, 0, sizeof *w);
	w->wr_id = e->wr_id;
	w->status = status;
	w->opcode = opcode;
	w->byte_len = bytes;
	w->qp_num = q->head.qp_num;
}

static int less(uint32_t a, uint32_t b) { return (int)(a < b ? a : b); }

/* SENDs that left: those whose RECV the peer has posted. Their frames come back
 * with the completion, unsignaled ones with the next signaled one's. */
static int sent(struct qp *q, struct queue_pair *p, int room, struct fv_wc *out, int *ready)
{
	struct queue_pair *s = q->shared;
	uint32_t done = MINE(s->sq_done), pending = GET(s->sq_tail) - done, frames = 0;
	int failed = GET(s->state) == ERR, n = 0, most = (int)pending;
	if (!failed) {
		int32_t credit = p && p->rq_psn == s->sq_psn ? (int32_t)(GET(p->rq_tail) - done) : 0;
		most = credit > 0 ? less(pending, (uint32_t)credit) : 0;
	}
	for (int i = 0; i < most; i++) {
		struct entry *e = &s->sq[(done + (uint32_t)i) % RING];
		frames += e->frames;
		if (!e->signaled && !failed)
			continue;
		++*ready;
		if (n == room)
			continue;
		int status = failed ? FLUSHED : injected(q->port, C_SEND_WC);
		completion(&out[n++], q, e, 0, (uint32_t)status, 0);
		give_back(frames, &s->send_frames, &q->port->send_frames);
		frames = 0;
		PUT(s->sq_done, done + (uint32_t)i + 1);
		if (status != OK)
			PUT(s->state, ERR);
	}
	return n;
}

/* RECVs that something arrived for. One that spans other frames than what was
 * sent fails, and everything behind it. */
static int received(struct qp *q, struct queue_pair *p, int room, struct fv_wc *out, int *ready)
{
	struct queue_pair *s = q->shared;
	uint32_t done = MINE(s->rq_done), posted = GET(s->rq_tail) - done;
	int failed = GET(s->state) == ERR, n = 0, most = (int)posted;
	if (!failed) {
		int32_t came = p && GET(p->state) == RTS && p->sq_psn == s->rq_psn ? (int32_t)(GET(p->sq_tail) - done) : 0;
		most = came > 0 ? less(posted, (uint32_t)came) : 0;
	}
	*ready += most;
	for (int i = 0; i < most && n < room; i++) {
		struct entry *r = &s->rq[(done + (uint32_t)i) % RING];
		int status = failed ? FLUSHED : injected(q->port, C_RECV_WC);
		uint32_t bytes = 0;
		if (status == OK) {
			struct entry *e = &p->sq[(done + (uint32_t)i) % RING];
			bytes = e->bytes;
			if (e->frames != r->frames || e->bytes > r->bytes)
				status = LENGTH;
			else if (!e->placed)
				memcpy((void *)(uintptr_t)r->addr, p->stage + e->offset, e->bytes);
		}
		completion(&out[n++], q, r, WC_RECV, (uint32_t)status, bytes);
		give_back(r->frames, &s->recv_frames, &q->port->recv_frames);
		PUT(s->rq_done, done + (uint32_t)i + 1);
		if (status != OK) {
			PUT(s->state, ERR);
			break; /* the next poll flushes */
		}
	}
	return n;
}

int fv_poll_cq(struct cq *c, int n, struct fv_wc *out)
{
	int error = injected(c->context->port, C_POLL_CQ), got = 0, ready = 0;
	if (error)
		return -error;
	if (c->overrun)
		return -E_IO;
	lock(&c->busy);
	for (int i = 0; i < c->count; i++) {
		struct qp *q = c->qps[(c->first + i) % c->count];
		struct queue_pair *p = peer_of(q);
		if (q->send_cq == c)
			got += sent(q, p, n - got, out + got, &ready);
		if (q->recv_cq == c)
			got += received(q, p, n - got, out + got, &ready);
	}
	c->first = c->count ? (c->first + 1) % c->count : 0;
	unlock(&c->busy);
	if (ready > c->depth) {
		c->overrun = 1;
		return -E_IO;
	}
	return got;
}
