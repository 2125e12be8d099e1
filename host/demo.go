package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/examples/couriers"
	"github.com/heddle-live/heddle/host/cli"
	"github.com/heddle-live/heddle/host/config"
)

// demoGraph is the graph that the demo creates.
const demoGraph = "demo"

// The writes per second that may be asked for, besides none.
const rateMin, rateMax = 0.001, 1000.0

func demoCommand() *cobra.Command {
	var dataDir, listen string
	var rate float64
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a server with a live example and print its page's address",
		Long: `Run a server with a live example and print its page's address.

It serves on loopback with its journal in a temporary directory, which is
removed at the end; --data keeps it. Parcels wander between couriers, and the
page shows each courier's own view of them, live.`,
		Example: `  heddle demo
  heddle demo --data ./demo-data --writes-per-second 200`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd, dataDir, listen, rate)
		},
	}
	cmd.Flags().StringVar(&dataDir, "data", "", "keep the data in this directory")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0",
		"address of the page; port 0 picks a free one")
	cmd.Flags().Float64Var(&rate, "writes-per-second", 10,
		"how often a parcel changes hands, 0 for never, at most 1000")
	return cmd
}

func runDemo(cmd *cobra.Command, dataDir, listen string, rate float64) (err error) {
	cfg := config.Default()
	cfg.DataListen, cfg.AdminListen = listen, "127.0.0.1:0"
	if err := checkDemo(&cfg, rate); err != nil {
		return err
	}
	keep := dataDir != ""
	if !keep {
		if dataDir, err = os.MkdirTemp("", "heddle-demo-"); err != nil {
			return fmt.Errorf("temporary data directory: %w", err)
		}
		defer func() {
			if removeErr := os.RemoveAll(dataDir); err == nil && removeErr != nil {
				err = fmt.Errorf("remove the temporary data directory: %w", removeErr)
			}
		}()
	}
	cfg.DataDir = dataDir
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(),
		&slog.HandlerOptions{Level: slog.LevelWarn}))
	page := &demoPage{}
	server, err := Start(cmd.Context(), cfg, Options{
		Logger: logger, Version: Version(), Page: page.handler(),
	})
	if err != nil {
		return startError(err, func(string) string { return "--listen" })
	}
	page.server = server
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if !signal.Ignored(syscall.SIGHUP) {
		// A terminal that is closed must not leave the directory behind.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer cancel()
		return server.Run(ctx)
	})
	group.Go(func() error {
		if err := page.prepare(ctx); err != nil {
			cancel()
			if keep {
				return foreignData(dataDir, err)
			}
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "Heddle demo: http://%s/\n"+
			"Admin API:   http://%s/docs   key: %s\nPress Ctrl-C to end it.\n",
			server.DataAddr(), server.AdminAddr(), server.AdminKey())
		if err != nil {
			cancel()
			return err
		}
		return page.wander(ctx, rate)
	})
	return group.Wait()
}

// checkDemo refuses what the flags of the demo may not say.
func checkDemo(cfg *config.Config, rate float64) error {
	if !(rate == 0 || rate >= rateMin && rate <= rateMax) { // NaN is none of these
		return &cli.Error{
			Code: cli.ExitUsage,
			Text: fmt.Sprintf("--writes-per-second %v: expected 0, or %v to %v",
				rate, rateMin, rateMax),
		}
	}
	err := cfg.Validate()
	if field, ok := errors.AsType[*config.FieldError](err); ok && field.Field == "data_listen" {
		return &cli.Error{
			Code: cli.ExitUsage,
			Text: fmt.Sprintf("--listen %q: expected %s", cfg.DataListen, field.Allowed),
		}
	}
	return err
}

// foreignData words why a kept directory is no good for the demo.
func foreignData(dir string, err error) error {
	if _, ok := errors.AsType[*engine.DataLossError](err); !ok {
		return err
	}
	return &cli.Error{
		Code: cli.ExitRefused,
		Text: fmt.Sprintf("%s holds another graph %q, with facts: %v", dir, demoGraph, err),
		Hint: "give the demo a directory of its own with --data, or none for a temporary one",
	}
}

// demoPage is the demo's graph, its writer and what its page asks for.
type demoPage struct {
	server *Server
	rates  rates
}

// prepare creates the graph and gives it its program.
func (d *demoPage) prepare(ctx context.Context) error {
	_, err := d.server.Service().Apply(ctx, demoGraph, couriers.Program,
		admin.ApplyOptions{Create: true})
	if err != nil {
		return fmt.Errorf("apply the demo's program: %w", err)
	}
	return nil
}

// wander moves a random parcel to a random courier, rate times a second.
func (d *demoPage) wander(ctx context.Context, rate float64) error {
	if rate == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer tick.Stop()
	holder, err := d.holders(ctx)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		parcel := 1 + rand.Int64N(couriers.Parcels)
		to := 1 + rand.Int64N(couriers.Couriers)
		from := holder[parcel]
		if from == to {
			continue
		}
		err := d.transact(ctx, []analysis.Op{
			{Relation: couriers.Relation, Delete: true, Row: ints(from, parcel)},
			{Relation: couriers.Relation, Row: ints(to, parcel)},
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the demo's writer: %w", err)
		}
		holder[parcel] = to
	}
}

func ints(cells ...int64) []value.Value {
	row := make([]value.Value, len(cells))
	for i, c := range cells {
		row[i] = value.OfInt(c)
	}
	return row
}

func (d *demoPage) transact(ctx context.Context, ops []analysis.Op) error {
	program, err := d.server.Service().Schema(demoGraph)
	if err != nil {
		return err
	}
	_, err = d.server.Service().Transact(ctx, demoGraph, admin.Transaction{
		Program: program, Statements: engine.Plain(ops), Caller: "demo",
	})
	return err
}
