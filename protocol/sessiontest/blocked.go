package sessiontest

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/heddle-live/heddle/protocol"
)

// BlockedCallsEnd has calls of each kind wait on both sides of a session of any
// binding, which must grant few streams, ends it by end, and fails t for those
// that go on until ctx ends.
func BlockedCallsEnd(
	ctx context.Context, t *testing.T, client, server protocol.Session, end func(),
) {
	t.Helper()
	calls := make(map[string]func() error)
	// Streams to which nothing is written, and streams that nobody reads.
	for _, from := range []protocol.Session{client, server} {
		to, name := server, "client"
		if from == server {
			to, name = client, "server"
		}
		asked, answering := request(ctx, t, from, to)
		calls["read an answer to the "+name] = reading(asked)
		calls["read a request of the "+name] = reading(answering)
		asked, answering = request(ctx, t, from, to)
		calls["write a request of the "+name] = writing(asked)
		calls["write an answer to the "+name] = writing(answering)
		calls["open at the "+name] = func() error { _, err := from.OpenStream(ctx); return err }
		calls["open for a group at the "+name] = func() error {
			_, err := from.OpenUniStream(ctx)
			return err
		}
		calls["accept at the "+name] = func() error { _, err := from.AcceptStream(ctx); return err }
		calls["accept a group at the "+name] = func() error {
			_, err := from.AcceptUniStream(ctx)
			return err
		}
	}
	var begun sync.WaitGroup
	begun.Add(len(calls))
	ended := make(chan string, len(calls))
	for name, call := range calls {
		go func() {
			begun.Done()
			for call() == nil { // until it waits, and then fails
			}
			ended <- name
		}()
	}
	begun.Wait()
	end()
	for len(calls) > 0 {
		select {
		case name := <-ended:
			delete(calls, name)
		case <-ctx.Done():
			for name := range calls {
				t.Errorf("%s: goes on after the session's end", name)
			}
			return
		}
	}
}

// request opens a stream, of which the peer has read all there is.
func request(
	ctx context.Context, t *testing.T, from, to protocol.Session,
) (asked, answering protocol.Stream) {
	t.Helper()
	asked, err := from.OpenStream(ctx)
	if err == nil {
		_, err = asked.Write([]byte("x"))
	}
	if err != nil {
		t.Fatal(err)
	}
	answering, err = to.AcceptStream(ctx)
	if err == nil {
		_, err = io.ReadFull(answering, make([]byte, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	return asked, answering
}

func reading(s protocol.Stream) func() error {
	return func() error { _, err := s.Read(make([]byte, 1)); return err }
}

func writing(s protocol.Stream) func() error {
	return func() error { _, err := s.Write(make([]byte, 64<<10)); return err }
}
