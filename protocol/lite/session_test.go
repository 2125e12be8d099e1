package lite

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-live/heddle/protocol/sessiontest"
)

func TestSubscribeEndToEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		track := b.origin.track("rows")
		must(t, track.WriteGroup(10, text("snapshot")))
		c := b.dial()
		info, err := c.Info(b.ctx, "g/v", "rows")
		if err != nil || info != track.Info() {
			t.Errorf("info %+v, %v", info, err)
		}
		sub, err := c.Subscribe(b.ctx, "g/v", "rows", SubscribeOptions{})
		must(t, err)
		want := func(sequence uint64, payload string) {
			t.Helper()
			f, err := sub.Next(b.ctx)
			if err != nil || f.Sequence != sequence || string(f.Payload) != payload {
				t.Errorf("got %d %q, %v; want %d %q", f.Sequence, f.Payload, err, sequence, payload)
			}
		}
		want(10, "snapshot")
		for i := range 200 {
			must(t, track.WriteGroup(uint64(11+i), text("change")))
			want(uint64(11+i), "change")
		}
		track.Finish()
		start := time.Now()
		if _, err := sub.Next(b.ctx); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
		if d := time.Since(start); d != 200*time.Millisecond {
			t.Errorf("FIN after %v", d)
		}
		synctest.Wait()
		sub.Close()
		b.end()
	})
}
