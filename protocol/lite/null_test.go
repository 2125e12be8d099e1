package lite

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
)

// nullSession is a binding that takes everything and does nothing, so that what
// is measured is this package.
type nullSession struct{ protocol.Session }

func (nullSession) TryOpenUniStream() (protocol.SendStream, error) { return nullStream{}, nil }
func (nullSession) Protocol() string                               { return "moq-lite-05" }

type nullStream struct{}

func (nullStream) Write(p []byte) (int, error)     { return len(p), nil }
func (nullStream) TryWrite([]byte) error           { return nil }
func (nullStream) Close() error                    { return nil }
func (nullStream) Reset(protocol.StreamCode)       {}
func (nullStream) SetPriority(uint8)               {}
func (nullStream) Done() <-chan struct{}           { return nil }
func (nullStream) Read([]byte) (int, error)        { panic("unused") }
func (nullStream) Stop(protocol.StreamCode)        {}
func (nullStream) SetReadDeadline(time.Time) error { return nil }

// nullPublication is a subscription to a new track; its sender does not run.
func nullPublication(tb testing.TB, s *Session) (*moq.Track, *publication) {
	tb.Helper()
	track := moq.NewTrack(moq.Info{})
	p := &publication{id: 1, control: nullStream{}, class: classNormal}
	s.sender.add(p, track.NewCursor(func() { s.sender.enqueue(p) }))
	return track, p
}

// publish writes one group and does what the sender's goroutine would.
func publish(tb testing.TB, s *Session, track *moq.Track, p *publication, seq uint64, body []byte) {
	if err := track.WriteGroup(seq, moq.Frame{Payload: body}); err != nil {
		tb.Fatal(err)
	}
	s.sender.mu.Lock()
	next := s.sender.nextLocked()
	s.sender.mu.Unlock()
	if next != p {
		tb.Fatal("not queued")
	}
	s.sender.turn(next)
}

// tape records what is done to the streams of a session.
type tape struct {
	protocol.Session
	streams int
	log     []string
}

func (*tape) Protocol() string { return "moq-lite-05" }

func (r *tape) TryOpenUniStream() (protocol.SendStream, error) {
	r.streams++
	r.log = append(r.log, fmt.Sprintf("open %d", r.streams))
	return &tapeStream{tape: r, id: r.streams}, nil
}

type tapeStream struct {
	nullStream
	tape *tape
	id   int
}

func (s *tapeStream) TryWrite(p []byte) error {
	s.tape.log = append(s.tape.log, fmt.Sprintf("write %d %x", s.id, p))
	return nil
}

func (s *tapeStream) Close() error {
	s.tape.log = append(s.tape.log, fmt.Sprintf("fin %d", s.id))
	return nil
}

// One group costs one write, and nothing stands between the old group's FIN and
// it, so that a binding can put both in one packet.
func TestOneWriteForAGroup(t *testing.T) {
	rec := &tape{}
	s := NewSession(rec, Config{})
	track, p := nullPublication(t, s)
	publish(t, s, track, p, 5, []byte("a"))
	publish(t, s, track, p, 6, []byte("bc"))
	if err := track.AppendFrame(moq.Frame{Timestamp: 3, Payload: []byte("d")}); err != nil {
		t.Fatal(err)
	}
	s.sender.turn(p)
	want := []string{
		"open 1", "write 1 00020105" + "0001" + "61",
		"open 2", "fin 1", "write 2 00020106" + "0002" + "6263", "write 2 060164",
	}
	if !slices.Equal(rec.log, want) {
		t.Errorf("got  %q\nwant %q", rec.log, want)
	}
}

func BenchmarkPublishOne(b *testing.B) {
	s := NewSession(nullSession{}, Config{})
	track, p := nullPublication(b, s)
	body := make([]byte, 300)
	seq := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		publish(b, s, track, p, seq, body)
	}
}
