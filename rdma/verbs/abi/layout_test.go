package abi

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs/provider"
)

// layout is what this package believes of the header, by the names that
// testdata/layout.c prints.
func layout() map[string]uint64 {
	var (
		c   qpCap
		ia  qpInitAttr
		gr  globalRoute
		ah  ahAttr
		qa  qpAttr
		s   sge
		sw  sendWR
		rw  recvWR
		w   wc
		pa  portAttr
		da  deviceAttr
		out = map[string]uint64{}
	)
	put := func(name string, v uintptr) { out[name] = uint64(v) }
	put("ibv_qp_cap", unsafe.Sizeof(c))
	put("ibv_qp_cap.max_send_wr", unsafe.Offsetof(c.maxSendWR))
	put("ibv_qp_cap.max_recv_wr", unsafe.Offsetof(c.maxRecvWR))
	put("ibv_qp_cap.max_send_sge", unsafe.Offsetof(c.maxSendSGE))
	put("ibv_qp_cap.max_recv_sge", unsafe.Offsetof(c.maxRecvSGE))
	put("ibv_qp_cap.max_inline_data", unsafe.Offsetof(c.maxInlineData))
	put("ibv_qp_init_attr", unsafe.Sizeof(ia))
	put("ibv_qp_init_attr.send_cq", unsafe.Offsetof(ia.sendCQ))
	put("ibv_qp_init_attr.recv_cq", unsafe.Offsetof(ia.recvCQ))
	put("ibv_qp_init_attr.cap", unsafe.Offsetof(ia.cap))
	put("ibv_qp_init_attr.qp_type", unsafe.Offsetof(ia.qpType))
	put("ibv_qp_init_attr.sq_sig_all", unsafe.Offsetof(ia.sqSigAll))
	put("ibv_global_route", unsafe.Sizeof(gr))
	put("ibv_global_route.dgid", unsafe.Offsetof(gr.dgid))
	put("ibv_global_route.sgid_index", unsafe.Offsetof(gr.sgidIndex))
	put("ibv_global_route.hop_limit", unsafe.Offsetof(gr.hopLimit))
	put("ibv_ah_attr", unsafe.Sizeof(ah))
	put("ibv_ah_attr.dlid", unsafe.Offsetof(ah.dlid))
	put("ibv_ah_attr.sl", unsafe.Offsetof(ah.sl))
	put("ibv_ah_attr.src_path_bits", unsafe.Offsetof(ah.srcPathBits))
	put("ibv_ah_attr.is_global", unsafe.Offsetof(ah.isGlobal))
	put("ibv_ah_attr.port_num", unsafe.Offsetof(ah.port))
	put("ibv_qp_attr", unsafe.Sizeof(qa))
	put("ibv_qp_attr.qp_state", unsafe.Offsetof(qa.qpState))
	put("ibv_qp_attr.path_mtu", unsafe.Offsetof(qa.pathMTU))
	put("ibv_qp_attr.rq_psn", unsafe.Offsetof(qa.rqPSN))
	put("ibv_qp_attr.sq_psn", unsafe.Offsetof(qa.sqPSN))
	put("ibv_qp_attr.dest_qp_num", unsafe.Offsetof(qa.destQPNum))
	put("ibv_qp_attr.qp_access_flags", unsafe.Offsetof(qa.accessFlags))
	put("ibv_qp_attr.cap", unsafe.Offsetof(qa.cap))
	put("ibv_qp_attr.ah_attr", unsafe.Offsetof(qa.ah))
	put("ibv_qp_attr.alt_ah_attr", unsafe.Offsetof(qa.altAH))
	put("ibv_qp_attr.pkey_index", unsafe.Offsetof(qa.pkeyIndex))
	put("ibv_qp_attr.max_rd_atomic", unsafe.Offsetof(qa.maxRDAtomic))
	put("ibv_qp_attr.max_dest_rd_atomic", unsafe.Offsetof(qa.maxDestRDAtomic))
	put("ibv_qp_attr.min_rnr_timer", unsafe.Offsetof(qa.minRNRTimer))
	put("ibv_qp_attr.port_num", unsafe.Offsetof(qa.portNum))
	put("ibv_qp_attr.timeout", unsafe.Offsetof(qa.timeout))
	put("ibv_qp_attr.retry_cnt", unsafe.Offsetof(qa.retryCnt))
	put("ibv_qp_attr.rnr_retry", unsafe.Offsetof(qa.rnrRetry))
	put("ibv_qp_attr.rate_limit", unsafe.Offsetof(qa.rateLimit))
	put("ibv_sge", unsafe.Sizeof(s))
	put("ibv_sge.addr", unsafe.Offsetof(s.addr))
	put("ibv_sge.length", unsafe.Offsetof(s.length))
	put("ibv_sge.lkey", unsafe.Offsetof(s.lkey))
	put("ibv_send_wr", unsafe.Sizeof(sw))
	put("ibv_send_wr.wr_id", unsafe.Offsetof(sw.wrID))
	put("ibv_send_wr.next", unsafe.Offsetof(sw.next))
	put("ibv_send_wr.sg_list", unsafe.Offsetof(sw.sgList))
	put("ibv_send_wr.num_sge", unsafe.Offsetof(sw.numSGE))
	put("ibv_send_wr.opcode", unsafe.Offsetof(sw.opcode))
	put("ibv_send_wr.send_flags", unsafe.Offsetof(sw.sendFlags))
	put("ibv_send_wr.wr", unsafe.Offsetof(sw.immData)+4)
	put("ibv_recv_wr", unsafe.Sizeof(rw))
	put("ibv_recv_wr.wr_id", unsafe.Offsetof(rw.wrID))
	put("ibv_recv_wr.next", unsafe.Offsetof(rw.next))
	put("ibv_recv_wr.sg_list", unsafe.Offsetof(rw.sgList))
	put("ibv_recv_wr.num_sge", unsafe.Offsetof(rw.numSGE))
	put("ibv_wc", unsafe.Sizeof(w))
	put("ibv_wc.wr_id", unsafe.Offsetof(w.wrID))
	put("ibv_wc.status", unsafe.Offsetof(w.status))
	put("ibv_wc.opcode", unsafe.Offsetof(w.opcode))
	put("ibv_wc.vendor_err", unsafe.Offsetof(w.vendorErr))
	put("ibv_wc.byte_len", unsafe.Offsetof(w.byteLen))
	put("ibv_wc.qp_num", unsafe.Offsetof(w.qpNum))
	put("ibv_port_attr.state", unsafe.Offsetof(pa.state))
	put("ibv_port_attr.max_mtu", unsafe.Offsetof(pa.maxMTU))
	put("ibv_port_attr.active_mtu", unsafe.Offsetof(pa.activeMTU))
	put("ibv_port_attr.gid_tbl_len", unsafe.Offsetof(pa.gidTblLen))
	put("ibv_port_attr.max_msg_sz", unsafe.Offsetof(pa.maxMsgSz))
	put("ibv_port_attr.lid", unsafe.Offsetof(pa.lid))
	put("ibv_port_attr.link_layer", unsafe.Offsetof(pa.linkLayer))
	put("ibv_device_attr.max_mr_size", unsafe.Offsetof(da.maxMRSize))
	put("ibv_device_attr.max_qp", unsafe.Offsetof(da.maxQP))
	put("ibv_device_attr.max_qp_wr", unsafe.Offsetof(da.maxQPWR))
	put("ibv_device_attr.max_sge", unsafe.Offsetof(da.maxSGE))
	put("ibv_device_attr.max_cq", unsafe.Offsetof(da.maxCQ))
	put("ibv_device_attr.max_cqe", unsafe.Offsetof(da.maxCQE))
	put("ibv_device_attr.max_mr", unsafe.Offsetof(da.maxMR))
	put("ibv_device_attr.max_pd", unsafe.Offsetof(da.maxPD))
	put("ibv_device_attr.phys_port_cnt", unsafe.Offsetof(da.physPortCnt))
	for name, v := range map[string]uint64{
		"ibv_context.ops.poll_cq": opPollCQ, "ibv_context.ops.post_send": opPostSend,
		"ibv_context.ops.post_recv": opPostRecv,
		"ibv_qp.context":            0, "ibv_cq.context": 0, "ibv_qp.qp_num": qpNum, "ibv_mr.lkey": mrLKey,
		"IBV_QPT_RC": uint64(provider.RC), "IBV_QPT_UC": uint64(provider.UC),
		"IBV_QPS_INIT": uint64(provider.StateInit), "IBV_QPS_RTR": uint64(provider.StateRTR),
		"IBV_QPS_RTS": uint64(provider.StateRTS), "IBV_QPS_ERR": uint64(provider.StateErr),
		"IBV_QP_STATE": uint64(provider.MaskState), "IBV_QP_ACCESS_FLAGS": uint64(provider.MaskAccess),
		"IBV_QP_PKEY_INDEX": uint64(provider.MaskPKeyIndex), "IBV_QP_PORT": uint64(provider.MaskPort),
		"IBV_QP_AV": uint64(provider.MaskAV), "IBV_QP_PATH_MTU": uint64(provider.MaskPathMTU),
		"IBV_QP_TIMEOUT": uint64(provider.MaskTimeout), "IBV_QP_RETRY_CNT": uint64(provider.MaskRetryCount),
		"IBV_QP_RNR_RETRY": uint64(provider.MaskRNRRetry), "IBV_QP_RQ_PSN": uint64(provider.MaskRQPSN),
		"IBV_QP_MAX_QP_RD_ATOMIC": uint64(provider.MaskMaxRDAtomic), "IBV_QP_MIN_RNR_TIMER": uint64(provider.MaskMinRNRTimer),
		"IBV_QP_SQ_PSN": uint64(provider.MaskSQPSN), "IBV_QP_MAX_DEST_RD_ATOMIC": uint64(provider.MaskMaxDestRDAtomic),
		"IBV_QP_CAP": qpQueryCap, "IBV_QP_DEST_QPN": uint64(provider.MaskDestQPN),
		"IBV_WR_SEND": opcodeSend, "IBV_SEND_SIGNALED": uint64(provider.SendSignaled), "IBV_SEND_INLINE": uint64(provider.SendInline),
		"IBV_ACCESS_LOCAL_WRITE":  uint64(provider.AccessLocalWrite),
		"IBV_ACCESS_REMOTE_WRITE": uint64(provider.AccessRemoteWrite),
		"IBV_ACCESS_REMOTE_READ":  uint64(provider.AccessRemoteRead),
		"IBV_MTU_1024":            uint64(provider.MTU1024), "IBV_MTU_4096": uint64(provider.MTU4096),
		"IBV_PORT_DOWN": uint64(provider.PortDown), "IBV_PORT_ACTIVE": uint64(provider.PortActive),
		"IBV_WC_SUCCESS": uint64(provider.WCSuccess), "IBV_WC_LOC_LEN_ERR": uint64(provider.WCLocalLength),
		"IBV_WC_LOC_QP_OP_ERR": uint64(provider.WCLocalQPOp), "IBV_WC_LOC_PROT_ERR": uint64(provider.WCLocalProtection),
		"IBV_WC_WR_FLUSH_ERR": uint64(provider.WCFlushed), "IBV_WC_LOC_ACCESS_ERR": uint64(provider.WCLocalAccess),
		"IBV_WC_REM_INV_REQ_ERR": uint64(provider.WCRemoteInvalid), "IBV_WC_REM_ACCESS_ERR": uint64(provider.WCRemoteAccess),
		"IBV_WC_REM_OP_ERR": uint64(provider.WCRemoteOp), "IBV_WC_RETRY_EXC_ERR": uint64(provider.WCRetriesExceeded),
		"IBV_WC_RNR_RETRY_EXC_ERR": uint64(provider.WCRNRetriesExceeded),
		"IBV_WC_SEND":              uint64(provider.OpSend), "IBV_WC_RECV": uint64(provider.OpRecv),
		"IBV_LINK_LAYER_ETHERNET": uint64(provider.LinkEthernet),
	} {
		out[name] = v
	}
	return out
}

