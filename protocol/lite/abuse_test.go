package lite

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/sessiontest"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
)

// Messages that do not come whole hold so much and no more, and give it back.
func TestHalfMessagesAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{MessageBytes: 16 << 10})
		must(t, b.origin.track("rows").WriteGroup(5, text("a")))
		half := append(varint.Append(typed(wire.StreamTrack), 8<<10), make([]byte, 8<<10-1)...)
		b.request(half)
		b.request(half)
		synctest.Wait()
		b.expectCode(b.request(half), protocol.CodeBusy)
		// Ordinary messages need none of it.
		s := b.request(trackOf("g/v", "rows"))
		if _, err := io.ReadAll(s); err != nil {
			t.Errorf("TRACK meanwhile: %v", err)
		}
		must(t, s.Close())
		time.Sleep(11 * time.Second)
		if n := b.session.unread.Load(); n != 0 {
			t.Errorf("%d bytes held after the timeout", n)
		}
		b.end()
	})
}

// A subscription does not keep the message that asked for it, nor a name longer
// than the limit.
func TestNamesAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		long := protocol.Path(strings.Repeat("/", wire.MaxNameBytes) + "g/v")
		b.expectCode(b.request(trackOf(long, "rows")), protocol.CodeBoundsExceeded)
		name := strings.Repeat("x", wire.MaxNameBytes+1)
		b.expectCode(b.request(trackOf("g/v", name)), protocol.CodeBoundsExceeded)
		b.expectCode(b.request(subscribeTo(1, name)), protocol.CodeBoundsExceeded)
		b.expectCode(b.request(fetchOf(name, 1)), protocol.CodeBoundsExceeded)
		b.expectCode(b.request(listOf(long, 0)), protocol.CodeBoundsExceeded)
		b.end()
	})
}

// FETCHes that nobody reads neither hold groups for ever nor all at once.
func TestFetchesThatNobodyReads(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{StreamWindow: 1000, BidiStreams: 100}, Limits{Fetches: 2})
		rows := b.origin.track("rows")
		must(t, rows.WriteGroup(5, text(strings.Repeat("x", 200_000))))
		start := time.Now()
		first := b.request(fetchOf("rows", 5))
		second := b.request(fetchOf("rows", 5))
		time.Sleep(time.Second)
		third := b.request(fetchOf("rows", 5))
		synctest.Wait()
		if n := rows.Cursors(); n != 2 {
			t.Errorf("%d fetches are answered", n)
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		b.expectCode(first, protocol.CodeTimeout)
		b.expectCode(second, protocol.CodeTimeout)
		if got, err := io.ReadAll(third); err != nil || len(got) < 200_000 {
			t.Errorf("the one that waited got %d bytes, %v", len(got), err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("after %v", d)
		}
		must(t, third.Close())
		synctest.Wait()
		if n := rows.Cursors(); n != 0 {
			t.Errorf("%d fetches go on", n)
		}
		b.end()
	})
}

// After a burst a peer gets as many requests and updates answered as the rate
// allows; the others wait, and nothing is refused.
func TestRequestsArePaced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{RequestBurst: 10, RequestRate: 10})
		must(t, b.origin.track("rows").WriteGroup(5, text("a")))
		b.acceptSetup()
		start := time.Now()
		ask := func(n int) {
			for range n {
				s := b.request(trackOf("g/v", "rows"))
				if _, err := io.ReadAll(s); err != nil {
					t.Error(err)
				}
				must(t, s.Close())
			}
		}
		ask(10)
		if d := time.Since(start); d != 0 {
			t.Errorf("the burst took %v", d)
		}
		ask(21) // the wait for the last one's successor is not ours
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("20 more took %v", d)
		}
		s := b.request(subscribeTo(1, "rows"))
		b.acceptGroup()
		again := wire.AppendSubscribeUpdate(nil, wire.SubscribeUpdate{
			Delivery: wire.Delivery{Start: wire.Some(0)},
		})
		start = time.Now()
		for range 10 {
			_, err := s.Write(again)
			must(t, err)
			b.acceptGroup()
		}
		if d := time.Since(start); d < 900*time.Millisecond || d > 1200*time.Millisecond {
			t.Errorf("10 updates took %v", d)
		}
		b.end()
	})
}

// A peer that grants no streams and holds none costs no timer.
func TestNoCreditNoTimer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{UniStreams: 1}, Limits{})
		must(t, b.origin.track("rows").WriteGroup(5, text("a")))
		must(t, b.origin.track("more").WriteGroup(5, text("b")))
		b.request(subscribeTo(1, "rows"))
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if b.session.sender.expecting {
			t.Error("a timer runs for a peer that grants nothing")
		}
		// With credit for one, one open group gives way to the other.
		b.acceptSetup()
		if g := b.acceptGroup(); g.SubscribeID != 1 {
			t.Errorf("group of %d", g.SubscribeID)
		}
		b.request(subscribeTo(2, "more"))
		synctest.Wait()
		time.Sleep(creditPatience)
		synctest.Wait()
		b.end()
	})
}

// A peer that grants a stream for SETUP but no byte of it is given up.
func TestNoWindowForSetup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{StreamWindow: -1}, Limits{})
		start := time.Now()
		err := <-b.ended
		se, ok := errors.AsType[*protocol.SessionError](err)
		if !ok || se.Code != protocol.SessionProtocolViolation || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		b.clean()
	})
}

// Many readers that stand still hold old versions of a large group: the oldest
// are reset, and their next group is the newest.
func TestReadersThatHoldOldGroups(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const size = moq.MaxGroupBytes - 1000
		rows := moq.NewTrack(moq.Info{})
		origin := newOrigin()
		origin.tracks["g/v rows"] = rows
		payload := text(strings.Repeat("x", size))
		ctx, cancel := context.WithCancel(t.Context())
		var clients []*bench
		held := moq.MaxHeldBytes/moq.MaxGroupBytes + 2
		var groups []*group
		for i := range held {
			must(t, rows.WriteGroup(uint64(i+1), payload))
			b := &bench{t: t, ctx: ctx, origin: origin, counters: new(Counters)}
			b.client, b.server = sessiontest.Pair(
				sessiontest.Config{StreamWindow: 1000}, sessiontest.Config{})
			b.session = NewSession(b.server, Config{Origin: origin, Counters: b.counters})
			b.ended = make(chan error, 1)
			go func() { b.ended <- b.session.Run(ctx) }()
			b.request(subscribeTo(uint64(i), "rows"))
			_, err := b.client.AcceptUniStream(ctx) // SETUP
			must(t, err)
			groups = append(groups, b.acceptGroup())
			clients = append(clients, b)
		}
		must(t, rows.WriteGroup(uint64(held+1), payload))
		synctest.Wait()
		// The first held the oldest version: its stream was reset, and it waits
		// for the newest now.
		b := clients[0]
		old := groups[0]
		if _, err := io.ReadAll(old.r); old.Sequence != 1 || err == nil {
			t.Errorf("group %d ended with %v", old.Sequence, err)
		}
		if g := b.acceptGroup(); g.Sequence != uint64(held+1) && g.Sequence != uint64(held) {
			t.Errorf("group %d after the reset", g.Sequence)
		}
		// The last holds a version that is young enough.
		young := groups[held-1]
		if got := young.frame(t); len(got) != size {
			t.Errorf("%d bytes", len(got))
		}
		cancel()
		for _, b := range clients {
			<-b.ended
		}
	})
}
