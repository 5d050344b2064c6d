package provider

// Endpoint is what two sides tell each other about their queue pairs.
type Endpoint struct {
	QPN uint32
	PSN uint32
	LID uint16
	GID GID
}

// ToInit, ToRTR and ToRTS are the three steps that bring a queue pair into use.
// The masks are those of TN3205 for UC; RC adds what Linux demands.

// ToInit is the step from RESET.
func ToInit(port uint8) (QPAttr, AttrMask) {
	return QPAttr{State: StateInit, Port: port, Access: QPAccess},
		MaskState | MaskPKeyIndex | MaskPort | MaskAccess
}

// ToRTR is the step from INIT: peer's endpoint, own entry of the GID table.
func ToRTR(t QPType, port uint8, attr PortAttr, own GIDEntry, peer Endpoint) (QPAttr, AttrMask) {
	a := QPAttr{
		State:   StateRTR,
		PathMTU: PathMTU(attr),
		DestQPN: peer.QPN,
		RQPSN:   peer.PSN,
		AV: AddressVector{
			DGID:      peer.GID,
			SGIDIndex: uint8(own.Index),
			HopLimit:  hopLimit(attr.LinkLayer),
			IsGlobal:  true,
			DLID:      peer.LID,
			Port:      port,
		},
	}
	mask := MaskState | MaskAV | MaskPathMTU | MaskDestQPN | MaskRQPSN
	if t == RC {
		a.MaxDestRDAtomic, a.MinRNRTimer = 1, 1 // 0.01 ms
		mask |= MaskMaxDestRDAtomic | MaskMinRNRTimer
	}
	return a, mask
}

// ToRTS is the step from RTR; psn is what we told the peer.
func ToRTS(t QPType, psn uint32) (QPAttr, AttrMask) {
	a := QPAttr{State: StateRTS, SQPSN: psn}
	mask := MaskState | MaskSQPSN
	if t == RC {
		// 14: 67 ms until the first retry; 7: as many RNR retries as it takes,
		// which is the credit flow control of Apple's hardware.
		a.Timeout, a.RetryCount, a.RNRRetry, a.MaxRDAtomic = 14, 7, 7, 1
		mask |= MaskTimeout | MaskRetryCount | MaskRNRRetry | MaskMaxRDAtomic
	}
	return a, mask
}

// PathMTU is the MTU to use on a port.
func PathMTU(attr PortAttr) MTU {
	if attr.LinkLayer == LinkThunderbolt {
		return min(ApplePathMTU, attr.ActiveMTU)
	}
	return attr.ActiveMTU
}

// hopLimit is 1 on a Thunderbolt cable (TN3205) and what routers allow on
// RoCE v2, where it is the packets' IP time to live.
func hopLimit(l LinkLayer) uint8 {
	if l == LinkThunderbolt {
		return 1
	}
	return 64
}
