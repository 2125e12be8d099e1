package views

import (
	"context"
	"strings"
	"sync"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/sdk/frame"
)

// Origin returns what a session with the given grants is served.
func (d *Directory) Origin(grants Grants) lite.Origin { return &origin{dir: d, grants: grants} }

// origin answers one session. Safe for concurrent use.
type origin struct {
	dir    *Directory
	grants Grants
}

// target is what a broadcast and a track name together mean.
type target struct {
	graph *Graph
	// track is set for tracks that stand by themselves: meta and progress.
	track *moq.Track
	// Otherwise the rows of a key:
	view       *view
	parameters []analysis.Column
	key        string
	values     []value.Value
}

// Info says what a track is like, without making anybody watch it.
func (o *origin) Info(_ context.Context, broadcast protocol.Path, track string) (moq.Info, error) {
	if _, err := o.resolve(broadcast, track); err != nil {
		return moq.Info{}, err
	}
	return o.dir.trackInfo(), nil
}

// Subscribe returns the track with its viewer counted until release is called.
// The first viewer of a key has it watched; its rows come as the first group.
func (o *origin) Subscribe(ctx context.Context, broadcast protocol.Path, track string) (
	*moq.Track, func(), error,
) {
	at, err := o.resolve(broadcast, track)
	if err != nil {
		return nil, nil, err
	}
	if at.track != nil {
		return at.track, func() {}, nil
	}
	return at.graph.view(ctx, at)
}

// view counts a viewer of a key and returns the key's track.
func (g *Graph) view(ctx context.Context, at target) (*moq.Track, func(), error) {
	g.mu.Lock()
	v := at.view
	if g.views[v.name] != v {
		g.mu.Unlock()
		return nil, nil, refuse(protocol.CodeViewChanged, "view %s changed meanwhile", v.name)
	}
	k, known := v.keys[at.key]
	if !known {
		if g.watched >= g.dir.cfg.KeysMax {
			g.mu.Unlock()
			return nil, nil, refuse(protocol.CodeBusy,
				"graph %s has %d watched keys, its limit", g.name, g.dir.cfg.KeysMax)
		}
		k = &keyed{view: v, key: at.key, values: at.values, track: g.dir.newTrack()}
		v.keys[at.key] = k
		g.watched++
		g.dir.cfg.Metrics.WatchedKeys.Add(1)
	}
	k.viewers++
	v.viewers++
	g.mu.Unlock()
	g.dir.cfg.Metrics.Viewers.Add(1)
	release := sync.OnceFunc(func() { g.leave(k) })
	if known {
		return k.track, release, nil
	}
	if err := g.loop.Do(ctx, func(t *ingest.Turn) { g.begin(t, k) }); err != nil {
		// Others may have joined meanwhile: they must ask again, too.
		g.forget(k)
		k.track.Abort(protocol.CodeBusy)
		release()
		return nil, nil, refuse(protocol.CodeBusy, "watch %s/%s: %v", v.path(), at.key, err)
	}
	return k.track, release, nil
}

// leave counts a viewer off; the last one starts the key's linger.
func (g *Graph) leave(k *keyed) {
	g.dir.cfg.Metrics.Viewers.Add(-1)
	g.mu.Lock()
	defer g.mu.Unlock()
	k.viewers--
	k.view.viewers--
	if k.viewers == 0 && !k.gone {
		k.idleSince = g.dir.cfg.Now()
		g.idle = append(g.idle, idler{keyed: k, since: k.idleSince})
	}
}

// resolve finds what the names mean, or refuses with the code that the peer is
// to see. Every refusal of a path that exists for others looks like a path that
// does not exist.
func (o *origin) resolve(broadcast protocol.Path, track string) (target, error) {
	broadcast = o.grants.Root.Join(broadcast)
	if !o.grants.cover(broadcast) {
		return target{}, refuse(protocol.CodeNotFound, "no broadcast %q", broadcast)
	}
	graphName, rest, _ := strings.Cut(string(broadcast), "/")
	viewName, key, keyInPath := strings.Cut(rest, "/")
	g := o.dir.graph(graphName)
	if g == nil {
		return target{}, refuse(protocol.CodeNotFound, "no graph %q", graphName)
	}
	g.mu.Lock()
	v := g.views[viewName]
	at := target{graph: g, view: v}
	if v != nil {
		at.parameters = v.parameters
	}
	g.mu.Unlock()
	if v == nil {
		return target{}, refuse(protocol.CodeNotFound,
			"graph %s has no view %q", graphName, viewName)
	}
	if keyInPath {
		if err := at.setKey(key); err != nil {
			return target{}, err
		}
	}
	name, inline, keyInTrack := strings.Cut(track, "/")
	switch {
	case track == frame.TrackMeta:
		at.track = v.meta
		return at, nil
	case track == frame.TrackProgress:
		at.track = g.progress
		return at, nil
	case name != frame.TrackRows || keyInTrack && keyInPath:
		return target{}, refuse(protocol.CodeNotFound, "%s has no track %q", broadcast, track)
	case keyInTrack:
		return at, at.setKey(inline)
	case !keyInPath:
		return target{}, refuse(protocol.CodeNotFound,
			"view %s needs a key of %d values: subscribe to %s/<key> or to rows/<key>",
			viewName, len(v.types), v.path())
	}
	return at, nil
}

// setKey reads one value for each parameter of the view.
func (t *target) setKey(key string) error {
	v := t.view
	segments, err := frame.SplitKey(key)
	if err != nil || len(segments) != len(v.types) {
		return refuse(protocol.CodeNotFound, "view %s takes %d key values, %q has %d",
			v.name, len(v.types), key, len(segments))
	}
	values := make([]value.Value, len(segments))
	for i, s := range segments {
		cell, err := frame.ParseKey(s, v.types[i])
		if err != nil {
			return refuse(protocol.CodeNotFound, "view %s, parameter %s: %v",
				v.name, t.parameters[i].Name, err)
		}
		values[i] = valueOf(cell)
	}
	t.key, t.values = key, values
	return nil
}

func valueOf(cell any) value.Value {
	switch c := cell.(type) {
	case int64:
		return value.OfInt(c)
	case float64:
		f, ok := value.OfFloat(c)
		if !ok {
			panic("views: a key is no finite number")
		}
		return f
	case string:
		return value.OfString(c)
	case bool:
		return value.OfBool(c)
	case frame.Bytes:
		return value.OfBytes(string(c))
	case frame.Timestamp:
		return value.OfTimestamp(int64(c))
	}
	panic("views: a key of a type that no parameter has")
}
