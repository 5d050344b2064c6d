package mem

import (
	"testing"

	"daisy/rdma"
	"daisy/rdma/transporttest"
)

var harness = transporttest.Harness{
	Kind: "mem",
	Open: func(_ testing.TB, worldSize int) []rdma.Transport { return New(worldSize) },
	Kill: func(t rdma.Transport) { t.(*Transport).Kill() },
}

func TestConformance(t *testing.T) { transporttest.Run(t, harness) }

func BenchmarkAllReduce(b *testing.B) { transporttest.Bench(b, harness) }
