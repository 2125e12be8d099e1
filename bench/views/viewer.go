package views

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-live/heddle/bench/graph"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/quic"
	"github.com/heddle-live/heddle/sdk/frame"
)

const (
	// dialTimeout bounds a viewer's connection and its first snapshot.
	dialTimeout = 20 * time.Second
	// dialsAtOnce keeps the handshakes of many viewers from timing each other out.
	dialsAtOnce = 8
)

// viewers are the connected viewers of one cell, each with a session of its
// own, as people have.
type viewers struct {
	count     int
	events    chan event
	subscribe []time.Duration // from dialling to the first snapshot, one a viewer
	all       []*viewer
	cancel    context.CancelFunc // ends their goroutines
	running   sync.WaitGroup
}

// viewer watches one key.
type viewer struct {
	key     int
	session *lite.Session
	feed    *lite.Subscription
	took    time.Duration

	mu    sync.Mutex
	state frame.State // guarded by mu
}

// connect connects one viewer for each of the first keys of the model and holds
// that each sees the right rows at once.
func connect(
	ctx context.Context, s *server, transport string, m *model, keys int,
) (_ *viewers, err error) {
	live, cancel := context.WithCancel(ctx)
	vs := &viewers{
		count: keys, all: make([]*viewer, keys), cancel: cancel,
		// A frame for every viewer at once fits, and then some: viewers are never
		// held up by the bench.
		events: make(chan event, 2*keys+64),
	}
	defer func() {
		if err != nil {
			vs.close()
		}
	}()
	dials, dialling := errgroup.WithContext(live)
	dials.SetLimit(dialsAtOnce)
	for key := range keys {
		dials.Go(func() error {
			v, err := vs.dial(dialling, live, s, transport, m.graph.Head(key))
			if err != nil {
				return fmt.Errorf("viewer %d: %w", key, err)
			}
			v.key = key
			vs.all[key] = v
			if want := m.rows(m.graph.Head(key)); !equalRows(v.state.Rows(), want) {
				return fmt.Errorf("viewer %d begins with %v, want %v", key, v.state.Rows(), want)
			}
			return nil
		})
	}
	if err := dials.Wait(); err != nil {
		return nil, err
	}
	for _, v := range vs.all {
		vs.subscribe = append(vs.subscribe, v.took)
		vs.running.Go(func() { v.follow(live, vs.events) })
	}
	return vs, nil
}

// dial connects one viewer and waits for its first snapshot. The session lives
// as long as live; ctx bounds the dialling alone.
func (vs *viewers) dial(
	ctx, live context.Context, s *server, transport string, head int,
) (_ *viewer, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	began := time.Now()
	config := quic.DialConfig{CertificateSHA256: &s.hash, Protocols: lite.VersionNames()}
	var carrier protocol.Session
	switch transport {
	case "quic":
		carrier, err = quic.Dial(ctx, s.data, config)
	case "webtransport":
		carrier, err = quic.DialWebTransport(ctx, "https://"+s.data+"/", config)
	default:
		err = fmt.Errorf("unknown transport %q, want quic or webtransport", transport)
	}
	if err != nil {
		return nil, err
	}
	v := &viewer{session: lite.NewSession(carrier, lite.Config{Client: true})}
	vs.running.Go(func() { _ = v.session.Run(live) }) // its end shows at the subscription
	defer func() {
		if err != nil {
			v.session.Close(protocol.SessionNoError, "")
		}
	}()
	path, err := protocol.ParsePath(graphName + "/" + graph.View + "/" + strconv.Itoa(head))
	if err != nil {
		return nil, err
	}
	v.feed, err = v.session.Subscribe(ctx, path, frame.TrackRows, lite.SubscribeOptions{})
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	for !v.state.Held() {
		if _, err := v.next(ctx); err != nil {
			return nil, fmt.Errorf("first snapshot: %w", err)
		}
	}
	v.took = time.Since(began)
	return v, nil
}

// next waits for the next frame and applies it.
func (v *viewer) next(ctx context.Context) (e event, err error) {
	f, err := v.feed.Next(ctx)
	e.at = time.Now()
	if err != nil {
		return e, err
	}
	parsed, err := frame.ParseFrame(f.Payload, nil)
	if err != nil {
		return e, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	e.change = v.state.Apply(f.Sequence, uint64(f.Index), parsed)
	return e, nil
}

// follow reports each frame until the subscription or ctx ends.
func (v *viewer) follow(ctx context.Context, events chan<- event) {
	for {
		e, err := v.next(ctx)
		if ctx.Err() != nil {
			return
		}
		e.key, e.err = v.key, err
		select {
		case events <- e:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// rows are what a viewer sees.
func (vs *viewers) rows(key int) []frame.Row {
	v := vs.all[key]
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state.Rows()
}

// close ends all viewers and waits for their goroutines.
func (vs *viewers) close() {
	vs.cancel()
	for _, v := range vs.all {
		if v != nil {
			v.session.Close(protocol.SessionNoError, "")
		}
	}
	vs.running.Wait()
}

// String describes an event for a problem's text.
func (e event) String() string {
	if e.err != nil {
		return fmt.Sprintf("an end (%v)", e.err)
	}
	return fmt.Sprintf("a frame of revision %d (%v, entered %v, left %v)",
		e.change.Revision, e.change.Outcome, e.change.Entered, e.change.Left)
}
