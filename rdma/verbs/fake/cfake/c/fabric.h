/* The fabric: shared memory in which all nodes meet, in one process or in many.
 *
 * Nothing here is locked. A slot belongs to the process whose id is its owner,
 * taken by compare-and-swap. A queue pair's counters each have one writer: its
 * own posting thread, its own polling thread, or, for "writer", its one peer.
 * So a process may be killed at any moment and nobody else waits for it. */
#ifndef FAKEVERBS_FABRIC_H
#define FAKEVERBS_FABRIC_H
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include "abi.h"

enum {
	FRAME = 4096,
	MAX_DEVICES = 64,
	MAX_QP = 10,
	MAX_PD = 11,
	MAX_CQ = 11,
	MAX_MR = 100,
	MAX_WR = 4095,       /* frames that create_qp accepts */
	MAX_BUDGET = 1023,   /* frames of a port and direction, at most */
	MAX_FAULTS = 16,
	RING = 4096,         /* entries; more than two budgets */
	STAGE = 8 << 20,     /* bytes under way from one queue pair */
	GID_TABLE = 4
};

#define ALIGNED _Alignas(64)

/* One SEND or RECV. */
struct entry {
	uint64_t wr_id, addr, offset; /* offset: of a SEND's bytes in the stage */
	uint32_t bytes, frames;
	uint32_t signaled, placed;    /* placed: the bytes are in the receiver's memory already */
};

struct queue_pair {
	_Atomic int owner;            /* process id; 0: free */
	_Atomic uint32_t num;         /* 0: being made or destroyed */
	_Atomic uint32_t state;
	uint32_t dest, sq_psn, rq_psn;
	_Atomic int cable;            /* the generation of the cable at RTR */
	_Atomic int send_frames, recv_frames; /* outstanding, for the device's sums */

	ALIGNED _Atomic uint32_t sq_tail;   /* SENDs posted */
	uint32_t stage_next, stage_first;   /* of the posting thread: where to put, the oldest entry in it */
	ALIGNED _Atomic uint32_t sq_done;   /* SENDs whose completion was polled */
	ALIGNED _Atomic uint32_t rq_tail;   /* RECVs posted: the peer's credit */
	ALIGNED _Atomic uint32_t rq_done;   /* RECVs whose completion was polled */
	ALIGNED _Atomic int writer;         /* process that copies into this one's memory now */
	ALIGNED struct entry sq[RING];
	struct entry rq[RING];
	uint8_t stage[STAGE];
};

struct fault { _Atomic int call, left, error; };

struct port {
	_Atomic int used;
	char node[32], name[32];
	struct fv_gid gids[GID_TABLE];
	int gid_index;                /* of the IPv4-mapped one */
	int budget;
	_Atomic int peer;             /* index + 1 of the port at the cable's other end */
	_Atomic int cable;            /* counts plugging and pulling */
	_Atomic int frozen, faulting;
	_Atomic int armed;            /* faults */
	struct fault faults[MAX_FAULTS];
	ALIGNED _Atomic int send_frames;
	ALIGNED _Atomic int recv_frames;
	ALIGNED _Atomic int pds[MAX_PD], cqs[MAX_CQ], mrs[MAX_MR]; /* owners */
	ALIGNED struct queue_pair qps[MAX_QP];
};

struct fabric {
	_Atomic uint32_t magic;
	_Atomic uint32_t next_qpn;
	struct port ports[MAX_DEVICES];
};

/* Where errors can be injected; the order is that of call_names in control.c. */
enum call {
	C_NONE, C_OPEN, C_QUERY_DEVICE, C_QUERY_PORT, C_QUERY_GID, C_ALLOC_PD, C_REG_MR, C_CREATE_CQ,
	C_CREATE_QP, C_MODIFY_INIT, C_MODIFY_RTR, C_MODIFY_RTS, C_QUERY_QP, C_POST_SEND, C_POST_RECV,
	C_POLL_CQ, C_DESTROY_QP, C_DEREG_MR, C_DESTROY_CQ, C_DEALLOC_PD, C_CLOSE, C_SEND_WC, C_RECV_WC,
	C_RTR_DELAY, C_COUNT
};

/* macOS's numbers, which Apple's provider gives, on every system. */
enum { E_NOMEM = 12, E_BUSY = 16, E_NODEV = 19, E_INVAL = 22, E_TIMEDOUT = 60, E_OPNOTSUPP = 102, E_IO = 5 };

#pragma GCC visibility push(hidden)
extern struct fabric *fabric; /* NULL until attached */
extern int self;              /* this process */
int attach_from_environment(void);
const char *node_name(void);
int injected_slow(struct port *p, int call);

static inline int injected(struct port *p, int call)
{
	return atomic_load_explicit(&p->armed, memory_order_relaxed) ? injected_slow(p, call) : 0;
}

/* Takes a free slot of owners, or one whose process is gone: its index or -1. */
int take(_Atomic int *owners, int n);
#pragma GCC visibility pop

#endif
