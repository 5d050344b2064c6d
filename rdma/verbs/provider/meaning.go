package provider

import "strconv"

// The errors that the known failures come with. Linux and macOS agree up to 34.
const (
	ePerm    = 1
	eNoEnt   = 2
	eNoMem   = 12
	eAccess  = 13
	eBusy    = 16
	eNoDev   = 19
	eInvalid = 22
)

// meaning is what a failure stands for and what a person can do.
type meaning struct {
	kind error
	text string
}

// number is the errno with its name, where it matters here.
func (e *Error) number() string {
	n := strconv.Itoa(e.Errno)
	if name := e.name(); name != "" {
		return n + " (" + name + ")"
	}
	return n
}

func (e *Error) name() string {
	switch e.Errno {
	case ePerm:
		return "EPERM"
	case eNoEnt:
		return "ENOENT"
	case eNoMem:
		return "ENOMEM"
	case eAccess:
		return "EACCES"
	case eBusy:
		return "EBUSY"
	case eNoDev:
		return "ENODEV"
	case eInvalid:
		return "EINVAL"
	}
	switch e.general() {
	case timedOut:
		return "ETIMEDOUT"
	case unsupported:
		return "EOPNOTSUPP"
	case noData:
		return "ENODATA"
	}
	return ""
}

// The numbers above 34 differ between the systems.
type general int

const (
	other general = iota
	timedOut
	unsupported
	noData
)

func (e *Error) general() general {
	if e.Apple {
		switch e.Errno {
		case 60:
			return timedOut
		case 45, 102: // ENOTSUP and EOPNOTSUPP
			return unsupported
		case 96:
			return noData
		}
		return other
	}
	switch e.Errno {
	case 110:
		return timedOut
	case 38, 95: // ENOSYS and EOPNOTSUPP
		return unsupported
	case 61:
		return noData
	}
	return other
}

// meaning is the table of known failures: for Apple's provider as users
// reported them, for Linux as its manual pages have them.
func (e *Error) meaning() meaning {
	g := e.general()
	switch {
	case e.Errno == eNoDev && e.Op == OpOpen:
		return meaning{ErrNoDevice, ErrNoDevice.Error()}
	case g == unsupported && e.Op == OpCreateQP:
		return meaning{ErrUnsupported, "the device does not offer this kind of queue pair (Apple's has UC alone)"}
	case g == unsupported:
		return meaning{ErrUnsupported, ErrUnsupported.Error()}
	}
	switch e.Op {
	case OpAllocPD:
		return e.allocPD()
	case OpCreateQP:
		switch e.Errno {
		case eBusy:
			return meaning{ErrLimit, "all queue pairs of the device are in use (Apple's has 10, for all processes together); trying again cannot help"}
		case eNoMem:
			return meaning{ErrLimit, "the device has no room for a queue pair of this size"}
		}
	case OpCreateCQ:
		if e.Errno == eBusy || e.Errno == eNoMem {
			return meaning{ErrLimit, "all completion queues of the device are in use (Apple's has 11)"}
		}
	case OpRegMR:
		switch {
		case e.Errno == eNoMem && e.Apple:
			return meaning{ErrLimit, "all memory registrations of the device are in use (Apple's has 100): register fewer, larger pieces"}
		case e.Errno == eNoMem:
			return meaning{ErrLimit, "not so much memory may be locked: see ulimit -l"}
		case e.Errno == eInvalid && e.Apple:
			return meaning{ErrInvalid, "the memory cannot be registered: it must be page-aligned, must not cross a 4 GiB boundary, and the access flags must suit the provider"}
		}
	case OpModifyRTR:
		return e.modifyRTR()
	case OpPostSend, OpPostRecv:
		if e.Errno == eInvalid {
			return meaning{ErrInvalid, "the slot is not in memory that was registered before the queue pair became ready, or the queue pair is not ready"}
		}
	case OpDestroyQP, OpDeregMR, OpDestroyCQ, OpDeallocPD, OpClose:
		if e.Errno == eBusy {
			return meaning{ErrInUse, ErrInUse.Error()}
		}
		if e.Op == OpDeregMR && e.Apple {
			return meaning{ErrStale, "the driver did not release the memory; seen after a queue pair was moved to the error state"}
		}
	}
	switch e.Errno {
	case eInvalid:
		return meaning{ErrInvalid, ErrInvalid.Error()}
	case eBusy:
		return meaning{ErrStale, ErrStale.Error()}
	case ePerm, eAccess:
		return meaning{nil, "this user may not use RDMA devices"}
	}
	return meaning{}
}

// allocPD: Apple's alloc_pd gives NULL on a port that is down, and also when
// all domains are in use; the device opens without complaint in both cases.
func (e *Error) allocPD() meaning {
	switch {
	case e.PortDown:
		return meaning{ErrPortDown, ErrPortDown.Error()}
	case e.Apple:
		return meaning{ErrLimit, "all protection domains of the device are in use (Apple's has 11): end the processes that hold them, without kill -9, or restart the Mac"}
	}
	return meaning{ErrLimit, "the device has no more protection domains"}
}

func (e *Error) modifyRTR() meaning {
	switch g := e.general(); {
	case e.Errno == eInvalid && e.Apple:
		return meaning{ErrAddress, "the GID or its index is not usable here: the network interface of this port needs an IPv4 address of its own and must not be owned by the Thunderbolt bridge"}
	case e.Errno == eInvalid, g == noData && !e.Apple:
		return meaning{ErrAddress, "the GID or its index is not usable here, or the path MTU exceeds the port's"}
	case g == timedOut:
		return meaning{ErrUnreachable, "the peer's address does not answer on this port: check that both ends mean the same cable, and the route"}
	case g == noData && e.Apple:
		return meaning{ErrStale, "the driver's queue pairs or domains are used up by processes that failed or leaked: end them without kill -9, or restart the Mac"}
	case e.Errno == eBusy && e.Apple:
		return meaning{ErrStale, "the driver has stale resources, seen after a crash: restart the Mac"}
	}
	return meaning{}
}
