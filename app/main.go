// Daisy daisy-chains the Macs on a desk into one AI computer. Without a command
// it opens the app: a menu-bar item and its windows. The commands do the same
// work without a screen.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	_ "daisy/app/earlylocale" // before fyne
	"daisy/rdma/verbs"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run executes one command line and returns the exit code: 0, or 1 with one
// line on standard error.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := rootCommand()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	// Groups are closed. Drivers have been seen to lose what a process leaves
	// behind, also when a signal ends it.
	if err := verbs.Shutdown(); err != nil {
		fmt.Fprintln(os.Stderr, "daisy: giving the RDMA devices back:", oneLine(err))
	}
	if err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(os.Stderr, "daisy:", oneLine(err))
		return 1
	}
	return 0
}

func rootCommand() *cobra.Command {
	var place folder
	var flags nodeFlags
	var back bool
	root := &cobra.Command{
		Use:   "daisy",
		Short: "Daisy-chains the Macs on a desk into one AI computer",
		Long: "Daisy daisy-chains the Macs on a desk into one AI computer.\n\n" +
			"Without a command it opens the app. The commands work without a screen.",
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return openApp(cmd.Context(), place, &flags, back)
		},
	}
	place.flag(root)
	flags.flags(root)
	root.Flags().BoolVar(&back, "back", false, "come back as it was: the app died")
	_ = root.Flags().MarkHidden("back")
	root.AddCommand(runCommand(&place), serveCommand(&place), demoCommand(), benchCommand(), modelsCommand(&place), planCommand(&place), watchCommand(&place), nodesCommand(&place), pairCommand(&place))
	return root
}
