package views

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/wire"
	"github.com/heddle-live/heddle/sdk/frame"
)

// EndDelay is how long the last frame of a closed track stands before the track
// is reset, so that the frame arrives first.
const EndDelay = 200 * time.Millisecond

// tidyPiece is how long Tidy works at a time, give or take a key: what a write
// may have to wait.
const tidyPiece = time.Millisecond

// Loop is the part of a graph's write loop that views need; see ingest.Loop.
type Loop interface {
	Do(ctx context.Context, task func(*ingest.Turn)) error
}

// Graph is one graph's views and their watched keys. It is the Publisher of the
// graph's loop.
type Graph struct {
	dir      *Directory
	name     string
	loop     Loop
	progress *moq.Track

	mu      sync.Mutex
	views   map[string]*view
	watched int
	idle    []idler // keys that lost their last viewer, oldest first

	// The rest belongs to the loop.
	encoder  encoder
	content  []unitRows // of the group that is written
	ending   []ending
	oversize []*keyed
	// Of the present publication: when the engine was entered last, and how long
	// it took before that.
	entered, engineNanos int64
	reported             uint64 // revision of the last progress frame
}

// view is one view of the program in force. Its keys are guarded by Graph.mu.
type view struct {
	graph      *Graph
	name       string
	parameters []analysis.Column // as in the program in force; guarded by Graph.mu
	parts      []analysis.Part   // names and columns never change
	types      []frame.Type      // of the parameters
	meta       *moq.Track
	keys       map[string]*keyed
	viewers    int
}

// keyed is one view at one key.
type keyed struct {
	view   *view
	key    string
	values []value.Value
	track  *moq.Track

	// Guarded by Graph.mu.
	viewers   int
	idleSince time.Time
	gone      bool // out of view.keys; never served again

	// Owned by the loop.
	watch *engine.Key
	held  uint64 // revision of the last publication
}

type idler struct {
	keyed *keyed
	since time.Time
}

type ending struct {
	track *moq.Track
	code  protocol.StreamCode
	at    time.Time
}

func (v *view) path() protocol.Path {
	return protocol.Path(v.graph.name).Join(protocol.Path(v.name))
}

// sameShape reports whether viewers of v can go on when declared takes its place.
func (v *view) sameShape(declared *analysis.View) bool {
	sameType := func(a, b analysis.Column) bool { return a.Type == b.Type }
	samePart := func(a, b analysis.Part) bool {
		return a.Name == b.Name && slices.Equal(a.Query.Columns, b.Query.Columns)
	}
	return slices.EqualFunc(v.parameters, declared.Parameters, sameType) &&
		slices.EqualFunc(v.parts, declared.Parts, samePart)
}

// Deployed takes a program into force: views that are gone or whose parameters
// or columns differ end with a reason, new ones are announced, and every view's
// track meta is written anew.
func (g *Graph) Deployed(t *ingest.Turn, _ *engine.Diff) {
	program := t.Engine.Program()
	next := map[string]*view{}
	g.mu.Lock()
	old := g.views
	for i := range program.Views {
		declared := &program.Views[i]
		if v := old[declared.Name]; v != nil && v.sameShape(declared) {
			next[declared.Name] = v
			v.parameters = declared.Parameters // they may have other names
			continue
		}
		next[declared.Name] = g.newView(declared)
	}
	g.views = next
	g.mu.Unlock()
	for name, v := range old {
		if next[name] == v {
			continue
		}
		if next[name] == nil {
			g.dir.routes.set(v.path(), false)
			g.end(t, v, protocol.CodeViewDropped, frame.Closed{
				Code: frame.ClosedViewDropped, Message: "view " + name + " was dropped",
			})
			continue
		}
		g.end(t, v, protocol.CodeViewChanged, frame.Closed{
			Code:    frame.ClosedViewChanged,
			Message: "view " + name + " has other parameters or columns now",
		})
	}
	for i := range program.Views {
		v := next[program.Views[i].Name]
		g.writeMeta(t, v, &program.Views[i])
		g.dir.routes.set(v.path(), true)
	}
}

