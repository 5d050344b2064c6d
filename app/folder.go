package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// folder is where one Daisy keeps its identity, models and history.
type folder struct{ path string }

func (f *folder) flag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.path, "dir", os.Getenv("DAISY_DIR"),
		"folder of identity, models and history (default: the user's configuration folder, or $DAISY_DIR)")
}

// open makes the folder if need be.
func (f folder) open() (string, error) {
	path := f.path
	if path == "" {
		base, err := os.UserConfigDir()
		if err != nil {
			return "", fmt.Errorf("no folder for Daisy: %w (name one with --dir)", err)
		}
		path = filepath.Join(base, "Daisy")
	}
	return path, os.MkdirAll(path, 0o700)
}

func historyPath(dir string) string { return filepath.Join(dir, "history.sqlite") }
func modelsPath(dir string) string  { return filepath.Join(dir, "models") }

// oneLine joins an error's lines, so that people see one.
func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}
