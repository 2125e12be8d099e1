package lite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/sessiontest"
	"github.com/heddle-live/heddle/protocol/wire"
)

// publisher is the other end of a client under test, played by hand.
type publisher struct {
	*bench
	sub     *Subscription
	control protocol.Stream // of the one subscription
}

// publish runs a client with one subscription against a publisher by hand.
func startPublisher(t *testing.T, limits Limits) *publisher {
	t.Helper()
	b := &bench{t: t, ctx: t.Context()}
	// The "client" of the bench is the side that the test plays.
	b.server, b.client = sessiontest.Pair(sessiontest.Config{}, sessiontest.Config{})
	b.session = NewSession(b.server, Config{Client: true, Limits: limits})
	b.ended = make(chan error, 1)
	go func() { b.ended <- b.session.Run(context.Background()) }()
	sub, err := b.session.Subscribe(b.ctx, "g/v", "rows", SubscribeOptions{Priority: 9})
	must(t, err)
	s, err := b.client.AcceptStream(b.ctx)
	must(t, err)
	want := wire.AppendSubscribe(typed(wire.StreamSubscribe), wire.Subscribe{
		Broadcast: "g/v", Track: "rows", Delivery: wire.Delivery{Priority: 9},
	})
	got := make([]byte, len(want))
	if _, err := io.ReadFull(s, got); err != nil || string(got) != string(want) {
		t.Fatalf("SUBSCRIBE %x, %v", got, err)
	}
	return &publisher{b, sub, s}
}

func (p *publisher) stop() {
	_ = p.client.CloseWithError(0, "")
	if err := <-p.ended; err != nil {
		p.t.Errorf("Run: %v", err)
	}
}

func (p *publisher) group(sequence uint64, frames ...string) protocol.SendStream {
	p.t.Helper()
	s, err := p.client.OpenUniStream(p.ctx)
	must(p.t, err)
	_, err = s.Write(wire.AppendGroup(typed(wire.UniStreamGroup), wire.Group{Sequence: sequence}))
	must(p.t, err)
	for _, f := range frames {
		p.write(s, f)
	}
	return s
}

func (p *publisher) write(s protocol.SendStream, payload string) {
	p.t.Helper()
	b, err := wire.AppendFrame(nil, 1, []byte(payload))
	must(p.t, err)
	_, err = s.Write(b)
	must(p.t, err)
}

func (p *publisher) respond(b []byte) {
	p.t.Helper()
	_, err := p.control.Write(b)
	must(p.t, err)
}

func (p *publisher) expect(sequence uint64, index int, payload string) {
	p.t.Helper()
	f, err := p.sub.Next(p.ctx)
	if err != nil || f.Sequence != sequence || f.Index != index || string(f.Payload) != payload ||
		f.Timestamp != int64(index+1) {
		p.t.Errorf("got %d.%d at %d, %d bytes, %v; want %d.%d %.20q", f.Sequence, f.Index,
			f.Timestamp, len(f.Payload), err, sequence, index, payload)
	}
}

// idle checks that Next has nothing.
func (p *publisher) idle() {
	p.t.Helper()
	synctest.Wait()
	if f, ok, err := p.sub.poll(); ok || err != nil {
		p.t.Errorf("got %+v, %v; want nothing", f, err)
	}
}

func TestNewestWins(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := startPublisher(t, Limits{})
		stuck := p.group(1, "a")
		p.expect(1, 0, "a")
		p.write(stuck, "b")
		p.expect(1, 1, "b")
		// Group 3 overtakes 2, and 1 is stuck in the middle of a frame.
		_, err := stuck.Write([]byte{2, 9, 'x'})
		must(t, err)
		three := p.group(3, "d")
		p.expect(3, 0, "d")
		late := p.group(2, "c")
		p.idle()
		<-late.Done() // stopped, so that it returns its credit
		_, err = stuck.Write([]byte("xxxxxxxx"))
		must(t, err)
		<-stuck.Done()
		p.write(three, "e")
		p.expect(3, 1, "e")
		must(t, three.Close())
		if n := p.sub.Skipped(); n != 2 {
			t.Errorf("skipped %d", n)
		}
		// The newest group again, asked for, under its own number.
		must(t, p.sub.Update(SubscribeOptions{Start: wire.Some(3)}))
		again := p.group(3, "d", "e")
		p.expect(3, 0, "d")
		p.expect(3, 1, "e")
		must(t, again.Close())
		synctest.Wait()
		if open, _ := p.client.OpenUniStreams(); open != 0 {
			t.Errorf("%d streams hold credit", open)
		}
		p.stop()
	})
}

