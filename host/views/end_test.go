package views_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/sdk/frame"
)

// TestKeyThatIsTooLargeAtOnce begins to watch a key whose result does not fit into
// a group, changes it, and lets it linger.
func TestKeyThatIsTooLargeAtOnce(t *testing.T) {
	f := start(t)
	f.apply(program + "view texts($n: int) := ?name(N, T), N > $n\n")
	big := strings.Repeat("y", 200<<10)
	var facts []string
	for i := range 90 {
		facts = append(facts, fmt.Sprintf(`(%d, "%s")`, 100+i, big))
	}
	for chunk := range slices.Chunk(facts, 4) {
		f.write("+name[" + strings.Join(chunk, ", ") + "]")
	}
	other := f.view("g/out/1", "rows")
	for _, then := range []func(){
		func() { f.write(`+name(500, "z")`) },
		func() { f.settle(time.Hour) },
		func() { f.apply(program + "view texts($m: int) := ?name(N, T), N > $m, N != 7\n") },
		func() { f.apply(program) },
	} {
		w := f.view("g/texts/50", "rows")
		if n := len(w.log); n == 0 || !strings.HasSuffix(w.log[n-1], frame.ClosedTooLarge) {
			t.Errorf("a result over the group limit: %q", w.log)
		}
		if n := f.metrics.WatchedKeys.Load(); n != 1 {
			t.Errorf("%d watched keys, want that of the other viewer", n)
		}
		then()
		f.settle(time.Second)
		w.read()
		if w.last.Kind != moq.Aborted || w.last.Code != protocol.CodeFrameTooLarge {
			t.Errorf("its track's end: %+v", w.last)
		}
		w.leave()
		f.write("+name(501, \"z\")\n-name(501, \"z\")")
	}
	f.write("+edge(1, 2)")
	other.expectRows("[[1 2]]")
	if err := f.loop.Call(t.Context(), func(turn *ingest.Turn) {
		if n := turn.Engine.Stats().WatchedKeys; n != 1 {
			t.Errorf("the engine watches %d keys", n)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// TestKeyOfSharedTexts watches rows that share a text: as frames they would take a
// thousand times what the graph holds, and are not spelled at all.
func TestKeyOfSharedTexts(t *testing.T) {
	f := start(t)
	f.apply(program + "view each($n: int) := ?name(N, _), name($n, T)\n")
	f.write(`+name(1, "` + strings.Repeat("y", 500<<10) + `")`)
	for i := range 4 {
		var facts []string
		for j := range 500 {
			facts = append(facts, fmt.Sprintf(`(%d, "z")`, 10+500*i+j))
		}
		f.write("+name[" + strings.Join(facts, ", ") + "]")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := f.view("g/each/1", "rows")
	runtime.ReadMemStats(&after)
	if n := len(w.log); n == 0 || !strings.HasSuffix(w.log[n-1], frame.ClosedTooLarge) {
		t.Errorf("a result over the group limit: %q", w.log)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d MiB were allocated", n>>20)
	}
}

// TestRemoveEndsEveryTrack removes a graph a moment after one of its views was
// dropped, when the track of the dropped one still stands.
func TestRemoveEndsEveryTrack(t *testing.T) {
	f := start(t)
	names := [][2]string{
		{"g/back/1", "rows"}, {"g/out/1", "rows"}, {"g/out", "meta"}, {"g/out", "progress"},
	}
	var cursors []*moq.Cursor
	for _, name := range names {
		track, release, err := f.origin.Subscribe(t.Context(), protocol.Path(name[0]), name[1])
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		cursors = append(cursors, track.NewCursor(func() {}))
	}
	f.apply(strings.Replace(program, "view back($y: int) := ?edge(X, $y)\n", "", 1))
	f.stop()
	f.directory.Remove(f.graph, protocol.CodeViewDropped)
	for i, c := range cursors {
		_, step := c.Take(nil)
		if step.Shared != nil {
			c.Release()
		}
		for step.Kind != moq.Aborted && step.Kind != moq.Idle {
			if _, step = c.Take(nil); step.Shared != nil {
				c.Release()
			}
		}
		if step.Kind != moq.Aborted || step.Code != protocol.CodeViewDropped {
			t.Errorf("%s: %v, code %v", names[i], step.Kind, step.Code)
		}
		c.Close()
	}
	if n := f.metrics.WatchedKeys.Load(); n != 0 {
		t.Errorf("%d watched keys are left", n)
	}
	if err := f.subscribeOnly("g/out/1", "rows"); err == nil {
		t.Error("a key of the removed graph was served")
	}
}

// subscribeOnly subscribes where no loop runs any more.
func (f *fixture) subscribeOnly(broadcast, track string) error {
	_, release, err := f.origin.Subscribe(f.t.Context(), protocol.Path(broadcast), track)
	if err == nil {
		release()
	}
	return err
}

// TestParameterIsRenamedUnderARefusal has keys refused, with the parameter's name,
// while programs with other names for it come into force.
func TestParameterIsRenamedUnderARefusal(t *testing.T) {
	f := start(t)
	var refusals sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 2 {
		refusals.Go(func() {
			for ctx.Err() == nil {
				if _, err := f.origin.Info(ctx, "g/out", "rows/x"); err == nil ||
					!strings.Contains(err.Error(), "parameter ") {
					t.Errorf("got %v", err)
					return
				}
			}
		})
	}
	for range 30 {
		f.apply(strings.ReplaceAll(program, "$x", "$from"))
		f.apply(program)
	}
	stop()
	refusals.Wait()
}
