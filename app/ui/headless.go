//go:build headless

package ui

import "context"

// Available says whether this build has windows.
const Available = false

// Run returns ErrNoWindows.
func Run(context.Context, Config) error { return ErrNoWindows }