// Drop ends every view with a last frame that gives the reason. The tracks are
// reset by Remove, which should follow EndDelay later.
func (g *Graph) Drop(t *ingest.Turn, reason frame.Closed) {
	g.mu.Lock()
	views := g.views
	g.views = map[string]*view{}
	for _, v := range views {
		for _, k := range v.keys {
			if k.watch != nil {
				t.Engine.Unwatch(k.watch)
			}
		}
	}
	g.mu.Unlock()
	for _, v := range views {
		g.dir.routes.set(v.path(), false)
		g.end(t, v, protocol.CodeViewDropped, reason)
	}
}

func (g *Graph) newView(declared *analysis.View) *view {
	v := &view{
		graph: g, name: declared.Name,
		parameters: declared.Parameters, parts: declared.Parts,
		meta: g.dir.newTrack(), keys: map[string]*keyed{},
	}
	for _, c := range v.parameters {
		v.types = append(v.types, frameType(c.Type))
	}
	return v
}

func (g *Graph) writeMeta(t *ingest.Turn, v *view, declared *analysis.View) {
	meta := frame.Meta{
		View: v.name, Schema: t.Schema, Text: declared.Text,
		Parameters: frameColumns(v.parameters), Columns: []frame.Column{},
	}
	for i := range v.parts {
		part := &v.parts[i]
		columns := frameColumns(part.Query.Columns)
		if part.Name == "" {
			meta.Columns = columns
			break
		}
		meta.Parts = append(meta.Parts, frame.Part{Name: part.Name, Columns: columns})
	}
	g.write(t, v.meta, moq.Frame{Timestamp: t.NowMilli, Payload: frame.AppendMeta(nil, &meta)})
}

// end closes every key of a view that is gone. The engine has forgotten the
// keys already.
func (g *Graph) end(t *ingest.Turn, v *view, code protocol.StreamCode, reason frame.Closed) {
	g.mu.Lock()
	keys := make([]*keyed, 0, len(v.keys))
	for _, k := range v.keys {
		k.gone = true
		keys = append(keys, k)
	}
	clear(v.keys)
	g.watched -= len(keys)
	g.mu.Unlock()
	g.dir.cfg.Metrics.WatchedKeys.Add(-int64(len(keys)))
	last := g.encoder.closed(t, reason)
	for _, k := range keys {
		k.watch = nil
		g.write(t, k.track, moq.Frame{Timestamp: t.NowMilli, Payload: last})
		g.endLater(k.track, code)
	}
	g.endLater(v.meta, code)
}

func (g *Graph) endLater(track *moq.Track, code protocol.StreamCode) {
	g.ending = append(g.ending, ending{track: track, code: code, at: g.dir.cfg.Now().Add(EndDelay)})
}

// write begins a new group of a track that is not a key's.
func (g *Graph) write(t *ingest.Turn, track *moq.Track, f moq.Frame) {
	if err := track.WriteGroup(t.Sequence(), f); err != nil {
		g.dir.cfg.Logger.Error("write a track", "graph", g.name, "err", err)
	}
}

// begin watches a key for its first viewer and writes its first group.
func (g *Graph) begin(t *ingest.Turn, k *keyed) {
	g.mu.Lock()
	gone := k.gone
	g.mu.Unlock()
	if gone {
		return // the view ended, or the key was idle too long, before this turn
	}
	watch, err := t.Engine.WatchWithin(k.view.name, k.values, g.dir.cfg.WatchSteps)
	if errors.Is(err, engine.ErrBudget) {
		g.forget(k)
		g.last(t, k, t.Sequence(), protocol.CodeTooExpensive, frame.Closed{
			Code: frame.ClosedTooExpensive, Message: "the first rows: " + err.Error(),
		})
		return
	}
	if errors.Is(err, engine.ErrFull) {
		g.forget(k)
		g.last(t, k, t.Sequence(), protocol.CodeBusy, frame.Closed{
			Code: frame.ClosedBusy, Message: err.Error(),
		})
		return
	}
	if err != nil {
		// The view was checked when the viewer came; only a fault of ours gets here.
		g.dir.cfg.Logger.Error("watch a key", "graph", g.name, "view", k.view.name,
			"key", k.key, "err", err)
		g.forget(k)
		k.track.Abort(protocol.CodeInternal)
		return
	}
	watch.Owner = k
	k.watch, k.held = watch, t.Revision
	g.publish(t, k, publication{revision: t.Revision, sequence: t.Sequence()})
	g.letGoOversize(t)
	g.restate(t)
}

