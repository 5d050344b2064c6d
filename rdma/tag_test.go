package rdma_test

import (
	"testing"

	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

func TestOpNames(t *testing.T) {
	for op, name := range map[rdma.Op]string{
		rdma.OpSend: "send/receive", rdma.OpAllReduce: "all-reduce", rdma.OpReduceScatter: "reduce-scatter",
		rdma.OpAllReduce | rdma.Op(rdma.F16)<<4:      "all-reduce in f16",
		rdma.OpReduceScatter | rdma.Op(rdma.BF16)<<4: "reduce-scatter in bf16",
		rdma.OpAllReduce | 7<<4:                      "all-reduce in wire type 7",
		0:                                            "operation 0", 0x2f: "operation 47",
	} {
		require.Equal(t, name, op.String())
	}
	require.Equal(t, []int{4, 2, 2}, []int{rdma.F32.Bytes(), rdma.F16.Bytes(), rdma.BF16.Bytes()})
}
