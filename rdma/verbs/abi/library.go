package abi

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"daisy/rdma/verbs/provider"
)

// Library is a loaded verbs library. It stays loaded: providers keep threads
// and mappings that do not survive being unloaded.
type Library struct {
	path  string
	errno uintptr // the C library's function that gives the address of this thread's
	call  calls
	mu    sync.Mutex // of listing and opening devices
}

// calls are the addresses of what the library exports.
type calls struct {
	getDeviceList, freeDeviceList, getDeviceName uintptr
	openDevice, closeDevice                      uintptr
	queryDevice, queryPort, queryGID             uintptr
	allocPD, deallocPD                           uintptr
	regMR, deregMR                               uintptr
	createCQ, destroyCQ                          uintptr
	createQP, modifyQP, queryQP, destroyQP       uintptr
}

func (c *calls) byName() map[string]*uintptr {
	return map[string]*uintptr{
		"ibv_get_device_list": &c.getDeviceList, "ibv_free_device_list": &c.freeDeviceList,
		"ibv_get_device_name": &c.getDeviceName,
		"ibv_open_device":     &c.openDevice, "ibv_close_device": &c.closeDevice,
		"ibv_query_device": &c.queryDevice, "ibv_query_port": &c.queryPort, "ibv_query_gid": &c.queryGID,
		"ibv_alloc_pd": &c.allocPD, "ibv_dealloc_pd": &c.deallocPD,
		"ibv_reg_mr": &c.regMR, "ibv_dereg_mr": &c.deregMR,
		"ibv_create_cq": &c.createCQ, "ibv_destroy_cq": &c.destroyCQ,
		"ibv_create_qp": &c.createQP, "ibv_modify_qp": &c.modifyQP,
		"ibv_query_qp": &c.queryQP, "ibv_destroy_qp": &c.destroyQP,
	}
}

// names are where the system keeps its library. The file of macOS lives in the
// shared cache of its linker and on no disk, so only loading tells whether it
// is there.
func names() []string {
	if runtime.GOOS == "darwin" {
		return []string{"/usr/lib/librdma.dylib", "librdma.dylib"}
	}
	return []string{"libibverbs.so.1"}
}

// Load loads the system's library. An error matches provider.ErrUnavailable.
func Load() (*Library, error) {
	// Its symbols are global as with all known users of Apple's: it loads
	// provider libraries of its own, which may look for them.
	return load(purego.RTLD_GLOBAL, names()...)
}

// LoadPath loads a library of another name, such as a fake. Several may be
// loaded, so each keeps its symbols to itself.
func LoadPath(path string) (*Library, error) { return load(purego.RTLD_LOCAL, path) }

func load(scope int, paths ...string) (*Library, error) {
	var reasons []string
	for _, path := range paths {
		handle, err := purego.Dlopen(path, purego.RTLD_NOW|scope)
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		l := &Library{path: path}
		if err := l.resolve(handle); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", provider.ErrUnavailable, path, err)
		}
		return l, nil
	}
	return nil, fmt.Errorf("%w: %s", provider.ErrUnavailable, strings.Join(reasons, "; "))
}

func (l *Library) resolve(handle uintptr) error {
	for name, to := range l.call.byName() {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return err
		}
		*to = symbol
	}
	name := "__errno_location"
	if runtime.GOOS == "darwin" {
		name = "__error"
	}
	symbol, err := purego.Dlsym(purego.RTLD_DEFAULT, name)
	if err != nil {
		return err
	}
	l.errno = symbol
	return nil
}

// Path is the name that it was loaded by.
func (l *Library) Path() string { return l.path }

// do calls a function of the control path and gives its result and what errno
// it left, 0 if it set none.
func (l *Library) do(fn uintptr, args ...uintptr) (result uintptr, errno int) {
	runtime.LockOSThread() // errno belongs to the thread
	defer runtime.UnlockOSThread()
	address, _, _ := purego.SyscallN(l.errno)
	p := *(**int32)(unsafe.Pointer(&address))
	*p = 0
	result, _, _ = purego.SyscallN(fn, args...)
	return result, int(*p)
}

// status calls a function that returns int: 0, an errno of either sign, or -1
// with errno set. It gives the errno.
func (l *Library) status(fn uintptr, args ...uintptr) int {
	r, errno := l.do(fn, args...)
	rc := int(int32(r))
	if rc == -1 && errno != 0 {
		return errno
	}
	return max(rc, -rc)
}

// Devices implements provider.Provider.
func (l *Library) Devices() ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	err := l.list(func(_ uintptr, name string) bool {
		out = append(out, name)
		return true
	})
	return out, err
}

// list gives each device until visit says false. The handles are good only
// during that. The caller holds mu.
func (l *Library) list(visit func(device uintptr, name string) bool) error {
	n, err := newPage[int32]()
	if err != nil {
		return err
	}
	defer n.free()
	list, errno := l.do(l.call.getDeviceList, addr(n.v))
	if list == 0 {
		if errno == 0 || errno == enosys() {
			return nil // a kernel without RDMA has no devices
		}
		return provider.NewError("verbs", provider.OpListDevices, errno, runtime.GOOS == "darwin")
	}
	defer l.do(l.call.freeDeviceList, list)
	for i := range uintptr(max(0, *n.v)) {
		device := at[uintptr](list, 8*i)
		if device == 0 {
			break
		}
		name, _ := l.do(l.call.getDeviceName, device)
		if !visit(device, text(name)) {
			break
		}
	}
	return nil
}

func enosys() int {
	if runtime.GOOS == "darwin" {
		return 78
	}
	return 38
}

// Open implements provider.Provider.
func (l *Library) Open(name string) (provider.Context, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &context{l: l, device: name, apple: runtime.GOOS == "darwin"}
	found, errno := false, 0
	err := l.list(func(device uintptr, n string) bool {
		if n != name {
			return true
		}
		found = true
		c.handle, errno = l.do(l.call.openDevice, device)
		return false
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("%w: %s", provider.ErrNoDevice, name)
	case c.handle == 0:
		return nil, c.fail(provider.OpOpen, errno)
	}
	if err := c.prepare(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}
