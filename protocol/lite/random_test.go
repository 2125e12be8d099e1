package lite

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/sessiontest"
	"github.com/heddle-live/heddle/protocol/wire"
)

var seedFlag = flag.Uint64("seed", 0, "seed of TestRandomSessions; 0 draws one")

// viewer reads one subscription at its own pace and remembers what came last.
type viewer struct {
	sub   *Subscription
	track string
	mu    sync.Mutex
	last  string
	fell  bool // a sequence below its predecessor came, or a frame out of order
}

func (v *viewer) read(ctx context.Context, pause func() time.Duration) {
	var sequence uint64
	var index int
	for {
		f, err := v.sub.Next(ctx)
		if err != nil {
			return
		}
		v.mu.Lock()
		v.fell = v.fell || f.Sequence < sequence ||
			f.Index != 0 && (f.Sequence != sequence || f.Index != index+1)
		sequence, index = f.Sequence, f.Index
		v.last, _, _ = strings.Cut(string(f.Payload), " ")
		v.mu.Unlock()
		time.Sleep(pause())
	}
}

// Whatever a session goes through, every viewer that is left has the last frame
// of its track's newest group when things calm down, and nothing is left at the
// end. Windows, credit and limits are drawn small, so that everything blocks.
func TestRandomSessions(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	for round := range 15 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				randomSession(t, rand.New(rand.NewPCG(seed, uint64(round))))
			})
		})
	}
}

func randomSession(t *testing.T, r *rand.Rand) {
	b := begin(t, sessiontest.Config{
		UniStreams: 2 + r.IntN(20), StreamWindow: 50 + r.IntN(20_000),
		SessionWindow: 100 + r.IntN(100_000),
	}, Limits{OpenGroups: 1 + r.IntN(10), BlockedWriters: 1 + r.IntN(4)})
	c := b.dial()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	w := &world{t: t, r: r, b: b, c: c, ctx: ctx, newest: make(map[string]string)}
	for range 400 {
		w.step()
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	for _, v := range w.viewers {
		v.mu.Lock()
		if want := w.newest[v.track]; v.last != want {
			t.Errorf("%s: last frame %q, want %q", v.track, v.last, want)
		}
		if v.fell {
			t.Errorf("%s: sequence fell", v.track)
		}
		v.mu.Unlock()
	}
	for _, v := range w.viewers {
		v.sub.Close()
	}
	synctest.Wait()
	if n := b.counters.SubscriptionsOpen.Load(); n != 0 {
		t.Errorf("%d subscriptions left", n)
	}
	b.end()
}

// world is what a random session goes through.
type world struct {
	t       *testing.T
	r       *rand.Rand
	b       *bench
	c       *Session
	ctx     context.Context
	seq     uint64
	frames  int
	names   []string
	newest  map[string]string // the last frame of each track's newest group
	viewers []*viewer
}

func (w *world) step() {
	switch n := w.r.IntN(100); {
	case n < 3 || len(w.names) == 0:
		name := fmt.Sprint(len(w.names))
		w.names = append(w.names, name)
		w.b.origin.track(name)
	case n < 20:
		w.subscribe()
	case n < 28 && len(w.viewers) > 0:
		i := w.r.IntN(len(w.viewers))
		w.viewers[i].sub.Close()
		w.viewers = append(w.viewers[:i], w.viewers[i+1:]...)
	case n < 34 && len(w.viewers) > 0:
		v := w.viewers[w.r.IntN(len(w.viewers))]
		newest, _ := w.b.origin.track(v.track).Newest()
		must(w.t, v.sub.Update(SubscribeOptions{
			Priority: uint8(w.r.IntN(256)), Start: wire.Some(w.r.Uint64N(newest + 1)),
		}))
	case n < 90:
		w.publish()
	case n < 91:
		w.abort()
	default:
		time.Sleep(time.Duration(w.r.IntN(100)) * time.Millisecond)
	}
}

func (w *world) subscribe() {
	name := w.names[w.r.IntN(len(w.names))]
	sub, err := w.c.Subscribe(w.ctx, "g/v", name, SubscribeOptions{})
	must(w.t, err)
	v := &viewer{sub: sub, track: name}
	w.viewers = append(w.viewers, v)
	pauses := rand.New(rand.NewPCG(w.r.Uint64(), 1))
	slow := w.r.IntN(2) * w.r.IntN(50)
	go v.read(w.ctx, func() time.Duration {
		return time.Duration(pauses.IntN(slow+1)) * time.Millisecond
	})
}

func (w *world) publish() {
	name := w.names[w.r.IntN(len(w.names))]
	track := w.b.origin.track(name)
	size := w.r.IntN(300)
	if w.r.IntN(10) == 0 {
		size = w.r.IntN(3 * moq.InlineBytes)
	}
	body := func() moq.Frame {
		w.frames++
		w.newest[name] = fmt.Sprint(w.frames)
		return text(w.newest[name] + " " + strings.Repeat("x", size))
	}
	if _, ok := track.Newest(); ok && w.r.IntN(3) == 0 {
		must(w.t, track.AppendFrame(body()))
		return
	}
	w.seq++
	var frames []moq.Frame
	for range 1 + w.r.IntN(3) {
		frames = append(frames, body())
	}
	must(w.t, track.WriteGroup(w.seq, frames...))
}

// abort ends a track with all its viewers; a new one takes its place.
func (w *world) abort() {
	name := w.names[w.r.IntN(len(w.names))]
	w.b.origin.track(name).Abort(protocol.CodeViewDropped)
	w.b.origin.mu.Lock()
	delete(w.b.origin.tracks, "g/v "+name)
	w.b.origin.mu.Unlock()
	w.b.origin.track(name)
	delete(w.newest, name)
	kept := w.viewers[:0]
	for _, v := range w.viewers {
		if v.track == name {
			v.sub.Close()
			continue
		}
		kept = append(kept, v)
	}
	w.viewers = kept
}
