package lite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/heddle-live/heddle/protocol/sessiontest"
)

// Every row of the table has vectors for its messages, reads back by its name,
// and completes a session with itself.
func TestVersionTable(t *testing.T) {
	for i, name := range VersionNames() {
		v, ok := ParseVersion(name)
		if !ok || v.String() != name || v != versions[i].version {
			t.Errorf("%q reads back as %v", name, v)
		}
		vectors := filepath.Join("..", "wire", "testdata", name)
		if files, err := os.ReadDir(vectors); err != nil || len(files) < 10 {
			t.Errorf("%s: %d vectors, %v", name, len(files), err)
		}
		inBubble(t, func(t *testing.T) {
			b := begin(t, sessiontest.Config{Protocol: name}, Limits{})
			must(t, b.origin.track("rows").WriteGroup(1, text("a")))
			c := b.dial()
			sub, err := c.Subscribe(context.Background(), "g/v", "rows", SubscribeOptions{})
			must(t, err)
			if f, err := sub.Next(b.ctx); err != nil || string(f.Payload) != "a" {
				t.Errorf("%+v, %v", f, err)
			}
			synctest.Wait() // SETUP has a stream of its own, which nothing else waits for
			setup, ok := b.session.PeerSetup()
			if ok != v.HasSetup() || setup.Hop != 5 {
				t.Errorf("SETUP %+v %v", setup, ok)
			}
			sub.Close()
			b.end()
		})
	}
	if v, ok := ParseVersion("moq-lite-06-wip"); ok || v.HasSetup() || v.String() != "none" {
		t.Errorf("accepted %v", v)
	}
}
