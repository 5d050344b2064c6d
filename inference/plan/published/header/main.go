// Header writes the header of a published model, for daisy plan:
//
//	go run ./inference/plan/published/header -model deepseek-r1 -o r1.gguf
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"daisy/inference/plan/published"
)

func main() {
	names := slices.Sorted(maps.Keys(published.Models))
	name := flag.String("model", "deepseek-r1", "one of "+strings.Join(names, ", "))
	out := flag.String("o", "", "the file to write")
	flag.Parse()
	if err := write(*name, *out); err != nil {
		fmt.Fprintln(os.Stderr, "header:", err)
		os.Exit(1)
	}
}

func write(name, out string) error {
	m, ok := published.Models[name]
	if !ok || out == "" {
		return fmt.Errorf("which model, and into which file? See -h")
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := published.Write(f, m); err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	return f.Close()
}