// A reader that falls behind skips whole groups; within one group it holds the
// publisher up instead.
func TestSlowReader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := startPublisher(t, Limits{QueuedFrames: 4})
		for seq := range uint64(10) {
			must(t, p.group(seq, "a").Close())
			synctest.Wait()
		}
		p.expect(8, 0, "a")
		p.expect(9, 0, "a")
		p.idle()
		if n := p.sub.Skipped(); n != 8 {
			t.Errorf("skipped %d", n)
		}
		var all []string
		for i := range 50 {
			all = append(all, fmt.Sprint(i))
		}
		must(t, p.group(20, all...).Close())
		synctest.Wait()
		for i, want := range all {
			p.expect(20, i, want)
		}
		// Big frames count by their bytes.
		big := strings.Repeat("x", queuedBytesMax/2+1)
		must(t, p.group(30, big).Close())
		synctest.Wait()
		must(t, p.group(31, big).Close())
		synctest.Wait()
		p.expect(31, 0, big)
		p.stop()
	})
}

func TestEndOfSubscription(t *testing.T) {
	refused := &protocol.StreamError{Code: protocol.CodeViewDropped, Remote: true}
	start := wire.AppendSubscribeStart(nil, wire.SubscribeStart{Group: 1})
	end3 := wire.AppendSubscribeEnd(nil, wire.SubscribeEnd{Group: 3})
	end0 := wire.AppendSubscribeEnd(nil, wire.SubscribeEnd{})
	drop := wire.AppendSubscribeDrop(nil, wire.SubscribeDrop{First: 4, Last: 5})
	cases := []struct {
		name   string
		do     func(*publisher)
		frames int
		want   error
		after  time.Duration
	}{
		{"end, then fin", func(p *publisher) {
			p.respond(start)
			must(p.t, p.group(2, "a").Close())
			p.respond(end3)
			must(p.t, p.control.Close())
		}, 1, io.EOF, 0},
		{"fin ahead of the groups", func(p *publisher) {
			p.respond(append(append(start, drop...), end3...))
			must(p.t, p.control.Close())
			time.AfterFunc(500*time.Millisecond, func() { must(p.t, p.group(2, "a").Close()) })
		}, 1, io.EOF, 500 * time.Millisecond},
		{"groups that never come", func(p *publisher) {
			p.respond(end3)
			must(p.t, p.control.Close())
		}, 0, io.EOF, time.Second},
		{"nothing at all", func(p *publisher) {
			p.respond(end0)
			must(p.t, p.control.Close())
		}, 0, io.EOF, 0},
		{"fin without end", func(p *publisher) {
			must(p.t, p.control.Close())
		}, 0, io.ErrUnexpectedEOF, 0},
		{"reset", func(p *publisher) { p.control.Reset(refused.Code) }, 0, refused, 0},
		{"reset after groups", func(p *publisher) {
			must(p.t, p.group(2, "a", "b").Close())
			synctest.Wait()
			p.control.Reset(refused.Code)
		}, 2, refused, 0},
		{"unknown response", func(p *publisher) { p.respond([]byte{7, 1, 1}) }, 0, wire.ErrViolation, 0},
		{"half a response", func(p *publisher) {
			p.respond(end3[:2])
			must(p.t, p.control.Close())
		}, 0, io.ErrUnexpectedEOF, 0},
		{"session", func(p *publisher) {
			_ = p.client.CloseWithError(0, "bye")
		}, 0, &protocol.SessionError{}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := startPublisher(t, Limits{})
				c.do(p)
				started, frames := time.Now(), 0
				var err error
				for err == nil {
					if _, err = p.sub.Next(p.ctx); err == nil {
						frames++
					}
				}
				if frames != c.frames || time.Since(started) != c.after || !sameError(err, c.want) {
					t.Errorf("%d frames, then %v after %v", frames, err, time.Since(started))
				}
				p.sub.Close()
				synctest.Wait()
				if n := p.server.OpenBidiStreams(); n != 0 && c.name != "session" {
					p.control.Stop(0)
					_, _ = io.Copy(io.Discard, p.control)
				}
				p.stop()
			})
		})
	}
}

