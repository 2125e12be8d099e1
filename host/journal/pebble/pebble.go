// Package pebble is the embedded journal: one pebble store in a directory of
// its own, locked against a second process, every Append one synced batch. It
// owns the store's background work and nothing else; no goroutine of its own.
//
// docs/formats/journal.md lays out every key and value. Beside the store lie a
// file that names the process holding the lock, and the witness: a small file
// that remembers how far each graph had come at a known time. A store that
// lost whole files opens without complaint, and the witness is what tells.
//
// An fsync that fails leaves memory ahead of the disk. The process ends then
// (Options.Fatal), and its next start recovers from the log.
//
// Locks, in this order: Journal.admin, graph.turn, witness.turn, Journal.mu, and
// graph.mu or witness.mu. The first three are channels of one place that are
// held during I/O; the others guard fields for a few instructions.
package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/heddle-live/heddle/host/journal"
)

// GraphsMax is the largest number of graphs in one journal. Create refuses the
// next one with journal.ErrTooLarge.
const GraphsMax = 10_000

// Sizes of the store's memory, chosen for an embedded log of up to some ten
// million facts.
const (
	cacheBytes    = 64 << 20
	memTableBytes = 32 << 20
)

// storeFormat is fixed and not "newest", so that a library update alone never
// makes a directory unreadable to the release before.
const storeFormat = pebble.FormatValueSeparation

// Options are what Open needs beside the directory. The zero value is usable.
type Options struct {
	// FS is the file system; nil is the real one. Tests give faulty ones.
	FS vfs.FS
	// Logger gets what the store has to say; nil discards it.
	Logger *slog.Logger
	// FreeSpaceFloorBytes is how much of the file system Append leaves free:
	// below it, it returns journal.ErrFull. 0: no floor.
	FreeSpaceFloorBytes uint64
	// Fatal ends the process after a write that failed with unknown outcome, and
	// must not return. nil logs the error and exits with status 70. The
	// goroutine that meets a Fatal that does return is stopped for ever, for
	// nothing it holds can be trusted.
	Fatal func(error)

	// tune lets tests make the store small and busy.
	tune func(*pebble.Options)
}

// Journal is a journal.Journal in one directory. Its methods may be called
// concurrently.
type Journal struct {
	dir     string
	fs      *keepFS
	logger  *slog.Logger
	fatal   func(error)
	tune    func(*pebble.Options)
	db      *pebble.DB
	lock    *pebble.Lock
	space   space
	witness witness
	failed  atomic.Pointer[error] // set once, before Fatal is called
	damaged atomic.Pointer[error] // the first damage that the store found by itself
	// complained is when a failure of background work was logged last, in
	// nanoseconds since 1970.
	complained atomic.Int64
	admin      chan struct{} // turn of Create and Drop

	mu     sync.Mutex // guards what follows
	closed bool
	graphs map[string]*graph
	calls  sync.WaitGroup
}

var _ journal.Journal = (*Journal)(nil)

// Open opens or makes the journal in dir, which only one process may hold. It
// returns journal.ErrLocked if another one does, journal.ErrFormat if the
// directory was written by a release that this one does not know, and a
// *journal.DamageError if the store or a file beside it is damaged. Damage
// confined to one graph is returned by the calls for that graph instead.
func Open(dir string, options Options) (*Journal, error) {
	j := &Journal{
		dir: dir, fs: &keepFS{FS: options.FS}, logger: options.Logger, fatal: options.Fatal,
		tune: options.tune, admin: newTurn(), graphs: map[string]*graph{},
	}
	if options.FS == nil {
		j.fs.FS = vfs.Default
	}
	if j.logger == nil {
		j.logger = slog.New(slog.DiscardHandler)
	}
	if j.fatal == nil {
		j.fatal = func(error) { os.Exit(exitFatal) } // logged already
	}
	j.space = space{fs: j.fs, dir: dir, floorBytes: options.FreeSpaceFloorBytes}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("journal %s: %w", dir, err)
	}
	return j, nil
}

func (j *Journal) open() (err error) {
	store := j.storeDir()
	if err := makeDirs(j.fs, store); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	if err := j.takeLock(store); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.release())
		}
	}()
	if j.witness, err = readWitness(j.fs, j.dir); err != nil {
		return err
	}
	if err := j.space.checkOpen(); err != nil {
		return err
	}
	if j.db, err = pebble.Open(store, j.storeOptions()); err != nil {
		return j.storeError(err)
	}
	if err := j.checkFormat(); err != nil {
		return err
	}
	return j.loadGraphs()
}

func (j *Journal) storeDir() string { return j.fs.PathJoin(j.dir, "store") }

func (j *Journal) storeOptions() *pebble.Options {
	o := &pebble.Options{
		FS: j.fs, Lock: j.lock, Logger: storeLogger{j}, CacheSize: cacheBytes,
		MemTableSize: memTableBytes, FormatMajorVersion: storeFormat,
	}
	o.EventListener = j.listener()
	for i := range o.Levels {
		// Receipts, and facts that nobody promised to be new, are looked up and
		// mostly absent: a filter answers from memory.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	if j.tune != nil {
		j.tune(o)
	}
	return o
}

