//go:build !headless

package ui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fyne.io/fyne/v2"

	"daisy/app/history"
	"daisy/app/session"
	"daisy/node"
	"daisy/node/models"
)

const (
	childEnv = "DAISY_UI_CHILD"      // folder of the app that a child process runs
	nameEnv  = "DAISY_UI_CHILD_NAME" // of its node
)

// child is the whole app on this process's main goroutine, as package main puts
// it together: a node on the loopback interface, the history, the windows.
func child(dir string) int {
	if err := runChild(context.Background(), dir); err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

func runChild(ctx context.Context, dir string) error {
	store, err := history.Open(ctx, filepath.Join(dir, "history.sqlite"))
	if err != nil {
		return err
	}
	defer store.Close()
	var invitations session.Invitations
	library := models.New(filepath.Join(dir, "models"))
	n, err := node.Start(ctx, node.Config{
		Dir: dir, Name: os.Getenv(nameEnv), Interfaces: []string{"lo"}, Models: library, Consent: invitations.Consent, Threads: 1,
	})
	if err != nil {
		return err
	}
	defer n.Close()
	s := session.New(session.Config{Store: store, MaxTokens: 40})
	defer s.Close()
	c := session.NewCluster(session.FromNode(n, node.JoinOptions{Threads: 1}), session.FromLibrary(library, filepath.Join(dir, "models")), s)
	defer c.Close()
	pairings := session.NewPairings(session.PairerOf(n), func(id string) { c.Tick(id, true) })
	defer pairings.Close()

	stalls := make(chan time.Duration, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		fmt.Println("longest stall", <-stalls)
	}()
	ready := make(chan struct{})
	go func() { // the deferred receive waits for it
		select {
		case <-ready:
		case <-ctx.Done():
		}
		stalls <- longestStall(ctx)
	}()
	return Run(ctx, Config{
		Session: s, Cluster: c, Invitations: &invitations, Pairings: pairings, Version: "test",
		Ready: func() { fmt.Println("ready"); close(ready) },
	})
}

// longestStall watches how long fyne's goroutine keeps a caller waiting.
func longestStall(ctx context.Context) (longest time.Duration) {
	tick := time.NewTicker(7 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return longest
		case <-tick.C:
			asked := time.Now()
			answered := make(chan struct{})
			fyne.Do(func() { close(answered) })
			select {
			case <-answered:
				longest = max(longest, time.Since(asked))
			case <-ctx.Done():
				return longest
			}
		}
	}
}