func sameError(got, want error) bool {
	switch want := want.(type) {
	case *protocol.StreamError:
		se, ok := errors.AsType[*protocol.StreamError](got)
		return ok && se.Code == want.Code && se.Remote == want.Remote
	case *protocol.SessionError:
		_, ok := errors.AsType[*protocol.SessionError](got)
		return ok
	}
	return errors.Is(got, want)
}

// Close ends both halves and stops open groups, and late groups are stopped.
func TestCloseUnsubscribes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := startPublisher(t, Limits{})
		open := p.group(1, "a")
		p.expect(1, 0, "a")
		p.sub.Close()
		p.sub.Close()
		<-open.Done()
		<-p.control.Done()
		if rest, err := io.ReadAll(p.control); err != nil || len(rest) > 0 {
			t.Errorf("their half: %x, %v", rest, err)
		}
		late := p.group(2, "b")
		<-late.Done()
		if _, err := p.sub.Next(p.ctx); !errors.Is(err, ErrUnsubscribed) {
			t.Errorf("Next: %v", err)
		}
		if len(p.session.incoming) != 0 {
			t.Error("subscription left")
		}
		p.stop()
		if _, err := p.session.Subscribe(p.ctx, "a", "b", SubscribeOptions{}); err == nil {
			t.Error("subscribed after the end")
		}
	})
}

// An Update that the peer does not read does not hold Close up.
func TestCloseDuringUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := &bench{t: t, ctx: t.Context()}
		b.server, b.client = sessiontest.Pair(
			sessiontest.Config{}, sessiontest.Config{StreamWindow: 20})
		b.session = NewSession(b.server, Config{Client: true})
		b.ended = make(chan error, 1)
		go func() { b.ended <- b.session.Run(context.Background()) }()
		sub, err := b.session.Subscribe(b.ctx, "a", "b", SubscribeOptions{})
		must(t, err)
		updated := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				err = sub.Update(SubscribeOptions{})
			}
			updated <- err
		}()
		synctest.Wait()
		sub.Close()
		if err := <-updated; err == nil {
			t.Error("update went on")
		}
		_ = b.client.CloseWithError(0, "")
		must(t, <-b.ended)
	})
}

func TestNextEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := startPublisher(t, Limits{})
		ctx, cancel := context.WithTimeout(p.ctx, time.Second)
		defer cancel()
		if _, err := p.sub.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		must(t, p.group(1, "a").Close())
		p.expect(1, 0, "a")
		p.stop()
	})
}

// A frame over the limit, or garbage, ends its group and nothing else.
func TestBadGroups(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := startPublisher(t, Limits{FrameBytes: 10})
		large := p.group(1)
		_, err := large.Write([]byte{0, 11})
		must(t, err)
		<-large.Done()
		half := p.group(2)
		_, err = half.Write([]byte{0, 5, 'a'})
		must(t, err)
		must(t, half.Close())
		reset := p.group(3, "a")
		p.expect(3, 0, "a")
		reset.Reset(5)
		must(t, p.group(4, "b").Close())
		p.expect(4, 0, "b")
		p.idle()
		p.stop()
	})
}

func TestUpdateFromTheClient(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := begin(t, sessiontest.Config{}, Limits{})
		track := b.origin.track("rows")
		must(t, track.WriteGroup(5, text("a")))
		c := b.dial()
		sub, err := c.Subscribe(b.ctx, "g/v", "rows", SubscribeOptions{})
		must(t, err)
		for range 3 {
			if f, err := sub.Next(b.ctx); err != nil || f.Sequence != 5 {
				t.Errorf("%+v, %v", f, err)
			}
			must(t, sub.Update(SubscribeOptions{Priority: 200, Start: wire.Some(5)}))
		}
		sub.Close()
		b.end()
	})
}

