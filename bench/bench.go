// Package bench offers Heddle's benches as commands: the floor under a write, what
// keyed views cost above it, and what the rule engine alone costs. Servers run as
// processes of their own and are measured from outside. Only main imports it; it never
// imports the host.
package bench

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/bench/floor"
	"github.com/heddle-live/heddle/bench/views"
)

// Limits of what may be asked for.
const (
	edgesMax  = 100_000_000
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
exit status is 1 if a cell is not in order. The bench of the engine starts no
server: it measures the rules in its own process.`,
		Example: `  heddle bench floor
  heddle bench views --edges 1000000 --keys 1,1000 --json
  heddle bench engine --only write,recursion`,
		Args: cobra.NoArgs,
	}
	c.AddCommand(floorCommand(), viewsCommand(), engineCommand(), floorServerCommand())
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
		Example: `  heddle bench floor
  heddle bench floor --keys 1000 --writes 5000 --transport webtransport`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkSizes(keys, writes); err != nil {
				return err
			}
			if err := checkTransport(o.Transport); err != nil {
				return err
			}
			r, err := floor.Run(cmd.Context(), o, keys, writes)
			if err != nil {
				return err
			}
			return r.Write(cmd.OutOrStdout(), asJSON)
		},
	}
	flags := c.Flags()
	flags.IntSliceVar(&keys, "keys", []int{1, 100, 1000}, "viewers, a cell for each number")
	flags.IntVar(&writes, "writes", 2000, "writes measured in each cell")
	flags.StringVar(&o.Transport, "transport", "quic", "how viewers connect: quic or webtransport")
	flags.StringVar(&o.Directory, "dir", "", "where the store is made (default temporary)")
	flags.BoolVar(&asJSON, "json", false, "print the report as JSON")
	return c
}

func viewsCommand() *cobra.Command {
	var asJSON bool
	o := views.Options{
		Floor: floor.Options{Command: []string{"bench", floorServer}}, Serve: []string{"serve"},
	}
	c := &cobra.Command{
		Use:   "views",
		Short: "Measure what keyed views cost above the floor",
		Long: `One family, a viewer for each key, one durable write at a time that changes the
rows of one key. Every frame is verified, and that no other viewer gets one. The
floor is measured in the same run, in turn with the server.`,
		Example: `  heddle bench views
  heddle bench views --edges 1000000 --keys 1,1000 --writes 2000 --transport webtransport`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkSizes(o.Keys, o.Writes); err != nil {
				return err
			}
			if err := checkTransport(o.Transport); err != nil {
				return err
			}
			if o.Edges < 1 || o.Edges > edgesMax {
				return usagef("--edges %d: want 1 to %d", o.Edges, edgesMax)
			}
			o.Floor.Directory = o.Directory
			r, err := views.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return r.Write(cmd.OutOrStdout(), asJSON)
		},
	}
	flags := c.Flags()
	flags.IntVar(&o.Edges, "edges", 100_000, "edges in the graph, in whole chains of three")
	flags.IntSliceVar(&o.Keys, "keys", []int{1, 300}, "viewers, a cell for each number")
	flags.IntVar(&o.Writes, "writes", 1000, "writes measured in each cell")
	flags.StringVar(&o.Transport, "transport", "quic", "how viewers connect: quic or webtransport")
	flags.StringVar(&o.Directory, "dir", "", "where journal and store are made (default temporary)")
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
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, cancel := untilEOF(ctx, cmd.InOrStdin())
			defer cancel()
			return floor.Serve(ctx, args[0], cmd.OutOrStdout())
		},
	}
}

// usageError is a wrong command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// ExitCode is the exit status of all commands for a wrong command line.
func (*usageError) ExitCode() int { return 2 }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

func checkTransport(name string) error {
	if name == "quic" || name == "webtransport" {
		return nil
	}
	return usagef("--transport %q: want quic or webtransport", name)
}

func checkSizes(keys []int, writes int) error {
	for _, k := range keys {
		if k < 1 || k > keysMax {
			return usagef("--keys %d: want 1 to %d", k, keysMax)
		}
	}
	if writes < 1 || writes > writesMax {
		return usagef("--writes %d: want 1 to %d", writes, writesMax)
	}
	return nil
}
