package bench

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/bench/rules"
)

// loopBench is the host's hidden command that measures a write loop.
const loopBench = "loop-bench"

// runsMax bounds --runs.
const runsMax = 1000

// Sizes of a run with --quick, where the flags do not say otherwise.
const (
	quickEdges = 20_000
	quickRuns  = 2
)

func engineCommand() *cobra.Command {
	var asJSON bool
	o := rules.Options{Loop: []string{loopBench}}
	c := &cobra.Command{
		Use:   "engine",
		Short: "Measure what rules cost, in this process",
		Long: `Writes under watched keys, bound reads, recursion, negation, aggregates, long
reads beside writes, and the memory, time and collector's work that facts take,
each with the limit that it ought to keep to. Each cell is measured several
times; the figures are the median of these runs and their spread. Results are
checked against queries. A limit that is missed does not change the exit status.

Without --quick it takes some minutes and 3 GB of memory. Cells:
  ` + strings.Join(rules.Names(), "\n  "),
		Example: `  heddle bench engine
  heddle bench engine --quick
  heddle bench engine --only write/keys=1000,recursion --runs 9 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags := cmd.Flags(); o.Quick {
				if !flags.Changed("edges") {
					o.Edges = quickEdges
				}
				if !flags.Changed("runs") {
					o.Runs = quickRuns
				}
			}
			if err := checkEngine(o); err != nil {
				return err
			}
			o.Progress = func(name string) { fmt.Fprintln(cmd.ErrOrStderr(), name) }
			r, err := rules.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return r.Write(cmd.OutOrStdout(), asJSON)
		},
	}
	flags := c.Flags()
	flags.IntVar(&o.Edges, "edges", 1_000_000, "edges in the graph under writes and reads")
	flags.IntVar(&o.Runs, "runs", 5, "how often each cell is measured")
	flags.BoolVar(&o.Quick, "quick", false, "small and short: only to see that all cells work")
	flags.StringSliceVar(&o.Only, "only", nil, "cells, or groups of them, or patterns of names")
	flags.StringVar(&o.Directory, "dir", "", "where the journal is made (default temporary)")
	flags.BoolVar(&asJSON, "json", false, "print the report as JSON")
	return c
}

func checkEngine(o rules.Options) error {
	if o.Edges < rules.EdgesMin || o.Edges > edgesMax {
		return usagef("--edges %d: want %d to %d", o.Edges, rules.EdgesMin, edgesMax)
	}
	if o.Runs < 1 || o.Runs > runsMax {
		return usagef("--runs %d: want 1 to %d", o.Runs, runsMax)
	}
	if _, unknown := rules.Select(o.Only); unknown != "" {
		return usagef("--only %s: no cell has this name; see heddle bench engine --help",
			unknown)
	}
	return nil
}
