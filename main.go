// Heddle keeps thousands of people's own live views of shared facts up to date.
// This file reads the command line, turns signals into a context, and runs a
// command; everything else is in package host.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/bench"
	"github.com/heddle-live/heddle/host"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := newRoot()
	root.SetArgs(host.Arguments(os.Args[1:]))
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(host.Report(os.Stderr, err))
	}
}

// newRoot returns the command heddle with everything below it.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "heddle",
		Short:         "Keep everybody's own live view of shared facts up to date",
		Example:       "  heddle demo\n  heddle serve\n  heddle apply shop shop.heddle",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(host.Commands()...)
	root.AddCommand(bench.Command())
	host.Strict(root)
	return root
}
