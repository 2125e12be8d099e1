package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/sdk/frame"
)

const (
	// firstFrameTimeout is how long a subscription may stay without a snapshot,
	// gapTimeout how long without one after changes were missed.
	firstFrameTimeout = 10 * time.Second
	gapTimeout        = time.Second
	// notFoundRetries is how often a key that had rows is asked for again though
	// the server does not know it: it may be starting.
	notFoundRetries = 5
)

var (
	errWatchClosed = errors.New("watch is closed")
	errSilent      = errors.New("no snapshot came")
	errGap         = errors.New("changes were missed and no snapshot came")
	errTrackEnded  = errors.New("track ended")
	errLost        = errors.New("the connection is lost")
)

// feed is the one subscription to a key that all its watches share, over all
// sessions. Its goroutine, run, owns state; the rest is guarded.
type feed struct {
	client *Client
	at     address
	ctx    context.Context // of the subscription, ended when nobody watches
	cancel context.CancelCauseFunc

	state   frame.State
	attempt int // failures since the last good frame

	mu      sync.Mutex
	watches map[*Watch]struct{}
	latest  latest
}

// latest is what watches take: a result and how it differs from the one before.
type latest struct {
	version  uint64 // rises by one with each result; 0 is none yet
	revision uint64
	epoch    string
	rows     []frame.Row
	entered  []frame.Row
	left     []frame.Row
	skipped  bool
	stale    *frame.Stale
	parts    []Part // nil of a plain view
	meta     *frame.Meta
	live     bool
	waiting  *Waiting // nil if live, or not yet asked for in vain
}

func newFeed(c *Client, at address) *feed {
	f := &feed{client: c, at: at, watches: make(map[*Watch]struct{})}
	f.ctx, f.cancel = context.WithCancelCause(c.ctx)
	return f
}

func (f *feed) join() *Watch {
	w := &Watch{feed: f, news: make(chan struct{}, 1), done: make(chan struct{})}
	f.mu.Lock()
	f.watches[w] = struct{}{}
	f.mu.Unlock()
	w.notify()
	return w
}

// leave returns true if w was the last watch.
func (f *feed) leave(w *Watch) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, member := f.watches[w]
	delete(f.watches, w)
	return member && len(f.watches) == 0
}

func (f *feed) used() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.watches) > 0
}

func (f *feed) newest() latest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest
}

// run subscribes, again and again, until nobody watches, the server ends the
// view for good, or the client is closed.
func (f *feed) run() {
	err := f.follow()
	f.client.forget(f)
	f.cancel(err)
	f.mu.Lock()
	f.latest.live = false
	watches := f.watches
	f.watches = nil
	f.mu.Unlock()
	for w := range watches {
		w.end(err)
	}
}

func (f *feed) follow() error {
	for {
		l, err := f.client.current(f.ctx)
		if err != nil {
			return err
		}
		err = f.subscription(l)
		if f.ctx.Err() != nil {
			return context.Cause(f.ctx)
		}
		if l.session.Transport().Context().Err() != nil {
			f.wait(errLost)
			<-l.over // the client reconnects, with its own delays
			continue
		}
		final, now := f.verdict(err)
		if final != nil {
			return final
		}
		delay := f.client.backoff(f.attempt)
		if now && f.attempt == 0 {
			delay = 0
		}
		f.attempt++
		f.wait(err)
		if !f.pause(l, delay) {
			return context.Cause(f.ctx)
		}
	}
}

// pause waits for delay or the end of l's session; it returns false if nobody
// watches any more.
func (f *feed) pause(l *link, delay time.Duration) bool {
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.over:
	case <-f.ctx.Done():
		return false
	}
	return true
}

// subscription runs one subscription to its end and says why it ended. It waits
// for a place among those without a snapshot and keeps it until it has one.
func (f *feed) subscription(l *link) error {
	select {
	case f.client.gate <- struct{}{}:
	case <-l.over:
		return errTrackEnded
	case <-f.ctx.Done():
		return context.Cause(f.ctx)
	}
	leave := sync.OnceFunc(func() { <-f.client.gate })
	defer leave()
	ctx, cancel := context.WithCancelCause(f.ctx)
	defer cancel(nil)
	// From here on: a session without room for one more request would keep both
	// this key and its place waiting.
	watchdog := time.AfterFunc(firstFrameTimeout, func() { cancel(errSilent) })
	defer watchdog.Stop()
	sub, err := l.session.Subscribe(ctx, f.at.broadcast, f.at.track, lite.SubscribeOptions{})
	if err != nil {
		return err
	}
	defer sub.Close()
	meta := l.meta(f.client, f.at.broadcast)
	err = f.receive(ctx, cancel, sub, meta, func() {
		watchdog.Stop()
		leave()
	})
	if errors.Is(err, frame.ErrFrame) || isViewChanged(err) {
		l.forgetMeta(f.at.broadcast, meta)
	}
	return err
}

