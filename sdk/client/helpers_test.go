package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/sessiontest"
	"github.com/heddle-live/heddle/sdk/frame"
)

// origin is a fake server: tracks by "broadcast track".
type origin struct {
	mu       sync.Mutex
	tracks   map[string]*moq.Track
	asked    map[string]int // SUBSCRIBEs so far
	open     map[string]int // SUBSCRIBEs that are not released
	sequence uint64
	refusal  error // what every SUBSCRIBE is answered, nil if nothing is refused
}

// refuse answers further SUBSCRIBEs with err.
func (o *origin) refuse(err error) {
	o.mu.Lock()
	o.refusal = err
	o.mu.Unlock()
}

func newOrigin() *origin {
	return &origin{
		tracks: make(map[string]*moq.Track),
		asked:  make(map[string]int), open: make(map[string]int),
	}
}

// track returns the named track, making it if need be.
func (o *origin) track(name string) *moq.Track {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tracks[name] == nil {
		o.tracks[name] = moq.NewTrack(moq.Info{MaxLatency: time.Second, Timescale: 1000})
	}
	return o.tracks[name]
}

// drop forgets the track and resets its subscriptions.
func (o *origin) drop(name string, code protocol.StreamCode) {
	o.mu.Lock()
	t := o.tracks[name]
	delete(o.tracks, name)
	o.mu.Unlock()
	t.Abort(code)
}

// publish writes a group of the given payloads to the named track.
func (o *origin) publish(t *testing.T, name string, payloads ...string) {
	t.Helper()
	track := o.track(name)
	o.mu.Lock()
	o.sequence++
	sequence := o.sequence
	o.mu.Unlock()
	frames := make([]moq.Frame, len(payloads))
	for i, p := range payloads {
		frames[i].Payload = []byte(p)
	}
	if err := track.WriteGroup(sequence, frames...); err != nil {
		t.Fatal(err)
	}
}

func (o *origin) counts() (asked, open map[string]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked, open = make(map[string]int), make(map[string]int)
	maps.Copy(asked, o.asked)
	maps.Copy(open, o.open)
	return asked, open
}

// openRows counts the open subscriptions to tracks of rows.
func (o *origin) openRows() int {
	_, open := o.counts()
	n := 0
	for name, v := range open {
		if strings.Contains(name, " rows") {
			n += v
		}
	}
	return n
}

func (o *origin) Info(context.Context, protocol.Path, string) (moq.Info, error) {
	return moq.Info{Timescale: 1000}, nil
}

func (o *origin) Subscribe(
	_ context.Context, b protocol.Path, track string,
) (*moq.Track, func(), error) {
	name := string(b) + " " + track
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked[name]++
	if o.refusal != nil {
		return nil, nil, o.refusal
	}
	t := o.tracks[name]
	if t == nil {
		return nil, nil, &protocol.StreamError{Code: protocol.CodeNotFound}
	}
	o.open[name]++
	return t, func() {
		o.mu.Lock()
		o.open[name]--
		o.mu.Unlock()
	}, nil
}

func (o *origin) Announcements(protocol.Path) lite.Announcements { return silence{} }

// silence announces nothing.
type silence struct{}

func (silence) Next(ctx context.Context) ([]lite.Announcement, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (silence) Close() {}

// requestStreams is how many requests a session has room for.
const requestStreams = 300

// network opens in-memory sessions to an origin.
type network struct {
	t      *testing.T
	origin *origin
	tasks  sync.WaitGroup

	mu    sync.Mutex
	down  error       // why nothing can be reached
	dials []time.Time // when it was tried
	last  *sessiontest.Session
}

func (n *network) open(context.Context) (protocol.Session, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials = append(n.dials, time.Now())
	if n.down != nil {
		return nil, n.down
	}
	c, s := sessiontest.Pair(
		sessiontest.Config{UniStreams: 1000}, sessiontest.Config{BidiStreams: requestStreams})
	n.last = s
	n.tasks.Go(func() {
		_ = lite.NewSession(s, lite.Config{Origin: n.origin}).Run(n.t.Context())
	})
	return c, nil
}

// cut ends the present session from the server's side; later ones fail with
// down, unless it is nil.
func (n *network) cut(down error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
	_ = n.last.CloseWithError(protocol.SessionGoingAway, "restart")
}

// bubble runs f in a synctest bubble with a connected client.
func bubble(t *testing.T, f func(t *testing.T, c *Client, n *network)) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t, origin: newOrigin()}
		c, err := Dial(t.Context(), "", Config{Open: n.open, Jitter: func() float64 { return 1 }})
		if err != nil {
			t.Fatal(err)
		}
		f(t, c, n)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		n.tasks.Wait()
	})
}

func mustWatch(t *testing.T, c *Client, key ...any) *Watch {
	t.Helper()
	w, err := c.Watch(t.Context(), "g", "v", key...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// next takes one update.
func next(t *testing.T, w *Watch) Update {
	t.Helper()
	u, err := nextOrError(w)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var errLoopEnded = errors.New("loop ended")

func nextOrError(w *Watch) (Update, error) {
	for u, err := range w.Updates() {
		return u, err
	}
	return Update{}, errLoopEnded
}

// wantUpdate compares "r7 [[1 2]] +[[1 2]] -[]" with u.
func wantUpdate(t *testing.T, u Update, want string) {
	t.Helper()
	if got := describe(u); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func describe(u Update) string {
	list := func(rows []frame.Row) string { return strings.ReplaceAll(fmt.Sprint(rows), "] [", "][") }
	s := fmt.Sprintf("r%d %s +%s -%s", u.Revision, list(u.Rows), list(u.Entered), list(u.Left))
	if u.Skipped {
		s += " skipped"
	}
	if u.Stale != nil {
		s += " stale:" + u.Stale.Code
	}
	return s
}

const epoch = "01938f2c-0000-7000-8000-000000000001"

// snapshot is a frame with a whole snapshot and the change since base.
func snapshot(revision int, rows string, base int, insert, retract string) string {
	return fmt.Sprintf(`{"revision":%d,"epoch":%q,"schema":1,"snapshot":%s,"last":true,"base":%d,`+
		`"insert":%s,"retract":%s}`, revision, epoch, rows, base, insert, retract)
}

func first(revision int, rows string) string {
	return fmt.Sprintf(`{"revision":%d,"epoch":%q,"schema":1,"snapshot":%s,"last":true}`,
		revision, epoch, rows)
}
