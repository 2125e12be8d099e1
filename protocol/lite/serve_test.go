package lite

import (
	"bytes"
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
	"github.com/heddle-live/heddle/protocol/wire"
)

func trackOf(broadcast protocol.Path, name string) []byte {
	return wire.AppendTrack(typed(wire.StreamTrack), wire.Track{Broadcast: broadcast, Name: name})
}

func fetchOf(name string, sequence uint64) []byte {
	return wire.AppendFetch(typed(wire.StreamFetch), wire.Fetch{
		Broadcast: "g/v", Track: name, Group: sequence,
	})
}

func listOf(prefix protocol.Path, exclude protocol.HopID) []byte {
	return wire.AppendAnnounceRequest(typed(wire.StreamAnnounce), wire.AnnounceRequest{
		Prefix: prefix, ExcludeHop: exclude,
	})
}

func TestTrackInfo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		b.origin.track("rows")
		s := b.request(trackOf("g/v", "rows"))
		got, err := io.ReadAll(s)
		want := wire.AppendTrackInfo(nil, wire.TrackInfo{MaxLatencyMS: 1000, TimescaleUnit: 1000})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%x, %v; want %x", got, err, want)
		}
		// Its credit comes back when the client ends its half, not before.
		if n := b.client.OpenBidiStreams(); n != 1 {
			t.Errorf("%d streams", n)
		}
		must(t, s.Close())
		synctest.Wait()
		if n := b.client.OpenBidiStreams(); n != 0 {
			t.Errorf("%d streams hold credit", n)
		}
		if o, _ := b.origin.balance(); o != 0 {
			t.Error("TRACK made demand")
		}
		b.end()
	})
}

// What a client may send on a request stream, and the code that it gets.
func TestRefusals(t *testing.T) {
	long := append(typed(wire.StreamSubscribe), 0x80, 1, 0, 1)
	deep := protocol.Path(strings.Repeat("d/", 40) + "x")
	cases := []struct {
		name string
		in   []byte
		fin  bool
		want protocol.StreamCode
	}{
		{"track not found", trackOf("g/v", "other"), true, protocol.CodeNotFound},
		{"track denied", trackOf("g/v", "denied"), false, protocol.CodeUnauthorized},
		{"track broken", trackOf("g/v", "broken"), true, protocol.CodeInternal},
		{"subscribe not found", subscribeTo(1, "other"), false, protocol.CodeNotFound},
		{"subscribe denied", subscribeTo(1, "denied"), false, protocol.CodeUnauthorized},
		{"fetch not found", fetchOf("other", 1), false, protocol.CodeNotFound},
		{"fetch of an older group", fetchOf("rows", 4), false, protocol.CodeOld},
		{"fetch of a later group", fetchOf("rows", 6), false, protocol.CodeNotFound},
		{"unknown stream type", []byte{0x3f, 1, 2, 3}, false, protocol.CodeUnexpectedStream},
		{"stream type of lite-01", []byte{0x20, 0, 0x2c}, false, protocol.CodeUnexpectedStream},
		{"type 0", []byte{0, 1, 2}, false, protocol.CodeUnexpectedStream},
		{"nothing", nil, true, protocol.CodeDecode},
		{"type alone", []byte{2}, true, protocol.CodeDecode},
		{"half a message", subscribeTo(1, "rows")[:9], true, protocol.CodeDecode},
		{"half a message, then silence", subscribeTo(1, "rows")[:9], false, protocol.CodeTimeout},
		{"silence", nil, false, protocol.CodeTimeout},
		{"fields longer than the message", []byte{6, 2, 9, 9}, false, protocol.CodeDecode},
		{
			"message longer than its fields",
			[]byte{6, 4, 1, 'a', 0, 0},
			false,
			protocol.CodeProtocolViolation,
		},
		{"message over 64 KiB", long, false, protocol.CodeBoundsExceeded},
		{"name that is not UTF-8", []byte{6, 4, 1, 0xff, 1, 'a'}, false, protocol.CodeDecode},
		{"41 segments", trackOf(deep, "rows"), false, protocol.CodeBoundsExceeded},
		{"garbage", bytes.Repeat([]byte{0xa5}, 3000), false, protocol.CodeUnexpectedStream},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := begin(t, sessiontest.Config{}, Limits{})
				must(t, b.origin.track("rows").WriteGroup(5, text("a")))
				s := b.request(c.in)
				if c.fin {
					must(t, s.Close())
				}
				start := time.Now()
				b.expectCode(s, c.want)
				if d := time.Since(start); c.want == protocol.CodeTimeout != (d == 10*time.Second) {
					t.Errorf("after %v", d)
				}
				synctest.Wait()
				if n := b.client.OpenBidiStreams(); n != 0 {
					t.Errorf("%d streams hold credit", n)
				}
				if n := b.counters.RequestsRefused.Load(); n != 1 {
					t.Errorf("%d refusals counted", n)
				}
				// Everybody else is unharmed.
				b.request(subscribeTo(2, "rows"))
				b.acceptSetup()
				if g := b.acceptGroup(); g.frame(t) != "a" {
					t.Error("session is harmed")
				}
				b.end()
			})
		})
	}
}

