package verbs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"daisy/rdma"
	"daisy/rdma/verbs/provider"
)

// A joining is a Connect in progress.
type joining struct {
	host *Host
	base rdma.Transport
	o    Options
	own  []localPort
	ours hello
	all  []hello
	// By peer:
	plans   [][]railPlan
	rails   [][]*rail
	offers  []offer
	pairs   []*pair
	reasons []string // why there are no verbs; empty while there may be
	links   []verdict
	marker  *marker
	rounds  rounds
}

// connect makes the transport, with host nil when there is no library.
func connect(host *Host, missing error, base rdma.Transport, o Options) (rdma.Transport, error) {
	n := base.WorldSize()
	j := &joining{host: host, base: base, o: o, all: make([]hello, n), plans: make([][]railPlan, n),
		rails: make([][]*rail, n), offers: make([]offer, n), pairs: make([]*pair, n),
		reasons: make([]string, n), links: make([]verdict, n), rounds: rounds{base: base, skip: make([]bool, n)}}
	timer := time.AfterFunc(o.timeout(), func() {
		base.Abort(fmt.Errorf("bringing up RDMA took longer than %v", o.timeout()))
	})
	defer timer.Stop()
	t, err := j.run(missing)
	if err != nil {
		base.Abort(err)
		j.undo()
		return nil, fmt.Errorf("verbs: rank %d of %d: %w", base.Rank(), n, err)
	}
	return t, nil
}

