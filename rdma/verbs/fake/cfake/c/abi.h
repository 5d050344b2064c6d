/* The part of <infiniband/verbs.h> that this library has, declared anew so that
 * it compiles where no such header is. That it is the same is shown by the loader,
 * whose own layout a test compares with the real header. */
#ifndef FAKEVERBS_ABI_H
#define FAKEVERBS_ABI_H
#include <stddef.h>
#include <stdint.h>

struct fv_gid { uint8_t raw[16]; };

struct fv_qp_cap { uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data; };

struct fv_qp_init_attr {
	void *qp_context;
	struct fv_cq *send_cq, *recv_cq;
	void *srq;
	struct fv_qp_cap cap;
	uint32_t qp_type;
	int sq_sig_all;
};

struct fv_ah_attr {
	struct { struct fv_gid dgid; uint32_t flow_label; uint8_t sgid_index, hop_limit, traffic_class; } grh;
	uint16_t dlid;
	uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

struct fv_qp_attr {
	uint32_t qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags;
	struct fv_qp_cap cap;
	struct fv_ah_attr ah_attr, alt_ah_attr;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer;
	uint8_t port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
	uint32_t rate_limit;
};

struct fv_sge { uint64_t addr; uint32_t length, lkey; };

struct fv_send_wr {
	uint64_t wr_id;
	struct fv_send_wr *next;
	struct fv_sge *sg_list;
	int num_sge;
	uint32_t opcode, send_flags, imm_data;
	uint8_t rest[88];
};

struct fv_recv_wr {
	uint64_t wr_id;
	struct fv_recv_wr *next;
	struct fv_sge *sg_list;
	int num_sge;
};

struct fv_wc {
	uint64_t wr_id;
	uint32_t status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags;
	uint16_t pkey_index, slid;
	uint8_t sl, dlid_path_bits;
};

/* Apple's, 52 bytes. */
struct fv_port_attr {
	uint32_t state, max_mtu, active_mtu;
	int gid_tbl_len;
	uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
	uint16_t pkey_tbl_len, lid, sm_lid;
	uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state;
	uint8_t link_layer, flags;
	uint16_t port_cap_flags2;
};

struct fv_device_attr {
	uint8_t before[80];
	uint64_t max_mr_size;
	uint8_t between[20];
	int max_qp, max_qp_wr;
	uint32_t device_cap_flags;
	int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd;
	uint8_t then[83];
	uint8_t phys_port_cnt;
};

/* What the library makes; callers look at these members alone. */
struct fv_context {
	void *device;
	void *ops[32]; /* poll_cq is the 12th, post_send the 26th, post_recv the 27th */
	uint8_t rest[64];
};
struct fv_qp_head {
	struct fv_context *context;
	uint8_t between[44];
	uint32_t qp_num;
	uint8_t rest[104];
};
struct fv_cq_head { struct fv_context *context; uint8_t rest[120]; };
struct fv_mr_head {
	struct fv_context *context;
	void *pd, *addr;
	size_t length;
	uint32_t handle, lkey, rkey;
};

#define FV_POLL_CQ 11
#define FV_POST_SEND 25
#define FV_POST_RECV 26
#endif
