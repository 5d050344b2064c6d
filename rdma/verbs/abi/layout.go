package abi

import "structs"

// The structures of <infiniband/verbs.h> for 64-bit systems, the same on Linux
// and macOS but for the end of portAttr. Pointers are numbers here: they point
// to memory of the library, or of ours outside Go's heap.

// Offsets into what the library allocates.
const (
	contextOps   = 8                // ibv_context.ops, a table of functions:
	opPollCQ     = contextOps + 88  // poll_cq
	opPostSend   = contextOps + 200 // post_send
	opPostRecv   = contextOps + 208 // post_recv
	qpNum        = 52               // ibv_qp.qp_num
	mrLKey       = 36               // ibv_mr.lkey
	opcodeSend   = 2                // IBV_WR_SEND
	qpQueryState = 0x1              // IBV_QP_STATE
	qpQueryCap   = 0x80000          // IBV_QP_CAP
)

type gid [16]byte

type qpCap struct {
	_                                                           structs.HostLayout
	maxSendWR, maxRecvWR, maxSendSGE, maxRecvSGE, maxInlineData uint32
}

type qpInitAttr struct {
	_                              structs.HostLayout
	qpContext, sendCQ, recvCQ, srq uintptr
	cap                            qpCap
	qpType                         uint32
	sqSigAll                       int32
	_                              uint32
}

type globalRoute struct {
	_                                 structs.HostLayout
	dgid                              gid
	flowLabel                         uint32
	sgidIndex, hopLimit, trafficClass uint8
	_                                 uint8
}

type ahAttr struct {
	_                                           structs.HostLayout
	grh                                         globalRoute
	dlid                                        uint16
	sl, srcPathBits, staticRate, isGlobal, port uint8
	_                                           uint8
}

type qpAttr struct {
	_                                          structs.HostLayout
	qpState, curQPState, pathMTU, pathMigState uint32
	qkey, rqPSN, sqPSN, destQPNum, accessFlags uint32
	cap                                        qpCap
	ah, altAH                                  ahAttr
	pkeyIndex, altPKeyIndex                    uint16
	enSQDAsyncNotify, sqDraining               uint8
	maxRDAtomic, maxDestRDAtomic, minRNRTimer  uint8
	portNum, timeout, retryCnt, rnrRetry       uint8
	altPortNum, altTimeout                     uint8
	rateLimit                                  uint32
	_                                          uint32
}

type sge struct {
	_      structs.HostLayout
	addr   uintptr
	length uint32
	lkey   uint32
}

type sendWR struct {
	_         structs.HostLayout
	wrID      uint64
	next      uintptr
	sgList    uintptr
	numSGE    int32
	opcode    uint32
	sendFlags uint32
	immData   uint32
	_         [88]byte // remote addresses, bindings and segments, which SEND has not
}

type recvWR struct {
	_      structs.HostLayout
	wrID   uint64
	next   uintptr
	sgList uintptr
	numSGE int32
	_      uint32
}

type wc struct {
	_         structs.HostLayout
	wrID      uint64
	status    uint32
	opcode    uint32
	vendorErr uint32
	byteLen   uint32
	immData   uint32
	qpNum     uint32
	srcQP     uint32
	wcFlags   uint32
	pkeyIndex uint16
	slid      uint16
	sl        uint8
	pathBits  uint8
	_         uint16
}

// portAttr is 56 bytes on Linux, 52 on macOS and on Linux before mid-2023. The
// export ibv_query_port of Linux fills 48: nothing after flags is used, and
// there is room for more than any of them writes.
type portAttr struct {
	_                                                    structs.HostLayout
	state, maxMTU, activeMTU                             uint32
	gidTblLen                                            int32
	portCapFlags, maxMsgSz, badPKeyCntr, qkeyViolCntr    uint32
	pkeyTblLen, lid, smLID                               uint16
	lmc, maxVLNum, smSL, subnetTimeout, initTypeReply    uint8
	activeWidth, activeSpeed, physState, linkLayer, flag uint8
	_                                                    [16]byte
}

// deviceAttr is 232 bytes on Linux. Apple's has not been compared.
type deviceAttr struct {
	_                                        structs.HostLayout
	fwVer                                    [64]byte
	nodeGUID, sysImageGUID, maxMRSize, pages uint64
	vendorID, vendorPartID, hwVer            uint32
	maxQP, maxQPWR                           int32
	deviceCapFlags                           uint32
	maxSGE, maxSGERd                         int32
	maxCQ, maxCQE, maxMR, maxPD              int32
	_                                        [83]byte
	physPortCnt                              uint8
	_                                        [284]byte // up to provider.DeviceAttrBytes
}
