/* The control path of the fake verbs library: libibverbs's functions with the
 * rules of Apple's provider. Objects are plain memory of the calling process;
 * limits are counted in the fabric, for all processes together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "objects.h"

struct device { struct port *port; };
static struct device devices[MAX_DEVICES];

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
