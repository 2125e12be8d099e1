package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/views"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/sdk/frame"
)

const (
	// probePatience is how long readiness waits for a loop to take a task.
	probePatience = 2 * time.Second
	// probesAtOnce is how many loops readiness asks at a time.
	probesAtOnce = 64
)

// graphs holds every graph that this process serves and runs their loops. It is
// the admin.Service. Safe for concurrent use.
type graphs struct {
	journal   journal.Journal
	directory *views.Directory
	loop      ingest.Config // of every loop, but for Graph and Publisher
	logger    *slog.Logger
	// run starts a loop's goroutine, owned and awaited by the server.
	run func(func() error)

	// lifecycle is held while a graph is opened or dropped, so that these take
	// turns; mu guards the map. lifecycle before mu.
	lifecycle sync.Mutex
	mu        sync.Mutex
	open      map[string]*hosted
	closing   bool

	// bulky notes that much memory was used for a while: by a load or a recovery.
	bulky atomic.Bool
}

// bulkyOps is from how many operations on a transaction is bulky.
const bulkyOps = 100_000

// hosted is one graph with its running loop.
type hosted struct {
	loop  *ingest.Loop
	views *views.Graph
	stop  context.CancelFunc
	ended chan struct{}
	// dropped is set before the loop ends because the graph is dropped.
	dropped atomic.Bool
}

// openAll opens every graph that the journal holds.
func (g *graphs) openAll(ctx context.Context) error {
	names, err := g.journal.Graphs(ctx)
	if err != nil {
		return fmt.Errorf("list the graphs of the journal: %w", err)
	}
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	for _, name := range names {
		if err := g.openLocked(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// openLocked recovers a graph and starts its loop; lifecycle is held.
func (g *graphs) openLocked(ctx context.Context, name string) error {
	began := time.Now()
	publisher := g.directory.NewGraph(name)
	cfg := g.loop
	cfg.Graph, cfg.Publisher = name, publisher
	loop, err := ingest.Open(ctx, cfg)
	if err != nil {
		return err
	}
	// The loop survives the request that created the graph.
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	h := &hosted{loop: loop, views: publisher, stop: stop, ended: make(chan struct{})}
	g.mu.Lock()
	g.open[name] = h
	g.mu.Unlock()
	g.directory.Serve(publisher, loop)
	g.run(func() error {
		defer close(h.ended)
		return loop.Run(runCtx)
	})
	g.logger.Info("graph is open", "graph", name, "revision", loop.Revision(),
		"took", time.Since(began).Round(time.Millisecond))
	return nil
}

// close ends all loops: what is queued is finished, nothing more is taken. It
// returns an error if a loop has not ended when ctx does.
func (g *graphs) close(ctx context.Context) error {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	g.mu.Lock()
	g.closing = true
	open := maps.Clone(g.open)
	g.mu.Unlock()
	for _, h := range open {
		h.stop()
	}
	for _, name := range slices.Sorted(maps.Keys(open)) {
		select {
		case <-open[name].ended:
			continue
		default:
		}
		select {
		case <-open[name].ended:
		case <-ctx.Done():
			return fmt.Errorf("graph %s did not finish what it was doing; "+
				"what it has not answered is not durable", name)
		}
	}
	return nil
}

func (g *graphs) find(name string) (*hosted, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.open[name]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("graph %q: %w", name, admin.ErrNotFound)
}

// names returns the open graphs, sorted.
func (g *graphs) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.open))
}

