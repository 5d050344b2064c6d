// Package cfake is the fake of package fake as a C library with the functions
// of libibverbs, so that the loader and the calling path of package abi are
// tested and measured as they are. It needs a C compiler when it is used, not
// when it is built: the source is part of the package.
//
// Nodes meet in shared memory. A node may be a part of this process
// (Fabric.Provider, each with its own copy of the library) or a process of its
// own, which loads Fabric.Path with the environment of Fabric.Environment.
// The wire costs nothing: between nodes of one process a slot is copied once,
// straight into the memory that was posted for it if that had been posted;
// between processes, and early slots, twice. Posting and polling make no system
// calls and take no lock that another process could hold.
//
// Unlike the fake in Go it can fault as Apple's provider has been seen to when
// a cable is pulled: PullFaulting.
package cfake

import (
	"crypto/rand"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/ebitengine/purego"

	"daisy/rdma/verbs/abi"
	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"
)

//go:embed c
var source embed.FS

// Build compiles the library into a directory and returns its path.
func Build(dir string) (string, error) {
	var files []string
	entries, err := fs.ReadDir(source, "c")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		text, err := fs.ReadFile(source, "c/"+e.Name())
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o600); err != nil {
			return "", err
		}
		if filepath.Ext(e.Name()) == ".c" {
			files = append(files, e.Name())
		}
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	const name = "libfakeverbs.so" // macOS loads it by any name too
	c := exec.Command(cc, append([]string{"-std=gnu11", "-O2", "-fPIC", "-shared", "-o", name}, files...)...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fake verbs: compile the library: %w\n%s", err, out)
	}
	return filepath.Join(dir, name), nil
}

// Fabric is a fake.Fabric in shared memory.
type Fabric struct {
	path    string // of the library
	name    string // of the shared memory
	control *control

	mu      sync.Mutex // guards the rest
	devices int
	nodes   map[string]*node
}

type node struct {
	library *abi.Library
	control *control
}

// control has the functions of the library that are not libibverbs's. They
// return 0 or an errno.
type control struct {
	create    func(name string) int32
	unlink    func(name string) int32
	attach    func(name, node string) int32
	detach    func() int32
	addDevice func(node, name string, ipv4 uint32, gidIndex, budget int32) int32
	wire      func(nodeA, nameA, nodeB, nameB string) int32
	pull      func(node, name string, faulting int32) int32
	freeze    func(node string) int32
	fail      func(node, name, call string, nth, errno int32) int32
}

func load(path string) (*control, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("fake verbs: %w", err)
	}
	c := &control{}
	for name, fn := range map[string]any{
		"fv_create": &c.create, "fv_unlink": &c.unlink, "fv_attach": &c.attach, "fv_detach": &c.detach,
		"fv_add_device": &c.addDevice, "fv_wire": &c.wire, "fv_pull": &c.pull, "fv_freeze": &c.freeze, "fv_fail": &c.fail,
	} {
		purego.RegisterLibFunc(fn, handle, name)
	}
	return c, nil
}

func check(what string, errno int32) error {
	if errno == 0 {
		return nil
	}
	return fmt.Errorf("fake verbs: %s: %w", what, syscall.Errno(errno))
}

// New compiles the library into dir and makes a fabric without nodes. Close it.
func New(dir string) (*Fabric, error) {
	path, err := Build(dir)
	if err != nil {
		return nil, err
	}
	return Make(path)
}

// Make is New with a library that Build compiled before. Its directory must
// live as long as the fabric.
func Make(path string) (*Fabric, error) {
	var id [6]byte
	_, _ = rand.Read(id[:])
	f := &Fabric{path: path, name: "/fakeverbs-" + hex.EncodeToString(id[:]), nodes: map[string]*node{}}
	copied, err := f.copied("fabric")
	if err != nil {
		return nil, err
	}
	if f.control, err = load(copied); err != nil {
		return nil, err
	}
	if err := check("make shared memory "+f.name, f.control.create(f.name)); err != nil {
		return nil, err
	}
	return f, nil
}

// copied makes a copy of the library under another name, which the system's
// loader takes for another library, with variables of its own.
func (f *Fabric) copied(as string) (string, error) {
	path := filepath.Join(filepath.Dir(f.path), filepath.Base(f.name)+"-"+as+".so")
	text, err := os.ReadFile(f.path)
	if err == nil {
		err = os.WriteFile(path, text, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("fake verbs: copy the library: %w", err)
	}
	return path, nil
}

// Path is the library, for a process that is a node of its own.
func (f *Fabric) Path() string { return f.path }

// Environment is what makes a process that loads Path the node.
func (f *Fabric) Environment(node string) []string {
	return []string{"FAKEVERBS_FABRIC=" + f.name, "FAKEVERBS_NODE=" + node}
}

// AddDevice implements fake.Fabric.
func (f *Fabric) AddDevice(p fake.Port, o fake.Options) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	o = o.Or(f.devices)
	a := o.IPv4.As4()
	if err := check("add a device", f.control.addDevice(p.Node, p.Device, binary.BigEndian.Uint32(a[:]), int32(o.GIDIndex), int32(o.Budget))); err != nil {
		return err
	}
	f.devices++
	return nil
}

// Wire implements fake.Fabric.
func (f *Fabric) Wire(a, b fake.Port) error {
	return check("plug a cable in", f.control.wire(a.Node, a.Device, b.Node, b.Device))
}

// Pull implements fake.Fabric.
func (f *Fabric) Pull(p fake.Port) error {
	return check("pull a cable", f.control.pull(p.Node, p.Device, 0))
}

// PullFaulting is Pull after which a post on either port is a fault that ends
// its process.
func (f *Fabric) PullFaulting(p fake.Port) error {
	return check("pull a cable", f.control.pull(p.Node, p.Device, 1))
}

// Freeze implements fake.Fabric.
func (f *Fabric) Freeze(node string) error { return check("freeze", f.control.freeze(node)) }

// Fail implements fake.Fabric.
func (f *Fabric) Fail(p fake.Port, call fake.Call, nth, errno int) error {
	return check("inject an error", f.control.fail(p.Node, p.Device, string(call), int32(nth), int32(errno)))
}

// Provider implements fake.Fabric: the library, loaded as the machine's own.
func (f *Fabric) Provider(name string) (provider.Provider, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[name]; n != nil {
		return n.library, nil
	}
	path, err := f.copied("node-" + name)
	if err != nil {
		return nil, err
	}
	c, err := load(path)
	if err != nil {
		return nil, err
	}
	if err := check("join the fabric", c.attach(f.name, name)); err != nil {
		return nil, err
	}
	l, err := abi.LoadPath(path)
	if err != nil {
		return nil, err
	}
	f.nodes[name] = &node{library: l, control: c}
	return l, nil
}

// Close implements fake.Fabric. It gives the shared memory back.
func (f *Fabric) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := check("remove shared memory", f.control.unlink(f.name))
	for _, n := range f.nodes {
		n.control.detach()
	}
	f.control.detach()
	f.nodes = nil
	return err
}