// checkFormat reads the format key, or writes it into a store that is empty.
func (j *Journal) checkFormat() error {
	v, closer, err := j.db.Get([]byte(formatKey))
	if err == nil {
		is := string(v)
		if err := closer.Close(); err != nil {
			return err
		}
		if is != formatValue {
			return fmt.Errorf("%w: %q, this release knows %q", journal.ErrFormat, is, formatValue)
		}
		return nil
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return j.storeError(err)
	}
	it, err := j.db.NewIter(nil)
	if err != nil {
		return j.storeError(err)
	}
	empty := !it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return j.storeError(err)
	}
	remembered := len(j.witness.names())
	if !empty && remembered > 0 {
		what := "its key " + formatKey + " is missing"
		return j.damage(journal.ErrCorrupt, "", "the store", what, nil)
	}
	if !empty {
		return fmt.Errorf("%w: a store that is not empty has no key %s; is %s a journal?",
			journal.ErrFormat, formatKey, j.dir)
	}
	if remembered > 0 {
		return j.damage(journal.ErrGap, "", "the store", fmt.Sprintf(
			"it is empty, and the witness remembers %d graphs", remembered), nil)
	}
	return j.db.Set([]byte(formatKey), []byte(formatValue), pebble.Sync)
}

// loadGraphs fills the map of graphs with their heads. A head that cannot be
// read is remembered in its graph, so that the others can be served.
func (j *Journal) loadGraphs() error {
	it, err := j.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte(graphsPrefix), UpperBound: []byte(graphsEnd),
	})
	if err != nil {
		return j.storeError(err)
	}
	for ok := it.First(); ok; {
		name, ok2 := graphOfKey(it.Key())
		if !ok2 {
			where := fmt.Sprintf("key %q", it.Key())
			err := j.damage(journal.ErrCorrupt, "", where, "names no graph", nil)
			return errors.Join(err, it.Close())
		}
		g := newGraph(name)
		if g.broken = j.loadHead(g); g.broken == nil {
			g.broken = j.checkWitness(name, g.head)
		}
		g.unwitnessed = j.witness.absent && g.head.Opening > 0
		j.graphs[name] = g
		ok = it.SeekGE(g.end)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return j.storeError(err)
	}
	for _, name := range j.witness.names() {
		if j.graphs[name] == nil {
			g := newGraph(name)
			g.broken = j.checkWitness(name, head{})
			j.graphs[name] = g
		}
	}
	for _, g := range j.graphs {
		if g.broken != nil {
			return nil // the store may be in disorder: its old files stay
		}
	}
	return j.fs.allow()
}

func (j *Journal) loadHead(g *graph) error {
	v, closer, err := j.db.Get(g.headKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return j.damage(journal.ErrCorrupt, g.name, "the head", "it is missing", nil)
	}
	if err != nil {
		return j.readError(g.name, "the head", err)
	}
	h, err := parseHead(v)
	if err := errors.Join(err, closer.Close()); err != nil {
		return j.damage(journal.ErrCorrupt, g.name, "the head", "", err)
	}
	g.head = h
	return nil
}

// Close waits for calls in progress, writes the witness and closes the store.
// A second Close returns journal.ErrClosed.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return journal.ErrClosed
	}
	j.closed = true
	j.mu.Unlock()
	if err := j.failure(); err != nil {
		// The call that failed never ends, and neither would closing the store.
		return err
	}
	j.calls.Wait()
	err := j.writeWitness("")
	return errors.Join(err, j.release())
}

// release gives back what open took, as far as it came.
func (j *Journal) release() error {
	var errs []error
	if j.db != nil {
		errs = append(errs, j.db.Close())
	}
	if j.lock != nil {
		errs = append(errs, j.dropHolder(), j.lock.Close())
	}
	return errors.Join(errs...)
}

// enter begins a call; the caller must leave it with j.calls.Done.
func (j *Journal) enter() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return journal.ErrClosed
	}
	j.calls.Add(1)
	return nil
}

// graph begins a call for a graph; the caller must leave it with j.calls.Done.
func (j *Journal) graph(name string) (*graph, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, journal.ErrClosed
	}
	g := j.graphs[name]
	if g == nil {
		if err := journal.CheckName(name); err != nil {
			return nil, err
		}
		return nil, journal.ErrNotFound
	}
	if g.broken != nil {
		return nil, g.broken
	}
	j.calls.Add(1)
	return g, nil
}

// Graphs returns the names of all graphs, sorted; damaged ones as well.
func (j *Journal) Graphs(context.Context) ([]string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, journal.ErrClosed
	}
	names := make([]string, 0, len(j.graphs))
	for name := range j.graphs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// newTurn returns a turn that is free.
func newTurn() chan struct{} { return make(chan struct{}, 1) }

// take waits for a turn; the caller gives it back by receiving from it.
func take(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