// A group that comes on several streams is returned once, however they arrive.
func TestGroupOnSeveralStreams(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := startPublisher(t, Limits{})
		whole := p.group(1, "a", "b")
		p.expect(1, 0, "a")
		p.expect(1, 1, "b")
		// The publisher had finished this one before, to make room.
		must(t, p.group(1, "a").Close())
		p.idle()
		p.write(whole, "c")
		p.expect(1, 2, "c")
		// Asked for, it does come again, and in order.
		must(t, p.sub.Update(SubscribeOptions{Start: wire.Some(1)}))
		p.write(whole, "d")
		p.expect(1, 3, "d")
		again := p.group(1, "a", "b")
		p.expect(1, 0, "a")
		p.expect(1, 1, "b")
		p.write(whole, "e")
		p.idle()
		for i, f := range []string{"c", "d", "e"} {
			p.write(again, f)
			p.expect(1, 2+i, f)
		}
		must(t, whole.Close())
		must(t, again.Close())
		must(t, p.group(2, "f").Close())
		p.expect(2, 0, "f")
		p.idle()
		p.stop()
	})
}

// Two streams of a group that wait for room bring each frame once.
func TestGroupOnSeveralStreamsWithoutRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := startPublisher(t, Limits{QueuedFrames: 1})
		must(t, p.group(1, "a", "b", "c").Close())
		must(t, p.group(1, "a", "b").Close())
		for i, f := range []string{"a", "b", "c"} {
			synctest.Wait()
			p.expect(1, i, f)
		}
		p.idle()
		p.stop()
	})
}

// Requests of ours that cannot be answered end with their context or with the
// peer's answer, and give their stream back.
func TestAskingFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := startPublisher(t, Limits{})
		ask := func(answer func(protocol.Stream), call func(context.Context) error) error {
			t.Helper()
			ctx, cancel := context.WithTimeout(p.ctx, time.Second)
			defer cancel()
			go func() {
				if s, err := p.client.AcceptStream(p.ctx); err == nil {
					answer(s)
				}
			}()
			return call(ctx)
		}
		info := func(ctx context.Context) error {
			_, err := p.session.Info(ctx, "a", "b")
			return err
		}
		fetch := func(ctx context.Context) error {
			_, err := p.session.Fetch(ctx, "a", "b", 1)
			return err
		}
		list := func(ctx context.Context) error {
			_, err := p.session.Announced(ctx, "a")
			return err
		}
		say := func(b ...byte) func(protocol.Stream) {
			return func(s protocol.Stream) {
				_, _ = s.Write(b)
				_ = s.Close()
			}
		}
		silent := func(protocol.Stream) {}
		deny := func(s protocol.Stream) { s.Reset(6); s.Stop(6) }
		denied := &protocol.StreamError{Code: 6, Remote: true}
		for i, c := range []struct {
			answer func(protocol.Stream)
			call   func(context.Context) error
			want   error
		}{
			{silent, info, context.DeadlineExceeded},
			{silent, fetch, context.DeadlineExceeded},
			{silent, list, context.DeadlineExceeded},
			{deny, info, denied},
			{deny, fetch, denied},
			{deny, list, denied},
			{say(), info, io.ErrUnexpectedEOF},
			{say(), list, io.ErrUnexpectedEOF},
			{say(5, 0, 0, 0x43, 0xe8, 0), info, wire.ErrViolation},
			{say(6, 0, 0, 0x53, 0x88, 0x43, 0xe8, 1), info, wire.ErrViolation},
			{say(2, 0, 3, 3, 1, 0), list, io.ErrUnexpectedEOF},
			{say(0, 0x80, 0, 0, 1, 2, 0x80), fetch, io.ErrUnexpectedEOF},
		} {
			if err := ask(c.answer, c.call); !sameError(err, c.want) {
				t.Errorf("case %d: %v, want %v", i, err, c.want)
			}
		}
		p.stop()
	})
}
