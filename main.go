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
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := &cobra.Command{
		Use:           "heddle",
		Short:         "Keep everybody's own live view of shared facts up to date",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(host.Commands()...)
	root.AddCommand(bench.Command())
	root.SetArgs(host.Arguments(os.Args[1:]))
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(host.Report(os.Stderr, err))
	}
}
