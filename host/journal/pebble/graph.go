package pebble

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/heddle-live/heddle/host/journal"
)

// graph is one graph's log. Who changes it holds turn; buffers belong to turn.
type graph struct {
	name    string
	prefix  []byte
	end     []byte // first key behind the graph
	headKey []byte
	facts   []byte      // section of facts
	records []byte      // section of records
	broken  error       // set before the graph is shared: no call is allowed
	checked atomic.Bool // Open found the head sound
	turn    chan struct{}

	open        bool // guarded by turn
	dropped     bool // guarded by turn
	unwitnessed bool // guarded by turn: it had openings that no witness remembered
	batch       *pebble.Batch
	key         []byte
	value       []byte

	mu   sync.Mutex
	head head // written by who holds turn as well
}

func newGraph(name string) *graph {
	g := &graph{name: name, turn: newTurn()}
	g.prefix = appendGraphPrefix(nil, name)
	g.end = sectionEnd(g.prefix)
	g.headKey = append(bytes.Clone(g.prefix), letterHead)
	g.facts = appendSection(nil, g.prefix, letterFact)
	g.records = appendSection(nil, g.prefix, letterRecord)
	g.head.first = 1
	return g
}

func (g *graph) recordKey(revision uint64) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(g.records), revision)
}

func (g *graph) programKey(revision uint64) []byte {
	return binary.BigEndian.AppendUint64(appendSection(nil, g.prefix, letterProgram), revision)
}

func (g *graph) currentHead() head {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.head
}

func (g *graph) setHead(h head) {
	g.mu.Lock()
	g.head = h
	g.mu.Unlock()
}

// takeTurn waits for the graph's turn. It returns journal.ErrNotFound if the
// graph was dropped meanwhile.
func (g *graph) takeTurn(ctx context.Context) error {
	if err := take(ctx, g.turn); err != nil {
		return err
	}
	if g.dropped {
		<-g.turn
		return journal.ErrNotFound
	}
	return nil
}

// formerOpening names a key in messages.
const formerOpening = "the opening number of the dropped graph"

// Create makes an empty graph. See journal.Journal.
func (j *Journal) Create(ctx context.Context, name string) error {
	if err := journal.CheckName(name); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := j.enter(); err != nil {
		return fmt.Errorf("create graph %q: %w", name, err)
	}
	defer j.calls.Done()
	if err := j.create(ctx, name); err != nil {
		return fmt.Errorf("create graph %q: %w", name, err)
	}
	return nil
}

func (j *Journal) create(ctx context.Context, name string) error {
	if err := take(ctx, j.admin); err != nil {
		return err
	}
	defer func() { <-j.admin }()
	j.mu.Lock()
	exists, n := j.graphs[name] != nil, len(j.graphs)
	j.mu.Unlock()
	switch {
	case exists:
		return journal.ErrExists
	case n >= GraphsMax:
		return fmt.Errorf("%w: %d graphs", journal.ErrTooLarge, GraphsMax)
	}
	if err := j.mayWrite(); err != nil {
		return err
	}
	g := newGraph(name)
	v, closer, err := j.db.Get(openingKey(name))
	switch {
	case err == nil:
		opening, k := binary.Uvarint(v)
		if err := closer.Close(); err != nil {
			return err
		}
		if k != len(v) || opening > journal.OpeningMax {
			return j.damage(journal.ErrCorrupt, name, formerOpening, "unreadable", nil)
		}
		g.head.Opening = opening
	case !errors.Is(err, pebble.ErrNotFound):
		return j.readError(name, formerOpening, err)
	}
	if err := j.db.Set(g.headKey, appendHead(nil, &g.head), pebble.Sync); err != nil {
		return err
	}
	j.mu.Lock()
	j.graphs[name] = g
	j.mu.Unlock()
	return nil
}

// Drop removes a graph, a damaged one as well. See journal.Journal.
func (j *Journal) Drop(ctx context.Context, name string) error {
	if err := j.enter(); err != nil {
		return fmt.Errorf("drop graph %q: %w", name, err)
	}
	defer j.calls.Done()
	if err := j.drop(ctx, name); err != nil {
		return fmt.Errorf("drop graph %q: %w", name, err)
	}
	return nil
}

func (j *Journal) drop(ctx context.Context, name string) error {
	if err := journal.CheckName(name); err != nil {
		return err
	}
	if err := take(ctx, j.admin); err != nil {
		return err
	}
	defer func() { <-j.admin }()
	j.mu.Lock()
	g := j.graphs[name]
	j.mu.Unlock()
	if g == nil {
		return journal.ErrNotFound
	}
	if err := g.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-g.turn }()
	if err := j.failure(); err != nil {
		return err
	}
	opening := g.head.Opening
	if e, ok := j.witness.get(name); ok {
		opening = max(opening, e.opening)
	}
	// First, or a crash in between would leave a witness of a graph that is gone.
	if err := j.forget(g); err != nil {
		return err
	}
	b := j.db.NewBatch()
	defer b.Close()
	if err := errors.Join(
		b.DeleteRange(g.prefix, g.end, nil),
		b.Set(openingKey(name), binary.AppendUvarint(nil, opening), nil),
	); err != nil {
		return err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return err
	}
	g.dropped = true
	if g.batch != nil {
		if err := g.batch.Close(); err != nil {
			return err
		}
		g.batch = nil
	}
	j.mu.Lock()
	delete(j.graphs, name)
	j.mu.Unlock()
	return nil
}