// run takes all pairs through the steps together. A step that fails for a pair
// leaves its reason; the messages go on all the same, so that both sides learn
// of it, and what the pair has made is given back. An error means that the
// group has ended.
func (j *joining) run(missing error) (*Transport, error) {
	steps := []func() error{
		func() error { return j.sayHello(missing) },
		j.makeRails,
		j.connectRails,
		j.probeAll,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for p, r := range j.reasons {
		if r != "" && p != j.base.Rank() && j.o.Require {
			return nil, fmt.Errorf("%w for rank %d: %s", ErrRequired, p, r)
		}
	}
	return j.finish(), nil
}

// each visits the peers that may still have verbs.
func (j *joining) each(f func(peer int)) {
	for p := range j.reasons {
		if p != j.base.Rank() && j.reasons[p] == "" {
			f(p)
		}
	}
}

// drop leaves a pair to the base and gives back what it has.
func (j *joining) drop(peer int, why string) {
	if j.reasons[peer] == "" {
		j.reasons[peer] = why
	}
	for _, r := range j.rails[peer] {
		_ = r.free() // the reason above is the one that counts
	}
	j.rails[peer], j.pairs[peer] = nil, nil
}

func (j *joining) undo() {
	for p := range j.rails {
		j.drop(p, "the group has ended")
	}
	j.marker.remove()
}

func (j *joining) sayHello(missing error) error {
	if missing == nil {
		j.own, missing = j.host.inventory(j.o, time.Now())
	}
	j.ours = hello{Version: version, Epoch: j.o.Epoch, Checksum: j.o.Checksum, Shapes: shapes,
		Cables: j.o.Cables, Reason: reason(missing)}
	for _, p := range j.own {
		j.ours.Ports = append(j.ours.Ports, p.portInfo)
	}
	j.all[j.base.Rank()] = j.ours
	return exchange(&j.rounds, func(int) hello { return j.ours }, func(p int, in hello, err error) {
		if err == nil {
			err = j.ours.check(in)
		}
		if err != nil {
			j.reasons[p] = reason(err)
			in.Ports, in.Cables = nil, nil
			// What another version says after its hello is not known here.
			j.rounds.skip[p] = in.Version != version
		}
		j.all[p] = in
	})
}

// makeRails matches the ports, makes the queue pairs and tells the peers.
func (j *joining) makeRails() error {
	self := j.base.Rank()
	sides := make([]side, len(j.all))
	for r, h := range j.all {
		sides[r] = side{h.Ports, h.Cables}
	}
	need := map[*device]int{}
	j.each(func(p int) {
		plans, err := match(sides, min(self, p), max(self, p))
		if err != nil {
			j.reasons[p] = j.withReasons(p, err)
			return
		}
		j.plans[p] = plans
		for i, plan := range plans {
			need[j.local(p, plan).device] += railBytes(i, len(plans))
		}
	})
	if err := j.mark(need); err != nil {
		j.each(func(p int) { j.reasons[p] = reason(err) })
	}
	for d, n := range need {
		if err := d.reserve(n); err != nil {
			j.each(func(p int) {
				if j.uses(p, d) {
					j.drop(p, reason(err))
				}
			})
		}
	}
	j.each(func(p int) {
		for i, plan := range j.plans[p] {
			l := j.local(p, plan)
			r, err := newRail(l.device, plan.kind, l.gid, i, len(j.plans[p]))
			if err != nil {
				j.drop(p, reason(err))
				return
			}
			j.rails[p] = append(j.rails[p], r)
		}
	})
	return exchange(&j.rounds, func(p int) offer {
		out := offer{Reason: j.reasons[p]}
		for i, r := range j.rails[p] {
			lid := j.local(p, j.plans[p][i]).attr.LID
			out.Rails = append(out.Rails, [nClasses]provider.Endpoint{r.lanes[small].endpoint(lid), r.lanes[bulk].endpoint(lid)})
		}
		return out
	}, func(p int, in offer, err error) {
		switch {
		case err != nil:
			j.drop(p, reason(err))
		case in.Reason != "":
			j.drop(p, fmt.Sprintf("rank %d: %s", p, in.Reason))
		case j.reasons[p] == "" && len(in.Rails) != len(j.rails[p]):
			j.drop(p, fmt.Sprintf("it offers %d cables, this rank %d", len(in.Rails), len(j.rails[p])))
		}
		j.offers[p] = in
	})
}

// withReasons adds why ports are missing to why none match.
func (j *joining) withReasons(peer int, err error) string {
	theirs := j.all[peer]
	switch {
	case len(j.ours.Ports) == 0:
		return j.ours.Reason
	case len(theirs.Ports) == 0:
		return fmt.Sprintf("rank %d: %s", peer, theirs.Reason)
	}
	if j.ours.Reason != "" {
		err = fmt.Errorf("%w; here: %s", err, j.ours.Reason)
	}
	if theirs.Reason != "" {
		err = fmt.Errorf("%w; on rank %d: %s", err, peer, theirs.Reason)
	}
	return reason(err)
}

// local is this rank's port of a planned rail.
func (j *joining) local(peer int, plan railPlan) localPort {
	if j.base.Rank() < peer {
		return j.own[plan.low]
	}
	return j.own[plan.high]
}

func (j *joining) uses(peer int, d *device) bool {
	for _, plan := range j.plans[peer] {
		if j.local(peer, plan).device == d {
			return true
		}
	}
	return false
}

func (j *joining) mark(need map[*device]int) (err error) {
	var names []string
	for d := range need {
		names = append(names, d.name)
	}
	if len(names) > 0 {
		j.marker, err = mark(j.o.MarkerDir, names)
	}
	return err
}

// connectRails brings the queue pairs up. Nobody sends before both sides have
// posted their receives, which is what the message at the end says.
func (j *joining) connectRails() error {
	j.each(func(p int) {
		for i, r := range j.rails[p] {
			attr := j.local(p, j.plans[p][i]).attr
			if err := r.connect(attr, j.offers[p].Rails[i], j.o.stepTimeout(), j.base.Done()); err != nil {
				j.drop(p, reason(err))
				return
			}
		}
		j.pairs[p] = newPair(p, j.o.Epoch, j.o.Checksum || j.all[p].Checksum, j.rails[p])
	})
	return j.agree(nil)
}

// probeAll measures every pair. All ranks take the pairs in the same order, so
// that both sides of one are at it together.
func (j *joining) probeAll() error {
	prober := &Transport{base: j.base}
	j.each(func(p int) {
		latency, bandwidth, err := prober.probe(j.pairs[p], j.base.Rank() < p)
		j.links[p] = verdict{Latency: latency, Bandwidth: bandwidth}
		if err != nil {
			j.links[p].Reason = reason(fmt.Errorf("the probe failed: %w", err))
		}
	})
	return j.agree(j.links)
}

// agree tells every peer whether the pair is up so far, and drops pairs of
// which either side says no.
func (j *joining) agree(results []verdict) error {
	return exchange(&j.rounds, func(p int) verdict {
		v := verdict{Reason: j.reasons[p]}
		if results != nil && v.Reason == "" {
			v = results[p]
		}
		return v
	}, func(p int, in verdict, err error) {
		if err == nil && in.Reason != "" {
			err = fmt.Errorf("rank %d: %s", p, in.Reason)
		}
		if results != nil && results[p].Reason != "" {
			err = errors.Join(errors.New(results[p].Reason), err)
		}
		if err != nil {
			j.drop(p, strings.ReplaceAll(reason(err), "\n", "; "))
		}
	})
}

// finish makes the transport of what is up.
func (j *joining) finish() *Transport {
	t := &Transport{base: j.base, pairs: j.pairs, kind: j.base.Kind(), eager: j.base.EagerLimit(), marker: j.marker}
	up := 0
	j.each(func(int) { up++ })
	switch {
	case up == 0:
		t.marker.remove()
		t.marker = nil
	case up == len(j.pairs)-1:
		t.kind, t.eager = "verbs", eagerBytes
	default:
		t.kind, t.eager = "verbs+"+t.kind, min(t.eager, eagerBytes)
		t.startMixed()
	}
	t.links = j.describe()
	if up > 0 {
		ports := t.ports()
		t.wg.Go(func() { t.watchPorts(ports) })
	}
	return t
}