// Messages may come one byte at a time.
func TestByteByByte(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		must(t, b.origin.track("rows").WriteGroup(5, text("a")))
		s := b.request()
		for _, c := range subscribeTo(70, "rows") {
			_, err := s.Write([]byte{c})
			must(t, err)
			time.Sleep(100 * time.Millisecond)
		}
		b.acceptSetup()
		b.acceptGroup()
		b.end()
	})
}

func TestFetch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		small, large := b.origin.track("small"), b.origin.track("large")
		big := strings.Repeat("x", 3_000_000)
		must(t, small.WriteGroup(5, moq.Frame{Timestamp: 1000, Payload: []byte("a")}, text("b")))
		must(t, large.WriteGroup(1<<40, text(big)))
		c := b.dial()
		frames, err := c.Fetch(b.ctx, "g/v", "small", 5)
		if err != nil || len(frames) != 2 || frames[0].Timestamp != 1000 ||
			string(frames[1].Payload) != "b" || frames[1].Timestamp != 0 {
			t.Errorf("%+v, %v", frames, err)
		}
		frames, err = c.Fetch(b.ctx, "g/v", "large", 1<<40)
		if err != nil || len(frames) != 1 || string(frames[0].Payload) != big {
			t.Errorf("%d frames, %v", len(frames), err)
		}
		_, err = c.Fetch(b.ctx, "g/v", "small", 4)
		if se, ok := errors.AsType[*protocol.StreamError](err); !ok || se.Code != protocol.CodeOld {
			t.Errorf("older group: %v", err)
		}
		// A track that comes to life gets its time, but not for ever.
		fresh := b.origin.track("fresh")
		time.AfterFunc(3*time.Second, func() { _ = fresh.WriteGroup(9, text("late")) })
		frames, err = c.Fetch(b.ctx, "g/v", "fresh", 9)
		if err != nil || string(frames[0].Payload) != "late" {
			t.Errorf("fresh track: %+v, %v", frames, err)
		}
		b.origin.track("never")
		start := time.Now()
		_, err = c.Fetch(b.ctx, "g/v", "never", 1)
		se, ok := errors.AsType[*protocol.StreamError](err)
		if !ok || se.Code != protocol.CodeTimeout || time.Since(start) != 10*time.Second {
			t.Errorf("no group: %v after %v", err, time.Since(start))
		}
		// Nor longer than the client wants.
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		if _, err = c.Fetch(ctx, "g/v", "never", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled: %v", err)
		}
		synctest.Wait()
		if o, r := b.origin.balance(); o != r {
			t.Errorf("opened %d, released %d", o, r)
		}
		b.end()
	})
}

