// Package views joins the engine to broadcasts: it turns the paths and track
// names that viewers ask for into keyed views, watches a key while it has
// viewers and a little longer, and writes what the engine says has changed as
// groups of frames into the key's one track, which all its viewers share.
//
// Sessions (protocol/lite) call a Directory through the Origin of their grants,
// from many goroutines; each graph's loop (host/ingest) calls its Graph as
// Publisher. The package starts no goroutine and does no I/O.
//
// Locks: Directory.mu before Graph.mu; routes.mu is taken alone. Nothing waits
// and no track is written under one of them.
package views

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
)

// Config is what a Directory is made of. All fields are required.
type Config struct {
	// Linger is how long a key stays watched without viewers, give or take a second.
	Linger time.Duration
	// MaxLatency is what tracks announce: how long others may keep finished groups.
	MaxLatency time.Duration
	// KeysMax is how many keys of one graph are watched at most; a viewer of a
	// further one is refused with protocol.CodeBusy.
	KeysMax int
	// WatchSteps bounds the engine's work for the first rows of a key, in the steps
	// of engine.QueryOptions; a key over it is refused as too expensive.
	WatchSteps uint64
	// PartBytes is the size of a snapshot's parts.
	PartBytes int
	Now       func() time.Time
	Logger    *slog.Logger
	Metrics   *Metrics
}

// Metrics are the counters of all graphs. They may be read at any time.
type Metrics struct {
	WatchedKeys atomic.Int64  // now
	Viewers     atomic.Int64  // subscriptions to keys, now
	Groups      atomic.Uint64 // written to tracks of keys
	Frames      atomic.Uint64
	Bytes       atomic.Uint64 // of those frames
}

// Directory holds the graphs whose views are served.
type Directory struct {
	cfg    Config
	routes routes

	mu     sync.Mutex
	graphs map[string]*Graph
}

// New returns an empty directory.
func New(cfg Config) *Directory {
	return &Directory{cfg: cfg, graphs: map[string]*Graph{}}
}

// NewGraph makes the Publisher of a graph's loop. Sessions reach the graph once
// Serve was called.
func (d *Directory) NewGraph(name string) *Graph {
	return &Graph{dir: d, name: name, views: map[string]*view{}, progress: d.newTrack()}
}

// Serve lets sessions reach g, whose keys loop watches from now on.
func (d *Directory) Serve(g *Graph, loop Loop) {
	g.loop = loop
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.graphs[g.name] != nil {
		panic("views: a graph is served twice")
	}
	d.graphs[g.name] = g
}

// Remove ends all tracks of a graph whose loop has ended, and which may not run
// again, with a code that its viewers see.
func (d *Directory) Remove(g *Graph, code protocol.StreamCode) {
	d.mu.Lock()
	if d.graphs[g.name] == g {
		delete(d.graphs, g.name)
	}
	d.mu.Unlock()
	tracks := []*moq.Track{g.progress}
	g.mu.Lock()
	views := g.views
	g.views = map[string]*view{}
	for _, v := range views {
		tracks = append(tracks, v.meta)
		for _, k := range v.keys {
			tracks = append(tracks, k.track)
			g.forgetLocked(k)
		}
	}
	g.mu.Unlock()
	for _, v := range views {
		d.routes.set(v.path(), false)
	}
	for _, e := range g.ending {
		e.track.Abort(e.code)
	}
	for _, t := range tracks {
		t.Abort(code)
	}
}

func (d *Directory) graph(name string) *Graph {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.graphs[name]
}

func (d *Directory) newTrack() *moq.Track { return moq.NewTrack(d.trackInfo()) }

// trackInfo is the same for all tracks, so that TRACK needs no track.
func (d *Directory) trackInfo() moq.Info {
	return moq.Info{MaxLatency: d.cfg.MaxLatency, Timescale: 1000}
}

// Grants are the path prefixes, from the top, that a session may subscribe to.
// Root is where the session connected: all paths that its peer names and hears
// are below it.
type Grants struct {
	Root      protocol.Path
	Subscribe []protocol.Path
}

// AllGrants allows everything below root; a session on loopback has it.
func AllGrants(root protocol.Path) Grants {
	return Grants{Root: root, Subscribe: []protocol.Path{""}}
}

// cover reports whether the session may subscribe at path.
func (g Grants) cover(path protocol.Path) bool {
	return slices.ContainsFunc(g.Subscribe, path.HasPrefix)
}

// reach reports whether the session may subscribe at path or somewhere below it.
func (g Grants) reach(path protocol.Path) bool {
	for _, prefix := range g.Subscribe {
		if path.HasPrefix(prefix) || prefix.HasPrefix(path) {
			return true
		}
	}
	return false
}

func refuse(code protocol.StreamCode, format string, args ...any) error {
	return &protocol.StreamError{Code: code, Reason: fmt.Sprintf(format, args...)}
}
