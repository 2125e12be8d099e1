// Package host is the process: it builds every part from the configuration,
// owns the goroutines, the listeners, time and the order of start and stop, and
// holds the commands that run a server. Only main imports it. What it never
// does: decide anything about rules, frames or the wire.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/host/config"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/host/journal/pebble"
	"github.com/heddle-live/heddle/host/views"
	"github.com/heddle-live/heddle/protocol/lite"
)

// shutdownPatience bounds how long running requests may finish at a stop.
const shutdownPatience = 5 * time.Second

// Server is one running Heddle. Start makes it, Run runs it to its end.
type Server struct {
	cfg       config.Config
	logger    *slog.Logger
	journal   *pebble.Journal
	graphs    *graphs
	directory *views.Directory
	api       *admin.API
	listeners *listeners
	counters  counters

	group  *errgroup.Group // loops of graphs; the first failure ends the server
	failed context.Context // cancelled by the group
}

// counters are the figures that /metrics reads.
type counters struct {
	ingest ingest.Metrics
	views  views.Metrics
	lite   lite.Counters
}

// Options are what a Server takes besides its configuration.
type Options struct {
	Logger  *slog.Logger
	Version string
	// Page, if set, serves every path of the data listener that is no other's.
	Page http.Handler
}

// Start opens the journal, recovers every graph and binds the listeners: when it
// returns the server is ready and its addresses are known. Run must follow. It
// starts the loops of the graphs; on an error everything is closed again.
func Start(ctx context.Context, cfg config.Config, opt Options) (*Server, error) {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	key, err := config.EnsureAdminKey(&cfg)
	if err != nil {
		return nil, err
	}
	cfg.AdminKey = key
	s := &Server{cfg: cfg, logger: opt.Logger}
	s.group, s.failed = errgroup.WithContext(context.WithoutCancel(ctx)) // loops outlive Start
	s.journal, err = pebble.Open(filepath.Join(cfg.DataDir, "journal"), pebble.Options{
		Logger: opt.Logger,
		// Loops turn read-only at the floor; below half of it the journal refuses
		// what a loop took in the second before, and the process ends.
		FreeSpaceFloorBytes: uint64(cfg.FreeSpaceFloorBytes) / 2,
	})
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	if err := s.build(ctx, opt); err != nil {
		if s.graphs != nil {
			err = errors.Join(err, s.graphs.close(context.WithoutCancel(ctx)))
		}
		return nil, errors.Join(err, s.group.Wait(), s.journal.Close())
	}
	return s, nil
}

// build makes all that stands between the journal and the listeners.
func (s *Server) build(ctx context.Context, opt Options) error {
	metrics := admin.NewMetrics()
	if err := s.counters.register(metrics); err != nil {
		return err
	}
	s.directory = views.New(views.Config{
		Linger: s.cfg.LingerKey, MaxLatency: s.cfg.TrackMaxLatency, KeysMax: s.cfg.KeysMax,
		WatchSteps: uint64(s.cfg.WatchSteps),
		PartBytes:  int(s.cfg.SnapshotPartBytes), Now: time.Now, Logger: s.logger,
		Metrics: &s.counters.views,
	})
	s.graphs = &graphs{
		journal: s.journal, directory: s.directory, logger: s.logger, open: map[string]*hosted{},
		loop: s.loopConfig(), run: s.group.Go,
	}
	if err := metrics.Add(s.diskMetrics()...); err != nil {
		return err
	}
	if err := s.graphs.openAll(ctx); err != nil {
		return err
	}
	var err error
	s.api, err = admin.New(admin.Config{
		Service: s.graphs, AdminKey: s.cfg.AdminKey, Version: opt.Version, Logger: s.logger,
		Metrics: metrics, Limits: admin.Limits{
			BodyBytes: int64(s.cfg.BodyBytes), LoadBytes: int64(s.cfg.LoadBytes),
			QueryRows: s.cfg.QueryRows, QueryDeadline: s.cfg.QueryDeadline,
		},
	})
	if err != nil {
		return err
	}
	s.listeners, err = s.bind(ctx, opt.Page)
	return err
}

// giveBackMemory returns what a load or a recovery has left behind to the system,
// until ctx ends. The collector alone would keep several times the live heap for
// as long as few writes come.
func (s *Server) giveBackMemory(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.graphs.bulky.Swap(false) {
				debug.FreeOSMemory()
			}
		}
	}
}

func (s *Server) loopConfig() ingest.Config {
	began := time.Now()
	return ingest.Config{
		Journal: s.journal, Now: time.Now,
		Nanos:             func() int64 { return int64(time.Since(began)) },
		QueueTransactions: s.cfg.QueueTransactions, BatchTransactions: s.cfg.BatchTransactions,
		JournalRecords: uint64(s.cfg.JournalRecords), QuerySteps: uint64(s.cfg.QuerySteps),
		ConditionSteps: uint64(s.cfg.WatchSteps),
		PinAge:         s.cfg.QueryDeadline,
		Limits: engine.Limits{
			CommitRows: uint64(s.cfg.CommitRows), GraphRows: uint64(s.cfg.GraphRows),
			CommitBytes: uint64(s.cfg.CommitBytes), GraphBytes: uint64(s.cfg.GraphBytes),
			WatchNanos: int64(s.cfg.WatchTime),
		},
		FreeBytes: s.journal.Free, FreeBytesFloor: uint64(s.cfg.FreeSpaceFloorBytes),
		Metrics: &s.counters.ingest, Logger: s.logger,
	}
}

// DataAddr is the address of page, WebSocket, WebTransport and QUIC.
func (s *Server) DataAddr() string { return s.listeners.data.Addr().String() }

// AdminAddr is the address of the REST API.
func (s *Server) AdminAddr() string { return s.listeners.admin.Addr().String() }

// CertificateSHA256 is what clients pin: the hash of the development certificate.
func (s *Server) CertificateSHA256() [32]byte { return s.listeners.certificate }

// AdminKey is the key that the REST API asks for.
func (s *Server) AdminKey() string { return s.cfg.AdminKey }

// Service gives commands of this process what the REST API gives others.
func (s *Server) Service() admin.Service { return s.graphs }

// Run serves until ctx ends or a part fails, then stops in order: no new
// sessions and requests, queued writes finished, sessions closed, journal
// closed. It returns the failure, nil for an ordinary end.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.failed, cancel)
	defer stop()
	serving, servingCtx := errgroup.WithContext(ctx)
	s.listeners.serve(servingCtx, serving)
	s.graphs.bulky.Store(true) // recovery
	serving.Go(func() error {
		s.giveBackMemory(servingCtx)
		return nil
	})
	<-servingCtx.Done()
	s.logger.Info("stopping")
	s.listeners.stopRequests(context.WithoutCancel(ctx), shutdownPatience)
	patience, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
	stuck := s.graphs.close(patience)
	done()
	s.listeners.closeSessions()
	if stuck != nil {
		// The process ends as it would by a crash, which loses nothing durable.
		return fmt.Errorf("stop: %w", stuck)
	}
	err := errors.Join(serving.Wait(), s.group.Wait())
	return errors.Join(err, s.journal.Close())
}