func TestAnnounce(t *testing.T) {
	cases := []struct {
		name    string
		prefix  protocol.Path
		exclude protocol.HopID
		want    []wire.Announce
	}{
		{"the route", "g/v", 5, []wire.Announce{{Active: true}}},
		{"below the route", "g/v/42/x", 0, []wire.Announce{{Active: true}}},
		{
			"above the route", "g", 5,
			[]wire.Announce{{Active: true, Suffix: "v", Hops: []protocol.HopID{7}}},
		},
		{"everything", "", 0, []wire.Announce{{Active: true, Suffix: "g/v", Hops: []protocol.HopID{7}}}},
		{"excluded", "", 7, nil},
		{"unrelated", "g/vw", 0, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := begin(t, sessiontest.Config{}, Limits{})
				s := b.request(listOf(c.prefix, c.exclude))
				want := wire.AppendAnnounceOK(nil, wire.AnnounceOK{
					HopID: 77, Active: uint64(len(c.want)),
				})
				for _, a := range c.want {
					want = wire.AppendAnnounce(want, a)
				}
				got := make([]byte, len(want))
				if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%x, %v; want %x", got, err, want)
				}
				// It stays open, and carries changes, until the peer ends it.
				b.origin.changes <- []Announcement{{Suffix: "x"}}
				want = wire.AppendAnnounce(nil, wire.Announce{Suffix: "x"})
				got = make([]byte, len(want))
				if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("change %x, %v", got, err)
				}
				time.Sleep(time.Minute)
				must(t, s.Close())
				if rest, err := io.ReadAll(s); err != nil || len(rest) > 0 {
					t.Errorf("after the end: %x, %v", rest, err)
				}
				b.end()
			})
		})
	}
}

func TestAnnouncedClient(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		c := b.dial()
		l, err := c.Announced(b.ctx, "g")
		must(t, err)
		first, err := l.Next()
		if err != nil || len(first) != 1 || first[0].Suffix != "v" || l.HopID() != 77 {
			t.Errorf("%+v of %d, %v", first, l.HopID(), err)
		}
		b.origin.changes <- []Announcement{{Suffix: "v"}}
		if news, err := l.Next(); err != nil || len(news) != 1 || news[0].Active {
			t.Errorf("%+v, %v", news, err)
		}
		l.Close()
		synctest.Wait()
		if n := b.client.OpenBidiStreams(); n != 0 {
			t.Errorf("%d streams hold credit", n)
		}
		b.end()
	})
}

// Bytes after the request are refused, whatever the request.
func TestBytesAfterTheRequest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		must(t, b.origin.track("rows").WriteGroup(5, text("a")))
		announce := b.request(listOf("g", 0), []byte{1})
		b.expectCode(announce, protocol.CodeProtocolViolation)
		track := b.request(trackOf("g/v", "rows"), []byte{1})
		if _, err := io.ReadAll(track); err != nil {
			t.Errorf("the answer is lost: %v", err)
		}
		sub := b.request(subscribeTo(1, "rows"), []byte{5, 0, 9})
		must(t, sub.Close())
		b.expectCode(sub, protocol.CodeDecode)
		slow := b.request(subscribeTo(2, "rows"), []byte{5, 0})
		b.expectCode(slow, protocol.CodeTimeout)
		synctest.Wait()
		if o, r := b.origin.balance(); o != 2 || r != 2 {
			t.Errorf("opened %d, released %d", o, r)
		}
		b.end()
	})
}

func TestProbeIsFinished(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		s := b.request(typed(wire.StreamProbe))
		if got, err := io.ReadAll(s); err != nil || len(got) != 0 {
			t.Errorf("%x, %v", got, err)
		}
		b.end()
	})
}

// The peer's ways to unsubscribe all release the track once and end our half.
func TestUnsubscribe(t *testing.T) {
	ways := map[string]func(protocol.Stream){
		"fin":            func(s protocol.Stream) { _ = s.Close() },
		"reset":          func(s protocol.Stream) { s.Reset(0) },
		"fin and stop":   func(s protocol.Stream) { _ = s.Close(); s.Stop(0) },
		"reset and stop": func(s protocol.Stream) { s.Reset(0); s.Stop(0) },
	}
	for name, leave := range ways {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := begin(t, sessiontest.Config{SessionWindow: 100 << 10}, Limits{})
				small, large := b.origin.track("small"), b.origin.track("large")
				must(t, small.WriteGroup(5, text("a")))
				must(t, large.WriteGroup(5, text(strings.Repeat("x", 1<<20))))
				one := b.request(subscribeTo(1, "small"))
				b.acceptSetup()
				b.acceptGroup()
				two := b.request(subscribeTo(2, "large")) // its writer waits
				b.acceptGroup()
				synctest.Wait()
				three := b.request(subscribeTo(3, "small")) // START waits
				synctest.Wait()
				if n := b.session.sender.writers; n != 2 {
					t.Errorf("%d writers", n)
				}
				leave(one)
				leave(three)
				leave(two)
				synctest.Wait()
				if o, r := b.origin.balance(); o != 3 || r != 3 {
					t.Errorf("opened %d, released %d", o, r)
				}
				if small.Cursors()+large.Cursors() != 0 {
					t.Error("cursors left")
				}
				if b.session.sender.writers != 0 {
					t.Error("a writer is left")
				}
				must(t, small.WriteGroup(6, text("b")))
				synctest.Wait()
				// SETUP, two groups, and the one that was opened for the third.
				if _, total := b.server.OpenUniStreams(); total != 4 {
					t.Errorf("%d streams after unsubscribing", total)
				}
				b.end()
			})
		})
	}
}

