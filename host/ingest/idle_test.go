package ingest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
)

// TestIdle leaves things in the engine that wait for something that does not come, and
// expects that the loop does not wait for it busily: it works in turns while there is
// more to do, and each turn looks at the clock.
func TestIdle(t *testing.T) {
	watch := func(f *fixture) {
		f.call(func(turn *ingest.Turn) {
			if _, err := turn.Engine.Watch("out", []value.Value{value.OfInt(1)}); err != nil {
				f.t.Error(err)
			}
		})
	}
	deaf := func(f *fixture) {
		f.seen.mu.Lock()
		f.seen.deaf = true
		f.seen.mu.Unlock()
	}
	long := func(f *fixture) {
		var all sync.WaitGroup
		for range 20 {
			ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Millisecond)
			all.Go(func() {
				defer cancel()
				// All of them end too early; how does not matter here.
				_, _ = f.ask(ctx, "?edge(X, _), edge(Y, _), edge(Z, _), X + Y + Z < 0")
			})
			f.write("+edge(1, 1)\n-edge(1, 1)")
		}
		all.Wait()
	}
	tests := map[string]func(*fixture){
		"nothing": func(*fixture) {},
		"changes that nobody takes": func(f *fixture) {
			watch(f)
			deaf(f)
			f.write("+edge(1, 5)")
		},
		"a new program's changes that nobody takes": func(f *fixture) {
			watch(f)
			deaf(f)
			f.apply(edges + "s(X) <- edge(X, 2)\nview new($x: int) := ?s($x)\n")
			f.write("+edge(1, 6)")
		},
		"pins of queries that ended early": long,
		"pins and changes": func(f *fixture) {
			watch(f)
			deaf(f)
			long(f)
		},
		"a relation that is gone": func(f *fixture) {
			f.apply(edges + "+more(x: int)\n")
			f.write("+more[(1), (2), (3)]")
			long(f)
			if _, err := f.loop.Apply(f.t.Context(), edges, ingest.ApplyOptions{
				AllowLoss: true,
			}); err != nil {
				f.t.Error(err)
			}
		},
		"a restart": func(f *fixture) {
			f.restart()
			watch(f)
		},
	}
	for name, leave := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			f.apply(edges)
			f.load(500)
			leave(f)
			f.expectIdle()
		})
	}
}

func (f *fixture) call(task func(*ingest.Turn)) {
	f.t.Helper()
	if err := f.loop.Call(f.t.Context(), task); err != nil {
		f.t.Error(err)
	}
}

// expectIdle waits until the loop does next to nothing for a while: a tick may come.
// It sleeps, since that nothing happens is no event; a loaded machine only makes the
// loop look less often.
func (f *fixture) expectIdle() {
	f.t.Helper()
	const quiet = 200 * time.Millisecond
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		before := f.looks.Load()
		time.Sleep(quiet)
		if f.looks.Load()-before < 20 {
			return
		}
	}
	f.t.Errorf("%d looks at the clock, and no end", f.looks.Load())
}