// Publish writes a new group for each key that the batch changed.
func (g *Graph) Publish(t *ingest.Turn) {
	var sequence uint64 // one publication, one number
	g.entered, g.engineNanos = t.Nanos(), 0
	t.Engine.Changes(func(key *engine.Key, revision uint64, parts []engine.Change) {
		k, ok := key.Owner.(*keyed)
		if !ok {
			panic("views: the engine reports a key that nobody watches")
		}
		if sequence == 0 {
			sequence = t.Sequence()
		}
		p := publication{revision: revision, sequence: sequence, base: k.held, changes: parts}
		if !slices.ContainsFunc(parts, changesRows) {
			// Only what the rows lack is another: they are exact where they were.
			p.revision, p.changes = k.held, nil
		}
		g.publish(t, k, p)
		g.entered = t.Nanos()
	})
	t.CountEngine(g.engineNanos + t.Nanos() - g.entered)
	g.letGoOversize(t)
}

func changesRows(c engine.Change) bool { return len(c.Insert)+len(c.Retract) > 0 }

// stale says what the rows of a key lack; see publication.
func (g *Graph) stale(t *ingest.Turn, k *keyed) []*frame.Stale {
	var all []*frame.Stale
	for i := range k.view.parts {
		doubt, cause := t.Engine.Doubt(k.watch, i)
		if doubt == engine.Exact {
			continue
		}
		if all == nil {
			all = make([]*frame.Stale, len(k.view.parts))
		}
		s := &frame.Stale{Code: frame.StaleError, Rule: cause.Rule}
		if doubt == engine.Incomplete {
			s.Code = frame.StaleIncomplete
		}
		// The values that a rule failed for may be another viewer's, so they are not told.
		s.Message = "a rule cannot be computed for some rows"
		if len(cause.Samples) > 0 {
			s.Message += ": " + cause.Samples[0].Code
		}
		all[i] = s
	}
	return all
}

// last writes a key's last frame, which says why, and has its track reset soon.
func (g *Graph) last(t *ingest.Turn, k *keyed, sequence uint64, code protocol.StreamCode,
	reason frame.Closed,
) {
	g.dir.cfg.Logger.Warn("a key is not served", "graph", g.name, "view", k.view.name,
		"key", k.key, "reason", reason.Code, "message", reason.Message)
	last := moq.Frame{Timestamp: t.NowMilli, Payload: g.encoder.closed(t, reason)}
	if err := k.track.WriteGroup(sequence, last); err != nil {
		g.dir.cfg.Logger.Error("write a key's last frame", "graph", g.name, "err", err)
	}
	g.endLater(k.track, code)
}

// letGoOversize ends the keys whose track has just ended because a group did not
// fit. It runs before anything else could meet them.
func (g *Graph) letGoOversize(t *ingest.Turn) {
	for _, k := range g.oversize {
		g.forget(k)
		t.Engine.Unwatch(k.watch)
		k.watch = nil
	}
	clear(g.oversize)
	g.oversize = g.oversize[:0]
}