// STOP_SENDING alone is noticed at the track's next change.
func TestUnsubscribeByStopAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		track := b.origin.track("rows")
		must(t, track.WriteGroup(5, text("a")))
		s := b.request(subscribeTo(1, "rows"))
		b.acceptSetup()
		b.acceptGroup()
		s.Stop(0)
		must(t, track.WriteGroup(6, text("b")))
		synctest.Wait()
		if o, r := b.origin.balance(); o != 1 || r != 1 {
			t.Errorf("opened %d, released %d", o, r)
		}
		if _, total := b.server.OpenUniStreams(); total != 2 {
			t.Errorf("%d streams", total)
		}
		b.end()
	})
}

func TestSubscriptionLimits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{Subscriptions: 2})
		must(t, b.origin.track("rows").WriteGroup(5, text("a")))
		one := b.request(subscribeTo(1, "rows"))
		synctest.Wait()
		b.expectCode(b.request(subscribeTo(1, "rows")), protocol.CodeDuplicate)
		b.request(subscribeTo(2, "rows"))
		synctest.Wait()
		b.expectCode(b.request(subscribeTo(3, "rows")), protocol.CodeBusy)
		must(t, one.Close())
		synctest.Wait()
		b.request(subscribeTo(4, "rows"))
		synctest.Wait()
		if n := b.counters.SubscriptionsOpen.Load(); n != 2 {
			t.Errorf("%d subscriptions", n)
		}
		b.end()
	})
}

// The session's end, from either side or by the context, releases everything,
// wherever the subscriptions are.
func TestSessionEnd(t *testing.T) {
	ends := map[string]func(*bench, context.CancelFunc){
		"client closes": func(b *bench, _ context.CancelFunc) { _ = b.client.CloseWithError(7, "bye") },
		"server closes": func(b *bench, _ context.CancelFunc) { b.session.Close(7, "bye") },
		"context's end": func(_ *bench, cancel context.CancelFunc) { cancel() },
		"protocol error": func(b *bench, _ context.CancelFunc) {
			b.uni([]byte{1, 1, 0}, []byte{1, 1, 0})
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := begin(t, sessiontest.Config{
					UniStreams: 40, SessionWindow: 200 << 10,
				}, Limits{BlockedWriters: 2})
				ctx, cancel := context.WithCancel(b.ctx)
				defer cancel()
				stop := context.AfterFunc(ctx, func() { b.session.Close(0, "") })
				defer stop()
				for i := range 60 {
					name := string(rune('A' + i))
					size := 10
					if i < 8 {
						size = 100_000
					}
					must(t, b.origin.track(name).WriteGroup(5, text(strings.Repeat("x", size))))
					b.request(subscribeTo(uint64(i), name))
				}
				b.request(listOf("", 0))
				b.origin.track("never")
				b.request(fetchOf("never", 1))
				synctest.Wait()
				end(b, cancel)
				err := <-b.ended
				se, ok := errors.AsType[*protocol.SessionError](err)
				if name == "context's end" {
					ok = err == nil
				} else if ok {
					ok = se.Code == 7 || se.Code == protocol.SessionProtocolViolation
				}
				if !ok {
					t.Errorf("Run: %v", err)
				}
				b.clean()
			})
		})
	}
}

