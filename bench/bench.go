// Package bench offers Heddle's benches as commands: the floor under a write,
// and what keyed views cost above it. Servers run as processes of their own and
// are measured from outside. Only main imports it; it never imports the host.
package bench

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/bench/floor"
)

// Limits of what may be asked for.
const (
	keysMax   = 10_000
	writesMax = 10_000_000
)

// floorServer is the hidden command that the floor bench starts itself with.
const floorServer = "floor-server"

// Command returns the command `bench` with everything below it. Main adds it to
// its root, runs it with a context that ends on an interrupt, and prints its
// error.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine and this build",
		Long: `Each bench starts its servers as processes of their own, checks what arrives,
and prints a table, or with --json a report in the schema heddle-bench/1. The
exit status is 1 if a cell is not in order.`,
		Example: "  heddle bench floor\n  heddle bench views --edges 1000000 --keys 1,1000 --json",
		Args:    cobra.NoArgs,
	}
	c.AddCommand(floorCommand(), floorServerCommand())
	return c
}

func floorCommand() *cobra.Command {
	var keys []int
	var writes int
	var asJSON bool
	o := floor.Options{Command: []string{"bench", floorServer}}
	c := &cobra.Command{
		Use:   "floor",
		Short: "Measure what no live view can avoid",
		Long: `One write is an HTTP POST, one synced batch in the store, and one write to the
stream of one of the connected viewers; nothing else happens. What a server of
live views costs above this is its own.`,
		Example: "  heddle bench floor\n  heddle bench floor --keys 1000 --writes 5000 --transport webtransport",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkSizes(keys, writes); err != nil {
				return err
			}
			cmd.SilenceUsage = true
			r, err := floor.Run(cmd.Context(), o, keys, writes)
			if err != nil {
				return err
			}
			return r.Write(cmd.OutOrStdout(), asJSON)
		},
	}
	flags := c.Flags()
	flags.IntSliceVar(&keys, "keys", []int{1, 100, 1000}, "viewers connected, a cell for each number")
	flags.IntVar(&writes, "writes", 2000, "writes measured in each cell")
	flags.StringVar(&o.Transport, "transport", "quic", "how viewers connect: quic or webtransport")
	flags.StringVar(&o.Directory, "dir", "", "where the store is made (default the temporary directory)")
	flags.BoolVar(&asJSON, "json", false, "print the report as JSON")
	return c
}

func floorServerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    floorServer + " DIRECTORY",
		Short:  "The server under `bench floor`; ends with its standard input",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, cancel := untilEOF(ctx, cmd.InOrStdin())
			defer cancel()
			return floor.Serve(ctx, args[0], cmd.OutOrStdout())
		},
	}
}

func checkSizes(keys []int, writes int) error {
	for _, k := range keys {
		if k < 1 || k > keysMax {
			return fmt.Errorf("--keys %d: want 1 to %d", k, keysMax)
		}
	}
	if writes < 1 || writes > writesMax {
		return fmt.Errorf("--writes %d: want 1 to %d", writes, writesMax)
	}
	return nil
}
