package ui

import (
	"errors"

	"daisy/app/session"
)

// Errors of Run before any window is there.
var (
	// ErrNoWindows: the program was built without windows; use the command
	// line.
	ErrNoWindows = errors.New("this build of Daisy has no windows")
	// ErrNoDisplay: there is no screen to open a window on; use the command
	// line.
	ErrNoDisplay = errors.New("there is no display")
)

// Config of the app. The parts stay the caller's, which closes them after Run.
type Config struct {
	Session     *session.Session
	Cluster     *session.Cluster
	Invitations *session.Invitations
	Pairings    *session.Pairings
	Version     string // as shown to people
	OpenChat    bool   // show the chat window at once
	OpenCluster bool   // show the cluster window at once
	// Back, which may be nil, is how the app stood when its process died: it
	// comes back like that, instead of OpenChat and OpenCluster.
	Back *session.Standing
	// Keep, which may be nil, is told on fyne's goroutine how the app stands,
	// whenever that may have changed.
	Keep func(session.Standing)
	// Ready, which may be nil, is called on fyne's goroutine once the menu and
	// the windows asked for are there.
	Ready func()
}