// Graphs implements admin.Service.
func (g *graphs) Graphs(ctx context.Context) ([]admin.GraphInfo, error) {
	list := []admin.GraphInfo{}
	for _, name := range g.names() {
		info, err := g.Graph(ctx, name)
		if errors.Is(err, admin.ErrNotFound) {
			continue // dropped meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

// Graph implements admin.Service.
func (g *graphs) Graph(ctx context.Context, name string) (admin.GraphInfo, error) {
	h, err := g.find(name)
	if err != nil {
		return admin.GraphInfo{}, err
	}
	info := admin.GraphInfo{Name: name, ReadOnly: h.loop.ReadOnly()}
	err = h.read(ctx, func(t *ingest.Turn) {
		stats := t.Engine.Stats()
		info.Revision, info.Schema, info.Epoch = t.Revision, t.Schema, t.Epoch
		info.Facts, info.WatchedKeys = stats.Facts, stats.WatchedKeys
	})
	return info, h.serviceError(err)
}

// CreateGraph implements admin.Service.
func (g *graphs) CreateGraph(ctx context.Context, name string) error {
	if err := journal.CheckName(name); err != nil {
		return err
	}
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	return g.createLocked(ctx, name)
}

func (g *graphs) createLocked(ctx context.Context, name string) error {
	g.mu.Lock()
	closing := g.closing
	g.mu.Unlock()
	if closing {
		return admin.ErrClosing
	}
	if low, err := g.lowDisk(); low || err != nil {
		return errors.Join(err, fmt.Errorf("graph %q: %w", name, admin.ErrReadOnly))
	}
	// What began is finished whoever waits for it: a graph that the journal holds
	// and nobody runs could neither be used nor created.
	ctx = context.WithoutCancel(ctx)
	if err := g.journal.Create(ctx, name); err != nil {
		if errors.Is(err, journal.ErrExists) {
			return fmt.Errorf("graph %q: %w", name, admin.ErrExists)
		}
		return err
	}
	if err := g.openLocked(ctx, name); err != nil {
		return errors.Join(err, g.journal.Drop(ctx, name))
	}
	return nil
}

// tellDropped gives the viewers of a graph that is dropped the reason, and their
// last frame the time to arrive. A loop that is stuck tells nobody.
func (g *graphs) tellDropped(ctx context.Context, name string, h *hosted) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probePatience)
	defer cancel()
	err := h.loop.Call(ctx, func(t *ingest.Turn) {
		h.views.Drop(t, frame.Closed{
			Code: frame.ClosedViewDropped, Message: "graph " + name + " was deleted",
		})
	})
	if err != nil {
		return
	}
	timer := time.NewTimer(views.EndDelay)
	defer timer.Stop()
	<-timer.C
}

// lowDisk reports whether the disk is too full for a new graph.
func (g *graphs) lowDisk() (bool, error) {
	if g.loop.FreeBytes == nil {
		return false, nil
	}
	free, err := g.loop.FreeBytes()
	return err == nil && free < g.loop.FreeBytesFloor, err
}

// DropGraph implements admin.Service.
func (g *graphs) DropGraph(ctx context.Context, name string) error {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	g.mu.Lock()
	h := g.open[name]
	if h == nil || g.closing {
		closing := g.closing
		g.mu.Unlock()
		if closing {
			return admin.ErrClosing
		}
		return fmt.Errorf("graph %q: %w", name, admin.ErrNotFound)
	}
	delete(g.open, name)
	g.mu.Unlock()
	h.dropped.Store(true)
	g.tellDropped(ctx, name, h)
	h.stop()
	<-h.ended
	g.directory.Remove(h.views, protocol.CodeViewDropped)
	// A drop that began is finished whoever waits for it.
	ctx = context.WithoutCancel(ctx)
	if err := g.journal.Drop(ctx, name); err != nil {
		return errors.Join(err, g.openLocked(ctx, name)) // it is whole still
	}
	return nil
}

// Program implements admin.Service.
func (g *graphs) Program(_ context.Context, name string) (admin.ProgramInfo, error) {
	h, err := g.find(name)
	if err != nil {
		return admin.ProgramInfo{}, err
	}
	p, revision, schema := h.loop.ProgramRevision()
	return admin.ProgramInfo{Source: p.Source, Revision: revision, Schema: schema}, nil
}

// Schema implements admin.Service.
func (g *graphs) Schema(name string) (*analysis.Program, error) {
	h, err := g.find(name)
	if err != nil {
		return nil, err
	}
	return h.loop.Program(), nil
}

// Apply implements admin.Service.
func (g *graphs) Apply(ctx context.Context, name, source string, opt admin.ApplyOptions) (
	admin.ApplyResult, error,
) {
	h, err := g.find(name)
	created := false
	if errors.Is(err, admin.ErrNotFound) && opt.Create {
		if h, err = g.createFor(ctx, name, source, opt.DryRun); h == nil && err == nil {
			return g.firstPlan(source)
		}
		created = err == nil
	}
	if err != nil {
		return admin.ApplyResult{}, err
	}
	applied, err := h.loop.Apply(ctx, source, ingest.ApplyOptions{
		DryRun: opt.DryRun, AllowLoss: opt.AllowLoss,
	})
	return admin.ApplyResult{
		Revision: applied.Revision, Schema: applied.Schema, Created: created,
		DryRun: opt.DryRun, Diff: applied.Diff,
	}, h.serviceError(err)
}

// createFor makes the graph that a checked program is for. A program in error,
// or a dry run, creates nothing.
func (g *graphs) createFor(ctx context.Context, name, source string, dryRun bool) (*hosted, error) {
	if _, err := ingest.Check(source); err != nil {
		return nil, err
	}
	if dryRun {
		return nil, nil
	}
	if err := g.CreateGraph(ctx, name); err != nil && !errors.Is(err, admin.ErrExists) {
		return nil, err
	}
	return g.find(name)
}

// firstPlan says what source would make of a graph that does not exist.
func (g *graphs) firstPlan(source string) (admin.ApplyResult, error) {
	checked, err := ingest.Check(source)
	if err != nil {
		return admin.ApplyResult{}, err
	}
	diff, err := engine.New(nil).Plan(checked)
	return admin.ApplyResult{Created: true, DryRun: true, Diff: diff}, err
}

// Transact implements admin.Service.
func (g *graphs) Transact(ctx context.Context, name string, tx admin.Transaction) (
	admin.Receipt, error,
) {
	h, err := g.find(name)
	if err != nil {
		return admin.Receipt{}, err
	}
	for i := range tx.Statements {
		if len(tx.Statements[i].Ops) >= bulkyOps {
			defer g.bulky.Store(true)
		}
	}
	r, err := h.loop.Transact(ctx, ingest.Transaction{
		Program: tx.Program, Statements: tx.Statements, Parameters: tx.Parameters,
		ExpectRevision: tx.ExpectRevision, Caller: tx.Caller,
		IdempotencyKey: tx.IdempotencyKey, RequestHash: tx.RequestHash,
	})
	if err != nil {
		return admin.Receipt{}, h.serviceError(err)
	}
	return admin.Receipt{
		Revision: r.Revision, Inserted: r.Inserted, Deleted: r.Deleted, Replayed: r.Replayed,
		Statements: r.Statements,
	}, nil
}

// Query implements admin.Service.
func (g *graphs) Query(ctx context.Context, name string, q *analysis.Query, params []value.Value,
	opt admin.QueryOptions,
) (admin.QueryResult, error) {
	h, err := g.find(name)
	if err != nil {
		return admin.QueryResult{}, err
	}
	r, err := h.loop.Query(ctx, q, params, ingest.QueryOptions{
		Program: opt.Program, MaxRows: opt.MaxRows,
		MinRevision: opt.MinRevision, Deadline: opt.Deadline,
	})
	if err != nil {
		return admin.QueryResult{}, h.serviceError(err)
	}
	return admin.QueryResult{
		Revision: r.Revision, Columns: r.Columns, Rows: r.Rows, Count: r.Count,
		Truncated: r.Truncated, Errors: r.Errors,
	}, nil
}

// Errors implements admin.Service.
func (g *graphs) Errors(ctx context.Context, name string) (admin.ErrorList, error) {
	h, err := g.find(name)
	if err != nil {
		return admin.ErrorList{}, err
	}
	var list []engine.RuleErrors
	var revision uint64
	err = h.read(ctx, func(t *ingest.Turn) { list, revision = t.Engine.Errors(), t.Revision })
	if err != nil {
		return admin.ErrorList{}, h.serviceError(err)
	}
	return admin.NewErrorList(revision, list), nil
}

// read has the loop look at something.
func (h *hosted) read(ctx context.Context, task func(*ingest.Turn)) error {
	err := h.loop.Call(ctx, task)
	if errors.Is(err, ingest.ErrUnknownOutcome) {
		// Nothing was to be done, so there is no outcome to know.
		if err = context.Cause(ctx); err == nil {
			err = ingest.ErrClosing
		}
	}
	return err
}

// Families implements admin.Service.
func (g *graphs) Families(_ context.Context, name string) ([]admin.FamilyInfo, error) {
	h, err := g.find(name)
	if err != nil {
		return nil, err
	}
	// Families are refreshed inside the commit, so each has reached the graph's revision.
	revision := h.loop.Revision()
	list := []admin.FamilyInfo{}
	for _, f := range h.views.Families() {
		list = append(list, admin.FamilyInfo{
			View: f.View, Parameters: admin.Columns(f.Parameters),
			WatchedKeys: f.WatchedKeys, Viewers: f.Viewers, Revision: revision,
		})
	}
	return list, nil
}

// Problems implements admin.Service: it asks each loop for a turn and the
// journal for each head.
func (g *graphs) Problems(ctx context.Context) []admin.PartProblem {
	var mu sync.Mutex
	var problems []admin.PartProblem
	report := func(part string, err error) {
		mu.Lock()
		defer mu.Unlock()
		problems = append(problems, admin.PartProblem{Part: part, Reason: err.Error()})
	}
	// All at once: a loop that does not answer must not eat the others' time.
	var probes errgroup.Group
	probes.SetLimit(probesAtOnce)
	for _, name := range g.names() {
		h, err := g.find(name)
		if err != nil {
			continue // dropped meanwhile
		}
		if _, err := g.journal.Head(ctx, name); err != nil {
			report("journal", fmt.Errorf("graph %s: %w", name, err))
		}
		probes.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, probePatience)
			defer cancel()
			if err := h.loop.Call(ctx, func(*ingest.Turn) {}); err != nil {
				report("graph "+name,
					fmt.Errorf("its loop does not answer within %v", probePatience))
			}
			return nil
		})
	}
	_ = probes.Wait() // they report, and fail never
	slices.SortFunc(problems, func(a, b admin.PartProblem) int {
		return strings.Compare(a.Part, b.Part)
	})
	return problems
}