// receive applies frames until something ends ctx or sub. It calls answered
// when a snapshot is there.
func (f *feed) receive(
	ctx context.Context, cancel context.CancelCauseFunc,
	sub *lite.Subscription, meta *metaCall, answered func(),
) error {
	var watchdog *time.Timer // of a gap, nil if there is none
	stop := func() {
		if watchdog != nil {
			watchdog.Stop()
			watchdog = nil
		}
	}
	defer stop()
	for {
		next, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		m, err := meta.wait(ctx)
		if err != nil {
			return err
		}
		outcome, err := f.apply(next, m)
		if err != nil {
			return err
		}
		switch {
		case outcome == frame.Applied:
			stop()
			f.attempt = 0
			answered()
		case outcome == frame.Gap && watchdog == nil:
			answered()
			watchdog = time.AfterFunc(gapTimeout, func() { cancel(errGap) })
		}
	}
}

// apply applies one frame and tells the watches. The error is of a malformed
// frame or a *ClosedError.
func (f *feed) apply(got lite.Frame, meta *frame.Meta) (frame.Outcome, error) {
	parsed, err := frame.ParseFrame(got.Payload, meta)
	if err != nil {
		return 0, err
	}
	change := f.state.Apply(got.Sequence, uint64(got.Index), parsed)
	if change.Outcome == frame.Applied {
		f.publish(change, meta)
	}
	if change.Closed != nil {
		return change.Outcome, &ClosedError{
			Code: change.Closed.Code, Message: change.Closed.Message,
		}
	}
	return change.Outcome, nil
}

// publish makes the state the newest result, unless nothing of it is new, as
// when a group is sent again.
func (f *feed) publish(change frame.Change, meta *frame.Meta) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.latest
	f.latest = latest{
		version:  old.version + 1,
		revision: change.Revision,
		epoch:    f.state.Epoch(),
		rows:     f.state.Rows(),
		entered:  change.Entered,
		left:     change.Left,
		skipped:  change.Skipped,
		stale:    f.state.Stale(),
		parts:    f.parts(change),
		meta:     meta,
		live:     true,
	}
	same := len(change.Entered) == 0 && len(change.Left) == 0 &&
		f.latest.revision == old.revision && f.latest.epoch == old.epoch &&
		f.latest.stale == nil && old.stale == nil &&
		!slices.ContainsFunc(f.latest.parts, isNews) && !slices.ContainsFunc(old.parts, isStale)
	if same && old.version > 0 {
		f.latest.version, f.latest.parts = old.version, old.parts
		f.latest.entered, f.latest.left, f.latest.skipped = old.entered, old.left, old.skipped
		return
	}
	for w := range f.watches {
		w.notify() // has room for one and never waits
	}
}

func isStale(p Part) bool { return p.Stale != nil }

func isNews(p Part) bool { return len(p.Entered) > 0 || len(p.Left) > 0 || p.Stale != nil }

// parts returns the named parts with what change did to them, nil of a plain view.
func (f *feed) parts(change frame.Change) []Part {
	var parts []Part
	for _, name := range f.state.Names() {
		if name != "" {
			parts = append(parts, Part{
				Name: name, Rows: f.state.UnitRows(name), Stale: f.state.UnitStale(name),
			})
		}
	}
	for _, u := range change.Units {
		at := slices.IndexFunc(parts, func(p Part) bool { return p.Name == u.Name })
		if at < 0 {
			at = len(parts)
			parts = append(parts, Part{Name: u.Name})
		}
		parts[at].Entered, parts[at].Left = u.Entered, u.Left
	}
	return parts
}

