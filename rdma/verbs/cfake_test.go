package verbs_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"daisy/rdma"
	"daisy/rdma/transporttest"
	"daisy/rdma/verbs"
	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/fake/cfake"

	"github.com/stretchr/testify/require"
)

// library compiles the fake library once. It stays loaded, so its directory
// stays until the process ends.
var library = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fakeverbs-")
	if err != nil {
		return "", err
	}
	libraryDir = dir
	return cfake.Build(dir)
})

var libraryDir string

func TestMain(m *testing.M) {
	verbs.SetFarewellLimit(time.Second)
	verbs.ShortenProbe()
	code := m.Run()
	if libraryDir != "" {
		os.RemoveAll(libraryDir)
	}
	os.Exit(code)
}

// inC is a fabric behind a C library, which package abi loads like the real one.
func inC(tb testing.TB) fake.Fabric {
	path, err := library()
	require.NoError(tb, err)
	f, err := cfake.Make(path)
	require.NoError(tb, err)
	return f
}

func TestConformanceOverLibrary(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Kind: "verbs",
		Open: func(tb testing.TB, worldSize int) []rdma.Transport {
			return newCabling(tb, inC(tb), worldSize).mesh().open().mustConnect(tb)
		},
		Kill:     kill,
		Worlds:   worlds([]int{2, 3}, []int{2, 3, 8}),
		MaxBytes: raceBytes,
	})
}

// TestPortAllocatesNothing: the state of a port is asked for as long as a group
// lives.
func TestPortAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	f := inC(t)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.NoError(t, f.AddDevice(fake.Port{Node: "a", Device: "rdma_en1"}, fake.Options{}))
	p, err := f.Provider("a")
	require.NoError(t, err)
	ctx, err := p.Open("rdma_en1")
	require.NoError(t, err)
	defer func() { require.NoError(t, ctx.Close()) }()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := ctx.QueryPort(1); err != nil {
			t.Error(err)
		}
	}))
}