// serviceErrors maps what the loop and the engine return to what clients see.
var serviceErrors = []struct{ from, to error }{
	{ingest.ErrBusy, admin.ErrBusy},
	{ingest.ErrClosing, admin.ErrClosing},
	{ingest.ErrReadOnly, admin.ErrReadOnly},
	{ingest.ErrUnknownOutcome, admin.ErrUnknownOutcome},
	{ingest.ErrTooLarge, admin.ErrTooLarge},
	{ingest.ErrProgramChanged, admin.ErrProgramChanged},
	{ingest.ErrPrecondition, admin.ErrPrecondition},
	{ingest.ErrIdempotencyMismatch, admin.ErrIdempotencyMismatch},
	{ingest.ErrDeadline, admin.ErrDeadline},
	{engine.ErrBudget, admin.ErrTooExpensive},
	{engine.ErrFull, admin.ErrFull},
	{context.DeadlineExceeded, admin.ErrDeadline},
}

// classified is an error with what admin makes of it; the text is the error's own.
type classified struct{ err, as error }

func (c *classified) Error() string   { return c.err.Error() }
func (c *classified) Unwrap() []error { return []error{c.as, c.err} }

// serviceError is what clients see of an error of the graph's loop.
func (h *hosted) serviceError(err error) error {
	if errors.Is(err, ingest.ErrClosing) && h.dropped.Load() {
		return &classified{err: err, as: admin.ErrNotFound}
	}
	for _, row := range serviceErrors {
		if errors.Is(err, row.from) {
			return &classified{err: err, as: row.to}
		}
	}
	return err
}
