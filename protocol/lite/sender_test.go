package lite

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/sessiontest"
	"github.com/heddle-live/heddle/protocol/wire"
)

// The peer grants few streams and returns none: everybody who got a stream has
// a snapshot, and the others get the newest group, not the oldest, when credit
// comes. Open groups go on meanwhile.
func TestStreamCreditExhausted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const subscriptions, streams = 150, 100
		// One stream of the credit is SETUP's until it is read.
		b := begin(t, sessiontest.Config{UniStreams: streams}, Limits{OpenGroups: 1000})
		b.acceptSetup()
		for i := range subscriptions {
			must(t, b.origin.track(fmt.Sprint(i)).WriteGroup(1, text("first")))
			b.request(subscribeTo(uint64(i), fmt.Sprint(i)))
		}
		synctest.Wait()
		if open, _ := b.server.OpenUniStreams(); open != streams {
			t.Fatalf("%d streams", open)
		}
		if n := b.counters.StreamCreditWaits.Load(); n != subscriptions-streams {
			t.Errorf("%d waits for credit", n)
		}
		var groups []*group
		has := make(map[uint64]bool)
		for range streams {
			g := b.acceptGroup()
			groups = append(groups, g)
			has[g.SubscribeID] = true
			if g.Sequence != 1 || g.frame(t) != "first" {
				t.Errorf("group %d", g.Sequence)
			}
		}
		// Appending to an open group does not wait behind those without credit.
		open := b.origin.track(fmt.Sprint(groups[0].SubscribeID))
		must(t, open.AppendFrame(text("more")))
		if got := groups[0].frame(t); got != "more" {
			t.Errorf("appended %q", got)
		}
		// Those that wait are superseded four times, and only then get credit.
		for seq := uint64(2); seq <= 5; seq++ {
			for i := range subscriptions {
				if !has[uint64(i)] {
					must(t, b.origin.track(fmt.Sprint(i)).WriteGroup(seq, text(fmt.Sprint(seq))))
				}
			}
		}
		synctest.Wait()
		b.client.GrantUniStreams(subscriptions)
		for range subscriptions - streams {
			g := b.acceptGroup()
			if has[g.SubscribeID] {
				t.Errorf("subscription %d twice", g.SubscribeID)
			}
			has[g.SubscribeID] = true
			if got := g.frame(t); g.Sequence != 5 || got != "5" {
				t.Errorf("group %d %q, want the newest", g.Sequence, got)
			}
		}
		b.end()
	})
}

// A peer that grants fewer streams than groups are kept open for sees all.
func TestPeerThatGrantsFewStreams(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{UniStreams: 4}, Limits{})
		c := b.dial()
		start := time.Now()
		var subs []*Subscription
		for i := range 50 {
			must(t, b.origin.track(fmt.Sprint(i)).WriteGroup(1, text("a")))
			sub, err := c.Subscribe(b.ctx, "g/v", fmt.Sprint(i), SubscribeOptions{})
			must(t, err)
			subs = append(subs, sub)
		}
		for _, sub := range subs {
			if _, err := sub.Next(b.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("took %v", d)
		}
		b.end()
	})
}

// A publication that waits for credit finishes its old group first: that may be
// the very credit it waits for.
func TestOldGroupGivesItsCredit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{UniStreams: 1}, Limits{})
		b.acceptSetup()
		track := b.origin.track("rows")
		must(t, track.WriteGroup(1, text("a")))
		b.request(subscribeTo(0, "rows"))
		for seq := uint64(2); seq < 10; seq++ {
			g := b.acceptGroup()
			if g.Sequence != seq-1 {
				t.Errorf("group %d, want %d", g.Sequence, seq-1)
			}
			g.frame(t)
			must(t, track.WriteGroup(seq, text("b")))
			synctest.Wait()
			g.end(t)
		}
		b.end()
	})
}