// Open begins a new opening after checking the tail. See journal.Journal.
func (j *Journal) Open(ctx context.Context, name string, now time.Time) (journal.Position, error) {
	p, err := j.begin(ctx, name, now, true)
	if err != nil {
		return journal.Position{}, fmt.Errorf("open graph %q: %w", name, err)
	}
	return p, nil
}

// NextOpening begins the next opening of an open graph. See journal.Journal.
func (j *Journal) NextOpening(
	ctx context.Context, name string, now time.Time,
) (journal.Position, error) {
	p, err := j.begin(ctx, name, now, false)
	if err != nil {
		return journal.Position{}, fmt.Errorf("next opening of graph %q: %w", name, err)
	}
	return p, nil
}

func (j *Journal) begin(
	ctx context.Context, name string, now time.Time, first bool,
) (journal.Position, error) {
	g, err := j.graph(name)
	if err != nil {
		return journal.Position{}, err
	}
	defer j.calls.Done()
	if err := g.takeTurn(ctx); err != nil {
		return journal.Position{}, err
	}
	defer func() { <-g.turn }()
	// An opening is a few bytes. Below the floor it is begun all the same, for
	// otherwise a server with a full disk could serve no viewer after a restart.
	if err := j.sound(); err != nil {
		return journal.Position{}, err
	}
	h := g.head
	previous := h.Opening
	if first {
		if err := j.checkTail(g, h); err != nil {
			return journal.Position{}, err
		}
		if g.unwitnessed {
			// Somebody removed the witness and so accepts a loss: as after a restore,
			// the sequences go on above all that may have been lost.
			previous += journal.OpeningsPerRestore
		}
	} else if !g.open {
		return journal.Position{}, journal.ErrNotOpen
	}
	if h.Opening, err = journal.NextOpening(previous, now); err != nil {
		return journal.Position{}, err
	}
	var random [10]byte
	if _, err := rand.Read(random[:]); err != nil {
		return journal.Position{}, err
	}
	h.Epoch = journal.NewEpoch(now, random)
	if err := j.db.Set(g.headKey, appendHead(nil, &h), pebble.Sync); err != nil {
		return journal.Position{}, err
	}
	g.setHead(h)
	g.open, g.unwitnessed = true, false
	g.checked.Store(true)
	return h.Position, j.writeWitness("")
}

// checkTail holds the newest record against the head, and looks that none is
// missing at either end and none lies beyond.
func (j *Journal) checkTail(g *graph, h head) error {
	it, err := j.db.NewIter(&pebble.IterOptions{
		LowerBound: g.records, UpperBound: sectionEnd(g.records),
	})
	if err != nil {
		return j.readError(g.name, "the records", err)
	}
	defer it.Close()
	if !it.Last() {
		if err := it.Error(); err != nil {
			return j.readError(g.name, "the records", err)
		}
		if h.Revision > 0 {
			return j.damage(journal.ErrGap, g.name, "the records", fmt.Sprintf(
				"none is there, the head is at revision %d", h.Revision), nil)
		}
		return j.checkProgram(g, h)
	}
	r, err := j.readRecord(g, it)
	if err != nil {
		return err
	}
	switch where := fmt.Sprintf("record %d", r.revision); {
	case r.revision < h.Revision:
		return j.damage(journal.ErrGap, g.name, where, fmt.Sprintf(
			"it is the newest, the head is at revision %d", h.Revision), nil)
	case r.revision > h.Revision:
		return j.damage(journal.ErrCorrupt, g.name, where, fmt.Sprintf(
			"it lies beyond the head, revision %d", h.Revision), nil)
	case r.hash != h.Hash:
		return j.damage(journal.ErrCorrupt, g.name, where, fmt.Sprintf(
			"its hash is %x…, the head names %x…", r.hash[:8], h.Hash[:8]), nil)
	}
	if !it.First() {
		err := errors.Join(it.Error(), errors.New("cannot be found"))
		return j.readError(g.name, "the oldest record", err)
	}
	if oldest, err := g.revisionOf(it.Key()); err != nil || oldest != h.first {
		return j.damage(journal.ErrGap, g.name, fmt.Sprintf("record %d", h.first), fmt.Sprintf(
			"it is missing: the oldest kept is %d", oldest), err)
	}
	return j.checkProgram(g, h)
}

func (j *Journal) checkProgram(g *graph, h head) error {
	_, err := j.readProgram(j.db, g, h)
	return err
}
