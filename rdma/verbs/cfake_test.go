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
	verbs.SetFarewellLimit(2 * time.Second)
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
		Kill:   kill,
		Worlds: []int{2, 3, 8},
	})
}