// uni writes each message on a unidirectional stream of its own.
func (b *bench) uni(messages ...[]byte) {
	b.t.Helper()
	for _, m := range messages {
		s, err := b.client.OpenUniStream(b.ctx)
		must(b.t, err)
		_, _ = s.Write(m) // the session may end under it
		_ = s.Close()
	}
}

func TestPeerSetup(t *testing.T) {
	path := wire.AppendSetup([]byte{1}, wire.Setup{Path: "/x"})
	cases := []struct {
		name      string
		transport string
		messages  [][]byte
		code      protocol.SessionCode // 0: the session lives
	}{
		{"one", "quic", [][]byte{{1, 1, 0}}, 0},
		{"hop", "quic", [][]byte{wire.AppendSetup([]byte{1}, wire.Setup{Hop: 9})}, 0},
		{"none", "quic", nil, 0},
		{"second", "quic", [][]byte{{1, 1, 0}, {1, 1, 0}}, protocol.SessionProtocolViolation},
		{
			"duplicate parameter", "quic",
			[][]byte{{1, 7, 2, 1, 1, 1, 1, 1, 1}},
			protocol.SessionProtocolViolation,
		},
		{"truncated", "quic", [][]byte{{1, 7, 2, 1, 1}}, protocol.SessionProtocolViolation},
		{"trailing bytes", "quic", [][]byte{{1, 1, 0, 0}}, protocol.SessionProtocolViolation},
		{"path on native QUIC", "quic", [][]byte{path}, 0},
		{"path on WebTransport", "webtransport", [][]byte{path}, protocol.SessionProtocolViolation},
		{"unknown stream type", "quic", [][]byte{{0x3f, 1, 2, 3}, {9}}, 0},
		{"group of no subscription", "quic", [][]byte{{0, 2, 9, 9, 0, 0}}, 0},
		{"garbage group", "quic", [][]byte{{0, 9}, {0, 1, 0}, {0xc0}, {}}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := &bench{t: t, ctx: t.Context(), origin: newOrigin(), counters: new(Counters)}
				b.client, b.server = sessiontest.Pair(
					sessiontest.Config{Transport: c.transport}, sessiontest.Config{Transport: c.transport})
				b.session = NewSession(b.server, Config{Origin: b.origin, Counters: b.counters})
				b.ended = make(chan error, 1)
				go func() { b.ended <- b.session.Run(context.Background()) }()
				b.uni(c.messages...)
				synctest.Wait()
				if c.code == 0 {
					if err := context.Cause(b.client.Context()); err != nil {
						t.Errorf("session ended: %v", err)
					}
					if open, _ := b.client.OpenUniStreams(); open != 0 {
						t.Errorf("%d streams hold credit", open)
					}
					b.end()
					return
				}
				se, ok := errors.AsType[*protocol.SessionError](context.Cause(b.client.Context()))
				if !ok || se.Code != c.code || !se.Remote || se.Reason == "" {
					t.Errorf("got %v, want code %d", se, c.code)
				}
				<-b.ended
				b.clean()
			})
		})
	}
}

// A peer that never grants a stream for SETUP is not served.
func TestNoCreditForSetup(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{UniStreams: -1}, Limits{})
		start := time.Now()
		se, ok := errors.AsType[*protocol.SessionError](<-b.ended)
		if !ok || se.Code != protocol.SessionProtocolViolation || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v", se, time.Since(start))
		}
		b.clean()
	})
}

func TestGoAway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		c := b.dial()
		synctest.Wait()
		must(t, b.session.GoAway(b.ctx, "https://other.example/"))
		<-c.GoingAway()
		if err := b.session.GoAway(b.ctx, ""); err == nil {
			t.Error("second GOAWAY sent")
		}
		if err := c.GoAway(b.ctx, "x"); !errors.Is(err, wire.ErrBounds) {
			t.Errorf("a client's URI: %v", err)
		}
		select {
		case <-b.session.GoingAway():
			t.Error("the server is told to go")
		default:
		}
		// A server takes none with a URI.
		s := b.request(wire.AppendGoaway(typed(wire.StreamGoaway), wire.Goaway{URI: "x"}))
		_ = s
		if se, ok := errors.AsType[*protocol.SessionError](<-b.ended); !ok ||
			se.Code != protocol.SessionProtocolViolation {
			t.Errorf("%v", se)
		}
		b.clean()
	})
}
