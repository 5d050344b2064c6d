package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"daisy/node/models"

	"github.com/spf13/cobra"
)

func modelsCommand(place *folder) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the models folder and say where it is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := place.open()
			if err != nil {
				return err
			}
			lib, err := new(nodeFlags).library(dir)
			if err != nil {
				return err
			}
			list := listModels(lib, modelsPath(dir))
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			return list.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// modelList is what models prints with --json.
type modelList struct {
	Folder string      `json:"folder"`
	Models []modelFile `json:"models"`
	Bad    []badFile   `json:"bad,omitempty"`
}

type modelFile struct {
	Name         string `json:"name"`
	Architecture string `json:"architecture"`
	Bytes        int64  `json:"bytes"`
	Path         string `json:"path"`
}

type badFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func listModels(lib *models.Library, folder string) modelList {
	list := modelList{Folder: folder, Models: []modelFile{}}
	all, err := lib.List()
	for _, m := range all {
		list.Models = append(list.Models, modelFile{m.Name, m.Architecture, m.Bytes, m.Path})
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for _, err := range errs {
		var bad *models.FileError
		if errors.As(err, &bad) {
			list.Bad = append(list.Bad, badFile{bad.Path, strings.TrimPrefix(oneLine(bad.Err), bad.Path+": ")})
		}
	}
	return list
}

func (l modelList) print(out io.Writer) error {
	fmt.Fprintf(out, "Models folder: %s\n", l.Folder)
	if len(l.Models) == 0 {
		fmt.Fprintln(out, "There is no model in it. Put a .gguf file there.")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, m := range l.Models {
		fmt.Fprintf(w, "%q\t%s\t%.1f MB\t%s\n", m.Name, m.Architecture, float64(m.Bytes)/1e6, m.Path)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, b := range l.Bad {
		fmt.Fprintf(out, "Not usable: %s: %s\n", b.Path, b.Reason)
	}
	return nil
}