// A peer that reads nothing costs a bounded number of goroutines and does not
// stop anybody else on the same tracks.
func TestClientThatNeverReads(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const subscriptions = 300
		b := begin(t, sessiontest.Config{
			UniStreams: 1000, StreamWindow: 8 << 10, SessionWindow: 64 << 10,
		}, Limits{BlockedWriters: 5})
		for i := range subscriptions {
			name := fmt.Sprint(i)
			must(t, b.origin.track(name).WriteGroup(1, text(strings.Repeat("x", 1000*(i%90+1)))))
			b.request(subscribeTo(uint64(i), name))
		}
		synctest.Wait()
		if got := b.session.sender.writers; got != 5 {
			t.Errorf("%d writers", got)
		}
		if got := b.session.sender.rings[stalled].length; got == 0 || got > subscriptions {
			t.Errorf("%d stalled", got)
		}
		for seq := uint64(2); seq < 20; seq++ {
			for i := range subscriptions {
				must(t, b.origin.track(fmt.Sprint(i)).WriteGroup(seq, text("y")))
			}
			synctest.Wait()
		}
		if _, total := b.server.OpenUniStreams(); total > 200 {
			t.Errorf("%d streams opened", total)
		}
		// It wakes up: every key arrives at its newest state.
		last := make(map[uint64]uint64)
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.acceptSetup()
			for complete := 0; complete < subscriptions; {
				g := b.acceptGroup()
				before := last[g.SubscribeID]
				if g.Sequence <= before {
					t.Errorf("%d: group %d after %d", g.SubscribeID, g.Sequence, before)
				}
				if last[g.SubscribeID] = g.Sequence; g.Sequence == 19 {
					complete++
				}
				go func() { _, _ = io.Copy(io.Discard, g.r) }()
			}
		}()
		<-done
		b.end()
	})
}

func TestManySubscriptions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const subscriptions = 2000
		b := begin(t, sessiontest.Config{}, Limits{})
		for i := range subscriptions {
			must(t, b.origin.track(fmt.Sprint(i)).WriteGroup(1, text("first")))
			b.request(subscribeTo(uint64(i), fmt.Sprint(i)))
		}
		b.acceptSetup()
		got := make(map[uint64]*group)
		var streams []protocol.ReceiveStream
		for range subscriptions {
			g := b.acceptGroup()
			if got[g.SubscribeID] != nil || g.frame(t) != "first" {
				t.Errorf("subscription %d", g.SubscribeID)
			}
			got[g.SubscribeID] = g
			streams = append(streams, g.stream)
			// Finished streams must be read to their end for credit to return.
			if len(streams) > 64 {
				old := streams[0]
				streams = streams[1:]
				if n, err := old.Read(make([]byte, 1)); n != 0 || err != io.EOF {
					t.Fatalf("oldest group is still open: %v", err)
				}
			}
		}
		synctest.Wait()
		if n := b.counters.GroupStreamsOpen.Load(); n != 64 {
			t.Errorf("%d groups open", n)
		}
		if n := b.counters.SubscriptionsOpen.Load(); n != subscriptions {
			t.Errorf("%d subscriptions open", n)
		}
		// One that was finished begins a new group at its next change.
		must(t, b.origin.track("0").WriteGroup(2, text("second")))
		if g := b.acceptGroup(); g.SubscribeID != 0 || g.Sequence != 2 {
			t.Errorf("group %d of %d", g.Sequence, g.SubscribeID)
		}
		b.end()
	})
}

// A group whose stream was finished to make room goes out whole when it grows.
func TestFrameAfterTheStreamWasFinished(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{OpenGroups: 1})
		b.acceptSetup()
		one, two := b.origin.track("one"), b.origin.track("two")
		must(t, one.WriteGroup(1, text("a")))
		must(t, two.WriteGroup(1, text("b")))
		b.request(subscribeTo(1, "one"))
		first := b.acceptGroup()
		b.request(subscribeTo(2, "two"))
		b.acceptGroup()
		first.frame(t)
		first.end(t)
		must(t, one.AppendFrame(text("c")))
		again := b.acceptGroup()
		if x, y := again.frame(t), again.frame(t); again.Sequence != 1 || x != "a" || y != "c" {
			t.Errorf("group %d: %q %q", again.Sequence, x, y)
		}
		b.end()
	})
}

// The old group's stream ends when the next begins; if it lacks frames it is
// reset, because a FIN would make it look complete.
func TestOldGroupEndsWithTheNext(t *testing.T) {
	client, server := sessiontest.Pair(sessiontest.Config{}, sessiontest.Config{})
	s := NewSession(server, Config{})
	track, p := nullPublication(t, s)
	b := &bench{t: t, ctx: t.Context(), client: client}
	send := func(change error) *group {
		t.Helper()
		must(t, change)
		s.sender.turn(p)
		return b.acceptGroup()
	}
	one := send(track.WriteGroup(1, text("a")))
	two := send(track.WriteGroup(2, text("b")))
	one.frame(t)
	one.end(t)
	must(t, track.AppendFrame(text("c"))) // superseded before the sender's turn
	three := send(track.WriteGroup(3, text("d")))
	b.expectCode(two.stream, protocol.CodeOld)
	if got := three.frame(t); got != "d" {
		t.Errorf("group 3: %q", got)
	}
}

func TestTrackEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		rtt  time.Duration
		want time.Duration
	}{
		{"near", 10 * time.Millisecond, 200 * time.Millisecond},
		{"far", 100 * time.Millisecond, 400 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := begin(t, sessiontest.Config{RTT: c.rtt}, Limits{})
				track := b.origin.track("rows")
				must(t, track.WriteGroup(9, text("a")))
				s := b.request(subscribeTo(0, "rows"))
				b.acceptSetup()
				g := b.acceptGroup()
				track.Finish()
				want := wire.AppendSubscribeStart(nil, wire.SubscribeStart{Group: 9})
				want = wire.AppendSubscribeEnd(want, wire.SubscribeEnd{Group: 10})
				got := make([]byte, len(want))
				start := time.Now()
				if _, err := io.ReadFull(s, got); err != nil || string(got) != string(want) {
					t.Errorf("responses %x, %v; want %x", got, err, want)
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("END after %v", d)
				}
				g.frame(t)
				g.end(t)
				if n, err := s.Read(got); n != 0 || err != io.EOF {
					t.Errorf("after END: %d bytes, %v", n, err)
				}
				if d := time.Since(start); d != c.want {
					t.Errorf("FIN after %v, want %v", d, c.want)
				}
				must(t, s.Close())
				synctest.Wait()
				if o, r := b.origin.balance(); o != 1 || r != 1 {
					t.Errorf("opened %d, released %d", o, r)
				}
				if n := b.client.OpenBidiStreams(); n != 0 {
					t.Errorf("%d request streams still hold credit", n)
				}
				b.end()
			})
		})
	}
}

func TestEmptyTrackEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		b.origin.track("rows").Finish()
		s := b.request(subscribeTo(0, "rows"))
		got, err := io.ReadAll(s)
		if want := "\x01\x01\x00"; string(got) != want || err != nil {
			t.Errorf("%x, %v", got, err)
		}
		// A peer that never ends its half is not waited for without end.
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if o, r := b.origin.balance(); o != 1 || r != 1 {
			t.Errorf("opened %d, released %d", o, r)
		}
		b.end()
	})
}

// The peer's FIN before ours ends the subscription at once.
func TestPeerClosesBeforeTheLateFIN(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		b.origin.track("rows").Finish()
		s := b.request(subscribeTo(0, "rows"))
		synctest.Wait()
		must(t, s.Close())
		start := time.Now()
		if _, err := io.ReadAll(s); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		b.end()
	})
}

func TestAbortResetsWithTheCode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{StreamWindow: 1 << 10}, Limits{})
		small, large := b.origin.track("small"), b.origin.track("large")
		must(t, small.WriteGroup(1, text("a")))
		must(t, large.WriteGroup(1, text(strings.Repeat("x", 1<<20)))) // its writer waits
		one, two := b.request(subscribeTo(1, "small")), b.request(subscribeTo(2, "large"))
		b.acceptSetup()
		g1, g2 := b.acceptGroup(), b.acceptGroup()
		synctest.Wait()
		small.Abort(protocol.CodeViewDropped)
		large.Abort(protocol.CodeViewChanged)
		synctest.Wait()
		b.expectCode(one, protocol.CodeViewDropped)
		b.expectCode(two, protocol.CodeViewChanged)
		if g1.SubscribeID == 2 {
			g1, g2 = g2, g1
		}
		b.expectCode(g1.stream, protocol.CodeViewDropped)
		b.expectCode(g2.stream, protocol.CodeViewChanged)
		synctest.Wait()
		if n := b.client.OpenBidiStreams(); n != 0 {
			t.Errorf("%d request streams still hold credit", n)
		}
		b.end()
	})
}

// Also those that wait for credit or for a writer are reset at once.
func TestAbortOfWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{
			UniStreams: 5, SessionWindow: 100 << 10,
		}, Limits{BlockedWriters: 1})
		b.acceptSetup()
		large := strings.Repeat("x", 90<<10)
		var streams []protocol.Stream
		for i := range 8 {
			must(t, b.origin.track(fmt.Sprint(i)).WriteGroup(1, text(large)))
			streams = append(streams, b.request(subscribeTo(uint64(i), fmt.Sprint(i))))
			synctest.Wait()
		}
		s := b.session.sender
		if s.writers != 1 || s.rings[stalled].length+s.rings[parked].length < 5 {
			t.Errorf("%d writers, %d stalled, %d parked", s.writers, s.rings[stalled].length,
				s.rings[parked].length)
		}
		for i := range streams {
			b.origin.track(fmt.Sprint(i)).Abort(protocol.CodeViewDropped)
		}
		synctest.Wait()
		for _, stream := range streams {
			b.expectCode(stream, protocol.CodeViewDropped)
		}
		b.end()
	})
}

func TestUpdateSendsTheNewestAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		track := b.origin.track("rows")
		must(t, track.WriteGroup(8, text("a"), text("b")))
		s := b.request(subscribeTo(0, "rows"))
		b.acceptSetup()
		g := b.acceptGroup()
		update := func(start wire.Optional) {
			t.Helper()
			_, err := s.Write(wire.AppendSubscribeUpdate(nil, wire.SubscribeUpdate{
				Delivery: wire.Delivery{Start: start},
			}))
			must(t, err)
			synctest.Wait()
		}
		update(wire.Optional{}) // no start: nothing is sent again
		update(wire.Some(9))    // nor for one that does not exist yet
		if _, total := b.server.OpenUniStreams(); total != 2 {
			t.Errorf("%d streams", total)
		}
		for _, start := range []uint64{8, 0} {
			update(wire.Some(start))
			g.frame(t)
			g.frame(t)
			g.end(t)
			if g = b.acceptGroup(); g.Sequence != 8 {
				t.Errorf("group %d", g.Sequence)
			}
		}
		must(t, s.Close())
		synctest.Wait()
		b.end()
	})
}

func TestRangeOfASubscription(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		track := b.origin.track("rows")
		must(t, track.WriteGroup(5, text("a")))
		s := b.request(wire.AppendSubscribe(typed(wire.StreamSubscribe), wire.Subscribe{
			ID: 3, Broadcast: "g/v", Track: "rows",
			Delivery: wire.Delivery{Start: wire.Some(6), End: wire.Some(7)},
		}))
		b.acceptSetup()
		synctest.Wait()
		must(t, track.WriteGroup(7, text("b")))
		if g := b.acceptGroup(); g.Sequence != 7 {
			t.Errorf("group %d", g.Sequence)
		}
		must(t, track.WriteGroup(8, text("c")))
		synctest.Wait()
		if _, total := b.server.OpenUniStreams(); total != 2 {
			t.Errorf("%d streams", total)
		}
		_, err := s.Write(wire.AppendSubscribeUpdate(nil, wire.SubscribeUpdate{}))
		must(t, err)
		if g := b.acceptGroup(); g.Sequence != 8 {
			t.Errorf("group %d", g.Sequence)
		}
		b.end()
	})
}

func TestPriorityGoesFirst(t *testing.T) {
	s := NewSession(nullSession{}, Config{})
	var order []uint64
	track := moq.NewTrack(moq.Info{})
	for id, priority := range []uint8{0, 5, 200, 0, 127, 128} {
		p := &publication{id: uint64(id), class: classOf(priority)}
		s.sender.add(p, track.NewCursor(func() {}))
	}
	for p := s.sender.nextLocked(); p != nil; p = s.sender.nextLocked() {
		order = append(order, p.id)
	}
	if want := []uint64{2, 5, 1, 4, 0, 3}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestPriorityOfStreams(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		b.acceptSetup()
		for id, c := range []struct{ priority, urgency uint8 }{{0, 3}, {5, 2}, {200, 1}} {
			must(t, b.origin.track(fmt.Sprint(id)).WriteGroup(1, text("a")))
			b.request(wire.AppendSubscribe(typed(wire.StreamSubscribe), wire.Subscribe{
				ID: uint64(id), Broadcast: "g/v", Track: fmt.Sprint(id),
				Delivery: wire.Delivery{Priority: c.priority},
			}))
			if g := b.acceptGroup(); sessiontest.Urgency(g.stream) != c.urgency {
				t.Errorf("priority %d: urgency %d", c.priority, sessiontest.Urgency(g.stream))
			}
		}
		b.end()
	})
}

// The peer stops one group: the next one comes all the same.
func TestStoppedGroup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		track := b.origin.track("rows")
		must(t, track.WriteGroup(1, text("a")))
		b.request(subscribeTo(0, "rows"))
		b.acceptSetup()
		b.acceptGroup().stream.Stop(0)
		must(t, track.AppendFrame(text("b")))
		synctest.Wait()
		must(t, track.AppendFrame(text("c")))
		synctest.Wait()
		must(t, track.WriteGroup(2, text("d")))
		if g := b.acceptGroup(); g.Sequence != 2 || g.frame(t) != "d" {
			t.Errorf("group %d", g.Sequence)
		}
		b.end()
	})
}

// What is measured is all of our code between the track and the binding: the
// stream of the test's binding does nothing.
func TestSendingDoesNotAllocate(t *testing.T) {
	s := NewSession(nullSession{}, Config{})
	track, p := nullPublication(t, s)
	body := []byte(strings.Repeat("x", 500))
	seq := uint64(0)
	n := testing.AllocsPerRun(1000, func() {
		seq++
		publish(t, s, track, p, seq, body)
	})
	if n != 0 {
		t.Errorf("%v allocations for one group to one viewer", n)
	}
	if c := s.counters; c.GroupsSent.Load() != seq || c.FramesSent.Load() != seq {
		t.Errorf("%d groups of %d", c.GroupsSent.Load(), seq)
	}
}