// publish writes one group of a key: its whole rows, and what changed.
func (g *Graph) publish(t *ingest.Turn, k *keyed, p publication) {
	parts := k.view.parts
	for len(g.content) < len(parts) {
		g.content = append(g.content, unitRows{})
	}
	content := g.content[:len(parts)]
	for i := range content {
		u := &content[i]
		u.name, u.width = parts[i].Name, len(parts[i].Query.Columns)
		u.rows = t.Engine.Rows(k.watch, i, u.rows[:0])
	}
	p.stale = g.stale(t, k)
	g.engineNanos += t.Nanos() - g.entered
	var frames []moq.Frame
	size := textBytes(content)
	// Rows may share long texts, so that as frames they would be larger than all memory.
	if size <= moq.MaxGroupBytes {
		frames = g.encoder.group(t, p, content, g.dir.cfg.PartBytes)
		size = g.encoder.bytes() + len(frames)*wire.MaxFrameHeaderBytes
	}
	if size > moq.MaxGroupBytes {
		g.last(t, k, p.sequence, protocol.CodeFrameTooLarge, frame.Closed{
			Code: frame.ClosedTooLarge,
			Message: fmt.Sprintf("the rows take at least %d bytes as frames, and a group holds %d",
				size, moq.MaxGroupBytes),
		})
		g.oversize = append(g.oversize, k)
		return
	}
	k.held = p.revision
	m := g.dir.cfg.Metrics
	m.Groups.Add(1)
	m.Frames.Add(uint64(len(frames)))
	m.Bytes.Add(uint64(g.encoder.bytes()))
	if err := k.track.WriteGroup(p.sequence, frames...); err != nil {
		g.dir.cfg.Logger.Error("write a key's rows", "graph", g.name, "view", k.view.name,
			"key", k.key, "err", err)
		g.oversize = append(g.oversize, k)
	}
}

// restate tells viewers what a key that came or went has changed for others: rules are
// computed for watched keys only, and so their failures come and go with keys.
func (g *Graph) restate(t *ingest.Turn) {
	if t.Engine.Unreported() {
		g.Publish(t)
	}
}

// Tidy ends keys that nobody has viewed for a while, as many as its time allows:
// thousands may have lost their viewers at once.
func (g *Graph) Tidy(t *ingest.Turn, now time.Time) (more bool) {
	began := t.Nanos()
	for {
		k := g.sweep(now.Add(-g.dir.cfg.Linger))
		if k == nil {
			return false
		}
		if k.watch != nil {
			t.Engine.Unwatch(k.watch)
			k.watch = nil
		}
		k.track.Finish()
		if t.Nanos()-began >= int64(tidyPiece) {
			return true
		}
	}
}

// Tick resets tracks whose last frame stood long enough, and reports progress.
func (g *Graph) Tick(t *ingest.Turn, now time.Time) {
	kept := g.ending[:0]
	for _, e := range g.ending {
		if e.at.After(now) {
			kept = append(kept, e)
			continue
		}
		e.track.Abort(e.code)
	}
	clear(g.ending[len(kept):])
	g.ending = kept
	g.restate(t)
	if g.progress.Cursors() > 0 || g.reported != t.Revision {
		g.reported = t.Revision
		p := frame.Progress{Epoch: t.Epoch, Durable: t.Revision, Published: t.Revision}
		g.write(t, g.progress, moq.Frame{
			Timestamp: t.NowMilli, Payload: frame.AppendProgress(nil, p),
		})
	}
}

// sweep takes one key that has been idle since before the given time out of its
// view, nil if there is none.
func (g *Graph) sweep(before time.Time) *keyed {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.idle) > 0 && !g.idle[0].since.After(before) {
		i := g.idle[0]
		g.idle[0] = idler{}
		g.idle = g.idle[1:]
		if k := i.keyed; k.viewers == 0 && !k.gone && k.idleSince == i.since {
			g.forgetLocked(k)
			return k
		}
	}
	return nil
}

func (g *Graph) forget(k *keyed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forgetLocked(k)
}

func (g *Graph) forgetLocked(k *keyed) {
	if k.gone {
		return
	}
	k.gone = true
	delete(k.view.keys, k.key)
	g.watched--
	g.dir.cfg.Metrics.WatchedKeys.Add(-1)
}

// Family describes the watched keys of one view.
type Family struct {
	View        string
	Parameters  []analysis.Column
	WatchedKeys int
	Viewers     int
}

// Families returns all views in the order of their names.
func (g *Graph) Families() []Family {
	g.mu.Lock()
	defer g.mu.Unlock()
	families := make([]Family, 0, len(g.views))
	for _, v := range g.views {
		families = append(families, Family{
			View: v.name, Parameters: v.parameters, WatchedKeys: len(v.keys), Viewers: v.viewers,
		})
	}
	slices.SortFunc(families, func(a, b Family) int {
		if a.View < b.View {
			return -1
		}
		return 1
	})
	return families
}
