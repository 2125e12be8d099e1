package views_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heddle-live/heddle/host/ingest"
)

func TestManyIdleKeysEndInPieces(t *testing.T) {
	f := start(t)
	for i := range 40 {
		f.view(fmt.Sprint("g/out/", i), "rows").leave()
	}
	f.step.Store(int64(300 * time.Microsecond))
	pieces := 0
	for more := true; more; pieces++ {
		before := f.metrics.WatchedKeys.Load()
		if err := f.loop.Call(t.Context(), func(turn *ingest.Turn) {
			more = f.graph.Tidy(turn, time.Now().Add(time.Hour))
		}); err != nil {
			t.Fatal(err)
		}
		if n := before - f.metrics.WatchedKeys.Load(); n > 4 {
			t.Errorf("%d keys ended in one piece, each taking 0.3 ms", n)
		}
	}
	if n := f.metrics.WatchedKeys.Load(); n != 0 {
		t.Errorf("%d keys are still watched after %d pieces", n, pieces)
	}
}
