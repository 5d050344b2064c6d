/* What tests do to the fabric: plug, pull, freeze, inject. These functions are
 * called by package cfake; everything else of this library is libibverbs's. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fabric.h"

#define MAGIC 0x46564231u

struct fabric *fabric;
int self;
static char node[32];

static const char *const call_names[C_COUNT] = {
	"", "open_device", "query_device", "query_port", "query_gid", "alloc_pd", "reg_mr", "create_cq",
	"create_qp", "modify_init", "modify_rtr", "modify_rts", "query_qp", "post_send", "post_recv",
	"poll_cq", "destroy_qp", "dereg_mr", "destroy_cq", "dealloc_pd", "close_device", "send_wc",
	"recv_wc", "rtr_delay_ms"
};

const char *node_name(void) { return node; }

static int map(const char *name, int flags)
{
	int fd = shm_open(name, flags, 0600);
	if (fd < 0)
		return errno;
	if ((flags & O_CREAT) && ftruncate(fd, sizeof *fabric) != 0) {
		int e = errno;
		close(fd);
		return e;
	}
	void *p = mmap(NULL, sizeof *fabric, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	int e = errno;
	close(fd);
	if (p == MAP_FAILED)
		return e;
	fabric = p;
	self = (int)getpid();
	if (flags & O_CREAT)
		atomic_store(&fabric->magic, MAGIC);
	if (atomic_load(&fabric->magic) != MAGIC) {
		munmap(p, sizeof *fabric);
		fabric = NULL;
		return EINVAL;
	}
	return 0;
}

static void copy_name(char *to, const char *from) { snprintf(to, 32, "%s", from); }

/* Each returns 0 or an errno of this system. */
int fv_create(const char *name) { return fabric ? EBUSY : map(name, O_RDWR | O_CREAT | O_EXCL); }
int fv_unlink(const char *name) { return shm_unlink(name) == 0 ? 0 : errno; }

int fv_attach(const char *name, const char *as)
{
	if (fabric)
		return EBUSY;
	copy_name(node, as);
	return map(name, O_RDWR);
}

int fv_detach(void)
{
	if (fabric)
		munmap(fabric, sizeof *fabric);
	fabric = NULL;
	return 0;
}

/* A process that is a node by itself says so in its environment. */
int attach_from_environment(void)
{
	const char *name = getenv("FAKEVERBS_FABRIC"), *as = getenv("FAKEVERBS_NODE");
	if (fabric)
		return 0;
	if (!name || !as)
		return ENODEV;
	return fv_attach(name, as);
}

static struct port *find(const char *of, const char *name)
{
	for (int i = 0; fabric && i < MAX_DEVICES; i++) {
		struct port *p = &fabric->ports[i];
		if (atomic_load(&p->used) == 2 && !strcmp(p->node, of) && !strcmp(p->name, name))
			return p;
	}
	return NULL;
}

int fv_add_device(const char *of, const char *name, uint32_t ipv4, int gid_index, int budget)
{
	if (!fabric || find(of, name) || gid_index < 1 || gid_index >= GID_TABLE || budget < 1 || budget > MAX_BUDGET)
		return EINVAL;
	for (int i = 0; i < MAX_DEVICES; i++) {
		struct port *p = &fabric->ports[i];
		int unused = 0;
		if (!atomic_compare_exchange_strong(&p->used, &unused, 1))
			continue;
		copy_name(p->node, of);
		copy_name(p->name, name);
		p->gid_index = gid_index;
		p->budget = budget;
		/* link-local first, and again behind the IPv4-mapped one, as Apple's */
		for (int g = 0; g < GID_TABLE; g++) {
			uint8_t *raw = p->gids[g].raw;
			if (g == gid_index) {
				raw[10] = raw[11] = 0xff;
				for (int b = 0; b < 4; b++)
					raw[12 + b] = (uint8_t)(ipv4 >> (24 - 8 * b));
			} else if (g == 0 || g == gid_index + 1) {
				raw[0] = 0xfe;
				raw[1] = 0x80;
				raw[15] = (uint8_t)(2 * i + (g != 0));
			}
		}
		atomic_store(&p->used, 2);
		return 0;
	}
	return ENOSPC;
}

int fv_pull(const char *of, const char *name, int faulting)
{
	struct port *p = find(of, name);
	if (!p)
		return ENODEV;
	int peer = atomic_exchange(&p->peer, 0);
	if (!peer)
		return EINVAL;
	struct port *other = &fabric->ports[peer - 1];
	atomic_fetch_add(&p->cable, 1);
	atomic_fetch_add(&other->cable, 1);
	atomic_store(&other->peer, 0);
	atomic_store(&p->faulting, faulting);
	atomic_store(&other->faulting, faulting);
	return 0;
}

int fv_wire(const char *node_a, const char *name_a, const char *node_b, const char *name_b)
{
	struct port *a = find(node_a, name_a), *b = find(node_b, name_b);
	if (!a || !b)
		return ENODEV;
	if (a == b || atomic_load(&a->peer) || atomic_load(&b->peer))
		return EINVAL;
	atomic_fetch_add(&a->cable, 1);
	atomic_fetch_add(&b->cable, 1);
	atomic_store(&a->faulting, 0);
	atomic_store(&b->faulting, 0);
	atomic_store(&a->peer, (int)(b - fabric->ports) + 1);
	atomic_store(&b->peer, (int)(a - fabric->ports) + 1);
	return 0;
}

int fv_freeze(const char *of)
{
	int found = ENODEV;
	for (int i = 0; fabric && i < MAX_DEVICES; i++) {
		struct port *p = &fabric->ports[i];
		if (atomic_load(&p->used) == 2 && !strcmp(p->node, of)) {
			atomic_store(&p->frozen, 1);
			found = 0;
		}
	}
	return found;
}

int fv_fail(const char *of, const char *name, const char *call, int nth, int error)
{
	struct port *p = find(of, name);
	if (!p)
		return ENODEV;
	if (nth < 1)
		return EINVAL;
	for (int c = 1; c < C_COUNT; c++) {
		if (strcmp(call_names[c], call))
			continue;
		for (int i = 0; i < MAX_FAULTS; i++) {
			struct fault *f = &p->faults[i];
			if (atomic_load(&f->left) > 0)
				continue;
			atomic_store(&f->call, c);
			atomic_store(&f->error, error);
			atomic_store(&f->left, nth);
			atomic_store(&p->armed, 1);
			return 0;
		}
		return ENOSPC;
	}
	return EINVAL;
}

int injected_slow(struct port *p, int call)
{
	for (int i = 0; i < MAX_FAULTS; i++) {
		struct fault *f = &p->faults[i];
		if (atomic_load(&f->call) == call && atomic_load(&f->left) > 0 && atomic_fetch_sub(&f->left, 1) == 1)
			return atomic_load(&f->error);
	}
	return 0;
}

static int gone(int process) { return kill(process, 0) != 0 && errno == ESRCH; }

int take(_Atomic int *owners, int n)
{
	for (int i = 0; i < n; i++) {
		int owner = atomic_load(&owners[i]);
		if ((owner == 0 || gone(owner)) && atomic_compare_exchange_strong(&owners[i], &owner, self))
			return i;
	}
	return -1;
}