// TestLayout compares layout.go and the numbers of package provider with the
// system's own header: libibverbs-dev on Debian, the SDK on a Mac.
func TestLayout(t *testing.T) {
	cc := []string{"cc"}
	if runtime.GOOS == "darwin" {
		cc = []string{"xcrun", "clang"}
	}
	if _, err := exec.LookPath(cc[0]); err != nil {
		t.Skip("no C compiler: ", err)
	}
	probe := append(cc, "-fsyntax-only", "-xc", "-")
	c := exec.Command(probe[0], probe[1:]...)
	c.Stdin = bytes.NewBufferString("#include <infiniband/verbs.h>\n")
	if out, err := c.CombinedOutput(); err != nil {
		if _, debian := os.Stat("/etc/debian_version"); debian == nil && os.Geteuid() == 0 {
			t.Fatalf("libibverbs-dev is missing, which .ci/setup.sh test installs here: %s", out)
		}
		t.Skip("there is no <infiniband/verbs.h>: install libibverbs-dev, or Apple's SDK of macOS 26.2")
	}
	program := filepath.Join(t.TempDir(), "layout")
	build := append(cc, "-o", program, "testdata/layout.c")
	out, err := exec.Command(build[0], build[1:]...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program).Output()
	require.NoError(t, err)

	ours, theirs := layout(), map[string]uint64{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var name string
		var v uint64
		_, err := fmt.Sscan(lines.Text(), &name, &v)
		require.NoError(t, err, lines.Text())
		theirs[name] = v
	}
	// What may differ between systems must only leave room enough.
	require.LessOrEqual(t, theirs["ibv_port_attr"], uint64(unsafe.Sizeof(portAttr{})))
	require.LessOrEqual(t, theirs["ibv_device_attr"], uint64(unsafe.Sizeof(deviceAttr{})))
	require.EqualValues(t, provider.DeviceAttrBytes, unsafe.Sizeof(deviceAttr{}))
	delete(theirs, "ibv_port_attr")
	delete(theirs, "ibv_device_attr")
	require.Equal(t, theirs, ours)
}
