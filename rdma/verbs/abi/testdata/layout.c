/* Prints the sizes and offsets of the structures that layout.go mirrors, from
 * the system's own header: "name value" lines. */
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdio.h>

#define SIZE(t) printf(#t " %zu\n", sizeof(struct t))
#define OFF(t, m) printf(#t "." #m " %zu\n", offsetof(struct t, m))
#define VALUE(v) printf(#v " %lld\n", (long long)(v))

int main(void)
{
	SIZE(ibv_qp_cap);
	OFF(ibv_qp_cap, max_send_wr); OFF(ibv_qp_cap, max_recv_wr); OFF(ibv_qp_cap, max_send_sge);
	OFF(ibv_qp_cap, max_recv_sge); OFF(ibv_qp_cap, max_inline_data);
	SIZE(ibv_qp_init_attr);
	OFF(ibv_qp_init_attr, send_cq); OFF(ibv_qp_init_attr, recv_cq); OFF(ibv_qp_init_attr, cap);
	OFF(ibv_qp_init_attr, qp_type); OFF(ibv_qp_init_attr, sq_sig_all);
	SIZE(ibv_global_route);
	OFF(ibv_global_route, dgid); OFF(ibv_global_route, sgid_index); OFF(ibv_global_route, hop_limit);
	SIZE(ibv_ah_attr);
	OFF(ibv_ah_attr, dlid); OFF(ibv_ah_attr, sl); OFF(ibv_ah_attr, src_path_bits);
	OFF(ibv_ah_attr, is_global); OFF(ibv_ah_attr, port_num);
	SIZE(ibv_qp_attr);
	OFF(ibv_qp_attr, qp_state); OFF(ibv_qp_attr, path_mtu); OFF(ibv_qp_attr, rq_psn);
	OFF(ibv_qp_attr, sq_psn); OFF(ibv_qp_attr, dest_qp_num); OFF(ibv_qp_attr, qp_access_flags);
	OFF(ibv_qp_attr, cap); OFF(ibv_qp_attr, ah_attr); OFF(ibv_qp_attr, alt_ah_attr);
	OFF(ibv_qp_attr, pkey_index); OFF(ibv_qp_attr, max_rd_atomic); OFF(ibv_qp_attr, max_dest_rd_atomic);
	OFF(ibv_qp_attr, min_rnr_timer); OFF(ibv_qp_attr, port_num); OFF(ibv_qp_attr, timeout);
	OFF(ibv_qp_attr, retry_cnt); OFF(ibv_qp_attr, rnr_retry); OFF(ibv_qp_attr, rate_limit);
	SIZE(ibv_sge);
	OFF(ibv_sge, addr); OFF(ibv_sge, length); OFF(ibv_sge, lkey);
	SIZE(ibv_send_wr);
	OFF(ibv_send_wr, wr_id); OFF(ibv_send_wr, next); OFF(ibv_send_wr, sg_list);
	OFF(ibv_send_wr, num_sge); OFF(ibv_send_wr, opcode); OFF(ibv_send_wr, send_flags); OFF(ibv_send_wr, wr);
	SIZE(ibv_recv_wr);
	OFF(ibv_recv_wr, wr_id); OFF(ibv_recv_wr, next); OFF(ibv_recv_wr, sg_list); OFF(ibv_recv_wr, num_sge);
	SIZE(ibv_wc);
	OFF(ibv_wc, wr_id); OFF(ibv_wc, status); OFF(ibv_wc, opcode); OFF(ibv_wc, vendor_err);
	OFF(ibv_wc, byte_len); OFF(ibv_wc, qp_num);
	OFF(ibv_port_attr, state); OFF(ibv_port_attr, max_mtu); OFF(ibv_port_attr, active_mtu);
	OFF(ibv_port_attr, gid_tbl_len); OFF(ibv_port_attr, max_msg_sz); OFF(ibv_port_attr, lid);
	OFF(ibv_port_attr, link_layer);
	SIZE(ibv_port_attr);
	OFF(ibv_device_attr, max_mr_size); OFF(ibv_device_attr, max_qp); OFF(ibv_device_attr, max_qp_wr);
	OFF(ibv_device_attr, max_sge); OFF(ibv_device_attr, max_cq); OFF(ibv_device_attr, max_cqe);
	OFF(ibv_device_attr, max_mr); OFF(ibv_device_attr, max_pd); OFF(ibv_device_attr, phys_port_cnt);
	SIZE(ibv_device_attr);
	OFF(ibv_context, ops.poll_cq); OFF(ibv_context, ops.post_send); OFF(ibv_context, ops.post_recv);
	OFF(ibv_qp, context); OFF(ibv_qp, qp_num); OFF(ibv_cq, context); OFF(ibv_mr, lkey);
	VALUE(IBV_QPT_RC); VALUE(IBV_QPT_UC);
	VALUE(IBV_QPS_INIT); VALUE(IBV_QPS_RTR); VALUE(IBV_QPS_RTS); VALUE(IBV_QPS_ERR);
	VALUE(IBV_QP_STATE); VALUE(IBV_QP_ACCESS_FLAGS); VALUE(IBV_QP_PKEY_INDEX); VALUE(IBV_QP_PORT);
	VALUE(IBV_QP_AV); VALUE(IBV_QP_PATH_MTU); VALUE(IBV_QP_TIMEOUT); VALUE(IBV_QP_RETRY_CNT);
	VALUE(IBV_QP_RNR_RETRY); VALUE(IBV_QP_RQ_PSN); VALUE(IBV_QP_MAX_QP_RD_ATOMIC);
	VALUE(IBV_QP_MIN_RNR_TIMER); VALUE(IBV_QP_SQ_PSN); VALUE(IBV_QP_MAX_DEST_RD_ATOMIC);
	VALUE(IBV_QP_CAP); VALUE(IBV_QP_DEST_QPN);
	VALUE(IBV_WR_SEND); VALUE(IBV_SEND_SIGNALED); VALUE(IBV_SEND_INLINE);
	VALUE(IBV_ACCESS_LOCAL_WRITE); VALUE(IBV_ACCESS_REMOTE_WRITE); VALUE(IBV_ACCESS_REMOTE_READ);
	VALUE(IBV_MTU_1024); VALUE(IBV_MTU_4096); VALUE(IBV_PORT_DOWN); VALUE(IBV_PORT_ACTIVE);
	VALUE(IBV_WC_SUCCESS); VALUE(IBV_WC_LOC_LEN_ERR); VALUE(IBV_WC_LOC_QP_OP_ERR);
	VALUE(IBV_WC_LOC_PROT_ERR); VALUE(IBV_WC_WR_FLUSH_ERR); VALUE(IBV_WC_LOC_ACCESS_ERR);
	VALUE(IBV_WC_REM_INV_REQ_ERR); VALUE(IBV_WC_REM_ACCESS_ERR); VALUE(IBV_WC_REM_OP_ERR);
	VALUE(IBV_WC_RETRY_EXC_ERR); VALUE(IBV_WC_RNR_RETRY_EXC_ERR);
	VALUE(IBV_WC_SEND); VALUE(IBV_WC_RECV); VALUE(IBV_LINK_LAYER_ETHERNET);
	return 0;
}
