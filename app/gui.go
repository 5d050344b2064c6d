package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"daisy/app/history"
	"daisy/app/local"
	"daisy/app/session"
	"daisy/app/ui"
	"daisy/node"
)

// version is shown to people.
const version = "0.1.0"

// openApp runs the app until the person quits. Windows need the main thread,
// which is the one that main runs on.
func openApp(ctx context.Context, place folder, flags *nodeFlags, back bool) (err error) {
	if !ui.Available {
		return ui.ErrNoWindows
	}
	dir, err := place.open()
	if err != nil {
		return err
	}
	store, err := history.Open(ctx, historyPath(dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	lib, err := flags.library(dir)
	if err != nil {
		return err
	}
	var invitations session.Invitations
	n, err := flags.start(ctx, dir, lib, invitations.Consent, os.Stderr)
	if err != nil {
		return err
	}
	defer n.Close()
	commands, err := local.Serve(n, dir)
	if err != nil {
		return err
	}
	defer commands.Close()
	s := session.New(session.Config{Store: store, System: defaultSystem})
	defer s.Close()
	cluster := session.NewCluster(session.FromNode(n, node.JoinOptions{}), session.FromLibrary(lib, modelsPath(dir)), s)
	defer cluster.Close()

	pairings := session.NewPairings(session.PairerOf(n), func(id string) { cluster.Tick(id, true) })
	defer pairings.Close()

	kept := keeper{path: standingPath(dir)}
	config := ui.Config{Session: s, Cluster: cluster, Invitations: &invitations, Pairings: pairings, Version: version, OpenChat: true, Keep: kept.keep}
	if back {
		config.Back = stoodAt(dir)
	}
	var line *lifeline
	config.Ready = func() { // not before: a fault in starting is not one to come back from
		var err error
		if line, err = watchOver(dir, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "daisy:", err) // the app works without
		}
	}
	err = ui.Run(ctx, config)
	line.let() // first of all: who quits does not come back, whatever happens in closing
	kept.forget()
	if errors.Is(err, ui.ErrNoDisplay) {
		return fmt.Errorf("%w: try `daisy demo`, or `daisy serve` for a node without a screen", err)
	}
	return err
}

func init() {
	runtime.LockOSThread() // main must stay on the main thread for the windows' sake
}
