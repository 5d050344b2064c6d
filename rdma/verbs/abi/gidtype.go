package abi

import (
	"fmt"
	"os"
	"strings"

	"daisy/rdma/verbs/provider"
)

// gidType is what Linux says of a GID; nothing elsewhere. An empty entry cannot
// be read there.
func gidType(device string, port uint8, index int) provider.GIDType {
	b, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device, port, index))
	if err != nil {
		return provider.GIDUnknown
	}
	switch s := strings.TrimSpace(string(b)); {
	case s == "RoCE v2":
		return provider.GIDRoCEv2
	case strings.HasSuffix(s, "RoCE v1"):
		return provider.GIDRoCEv1
	}
	return provider.GIDInfiniBand
}
