package tcp_test

import (
	"testing"

	"daisy/rdma/transporttest"
)

func BenchmarkAllReduce(b *testing.B) {
	transporttest.Bench(b, harness(false))
	transporttest.Bench(b, harness(true))
}
