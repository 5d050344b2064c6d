package session

import (
	"context"

	"daisy/node"
	"daisy/node/models"
)

// FromNode shows a running node to a Cluster. The node stays the caller's.
func FromNode(n *node.Node, opt node.JoinOptions) Node { return realNode{n, opt} }

type realNode struct {
	node *node.Node
	opt  node.JoinOptions
}

func (r realNode) Self() Peer { return fromPeer(r.node.Self()) }

func (r realNode) Peers() []Peer {
	var list []Peer
	for _, p := range r.node.Peers() {
		list = append(list, fromPeer(p))
	}
	return list
}

func fromPeer(p node.Peer) Peer {
	return Peer{ID: string(p.ID), Name: p.Name, State: string(p.State), Reason: p.Reason, Ready: p.State == node.PeerReady}
}

func (r realNode) Subscribe(changed func(*Progress)) (cancel func()) {
	return r.node.Subscribe(func(e node.Event) {
		switch e := e.(type) {
		case node.Progress:
			changed(&Progress{Stage: string(e.Stage), Waiting: e.Waiting, Done: e.Loaded, Total: e.Total})
		default:
			changed(nil)
		}
	})
}

func (r realNode) Join(ctx context.Context, members []string, model Model) (Group, error) {
	ids := make([]node.ID, len(members))
	for i, m := range members {
		ids[i] = node.ID(m)
	}
	c, err := r.node.Join(ctx, ids, models.Model{
		Name: model.Name, Path: model.Path, Fingerprint: model.Fingerprint, Bytes: model.Bytes, Architecture: model.Architecture,
	}, r.opt)
	if err != nil {
		return nil, err
	}
	return realGroup{c}, nil
}

func (r realNode) Group() Group {
	if c := r.node.Cluster(); c != nil {
		return realGroup{c}
	}
	return nil
}

type realGroup struct{ *node.Cluster }

func (g realGroup) Leader() string   { return string(g.Cluster.Leader()) }
func (g realGroup) Model() string    { return g.Cluster.Model().Name }
func (g realGroup) NoTemplate() bool { return g.Cluster.Info().NoTemplate }

func (g realGroup) Members() []Member {
	var list []Member
	for _, m := range g.Cluster.Members() {
		list = append(list, Member{ID: string(m.ID), Name: m.Name, Rank: m.Rank, WeightBytes: m.WeightBytes})
	}
	return list
}

// FromLibrary shows a node's model files to a Cluster; folder is the one that
// people are told of.
func FromLibrary(l *models.Library, folder string) Library { return realLibrary{l, folder} }

type realLibrary struct {
	library *models.Library
	folder  string
}

func (l realLibrary) List() ([]Model, error) {
	all, err := l.library.List()
	var list []Model
	for _, m := range all {
		list = append(list, Model{Name: m.Name, Path: m.Path, Fingerprint: m.Fingerprint, Architecture: m.Architecture, Bytes: m.Bytes})
	}
	return list, err
}

func (l realLibrary) Add(path string) (string, error) {
	m, err := l.library.Add(path)
	return m.Path, err
}

func (l realLibrary) Folder() string { return l.folder }

// Consent is a node's Config.Consent that asks through v.
func (v *Invitations) Consent(ctx context.Context, in node.Invitation) bool {
	return v.Ask(ctx, Invitation{Leader: in.Leader.Name, Model: in.Model, Bytes: in.ModelBytes, Nodes: in.Nodes})
}