// wait notes that the key is asked for again because of err.
func (f *feed) wait(err error) {
	w := waitingFor(err)
	w.Retries = f.attempt
	f.mu.Lock()
	f.latest.live = false
	again := f.latest.waiting != nil && f.latest.waiting.Code == w.Code
	f.latest.waiting = w
	f.mu.Unlock()
	level := slog.LevelInfo
	if again || w.Code == codeLost || w.Code == codeViewChanged {
		level = slog.LevelDebug // told already, the loss of the connection by the client
	}
	f.client.log.Log(f.ctx, level, "waiting for a key", "broadcast", f.at.broadcast,
		"track", f.at.track, "code", w.Code, "reason", w.Message, "retries", w.Retries)
}

// Waiting says why a watch has no answer at present, or none any more. The key
// is asked for again and again, with growing delays.
type Waiting struct {
	// Code is "busy" if the server or the session is at a limit, "silent" if no
	// answer came, "lost" if the connection or the stream broke, or another code of
	// the server, such as "shutdown" or "internal".
	Code    string
	Message string // for people
	Retries int    // how often it was asked for in vain since the last good answer
}

// waitingFor words the end of a subscription that is repeated.
func waitingFor(err error) *Waiting {
	if closed := closedBy(err); closed != nil {
		return &Waiting{Code: closed.Code, Message: closed.Message}
	}
	if reset, ok := errors.AsType[*protocol.StreamError](err); ok && reset.Remote {
		switch reset.Code {
		case protocol.CodeBusy:
			return &Waiting{
				Code: "busy", Message: "the server or this session is at its limit of keys",
			}
		case protocol.CodeShutdown:
			return &Waiting{Code: "shutdown", Message: "the server is going away"}
		case protocol.CodeInternal:
			return &Waiting{Code: "internal", Message: "a fault of the server"}
		}
	}
	switch {
	case errors.Is(err, errSilent):
		return &Waiting{Code: "silent", Message: fmt.Sprintf(
			"no answer within %s; the session may be at its limit of keys", firstFrameTimeout)}
	case errors.Is(err, errGap):
		return &Waiting{Code: "gap", Message: err.Error()}
	case errors.Is(err, frame.ErrFrame):
		return &Waiting{Code: "malformed", Message: err.Error()}
	}
	return &Waiting{Code: codeLost, Message: err.Error()}
}

// ClosedError says that the server ended a watch for good.
type ClosedError struct {
	Code    string // such as "not_found", "view_dropped", "unauthorized"
	Message string // for people; may be empty
}

func (e *ClosedError) Error() string {
	if e.Message == "" {
		return "watch ended by the server: " + e.Code
	}
	return fmt.Sprintf("watch ended by the server: %s: %s", e.Code, e.Message)
}

// resetNames are the reset codes that views use, spelt as in frames.
var resetNames = map[protocol.StreamCode]string{
	protocol.CodeUnauthorized: "unauthorized",
	protocol.CodeNotFound:     codeNotFound,
	protocol.CodeViewDropped:  "view_dropped",
	protocol.CodeViewChanged:  codeViewChanged,
	protocol.CodeTokenExpired: "token_expired",
	// Asking again would end the same way.
	protocol.CodeTooExpensive:  "too_expensive",
	protocol.CodeFrameTooLarge: "too_large",
}

const (
	codeNotFound    = "not_found"
	codeViewChanged = "view_changed"
	codeLost        = "lost"
)

// closedBy returns what the server said when it ended a subscription with err,
// nil if err is something else.
func closedBy(err error) *ClosedError {
	if closed, ok := errors.AsType[*ClosedError](err); ok {
		return closed
	}
	reset, ok := errors.AsType[*protocol.StreamError](err)
	if !ok || !reset.Remote || resetNames[reset.Code] == "" {
		return nil
	}
	return &ClosedError{Code: resetNames[reset.Code], Message: reset.Reason}
}

func isViewChanged(err error) bool {
	closed := closedBy(err)
	return closed != nil && closed.Code == codeViewChanged
}

// verdict says what the end of a subscription means: an error if asking again
// is of no use, otherwise whether to ask at once.
func (f *feed) verdict(err error) (final error, now bool) {
	closed := closedBy(err)
	if closed == nil {
		return nil, errors.Is(err, errGap)
	}
	switch closed.Code {
	case codeViewChanged:
		return nil, true
	case codeNotFound:
		if f.state.Held() && f.attempt < notFoundRetries {
			return nil, false
		}
		return closed, false
	case "unauthorized", "view_dropped", "token_expired", "too_expensive", "too_large":
		return closed, false
	}
	return nil, false // busy, shutdown, internal and what newer servers say
}
