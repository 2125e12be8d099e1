package lite

import (
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
