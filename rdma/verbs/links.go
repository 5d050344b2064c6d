package verbs

import (
	"slices"
	"strings"

	"daisy/rdma"
)

// describe says what each pair has got.
func (j *joining) describe() []rdma.Link {
	var base []rdma.Link
	if l, ok := j.base.(rdma.Linker); ok {
		base = l.Links()
	}
	var links []rdma.Link
	for p, why := range j.reasons {
		if p == j.base.Rank() {
			continue
		}
		if why != "" {
			link := rdma.Link{Peer: p, Kind: j.base.Kind()}
			if i := slices.IndexFunc(base, func(l rdma.Link) bool { return l.Peer == p }); i >= 0 {
				link = base[i]
			}
			link.Reason = why
			links = append(links, link)
			continue
		}
		var devices []string
		for _, r := range j.rails[p] {
			devices = append(devices, r.device.name)
		}
		links = append(links, rdma.Link{Peer: p, Kind: "verbs", Device: strings.Join(devices, "+"),
			Latency: j.links[p].Latency, Bandwidth: j.links[p].Bandwidth})
	}
	return links
}

// Links implements rdma.Linker. The figures are those of the probe that ended
// the bring-up; a pair that is left to the base has the reason.
func (t *Transport) Links() []rdma.Link { return slices.Clone(t.links) }

var (
	_ rdma.Transport = (*Transport)(nil)
	_ rdma.Linker    = (*Transport)(nil)
)
