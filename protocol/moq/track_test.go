package moq

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
)

func text(s string) Frame { return Frame{Payload: []byte(s)} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// frames decodes taken bytes as "timestamp:payload …".
func frames(t *testing.T, b []byte) string {
	t.Helper()
	var out []string
	var timestamp int64
	for len(b) > 0 {
		delta, payload, n, err := wire.ParseFrame(b)
		must(t, err)
		timestamp += delta
		out = append(out, fmt.Sprintf("%d:%s", timestamp, payload))
		b = b[n:]
	}
	return strings.Join(out, " ")
}

// take takes and describes what came.
func take(t *testing.T, c *Cursor) string {
	t.Helper()
	b, s := c.Take(nil)
	switch s.Kind {
	case NewGroup, MoreFrames:
		line := fmt.Sprintf("%d[%s]", s.Sequence, frames(t, b))
		if s.Kind == MoreFrames {
			line = "+" + line
		}
		if s.Superseded > 0 {
			line += fmt.Sprintf(" superseded %d", s.Superseded)
		}
		if s.Cut {
			line += " cut"
		}
		return line
	case Finished:
		return fmt.Sprintf("end %d", s.End)
	case Aborted:
		return fmt.Sprintf("abort %d", s.Code)
	}
	return "idle"
}

func expect(t *testing.T, c *Cursor, want string) {
	t.Helper()
	if got := take(t, c); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func ignore() {}

func TestCursorTakesTheNewest(t *testing.T) {
	track := NewTrack(Info{})
	c := track.NewCursor(ignore)
	defer c.Close()
	expect(t, c, "idle")
	must(t, track.WriteGroup(7, Frame{1000, []byte("a")}, Frame{1005, []byte("b")}))
	expect(t, c, "7[1000:a 1005:b]")
	expect(t, c, "idle")
	must(t, track.AppendFrame(Frame{990, []byte("c")}))
	b, s := c.Take(nil)
	if delta, payload, _, err := wire.ParseFrame(b); s.Kind != MoreFrames || s.Frames != 1 ||
		delta != -15 || string(payload) != "c" || err != nil {
		t.Errorf("appended: %+v %d %q %v", s, delta, payload, err)
	}
	must(t, track.WriteGroup(9, text("d")))
	expect(t, c, "9[0:d]")
	for seq := range uint64(5) {
		must(t, track.WriteGroup(20+seq, text("e")))
	}
	expect(t, c, "24[0:e] superseded 4")
	late := track.NewCursor(ignore)
	defer late.Close()
	expect(t, late, "24[0:e]")
	expect(t, late, "idle")
}

func TestCutGroups(t *testing.T) {
	track := NewTrack(Info{})
	c := track.NewCursor(ignore)
	defer c.Close()
	must(t, track.WriteGroup(1, text("a")))
	expect(t, c, "1[0:a]")
	must(t, track.AppendFrame(text("b"))) // never taken
	must(t, track.WriteGroup(2, text("c")))
	expect(t, c, "2[0:c] cut")
	must(t, track.WriteGroup(3, text("d")))
	must(t, track.WriteGroup(4, text("e")))
	// Group 2 did not grow, but group 3 is the last of which that is known.
	expect(t, c, "4[0:e] superseded 1")
	must(t, track.WriteGroup(5))
	must(t, track.AppendFrame(text("f")))
	must(t, track.WriteGroup(6))
	expect(t, c, "6[] superseded 1 cut")
	expect(t, c, "idle")
}

func TestRewindAndUndo(t *testing.T) {
	track := NewTrack(Info{})
	c := track.NewCursor(ignore)
	defer c.Close()
	must(t, track.WriteGroup(1, text("a")))
	expect(t, c, "1[0:a]")
	c.Rewind()
	expect(t, c, "1[0:a]")
	expect(t, c, "idle")
	must(t, track.WriteGroup(2, text("b")))
	must(t, track.WriteGroup(3, text("c")))
	expect(t, c, "3[0:c] superseded 1")
	c.Undo()
	must(t, track.WriteGroup(4, text("d")))
	expect(t, c, "4[0:d] superseded 2")
	must(t, track.AppendFrame(text("e")))
	expect(t, c, "+4[0:e]")
	c.Undo()
	expect(t, c, "+4[0:e]")
	// A rewind between a take and its undo is not lost.
	must(t, track.AppendFrame(text("f")))
	expect(t, c, "+4[0:f]")
	c.Rewind()
	c.Undo()
	expect(t, c, "4[0:d 0:e 0:f] cut")
}

func TestRange(t *testing.T) {
	track := NewTrack(Info{})
	c := track.NewCursor(ignore)
	defer c.Close()
	c.SetRange(5, 6)
	must(t, track.WriteGroup(4, text("a")))
	expect(t, c, "idle")
	must(t, track.WriteGroup(5, text("b")))
	expect(t, c, "5[0:b]")
	must(t, track.WriteGroup(7, text("c")))
	expect(t, c, "idle")
	c.SetRange(0, 7)
	expect(t, c, "7[0:c]")
}

func TestEnds(t *testing.T) {
	t.Run("finish", func(t *testing.T) {
		track := NewTrack(Info{})
		c := track.NewCursor(ignore)
		must(t, track.WriteGroup(3, text("a")))
		track.Finish()
		b, s := c.Take(nil)
		if s.Kind != NewGroup || !s.More || frames(t, b) != "0:a" {
			t.Errorf("%+v", s)
		}
		expect(t, c, "end 4")
		if err := track.WriteGroup(4); !errors.Is(err, ErrEnded) {
			t.Errorf("write after the end: %v", err)
		}
		if err := track.AppendFrame(text("b")); !errors.Is(err, ErrEnded) {
			t.Errorf("append after the end: %v", err)
		}
		track.Abort(9)
		expect(t, c, "abort 9")
		c.Close()
		c.Close()
		expect(t, c, "idle")
	})
	t.Run("finish an empty track", func(t *testing.T) {
		track := NewTrack(Info{})
		c := track.NewCursor(ignore)
		defer c.Close()
		track.Finish()
		expect(t, c, "end 0")
	})
	t.Run("abort", func(t *testing.T) {
		track := NewTrack(Info{})
		c := track.NewCursor(ignore)
		defer c.Close()
		must(t, track.WriteGroup(3, text("a")))
		if _, ok := c.AbortCode(); ok {
			t.Error("aborted early")
		}
		track.Abort(protocol.CodeViewDropped)
		track.Abort(1)
		track.Finish()
		expect(t, c, "abort 64")
		if code, ok := c.AbortCode(); code != protocol.CodeViewDropped || !ok {
			t.Errorf("%d %v", code, ok)
		}
	})
}

func TestWriteErrors(t *testing.T) {
	track := NewTrack(Info{})
	if err := track.AppendFrame(text("a")); !errors.Is(err, ErrNoGroup) {
		t.Errorf("append without group: %v", err)
	}
	must(t, track.WriteGroup(5, text("a")))
	woken := 0
	c := track.NewCursor(func() { woken++ })
	defer c.Close()
	for _, seq := range []uint64{4, 5, varint.Max} {
		if err := track.WriteGroup(seq, text("b")); !errors.Is(err, ErrSequence) {
			t.Errorf("group %d: %v", seq, err)
		}
	}
	if err := track.WriteGroup(6, text("b"), Frame{1 << 62, nil}); !errors.Is(err, varint.ErrRange) {
		t.Errorf("timestamp: %v", err)
	}
	if err := track.AppendFrame(Frame{1 << 62, nil}); !errors.Is(err, varint.ErrRange) {
		t.Errorf("timestamp: %v", err)
	}
	if woken != 0 {
		t.Errorf("woken %d times by failures", woken)
	}
	expect(t, c, "5[0:a]")
}

func TestTooLarge(t *testing.T) {
	half := make([]byte, MaxGroupBytes/2)
	for name, grow := range map[string]func(*Track) error{
		"at once":  func(t *Track) error { return t.WriteGroup(2, Frame{0, half}, Frame{0, half}) },
		"appended": func(t *Track) error { return t.AppendFrame(Frame{0, half}) },
	} {
		t.Run(name, func(t *testing.T) {
			track := NewTrack(Info{})
			woken := 0
			c := track.NewCursor(func() { woken++ })
			defer c.Close()
			must(t, track.WriteGroup(1, Frame{0, half}))
			if err := grow(track); !errors.Is(err, ErrTooLarge) {
				t.Errorf("got %v", err)
			}
			expect(t, c, "abort 27")
			if woken != 2 {
				t.Errorf("woken %d times", woken)
			}
		})
	}
}

// Shared bytes stay as they are until they are released, whatever the track
// does, and after that the track uses the memory again.
func TestSharedBytes(t *testing.T) {
	track := NewTrack(Info{})
	c := track.NewCursor(ignore)
	big := strings.Repeat("x", InlineBytes)
	must(t, track.WriteGroup(1, text(big)))
	b, s := c.Take([]byte("head"))
	if string(b) != "head" || s.Frames != 1 || frames(t, s.Shared) != "0:"+big {
		t.Fatalf("%d bytes, %d shared", len(b), len(s.Shared))
	}
	must(t, track.AppendFrame(text("tail")))
	must(t, track.WriteGroup(2, text(strings.Repeat("y", InlineBytes))))
	must(t, track.WriteGroup(3, text(strings.Repeat("z", InlineBytes))))
	if frames(t, s.Shared) != "0:"+big {
		t.Error("shared bytes changed")
	}
	c.Close()
	must(t, track.WriteGroup(4, text("small")))
	if frames(t, s.Shared) != "0:"+big {
		t.Error("shared bytes changed after Close")
	}
	c.Release()
	if track.Cursors() != 0 {
		t.Error("cursor left")
	}
}

// Cursors come and go while publications walk over them.
func TestCursorsChangeDuringWake(t *testing.T) {
	track := NewTrack(Info{})
	const n = 20
	cursors := make([]*Cursor, 0, n)
	var extra []*Cursor
	for i := range n {
		cursors = append(cursors, track.NewCursor(func() {
			if i < len(cursors) {
				cursors[i].Close()
			}
			extra = append(extra, track.NewCursor(ignore))
		}))
	}
	must(t, track.WriteGroup(1, text("a")))
	if track.Cursors() != n || len(extra) != n {
		t.Errorf("%d cursors, %d new", track.Cursors(), len(extra))
	}
	for _, c := range extra {
		expect(t, c, "1[0:a]")
		c.Close()
	}
	if track.Cursors() != 0 {
		t.Errorf("%d cursors left", track.Cursors())
	}
}

// Readers of all speeds see whole groups, rising sequences and, at the end, the
// last group; under the race detector this also checks the sharing of memory.
func TestConcurrentReaders(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	track := NewTrack(Info{})
	const last = 2000
	var wg sync.WaitGroup
	for range 8 {
		wake := make(chan struct{}, 1)
		c := track.NewCursor(func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		wg.Go(func() {
			defer c.Close()
			if got := readAll(c, wake); got != last {
				t.Errorf("last group %d", got)
			}
		})
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for seq := uint64(1); seq <= last; seq++ {
		size := r.IntN(200)
		if r.IntN(50) == 0 {
			size = InlineBytes + r.IntN(1000)
		}
		must(t, track.WriteGroup(seq, text(payload(seq, size))))
		if r.IntN(3) == 0 {
			must(t, track.AppendFrame(text(payload(seq, size))))
		}
	}
	track.Finish()
	wg.Wait()
}

func payload(seq uint64, size int) string {
	return fmt.Sprintf("%d", seq) + strings.Repeat("!", size)
}

// readAll returns the sequence of the last group, or panics at a torn one.
func readAll(c *Cursor, wake <-chan struct{}) (last uint64) {
	var buf []byte
	for {
		var s Step
		buf, s = c.Take(buf[:0])
		b := buf
		if s.Shared != nil {
			b = s.Shared
		}
		switch s.Kind {
		case Idle:
			<-wake
			continue
		case Finished:
			return last
		case NewGroup:
			if s.Sequence < last {
				panic("sequence fell")
			}
			last = s.Sequence
		}
		for len(b) > 0 {
			_, p, n, err := wire.ParseFrame(b)
			if err != nil || strings.TrimRight(string(p), "!") != fmt.Sprint(last) {
				panic("torn group")
			}
			b = b[n:]
		}
		if s.Shared != nil {
			c.Release()
		}
	}
}

func TestPublishingDoesNotAllocate(t *testing.T) {
	track := NewTrack(Info{})
	c := track.NewCursor(ignore)
	defer c.Close()
	buf := make([]byte, 0, 2048)
	p := []byte(strings.Repeat("x", 500))
	seq := uint64(0)
	if n := testing.AllocsPerRun(1000, func() {
		seq++
		if err := track.WriteGroup(seq, Frame{int64(seq), p}); err != nil {
			t.Fatal(err)
		}
		var s Step
		if buf, s = c.Take(buf[:0]); s.Kind != NewGroup {
			t.Fatal("no group")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, viewers := range []int{1, 1000} {
		b.Run(fmt.Sprintf("viewers=%d", viewers), func(b *testing.B) {
			track := NewTrack(Info{})
			for range viewers {
				track.NewCursor(ignore)
			}
			p := make([]byte, 300)
			seq := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				seq++
				if err := track.WriteGroup(seq, Frame{0, p}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Readers of superseded groups hold so much memory of a track and no more: those
// of the oldest are asked to let go.
func TestHeldGroupsAreBounded(t *testing.T) {
	track := NewTrack(Info{})
	large := Frame{Payload: make([]byte, MaxGroupBytes-100)}
	var held []*Cursor
	for i := range uint64(MaxHeldBytes/MaxGroupBytes + 2) {
		must(t, track.WriteGroup(i, large))
		c := track.NewCursor(ignore)
		defer c.Close()
		if _, s := c.Take(nil); s.Shared == nil {
			t.Fatal("a large group is not shared")
		}
		held = append(held, c)
	}
	// The newest counts for the track itself; one of the others is too many.
	for i, c := range held {
		if got, want := c.Evicted(), i == 0; got != want {
			t.Errorf("reader %d: evicted is %v", i, got)
		}
	}
	held[0].Release()
	held[1].Release()
	must(t, track.WriteGroup(100, large))
	for i, c := range held {
		if c.Evicted() {
			t.Errorf("reader %d is evicted although there is room", i)
		}
		c.Release()
	}
	if track.heldBytes != 0 || len(track.held) != 0 {
		t.Errorf("%d bytes in %d groups held by nobody", track.heldBytes, len(track.held))
	}
}
