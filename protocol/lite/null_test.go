package lite

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
)

// nullSession is a binding that takes everything and does nothing, so that what
// is measured is this package.
type nullSession struct{}

func (nullSession) AcceptStream(context.Context) (protocol.Stream, error)           { panic("unused") }
func (nullSession) AcceptUniStream(context.Context) (protocol.ReceiveStream, error) { panic("unused") }
func (nullSession) OpenStream(context.Context) (protocol.Stream, error)             { panic("unused") }
func (nullSession) OpenUniStream(context.Context) (protocol.SendStream, error)      { panic("unused") }
func (nullSession) TryOpenUniStream() (protocol.SendStream, error)                  { return nullStream{}, nil }
func (nullSession) CloseWithError(protocol.SessionCode, string) error               { return nil }
func (nullSession) Context() context.Context                                        { return context.Background() }
func (nullSession) Protocol() string                                                { return "moq-lite-05" }
func (nullSession) Transport() string                                               { return "quic" }
func (nullSession) RequestURI() string                                              { return "" }
func (nullSession) RemoteAddr() net.Addr                                            { return nil }
func (nullSession) Stats() protocol.Stats                                           { return protocol.Stats{} }

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
