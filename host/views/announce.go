package views

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
)

// routes is the table of announced paths, one for each view, and of those who
// listen. A change costs each listener whose prefix it concerns one entry of a
// coalescing set; keys are never in it.
type routes struct {
	mu        sync.Mutex
	paths     map[protocol.Path]bool
	listeners map[*announcements]bool
}

// set announces or withdraws a path. Repetitions change nothing.
func (r *routes) set(path protocol.Path, active bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paths == nil {
		r.paths = map[protocol.Path]bool{}
	}
	if r.paths[path] == active {
		return
	}
	if active {
		r.paths[path] = true
	} else {
		delete(r.paths, path)
	}
	for l := range r.listeners {
		l.noteLocked(path, active)
	}
}

// announcements is one peer's announce stream. A prefix below a view's path is
// answered by computation: the view can serve it, so it is one entry with an
// empty suffix, and no state for the path.
type announcements struct {
	routes *routes
	grants Grants
	prefix protocol.Path
	news   chan struct{} // has room for one

	// Guarded by routes.mu.
	pending map[protocol.Path]bool // by suffix
	sent    map[protocol.Path]bool
	first   bool
}

// Announcements listens to the routes that concern prefix.
func (o *origin) Announcements(prefix protocol.Path) lite.Announcements {
	a := &announcements{
		routes: &o.dir.routes, grants: o.grants, prefix: o.grants.Root.Join(prefix),
		news:    make(chan struct{}, 1),
		pending: map[protocol.Path]bool{}, sent: map[protocol.Path]bool{}, first: true,
	}
	r := a.routes
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listeners == nil {
		r.listeners = map[*announcements]bool{}
	}
	r.listeners[a] = true
	for path := range r.paths {
		a.noteLocked(path, true)
	}
	return a
}

func (a *announcements) noteLocked(path protocol.Path, active bool) {
	suffix, concerns := path.TrimPrefix(a.prefix)
	if !concerns {
		if !a.prefix.HasPrefix(path) || !a.grants.reach(a.prefix) {
			return
		}
		suffix = "" // the request lies below the route
	} else if !a.grants.reach(path) {
		return
	}
	a.pending[suffix] = active
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// Next returns what changed since the last call, sorted; the first call returns
// the present set at once, even if empty.
func (a *announcements) Next(ctx context.Context) ([]lite.Announcement, error) {
	for {
		if list, ok := a.take(); ok {
			return list, nil
		}
		select {
		case <-a.news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (a *announcements) take() ([]lite.Announcement, bool) {
	a.routes.mu.Lock()
	defer a.routes.mu.Unlock()
	var list []lite.Announcement
	for _, suffix := range slices.Sorted(maps.Keys(a.pending)) {
		active := a.pending[suffix]
		if a.sent[suffix] == active {
			continue // it came and went, or went and came
		}
		if active {
			a.sent[suffix] = true
		} else {
			delete(a.sent, suffix)
		}
		list = append(list, lite.Announcement{Suffix: suffix, Active: active})
	}
	clear(a.pending)
	first := a.first
	a.first = false
	return list, first || len(list) > 0
}

// Close stops listening.
func (a *announcements) Close() {
	a.routes.mu.Lock()
	defer a.routes.mu.Unlock()
	delete(a.routes.listeners, a)
}
